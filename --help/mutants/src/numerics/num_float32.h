/* float32 arithmetic: everything but the transcendental functions. One rounding, canonical NaN.
 *
 * maximum and minimum know the zeros apart and propagate NaN. Where SSE2 lacks an instruction for floor, ceil and round, adding
 * and subtracting 2^23 rounds to an integer. floor_divide and remainder are exact before their one rounding:
 *
 * q = x / y in double. Both are multiples of ulp(y) when |x| >= |y|, so a q that is not an integer is 2^-24 or more away from
 * any; the double quotient is wrong about its floor only above 2^29. There the remainder x - q y, computed exactly by
 * splitting q in two, tells. From 2^49 on, floor(q) and q round to the same float32 or bfloat16: a quotient of two 24-bit
 * numbers is never closer to a 25-bit midpoint than 2^-49 of itself, unless it is one. */
#ifndef NUM_FLOAT32_H
#define NUM_FLOAT32_H

#include "num_round.h"

NUM_FN float num_abs_f32(float x) { return num_canonical32(num_abs32(x)); }
NUM_FN float num_negative_f32(float x) { return num_canonical32(num_from_bits32(num_bits32(x) ^ NUM_SIGN32)); }
NUM_FN float num_square_f32(float x) { return num_canonical32(x * x); }
NUM_FN float num_sqrt_f32(float x) { return num_canonical32(NUM_SQRT32(x)); }
NUM_FN float num_reciprocal_f32(float x) { return num_canonical32(1.0f / x); }

NUM_FN float num_sign_f32(float x) {
    float one = num_copysign32(1.0f, x);
    return num_canonical32(((x > 0.0f) | (x < 0.0f)) ? one : x);
}

/* To an integer: by the instruction, in the default rounding mode, or by arithmetic. */
#if NUM_HAS_ROUNDING
NUM_FN float num_integer32(float x) { return __builtin_rintf(x); }
NUM_FN float num_floor32(float x) { return __builtin_floorf(x); }
NUM_FN float num_ceil32(float x) { return __builtin_ceilf(x); }
#else
/* |x| >= 2^23, infinity and NaN are their own integers. */
NUM_FN float num_integer32(float x) {
    float magnitude = num_abs32(x);
    float rounded = (magnitude + 0x1p23f) - 0x1p23f;
    return magnitude < 0x1p23f ? num_copysign32(rounded, x) : x;
}

NUM_FN float num_floor32(float x) {
    float rounded = num_integer32(x);
    return num_copysign32(rounded > x ? rounded - 1.0f : rounded, x);
}

NUM_FN float num_ceil32(float x) {
    float rounded = num_integer32(x);
    return num_copysign32(rounded < x ? rounded + 1.0f : rounded, x);
}
#endif

NUM_FN float num_floor_f32(float x) { return num_canonical32(num_floor32(x)); }
NUM_FN float num_ceil_f32(float x) { return num_canonical32(num_ceil32(x)); }
NUM_FN float num_round_f32(float x) { return num_canonical32(num_integer32(x)); }

NUM_FN float num_add_f32(float x, float y) { return num_canonical32(x + y); }
NUM_FN float num_subtract_f32(float x, float y) { return num_canonical32(x - y); }
NUM_FN float num_multiply_f32(float x, float y) { return num_canonical32(x * y); }
NUM_FN float num_divide_f32(float x, float y) { return num_canonical32(x / y); }

/* Equal operands have equal bits, unless they are zeros: and-ing gives +0 where one is, or-ing -0. */
NUM_FN float num_maximum_f32(float x, float y) {
    float larger = x > y ? x : y;
    float same = num_from_bits32(num_bits32(x) & num_bits32(y));
    larger = x == y ? same : larger;
    return ((x == x) & (y == y)) ? larger : num_from_bits32(NUM_NAN_BITS_F32);
}

NUM_FN float num_minimum_f32(float x, float y) {
    float smaller = x < y ? x : y;
    float same = num_from_bits32(num_bits32(x) | num_bits32(y));
    smaller = x == y ? same : smaller;
    return ((x == x) & (y == y)) ? smaller : num_from_bits32(NUM_NAN_BITS_F32);
}

/* minimum(maximum(x, low), high), with NaN looked at once: a NaN in the middle makes compilers branch. */
NUM_FN float num_clip_f32(float x, float low, float high) {
    float larger = x > low ? x : low;
    larger = x == low ? num_from_bits32(num_bits32(x) & num_bits32(low)) : larger;
    float smaller = larger < high ? larger : high;
    smaller = larger == high ? num_from_bits32(num_bits32(larger) | num_bits32(high)) : smaller;
    return ((x == x) & (low == low) & (high == high)) ? smaller : num_from_bits32(NUM_NAN_BITS_F32);
}

/* x*y + z, one rounding. Without the instruction: the product is exact in double, the sum is rounded to odd. */
NUM_FN float num_fma_f32(float x, float y, float z) {
#if NUM_HAS_FMA
    return num_canonical32(NUM_FMA32(x, y, z));
#else
    return num_to_f32(num_sum_odd64((double)x * (double)y, (double)z));
#endif
}

/* For 16-bit operands: x*y is exact in float32, the sum is rounded to odd and so narrows rightly. */
NUM_FN float num_fma_for_f16(float x, float y, float z) { return num_sum_odd32(x * y, z); }

/* Open where the product of two bfloat16 underflows float32, or may overflow it and be brought back by the sum. */
NUM_FN num_tried32 num_fma_try_for_bf16(float x, float y, float z) {
    float product = x * y, magnitude = num_abs32(product);
    int small = (int)(magnitude < 0x1p-110f) & (int)(x != 0.0f) & (int)(y != 0.0f);
    int large = (int)(magnitude > 0x1p126f) & (int)(num_abs32(x) < num_inf32()) & (int)(num_abs32(y) < num_inf32());
    num_tried32 out = { num_canonical32(num_sum_odd32(product, z)), (uint32_t)(small | large) };
    return out;
}

NUM_FN float num_fma_again_for_bf16(float x, float y, float z) {
    return num_canonical32(num_round_precision(num_sum_odd64((double)x * (double)y, (double)z), 8, -126));
}

NUM_FN float num_fma_for_bf16(float x, float y, float z) {
    num_tried32 tried = num_fma_try_for_bf16(x, y, z);
    return tried.open ? num_fma_again_for_bf16(x, y, z) : tried.value;
}

/* ---- Quotient and remainder ----------------------------------------------------------------------------------------- */

#if NUM_HAS_ROUNDING
NUM_FN double num_integer64(double x) { return __builtin_rint(x); }
NUM_FN double num_floor64(double x) { return __builtin_floor(x); }
#else
/* Rounds |x| < 2^51 to an integer; what is larger passes. */
NUM_FN double num_integer64(double x) {
    double magnitude = num_abs64(x);
    double rounded = (magnitude + 0x1p52) - 0x1p52;
    return magnitude < 0x1p51 ? num_copysign64(rounded, x) : x;
}

NUM_FN double num_floor64(double x) {
    double rounded = num_integer64(x);
    return num_copysign64(rounded > x ? rounded - 1.0 : rounded, x);
}
#endif

/* x - q y for an integer |q| < 2^50 near x / y, exact: each part of q times y has at most 50 bits. */
NUM_FN double num_exact_remainder64(double x, double q, double y) {
    double high = (q + 0x1.8p77) - 0x1.8p77;             /* a multiple of 2^25 */
    return (x - high * y) - (q - high) * y;
}

/* floor(x / y) for x and y that are float32 values; a double that rounds to the right float32, float16 or bfloat16.
 * By zero: x / y, as IEEE 754 has it. An infinite x over a finite y that is not zero: NaN (as Python's fmod has no remainder
 * there). A finite x over infinity: 0 with the quotient's sign if the signs agree or x is 0, else -1. */
NUM_FN double num_floor_divide64(double x, double y) {
    double quotient = x / y;
    double q = num_floor64(quotient);
    double rest = num_exact_remainder64(x, q, y);
    int below = (num_abs64(q) < 0x1p50) & (((rest < 0.0) & (y > 0.0)) | ((rest > 0.0) & (y < 0.0)));
    q = below ? q - 1.0 : q;
    int infinite_x = num_abs64(x) == num_inf64();
    int infinite_y = num_abs64(y) == num_inf64();
    q = (infinite_y & (x != 0.0) & !infinite_x & ((x < 0.0) != (y < 0.0)) & (x == x)) ? -1.0 : q;
    q = (infinite_x & (y != 0.0)) ? num_nan64() : q;
    return y == 0.0 ? quotient : q;
}

NUM_FN float num_floor_divide_f32(float x, float y) { return num_to_f32(num_floor_divide64((double)x, (double)y)); }

/* For 16-bit operands, q the floor of their quotient where that is neither 0 nor too small for float32. */
NUM_FN float num_floor_divide_special32(float x, float y, float q) {
    int opposite = (int)((num_bits32(x) ^ num_bits32(y)) >> 31);
    q = (opposite & (num_abs32(x) < num_abs32(y)) & (x != 0.0f)) ? -1.0f : q;
    return ((num_abs32(x) == num_inf32()) & (y != 0.0f)) ? num_from_bits32(NUM_NAN_BITS_F32) : q;
}

/* The argument of the head with 8 bits: a quotient that is no integer is more than 2^-8 away from any, so below 2^17 the floor
 * is right; from there on the quotient is more than 2^-17 of it, and so 1 or more, away from what lies halfway. */
NUM_FN float num_floor_divide_for_bf16(float x, float y) { return num_floor_divide_special32(x, y, num_floor32(x / y)); }

#if NUM_HAS_FMA
/* float32 in float32 arithmetic: below 2^22 a quotient is rounded by 1/4 at most, so its floor is right or 1 too much, and the
 * remainder that tells is a multiple of y's last bit below |y|, which the fma has exactly. */
NUM_FN num_tried32 num_floor_divide_try32(float x, float y) {
    float quotient = x / y, q = num_floor32(quotient);
    float rest = NUM_FMA32(-q, y, x);
    int below = ((rest < 0.0f) & (y > 0.0f)) | ((rest > 0.0f) & (y < 0.0f));
    int is_large = num_abs32(quotient) >= 0x1p22f, is_finite = num_abs32(x) < num_inf32(), open = is_large & is_finite & (y != 0.0f);
    num_tried32 out = { num_canonical32(num_floor_divide_special32(x, y, below ? q - 1.0f : q)), (uint32_t)open };
    return out;
}

NUM_FN float num_floor_divide_again32(float x, float y) { return num_floor_divide_f32(x, y); }
#endif

/* With 11 bits it may be 1 too much from 2^14 on; from 2^16 on it overflows. The remainder is exact: each part of q has 10 bits. */
NUM_FN float num_floor_divide_for_f16(float x, float y) {
    float q = num_floor32(x / y);
    float high = (q + 0x1.8p29f) - 0x1.8p29f;            /* a multiple of 2^6 */
    float rest = (x - high * y) - (q - high) * y;
    int below = (num_abs32(q) < 0x1p17f) & (((rest < 0.0f) & (y > 0.0f)) | ((rest > 0.0f) & (y < 0.0f)));
    return num_floor_divide_special32(x, y, below ? q - 1.0f : q);
}

/* The remainder with the divisor's sign, rounded once, from the exact remainder of the truncated division. */
NUM_FN float num_finish_remainder(float rest, float x, float y) {
    float shifted = ((rest < 0.0f) != (y < 0.0f)) ? rest + y : rest;
    float result = rest == 0.0f ? num_copysign32(0.0f, y) : shifted;
    int defined = (num_abs32(x) < num_inf32()) & (y == y) & (y != 0.0f);
    return defined ? result : num_from_bits32(NUM_NAN_BITS_F32);
}

/* Whether the quotient is too large for num_remainder_small32. False for NaN and infinity, for which it is right. */
NUM_FN int num_remainder_large(float x, float y) {
    double quotient = num_abs64((double)x / (double)y);
    return (quotient >= 0x1p49) & (quotient < num_inf64());
}

/* remainder where |x / y| < 2^49. */
NUM_FN float num_remainder_small32(float x, float y) {
    double dx = num_abs64((double)x), dy = num_abs64((double)y);
    double q = num_integer64(dx / dy);
    double rest = num_exact_remainder64(dx, q, dy);
    rest = rest < 0.0 ? rest + dy : rest;                /* the quotient had been rounded up */
    rest = dx < dy ? dx : rest;                          /* also the infinite divisor, and exact */
    return num_finish_remainder(num_copysign32((float)rest, x), x, y);
}

/* remainder where |x / y| >= 2^49, both finite: takes 24 bits off the quotient at a time, exactly. */
NUM_FN float num_remainder_large32(float x, float y) {
    double dy = num_abs64((double)y), rest = num_abs64((double)x);
    while (rest >= dy) {
        int64_t gap = (int64_t)(num_bits64(rest) >> 52) - (int64_t)(num_bits64(dy) >> 52) - 24;
        double scaled = dy * num_from_bits64((uint64_t)(1023 + (gap > 0 ? gap : 0)) << 52);
        double q = num_integer64(rest / scaled);
        rest -= q * scaled;
        rest = rest < 0.0 ? rest + scaled : rest;
    }
    return num_finish_remainder(num_copysign32((float)rest, x), x, y);
}

NUM_FN float num_remainder_f32(float x, float y) {
    return num_remainder_large(x, y) ? num_remainder_large32(x, y) : num_remainder_small32(x, y);
}

/* In float32 arithmetic, open from `limit` on. The integer next to the quotient is 1/2 + 1/4 away from it at most, so what an fma
 * leaves is exact up to 2^22 and for any operands. Without an fma q |y| has to be exact, 24 bits less those of an operand, and may
 * overflow where |x| is as large as can be. */
NUM_FN num_tried32 num_remainder_try_below(float x, float y, float limit) {
    float a = num_abs32(x), b = num_abs32(y), quotient = a / b;
    float q = (quotient + 0x1p23f) - 0x1p23f;
    float rest = num_step32(-q, b, a);
    rest = rest < 0.0f ? rest + b : rest;                /* the quotient had been rounded up */
    rest = a < b ? a : rest;
    int open = ((quotient >= limit) | (!NUM_HAS_FMA & (a >= 0x1p127f))) & (a < num_inf32()) & (b != 0.0f);
    num_tried32 out = { num_finish_remainder(num_copysign32(rest, x), x, y), (uint32_t)open };
    return out;
}

#if NUM_HAS_FMA
NUM_FN num_tried32 num_remainder_try32(float x, float y) { return num_remainder_try_below(x, y, 0x1p22f); }
#else
NUM_FN num_tried32 num_remainder_try32(float x, float y) {
    num_tried32 out = { num_remainder_small32(x, y), (uint32_t)num_remainder_large(x, y) };
    return out;
}
#endif
NUM_FN float num_remainder_again32(float x, float y) { return num_remainder_f32(x, y); }

NUM_FN num_tried32 num_remainder_try_for_f16(float x, float y) {
    return num_remainder_try_below(x, y, NUM_HAS_FMA ? 0x1p22f : 0x1p13f);
}

NUM_FN num_tried32 num_remainder_try_for_bf16(float x, float y) {
    return num_remainder_try_below(x, y, NUM_HAS_FMA ? 0x1p22f : 0x1p16f);
}

NUM_FN float num_remainder_again_for_f16(float x, float y) { return num_remainder_small32(x, y); }
NUM_FN float num_remainder_again_for_bf16(float x, float y) { return num_remainder_f32(x, y); }

NUM_FN float num_remainder_for_f16(float x, float y) {
    num_tried32 tried = num_remainder_try_for_f16(x, y);
    return tried.open ? num_remainder_again_for_f16(x, y) : tried.value;
}

NUM_FN float num_remainder_for_bf16(float x, float y) {
    num_tried32 tried = num_remainder_try_for_bf16(x, y);
    return tried.open ? num_remainder_again_for_bf16(x, y) : tried.value;
}

/* ---- Comparisons, tests, selection ---------------------------------------------------------------------------------- */

NUM_FN uint8_t num_equal_f32(float x, float y) { return x == y; }
NUM_FN uint8_t num_not_equal_f32(float x, float y) { return x != y; }
NUM_FN uint8_t num_less_f32(float x, float y) { return x < y; }
NUM_FN uint8_t num_less_equal_f32(float x, float y) { return x <= y; }
NUM_FN uint8_t num_greater_f32(float x, float y) { return x > y; }
NUM_FN uint8_t num_greater_equal_f32(float x, float y) { return x >= y; }

NUM_FN uint8_t num_isnan_f32(float x) { return (num_bits32(x) & 0x7fffffffu) > NUM_INF_BITS_F32; }
NUM_FN uint8_t num_isinf_f32(float x) { return (num_bits32(x) & 0x7fffffffu) == NUM_INF_BITS_F32; }
NUM_FN uint8_t num_isfinite_f32(float x) { return (num_bits32(x) & 0x7fffffffu) < NUM_INF_BITS_F32; }

NUM_FN float num_where_f32(uint8_t condition, float x, float y) { return num_canonical32(condition ? x : y); }

#endif
