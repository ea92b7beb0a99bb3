/* b and a as models leave them: slices of one projection, halves or interleaved per key head, rows with gaps or in reverse; weights whose
 * heads lie tiled. Each by views, without a copy, against the same values gathered one by one into contiguous tensors. */
#include "gate_runs.h"

#include <stdlib.h>

enum { TOKENS = 3 };

typedef struct geometry { int64_t key_heads, each; } geometry;          /* each: value heads of a key head */
static const geometry geometries[] = { { 16, 2 }, { 4, 3 }, { 1, 1 }, { 5, 1 }, { 2, 4 }, { 16, 3 }, { 1, 7 } };

typedef struct bench {
    ol_composite *composite;
    ol_dtype act;
    int64_t heads;
    ol_tensor in[4], out[2];             /* contiguous, [TOKENS, heads] and [heads] */
} bench;

/* Expected results, of contiguous inputs. */
static void bench_begin(bench *t, ol_device *device, ol_dtype act, int64_t heads, uint64_t *random)
{
    const ol_dtype dtypes[] = { act, act, OL_FLOAT32, act };
    ol_error error;
    t->act = act;
    t->heads = heads;
    assert_ok(ol_gated_delta_gates_compile(device, NULL, act, act, OL_FLOAT32, act, &t->composite, &error), &error);
    for (int k = 0; k < 4; k++) {
        size_t n = (size_t)(k < 2 ? TOKENS * heads : heads);
        t->in[k] = ol_tensor_contiguous(guarded_alloc(n * ol_dtype_size(dtypes[k]), 0), dtypes[k], k < 2 ? 2 : 1, k < 2 ? SHAPE(TOKENS, heads) : SHAPE(heads));
        random_fill(random, t->in[k].data, dtypes[k], n);
    }
    for (int k = 0; k < 2; k++)
        t->out[k] = ol_tensor_contiguous(guarded_alloc((size_t)(TOKENS * heads) * 4, 0), k ? OL_FLOAT32 : act, 2, SHAPE(TOKENS, heads));
    assert_ok(ol_replay(t->composite, NULL, t->in, t->out, &error), &error);
}

static void bench_end(bench *t)
{
    for (int k = 0; k < 4; k++)
        guarded_free(t->in[k].data);
    for (int k = 0; k < 2; k++)
        guarded_free(t->out[k].data);
    ol_composite_destroy(t->composite);
}

/* Replays with these inputs into outputs of the views' shape over fresh [TOKENS, heads] memory, and compares: element [t, v] of it with
 * element [t, order[v]] expected. */
static void check(bench *t, const ol_tensor in[4], const ol_tensor out_views[2], void *const fresh[2], const int64_t *order, const char *what)
{
    for (int path = 0; path < 2; path++) {
        ol_error error;
        assert_ok(replay_paths[path](t->composite, NULL, in, out_views, &error), &error);
        for (int k = 0; k < 2; k++)
            for (int64_t i = 0; i < TOKENS * t->heads; i++) {
                int64_t from = i / t->heads * t->heads + (order ? order[i % t->heads] : i % t->heads);
                uint64_t got = element_load(fresh[k], t->out[k].dtype, (size_t)i), right = element_load(t->out[k].data, t->out[k].dtype, (size_t)from);
                if (got != right)
                    fail_msg("%s, %s, %lld heads: output %d, element %lld: %llx, expected %llx", what, path_names[path], (long long)t->heads, k, (long long)i,
                             (unsigned long long)got, (unsigned long long)right);
            }
    }
}

/* Writes b and a into a projection's rows; where element e of a row lies. */
static void fill_projection(const bench *t, void *data, int64_t row, int64_t step, int64_t origin, const geometry *g, int interleaved)
{
    for (int64_t i = 0; i < TOKENS; i++)
        for (int64_t v = 0; v < t->heads; v++)
            for (int k = 0; k < 2; k++) {
                int64_t e = interleaved ? v / g->each * 2 * g->each + k * g->each + v % g->each : k * t->heads + v;
                element_store(data, t->act, (size_t)(origin + i * row + e * step), element_load(t->in[k].data, t->act, (size_t)(i * t->heads + v)));
            }
}

static void slices_of_a_projection(void **state)
{
    (void)state;
    static const ol_dtype acts[] = { OL_BFLOAT16, OL_FLOAT32, OL_FLOAT16 };
    uint64_t random = harness_seed;
    for (size_t level = 0; level < level_count(); level++)
        for (size_t i = 0; i < COUNT(geometries); i++)
            for (int manner = 0; manner < 4; manner++)               /* dense, rows apart, elements apart, reversed */
                for (int interleaved = 0; interleaved < 2; interleaved++) {
                    const geometry *g = &geometries[i];
                    bench t;
                    bench_begin(&t, level_device(level), acts[(i + (size_t)manner) % 3], g->key_heads * g->each, &random);
                    int64_t width = 2 * t.heads, step = manner == 2 ? 3 : manner == 3 ? -1 : 1, row = (manner == 2 ? 3 : 1) * width + (manner == 1 ? 5 : 0);
                    int64_t origin = manner == 3 ? width - 1 : 0;
                    size_t size = ol_dtype_size(t.act);
                    unsigned char *data = guarded_alloc((size_t)(row * TOKENS) * size, i % 2 ? 2 : 0);
                    fill_projection(&t, data, row, step, origin, g, interleaved);
                    ol_tensor projection = strided(data + (size_t)origin * size, t.act, 2, SHAPE(TOKENS, width), SHAPE(row, step)), in[4], out[2];
                    void *fresh[2];
                    ol_error error;
                    assert_ok(ol_gated_delta_split(&projection, interleaved ? OL_GATE_INTERLEAVED : OL_GATE_HALVES, g->key_heads, &in[0], &in[1], &error), &error);
                    assert_int_equal(in[0].rank, interleaved ? 3 : 2);
                    for (int k = 0; k < 2; k++) {
                        fresh[k] = guarded_alloc((size_t)(TOKENS * t.heads) * ol_dtype_size(t.out[k].dtype), 0);
                        in[2 + k] = t.in[2 + k];
                        out[k] = t.out[k];
                        out[k].data = fresh[k];
                        if (interleaved) {
                            assert_ok(ol_gated_delta_heads_view(&t.in[2 + k], 0, g->key_heads, OL_HEADS_GROUPED, &in[2 + k], &error), &error);
                            assert_ok(ol_gated_delta_heads_view(&out[k], -1, g->key_heads, OL_HEADS_GROUPED, &out[k], &error), &error);       /* in place */
                        }
                    }
                    check(&t, in, out, fresh, NULL, interleaved ? "interleaved" : "halves");
                    for (int k = 0; k < 2; k++)
                        guarded_free(fresh[k]);
                    guarded_free(data);
                    bench_end(&t);
                }
}

/* The same by hand, as docs/gated-delta.md writes it: rank 3, strides [row, 2 r, 1], a r elements behind b. */
static void the_views_are_plain_strides(void **state)
{
    (void)state;
    float data[2 * 24];
    ol_tensor projection = ol_tensor_contiguous(data, OL_FLOAT32, 2, SHAPE(2, 24)), b, a;
    ol_error error;
    assert_ok(ol_gated_delta_split(&projection, OL_GATE_INTERLEAVED, 4, &b, &a, &error), &error);
    ol_tensor by_hand = strided(data, OL_FLOAT32, 3, SHAPE(2, 4, 3), SHAPE(24, 6, 1));
    assert_memory_equal(b.shape, by_hand.shape, 3 * sizeof *b.shape);
    assert_memory_equal(b.strides, by_hand.strides, 3 * sizeof *b.strides);
    assert_memory_equal(a.strides, by_hand.strides, 3 * sizeof *a.strides);
    assert_ptr_equal(b.data, data);
    assert_ptr_equal(a.data, data + 3);
    projection.data = NULL;                                          /* shapes only, for ol_output_shapes */
    assert_ok(ol_gated_delta_split(&projection, OL_GATE_INTERLEAVED, 4, &b, &a, &error), &error);
    assert_null(b.data);
    assert_null(a.data);
    projection = ol_tensor_contiguous(NULL, OL_FLOAT32, 2, SHAPE(0, 0));
    assert_ok(ol_gated_delta_split(&projection, OL_GATE_INTERLEAVED, 4, &b, &a, &error), &error);
    assert_int_equal(b.shape[2], 0);
}

/* Weights in a GGUF's tiled order beside activations in grouped order: tiled head j HK + k is grouped head k r + j. */
static void tiled_weights_meet_grouped_activations(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    for (size_t i = 0; i < COUNT(geometries); i++) {
        const geometry *g = &geometries[i];
        bench t;
        bench_begin(&t, level_device(0), OL_BFLOAT16, g->key_heads * g->each, &random);
        ol_tensor in[4], out[2], tiled[2];
        void *fresh[2];
        ol_error error;
        for (int k = 0; k < 2; k++) {
            tiled[k] = t.in[2 + k];
            tiled[k].data = guarded_alloc((size_t)t.heads * ol_dtype_size(tiled[k].dtype), 0);
            for (int64_t v = 0; v < t.heads; v++)
                element_store(tiled[k].data, tiled[k].dtype, (size_t)(v % g->each * g->key_heads + v / g->each), element_load(t.in[2 + k].data, tiled[k].dtype, (size_t)v));
            assert_ok(ol_gated_delta_heads_view(&tiled[k], 0, g->key_heads, OL_HEADS_TILED, &in[2 + k], &error), &error);
            assert_ok(ol_gated_delta_heads_view(&t.in[k], 1, g->key_heads, OL_HEADS_GROUPED, &in[k], &error), &error);
            fresh[k] = guarded_alloc((size_t)(TOKENS * t.heads) * ol_dtype_size(t.out[k].dtype), 0);
            out[k] = t.out[k];
            out[k].data = fresh[k];
            assert_ok(ol_gated_delta_heads_view(&out[k], 1, g->key_heads, OL_HEADS_GROUPED, &out[k], &error), &error);
        }
        check(&t, in, out, fresh, NULL, "tiled weights");

        /* And the results stored in tiled order. */
        int64_t *order = malloc((size_t)t.heads * sizeof *order);
        assert_non_null(order);
        for (int64_t v = 0; v < t.heads; v++)
            order[v] = v % g->key_heads * g->each + v / g->key_heads;
        for (int k = 0; k < 2; k++) {
            out[k] = t.out[k];
            out[k].data = fresh[k];
            assert_ok(ol_gated_delta_heads_view(&out[k], 1, g->key_heads, OL_HEADS_TILED, &out[k], &error), &error);
        }
        check(&t, in, out, fresh, order, "tiled results");
        free(order);
        for (int k = 0; k < 2; k++) {
            guarded_free(fresh[k]);
            guarded_free(tiled[k].data);
        }
        bench_end(&t);
    }
}

/* Per channel: a [tokens, heads, channels], A_log [heads, 1], dt_bias [heads, channels]; every kind, against the reference. */
static void per_channel(void **state)
{
    (void)state;
    enum { HEADS = 5, CHANNELS = 6, N = TOKENS * HEADS * CHANNELS };
    uint64_t random = harness_seed;
    for (int i = 0; i < 200; i++) {
        ol_gate_options o = gate_random_options(&random);
        o.output = OL_GATE_LOG_DECAY_AND_DECAY;
        const gate_dtypes d = { OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, i % 2 ? OL_BFLOAT16 : OL_FLOAT32 };
        uint16_t b[TOKENS * HEADS], a[N];
        float rate[HEADS], log_decay[N], decay[N];
        uint32_t bias[HEADS * CHANNELS], beta[TOKENS * HEADS];
        random_fill(&random, b, OL_BFLOAT16, COUNT(b));
        random_fill(&random, a, OL_BFLOAT16, N);
        random_fill(&random, rate, OL_FLOAT32, HEADS);
        random_fill(&random, bias, d.bias, HEADS * CHANNELS);
        ol_tensor all[4] = { ol_tensor_contiguous(b, d.b, 2, SHAPE(TOKENS, HEADS)), ol_tensor_contiguous(a, d.a, 3, SHAPE(TOKENS, HEADS, CHANNELS)),
                             ol_tensor_contiguous(rate, d.rate, 2, SHAPE(HEADS, 1)), ol_tensor_contiguous(bias, d.bias, 2, SHAPE(HEADS, CHANNELS)) };
        ol_tensor results[3] = { ol_tensor_contiguous(beta, gate_beta_dtype(&o, d.b), 2, SHAPE(TOKENS, HEADS)),
                                 ol_tensor_contiguous(log_decay, OL_FLOAT32, 3, SHAPE(TOKENS, HEADS, CHANNELS)),
                                 ol_tensor_contiguous(decay, OL_FLOAT32, 3, SHAPE(TOKENS, HEADS, CHANNELS)) };
        ol_tensor in[4], out[3];
        ol_error error;
        gate_pick_inputs(&o, all, in);
        gate_pick_outputs(&o, results, out);
        ol_device *device = level_device((size_t)i % level_count());
        ol_composite *c = gate_composite(device, &o, &d);
        uint64_t before = ol_device_launches(device);
        assert_ok(ol_replay(c, NULL, in, out, &error), &error);
        assert_int_equal(ol_device_launches(device) - before, 1);
        for (int e = 0; e < N; e++) {
            int head = e / CHANNELS % HEADS, row = e / (CHANNELS * HEADS) * HEADS + head;
            gate_element at = { b[row], a[e], f32_bits(rate[head]), element_load(bias, d.bias, (size_t)(e % (HEADS * CHANNELS))) };
            gate_result right = gate_reference(&o, &d, &at);
            if (f32_bits(log_decay[e]) != right.log_decay || f32_bits(decay[e]) != right.decay ||
                (o.beta != OL_GATE_BETA_NONE && element_load(beta, gate_beta_dtype(&o, d.b), (size_t)row) != right.beta))
                fail_msg("%s: element %d differs", gate_describe(&o), e);
        }
        ol_composite_destroy(c);
    }
    gate_reference_end();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_of_a_projection), cmocka_unit_test(the_views_are_plain_strides),
        cmocka_unit_test(tiled_weights_meet_grouped_activations), cmocka_unit_test(per_channel),
    };
    return HARNESS_RUN(argc, argv, tests);
}
