/* The vectors of the gated-delta kernels, for the level that is being compiled: D_LANES float32 in a d_float, with the compiler's own
 * operators for sums and products, and what it has none for: a fused multiply-add, float16, and the tree over a row's 32 sums.
 *
 * d_fold(sums, s): s[row][part] are the 32 sums of D_ROWS rows, as many as the registers hold beside each other; sums[row] is each
 * row's result. Adding neighbours, level by level, is what hadd and its kin do; two or four rows share the later levels. */
#ifndef OL_DELTA_VECTOR_H
#define OL_DELTA_VECTOR_H

#include "numerics/num_gated_delta.h"

#include <string.h>

#define D_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)

#include <immintrin.h>
enum { D_LANES = 16, D_PARTS = 2, D_ROWS = 4 };
typedef __m512 d_float;

D_INLINE d_float d_set(float x) { return _mm512_set1_ps(x); }
D_INLINE d_float d_fma(d_float x, d_float y, d_float z) { return _mm512_fmadd_ps(x, y, z); }
D_INLINE d_float d_widen_bf16(const void *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}
D_INLINE void d_put_upper_halves(void *p, __m512i bits) { _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16))); }
D_INLINE d_float d_widen_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
D_INLINE void d_narrow_f16(void *p, d_float x) { _mm256_storeu_si256(p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)); }

/* Neighbours within each quarter: of x to its first half, of y to its second. */
D_INLINE d_float d_pairs(d_float x, d_float y) { return _mm512_shuffle_ps(x, y, 0x88) + _mm512_shuffle_ps(x, y, 0xdd); }

D_INLINE void d_fold(float *sums, d_float s[D_ROWS][D_PARTS]) {
    /* A quarter has four of sums 0 to 15, as two, and four of sums 16 to 31. */
    d_float ab = d_pairs(d_pairs(s[0][0], s[0][1]), d_pairs(s[1][0], s[1][1]));
    d_float cd = d_pairs(d_pairs(s[2][0], s[2][1]), d_pairs(s[3][0], s[3][1]));
    d_float x = _mm512_shuffle_f32x4(ab, cd, 0x88) + _mm512_shuffle_f32x4(ab, cd, 0xdd);
    x += _mm512_shuffle_f32x4(x, x, 0xb1);
    x += _mm512_permute_ps(x, 0xb1);
    _mm_storeu_ps(sums, _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x0505, x)));
}

#elif defined(__AVX2__)

#include <immintrin.h>
enum { D_LANES = 8, D_PARTS = 4, D_ROWS = 2 };
typedef __m256 d_float;

D_INLINE d_float d_set(float x) { return _mm256_set1_ps(x); }
D_INLINE d_float d_fma(d_float x, d_float y, d_float z) { return _mm256_fmadd_ps(x, y, z); }
D_INLINE d_float d_widen_bf16(const void *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
}
D_INLINE void d_put_upper_halves(void *p, __m256i bits) {
    __m256i upper = _mm256_srli_epi32(bits, 16);
    _mm_storeu_si128(p, _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1)));
}
D_INLINE d_float d_widen_f16(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
D_INLINE void d_narrow_f16(void *p, d_float x) { _mm_storeu_si128(p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)); }

D_INLINE void d_fold(float *sums, d_float s[D_ROWS][D_PARTS]) {
    d_float a = _mm256_hadd_ps(_mm256_hadd_ps(s[0][0], s[0][1]), _mm256_hadd_ps(s[0][2], s[0][3]));
    d_float b = _mm256_hadd_ps(_mm256_hadd_ps(s[1][0], s[1][1]), _mm256_hadd_ps(s[1][2], s[1][3]));
    /* Of each eight sums, the first four are in the lower half and the others in the upper one. */
    d_float x = _mm256_permute2f128_ps(a, b, 0x20) + _mm256_permute2f128_ps(a, b, 0x31);
    x = _mm256_hadd_ps(x, x);
    x = _mm256_hadd_ps(x, x);
    sums[0] = _mm256_cvtss_f32(x);
    sums[1] = _mm_cvtss_f32(_mm256_extractf128_ps(x, 1));
}

#elif defined(DELTA_NEON)

#include <arm_neon.h>
enum { D_LANES = 4, D_PARTS = 8, D_ROWS = 2 };
typedef float32x4_t d_float;

D_INLINE d_float d_set(float x) { return vdupq_n_f32(x); }
D_INLINE d_float d_fma(d_float x, d_float y, d_float z) { return vfmaq_f32(z, x, y); }
D_INLINE d_float d_widen_f16(const void *p) {
    float16x4_t half;
    memcpy(&half, p, sizeof half);
    return vcvt_f32_f16(half);
}
D_INLINE void d_narrow_f16(void *p, d_float x) {
    float16x4_t half = vcvt_f16_f32(x);
    memcpy(p, &half, sizeof half);
}

D_INLINE d_float d_fold_row(const d_float s[D_PARTS]) {
    return vpaddq_f32(vpaddq_f32(vpaddq_f32(s[0], s[1]), vpaddq_f32(s[2], s[3])), vpaddq_f32(vpaddq_f32(s[4], s[5]), vpaddq_f32(s[6], s[7])));
}

D_INLINE void d_fold(float *sums, d_float s[D_ROWS][D_PARTS]) {
    d_float x = vpaddq_f32(d_fold_row(s[0]), d_fold_row(s[1]));
    vst1_f32(sums, vpadd_f32(vget_low_f32(x), vget_high_f32(x)));
}

#else

enum { D_LANES = 4, D_PARTS = 8, D_ROWS = 1 };
typedef float d_float __attribute__((vector_size(16)));

D_INLINE d_float d_set(float x) { return (d_float){ x, x, x, x }; }

/* Where there is no instruction each lane is emulated exactly, in a function of its own: the right bits matter here, not the time. */
#if NUM_HAS_FMA
D_INLINE
#else
static __attribute__((noinline))
#endif
d_float d_fma(d_float x, d_float y, d_float z) {
    return (d_float){ num_fma_f32(x[0], y[0], z[0]), num_fma_f32(x[1], y[1], z[1]), num_fma_f32(x[2], y[2], z[2]), num_fma_f32(x[3], y[3], z[3]) };
}

D_INLINE d_float d_widen_f16(const void *p) {
    uint16_t half[D_LANES];
    memcpy(half, p, sizeof half);
    return (d_float){ num_widen_f16(half[0]), num_widen_f16(half[1]), num_widen_f16(half[2]), num_widen_f16(half[3]) };
}

D_INLINE void d_narrow_f16(void *p, d_float x) {
    uint16_t half[D_LANES] = { num_narrow_f16(x[0]), num_narrow_f16(x[1]), num_narrow_f16(x[2]), num_narrow_f16(x[3]) };
    memcpy(p, half, sizeof half);
}

D_INLINE void d_fold(float *sums, d_float s[D_ROWS][D_PARTS]) {
    float x[DELTA_SUMS];
    memcpy(x, s[0], sizeof x);
    for (int m = DELTA_SUMS / 2; m > 0; m /= 2)
        for (int i = 0; i < m; i++)
            x[i] = x[2 * i] + x[2 * i + 1];
    sums[0] = x[0];
}

#endif

/* ---- For every level ---- */

typedef uint32_t d_bits __attribute__((vector_size(4 * D_LANES)));

#if !defined(__AVX2__)                 /* where compilers make good code of the conversions between widths */
typedef uint16_t d_halves __attribute__((vector_size(2 * D_LANES)));

D_INLINE d_float d_widen_bf16(const void *p) {
    d_halves half;
    memcpy(&half, p, sizeof half);
    return (d_float)(__builtin_convertvector(half, d_bits) << 16);
}
#endif

D_INLINE d_float d_load(const void *p) {
    d_float x;
    memcpy(&x, p, sizeof x);
    return x;
}

D_INLINE void d_store(void *p, d_float x) { memcpy(p, &x, sizeof x); }

/* Rounded to bfloat16, of no NaN; what a NaN becomes is replaced. */
D_INLINE void d_narrow_bf16(void *p, d_float x) {
    d_bits bits = (d_bits)x, rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
#if defined(__AVX512F__)
    d_put_upper_halves(p, (__m512i)rounded);
#elif defined(__AVX2__)
    d_put_upper_halves(p, (__m256i)rounded);
#else
    d_halves half = __builtin_convertvector(rounded >> 16, d_halves);
    memcpy(p, &half, sizeof half);
#endif
}

/* Lanes where the mask has all bits set; +0 elsewhere. */
D_INLINE d_float d_keep(d_bits mask, d_float x) { return (d_float)(mask & (d_bits)x); }

#endif
