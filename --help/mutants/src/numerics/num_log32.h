/* log and log1p of float16 and bfloat16 in float32 arithmetic; see num_exp32.h for what makes that right.
 *
 * Arguments outside of the domain give some number, which the caller replaces.
 *
 * x = m 2^k, m in [sqrt(1/2), sqrt(2)), f = m - 1, log(1 + f) = f - f^2/2 + f^3 (c3 + c4 f + ...).
 * Polynomials: Sollya, fpminimax(log1p(x), [|3,...,d|], [|SG...|], [sqrt(1/2) - 1, sqrt(2) - 1], relative, x - x^2/2). */
#ifndef NUM_LOG32_H
#define NUM_LOG32_H

#include "num_exp32.h"

/* A positive normal float32 as m 2^(k - bias). */
NUM_FN float num_split32(float x, float bias, float *k) {
    uint32_t bits = num_bits32(x);
    uint32_t above = bits + (0x3f800000u - 0x3f3504f3u);
    *k = (float)(int32_t)(above >> 23) - bias;
    return num_from_bits32(bits - (above & 0xff800000u) + 0x3f800000u);
}

NUM_FN float num_log_sum_for_bf16(float f, float k) {
    float q = 0x1.e29736p-4f;
    q = num_step32(q, f, -0x1.78fabep-3f);
    q = num_step32(q, f, 0x1.a2a7d2p-3f);
    q = num_step32(q, f, -0x1.fed984p-3f);
    q = num_step32(q, f, 0x1.5534a4p-2f);
    q = num_step32(q, f, -0.5f);
    return num_step32(k, NUM_LN2_32, num_step32(f * f, q, f));
}

/* The sum of k ln2 and f is kept exact (Fast2Sum), the last addition is rounded to odd. */
NUM_FN float num_log_sum_for_f16(float f, float k) {
    float q = 0x1.645d7cp-4f;
    q = num_step32(q, f, -0x1.242fap-3f);
    q = num_step32(q, f, 0x1.317302p-3f);
    q = num_step32(q, f, -0x1.5382a8p-3f);
    q = num_step32(q, f, 0x1.98d824p-3f);
    q = num_step32(q, f, -0x1.00038p-2f);
    q = num_step32(q, f, 0x1.5556d8p-2f);
    q = num_step32(q, f, -0.5f);
    float low = num_step32(f * f, q, k * NUM_LN2_LOW_32);
    float high = k * NUM_LN2_HIGH_32;
    float sum = high + f;
    float rest = low + ((high - sum) + f);
    float y = sum + rest;
    return num_odd_forced32(y, (sum - y) + rest);
}

/* m - 1 for a positive x = m 2^k; a bfloat16 subnormal is a float32 subnormal, whose bits are 2^149 times it. */
NUM_FN float num_split_bf16(float x, float *k) {
    int subnormal = num_bits32(x) < 0x00800000u;
    float normal = subnormal ? (float)(int32_t)num_bits32(x) : x;
    return num_split32(normal, subnormal ? 127.0f + 149.0f : 127.0f, k) - 1.0f;
}

NUM_FN float num_log_for_bf16(float x) {
    float k;
    float f = num_split_bf16(x, &k);
    return num_log_sum_for_bf16(f, k);
}

NUM_FN float num_log_for_f16(float x) {
    float k;
    float m = num_split32(x, 127.0f, &k);
    float y = num_log_sum_for_f16(m - 1.0f, k);
    return x == 1.0f ? 0.0f : y;
}

/* 1 + x is exact wherever k is not 0. */
NUM_FN float num_log1p_for_bf16(float x) {
    float k;
    float m = num_split32(1.0f + x, 127.0f, &k);
    return num_log_sum_for_bf16(k == 0.0f ? x : m - 1.0f, k);
}

NUM_FN float num_log1p_for_f16(float x) {
    float k;
    float m = num_split32(1.0f + x, 127.0f, &k);
    return num_log_sum_for_f16(k == 0.0f ? x : m - 1.0f, k);
}

#endif
