/* The logarithms of kernels_pair_log.h on AVX2: splitting, tables of 8, which are one permute each, and a polynomial. An interval
 * of m is an eighth of an octave's bits, [31/32, 17/16) the one around 1. */
#ifndef OL_CPU_KERNELS_LOG_AVX2_H
#define OL_CPU_KERNELS_LOG_AVX2_H

typedef struct v_split {
    v_float m, k;
    __m256i index, exponent;
} v_split;

/* x = m 2^k, m in [23/32, 23/16); k is NaN unless x is positive, normal and finite. */
V_INLINE v_split v_log_split(v_float x) {
    __m256i bits = _mm256_castps_si256(x);
    __m256i above = _mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f380000));
    __m256i outside = _mm256_cmpgt_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7f800000)), _mm256_set1_epi32(-0x1000001));
    v_split s;
    s.exponent = _mm256_and_si256(above, _mm256_set1_epi32(-0x800000));
    s.m = _mm256_castsi256_ps(_mm256_sub_epi32(bits, s.exponent));
    s.k = v_or(_mm256_cvtepi32_ps(_mm256_srai_epi32(above, 23)), _mm256_castsi256_ps(outside));
    s.index = _mm256_srli_epi32(above, 20);
    return s;
}

/* x 2^-k; for k = 128 an infinity. */
V_INLINE v_float v_split_scale(v_split s, v_float x) {
    return v_mul(x, _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_set1_epi32(0x3f800000), s.exponent)));
}

V_INLINE v_float v_split_table(const float *table, v_split s) { return _mm256_permutevar8x32_ps(v_load(table), s.index); }

/* c, near 1 / m, of so few bits that m c - 1 is exact; -log(c) in two parts, the high one a multiple of 2^-17. */
static const float pair_center[8] = {
    0x1.5p+0f, 0x1.4p+0f, 0x1.2p+0f, 0x1.1p+0f,
    0x1p+0f, 0x1.cp-1f, 0x1.ap-1f, 0x1.7p-1f,
};
static const float pair_ln_high[8] = {
    -0x1.1676p-2f, -0x1.c9p-3f, -0x1.e27p-4f, -0x1.f0ap-5f,
    0x0p+0f, 0x1.1178p-3f, 0x1.a94p-3f, 0x1.522ap-2f,
};
static const float pair_ln_low[8] = {
    0x1.aa2a2cp-21f, 0x1.070cacp-20f, -0x1.db8abcp-22f, -0x1.86008cp-20f,
    0x0p+0f, 0x1.d044fcp-20f, -0x1.2c3752p-19f, 0x1.c0e714p-19f,
};

/* -log2(c), the high part a multiple of 2^-16; -log10(c), the high part a multiple of 2^-18. Low parts times ln2, ln10. */
static const float pair_log2_high[8] = {
    -0x1.91bcp-2f, -0x1.49a8p-2f, -0x1.5cp-3f, -0x1.664p-4f,
    0x0p+0f, 0x1.8a88p-3f, 0x1.32cp-2f, 0x1.e7ep-2f,
};
static const float pair_log2_low[8] = {
    0x1.e4d07ap-21f, 0x1.55c18ap-20f, -0x1.22dc76p-19f, 0x1.90280ap-22f,
    0x0p+0f, 0x1.0aa25ap-19f, -0x1.8a7b7cp-23f, -0x1.bbe77ap-20f,
};
static const float pair_log10_high[8] = {
    -0x1.e3bcp-4f, -0x1.8cfp-4f, -0x1.a308p-5f, -0x1.af6p-6f,
    0x0p+0f, 0x1.db1p-5f, 0x1.715cp-4f, 0x1.25bap-3f,
};
static const float pair_log10_low[8] = {
    -0x1.ebaa54p-23f, -0x1.be29e2p-19f, -0x1.81531ap-19f, 0x1.f766d2p-23f,
    0x0p+0f, 0x1.1c0f54p-19f, 0x1.3591bp-19f, 0x1.2b87f6p-19f,
};

/* Of the relative error, what f^2 has no part in, by interval: docs/numerics.md. */
static const float pair_log_error[8] = {
    0x1.6p-36f, 0x1.ep-36f, 0x1.8p-35f, 0x1.2p-33f,
    0x1.ep-36f, 0x1.6p-34f, 0x1p-35f, 0x1.4p-36f,
};

/* q with log(1 + f) = f - f^2/2 + f^3 q. Sollya: fpminimax(log1p(x) + x^2/2, [|3,...,7|], [|SG...|], [-0.0704, 0.0665],
 * relative, x), error 2^-35.2. */
V_INLINE v_float v_log_cubic(v_float f) {
    v_float q = v_fma(v_set(0x1.2a289ep-3f), f, v_set(-0x1.571c6cp-3f));
    q = v_fma(v_fma(q, f, v_set(0x1.9993bep-3f)), f, v_set(-0x1.ffff44p-3f));
    return v_fma(q, f, v_set(0x1.555556p-2f));
}

#endif
