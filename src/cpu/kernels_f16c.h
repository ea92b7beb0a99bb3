/* float16 loops for levels with F16C: the hardware converts a block of operands to float32, the loop works on float32, the
 * hardware converts back. Only what is arithmetic: what works on the bits of a float16 stays in the plain loops.
 *
 * The functions that the loops call give float32 results, canonical where NaN, that one more rounding to float16 makes
 * right (num_round.h); the conversion of the canonical NaN is the canonical one. */
#ifndef OL_CPU_KERNELS_F16C_H
#define OL_CPU_KERNELS_F16C_H

#include <immintrin.h>

#define F16C_BLOCK 64

/* The last few elements go through a vector of their own, filled up with zeros; `out` has room for a multiple of 8. */
static inline void widen_block_f16(float *out, const t_f16 *x, int length) {
    int i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= length; i += 16) _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x + i))));
#endif
    for (; i + 8 <= length; i += 8) _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
    if (i < length) {
        uint16_t last[8] = { 0 };
        memcpy(last, x + i, (size_t)(length - i) * sizeof *last);
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)last)));
    }
}

static inline void narrow_block_f16(t_f16 *out, const float *x, int length) {
    int i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= length; i += 16)
        _mm256_storeu_si256((__m256i *)(out + i), _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i + 8 <= length; i += 8)
        _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    if (i < length) {
        uint16_t last[8];
        float rest[8] = { 0 };
        memcpy(rest, x + i, (size_t)(length - i) * sizeof *rest);
        _mm_storeu_si128((__m128i *)last, _mm256_cvtps_ph(_mm256_loadu_ps(rest), _MM_FROUND_TO_NEAREST_INT));
        memcpy(out + i, last, (size_t)(length - i) * sizeof *last);
    }
}

/* One block loop; OPERANDS converts what there is, RESULT is the float32 expression. */
#define F16C_LOOP(OPERANDS, RESULT)                                                                                           \
    while (n > 0) {                                                                                                           \
        float a[F16C_BLOCK], b[F16C_BLOCK], c[F16C_BLOCK], block[F16C_BLOCK];                                                 \
        int length = n < F16C_BLOCK ? (int)n : F16C_BLOCK;                                                                    \
        (void)b, (void)c;                                                                                                     \
        OPERANDS                                                                                                              \
        _Pragma("omp simd") for (int i = 0; i < length; i++) block[i] = RESULT;                                               \
        narrow_block_f16(result, block, length);                                                                              \
        result += length, n -= (size_t)length;                                                                                \
    }

#define F16C_1(name, RESULT)                                                                                                  \
    static void loop_##name##_f16(KERNEL_ARGUMENTS) {                                                                         \
        t_f16 *result = out;                                                                                                  \
        const t_f16 *p = x;                                                                                                   \
        (void)y, (void)z;                                                                                                     \
        F16C_LOOP(widen_block_f16(a, p, length); p += length;, RESULT)                                                        \
    }

#define F16C_2(name, RESULT)                                                                                                  \
    static void loop_##name##_f16(KERNEL_ARGUMENTS) {                                                                         \
        t_f16 *result = out;                                                                                                  \
        const t_f16 *p = x, *q = y;                                                                                           \
        (void)z;                                                                                                              \
        F16C_LOOP(widen_block_f16(a, p, length); widen_block_f16(b, q, length); p += length; q += length;, RESULT)            \
    }

#define F16C_3(name, RESULT)                                                                                                  \
    static void loop_##name##_f16(KERNEL_ARGUMENTS) {                                                                         \
        t_f16 *result = out;                                                                                                  \
        const t_f16 *p = x, *q = y, *r = z;                                                                                   \
        F16C_LOOP(widen_block_f16(a, p, length); widen_block_f16(b, q, length); widen_block_f16(c, r, length); p += length; q += length; \
                  r += length;, RESULT)                                                                                       \
    }

#define F16C_COMPARE(name)                                                                                                    \
    static void loop_##name##_f16(KERNEL_ARGUMENTS) {                                                                         \
        t_b8 *result = out;                                                                                                   \
        const t_f16 *p = x, *q = y;                                                                                           \
        (void)z;                                                                                                              \
        while (n > 0) {                                                                                                       \
            float a[F16C_BLOCK], b[F16C_BLOCK];                                                                               \
            int length = n < F16C_BLOCK ? (int)n : F16C_BLOCK;                                                                \
            widen_block_f16(a, p, length);                                                                                    \
            widen_block_f16(b, q, length);                                                                                    \
            _Pragma("omp simd") for (int i = 0; i < length; i++) result[i] = num_##name##_f32(a[i], b[i]);                    \
            result += length, p += length, q += length, n -= (size_t)length;                                                  \
        }                                                                                                                     \
    }

#define KERNEL_OWN_square_f16 ~, KERNEL_NONE
#define KERNEL_OWN_floor_f16 ~, KERNEL_NONE
#define KERNEL_OWN_ceil_f16 ~, KERNEL_NONE
#define KERNEL_OWN_round_f16 ~, KERNEL_NONE
#define KERNEL_OWN_sqrt_f16 ~, KERNEL_NONE
#define KERNEL_OWN_rsqrt_f16 ~, KERNEL_NONE
#define KERNEL_OWN_reciprocal_f16 ~, KERNEL_NONE
#define KERNEL_OWN_exp_f16 ~, KERNEL_NONE
#define KERNEL_OWN_expm1_f16 ~, KERNEL_NONE
#define KERNEL_OWN_log_f16 ~, KERNEL_NONE
#define KERNEL_OWN_log1p_f16 ~, KERNEL_NONE
#define KERNEL_OWN_sigmoid_f16 ~, KERNEL_NONE
#define KERNEL_OWN_softplus_f16 ~, KERNEL_NONE
#define KERNEL_OWN_tanh_f16 ~, KERNEL_NONE
#define KERNEL_OWN_exp2_f16 ~, KERNEL_NONE
#define KERNEL_OWN_log2_f16 ~, KERNEL_NONE
#define KERNEL_OWN_log10_f16 ~, KERNEL_NONE
#define KERNEL_OWN_silu_f16 ~, KERNEL_NONE
#define KERNEL_OWN_sin_f16 ~, KERNEL_NONE
#define KERNEL_OWN_cos_f16 ~, KERNEL_NONE
#define KERNEL_OWN_tan_f16 ~, KERNEL_NONE
#define KERNEL_OWN_sinh_f16 ~, KERNEL_NONE
#define KERNEL_OWN_cosh_f16 ~, KERNEL_NONE
#define KERNEL_OWN_arcsin_f16 ~, KERNEL_NONE
#define KERNEL_OWN_arccos_f16 ~, KERNEL_NONE
#define KERNEL_OWN_arctan_f16 ~, KERNEL_NONE
#define KERNEL_OWN_arcsinh_f16 ~, KERNEL_NONE
#define KERNEL_OWN_arccosh_f16 ~, KERNEL_NONE
#define KERNEL_OWN_arctanh_f16 ~, KERNEL_NONE
#define KERNEL_OWN_erf_f16 ~, KERNEL_NONE
#define KERNEL_OWN_erfinv_f16 ~, KERNEL_NONE
#define KERNEL_OWN_add_f16 ~, KERNEL_NONE
#define KERNEL_OWN_subtract_f16 ~, KERNEL_NONE
#define KERNEL_OWN_multiply_f16 ~, KERNEL_NONE
#define KERNEL_OWN_divide_f16 ~, KERNEL_NONE
#define KERNEL_OWN_hypot_f16 ~, KERNEL_NONE
#define KERNEL_OWN_fma_f16 ~, KERNEL_NONE
#define KERNEL_OWN_equal_f16 ~, KERNEL_NONE
#define KERNEL_OWN_not_equal_f16 ~, KERNEL_NONE
#define KERNEL_OWN_less_f16 ~, KERNEL_NONE
#define KERNEL_OWN_less_equal_f16 ~, KERNEL_NONE
#define KERNEL_OWN_greater_f16 ~, KERNEL_NONE
#define KERNEL_OWN_greater_equal_f16 ~, KERNEL_NONE
#define KERNEL_OWN_astype_f16_f32 ~, KERNEL_NONE
#define KERNEL_OWN_astype_f32_f16 ~, KERNEL_NONE

F16C_1(square, num_square_f32(a[i]))
F16C_1(floor, num_floor_f32(a[i]))
F16C_1(ceil, num_ceil_f32(a[i]))
F16C_1(round, num_round_f32(a[i]))
F16C_1(sqrt, num_sqrt_f32(a[i]))
F16C_1(rsqrt, num_canonical32(num_rsqrt_for_half(a[i])))
F16C_1(reciprocal, num_reciprocal_f32(a[i]))
F16C_1(exp, num_unless_nan32(a[i], num_exp_for_f16(a[i])))
F16C_1(expm1, num_unless_nan32(a[i], num_expm1_for_f16(a[i])))
F16C_1(log, num_log_special32(a[i], num_log_for_f16(a[i])))
F16C_1(log1p, num_log1p_special32(a[i], num_log1p_for_f16(a[i])))
F16C_1(sigmoid, num_unless_nan32(a[i], num_sigmoid_for_f16(a[i])))
F16C_1(softplus, num_unless_nan32(a[i], num_softplus_for_f16(a[i])))
F16C_1(tanh, num_unless_nan32(a[i], num_tanh_for_f16(a[i])))
F16C_1(sin, num_canonical32(num_sin_for_f16(a[i])))
F16C_1(cos, num_canonical32(num_cos_for_f16(a[i])))
F16C_1(tan, num_canonical32(num_tan_for_f16(a[i])))
F16C_1(exp2, num_unless_nan32(a[i], num_exp2_for_f16(a[i])))
F16C_1(log2, num_log_special32(a[i], num_log2_for_f16(a[i])))
F16C_1(log10, num_log_special32(a[i], num_log10_for_f16(a[i])))
F16C_1(silu, num_unless_nan32(a[i], num_silu_for_f16(a[i])))
F16C_1(sinh, num_unless_nan32(a[i], num_sinh_for_f16(a[i])))
F16C_1(cosh, num_unless_nan32(a[i], num_cosh_for_f16(a[i])))
F16C_1(arcsin, num_unless_nan32(a[i], num_canonical32(num_arcsin_for_f16(a[i]))))
F16C_1(arccos, num_unless_nan32(a[i], num_canonical32(num_arccos_for_f16(a[i]))))
F16C_1(arctan, num_unless_nan32(a[i], num_canonical32(num_arctan_for_f16(a[i]))))
F16C_1(arcsinh, num_unless_nan32(a[i], num_arcsinh_for_f16(a[i])))
F16C_1(arccosh, num_arccosh_for_f16(a[i]))
F16C_1(arctanh, num_arctanh_for_f16(a[i]))
F16C_1(erf, num_unless_nan32(a[i], num_erf_for_f16(a[i])))
F16C_1(erfinv, num_erfinv_for_f16(a[i]))
F16C_2(add, num_add_f32(a[i], b[i]))
F16C_2(subtract, num_subtract_f32(a[i], b[i]))
F16C_2(multiply, num_multiply_f32(a[i], b[i]))
F16C_2(divide, num_divide_f32(a[i], b[i]))
F16C_2(hypot, num_canonical32(num_hypot_for_f16(a[i], b[i])))
F16C_3(fma, num_canonical32(num_fma_for_f16(a[i], b[i], c[i])))
F16C_COMPARE(equal)
F16C_COMPARE(not_equal)
F16C_COMPARE(less)
F16C_COMPARE(less_equal)
F16C_COMPARE(greater)
F16C_COMPARE(greater_equal)

static void loop_astype_f16_f32(KERNEL_ARGUMENTS) {
    t_f32 *result = out;
    const t_f16 *p = x;
    (void)y, (void)z;
    while (n > 0) {
        float a[F16C_BLOCK];
        int length = n < F16C_BLOCK ? (int)n : F16C_BLOCK;
        widen_block_f16(a, p, length);
        _Pragma("omp simd") for (int i = 0; i < length; i++) result[i] = num_canonical32(a[i]);
        result += length, p += length, n -= (size_t)length;
    }
}

static void loop_astype_f32_f16(KERNEL_ARGUMENTS) {
    t_f16 *result = out;
    const t_f32 *p = x;
    (void)y, (void)z;
    while (n > 0) {
        float block[F16C_BLOCK];
        int length = n < F16C_BLOCK ? (int)n : F16C_BLOCK;
        _Pragma("omp simd") for (int i = 0; i < length; i++) block[i] = num_canonical32(p[i]);
        narrow_block_f16(result, block, length);
        result += length, p += length, n -= (size_t)length;
    }
}

#endif
