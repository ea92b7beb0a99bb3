/* The gated-delta step and the driver: recorded in CUDA graphs as one kernel node; contexts; every call of the driver and every allocation
 * made to fail once; many threads. */
#include "step_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static step_case usual(int64_t n, int64_t n_tokens)
{
    uint64_t random = harness_seed;
    step_case c;
    step_usual(&c, 1, 2, 32, 32, n, n_tokens, &random);
    return c;
}

/* ---- Captures ---- */

static void a_step_is_one_node(void **state)
{
    (void)state;
    step_case c = usual(2, 1), once, twice, got;
    step_scene s;
    step_copy(&once, &c);
    step_run(cpu, &once);
    step_copy(&twice, &once);
    step_run(cpu, &twice);
    step_copy(&got, &c);
    ol_gated_delta *layer = step_scene_layer(&c);
    for (int mode = CAPTURE_GLOBAL; mode <= CAPTURE_RELAXED; mode++) {
        step_scene_begin(&s, &c);
        capture_begin(stream, mode);
        step_scene_run(layer, &s);
        captured recorded = capture_end(stream);
        assert_int_equal(recorded.n_kernels, 1);
        assert_int_equal(recorded.n_others, 0);
        step_scene_read(&s, &got);
        assert_true(step_equal(&c, &got));               /* recorded, not run */
        captured_launch(&recorded, stream);
        step_scene_read(&s, &got);
        assert_true(step_equal(&once, &got));
        captured_launch(&recorded, stream);                 /* goes on from the states that it wrote */
        step_scene_read(&s, &got);
        assert_true(step_equal(&twice, &got));
        captured_destroy(&recorded);
        step_scene_end(&s);
    }
    ol_gated_delta_destroy(layer);
    step_free(&c);
    step_free(&once);
    step_free(&twice);
    step_free(&got);
}

/* While a stream is recorded, a layer may be made, of kernels that are new too. */
static void layers_are_made_while_a_capture_goes_on(void **state)
{
    (void)state;
    step_case c = usual(1, 1);
    ol_stream other;
    ol_error error;
    assert_ok(ol_stream_create(cuda, &other, &error), &error);
    capture_begin(other, CAPTURE_GLOBAL);
    ol_gated_delta *layer = step_scene_layer(&c);
    captured recorded = capture_end(other);
    assert_int_equal(recorded.n_kernels + recorded.n_others, 0);
    captured_destroy(&recorded);
    ol_gated_delta_destroy(layer);
    assert_ok(ol_stream_destroy(cuda, other, &error), &error);
    step_free(&c);
}

/* ---- Contexts ---- */

static void contexts_are_left_as_they_were(void **state)
{
    (void)state;
    step_case c = usual(1, 1), expected, got;
    step_scene s;
    CUcontext context = NULL;
    CUdevice device;
    CUstream foreign = NULL;
    ol_error error;
    ol_gated_delta *layer = NULL;
    step_copy(&expected, &c);
    step_copy(&got, &c);
    step_run(cpu, &expected);
    assert_int_equal(cu.cuDeviceGet(&device, 0), 0);
    assert_int_equal(more.cuCtxCreate(&context, 0, device), 0);
    assert_int_equal(cu.cuStreamCreate(&foreign, CU_STREAM_NON_BLOCKING), 0);
    step_scene_begin(&s, &c);
    for (int other = 0; other < 2; other++) {
        CUcontext current = other ? context : NULL;
        assert_int_equal(more.cuCtxSetCurrent(current), 0);
        assert_ok(ol_gated_delta_create(cuda, &c.options, &layer, &error), &error);
        assert_ptr_equal(current_context(), current);
        step_scene_write(&s, &c);
        assert_ok(ol_gated_delta_step(layer, stream, &s.arguments, &error), &error);
        assert_ptr_equal(current_context(), current);
        assert_int_equal(ol_gated_delta_step(layer, foreign, &s.arguments, &error), OL_ERROR_ARGUMENT);
        assert_non_null(strstr(error.description, "another context"));
        assert_ptr_equal(current_context(), current);
        ol_gated_delta_destroy(layer);
        assert_ptr_equal(current_context(), current);
        assert_int_equal(step_scene_read(&s, &got), 0);
        assert_true(step_equal(&expected, &got));
    }
    assert_int_equal(more.cuCtxSetCurrent(context), 0);
    assert_int_equal(cu.cuStreamDestroy(foreign), 0);
    assert_int_equal(more.cuCtxSetCurrent(NULL), 0);
    step_scene_end(&s);
    assert_int_equal(more.cuCtxDestroy(context), 0);
    step_free(&c);
    step_free(&expected);
    step_free(&got);
}

/* ---- Failures ---- */

/* The function's nth call fails; whether there was one before anything was given back. A layer of its own device, and a step of it on
 * tensors in the shared one's memory, which is the same context's. */
static ol_status fail_once(const step_case *c, const step_scene *s, const char *name, int nth, int *reached, ol_error *error)
{
    ol_device *device = NULL;
    ol_gated_delta *layer = NULL;
    fake_forget();
    fake_fail(name, nth, CUDA_ERROR_OUT_OF_MEMORY);          /* other codes of a load are made up for by compiling again */
    ol_status status = ol_device_cuda(0, NULL, &device, error);
    if (status == OL_OK)
        status = ol_gated_delta_create(device, &c->options, &layer, error);
    if (status == OL_OK)
        status = ol_gated_delta_step(layer, stream, &s->arguments, error);
    *reached = fake_calls(name) >= (size_t)nth;
    fake_forget();
    ol_gated_delta_destroy(layer);
    ol_device_destroy(device);
    return status;
}

static void every_call_of_the_driver_fails(void **state)
{
    static const char *const names[] = { "cuCtxGetCurrent", "cuCtxPushCurrent", "cuModuleLoadData", "cuModuleGetFunction", "cuFuncGetAttribute",
                                         "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuStreamGetCtx", "cuLaunchKernel" };
    need_fake();
    (void)state;
    step_case c = usual(1, 1), got;
    step_scene s;
    ol_error error;
    step_copy(&got, &c);
    step_scene_begin(&s, &c);
    for (size_t i = 0; i < COUNT(names); i++)
        for (int nth = 1, reached = 1; reached; nth++) {
            ol_status status = fail_once(&c, &s, names[i], nth, &reached, &error);
            assert_int_equal(status, reached ? OL_ERROR_MEMORY : OL_OK);
            assert_true(reached || nth > 1);
            if (reached) {
                assert_non_null(strstr(error.description, names[i]));
                step_scene_read(&s, &got);
                assert_true(step_equal(&c, &got));
            }
            step_scene_write(&s, &c);
        }
    step_scene_end(&s);
    step_free(&c);
    step_free(&got);
}

static void every_allocation_fails(void **state)
{
    (void)state;
    step_case c = usual(1, 1), got;
    step_scene s;
    ol_error error;
    size_t n = 0;
    step_copy(&got, &c);
    step_scene_begin(&s, &c);
    for (int done = 0; !done;) {
        ledger l = { .fail_at = ++n };
        ol_cuda_options options = ledger_options(&l);
        ol_device *device = NULL;
        ol_gated_delta *layer = NULL;
        ol_status status = ol_device_cuda(0, &options, &device, &error);
        if (status == OL_OK)
            status = ol_gated_delta_create(device, &c.options, &layer, &error);
        size_t made = l.n_calls;
        if (status == OL_OK) {
            assert_ok(ol_gated_delta_step(layer, stream, &s.arguments, &error), &error);
            assert_int_equal(l.n_calls, made);           /* a step allocates nothing */
            done = l.n_calls < n;
        } else {
            assert_int_equal(status, OL_ERROR_MEMORY);
            step_scene_read(&s, &got);
            assert_true(step_equal(&c, &got));
        }
        ol_gated_delta_destroy(layer);
        ol_device_destroy(device);
        assert_int_equal(l.n_blocks, 0);
        assert_int_equal(l.n_faults, 0);
        step_scene_write(&s, &c);
    }
    assert_true(n > 10);
    step_scene_end(&s);
    step_free(&c);
    step_free(&got);
}

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 6 };

typedef struct worker {
    const ol_gated_delta *layer;
    step_scene scene;
} worker;

static ol_status one_step(ol_stream in, void *user, ol_error *error)
{
    const worker *w = user;
    return ol_gated_delta_step(w->layer, in, &w->scene.arguments, error);
}

/* One layer, threads with streams and slots of their own. */
static void many_threads(void **state)
{
    (void)state;
    step_case c = usual(1, 2), expected, got;
    worker workers[THREADS];
    void *users[THREADS];
    step_copy(&expected, &c);
    step_copy(&got, &c);
    for (int i = 0; i < ROUNDS; i++)
        step_run(cpu, &expected);
    ol_gated_delta *layer = step_scene_layer(&c);
    for (int i = 0; i < THREADS; i++) {
        workers[i].layer = layer;
        step_scene_begin(&workers[i].scene, &c);
        users[i] = &workers[i];
    }
    cuda_threads(THREADS, ROUNDS, one_step, users);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(step_scene_read(&workers[i].scene, &got), 0);
        assert_true(step_equal(&expected, &got));
        step_scene_end(&workers[i].scene);
    }
    ol_gated_delta_destroy(layer);
    step_free(&c);
    step_free(&expected);
    step_free(&got);
}

/* A second layer of the same options finds its kernel; a layer keeps its device. */
static void kernels_are_shared(void **state)
{
    (void)state;
    step_case c = usual(1, 1), expected, got;
    step_scene s;
    ol_device *device;
    ol_error error;
    step_copy(&expected, &c);
    step_copy(&got, &c);
    step_run(cpu, &expected);
    ol_gated_delta *first = step_scene_layer(&c), *second;
    size_t before = compilations();
    assert_ok(ol_device_cuda(0, NULL, &device, &error), &error);
    assert_ok(ol_gated_delta_create(device, &c.options, &second, &error), &error);
    assert_int_equal(compilations(), before);
    ol_device_destroy(device);
    ol_gated_delta_destroy(first);
    step_scene_begin(&s, &c);
    assert_ok(ol_gated_delta_step(second, stream, &s.arguments, &error), &error);
    step_scene_read(&s, &got);
    assert_true(step_equal(&expected, &got));
    ol_gated_delta_destroy(second);
    step_scene_end(&s);
    step_free(&c);
    step_free(&expected);
    step_free(&got);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(a_step_is_one_node),
        CUDA_TEST(layers_are_made_while_a_capture_goes_on),
        CUDA_TEST(contexts_are_left_as_they_were),
        CUDA_TEST(every_call_of_the_driver_fails),
        CUDA_TEST(every_allocation_fails),
        CUDA_TEST(many_threads),
        CUDA_TEST(kernels_are_shared),
    };
    return CUDA_RUN(argc, argv, tests);
}
