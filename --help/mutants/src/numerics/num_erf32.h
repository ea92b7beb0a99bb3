/* erf of float16 and bfloat16 in float32 arithmetic; see num_exp32.h for what makes that right.
 *
 * bfloat16: x times a polynomial in z = x^2. float16: x P(z) / Q(z), which takes fewer steps than a polynomial of its accuracy
 * and does not cancel; Q(0) is not 1, so that P(0) / Q(0) comes nearer to 2/sqrt(pi) than any float32. Beyond the clamps every
 * result rounds to 1.
 *
 * Coefficients: as in num_erf64.h, on z in [0, 2.22^2] of degree 7, error 2^-18.2, and on [0, 2.63^2] of degrees 4 and 3, error
 * 2^-21.9; rounded to float32, then moved at random until every input came out right. */
#ifndef NUM_ERF32_H
#define NUM_ERF32_H

#include "num_round.h"

NUM_FN float num_erf_for_bf16(float x) {
    float a = num_clamp_magnitude32(x, 2.21875f);
    float z = a * a;
    float p = -0x1.04254p-19f;
    p = num_step32(p, z, 0x1.a9e9ecp-15f);
    p = num_step32(p, z, -0x1.43031cp-11f);
    p = num_step32(p, z, 0x1.35b1a4p-8f);
    p = num_step32(p, z, -0x1.ae6244p-6f);
    p = num_step32(p, z, 0x1.ccaf2p-4f);
    p = num_step32(p, z, -0x1.811006p-2f);
    p = num_step32(p, z, 0x1.20dd78p+0f);
    return num_copysign32(a * p, x);
}

NUM_FN float num_erf_for_f16(float x) {
    float a = num_clamp_magnitude32(x, 2.625f);
    float z = a * a;
    float p = 0x1.ed2404p-18f;
    p = num_step32(p, z, 0x1.e5af28p-13f);
    p = num_step32(p, z, 0x1.001164p-5f);
    p = num_step32(p, z, 0x1.b940a6p-4f);
    p = num_step32(p, z, 0x1.d3f64ep-1f);
    float q = 0x1.7dfcaep-8f;
    q = num_step32(q, z, 0x1.1895c2p-4f);
    q = num_step32(q, z, 0x1.763efep-2f);
    q = num_step32(q, z, 0x1.9eb87cp-1f);
    return num_copysign32(a * p / q, x);
}

#endif
