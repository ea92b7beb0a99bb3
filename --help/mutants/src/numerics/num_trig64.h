/* sin, cos, tan of float32 in double arithmetic, with a test of the rounding: what the test leaves open (one element in
 * 2^18) and arguments of 2^28 or more are looked at again (num_trig_fixed.h).
 *
 * sin and cos: x = n pi + r, |r| <= pi/2, n an integer for sin and half of an odd one for cos; the result is (-1)^n sin(r),
 * so one polynomial does, and nothing is selected. tan: x = n pi/2 + r, |r| <= pi/4, tan(r) = r P(r^2) / Q(r^2), upside down
 * and negative for an odd n.
 *
 * The reduction (Cody and Waite) takes pi off in two parts of 25 bits and a double. n has at most 28 bits, so the first two
 * products are exact, and so are their differences (multiples of 2^-24 below 16, then of 2^-50 below 2; only in cos, beside a
 * small x, they are rounded); the third product is rounded at 2^-75. No float32 below 2^28 comes closer than 2^-27.9 to a
 * multiple of pi/2 (0x1.f9cbe2p+7 does), so the relative error is at most 2^-47.
 *
 * sin(r): Sollya, fpminimax(sin(x), [|3,5,...,13|], [|D...|], [2^-30, pi/2 * 1.0001], relative, x), error 2^-43.7.
 * tan(r): minimax in r^2 by weighted least squares in 60 digits on [0, (pi/4 * 1.0001)^2], P of degree 2 and Q of degree 3
 * that are 1 at 0, error 2^-45.1. */
#ifndef NUM_TRIG64_H
#define NUM_TRIG64_H

#include "num_trig_fixed.h"

#define NUM_PI_HIGH_64 0x1.921fb5p+1                     /* 25 bits of pi */
#define NUM_PI_MIDDLE_64 0x1.110b46p-25                  /* the next 25 */
#define NUM_PI_LOW_64 0x1.1a62633145c07p-53
#define NUM_TWO_OVER_PI_64 0x1.45f306dc9c883p-1
#define NUM_TRIG_SHIFT_64 0x1.8p52                       /* x + shift - shift rounds x to an integer */

/* x - n pi; -0 stays, as no part is negative. */
NUM_FN double num_less_multiple_of_pi64(double x, double n) {
    return num_step64(n, -NUM_PI_LOW_64, num_step64(n, -NUM_PI_MIDDLE_64, num_step64(n, -NUM_PI_HIGH_64, x)));
}

/* sin(r), |r| <= pi/2; -0 for -0. */
NUM_FN double num_sin_polynomial64(double r) {
    double s = r * r;
    double q = 0x1.52db3368870f5p-33;
    q = num_step64(q, s, -0x1.ae03ee6ceb4e8p-26);
    q = num_step64(q, s, 0x1.71dcf81a50cap-19);
    q = num_step64(q, s, -0x1.a019fd586f49ep-13);
    q = num_step64(q, s, 0x1.1111110a53d5bp-7);
    q = num_step64(q, s, -0x1.55555555470f9p-3);
    return r * num_step64(q, s, 1.0);
}

/* The last bit of n, as the sign of y. */
NUM_FN double num_negative_if_odd64(double y, uint64_t n) { return num_from_bits64(num_bits64(y) ^ n << 63); }

/* For |x| < 2^28, infinity and NaN. */
NUM_FN double num_sin64(double x) {
    double shifted = x * (0.5 * NUM_TWO_OVER_PI_64) + NUM_TRIG_SHIFT_64;
    double r = num_less_multiple_of_pi64(x, shifted - NUM_TRIG_SHIFT_64);
    return num_negative_if_odd64(num_sin_polynomial64(r), num_bits64(shifted));
}

/* With n - 1/2 for n: sin(x + pi/2). */
NUM_FN double num_cos64(double x) {
    double shifted = num_step64(x, 0.5 * NUM_TWO_OVER_PI_64, 0.5) + NUM_TRIG_SHIFT_64;
    double r = num_less_multiple_of_pi64(x, (shifted - NUM_TRIG_SHIFT_64) - 0.5);
    return num_negative_if_odd64(num_sin_polynomial64(r), num_bits64(shifted));
}

NUM_FN double num_tan64(double x) {
    double shifted = x * NUM_TWO_OVER_PI_64 + NUM_TRIG_SHIFT_64;
    double r = num_less_multiple_of_pi64(x, 0.5 * (shifted - NUM_TRIG_SHIFT_64));
    double s = r * r;
    double p = 0x1.0a6bcd304b24ep-9;
    p = num_step64(p, s, -0x1.f10487f7070f6p-4);
    p = r * num_step64(p, s, 1.0);
    double q = -0x1.98bf0a7539fffp-14;
    q = num_step64(q, s, 0x1.4be76d8e60235p-6);
    q = num_step64(q, s, -0x1.d19677531f2e3p-2);
    q = num_step64(q, s, 1.0);
    uint64_t odd = num_bits64(shifted) & 1;
    return num_negative_if_odd64((odd ? q : p) / (odd ? p : q), odd);
}

/* y is within 2^-43 of it of the result of x, which is 2^10 units in the 29 bits that float32 leaves away. Subnormal results
 * are those of subnormal arguments, where y is x. */
NUM_FN num_tried32 num_trig_tried32(float x, double y) {
    uint32_t margin = 1u << 10, half = 1u << 28;
    uint32_t near = (((uint32_t)num_bits64(y) + margin - half) & (2 * half - 1)) < 2 * margin;
    uint32_t large = (num_bits32(x) & ~NUM_SIGN32) - 0x4d800000u < NUM_INF_BITS_F32 - 0x4d800000u;       /* 2^28 */
    num_tried32 out = { num_to_f32(y), near | large };
    return out;
}

#endif
