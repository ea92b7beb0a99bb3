/* sinh, cosh of float16 and bfloat16 in float32 arithmetic, by the formulas of num_hyperbolic.h; see num_exp32.h for what makes
 * that right.
 *
 * Polynomials in z = r^2 start from Sollya, fpminimax((sinh(sqrt(x))/sqrt(x) - 1)/x and (cosh(sqrt(x)) - 1)/x, d, [|SG...|],
 * [2^-40, (1.01 ln2/2)^2], absolute). */
#ifndef NUM_HYPERBOLIC32_H
#define NUM_HYPERBOLIC32_H

#include "num_exp32.h"

/* S = sinh(n ln2) and C = cosh(n ln2), for bfloat16 half of each; sinh(r), cosh(r) - 1. */
typedef struct num_hyperbolic32 {
    float sinh_n, cosh_n, sinh_r, cosh_tail;
} num_hyperbolic32;

NUM_FN num_hyperbolic32 num_hyperbolic_parts32(float r, float power, float inverse) {
    num_hyperbolic32 out;
    float z = r * r;
    out.sinh_n = power - inverse;
    out.cosh_n = power + inverse;
    out.sinh_r = num_step32(z * r, num_step32(0x1.10fcaep-7f, z, 0x1.55540ep-3f), r);
    out.cosh_tail = z * num_step32(0x1.56f3cp-5f, z, 0x1.fffe28p-2f);
    return out;
}

NUM_FN float num_sinh_sum32(num_hyperbolic32 h) {
    return num_step32(h.cosh_n, h.sinh_r, num_step32(h.sinh_n, h.cosh_tail, h.sinh_n));
}

NUM_FN float num_cosh_sum32(num_hyperbolic32 h) {
    return num_step32(h.sinh_n, h.sinh_r, num_step32(h.cosh_n, h.cosh_tail, h.cosh_n));
}

/* 2^n / 4, and 2^-n / 4 or, where that would be no normal number, 0. The sums are doubled: they reach 2^128. */
NUM_FN num_hyperbolic32 num_reduce_hyperbolic_bf16(float x) {
    num_reduced32 e = num_reduce_exp32_short(num_clamp_magnitude32(x, 89.5f), 125.0f);
    int32_t field = (int32_t)(num_bits32(NUM_SHIFT_32) + 250u - e.shifted);
    float inverse = num_from_bits32((uint32_t)(field < 0 ? 0 : field) << 23);
    return num_hyperbolic_parts32(e.r, num_scale_biased32(e.shifted), inverse);
}

NUM_FN float num_sinh_for_bf16(float x) {
    float half = num_sinh_sum32(num_reduce_hyperbolic_bf16(x));
    return num_copysign32(half + half, x);
}

NUM_FN float num_cosh_for_bf16(float x) {
    float half = num_cosh_sum32(num_reduce_hyperbolic_bf16(x));
    return half + half;
}

/* 2^n / 2 and 2^-n / 2. */
NUM_FN num_hyperbolic32 num_reduce_hyperbolic_f16(float x) {
    num_reduced32 e = num_reduce_exp32_short(num_clamp_magnitude32(x, 12.5f), 126.0f);
    float inverse = num_from_bits32((252u - e.shifted) << 23);               /* the shift's own bits fall out */
    return num_hyperbolic_parts32(e.r, num_scale_biased32(e.shifted), inverse);
}

NUM_FN float num_sinh_for_f16(float x) { return num_copysign32(num_sinh_sum32(num_reduce_hyperbolic_f16(x)), x); }

/* One pair of inputs, 2^-5 and -2^-5, has a result too close to a tie for float32. */
NUM_FN float num_cosh_for_f16(float x) {
    float y = num_cosh_sum32(num_reduce_hyperbolic_f16(x));
    return num_abs32(x) == 0x1p-5f ? 0x1.004p+0f : y;
}

#endif
