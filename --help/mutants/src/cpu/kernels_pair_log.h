/* float32 log, log2, log10 and log1p as unrounded sums of two float32, with the second look of kernels_pair.h.
 *
 * x = m 2^k; a table has a c near 1/m, and f = m c - 1 is exact (Tang, 1990). ln x = K + log(1 + f), K = k ln2 - ln c; other bases
 * likewise. The high parts of K's terms are multiples of one power of two, so that their sum is exact: 0 for x near 1, where
 * log(1 + f) is the result with all its relative precision, else above |f|. The low parts, in units of ln whatever the base, join
 * the low part of log(1 + f). For what is not positive and finite, and on AVX2 subnormal, k or m is NaN or infinite, and the result
 * comes out open. Exact results (log2 of powers of two, log10 of powers of ten) are decided as others are.
 *
 * The relative error is below PAIR_LOG_ROUNDING f^2 + pair_log_error[interval of m]; docs/numerics.md derives both. */
#ifndef OL_CPU_KERNELS_PAIR_LOG_H
#define OL_CPU_KERNELS_PAIR_LOG_H

#define PAIR_LOG_ROUNDING 0x1.9p-23f             /* 25/8 units of 2^-24: those of f^3, times |f| / |ln x| */

/* f = m c - 1. */
V_INLINE v_float pair_log_argument(v_split s) { return v_fms(s.m, v_split_table(pair_center, s), v_set(1.0f)); }

/* log(1 + f) + rest, |rest| < 2^-12: f - f^2/2, in two parts, + f^3 (1/3 - ...). */
V_INLINE pair pair_log_near_1(v_float f, v_float rest) {
    v_float half = v_mul(f, v_set(-0.5f));
    pair y;
    y.high = v_fma(f, half, f);
    y.low = v_add(v_fma(f, half, v_sub(f, y.high)), rest);
    y.low = v_fma(v_mul(f, f), v_mul(f, v_log_cubic(f)), y.low);
    return y;
}

/* x times a constant in two parts. */
V_INLINE pair pair_times(pair x, float high, float low) {
    pair y;
    y.high = v_mul(x.high, v_set(high));
    y.low = v_fms(x.high, v_set(high), y.high);                                      /* exact */
    y.low = v_fma(x.high, v_set(low), y.low);
    y.low = v_fma(x.low, v_set(high), y.low);
    return y;
}

/* high + x, rounded; f as above. */
V_INLINE v_float pair_log_round(v_split s, v_float f, v_float high, pair x, v_mask *open) {
    pair y = pair_sum(high, x.high);
    y.low = v_add(y.low, x.low);
    *open = v_none();
    return pair_round(y, v_fma(v_mul(f, f), v_set(PAIR_LOG_ROUNDING), v_split_table(pair_log_error, s)), open);
}

/* k ln2 - log(c). */
V_INLINE v_float pair_ln_scale_high(v_split s) { return v_fma(s.k, v_set(0x1.62e4p-1f), v_split_table(pair_ln_high, s)); }
V_INLINE v_float pair_ln_scale_low(v_split s) { return v_fma(s.k, v_set(0x1.7f7d1cp-20f), v_split_table(pair_ln_low, s)); }

V_INLINE v_float pair_evaluate_log(v_float x, v_mask *open) {
    v_split s = v_log_split(x);
    v_float f = pair_log_argument(s);
    pair y = pair_log_near_1(f, pair_ln_scale_low(s));
    return pair_log_round(s, f, pair_ln_scale_high(s), y, open);
}

V_INLINE v_float pair_evaluate_log2(v_float x, v_mask *open) {
    v_split s = v_log_split(x);
    v_float f = pair_log_argument(s);
    pair y = pair_log_near_1(f, v_split_table(pair_log2_low, s));
    y = pair_times(y, 0x1.715476p+0f, 0x1.4ae0cp-26f);
    return pair_log_round(s, f, v_add(s.k, v_split_table(pair_log2_high, s)), y, open);
}

V_INLINE v_float pair_evaluate_log10(v_float x, v_mask *open) {
    v_split s = v_log_split(x);
    v_float f = pair_log_argument(s);
    pair y = pair_log_near_1(f, v_fma(s.k, v_set(0x1.e881b4p-20f), v_split_table(pair_log10_low, s)));
    y = pair_times(y, 0x1.bcb7b2p-2f, -0x1.5b235ep-27f);
    return pair_log_round(s, f, v_fma(s.k, v_set(0x1.3441p-2f), v_split_table(pair_log10_high, s)), y, open);
}

/* log(1 + x): 1 + x in two parts, and so f, whose low part, half an ulp at most, adds f_low (1 - f + f^2) to the logarithm. Of a
 * tiny x it is x; its steps would be slow there, on subnormal numbers. */
V_INLINE v_float pair_evaluate_log1p(v_float x, v_mask *open) {
    const v_float one = v_set(1.0f);
    v_mask tiny = pair_between(x, -0x1p-30f, 0x1p-30f);
    v_float usual = v_select(tiny, one, x);
    pair sum = pair_sum(v_max(one, usual), v_min(one, usual));
    v_split s = v_log_split(sum.high);
    v_float c = v_split_table(pair_center, s);
    pair f = pair_sum(v_fms(s.m, c, one), v_mul(v_split_scale(s, sum.low), c));      /* x itself where c = 1 */
    v_float rest = v_fma(f.low, v_sub(one, v_fnma(f.high, f.high, f.high)), pair_ln_scale_low(s));
    return v_select(tiny, x, pair_log_round(s, f.high, pair_ln_scale_high(s), pair_log_near_1(f.high, rest), open));
}

#define KERNEL_OWN_log_f32 ~, KERNEL_NONE
#define KERNEL_OWN_log2_f32 ~, KERNEL_NONE
#define KERNEL_OWN_log10_f32 ~, KERNEL_NONE
#define KERNEL_OWN_log1p_f32 ~, KERNEL_NONE
PAIR_KERNEL(log)
PAIR_KERNEL(log2)
PAIR_KERNEL(log10)
PAIR_KERNEL(log1p)

#endif
