/* The gate family on a GPU gives the CPU's bits: every kind, on all bfloat16 a and b, per channel, at strides, by replay and by the
 * composed path; and b and a as slices of one projection in the device's memory. */
#include "cuda_harness.h"
#include "gate_report_rows.h"

#include <stdlib.h>

#define FLOAT32 .sum = OL_GATE_SUM_FLOAT32

static const struct { const char *name; ol_gate_options options; } kinds[] = {
    { "softplus", { BOTH, .beta_dtype = OL_FLOAT32 } },
    { "softplus, float32", { BOTH, FLOAT32, .beta_rounding = OL_FLOAT32 } },
    { "softplus, finite negated rate", { BOTH, FLOAT32, .rate = OL_GATE_RATE_NEGATED, .finite_rate = 1, .beta = OL_GATE_BETA_DOUBLED } },
    { "no softplus", { .output = OL_GATE_LOG_DECAY, .skip_softplus = 1, .beta = OL_GATE_BETA_RAW, .beta_rounding = OL_FLOAT16 } },
    { "lower bound", { BOTH, .kind = OL_GATE_LOWER_BOUND, .lower_bound = -5, .beta = OL_GATE_BETA_DOUBLED, .beta_rounding = OL_FLOAT32 } },
    { "lower bound, float32, negated rate", { BOTH, FLOAT32, .kind = OL_GATE_LOWER_BOUND, .lower_bound = -5, .rate = OL_GATE_RATE_NEGATED, .finite_rate = 1 } },
    { "plain lower bound", { BOTH, .kind = OL_GATE_LOWER_BOUND_PLAIN, .lower_bound = -5 } },
    { "plain lower bound, float32", { FLOAT32, .kind = OL_GATE_LOWER_BOUND_PLAIN, .lower_bound = -5, .beta = OL_GATE_BETA_NONE } },
    { "clamped", { BOTH, .kind = OL_GATE_CLAMPED, .interval_low = 0x1p-10, .interval_high = 0x1p-3, .beta = OL_GATE_BETA_NONE } },
    { "clamped, float32, no softplus", { FLOAT32, .kind = OL_GATE_CLAMPED, .skip_softplus = 1, .interval_high = 100, .beta = OL_GATE_BETA_RAW } },
};

static both compile_gates(const ol_gate_options *o, ol_dtype act, ol_dtype rate)
{
    both b = { NULL, NULL };
    ol_error error;
    assert_ok(ol_gated_delta_gates_compile(cpu, o, act, act, rate, act, &b.on_cpu, &error), &error);
    assert_ok(ol_gated_delta_gates_compile(cuda, o, act, act, rate, act, &b.on_cuda, &error), &error);
    return b;
}

/* Inputs of these shapes, those left out that the options have no use for. */
static void add_inputs(scene *s, const ol_gate_options *o, manner how, ol_dtype act, ol_dtype rate, int32_t rank, const int64_t *shape)
{
    const int64_t heads[] = { shape[1], 1 };
    if (o->beta != OL_GATE_BETA_NONE)
        scene_add(s, how, act, 2, shape);
    scene_add(s, how, act, rank, shape);
    if (o->kind != OL_GATE_LOWER_BOUND_PLAIN)
        scene_add(s, DENSE, rate, rank - 1, heads);
    scene_add(s, DENSE, act, rank - 1, shape + 1);
}

static void every_kind(void **state)
{
    static const int64_t shapes[][3] = { { 1, 32, 0 }, { 65, 32, 0 }, { 3, 5, 7 }, { 2, 3, 128 } };
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (size_t d = 0; d < 2; d++) {
            ol_dtype act = d == 0 ? OL_BFLOAT16 : k % 2 ? OL_FLOAT32 : OL_FLOAT16;
            both b = compile_gates(&kinds[k].options, act, d == 0 ? OL_FLOAT32 : act);
            for (size_t i = 0; i < COUNT(shapes); i++) {
                scene s;
                scene_begin(&s);
                s.random += k * COUNT(shapes) + i;
                add_inputs(&s, &kinds[k].options, (manner)((k + i) % N_MANNERS), act, d == 0 ? OL_FLOAT32 : act, shapes[i][2] ? 3 : 2, shapes[i]);
                scene_add_outputs(&s, b.on_cpu, (manner)((k + 3 * i) % N_MANNERS), NULL);
                scene_check(&s, b.on_cpu, b.on_cuda, i == 2 ? WITH_COMPOSED : 0, kinds[k].name);
                scene_end(&s);
            }
            destroy_both(&b);
        }
}

static void every_bfloat16_a_and_b(void **state)
{
    const int64_t shape[] = { 2048, 32 };
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        both b = compile_gates(&kinds[k].options, OL_BFLOAT16, OL_FLOAT32);
        scene s;
        scene_begin(&s);
        add_inputs(&s, &kinds[k].options, DENSE, OL_BFLOAT16, OL_FLOAT32, 2, shape);
        for (int32_t t = 0; t < s.n_tensors; t++)
            for (uint32_t i = 0; s.tensors[t].rank == 2 && i < 65536; i++)
                element_store(s.bytes + s.offsets[t], OL_BFLOAT16, i, t ? i : i ^ 0x8000);
        for (int32_t t = 0; t < s.n_tensors; t++)                  /* weights of a trained model's range, beside which a decides */
            for (size_t i = 0; s.tensors[t].rank == 1 && i < 32; i++)
                element_store(s.bytes + s.offsets[t], s.tensors[t].dtype, i,
                              s.tensors[t].dtype == OL_FLOAT32 ? f32_bits((kinds[k].options.rate == OL_GATE_RATE_NEGATED ? -0.004f : -5.56f) * (1 + (float)i / 16)) : 0x4000 - 64 * i);
        scene_add_outputs(&s, b.on_cpu, DENSE, NULL);
        scene_check(&s, b.on_cpu, b.on_cuda, 0, kinds[k].name);
        scene_end(&s);
        destroy_both(&b);
    }
}

/* Every row of the reports, by both paths. (Those of tokens and slices: below.) */
static void reports(void **state)
{
    enum { N = 37 };
    (void)state;
    for (size_t r = 0; r < COUNT(gate_reports); r++) {
        const gate_report *report = &gate_reports[r];
        const ol_gate_options *o = &report->options;
        ol_composite *composite = NULL;
        ol_tensor in[4], out[3];
        int n_inputs = 0, has_rate = o->kind != OL_GATE_LOWER_BOUND_PLAIN;
        uint32_t host[N];
        ol_error error;
        assert_ok(ol_gated_delta_gates_compile(cuda, o, report->dtypes[0], report->dtypes[1], report->dtypes[2], report->dtypes[3], &composite, &error), &error);
        for (int k = 0; k < 4; k++) {
            if (k == 2 && !has_rate)
                continue;
            for (size_t i = 0; i < N; i++)
                element_store(host, report->dtypes[k], i, report->in[k]);
            in[n_inputs++] = vector_of(device_bytes(cuda, host, sizeof host), report->dtypes[k], N);
        }
        for (int path = 0; path < 2; path++) {
            for (int k = 0; k < 3; k++)
                out[k] = vector_of(device_bytes(cuda, NULL, sizeof host), ol_composite_output_dtype(composite, k), N);
            assert_ok(replay_paths[path](composite, stream, in, out, &error), &error);
            for (int k = 0; k < 3; k++) {
                download(cuda, stream, host, out[k].data, sizeof host);
                for (size_t i = 0; i < N; i++)
                    if (element_load(host, out[k].dtype, i) != report->out[k])
                        fail_msg("%s, row %zu, %s: output %d is %llx, expected %x", report->row, r, path_names[path], k, (unsigned long long)element_load(host, out[k].dtype, i), report->out[k]);
                device_give(cuda, out[k].data, sizeof host);
            }
        }
        for (int k = 0; k < n_inputs; k++)
            device_give(cuda, in[k].data, sizeof host);
        ol_composite_destroy(composite);
    }
}

/* G35, G41, G43, G45: per channel, b and a slices of wider rows; a token's bits do not depend on the tokens beside it. */
static void each_token_alone(void **state)
{
    enum { TOKENS = 9, HEADS = 3, CHANNELS = 5, EACH = HEADS * CHANNELS, ROW = HEADS + EACH + 4 };
    uint16_t rows[TOKENS * ROW], bias[EACH], beta[2][TOKENS * HEADS];
    float rate[HEADS], decay[2][TOKENS * EACH];
    uint64_t random = harness_seed;
    const ol_gate_options o = { .beta = OL_GATE_BETA_SIGMOID };
    both composites = compile_gates(&o, OL_BFLOAT16, OL_FLOAT32);
    ol_error error;
    (void)state;
    random_fill(&random, rows, OL_BFLOAT16, COUNT(rows));
    random_fill(&random, bias, OL_BFLOAT16, COUNT(bias));
    random_fill(&random, rate, OL_FLOAT32, COUNT(rate));
    uint16_t *on_device = device_bytes(cuda, rows, sizeof rows), *bias_on = device_bytes(cuda, bias, sizeof bias), *beta_on = device_bytes(cuda, NULL, sizeof beta[0]);
    float *rate_on = device_bytes(cuda, rate, sizeof rate), *decay_on = device_bytes(cuda, NULL, sizeof decay[0]);
    for (int alone = 0; alone < 2; alone++) {
        int64_t n = alone ? 1 : TOKENS;
        for (int64_t t = 0; t < TOKENS; t += n) {
            ol_tensor in[4] = { strided(on_device + t * ROW, OL_BFLOAT16, 2, SHAPE(n, HEADS), SHAPE(ROW, 1)),
                                strided(on_device + t * ROW + HEADS, OL_BFLOAT16, 3, SHAPE(n, HEADS, CHANNELS), SHAPE(ROW, CHANNELS, 1)),
                                ol_tensor_contiguous(rate_on, OL_FLOAT32, 2, SHAPE(HEADS, 1)), ol_tensor_contiguous(bias_on, OL_BFLOAT16, 2, SHAPE(HEADS, CHANNELS)) };
            ol_tensor out[2] = { ol_tensor_contiguous(beta_on + t * HEADS, OL_BFLOAT16, 2, SHAPE(n, HEADS)), ol_tensor_contiguous(decay_on + t * EACH, OL_FLOAT32, 3, SHAPE(n, HEADS, CHANNELS)) };
            assert_ok(ol_replay(composites.on_cuda, stream, in, out, &error), &error);
        }
        download(cuda, stream, beta[alone], beta_on, sizeof beta[0]);
        download(cuda, stream, decay[alone], decay_on, sizeof decay[0]);
    }
    assert_memory_equal(beta[0], beta[1], sizeof beta[0]);
    assert_memory_equal(decay[0], decay[1], sizeof decay[0]);
    device_give(cuda, on_device, sizeof rows);
    device_give(cuda, bias_on, sizeof bias);
    device_give(cuda, rate_on, sizeof rate);
    device_give(cuda, beta_on, sizeof beta[0]);
    device_give(cuda, decay_on, sizeof decay[0]);
    destroy_both(&composites);
}

/* Qwen3-Next's in_proj_ba: rows of [b of r heads, a of r heads] for each key head, read where they lie. */
static void interleaved_projection(void **state)
{
    enum { TOKENS = 3, KEY_HEADS = 4, EACH = 3, HEADS = KEY_HEADS * EACH, ROW = 2 * HEADS + 6 };
    uint16_t rows[TOKENS * ROW], bias[HEADS], beta[2][TOKENS * HEADS];
    float rate[HEADS], decay[2][TOKENS * HEADS];
    uint64_t random = harness_seed;
    const ol_gate_options o = { .beta = OL_GATE_BETA_SIGMOID };
    both composites = compile_gates(&o, OL_BFLOAT16, OL_FLOAT32);
    ol_error error;
    (void)state;
    random_fill(&random, rows, OL_BFLOAT16, COUNT(rows));
    random_fill(&random, bias, OL_BFLOAT16, COUNT(bias));
    random_fill(&random, rate, OL_FLOAT32, COUNT(rate));
    memset(beta, 0xA5, sizeof beta);
    memset(decay, 0xA5, sizeof decay);
    void *host[] = { rows, rate, bias, beta[0], decay[0] }, *device[5];
    const size_t n_bytes[] = { sizeof rows, sizeof rate, sizeof bias, sizeof beta[0], sizeof decay[0] };
    for (int i = 0; i < 5; i++)
        device[i] = device_bytes(cuda, host[i], n_bytes[i]);
    for (int on_cuda = 0; on_cuda < 2; on_cuda++) {
        void **at = on_cuda ? device : host;
        const int64_t heads = HEADS;
        ol_tensor projection = strided(at[0], OL_BFLOAT16, 2, SHAPE(TOKENS, 2 * HEADS), SHAPE(ROW, 1)), in[4], out[2];
        ol_tensor flat[] = { ol_tensor_contiguous(at[1], OL_FLOAT32, 1, &heads), ol_tensor_contiguous(at[2], OL_BFLOAT16, 1, &heads),
                             ol_tensor_contiguous(at[3], OL_BFLOAT16, 2, SHAPE(TOKENS, HEADS)), ol_tensor_contiguous(at[4], OL_FLOAT32, 2, SHAPE(TOKENS, HEADS)) };
        assert_ok(ol_gated_delta_split(&projection, OL_GATE_INTERLEAVED, KEY_HEADS, &in[0], &in[1], &error), &error);
        for (int i = 0; i < 2; i++) {
            assert_ok(ol_gated_delta_heads_view(&flat[i], 0, KEY_HEADS, OL_HEADS_GROUPED, &in[2 + i], &error), &error);
            assert_ok(ol_gated_delta_heads_view(&flat[2 + i], -1, KEY_HEADS, OL_HEADS_GROUPED, &out[i], &error), &error);
        }
        assert_ok(ol_replay(on_cuda ? composites.on_cuda : composites.on_cpu, on_cuda ? stream : NULL, in, out, &error), &error);
    }
    download(cuda, stream, beta[1], device[3], sizeof beta[1]);
    download(cuda, stream, decay[1], device[4], sizeof decay[1]);
    assert_memory_equal(beta[0], beta[1], sizeof beta[0]);
    assert_memory_equal(decay[0], decay[1], sizeof decay[0]);
    for (int i = 0; i < 5; i++)
        device_give(cuda, device[i], n_bytes[i]);
    destroy_both(&composites);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { CUDA_TEST(every_kind), CUDA_TEST(every_bfloat16_a_and_b), CUDA_TEST(reports), CUDA_TEST(each_token_alone),
                                        CUDA_TEST(interleaved_projection) };
    return CUDA_RUN(argc, argv, tests);
}
