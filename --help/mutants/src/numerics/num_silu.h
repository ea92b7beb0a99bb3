/* silu(x) = x / (1 + exp(-x)), rounded once; see num_exp64.h and num_exp32.h.
 *
 * Near 0 it is x/2 + x^2/4 - x^4/48. Exact ties come from the first two terms: x/2 of an odd subnormal x, where the next term
 * says up (for negative x too), and x/2 + x^2/4 where x has few bits, and the next term says down. */
#ifndef NUM_SILU_H
#define NUM_SILU_H

#include "num_exp32.h"
#include "num_exp64.h"

/* Of |x| <= 115. 2^-40 divides the ties of the first kind from those of the second. */
NUM_FN double num_silu64(float x) {
    num_reduced64 e = num_reduce_exp64(-(double)x);
    double y = (double)x / num_step64(e.scale, num_exp_tail64(e.r), 1.0 + e.scale);
    return num_odd_forced64(y, (double)(0x1p-40f - num_abs32(x)));
}

/* Below the clamp results round to -0, above it to x. */
NUM_FN float num_silu_f32(float x) {
    float y = (float)num_silu64(num_clamp32(x, -115.0f, 115.0f));
    y = ((x == 0.0f) | (x > 115.0f)) ? x : y;
    return num_unless_nan32(x, y);
}

/* x sigmoid(x) in terms of exp(-|x|) times 2^24, which keeps exp(-99) a normal number. 2^-149 moves
 * subnormal ties up. */
NUM_FN float num_silu_for_bf16(float x) {
    float clamped = num_clamp32(x, -99.0f, 99.0f);
    num_reduced32 e = num_reduce_exp32_short(-num_abs32(clamped), 127.0f + 24.0f);
    float p = num_exp_tail3_32(e.r, 0x1.000aap-1f, 0x1.56d3b6p-3f, 0x1.503932p-5f);
    float scale = num_scale_biased32(e.shifted);
    float power = num_step32(scale, p, scale);
    float y = clamped * ((int32_t)num_bits32(x) < 0 ? power : 0x1p24f) / (power + 0x1p24f);
    y = num_from_bits32(num_bits32(y + 0x1p-149f) | (num_bits32(x) & NUM_SIGN32));
    return x > 99.0f ? x : y;
}

/* 2^-36 moves subnormal ties up; those of the second kind, 2^-10 and 3 2^-9, fall right by being even. */
NUM_FN float num_silu_for_f16(float x) {
    float clamped = num_clamp32(x, -24.0f, 24.0f);
    num_reduced32 e = num_reduce_exp32_short(-clamped, 127.0f);
    float p = num_exp_tail4_32(e.r, 0x1.fffe32p-2f, 0x1.555902p-3f, 0x1.57272ap-5f, 0x1.105702p-7f);
    float scale = num_scale_biased32(e.shifted);
    float y = clamped / num_step32(scale, p, 1.0f + scale);
    y = num_from_bits32(num_bits32(y + 0x1p-36f) | (num_bits32(x) & NUM_SIGN32));
    return x > 24.0f ? x : y;
}

#endif
