/* The float32 transcendental primitives: the double evaluation, rounded once, and the special values. */
#ifndef NUM_TRANSCENDENTAL32_H
#define NUM_TRANSCENDENTAL32_H

#include "num_log64.h"

NUM_FN float num_exp_f32(float x) { return num_unless_nan32(x, (float)num_exp64(x)); }

NUM_FN float num_expm1_f32(float x) {
    float y = num_unless_nan32(x, (float)num_expm1_64(x));
    return x == 0.0f ? x : y;                            /* keeps -0 */
}

NUM_FN float num_sigmoid_f32(float x) {
    float y = num_abs32(x) < 0x1p-13f ? (float)num_sigmoid_near_0_64(x) : (float)num_sigmoid64(x);
    return num_unless_nan32(x, y);
}

NUM_FN float num_tanh_f32(float x) { return num_unless_nan32(x, num_copysign32((float)num_tanh64(x), x)); }

NUM_FN float num_softplus_f32(float x) {
    float y = x > 0x1p60f ? x : (float)num_softplus64(x);    /* infinity, and what is too large for the sum's last bit */
    return num_unless_nan32(x, y);
}

NUM_FN float num_log_f32(float x) { return num_log_special32(x, (float)num_log64(x)); }
NUM_FN float num_log1p_f32(float x) { return num_log1p_special32(x, (float)num_log1p_64(x)); }
NUM_FN float num_rsqrt_f32(float x) { return num_to_f32(num_rsqrt64(x)); }

#endif
