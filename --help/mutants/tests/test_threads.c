/* Threads: one composite replayed by eight threads at once, small and large, while others trace, compile and destroy. Meant to
 * run under ThreadSanitizer, too; there with the host's parallel_for alone, since it cannot see into pthreadpool. */
#include "graph_cases.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif
#ifndef THREAD_SANITIZER
#define THREAD_SANITIZER 0
#endif

enum { N_THREADS = 8 };

static int build_usual(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    ol_value x = ol_add(g, in[0], in[1]);
    out[0] = ol_exp(g, ol_negative(g, ol_softplus(g, x)));
    out[1] = ol_astype(g, ol_sigmoid(g, ol_multiply(g, x, ol_exp(g, in[1]))), OL_BFLOAT16);
    return 0;
}

/* More values than the stack holds, and more tensors than the overlap check does: prepared scratch, fewer blocks than threads. */
enum { WIDE = 200 };

static int build_wide(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    ol_value x = ol_add(g, in[0], in[1]), values[WIDE];
    for (int i = 0; i < WIDE; i++)
        values[i] = ol_multiply(g, x, ol_constant(g, OL_FLOAT32, i));
    out[0] = ol_subtract(g, values[WIDE - 1], values[0]);
    for (int i = 1; i < WIDE; i++)
        out[i] = ol_add(g, values[i], values[WIDE - 1 - i]);
    return 0;
}

typedef struct shared {
    const ol_composite *composite;
    ol_tensor in[2];
    int32_t n_outputs;
    int64_t n;
    size_t n_bytes[WIDE];
    char *expected[WIDE];
    int rounds, path;
    atomic_int wrong;
} shared;

static void *replay_many_times(void *user)
{
    shared *s = user;
    ol_tensor *out = calloc((size_t)s->n_outputs, sizeof *out);
    for (int32_t o = 0; o < s->n_outputs; o++)
        out[o] = vector_of(malloc(s->n_bytes[o]), ol_composite_output_dtype(s->composite, o), s->n);
    for (int i = 0; i < s->rounds; i++) {
        ol_error error;
        for (int32_t o = 0; o < s->n_outputs; o++)
            memset(out[o].data, 0xA5, s->n_bytes[o]);
        s->wrong += replay_paths[s->path](s->composite, NULL, s->in, out, &error) != OL_OK;
        for (int32_t o = 0; o < s->n_outputs; o++)
            s->wrong += memcmp(out[o].data, s->expected[o], s->n_bytes[o]) != 0;
        /* Errors are each caller's own, too. */
        ol_tensor bad = s->in[0], pair[2] = { bad, s->in[1] };
        pair[0].dtype = OL_INT64;
        s->wrong += ol_replay(s->composite, NULL, pair, out, &error) != OL_ERROR_DTYPE || !strstr(error.description, "input 0 is int64");
    }
    for (int32_t o = 0; o < s->n_outputs; o++)
        free(out[o].data);
    free(out);
    return NULL;
}

static void replay_from_eight_threads(ol_device *device, ol_build build, int32_t n_outputs, int64_t n, int rounds, int path)
{
    static float x[200000], y[200000];
    shared s = { .n_outputs = n_outputs, .n = n, .rounds = rounds, .path = path };
    pthread_t threads[N_THREADS];
    ol_tensor out[WIDE];
    ol_error error;
    uint64_t random = harness_seed;
    assert_true((size_t)n <= COUNT(x));
    random_fill(&random, x, OL_FLOAT32, (size_t)n);
    random_fill(&random, y, OL_FLOAT32, (size_t)n);
    s.in[0] = vector_of(x, OL_FLOAT32, n);
    s.in[1] = vector_of(y, OL_FLOAT32, n);
    ol_composite *alone = compile_on(level_device(0), build, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), n_outputs);
    for (int32_t o = 0; o < n_outputs; o++) {
        s.n_bytes[o] = (size_t)n * ol_dtype_size(ol_composite_output_dtype(alone, o));
        out[o] = vector_of(s.expected[o] = malloc(s.n_bytes[o]), ol_composite_output_dtype(alone, o), n);
    }
    assert_ok(ol_replay(alone, NULL, s.in, out, &error), &error);
    ol_composite_destroy(alone);

    ol_composite *composite = compile_on(device, build, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), n_outputs);
    s.composite = composite;
    uint64_t before = ol_device_launches(device);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, replay_many_times, &s), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(s.wrong, 0);
    assert_int_equal(ol_device_launches(device) - before, N_THREADS * rounds * (path ? ol_composite_composed_launches(composite) : 1));
    ol_composite_destroy(composite);
    for (int32_t o = 0; o < n_outputs; o++)
        free(s.expected[o]);
}

static void on_every_kind_of_device(ol_build build, int32_t n_outputs, int64_t n, int rounds, int path)
{
    const ol_cpu_options options[] = { { .n_threads = 1 }, { .n_threads = 4, .parallel_for = host_parallel_for }, { .n_threads = 3 } };
    for (size_t i = 0; i < (THREAD_SANITIZER ? 2 : COUNT(options)); i++) {
        ol_device *device;
        ol_error error;
        assert_ok(ol_device_cpu(&options[i], &device, &error), &error);
        replay_from_eight_threads(device, build, n_outputs, n, rounds, path);
        ol_device_destroy(device);
    }
}

static void decode_sized_replays(void **state)
{
    (void)state;
    on_every_kind_of_device(build_usual, 2, 32, THREAD_SANITIZER ? 300 : 2000, 0);
}

static void large_replays(void **state)
{
    (void)state;
    on_every_kind_of_device(build_usual, 2, THREAD_SANITIZER ? 30000 : 100000, 3, 0);
}

static void replays_that_need_scratch(void **state)
{
    (void)state;
    on_every_kind_of_device(build_wide, WIDE, 40, THREAD_SANITIZER ? 20 : 100, 0);
    on_every_kind_of_device(build_wide, WIDE, 20000, 2, 0);
}

static void composed_paths(void **state)
{
    (void)state;
    on_every_kind_of_device(build_usual, 2, 100, THREAD_SANITIZER ? 10 : 50, 1);
}

/* ---- Tracing in some threads while others replay and destroy ---- */

typedef struct workshop {
    ol_device *device;
    const ol_composite *kept;
    atomic_int wrong;
    int rounds;
} workshop;

static int replay_one(const ol_composite *c, float x, float expected)
{
    float y = -1;
    ol_tensor in = vector_of(&x, OL_FLOAT32, 1), out = vector_of(&y, OL_FLOAT32, 1);
    return ol_replay(c, NULL, &in, &out, NULL) == OL_OK && y == expected;
}

static void *trace_replay_destroy(void *user)
{
    workshop *w = user;
    for (int i = 0; i < w->rounds; i++) {
        ol_composite *c = NULL;
        ol_builder builder = { .build = build_primitive, .user = PRIMITIVE_USER(ol_primitive_find(i % 2 ? "square" : "negative")), .n_inputs = 1, .n_outputs = 1 };
        w->wrong += ol_compile(w->device, &builder, DTYPES(OL_FLOAT32), &c, NULL) != OL_OK || !replay_one(c, 3, i % 2 ? 9 : -3);
        ol_composite_destroy(c);
    }
    return NULL;
}

static void *replay_kept(void *user)
{
    workshop *w = user;
    for (int i = 0; i < 4 * w->rounds; i++)
        w->wrong += !replay_one(w->kept, 16, 4);
    return NULL;
}

static void *use_text_and_devices(void *user)
{
    workshop *w = user;
    for (int i = 0; i < w->rounds / 4; i++) {
        char text[512];
        size_t n = ol_composite_text(w->kept, OL_TEXT_GRAPH, text, sizeof text);
        ol_device *device = NULL;
        ol_composite *c = NULL;
        w->wrong += ol_device_cpu(&(ol_cpu_options){ .n_threads = 1 }, &device, NULL) != OL_OK;
        w->wrong += ol_compile_text(device, text, n, &c, NULL) != OL_OK || !replay_one(c, 25, 5);
        ol_device_destroy(device);
        ol_composite_destroy(c);
    }
    return NULL;
}

static void tracing_beside_replaying_and_destroying(void **state)
{
    (void)state;
    static void *(*const roles[N_THREADS])(void *) = {
        trace_replay_destroy, replay_kept, use_text_and_devices, trace_replay_destroy, replay_kept, trace_replay_destroy, use_text_and_devices, replay_kept,
    };
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *kept = compile_on(level_device(level), build_primitive, primitive_named("sqrt"), 1, DTYPES(OL_FLOAT32), 1);
        workshop w = { .device = level_device(level), .kept = kept, .rounds = THREAD_SANITIZER ? 50 : 400 };
        pthread_t threads[N_THREADS];
        for (int i = 0; i < N_THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, roles[i], &w), 0);
        for (int i = 0; i < N_THREADS; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(w.wrong, 0);
        ol_composite_destroy(kept);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_sized_replays), cmocka_unit_test(large_replays), cmocka_unit_test(replays_that_need_scratch),
        cmocka_unit_test(composed_paths), cmocka_unit_test(tracing_beside_replaying_and_destroying),
    };
    return HARNESS_RUN(argc, argv, tests);
}
