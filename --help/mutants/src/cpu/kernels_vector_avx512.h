/* Sixteen float32 in an AVX-512 register, for kernels_pair.h and kernels_half.h: operations,
 * tables of 32, and what depends on their size. */
#ifndef OL_CPU_KERNELS_VECTOR_AVX512_H
#define OL_CPU_KERNELS_VECTOR_AVX512_H

#include <immintrin.h>

#define V_INLINE static inline __attribute__((always_inline))
#define V_LANES 16

typedef __m512 v_float;
typedef __m512i v_index;
typedef __mmask16 v_mask;

V_INLINE v_float v_load(const void *p) { return _mm512_loadu_ps(p); }
V_INLINE void v_store(void *p, v_float x) { _mm512_storeu_ps(p, x); }
/* The first n < V_LANES lanes; the others are zeros, or those of `rest`, and are not stored. */
V_INLINE v_float v_load_part(const void *p, size_t n) { return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
V_INLINE v_float v_load_part_over(v_float rest, const void *p, size_t n) {
    return _mm512_mask_loadu_ps(rest, (__mmask16)((1u << n) - 1), p);
}
V_INLINE void v_store_part(void *p, v_float x, size_t n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), x); }

/* Sixteen of 16 bits, and the first n of them. */
typedef __m256i v_narrow;
V_INLINE v_narrow v_load_narrow(const void *p) { return _mm256_loadu_si256(p); }
V_INLINE v_narrow v_load_narrow_part(const void *p, size_t n) { return _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p); }
V_INLINE v_float v_widen_bf16(v_narrow x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)); }
V_INLINE v_float v_widen_f16(v_narrow x) { return _mm512_cvtph_ps(x); }

/* x, then y, as float16. */
V_INLINE void v_store_f16(void *p, v_float x, v_float y) {
    __m256i first = _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT), second = _mm512_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT);
    _mm512_storeu_si512(p, _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1));
}

V_INLINE v_float v_set(float x) { return _mm512_set1_ps(x); }
V_INLINE v_float v_add(v_float x, v_float y) { return _mm512_add_ps(x, y); }
V_INLINE v_float v_sub(v_float x, v_float y) { return _mm512_sub_ps(x, y); }
V_INLINE v_float v_mul(v_float x, v_float y) { return _mm512_mul_ps(x, y); }
V_INLINE v_float v_div(v_float x, v_float y) { return _mm512_div_ps(x, y); }
V_INLINE v_float v_fma(v_float x, v_float y, v_float z) { return _mm512_fmadd_ps(x, y, z); }        /* x y + z */
V_INLINE v_float v_fms(v_float x, v_float y, v_float z) { return _mm512_fmsub_ps(x, y, z); }        /* x y - z */
V_INLINE v_float v_fnma(v_float x, v_float y, v_float z) { return _mm512_fnmadd_ps(x, y, z); }      /* z - x y */
V_INLINE v_float v_min(v_float x, v_float y) { return _mm512_min_ps(x, y); }     /* y if either is NaN */
V_INLINE v_float v_max(v_float x, v_float y) { return _mm512_max_ps(x, y); }     /* y if either is NaN */
V_INLINE v_float v_negative_magnitude(v_float x) { return _mm512_or_ps(x, v_set(-0.0f)); }

V_INLINE v_mask v_less(v_float x, v_float y) { return _mm512_cmp_ps_mask(x, y, _CMP_LT_OQ); }
V_INLINE v_mask v_differ(v_float x, v_float y) { return _mm512_cmp_ps_mask(x, y, _CMP_NEQ_UQ); }    /* or NaN */
V_INLINE v_mask v_sign(v_float x) { return _mm512_movepi32_mask(_mm512_castps_si512(x)); }
V_INLINE v_mask v_subnormal(v_float x) { return _mm512_fpclass_ps_mask(x, 0x20); }
V_INLINE v_mask v_none(void) { return 0; }
V_INLINE v_mask v_and(v_mask x, v_mask y) { return x & y; }
V_INLINE v_mask v_or(v_mask x, v_mask y) { return x | y; }
V_INLINE int v_any(v_mask x) { return x != 0; }
V_INLINE v_float v_select(v_mask m, v_float x, v_float y) { return _mm512_mask_mov_ps(y, m, x); }
V_INLINE v_float v_keep(v_mask m, v_float x) { return _mm512_maskz_mov_ps(m, x); }

/* ---- exp in 32nds of an octave -------------------------------------------------------------------------------------- */

#define V_POWERS 32
#define V_PAIR_ERROR 0x1.4p-35f
#define V_EXP_ERROR 0x1.4p-36f

/* 2^(j/32) as float32, and j ln2/32 - log of it. */
static const float pair_power[32] = {
    0x1p+0f, 0x1.059b0ep+0f, 0x1.0b5586p+0f, 0x1.11301ep+0f,
    0x1.172b84p+0f, 0x1.1d4874p+0f, 0x1.2387a6p+0f, 0x1.29e9ep+0f,
    0x1.306fep+0f, 0x1.371a74p+0f, 0x1.3dea64p+0f, 0x1.44e086p+0f,
    0x1.4bfdaep+0f, 0x1.5342b6p+0f, 0x1.5ab07ep+0f, 0x1.6247ecp+0f,
    0x1.6a09e6p+0f, 0x1.71f75ep+0f, 0x1.7a1148p+0f, 0x1.82589ap+0f,
    0x1.8ace54p+0f, 0x1.93737cp+0f, 0x1.9c4918p+0f, 0x1.a5503cp+0f,
    0x1.ae89fap+0f, 0x1.b7f77p+0f, 0x1.c199bep+0f, 0x1.cb720ep+0f,
    0x1.d5818ep+0f, 0x1.dfc974p+0f, 0x1.ea4afap+0f, 0x1.f50766p+0f,
};
static const float pair_power_rest[32] = {
    0x0p+0f, -0x1.947416p-25f, 0x1.8d96d4p-25f, -0x1.dda2fep-25f,
    -0x1.9c0c22p-27f, -0x1.a2fbb4p-25f, 0x1.964902p-25f, -0x1.2b0dbcp-25f,
    0x1.125002p-25f, -0x1.cde8cep-26f, 0x1.370be4p-25f, 0x1.336de2p-30f,
    -0x1.0a3552p-25f, -0x1.c541b6p-26f, -0x1.00d8acp-27f, -0x1.6cb284p-25f,
    0x1.26055cp-26f, 0x1.8b2bb8p-26f, -0x1.05cb44p-25f, -0x1.1c2142p-26f,
    0x1.67a1cap-28f, -0x1.348e56p-25f, 0x1.a3b5e4p-28f, -0x1.0b7ec8p-25f,
    -0x1.f9c306p-27f, -0x1.e4c886p-26f, -0x1.6961b4p-28f, -0x1.b5151ep-28f,
    -0x1.a5217cp-28f, -0x1.ab7132p-26f, 0x1.61428ep-28f, -0x1.2ad5f8p-27f,
};
/* c, near 1 / (1 + i/32), and -log(c) in two parts, the high one a multiple of 2^-24. */
static const float pair_inverse[32] = {
    0x1p+0f, 0x1.f07c2p-1f, 0x1.e1e1e2p-1f, 0x1.d41d42p-1f,
    0x1.c71c72p-1f, 0x1.bacf92p-1f, 0x1.af286cp-1f, 0x1.a41a42p-1f,
    0x1.99999ap-1f, 0x1.8f9c18p-1f, 0x1.861862p-1f, 0x1.7d05f4p-1f,
    0x1.745d18p-1f, 0x1.6c16c2p-1f, 0x1.642c86p-1f, 0x1.5c9882p-1f,
    0x1.555556p-1f, 0x1.4e5e0ap-1f, 0x1.47ae14p-1f, 0x1.414142p-1f,
    0x1.3b13b2p-1f, 0x1.3521dp-1f, 0x1.2f684cp-1f, 0x1.29e412p-1f,
    0x1.24924ap-1f, 0x1.1f7048p-1f, 0x1.1a7b96p-1f, 0x1.15b1e6p-1f,
    0x1.111112p-1f, 0x1.0c9714p-1f, 0x1.08421p-1f, 0x1.041042p-1f,
};
static const float pair_log_high[32] = {
    0x0p+0f, 0x1.f8298p-6f, 0x1.f0a3p-5f, 0x1.6f0d2p-4f,
    0x1.e2707p-4f, 0x1.29553p-3f, 0x1.5ff308p-3f, 0x1.9525a8p-3f,
    0x1.c8ff78p-3f, 0x1.fb9188p-3f, 0x1.1675c8p-2f, 0x1.2e8e2cp-2f,
    0x1.4618bcp-2f, 0x1.5d1bdcp-2f, 0x1.739d8p-2f, 0x1.89a33cp-2f,
    0x1.9f323cp-2f, 0x1.b44f78p-2f, 0x1.c8ff7cp-2f, 0x1.dd469cp-2f,
    0x1.f128f4p-2f, 0x1.02552ap-1f, 0x1.0be72ep-1f, 0x1.154c3ep-1f,
    0x1.1e85f4p-1f, 0x1.2795ep-1f, 0x1.307d74p-1f, 0x1.393e0ep-1f,
    0x1.41d8fcp-1f, 0x1.4a4f88p-1f, 0x1.52a2d4p-1f, 0x1.5ad402p-1f,
};
static const float pair_log_low[32] = {
    0x0p+0f, 0x1.0e7834p-26f, 0x1.4022c6p-26f, 0x1.cb95aep-26f,
    0x1.38abccp-26f, -0x1.df0056p-26f, -0x1.f586c2p-27f, 0x1.e8ad7p-32f,
    0x1.3cd4d2p-26f, 0x1.eaf1f2p-26f, 0x1.7aba62p-26f, -0x1.1ee2dp-30f,
    -0x1.de3a14p-26f, -0x1.aa7f64p-26f, -0x1.d443p-26f, -0x1.73ebdap-26f,
    0x1.97f30ap-27f, 0x1.1cc8f6p-26f, 0x1.f9a9a2p-26f, 0x1.ec1c4ap-26f,
    -0x1.0a1f2p-27f, -0x1.2d178p-28f, 0x1.295418p-32f, 0x1.fa6af8p-28f,
    0x1.9c1036p-27f, 0x1.d13624p-26f, -0x1.561de8p-26f, -0x1.b53abcp-26f,
    0x1.88ce58p-26f, -0x1.13f04ep-27f, -0x1.34874ap-26f, 0x1.a6b3e8p-26f,
};

V_INLINE v_float v_power(const float *table, v_float shifted) {                  /* by the last five bits */
    return _mm512_permutex2var_ps(v_load(table), _mm512_castps_si512(shifted), v_load(table + 16));
}

/* x 2^floor(k / 32), k = shifted - 1.5 2^23; rounded once where subnormal. */
V_INLINE v_float v_scale(v_float x, v_float shifted) {
    return _mm512_scalef_ps(x, v_mul(v_sub(shifted, v_set(0x1.8p23f)), v_set(0x1p-5f)));
}

/* q with exp(r) = 1 + r + r^2 q. Sollya: fpminimax(exp(x) - x^2/2, [|3,4|], [|SG...|], [-ln2/64, ln2/64] * 1.03, relative,
 * 1 + x), error 2^-42. */
V_INLINE v_float v_exp_polynomial(v_float r) {
    return v_fma(v_fma(v_set(0x1.555568p-5f), r, v_set(0x1.5555cep-3f)), r, v_set(0.5f));
}

/* ---- log(1 + e) in 32nds --------------------------------------------------------------------------------------------- */

#define V_LOGS 32

/* s in [1, 2], rounded to a 32nd, but 2 to the last. */
V_INLINE v_index v_log_index(v_float s) {
    __m512i index = _mm512_srli_epi32(_mm512_add_epi32(_mm512_castps_si512(s), _mm512_set1_epi32(1 << 17)), 18);
    __mmask16 last = _mm512_cmp_ps_mask(s, v_set(2.0f - 0x1p-6f), _CMP_GE_OQ);
    return _mm512_mask_mov_epi32(index, last, _mm512_set1_epi32(31));
}

V_INLINE v_float v_log_table(const float *table, v_index index) {
    return _mm512_permutex2var_ps(v_load(table), index, v_load(table + 16));
}

/* q with log(1 + f) = f - f^2/2 - f^3/2 q: -2 times Sollya's fpminimax(log1p(x) + x^2/2, [|3,...,6|], [|SG...|],
 * [-1/63.4, 1/62.9], relative, x), error 2^-40. */
V_INLINE v_float v_log_polynomial(v_float f) {
    v_float q = v_fma(v_set(0x1.55092p-2f), f, v_set(-0x1.9992d2p-2f));
    return v_fma(v_fma(q, f, v_set(0x1.000002p-1f)), f, v_set(-0x1.555556p-1f));
}

#endif
