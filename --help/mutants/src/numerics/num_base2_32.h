/* exp2, log2, log10 of float16 and bfloat16 in float32 arithmetic; see num_exp32.h for what makes that right.
 *
 * Arguments of log2 and log10 outside of the domain give some number, which the caller replaces.
 * Polynomials: Sollya, fpminimax(2^x, [|1,...,d|], [|SG...|], [-0.502, 0.502], relative, 1) and, on the interval of num_log32.h,
 * fpminimax(log(1 + x)/log(b), [|1,...,d|], [|SG...|], I, relative). */
#ifndef NUM_BASE2_32_H
#define NUM_BASE2_32_H

#include "num_log32.h"

/* ---- exp2: x = n + r, both exact ------------------------------------------------------------------------------------ */

/* n + bias stays in the low bits of `shifted`. */
NUM_FN num_reduced32 num_reduce_exp2_32(float x, float bias) {
    num_reduced32 out;
    float shifted = x + (NUM_SHIFT_32 + bias);
    out.r = x - (shifted - (NUM_SHIFT_32 + bias));
    out.shifted = num_bits32(shifted);
    return out;
}

/* 2^n in two factors: results reach from 2^-134, an exact tie, to beyond 2^128. */
NUM_FN float num_exp2_for_bf16(float x) {
    num_reduced32 e = num_reduce_exp2_32(num_clamp32(x, -136.0f, 129.0f), 2.0f * 127.0f);
    float q = 0x1.3a012ap-7f;
    q = num_step32(q, e.r, 0x1.ca0318p-5f);
    q = num_step32(q, e.r, 0x1.ec0394p-3f);
    q = num_step32(q, e.r, 0x1.62e12p-1f);
    uint32_t half = e.shifted >> 1;
    float scale = num_scale_biased32(half);
    return num_step32(scale * e.r, q, scale) * num_scale_biased32(e.shifted - half);
}

/* One input, 0x1.714p-11, has a result too close to a tie for float32. */
NUM_FN float num_exp2_for_f16(float x) {
    num_reduced32 e = num_reduce_exp2_32(num_clamp32(x, -27.0f, 17.0f), 127.0f);
    float q = 0x1.5b6ef4p-10f;
    q = num_step32(q, e.r, 0x1.3cedc2p-7f);
    q = num_step32(q, e.r, 0x1.c6b836p-5f);
    q = num_step32(q, e.r, 0x1.ebf9b4p-3f);
    q = num_step32(q, e.r, 0x1.62e428p-1f);
    float scale = num_scale_biased32(e.shifted);
    float y = num_step32(scale * e.r, q, scale);
    return x == 0x1.714p-11f ? 0x1.004p+0f : y;
}

/* ---- log2, log10 ---------------------------------------------------------------------------------------------------- */

#define NUM_LOG10_2_32 0x1.344136p-2f                    /* log10(2) */
#define NUM_LOG10_2_HIGH_32 0x1.3442p-2f                 /* 16 bits: k times it is exact */
#define NUM_LOG10_2_LOW_32 -0x1.95ec2p-19f

NUM_FN float num_log2_for_bf16(float x) {
    float k;
    float f = num_split_bf16(x, &k);
    float q = -0x1.a6393p-3f;
    q = num_step32(q, f, 0x1.4603f4p-2f);
    q = num_step32(q, f, -0x1.774958p-2f);
    q = num_step32(q, f, 0x1.eb5654p-2f);
    q = num_step32(q, f, -0x1.712a7ep-1f);
    q = num_step32(q, f, 0x1.7154e2p+0f);
    return num_step32(q, f, k);
}

NUM_FN float num_log10_for_bf16(float x) {
    float k;
    float f = num_split_bf16(x, &k);
    float q = 0x1.3acc14p-4f;
    q = num_step32(q, f, -0x1.e0e8b4p-4f);
    q = num_step32(q, f, 0x1.2af032p-3f);
    q = num_step32(q, f, -0x1.bc3eaap-3f);
    q = num_step32(q, f, 0x1.bcb104p-2f);
    return num_step32(k, NUM_LOG10_2_32, q * f);
}

NUM_FN float num_log2_for_f16(float x) {
    float k;
    float f = num_split32(x, 127.0f, &k) - 1.0f;
    float q = -0x1.29f314p-3f;
    q = num_step32(q, f, 0x1.de11b2p-3f);
    q = num_step32(q, f, -0x1.fd7444p-3f);
    q = num_step32(q, f, 0x1.2616ap-2f);
    q = num_step32(q, f, -0x1.70e7eap-2f);
    q = num_step32(q, f, 0x1.ec75d8p-2f);
    q = num_step32(q, f, -0x1.715512p-1f);
    q = num_step32(q, f, 0x1.715476p+0f);
    return num_step32(q, f, k);
}

/* Two inputs, 0x1.fep-3 and 0x1.f84p+6, have results too close to a tie for float32. */
NUM_FN float num_log10_for_f16(float x) {
    float k;
    float f = num_split32(x, 127.0f, &k) - 1.0f;
    float q = -0x1.66ee68p-5f;
    q = num_step32(q, f, 0x1.1f21dep-4f);
    q = num_step32(q, f, -0x1.31d698p-4f);
    q = num_step32(q, f, 0x1.60c426p-4f);
    q = num_step32(q, f, -0x1.bc27dcp-4f);
    q = num_step32(q, f, 0x1.289218p-3f);
    q = num_step32(q, f, -0x1.bcb85p-3f);
    q = num_step32(q, f, 0x1.bcb77cp-2f);
    float y = num_step32(k, NUM_LOG10_2_HIGH_32, num_step32(q, f, k * NUM_LOG10_2_LOW_32));
    y = x == 0x1.fep-3f ? -0x1.354p-1f : y;
    return x == 0x1.f84p+6f ? 0x1.0ccp+1f : y;
}

#endif
