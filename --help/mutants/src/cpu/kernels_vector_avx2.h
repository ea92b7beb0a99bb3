/* Eight float32 in an AVX2 register, for kernels_pair.h and kernels_half.h: operations, a table of 8, and what depends on its size. */
#ifndef OL_CPU_KERNELS_VECTOR_AVX2_H
#define OL_CPU_KERNELS_VECTOR_AVX2_H

#include <immintrin.h>

#define V_INLINE static inline __attribute__((always_inline))
#define V_LANES 8

typedef __m256 v_float;
typedef __m256 v_mask;                           /* all bits of a lane */

V_INLINE v_float v_load(const void *p) { return _mm256_loadu_ps(p); }
V_INLINE void v_store(void *p, v_float x) { _mm256_storeu_ps(p, x); }

/* The first n < V_LANES lanes; the others are zeros, or those of `rest`, and are not stored. */
V_INLINE __m256i v_part(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
V_INLINE v_float v_load_part(const void *p, size_t n) { return _mm256_maskload_ps(p, v_part(n)); }
V_INLINE v_float v_load_part_over(v_float rest, const void *p, size_t n) {
    return _mm256_blendv_ps(rest, v_load_part(p, n), _mm256_castsi256_ps(v_part(n)));
}
V_INLINE void v_store_part(void *p, v_float x, size_t n) { _mm256_maskstore_ps(p, v_part(n), x); }

/* Eight of 16 bits, and the first n of them. */
typedef __m128i v_narrow;
V_INLINE v_narrow v_load_narrow(const void *p) { return _mm_loadu_si128(p); }
V_INLINE v_narrow v_load_narrow_part(const void *p, size_t n) {
    uint16_t part[8] = { 0 };
    memcpy(part, p, n * sizeof *part);
    return _mm_loadu_si128((const __m128i *)part);
}
V_INLINE v_float v_widen_bf16(v_narrow x) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16)); }
V_INLINE v_float v_widen_f16(v_narrow x) { return _mm256_cvtph_ps(x); }

/* x, then y, as float16. */
V_INLINE void v_store_f16(void *p, v_float x, v_float y) {
    __m128i first = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT), second = _mm256_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256((__m256i *)p, _mm256_set_m128i(second, first));
}

V_INLINE v_float v_set(float x) { return _mm256_set1_ps(x); }
V_INLINE v_float v_add(v_float x, v_float y) { return _mm256_add_ps(x, y); }
V_INLINE v_float v_sub(v_float x, v_float y) { return _mm256_sub_ps(x, y); }
V_INLINE v_float v_mul(v_float x, v_float y) { return _mm256_mul_ps(x, y); }
V_INLINE v_float v_fma(v_float x, v_float y, v_float z) { return _mm256_fmadd_ps(x, y, z); }        /* x y + z */
V_INLINE v_float v_fms(v_float x, v_float y, v_float z) { return _mm256_fmsub_ps(x, y, z); }        /* x y - z */
V_INLINE v_float v_fnma(v_float x, v_float y, v_float z) { return _mm256_fnmadd_ps(x, y, z); }      /* z - x y */
V_INLINE v_float v_min(v_float x, v_float y) { return _mm256_min_ps(x, y); }     /* y if either is NaN */
V_INLINE v_float v_max(v_float x, v_float y) { return _mm256_max_ps(x, y); }     /* y if either is NaN */

V_INLINE v_mask v_less(v_float x, v_float y) { return _mm256_cmp_ps(x, y, _CMP_LT_OQ); }
V_INLINE v_mask v_differ(v_float x, v_float y) { return _mm256_cmp_ps(x, y, _CMP_NEQ_UQ); }         /* or NaN */
V_INLINE v_mask v_subnormal(v_float x) {
    return _mm256_and_ps(_mm256_cmp_ps(x, v_set(0x1p-126f), _CMP_LT_OQ), _mm256_cmp_ps(x, v_set(0.0f), _CMP_GT_OQ));
}
V_INLINE v_mask v_none(void) { return _mm256_setzero_ps(); }
V_INLINE v_mask v_and(v_mask x, v_mask y) { return _mm256_and_ps(x, y); }
V_INLINE v_mask v_or(v_mask x, v_mask y) { return _mm256_or_ps(x, y); }
V_INLINE int v_any(v_mask x) { return _mm256_movemask_ps(x) != 0; }
V_INLINE v_float v_select(v_mask m, v_float x, v_float y) { return _mm256_blendv_ps(y, x, m); }

/* ---- exp in 8ths of an octave --------------------------------------------------------------------------------------- */

#define V_POWERS 8
#define V_EXP_ERROR 0x1.3p-32f

/* 2^(j/8) as float32, and j ln2/8 - log of it. */
static const float pair_power[8] = {
    0x1p+0f, 0x1.172b84p+0f, 0x1.306fep+0f, 0x1.4bfdaep+0f,
    0x1.6a09e6p+0f, 0x1.8ace54p+0f, 0x1.ae89fap+0f, 0x1.d5818ep+0f,
};
static const float pair_power_rest[8] = {
    0x0p+0f, -0x1.9c0c22p-27f, 0x1.125002p-25f, -0x1.0a3552p-25f,
    0x1.26055cp-26f, 0x1.67a1cap-28f, -0x1.f9c306p-27f, -0x1.a5217cp-28f,
};

V_INLINE v_float v_power(const float *table, v_float shifted) {                  /* by the last three bits */
    return _mm256_permutevar8x32_ps(v_load(table), _mm256_castps_si256(shifted));
}

/* x 2^floor(k / 8), k = shifted - 1.5 2^23. In two factors, so that overflow gives infinity and underflow 0. */
V_INLINE v_float v_scale(v_float x, v_float shifted) {
    __m256i n = _mm256_srai_epi32(_mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(0x4b400000)), 3);
    __m256i half = _mm256_srai_epi32(n, 1), bias = _mm256_set1_epi32(127);
    __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    __m256i second = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(n, half), bias), 23);
    return v_mul(v_mul(x, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}

/* q with exp(r) = 1 + r + r^2 q. Sollya: fpminimax(exp(x) - x^2/2, [|3,4,5|], [|SG...|], [-ln2/16, ln2/16] * 1.03, relative,
 * 1 + x), error 2^-38. */
V_INLINE v_float v_exp_polynomial(v_float r) {
    v_float q = v_fma(v_set(0x1.14467cp-7f), r, v_set(0x1.555a88p-5f));
    return v_fma(v_fma(q, r, v_set(0x1.55553ep-3f)), r, v_set(0.5f));
}

#endif
