/* The step against long double and its error bound (precise.h): geometries, norms, dtypes, gates at their hard places, keys and queries of
 * zeros and nearly so, decays of 0 and 1, and runs of 10,000 tokens. Each also says how near the bound came to being reached. */
#include "precise.h"

#include "element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Runs the case and compares; the largest share of its bound that an error takes. */
static double held_to_bound(step_case *c)
{
    precise p = precise_step(c);
    long double worst = 0;
    step_run(level_device(level_count() - 1), c);
    for (size_t i = 0; i < p.n_outputs; i++) {
        double got = element_read(c->arguments.output.dtype, (char *)c->memory[AT_OUTPUT] + i * ol_dtype_size(c->arguments.output.dtype));
        long double error = fabsl((long double)got - p.output[i]);
        if (!(error <= p.output_bound[i])) {
            step_print(c);
            fail_msg("output %zu is %g, should be %Lg, error %Lg above %Lg", i, got, p.output[i], error, p.output_bound[i]);
        }
        worst = fmaxl(worst, error / p.output_bound[i]);
    }
    for (size_t i = 0; i < p.n_rows * (size_t)c->options.key_dim; i++) {
        double got = element_read(c->arguments.state.dtype, (char *)c->memory[AT_STATE] + i * ol_dtype_size(c->arguments.state.dtype));
        long double bound = p.state_bound[i / (size_t)c->options.key_dim], error = fabsl((long double)got - p.state[i]);
        if (!(error <= bound)) {
            step_print(c);
            fail_msg("state %zu is %g, should be %Lg, error %Lg above %Lg", i, got, p.state[i], error, bound);
        }
        worst = fmaxl(worst, error / bound);
    }
    precise_free(&p);
    return (double)worst;
}

static void test_geometries(void **state)
{
    (void)state;
    static const struct { int key_heads, ratio, K, V; } geometries[] = { { 2, 2, 128, 128 }, { 1, 3, 96, 192 }, { 1, 1, 16, 16 }, { 1, 4, 256, 32 }, { 2, 1, 100, 20 } };
    uint64_t random = harness_seed;
    double worst = 0;
    for (size_t g = 0; g < sizeof geometries / sizeof *geometries; g++)
        for (int norm = 0; norm < 5; norm++)
            for (int doubled = 0; doubled < 2; doubled++) {
                step_case c;
                step_usual(&c, geometries[g].key_heads, geometries[g].ratio, geometries[g].K, geometries[g].V, 1, 4, &random);
                c.options.norm = (ol_delta_norm)norm;
                c.options.gates.beta = doubled ? OL_GATE_BETA_DOUBLED : OL_GATE_BETA_SIGMOID;
                if (norm == OL_DELTA_NORM_NONE)
                    step_fill(&c, AT_KEY, 0, 1 / sqrt(geometries[g].K), STEP_USUAL, &random);
                precise p = precise_step(&c);
                /* The bound says something: some hundred units in the last place of what the sums are made of. */
                for (size_t i = 0; i < p.n_outputs && norm != OL_DELTA_NORM_NONE; i++)
                    assert_true(p.output_bound[i] < 2e-4L);
                precise_free(&p);
                worst = fmax(worst, held_to_bound(&c));
                step_free(&c);
            }
    print_message("largest error: %.3f of its bound\n", worst);
    assert_true(worst > 0.001);
}

static void test_16_bits(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    for (int dtype = OL_FLOAT16; dtype <= OL_BFLOAT16; dtype++) {
        step_case c;
        step_usual(&c, 1, 2, 128, 64, 1, 5, &random);
        c.options.activation_dtype = (ol_dtype)dtype;
        c.options.state_dtype = (ol_dtype)dtype;
        c.options.update_dtype = c.options.decay_dtype = c.options.decay_bias_dtype = OL_FLOAT32;
        for (int i = 0; i < STEP_TENSORS; i++)
            if (i <= AT_VALUE || i == AT_OUTPUT || i == AT_STATE) {
                ol_tensor t = *step_tensor(&c, i);
                step_give(&c, i, (ol_dtype)dtype, t.rank, t.shape, STEP_DENSE, NULL);
                step_fill(&c, i, 0, 1, STEP_USUAL, &random);
            }
        held_to_bound(&c);
        step_free(&c);
    }
}

/* a + dt_bias near where softplus forms differ, with rates from nothing to overflow. */
static void test_hard_gates(void **state)
{
    (void)state;
    static const float sums[] = { -100, -88, -20, -16.7f, -16.6f, -16.5f, -1e-3f, 0, 1e-3f, 19.9f, 20, 20.1f, 88, 88.7f, 88.8f, 89, 100 };
    static const float logarithms[] = { -100, -20, -5.56f, 0, 1, 4.9f, 20, 80, 88.7f, 100 };
    uint64_t random = harness_seed;
    for (size_t s = 0; s < sizeof sums / sizeof *sums; s++)
        for (size_t l = 0; l < sizeof logarithms / sizeof *logarithms; l++) {
            step_case c;
            /* Beyond float32 the rate is infinite, whose product with a small interval no bound holds. */
            if (logarithms[l] > 88.72f && sums[s] < -16)
                continue;
            step_usual(&c, 1, 1, 32, 4, 1, 3, &random);
            step_fill(&c, AT_DECAY, sums[s] - 0.25, 0, STEP_USUAL, &random);
            step_fill(&c, AT_DECAY_BIAS, 0.25, 0, STEP_USUAL, &random);
            step_fill(&c, AT_DECAY_RATE, logarithms[l], 0, STEP_USUAL, &random);
            held_to_bound(&c);
            step_free(&c);
        }
}

static void test_small_keys(void **state)
{
    (void)state;
    static const double sizes[] = { 0, 1e-45, 1e-40, 1e-30, 1e-23, 1e-20, 1e-10, 1e-6, 1e-3, 1e3, 1e6 };
    uint64_t random = harness_seed;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int norm = 1; norm < 5; norm++)
            for (int which = AT_QUERY; which <= AT_KEY; which++) {
                step_case c;
                step_usual(&c, 1, 1, 64, 8, 1, 3, &random);
                c.options.norm = (ol_delta_norm)norm;
                step_fill(&c, which, 0, sizes[s], STEP_USUAL, &random);
                held_to_bound(&c);
                step_free(&c);
            }
}

static void given_decay(float decay, int per_channel)
{
    uint64_t random = harness_seed;
    step_case c;
    step_usual(&c, 1, 2, 96, 16, 1, 6, &random);
    c.options.decay = OL_DELTA_DECAY_GIVEN;
    c.options.decay_per_channel = per_channel;
    step_take_back(&c, AT_DECAY_RATE);
    step_take_back(&c, AT_DECAY_BIAS);
    if (per_channel)
        step_give(&c, AT_DECAY, OL_FLOAT32, 3, (int64_t[]){ 6, 2, 96 }, STEP_DENSE, NULL);
    step_fill(&c, AT_DECAY, decay, 0, STEP_USUAL, &random);
    held_to_bound(&c);
    step_free(&c);
}

static void test_given_decays(void **state)
{
    (void)state;
    static const float decays[] = { 0, 1e-45f, 1e-38f, 0.5f, 0.999999f, 1 };
    for (size_t i = 0; i < sizeof decays / sizeof *decays; i++) {
        given_decay(decays[i], 0);
        given_decay(decays[i], 1);
    }
}

/* Decays near 1, so that errors stay as long as they can; and 1. */
static void long_run(double log_rate)
{
    enum { T = 10000 };
    uint64_t random = harness_seed;
    step_case c;
    step_usual(&c, 1, 1, 64, 4, 1, T, &random);
    step_fill(&c, AT_DECAY_RATE, log_rate, 0, STEP_USUAL, &random);
    double worst = held_to_bound(&c);
    print_message("10,000 tokens, A_log %g: largest error %.4f of its bound\n", log_rate, worst);
    step_free(&c);
}

static void test_long_runs(void **state)
{
    (void)state;
    long_run(-100);
    long_run(-6);
    long_run(-1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_geometries), cmocka_unit_test(test_16_bits),      cmocka_unit_test(test_hard_gates),
        cmocka_unit_test(test_small_keys), cmocka_unit_test(test_given_decays), cmocka_unit_test(test_long_runs),
    };
    return HARNESS_RUN(argc, argv, tests);
}
