/* Rounding a wide value once to float32, float16 or bfloat16, and the exact conversions back.
 *
 * A value that is to be rounded twice is first rounded to odd (Boldo and Melquiond, "Emulation of FMA and correctly rounded
 * sums", 2008): truncated, with the last bit set if anything was lost. A later rounding to nearest, to at least two bits
 * less, then gives what rounding the exact value would have given.
 *
 * double has two bits or more to spare over each of the three, subnormals included. float32 has them over float16 and
 * bfloat16 (24 >= 2*11 + 2), which also makes float32 add, subtract, multiply, divide and sqrt of 16-bit operands followed
 * by a second rounding right (Figueroa, "When is double rounding innocuous?", 1995); the cases his theorem leaves out,
 * subnormal bfloat16 results, are proven by running all pairs (tests/prove). */
#ifndef NUM_ROUND_H
#define NUM_ROUND_H

#include "num_base.h"

/* ---- Rounding to odd ---------------------------------------------------------------------------------------------- */

/* s + e, |e| <= ulp(s)/2 and s the rounded sum, with the last bit forced on: right wherever s + e is never exactly
 * representable, and harmless where the bit has no say in the rounding to come. One subtraction and an or. */
NUM_FN double num_odd_forced64(double s, double e) {
    return num_from_bits64((num_bits64(s) - ((num_bits64(s) ^ num_bits64(e)) >> 63)) | 1);
}

/* a + b + c rounded to odd, |a| >= |b| or a = 0, c small: the sum of a and b is kept exact (Fast2Sum). */
NUM_FN double num_sum3_odd64(double a, double b, double c) {
    double sum = a + b;
    double rest = ((a - sum) + b) + c;
    double y = sum + rest;
    return num_odd_forced64(y, (sum - y) + rest);
}

/* s + e rounded to odd, exactly: untouched where e is 0 or s is not finite. */
NUM_FN double num_odd64(double s, double e) {
    uint64_t bits = num_bits64(s);
    uint64_t toward_zero = bits - ((bits ^ num_bits64(e)) >> 63);
    uint64_t exact = (e == 0.0) | ((bits & 0x7ff0000000000000ull) == 0x7ff0000000000000ull);
    return num_from_bits64(exact ? bits : (toward_zero | 1));
}

/* x + y rounded to odd; Knuth's 2Sum gives the error. */
NUM_FN double num_sum_odd64(double x, double y) {
    double s = x + y;
    double t = s - x;
    double e = (x - (s - t)) + (y - t);
    return num_odd64(s, e);
}

/* The same in float32. */
NUM_FN float num_odd32(float s, float e) {
    uint32_t bits = num_bits32(s);
    uint32_t toward_zero = bits - ((bits ^ num_bits32(e)) >> 31);
    uint32_t exact = (e == 0.0f) | ((bits & NUM_INF_BITS_F32) == NUM_INF_BITS_F32);
    return num_from_bits32(exact ? bits : (toward_zero | 1));
}

NUM_FN float num_sum_odd32(float x, float y) {
    float s = x + y;
    float t = s - x;
    float e = (x - (s - t)) + (y - t);
    return num_odd32(s, e);
}

/* ---- float32 -------------------------------------------------------------------------------------------------------- */

NUM_FN float num_to_f32(double x) { return num_canonical32((float)x); }

/* y is within `relative` of itself of the result: its rounding, open if not all of that range rounds alike; with x's sign. */
NUM_FN num_tried32 num_tried_within32(double y, double relative, float x) {
    float value = (float)(y * (1.0 + relative));
    num_tried32 out = { num_copysign32(value, x), value != (float)(y * (1.0 - relative)) };
    return out;
}

/* ---- bfloat16 ------------------------------------------------------------------------------------------------------- */

NUM_FN float num_widen_bf16(uint16_t x) { return num_from_bits32((uint32_t)x << 16); }

/* float32 to bfloat16, ties to even, overflow to infinity by the carry into the exponent. narrow_number: of no NaN. */
NUM_FN uint16_t num_narrow_number_bf16(float x) {
#ifdef NUM_NARROW_NUMBER_BF16
    return NUM_NARROW_NUMBER_BF16(x);
#else
    uint32_t bits = num_bits32(x);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
}

NUM_FN uint16_t num_narrow_bf16(float x) { return (uint16_t)(x == x ? num_narrow_number_bf16(x) : NUM_NAN_BITS_BF16); }

/* ---- float16 -------------------------------------------------------------------------------------------------------- */

/* Exact, of a float16 in the upper half of a word, whatever is in the lower one. With 224 added to its exponent, infinity and
 * NaN have those of float32, and a product with 2^-112 leaves them so. A subnormal has thereby got a leading 1 that it does
 * not have: 2^-15 (1 + m) is to be 2^-14 m = 2 (2^-15 (1 + m)) - 2^-14, which is the smaller of the two for m < 1 and the larger
 * one for normal numbers. No float32 subnormal, slow on many machines, is ever touched. */
NUM_FN float num_widen_upper_f16(uint32_t word) {
    float normal = num_from_bits32(((word >> 3) & 0x0fffe000u) + (224u << 23)) * 0x1p-112f;
    float subnormal = (normal + normal) - 0x1p-14f;
    float magnitude = subnormal < normal ? subnormal : normal;
    return num_from_bits32(num_bits32(magnitude) | (word & NUM_SIGN32));
}

NUM_FN float num_widen_f16(uint16_t x) {
#ifdef NUM_WIDEN_F16
    return NUM_WIDEN_F16(x);
#else
    return num_widen_upper_f16((uint32_t)x << 16);
#endif
}

/* float32 to float16, ties to even. Normal results: round the 13 bits away in the integer. Subnormal ones: adding 0.5 puts
 * the float16 subnormal's last bit, 2^-24, at the last bit of a float32, so the hardware's addition rounds. */
NUM_FN uint16_t num_narrow_number_f16(float x) {
#ifdef NUM_NARROW_NUMBER_F16
    return NUM_NARROW_NUMBER_F16(x);
#else
    uint32_t bits = num_bits32(x);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    uint32_t subnormal = num_bits32(num_from_bits32(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude >= 0x47800000u ? 0x7c00u : half;                  /* 65536 and more; 65520 got there by its carry */
    return (uint16_t)(half | sign);
#endif
}

NUM_FN uint16_t num_narrow_f16(float x) { return (uint16_t)(x == x ? num_narrow_number_f16(x) : NUM_NAN_BITS_F16); }

/* ---- 16 bits from a double, one rounding ---------------------------------------------------------------------------- */

/* x to the nearest value of `precision` bits with least exponent `exponent`: adding and subtracting 1.5 * 2^k rounds at bit
 * k - 52. The value is exact in float32; overflow is left to the narrowing. */
NUM_FN float num_round_precision(double x, int precision, int exponent) {
    double least = num_from_bits64((uint64_t)(1023 + exponent) << 52);
    double size = num_abs64(x);
    size = size < least ? least : size;
    size = size < 0x1p200 ? size : 0x1p200;              /* infinity and NaN pass through the addition */
    uint64_t power = num_bits64(size) & 0x7ff0000000000000ull;
    double shift = num_from_bits64(power + ((uint64_t)(53 - precision) << 52) + 0x0008000000000000ull);
    double rounded = (num_abs64(x) + shift) - shift;
    return (float)num_copysign64(rounded, x);
}

NUM_FN uint16_t num_to_bf16(double x) { return num_narrow_bf16(num_round_precision(x, 8, -126)); }
NUM_FN uint16_t num_to_f16(double x) { return num_narrow_f16(num_round_precision(x, 11, -14)); }

#endif
