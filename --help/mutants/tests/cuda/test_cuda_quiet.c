/* What a replay does beside its launch: nothing. No allocation, of the host or the device; no copy, no wait, nothing in the legacy
 * stream; and few calls of the driver, always the same (A69, A70). */
#include "cuda_harness.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The C library's allocations, counted (-Wl,--wrap=...) ---- */

static atomic_size_t n_library_calls;

#define COUNTED(result, name, parameters, arguments)  \
    result __real_##name parameters;                  \
    result __wrap_##name parameters;                  \
    result __wrap_##name parameters                   \
    {                                                 \
        atomic_fetch_add(&n_library_calls, 1);        \
        return __real_##name arguments;               \
    }
COUNTED(void *, malloc, (size_t n), (n))
COUNTED(void *, calloc, (size_t n, size_t size), (n, size))
COUNTED(void *, realloc, (void *pointer, size_t n), (pointer, n))
COUNTED(void *, aligned_alloc, (size_t alignment, size_t n), (alignment, n))
COUNTED(int, posix_memalign, (void **pointer, size_t alignment, size_t n), (pointer, alignment, n))
void __real_free(void *pointer);
void __wrap_free(void *pointer);
void __wrap_free(void *pointer)
{
    atomic_fetch_add(&n_library_calls, 1);
    __real_free(pointer);
}

/* ---- Subjects ---- */

static int build_one(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_exp(g, ol_add(g, in[0], in[1]));
    return 0;
}

static int build_groups(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_negative(g, in[0]);
    out[1] = ol_add(g, in[0], in[1]);
    return 0;
}

enum { MOST = 300 };

static int build_pairs(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    int n = (int)(intptr_t)user;
    for (int i = 0; i < n; i++)
        out[i] = ol_subtract(g, in[i], in[(i + 1) % n]);
    return 0;
}

/* `calls`: of the driver, by a replay where the device's context is not current, and where it is. */
static const struct {
    const char *name;
    ol_build build;
    int32_t n_inputs, n_outputs;
    size_t calls[2];
} subjects[] = {
    { "one output", build_one, 2, 1, { 5, 3 } },
    { "groups", build_groups, 2, 2, { 5, 3 } },
    { "large parameters", build_pairs, 40, 40, { 5, 3 } },
    { "parameters by pointer", build_pairs, MOST, MOST, { 13, 11 } },
};

static ol_status replay(const ol_composite *c, ol_tensor *tensors, ol_error *error)
{
    return ol_replay(c, stream, tensors, tensors + ol_composite_input_count(c), error);
}

/* Seven shapes, and each of them again. */
enum { ROUNDS = 14 };

static void replays_do_nothing_else(void **state)
{
    static const char *const unwanted[] = { "cuMemAlloc", "cuMemAllocAsync", "cuMemHostAlloc", "cuMemFree", "cuMemFreeAsync",
                                            "cuMemFreeHost", "cuMemcpyAsync", "cuMemsetD32Async", "cuStreamSynchronize",
                                            "cuCtxSynchronize", "cuEventSynchronize", "cuModuleLoadData",
                                            "cuEventCreate", "cuStreamCreate", "NULL stream" };
    ledger books = { 0 };
    ol_cuda_options options = ledger_options(&books);
    ol_device *device;
    ol_stream own, kept = stream;
    ol_error error;
    CUcontext context;
    (void)state;
    assert_ok(ol_device_cuda(0, &options, &device, &error), &error);
    assert_ok(ol_stream_create(device, &own, &error), &error);
    assert_int_equal(cu.cuStreamGetCtx(own, &context), 0);
    stream = own;
    for (size_t i = 0; i < COUNT(subjects); i++) {
        ol_dtype dtypes[MOST];
        ol_tensor *tensors[ROUNDS];
        for (int k = 0; k < MOST; k++)
            dtypes[k] = OL_FLOAT32;
        int32_t n_inputs = subjects[i].n_inputs, n = n_inputs + subjects[i].n_outputs;
        size_t n_bytes = (size_t)n * 4096;
        char *memory;
        assert_ok(ol_device_allocate(device, n_bytes, (void **)&memory, &error), &error);
        ol_composite *c = compile_on(device, subjects[i].build, (void *)(intptr_t)n_inputs, n_inputs, dtypes,
                                     subjects[i].n_outputs);
        for (int r = 0; r < ROUNDS; r++) {
            tensors[r] = calloc((size_t)n, sizeof *tensors[r]);
            for (int32_t t = 0; t < n; t++)
                tensors[r][t].data = memory + t * 4096;
            for (int32_t t = 0; t < n_inputs; t++)
                tensors[r][t] = ol_tensor_contiguous(tensors[r][t].data, OL_FLOAT32, t % 2 ? 2 : 1,
                                                     t % 2 ? SHAPE(2, 10 + r % 7) : SHAPE(10 + r % 7));
            assert_ok(ol_output_shapes(c, tensors[r], tensors[r] + n_inputs, &error), &error);
        }
        for (int current = 0; current < 2; current++) {
            ol_status status = OL_OK;
            if (current)
                assert_int_equal(cu.cuCtxPushCurrent(context), 0);
            fake_is_loaded() ? fake_forget() : 0;
            size_t library = 0, own_calls = books.n_calls;
            for (int r = 0; r < ROUNDS && status == OL_OK; r++) {
                size_t before = n_library_calls;
                status = replay(c, tensors[r], &error);
                library += n_library_calls - before;
                /* More of them in flight than there are blocks of parameters would make more. */
                if (r % 4 == 3 && !fake_is_loaded())
                    assert_int_equal(cu.cuStreamSynchronize(stream), 0);
            }
            assert_ok(status, &error);
            if (current)
                assert_int_equal(cu.cuCtxPopCurrent(&context), 0);
            if (library || books.n_calls != own_calls)
                fail_msg("%s: %zu calls of the C library's allocator, %zu of the host's", subjects[i].name, library,
                         books.n_calls - own_calls);
            for (size_t u = 0; fake_is_loaded() && u < COUNT(unwanted); u++)
                if (fake_calls(unwanted[u]))
                    fail_msg("%s: %zu times %s in %d replays", subjects[i].name, fake_calls(unwanted[u]), unwanted[u], (int)ROUNDS);
            if (fake_is_loaded()) {
                assert_int_equal(fake_calls("cuLaunchKernel"), ROUNDS);
                size_t calls = fake_calls("*") - (size_t)current;       /* the pop above */
                if (calls > ROUNDS * subjects[i].calls[current])
                    fail_msg("%s: %zu driver calls in %d replays, expected %zu each", subjects[i].name, calls, (int)ROUNDS,
                             subjects[i].calls[current]);
            }
            assert_ok(ol_stream_synchronize(device, stream, &error), &error);
        }
        /* Nor does a refusal, or an empty replay. */
        tensors[0][n - 1].dtype = OL_INT8;
        size_t library = n_library_calls, own_calls = books.n_calls, launches = fake_is_loaded() ? fake_calls("cuLaunchKernel") : 0;
        ol_status status = replay(c, tensors[0], &error);
        library = n_library_calls - library;
        assert_int_equal(status, OL_ERROR_DTYPE);
        for (int32_t t = 0; t < n; t++)
            tensors[1][t] = vector_of(NULL, OL_FLOAT32, 0);
        size_t empty = n_library_calls;
        status = replay(c, tensors[1], &error);
        empty = n_library_calls - empty;
        assert_ok(status, &error);
        assert_int_equal(library + empty, 0);
        assert_int_equal(books.n_calls, own_calls);
        if (fake_is_loaded())
            assert_int_equal(fake_calls("cuLaunchKernel"), launches);
        for (int r = 0; r < ROUNDS; r++)
            free(tensors[r]);
        ol_composite_destroy(c);
        assert_ok(ol_device_free(device, memory, n_bytes, &error), &error);
    }
    stream = kept;
    assert_ok(ol_stream_destroy(device, own, &error), &error);
    ol_device_destroy(device);
    assert_true(books.n_calls > 0 && n_library_calls > 0);           /* the counters count */
    assert_int_equal(books.n_blocks, 0);
    assert_int_equal(books.n_bytes, 0);
    assert_int_equal(books.n_faults, 0);
}

/* The first replay of a composite is as quiet as the others; and what is prepared does not depend on the shapes. */
static void the_first_replay_too(void **state)
{
    ol_error error;
    scene s;
    (void)state;
    both b = compile_both(build_groups, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 2);
    scene_begin(&s);
    scene_add(&s, RANDOM, OL_FLOAT32, 8, SHAPE(1, 2, 1, 2, 1, 3, 1, 2));
    scene_add(&s, RANDOM, OL_FLOAT32, 8, SHAPE(2, 2, 2, 2, 2, 3, 2, 2));
    scene_add_outputs(&s, b.on_cpu, RANDOM, NULL);
    ol_tensor tensors[4];
    char *memory = device_bytes(cuda, s.bytes, s.n_bytes);
    scene_bind(&s, memory, tensors);
    size_t library = n_library_calls;
    ol_status status = replay(b.on_cuda, tensors, &error);
    library = n_library_calls - library;
    assert_ok(status, &error);
    assert_int_equal(library, 0);
    assert_ok(ol_stream_synchronize(cuda, stream, &error), &error);
    device_give(cuda, memory, s.n_bytes);
    scene_end(&s);
    destroy_both(&b);
}

/* The composed path allocates and frees in the order of its stream: it does not wait, and the legacy stream sees nothing. */
static void the_composed_path_does_not_wait(void **state)
{
    static const char *const unwanted[] = { "cuMemAlloc", "cuMemFree", "cuMemcpyAsync", "cuStreamSynchronize", "cuCtxSynchronize",
                                            "NULL stream" };
    ol_error error;
    scene s;
    (void)state;
    need_fake();
    both b = compile_both(build_one, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 1);
    scene_begin(&s);
    scene_add(&s, DENSE, OL_FLOAT32, 1, SHAPE(40));
    scene_add(&s, DENSE, OL_FLOAT32, 1, SHAPE(40));
    scene_add_outputs(&s, b.on_cpu, DENSE, NULL);
    ol_tensor tensors[3];
    char *memory = device_bytes(cuda, s.bytes, s.n_bytes);
    unsigned char *expected = scene_expected(&s, b.on_cpu), *got = malloc(s.n_bytes);
    scene_bind(&s, memory, tensors);
    fake_forget();
    fake_hold(1);
    assert_ok(ol_replay_composed(b.on_cuda, stream, tensors, tensors + 2, &error), &error);
    for (size_t u = 0; u < COUNT(unwanted); u++)
        if (fake_calls(unwanted[u]))
            fail_msg("%zu times %s", fake_calls(unwanted[u]), unwanted[u]);
    fake_hold(0);
    download(cuda, stream, got, memory, s.n_bytes);
    scene_compare(&s, got, expected, "held");
    device_give(cuda, memory, s.n_bytes);
    free(got);
    free(expected);
    scene_end(&s);
    destroy_both(&b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(replays_do_nothing_else), CUDA_TEST(the_first_replay_too), CUDA_TEST(the_composed_path_does_not_wait),
    };
    return CUDA_RUN(argc, argv, tests);
}
