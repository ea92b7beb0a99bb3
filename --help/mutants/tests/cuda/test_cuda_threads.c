/* One composite in many threads, each with its own stream and shapes; the same graph compiled by several threads at once;
 * composites destroyed where they were not made (A60, A62). Threads assert nothing: they say what went wrong. */
#include "cuda_harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N_THREADS = 8, N_SHAPES = 12, MANY = 100 };

static int build_groups(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_negative(g, in[0]);
    out[1] = ol_add(g, in[0], in[1]);
    return 0;
}

/* So many outputs that the parameters are passed by pointer. */
static int build_far(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    for (int i = 0; i < MANY; i++)
        out[i] = ol_subtract(g, in[i % 2], ol_constant(g, OL_FLOAT32, i));
    return 0;
}

static int build_shift(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    out[0] = ol_subtract(g, in[0], ol_constant(g, OL_FLOAT32, (int)(intptr_t)user));
    return 0;
}

static const ol_dtype two_floats[2] = { OL_FLOAT32, OL_FLOAT32 };

/* ---- Replays ---- */

typedef struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    const ol_composite *c;
    ol_stream own;
    int n_rounds;
    struct { scene s; char *memory; unsigned char *expected, *got; ol_tensor tensors[2 + MANY]; } shapes[N_SHAPES];
    int ok;
    ol_error error;
} worker;

static void *work(void *user)
{
    worker *w = user;
    int32_t n_inputs = ol_composite_input_count(w->c);
    pthread_barrier_wait(w->start);
    for (int round = 0; round < w->n_rounds; round++)
        for (int i = 0; i < N_SHAPES; i++) {
            scene *s = &w->shapes[i].s;
            if (ol_device_copy(cuda, w->own, w->shapes[i].memory, s->bytes, s->n_bytes, &w->error) != OL_OK ||
                ol_replay(w->c, w->own, w->shapes[i].tensors, w->shapes[i].tensors + n_inputs, &w->error) != OL_OK ||
                ol_device_copy(cuda, w->own, w->shapes[i].got, w->shapes[i].memory, s->n_bytes, &w->error) != OL_OK ||
                ol_stream_synchronize(cuda, w->own, &w->error) != OL_OK)
                return NULL;
            if (memcmp(w->shapes[i].got, w->shapes[i].expected, s->n_bytes) != 0) {
                snprintf(w->error.description, sizeof w->error.description, "shape %d, round %d: other bits", i, round);
                return NULL;
            }
        }
    w->ok = 1;
    return NULL;
}

static void replay_in_threads(ol_build build, int n_outputs, int n_rounds)
{
    worker *workers = calloc(N_THREADS, sizeof *workers);
    pthread_barrier_t start;
    ol_error error;
    both b = compile_both(build, NULL, 2, two_floats, n_outputs);
    pthread_barrier_init(&start, NULL, N_THREADS);
    for (int t = 0; t < N_THREADS; t++) {
        worker *w = &workers[t];
        w->start = &start;
        w->c = b.on_cuda;
        w->n_rounds = n_rounds;
        assert_ok(ol_stream_create(cuda, &w->own, &error), &error);
        for (int i = 0; i < N_SHAPES; i++) {
            scene *s = &w->shapes[i].s;
            scene_begin(s);
            s->random = (uint64_t)(100 * t + i);
            scene_add(s, i % 2 ? RANDOM : DENSE, OL_FLOAT32, 1, SHAPE(3 + (t + i) % N_SHAPES));
            scene_add(s, DENSE, OL_FLOAT32, 2, SHAPE(2, 3 + (t + i) % N_SHAPES));
            scene_add_outputs(s, b.on_cpu, DENSE, NULL);
            w->shapes[i].memory = device_bytes(cuda, s->bytes, s->n_bytes);
            w->shapes[i].expected = scene_expected(s, b.on_cpu);
            w->shapes[i].got = malloc(s->n_bytes);
            scene_bind(s, w->shapes[i].memory, w->shapes[i].tensors);
        }
    }
    uint64_t launches = ol_device_launches(cuda);
    for (int t = 0; t < N_THREADS; t++)
        assert_int_equal(pthread_create(&workers[t].thread, NULL, work, &workers[t]), 0);
    for (int t = 0; t < N_THREADS; t++)
        assert_int_equal(pthread_join(workers[t].thread, NULL), 0);
    for (int t = 0; t < N_THREADS; t++) {
        worker *w = &workers[t];
        if (!w->ok)
            fail_msg("thread %d: %s: %s", t, w->error.operation, w->error.description);
        for (int i = 0; i < N_SHAPES; i++) {
            device_give(cuda, w->shapes[i].memory, w->shapes[i].s.n_bytes);
            free(w->shapes[i].expected);
            free(w->shapes[i].got);
            scene_end(&w->shapes[i].s);
        }
        assert_ok(ol_stream_destroy(cuda, w->own, &error), &error);
    }
    assert_int_equal(ol_device_launches(cuda) - launches, N_THREADS * N_SHAPES * n_rounds);
    pthread_barrier_destroy(&start);
    destroy_both(&b);
    free(workers);
}

static void replays_of_other_shapes(void **state)
{
    (void)state;
    replay_in_threads(build_groups, 2, 25);
}

static void replays_by_pointer(void **state)
{
    (void)state;
    replay_in_threads(build_far, MANY, 3);
}

/* ---- Compiling ---- */

typedef struct compiler {
    pthread_t thread;
    pthread_barrier_t *start;
    int shift;
    ol_composite *c;
    ol_error error;
} compiler;

static void *compile(void *user)
{
    compiler *w = user;
    ol_builder builder = { .build = build_shift, .user = (void *)(intptr_t)w->shift, .n_inputs = 1, .n_outputs = 1,
                           .name = "shift" };
    pthread_barrier_wait(w->start);
    ol_compile(cuda, &builder, two_floats, &w->c, &w->error);
    return NULL;
}

static void *destroy(void *composite)
{
    ol_composite_destroy(composite);
    return NULL;
}

/* Whether x - shift is what comes out; for threads. */
static int is_shift(const ol_composite *c, ol_stream in, char *memory, int shift, ol_error *error)
{
    float x = 100, y = 0;
    ol_tensor tensors[2] = { vector_of(memory, OL_FLOAT32, 1), vector_of(memory + 4, OL_FLOAT32, 1) };
    return ol_device_copy(cuda, in, memory, &x, sizeof x, error) == OL_OK &&
           ol_replay(c, in, tensors, tensors + 1, error) == OL_OK &&
           ol_device_copy(cuda, in, &y, memory + 4, sizeof y, error) == OL_OK && ol_stream_synchronize(cuda, in, error) == OL_OK &&
           y == 100 - (float)shift;
}

/* At most one image stays, whoever was first. */
static void the_same_graph_at_once(void **state)
{
    compiler workers[N_THREADS] = { 0 };
    pthread_barrier_t start;
    ol_error error;
    (void)state;
    char *memory = device_bytes(cuda, NULL, 8);
    pthread_barrier_init(&start, NULL, N_THREADS);
    for (int round = 0; round < 3; round++) {
        size_t loaded = fake_is_loaded() ? fake_calls("cuModuleLoadData") - fake_calls("cuModuleUnload") : 0;
        for (int t = 0; t < N_THREADS; t++) {
            workers[t] = (compiler){ .start = &start, .shift = round };
            assert_int_equal(pthread_create(&workers[t].thread, NULL, compile, &workers[t]), 0);
        }
        for (int t = 0; t < N_THREADS; t++)
            assert_int_equal(pthread_join(workers[t].thread, NULL), 0);
        for (int t = 0; t < N_THREADS; t++)
            if (!workers[t].c)
                fail_msg("thread %d: %s: %s", t, workers[t].error.operation, workers[t].error.description);
        if (fake_is_loaded())
            assert_int_equal(fake_calls("cuModuleLoadData") - fake_calls("cuModuleUnload"), loaded + 1);
        for (int t = 0; t < N_THREADS; t++) {
            assert_true(is_shift(workers[t].c, stream, memory, round, &error));
            pthread_t thread;                                    /* destroyed on a thread that has never seen CUDA */
            assert_int_equal(pthread_create(&thread, NULL, destroy, workers[t].c), 0);
            assert_int_equal(pthread_join(thread, NULL), 0);
        }
        /* The image is still there, for the next one. */
        size_t before = fake_is_loaded() ? fake_calls("cuModuleLoadData") : 0;
        ol_composite *c = NULL;
        ol_builder builder = { .build = build_shift, .user = (void *)(intptr_t)round, .n_inputs = 1, .n_outputs = 1,
                               .name = "shift" };
        assert_ok(ol_compile(cuda, &builder, two_floats, &c, &error), &error);
        if (fake_is_loaded())
            assert_int_equal(fake_calls("cuModuleLoadData"), before);
        ol_composite_destroy(c);
    }
    pthread_barrier_destroy(&start);
    device_give(cuda, memory, 8);
}

/* ---- A60: never another function's result ---- */

static void A60_never_the_result_of_a_freed_composite(void **state)
{
    enum { ROUNDS = 400 };
    ol_error error;
    (void)state;
    char *memory = device_bytes(cuda, NULL, 8);
    for (int i = 0; i < ROUNDS; i++) {
        int shift = i % 3;
        ol_composite *c = compile_on(cuda, build_shift, (void *)(intptr_t)shift, 1, two_floats, 1);
        if (!is_shift(c, stream, memory, shift, &error))
            fail_msg("round %d: another result than x - %d", i, shift);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, destroy, c), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    device_give(cuda, memory, 8);
}

/* ---- A62: all at once ---- */

static atomic_int stop;

typedef struct busy {
    pthread_t thread;
    int which, n_rounds;
    const ol_composite *c;
    ol_stream own;
    char *memory;
    int ok;
    ol_error error;
} busy;

/* Thread 0 compiles, replays and destroys; 1 replays a composite of all; 2 makes devices; 3 runs the composed path. */
static void *be_busy(void *user)
{
    busy *b = user;
    b->ok = 1;
    while (b->ok && !atomic_load(&stop)) {
        if (b->which == 0) {
            int shift = b->n_rounds % 3;
            ol_builder builder = { .build = build_shift, .user = (void *)(intptr_t)shift, .n_inputs = 1, .n_outputs = 1,
                                   .name = "case" };
            ol_composite *c = NULL;
            b->ok = ol_compile(cuda, &builder, two_floats, &c, &b->error) == OL_OK &&
                    is_shift(c, b->own, b->memory, shift, &b->error);
            ol_composite_destroy(c);
        } else if (b->which == 1) {
            b->ok = is_shift(b->c, b->own, b->memory, 1, &b->error);
        } else if (b->which == 2) {
            ol_device *device = NULL;
            int32_t n;
            b->ok = ol_device_cuda(0, NULL, &device, &b->error) == OL_OK && ol_cuda_count(&n, &b->error) == OL_OK;
            ol_device_destroy(device);
        } else {
            ol_tensor tensors[2] = { vector_of(b->memory, OL_FLOAT32, 1), vector_of(b->memory + 4, OL_FLOAT32, 1) };
            b->ok = ol_replay_composed(b->c, b->own, tensors, tensors + 1, &b->error) == OL_OK &&
                    ol_stream_synchronize(cuda, b->own, &b->error) == OL_OK;
        }
        b->n_rounds++;
    }
    return NULL;
}

static void A62_everything_at_once(void **state)
{
    enum { N_BUSY = 4 };
    busy workers[N_BUSY] = { 0 };
    ol_error error;
    (void)state;
    atomic_store(&stop, 0);
    ol_composite *c = compile_on(cuda, build_shift, (void *)(intptr_t)1, 1, two_floats, 1);
    for (int t = 0; t < N_BUSY; t++) {
        workers[t] = (busy){ .which = t, .c = c, .memory = device_bytes(cuda, NULL, 8) };
        assert_ok(ol_stream_create(cuda, &workers[t].own, &error), &error);
        assert_int_equal(pthread_create(&workers[t].thread, NULL, be_busy, &workers[t]), 0);
    }
    const struct timespec pause = { .tv_nsec = 700000000 };
    nanosleep(&pause, NULL);
    atomic_store(&stop, 1);
    for (int t = 0; t < N_BUSY; t++) {
        assert_int_equal(pthread_join(workers[t].thread, NULL), 0);
        if (!workers[t].ok)
            fail_msg("thread %d, round %d: %s: %s", t, workers[t].n_rounds, workers[t].error.operation,
                     workers[t].error.description);
        assert_ok(ol_stream_destroy(cuda, workers[t].own, &error), &error);
        device_give(cuda, workers[t].memory, 8);
    }
    ol_composite_destroy(c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(replays_of_other_shapes), CUDA_TEST(replays_by_pointer), CUDA_TEST(the_same_graph_at_once),
        CUDA_TEST(A60_never_the_result_of_a_freed_composite), CUDA_TEST(A62_everything_at_once),
    };
    return CUDA_RUN(argc, argv, tests);
}
