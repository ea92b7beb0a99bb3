/* Public bug reports against fusers of elementwise graphs, replayed here: the rows on threads, processes, the host's state and
 * errors (A60, A62 to A66, A68, A75 to A77, A79).
 *
 * Elsewhere: A69 (a replay allocates nothing) is test_memory.c; A71 (no symbol shared between levels) is check_symbols.sh; A78 is
 * with the aliasing rows. Rows on the kernel cache, stream capture, several GPUs and NVRTC concern the CUDA device alone and are
 * not here: A56 to A59, A61, A67, A70, A72 to A74, A80, and the CUDA halves of A64 and A68. */
#include "graph_cases.h"

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUILDER(name) static int name(ol_graph *g, const ol_value *in, ol_value *out, void *user)

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER 1
#endif
#endif
#ifdef ADDRESS_SANITIZER
/* Children exit with threads running and composites alive, on purpose, and may print nothing: no leak check at their exit. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

/* ---- Helpers ---- */

/* Compiles and replays one primitive by itself, without assertions, so that threads and children can use it. False on any error. */
static int replay_once(ol_device *device, int32_t p, float x, float *result)
{
    ol_composite *c;
    ol_builder builder = { .build = build_primitive, .user = PRIMITIVE_USER(p), .n_inputs = 1, .n_outputs = 1 };
    ol_tensor in = vector_of(&x, OL_FLOAT32, 1), out = vector_of(result, OL_FLOAT32, 1);
    if (ol_compile(device, &builder, DTYPES(OL_FLOAT32), &c, NULL) != OL_OK)
        return 0;
    int ok = ol_replay(c, NULL, &in, &out, NULL) == OL_OK;
    ol_composite_destroy(c);
    return ok;
}

static ol_device *device_with(int32_t n_threads, ol_parallel_for parallel_for)
{
    ol_cpu_options options = { .n_threads = n_threads, .parallel_for = parallel_for };
    ol_device *device = NULL;
    return ol_device_cpu(&options, &device, NULL) == OL_OK ? device : NULL;
}

enum { LARGE = 1000000 };

/* A replay that is large enough for threads; false if it is not right. */
static int replay_large(const ol_composite *c)
{
    static float in[LARGE], out[LARGE];
    for (int i = 0; i < LARGE; i++) {
        in[i] = (float)(i & 1023);
        out[i] = -1;
    }
    ol_tensor x = vector_of(in, OL_FLOAT32, LARGE), y = vector_of(out, OL_FLOAT32, LARGE);
    if (ol_replay(c, NULL, &x, &y, NULL) != OL_OK)
        return 0;
    for (int i = 0; i < LARGE; i++)
        if (out[i] != (float)(i & 1023) + 1)
            return 0;
    return 1;
}

/* log(exp(x) / exp(x)) + x + 1 costs enough to be split over threads. */
BUILDER(build_costly)
{
    (void)user;
    ol_value e = ol_tanh(g, in[0]), one = ol_constant(g, OL_FLOAT32, 1);
    out[0] = ol_add(g, ol_add(g, in[0], ol_subtract(g, e, e)), one);
    return 0;
}

static ol_composite *compile_costly(ol_device *device)
{
    ol_composite *c = NULL;
    ol_builder builder = { .build = build_costly, .n_inputs = 1, .n_outputs = 1 };
    return device && ol_compile(device, &builder, DTYPES(OL_FLOAT32), &c, NULL) == OL_OK ? c : NULL;
}

/* Runs `body` in a forked child, which gives 0 when all is well; the child may not hang, crash, or print. */
static void in_child(int (*body)(void))
{
    int output[2];
    char text[400];
    ssize_t n;
    fflush(NULL);
    assert_int_equal(pipe(output), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
        for (size_t i = 0; i < COUNT(signals); i++)
            signal(signals[i], SIG_DFL);
        dup2(output[1], STDOUT_FILENO);
        dup2(output[1], STDERR_FILENO);
        close(output[0]);
        alarm(60);
        exit(body());
    }
    close(output[1]);
    n = read(output[0], text, sizeof text - 1);
    close(output[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (n > 0) {
        text[n] = '\0';
        fail_msg("the child printed: %s", text);
    }
    if (WIFSIGNALED(status))
        fail_msg("the child died of signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- A60, A62 ---- */

static void *destroy_composite(void *composite)
{
    ol_composite_destroy(composite);
    return NULL;
}

static void A60_never_the_result_of_a_freed_composite(void **state)
{
    (void)state;
    static const struct { const char *name; float x, result; } functions[] = {
        { "negative", 3, -3 }, { "square", 3, 9 }, { "exp", 0, 1 }, { "sqrt", 16, 4 }, { "reciprocal", 8, 0.125f }, { "abs", -2, 2 }, { "floor", 2.5f, 2 },
    };
    for (size_t i = 0; i < 1000; i++) {
        size_t f = i % COUNT(functions);
        ol_composite *c = compile_on(level_device(i % level_count()), build_primitive, primitive_named(functions[f].name), 1, DTYPES(OL_FLOAT32), 1);
        float x = functions[f].x, y = 0;
        ol_tensor in = vector_of(&x, OL_FLOAT32, 1), out = vector_of(&y, OL_FLOAT32, 1);
        assert_int_equal(ol_replay(c, NULL, &in, &out, NULL), OL_OK);
        assert_true(y == functions[f].result);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, destroy_composite, c), 0);
        pthread_join(thread, NULL);
    }
}

typedef struct tracer {
    ol_device *device;
    const ol_composite *shared;
    int32_t primitive;
    int wrong;
} tracer;

static void *trace_and_replay(void *user)
{
    tracer *t = user;
    for (int i = 0; i < 300; i++) {
        float x = 4, y = 0, z = 0;
        ol_tensor in = vector_of(&x, OL_FLOAT32, 1), out = vector_of(&y, OL_FLOAT32, 1);
        t->wrong += !replay_once(t->device, t->primitive, 4, &z) || z != 2;
        t->wrong += ol_replay(t->shared, NULL, &in, &out, NULL) != OL_OK || y != 5;
    }
    return NULL;
}

static void A62_tracing_running_and_destroying_are_independent(void **state)
{
    (void)state;
    ol_composite *shared = compile_costly(level_device(0));
    tracer tracers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        tracers[i] = (tracer){ level_device(0), shared, ol_primitive_find("sqrt"), 0 };
        assert_int_equal(pthread_create(&threads[i], NULL, trace_and_replay, &tracers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(tracers[i].wrong, 0);
    }
    ol_composite_destroy(shared);
}

/* ---- A63: the host's floating-point state ---- */

typedef struct host_state { const char *name; int rounding, flush, unmasked, flags; } host_state;

static const host_state host_states[] = {
    { "upward", FE_UPWARD, 0, 0, 0 }, { "downward, flags up", FE_DOWNWARD, 0, 0, FE_ALL_EXCEPT }, { "toward zero", FE_TOWARDZERO, 0, 0, 0 },
    { "flush to zero", FE_TONEAREST, 1, 0, FE_INEXACT }, { "traps", FE_TONEAREST, 0, 1, 0 }, { "all of it", FE_TOWARDZERO, 1, 1, 0 },
};

#if defined(__x86_64__)
#include <xmmintrin.h>
#define CONTROL_WORD _mm_getcsr()
#elif defined(__aarch64__)
static unsigned long long control_word(void)
{
    unsigned long long control, flags;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control), "=r"(flags));
    return control << 32 | flags;
}
#define CONTROL_WORD control_word()
#endif

static void enter_state(const host_state *s)
{
    feclearexcept(FE_ALL_EXCEPT);
    fesetround(s->rounding);
#if defined(__x86_64__)
    if (s->flush)
        _mm_setcsr(_mm_getcsr() | 0x8040);               /* FTZ and DAZ */
    if (s->flags)
        _mm_setcsr(_mm_getcsr() | 0x3F);
#endif
    if (s->unmasked)
        feenableexcept(FE_ALL_EXCEPT);
}

static void leave_state(void)
{
    fesetenv(FE_DFL_ENV);
}

enum { STATE_MAX = 60000 };

static void check_states(int32_t p, int32_t arity, const ol_dtype *dtypes, void *user)
{
    static uint64_t data[3][STATE_MAX], expected[STATE_MAX], got[STATE_MAX];
    ol_device *const *devices = user;
    uint64_t random = harness_seed;
    for (int k = 0; k < arity; k++)
        random_fill(&random, data[k], dtypes[k], STATE_MAX);
    for (size_t d = 0; devices[d]; d++) {
        ol_composite *usual = compile_on(devices[d], build_primitive, PRIMITIVE_USER(p), arity, dtypes, 1);
        ol_dtype out_dtype = ol_composite_output_dtype(usual, 0);
        /* The last device has threads. Emulated, which takes minutes, they run one primitive of four. */
        int64_t lengths[] = { 1, 333, devices[d + 1] || (getenv("ONELAUNCH_TEST_EMULATED") && p % 4) ? 0 : STATE_MAX };
        for (size_t l = 0; l < COUNT(lengths); l++) {
            int64_t n = lengths[l];
            ol_tensor in[3], right = vector_of(expected, out_dtype, n), out = vector_of(got, out_dtype, n);
            for (int k = 0; k < arity; k++)
                in[k] = vector_of(data[k], dtypes[k], n);
            assert_int_equal(ol_replay(usual, NULL, in, &right, NULL), OL_OK);
            for (size_t s = 0; s < COUNT(host_states); s++)
                for (int path = 0; path < 2; path++) {
                    ol_builder builder = { .build = build_primitive, .user = PRIMITIVE_USER(p), .n_inputs = arity, .n_outputs = 1 };
                    ol_composite *c = NULL;
                    enter_state(&host_states[s]);
                    unsigned long long before = CONTROL_WORD;
                    int rounding = fegetround(), raised = fetestexcept(FE_ALL_EXCEPT);
                    ol_status compiled = ol_compile(devices[d], &builder, dtypes, &c, NULL);
                    ol_status replayed = c ? replay_paths[path](c, NULL, in, &out, NULL) : OL_ERROR_ARGUMENT;
                    unsigned long long after = CONTROL_WORD;
                    int kept = fegetround() == rounding && fetestexcept(FE_ALL_EXCEPT) == raised;
                    leave_state();
                    ol_composite_destroy(c);
                    if (compiled != OL_OK || replayed != OL_OK || after != before || !kept)
                        fail_msg("%s of %s at %s under %s, n %d: status %d, control word %llx before, %llx after", ol_primitive_name(p),
                                 ol_dtype_name(dtypes[arity - 1]), ol_device_level(devices[d]), host_states[s].name, (int)n, (int)replayed, before, after);
                    if (memcmp(expected, got, (size_t)n * ol_dtype_size(out_dtype)) != 0)
                        fail_msg("%s of %s at %s under %s, n %d (%s): other bits", ol_primitive_name(p), ol_dtype_name(dtypes[arity - 1]),
                                 ol_device_level(devices[d]), host_states[s].name, (int)n, path_names[path]);
                }
        }
        ol_composite_destroy(usual);
    }
}

static void A63_the_hosts_rounding_flushing_and_traps(void **state)
{
    (void)state;
    ol_device *devices[6] = { NULL };
    for (size_t i = 0; i < level_count(); i++)
        devices[i] = level_device(i);
    devices[level_count()] = device_with(2, host_parallel_for);
    assert_non_null(devices[level_count()]);
    each_primitive(check_states, devices);
    ol_device_destroy(devices[level_count()]);
}

/* Every constant and folding, traced under another rounding mode. */
BUILDER(build_constants)
{
    (void)in, (void)user;
    ol_value third = ol_constant(g, OL_FLOAT32, 1.0 / 3.0), tiny = ol_constant(g, OL_FLOAT32, 0x1.8p-149);
    out[0] = third;
    out[1] = tiny;
    out[2] = ol_exp(g, third);
    out[3] = ol_multiply(g, tiny, ol_constant(g, OL_FLOAT32, 0.25));
    out[4] = ol_astype(g, third, OL_BFLOAT16);
    out[5] = ol_constant(g, OL_FLOAT16, 0x1.004p0);
    return 0;
}

static void A63_constants_traced_under_another_state(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT(host_states); s++) {
        uint32_t results[6] = { 0 };
        ol_composite *c = NULL;
        ol_tensor out[6];
        for (int i = 0; i < 6; i++)
            out[i] = ol_tensor_contiguous(&results[i], i == 4 ? OL_BFLOAT16 : i == 5 ? OL_FLOAT16 : OL_FLOAT32, 0, NULL);
        ol_builder builder = { .build = build_constants, .n_outputs = 6 };
        enter_state(&host_states[s]);
        ol_status compiled = ol_compile(level_device(0), &builder, NULL, &c, NULL), replayed = c ? ol_replay(c, NULL, NULL, out, NULL) : OL_ERROR_ARGUMENT;
        leave_state();
        assert_int_equal(compiled, OL_OK);
        assert_int_equal(replayed, OL_OK);
        static const uint32_t expected[] = { 0x3EAAAAAB, 2, 0x3FB2A36E, 0, 0x3EAB, 0x3C01 };
        for (int i = 0; i < 6; i++)
            if (results[i] != expected[i])
                fail_msg("under %s, constant %d is %x, expected %x", host_states[s].name, i, results[i], expected[i]);
        ol_composite_destroy(c);
    }
}

/* ---- A64 to A66: processes ---- */

static int use_everything(void)
{
    ol_device *device = device_with(2, NULL);
    ol_composite *c = compile_costly(device);
    int ok = c && replay_large(c);
    ol_composite_destroy(c);
    ol_device_destroy(device);
    return !ok;
}

static void A64_fork_before_and_between_uses(void **state)
{
    (void)state;
    in_child(use_everything);
    assert_int_equal(use_everything(), 0);
    in_child(use_everything);
}

static ol_device *live_device;
static ol_composite *live_composite;

static int leave_composites_alive(void)
{
    live_device = device_with(2, NULL);
    live_composite = compile_costly(live_device);
    return !(live_composite && replay_large(live_composite));      /* exit() runs with both alive and the pool's thread waiting */
}

static void A65_exit_with_live_composites(void **state)
{
    (void)state;
    in_child(leave_composites_alive);
}

static int run_unload_host(void)
{
#ifdef ADDRESS_SANITIZER
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
#endif
    execl(UNLOAD_HOST, UNLOAD_HOST, SHARED_LIBRARY, (char *)NULL);
    return 1;
}

static void A65_unload_with_live_composites(void **state)
{
    (void)state;
    if (getenv("ONELAUNCH_TEST_EMULATED"))
        skip();                                                    /* the host is a program of the emulated machine */
    for (int i = 0; i < 3; i++)
        in_child(run_unload_host);
}

static int replay_in_child(void)
{
    /* The parent's composite, whose threads do not exist here; then a device of the child's own; then the parent's is destroyed. */
    int wrong = !replay_large(live_composite) || use_everything() != 0;
    ol_composite_destroy(live_composite);
    ol_device_destroy(live_device);
    return wrong;
}

static void A66_fork_after_the_pool_has_run(void **state)
{
    (void)state;
    if (getenv("ONELAUNCH_TEST_EMULATED"))
        skip();                                                    /* a fork of a process with threads may make none in qemu 7 */
    live_device = device_with(2, NULL);
    live_composite = compile_costly(live_device);
    assert_non_null(live_composite);
    assert_true(replay_large(live_composite));
    in_child(replay_in_child);
    assert_true(replay_large(live_composite));
    ol_composite_destroy(live_composite);
    ol_device_destroy(live_device);
    live_composite = NULL;
    live_device = NULL;
}

/* ---- Signals ---- */

/* A signal that the host holds back waits for the host: no thread of the pool takes it, and the caller's mask is as it was. */
static int held_signal_in_child(void)
{
    sigset_t before, after, held, pending;
    sigprocmask(SIG_SETMASK, NULL, &before);
    ol_device *device = device_with(2, NULL);
    sigprocmask(SIG_SETMASK, NULL, &after);
    for (int s = 1; s < 32; s++)
        if (sigismember(&before, s) != sigismember(&after, s))
            return 1;
    ol_composite *c = compile_costly(device);
    sigemptyset(&held);
    sigaddset(&held, SIGTERM);
    sigprocmask(SIG_BLOCK, &held, NULL);
    kill(getpid(), SIGTERM);
    if (!c || !replay_large(c))
        return 2;
    sigpending(&pending);
    return sigismember(&pending, SIGTERM) ? 0 : 3;
}

static void signals_are_the_hosts(void **state)
{
    (void)state;
    in_child(held_signal_in_child);
}

/* ---- A68, A75, A79: graphs that do not compile elsewhere ---- */

BUILDER(build_product_of_sums)
{
    (void)user;
    ol_value product = ol_add(g, in[0], in[1]);
    for (int i = 2; i < 8; i += 2)
        product = ol_multiply(g, product, ol_add(g, in[i], in[i + 1]));
    out[0] = product;
    return 0;
}

static void A68_many_inputs_in_one_launch(void **state)
{
    (void)state;
    ol_dtype dtypes[8];
    uint64_t in[8 * 2];
    for (int i = 0; i < 8; i++) {
        dtypes[i] = OL_FLOAT16;
        in[2 * i] = 0x3C00;                                /* 1 */
        in[2 * i + 1] = i % 2 ? 0x3800 : 0x3C00;           /* 1 + .5 */
    }
    check_graph(build_product_of_sums, NULL, 8, dtypes, in, 1, BITS(0x4C00, 0x4510), 2);
}

BUILDER(build_where_constant)
{
    ol_dtype dtype = ol_value_dtype(g, in[0]);
    ol_value zero = ol_constant(g, dtype, 0), positive = ol_greater(g, in[0], zero);
    double infinity = *(const double *)user;
    out[0] = ol_where(g, positive, in[0], ol_constant(g, dtype, infinity));
    out[1] = ol_where(g, positive, in[0], ol_constant(g, dtype, -infinity));
    out[2] = ol_where(g, positive, in[0], ol_constant(g, dtype, infinity - infinity));
    return 0;
}

static void A75_infinite_and_nan_constants(void **state)
{
    (void)state;
    double infinity = __builtin_inf();
    check_graph(build_where_constant, &infinity, 1, DTYPES(OL_FLOAT32), BITS(0x3F800000, 0xBF800000), 3,
                BITS(0x3F800000, 0x7F800000, 0x3F800000, 0xFF800000, 0x3F800000, 0x7FC00000), 2);
    check_graph(build_where_constant, &infinity, 1, DTYPES(OL_FLOAT16), BITS(0x3C00, 0xBC00), 3, BITS(0x3C00, 0x7C00, 0x3C00, 0xFC00, 0x3C00, 0x7E00), 2);
    check_graph(build_where_constant, &infinity, 1, DTYPES(OL_BFLOAT16), BITS(0x3F80, 0xBF80), 3, BITS(0x3F80, 0x7F80, 0x3F80, 0xFF80, 0x3F80, 0x7FC0), 2);
}

BUILDER(build_constant_nan)
{
    (void)user;
    ol_value nan = ol_log(g, ol_constant(g, OL_FLOAT32, -1));
    out[0] = ol_where(g, ol_isnan(g, nan), nan, in[0]);
    out[1] = ol_where(g, ol_isfinite(g, nan), nan, in[0]);
    out[2] = nan;
    return 0;
}

static void A79_a_constant_subgraph_that_is_nan(void **state)
{
    (void)state;
    /* Output 2 depends on no input: a scalar, so the check is by hand. */
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *c = compile_on(level_device(level), build_constant_nan, NULL, 1, DTYPES(OL_FLOAT32), 3);
        float x[3] = { 1, 2, 3 }, r[3][3];
        ol_tensor in = vector_of(x, OL_FLOAT32, 3);
        ol_tensor out[3] = { vector_of(r[0], OL_FLOAT32, 3), vector_of(r[1], OL_FLOAT32, 3), ol_tensor_contiguous(r[2], OL_FLOAT32, 0, NULL) };
        ol_error error;
        for (int path = 0; path < 2; path++) {
            memset(r, 0, sizeof r);
            assert_ok(replay_paths[path](c, NULL, &in, out, &error), &error);
            for (int i = 0; i < 3; i++) {
                assert_int_equal(f32_bits(r[0][i]), 0x7FC00000);
                assert_true(r[1][i] == x[i]);
            }
            assert_int_equal(f32_bits(r[2][0]), 0x7FC00000);
        }
        ol_composite_destroy(c);
    }
}

/* ---- A76, A77: sizes ---- */

BUILDER(build_chain)
{
    ol_value x = in[0];
    for (intptr_t i = 0; i < (intptr_t)user; i++)
        x = ol_add(g, x, ol_constant(g, OL_FLOAT32, 0.0));
    out[0] = x;
    return 0;
}

/* The least of a few compilations' processor time, in seconds. */
static double compile_time(intptr_t length)
{
    double least = 1e9;
    for (int i = 0; i < 5; i++) {
        struct timespec from, to;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
        ol_composite *c = compile_on(level_device(0), build_chain, (void *)length, 1, DTYPES(OL_FLOAT32), 1);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
        double seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
        least = seconds < least ? seconds : least;
        ol_composite_destroy(c);
    }
    return least;
}

static void A76_compile_time_is_linear_in_nodes(void **state)
{
    (void)state;
    check_graph(build_chain, (void *)40000, 1, DTYPES(OL_FLOAT32), BITS(0x80000000, 0x3F800000, 0x7FC00000), 1, BITS(0, 0x3F800000, 0x7FC00000), 3);
    double half = compile_time(20000), whole = compile_time(40000);
    if (whole > 4 * half)
        fail_msg("20000 nodes took %.4f s, 40000 nodes %.4f s", half, whole);
}

BUILDER(build_sum_of_all)
{
    intptr_t n = (intptr_t)user;
    ol_value sum = in[0];
    for (intptr_t i = 1; i < n; i++)
        sum = ol_add(g, sum, in[i]);
    for (intptr_t i = 0; i < n; i++)
        out[i] = i == 0 ? sum : ol_add(g, in[i], in[i - 1]);
    return 0;
}

static void A77_many_inputs_and_outputs(void **state)
{
    (void)state;
    static const int counts[] = { 40, 300, 3000 };
    for (size_t k = 0; k < COUNT(counts); k++) {
        int n = counts[k];
        ol_dtype *dtypes = calloc((size_t)n, sizeof *dtypes);
        ol_tensor *in = calloc(2 * (size_t)n, sizeof *in), *out = in + n;
        int32_t (*data)[2][5] = calloc((size_t)n, sizeof *data);
        for (int i = 0; i < n; i++) {
            dtypes[i] = OL_INT32;
            in[i] = vector_of(data[i][0], OL_INT32, 5);
            out[i] = vector_of(data[i][1], OL_INT32, 5);
            for (int e = 0; e < 5; e++)
                data[i][0][e] = i + e;
        }
        for (size_t level = 0; level < level_count(); level++) {
            ol_composite *c = compile_on(level_device(level), build_sum_of_all, (void *)(intptr_t)n, n, dtypes, n);
            ol_error error;
            for (int path = 0; path < (n < 3000 ? 2 : 1); path++) {
                uint64_t before = ol_device_launches(level_device(level));
                assert_ok(replay_paths[path](c, NULL, in, out, &error), &error);
                assert_int_equal(ol_device_launches(level_device(level)) - before, path ? 2 * n - 2 : 1);
                for (int e = 0; e < 5; e++) {
                    assert_int_equal(data[0][1][e], n * (n - 1) / 2 + n * e);
                    for (int i = 1; i < n; i++)
                        assert_int_equal(data[i][1][e], 2 * i - 1 + 2 * e);
                }
            }
            ol_composite_destroy(c);
        }
        free(dtypes);
        free(in);
        free(data);
    }
}

static void A77_too_many_is_an_error_with_the_limit(void **state)
{
    (void)state;
    ol_builder inputs = { .build = build_sum_of_all, .n_inputs = OL_MAX_INPUTS + 1, .n_outputs = 1, .name = "wide" };
    ol_builder outputs = { .build = build_sum_of_all, .n_inputs = 1, .n_outputs = OL_MAX_OUTPUTS + 1, .name = "wide" };
    ol_builder nodes = { .build = build_chain, .user = (void *)OL_MAX_NODES, .n_inputs = 1, .n_outputs = 1, .name = "deep" };
    ol_dtype *dtypes = calloc(OL_MAX_INPUTS + 1, sizeof *dtypes);
    ol_composite *c = NULL;
    ol_error error;
    assert_fails(ol_compile(level_device(0), &inputs, dtypes, &c, &error), &error, OL_ERROR_LIMIT, "wide", "OL_MAX_INPUTS (16384)");
    assert_non_null(strstr(error.description, "16385"));
    assert_fails(ol_compile(level_device(0), &outputs, dtypes, &c, &error), &error, OL_ERROR_LIMIT, "wide", "OL_MAX_OUTPUTS (16384)");
    assert_fails(ol_compile(level_device(0), &nodes, dtypes, &c, &error), &error, OL_ERROR_LIMIT, "", "OL_MAX_NODES (262144)");
    assert_null(c);
    free(dtypes);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        /* First, while this process has not used the library: the child is its first user. */
        cmocka_unit_test(A64_fork_before_and_between_uses),
        cmocka_unit_test(A60_never_the_result_of_a_freed_composite), cmocka_unit_test(A62_tracing_running_and_destroying_are_independent),
        cmocka_unit_test(A63_the_hosts_rounding_flushing_and_traps), cmocka_unit_test(A63_constants_traced_under_another_state),
        cmocka_unit_test(A65_exit_with_live_composites), cmocka_unit_test(A65_unload_with_live_composites),
        cmocka_unit_test(signals_are_the_hosts), cmocka_unit_test(A66_fork_after_the_pool_has_run), cmocka_unit_test(A68_many_inputs_in_one_launch),
        cmocka_unit_test(A75_infinite_and_nan_constants), cmocka_unit_test(A76_compile_time_is_linear_in_nodes),
        cmocka_unit_test(A77_many_inputs_and_outputs), cmocka_unit_test(A77_too_many_is_an_error_with_the_limit),
        cmocka_unit_test(A79_a_constant_subgraph_that_is_nan),
    };
    return HARNESS_RUN(argc, argv, tests);
}
