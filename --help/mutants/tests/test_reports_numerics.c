/* Public bug reports against fusers of elementwise graphs, replayed here: the rows on numerics, A01 to A31. Each test is named
 * after its row; the bits beside it were checked at 400 bits, one rounding per node. */
#include "graph_cases.h"

#include <math.h>

#define F16_NAN 0x7E00
#define BF16_NAN 0x7FC0
#define F32_NAN 0x7FC00000
#define F32_INF 0x7F800000

#define BUILDER(name) static int name(ol_graph *g, const ol_value *in, ol_value *out, void *user)
#define UNUSED ((void)in, (void)user)

BUILDER(build_square_in_f16)
{
    UNUSED;
    ol_value h = ol_astype(g, in[0], OL_FLOAT16);
    out[0] = ol_astype(g, ol_multiply(g, h, h), OL_FLOAT32);
    return 0;
}

static void A01_f16_overflow_survives_fusion(void **state)
{
    (void)state;
    check_graph(build_square_in_f16, NULL, 1, DTYPES(OL_FLOAT32), BITS(f32_bits(5000.0f)), 1, BITS(F32_INF), 1);
}

static void A02_sigmoid_of_large_magnitudes(void **state)
{
    (void)state;
    check_primitive("sigmoid", OL_FLOAT32, 6, BITS(f32_bits(91.38743591f), f32_bits(89), f32_bits(-1662.72692871f), f32_bits(3212.53930664f), 0, f32_bits(-0.5f)),
                    BITS(0x3F800000, 0x3F800000, 0, 0x3F800000, 0x3F000000, 0x3EC14D03));
}

BUILDER(build_logaddexp_zero)
{
    UNUSED;
    out[0] = ol_logaddexp(g, in[0], ol_constant(g, ol_value_dtype(g, in[0]), 0.0));
    return 0;
}

static void A03_f16_softplus_keeps_its_linear_part(void **state)
{
    (void)state;
    const uint64_t *in = BITS(0x4500, 0x4900, 0x4980, 0x4A00, 0x5580, 0x63D0), *expected = BITS(0x4502, 0x4900, 0x4980, 0x4A00, 0x5580, 0x63D0);
    check_graph(build_logaddexp_zero, NULL, 1, DTYPES(OL_FLOAT16), in, 1, expected, 6);
    check_primitive("softplus", OL_FLOAT16, 6, in, expected);
}

static void A04_f32_to_bf16_ties_to_even(void **state)
{
    (void)state;
    check_astype(OL_FLOAT32, OL_BFLOAT16, 3, BITS(0x3E89CCD5, 0x3F808000, 0x3F818000), BITS(0x3E8A, 0x3F80, 0x3F82));
}

BUILDER(build_exp_narrow_and_wide)
{
    UNUSED;
    out[0] = ol_exp(g, ol_astype(g, in[0], OL_FLOAT32));
    out[1] = ol_exp(g, in[0]);
    return 0;
}

static void A05_exp_of_a_log_in_the_stated_dtype(void **state)
{
    (void)state;
    check_graph(build_exp_narrow_and_wide, NULL, 1, DTYPES(OL_FLOAT16), BITS(0x4A00), 2, BITS(0x481EF0B3, 0x7C00), 1);
    check_graph(build_exp_narrow_and_wide, NULL, 1, DTYPES(OL_BFLOAT16), BITS(0x4005), 2, BITS(0x40FFA9C7, 0x4100), 1);
}

BUILDER(build_truths)
{
    UNUSED;
    ol_value zero = ol_constant(g, ol_value_dtype(g, in[0]), 0.0);
    out[0] = ol_not_equal(g, in[0], zero);
    out[1] = ol_greater(g, in[0], zero);
    out[2] = ol_astype(g, in[0], OL_BOOL);
    return 0;
}

static void A06_smallest_subnormal_is_not_zero(void **state)
{
    (void)state;
    check_graph(build_truths, NULL, 1, DTYPES(OL_FLOAT32), BITS(1), 3, BITS(1, 1, 1), 1);
    check_graph(build_truths, NULL, 1, DTYPES(OL_BFLOAT16), BITS(1), 3, BITS(1, 1, 1), 1);
    check_graph(build_truths, NULL, 1, DTYPES(OL_FLOAT16), BITS(1), 3, BITS(1, 1, 1), 1);
}

static void A07_division_is_exact(void **state)
{
    (void)state;
    check_primitive("divide", OL_FLOAT32, 1, BITS(f32_bits(4.6875f), f32_bits(0.9375f)), BITS(0x40A00000));
}

/* Fractions that lose bits when printed with seven digits, and three that do not. */
static const double printed_constants[] = { 1.0 / 3.0, 0.088388347648318447, 0.70710678, 0.3, 0.1, 1e-6 };

BUILDER(build_times_constants)
{
    (void)user;
    for (size_t i = 0; i < COUNT(printed_constants); i++)
        out[i] = ol_multiply(g, in[0], ol_constant(g, OL_FLOAT32, printed_constants[i]));
    return 0;
}

static void A08_constants_keep_every_bit(void **state)
{
    (void)state;
    const uint64_t *expected = BITS(0x3EAAAAAB, 0x3DB504F3, 0x3F3504F3, 0x3E99999A, 0x3DCCCCCD, 0x358637BD);
    check_graph(build_times_constants, NULL, 1, DTYPES(OL_FLOAT32), BITS(0x3F800000), 6, expected, 1);

    /* And through the text form, which is where such a bit goes missing. */
    char text[4096];
    ol_error error;
    ol_composite *c = compile_on(level_device(0), build_times_constants, NULL, 1, DTYPES(OL_FLOAT32), 6), *parsed;
    size_t n = ol_composite_text(c, OL_TEXT_GRAPH, text, sizeof text);
    assert_true(n < sizeof text);
    assert_ok(ol_compile_text(level_device(0), text, n, &parsed, &error), &error);
    float one = 1.0f, results[6];
    ol_tensor input = vector_of(&one, OL_FLOAT32, 1), outputs[6];
    for (int i = 0; i < 6; i++)
        outputs[i] = vector_of(&results[i], OL_FLOAT32, 1);
    assert_ok(ol_replay(parsed, NULL, &input, outputs, &error), &error);
    for (int i = 0; i < 6; i++)
        assert_int_equal(f32_bits(results[i]), expected[i]);
    ol_composite_destroy(parsed);
    ol_composite_destroy(c);
}

static void A09_exp_at_the_bottom_edge(void **state)
{
    (void)state;
    check_primitive("exp", OL_FLOAT32, 8,
                    BITS(f32_bits(-87.33655f), f32_bits(-87.4f), f32_bits(-88), f32_bits(-88.5f), f32_bits(-95), f32_bits(-100), f32_bits(-103.97208f), f32_bits(-104)),
                    BITS(0x007FFFE6, 0x00782140, 0x0041EDC4, 0x0027FCE2, 0x00000F64, 0x0000001B, 0x00000001, 0));
}

static void A10_f32_to_bf16_keeps_nan_and_infinity(void **state)
{
    (void)state;
    check_astype(OL_FLOAT32, OL_BFLOAT16, 5, BITS(0x7F800001, 0x7FFF8C22, 0xFFFFFFFF, 0x7F800000, 0x7F7FFFFF), BITS(BF16_NAN, BF16_NAN, BF16_NAN, 0x7F80, 0x7F80));
}

BUILDER(build_sigmoid_wide_and_narrow)
{
    UNUSED;
    out[0] = ol_sigmoid(g, ol_astype(g, in[0], OL_FLOAT32));
    out[1] = ol_astype(g, ol_sigmoid(g, in[0]), OL_FLOAT32);
    out[2] = ol_sigmoid(g, in[0]);
    return 0;
}

static void A11_beta_rounds_where_the_graph_says(void **state)
{
    (void)state;
    check_graph(build_sigmoid_wide_and_narrow, NULL, 1, DTYPES(OL_BFLOAT16), BITS(0x3F00), 3, BITS(0x3F1F597F, 0x3F1F0000, 0x3F1F), 1);
}

BUILDER(build_nan_through_everything)
{
    (void)user;
    ol_value one = ol_constant(g, OL_FLOAT32, 1.0), x = in[0];
    out[0] = ol_add(g, x, one);
    out[1] = ol_multiply(g, x, one);
    out[2] = ol_exp(g, x);
    out[3] = ol_logaddexp(g, x, one);
    out[4] = ol_where(g, ol_isnan(g, x), x, one);
    out[5] = ol_negative(g, x);
    out[6] = ol_abs(g, x);
    out[7] = x;
    out[8] = ol_broadcast_like(g, x, x);
    out[9] = ol_sign(g, x);
    out[10] = ol_clip(g, x, one, one);
    out[11] = ol_fma(g, x, one, one);
    out[12] = ol_astype(g, x, OL_BFLOAT16);
    out[13] = ol_astype(g, x, OL_FLOAT16);
    return 0;
}

static void A12_nan_has_one_written_form(void **state)
{
    (void)state;
    uint64_t expected[14 * 3];
    for (int i = 0; i < 14 * 3; i++)
        expected[i] = i < 12 * 3 ? F32_NAN : i < 13 * 3 ? BF16_NAN : F16_NAN;
    check_graph(build_nan_through_everything, NULL, 1, DTYPES(OL_FLOAT32), BITS(0x7FAB2AC8, 0xFFC12345, 0xFFFFFFFF), 14, expected, 3);
}

BUILDER(build_compares)
{
    (void)user;
    out[0] = ol_less(g, in[0], in[1]);
    out[1] = ol_less_equal(g, in[0], in[1]);
    out[2] = ol_equal(g, in[0], in[1]);
    out[3] = ol_not_equal(g, in[0], in[1]);
    out[4] = ol_where(g, out[0], in[0], in[1]);
    out[5] = ol_greater(g, in[0], in[1]);
    out[6] = ol_greater_equal(g, in[0], in[1]);
    return 0;
}

static void A13_comparisons_with_nan_on_either_side(void **state)
{
    (void)state;
    check_graph(build_compares, NULL, 2, DTYPES(OL_FLOAT16, OL_FLOAT16),
                BITS(0xC200, 0x7E00, 0xBC00, 0, 0x3C00, 0x4000, 0xFE01, /* against */ 0, 0, 0x7E00, 0, 0, 0, 0), 7,
                BITS(1, 0, 0, 0, 0, 0, 0,  1, 0, 0, 1, 0, 0, 0,  0, 0, 0, 1, 0, 0, 0,  1, 1, 1, 0, 1, 1, 1,
                     0xC200, 0, F16_NAN, 0, 0, 0, 0,  0, 0, 0, 0, 1, 1, 0,  0, 0, 0, 1, 1, 1, 0), 7);
}

BUILDER(build_logaddexp_chain)
{
    UNUSED;
    out[0] = ol_logaddexp(g, ol_logaddexp(g, in[0], in[1]), in[2]);
    return 0;
}

static void A14_bf16_logaddexp_chain_rounds_each_step(void **state)
{
    (void)state;
    check_graph(build_logaddexp_chain, NULL, 3, DTYPES(OL_BFLOAT16, OL_BFLOAT16, OL_BFLOAT16), BITS(0x401C, 0xBEAB, 0xBEBE), 1, BITS(0x4024), 1);
}

/* y = x * x; a = astype(x, int32); b = where(y > x, y, x). `user` says which are outputs. */
BUILDER(build_a_and_b)
{
    ol_value y = ol_square(g, in[0]), a = ol_astype(g, in[0], OL_INT32), b = ol_where(g, ol_greater(g, y, in[0]), y, in[0]);
    int which = (int)(intptr_t)user, n = 0;
    if (which & 1)
        out[n++] = a;
    if (which & 2)
        out[n++] = b;
    return 0;
}

static void A15_an_output_does_not_change_with_the_others(void **state)
{
    (void)state;
    /* 5.766015625 in float16; its square rounds to 33.25 = 5028. */
    check_graph(build_a_and_b, (void *)1, 1, DTYPES(OL_FLOAT16), BITS(0x45C4), 1, BITS(5), 1);
    check_graph(build_a_and_b, (void *)2, 1, DTYPES(OL_FLOAT16), BITS(0x45C4), 1, BITS(0x5028), 1);
    check_graph(build_a_and_b, (void *)3, 1, DTYPES(OL_FLOAT16), BITS(0x45C4), 2, BITS(5, 0x5028), 1);
}

static void A16_f32_inputs_are_not_quantised(void **state)
{
    (void)state;
    enum { N = 4097 };
    static uint64_t in[N], expected[N];
    int distinct = 0;
    for (int i = 0; i < N; i++) {
        in[i] = 0x3F800000u + (unsigned)i;
        expected[i] = f32_bits((float)(1.0 / (1.0 + exp(-(double)f32_of(in[i])))));       /* none of these is near a tie */
        distinct += i == 0 || expected[i] != expected[i - 1];
    }
    assert_true(distinct > 1000);
    check_primitive("sigmoid", OL_FLOAT32, N, in, expected);
}

BUILDER(build_multiply_add)
{
    UNUSED;
    out[0] = ol_add(g, ol_multiply(g, in[0], in[1]), in[2]);
    return 0;
}

static void A17_bf16_multiply_add_is_two_roundings(void **state)
{
    (void)state;
    check_graph(build_multiply_add, NULL, 3, DTYPES(OL_BFLOAT16, OL_BFLOAT16, OL_BFLOAT16), BITS(0x3F81, 0x3F81, 0xBF82), 1, BITS(0), 1);
    /* The explicit node is the one rounding: 2^-14. */
    check_primitive("fma", OL_BFLOAT16, 1, BITS(0x3F81, 0x3F81, 0xBF82), BITS(0x3880));
}

BUILDER(build_annihilators)
{
    UNUSED;
    out[0] = ol_multiply(g, in[0], ol_constant(g, OL_FLOAT32, 0.0));
    out[1] = ol_subtract(g, in[0], in[0]);
    out[2] = ol_add(g, in[0], ol_negative(g, in[0]));
    return 0;
}

static void A18_times_zero_and_minus_itself_stay(void **state)
{
    (void)state;
    check_graph(build_annihilators, NULL, 1, DTYPES(OL_FLOAT32), BITS(F32_INF, 0xFF800000, F32_NAN, 0xBF800000, 0), 3,
                BITS(F32_NAN, F32_NAN, F32_NAN, 0x80000000, 0,  F32_NAN, F32_NAN, F32_NAN, 0, 0,  F32_NAN, F32_NAN, F32_NAN, 0, 0), 5);
}

static void A19_strided_is_contiguous(void **state)
{
    (void)state;
    enum { N = 1000 };
    static const int64_t strides[] = { 1, 2, 3, -1, -3, 0 };
    static float buffer[3 * N], copy[N], from_view[N], from_copy[N];
    uint64_t random = harness_seed;
    for (int i = 0; i < 3 * N; i++)
        buffer[i] = (float)random_below(&random, 1u << 20) * 0x1p-13f - (i % 2 ? 64.0f : 0.0f);
    for (size_t level = 0; level < level_count(); level++)
        for (int function = 0; function < 2; function++) {
            ol_composite *c = compile_on(level_device(level), build_primitive, primitive_named(function ? "log" : "exp"), 1, DTYPES(OL_FLOAT32), 1);
            for (size_t s = 0; s < COUNT(strides); s++)
                for (int path = 0; path < 2; path++) {
                    float *origin = buffer + (strides[s] < 0 ? -strides[s] * (N - 1) : 0);
                    for (int i = 0; i < N; i++)
                        copy[i] = origin[i * strides[s]];
                    ol_tensor view = strided(origin, OL_FLOAT32, 1, SHAPE(N), &strides[s]), dense = vector_of(copy, OL_FLOAT32, N);
                    ol_tensor out_view = vector_of(from_view, OL_FLOAT32, N), out_dense = vector_of(from_copy, OL_FLOAT32, N);
                    ol_error error;
                    assert_ok(replay_paths[path](c, NULL, &view, &out_view, &error), &error);
                    assert_ok(replay_paths[path](c, NULL, &dense, &out_dense, &error), &error);
                    assert_memory_equal(from_view, from_copy, sizeof from_copy);
                }
            ol_composite_destroy(c);
        }
}

BUILDER(build_narrow_then_wide)
{
    UNUSED;
    out[0] = ol_astype(g, ol_astype(g, in[0], OL_BFLOAT16), OL_FLOAT32);
    out[1] = ol_astype(g, ol_astype(g, in[0], OL_FLOAT16), OL_FLOAT32);
    return 0;
}

static void A20_narrow_then_wide_is_two_roundings(void **state)
{
    (void)state;
    /* By way of float16 the value keeps 11 bits: 3E89CCD5 -> 344E -> 3E89C000. */
    check_graph(build_narrow_then_wide, NULL, 1, DTYPES(OL_FLOAT32), BITS(0x3E89CCD5), 2, BITS(0x3E8A0000, 0x3E89C000), 1);
}

static void A21_bf16_and_f32_betas_both_right(void **state)
{
    (void)state;
    check_graph(build_sigmoid_wide_and_narrow, NULL, 1, DTYPES(OL_BFLOAT16), BITS(0xBF00), 3, BITS(0x3EC14D03, 0x3EC10000, 0x3EC1), 1);
}

static void A22_sigmoid_keeps_its_negative_tail(void **state)
{
    (void)state;
    check_primitive("sigmoid", OL_FLOAT32, 4, BITS(f32_bits(-89), f32_bits(-100), f32_bits(-103.9f), f32_bits(-104)), BITS(0x001840FC, 0x0000001B, 1, 0));
}

static void A23_exp_at_the_top_edge(void **state)
{
    (void)state;
    check_primitive("exp", OL_FLOAT32, 6, BITS(0x42B17217, 0x42B17218, f32_bits(89), F32_INF, 0xFF800000, F32_NAN), BITS(0x7F7FFF84, F32_INF, F32_INF, F32_INF, 0, F32_NAN));
}

BUILDER(build_masked)
{
    UNUSED;
    out[0] = ol_multiply(g, in[0], ol_greater_equal(g, in[0], ol_constant(g, OL_FLOAT32, 0.0)));
    return 0;
}

static void A24_a_comparison_widens_to_one(void **state)
{
    (void)state;
    check_graph(build_masked, NULL, 1, DTYPES(OL_FLOAT32), BITS(0x3F800000, 0xBF800000, 0, 0x80000000, F32_NAN, 0x40400000, 1, 0x80000001), 1,
                BITS(0x3F800000, 0x80000000, 0, 0x80000000, F32_NAN, 0x40400000, 1, 0x80000000), 8);
}

BUILDER(build_square_plus)
{
    UNUSED;
    out[0] = ol_add(g, ol_multiply(g, in[0], in[0]), ol_constant_bits(g, OL_FLOAT32, &(uint32_t){ 0xBF801000 }));
    out[1] = ol_add(g, ol_square(g, in[0]), ol_constant_bits(g, OL_FLOAT32, &(uint32_t){ 0xBF801000 }));
    return 0;
}

static void A25_f32_multiply_add_is_not_contracted(void **state)
{
    (void)state;
    check_graph(build_square_plus, NULL, 1, DTYPES(OL_FLOAT32), BITS(0x3F800800), 2, BITS(0, 0), 1);
    check_primitive("fma", OL_FLOAT32, 1, BITS(0x3F800800, 0x3F800800, 0xBF801000), BITS(0x33800000));
}

static void A26_logaddexp_of_infinities(void **state)
{
    (void)state;
    const uint64_t inf = F32_INF, minus = 0xFF800000, one = 0x3F800000, two = 0x40000000;
    check_primitive("logaddexp", OL_FLOAT32, 6, BITS(one, inf, inf, minus, minus, minus, /* and */ inf, inf, one, minus, inf, two), BITS(inf, inf, inf, minus, inf, two));
    check_primitive("logaddexp", OL_FLOAT16, 6, BITS(0x3C00, 0x7C00, 0x7C00, 0xFC00, 0xFC00, 0xFC00, 0x7C00, 0x7C00, 0x3C00, 0xFC00, 0x7C00, 0x4000),
                    BITS(0x7C00, 0x7C00, 0x7C00, 0xFC00, 0x7C00, 0x4000));
    check_primitive("logaddexp", OL_BFLOAT16, 6, BITS(0x3F80, 0x7F80, 0x7F80, 0xFF80, 0xFF80, 0xFF80, 0x7F80, 0x7F80, 0x3F80, 0xFF80, 0x7F80, 0x4000),
                    BITS(0x7F80, 0x7F80, 0x7F80, 0xFF80, 0x7F80, 0x4000));
}

BUILDER(build_signed_zeros)
{
    (void)user;
    out[0] = ol_add(g, in[0], ol_constant(g, OL_FLOAT32, 0.0));
    out[1] = ol_add(g, in[0], ol_constant(g, OL_FLOAT32, -0.0));
    out[2] = ol_multiply(g, in[0], ol_constant(g, OL_FLOAT32, 1.0));
    out[3] = ol_add(g, in[0], in[1]);
    out[4] = ol_add(g, in[0], in[0]);
    out[5] = ol_reciprocal(g, out[0]);
    return 0;
}

static void A27_signed_zero_is_kept(void **state)
{
    (void)state;
    check_graph(build_signed_zeros, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), BITS(0x80000000, 0), 6, BITS(0, 0x80000000, 0x80000000, 0, 0x80000000, F32_INF), 1);
}

BUILDER(build_body_and_tail)
{
    (void)user;
    ol_value x = ol_add(g, ol_multiply(g, in[0], in[1]), in[0]);
    out[0] = ol_astype(g, x, OL_BFLOAT16);
    out[1] = ol_astype(g, x, OL_FLOAT16);
    out[2] = ol_logaddexp(g, in[0], in[1]);
    out[3] = ol_maximum(g, x, in[1]);
    return 0;
}

/* Special values in random places of lengths around every vector width: each element as when it is alone. */
static void A28_vector_body_and_tail_agree(void **state)
{
    (void)state;
    static const uint32_t values[] = { 0x80000000, 0, F32_NAN, 0xFFA00001, F32_INF, 0xFF800000, 1, 0x80000001, 0x007FFFFF, 0x3F800000, 0x3F800800, 0xBF801000, 0x477FF000 };
    enum { N_VALUES = COUNT(values) };
    uint64_t single[4][N_VALUES][N_VALUES], random = harness_seed;
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *c = compile_on(level_device(level), build_body_and_tail, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 4);
        uint32_t x[140], y[140], r[4][140];
        ol_tensor in[2], out[4];
        ol_error error;
        for (size_t n = 0; n < 140; n = n ? n + 1 : 1) {
            size_t length = n ? n : 1, rounds = n ? 1 : (size_t)N_VALUES * N_VALUES;
            for (size_t round = 0; round < rounds; round++) {
                size_t pick_x[140], pick_y[140];
                for (size_t i = 0; i < length; i++) {
                    pick_x[i] = n ? random_below(&random, N_VALUES) : round / N_VALUES;
                    pick_y[i] = n ? random_below(&random, N_VALUES) : round % N_VALUES;
                    x[i] = values[pick_x[i]];
                    y[i] = values[pick_y[i]];
                }
                in[0] = vector_of(x, OL_FLOAT32, (int64_t)length);
                in[1] = vector_of(y, OL_FLOAT32, (int64_t)length);
                for (int o = 0; o < 4; o++)
                    out[o] = vector_of(r[o], ol_composite_output_dtype(c, o), (int64_t)length);
                assert_ok(ol_replay(c, NULL, in, out, &error), &error);
                for (int o = 0; o < 4; o++)
                    for (size_t i = 0; i < length; i++) {
                        uint64_t got = element_load(r[o], out[o].dtype, i);
                        if (n == 0 && level == 0)
                            single[o][pick_x[i]][pick_y[i]] = got;
                        else if (got != single[o][pick_x[i]][pick_y[i]])
                            fail_msg("%s, n %zu, element %zu, output %d: %llx; alone %llx", ol_device_level(level_device(level)), length, i, o,
                                     (unsigned long long)got, (unsigned long long)single[o][pick_x[i]][pick_y[i]]);
                    }
            }
        }
        ol_composite_destroy(c);
    }
}

static void A29_bf16_sigmoid_is_monotone_near_one(void **state)
{
    (void)state;
    check_primitive("sigmoid", OL_BFLOAT16, 4, BITS(0x40B0, 0x40B8, 0x40C0, 0x40C8), BITS(0x3F7F, 0x3F7F, 0x3F7F, 0x3F80));
}

BUILDER(build_sigmoid_alone_and_times_one)
{
    (void)user;
    out[0] = ol_sigmoid(g, in[0]);
    out[1] = ol_multiply(g, ol_sigmoid(g, in[0]), ol_constant(g, ol_value_dtype(g, in[0]), 1.0));
    return 0;
}

static void A30_sigmoid_alone_is_sigmoid_in_a_graph(void **state)
{
    (void)state;
    static const ol_dtype dtypes[] = { OL_FLOAT16, OL_BFLOAT16, OL_FLOAT32 };
    static uint32_t in[65536], first[65536], out[2][65536];
    for (size_t d = 0; d < 3; d++) {
        size_t n = d == 2 ? 4001 : 65536, n_bytes = n * ol_dtype_size(dtypes[d]);
        for (size_t i = 0; i < n; i++)
            element_store(in, dtypes[d], i, d == 2 ? f32_bits(-12.0f + 24.0f * (float)i / 4000.0f) : i);
        for (size_t level = 0; level < level_count(); level++) {
            ol_composite *alone = compile_on(level_device(level), build_primitive, primitive_named("sigmoid"), 1, &dtypes[d], 1);
            ol_composite *both = compile_on(level_device(level), build_sigmoid_alone_and_times_one, NULL, 1, &dtypes[d], 2);
            ol_tensor input = vector_of(in, dtypes[d], (int64_t)n), outputs[2] = { vector_of(out[0], dtypes[d], (int64_t)n), vector_of(out[1], dtypes[d], (int64_t)n) };
            ol_error error;
            assert_ok(ol_replay(alone, NULL, &input, outputs, &error), &error);
            if (level == 0)
                memcpy(first, out[0], n_bytes);
            assert_memory_equal(out[0], first, n_bytes);
            for (int path = 0; path < 2; path++) {
                assert_ok(replay_paths[path](both, NULL, &input, outputs, &error), &error);
                assert_memory_equal(out[0], first, n_bytes);
                assert_memory_equal(out[1], first, n_bytes);
            }
            ol_composite_destroy(alone);
            ol_composite_destroy(both);
        }
    }
}

enum { A31_LENGTH = 65 };

/* The bits of 65 elements each replayed alone at the first level, then each length and every level against them. */
static void check_positions(int32_t p, int32_t arity, const ol_dtype *dtypes, void *user)
{
    uint64_t data[3][A31_LENGTH], out[A31_LENGTH], alone[A31_LENGTH], *random = user;
    ol_tensor in[3], result;
    ol_error error;
    for (int k = 0; k < arity; k++)
        random_fill(random, data[k], dtypes[k], A31_LENGTH);
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *c = compile_on(level_device(level), build_primitive, PRIMITIVE_USER(p), arity, dtypes, 1);
        ol_dtype out_dtype = ol_composite_output_dtype(c, 0);
        size_t out_size = ol_dtype_size(out_dtype);
        for (int64_t i = 0; level == 0 && i < A31_LENGTH; i++) {
            for (int k = 0; k < arity; k++)
                in[k] = vector_of((char *)data[k] + (size_t)i * ol_dtype_size(dtypes[k]), dtypes[k], 1);
            result = vector_of((char *)alone + (size_t)i * out_size, out_dtype, 1);
            assert_ok(ol_replay(c, NULL, in, &result, &error), &error);
        }
        for (int64_t n = 1; n <= A31_LENGTH; n++) {
            int64_t from = A31_LENGTH - n;                 /* the same element at another index each time */
            for (int k = 0; k < arity; k++)
                in[k] = vector_of((char *)data[k] + (size_t)from * ol_dtype_size(dtypes[k]), dtypes[k], n);
            result = vector_of(out, out_dtype, n);
            assert_ok(replay_paths[n % 8 == 0](c, NULL, in, &result, &error), &error);
            if (memcmp(out, (char *)alone + (size_t)from * out_size, (size_t)n * out_size) != 0)
                for (size_t i = 0; i < (size_t)n; i++)
                    if (element_load(out, out_dtype, i) != element_load(alone, out_dtype, (size_t)from + i))
                        fail_msg("%s of %s, %s: at %zu of %d elements %llx, alone %llx (operand %llx)", ol_primitive_name(p), ol_dtype_name(dtypes[arity - 1]),
                                 ol_device_level(level_device(level)), i, (int)n, (unsigned long long)element_load(out, out_dtype, i),
                                 (unsigned long long)element_load(alone, out_dtype, (size_t)from + i),
                                 (unsigned long long)element_load(data[0], dtypes[0], (size_t)from + i));
        }
        ol_composite_destroy(c);
    }
}

static void A31_value_independent_of_length_and_index(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    each_primitive(check_positions, &random);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(A01_f16_overflow_survives_fusion), cmocka_unit_test(A02_sigmoid_of_large_magnitudes),
        cmocka_unit_test(A03_f16_softplus_keeps_its_linear_part), cmocka_unit_test(A04_f32_to_bf16_ties_to_even),
        cmocka_unit_test(A05_exp_of_a_log_in_the_stated_dtype), cmocka_unit_test(A06_smallest_subnormal_is_not_zero),
        cmocka_unit_test(A07_division_is_exact), cmocka_unit_test(A08_constants_keep_every_bit),
        cmocka_unit_test(A09_exp_at_the_bottom_edge), cmocka_unit_test(A10_f32_to_bf16_keeps_nan_and_infinity),
        cmocka_unit_test(A11_beta_rounds_where_the_graph_says), cmocka_unit_test(A12_nan_has_one_written_form),
        cmocka_unit_test(A13_comparisons_with_nan_on_either_side), cmocka_unit_test(A14_bf16_logaddexp_chain_rounds_each_step),
        cmocka_unit_test(A15_an_output_does_not_change_with_the_others), cmocka_unit_test(A16_f32_inputs_are_not_quantised),
        cmocka_unit_test(A17_bf16_multiply_add_is_two_roundings), cmocka_unit_test(A18_times_zero_and_minus_itself_stay),
        cmocka_unit_test(A19_strided_is_contiguous), cmocka_unit_test(A20_narrow_then_wide_is_two_roundings),
        cmocka_unit_test(A21_bf16_and_f32_betas_both_right), cmocka_unit_test(A22_sigmoid_keeps_its_negative_tail),
        cmocka_unit_test(A23_exp_at_the_top_edge), cmocka_unit_test(A24_a_comparison_widens_to_one),
        cmocka_unit_test(A25_f32_multiply_add_is_not_contracted), cmocka_unit_test(A26_logaddexp_of_infinities),
        cmocka_unit_test(A27_signed_zero_is_kept), cmocka_unit_test(A28_vector_body_and_tail_agree),
        cmocka_unit_test(A29_bf16_sigmoid_is_monotone_near_one), cmocka_unit_test(A30_sigmoid_alone_is_sigmoid_in_a_graph),
        cmocka_unit_test(A31_value_independent_of_length_and_index),
    };
    return HARNESS_RUN(argc, argv, tests);
}
