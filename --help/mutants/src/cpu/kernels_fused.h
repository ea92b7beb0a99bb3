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

#define FUSED_VECTORS(name, dt, outer, inner)                                                                                 \
    static void loop_##name##_##dt(KERNEL_ARGUMENTS) {                                                                        \
        t_f32 *result = out;                                                                                                  \
        const t_##dt *p = x;                                                                                                  \
        const t_f32 *q = y;                                                                                                   \
        (void)z;                                                                                                              \
        for (; n >= V_LANES; result += V_LANES, p += V_LANES, q += V_LANES, n -= V_LANES)                                     \
            v_store(result, pair_decide_##outer(inner(v_load_##dt(p), v_load(q))));                                           \
        if (n > 0) v_store_part(result, pair_decide_##outer(inner(v_load_part_##dt(p, n), v_load_part(q, n))), n);            \
    }

#endif

/* INNER into a buffer, then the outer primitive's own loop. */
#define FUSED_BLOCKS(name, dt, outer, INNER)                                                                                  \
    static void loop_##name##_##dt(KERNEL_ARGUMENTS) {                                                                        \
        t_f32 *result = out;                                                                                                  \
        const t_##dt *a = x;                                                                                                  \
        const t_f32 *b = y;                                                                                                   \
        (void)z;                                                                                                              \
        while (n > 0) {                                                                                                       \
            float inner[KERNEL_BLOCK];                                                                                        \
            int length = n < KERNEL_BLOCK ? (int)n : KERNEL_BLOCK;                                                            \
            KERNEL_EACH(length) inner[i] = INNER;                                                                             \
            loop_##outer##_f32(result, inner, NULL, NULL, (size_t)length);                                                    \
            result += length, a += length, b += length, n -= (size_t)length;                                                  \
        }                                                                                                                     \
    }

#if defined(V_LOGS)
FUSED_VECTORS(softplus_add, f32, softplus, v_add)
#else
FUSED_BLOCKS(softplus_add, f32, softplus, a[i] + b[i])
#endif

#if defined(V_LANES)
FUSED_VECTORS(exp_multiply, f32, exp, v_mul)
FUSED_VECTORS(exp_multiply, f16, exp, v_mul)
FUSED_VECTORS(exp_multiply, bf16, exp, v_mul)
FUSED_VECTORS(exp_negative_multiply, f32, exp, v_negative_product)
FUSED_VECTORS(exp_negative_multiply, f16, exp, v_negative_product)
FUSED_VECTORS(exp_negative_multiply, bf16, exp, v_negative_product)
#else
FUSED_BLOCKS(exp_multiply, f32, exp, a[i] * b[i])
FUSED_BLOCKS(exp_multiply, f16, exp, num_widen_f16(a[i]) * b[i])
FUSED_BLOCKS(exp_multiply, bf16, exp, num_widen_bf16(a[i]) * b[i])
FUSED_BLOCKS(exp_negative_multiply, f32, exp, -(a[i] * b[i]))
FUSED_BLOCKS(exp_negative_multiply, f16, exp, -(num_widen_f16(a[i]) * b[i]))
FUSED_BLOCKS(exp_negative_multiply, bf16, exp, -(num_widen_bf16(a[i]) * b[i]))
#endif

#define FUSED_TABLE                                                                                                           \
    [FUSED_SOFTPLUS_ADD] = { [OL_FLOAT32] = loop_softplus_add_f32, [OL_BFLOAT16] = loop_softplus_add_bf16 },                  \
    [FUSED_EXP_MULTIPLY] = { [OL_FLOAT32] = loop_exp_multiply_f32, [OL_FLOAT16] = loop_exp_multiply_f16,                      \
                             [OL_BFLOAT16] = loop_exp_multiply_bf16 },                                                        \
    [FUSED_EXP_NEGATIVE_MULTIPLY] = { [OL_FLOAT32] = loop_exp_negative_multiply_f32,                                          \
                                      [OL_FLOAT16] = loop_exp_negative_multiply_f16,                                          \
                                      [OL_BFLOAT16] = loop_exp_negative_multiply_bf16 },

#endif
