/* arctan2(y, x), the angle of the point (x, y) as C's atan2 has it: correctly rounded for float16 and bfloat16, and for float32
 * but for what lies within 2^-98 of a tie; the same bits from every compiler and level.
 *
 * Each has a first evaluation with a rounding test, and a second look at what that leaves open: less than one in 10^6 of
 * float32, one in 700 of float16, one in 4,000 of bfloat16. The first evaluation may use fused steps: where it decides, its
 * error, bounded below with a margin, cannot matter. float32's second look is double-double, by fixed operations, none of them
 * fused; that of the others is double, right on all pairs both ways (tests/prove).
 *
 * With `small` and `large` the smaller and the larger of |x| and |y|, the result is one of the angles 0, pi/2 and pi plus or
 * minus v = arctan(small / large). In double and above, v is pi/4 + arctan((small - large) / (small + large)) where the quotient
 * is above tan(pi/8). Signed zeros and infinities need no selects: magnitudes are compared as integers, a `large` of 0 is made
 * the least float32 (0 over it is 0), and two infinities, whose quotient is NaN, are left to the second look. A NaN is the
 * larger one as an integer, and stays one (that beside an infinity also sees the second look).
 *
 * Exact ties: no angle of such a point but 0 is rational, so there are none. But where the quotient is tiny and the result
 * subnormal, the quotient can be halfway, and the angle is less than it by too little for any precision. There a double below
 * the quotient, by one unit, rounds as the angle does: a quotient of 24-bit numbers that is not halfway is 2^-49 of itself away
 * from it. */
#ifndef NUM_ARCTAN2_H
#define NUM_ARCTAN2_H

#include "num_arc32.h"
#include "num_arc64.h"
#include "num_pair64.h"

/* What all evaluations start from. */
typedef struct num_octant32 {
    float small, large;
    uint32_t steep;                                      /* the sign bit if |y| > |x|, else 0 */
    uint32_t left;                                       /* x's sign bit */
} num_octant32;

NUM_FN num_octant32 num_arctan2_octant32(float y, float x) {
    num_octant32 out;
    int32_t rise = (int32_t)(num_bits32(y) & ~NUM_SIGN32), run = (int32_t)(num_bits32(x) & ~NUM_SIGN32);
    out.steep = (uint32_t)(run - rise) & NUM_SIGN32;
    int32_t large = rise > run ? rise : run;
    out.large = num_from_bits32((uint32_t)(large > 1 ? large : 1));
    out.small = num_from_bits32((uint32_t)(rise > run ? run : rise));
    out.left = num_bits32(x) & NUM_SIGN32;
    return out;
}

NUM_FN uint32_t num_arctan2_both_infinite(num_octant32 o) {
    int small = num_bits32(o.small) == NUM_INF_BITS_F32, large = num_bits32(o.large) == NUM_INF_BITS_F32;
    return (uint32_t)(small & large);
}

/* The sign bit if v is subtracted from pi/2 or pi, 0 if it is added to pi/2 or 0. */
NUM_FN uint32_t num_arctan2_sign32(num_octant32 o) { return o.left ^ o.steep; }

/* ---- float32, first --------------------------------------------------------------------------------------------------- */

/* The polynomial of arctan(t) = t + t z P(z) with fewer terms: Sollya, as num_arc64.h's with 8 for 10, error 2^-47.9 of t. */
NUM_FN double num_arctan_short_tail64(double z) {
    double p = -0x1.bf505bc06b98dp-6;
    p = num_step64(p, z, 0x1.a7d1e40e31b14p-5);
    p = num_step64(p, z, -0x1.0c612972e5b5cp-4);
    p = num_step64(p, z, 0x1.3a9f9fad24e26p-4);
    p = num_step64(p, z, -0x1.745667e5b088cp-4);
    p = num_step64(p, z, 0x1.c71c3a0094899p-4);
    p = num_step64(p, z, -0x1.249248af8a303p-3);
    p = num_step64(p, z, 0x1.99999998dc1d1p-3);
    return num_step64(p, z, -0x1.55555555553c1p-2);
}

/* |arctan2|, error below 2^-47.5 of it: of the polynomial 2^-47.9, of all roundings together 2^-50. */
NUM_FN double num_arctan2_64(num_octant32 o) {
    double small = (double)o.small, large = (double)o.large;
    int middle = small > NUM_TAN_PI_8 * large;
    double t = (middle ? small - large : small) / (middle ? small + large : large);
    double z = t * t;
    double v = (middle ? NUM_PI_64 / 4 : 0.0) + num_step64(t, z * num_arctan_short_tail64(z), t);
    double c = o.left ? NUM_PI_64 : 0.0;
    c = o.steep ? NUM_PI_64 / 2 : c;
    return c + num_from_bits64(num_bits64(v) ^ ((uint64_t)num_arctan2_sign32(o) << 32));
}

NUM_FN num_tried32 num_arctan2_try32(float y, float x) {
    num_octant32 o = num_arctan2_octant32(y, x);
    double angle = num_arctan2_64(o);
    float least = (float)(angle * (1.0 - 0x1p-46)), most = (float)(angle * (1.0 + 0x1p-46));
    num_tried32 out;
    int apart = num_bits32(least) != num_bits32(most), infinite = num_bits32(o.small) == NUM_INF_BITS_F32;
    out.open = (uint32_t)(apart | infinite);
    out.value = num_canonical32(num_copysign32(most, y));
    return out;
}

/* ---- float32, again: double-double ------------------------------------------------------------------------------------ */

/* arctan(t), |t| <= tan(pi/8), error about 2^-102 of it: t (1 - z (1/3 - z (1/5 - ...))), z = t^2, to z^43 / 87. */
NUM_FN num_pair64 num_pair_arctan64(num_pair64 t) {
    num_pair64 one = { 1.0, 0.0 };
    num_pair64 z = num_pair_multiply64(t, t);
    num_pair64 minus_z = { -z.high, -z.low };
    num_pair64 sum = num_pair_divide64(one, 87.0);
    for (int k = 42; k >= 0; k--)
        sum = num_pair_add64(num_pair_divide64(one, 2.0 * k + 1.0), num_pair_multiply64(minus_z, sum));
    return num_pair_multiply64(t, sum);
}

/* quarters * pi/4 */
NUM_FN num_pair64 num_pair_quarters64(double quarters) {
    num_pair64 high = num_pair_product64(quarters, NUM_PI_64 / 4);
    num_pair64 low = { quarters * 0x1.1a62633145c07p-55, 0.0 };
    return num_pair_add64(high, low);
}

/* Of what num_arctan2_try32 leaves open: an infinity and an infinity or NaN, or numbers that are not 0. */
NUM_FN float num_arctan2_again32(float y, float x) {
    num_octant32 o = num_arctan2_octant32(y, x);
    if (o.large != o.large) return num_from_bits32(NUM_NAN_BITS_F32);
    if (num_arctan2_both_infinite(o)) return num_copysign32(o.left ? 0x1.2d97c8p+1f : 0x1.921fb6p-1f, y);
    double small = (double)o.small, large = (double)o.large, quotient = small / large;
    double quarters = o.steep ? 2.0 : (o.left ? 4.0 : 0.0);
    if (quarters == 0.0 && quotient < 0x1p-40) {
        double below = num_from_bits64(num_bits64(quotient) - (quotient > 0.0));
        return num_copysign32((float)below, y);
    }
    int middle = quotient > NUM_TAN_PI_8;
    num_pair64 numerator = { middle ? small - large : small, 0.0 };                    /* exact, as is the denominator */
    num_pair64 v = num_pair_arctan64(num_pair_divide64(numerator, middle ? small + large : large));
    double sign = num_arctan2_sign32(o) ? -1.0 : 1.0;
    v.high *= sign;
    v.low *= sign;
    v = num_pair_add64(num_pair_quarters64(quarters + (middle ? sign : 0.0)), v);
    return num_copysign32((float)num_odd64(v.high, v.low), y);
}

NUM_FN float num_arctan2_f32(float y, float x) {
    num_tried32 tried = num_arctan2_try32(y, x);
    return tried.open ? num_arctan2_again32(y, x) : tried.value;
}

/* ---- float16 and bfloat16, first: float32 ----------------------------------------------------------------------------- */

/* |arctan2| from arctan(q) / q, q = small / large. */
NUM_FN float num_arctan2_angle32(num_octant32 o, float q, float arctan_ratio) {
    float c = o.left ? NUM_PI_32 : 0.0f;
    c = o.steep ? NUM_PI_32 / 2 : c;
    float v = q * arctan_ratio;
    return c + num_from_bits32(num_bits32(v) ^ num_arctan2_sign32(o));
}

/* Whether the bits of a float32 that rounding drops (`unit` is the last bit kept) are within `error` of halfway. */
NUM_FN uint32_t num_near_half32(float x, uint32_t unit, uint32_t error) {
    return ((num_bits32(x) + unit / 2 + error) & (unit - 1)) < 2 * error + 1;
}

/* The polynomials are those of num_arc32.h, with more terms. Errors, in units of 2^-24 of v: of q 1, of z and the steps 1.7, of
 * the product 1, of the polynomial 0.3 for float16 and 2 for bfloat16. Next to pi/2, where they weigh most, 0.8 of that is in
 * units of the last place, plus 0.8 for the constant and 0.5 for the sum: 4.5 and 5.9.
 *
 * Subnormal float16 results have their last bit where it is once 2^-14 is added; bfloat16's are those of float32. */
NUM_FN num_tried32 num_arctan2_try_for_f16(float y, float x) {
    num_octant32 o = num_arctan2_octant32(y, x);
    float q = o.small / o.large;
    float z = q * q;
    float p = 0x1.7c5b12p-9f;
    p = num_step32(p, z, -0x1.0ae84cp-6f);
    p = num_step32(p, z, 0x1.60eeccp-5f);
    p = num_step32(p, z, -0x1.34dff2p-4f);
    p = num_step32(p, z, 0x1.b4a728p-4f);
    p = num_step32(p, z, -0x1.23031ep-3f);
    p = num_step32(p, z, 0x1.9977fp-3f);
    p = num_step32(p, z, -0x1.5554d6p-2f);
    p = num_step32(p, z, 0x1p+0f);
    float angle = num_arctan2_angle32(o, q, p);
    num_tried32 out;
    float placed = angle < 0x1p-14f ? angle + 0x1p-14f : angle;
    out.open = num_near_half32(placed, 0x2000u, 5) | (num_bits32(o.small) == NUM_INF_BITS_F32);
    out.value = num_copysign32(angle, y);
    return out;
}

NUM_FN num_tried32 num_arctan2_try_for_bf16(float y, float x) {
    num_octant32 o = num_arctan2_octant32(y, x);
    float q = o.small / o.large;
    float z = q * q;
    float p = -0x1.32316ep-8f;
    p = num_step32(p, z, 0x1.8c0c36p-6f);
    p = num_step32(p, z, -0x1.e65492p-5f);
    p = num_step32(p, z, 0x1.95b654p-4f);
    p = num_step32(p, z, -0x1.1f0a92p-3f);
    p = num_step32(p, z, 0x1.98f6a8p-3f);
    p = num_step32(p, z, -0x1.55519ep-2f);
    p = num_step32(p, z, 0x1.fffffcp-1f);
    float angle = num_arctan2_angle32(o, q, p);
    num_tried32 out;
    out.open = num_near_half32(angle, 0x10000u, 7) | (num_bits32(o.small) == NUM_INF_BITS_F32);
    out.value = num_copysign32(angle, y);
    return out;
}

/* ---- float16 and bfloat16, again: double ------------------------------------------------------------------------------ */

/* A double that rounds to the right 16-bit float, of what a first evaluation leaves open. */
NUM_FN double num_arctan2_again64(float y, float x) {
    num_octant32 o = num_arctan2_octant32(y, x);
    double angle = num_arctan2_64(o);
    double below = num_from_bits64(num_bits64(angle) - 1);
    below = num_arctan2_both_infinite(o) ? (o.left ? NUM_PI_64 * 0.75 : NUM_PI_64 / 4) : below;
    return num_copysign64(below, (double)y);
}

NUM_FN float num_arctan2_again_for_f16(float y, float x) { return num_round_precision(num_arctan2_again64(y, x), 11, -14); }
NUM_FN float num_arctan2_again_for_bf16(float y, float x) { return num_round_precision(num_arctan2_again64(y, x), 8, -126); }

NUM_FN float num_arctan2_for_f16(float y, float x) {
    num_tried32 tried = num_arctan2_try_for_f16(y, x);
    return tried.open ? num_arctan2_again_for_f16(y, x) : tried.value;
}

NUM_FN float num_arctan2_for_bf16(float y, float x) {
    num_tried32 tried = num_arctan2_try_for_bf16(y, x);
    return tried.open ? num_arctan2_again_for_bf16(y, x) : tried.value;
}

#endif
