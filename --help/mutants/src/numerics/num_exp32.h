/* The transcendental primitives of float16 and bfloat16 in float32 arithmetic: exp, expm1, sigmoid, softplus, tanh.
 *
 * A 16-bit float has 65,536 values, so nothing here needs an error analysis: every input of every function has been run, with
 * fused steps and without, and every result is the correctly rounded one (tests/prove runs them again). What is needed is
 * only that float32 arithmetic decides all inputs. Where the plain minimax polynomials left one to three of them on the wrong
 * side of a rounding boundary, their coefficients were moved a little, at random, until none was left; the polynomials for
 * bfloat16 are as short as this allows. Do not touch a coefficient, or the order of operations, without running the proof.
 *
 * Arguments are the exact float32 values of 16-bit inputs, results are rounded by num_narrow_f16 or num_narrow_bf16. A NaN
 * argument gives some number, which the caller replaces.
 * Polynomials start from Sollya, fpminimax(exp(x) or expm1(x), [|2,...,d|], [|SG...|], [-ln2/2, ln2/2] * 1.01, relative,
 * 1 + x or x) and fpminimax(log1p(x), [|2,...,d|], [|SG...|], [2^-40, 1], relative, x). */
#ifndef NUM_EXP32_H
#define NUM_EXP32_H

#include "num_round.h"

#define NUM_LOG2E_32 0x1.715476p+0f
#define NUM_LN2_32 0x1.62e43p-1f
#define NUM_LN2_HIGH_32 0x1.62e4p-1f                     /* 15 bits: n times it is exact */
#define NUM_LN2_LOW_32 0x1.7f7d1cp-20f
#define NUM_SHIFT_32 0x1.8p23f

/* s + e rounded to odd with the last bit forced on; see num_odd_forced64. */
NUM_FN float num_odd_forced32(float s, float e) {
    return num_from_bits32((num_bits32(s) - ((num_bits32(s) ^ num_bits32(e)) >> 31)) | 1u);
}

/* x = n ln2 + r; n stays in the low bits of `shifted`. */
typedef struct num_reduced32 {
    float r;
    uint32_t shifted;
} num_reduced32;

NUM_FN num_reduced32 num_reduce_exp32_by(float x, float shift) {
    num_reduced32 out;
    float shifted = num_step32(x, NUM_LOG2E_32, shift);
    float n = shifted - shift;
    out.r = num_step32(n, -NUM_LN2_LOW_32, num_step32(n, -NUM_LN2_HIGH_32, x));
    out.shifted = num_bits32(shifted);
    return out;
}

NUM_FN num_reduced32 num_reduce_exp32(float x) { return num_reduce_exp32_by(x, NUM_SHIFT_32); }

/* For bfloat16: the low bits of `shifted` hold n + bias; and with a fused step, one product with ln2 is good enough. */
NUM_FN num_reduced32 num_reduce_exp32_short(float x, float bias) {
    float shift = NUM_SHIFT_32 + bias;
#if NUM_HAS_FMA
    num_reduced32 out;
    float shifted = NUM_FMA32(x, NUM_LOG2E_32, shift);
    out.r = NUM_FMA32(shifted - shift, -NUM_LN2_32, x);
    out.shifted = num_bits32(shifted);
    return out;
#else
    return num_reduce_exp32_by(x, shift);
#endif
}

/* 2^(n + bias); n + bias must be a normal exponent. */
NUM_FN float num_scale32(uint32_t shifted, uint32_t bias) { return num_from_bits32((shifted + (127u + bias)) << 23); }

/* 2^(n + k) where the bias was 127 + k. */
NUM_FN float num_scale_biased32(uint32_t shifted) { return num_from_bits32(shifted << 23); }

/* r + r^2 (c2 + c3 r + c4 r^2 ...), that is exp(r) - 1. */
NUM_FN float num_exp_tail3_32(float r, float c2, float c3, float c4) {
    return num_step32(r * r, num_step32(num_step32(c4, r, c3), r, c2), r);
}

NUM_FN float num_exp_tail4_32(float r, float c2, float c3, float c4, float c5) {
    return num_step32(r * r, num_step32(num_step32(num_step32(c5, r, c4), r, c3), r, c2), r);
}

NUM_FN float num_exp_tail5_32(float r, float c2, float c3, float c4, float c5, float c6) {
    float q = num_step32(num_step32(num_step32(num_step32(c6, r, c5), r, c4), r, c3), r, c2);
    return num_step32(r * r, q, r);
}

/* ---- bfloat16 ------------------------------------------------------------------------------------------------------- */

/* 2^n in two factors: results reach from 2^-134 to beyond 2^128. */
NUM_FN float num_exp_for_bf16(float x) {
    num_reduced32 e = num_reduce_exp32_short(num_clamp32(x, -94.0f, 89.5f), 0.0f);
    float p = num_exp_tail4_32(e.r, 0x1.fffffap-2f, 0x1.55535ap-3f, 0x1.571afep-5f, 0x1.108feap-7f);
    uint32_t half = (uint32_t)((int32_t)(e.shifted << 1) >> 2);          /* n / 2, downwards; the shift's own bits fall out */
    float scale = num_from_bits32((half + 127u) << 23);
    return num_step32(scale, p, scale) * num_from_bits32((e.shifted - half + 127u) << 23);
}

/* Half of expm1, doubled: 2^128 is no float32. */
NUM_FN float num_expm1_for_bf16(float x) {
    num_reduced32 e = num_reduce_exp32_short(num_clamp32(x, -17.0f, 89.5f), 126.0f);
    float p = num_exp_tail4_32(e.r, 0x1.fffe6p-2f, 0x1.55563ep-3f, 0x1.570d78p-5f, 0x1.1137b4p-7f);
    float scale = num_scale_biased32(e.shifted);
    float half = num_step32(scale, p, scale - 0.5f);
    return x == 0.0f ? x : half + half;
}

/* |x| as sigmoid and softplus take it: beyond 94 they do not change. */
#define NUM_CLAMP_BF16 94.0f

/* sigmoid(x) as a quotient, both parts times 2^16, which keeps exp(-94) a normal number. What is a little below 2^16 moves
 * sigmoid(2^-7) and sigmoid(-2^-8), within 2^-26 of halfway, to their right side. */
NUM_FN float num_sigmoid_for_bf16(float x) {
    num_reduced32 e = num_reduce_exp32_short(-num_clamp_magnitude32(x, NUM_CLAMP_BF16), 127.0f + 16.0f);
    float p = num_exp_tail3_32(e.r, 0x1.000724p-1f, 0x1.557f12p-3f, 0x1.4dd5ap-5f);
    float scale = num_scale_biased32(e.shifted);
    float power = num_step32(scale, p, scale);
    float numerator = (int32_t)num_bits32(x) < 0 ? power : 0x1.ffffc4p+15f;
    return NUM_QUOTIENT32(numerator, power + 0x1.ffffeep+15f);
}

NUM_FN float num_tanh_for_bf16(float x) {
    float twice = num_clamp_magnitude32(x, 10.0f) * 2.0f;
    num_reduced32 e = num_reduce_exp32_short(twice, 127.0f);
    float p = num_exp_tail3_32(e.r, 0x1.fff134p-2f, 0x1.573614p-3f, 0x1.53283cp-5f);
    float scale = num_scale_biased32(e.shifted);
    float t = num_step32(scale, p, scale - 1.0f);
    return num_copysign32(t / (t + 2.0f), x);
}

/* max(x, 0) + log1p(exp(-|x|)), exp by way of 2^64 times it, as it gets subnormal. */
NUM_FN float num_softplus_for_bf16(float x) {
    num_reduced32 e = num_reduce_exp32_short(-num_clamp_magnitude32(x, NUM_CLAMP_BF16), 127.0f + 64.0f);
    float p = num_exp_tail4_32(e.r, 0x1.fffde8p-2f, 0x1.5557c6p-3f, 0x1.57333ap-5f, 0x1.105f6ep-7f);
    float scale = num_scale_biased32(e.shifted);
    float t = num_step32(scale, p, scale) * 0x1p-64f;
    float q = -0x1.1fb63ep-7f;
    q = num_step32(q, t, 0x1.709192p-5f);
    q = num_step32(q, t, -0x1.be959ep-4f);
    q = num_step32(q, t, 0x1.6d8526p-3f);
    q = num_step32(q, t, -0x1.f684b4p-3f);
    q = num_step32(q, t, 0x1.54d44p-2f);
    q = num_step32(q, t, -0x1.fffb3cp-2f);
    q = num_step32(q, t, 1.0f);
    return num_step32(q, t, num_positive32(x));
}

/* ---- float16 -------------------------------------------------------------------------------------------------------- */

/* 1 + p rounded to odd before it is scaled, which is exact. */
NUM_FN float num_exp_for_f16(float x) {
    num_reduced32 e = num_reduce_exp32(num_clamp32(x, -18.0f, 12.0f));
    float p = num_exp_tail4_32(e.r, 0x1.fffde8p-2f, 0x1.5557c6p-3f, 0x1.57333ap-5f, 0x1.105f6ep-7f);
    float sum = 1.0f + p;
    return num_odd_forced32(sum, p - (sum - 1.0f)) * num_scale32(e.shifted, 0);
}

/* One input, 0x1.6ap-11, lies within 2^-36 of a tie, too close for float32. */
NUM_FN float num_expm1_for_f16(float x) {
    num_reduced32 e = num_reduce_exp32(num_clamp32(x, -12.0f, 12.0f));
    float p = num_exp_tail5_32(e.r, 0x1.fffffep-2f, 0x1.5554aap-3f, 0x1.55571p-5f, 0x1.122cbep-7f, 0x1.6b80e2p-10f);
    float scale = num_scale32(e.shifted, 0);
    float y = num_step32(scale, p, scale - 1.0f);
    y = x == 0x1.6ap-11f ? 0x1.6a4p-11f : y;
    return x == 0.0f ? x : y;
}

/* Near 0 the result is 1/2 + x/4 - x^3/48, often within float32's error of a tie: there x/4, a little shortened, is added
 * with rounding to odd. */
NUM_FN float num_sigmoid_for_f16(float x) {
    num_reduced32 e = num_reduce_exp32(-num_clamp32(x, -18.0f, 18.0f));
    float p = num_exp_tail4_32(e.r, 0x1.fffe32p-2f, 0x1.555902p-3f, 0x1.57272ap-5f, 0x1.105702p-7f);
    float scale = num_scale32(e.shifted, 0);
    float y = NUM_QUOTIENT32(1.0f, num_step32(scale, p, 1.0f + scale));
    float quarter = x * (0.25f * (1.0f - 0x1p-23f));
    float sum = 0.5f + quarter;
    return num_abs32(x) < 0x1p-6f ? num_odd_forced32(sum, quarter - (sum - 0.5f)) : y;
}

NUM_FN float num_tanh_for_f16(float x) {
    float twice = num_clamp_magnitude32(x, 10.0f) * 2.0f;
    num_reduced32 e = num_reduce_exp32(twice);
    float p = num_exp_tail4_32(e.r, 0x1.fffe62p-2f, 0x1.555628p-3f, 0x1.570d72p-5f, 0x1.1137dp-7f);
    float scale = num_scale32(e.shifted, 0);
    float t = num_step32(scale, p, scale - 1.0f);
    return num_copysign32(t / (t + 2.0f), x);
}

/* One input, -0x1.0cp-14, is too close to a tie where no step is fused. */
NUM_FN float num_softplus_for_f16(float x) {
    num_reduced32 e = num_reduce_exp32(-num_clamp_magnitude32(x, 18.0f));
    float p = num_exp_tail4_32(e.r, 0x1.fffde2p-2f, 0x1.5558f8p-3f, 0x1.573368p-5f, 0x1.105a86p-7f);
    float scale = num_scale32(e.shifted, 0);
    float t = num_step32(scale, p, scale);
    float q = 0x1.5fa0dap-8f;
    q = num_step32(q, t, -0x1.eca398p-6f);
    q = num_step32(q, t, 0x1.44707ap-4f);
    q = num_step32(q, t, -0x1.19af8ep-3f);
    q = num_step32(q, t, 0x1.884554p-3f);
    q = num_step32(q, t, -0x1.fd1368p-3f);
    q = num_step32(q, t, 0x1.5535dep-2f);
    q = num_step32(q, t, -0x1.ffff18p-2f);
    float low = num_step32(t * t, q, t);
    float high = num_clamp_positive32(x, 0x1p30f);       /* infinity: finite here, infinite once rounded */
    float sum = high + low;
    float back = sum - high;
    float y = num_odd_forced32(sum, (high - (sum - back)) + (low - back));
    return x == -0x1.0cp-14f ? 0x1.62cp-1f : y;
}

/* ---- Both: 1 / sqrt(x); of a zero, infinity with its sign ------------------------------------------------------------ */

NUM_FN float num_rsqrt_for_half(float x) { return 1.0f / NUM_SQRT32(x); }

#endif
