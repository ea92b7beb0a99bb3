/* Public bug reports against fusers of elementwise graphs, replayed here: the rows on dtypes, A32 to A40.
 *
 * Where a row speaks of weakly typed scalars or float64 (A35, A38, A40) the contract stands: a scalar traced into a graph is a
 * constant of a stated dtype and promotes like any other operand. The row's value under weak scalars is then what the constant
 * of the tensor's own dtype gives. */
#include "graph_cases.h"

#define BUILDER(name) static int name(ol_graph *g, const ol_value *in, ol_value *out, void *user)

BUILDER(build_bool_widenings)
{
    (void)user;
    out[0] = ol_astype(g, in[0], OL_INT64);
    out[1] = ol_astype(g, in[0], OL_INT8);
    out[2] = ol_astype(g, in[0], OL_FLOAT32);
    out[3] = ol_add(g, in[0], in[1]);
    return 0;
}

static void A32_true_widens_to_one(void **state)
{
    (void)state;
    const uint64_t one = 0x3F800000;
    /* bool + bool is bool, the logical or, as in NumPy. */
    check_graph(build_bool_widenings, NULL, 2, DTYPES(OL_BOOL, OL_BOOL), BITS(1, 0, 1, 1, /* plus */ 1, 0, 0, 1), 4,
                BITS(1, 0, 1, 1,  1, 0, 1, 1,  one, 0, one, one,  1, 0, 1, 1), 4);
    /* A bool is a byte; any byte but 0 that a host left there is true, and what comes out is 0 or 1. */
    check_graph(build_bool_widenings, NULL, 2, DTYPES(OL_BOOL, OL_BOOL), BITS(2, 0, 255, 128, /* plus */ 0, 0, 254, 64), 4,
                BITS(1, 0, 1, 1,  1, 0, 1, 1,  one, 0, one, one,  1, 0, 1, 1), 4);
}

static void each_bool_primitive(int32_t p, int32_t arity, const ol_dtype *dtypes, void *user)
{
    (void)user;
    if (dtypes[arity - 1] != OL_BOOL)
        return;
    enum { N = 8 };
    uint8_t clean[3][N], dirty[3][N], from_clean[N * 4], from_dirty[N * 4];
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *c = compile_on(level_device(level), build_primitive, PRIMITIVE_USER(p), arity, dtypes, 1);
        ol_tensor in_clean[3], in_dirty[3], out_clean = vector_of(from_clean, ol_composite_output_dtype(c, 0), N), out_dirty = out_clean;
        ol_error error;
        out_dirty.data = from_dirty;
        for (int k = 0; k < arity; k++) {
            for (int i = 0; i < N; i++) {
                clean[k][i] = (uint8_t)(i >> k & 1);
                dirty[k][i] = clean[k][i] ? (uint8_t)(2u << ((i + 3 * k) % 7)) : 0;
            }
            in_clean[k] = vector_of(clean[k], OL_BOOL, N);
            in_dirty[k] = vector_of(dirty[k], OL_BOOL, N);
        }
        for (int path = 0; path < 2; path++) {
            assert_ok(replay_paths[path](c, NULL, in_clean, &out_clean, &error), &error);
            assert_ok(replay_paths[path](c, NULL, in_dirty, &out_dirty, &error), &error);
            if (memcmp(from_clean, from_dirty, N * ol_dtype_size(out_clean.dtype)) != 0)
                fail_msg("%s at %s tells one true byte from another", ol_primitive_name(p), ol_device_level(level_device(level)));
        }
        ol_composite_destroy(c);
    }
}

static void A32_every_true_byte_is_true(void **state)
{
    (void)state;
    each_primitive(each_bool_primitive, NULL);
}

/* The report's kernel: the sum in the promoted dtype, everything after it in float32. */
BUILDER(build_decay)
{
    (void)user;
    ol_value rate = ol_exp(g, ol_astype(g, in[0], OL_FLOAT32)), sum = ol_astype(g, ol_add(g, in[1], in[2]), OL_FLOAT32);
    out[0] = ol_exp(g, ol_negative(g, ol_multiply(g, rate, ol_softplus(g, sum))));
    return 0;
}

/* The library's decay: the softplus, too, in the promoted dtype. */
BUILDER(build_decay_as_composed)
{
    (void)user;
    ol_value rate = ol_exp(g, ol_astype(g, in[0], OL_FLOAT32));
    out[0] = ol_exp(g, ol_negative(g, ol_multiply(g, rate, ol_softplus(g, ol_add(g, in[1], in[2])))));
    return 0;
}

static void A33_a_plus_dt_bias_in_the_promoted_dtype(void **state)
{
    (void)state;
    check_graph(build_decay, NULL, 3, DTYPES(OL_FLOAT32, OL_BFLOAT16, OL_BFLOAT16), BITS(0, 0x4042, 0x3C81), 1, BITS(0x3D39C3A1), 1);
    check_graph(build_decay, NULL, 3, DTYPES(OL_FLOAT32, OL_BFLOAT16, OL_FLOAT32), BITS(0, 0x4042, 0x3C810000), 1, BITS(0x3D39BE16), 1);
    /* exp(-3.09375), the softplus 3.0932… rounded to bfloat16. */
    check_graph(build_decay_as_composed, NULL, 3, DTYPES(OL_FLOAT32, OL_BFLOAT16, OL_BFLOAT16), BITS(0, 0x4042, 0x3C81), 1, BITS(0x3D39ADAC), 1);
    check_graph(build_decay_as_composed, NULL, 3, DTYPES(OL_FLOAT32, OL_BFLOAT16, OL_FLOAT32), BITS(0, 0x4042, 0x3C810000), 1, BITS(0x3D39BE16), 1);
}

BUILDER(build_add_then_widen)
{
    (void)user;
    out[0] = ol_astype(g, ol_add(g, in[0], in[1]), OL_INT16);
    return 0;
}

static void A34_u8_wraps_before_the_cast(void **state)
{
    (void)state;
    check_graph(build_add_then_widen, NULL, 2, DTYPES(OL_UINT8, OL_UINT8), BITS(128, 255, 128, 2), 1, BITS(0, 1), 2);
    check_graph(build_add_then_widen, NULL, 2, DTYPES(OL_INT8, OL_INT8), BITS(0x7F, 0x80, 1, 0xFF), 1, BITS(0xFF80, 0x7F), 2);
}

BUILDER(build_int_with_scalars)
{
    (void)user;
    out[0] = ol_multiply(g, in[0], ol_constant(g, OL_FLOAT32, 2.5));
    out[1] = ol_multiply(g, in[0], ol_constant(g, OL_FLOAT32, 0.5));
    out[2] = ol_add(g, in[0], ol_constant(g, OL_FLOAT32, 2.5));
    out[3] = ol_divide(g, in[0], ol_constant(g, OL_FLOAT32, 5.0));
    out[4] = ol_divide(g, in[0], ol_constant(g, OL_INT32, 5));         /* integers divide to float32 */
    return 0;
}

static void A35_a_float_scalar_is_not_truncated(void **state)
{
    (void)state;
    check_graph(build_int_with_scalars, NULL, 1, DTYPES(OL_INT32), BITS(7, 6, 1, 2, 3), 5,
                BITS(0x418C0000, 0x41700000, 0x40200000, 0x40A00000, 0x40F00000,
                     0x40600000, 0x40400000, 0x3F000000, 0x3F800000, 0x3FC00000,
                     0x41180000, 0x41080000, 0x40600000, 0x40900000, 0x40B00000,
                     0x3FB33333, 0x3F99999A, 0x3E4CCCCD, 0x3ECCCCCD, 0x3F19999A,
                     0x3FB33333, 0x3F99999A, 0x3E4CCCCD, 0x3ECCCCCD, 0x3F19999A), 5);
}

static void A36_logaddexp_in_half(void **state)
{
    (void)state;
    /* (1, 2), (-3, 4), (.5, .5), (100, -100), (-2, -7) */
    check_primitive("logaddexp", OL_FLOAT16, 5, BITS(0x3C00, 0xC200, 0x3800, 0x5640, 0xC000, 0x4000, 0x4400, 0x3800, 0xD640, 0xC700),
                    BITS(0x40A0, 0x4400, 0x3CC6, 0x5640, 0xBFF9));
    check_primitive("logaddexp", OL_BFLOAT16, 5, BITS(0x3F80, 0xC040, 0x3F00, 0x42C8, 0xC000, 0x4000, 0x4080, 0x3F00, 0xC2C8, 0xC0E0),
                    BITS(0x4014, 0x4080, 0x3F99, 0x42C8, 0xBFFF));
}

static void A37_float_to_integer_saturates(void **state)
{
    (void)state;
    /* One table on all paths: NaN gives 0, everything beyond the range its nearest end. */
    const uint64_t *in = BITS(0x7FC00000, 0x7F800000, 0xFF800000, 0x4F32D05E, 0xCF32D05E, 0xBF7FFFFF, 0x437F8000, 0x5F800000);
    check_astype(OL_FLOAT32, OL_INT32, 8, in, BITS(0, 0x7FFFFFFF, 0x80000000, 0x7FFFFFFF, 0x80000000, 0, 255, 0x7FFFFFFF));
    check_astype(OL_FLOAT32, OL_INT64, 8, in,
                 BITS(0, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 3000000000, 0xFFFFFFFF4D2FA200, 0, 255, 0x7FFFFFFFFFFFFFFF));
    check_astype(OL_FLOAT32, OL_UINT8, 8, in, BITS(0, 255, 0, 255, 0, 0, 255, 255));
    check_astype(OL_FLOAT32, OL_UINT32, 8, in, BITS(0, 0xFFFFFFFF, 0, 3000000000, 0, 0, 255, 0xFFFFFFFF));
    check_astype(OL_FLOAT32, OL_UINT64, 8, in, BITS(0, 0xFFFFFFFFFFFFFFFF, 0, 3000000000, 0, 0, 255, 0xFFFFFFFFFFFFFFFF));
    check_astype(OL_FLOAT32, OL_INT16, 8, in, BITS(0, 0x7FFF, 0x8000, 0x7FFF, 0x8000, 0, 255, 0x7FFF));
}

BUILDER(build_add_scalar)
{
    out[0] = ol_add(g, in[0], ol_constant(g, (ol_dtype)(intptr_t)user, -0.1));
    return 0;
}

static void A38_a_scalar_has_its_stated_dtype(void **state)
{
    (void)state;
    check_graph(build_add_scalar, DTYPE_USER(OL_BFLOAT16), 1, DTYPES(OL_BFLOAT16), BITS(0x3DCD), 1, BITS(0), 1);
    check_graph(build_add_scalar, DTYPE_USER(OL_FLOAT32), 1, DTYPES(OL_BFLOAT16), BITS(0x3DCD), 1, BITS(0x38CCCC00), 1);
}

BUILDER(build_comparisons)
{
    (void)user;
    out[0] = ol_less(g, in[0], in[1]);
    out[1] = ol_equal(g, in[0], in[1]);
    out[2] = ol_not_equal(g, in[0], in[0]);
    return 0;
}

static void A39_comparison_operands_are_not_cast_to_bool(void **state)
{
    (void)state;
    check_graph(build_comparisons, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), BITS(0x3E4CCCCD, 0x40000000, 0x7FC00000, /* with */ 0x3F333333, 0x40400000, 0x7FC00000), 3,
                BITS(1, 1, 0,  0, 0, 0,  0, 0, 1), 3);
}

BUILDER(build_equal_pi)
{
    out[0] = ol_equal(g, in[0], ol_constant(g, (ol_dtype)(intptr_t)user, 3.14));
    return 0;
}

static void A40_equality_in_the_promoted_dtype(void **state)
{
    (void)state;
    check_graph(build_equal_pi, DTYPE_USER(OL_BFLOAT16), 1, DTYPES(OL_BFLOAT16), BITS(0x4049), 1, BITS(1), 1);
    check_graph(build_equal_pi, DTYPE_USER(OL_FLOAT32), 1, DTYPES(OL_BFLOAT16), BITS(0x4049), 1, BITS(0), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(A32_true_widens_to_one), cmocka_unit_test(A32_every_true_byte_is_true),
        cmocka_unit_test(A33_a_plus_dt_bias_in_the_promoted_dtype), cmocka_unit_test(A34_u8_wraps_before_the_cast),
        cmocka_unit_test(A35_a_float_scalar_is_not_truncated), cmocka_unit_test(A36_logaddexp_in_half),
        cmocka_unit_test(A37_float_to_integer_saturates), cmocka_unit_test(A38_a_scalar_has_its_stated_dtype),
        cmocka_unit_test(A39_comparison_operands_are_not_cast_to_bool), cmocka_unit_test(A40_equality_in_the_promoted_dtype),
    };
    return HARNESS_RUN(argc, argv, tests);
}
