/* sinh, cosh in double arithmetic, rounded once to float32; those of the 16-bit floats are in num_hyperbolic32.h.
 *
 * |x| = n ln2 + r, |r| <= ln2/2, and by the addition theorems
 *   sinh(x) = S cosh(r) + C sinh(r),  cosh(x) = C cosh(r) + S sinh(r),  S = sinh(n ln2) = (2^n - 2^-n)/2,  C = (2^n + 2^-n)/2,
 * so there is no division, and near 0, where n is 0, sinh is its own odd polynomial.
 *
 * Polynomials: Sollya, fpminimax((sinh(sqrt(x))/sqrt(x) - 1)/x, 4, [|D...|], [2^-40, h^2], absolute), h = 1.0005 ln2/2, relative
 * error of sinh 2^-60; fpminimax((cosh(sqrt(x)) - 1)/x, 5, ...), error of cosh 2^-68. */
#ifndef NUM_HYPERBOLIC_H
#define NUM_HYPERBOLIC_H

#include "num_exp64.h"

/* sinh(n ln2), cosh(n ln2), r, sinh(r) - r, cosh(r) - 1. */
typedef struct num_hyperbolic64 {
    double sinh_n, cosh_n, r, sinh_tail, cosh_tail;
} num_hyperbolic64;

/* Beyond the clamp both are infinite in float32. */
NUM_FN num_hyperbolic64 num_reduce_hyperbolic64(float x) {
    num_hyperbolic64 out;
    double magnitude = (double)num_clamp_magnitude32(x, 90.0f);
    double shifted = magnitude * NUM_LOG2E_64 + NUM_SHIFT_64;
    double n = shifted - NUM_SHIFT_64;
    double r = (magnitude - n * NUM_LN2_HIGH_64) - n * NUM_LN2_LOW_64;
    double z = r * r;
    double half = num_from_bits64((num_bits64(shifted) + 1022) << 52);       /* 2^n / 2 */
    double inverse = num_from_bits64((1022 - num_bits64(shifted)) << 52);    /* 2^-n / 2 */
    double s = 0x1.af3f2ebb8e11ep-26;
    s = num_step64(s, z, 0x1.71de0a2c9a29bp-19);
    s = num_step64(s, z, 0x1.a01a01a9060fcp-13);
    s = num_step64(s, z, 0x1.1111111110707p-7);
    s = num_step64(s, z, 0x1.5555555555556p-3);
    double c = 0x1.1f78fc6e9dedfp-29;
    c = num_step64(c, z, 0x1.27e4d80b82319p-22);
    c = num_step64(c, z, 0x1.a01a01a81c377p-16);
    c = num_step64(c, z, 0x1.6c16c16c15ff5p-10);
    c = num_step64(c, z, 0x1.5555555555556p-5);
    c = num_step64(c, z, 0.5);
    out.sinh_n = half - inverse;
    out.cosh_n = half + inverse;
    out.r = r;
    out.sinh_tail = (z * r) * s;
    out.cosh_tail = z * c;
    return out;
}

NUM_FN double num_sinh64(float x) {
    num_hyperbolic64 h = num_reduce_hyperbolic64(x);
    double low = num_step64(h.sinh_n, h.cosh_tail, h.cosh_n * h.sinh_tail);
    return num_step64(h.cosh_n, h.r, low) + h.sinh_n;
}

NUM_FN double num_cosh64(float x) {
    num_hyperbolic64 h = num_reduce_hyperbolic64(x);
    double low = num_step64(h.cosh_n, h.cosh_tail, h.sinh_n * (h.r + h.sinh_tail));
    return h.cosh_n + low;
}

/* One input, 0x1.250bfep-11, has a result so little below halfway that the double nearest to it is halfway. */
NUM_FN float num_sinh_f32(float x) {
    float y = num_abs32(x) == 0x1.250bfep-11f ? 0x1.250bfep-11f : (float)num_sinh64(x);
    return num_unless_nan32(x, num_copysign32(y, x));
}

NUM_FN float num_cosh_f32(float x) { return num_unless_nan32(x, (float)num_cosh64(x)); }

#endif
