/* sin, cos, tan of any float32 in fixed point: the second look of num_trig64.h and num_trig32.h, for large arguments and for
 * results too close to a rounding boundary. Scalar code on integers, so the same with fused steps and without.
 *
 * The reduction is exact for any argument (Payne and Hanek, "Radian reduction for trigonometric functions", 1983): x = m 2^e
 * is multiplied by the 128 bits of 2/pi that matter; what the bits above them contribute are multiples of 4. At most 2^24
 * units of the last bit are lost, and no float32 comes closer than 2^-29.3 to a multiple of pi/2 (0x1.f37c8ap+95 does), so
 * 72 bits of the remainder are good. sin and cos are their Taylor series in units of 2^-64, cut where the next term is below
 * 2^-63; the relative error of a result is below 2^-59. */
#ifndef NUM_TRIG_FIXED_H
#define NUM_TRIG_FIXED_H

#include "num_round.h"

/* The high half of a product. */
NUM_FN uint64_t num_high_product64(uint64_t x, uint64_t y) {
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)(((wide)x * y) >> 64);
#else
    uint64_t x0 = (uint32_t)x, x1 = x >> 32, y0 = (uint32_t)y, y1 = y >> 32;
    uint64_t middle = x1 * y0 + ((x0 * y0) >> 32);
    uint64_t other = x0 * y1 + (uint32_t)middle;
    return x1 * y1 + (middle >> 32) + (other >> 32);
#endif
}

/* mantissa * 2^(exponent - 63), the top bit of the mantissa set. */
typedef struct num_fixed64 {
    uint64_t mantissa;
    int exponent;
} num_fixed64;

/* Of x that is not 0. */
NUM_FN int num_leading_zeros64(uint64_t x) {
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
    return __clzll((long long)x);
#else
    return __builtin_clzll(x);
#endif
}

NUM_FN num_fixed64 num_normal_fixed64(uint64_t mantissa, int exponent) {
    int shift = num_leading_zeros64(mantissa);
    num_fixed64 out = { mantissa << shift, exponent - shift };
    return out;
}

/* |x| = quadrant pi/2 + or - r, 0 < r < 0.7855. */
typedef struct num_angle {
    num_fixed64 r;
    uint32_t quadrant;                           /* modulo 4 */
    uint32_t negative;
} num_angle;

/* x is finite and not 0. */
NUM_FN num_angle num_reduce_fixed64(float x) {
    const uint32_t two_over_pi[9] = { 0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
                                      0xdebbc561 };          /* after the point; the word before it is 0 */
    num_angle out = { { 0, 0 }, 0, 0 };
    uint32_t bits = num_bits32(x) & ~NUM_SIGN32, field = bits >> 23;
    uint64_t m = field ? (bits & 0x007fffffu) | 0x00800000u : bits;
    int e = (int)(field ? field : 1) - 150;
    if (bits < 0x3f490fdbu) {                    /* pi/4 */
        out.r = num_normal_fixed64(m, e + 63);
        return out;
    }
    /* Four words of 2^(e - 2) 2/pi modulo 1. */
    uint32_t word[4];
    int from = e + 30;
    for (int i = 0; i < 4; i++) {
        const uint32_t *at = two_over_pi + (from >> 5) + i;
        uint64_t pair = (uint64_t)at[0] << 32 | at[1];
        word[i] = (uint32_t)(pair >> (32 - (from & 31)));
    }
    uint64_t p0 = m * word[3], p1 = m * word[2] + (p0 >> 32), p2 = m * word[1] + (p1 >> 32), p3 = m * word[0] + (p2 >> 32);
    uint64_t high = p3 << 32 | (uint32_t)p2, low = p1 << 32 | (uint32_t)p0;
    out.quadrant = (uint32_t)((high + (1ull << 61)) >> 62);
    high -= (uint64_t)out.quadrant << 62;
    out.negative = (uint32_t)(high >> 63);
    if (out.negative) high = ~high, low = ~low;
    int shift = num_leading_zeros64(high);       /* 2 to 34 */
    high = high << shift | low >> (64 - shift);  /* for the bounds above; the results of all float32 are right without `low`, too */
    out.r = num_normal_fixed64(num_high_product64(high, 0xc90fdaa22168c235ull), 2 - shift);      /* pi/2 */
    return out;
}

/* sin(r) and cos(r), both positive. */
NUM_FN num_fixed64 num_sin_series64(num_fixed64 r, uint64_t square) {
    uint64_t q = 0x00000000000000ca96;           /* 1/17!, in units of 2^-64, and so on */
    q = 0x0000000000d73f9full - num_high_product64(square, q);
    q = 0x00000000b092309dull - num_high_product64(square, q);
    q = 0x0000006b99159fd5ull - num_high_product64(square, q);
    q = 0x00002e3bc74aad8eull - num_high_product64(square, q);
    q = 0x000d00d00d00d00dull - num_high_product64(square, q);
    q = 0x0222222222222222ull - num_high_product64(square, q);
    q = 0x2aaaaaaaaaaaaaabull - num_high_product64(square, q);
    q = num_high_product64(square, q);
    return num_normal_fixed64(r.mantissa - num_high_product64(r.mantissa, q), r.exponent);
}

NUM_FN num_fixed64 num_cos_series64(uint64_t square) {
    uint64_t q = 0x0000000000000b41ull;          /* 1/18! */
    q = 0x00000000000d73faull - num_high_product64(square, q);
    q = 0x000000000c9cba54ull - num_high_product64(square, q);
    q = 0x00000008f76c77fcull - num_high_product64(square, q);
    q = 0x0000049f93edde28ull - num_high_product64(square, q);
    q = 0x0001a01a01a01a02ull - num_high_product64(square, q);
    q = 0x005b05b05b05b05bull - num_high_product64(square, q);
    q = 0x0aaaaaaaaaaaaaabull - num_high_product64(square, q);
    q = 0x8000000000000000ull - num_high_product64(square, q);
    q = num_high_product64(square, q);
    return num_normal_fixed64(~q, -1);
}

/* sin(a) for an even quadrant and cos(a) for an odd one, without the sign. */
NUM_FN num_fixed64 num_sine_fixed64(num_angle a, uint32_t quadrant) {
    int shift = -2 - 2 * a.r.exponent;
    uint64_t square = shift < 64 ? num_high_product64(a.r.mantissa, a.r.mantissa) >> shift : 0;
    return quadrant & 1 ? num_cos_series64(square) : num_sin_series64(a.r, square);
}

/* Its sign bit. */
NUM_FN uint32_t num_sine_negative(num_angle a, uint32_t quadrant) { return (quadrant >> 1 & 1) ^ (a.negative & ~quadrant & 1); }

/* A double, rounded to odd as no result is exact: rounding it again gives one rounding of the result. */
NUM_FN double num_fixed_to_odd64(num_fixed64 x, uint32_t negative) {
    uint64_t bits = ((uint64_t)(x.exponent + 1023) << 52) + ((x.mantissa << 1) >> 12);
    return num_from_bits64(bits | 1 | (uint64_t)negative << 63);
}

NUM_FN double num_sin_fixed64(float x) {
    if (!(num_abs32(x) < num_inf32())) return num_nan64();
    if (x == 0.0f) return (double)x;
    num_angle a = num_reduce_fixed64(x);
    return num_fixed_to_odd64(num_sine_fixed64(a, a.quadrant), num_sine_negative(a, a.quadrant) ^ num_bits32(x) >> 31);
}

NUM_FN double num_cos_fixed64(float x) {
    if (!(num_abs32(x) < num_inf32())) return num_nan64();
    if (x == 0.0f) return 1.0;
    num_angle a = num_reduce_fixed64(x);
    return num_fixed_to_odd64(num_sine_fixed64(a, a.quadrant + 1), num_sine_negative(a, a.quadrant + 1));
}

/* The quotient's first 32 or 33 bits, by double division; more are not needed for a float32, as the last one is forced on. Three
 * roundings may carry a quotient that is within 2^-17 below an integer over to it, which would matter halfway between two float32:
 * of all 2^32 arguments none is there. */
NUM_FN double num_tan_fixed64(float x) {
    if (!(num_abs32(x) < num_inf32())) return num_nan64();
    if (x == 0.0f) return (double)x;
    num_angle a = num_reduce_fixed64(x);
    num_fixed64 sine = num_sine_fixed64(a, a.quadrant), cosine = num_sine_fixed64(a, a.quadrant + 1);
    uint64_t dividend = sine.mantissa >> 2, divisor = cosine.mantissa >> 2;
    uint64_t quotient = (uint64_t)((double)(int64_t)dividend / (double)(int64_t)divisor * 0x1p32);
    num_fixed64 y = num_normal_fixed64(quotient, sine.exponent - cosine.exponent + 31);
    return num_fixed_to_odd64(y, num_sine_negative(a, a.quadrant) ^ num_sine_negative(a, a.quadrant + 1) ^ num_bits32(x) >> 31);
}

#endif
