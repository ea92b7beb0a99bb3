/* arcsinh, arccosh, arctanh of float16 and bfloat16 in float32 arithmetic; see num_exp32.h for what makes that right.
 *
 * arcsinh(x) = log(S), S = x + sqrt(x^2 + 1), and arccosh(x) = log(S), S = x + sqrt(x^2 - 1), with the logarithm of num_log32.h;
 * if S < sqrt(2), the power series of arcsinh instead, u + u^3 Q(u^2), for u = x or u = sqrt(x^2 - 1).
 * arctanh(x) = k ln2/2 + atanh(s), atanh(s) = s + s^3 Q(s^2), s = (1 + x - 2^k (1 - x)) / (1 + x + 2^k (1 - x)), where k is found
 * as in num_arc_hyperbolic64.h; 1 + x and 1 - x are exact but for k = 0, which is s = x.
 * Polynomials: Sollya, fpminimax((asinh(sqrt(x))/sqrt(x) - 1)/x, d, [|SG...|], [2^-60, 0.3545^2], absolute), and
 * fpminimax((atanh(sqrt(x))/sqrt(x) - 1)/x, d, [|SG...|], [2^-60, 0.2002^2], absolute). */
#ifndef NUM_ARC_HYPERBOLIC32_H
#define NUM_ARC_HYPERBOLIC32_H

#include "num_log32.h"

/* ---- Both ----------------------------------------------------------------------------------------------------------- */

/* Of u^2 = z. */
NUM_FN float num_arcsinh_series32(float u, float z) {
    float q = num_step32(num_step32(-0x1.43e47cp-5f, z, 0x1.31bda2p-4f), z, -0x1.554d08p-3f);
    return num_step32(u * z, q, u);
}

typedef struct num_reduced_arctanh32 {
    float s, k;
} num_reduced_arctanh32;

NUM_FN num_reduced_arctanh32 num_reduce_arctanh32(float magnitude) {
    float b = 1.0f + magnitude, c = 1.0f - magnitude;
    uint32_t n = (num_bits32(b) - num_bits32(c) + 0x00400000u) >> 23;
    float scaled = c * num_from_bits32((n + 127u) << 23);
    num_reduced_arctanh32 out;
    out.k = (float)(int32_t)n;
    out.s = n == 0 ? magnitude : (b - scaled) / (b + scaled);
    return out;
}

/* y with the sign of x, or what arctanh gives outside of (-1, 1); never a NaN but the canonical one. */
NUM_FN float num_arctanh_special32(float x, float y) {
    float special = num_abs32(x) == 1.0f ? num_copysign32(num_inf32(), x) : num_from_bits32(NUM_NAN_BITS_F32);
    return num_abs32(x) < 1.0f ? num_copysign32(y, x) : special;
}

/* y, or what arccosh gives outside of [1, infinity). */
NUM_FN float num_arccosh_special32(float x, float y) {
    float special = x == num_inf32() ? x : num_from_bits32(NUM_NAN_BITS_F32);
    return ((x >= 1.0f) & (x < num_inf32())) ? y : special;
}

/* ---- bfloat16 ------------------------------------------------------------------------------------------------------- */

/* log(S). From x = 2^30 on, S is 2 x, which may be beyond float32: x, and one off the bias. */
NUM_FN float num_log_grown_for_bf16(float x, float root, float series) {
    float k;
    int large = x >= 0x1p30f;
    float m = num_split32(large ? x : x + root, large ? 126.0f : 127.0f, &k);
    return k == 0.0f ? series : num_log_sum_for_bf16(m - 1.0f, k);
}

NUM_FN float num_arcsinh_for_bf16(float x) {
    float a = num_abs32(x), z = a * a;
    float y = num_log_grown_for_bf16(a, NUM_SQRT32(z + 1.0f), num_arcsinh_series32(a, z));
    return num_copysign32(a < num_inf32() ? y : a, x);
}

NUM_FN float num_arccosh_for_bf16(float x) {
    float z = num_step32(x, x, -1.0f), root = NUM_SQRT32(z);
    return num_arccosh_special32(x, num_log_grown_for_bf16(x, root, num_arcsinh_series32(root, z)));
}

NUM_FN float num_arctanh_for_bf16(float x) {
    num_reduced_arctanh32 r = num_reduce_arctanh32(num_abs32(x));
    float z = r.s * r.s;
    float q = num_step32(0x1.a5b46cp-3f, z, 0x1.554d72p-2f);
    return num_arctanh_special32(x, num_step32(r.k, 0.5f * NUM_LN2_32, num_step32(r.s * z, q, r.s)));
}

/* ---- float16 -------------------------------------------------------------------------------------------------------- */

/* log(S), S = x + root. The polynomial is that of num_log_sum_for_bf16, moved. */
NUM_FN float num_log_grown_for_f16(float x, float root, float series) {
    float k;
    float f = num_split32(x + root, 127.0f, &k) - 1.0f;
    float q = 0x1.e2982p-4f;
    q = num_step32(q, f, -0x1.78f1a6p-3f);
    q = num_step32(q, f, 0x1.a2acaep-3f);
    q = num_step32(q, f, -0x1.fed8fap-3f);
    q = num_step32(q, f, 0x1.5534b8p-2f);
    q = num_step32(q, f, -0.5f);
    float low = num_step32(f * f, q, num_step32(k, 0x1.783a02p-20f, f));
    return k == 0.0f ? series : num_step32(k, NUM_LN2_HIGH_32, low);
}

/* Two inputs need S to more bits than float32 has: arcsinh(0x1.c7cp+3), within 2^-27 of a tie, and arccosh(0x1.39p+0), 2^-24. */
NUM_FN float num_arcsinh_for_f16(float x) {
    float a = num_abs32(x), z = a * a;
    float y = num_log_grown_for_f16(a, NUM_SQRT32(z + 1.0f), num_arcsinh_series32(a, z));
    y = a == 0x1.c7cp+3f ? 0x1.acdffep+1f : y;
    return num_copysign32(a < num_inf32() ? y : a, x);
}

NUM_FN float num_arccosh_for_f16(float x) {
    float z = num_step32(x, x, -1.0f), root = NUM_SQRT32(z);
    float y = num_log_grown_for_f16(x, root, num_arcsinh_series32(root, z));
    return num_arccosh_special32(x, x == 0x1.39p+0f ? 0x1.4fa002p-1f : y);
}

NUM_FN float num_arctanh_for_f16(float x) {
    num_reduced_arctanh32 r = num_reduce_arctanh32(num_abs32(x));
    float z = r.s * r.s;
    float q = num_step32(num_step32(0x1.32da9ep-3f, z, 0x1.996176p-3f), z, 0x1.555566p-2f);
    float low = num_step32(r.s * z, q, num_step32(r.k, 0.5f * NUM_LN2_LOW_32, r.s));
    return num_arctanh_special32(x, num_step32(r.k, 0.5f * NUM_LN2_HIGH_32, low));
}

#endif
