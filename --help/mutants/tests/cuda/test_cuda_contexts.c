/* Contexts, devices and streams: every call leaves the thread's contexts as they were; a device lives in the primary context or in
 * the caller's; several devices do not mix; a stream of another context is refused by the very call. */
#include "cuda_harness.h"

#include <stdio.h>
#include <stdlib.h>

static int build_pair(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_exp(g, ol_negative(g, in[0]));
    out[1] = ol_add(g, in[0], in[1]);
    return 0;
}

enum { MANY = 100 };                     /* so many outputs that the parameters are passed by pointer */

static int build_far(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    for (int i = 0; i < MANY; i++)
        out[i] = ol_subtract(g, in[i % 2], ol_constant(g, OL_FLOAT32, i));
    return 0;
}

static const ol_dtype two_floats[2] = { OL_FLOAT32, OL_FLOAT32 };

/* ---- One replay, on a device and a stream of one's choice ---- */

static void replay_and_compare(ol_device *device, const ol_composite *c, ol_stream in, uint64_t seed, int path)
{
    ol_composite *on_cpu = compile_on(cpu, build_pair, NULL, 2, two_floats, 2);
    ol_tensor tensors[4];
    ol_error error;
    scene s;
    scene_begin(&s);
    s.random = seed;
    scene_add(&s, DENSE, OL_FLOAT32, 1, SHAPE(40));
    scene_add(&s, DENSE, OL_FLOAT32, 2, SHAPE(3, 40));
    scene_add_outputs(&s, on_cpu, DENSE, NULL);
    unsigned char *expected = scene_expected(&s, on_cpu), *got = malloc(s.n_bytes);
    void *memory;
    assert_ok(ol_device_allocate(device, s.n_bytes, &memory, &error), &error);
    upload(device, in, memory, s.bytes, s.n_bytes);
    scene_bind(&s, memory, tensors);
    assert_ok(replay_paths[path](c, in, tensors, tensors + 2, &error), &error);
    download(device, in, got, memory, s.n_bytes);
    scene_compare(&s, got, expected, ol_device_name(device));
    device_give(device, memory, s.n_bytes);
    free(got);
    free(expected);
    scene_end(&s);
    ol_composite_destroy(on_cpu);
}

/* ---- What is current ---- */

/* Every public call that may enter a context, ending well and ending badly; after each `expected` is current again. */
static void make_all_calls(CUcontext expected, ol_stream foreign)
{
    ol_error error;
    ol_device *device = NULL, *second = NULL;
    ol_composite *c = NULL, *far = NULL;
    ol_stream own = NULL;
    void *memory = NULL;
    int32_t n;
    ol_cuda_facts facts;
    char text[64];
    const ol_builder pair = { .build = build_pair, .n_inputs = 2, .n_outputs = 2 },
        many = { .build = build_far, .n_inputs = 2, .n_outputs = MANY };
    ol_tensor tensors[2 + MANY];
#define MAKE(call)                                                                          \
    do {                                                                                    \
        call;                                                                               \
        if (current_context() != expected)                                                  \
            fail_msg("after %s another context is current", #call);                         \
    } while (0)
    MAKE(ol_cuda_count(&n, &error));
    MAKE(ol_cuda_describe(0, &facts, &error));
    MAKE(ol_cuda_describe(1000, &facts, &error));
    MAKE(ol_cuda_compiler(&n, &error));
    MAKE(ol_device_cuda(1000, NULL, &device, &error));
    MAKE(ol_device_cuda(0, NULL, &device, &error));
    MAKE(ol_device_cuda_current(NULL, &second, &error));
    MAKE(ol_device_destroy(second));
    MAKE(ol_compile(device, &pair, two_floats, &c, &error));
    MAKE(ol_compile(device, &many, two_floats, &far, &error));
    assert_non_null(c);
    assert_non_null(far);
    MAKE(ol_stream_create(device, &own, &error));
    MAKE(ol_device_allocate(device, (size_t)1 << 60, &memory, &error));
    MAKE(ol_device_allocate(device, (2 + MANY) * 256, &memory, &error));
    assert_non_null(memory);
    for (int i = 0; i < 2 + MANY; i++)
        tensors[i] = vector_of((char *)memory + 256 * i, OL_FLOAT32, 40);
    for (int path = 0; path < 2; path++) {
        if (path == 0 || fake_is_loaded()) {                     /* many launches of one primitive */
            MAKE(assert_int_equal(replay_paths[path](far, own, tensors, tensors + 2, &error), OL_OK));
            MAKE(assert_int_equal(replay_paths[path](far, foreign, tensors, tensors + 2, &error), OL_ERROR_ARGUMENT));
        }
        MAKE(assert_int_equal(replay_paths[path](c, own, tensors, tensors + 2, &error), OL_OK));
        MAKE(assert_int_equal(replay_paths[path](c, foreign, tensors, tensors + 2, &error), OL_ERROR_ARGUMENT));
        MAKE(assert_int_equal(replay_paths[path](c, own, NULL, tensors + 2, &error), OL_ERROR_ARGUMENT));
    }
    MAKE(ol_device_copy(device, own, text, memory, sizeof text, &error));
    MAKE(ol_device_copy(device, foreign, text, memory, sizeof text, &error));
    MAKE(ol_stream_synchronize(device, own, &error));
    MAKE(ol_stream_synchronize(device, foreign, &error));
    static const char *const failing[] = { "cuLaunchKernel", "cuMemAllocAsync", "cuModuleGetFunction", "cuFuncGetAttribute",
                                           "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuMemHostAlloc", "cuEventCreate",
                                           "cuStreamCreate", "cuMemAlloc",
                                           "cuCtxPushCurrent", "cuCtxGetCurrent" };
    for (size_t i = 0; fake_is_loaded() && i < COUNT(failing); i++)
        for (int which = 0; which < 8; which++) {
            ol_composite *extra = NULL;
            ol_device *third = NULL;
            ol_stream other = NULL;
            void *more_memory = NULL;
            if (which == 7 && strstr(failing[i], "Func"))        /* what is cached would be compiled again, each time */
                continue;
            fake_fail(failing[i], 1, 400);
            switch (which) {
            case 0: ol_replay(c, own, tensors, tensors + 2, &error); break;
            case 1: ol_replay(far, own, tensors, tensors + 2, &error); break;
            case 2: ol_replay_composed(c, own, tensors, tensors + 2, &error); break;
            case 3: ol_device_cuda(0, NULL, &third, &error); break;
            case 4: ol_stream_create(device, &other, &error); break;
            case 5: ol_device_allocate(device, 16, &more_memory, &error); break;
            case 6: ol_device_cuda(0, NULL, &third, &error); ol_compile(third, &pair, two_floats, &extra, &error); break;
            default: ol_device_cuda(0, NULL, &third, &error); ol_compile(third, &many, two_floats, &extra, &error); break;
            }
            fake_forget();
            if (current_context() != expected)
                fail_msg("where %s fails, case %d leaves another context current", failing[i], which);
            ol_composite_destroy(extra);
            ol_stream_destroy(device, other, &error);
            ol_device_free(device, more_memory, 16, &error);
            ol_device_destroy(third);
        }
    MAKE(ol_stream_synchronize(device, own, &error));
    MAKE(ol_device_free(device, memory, (2 + MANY) * 256, &error));
    MAKE(ol_stream_destroy(device, foreign, &error));            /* refused */
    MAKE(ol_stream_destroy(device, own, &error));
    MAKE(ol_composite_destroy(c));
    MAKE(ol_composite_destroy(far));
    MAKE(ol_device_destroy(device));
#undef MAKE
}

static void contexts_are_as_before(void **state)
{
    CUcontext primary, own, popped;
    ol_stream foreign;
    (void)state;
    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&primary, 0), 0);
    assert_int_equal(more.cuCtxCreate(&own, 0, 0), 0);
    assert_int_equal(cu.cuStreamCreate((CUstream *)&foreign, CU_STREAM_NON_BLOCKING), 0);
    make_all_calls(own, foreign);
    assert_int_equal(cu.cuCtxPushCurrent(primary), 0);
    make_all_calls(primary, foreign);
    assert_int_equal(cu.cuCtxPopCurrent(&popped), 0);
    assert_ptr_equal(popped, primary);
    assert_int_equal(cu.cuCtxPopCurrent(&popped), 0);
    assert_ptr_equal(popped, own);                               /* what lies below is as before, too */
    make_all_calls(NULL, foreign);
    assert_int_equal(cu.cuCtxPushCurrent(own), 0);
    assert_int_equal(cu.cuStreamDestroy(foreign), 0);
    assert_int_equal(cu.cuCtxPopCurrent(&popped), 0);
    assert_int_equal(more.cuCtxDestroy(own), 0);
    assert_int_equal(cu.cuDevicePrimaryCtxRelease(0), 0);
}

/* ---- The caller's own context ---- */

static void a_device_in_the_callers_context(void **state)
{
    CUcontext own, popped;
    ol_device *device = NULL;
    ol_stream in;
    ol_error error;
    (void)state;
    assert_fails(ol_device_cuda_current(NULL, &device, &error), &error, OL_ERROR_DEVICE, "device cuda",
                 "no CUDA context is current on this thread");
    assert_null(device);
    assert_int_equal(more.cuCtxCreate(&own, 0, 0), 0);
    assert_ok(ol_device_cuda_current(NULL, &device, &error), &error);
    assert_string_equal(ol_device_name(device), "cuda:0");
    assert_string_equal(ol_device_level(device), ol_device_level(cuda));
    assert_ok(ol_stream_create(device, &in, &error), &error);
    ol_composite *c = compile_on(device, build_pair, NULL, 2, two_floats, 2),
        *primary = compile_on(cuda, build_pair, NULL, 2, two_floats, 2);
    for (int current = 0; current < 2; current++) {
        CUcontext of = NULL;
        assert_int_equal(cu.cuStreamGetCtx(in, &of), 0);
        assert_ptr_equal(of, own);
        replay_and_compare(device, c, in, 3, 0);
        replay_and_compare(device, c, in, 4, 1);
        replay_and_compare(cuda, primary, stream, 5, 0);         /* the same graph in the primary context */
        if (current == 0)
            assert_int_equal(cu.cuCtxPopCurrent(&popped), 0);
    }
    ol_composite_destroy(c);
    ol_composite_destroy(primary);
    assert_ok(ol_stream_destroy(device, in, &error), &error);
    ol_device_destroy(device);
    assert_int_equal(more.cuCtxDestroy(own), 0);
}

/* A device in the primary context, made current by the caller, is that context's. */
static void the_current_context_may_be_the_primary_one(void **state)
{
    CUcontext context, popped;
    ol_device *device = NULL;
    ol_error error;
    (void)state;
    assert_int_equal(cu.cuStreamGetCtx(stream, &context), 0);
    assert_int_equal(cu.cuCtxPushCurrent(context), 0);
    assert_ok(ol_device_cuda_current(NULL, &device, &error), &error);
    assert_int_equal(cu.cuCtxPopCurrent(&popped), 0);
    ol_composite *c = compile_on(device, build_pair, NULL, 2, two_floats, 2);
    replay_and_compare(device, c, stream, 9, 0);                 /* the stream of the other device in that context serves */
    ol_composite_destroy(c);
    ol_device_destroy(device);
}

/* ---- A72: several devices ---- */

static int has_two_devices(void)
{
    int32_t n = 0;
    ol_error error;
    assert_ok(ol_cuda_count(&n, &error), &error);
    if (n < 2)
        print_message("needs two GPUs\n");
    return n >= 2;
}

static void A72_two_devices_interleaved(void **state)
{
    ol_device *devices[2] = { cuda, NULL };
    ol_stream streams[2] = { stream, NULL };
    ol_composite *c[2];
    ol_error error;
    (void)state;
    if (!has_two_devices())
        skip();
    assert_ok(ol_device_cuda(1, NULL, &devices[1], &error), &error);
    assert_string_equal(ol_device_name(devices[1]), "cuda:1");
    assert_ok(ol_stream_create(devices[1], &streams[1], &error), &error);
    for (int i = 0; i < 2; i++)
        c[i] = compile_on(devices[i], build_pair, NULL, 2, two_floats, 2);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 2; i++)
            for (int path = 0; path < 2; path++)
                replay_and_compare(devices[i], c[i], streams[i], (uint64_t)(10 * round + i), path);
    assert_int_equal(ol_device_launches(devices[0]), ol_device_launches(devices[1]));
    /* The other device's context is current, and its default stream is not this one's. */
    CUcontext contexts[2], popped;
    for (int i = 0; i < 2; i++)
        assert_int_equal(cu.cuStreamGetCtx(streams[i], &contexts[i]), 0);
    assert_ptr_not_equal(contexts[0], contexts[1]);
    fake_is_loaded() ? fake_refuse_null_stream(0) : 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cu.cuCtxPushCurrent(contexts[!i]), 0);
        for (uintptr_t handle = 0; handle < 3; handle++)
            replay_and_compare(devices[i], c[i], (ol_stream)handle, 77, 0);
        assert_int_equal(cu.cuCtxPopCurrent(&popped), 0);
        assert_ptr_equal(popped, contexts[!i]);
    }
    /* A device of the context of the second one knows its number. */
    ol_device *current = NULL;
    assert_int_equal(cu.cuCtxPushCurrent(contexts[1]), 0);
    assert_ok(ol_device_cuda_current(NULL, &current, &error), &error);
    assert_int_equal(cu.cuCtxPopCurrent(&popped), 0);
    assert_string_equal(ol_device_name(current), "cuda:1");
    ol_device_destroy(current);
    for (int i = 0; i < 2; i++)
        ol_composite_destroy(c[i]);
    assert_ok(ol_stream_destroy(devices[1], streams[1], &error), &error);
    ol_device_destroy(devices[1]);
}

/* ---- A74: streams of others ---- */

static void A74_foreign_streams_are_refused_at_once(void **state)
{
    CUcontext own, popped;
    CUstream foreign;
    ol_error error;
    char bytes[8] = { 0 };
    (void)state;
    ol_composite *c = compile_on(cuda, build_pair, NULL, 2, two_floats, 2);
    assert_int_equal(more.cuCtxCreate(&own, 0, 0), 0);
    assert_int_equal(cu.cuStreamCreate(&foreign, CU_STREAM_NON_BLOCKING), 0);
    char *memory = device_bytes(cuda, NULL, 1024), after[1024];
    ol_tensor t[4];
    for (int i = 0; i < 4; i++)
        t[i] = vector_of(memory + 256 * i, OL_FLOAT32, 40);
    uint64_t launches = ol_device_launches(cuda);
    for (int current = 0; current < 2; current++) {
        static const char text[] = "the stream belongs to another context than cuda:0's";
        assert_fails(ol_replay(c, foreign, t, t + 2, &error), &error, OL_ERROR_ARGUMENT, "replay case", text);
        assert_fails(ol_replay_composed(c, foreign, t, t + 2, &error), &error, OL_ERROR_ARGUMENT, "replay case", text);
        assert_fails(ol_device_copy(cuda, foreign, memory, bytes, 8, &error), &error, OL_ERROR_ARGUMENT, "copy", text);
        assert_fails(ol_device_copy(cuda, foreign, memory, bytes, 0, &error), &error, OL_ERROR_ARGUMENT, "copy", text);
        assert_fails(ol_stream_synchronize(cuda, foreign, &error), &error, OL_ERROR_ARGUMENT, "synchronize", text);
        assert_fails(ol_stream_destroy(cuda, foreign, &error), &error, OL_ERROR_ARGUMENT, "destroy stream", text);
        if (current == 0)
            assert_int_equal(cu.cuCtxPopCurrent(&popped), 0);
    }
    assert_int_equal(ol_device_launches(cuda), launches);
    download(cuda, stream, after, memory, sizeof after);
    for (size_t i = 0; i < sizeof after; i++)
        assert_int_equal((unsigned char)after[i], 0xA5);
    device_give(cuda, memory, 1024);
    ol_composite_destroy(c);
    assert_int_equal(more.cuCtxDestroy(own), 0);                 /* and the stream with it */
}

/* ---- Default streams ---- */

static void default_streams_serve(void **state)
{
    (void)state;
    ol_composite *c = compile_on(cuda, build_pair, NULL, 2, two_floats, 2);
    fake_is_loaded() ? fake_refuse_null_stream(0) : 0;
    for (uintptr_t handle = 0; handle < 3; handle++) {           /* NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */
        size_t works = fake_is_loaded() ? fake_calls("NULL stream") : 0;
        replay_and_compare(cuda, c, (ol_stream)handle, handle, 0);
        replay_and_compare(cuda, c, (ol_stream)handle, handle, 1);
        if (fake_is_loaded())
            assert_int_equal(fake_calls("NULL stream") > works, handle < 2);
    }
    ol_composite_destroy(c);
}

/* Composites keep their device alive; streams and memory are the caller's. */
static void composites_keep_the_device(void **state)
{
    ol_device *device;
    ol_error error;
    (void)state;
    assert_ok(ol_device_cuda(0, NULL, &device, &error), &error);
    ol_composite *c[2] = { compile_on(device, build_pair, NULL, 2, two_floats, 2),
                           compile_on(device, build_pair, NULL, 2, two_floats, 2) };
    ol_device_destroy(device);
    ol_composite_destroy(c[0]);
    replay_and_compare(cuda, c[1], stream, 1, 0);                /* the primary context, still */
    ol_composite_destroy(c[1]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(contexts_are_as_before), CUDA_TEST(a_device_in_the_callers_context),
        CUDA_TEST(the_current_context_may_be_the_primary_one),
        CUDA_TEST(A72_two_devices_interleaved), CUDA_TEST(A74_foreign_streams_are_refused_at_once),
        CUDA_TEST(default_streams_serve),
        CUDA_TEST(composites_keep_the_device),
    };
    return CUDA_RUN(argc, argv, tests);
}
