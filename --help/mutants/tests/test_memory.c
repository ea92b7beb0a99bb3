/* Memory: a replay allocates nothing, seen by a counting allocator and by the C library's functions wrapped at link time; and
 * every allocation is made to fail once: a clean OL_ERROR_MEMORY, nothing leaked, nothing written, and success afterwards. */
#include "graph_cases.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- The C library's allocations, counted (-Wl,--wrap=…) ---- */

static atomic_size_t n_library_calls;

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *pointer, size_t n_bytes);
void *__real_aligned_alloc(size_t alignment, size_t n_bytes);
int __real_posix_memalign(void **pointer, size_t alignment, size_t n_bytes);
void __real_free(void *pointer);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *pointer, size_t n_bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes);
int __wrap_posix_memalign(void **pointer, size_t alignment, size_t n_bytes);
void __wrap_free(void *pointer);

void *__wrap_malloc(size_t n_bytes)
{
    atomic_fetch_add(&n_library_calls, 1);
    return __real_malloc(n_bytes);
}

void *__wrap_calloc(size_t n, size_t size)
{
    atomic_fetch_add(&n_library_calls, 1);
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *pointer, size_t n_bytes)
{
    atomic_fetch_add(&n_library_calls, 1);
    return __real_realloc(pointer, n_bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes)
{
    atomic_fetch_add(&n_library_calls, 1);
    return __real_aligned_alloc(alignment, n_bytes);
}

int __wrap_posix_memalign(void **pointer, size_t alignment, size_t n_bytes)
{
    atomic_fetch_add(&n_library_calls, 1);
    return __real_posix_memalign(pointer, alignment, n_bytes);
}

void __wrap_free(void *pointer)
{
    atomic_fetch_add(&n_library_calls, 1);
    __real_free(pointer);
}

/* ---- An allocator that keeps books ---- */

typedef struct ledger {
    size_t n_calls, fail_at;                   /* the call that fails; 0: none */
    size_t n_blocks, n_bytes;                  /* alive */
    size_t n_faults;                           /* frees of something else, or of another size */
    struct { void *pointer; size_t n_bytes; } blocks[4096];
} ledger;

static void *ledger_allocate(void *user, size_t n_bytes)
{
    ledger *l = user;
    if (++l->n_calls == l->fail_at || n_bytes == 0 || l->n_blocks == COUNT(l->blocks))
        return NULL;
    void *pointer = __real_aligned_alloc(64, (n_bytes + 63) / 64 * 64);
    if (!pointer)
        return NULL;
    memset(pointer, 0xDB, n_bytes);            /* what is not written is not zero by luck */
    l->blocks[l->n_blocks].pointer = pointer;
    l->blocks[l->n_blocks++].n_bytes = n_bytes;
    l->n_bytes += n_bytes;
    return pointer;
}

static void ledger_free(void *user, void *pointer, size_t n_bytes)
{
    ledger *l = user;
    for (size_t i = l->n_blocks; i-- > 0;)
        if (l->blocks[i].pointer == pointer) {
            l->n_faults += l->blocks[i].n_bytes != n_bytes;
            l->n_bytes -= l->blocks[i].n_bytes;
            l->blocks[i] = l->blocks[--l->n_blocks];
            memset(pointer, 0xDD, n_bytes);
            __real_free(pointer);
            return;
        }
    l->n_faults++;
}

static ol_allocator allocator_of(ledger *l)
{
    return (ol_allocator){ ledger_allocate, ledger_free, l };
}

/* ---- Graphs: a usual one, one with more values than the stack holds, one with more tensors, one with shapes ---- */

static int build_usual(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    ol_value x = ol_add(g, in[0], in[1]), k = ol_exp(g, ol_constant(g, OL_FLOAT32, 0.5));
    out[0] = ol_multiply(g, ol_softplus(g, x), k);
    out[1] = ol_astype(g, ol_sigmoid(g, in[0]), OL_BFLOAT16);
    return 0;
}

enum { WIDE = 600 };

static int build_wide(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    ol_value values[WIDE];
    for (int i = 0; i < WIDE; i++)
        values[i] = ol_multiply(g, in[0], ol_constant(g, OL_FLOAT32, i));
    out[0] = values[0];
    for (int i = WIDE - 1; i > 0; i--)
        out[0] = ol_add(g, out[0], values[i]);
    return 0;
}

enum { MANY = 150 };

static int build_many(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    for (int i = 0; i < MANY; i++)
        out[i] = ol_subtract(g, in[i], in[(i + 1) % MANY]);
    return 0;
}

static int build_shapes(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_broadcast_to(g, ol_negative(g, in[0]), 2, SHAPE(4, 8));
    out[1] = ol_broadcast_like(g, in[1], out[0]);
    return 0;
}

typedef struct subject {
    const char *name;
    ol_build build;
    int32_t n_inputs, n_outputs;
} subject;

static const subject subjects[] = {
    { "usual", build_usual, 2, 2 }, { "wide", build_wide, 1, 1 }, { "many", build_many, MANY, MANY }, { "shapes", build_shapes, 2, 2 },
};

static const ol_dtype all_float32[MANY] = {
#define TEN OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32
    TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN
};

static ol_status compile_subject(const subject *s, ol_device *device, ol_composite **c, ol_error *error)
{
    ol_builder builder = { .build = s->build, .n_inputs = s->n_inputs, .n_outputs = s->n_outputs, .name = s->name };
    return ol_compile(device, &builder, all_float32, c, error);
}

/* Tensors for a subject: every input [rows, 8] (the shapes subject takes [8]), outputs inferred. */
static void tensors_of(const ol_composite *c, const subject *s, int64_t rows, float *arena, ol_tensor *in, ol_tensor *out)
{
    int32_t rank = s->build == build_shapes ? 1 : 2;
    ol_error error;
    for (int32_t i = 0; i < s->n_inputs; i++, arena += rows * 8)
        in[i] = ol_tensor_contiguous(arena, OL_FLOAT32, rank, rank == 1 ? SHAPE(8) : SHAPE(rows, 8));
    assert_ok(ol_output_shapes(c, in, out, &error), &error);
    for (int32_t o = 0; o < s->n_outputs; o++, arena += rows * 8 < 32 ? 32 : rows * 8)
        out[o].data = arena;
}

static void serial_parallel_for(void *user, size_t n_tasks, ol_task task, void *argument)
{
    *(size_t *)user += n_tasks;
    for (size_t i = n_tasks; i-- > 0;)
        task(argument, i);
}

static void a_replay_allocates_nothing(void **state)
{
    (void)state;
    static const int64_t rows[] = { 1, 4, 200, 20000 };
    size_t n_tasks = 0;
    ledger *books = __real_calloc(1, sizeof *books);
    for (int which = 0; which < 4; which++) {
        ol_cpu_options options = { .n_threads = 1 };
        ol_device *device;
        ol_error error;
        if (which & 1)
            options.allocator = allocator_of(books);
        if (which & 2)
            options.n_threads = 8, options.parallel_for = serial_parallel_for, options.parallel_user = &n_tasks;
        size_t calls_before = n_library_calls;
        assert_ok(ol_device_cpu(&options, &device, &error), &error);
        assert_true(which & 1 ? books->n_calls > 0 : n_library_calls > calls_before);        /* the counters count */
        for (size_t s = 0; s < COUNT(subjects); s++) {
            ol_composite *c;
            ol_tensor in[MANY], out[MANY];
            assert_ok(compile_subject(&subjects[s], device, &c, &error), &error);
            for (size_t r = 0; r < COUNT(rows); r++) {
                if (subjects[s].build == build_many && rows[r] > 1000)
                    continue;
                float *arena = __real_calloc((size_t)(rows[r] * 8 + 32) * 2 * (size_t)subjects[s].n_outputs + 64, sizeof *arena);
                assert_non_null(arena);
                tensors_of(c, &subjects[s], rows[r], arena, in, out);
                ol_status status = OL_OK;
                size_t library = n_library_calls, own = books->n_calls;
                for (int i = 0; i < 3 && status == OL_OK; i++)
                    status = ol_replay(c, NULL, in, out, &error);
                library = n_library_calls - library;
                own = books->n_calls - own;
                assert_ok(status, &error);
                if (library || own)
                    fail_msg("%s, %lld rows: 3 replays made %zu calls of the C library's allocator and %zu of the host's", subjects[s].name, (long long)rows[r], library, own);
                /* Nor does a refusal. */
                out[0].dtype = OL_INT8;
                library = n_library_calls;
                status = ol_replay(c, NULL, in, out, &error);
                library = n_library_calls - library;
                assert_int_equal(status, OL_ERROR_DTYPE);
                assert_int_equal(library, 0);
                __real_free(arena);
            }
            ol_composite_destroy(c);
        }
        ol_device_destroy(device);
    }
    assert_true(n_tasks > 0);
    assert_int_equal(books->n_blocks, 0);
    assert_int_equal(books->n_faults, 0);
    __real_free(books);
}

/* ---- Every allocation fails once ---- */

typedef struct scenario {
    const char *name;
    ol_status (*run)(ol_device *device, ol_error *error);      /* leaves nothing alive, whatever happens */
} scenario;

static ol_status compile_and_destroy(const subject *s, ol_device *device, ol_error *error)
{
    ol_composite *c = NULL;
    ol_status status = compile_subject(s, device, &c, error);
    assert_int_equal(status == OL_OK, c != NULL);
    ol_composite_destroy(c);
    return status;
}

static ol_status nothing(ol_device *device, ol_error *error) { (void)device, (void)error; return OL_OK; }
static ol_status compile_usual(ol_device *device, ol_error *error) { return compile_and_destroy(&subjects[0], device, error); }
static ol_status compile_wide(ol_device *device, ol_error *error) { return compile_and_destroy(&subjects[1], device, error); }
static ol_status compile_many(ol_device *device, ol_error *error) { return compile_and_destroy(&subjects[2], device, error); }
static ol_status compile_shapes(ol_device *device, ol_error *error) { return compile_and_destroy(&subjects[3], device, error); }

static ol_status compile_rates(ol_device *device, ol_error *error)
{
    ol_composite *c = NULL;
    ol_status status = ol_gated_delta_rates_compile(device, OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16, &c, error);
    ol_composite_destroy(c);
    return status;
}

static char texts[COUNT(subjects)][200000];

static ol_status compile_texts(ol_device *device, ol_error *error)
{
    ol_status status = OL_OK;
    for (size_t s = 0; s < COUNT(subjects) && status == OL_OK; s++) {
        ol_composite *c = NULL;
        status = ol_compile_text(device, texts[s], strlen(texts[s]), &c, error);
        ol_composite_destroy(c);
    }
    return status;
}

/* The composed path takes memory for intermediates; what fails there writes no output. */
static ol_status replay_composed(ol_device *device, ol_error *error)
{
    static float arena[2000];
    static unsigned char pristine[sizeof arena];
    ol_composite *c = NULL;
    ol_tensor in[2], out[2];
    for (size_t s = 0; s < COUNT(subjects); s += 3) {
        ol_status status = compile_subject(&subjects[s], device, &c, error);
        if (status != OL_OK)
            return status;
        memset(arena, 0, sizeof arena);
        tensors_of(c, &subjects[s], 4, arena, in, out);
        for (int32_t o = 0; o < 2; o++)
            memset(out[o].data, 0xA5, 32 * sizeof(float));
        memcpy(pristine, arena, sizeof arena);
        status = ol_replay_composed(c, NULL, in, out, error);
        ol_composite_destroy(c);
        if (status != OL_OK) {
            assert_memory_equal(arena, pristine, sizeof arena);
            return status;
        }
        assert_memory_not_equal(out[0].data, pristine + ((char *)out[0].data - (char *)arena), 32 * sizeof(float));
    }
    return OL_OK;
}

static const scenario scenarios[] = {
    { "device", nothing }, { "usual", compile_usual }, { "wide", compile_wide }, { "many tensors", compile_many }, { "shapes", compile_shapes },
    { "rates", compile_rates }, { "text", compile_texts }, { "composed path", replay_composed },
};

static ol_status run_scenario(const scenario *s, ledger *books, size_t fail_at, ol_error *error)
{
    ol_device *device = NULL;
    ol_cpu_options options = { .n_threads = 8, .parallel_for = host_parallel_for, .allocator = allocator_of(books) };
    memset(books, 0, sizeof *books);
    books->fail_at = fail_at;
    ol_status status = ol_device_cpu(&options, &device, error);
    assert_int_equal(status == OL_OK, device != NULL);
    if (status == OL_OK)
        status = s->run(device, error);
    ol_device_destroy(device);
    return status;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    ledger *books = __real_calloc(1, sizeof *books);
    for (size_t s = 0; s < COUNT(subjects); s++) {
        ol_composite *c;
        ol_error error;
        assert_ok(compile_subject(&subjects[s], level_device(0), &c, &error), &error);
        assert_true(ol_composite_text(c, OL_TEXT_GRAPH, texts[s], sizeof texts[s]) < sizeof texts[s]);
        ol_composite_destroy(c);
    }
    for (size_t s = 0; s < COUNT(scenarios); s++) {
        ol_error error;
        assert_ok(run_scenario(&scenarios[s], books, 0, &error), &error);
        size_t n_calls = books->n_calls;
        assert_int_equal(books->n_blocks, 0);
        for (size_t k = 1; k <= n_calls; k++) {
            memset(&error, 0, sizeof error);
            ol_status status = run_scenario(&scenarios[s], books, k, &error);
            if (status != OL_ERROR_MEMORY || error.status != OL_ERROR_MEMORY || !strstr(error.description, "memory") || !error.operation[0])
                fail_msg("%s, allocation %zu of %zu failed: %s, \"%s\": \"%s\"", scenarios[s].name, k, n_calls, ol_status_name(status), error.operation, error.description);
            if (books->n_blocks || books->n_bytes || books->n_faults)
                fail_msg("%s, allocation %zu of %zu failed: %zu blocks of %zu bytes were kept, %zu frees were wrong", scenarios[s].name, k, n_calls, books->n_blocks,
                         books->n_bytes, books->n_faults);
        }
        assert_ok(run_scenario(&scenarios[s], books, 0, &error), &error);
        assert_int_equal(books->n_calls, n_calls);
        assert_int_equal(books->n_faults, 0);
        print_message("%s: %zu allocations\n", scenarios[s].name, n_calls);
    }
    __real_free(books);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_replay_allocates_nothing), cmocka_unit_test(every_allocation_fails_once) };
    return HARNESS_RUN(argc, argv, tests);
}
