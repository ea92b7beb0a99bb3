/* logaddexp of float16 and bfloat16: max + log1p(exp(-d)) in float32 with a bound on its error, which decides the rounding of all
 * but a few in a thousand pairs; those, and what cancels, are done again in double (num_logaddexp.h), which decides every pair
 * of 16-bit floats (tests/prove runs them all). exp and log1p are about 2^-22 off; the bound leaves a factor of two.
 *
 * Polynomials: Sollya, fpminimax(exp(x), [|2,...,5|], [|SG...|], [-0.35, 0.35], relative, 1 + x), error 2^-23, and
 * fpminimax(log1p(x), [|2,...,9|], [|SG...|], [2^-40, 1], relative, x), error 2^-24.8. */
#ifndef NUM_LOGADDEXP32_H
#define NUM_LOGADDEXP32_H

#include "num_exp32.h"
#include "num_logaddexp.h"

#define NUM_LOGADDEXP_ERROR 0x1p-21f

/* exp(-d), 0 <= d <= 60. */
NUM_FN float num_logaddexp_exp32(float d) {
    num_reduced32 e = num_reduce_exp32(-d);
    float p = num_exp_tail4_32(e.r, 0x1.fffde8p-2f, 0x1.5557c4p-3f, 0x1.57333p-5f, 0x1.10607p-7f);
    float scale = num_scale32(e.shifted, 0);
    return num_step32(scale, p, scale);
}

/* log1p(t) / t, 0 <= t <= 1. */
NUM_FN float num_log1p_ratio32(float t) {
    float q = 0x1.5fa0dap-8f;
    q = num_step32(q, t, -0x1.eca398p-6f);
    q = num_step32(q, t, 0x1.44707ap-4f);
    q = num_step32(q, t, -0x1.19af8ep-3f);
    q = num_step32(q, t, 0x1.884554p-3f);
    q = num_step32(q, t, -0x1.fd1368p-3f);
    q = num_step32(q, t, 0x1.5535dep-2f);
    q = num_step32(q, t, -0x1.ffff14p-2f);
    return num_step32(q, t, 1.0f);
}

/* x to the nearest float16, as a float32; |x| < 2^17. Adding and subtracting rounds at float16's last bit, 2^-24 at least; what
 * becomes 0 keeps its sign. */
NUM_FN float num_round32_f16(float x) {
    uint32_t exponent = num_bits32(x) & NUM_INF_BITS_F32;
    exponent = exponent < 0x38800000u ? 0x38800000u : exponent;
    float shift = num_from_bits32(exponent + (13u << 23) + 0x400000u);
    return num_copysign32((x + shift) - shift, x);
}

NUM_FN float num_round32_bf16(float x) { return num_widen_bf16(num_narrow_number_bf16(x)); }

/* Where every value within `error` of the sum rounds alike, that is the result. Open besides: where exp(-d) could be less than
 * the clamp makes it and the larger operand does not hide it. (A larger clamp would make subnormal products, which are slow.) */
#define NUM_LOGADDEXP_TRY(name, ROUND, most)                                                                                  \
    NUM_FN num_tried32 name(float x, float y) {                                                                               \
        float larger = x > y ? x : y, smaller = x > y ? y : x;                                                                \
        float d = larger - smaller;                                                                                           \
        float t = num_logaddexp_exp32(num_clamp_positive32(d, most));                                                         \
        float sum = num_step32(num_log1p_ratio32(t), t, larger);                                                              \
        float error = (t + num_abs32(sum)) * NUM_LOGADDEXP_ERROR;                                                             \
        float above = ROUND(sum + error), below = ROUND(sum - error);                                                         \
        int far = (int)(d > most) & (int)(num_abs32(larger) < 0x1p-60f);                                                      \
        num_tried32 out;                                                                                                      \
        out.value = num_logaddexp_special32(x, y, above);                                                                     \
        out.open = (num_abs32(larger) < num_inf32()) & ((num_bits32(above) != num_bits32(below)) | far);                      \
        return out;                                                                                                           \
    }

NUM_LOGADDEXP_TRY(num_logaddexp_try_for_f16, num_round32_f16, 20.0f)
NUM_LOGADDEXP_TRY(num_logaddexp_try_for_bf16, num_round32_bf16, 60.0f)

NUM_FN float num_logaddexp_again_for_f16(float x, float y) {
    return num_logaddexp_special32(x, y, num_round_precision(num_logaddexp64(num_logaddexp_order32(x, y)), 11, -14));
}

NUM_FN float num_logaddexp_again_for_bf16(float x, float y) {
    return num_logaddexp_special32(x, y, num_round_precision(num_logaddexp64(num_logaddexp_order32(x, y)), 8, -126));
}

NUM_FN float num_logaddexp_for_f16(float x, float y) {
    num_tried32 tried = num_logaddexp_try_for_f16(x, y);
    return tried.open ? num_logaddexp_again_for_f16(x, y) : tried.value;
}

NUM_FN float num_logaddexp_for_bf16(float x, float y) {
    num_tried32 tried = num_logaddexp_try_for_bf16(x, y);
    return tried.open ? num_logaddexp_again_for_bf16(x, y) : tried.value;
}

#endif
