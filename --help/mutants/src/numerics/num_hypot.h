/* hypot, for all pairs by argument: the square root of a sum of two exact squares, rounded to odd (num_round.h) and once more.
 *
 * The arithmetic is wide enough that the squares of the operands are exact and neither overflow nor lose bits below: double
 * for float32 (48 bits of 53), float32 for float16 (22 bits of 24). Let p >= q be the squares, X = p + q, s that sum rounded,
 * h = sqrt(s) rounded, and m a point halfway between two results. It has one bit more than a result (at most: results may be
 * subnormal), 25 or 12, so m is a number of the wide format and so is m^2. The point where overflow begins is one of them.
 *     h > m: then sqrt(s) > m, as rounding is monotonic and keeps m; so s > m^2; so X > m^2, for the same reason. Likewise <.
 *     h = m: (p - h^2) + q has the sign of X - m^2. h^2 is exact, fused or not. h = m bounds |X - m^2| by three last bits of m^2,
 *            and p >= X/2, so h^2 - p is a multiple of p's last bit and at most p and six of these. The last five bits of p are
 *            0 (float32), so that is a number of the wide format still: the difference is exact, and the rounded sum of two
 *            numbers has the sign of the sum. Of float16, all pairs have been run.
 * Where h is not halfway the sign does not matter: rounding to odd takes at most one last bit off h and ends on an odd last bit,
 * so it neither passes a halfway point, whose last bit is 0, nor gets to one. What is left as it is, for a sum of 0 at h = m, is
 * an exact tie, and goes to even.
 *
 * C's rule: infinity if either operand is one, even beside a NaN. */
#ifndef NUM_HYPOT_H
#define NUM_HYPOT_H

#include "num_exp32.h"

/* The magnitudes, as integers: ordered as the floats are, NaN above infinity. */
typedef struct num_hypot_ordered32 {
    int32_t larger, smaller;
} num_hypot_ordered32;

NUM_FN num_hypot_ordered32 num_hypot_order32(float x, float y) {
    int32_t a = (int32_t)(num_bits32(x) & ~NUM_SIGN32), b = (int32_t)(num_bits32(y) & ~NUM_SIGN32);
    num_hypot_ordered32 out = { a > b ? a : b, a > b ? b : a };
    return out;
}

/* The result, or infinity where an operand is infinite. */
NUM_FN float num_hypot_special32(num_hypot_ordered32 xy, float result) {
    int32_t infinity = (int32_t)NUM_INF_BITS_F32;
    return ((xy.larger == infinity) | (xy.smaller == infinity)) ? num_inf32() : result;
}

NUM_FN float num_hypot_f32(float x, float y) {
    num_hypot_ordered32 xy = num_hypot_order32(x, y);
    double a = (double)num_from_bits32((uint32_t)xy.larger), b = (double)num_from_bits32((uint32_t)xy.smaller);
    double p = a * a, q = b * b;
    double h = NUM_SQRT64(p + q);
    double rest = (p - h * h) + q;
    uint64_t bits = num_bits64(h), odd = (bits - (num_bits64(rest) >> 63)) | 1;
    return num_hypot_special32(xy, num_to_f32(num_from_bits64(rest == 0.0 ? bits : odd)));
}

NUM_FN float num_hypot_for_f16(float x, float y) {
    num_hypot_ordered32 xy = num_hypot_order32(x, y);
    float a = num_from_bits32((uint32_t)xy.larger), b = num_from_bits32((uint32_t)xy.smaller);
    float p = a * a, q = b * b;
    float h = NUM_SQRT32(p + q);
    float rest = (p - h * h) + q;
    uint32_t bits = num_bits32(h), odd = (bits - (num_bits32(rest) >> 31)) | 1u;
    return num_hypot_special32(xy, num_from_bits32(rest == 0.0f ? bits : odd));
}

/* The squares of bfloat16 are exact, but leave float32's range: both operands are scaled by the power of two that takes the
 * larger one into [2, 4), or up from a subnormal. Neither the error of the sum nor that of the root decides any result. */
NUM_FN float num_hypot_for_bf16(float x, float y) {
    num_hypot_ordered32 xy = num_hypot_order32(x, y);
    int32_t exponent = xy.larger & 0x7f800000;
    exponent = exponent > 0x01000000 ? exponent : 0x01000000;
    float scale = num_from_bits32(0x7f800000u - (uint32_t)exponent);
    float p = x * scale, q = y * scale;
    float h = NUM_SQRT32(num_step32(p, p, q * q));
    return num_hypot_special32(xy, h * num_from_bits32((uint32_t)exponent - 0x00800000u));
}

#endif
