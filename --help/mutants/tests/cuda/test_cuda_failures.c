/* Every call of the driver and every allocation is made to fail once, at every place: a clean error that names the call, nothing
 * leaked, nothing written, and success afterwards. And errors that arrive late. */
#include "cuda_harness.h"

#include <stdio.h>
#include <stdlib.h>

enum { MANY = 60 };

static int build_groups(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_negative(g, in[0]);
    out[1] = ol_add(g, ol_multiply(g, in[0], ol_constant(g, OL_FLOAT32, 3)), in[1]);
    return 0;
}

/* So many tensors that the parameters are passed by pointer. */
static int build_far(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    for (int i = 0; i < MANY; i++)
        out[i] = ol_subtract(g, in[i], in[(i + 1) % MANY]);
    return 0;
}

typedef struct subject {
    const char *name;
    ol_build build;
    int32_t n_inputs, n_outputs;
} subject;

static const subject subjects[] = { { "near", build_groups, 2, 2 }, { "far", build_far, MANY, MANY } };
static ol_dtype floats[MANY];

static ol_status compile_subject(ol_device *device, const subject *s, ol_composite **c, ol_error *error)
{
    ol_builder builder = { .build = s->build, .n_inputs = s->n_inputs, .n_outputs = s->n_outputs, .name = "case" };
    for (int i = 0; i < MANY; i++)
        floats[i] = OL_FLOAT32;
    return ol_compile(device, &builder, floats, c, error);
}

/* ---- Scenarios: each leaves nothing alive, whatever happens ---- */

/* What a scenario works on; made before anything fails. */
typedef struct setting {
    const subject *s;
    ol_device *device;
    ol_composite *c;
    ol_stream own;
    CUcontext context;
    scene sc;
    char *memory;
    unsigned char *expected;
    ol_tensor tensors[2 * MANY];
    ol_cuda_options options;
} setting;

/* How often the function that is to fail was called before the scenario's last phase, in which what fails stays and nobody
 * hears of it. */
static const char *failing;
static size_t n_before;
static ledger driver_books;              /* of the host's memory, while driver calls fail */

static void give_up_all(void)
{
    n_before = failing ? fake_calls(failing) : 0;
}

static ol_status make_device(setting *t, ol_error *error)
{
    ol_device *device = NULL;
    ol_status status = ol_device_cuda(0, &t->options, &device, error);
    assert_int_equal(status == OL_OK, device != NULL);
    give_up_all();
    ol_device_destroy(device);
    return status;
}

static ol_status make_device_of_context(setting *t, ol_error *error)
{
    ol_device *device = NULL;
    more.cuCtxSetCurrent(t->context);
    ol_status status = ol_device_cuda_current(&t->options, &device, error);
    assert_int_equal(status == OL_OK, device != NULL);
    give_up_all();
    ol_device_destroy(device);
    more.cuCtxSetCurrent(NULL);
    return status;
}

static ol_status compile(setting *t, ol_error *error)
{
    ol_device *device = NULL;
    ol_composite *c = NULL;
    ol_status status = ol_device_cuda(0, &t->options, &device, error);
    if (status == OL_OK)
        status = compile_subject(device, t->s, &c, error);
    assert_int_equal(status == OL_OK, c != NULL);
    give_up_all();
    ol_composite_destroy(c);
    ol_device_destroy(device);
    return status;
}

/* A device's second composite of the same graph. */
static ol_status compile_again(setting *t, ol_error *error)
{
    ol_composite *c = NULL;
    ol_status status = compile_subject(t->device, t->s, &c, error);
    ol_composite_destroy(c);
    return status;
}

static ol_status replay(setting *t, ol_error *error)
{
    return ol_replay(t->c, t->own, t->tensors, t->tensors + t->s->n_inputs, error);
}

static ol_status replay_composed(setting *t, ol_error *error)
{
    return ol_replay_composed(t->c, t->own, t->tensors, t->tensors + t->s->n_inputs, error);
}

static ol_status help(setting *t, ol_error *error)
{
    ol_stream other = NULL;
    void *pointer = NULL;
    char bytes[16] = { 0 };
    ol_status status = ol_stream_create(t->device, &other, error);
    if (status == OL_OK)
        status = ol_device_allocate(t->device, sizeof bytes, &pointer, error);
    if (status == OL_OK)
        status = ol_device_copy(t->device, other, pointer, bytes, sizeof bytes, error);
    if (status == OL_OK)
        status = ol_stream_synchronize(t->device, other, error);
    ol_status freed = ol_device_free(t->device, pointer, sizeof bytes, status == OL_OK ? error : NULL);
    if (freed != OL_OK)
        ol_device_free(t->device, pointer, sizeof bytes, NULL);  /* only once does it fail */
    ol_status destroyed = ol_stream_destroy(t->device, other, status == OL_OK && freed == OL_OK ? error : NULL);
    if (destroyed != OL_OK)
        ol_stream_destroy(t->device, other, NULL);
    return status != OL_OK ? status : freed != OL_OK ? freed : destroyed;
}

static ol_status describe(setting *t, ol_error *error)
{
    int32_t n;
    ol_cuda_facts facts;
    (void)t;
    ol_status status = ol_cuda_count(&n, error);
    return status == OL_OK ? ol_cuda_describe(0, &facts, error) : status;
}

typedef struct scenario {
    const char *name;
    ol_status (*run)(setting *t, ol_error *error);
    int loads;                           /* kernels, which are compiled again where the cached one fails */
} scenario;

static const scenario scenarios[] = {
    { "describe", describe, 0 }, { "device", make_device, 0 }, { "device of a context", make_device_of_context, 0 },
    { "compile", compile, 1 }, { "compile again", compile_again, 0 },
    { "replay", replay, 0 }, { "composed", replay_composed, 0 }, { "helpers", help, 0 },
};

static void begin(setting *t, const subject *s, const ol_cuda_options *options)
{
    ol_error error;
    memset(t, 0, sizeof *t);
    t->s = s;
    if (options)
        t->options = *options;
    assert_ok(ol_device_cuda(0, &t->options, &t->device, &error), &error);
    assert_ok(ol_stream_create(t->device, &t->own, &error), &error);
    assert_int_equal(cu.cuStreamGetCtx(t->own, &t->context), 0);
    assert_ok(compile_subject(t->device, s, &t->c, &error), &error);
    ol_composite *on_cpu;
    assert_ok(compile_subject(cpu, s, &on_cpu, &error), &error);
    scene_begin(&t->sc);
    for (int i = 0; i < s->n_inputs; i++)
        scene_add(&t->sc, DENSE, OL_FLOAT32, 1 + i % 2, i % 2 ? SHAPE(2, 5) : SHAPE(5));
    scene_add_outputs(&t->sc, on_cpu, DENSE, NULL);
    t->expected = scene_expected(&t->sc, on_cpu);
    t->memory = device_bytes(cuda, t->sc.bytes, t->sc.n_bytes);
    scene_bind(&t->sc, t->memory, t->tensors);
    ol_composite_destroy(on_cpu);
    /* What the composed path needs is loaded once. */
    if (s->build == build_groups)
        assert_ok(replay_composed(t, &error), &error);
    assert_ok(ol_stream_synchronize(t->device, t->own, &error), &error);
    upload(cuda, stream, t->memory, t->sc.bytes, t->sc.n_bytes);
}

static void end(setting *t)
{
    ol_error error;
    device_give(cuda, t->memory, t->sc.n_bytes);
    ol_composite_destroy(t->c);
    assert_ok(ol_stream_destroy(t->device, t->own, &error), &error);
    ol_device_destroy(t->device);
    free(t->expected);
    scene_end(&t->sc);
}

static void compare(const setting *t, const unsigned char *expected, const char *what)
{
    unsigned char *got = malloc(t->sc.n_bytes);
    download(cuda, stream, got, t->memory, t->sc.n_bytes);
    scene_compare(&t->sc, got, expected, what);
    free(got);
}

/* ---- The driver ---- */

/* Calls that give something back: what they fail to give back stays, and nobody hears of it. */
static int gives_back(const char *name)
{
    return strstr(name, "Destroy") || strstr(name, "Free") || strstr(name, "Unload") || strstr(name, "Release") ||
           strstr(name, "Pop");
}

/* Calls whose failure is made up for. */
static int is_made_up_for(const scenario *sc, const char *name, int code)
{
    if (strcmp(name, "cuThreadExchangeStreamCaptureMode") == 0 || strcmp(name, "cuEventQuery") == 0 ||
        strcmp(name, "cuEventRecord") == 0 || strcmp(name, "cuStreamIsCapturing") == 0)
        return 1;
    return sc->loads && code != 2 &&
           (strncmp(name, "cuModule", 8) == 0 || strncmp(name, "cuFunc", 6) == 0 || strncmp(name, "cuOcc", 5) == 0);
}

static const char *const names[] = {
#define F(name, symbol, arguments) #name,
    DRIVER_FUNCTIONS(F)
#undef F
};

/* Fails the nth call of a function. False where the scenario has no nth call. */
static int fail_once(setting *t, const scenario *sc, const char *name, int nth, int code)
{
    ol_error error = { 0 };
    char what[200];
    CUcontext popped;
    size_t leaks = fake_leaks(), n_bytes = driver_books.n_bytes;
    fake_forget();
    fake_fail(name, nth, code);
    failing = name;
    n_before = SIZE_MAX;
    ol_status status = sc->run(t, &error);
    failing = NULL;
    int stays = gives_back(name) || (size_t)nth > n_before, reached = fake_calls(name) >= (size_t)nth;
    if (sc->run == replay_composed && status == OL_OK && strncmp(name, "cuCtx", 5) == 0)
        stays = 1;                                               /* it was to free an intermediate */
    snprintf(what, sizeof what, "%s, %s: %s, call %d gives %d", t->s->name, sc->name, name, nth, code);
    if (fake_violations())
        fail_msg("%s: violation: %s", what, fake_violation(0));
    fake_forget();
    for (int n = 0; current_context(); n++) {
        if (strcmp(name, "cuCtxPopCurrent") != 0 || n)
            fail_msg("%s: a context is left current", what);
        cu.cuCtxPopCurrent(&popped);
    }
    if (!reached || status == OL_OK) {
        if (status != OL_OK)
            fail_msg("%s: it was not made, and still: %s: %s", what, error.operation, error.description);
        if (reached && !stays && !is_made_up_for(sc, name, code))
            fail_msg("%s: nobody noticed", what);
    } else {
        if (error.status != status || status != (code == 2 ? OL_ERROR_MEMORY : OL_ERROR_DEVICE) ||
            !strstr(error.description, name) || !error.operation[0])
            fail_msg("%s: %s: %s: %s", what, ol_status_name(status), error.operation, error.description);
    }
    if (driver_books.n_bytes != n_bytes && sc->run != replay)
        fail_msg("%s: %zu bytes of the host's kept", what, driver_books.n_bytes - n_bytes);
    if (!stays && sc->run != replay && fake_leaks() != leaks)
        fail_msg("%s: %zu objects more than before", what, fake_leaks() - leaks);
    if (sc->run == replay) {
        compare(t, status == OL_OK ? t->expected : t->sc.bytes, what);
        upload(cuda, stream, t->memory, t->sc.bytes, t->sc.n_bytes);
    }
    /* What else failed to be given back dies with the context. */
    if (reached && strcmp(name, "cuDevicePrimaryCtxRelease") == 0)
        assert_int_equal(cu.cuDevicePrimaryCtxRelease(0), 0);
    return reached;
}

static void every_driver_call_fails_once(void **state)
{
    size_t n_points = 0;
    (void)state;
    need_fake();
    for (size_t i = 0; i < COUNT(subjects); i++)
        for (size_t k = 0; k < COUNT(scenarios); k++) {
            ol_cuda_options options = ledger_options(&driver_books);
            setting t;
            ol_error error;
            if (i && scenarios[k].run == replay_composed)
                continue;                                        /* of nodes that are near, all of them */
            begin(&t, &subjects[i], &options);
            for (size_t f = 0; f < COUNT(names); f++) {
                /* What was cached is compiled again: once is enough. */
                int most = scenarios[k].loads && is_made_up_for(&scenarios[k], names[f], 400) ? 1 : i ? 5 : 1000;
                for (int nth = 1; nth <= most && fail_once(&t, &scenarios[k], names[f], nth, 2); nth++)
                    n_points++;
                if (i && scenarios[k].loads)
                    continue;
                for (int nth = 1; nth <= most && fail_once(&t, &scenarios[k], names[f], nth, 400); nth++)
                    n_points++;
            }
            assert_ok(scenarios[k].run(&t, &error), &error);
            upload(cuda, stream, t.memory, t.sc.bytes, t.sc.n_bytes);
            assert_ok(replay(&t, &error), &error);
            assert_ok(ol_stream_synchronize(t.device, t.own, &error), &error);
            compare(&t, t.expected, "afterwards");
            end(&t);
            assert_int_equal(driver_books.n_blocks, 0);
            assert_int_equal(driver_books.n_faults, 0);
        }
    print_message("%zu places\n", n_points);
    assert_true(n_points > 200);
}

/* The calls of cuInit's kind are made once a process. */
static int open_and_fail(void)
{
    ol_error error = { 0 };
    ol_device *device = NULL;
    dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);               /* or it would be closed, and forget that it has failed */
    ol_status status = ol_device_cuda(0, NULL, &device, &error);
    printf("%s: %s\n", error.operation, error.description);
    if (status == OL_OK)
        return 1;
    if (ol_device_cuda(0, NULL, &device, &error) != OL_OK) {    /* it is tried again */
        printf("then: %s: %s\n", error.operation, error.description);
        return 2;
    }
    ol_device_destroy(device);
    return (int)fake_leaks();
}

static void opening_fails_once(void **state)
{
    static const char *const calls[] = { "cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet",
                                         "cuDevicePrimaryCtxRetain", "cuDeviceGetAttribute" };
    (void)state;
    need_fake();
    for (size_t i = 0; i < COUNT(calls); i++)
        for (int code = 3; code < 1000; code += 996) {
            char plan[100], output[CHILD_OUTPUT];
            snprintf(plan, sizeof plan, "FAKE_CUDA_FAIL=%s:1:%d", calls[i], code);
            int result = run_child("open and fail", (const char *const[]){ plan, "FAKE_CUDA_STRICT=1", NULL }, output);
            if (result || !strstr(output, calls[i]) || !strstr(output, code == 3 ? "CUDA_ERROR_NOT_INITIALIZED (3)" : "(999)"))
                fail_msg("%s: code %d: %s", plan, result, output);
        }
}

/* Where the driver does not say whether a block of parameters is free, it is not. */
static void doubtful_blocks_are_not_used(void **state)
{
    setting t[12];
    ol_error error;
    (void)state;
    need_fake();
    for (size_t i = 0; i < COUNT(t); i++) {
        harness_seed++;
        begin(&t[i], &subjects[1], NULL);
    }
    harness_seed -= COUNT(t);
    fake_hold(1);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < COUNT(t); i++) {
            fake_fail("cuEventQuery", 0, 900);
            assert_ok(ol_replay(t[0].c, t[0].own, t[i].tensors, t[i].tensors + MANY, &error), &error);
        }
    fake_forget();
    fake_hold(0);
    assert_ok(ol_stream_synchronize(t[0].device, t[0].own, &error), &error);
    for (size_t i = 0; i < COUNT(t); i++)
        compare(&t[i], t[i].expected, "doubtful");
    for (size_t i = 0; i < COUNT(t); i++)
        end(&t[i]);
}

/* ---- Host memory ---- */

static void every_allocation_fails_once(void **state)
{
    static const scenario with_memory[] = { { "device", make_device, 0 }, { "compile", compile, 1 },
                                            { "composed", replay_composed, 0 } };
    (void)state;
    need_fake();
    for (size_t i = 0; i < COUNT(subjects); i++)
        for (size_t k = 0; k < COUNT(with_memory); k++) {
            ledger books = { 0 };
            ol_cuda_options options = ledger_options(&books);
            setting t;
            ol_error error;
            if (i && with_memory[k].run == replay_composed)
                continue;
            begin(&t, &subjects[i], &options);
            size_t n_bytes = books.n_bytes, leaks = fake_leaks();
            books.n_calls = 0;
            assert_ok(with_memory[k].run(&t, &error), &error);
            size_t n_calls = books.n_calls;
            for (size_t nth = 1; nth <= n_calls; nth++) {
                memset(&error, 0, sizeof error);
                books.n_calls = 0;
                books.fail_at = nth;
                size_t compiled = compilations();
                ol_status status = with_memory[k].run(&t, &error);
                books.fail_at = 0;
                /* Without memory to read the cache with, it is a miss. */
                int is_clean = status == OL_ERROR_MEMORY && strstr(error.description, "memory");
                if (status == OL_OK ? compilations() == compiled : !is_clean)
                    fail_msg("%s, %s, allocation %zu of %zu: %s: %s: %s", t.s->name, with_memory[k].name, nth, n_calls,
                             ol_status_name(status), error.operation, error.description);
                if (books.n_bytes != n_bytes || books.n_faults || fake_leaks() != leaks)
                    fail_msg("%s, %s, allocation %zu of %zu: %zu bytes kept, %zu wrong frees, %zu objects more", t.s->name,
                             with_memory[k].name, nth,
                             n_calls, books.n_bytes - n_bytes, books.n_faults, fake_leaks() - leaks);
            }
            print_message("%s, %s: %zu allocations\n", t.s->name, with_memory[k].name, n_calls);
            assert_ok(with_memory[k].run(&t, &error), &error);
            end(&t);
            assert_int_equal(books.n_blocks, 0);
            assert_int_equal(books.n_faults, 0);
        }
}

/* ---- Device memory ---- */

static void device_memory_runs_out(void **state)
{
    void *pointer = &pointer;
    ol_error error;
    (void)state;
    assert_fails(ol_device_allocate(cuda, 2 * gpu.n_bytes, &pointer, &error), &error, OL_ERROR_MEMORY, "allocate",
                 "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
    assert_ptr_equal(pointer, &pointer);                         /* untouched */
    assert_ok(ol_device_allocate(cuda, 0, &pointer, &error), &error);
    assert_ptr_not_equal(pointer, &pointer);
    device_give(cuda, pointer, 0);
}

/* ---- Late errors ---- */

static int late_errors(void)
{
    static const ol_dtype dtype[2] = { OL_FLOAT32, OL_FLOAT32 };
    ol_error error = { 0 };
    ol_device *device;
    ol_stream in;
    ol_composite *c;
    void *memory, *other = NULL;
    const ol_builder builder = { .build = build_groups, .n_inputs = 2, .n_outputs = 2, .name = "late" };
    int failed = ol_device_cuda(0, NULL, &device, &error) != OL_OK || ol_stream_create(device, &in, &error) != OL_OK ||
                 ol_compile(device, &builder, dtype, &c, &error) != OL_OK ||
                 ol_device_allocate(device, 4096, &memory, &error) != OL_OK;
    if (failed) {
        printf("%s: %s\n", error.operation, error.description);
        return 10;
    }
    ol_tensor tensors[4];
    for (int i = 0; i < 4; i++)
        tensors[i] = vector_of((char *)memory + 1024 * i, OL_FLOAT32, 8);
    if (fake_is_loaded())
        fake_poison(700);
    else
        tensors[0].data = (void *)(uintptr_t)64;                 /* a GPU cannot read this */
    if (ol_replay(c, in, tensors, tensors + 2, &error) != OL_OK)
        return 11;                                               /* the launch itself is well */
    struct { const char *name, *call; ol_status status; ol_error error; } calls[6] = {
        { .name = "synchronize" }, { .name = "replay late" }, { .name = "allocate" }, { .name = "copy" }, { .name = "late" },
        { .name = "replay late" },
    };
    ol_composite *again = NULL;
    const ol_builder new_graph = { .build = build_far, .n_inputs = MANY, .n_outputs = MANY, .name = "late" };
    for (int i = 0; i < MANY; i++)
        floats[i] = OL_FLOAT32;
    calls[0].status = ol_stream_synchronize(device, in, &calls[0].error);
    calls[1].status = ol_replay(c, in, tensors, tensors + 2, &calls[1].error);
    calls[2].status = ol_device_allocate(device, 16, &other, &calls[2].error);
    calls[3].status = ol_device_copy(device, in, memory, &error, 16, &calls[3].error);
    calls[4].status = ol_compile(device, &new_graph, floats, &again, &calls[4].error);
    calls[5].status = ol_replay_composed(c, in, tensors, tensors + 2, &calls[5].error);
    for (int i = 0; i < 6; i++) {
        const ol_error *e = &calls[i].error;
        if (calls[i].status != OL_ERROR_DEVICE || !strstr(e->operation, calls[i].name) ||
            strncmp(e->description, "asynchronous, of work that was started earlier in this context: cu", 66) != 0 ||
            !strstr(e->description, "CUDA_ERROR_ILLEGAL_ADDRESS (700)")) {
            printf("call %d: %s: %s: %s\n", i, ol_status_name(calls[i].status), e->operation, e->description);
            return 12;
        }
    }
    ol_composite_destroy(c);
    ol_stream_destroy(device, in, NULL);
    ol_device_destroy(device);
    if (ol_device_cuda(0, NULL, &device, &error) == OL_OK)       /* as the driver sees fit */
        ol_device_destroy(device);
    ol_device *host = NULL;
    if (ol_device_cpu(NULL, &host, &error) != OL_OK)
        return 13;
    ol_device_destroy(host);
    return fake_is_loaded() ? (int)fake_leaks() : 0;
}

static void late_errors_are_named_so(void **state)
{
    char output[CHILD_OUTPUT];
    (void)state;
    int code = run_child("late errors", (const char *const[]){ NULL }, output);
    if (code || *output)
        fail_msg("code %d: %s", code, output);
}

/* Errors of a launch itself are not. */
static void errors_of_the_call_are_not(void **state)
{
    ol_error error;
    setting t;
    (void)state;
    need_fake();
    begin(&t, &subjects[0], NULL);
    fake_fail("cuLaunchKernel", 1, 701);
    assert_fails(replay(&t, &error), &error, OL_ERROR_DEVICE, "replay case",
                 "cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701): too many resources");
    assert_null(strstr(error.description, "asynchronous"));
    fake_fail("cuLaunchKernel", 1, 12345);
    assert_fails(replay(&t, &error), &error, OL_ERROR_DEVICE, "replay case", "cuLaunchKernel: an unknown code (12345): no text");
    end(&t);
}

int main(int argc, char **argv)
{
    static const child_program children[] = { { "open and fail", open_and_fail }, { "late errors", late_errors }, { NULL, NULL } };
    const struct CMUnitTest tests[] = {
        CUDA_TEST(every_driver_call_fails_once), CUDA_TEST(opening_fails_once), CUDA_TEST(doubtful_blocks_are_not_used),
        CUDA_TEST(every_allocation_fails_once),
        CUDA_TEST(device_memory_runs_out), CUDA_TEST(late_errors_are_named_so), CUDA_TEST(errors_of_the_call_are_not),
    };
    child_programs = children;
    return CUDA_RUN(argc, argv, tests);
}
