/* Faults that others' kernels had, each with the smallest input that shows it and what is right. Named after the public reports. */
#include "precise.h"

#include "element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static ol_device *best(void) { return level_device(level_count() - 1); }

static step_case usual(int key_heads, int ratio, int K, int V, int64_t n, int64_t n_tokens)
{
    uint64_t random = harness_seed;
    step_case c;
    step_usual(&c, key_heads, ratio, K, V, n, n_tokens, &random);
    return c;
}

static void fill(step_case *c, int number, double value) { step_fill(c, number, value, 0, STEP_USUAL, &(uint64_t){ 1 }); }

static void give_int32(step_case *c, int number, int64_t n, const int32_t *values)
{
    step_give(c, number, OL_INT32, 1, &n, STEP_DENSE, NULL);
    memcpy(c->memory[number], values, (size_t)n * sizeof *values);
}

/* With keys of zeros a step only decays: state 1 becomes the decay. */
static float decay_of_step(float a, float dt_bias, float a_log, int finite_rate)
{
    step_case c = usual(1, 1, 16, 1, 1, 1);
    c.options.gates.finite_rate = finite_rate;
    fill(&c, AT_KEY, 0);
    fill(&c, AT_STATE, 1);
    fill(&c, AT_DECAY, a);
    fill(&c, AT_DECAY_BIAS, dt_bias);
    fill(&c, AT_DECAY_RATE, a_log);
    step_run(best(), &c);
    float decay = *(float *)c.memory[AT_STATE];
    step_free(&c);
    return decay;
}

/* lattice#314, #315, #426: an infinite rate times a softplus of 0 is NaN, as IEEE 754 has it and the header says; finite_rate makes it 1. */
static void test_lattice_314_infinite_rate(void **state)
{
    (void)state;
    assert_true(isnan(decay_of_step(-200, 0, 100, 0)));
    assert_true(decay_of_step(-200, 0, 100, 1) == 1);
}

/* mistral.rs, FlashInfer: log(1 + exp(89)) overflows and the state is wiped. */
static void test_mistral_rs_softplus_overflow(void **state)
{
    (void)state;
    assert_true(fabsf(decay_of_step(89, 0, -5.56f, 0) - 0.7099f) < 0.001f);
}

/* FlashInfer#3720: exp(c) exp(-c) of strong decays is 0 times infinity. A step multiplies decays up; nothing is divided by one. */
static void test_flashinfer_3720_strong_decays(void **state)
{
    (void)state;
    enum { T = 65 };
    step_case c = usual(1, 1, 64, 8, 1, T);
    step_fill(&c, AT_DECAY_RATE, 4.9, 0, STEP_USUAL, &(uint64_t){ 1 });
    step_fill(&c, AT_DECAY, 2, 3, STEP_USUAL, &(uint64_t){ 1 });
    precise p = precise_step(&c);
    step_run(best(), &c);
    for (size_t i = 0; i < p.n_outputs; i++)
        assert_true(fabsl(((float *)c.memory[AT_OUTPUT])[i] - p.output[i]) <= p.output_bound[i] && p.output_bound[i] < 1e-4L);
    precise_free(&p);
    step_free(&c);
}

/* fla#99, #104, #463: no decay (g = 0) is the plain delta rule, in every bit. */
static void test_fla_99_no_decay_is_plain_delta(void **state)
{
    (void)state;
    enum { T = 5 };
    step_case given = usual(1, 2, 64, 16, 1, T), logarithm;
    given.options.decay = OL_DELTA_DECAY_GIVEN;
    step_take_back(&given, AT_DECAY_RATE);
    step_take_back(&given, AT_DECAY_BIAS);
    fill(&given, AT_DECAY, 1);
    step_copy(&logarithm, &given);
    logarithm.options.decay = OL_DELTA_DECAY_LOGARITHM;
    fill(&logarithm, AT_DECAY, 0);
    step_run(best(), &given);
    step_run(best(), &logarithm);
    assert_memory_equal(given.memory[AT_OUTPUT], logarithm.memory[AT_OUTPUT], given.n_bytes[AT_OUTPUT]);
    assert_memory_equal(given.memory[AT_STATE], logarithm.memory[AT_STATE], given.n_bytes[AT_STATE]);
    /* And one that is very negative forgets everything, without a NaN. */
    step_case forgets = usual(1, 2, 64, 16, 1, T), zeros;
    forgets.options.decay = OL_DELTA_DECAY_LOGARITHM;
    step_take_back(&forgets, AT_DECAY_RATE);
    step_take_back(&forgets, AT_DECAY_BIAS);
    fill(&forgets, AT_DECAY, -1e30);
    step_copy(&zeros, &forgets);
    fill(&zeros, AT_STATE, 0);
    step_run(best(), &forgets);
    step_run(best(), &zeros);
    for (size_t i = 0; i < forgets.n_bytes[AT_OUTPUT] / sizeof(float); i++) {
        float x = ((float *)forgets.memory[AT_OUTPUT])[i], y = ((float *)zeros.memory[AT_OUTPUT])[i];
        assert_true(x == y && !isnan(x));
    }
    step_free(&given);
    step_free(&logarithm);
    step_free(&forgets);
    step_free(&zeros);
}

/* vllm#53877, sglang#38975 and others: beta rounded to bfloat16, or not. b = 0.5, v = 1, k a unit vector: the state becomes beta. */
static void test_vllm_53877_beta_rounding(void **state)
{
    (void)state;
    static const struct { ol_dtype b, rounding; float beta; } cases[] = {
        { OL_FLOAT32, 0, 0.62245935f },
        { OL_BFLOAT16, OL_FLOAT32, 0.62245935f },
        { OL_BFLOAT16, 0, 0.62109375f },
        { OL_FLOAT32, OL_BFLOAT16, 0.62109375f },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        step_case c = usual(1, 1, 16, 1, 1, 1);
        c.options.norm = OL_DELTA_NORM_NONE;
        c.options.update_dtype = cases[i].b;
        c.options.gates.beta_rounding = cases[i].rounding;
        step_give(&c, AT_UPDATE, cases[i].b, 2, (int64_t[]){ 1, 1 }, STEP_DENSE, NULL);
        fill(&c, AT_UPDATE, 0.5);
        fill(&c, AT_STATE, 0);
        fill(&c, AT_VALUE, 1);
        fill(&c, AT_KEY, 0);
        ((float *)c.memory[AT_KEY])[0] = 1;
        step_run(best(), &c);
        assert_true(*(float *)c.memory[AT_STATE] == cases[i].beta);
        step_free(&c);
    }
}

/* sglang#20741 and others: A_log of bfloat16 drifts; its dtype is an option, and the rate is taken in float32 from either. */
static void test_sglang_20741_a_log_dtype(void **state)
{
    (void)state;
    float decays[2];
    for (int half = 0; half < 2; half++) {
        step_case c = usual(1, 1, 16, 1, 1, 1);
        c.options.decay_rate_dtype = half ? OL_BFLOAT16 : OL_FLOAT32;
        step_give(&c, AT_DECAY_RATE, c.options.decay_rate_dtype, 1, (int64_t[]){ 1 }, STEP_DENSE, NULL);
        fill(&c, AT_DECAY_RATE, half ? -2.296875 : -2.3);        /* which -2.3 becomes */
        fill(&c, AT_KEY, 0);
        fill(&c, AT_STATE, 1);
        fill(&c, AT_DECAY, 3);
        fill(&c, AT_DECAY_BIAS, 0);
        step_run(best(), &c);
        decays[half] = *(float *)c.memory[AT_STATE];
        double expected = exp(-exp(half ? -2.296875 : (double)-2.3f) * log1p(exp(3)));
        assert_true(fabs(decays[half] - expected) < 1e-6);
        step_free(&c);
    }
    assert_true(decays[0] != decays[1]);
}

/* vllm#39064, #39025: the guard tests for -1 but the padding is 0, and slot 0 is corrupted. */
static void test_vllm_39064_padding_is_zero(void **state)
{
    (void)state;
    step_case c = usual(1, 1, 32, 16, 3, 1), before;
    step_give(&c, AT_STATE, OL_FLOAT32, 4, (int64_t[]){ 6, 1, 16, 32 }, STEP_DENSE, NULL);
    fill(&c, AT_STATE, 0.5);
    c.options.padding = OL_DELTA_PADDING_NOT_POSITIVE;
    give_int32(&c, AT_READ, 3, (int32_t[]){ 5, 0, 0 });
    step_copy(&before, &c);
    step_run(best(), &c);
    assert_memory_equal(c.memory[AT_STATE], before.memory[AT_STATE], 5 * 512 * sizeof(float));
    assert_memory_not_equal((float *)c.memory[AT_STATE] + 5 * 512, (float *)before.memory[AT_STATE] + 5 * 512, 512 * sizeof(float));
    step_free(&c);
    step_free(&before);
}

/* tokenspeed#700: -1 is clamped to 0 and slot 0 is written. */
static void test_tokenspeed_700_minus_one(void **state)
{
    (void)state;
    step_case c = usual(1, 1, 32, 16, 1, 1), before;
    give_int32(&c, AT_READ, 1, (int32_t[]){ -1 });
    step_copy(&before, &c);
    step_run(best(), &c);
    assert_memory_equal(c.memory[AT_STATE], before.memory[AT_STATE], c.n_bytes[AT_STATE]);
    step_free(&c);
    step_free(&before);
}

/* Megatron#6595: indices of a pool are given with states that are none, and all land on slot 0. */
static void test_megatron_6595_indices_without_pool(void **state)
{
    (void)state;
    step_case c = usual(1, 1, 32, 16, 2, 1);
    ol_error error;
    give_int32(&c, AT_READ, 2, (int32_t[]){ 2, 5 });
    assert_fails(step_try(best(), &c, &error), &error, OL_ERROR_ARGUMENT, "gated_delta_step", "read_slots of sequence 0: 2");
    step_free(&c);
}

/* fla#1077, unsloth-zoo#1092: more than 65535 sequences times heads. */
static void test_fla_1077_many_sequences(void **state)
{
    (void)state;
    enum { N = 70000 };
    step_case c = usual(1, 1, 4, 2, N, 1), last = usual(1, 1, 4, 2, 1, 1);
    static const int numbers[] = { AT_QUERY, AT_KEY, AT_VALUE, AT_UPDATE, AT_DECAY, AT_STATE };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        memcpy(last.memory[numbers[i]], (char *)c.memory[numbers[i]] + (N - 1) * last.n_bytes[numbers[i]] , last.n_bytes[numbers[i]]);
    memcpy(last.memory[AT_DECAY_RATE], c.memory[AT_DECAY_RATE], sizeof(float));
    memcpy(last.memory[AT_DECAY_BIAS], c.memory[AT_DECAY_BIAS], sizeof(float));
    step_run(best(), &c);
    step_run(best(), &last);
    assert_memory_equal((float *)c.memory[AT_OUTPUT] + (N - 1) * 2, last.memory[AT_OUTPUT], 2 * sizeof(float));
    assert_memory_equal((float *)c.memory[AT_STATE] + (N - 1) * 8, last.memory[AT_STATE], 8 * sizeof(float));
    step_free(&c);
    step_free(&last);
}

/* ollama#15865: a float32 state is written by way of bfloat16 activations. */
static void test_ollama_15865_state_dtype(void **state)
{
    (void)state;
    step_case c = usual(1, 1, 32, 16, 1, 1);
    int fine = 0;
    c.options.activation_dtype = OL_BFLOAT16;
    c.options.update_dtype = c.options.decay_dtype = c.options.decay_bias_dtype = OL_FLOAT32;
    static const int numbers[] = { AT_QUERY, AT_KEY, AT_VALUE, AT_OUTPUT };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        ol_tensor t = *step_tensor(&c, numbers[i]);
        step_give(&c, numbers[i], OL_BFLOAT16, t.rank, t.shape, STEP_DENSE, NULL);
        step_fill(&c, numbers[i], 0, 1, STEP_USUAL, &(uint64_t){ 3 });
    }
    step_run(best(), &c);
    for (int i = 0; i < 512; i++) {
        uint32_t bits;
        memcpy(&bits, (float *)c.memory[AT_STATE] + i, sizeof bits);
        fine += (bits & 0xffff) != 0;
    }
    assert_true(fine > 450);
    step_free(&c);
}

/* TensorRT-Model-Connect#725: a float16 state costs accuracy; the default is float32, and a 16-bit one is rounded once a call. */
static void test_model_connect_725_default_state(void **state)
{
    (void)state;
    enum { T = 64 };
    step_case c = usual(1, 1, 32, 16, 1, T), half;
    step_copy(&half, &c);
    half.options.state_dtype = OL_FLOAT16;
    step_give(&half, AT_STATE, OL_FLOAT16, 4, (int64_t[]){ 1, 1, 16, 32 }, STEP_DENSE, NULL);
    fill(&c, AT_STATE, 0.5);
    fill(&half, AT_STATE, 0.5);
    step_run(best(), &c);
    step_run(best(), &half);
    assert_memory_equal(c.memory[AT_OUTPUT], half.memory[AT_OUTPUT], c.n_bytes[AT_OUTPUT]);      /* one call: float32 inside */
    for (int i = 0; i < 512; i++) {
        uint16_t rounded;
        element_write(OL_FLOAT16, &rounded, ((float *)c.memory[AT_STATE])[i]);
        assert_int_equal(rounded, ((uint16_t *)half.memory[AT_STATE])[i]);
    }
    step_free(&c);
    step_free(&half);
}

/* TensorRT-LLM: epsilon outside of the root. |k| = 1e-6: k^ is 1e-6 / sqrt(1e-12 + 1e-6), nearly 1e-3, or 1e-6 / (1e-6 + 1e-6) = 1/2. */
static void test_tensorrt_llm_epsilon(void **state)
{
    (void)state;
    static const struct { ol_delta_norm norm; double first; } cases[] = {
        { OL_DELTA_NORM_RSQRT, 1e-3 }, { OL_DELTA_NORM_ADDED, 0.5 }, { OL_DELTA_NORM_MAXIMUM, 1 }, { OL_DELTA_NORM_RMS, 0.25e-3 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        step_case c = usual(1, 1, 16, 1, 1, 1);
        c.options.norm = cases[i].norm;
        c.options.gates.beta = OL_GATE_BETA_RAW;
        fill(&c, AT_UPDATE, 1);
        fill(&c, AT_STATE, 0);
        fill(&c, AT_VALUE, 1);
        fill(&c, AT_KEY, 0);
        ((float *)c.memory[AT_KEY])[0] = 1e-6f;
        step_run(best(), &c);
        assert_true(fabs(*(float *)c.memory[AT_STATE] - cases[i].first) < 1e-5 * cases[i].first);         /* u = 1 */
        step_free(&c);
    }
}

/* imp#500, #501: two live requests share a slot. */
static void test_imp_500_shared_slot(void **state)
{
    (void)state;
    step_case c = usual(1, 1, 32, 16, 3, 1);
    ol_error error;
    give_int32(&c, AT_READ, 3, (int32_t[]){ 0, 1, 0 });
    assert_fails(step_try(best(), &c, &error), &error, OL_ERROR_OVERLAP, "gated_delta_step", "slot 0 is written twice, the second time by sequence 2");
    step_free(&c);
}

/* NeMo-Automodel#2147, #2131: packed samples leak over their boundary. */
static void test_nemo_2147_packed_samples(void **state)
{
    (void)state;
    step_case packed = usual(1, 1, 32, 16, 7, 1), other;
    step_give(&packed, AT_STATE, OL_FLOAT32, 4, (int64_t[]){ 2, 1, 16, 32 }, STEP_DENSE, NULL);
    fill(&packed, AT_STATE, 0);
    give_int32(&packed, AT_CU_SEQLENS, 3, (int32_t[]){ 0, 3, 7 });
    step_copy(&other, &packed);
    step_fill(&other, AT_VALUE, 3, 2, STEP_USUAL, &(uint64_t){ 9 });           /* of all tokens; then the second sample's are put back */
    memcpy((float *)other.memory[AT_VALUE] + 3 * 16, (float *)packed.memory[AT_VALUE] + 3 * 16, 4 * 16 * sizeof(float));
    step_run(best(), &packed);
    step_run(best(), &other);
    assert_memory_not_equal(packed.memory[AT_OUTPUT], other.memory[AT_OUTPUT], 3 * 16 * sizeof(float));
    assert_memory_equal((float *)packed.memory[AT_OUTPUT] + 3 * 16, (float *)other.memory[AT_OUTPUT] + 3 * 16, 4 * 16 * sizeof(float));
    step_free(&packed);
    step_free(&other);
}

/* HF#46190, #46873: prefill and the steps after it differ. A recurrent prefill is the same function: splits give equal bits. */
static void test_hf_46190_step_after_prefill(void **state)
{
    (void)state;
    enum { T = 65 };
    step_case whole = usual(1, 2, 128, 32, 1, T), split;
    step_copy(&split, &whole);
    ol_gated_delta_arguments arguments = split.arguments;
    static const int numbers[] = { AT_QUERY, AT_KEY, AT_VALUE, AT_UPDATE, AT_DECAY, AT_OUTPUT };
    step_run(best(), &whole);
    for (int part = 0; part < 2; part++) {
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            ol_tensor *t = step_tensor(&split, numbers[i]);
            t->shape[0] = part ? 1 : T - 1;
            t->data = (char *)split.memory[numbers[i]] + (part ? (T - 1) * t->strides[0] * (int64_t)sizeof(float) : 0);
        }
        step_run(best(), &split);
    }
    split.arguments = arguments;
    assert_true(step_equal(&whole, &split));
    step_free(&whole);
    step_free(&split);
}

/* FlashInfer#3536: a sequence of no tokens. */
static void test_flashinfer_3536_no_tokens(void **state)
{
    (void)state;
    step_case c = usual(1, 1, 32, 16, 9, 1), before;
    step_give(&c, AT_STATE, OL_FLOAT32, 4, (int64_t[]){ 4, 1, 16, 32 }, STEP_DENSE, NULL);
    step_fill(&c, AT_STATE, 0, 1, STEP_USUAL, &(uint64_t){ 5 });
    give_int32(&c, AT_CU_SEQLENS, 4, (int32_t[]){ 0, 5, 5, 9 });
    give_int32(&c, AT_READ, 3, (int32_t[]){ 0, 1, 2 });
    give_int32(&c, AT_WRITE, 3, (int32_t[]){ 0, 3, 2 });
    step_copy(&before, &c);
    step_run(best(), &c);
    assert_memory_equal((float *)c.memory[AT_STATE] + 512, (float *)before.memory[AT_STATE] + 512, 512 * sizeof(float));
    assert_memory_equal((float *)c.memory[AT_STATE] + 3 * 512, (float *)before.memory[AT_STATE] + 512, 512 * sizeof(float));
    step_free(&c);
    step_free(&before);
}

/* fla#1242, #1240: what comes after a token changes its output. */
static void test_fla_1242_future_tokens(void **state)
{
    (void)state;
    enum { T = 64, PREFIX = 33 };
    step_case c = usual(1, 1, 64, 16, 1, T), other;
    step_copy(&other, &c);
    static const int numbers[] = { AT_QUERY, AT_KEY, AT_VALUE, AT_UPDATE, AT_DECAY };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        size_t n = (size_t)(PREFIX * step_tensor(&c, numbers[i])->strides[0]) * sizeof(float);
        step_fill(&other, numbers[i], 0, 30, STEP_USUAL, &(uint64_t){ 7 });
        memcpy(other.memory[numbers[i]], c.memory[numbers[i]], n);
    }
    step_run(best(), &c);
    step_run(best(), &other);
    assert_memory_equal(c.memory[AT_OUTPUT], other.memory[AT_OUTPUT], PREFIX * 16 * sizeof(float));
    assert_memory_not_equal((float *)c.memory[AT_OUTPUT] + PREFIX * 16, (float *)other.memory[AT_OUTPUT] + PREFIX * 16, 16 * sizeof(float));
    step_free(&c);
    step_free(&other);
}

/* tokenspeed#847, FlashKDA#3: the lower bound is a sigmoid's factor, not a clamp. x = 3, lb = -5, A_log = 0. */
static void test_tokenspeed_847_lower_bound(void **state)
{
    (void)state;
    step_case c = usual(1, 1, 16, 1, 1, 1);
    c.options.gates.kind = OL_GATE_LOWER_BOUND;
    c.options.gates.lower_bound = -5;
    fill(&c, AT_KEY, 0);
    fill(&c, AT_STATE, 1);
    fill(&c, AT_DECAY, 3);
    fill(&c, AT_DECAY_BIAS, 0);
    fill(&c, AT_DECAY_RATE, 0);
    step_run(best(), &c);
    assert_true(fabs(*(float *)c.memory[AT_STATE] - exp(-5 / (1 + exp(-3)))) < 1e-7);
    step_free(&c);
}

/* SlimServe#12, flash-moe, ik_llama#1654: heads in tiled order read as grouped; the negated exponential exponentiated again. */
static void test_slimserve_12_tiled_heads(void **state)
{
    (void)state;
    enum { HV = 32, HK = 16, K = 16, V = 1 };
    for (int tiled = 0; tiled < 2; tiled++) {
        step_case c = usual(HK, HV / HK, K, V, 1, 1);
        c.options.head_map = (ol_head_map)tiled;
        c.options.norm = OL_DELTA_NORM_NONE;
        c.options.gates.beta = OL_GATE_BETA_RAW;
        c.options.gates.rate = OL_GATE_RATE_NEGATED;
        fill(&c, AT_DECAY_RATE, -0.5);
        fill(&c, AT_DECAY, 1);
        fill(&c, AT_DECAY_BIAS, 0);
        fill(&c, AT_UPDATE, 1);
        fill(&c, AT_VALUE, 1);
        fill(&c, AT_STATE, 1);
        for (int h = 0; h < HK; h++)
            for (int k = 0; k < K; k++)
                ((float *)c.memory[AT_KEY])[h * K + k] = k == h;                /* key head h marks column h, and makes it 1 */
        step_run(best(), &c);
        for (int h = 0; h < HV; h++)
            for (int k = 0; k < K; k++) {
                float x = ((float *)c.memory[AT_STATE])[h * K + k];
                if (k == (tiled ? h % HK : h / (HV / HK)))
                    assert_true(x == 1);
                else
                    assert_true(fabs(x - exp(-0.5 * log1p(exp(1)))) < 1e-6);
            }
        step_free(&c);
    }
}

/* vllm#43534, #51305, #51370: b as a slice of a wider row; float32 activations. */
static void test_vllm_43534_strided_b(void **state)
{
    (void)state;
    enum { T = 4, HV = 6 };
    step_case c = usual(2, 3, 32, 16, T, 1), sliced;
    static float rows[T][2 * HV + 1];
    step_copy(&sliced, &c);
    for (int t = 0; t < T; t++)
        for (int h = 0; h < HV; h++) {
            rows[t][1 + h] = ((float *)c.memory[AT_UPDATE])[t * HV + h];
            rows[t][1 + HV + h] = ((float *)c.memory[AT_DECAY])[t * HV + h];
        }
    ol_error error;
    ol_tensor projection = ol_tensor_contiguous(&rows[0][1], OL_FLOAT32, 2, (int64_t[]){ T, 2 * HV });
    projection.strides[0] = 2 * HV + 1;
    assert_ok(ol_gated_delta_split(&projection, OL_GATE_HALVES, 2, &sliced.arguments.update, &sliced.arguments.decay, &error), &error);
    step_run(best(), &c);
    step_run(best(), &sliced);
    assert_memory_equal(c.memory[AT_OUTPUT], sliced.memory[AT_OUTPUT], c.n_bytes[AT_OUTPUT]);
    assert_memory_equal(c.memory[AT_STATE], sliced.memory[AT_STATE], c.n_bytes[AT_STATE]);
    step_free(&c);
    step_free(&sliced);
}

/* Qwen3-Next's in_proj_ba: b and a interleaved by key head, without a copy. */
static void test_interleaved_projection(void **state)
{
    (void)state;
    enum { T = 3, HK = 2, R = 3, HV = HK * R };
    step_case c = usual(HK, R, 32, 16, T, 1), sliced;
    static float rows[T][HK][2][R];
    step_copy(&sliced, &c);
    for (int t = 0; t < T; t++)
        for (int h = 0; h < HV; h++) {
            rows[t][h / R][0][h % R] = ((float *)c.memory[AT_UPDATE])[t * HV + h];
            rows[t][h / R][1][h % R] = ((float *)c.memory[AT_DECAY])[t * HV + h];
        }
    ol_error error;
    ol_tensor projection = ol_tensor_contiguous(rows, OL_FLOAT32, 2, (int64_t[]){ T, 2 * HV });
    assert_ok(ol_gated_delta_split(&projection, OL_GATE_INTERLEAVED, HK, &sliced.arguments.update, &sliced.arguments.decay, &error), &error);
    step_run(best(), &c);
    step_run(best(), &sliced);
    assert_memory_equal(c.memory[AT_OUTPUT], sliced.memory[AT_OUTPUT], c.n_bytes[AT_OUTPUT]);
    step_free(&c);
    step_free(&sliced);
}

/* prime-rl#3214: trainer and server disagree about a token's probability. One definition, at every level of instructions. */
static void test_prime_rl_3214_one_definition(void **state)
{
    (void)state;
    step_case before = usual(2, 2, 96, 48, 1, 63), expected;
    step_copy(&expected, &before);
    step_reference(&expected);
    for (size_t l = 0; l < level_count(); l++) {
        step_case c;
        step_copy(&c, &before);
        step_run(level_device(l), &c);
        assert_true(step_equal(&expected, &c));
        step_free(&c);
    }
    step_free(&before);
    step_free(&expected);
}

/* vLLM's kernel for decays per channel: unmasked loads, and a pointer advanced by the heads alone; T > 1 and K that is no power of two. */
static void test_vllm_per_channel_tokens(void **state)
{
    (void)state;
    enum { T = 3, HV = 2, K = 96 };
    step_case c = usual(2, 1, K, 16, 1, T);
    c.options.decay_per_channel = 1;
    step_give(&c, AT_DECAY, OL_FLOAT32, 3, (int64_t[]){ T, HV, K }, STEP_DENSE, NULL);
    step_give(&c, AT_DECAY_BIAS, OL_FLOAT32, 2, (int64_t[]){ HV, K }, STEP_DENSE, NULL);
    step_fill(&c, AT_DECAY, 0, 1, STEP_USUAL, &(uint64_t){ 2 });
    step_fill(&c, AT_DECAY_BIAS, 0, 1, STEP_USUAL, &(uint64_t){ 4 });
    precise p = precise_step(&c);
    step_run(best(), &c);
    for (size_t i = 0; i < p.n_outputs; i++)
        assert_true(fabsl(((float *)c.memory[AT_OUTPUT])[i] - p.output[i]) <= p.output_bound[i]);
    precise_free(&p);
    step_free(&c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lattice_314_infinite_rate),        cmocka_unit_test(test_mistral_rs_softplus_overflow),
        cmocka_unit_test(test_flashinfer_3720_strong_decays),
        cmocka_unit_test(test_fla_99_no_decay_is_plain_delta),   cmocka_unit_test(test_vllm_53877_beta_rounding),
        cmocka_unit_test(test_sglang_20741_a_log_dtype),         cmocka_unit_test(test_vllm_39064_padding_is_zero),
        cmocka_unit_test(test_tokenspeed_700_minus_one),         cmocka_unit_test(test_megatron_6595_indices_without_pool),
        cmocka_unit_test(test_fla_1077_many_sequences),          cmocka_unit_test(test_ollama_15865_state_dtype),
        cmocka_unit_test(test_model_connect_725_default_state),  cmocka_unit_test(test_tensorrt_llm_epsilon),
        cmocka_unit_test(test_imp_500_shared_slot),              cmocka_unit_test(test_nemo_2147_packed_samples),
        cmocka_unit_test(test_hf_46190_step_after_prefill),      cmocka_unit_test(test_flashinfer_3536_no_tokens),
        cmocka_unit_test(test_fla_1242_future_tokens),           cmocka_unit_test(test_tokenspeed_847_lower_bound),
        cmocka_unit_test(test_slimserve_12_tiled_heads),         cmocka_unit_test(test_vllm_43534_strided_b),
        cmocka_unit_test(test_interleaved_projection),           cmocka_unit_test(test_prime_rl_3214_one_definition),
        cmocka_unit_test(test_vllm_per_channel_tokens),
    };
    return HARNESS_RUN(argc, argv, tests);
}
