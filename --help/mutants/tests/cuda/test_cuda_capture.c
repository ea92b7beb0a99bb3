/* Replays recorded in CUDA graphs: one kernel node each and nothing else, in every mode of capture; the graph does the replay again
 * on whatever is in memory then; and other threads may do anything meanwhile (A67, A69, A70). */
#include "cuda_harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define BUILDER(name) static int name(ol_graph *g, const ol_value *in, ol_value *out, void *user)

BUILDER(build_near)
{
    (void)user;
    out[0] = ol_exp(g, ol_negative(g, in[0]));
    out[1] = ol_add(g, in[0], in[1]);
    return 0;
}

enum { MANY = 300 };

/* So many tensors that the kernel takes their addresses by pointer. */
BUILDER(build_far)
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

static const subject subjects[] = { { "near", build_near, 2, 2 }, { "far", build_far, MANY, MANY } };

static both compile_subject(const subject *s)
{
    ol_dtype dtypes[MANY];
    for (int i = 0; i < MANY; i++)
        dtypes[i] = OL_FLOAT32;
    return compile_both(s->build, NULL, s->n_inputs, dtypes, s->n_outputs);
}

/* A scene, its memory on the GPU, and what a replay makes of it. */
typedef struct stage {
    scene s;
    char *memory;
    unsigned char *expected;
    ol_tensor tensors[2 * MANY];
} stage;

static stage *stage_begin(const subject *s, const both *b, uint64_t seed)
{
    stage *st = calloc(1, sizeof *st);
    scene_begin(&st->s);
    st->s.random = seed;
    for (int32_t i = 0; i < s->n_inputs; i++)
        scene_add(&st->s, DENSE, OL_FLOAT32, 2, s->build == build_near && i == 0 ? SHAPE(1, 5) : SHAPE(3, 5));
    scene_add_outputs(&st->s, b->on_cpu, DENSE, NULL);
    st->expected = scene_expected(&st->s, b->on_cpu);
    st->memory = device_bytes(cuda, st->s.bytes, st->s.n_bytes);
    scene_bind(&st->s, st->memory, st->tensors);
    return st;
}

static void stage_replay(const stage *st, const ol_composite *c, ol_stream in)
{
    ol_error error;
    assert_ok(ol_replay(c, in, st->tensors, st->tensors + ol_composite_input_count(c), &error), &error);
}

static void stage_compare(const stage *st, const unsigned char *expected, const char *what)
{
    unsigned char *got = malloc(st->s.n_bytes);
    download(cuda, stream, got, st->memory, st->s.n_bytes);
    scene_compare(&st->s, got, expected, what);
    free(got);
}

static void stage_end(stage *st)
{
    device_give(cuda, st->memory, st->s.n_bytes);
    free(st->expected);
    scene_end(&st->s);
    free(st);
}

/* ---- One node ---- */

static void a_replay_is_one_node(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(subjects); i++) {
        both b = compile_subject(&subjects[i]);
        for (int mode = CAPTURE_GLOBAL; mode <= CAPTURE_RELAXED; mode++)
            for (int warm = 0; warm < 2; warm++) {
                stage *st = stage_begin(&subjects[i], &b, 1), *other = stage_begin(&subjects[i], &b, 2);
                if (warm) {
                    stage_replay(st, b.on_cuda, stream);
                    upload(cuda, stream, st->memory, st->s.bytes, st->s.n_bytes);
                }
                capture_begin(stream, mode);
                stage_replay(st, b.on_cuda, stream);
                captured c = capture_end(stream);
                assert_int_equal(c.n_kernels, 1);
                assert_int_equal(c.n_others, 0);
                stage_compare(st, st->s.bytes, "captured, not launched");
                for (int round = 0; round < 3; round++) {
                    const stage *data = round == 1 ? other : st;         /* the same places, other elements */
                    upload(cuda, stream, st->memory, data->s.bytes, data->s.n_bytes);
                    captured_launch(&c, stream);
                    stage_compare(st, data->expected, subjects[i].name);
                }
                captured_destroy(&c);
                stage_end(st);
                stage_end(other);
            }
        destroy_both(&b);
    }
}

/* In place the graph goes on from what it left. */
static void a_graph_updates_in_place(void **state)
{
    (void)state;
    const subject *s = &subjects[0];
    both b = compile_subject(s);
    scene sc;
    float *got, *expected;
    scene_begin(&sc);
    scene_add(&sc, DENSE, OL_FLOAT32, 1, SHAPE(40));
    scene_add(&sc, DENSE, OL_FLOAT32, 1, SHAPE(40));
    scene_add_outputs(&sc, b.on_cpu, DENSE, (const int32_t[]){ -1, 1 });
    ol_tensor on_gpu[4], on_cpu[4];
    char *memory = device_bytes(cuda, sc.bytes, sc.n_bytes);
    expected = aligned_alloc(64, (sc.n_bytes + 64) / 64 * 64);
    got = malloc(sc.n_bytes);
    memcpy(expected, sc.bytes, sc.n_bytes);
    scene_bind(&sc, memory, on_gpu);
    scene_bind(&sc, expected, on_cpu);
    ol_error error;
    capture_begin(stream, CAPTURE_THREAD_LOCAL);
    assert_ok(ol_replay(b.on_cuda, stream, on_gpu, on_gpu + 2, &error), &error);
    captured c = capture_end(stream);
    for (int i = 0; i < 5; i++) {
        captured_launch(&c, stream);
        assert_ok(ol_replay(b.on_cpu, NULL, on_cpu, on_cpu + 2, &error), &error);
    }
    download(cuda, stream, got, memory, sc.n_bytes);
    scene_compare(&sc, (unsigned char *)got, (unsigned char *)expected, "five times in place");
    captured_destroy(&c);
    device_give(cuda, memory, sc.n_bytes);
    free(got);
    free(expected);
    scene_end(&sc);
    destroy_both(&b);
}

/* Many replays of both kinds in one capture; each is its own node, with its own addresses. */
static void several_replays_in_one_capture(void **state)
{
    enum { ROUNDS = 6 };
    stage *stages[2][ROUNDS];
    both b[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        b[i] = compile_subject(&subjects[i]);
        for (int r = 0; r < ROUNDS; r++)
            stages[i][r] = stage_begin(&subjects[i], &b[i], (uint64_t)(10 * i + r));
    }
    capture_begin(stream, CAPTURE_GLOBAL);
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < 2; i++)
            stage_replay(stages[i][r], b[i].on_cuda, stream);
    captured c = capture_end(stream);
    assert_int_equal(c.n_kernels, 2 * ROUNDS);
    assert_int_equal(c.n_others, 0);
    captured_launch(&c, stream);
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < ROUNDS; r++) {
            stage_compare(stages[i][r], stages[i][r]->expected, subjects[i].name);
            stage_end(stages[i][r]);
        }
    captured_destroy(&c);
    destroy_both(&b[0]);
    destroy_both(&b[1]);
}

/* Captured twice, replayed beside, then launched in either order: no capture's words are written again. */
static void captured_words_stay(void **state)
{
    enum { BESIDE = 12 };
    (void)state;
    for (size_t i = 0; i < COUNT(subjects); i++) {
        both b = compile_subject(&subjects[i]);
        stage *st[2] = { stage_begin(&subjects[i], &b, 1), stage_begin(&subjects[i], &b, 2) },
            *beside = stage_begin(&subjects[i], &b, 3);
        captured c[2];
        for (int k = 0; k < 2; k++) {
            capture_begin(stream, CAPTURE_THREAD_LOCAL);
            stage_replay(st[k], b.on_cuda, stream);
            c[k] = capture_end(stream);
        }
        for (int k = 0; k < BESIDE; k++)
            stage_replay(beside, b.on_cuda, stream);
        for (int order = 0; order < 2; order++) {
            for (int k = 0; k < 2; k++)
                upload(cuda, stream, st[k]->memory, st[k]->s.bytes, st[k]->s.n_bytes);
            captured_launch(&c[order], stream);
            captured_launch(&c[!order], stream);
            stage_replay(beside, b.on_cuda, stream);
            for (int k = 0; k < 2; k++)
                stage_compare(st[k], st[k]->expected, subjects[i].name);
            stage_compare(beside, beside->expected, "beside");
        }
        for (int k = 0; k < 2; k++) {
            captured_destroy(&c[k]);
            stage_end(st[k]);
        }
        stage_end(beside);
        destroy_both(&b);
    }
}

/* ---- A67: other threads ---- */

BUILDER(build_new)
{
    out[0] = ol_add(g, in[0], ol_constant(g, OL_FLOAT32, 0.5 + (int)(intptr_t)user));
    return 0;
}

typedef struct passer_by {
    const both *b;
    stage *stages[2];
    ol_stream own;
    int round, ok;
    ol_error error;
} passer_by;

/* Compiles, replays and destroys, and makes and destroys a device; without assertions, which belong to the test's thread. */
static void *pass_by(void *user)
{
    passer_by *p = user;
    ol_device *device = NULL;
    ol_composite *c = NULL;
    ol_builder builder = { .build = build_new, .user = (void *)(intptr_t)p->round, .n_inputs = 1, .n_outputs = 1, .name = "new" };
    ol_status status = OL_OK;
    for (int i = 0; i < 2; i++)
        for (int times = 0; times < 6 && status == OL_OK; times++)
            status = ol_replay(p->b[i].on_cuda, p->own, p->stages[i]->tensors,
                               p->stages[i]->tensors + ol_composite_input_count(p->b[i].on_cuda), &p->error);
    for (int i = 0; i < 2 && status == OL_OK; i++) {
        status = ol_compile(cuda, &builder, DTYPES(OL_FLOAT32), &c, &p->error);
        if (status == OL_OK)
            ol_composite_destroy(c);
    }
    if (status == OL_OK)
        status = ol_device_cuda(0, NULL, &device, &p->error);
    if (status == OL_OK)
        status = ol_compile(device, &builder, DTYPES(OL_FLOAT32), &c, &p->error);
    if (status == OL_OK)
        ol_composite_destroy(c);
    ol_device_destroy(device);
    p->ok = status == OL_OK;
    return NULL;
}

static void A67_other_threads_do_not_break_a_capture(void **state)
{
    both b[2];
    ol_error error;
    passer_by p = { .b = b };
    (void)state;
    assert_ok(ol_stream_create(cuda, &p.own, &error), &error);
    for (int i = 0; i < 2; i++) {
        b[i] = compile_subject(&subjects[i]);
        p.stages[i] = stage_begin(&subjects[i], &b[i], 5);
    }
    for (int mode = CAPTURE_GLOBAL; mode <= CAPTURE_RELAXED; mode++) {
        stage *st = stage_begin(&subjects[1], &b[1], 7);
        pthread_t thread;
        p.round = mode;
        capture_begin(stream, mode);
        stage_replay(st, b[1].on_cuda, stream);
        assert_int_equal(pthread_create(&thread, NULL, pass_by, &p), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        if (!p.ok)
            fail_msg("mode %d: %s: %s", mode, p.error.operation, p.error.description);
        stage_replay(st, b[1].on_cuda, stream);
        captured c = capture_end(stream);
        assert_int_equal(c.n_kernels, 2);
        assert_int_equal(c.n_others, 0);
        captured_launch(&c, stream);
        stage_compare(st, st->expected, "captured");
        captured_destroy(&c);
        stage_end(st);
        assert_ok(ol_stream_synchronize(cuda, p.own, &error), &error);
        for (int i = 0; i < 2; i++)
            stage_compare(p.stages[i], p.stages[i]->expected, "beside");
    }
    for (int i = 0; i < 2; i++) {
        stage_end(p.stages[i]);
        destroy_both(&b[i]);
    }
    assert_ok(ol_stream_destroy(cuda, p.own, &error), &error);
}

/* The capturing thread itself may compile and destroy. */
static void the_same_thread_compiles_while_it_captures(void **state)
{
    (void)state;
    both b = compile_subject(&subjects[0]);
    stage *st = stage_begin(&subjects[0], &b, 1);
    for (int mode = CAPTURE_GLOBAL; mode <= CAPTURE_RELAXED; mode++) {
        capture_begin(stream, mode);
        stage_replay(st, b.on_cuda, stream);
        both another = compile_subject(&subjects[1]);
        destroy_both(&another);
        ol_composite *c = compile_on(cuda, build_new, (void *)(intptr_t)(7 + mode), 1, DTYPES(OL_FLOAT32), 1);
        ol_composite_destroy(c);
        captured done = capture_end(stream);
        assert_int_equal(done.n_kernels, 1);
        captured_destroy(&done);
    }
    stage_end(st);
    destroy_both(&b);
}

/* ---- A70: no hidden work ---- */

/* A blocking stream is captured, where any work in the legacy stream would be refused, while another one is used. */
static void A70_only_the_callers_stream(void **state)
{
    CUstream blocking;
    CUcontext context;
    ol_error error;
    (void)state;
    assert_int_equal(cu.cuStreamGetCtx(stream, &context), 0);
    assert_int_equal(cu.cuCtxPushCurrent(context), 0);
    assert_int_equal(cu.cuStreamCreate(&blocking, 0), 0);
    assert_int_equal(cu.cuCtxPopCurrent(&context), 0);
    for (size_t i = 0; i < COUNT(subjects); i++) {
        both b = compile_subject(&subjects[i]);
        stage *st = stage_begin(&subjects[i], &b, 1), *beside = stage_begin(&subjects[i], &b, 2);
        capture_begin(blocking, CAPTURE_GLOBAL);
        stage_replay(st, b.on_cuda, blocking);
        for (int k = 0; k < 6; k++)
            stage_replay(beside, b.on_cuda, stream);
        captured c = capture_end(blocking);
        assert_int_equal(c.n_kernels, 1);
        assert_int_equal(c.n_others, 0);
        captured_launch(&c, blocking);
        assert_ok(ol_stream_synchronize(cuda, blocking, &error), &error);
        stage_compare(st, st->expected, "captured");
        stage_compare(beside, beside->expected, "beside");
        captured_destroy(&c);
        stage_end(st);
        stage_end(beside);
        destroy_both(&b);
    }
    assert_ok(ol_stream_destroy(cuda, blocking, &error), &error);
}

/* A replay that is refused leaves the capture whole. */
static void a_refusal_breaks_no_capture(void **state)
{
    ol_error error;
    (void)state;
    both b = compile_subject(&subjects[0]);
    stage *st = stage_begin(&subjects[0], &b, 1);
    ol_tensor wrong = st->tensors[3];
    wrong.dtype = OL_INT8;
    capture_begin(stream, CAPTURE_GLOBAL);
    assert_fails(ol_replay(b.on_cuda, stream, st->tensors, (ol_tensor[]){ st->tensors[2], wrong }, &error), &error, OL_ERROR_DTYPE,
                 "replay case", "int8");
    stage_replay(st, b.on_cuda, stream);
    captured c = capture_end(stream);
    assert_int_equal(c.n_kernels, 1);
    captured_launch(&c, stream);
    stage_compare(st, st->expected, "captured");
    captured_destroy(&c);
    stage_end(st);
    destroy_both(&b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(a_replay_is_one_node), CUDA_TEST(a_graph_updates_in_place), CUDA_TEST(several_replays_in_one_capture),
        CUDA_TEST(captured_words_stay),
        CUDA_TEST(A67_other_threads_do_not_break_a_capture), CUDA_TEST(the_same_thread_compiles_while_it_captures),
        CUDA_TEST(A70_only_the_callers_stream), CUDA_TEST(a_refusal_breaks_no_capture),
    };
    return CUDA_RUN(argc, argv, tests);
}
