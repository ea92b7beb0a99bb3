/* erf in double arithmetic, to be rounded once to float32.
 *
 * erf(x) = x P(x^2) / Q(x^2) on all of |x| <= 3.94, beyond which float32 has nothing left but 1. One rational function, where
 * polynomials would need several intervals and a choice of coefficients, or exp(-x^2): its division runs beside the steps.
 * Degrees 10 and 9, relative error 2^-54.1, or 2^-52.9 with the coefficients rounded; all but the last one of P are positive,
 * so nothing cancels. That decides every input, with fused steps and without (tests/prove).
 *
 * P and Q: the minimax quotient for erf(sqrt(z)) / sqrt(z) in relative error on z in [0, 3.94^2], by Remez' exchange for
 * rational functions (Cheney, "Introduction to Approximation Theory", 1966) in 50 digits, coefficients rounded to double. */
#ifndef NUM_ERF64_H
#define NUM_ERF64_H

#include "num_round.h"

/* Without the sign; of a NaN, that of the clamp. */
NUM_FN double num_erf64(float x) {
    double a = (double)num_clamp_magnitude32(x, 3.9375f);
    double z = a * a;
    double p = -0x1.95838a2da3529p-47;
    p = num_step64(p, z, 0x1.29b16174e4f1ap-37);
    p = num_step64(p, z, 0x1.dedc1f243d40ep-30);
    p = num_step64(p, z, 0x1.0b6a40f628974p-24);
    p = num_step64(p, z, 0x1.20ab08602b6a9p-19);
    p = num_step64(p, z, 0x1.2554e59059ef6p-15);
    p = num_step64(p, z, 0x1.5a0479aff1ee4p-11);
    p = num_step64(p, z, 0x1.62c359d77532fp-8);
    p = num_step64(p, z, 0x1.f15252405c961p-5);
    p = num_step64(p, z, 0x1.96b0744779205p-3);
    p = num_step64(p, z, 0x1.20dd750429b6dp+0);
    double q = 0x1.81d4555608985p-33;
    q = num_step64(q, z, 0x1.7d44bf7a4b680p-27);
    q = num_step64(q, z, 0x1.9de88a69b300dp-22);
    q = num_step64(q, z, 0x1.3202a9febcebbp-17);
    q = num_step64(q, z, 0x1.49e39f0aaa34ap-13);
    q = num_step64(q, z, 0x1.07e277126c100p-9);
    q = num_step64(q, z, 0x1.351b774c79a7cp-6);
    q = num_step64(q, z, 0x1.fa290a7f875edp-4);
    q = num_step64(q, z, 0x1.04c57b51cc0b5p-1);
    q = num_step64(q, z, 1.0);
    return a * p / q;
}

NUM_FN float num_erf_f32(float x) { return num_unless_nan32(x, num_copysign32((float)num_erf64(x), x)); }

#endif
