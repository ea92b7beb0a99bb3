/* Kernels for several nodes at once (fused_pattern in kernels.h): what lies between is rounded as the single kernels round it,
 * but never stored, and a NaN in between need not be the canonical one, since exp and softplus give that for any.
 *
 * -(x y) is an fma with 0 in the vector loops: rounded once, and the same but for the sign of a zero, of which exp is 1. */
#ifndef OL_CPU_KERNELS_FUSED_H
#define OL_CPU_KERNELS_FUSED_H

#if defined(V_LANES)

V_INLINE v_float v_load_bf16(const void *p) { return v_widen_bf16(v_load_narrow(p)); }
V_INLINE v_float v_load_f16(const void *p) { return v_widen_f16(v_load_narrow(p)); }
V_INLINE v_float v_load_f32(const void *p) { return v_load(p); }
V_INLINE v_float v_load_part_bf16(const void *p, size_t n) { return v_widen_bf16(v_load_narrow_part(p, n)); }
V_INLINE v_float v_load_part_f16(const void *p, size_t n) { return v_widen_f16(v_load_narrow_part(p, n)); }
V_INLINE v_float v_load_part_f32(const void *p, size_t n) { return v_load_part(p, n); }

V_INLINE v_float v_negative_product(v_float x, v_float y) { return v_fnma(x, y, v_set(0.0f)); }

#define FUSED_LOOP(name, dt, outer, inner)                                                                                    \
    static void loop_##name##_##dt(KERNEL_ARGUMENTS) {                                                                        \
        t_f32 *result = out;                                                                                                  \
        const t_##dt *p = x;                                                                                                  \
        const t_f32 *q = y;                                                                                                   \
        (void)z;                                                                                                              \
        for (; n >= V_LANES; result += V_LANES, p += V_LANES, q += V_LANES, n -= V_LANES)                                     \
            v_store(result, pair_decide_##outer(inner(v_load_##dt(p), v_load(q))));                                           \
        if (n > 0) v_store_part(result, pair_decide_##outer(inner(v_load_part_##dt(p, n), v_load_part(q, n))), n);            \
    }

FUSED_LOOP(softplus_add, f32, softplus, v_add)
FUSED_LOOP(exp_multiply, f32, exp, v_mul)
FUSED_LOOP(exp_multiply, f16, exp, v_mul)
FUSED_LOOP(exp_multiply, bf16, exp, v_mul)
FUSED_LOOP(exp_negative_multiply, f32, exp, v_negative_product)
FUSED_LOOP(exp_negative_multiply, f16, exp, v_negative_product)
FUSED_LOOP(exp_negative_multiply, bf16, exp, v_negative_product)

#else

#define FUSED_LOOP(name, dt, EXPRESSION)                                                                                      \
    static void loop_##name##_##dt(KERNEL_ARGUMENTS) {                                                                        \
        t_f32 *result = out;                                                                                                  \
        const t_##dt *a = x;                                                                                                  \
        const t_f32 *b = y;                                                                                                   \
        (void)z;                                                                                                              \
        KERNEL_LOOP result[i] = EXPRESSION;                                                                                   \
    }

FUSED_LOOP(softplus_add, f32, num_softplus_f32(a[i] + b[i]))
FUSED_LOOP(exp_multiply, f32, num_exp_f32(a[i] * b[i]))
FUSED_LOOP(exp_multiply, f16, num_exp_f32(num_widen_f16(a[i]) * b[i]))
FUSED_LOOP(exp_multiply, bf16, num_exp_f32(num_widen_bf16(a[i]) * b[i]))
FUSED_LOOP(exp_negative_multiply, f32, num_exp_f32(-(a[i] * b[i])))
FUSED_LOOP(exp_negative_multiply, f16, num_exp_f32(-(num_widen_f16(a[i]) * b[i])))
FUSED_LOOP(exp_negative_multiply, bf16, num_exp_f32(-(num_widen_bf16(a[i]) * b[i])))

#endif

#define FUSED_TABLE                                                                                                           \
    [FUSED_SOFTPLUS_ADD] = { [OL_FLOAT32] = loop_softplus_add_f32, [OL_BFLOAT16] = loop_softplus_add_bf16 },                  \
    [FUSED_EXP_MULTIPLY] = { [OL_FLOAT32] = loop_exp_multiply_f32, [OL_FLOAT16] = loop_exp_multiply_f16,                      \
                             [OL_BFLOAT16] = loop_exp_multiply_bf16 },                                                        \
    [FUSED_EXP_NEGATIVE_MULTIPLY] = { [OL_FLOAT32] = loop_exp_negative_multiply_f32,                                          \
                                      [OL_FLOAT16] = loop_exp_negative_multiply_f16,                                          \
                                      [OL_BFLOAT16] = loop_exp_negative_multiply_bf16 },

#endif
