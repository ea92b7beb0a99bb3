/* What must not change a bit of a mixer step: how tokens are split into calls, the batch, slots, later tokens, threads, the layout of windows, the same run
 * again; and that the pieces run one by one, from the library's own parts, give what the one launch gives. */
#include "mixer_case.h"

#include "element.h"

#include <stdlib.h>
#include <string.h>

static ol_device *best(void) { return level_device(level_count() - 1); }

/* Qwen3.5 in small, bfloat16 but for the state. */
static mixer_case usual(ol_dtype activation, int64_t n, int64_t n_tokens, int64_t columns, uint64_t *random)
{
    mixer_case wide, c;
    mixer_usual(&wide, 2, 2, 48, 40, n, n_tokens, columns, random);
    c = wide;
    c.step.options.activation_dtype = activation;
    c.options.convolved_unrounded = 0;
    static const int narrowed[] = { AT_QUERY, AT_KEY, AT_VALUE, AT_UPDATE, AT_DECAY, AT_DECAY_BIAS, AT_OUTPUT };
    for (size_t i = 0; activation != OL_FLOAT32 && i < sizeof narrowed / sizeof *narrowed; i++) {
        ol_tensor t = *step_tensor(&c.step, narrowed[i]);
        step_give(&c.step, narrowed[i], activation, t.rank, t.shape, STEP_DENSE, random);
        step_fill(&c.step, narrowed[i], 0, 1, STEP_USUAL, random);
    }
    for (int i = 0; activation != OL_FLOAT32 && i < MIXER_TENSORS; i++) {
        ol_tensor t = *mixer_tensor(&c, i);
        if (i == AT_NORM_WEIGHT || !c.memory[i])
            continue;
        mixer_give(&c, i, activation, t.rank, t.shape, STEP_DENSE, random);
        mixer_fill(&c, i, 0, 1, STEP_USUAL, random);
    }
    return c;
}

static void run_tokens(ol_gated_delta_mixer *m, const mixer_case *c, int64_t first, int64_t n)
{
    ol_error error;
    const ol_gated_delta_mixer_arguments a = mixer_tokens(c, first, n);
    assert_ok(ol_gated_delta_mixer_step(m, NULL, &a, &error), &error);
}

static void check_equal(const mixer_case *a, const mixer_case *b, const char *what)
{
    if (!mixer_equal(a, b))
        fail_msg("%s", what);
}

/* Tokens of one sequence in calls of these sizes; a ring's positions go along. */
static void run_split(const mixer_case *c, const int *sizes, int n)
{
    ol_gated_delta_mixer *m = mixer_of(best(), c);
    mixer_case positions = *c;
    int32_t at = 0;
    for (int i = 0; i < n; i++) {
        if (c->options.window == OL_MIXER_WINDOW_RING)
            memcpy(positions.memory[AT_POSITIONS], &(int32_t){ 7 + at }, sizeof at);
        run_tokens(m, &positions, at, sizes[i]);
        at += sizes[i];
    }
    ol_gated_delta_mixer_destroy(m);
}

static void test_splits(void **state)
{
    (void)state;
    static const ol_dtype dtypes[] = { OL_FLOAT32, OL_BFLOAT16 };
    for (int d = 0; d < 2; d++)
        for (int columns = 3; columns <= 11; columns += columns < 5 ? 1 : 6)
            for (int ring = 0; ring < 2; ring++) {
                uint64_t random = harness_seed;
                mixer_case whole = usual(dtypes[d], 1, 8, columns, &random), ones, parts;
                if (ring) {
                    whole.options.window = OL_MIXER_WINDOW_RING;
                    mixer_table(&whole, AT_POSITIONS, 1, 0, (int32_t[]){ 7 });
                }
                mixer_copy(&ones, &whole);
                mixer_copy(&parts, &whole);
                run_split(&whole, (int[]){ 8 }, 1);
                run_split(&ones, (int[]){ 1, 1, 1, 1, 1, 1, 1, 1 }, 8);
                run_split(&parts, (int[]){ 2, 5, 0, 1 }, 4);
                if (ring) {                      /* the table is not a result */
                    memcpy(ones.memory[AT_POSITIONS], whole.memory[AT_POSITIONS], 4);
                    memcpy(parts.memory[AT_POSITIONS], whole.memory[AT_POSITIONS], 4);
                }
                check_equal(&whole, &ones, "8 calls of 1");
                check_equal(&whole, &parts, "calls of 2, 5, 0 and 1");
                mixer_free(&whole);
                mixer_free(&ones);
                mixer_free(&parts);
            }
}

/* Prefill of more tokens than a chunk has, and the same tokens one by one. */
static void test_prefill_is_decode(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    mixer_case whole = usual(OL_BFLOAT16, 1, 70, 3, &random), ones;
    mixer_copy(&ones, &whole);
    run_split(&whole, (int[]){ 70 }, 1);
    int sizes[70];
    for (int i = 0; i < 70; i++)
        sizes[i] = 1;
    run_split(&ones, sizes, 70);
    check_equal(&whole, &ones, "70 calls of 1");
    mixer_free(&whole);
    mixer_free(&ones);
}

/* Five sequences at once, and each alone in the same slot; other slots give the same outputs. */
static void test_batch_and_slots(void **state)
{
    (void)state;
    enum { N = 5, T = 3 };
    static const int32_t order[N] = { 4, 0, 3, 1, 2 };
    uint64_t random = harness_seed;
    mixer_case batch = usual(OL_BFLOAT16, N, T, 4, &random), alone, moved;
    mixer_copy(&alone, &batch);
    mixer_copy(&moved, &batch);
    mixer_run(best(), &batch);
    ol_gated_delta_mixer *m = mixer_of(best(), &alone);
    for (int32_t i = 0; i < N; i++) {
        mixer_step_table(&alone, AT_READ, 1, 0, &i);
        run_tokens(m, &alone, i * T, T);
    }
    ol_gated_delta_mixer_destroy(m);
    step_take_back(&alone.step, AT_READ);
    check_equal(&batch, &alone, "each alone");
    /* Slots in another order: the pools' contents with them. */
    static const int pools[] = { OF_WINDOW, OF_PART + OF_WINDOW, 2 * OF_PART + OF_WINDOW };
    mixer_case before;
    mixer_copy(&before, &moved);
    mixer_step_table(&moved, AT_READ, N, 0, order);
    for (int i = 0; i < N; i++) {
        size_t n = moved.step.n_bytes[AT_STATE] / N;
        memcpy((char *)moved.step.memory[AT_STATE] + (size_t)order[i] * n, (char *)before.step.memory[AT_STATE] + (size_t)i * n, n);
        for (int p = 0; p < 3; p++) {
            n = moved.n_bytes[pools[p]] / N;
            memcpy((char *)moved.memory[pools[p]] + (size_t)order[i] * n, (char *)before.memory[pools[p]] + (size_t)i * n, n);
        }
    }
    mixer_run(best(), &moved);
    assert_memory_equal(moved.step.memory[AT_OUTPUT], batch.step.memory[AT_OUTPUT], batch.step.n_bytes[AT_OUTPUT]);
    for (int i = 0; i < N; i++) {
        size_t n = moved.n_bytes[OF_WINDOW] / N;
        assert_memory_equal((char *)moved.memory[OF_WINDOW] + (size_t)order[i] * n, (char *)batch.memory[OF_WINDOW] + (size_t)i * n, n);
    }
    mixer_free(&before);
    mixer_free(&batch);
    mixer_free(&alone);
    mixer_free(&moved);
}

/* One device of several threads, items few and many, chunks one and many. */
static void test_threads(void **state)
{
    (void)state;
    static const struct { int64_t n, tokens; } cases[] = { { 1, 1 }, { 9, 1 }, { 3, 4 }, { 2, 60 }, { 40, 2 } };
    static const int n_threads[] = { 2, 3, 7 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t random = harness_seed + i;
        mixer_case c, one;
        mixer_usual(&c, 3, 3, 96, 128, cases[i].n, cases[i].tokens, 3, &random);
        mixer_copy(&one, &c);
        mixer_run(best(), &one);
        for (size_t t = 0; t < sizeof n_threads / sizeof *n_threads; t++) {
            mixer_case many;
            ol_device *device;
            ol_error error;
            const ol_cpu_options options = { .n_threads = n_threads[t] };
            assert_ok(ol_device_cpu(&options, &device, &error), &error);
            for (int again = 0; again < 2; again++) {
                mixer_copy(&many, &c);
                mixer_run(device, &many);
                check_equal(&one, &many, "threads");
                mixer_free(&many);
            }
            assert_int_equal(ol_device_launches(device), 2);
            ol_device_destroy(device);
        }
        mixer_free(&c);
        mixer_free(&one);
    }
}

/* Windows as [slots, C, columns] and as [slots, columns, C], weights as [C, W] and as [W, C], and all in one joint tensor by
 * ol_gated_delta_mixer_split: the same bits. */
static void test_layouts(void **state)
{
    (void)state;
    enum { HK = 2, HV = 4, K = 48, V = 40, C = 2 * HK * K + HV * V, L = 3, W = 4, T = 2 };
    uint64_t random = harness_seed;
    mixer_case c = usual(OL_BFLOAT16, 1, T, L, &random), plain;
    const int64_t in_shape[] = { T, C + HV * V }, weight_shape[] = { C, W };
    uint16_t *projection = calloc(T * (C + HV * V), 2), *weights = calloc(C * W, 2), *windows = calloc(C * L, 2);
    assert_true(projection && weights && windows);
    for (int i = 0; i < T * (C + HV * V); i++)
        element_write(OL_BFLOAT16, projection + i, (float)step_normal(&random));
    for (int i = 0; i < C * W; i++)
        element_write(OL_BFLOAT16, weights + i, (float)step_normal(&random));
    for (int i = 0; i < C * L; i++)
        element_write(OL_BFLOAT16, windows + i, (float)step_normal(&random));
    ol_gated_delta_options g = mixer_options_of(&c).recurrence;
    mixer_copy(&plain, &c);
    for (int variant = 0; variant < 4; variant++) {
        int channels_last = variant & 1, taps_first = variant >> 1;
        uint16_t *moved_windows = malloc(C * L * 2), *moved_weights = malloc(C * W * 2);
        assert_true(moved_windows && moved_weights);
        ol_tensor in = ol_tensor_contiguous(projection, OL_BFLOAT16, 2, in_shape), weight = ol_tensor_contiguous(moved_weights, OL_BFLOAT16, 2, weight_shape);
        ol_tensor window = ol_tensor_contiguous(moved_windows, OL_BFLOAT16, 3, (int64_t[]){ 1, C, L });
        if (channels_last) {
            window.strides[1] = 1;
            window.strides[2] = C;
        }
        if (taps_first) {
            weight.strides[0] = 1;
            weight.strides[1] = C;
        }
        for (int64_t i = 0; i < C; i++) {
            for (int64_t l = 0; l < L; l++)
                memcpy(element_at(&window, (int64_t[]){ 0, i, l }), windows + i * L + l, 2);
            for (int64_t w = 0; w < W; w++)
                memcpy(element_at(&weight, (int64_t[]){ i, w }), weights + i * W + w, 2);
        }
        mixer_case run;
        mixer_copy(&run, &c);
        ol_gated_delta_mixer_arguments *a = &run.arguments;
        ol_gated_delta_arguments *r = &run.step.arguments;
        ol_error error;
        assert_ok(ol_gated_delta_mixer_split(&in, 1, OL_MIXER_JOINT, &g, &r->query, &r->key, &r->value, &a->gate, &error), &error);
        assert_ok(ol_gated_delta_mixer_split(&weight, 0, OL_MIXER_JOINT, &g, &a->query.weight, &a->key.weight, &a->value.weight, NULL, &error), &error);
        assert_ok(ol_gated_delta_mixer_split(&window, 1, OL_MIXER_JOINT, &g, &a->query.window, &a->key.window, &a->value.window, NULL, &error), &error);
        mixer_run(best(), &run);
        for (int64_t i = 0; i < C; i++) {            /* W - 1 columns, two tokens: one old column is left */
            assert_memory_equal(element_at(&window, (int64_t[]){ 0, i, 0 }), windows + i * L + 2, 2);
            assert_memory_equal(element_at(&window, (int64_t[]){ 0, i, 2 }), projection + (C + HV * V) + i, 2);
        }
        if (variant == 0) {
            mixer_free(&plain);
            mixer_copy(&plain, &run);
        }
        assert_memory_equal(plain.step.memory[AT_OUTPUT], run.step.memory[AT_OUTPUT], run.step.n_bytes[AT_OUTPUT]);
        assert_memory_equal(plain.step.memory[AT_STATE], run.step.memory[AT_STATE], run.step.n_bytes[AT_STATE]);
        mixer_free(&run);
        free(moved_windows);
        free(moved_weights);
    }
    mixer_free(&plain);
    mixer_free(&c);
    free(projection);
    free(weights);
    free(windows);
}

/* ---- The pieces one by one ---- */

typedef struct tap {
    ol_gated_delta_mixer_options o;
    int width;
} tap;

static ol_value rounded(ol_graph *g, ol_value x, ol_dtype dtype) { return ol_astype(g, ol_astype(g, x, dtype), OL_FLOAT32); }

/* bias, then inputs from the oldest to the newest, then their weights. */
static int build_convolution(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    const tap *t = user;
    ol_dtype act = t->o.recurrence.activation_dtype;
    ol_value sum = in[0];
    for (int w = 0; w < t->width; w++)
        sum = ol_fma(g, ol_astype(g, in[1 + w], OL_FLOAT32), ol_astype(g, in[1 + t->width + w], OL_FLOAT32), sum);
    if (t->o.sum_rounded)
        sum = rounded(g, sum, act);
    out[0] = ol_silu(g, sum);
    if (!t->o.convolved_unrounded)
        out[0] = rounded(g, out[0], act);
    return 0;
}

static int build_norm(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    const tap *t = user;
    ol_dtype act = t->o.recurrence.activation_dtype;
    ol_value n = ol_multiply(g, in[0], ol_rsqrt(g, in[1]));
    if (t->o.normalized_rounded)
        n = rounded(g, n, act);
    n = ol_multiply(g, n, in[2]);
    if (t->o.weighted_rounded)
        n = rounded(g, n, act);
    out[0] = ol_astype(g, ol_multiply(g, n, ol_silu(g, ol_astype(g, in[3], OL_FLOAT32))), act);
    return 0;
}

static ol_composite *compile(ol_builder builder, const ol_dtype *dtypes)
{
    ol_composite *c;
    ol_error error;
    assert_ok(ol_compile(best(), &builder, dtypes, &c, &error), &error);
    return c;
}

/* The convolution of part p's single sequence, by the composite, from a line of its window and its inputs. */
static float *convolve_by_composite(const mixer_case *c, int part, tap *t)
{
    const ol_gated_delta_convolution *convs[] = { &c->arguments.query, &c->arguments.key, &c->arguments.value };
    const ol_tensor *inputs[] = { &c->step.arguments.query, &c->step.arguments.key, &c->step.arguments.value };
    ol_dtype act = c->step.options.activation_dtype, dtypes[9] = { OL_FLOAT32 };
    int64_t T = inputs[part]->shape[0], channels = inputs[part]->shape[1] * inputs[part]->shape[2], columns = convs[part]->window.shape[3];
    int W = t->width;
    char *line = malloc((size_t)((T + W - 1) * channels) * ol_dtype_size(act));
    float zero = 0, *result = malloc((size_t)(T * channels) * sizeof *result);
    assert_true(line && result);
    size_t size = ol_dtype_size(act);
    for (int64_t i = 0; i < W - 1; i++)
        for (int64_t ch = 0; ch < channels; ch++)
            memcpy(line + (size_t)(i * channels + ch) * size, (char *)convs[part]->window.data + (size_t)(ch * columns + columns - (W - 1) + i) * size, size);
    memcpy(line + (size_t)((W - 1) * channels) * size, inputs[part]->data, (size_t)(T * channels) * size);
    ol_tensor in[9] = { ol_tensor_contiguous(&zero, OL_FLOAT32, 0, NULL) }, out = ol_tensor_contiguous(result, OL_FLOAT32, 2, (int64_t[]){ T, channels });
    for (int w = 0; w < W; w++) {
        in[1 + w] = ol_tensor_contiguous(line + (size_t)(w * channels) * size, act, 2, (int64_t[]){ T, channels });
        in[1 + W + w] = (ol_tensor){ .data = (char *)convs[part]->weight.data + (size_t)w * size, .dtype = act, .rank = 1, .shape = { channels }, .strides = { W } };
        dtypes[1 + w] = dtypes[1 + W + w] = act;
    }
    ol_composite *composite = compile((ol_builder){ .build = build_convolution, .user = t, .n_inputs = 1 + 2 * W, .n_outputs = 1 }, dtypes);
    ol_error error;
    assert_ok(ol_replay(composite, NULL, in, &out, &error), &error);
    ol_composite_destroy(composite);
    free(line);
    return result;
}

static void pieces(ol_dtype activation, ol_gated_delta_mixer_options changes)
{
    uint64_t random = harness_seed;
    mixer_case c = usual(activation, 1, 5, 4, &random), fused;
    c.options.sum_rounded = changes.sum_rounded;
    c.options.convolved_unrounded = changes.convolved_unrounded;
    c.options.normalized_rounded = changes.normalized_rounded;
    c.options.weighted_rounded = changes.weighted_rounded;
    c.options.output_unrounded = changes.output_unrounded;
    mixer_copy(&fused, &c);
    mixer_run(best(), &fused);
    tap t = { mixer_options_of(&c), 4 };
    const ol_gated_delta_options *g = &c.step.options;
    int64_t T = 5, HK = g->key_heads, HV = g->value_heads, K = g->key_dim, V = g->value_dim;
    float *q = convolve_by_composite(&c, 0, &t), *k = convolve_by_composite(&c, 1, &t), *v = convolve_by_composite(&c, 2, &t);
    float *o = malloc((size_t)(T * HV * V) * sizeof *o), *mean_square = malloc((size_t)(T * HV) * sizeof(float));
    assert_true(o && mean_square);
    /* The recurrence on float32. */
    ol_gated_delta_options wide = *g;
    ol_gated_delta_arguments a = c.step.arguments;
    wide.update_dtype = wide.decay_dtype = wide.decay_bias_dtype = activation;
    wide.activation_dtype = wide.output_dtype = OL_FLOAT32;
    a.query = ol_tensor_contiguous(q, OL_FLOAT32, 3, (int64_t[]){ T, HK, K });
    a.key = ol_tensor_contiguous(k, OL_FLOAT32, 3, (int64_t[]){ T, HK, K });
    a.value = ol_tensor_contiguous(v, OL_FLOAT32, 3, (int64_t[]){ T, HV, V });
    a.output = ol_tensor_contiguous(o, OL_FLOAT32, 3, (int64_t[]){ T, HV, V });
    ol_gated_delta *layer;
    ol_error error;
    assert_ok(ol_gated_delta_create(best(), &wide, &layer, &error), &error);
    assert_ok(ol_gated_delta_step(layer, NULL, &a, &error), &error);
    ol_gated_delta_destroy(layer);
    /* The norm: its sum in the documented order, all else by a composite. */
    for (int64_t h = 0; h < T * HV; h++) {
        float *x = o + h * V;
        for (int64_t i = 0; !c.options.output_unrounded && i < V; i++) {
            char narrow[4];
            element_write(activation, narrow, x[i]);
            x[i] = (float)element_read(activation, narrow);
        }
        float mean = order_dot(x, x, (int)V) / (float)V;
        mean_square[h] = mean + 1e-6f;
    }
    const ol_dtype dtypes[] = { OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, activation };
    ol_tensor in[] = { ol_tensor_contiguous(o, OL_FLOAT32, 2, (int64_t[]){ T * HV, V }), ol_tensor_contiguous(mean_square, OL_FLOAT32, 2, (int64_t[]){ T * HV, 1 }),
                       c.arguments.norm_weight, ol_tensor_contiguous(c.arguments.gate.data, activation, 2, (int64_t[]){ T * HV, V }) };
    ol_tensor out = ol_tensor_contiguous(c.step.memory[AT_OUTPUT], activation, 2, (int64_t[]){ T * HV, V });
    ol_composite *norm = compile((ol_builder){ .build = build_norm, .user = &t, .n_inputs = 4, .n_outputs = 1 }, dtypes);
    assert_ok(ol_replay(norm, NULL, in, &out, &error), &error);
    ol_composite_destroy(norm);
    assert_memory_equal(c.step.memory[AT_OUTPUT], fused.step.memory[AT_OUTPUT], c.step.n_bytes[AT_OUTPUT]);
    assert_memory_equal(c.step.memory[AT_STATE], fused.step.memory[AT_STATE], c.step.n_bytes[AT_STATE]);
    free(q);
    free(k);
    free(v);
    free(o);
    free(mean_square);
    mixer_free(&c);
    mixer_free(&fused);
}

static void test_pieces_one_by_one(void **state)
{
    (void)state;
    static const ol_dtype dtypes[] = { OL_FLOAT32, OL_FLOAT16, OL_BFLOAT16 };
    for (int d = 0; d < 3; d++)
        for (int roundings = 0; roundings < 32; roundings++)
            pieces(dtypes[d], (ol_gated_delta_mixer_options){ .sum_rounded = roundings & 1, .convolved_unrounded = roundings & 2, .output_unrounded = roundings & 4,
                                                              .normalized_rounded = roundings & 8, .weighted_rounded = roundings & 16 });
}

/* What comes later changes nothing before it. */
static void test_suffix(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    mixer_case c = usual(OL_BFLOAT16, 1, 24, 3, &random), other;
    mixer_copy(&other, &c);
    static const int changed[] = { AT_QUERY, AT_KEY, AT_VALUE, AT_UPDATE, AT_DECAY };
    const int64_t same = 19;
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        ol_tensor later = *step_tensor(&other.step, changed[i]);
        later.data = (char *)later.data + same * later.strides[0] * (int64_t)ol_dtype_size(later.dtype);
        later.shape[0] -= same;
        tensor_fill(&later, 1, 3, STEP_SPECIAL, &random);
    }
    mixer_run(best(), &c);
    mixer_run(best(), &other);
    size_t row = c.step.n_bytes[AT_OUTPUT] / 24;
    assert_memory_equal(c.step.memory[AT_OUTPUT], other.step.memory[AT_OUTPUT], (size_t)same * row);
    assert_memory_not_equal(c.step.memory[AT_OUTPUT], other.step.memory[AT_OUTPUT], 24 * row);
    mixer_free(&c);
    mixer_free(&other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splits),  cmocka_unit_test(test_prefill_is_decode), cmocka_unit_test(test_batch_and_slots), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_pieces_one_by_one), cmocka_unit_test(test_suffix),
    };
    return HARNESS_RUN(argc, argv, tests);
}
