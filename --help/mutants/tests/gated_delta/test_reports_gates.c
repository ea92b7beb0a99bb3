/* Public bug reports on gated-delta kernels: those rows that are about gates. Each test is named after its row; what
 * can be said by inputs and bits is in gate_report_rows.h, for a GPU too. */
#include "gate_report_rows.h"
#include "gate_runs.h"

#include <math.h>

#define OPTIONS(...) (ol_gate_options){ __VA_ARGS__ }

static const gate_dtypes all_float32 = { OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32 };

static uint64_t bf16(float x) { return f32_bits(x) >> 16; }            /* of numbers that bfloat16 holds */

/* One element at every level and by both paths, against the reference; gives the results. */
static gate_result run(ol_gate_options o, gate_dtypes dtypes, gate_element element)
{
    gate_elements e = gate_elements_make(dtypes, 37);                  /* a vector body and a tail */
    for (size_t i = 0; i < e.n; i++)
        e.at[i] = element;
    gate_check(&o, &e, "a report");
    gate_elements_free(&e);
    return gate_reference(&o, &dtypes, &element);
}

/* The rows of a report. */
static void run_rows(const char *row)
{
    int n = 0;
    for (size_t i = 0; i < COUNT(gate_reports); i++) {
        const gate_report *report = &gate_reports[i];
        const ol_dtype *d = report->dtypes;
        if (strcmp(report->row, row) != 0)
            continue;
        n++;
        gate_result r = run(report->options, (gate_dtypes){ d[0], d[1], d[2], d[3] }, (gate_element){ report->in[0], report->in[1], report->in[2], report->in[3] });
        if (r.beta != report->out[0] || r.log_decay != report->out[1] || r.decay != report->out[2])
            fail_msg("%s, %s: a %08x, rate %08x: beta %08llx, log decay %08llx, decay %08llx; expected %08x, %08x, %08x", row, gate_describe(&report->options), report->in[1],
                     report->in[2], (unsigned long long)r.beta, (unsigned long long)r.log_decay, (unsigned long long)r.decay, report->out[0], report->out[1], report->out[2]);
    }
    assert_true(n > 0);
}

#define ROWS(name, row) static void name(void **state) { (void)state; run_rows(row); }
ROWS(G1_infinite_rate, "G1")
ROWS(G5_log_decay_of_strong_rates, "G5")
ROWS(G7_decay_of_one_and_zero, "G7")
ROWS(G9_beta_rounded_or_not, "G9")
ROWS(G37_lower_bound_is_no_clamp, "G37")

/* No threshold, and no overflow without one: softplus(89) is 89. */
static void G3_softplus_of_89(void **state)
{
    (void)state;
    run_rows("G3");
    /* Around every threshold in use the result moves by no more than its inputs do. */
    static const float around[] = { 15, 20, 88.7f, 88.72283f, 104 };
    for (size_t i = 0; i < COUNT(around); i++) {
        float below = f32_of(run(OPTIONS(BOTH), all_float32, (gate_element){ 0, f32_bits(nextafterf(around[i], 0)), 0, 0 }).log_decay);
        float above = f32_of(run(OPTIONS(BOTH), all_float32, (gate_element){ 0, f32_bits(nextafterf(around[i], 999)), 0, 0 }).log_decay);
        assert_true(above <= below && below - above <= 4 * 0x1p-23f * around[i]);
    }
}

/* A_log keeps the dtype that the checkpoint has, whatever the activations'; it is never narrowed. */
static void G11_A_log_in_its_own_dtype(void **state)
{
    (void)state;
    run_rows("G11");
    const gate_dtypes wide = { OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16 }, narrow = { OL_BFLOAT16, OL_BFLOAT16, OL_BFLOAT16, OL_BFLOAT16 };
    gate_result kept = run(OPTIONS(BOTH), wide, (gate_element){ 0, bf16(1), f32_bits(-2.3f), 0 });
    gate_result loaded = run(OPTIONS(BOTH), narrow, (gate_element){ 0, bf16(1), bf16(-2.296875f), 0 });     /* -2.3 in bfloat16 */
    gate_result widened = run(OPTIONS(BOTH), wide, (gate_element){ 0, bf16(1), f32_bits(-2.296875f), 0 });
    assert_int_not_equal(kept.decay, loaded.decay);
    assert_int_equal(loaded.decay, widened.decay);
}

/* Each tensor has its own dtype: bfloat16 activations beside float32 results; another dtype is refused, not written through. */
static void G21_dtypes_are_separate(void **state)
{
    (void)state;
    run_rows("G21");
    ol_error error = { 0 };
    uint16_t b[4] = { 0 }, a[4] = { 0 }, narrow[4];
    float rate[4] = { 0 }, beta[4], decay[4];
    memset(decay, 0x77, sizeof decay);
    memset(narrow, 0x77, sizeof narrow);
    const ol_gate_options o = OPTIONS(.beta_rounding = OL_FLOAT32);
    ol_composite *c = gate_composite(level_device(0), &o, &(gate_dtypes){ OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16 });
    ol_tensor in[4] = { vector_of(b, OL_BFLOAT16, 4), vector_of(a, OL_BFLOAT16, 4), vector_of(rate, OL_FLOAT32, 4), vector_of(a, OL_BFLOAT16, 4) };
    ol_tensor out[2] = { vector_of(beta, OL_FLOAT32, 4), vector_of(narrow, OL_BFLOAT16, 4) };
    assert_fails(ol_replay(c, NULL, in, out, &error), &error, OL_ERROR_DTYPE, "gated_delta_gates", "");
    for (int i = 0; i < 4; i++)
        assert_int_equal(narrow[i], 0x7777);
    out[1] = vector_of(decay, OL_FLOAT32, 4);
    assert_ok(ol_replay(c, NULL, in, out, &error), &error);
    assert_true(beta[3] == 0.5f && f32_bits(decay[3]) == gate_reference(&o, &(gate_dtypes){ OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16 }, &(gate_element){ 0, 0, 0, 0 }).decay);
    ol_composite_destroy(c);
}

/* ssm_a is -exp(A_log) already: the same bits as from A_log, and the rate is not exponentiated again. (Tiled heads: test_gate_views.) */
static void G39_negated_exponential(void **state)
{
    (void)state;
    run_rows("G39");
    static const float rate_logarithms[] = { -5.56f, -2.3f, 0, 1, 4.9f, 88.7f };
    for (size_t i = 0; i < COUNT(rate_logarithms); i++) {
        float ssm_a = -(float)expl((long double)rate_logarithms[i]);
        gate_element from_log = { 0, f32_bits(-1.5f), f32_bits(rate_logarithms[i]), f32_bits(0.25f) }, from_file = from_log;
        from_file.rate = f32_bits(ssm_a);
        gate_result right = run(OPTIONS(BOTH), all_float32, from_log), stored = run(OPTIONS(BOTH, NEGATED), all_float32, from_file);
        gate_result twice = run(OPTIONS(BOTH), all_float32, from_file);
        assert_int_equal(right.log_decay, stored.log_decay);
        assert_int_equal(right.decay, stored.decay);
        assert_int_not_equal(right.log_decay, twice.log_decay);
        right = run(OPTIONS(BOTH, LOWER_BOUND), all_float32, from_log);
        stored = run(OPTIONS(BOTH, LOWER_BOUND, NEGATED), all_float32, from_file);
        assert_int_equal(right.log_decay, stored.log_decay);
    }
}

/* HV = 3 value heads, K = 5 channels, tokens: each result is that of its own element, and a token's do not depend on which others are there. */
enum { MOST = 65, HEADS = 3, CHANNELS = 5, EACH = HEADS * CHANNELS };

static void replay_tokens(const ol_composite *c, int path, const uint16_t *b, const uint16_t *a, float *rate, uint16_t *bias, int64_t row, int64_t tokens, uint16_t *beta, float *decay)
{
    ol_error error;
    ol_tensor in[4] = { strided((void *)(uintptr_t)b, OL_BFLOAT16, 2, SHAPE(tokens, HEADS), SHAPE(row, 1)),
                        strided((void *)(uintptr_t)a, OL_BFLOAT16, 3, SHAPE(tokens, HEADS, CHANNELS), SHAPE(row, CHANNELS, 1)),
                        ol_tensor_contiguous(rate, OL_FLOAT32, 2, SHAPE(HEADS, 1)), ol_tensor_contiguous(bias, OL_BFLOAT16, 2, SHAPE(HEADS, CHANNELS)) };
    ol_tensor out[2] = { ol_tensor_contiguous(beta, OL_BFLOAT16, 2, SHAPE(tokens, HEADS)), ol_tensor_contiguous(decay, OL_FLOAT32, 3, SHAPE(tokens, HEADS, CHANNELS)) };
    assert_ok(replay_paths[path](c, NULL, in, out, &error), &error);
}

static void G35_G41_G43_G45_tokens_and_slices(void **state)
{
    (void)state;
    enum { ROW = HEADS + EACH + 4 };                                   /* b, a, and something else */
    static uint16_t rows[MOST * ROW], beta[MOST * HEADS], one_beta[HEADS], bias[EACH];
    static float decay[MOST * EACH], one_decay[EACH], rate[HEADS];
    const gate_dtypes d = { OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16 };
    const ol_gate_options o = { 0 };
    uint64_t random = harness_seed;
    random_fill(&random, rows, OL_BFLOAT16, COUNT(rows));
    random_fill(&random, bias, OL_BFLOAT16, COUNT(bias));
    random_fill(&random, rate, OL_FLOAT32, COUNT(rate));
    static const int64_t counts[] = { 1, 2, 3, 63, 64, 65 };
    for (size_t level = 0; level < level_count(); level++)
        for (int path = 0; path < 2; path++) {
            ol_composite *c = gate_composite(level_device(level), &o, &d);
            for (size_t i = 0; i < COUNT(counts); i++) {
                replay_tokens(c, path, rows, rows + HEADS, rate, bias, ROW, counts[i], beta, decay);
                for (int64_t t = 0; t < counts[i]; t++) {
                    replay_tokens(c, 0, rows + t * ROW, rows + t * ROW + HEADS, rate, bias, ROW, 1, one_beta, one_decay);
                    assert_memory_equal(one_beta, beta + t * HEADS, sizeof one_beta);
                    assert_memory_equal(one_decay, decay + t * EACH, sizeof one_decay);
                    for (int64_t e = 0; e < EACH; e++) {
                        gate_result right = gate_reference(&o, &d, &(gate_element){ rows[t * ROW + e / CHANNELS], rows[t * ROW + HEADS + e], f32_bits(rate[e / CHANNELS]), bias[e] });
                        assert_int_equal(one_beta[e / CHANNELS], right.beta);
                        assert_int_equal(f32_bits(one_decay[e]), right.decay);
                    }
                }
            }
            ol_composite_destroy(c);
        }
}

static int end(void **state)
{
    (void)state;
    gate_reference_end();
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(G1_infinite_rate), cmocka_unit_test(G3_softplus_of_89), cmocka_unit_test(G5_log_decay_of_strong_rates),
        cmocka_unit_test(G7_decay_of_one_and_zero), cmocka_unit_test(G9_beta_rounded_or_not), cmocka_unit_test(G11_A_log_in_its_own_dtype),
        cmocka_unit_test(G21_dtypes_are_separate), cmocka_unit_test(G37_lower_bound_is_no_clamp), cmocka_unit_test(G39_negated_exponential),
        cmocka_unit_test_teardown(G35_G41_G43_G45_tokens_and_slices, end),
    };
    return HARNESS_RUN(argc, argv, tests);
}
