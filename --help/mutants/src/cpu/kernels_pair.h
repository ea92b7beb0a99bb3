/* float32 exp in float32 arithmetic, for levels with a vector header (kernels_vector_<level>.h), and what sigmoid and softplus
 * (kernels_pair_sigmoid.h), of which the rates of a gated delta layer are made, and logarithms (kernels_pair_log.h) share with it.
 *
 * Instead of a double, a result is evaluated as an unrounded sum of two float32, high + low, with a relative error below
 * V_PAIR_ERROR (V_EXP_ERROR for exp): the largest one measured, and some. Where adding and subtracting that error rounds to the
 * same float32, that is the correctly rounded result; where not (a few in a thousand inputs, NaN, subnormal results), the whole
 * vector is done again in double, with the functions every other level uses. So the result is the correctly rounded one whatever
 * the route, which running all 2^32 inputs confirms (tests/prove), and it is twice as fast.
 *
 * Small tables sit in registers and are read by permutes. exp, T = V_POWERS: x = (T n + j) ln2/T + r, exp(r) a polynomial,
 * 2^(j/T) a float32 t_j; that t_j is not exactly 2^(j/T) goes into r (Gal's accurate tables, 1986, turned round). */
#ifndef OL_CPU_KERNELS_PAIR_H
#define OL_CPU_KERNELS_PAIR_H

typedef struct pair {
    v_float high, low;
} pair;

/* x + y, |x| >= |y| or x = 0: Dekker's Fast2Sum. */
V_INLINE pair pair_sum(v_float x, v_float y) {
    pair s;
    s.high = v_add(x, y);
    s.low = v_add(v_sub(x, s.high), y);
    return s;
}

/* x in (low, high). */
V_INLINE v_mask pair_between(v_float x, float low, float high) {
    return v_and(v_less(x, v_set(high)), v_less(v_set(low), x));
}

/* exp(x) = (high + low) 2^n, n = floor(k / V_POWERS) with k in the last bits of *shifted. high in [0.95, 2.1], |low| < 2^-9.
 * |x| < 2^7. */
V_INLINE pair pair_exp_parts(v_float x, v_float *shifted) {
    const v_float shift = v_set(0x1.8p23f);
    *shifted = v_fma(x, v_set(0x1.715476p+0f * V_POWERS), shift);
    v_float k = v_sub(*shifted, shift);
    v_float r_high = v_fnma(k, v_set(0x1.62e43p-1f / V_POWERS), x);                  /* exact */
    v_float r_low = v_fma(k, v_set(0x1.05c61p-29f / V_POWERS), v_power(pair_power_rest, *shifted));
    v_float r = v_add(r_high, r_low);
    v_float p = v_fma(v_mul(r, r), v_exp_polynomial(r), r_low);                      /* exp(r) = 1 + r_high + p */
    v_float t = v_power(pair_power, *shifted);
    pair e;
    e.high = v_fma(t, r_high, t);
    e.low = v_fma(t, r_high, v_sub(t, e.high));                                      /* exact */
    e.low = v_fma(t, p, e.low);
    return e;
}

/* high + low rounded; lanes that the relative error leaves open (and NaN) are added to *open. */
V_INLINE v_float pair_round(pair x, v_float error, v_mask *open) {
    v_float above = v_add(x.high, v_fma(x.high, error, x.low));
    v_float below = v_add(x.high, v_fnma(x.high, error, x.low));
    *open = v_or(*open, v_differ(above, below));
    return above;
}

V_INLINE v_float pair_evaluate_exp(v_float x, v_mask *open) {
    x = v_max(v_set(-105.0f), v_min(v_set(90.0f), x));                               /* a NaN stays */
    v_float shifted;
    v_mask differ = v_none();
    pair e = pair_exp_parts(x, &shifted);
    v_float y = v_scale(pair_round(e, v_set(V_EXP_ERROR), &differ), shifted);
    *open = v_or(differ, v_subnormal(y));                                            /* rounded twice */
    return y;
}

/* The loop, and the second look: the vector in double. What fills a last, short vector is 1, which no function leaves open. */
#define PAIR_KERNEL(name)                                                                                                     \
    static __attribute__((noinline)) v_float pair_again_##name(v_float x) {                                                   \
        float in[V_LANES], again[V_LANES];                                                                                    \
        v_store(in, x);                                                                                                       \
        _Pragma("omp simd") for (int i = 0; i < V_LANES; i++) again[i] = num_##name##_f32(in[i]);                             \
        return v_load(again);                                                                                                 \
    }                                                                                                                         \
    V_INLINE v_float pair_decide_##name(v_float x) {                                                                          \
        v_mask open;                                                                                                          \
        v_float y = pair_evaluate_##name(x, &open);                                                                           \
        return __builtin_expect(v_any(open), 0) ? pair_again_##name(x) : y;                                                   \
    }                                                                                                                         \
    static void loop_##name##_f32(KERNEL_ARGUMENTS) {                                                                         \
        t_f32 *result = out;                                                                                                  \
        const t_f32 *p = x;                                                                                                   \
        (void)y, (void)z;                                                                                                     \
        for (; n >= V_LANES; result += V_LANES, p += V_LANES, n -= V_LANES) v_store(result, pair_decide_##name(v_load(p)));   \
        if (n > 0) v_store_part(result, pair_decide_##name(v_load_part_over(v_set(1.0f), p, n)), n);                          \
    }

#define KERNEL_OWN_exp_f32 ~, KERNEL_NONE
PAIR_KERNEL(exp)

#endif
