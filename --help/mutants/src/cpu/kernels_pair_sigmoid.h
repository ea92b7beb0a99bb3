/* float32 sigmoid and softplus in sums of two float32 (kernels_pair.h), on AVX-512, whose permutes read tables of 32; elsewhere
 * num_quick64.h is as fast or faster.
 *
 * log(1 + e): s = 1 + e rounded to an L-th, L = V_LOGS, chooses c, f = s c - 1, log(s) = log(1 + f) - log(c) (Tang, 1990). */
#ifndef OL_CPU_KERNELS_PAIR_SIGMOID_H
#define OL_CPU_KERNELS_PAIR_SIGMOID_H

/* exp(-|x|), scaled, the low part below half an ulp of the high one. */
V_INLINE pair pair_exp_magnitude(v_float x) {
    v_float shifted;
    pair e = pair_exp_parts(v_max(v_set(-105.0f), v_negative_magnitude(x)), &shifted);
    e = pair_sum(e.high, e.low);
    e.high = v_scale(e.high, shifted);
    e.low = v_scale(e.low, shifted);
    return e;
}

/* e = exp(-|x|): 1 / (1 + e), or e / (1 + e) where x < 0. The quotient of the high parts, and what its remainder adds. */
V_INLINE v_float pair_evaluate_sigmoid(v_float x, v_mask *open) {
    const v_float one = v_set(1.0f);
    *open = pair_between(x, -104.0f, -76.0f);            /* the result or a part of it is subnormal */
    pair e = pair_exp_magnitude(x);
    pair sum = pair_sum(one, e.high);
    sum.low = v_add(sum.low, e.low);
    v_mask negative = v_sign(x);
    v_float above = v_select(negative, e.high, one);
    v_float inverse = v_div(one, sum.high);
    pair y;
    y.high = v_mul(above, inverse);
    v_float rest = v_fnma(y.high, sum.high, above);
    rest = v_fnma(y.high, sum.low, rest);
    rest = v_add(rest, v_keep(negative, e.low));
    y.low = v_mul(rest, inverse);
    return pair_round(y, v_set(V_PAIR_ERROR), open);
}

/* max(x, 0) + log(1 + e), e = exp(-|x|). */
V_INLINE v_float pair_evaluate_softplus(v_float x, v_mask *open) {
    const v_float one = v_set(1.0f);
    *open = pair_between(x, -104.0f, -76.0f);            /* the result or a part of it is subnormal */
    pair e = pair_exp_magnitude(x);
    pair s = pair_sum(one, e.high);
    s.low = v_add(s.low, e.low);
    v_index index = v_log_index(s.high);
    v_float c = v_log_table(pair_inverse, index);
    v_float log_high = v_log_table(pair_log_high, index), log_low = v_log_table(pair_log_low, index);
    v_float product = v_mul(s.high, c);
    v_mask small = v_less(s.high, v_set(1.0f + 0.5f / V_LOGS));                      /* c = 1: f is e, with all its bits */
    v_float f = v_select(small, e.high, v_sub(product, one));                        /* exact */
    v_float f_low = v_select(small, e.low, v_fma(s.low, c, v_fms(s.high, c, product)));
    /* log(1 + f + f_low) = f - f^2/2 (the square in two parts) + f^3 (1/3 - ...) + f_low (1 - f + f^2) */
    v_float half = v_mul(f, v_set(-0.5f));
    v_float square = v_mul(f, half);
    v_float low = v_add(log_low, v_fms(f, half, square));
    low = v_add(low, v_fnma(f_low, v_fnma(f, f, f), f_low));
    low = v_fma(v_mul(square, f), v_log_polynomial(f), low);
    pair sum = pair_sum(v_add(log_high, f), square);         /* log_high + f is exact: multiples of 2^-24, or log_high is 0 */
    v_float m = v_max(x, v_set(0.0f));
    pair y = pair_sum(v_max(m, sum.high), v_min(m, sum.high));
    y.low = v_add(y.low, v_add(sum.low, low));
    return pair_round(y, v_set(V_PAIR_ERROR), open);
}

#define KERNEL_OWN_sigmoid_f32 ~, KERNEL_NONE
#define KERNEL_OWN_softplus_f32 ~, KERNEL_NONE
PAIR_KERNEL(sigmoid)
PAIR_KERNEL(softplus)

#endif
