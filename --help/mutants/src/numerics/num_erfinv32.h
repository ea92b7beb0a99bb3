/* erfinv of float16 and bfloat16 in float32 arithmetic; see num_exp32.h for what makes that right.
 *
 * x times a polynomial in w = -log((1 - |x|)(1 + |x|)), which is at most 6.94 for float16 and 4.86 for bfloat16. The polynomials
 * interpolate erfinv(x) / x in the Chebyshev nodes of [0, 6.94] and [0, 4.86], errors 2^-24.5 and 2^-14.1; then the coefficients
 * were moved at random until every input came out right. */
#ifndef NUM_ERFINV32_H
#define NUM_ERFINV32_H

#include "num_erfinv64.h"
#include "num_log32.h"

NUM_FN float num_erfinv_for_f16(float x) {
    float a = num_abs32(x), k;
    float m = num_split32((1.0f - a) * (1.0f + a), 127.0f, &k);
    float w = 0x1p-60f - num_log_sum_for_f16(m - 1.0f, k);             /* a logarithm of 0 comes as the least subnormal, which is slow */
    float q = 0x1.47a324p-31f;
    q = num_step32(q, w, -0x1.8fdaeep-26f);
    q = num_step32(q, w, 0x1.8d00a6p-22f);
    q = num_step32(q, w, -0x1.79f3ccp-19f);
    q = num_step32(q, w, 0x1.ca3cfap-18f);
    q = num_step32(q, w, 0x1.4405ap-15f);
    q = num_step32(q, w, -0x1.f70896p-14f);
    q = num_step32(q, w, -0x1.32b15cp-9f);
    q = num_step32(q, w, 0x1.7a7f82p-7f);
    q = num_step32(q, w, 0x1.db29dap-3f);
    q = num_step32(q, w, 0x1.c5bf88p-1f);
    return num_erfinv_special32(x, q * x);
}

NUM_FN float num_erfinv_for_bf16(float x) {
    float a = num_abs32(x), k;
    float m = num_split32((1.0f - a) * (1.0f + a), 127.0f, &k);
    float w = -num_log_sum_for_bf16(m - 1.0f, k);
    float q = 0x1.96a8b6p-13f;
    q = num_step32(q, w, -0x1.a45164p-9f);
    q = num_step32(q, w, 0x1.9dd8d6p-7f);
    q = num_step32(q, w, 0x1.da21cep-3f);
    q = num_step32(q, w, 0x1.c5bf88p-1f);
    return num_erfinv_special32(x, q * x);
}

#endif
