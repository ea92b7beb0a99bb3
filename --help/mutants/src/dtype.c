/* The dtypes: names, sizes, promotion, and a constant's conversion from double by integer operations alone. */
#include "dtype.h"

#include <string.h>

const uint8_t dtype_sizes[OL_DTYPE_COUNT] = { 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4 };

static const char *const dtype_names[OL_DTYPE_COUNT] = {
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
};

const char *ol_dtype_name(ol_dtype dtype)
{
    return dtype_valid(dtype) ? dtype_names[dtype] : NULL;
}

size_t ol_dtype_size(ol_dtype dtype)
{
    return dtype_valid(dtype) ? dtype_sizes[dtype] : 0;
}

int ol_dtype_parse(const char *name, ol_dtype *dtype)
{
    for (int d = 0; name && dtype && d < OL_DTYPE_COUNT; d++)
        if (strcmp(name, dtype_names[d]) == 0) {
            *dtype = (ol_dtype)d;
            return 1;
        }
    return 0;
}

ol_dtype ol_promote(ol_dtype x, ol_dtype y)
{
    if (x == y)
        return x;
    if (x > y) {               /* symmetric: the enum's order is bool, unsigned, signed, floats */
        ol_dtype t = x;
        x = y;
        y = t;
    }
    if (x == OL_BOOL)
        return y;
    if (dtype_is_float(y))
        return dtype_is_float(x) ? OL_FLOAT32 : y;       /* two different floats: float32 */
    if (dtype_is_unsigned(x) && dtype_is_signed(y)) {
        if (x == OL_UINT64)
            return OL_FLOAT32;
        ol_dtype wide = (ol_dtype)(OL_INT16 + (x - OL_UINT8));     /* the signed type twice as wide as x */
        return wide > y ? wide : y;
    }
    return y;                  /* same signedness: the wider */
}

/* Rounds a finite, non-zero double to `precision` significant bits with exponents from emin (subnormals below), ties to
 * even, as an IEEE-like format of `exponent_bits`. Returns its bits without the sign. */
static uint64_t round_to_format(uint64_t magnitude, int precision, int emin, int exponent_bits)
{
    int exponent = (int)(magnitude >> 52);
    uint64_t significand = magnitude & 0xFFFFFFFFFFFFFull;
    if (exponent)
        significand |= 1ull << 52;
    else
        exponent = 1;
    exponent -= 1023;                                    /* value = significand * 2^(exponent-52); a double's subnormals */
    int drop = 53 - precision;                           /* underflow to 0 in every narrower format, as they should */
    if (exponent < emin)
        drop += emin - exponent;
    if (drop > 54)
        drop = 54;                                       /* all of it is below half of the least subnormal */
    uint64_t kept = significand >> drop, rest = significand & ((1ull << drop) - 1), half = 1ull << (drop - 1);
    kept += rest > half || (rest == half && (kept & 1));
    /* A carry out of the significand runs into the exponent field, which is what rounding up to a power of two means. */
    int biased = exponent < emin ? 0 : exponent - emin + 1;
    uint64_t bits = biased ? ((uint64_t)(biased - 1) << (precision - 1)) + kept : kept;
    uint64_t infinity = (((uint64_t)1 << exponent_bits) - 1) << (precision - 1);
    return bits > infinity ? infinity : bits;
}

static uint64_t float_from_double(ol_dtype dtype, uint64_t bits)
{
    static const struct { int precision, emin, exponent_bits; uint64_t nan; } formats[] = {
        { 11, -14, 5, 0x7E00 }, { 8, -126, 8, 0x7FC0 }, { 24, -126, 8, 0x7FC00000 },
    };
    int f = dtype - OL_FLOAT16, width = dtype == OL_FLOAT32 ? 32 : 16;
    uint64_t sign = (bits >> 63) << (width - 1), magnitude = bits & 0x7FFFFFFFFFFFFFFFull;
    if (magnitude > 0x7FF0000000000000ull)
        return formats[f].nan;
    if (magnitude == 0x7FF0000000000000ull)
        return sign | (((1ull << formats[f].exponent_bits) - 1) << (formats[f].precision - 1));
    return magnitude ? sign | round_to_format(magnitude, formats[f].precision, formats[f].emin, formats[f].exponent_bits) : sign;
}

/* Truncated toward zero, saturated to [lowest, highest] in magnitude; NaN gives 0. */
static uint64_t integer_from_double(ol_dtype dtype, uint64_t bits)
{
    int negative = (int)(bits >> 63), width = 8 * dtype_sizes[dtype];
    uint64_t magnitude = bits & 0x7FFFFFFFFFFFFFFFull;
    uint64_t ones = width == 64 ? ~0ull : (1ull << width) - 1;
    uint64_t limit = dtype_is_unsigned(dtype) ? (negative ? 0 : ones) : (1ull << (width - 1)) - !negative;
    if (magnitude > 0x7FF0000000000000ull)
        return 0;
    int exponent = (int)(magnitude >> 52) - 1023;
    uint64_t whole = 0;
    if (exponent >= 64)
        whole = ~0ull;
    else if (exponent >= 0) {
        uint64_t significand = (magnitude & 0xFFFFFFFFFFFFFull) | 1ull << 52;
        whole = exponent >= 52 ? significand << (exponent - 52) : significand >> (52 - exponent);
    }
    if (whole > limit)
        whole = limit;
    return (negative ? 0 - whole : whole) & ones;
}

uint64_t dtype_from_double(ol_dtype dtype, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (dtype == OL_BOOL)
        return (bits & 0x7FFFFFFFFFFFFFFFull) != 0;
    return dtype_is_float(dtype) ? float_from_double(dtype, bits) : integer_from_double(dtype, bits);
}
