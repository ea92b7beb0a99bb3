/* Dtypes: names and sizes, the whole promotion table, and what ol_constant makes of a double. */
#include "graph_cases.h"

#include "dtype.h"

#include <math.h>
#include <stdlib.h>

static const struct { const char *name; size_t size; } dtype_facts[OL_DTYPE_COUNT] = {
    { "bool", 1 }, { "uint8", 1 }, { "uint16", 2 }, { "uint32", 4 }, { "uint64", 8 }, { "int8", 1 }, { "int16", 2 }, { "int32", 4 }, { "int64", 8 },
    { "float16", 2 }, { "bfloat16", 2 }, { "float32", 4 },
};

static void names_and_sizes(void **state)
{
    (void)state;
    for (int d = 0; d < OL_DTYPE_COUNT; d++) {
        ol_dtype parsed = (ol_dtype)99;
        assert_string_equal(ol_dtype_name((ol_dtype)d), dtype_facts[d].name);
        assert_int_equal(ol_dtype_size((ol_dtype)d), dtype_facts[d].size);
        assert_true(ol_dtype_parse(dtype_facts[d].name, &parsed));
        assert_int_equal(parsed, d);
    }
    assert_null(ol_dtype_name((ol_dtype)OL_DTYPE_COUNT));
    assert_null(ol_dtype_name((ol_dtype)-1));
    assert_int_equal(ol_dtype_size((ol_dtype)OL_DTYPE_COUNT), 0);
    static const char *const none[] = { "", "float", "float64", "Float32", "float32 ", "float320", "b" };
    for (size_t i = 0; i < COUNT(none); i++) {
        ol_dtype untouched = (ol_dtype)77;
        assert_false(ol_dtype_parse(none[i], &untouched));
        assert_int_equal(untouched, 77);
    }
}

/* The table as the contract states it, written out: row with column. */
static const char *const promotions[OL_DTYPE_COUNT] = {
    /*         b8  u8  u16 u32 u64 i8  i16 i32 i64 f16 bf  f32 */
    /* b8  */ "b8  u8  u16 u32 u64 i8  i16 i32 i64 f16 bf  f32",
    /* u8  */ "u8  u8  u16 u32 u64 i16 i16 i32 i64 f16 bf  f32",
    /* u16 */ "u16 u16 u16 u32 u64 i32 i32 i32 i64 f16 bf  f32",
    /* u32 */ "u32 u32 u32 u32 u64 i64 i64 i64 i64 f16 bf  f32",
    /* u64 */ "u64 u64 u64 u64 u64 f32 f32 f32 f32 f16 bf  f32",
    /* i8  */ "i8  i16 i32 i64 f32 i8  i16 i32 i64 f16 bf  f32",
    /* i16 */ "i16 i16 i32 i64 f32 i16 i16 i32 i64 f16 bf  f32",
    /* i32 */ "i32 i32 i32 i64 f32 i32 i32 i32 i64 f16 bf  f32",
    /* i64 */ "i64 i64 i64 i64 f32 i64 i64 i64 i64 f16 bf  f32",
    /* f16 */ "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32",
    /* bf  */ "bf  bf  bf  bf  bf  bf  bf  bf  bf  f32 bf  f32",
    /* f32 */ "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32",
};
static const char *const short_names[OL_DTYPE_COUNT] = { "b8 ", "u8 ", "u16", "u32", "u64", "i8 ", "i16", "i32", "i64", "f16", "bf ", "f32" };

static int build_add(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_add(g, in[0], in[1]);
    out[1] = ol_where(g, in[0], in[0], in[1]);
    return 0;
}

static void promotion_table(void **state)
{
    (void)state;
    for (int x = 0; x < OL_DTYPE_COUNT; x++)
        for (int y = 0; y < OL_DTYPE_COUNT; y++) {
            ol_dtype expected = OL_BOOL;
            for (int d = 0; d < OL_DTYPE_COUNT; d++)
                if (strncmp(promotions[x] + 4 * y, short_names[d], 3) == 0)
                    expected = (ol_dtype)d;
            if (ol_promote((ol_dtype)x, (ol_dtype)y) != expected)
                fail_msg("%s with %s gives %s, expected %s", ol_dtype_name((ol_dtype)x), ol_dtype_name((ol_dtype)y),
                         ol_dtype_name(ol_promote((ol_dtype)x, (ol_dtype)y)), ol_dtype_name(expected));
            assert_int_equal(ol_promote((ol_dtype)y, (ol_dtype)x), expected);
            /* And a traced operation obeys it. */
            ol_composite *c = compile_on(level_device(0), build_add, NULL, 2, DTYPES((ol_dtype)x, (ol_dtype)y), 2);
            assert_int_equal(ol_composite_output_dtype(c, 0), expected);
            assert_int_equal(ol_composite_output_dtype(c, 1), expected);
            ol_composite_destroy(c);
        }
}

/* ---- Constants ---- */

/* The nearest value of a format with `precision` bits and least exponent `emin`, by the C library: scaled so that one unit in
 * the last place is 1, rounded by nearbyint. Exact: the scaling is by powers of two within double's range. */
static uint64_t expected_float(double value, int precision, int emin, int exponent_bits)
{
    uint64_t sign = (uint64_t)(signbit(value) != 0) << (precision - 1 + exponent_bits), infinity = ((1ull << exponent_bits) - 1) << (precision - 1);
    if (isnan(value))
        return infinity | 1ull << (precision - 2);
    if (isinf(value))
        return sign | infinity;
    if (value == 0)
        return sign;
    int exponent = ilogb(value);
    if (exponent < emin)
        exponent = emin;
    double units = nearbyint(ldexp(fabs(value), precision - 1 - exponent));        /* ulps; may reach 2^precision */
    if (ldexp(units, exponent - (precision - 1)) >= ldexp(1, 2 - emin))
        return sign | infinity;
    uint64_t n = (uint64_t)units;
    return sign | (n < 1ull << (precision - 1) ? n : ((uint64_t)(exponent - emin) << (precision - 1)) + n);
}

static uint64_t expected_integer(double value, ol_dtype dtype)
{
    int width = 8 * (int)ol_dtype_size(dtype), is_signed = dtype >= OL_INT8;
    double high = ldexp(1, width - is_signed), low = is_signed ? -high : 0;
    uint64_t ones = width == 64 ? ~0ull : (1ull << width) - 1;
    if (isnan(value))
        return 0;
    if (trunc(value) >= high)
        return is_signed ? ones >> 1 : ones;
    if (trunc(value) <= low)
        return is_signed ? 1ull << (width - 1) : 0;
    return (value < 0 ? 0 - (uint64_t)-trunc(value) : (uint64_t)trunc(value)) & ones;
}

static uint64_t expected_constant(double value, ol_dtype dtype)
{
    switch (dtype) {
    case OL_BOOL: return value != 0;
    case OL_FLOAT16: return expected_float(value, 11, -14, 5);
    case OL_BFLOAT16: return expected_float(value, 8, -126, 8);
    case OL_FLOAT32: return expected_float(value, 24, -126, 8);
    default: return expected_integer(value, dtype);
    }
}

static void check_constant(double value)
{
    for (int d = 0; d < OL_DTYPE_COUNT; d++) {
        uint64_t got = dtype_from_double((ol_dtype)d, value), expected = expected_constant(value, (ol_dtype)d);
        if (got != expected)
            fail_msg("%a as %s gives %llx, expected %llx", value, ol_dtype_name((ol_dtype)d), (unsigned long long)got, (unsigned long long)expected);
    }
}

static void constants_of_doubles(void **state)
{
    (void)state;
    static const double corners[] = {
        0, -0.0, 1, -1, 0.5, 1.5, 2.5, 0.1, 1.0 / 3, 65504, 65519.99, 65520, 65536, 0x1p-24, 0x1p-25, 0x1.000001p-25, 0x1.8p-25, 0x1.8p-24, 0x1p-14, 0x1.ffcp-15, 0x1.ffep-15,
        0x1.fffffep127, 0x1.ffffffp127, 0x1.fffffefp127, 0x1p128, 0x1p-149, 0x1p-150, 0x1.0000000000001p-150, 0x1.8p-149, 0x1p-126, 0x1.fffffffp-127, 0x1.fep127, 0x1.ffp127,
        0x1p-133, 0x1p-134, 0x1.8p-133, 0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023, INFINITY, -INFINITY, NAN, 127, 127.5, 128, -128, -128.9, -129, 255, 255.99, 256, 32767, 32768,
        65535, 65535.5, 2147483647, 2147483648, -2147483648, -2147483649.0, 4294967295.0, 4294967296.0, 0x1p63, -0x1p63, 0x1.fffffffffffffp62, 0x1.fffffffffffffp63, 0x1p64, 1e300,
        0x1.004p0, 0x1.00cp0, 0x1.002p0, 0x1.0020000000001p0, 0x1.01p0, 0x1.03p0, 0x1.0100000000001p0, 0x1.000001p0, 0x1.000003p0,
    };
    for (size_t i = 0; i < COUNT(corners); i++) {
        check_constant(corners[i]);
        check_constant(-corners[i]);
        check_constant(nextafter(corners[i], INFINITY));
        check_constant(nextafter(corners[i], -INFINITY));
    }
    uint64_t random = harness_seed;
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = random_next(&random), exponent = 1023 - 160 + random_below(&random, 320);
        double any, ranged;
        memcpy(&any, &bits, sizeof any);
        bits = (bits & 0x800FFFFFFFFFFFFF) | exponent << 52;
        if (i % 3 == 0)                        /* few bits: ties are likely */
            bits &= ~0ull << (52 - 25 + random_below(&random, 20));
        memcpy(&ranged, &bits, sizeof ranged);
        check_constant(any);
        check_constant(ranged);
    }
}

/* One constant of each kind, through tracing and replay. */
static int build_constants(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)in;
    for (int d = 0; d < OL_DTYPE_COUNT; d++)
        out[d] = ol_constant(g, (ol_dtype)d, *(const double *)user);
    return 0;
}

static int build_constants_of_bits(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)in;
    for (int d = 0; d < OL_DTYPE_COUNT; d++)
        out[d] = ol_constant_bits(g, (ol_dtype)d, user);
    return 0;
}

static void run_constants(ol_build build, void *user, uint64_t *results)
{
    ol_composite *c = compile_on(level_device(0), build, user, 0, NULL, OL_DTYPE_COUNT);
    ol_tensor out[OL_DTYPE_COUNT];
    ol_error error;
    for (int d = 0; d < OL_DTYPE_COUNT; d++) {
        results[d] = 0;
        out[d] = ol_tensor_contiguous(&results[d], (ol_dtype)d, 0, NULL);
    }
    assert_ok(ol_replay(c, NULL, NULL, out, &error), &error);
    ol_composite_destroy(c);
}

static void constants_reach_the_output(void **state)
{
    (void)state;
    static const double values[] = { 0.1, -3.75, 1e10, NAN, -0.0, INFINITY };
    for (size_t i = 0; i < COUNT(values); i++) {
        double value = values[i];
        uint64_t results[OL_DTYPE_COUNT];
        run_constants(build_constants, &value, results);
        for (int d = 0; d < OL_DTYPE_COUNT; d++)
            assert_int_equal(results[d], expected_constant(value, (ol_dtype)d));
    }
}

static void constants_of_bits_are_exact(void **state)
{
    (void)state;
    uint64_t bits = 0x8123456789ABCDEF, results[OL_DTYPE_COUNT];
    run_constants(build_constants_of_bits, &bits, results);
    for (int d = 0; d < OL_DTYPE_COUNT; d++) {
        uint64_t width = 8 * ol_dtype_size((ol_dtype)d);
        assert_int_equal(results[d], d == OL_BOOL ? 1 : width == 64 ? bits : bits & ((1ull << width) - 1));
    }
    /* A NaN payload becomes the canonical NaN when it becomes a result. */
    bits = 0xFFA5FDA5;
    run_constants(build_constants_of_bits, &bits, results);
    assert_int_equal(results[OL_FLOAT32], 0x7FC00000);
    assert_int_equal(results[OL_FLOAT16], 0x7E00);
    assert_int_equal(results[OL_UINT32], 0xFFA5FDA5);
}

static void primitives_by_number(void **state)
{
    (void)state;
    for (int32_t p = 0; p < ol_primitive_count(); p++) {
        assert_int_equal(ol_primitive_find(ol_primitive_name(p)), p);
        assert_in_range(ol_primitive_arity(p), 1, 3);
        ol_dtype result;
        for (int d = -1; d <= OL_DTYPE_COUNT; d += OL_DTYPE_COUNT + 1)
            assert_false(ol_primitive_result(p, (ol_dtype)d, &result));
    }
    static const struct { const char *name; ol_dtype operand; int result; } rules[] = {
        { "exp", OL_INT32, OL_FLOAT32 }, { "exp", OL_BFLOAT16, OL_BFLOAT16 }, { "add", OL_BOOL, OL_BOOL }, { "divide", OL_INT64, OL_FLOAT32 },
        { "less", OL_FLOAT16, OL_BOOL }, { "isnan", OL_UINT8, OL_BOOL }, { "logical_and", OL_FLOAT32, OL_BOOL }, { "bitwise_and", OL_FLOAT32, -1 },
        { "bitwise_and", OL_BOOL, OL_BOOL }, { "left_shift", OL_BOOL, -1 }, { "left_shift", OL_INT8, OL_INT8 }, { "where", OL_FLOAT16, OL_FLOAT16 },
    };
    for (size_t i = 0; i < COUNT(rules); i++) {
        ol_dtype result = (ol_dtype)-1;
        int taken = ol_primitive_result(ol_primitive_find(rules[i].name), rules[i].operand, &result);
        assert_int_equal(taken, rules[i].result >= 0);
        if (taken)
            assert_int_equal(result, rules[i].result);
    }
    assert_int_equal(ol_primitive_find("no such"), -1);
    assert_int_equal(ol_primitive_find(NULL), -1);
    assert_null(ol_primitive_name(-1));
    assert_null(ol_primitive_name(ol_primitive_count()));
    assert_int_equal(ol_primitive_arity(ol_primitive_count()), 0);
}

static void status_names_are_pinned(void **state)
{
    (void)state;
    static const char *const names[] = { "OL_OK", "OL_ERROR_ARGUMENT", "OL_ERROR_DTYPE", "OL_ERROR_SHAPE", "OL_ERROR_OVERLAP", "OL_ERROR_BUILDER",
                                         "OL_ERROR_LIMIT", "OL_ERROR_MEMORY", "OL_ERROR_DEVICE", "OL_ERROR_TEXT" };
    for (size_t i = 0; i < COUNT(names); i++)
        assert_string_equal(ol_status_name((ol_status)i), names[i]);
    assert_string_equal(ol_status_name((ol_status)COUNT(names)), "unknown status");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_sizes), cmocka_unit_test(promotion_table), cmocka_unit_test(constants_of_doubles),
        cmocka_unit_test(constants_reach_the_output), cmocka_unit_test(constants_of_bits_are_exact), cmocka_unit_test(primitives_by_number),
        cmocka_unit_test(status_names_are_pinned),
    };
    return HARNESS_RUN(argc, argv, tests);
}
