/* The gate family against its reference: every kind on all bfloat16 a and b, at adversarial places, and every option at random; the
 * default against the rates of onelaunch.h; and how far a float32 log decay may be from the exact formula. */
#include "dtype.h"
#include "gate_runs.h"

#include <math.h>
#include <stdlib.h>

/* Under an emulator or a sanitizer MPFR takes ten times as long: one value in seven then. */
static int is_slow(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 1;
#else
    return getenv("ONELAUNCH_TEST_EMULATED") != NULL;
#endif
}

/* All kinds and ways to store a rate that differ by more than what they output. */
static const struct { const char *name; ol_gate_options options; } kinds[] = {
    { "softplus", { .output = OL_GATE_LOG_DECAY_AND_DECAY } },
    { "softplus, float32", { .output = OL_GATE_LOG_DECAY_AND_DECAY, .sum = OL_GATE_SUM_FLOAT32, .beta_rounding = OL_FLOAT32 } },
    { "softplus, finite rate", { .output = OL_GATE_LOG_DECAY_AND_DECAY, .sum = OL_GATE_SUM_FLOAT32, .finite_rate = 1, .beta = OL_GATE_BETA_DOUBLED } },
    { "no softplus", { .output = OL_GATE_LOG_DECAY_AND_DECAY, .skip_softplus = 1, .beta = OL_GATE_BETA_RAW, .beta_dtype = OL_FLOAT32 } },
    { "lower bound", { .kind = OL_GATE_LOWER_BOUND, .output = OL_GATE_LOG_DECAY_AND_DECAY, .lower_bound = -5, .beta_dtype = OL_FLOAT32 } },
    { "lower bound, float32", { .kind = OL_GATE_LOWER_BOUND, .sum = OL_GATE_SUM_FLOAT32, .output = OL_GATE_LOG_DECAY_AND_DECAY, .lower_bound = -5,
                                .beta = OL_GATE_BETA_DOUBLED, .beta_rounding = OL_FLOAT32 } },
    { "plain lower bound", { .kind = OL_GATE_LOWER_BOUND_PLAIN, .output = OL_GATE_LOG_DECAY_AND_DECAY, .lower_bound = -5, .beta = OL_GATE_BETA_RAW } },
    { "plain lower bound, float32", { .kind = OL_GATE_LOWER_BOUND_PLAIN, .sum = OL_GATE_SUM_FLOAT32, .output = OL_GATE_LOG_DECAY_AND_DECAY, .lower_bound = -0x1.4p-3,
                                      .beta = OL_GATE_BETA_DOUBLED, .beta_rounding = OL_FLOAT16 } },
    { "clamped", { .kind = OL_GATE_CLAMPED, .output = OL_GATE_LOG_DECAY_AND_DECAY, .interval_low = 0x1p-10, .interval_high = 0x1p-3, .beta = OL_GATE_BETA_NONE } },
    { "clamped, float32", { .kind = OL_GATE_CLAMPED, .sum = OL_GATE_SUM_FLOAT32, .output = OL_GATE_LOG_DECAY_AND_DECAY } },
    { "clamped, no softplus", { .kind = OL_GATE_CLAMPED, .skip_softplus = 1, .output = OL_GATE_LOG_DECAY_AND_DECAY, .interval_high = 100 } },
};

/* What stands in the third input for an A_log. */
static uint64_t stored_rate(const ol_gate_options *o, float a_log)
{
    return f32_bits(o->rate == OL_GATE_RATE_LOGARITHM ? a_log : -(float)expl((long double)a_log));
}

static const float rate_logarithms[] = { -100, -5.56f, -2.3f, 0, 4.9f, 88.7f, 88.73f, 100, -INFINITY, INFINITY, NAN };

static void every_bfloat16_a_and_b(void **state)
{
    (void)state;
    static const float weights[][2] = { { -5.56f, -16.625f }, { 4.9f, 1 } };          /* A_log, dt_bias: the range of a trained model */
    size_t n_compared = 0, step = getenv("ONELAUNCH_TEST_EMULATED") ? 29 : is_slow() ? 7 : 1;
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (size_t w = 0; w < COUNT(weights); w++)
            for (int negated = 0; negated < 2; negated++) {
                ol_gate_options o = kinds[k].options;
                if (negated && (o.kind == OL_GATE_LOWER_BOUND_PLAIN || w != k % 2))
                    continue;
                o.rate = negated ? OL_GATE_RATE_NEGATED : OL_GATE_RATE_LOGARITHM;
                gate_elements e = gate_elements_make((gate_dtypes){ OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16 }, 65536 / step);
                for (size_t i = 0; i < e.n; i++)
                    e.at[i] = (gate_element){ (i * step) ^ 0x8000, i * step, stored_rate(&o, weights[w][0]), f32_bits(weights[w][1]) >> 16 };
                n_compared += gate_check(&o, &e, kinds[k].name);
                gate_elements_free(&e);
            }
    print_message("%zu results compared\n", n_compared);
}

/* a + dt_bias where functions change: -16.6 (1 + e^x rounds to 1 in float32), 20 (thresholds of others), 88.7 (e^x overflows), 104 (e^-x
 * vanishes), 0; and neighbours, halves of either sign, all rates. */
static void adversarial_places(void **state)
{
    (void)state;
    static const float places[] = { -200, -110, -104, -103.97f, -89, -88.7f, -87.3f, -20, -17.5f, -16.635532f, -16.6f, -1, -0x1p-12f, -0x1p-126f, -0x1p-149f, -0.0f, 0, 0x1p-149f,
                                    0x1p-126f, 0x1p-24f, 0.5f, 1, 3, 15, 16.6f, 19.999f, 20, 20.001f, 32, 87.3f, 88.7f, 88.72283f, 88.72284f, 89, 104, 200, 0x1.fffffep127f, INFINITY, -INFINITY, NAN };
    static const ol_dtype a_dtypes[] = { OL_FLOAT32, OL_BFLOAT16, OL_FLOAT16 };
    enum { NEIGHBOURS = 3 };
    const size_t n = COUNT(places) * COUNT(rate_logarithms) * (2 * NEIGHBOURS + 1);
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (size_t d = 0; d < COUNT(a_dtypes); d++)
            for (int negated = 0; negated < 2; negated++) {
                ol_gate_options o = kinds[k].options;
                if (negated && o.kind == OL_GATE_LOWER_BOUND_PLAIN)
                    continue;
                o.rate = negated ? OL_GATE_RATE_NEGATED : OL_GATE_RATE_LOGARITHM;
                gate_elements e = gate_elements_make((gate_dtypes){ a_dtypes[d], a_dtypes[d], OL_FLOAT32, a_dtypes[d] }, n);
                size_t i = 0;
                uint64_t mask = ol_dtype_size(a_dtypes[d]) == 2 ? 0xffff : 0xffffffff, random = harness_seed;
                for (size_t p = 0; p < COUNT(places); p++)
                    for (size_t r = 0; r < COUNT(rate_logarithms); r++)
                        for (int at = -NEIGHBOURS; at <= NEIGHBOURS; at++, i++) {
                            float bias = at % 2 ? 0.5f : 0;
                            uint64_t to = dtype_from_double(a_dtypes[d], places[p] - bias);
                            e.at[i] = (gate_element){ random_element(&random, a_dtypes[d]), (to + (uint64_t)(int64_t)at) & mask, stored_rate(&o, rate_logarithms[r]),
                                                        dtype_from_double(a_dtypes[d], bias) };
                        }
                assert_int_equal(i, n);
                gate_check(&o, &e, kinds[k].name);
                gate_elements_free(&e);
            }
}

static void any_options_and_dtypes(void **state)
{
    (void)state;
    static const ol_dtype floats[] = { OL_FLOAT16, OL_BFLOAT16, OL_FLOAT32 };
    uint64_t random = harness_seed;
    int n_cases = is_slow() ? 60 : 600;
    for (int i = 0; i < n_cases; i++) {
        ol_gate_options o = gate_random_options(&random);
        gate_dtypes d = { floats[random_below(&random, 3)], floats[random_below(&random, 3)], floats[random_below(&random, 3)], floats[random_below(&random, 3)] };
        gate_elements e = gate_elements_make(d, 1 + random_below(&random, 150));
        for (size_t k = 0; k < e.n; k++)
            e.at[k] = (gate_element){ random_element(&random, d.b), random_element(&random, d.a), random_element(&random, d.rate), random_element(&random, d.bias) };
        gate_check(&o, &e, "random options");
        gate_elements_free(&e);
    }
}

/* Zeroed options, and none, are the rates of onelaunch.h: the same graph, name apart. */
static void the_default_is_the_rates(void **state)
{
    (void)state;
    static const ol_dtype floats[] = { OL_FLOAT16, OL_BFLOAT16, OL_FLOAT32 };
    const ol_gate_options zeroed = { 0 }, decay_only = { .beta = OL_GATE_BETA_NONE };
    for (int i = 0; i < 81; i++)
        for (int which = 0; which < 3; which++) {
            ol_dtype d[] = { floats[i % 3], floats[i / 3 % 3], floats[i / 9 % 3], floats[i / 27] };
            ol_composite *gates = NULL, *rates = NULL;
            ol_error error;
            char text[2][4096];
            assert_ok(ol_gated_delta_gates_compile(level_device(0), which == 0 ? NULL : which == 1 ? &zeroed : &decay_only, d[0], d[1], d[2], d[3], &gates, &error), &error);
            if (which < 2)
                assert_ok(ol_gated_delta_rates_compile(level_device(0), d[0], d[1], d[2], d[3], &rates, &error), &error);
            else
                assert_ok(ol_gated_delta_decay_compile(level_device(0), d[1], d[2], d[3], &rates, &error), &error);
            assert_true(ol_composite_text(gates, OL_TEXT_GRAPH, text[0], sizeof text[0]) < sizeof text[0]);
            assert_true(ol_composite_text(rates, OL_TEXT_GRAPH, text[1], sizeof text[1]) < sizeof text[1]);
            assert_string_equal(ol_composite_name(gates), "gated_delta_gates");
            assert_string_equal(strstr(text[0], "gated_delta_gates") + strlen("gated_delta_gates"),
                                strstr(text[1], ol_composite_name(rates)) + strlen(ol_composite_name(rates)));
            ol_composite_destroy(gates);
            ol_composite_destroy(rates);
        }
}

/* In float32 the roundings are few, so the result cannot be far from the formula in exact arithmetic. */
static void near_the_exact_formula(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    enum { N = 20000 };
    size_t n_far = 0;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        ol_gate_options o = kinds[k].options;
        o.sum = OL_GATE_SUM_FLOAT32;
        o.output = OL_GATE_LOG_DECAY;
        o.beta = OL_GATE_BETA_NONE;
        o.beta_rounding = o.beta_dtype = 0;
        static float a[N], a_log[N], bias[1], out[N];
        for (int i = 0; i < N; i++) {
            double u = (double)(random_next(&random) >> 11) * 0x1p-53, v = (double)(random_next(&random) >> 11) * 0x1p-53;
            a[i] = (float)(i % 2 ? 240 * u - 120 : 8 * u - 4);
            a_log[i] = (float)(i % 3 ? 11 * v - 6 : 160 * v - 80);
        }
        ol_composite *c = gate_composite(level_device(level_count() - 1), &o, &(gate_dtypes){ OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32 });
        ol_tensor all[4] = { { 0 }, vector_of(a, OL_FLOAT32, N), vector_of(a_log, OL_FLOAT32, N), vector_of(bias, OL_FLOAT32, 1) }, in[4], result = vector_of(out, OL_FLOAT32, N);
        ol_error error;
        gate_pick_inputs(&o, all, in);
        assert_ok(ol_replay(c, NULL, in, &result, &error), &error);
        for (int i = 0; i < N; i++) {
            gate_exact exact = gate_exact_log_decay(&o, a[i], a_log[i]);
            long double limit = fabsl(exact.log_decay) > 0x1.fffffep127L && isinf(out[i]) ? INFINITY : exact.bound;
            if (!(fabsl((long double)out[i] - exact.log_decay) <= limit) && n_far++ < 5)
                print_error("%s: x %.9g A_log %.9g: %.9g, exactly %.12Lg within %.3Lg\n", kinds[k].name, (double)a[i], (double)a_log[i], (double)out[i], exact.log_decay, exact.bound);
        }
        ol_composite_destroy(c);
    }
    assert_int_equal(n_far, 0);
}

/* What docs/gated-delta.md says of roundings of beta that engines do twice: by way of float32, a bfloat16 sigmoid has the same bits as
 * rounded once, for every b; seven of float16 have not. */
static void beta_by_way_of_float32(void **state)
{
    (void)state;
    static const ol_dtype dtypes[] = { OL_BFLOAT16, OL_FLOAT16 };
    for (int d = 0; d < 2; d++) {
        int n_differ = 0;
        for (uint32_t b = 0; b < 65536; b++) {
            const gate_dtypes in = { dtypes[d], OL_FLOAT32, OL_FLOAT32, OL_FLOAT32 }, again = { OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32 };
            uint64_t once = gate_reference(&(ol_gate_options){ 0 }, &in, &(gate_element){ b, 0, 0, 0 }).beta;
            uint64_t wide = gate_reference(&(ol_gate_options){ .beta_rounding = OL_FLOAT32 }, &in, &(gate_element){ b, 0, 0, 0 }).beta;
            uint64_t twice = gate_reference(&(ol_gate_options){ .beta = OL_GATE_BETA_RAW, .beta_rounding = dtypes[d] }, &again, &(gate_element){ wide, 0, 0, 0 }).beta;
            n_differ += once != twice;
        }
        assert_int_equal(n_differ, d == 0 ? 0 : 7);
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
        cmocka_unit_test(every_bfloat16_a_and_b), cmocka_unit_test(adversarial_places), cmocka_unit_test(any_options_and_dtypes),
        cmocka_unit_test(the_default_is_the_rates), cmocka_unit_test(near_the_exact_formula), cmocka_unit_test_teardown(beta_by_way_of_float32, end),
    };
    return HARNESS_RUN(argc, argv, tests);
}
