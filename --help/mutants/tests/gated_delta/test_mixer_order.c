/* The mixer step against the scalar reference of its documented order, bit for bit, at every SIMD level: random geometries, options, dtypes, strides
 * and indices; special values; every size of a head; sequences longer than a chunk. */
#include "mixer_case.h"

#include <stdlib.h>
#include <string.h>

static void at_every_level(const mixer_case *c)
{
    mixer_case expected;
    mixer_copy(&expected, c);
    mixer_reference(&expected);
    for (size_t l = 0; l < level_count(); l++) {
        mixer_case result;
        mixer_copy(&result, c);
        mixer_run(level_device(l), &result);
        if (!mixer_equal(&expected, &result)) {
            mixer_print(c);
            fail_msg("level %s", ol_device_level(level_device(l)));
        }
        mixer_free(&result);
    }
    mixer_free(&expected);
}

static int n_cases(int n) { return getenv("ONELAUNCH_TEST_EMULATED") ? n / 5 : n; }

static void random_cases(step_values values, int n, uint64_t stream)
{
    for (int i = 0; i < n; i++) {
        uint64_t random = harness_seed * 1000003 + stream + (uint64_t)i;
        mixer_case c;
        mixer_random(&c, values, &random);
        at_every_level(&c);
        mixer_free(&c);
    }
}

static void test_random(void **state)
{
    (void)state;
    random_cases(STEP_USUAL, n_cases(75), 0);
}

static void test_special_values(void **state)
{
    (void)state;
    random_cases(STEP_SPECIAL, n_cases(50), 500000);
}

/* Sizes below, at and above every vector and block of channels. */
static void test_every_size(void **state)
{
    (void)state;
    static const int sizes[] = { 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 192, 200, 255, 256 };
    uint64_t random = harness_seed;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int by_value = 0; by_value < 2; by_value++) {
            mixer_case c;
            mixer_usual(&c, 1, 2, by_value ? 12 : sizes[i], by_value ? sizes[i] : 12, 1, 2, 3 + (int64_t)(i % 2), &random);
            at_every_level(&c);
            mixer_free(&c);
        }
}

/* More tokens than a chunk has: the state of a head goes from chunk to chunk in float32, whatever it is stored in. */
static void test_long_sequences(void **state)
{
    (void)state;
    static const struct { int K, V, tokens; } cases[] = { { 128, 128, 16 }, { 128, 128, 17 }, { 128, 64, 50 }, { 40, 200, 19 }, { 256, 256, 9 }, { 16, 16, 130 } };
    uint64_t random = harness_seed;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int dtype = OL_FLOAT16; dtype <= OL_FLOAT32; dtype++) {
            mixer_case c;
            mixer_usual(&c, 1, 1 + (int)(i % 2), cases[i].K, cases[i].V, 1, cases[i].tokens, 4, &random);
            c.step.options.state_dtype = (ol_dtype)dtype;
            step_give(&c.step, AT_STATE, (ol_dtype)dtype, 4, (int64_t[]){ 1, 1 + (int64_t)(i % 2), cases[i].V, cases[i].K }, STEP_DENSE, &random);
            step_fill(&c.step, AT_STATE, 0, 1, STEP_USUAL, &random);
            at_every_level(&c);
            mixer_free(&c);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_random), cmocka_unit_test(test_special_values), cmocka_unit_test(test_every_size),
                                        cmocka_unit_test(test_long_sequences) };
    return HARNESS_RUN(argc, argv, tests);
}
