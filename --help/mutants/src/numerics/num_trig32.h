/* sin, cos, tan of float16 and bfloat16 in float32 arithmetic; see num_exp32.h for what makes that right. A bfloat16 of 2^16 or
 * more is left to num_trig_fixed.h.
 *
 * As num_trig64.h does it: sin(x - n pi), with n less 1/2 for cos; tan(x - n pi/2), upside down for an odd n. n has at most 16
 * bits. With fused steps pi is taken off in two parts, without in four, of which n times the first three is exact; how the
 * third is cut decides two inputs. No part is negative, so that -0 stays.
 *
 * Polynomials start from Sollya, fpminimax(sin(x), [|3,...,d|], [|SG...|], [2^-20, pi/2 * 1.0005], relative, x), d = 9 for
 * float16 and 7 for bfloat16. tan(r) is r P(r^2) / Q(r^2), minimax by weighted least squares in 60 digits on
 * [0, (pi/4 * 1.001)^2], of degrees 1 and 2 for float16, 0 and 3 for bfloat16. Moving the coefficients by polynomials of random
 * values up to 2^-23 settled the last inputs; the leading ones of sin and tan of float16 had to become 1 + 2^-23 for that. */
#ifndef NUM_TRIG32_H
#define NUM_TRIG32_H

#include "num_exp32.h"
#include "num_trig_fixed.h"

#define NUM_TWO_OVER_PI_32 0x1.45f306p-1f
#define NUM_PI_HIGH_32 0x1.921fb4p+1f                    /* 23 bits of pi, and pi less those */
#define NUM_PI_LOW_32 0x1.4442d2p-23f
#define NUM_PI_1_32 0x1.92p+1f                           /* 8, 8 and 5 bits, and the rest */
#define NUM_PI_2_32 0x1.fap-11f
#define NUM_PI_3_32 0x1.5p-19f
#define NUM_PI_4_32 0x1.110b46p-25f

/* x - n part pi, for a power of two. */
NUM_FN float num_less_multiple_of_pi32(float x, float n, float part) {
#if NUM_HAS_FMA
    return num_step32(n, -part * NUM_PI_LOW_32, num_step32(n, -part * NUM_PI_HIGH_32, x));
#else
    float r = num_step32(n, -part * NUM_PI_2_32, num_step32(n, -part * NUM_PI_1_32, x));
    return num_step32(n, -part * NUM_PI_4_32, num_step32(n, -part * NUM_PI_3_32, r));
#endif
}

/* The last bit of n, as the sign of y. */
NUM_FN float num_negative_if_odd32(float y, uint32_t n) { return num_from_bits32(num_bits32(y) ^ n << 31); }

/* x = n pi + r, and x = (n - 1/2) pi + r; n stays in the low bits of `shifted`. */
NUM_FN num_reduced32 num_reduce_sin32(float x) {
    num_reduced32 out;
    float shifted = num_step32(x, 0.5f * NUM_TWO_OVER_PI_32, NUM_SHIFT_32);
    out.r = num_less_multiple_of_pi32(x, shifted - NUM_SHIFT_32, 1.0f);
    out.shifted = num_bits32(shifted);
    return out;
}

NUM_FN num_reduced32 num_reduce_cos32(float x) {
    num_reduced32 out;
    float shifted = num_step32(x, 0.5f * NUM_TWO_OVER_PI_32, 0.5f) + NUM_SHIFT_32;
    out.r = num_less_multiple_of_pi32(x, (shifted - NUM_SHIFT_32) - 0.5f, 1.0f);
    out.shifted = num_bits32(shifted);
    return out;
}

/* x = n pi/2 + r. */
NUM_FN num_reduced32 num_reduce_tan32(float x) {
    num_reduced32 out;
    float shifted = num_step32(x, NUM_TWO_OVER_PI_32, NUM_SHIFT_32);
    out.r = num_less_multiple_of_pi32(x, shifted - NUM_SHIFT_32, 0.5f);
    out.shifted = num_bits32(shifted);
    return out;
}

/* p / q, or for an odd n, -q / p. */
NUM_FN float num_tan_quotient32(float p, float q, uint32_t shifted) {
    uint32_t odd = shifted & 1u;
    return num_negative_if_odd32((odd ? q : p) / (odd ? p : q), odd);
}

/* ---- float16 -------------------------------------------------------------------------------------------------------- */

NUM_FN float num_sin_for_f16(float x) {
    num_reduced32 a = num_reduce_sin32(x);
    float s = a.r * a.r;
    float q = 0x1.7a28fap-19f;
    q = num_step32(q, s, -0x1.a1d6e2p-13f);
    q = num_step32(q, s, 0x1.111f8cp-7f);
    q = num_step32(q, s, -0x1.5555eap-3f);
    return num_negative_if_odd32(a.r * num_step32(q, s, 1.0f + 0x1p-23f), a.shifted);
}

NUM_FN float num_cos_for_f16(float x) {
    num_reduced32 a = num_reduce_cos32(x);
    float s = a.r * a.r;
    float q = 0x1.62262ap-19f;
    q = num_step32(q, s, -0x1.9fcdf2p-13f);
    q = num_step32(q, s, 0x1.11115cp-7f);
    q = num_step32(q, s, -0x1.55556p-3f);
    return num_negative_if_odd32(a.r * num_step32(q, s, 1.0f), a.shifted);
}

NUM_FN float num_tan_for_f16(float x) {
    num_reduced32 a = num_reduce_tan32(x);
    float s = a.r * a.r;
    float p = a.r * num_step32(-0x1.885216p-4f, s, 1.0f + 0x1p-23f);
    float q = num_step32(num_step32(0x1.3e2ecap-7f, s, -0x1.b76a12p-2f), s, 1.0f + 0x1p-23f);
    return num_tan_quotient32(p, q, a.shifted);
}

/* ---- bfloat16: below 2^16, infinity and NaN -------------------------------------------------------------------------- */

NUM_FN float num_sin_polynomial_for_bf16(num_reduced32 a) {
    float s = a.r * a.r;
    float q = num_step32(num_step32(-0x1.8514c6p-13f, s, 0x1.1074fcp-7f), s, -0x1.55515p-3f);
    return num_negative_if_odd32(a.r * num_step32(q, s, 1.0f), a.shifted);
}

NUM_FN float num_sin_below_for_bf16(float x) { return num_sin_polynomial_for_bf16(num_reduce_sin32(x)); }
NUM_FN float num_cos_below_for_bf16(float x) { return num_sin_polynomial_for_bf16(num_reduce_cos32(x)); }

NUM_FN float num_tan_below_for_bf16(float x) {
    num_reduced32 a = num_reduce_tan32(x);
    float s = a.r * a.r;
    float q = num_step32(num_step32(-0x1.3a03ecp-9f, s, -0x1.6a5c9ap-6f), s, -0x1.55584ap-2f);
    return num_tan_quotient32(a.r, num_step32(q, s, 1.0f), a.shifted);
}

/* ---- Any bfloat16 ---------------------------------------------------------------------------------------------------- */

#define NUM_TRIG_LARGE_BF16 0x4780u                      /* 2^16 */

/* 2^16 or more but finite. */
NUM_FN int num_trig_large_for_bf16(float x) {
    uint32_t large = NUM_TRIG_LARGE_BF16 << 16;
    return (num_bits32(x) & ~NUM_SIGN32) - large < NUM_INF_BITS_F32 - large;
}

NUM_FN float num_sin_for_bf16(float x) {
    return num_trig_large_for_bf16(x) ? num_round_precision(num_sin_fixed64(x), 8, -126) : num_sin_below_for_bf16(x);
}

NUM_FN float num_cos_for_bf16(float x) {
    return num_trig_large_for_bf16(x) ? num_round_precision(num_cos_fixed64(x), 8, -126) : num_cos_below_for_bf16(x);
}

NUM_FN float num_tan_for_bf16(float x) {
    return num_trig_large_for_bf16(x) ? num_round_precision(num_tan_fixed64(x), 8, -126) : num_tan_below_for_bf16(x);
}

#endif
