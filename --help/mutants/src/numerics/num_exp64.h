/* exp, expm1, sigmoid, tanh in double arithmetic, to be rounded once to float32.
 *
 * x = n ln2 + r, |r| <= ln2/2 (Cody and Waite: the high part of ln2 has 37 bits, so n times it is exact for every n that can
 * occur and the reduction needs no fused multiply-add). exp(r) is a polynomial, 2^n is put together in the exponent. The
 * error is a few units in 2^-53, which decides all but a few hundred of the 2^32 inputs; those come out right too, with
 * fused steps and without, which tests/prove shows by running every input. Exact ties, where any error decides, are spelled
 * out at the function.
 *
 * Coefficients: Sollya, fpminimax over [-ln2/2, ln2/2] * 1.0005 with double coefficients, relative error.
 *   exp:    fpminimax(exp(x), [|2,...,11|], [|D...|], I, relative, 1 + x), error 2^-57.9
 *   expm1:  fpminimax(expm1(x), [|2,...,12|], [|D...|], I, relative, x),   error 2^-61.5 */
#ifndef NUM_EXP64_H
#define NUM_EXP64_H

#include "num_round.h"

#define NUM_LOG2E_64 0x1.71547652b82fep+0                /* 1/ln2 */
#define NUM_LN2_HIGH_64 0x1.62e42fefap-1                 /* 37 bits of ln2 */
#define NUM_LN2_LOW_64 0x1.cf79abc9e3b3ap-40             /* ln2 less those */
#define NUM_SHIFT_64 0x1.8p52                            /* x + shift - shift rounds x to an integer */

/* r and 2^n of the reduction. */
typedef struct num_reduced64 {
    double r;
    double scale;
} num_reduced64;

/* -700 <= x <= 700. The bits of x/ln2 + shift end in n; shifted into the exponent field they are 2^n. */
NUM_FN num_reduced64 num_reduce_exp64(double x) {
    num_reduced64 out;
    double shifted = x * NUM_LOG2E_64 + NUM_SHIFT_64;    /* n may be off by one near a half; that only widens r a little */
    double n = shifted - NUM_SHIFT_64;
    out.r = (x - n * NUM_LN2_HIGH_64) - n * NUM_LN2_LOW_64;
    out.scale = num_from_bits64((num_bits64(shifted) + 1023) << 52);
    return out;
}

/* exp(r) - 1 for |r| <= ln2/2, absolute error below 2^-57 beside rounding: enough next to a 1. */
NUM_FN double num_exp_tail64(double r) {
    double q = 0x1.ad900f724987bp-26;
    q = num_step64(q, r, 0x1.28ae1ad674e04p-22);
    q = num_step64(q, r, 0x1.71df1b087452ap-19);
    q = num_step64(q, r, 0x1.a0199942cbe04p-16);
    q = num_step64(q, r, 0x1.a01a012edb89ap-13);
    q = num_step64(q, r, 0x1.6c16c1847f533p-10);
    q = num_step64(q, r, 0x1.1111111126ecbp-7);
    q = num_step64(q, r, 0x1.55555555506a4p-5);
    q = num_step64(q, r, 0x1.55555555554fdp-3);
    q = num_step64(q, r, 0x1.000000000000ap-1);
    return num_step64(r * r, q, r);
}

/* exp(r) - 1 for |r| <= ln2/2 with a small relative error. */
NUM_FN double num_expm1_tail64(double r) {
    double q = 0x1.1f1a3e18aed33p-29;
    q = num_step64(q, r, 0x1.af5f369fe9fcp-26);
    q = num_step64(q, r, 0x1.27e51337f337cp-22);
    q = num_step64(q, r, 0x1.71ddf80ab4ac2p-19);
    q = num_step64(q, r, 0x1.a01a018e0ed29p-16);
    q = num_step64(q, r, 0x1.a01a01b004d5p-13);
    q = num_step64(q, r, 0x1.6c16c16c1abp-10);
    q = num_step64(q, r, 0x1.111111110f653p-7);
    q = num_step64(q, r, 0x1.555555555554dp-5);
    q = num_step64(q, r, 0x1.5555555555559p-3);
    q = num_step64(q, r, 0.5);
    return num_step64(r * r, q, r);
}

/* The functions below take the float32 argument, so that it is clamped at half the cost; a NaN argument gives some number. */

/* exp(x); beyond the clamp every result rounds to 0 or infinity. */
NUM_FN double num_exp64(float x) {
    num_reduced64 e = num_reduce_exp64((double)num_clamp32(x, -110.0f, 90.0f));
    return num_step64(e.scale, num_exp_tail64(e.r), e.scale);
}

NUM_FN double num_expm1_64(float x) {
    num_reduced64 e = num_reduce_exp64((double)num_clamp32(x, -45.0f, 90.0f));
    return num_step64(e.scale, num_expm1_tail64(e.r), e.scale - 1.0);
}

/* 1 / (1 + exp(-x)) but near 0. A result that is an exact tie is moved towards 1/2. */
NUM_FN double num_sigmoid64(float x) {
    float negative = -num_clamp32(x, -110.0f, 110.0f);
    num_reduced64 e = num_reduce_exp64((double)negative);
    double y = 1.0 / num_step64(e.scale, num_exp_tail64(e.r), 1.0 + e.scale);
    return num_odd_forced64(y, (double)negative);
}

/* The same for |x| < 2^-13, 1/2 + x/4 - x^3/48: often so close to a tie (1/2 + x/4 has few bits) that double arithmetic lands
 * on it. x/4 is shortened by a factor 1 - 2^-27, which moves it off the tie to the right side and is too little to matter
 * elsewhere. */
NUM_FN double num_sigmoid_near_0_64(float x) { return 0.5 + (double)x * (0.25 * (1.0 - 0x1p-27)); }

/* t / (t + 2) with t = expm1(2|x|), without the sign. */
NUM_FN double num_tanh64(float x) {
    num_reduced64 e = num_reduce_exp64((double)num_clamp_magnitude32(x, 20.0f) * 2.0);
    double t = num_step64(e.scale, num_expm1_tail64(e.r), e.scale - 1.0);
    return t / (t + 2.0);
}

#endif
