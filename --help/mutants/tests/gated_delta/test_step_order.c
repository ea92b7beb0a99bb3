/* The step against the scalar reference of its documented order, bit for bit, at every SIMD level: random geometries, options, dtypes, strides
 * and indices; special values; every K and V of note in both layouts; all bfloat16 a and b. */
#include "step_case.h"

#include "element.h"

#include <stdlib.h>
#include <string.h>

static void at_every_level(const step_case *c)
{
    step_case expected;
    step_copy(&expected, c);
    step_reference(&expected);
    for (size_t l = 0; l < level_count(); l++) {
        step_case result;
        step_copy(&result, c);
        step_run(level_device(l), &result);
        if (!step_equal(&expected, &result)) {
            step_print(c);
            fail_msg("level %s", ol_device_level(level_device(l)));
        }
        step_free(&result);
    }
    step_free(&expected);
}

static void random_cases(step_values values, int n, uint64_t stream)
{
    for (int i = 0; i < n; i++) {
        uint64_t random = harness_seed * 1000003 + stream + (uint64_t)i;
        step_case c;
        step_random(&c, values, &random);
        at_every_level(&c);
        step_free(&c);
    }
}

static int n_cases(int n) { return getenv("ONELAUNCH_TEST_EMULATED") ? n / 5 : n; }

static void test_random(void **state)
{
    (void)state;
    random_cases(STEP_USUAL, n_cases(100), 0);
}

static void test_special_values(void **state)
{
    (void)state;
    random_cases(STEP_SPECIAL, n_cases(100), 500000);
}

/* Sizes below, at and above every vector and tile, K and V each, in both layouts and all dtypes of state. */
static void test_every_size(void **state)
{
    (void)state;
    static const int sizes[] = { 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 95, 96, 127, 128, 129, 160, 191, 192, 193, 255, 256 };
    uint64_t random = harness_seed;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int layout = 0; layout < 2; layout++)
            for (int by_value = 0; by_value < 2; by_value++) {
                step_case c;
                int K = by_value ? 20 : sizes[i], V = by_value ? sizes[i] : 20;
                step_usual(&c, 1, 2, K, V, 1, 2, &random);
                c.options.state_layout = (ol_delta_layout)layout;
                c.options.state_dtype = (ol_dtype)(OL_FLOAT16 + i % 3);
                step_give(&c, AT_STATE, c.options.state_dtype, 4, (int64_t[]){ 1, 2, layout ? K : V, layout ? V : K }, STEP_STRIDED, &random);
                step_fill(&c, AT_STATE, 0, 1, STEP_USUAL, &random);
                at_every_level(&c);
                step_free(&c);
            }
}

/* More tokens than have their keys and gates prepared at once, on several heads and blocks of rows. */
static void test_long_sequences(void **state)
{
    (void)state;
    static const struct { int K, V, n_tokens; } sizes[] = { { 16, 144, 65 }, { 128, 40, 17 }, { 200, 24, 33 }, { 64, 96, 70 } };
    uint64_t random = harness_seed;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int per_channel = 0; per_channel < 2; per_channel++) {
            step_case c;
            int64_t K = sizes[i].K, T = sizes[i].n_tokens;
            step_usual(&c, 2, 2, sizes[i].K, sizes[i].V, 2, T, &random);
            c.options.decay_per_channel = per_channel;
            if (per_channel) {
                step_give(&c, AT_DECAY, OL_FLOAT32, 3, (int64_t[]){ 2 * T, 4, K }, STEP_DENSE, NULL);
                step_give(&c, AT_DECAY_BIAS, OL_FLOAT32, 2, (int64_t[]){ 4, K }, STEP_DENSE, NULL);
                step_fill(&c, AT_DECAY, 0, 1, STEP_USUAL, &random);
                step_fill(&c, AT_DECAY_BIAS, -2, 1, STEP_USUAL, &random);
            }
            at_every_level(&c);
            step_free(&c);
        }
}

/* A sum that underflows to -0 becomes +0 where zeros are added to it, and stays -0 where K is a multiple of 32. */
static void test_minus_zero(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    for (int K = 16; K <= 64; K += 16)
        for (int layout = 0; layout < 2; layout++) {
            step_case c;
            step_usual(&c, 1, 1, K, 16, 1, 1, &random);
            c.options.norm = OL_DELTA_NORM_NONE;
            c.options.scale = 1;
            c.options.state_layout = (ol_delta_layout)layout;
            step_give(&c, AT_STATE, OL_FLOAT32, 4, (int64_t[]){ 1, 1, layout ? K : 16, layout ? 16 : K }, STEP_DENSE, &random);
            step_fill(&c, AT_STATE, 1e-30, 0, STEP_USUAL, &random);
            step_fill(&c, AT_QUERY, -1e-30, 0, STEP_USUAL, &random);
            step_fill(&c, AT_KEY, -1e-30, 0, STEP_USUAL, &random);
            step_fill(&c, AT_VALUE, 0, 0, STEP_USUAL, &random);
            at_every_level(&c);
            step_free(&c);
        }
}

/* Tokens t of one sequence have a = bfloat16 number t, and in a second run b. */
static void all_bfloat16(int number, ol_gated_delta_options options)
{
    enum { BATCH = 4096 };
    uint64_t random = harness_seed;
    for (int first = 0; first < 65536; first += BATCH) {
        step_case c;
        step_usual(&c, 1, 1, 16, 1, BATCH, 1, &random);
        c.options.norm = options.norm;
        c.options.gates = options.gates;
        c.options.update_dtype = c.options.decay_dtype = c.options.decay_bias_dtype = OL_BFLOAT16;
        int64_t shape[] = { BATCH, 1 };
        step_give(&c, AT_UPDATE, OL_BFLOAT16, 2, shape, STEP_DENSE, &random);
        step_give(&c, AT_DECAY, OL_BFLOAT16, 2, shape, STEP_DENSE, &random);
        step_give(&c, AT_DECAY_BIAS, OL_BFLOAT16, 1, shape + 1, STEP_DENSE, &random);
        step_fill(&c, AT_UPDATE, 0, 1, STEP_USUAL, &random);
        step_fill(&c, AT_DECAY, 0, 1, STEP_USUAL, &random);
        step_fill(&c, AT_DECAY_BIAS, 0, 1, STEP_USUAL, &random);
        for (int i = 0; i < BATCH; i++)
            ((uint16_t *)c.memory[number])[i] = (uint16_t)(first + i);
        at_every_level(&c);
        step_free(&c);
    }
}

static void test_all_a(void **state)
{
    (void)state;
    all_bfloat16(AT_DECAY, (ol_gated_delta_options){ .norm = OL_DELTA_NORM_RSQRT });
}

static void test_all_b(void **state)
{
    (void)state;
    all_bfloat16(AT_UPDATE, (ol_gated_delta_options){ .norm = OL_DELTA_NORM_RSQRT, .gates = { .beta_rounding = OL_FLOAT32 } });
    all_bfloat16(AT_UPDATE, (ol_gated_delta_options){ .norm = OL_DELTA_NORM_RSQRT, .gates = { .beta = OL_GATE_BETA_DOUBLED } });
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),   cmocka_unit_test(test_special_values), cmocka_unit_test(test_every_size),
        cmocka_unit_test(test_long_sequences),
        cmocka_unit_test(test_minus_zero), cmocka_unit_test(test_all_a),        cmocka_unit_test(test_all_b),
    };
    return HARNESS_RUN(argc, argv, tests);
}
