/* The mixer step and the driver: recorded in CUDA graphs as one kernel node; contexts; every call of the driver and every allocation made to
 * fail once; many threads; devices and drivers without clusters. */
#include "mixer_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows enough for two blocks a head, in each of which there is little to do. */
static mixer_case usual(int64_t n, int64_t n_tokens)
{
    uint64_t random = harness_seed;
    mixer_case c;
    mixer_usual(&c, 1, 2, 32, 64, n, n_tokens, 4, &random);
    return c;
}

/* What the CPU makes of it in so many steps. */
static mixer_case after(const mixer_case *c, int n_steps)
{
    mixer_case expected;
    mixer_copy(&expected, c);
    for (int i = 0; i < n_steps; i++)
        mixer_run(cpu, &expected);
    return expected;
}

static void check_scene(const mixer_scene *s, const mixer_case *expected)
{
    mixer_case got;
    mixer_copy(&got, expected);
    assert_int_equal(mixer_scene_read(s, &got), 0);
    assert_true(mixer_equal(expected, &got));
    mixer_free(&got);
}

/* ---- Captures ---- */

static void a_step_is_one_node(void **state)
{
    (void)state;
    mixer_case c = usual(2, 1), once = after(&c, 1), twice = after(&c, 2);
    mixer_scene s;
    ol_gated_delta_mixer *m = mixer_of(cuda, &c);
    for (int mode = CAPTURE_GLOBAL; mode <= CAPTURE_RELAXED; mode++) {
        mixer_scene_begin(&s, &c);
        capture_begin(stream, mode);
        mixer_scene_run(m, &s);
        captured recorded = capture_end(stream);
        assert_int_equal(recorded.n_kernels, 1);
        assert_int_equal(recorded.n_others, 0);
        check_scene(&s, &c);                             /* recorded, not run */
        captured_launch(&recorded, stream);
        check_scene(&s, &once);
        captured_launch(&recorded, stream);              /* goes on from the states and windows that it wrote */
        check_scene(&s, &twice);
        captured_destroy(&recorded);
        mixer_scene_end(&s);
    }
    ol_gated_delta_mixer_destroy(m);
    mixer_free(&c);
    mixer_free(&once);
    mixer_free(&twice);
}

static void mixers_are_made_while_a_capture_goes_on(void **state)
{
    (void)state;
    mixer_case c = usual(1, 1);
    ol_stream other;
    ol_error error;
    assert_ok(ol_stream_create(cuda, &other, &error), &error);
    capture_begin(other, CAPTURE_GLOBAL);
    ol_gated_delta_mixer *m = mixer_of(cuda, &c);
    captured recorded = capture_end(other);
    assert_int_equal(recorded.n_kernels + recorded.n_others, 0);
    captured_destroy(&recorded);
    ol_gated_delta_mixer_destroy(m);
    assert_ok(ol_stream_destroy(cuda, other, &error), &error);
    mixer_free(&c);
}

/* ---- Contexts ---- */

static void contexts_are_left_as_they_were(void **state)
{
    (void)state;
    mixer_case c = usual(1, 1), expected = after(&c, 1);
    mixer_scene s;
    CUcontext context = NULL;
    CUdevice device;
    CUstream foreign = NULL;
    ol_error error;
    assert_int_equal(cu.cuDeviceGet(&device, 0), 0);
    assert_int_equal(more.cuCtxCreate(&context, 0, device), 0);
    assert_int_equal(cu.cuStreamCreate(&foreign, CU_STREAM_NON_BLOCKING), 0);
    mixer_scene_begin(&s, &c);
    for (int other = 0; other < 2; other++) {
        CUcontext current = other ? context : NULL;
        assert_int_equal(more.cuCtxSetCurrent(current), 0);
        ol_gated_delta_mixer *m = mixer_of(cuda, &c);
        assert_ptr_equal(current_context(), current);
        mixer_scene_write(&s, &c);
        mixer_scene_run(m, &s);
        assert_ptr_equal(current_context(), current);
        assert_int_equal(ol_gated_delta_mixer_step(m, foreign, &s.arguments, &error), OL_ERROR_ARGUMENT);
        assert_non_null(strstr(error.description, "another context"));
        assert_string_equal(error.operation, "gated_delta_mixer_step");
        ol_gated_delta_mixer_destroy(m);
        assert_ptr_equal(current_context(), current);
        check_scene(&s, &expected);
    }
    assert_int_equal(more.cuCtxSetCurrent(context), 0);
    assert_int_equal(cu.cuStreamDestroy(foreign), 0);
    assert_int_equal(more.cuCtxSetCurrent(NULL), 0);
    mixer_scene_end(&s);
    assert_int_equal(more.cuCtxDestroy(context), 0);
    mixer_free(&c);
    mixer_free(&expected);
}

/* ---- Failures ---- */

/* A mixer of a device of its own, and a step of it on tensors in the shared one's memory, which is the same context's. */
static ol_status make_and_run(const mixer_case *c, const mixer_scene *s, const ol_cuda_options *options, ol_error *error)
{
    ol_device *device = NULL;
    ol_gated_delta_mixer *m = NULL;
    const ol_gated_delta_mixer_options o = mixer_options_of(c);
    ol_status status = ol_device_cuda(0, options, &device, error);
    if (status == OL_OK)
        status = ol_gated_delta_mixer_create(device, &o, &m, error);
    if (status == OL_OK)
        status = ol_gated_delta_mixer_step(m, stream, &s->arguments, error);
    ol_gated_delta_mixer_destroy(m);
    ol_device_destroy(device);
    return status;
}

static void every_call_of_the_driver_fails(void **state)
{
    static const char *const names[] = { "cuCtxGetCurrent", "cuCtxPushCurrent", "cuModuleLoadData", "cuModuleGetFunction", "cuFuncGetAttribute",
                                         "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuStreamGetCtx", "cuLaunchKernelEx" };
    need_fake();
    (void)state;
    int has_clusters = mixer_has_clusters((const cuda_device *)cuda);
    mixer_case c = usual(1, 1);
    mixer_scene s;
    ol_error error;
    mixer_scene_begin(&s, &c);
    for (size_t i = 0; i < COUNT(names); i++)
        for (int nth = 1, reached = 1; reached && (has_clusters || i + 1 < COUNT(names)); nth++) {
            fake_forget();
            fake_fail(names[i], nth, CUDA_ERROR_OUT_OF_MEMORY);          /* other codes of a load are made up for by compiling again */
            ol_status status = make_and_run(&c, &s, NULL, &error);
            /* What is called to give back is not to fail the step. */
            reached = status != OL_OK;
            fake_forget();
            assert_int_equal(status, reached ? OL_ERROR_MEMORY : OL_OK);
            assert_true(reached || nth > 1);
            if (reached) {
                assert_non_null(strstr(error.description, names[i]));
                check_scene(&s, &c);
            }
            mixer_scene_write(&s, &c);
        }
    mixer_scene_end(&s);
    mixer_free(&c);
}

static void every_allocation_fails(void **state)
{
    (void)state;
    mixer_case c = usual(1, 1);
    mixer_scene s;
    ol_error error;
    size_t n = 0;
    mixer_scene_begin(&s, &c);
    for (int done = 0; !done;) {
        ledger l = { .fail_at = ++n };
        ol_cuda_options options = ledger_options(&l);
        ol_status status = make_and_run(&c, &s, &options, &error);
        done = l.n_calls < n;
        assert_true(status == OL_OK || (status == OL_ERROR_MEMORY && !done));         /* there are some that it does without */
        if (status != OL_OK)
            check_scene(&s, &c);
        mixer_scene_write(&s, &c);
        assert_int_equal(l.n_blocks, 0);
        assert_int_equal(l.n_faults, 0);
    }
    assert_true(n > 10);
    mixer_scene_end(&s);
    mixer_free(&c);
}

static void a_step_allocates_nothing(void **state)
{
    (void)state;
    mixer_case c = usual(1, 1), expected = after(&c, 3);
    mixer_scene s;
    ledger l = { 0 };
    ol_cuda_options options = ledger_options(&l);
    ol_device *device;
    ol_error error;
    assert_ok(ol_device_cuda(0, &options, &device, &error), &error);
    ol_gated_delta_mixer *m = mixer_of(device, &c);
    mixer_scene_begin(&s, &c);
    size_t before = l.n_calls;
    for (int i = 0; i < 3; i++)
        assert_ok(ol_gated_delta_mixer_step(m, stream, &s.arguments, &error), &error);
    assert_int_equal(l.n_calls, before);
    assert_int_equal(ol_device_launches(device), 3);
    check_scene(&s, &expected);
    ol_gated_delta_mixer_destroy(m);
    ol_device_destroy(device);
    mixer_scene_end(&s);
    mixer_free(&c);
    mixer_free(&expected);
}

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 6 };

typedef struct worker {
    const ol_gated_delta_mixer *mixer;
    mixer_scene scene;
} worker;

static ol_status one_step(ol_stream in, void *user, ol_error *error)
{
    const worker *w = user;
    return ol_gated_delta_mixer_step(w->mixer, in, &w->scene.arguments, error);
}

/* One mixer, threads with streams and slots of their own. */
static void many_threads(void **state)
{
    (void)state;
    mixer_case c = usual(1, 2), expected = after(&c, ROUNDS);
    worker workers[THREADS];
    void *users[THREADS];
    ol_gated_delta_mixer *m = mixer_of(cuda, &c);
    for (int i = 0; i < THREADS; i++) {
        workers[i].mixer = m;
        mixer_scene_begin(&workers[i].scene, &c);
        users[i] = &workers[i];
    }
    cuda_threads(THREADS, ROUNDS, one_step, users);
    for (int i = 0; i < THREADS; i++) {
        check_scene(&workers[i].scene, &expected);
        mixer_scene_end(&workers[i].scene);
    }
    ol_gated_delta_mixer_destroy(m);
    mixer_free(&c);
    mixer_free(&expected);
}

/* A second mixer of the same options finds its kernel. A layer's kernel is not made for it. */
static void kernels_are_shared(void **state)
{
    (void)state;
    mixer_case c = usual(1, 1);
    ol_gated_delta_mixer *first = mixer_of(cuda, &c);
    size_t before = compilations();
    ol_gated_delta_mixer *second = mixer_of(cuda, &c);
    assert_int_equal(compilations(), before);
    ol_gated_delta_mixer_destroy(first);
    mixer_scene s;
    mixer_case expected = after(&c, 1);
    mixer_scene_begin(&s, &c);
    mixer_scene_run(second, &s);
    check_scene(&s, &expected);
    ol_gated_delta_mixer_destroy(second);
    mixer_scene_end(&s);
    mixer_free(&c);
    mixer_free(&expected);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(a_step_is_one_node),
        CUDA_TEST(mixers_are_made_while_a_capture_goes_on),
        CUDA_TEST(contexts_are_left_as_they_were),
        CUDA_TEST(every_call_of_the_driver_fails),
        CUDA_TEST(every_allocation_fails),
        CUDA_TEST(a_step_allocates_nothing),
        CUDA_TEST(many_threads),
        CUDA_TEST(kernels_are_shared),
    };
    return CUDA_RUN(argc, argv, tests);
}
