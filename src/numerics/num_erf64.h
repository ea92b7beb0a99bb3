/* erf of float32 in double arithmetic, with a test of the rounding, and a double-double evaluation for what that leaves open.
 *
 * |x| < 1: x P(x^2). Above: a polynomial in |x| - 2.46875, its even and odd terms apart; from 3.93 on the result is 1. Sollya:
 *   fpminimax(erf(x)/x, [|0,2,...,20|], [|D...|], [2^-20, 1], relative), error 2^-51.1
 *   fpminimax(erf(x + 2.46875), 23, [|D...|], [-1.46875, 1.46875], absolute), error 2^-48.4
 * The relative error, with roundings, was at most 2^-48.1 in half a million samples; the test leaves a factor of eight, and one
 * element in 2^20 open.
 *
 * Those are looked at again: erf(a) = 2/sqrt(pi) exp(-a^2) (a + 2 a^3/3 + 4 a^5/(3*5) + 8 a^7/(3*5*7) + ...), all terms positive
 * (Abramowitz and Stegun 7.1.6), in double-double with every product rounded, to about 2^-95. */
#ifndef NUM_ERF64_H
#define NUM_ERF64_H

#include "num_pair64.h"

#define NUM_TWO_OVER_SQRT_PI_64 0x1.20dd750429b6dp+0
#define NUM_TWO_OVER_SQRT_PI_LOW_64 0x1.1ae3a914fed8p-56

/* erf(a) of 0 <= a < 1. */
NUM_FN double num_erf_below_1_64(double a) {
    double s = a * a;
    double p = 0x1.43336a30bfa9cp-27;
    p = num_step64(p, s, -0x1.45ecddcb190bdp-23);
    p = num_step64(p, s, 0x1.b5c3643d2dc54p-20);
    p = num_step64(p, s, -0x1.f465d20c17543p-17);
    p = num_step64(p, s, 0x1.f99bf09d5909bp-14);
    p = num_step64(p, s, -0x1.c02d64b6b52e2p-11);
    p = num_step64(p, s, 0x1.565bcaec5a542p-8);
    p = num_step64(p, s, -0x1.b82ce301505a5p-6);
    p = num_step64(p, s, 0x1.ce2f219ffb0d9p-4);
    p = num_step64(p, s, -0x1.812746b03728fp-2);
    p = num_step64(p, s, 0x1.20dd750429b6bp+0);
    return a * p;
}

/* erf(a) of 1 <= a <= 3.9375. */
NUM_FN double num_erf_from_1_64(double a) {
    double t = a - 2.46875, u = t * t;
    double p = -0x1.f13eb739153f3p-35;
    p = num_step64(p, u, 0x1.0223e79a0dfefp-29);
    p = num_step64(p, u, -0x1.ce1129eda1ca8p-26);
    p = num_step64(p, u, 0x1.6736fc6c4af8p-23);
    p = num_step64(p, u, 0x1.0cf4b16be8be3p-21);
    p = num_step64(p, u, -0x1.0bbfe522dc77ep-16);
    p = num_step64(p, u, 0x1.3f21584cdd88ep-14);
    p = num_step64(p, u, 0x1.5ebde5f915056p-12);
    p = num_step64(p, u, -0x1.7d55d5d94dd3fp-9);
    p = num_step64(p, u, -0x1.3b38708c7afa1p-7);
    p = num_step64(p, u, -0x1.9ba107a49afd1p-8);
    p = num_step64(p, u, 0x1.ffc10194fcb73p-1);
    double q = 0x1.e769ec77e9239p-36;
    q = num_step64(q, u, -0x1.290a7a01bc816p-31);
    q = num_step64(q, u, 0x1.a3d446ea400ddp-29);
    q = num_step64(q, u, 0x1.1e0d8265261c4p-25);
    q = num_step64(q, u, -0x1.87bf588593827p-21);
    q = num_step64(q, u, 0x1.30fce0b0704bp-18);
    q = num_step64(q, u, 0x1.69634f6f9d171p-17);
    q = num_step64(q, u, -0x1.1fdf5c81f3c6fp-12);
    q = num_step64(q, u, 0x1.eae5d7c74d73dp-12);
    q = num_step64(q, u, 0x1.b3fdff37ca3f3p-8);
    q = num_step64(q, u, 0x1.36f273faec0d4p-7);
    q = num_step64(q, u, 0x1.4d78bba8de6e3p-9);
    return num_step64(q, t, p);
}

NUM_FN num_tried32 num_erf_try32(float x) {
    double a = (double)num_clamp_magnitude32(x, 3.9375f);
    double y = a < 1.0 ? num_erf_below_1_64(a) : num_erf_from_1_64(a);
    num_tried32 out = num_tried_within32(y, 0x1p-45, x);
    out.value = num_unless_nan32(x, out.value);
    return out;
}

/* erf(a) of 0 <= a < 5 with at most 26 significant bits, which makes a^2 exact. */
NUM_FN num_pair64 num_erf_pair64(double a) {
    double square = a * a;
    num_pair64 twice = { 2.0 * square, 0.0 }, factor = { a, 0.0 };
    num_pair64 constant = { NUM_TWO_OVER_SQRT_PI_64, NUM_TWO_OVER_SQRT_PI_LOW_64 };
    num_pair64 term = { 1.0, 0.0 }, sum = { 1.0, 0.0 };
    for (int k = 3; term.high > sum.high * 0x1p-110; k += 2) {
        term = num_pair_divide64(num_pair_multiply64(term, twice), (double)k);
        sum = num_pair_add64(sum, term);
    }
    sum = num_pair_multiply64(num_pair_multiply64(constant, num_pair_exp64(-square)), sum);
    return num_pair_multiply64(sum, factor);
}

/* Of what is open, which is below 3.9375. */
NUM_FN float num_erf_again32(float x) {
    num_pair64 y = num_erf_pair64((double)num_abs32(x));
    return num_copysign32((float)num_odd64(y.high, y.low), x);
}

NUM_FN float num_erf_f32(float x) {
    num_tried32 tried = num_erf_try32(x);
    return tried.open ? num_erf_again32(x) : tried.value;
}

#endif
