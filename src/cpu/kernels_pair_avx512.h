/* float32 exp, sigmoid and softplus for AVX-512, sixteen at a time: the rates of a gated delta layer are made of these.
 *
 * Instead of a double, a result is evaluated as an unrounded sum of two float32, high + low, with a relative error below
 * PAIR_ERROR. Where adding and subtracting that error rounds to the same float32, that is the correctly rounded result;
 * where not (a few in a thousand inputs, NaN, subnormal results), the whole vector is done again in double, with the
 * functions every other level uses. So the result is the correctly rounded one whatever the route, which running all 2^32
 * inputs confirms (tests/prove), and it is twice as fast.
 *
 * Tables of 32 floats sit in registers and are read by permutes. exp: x = (32 n + j) ln2/32 + r, exp(r) a polynomial,
 * 2^(j/32) a float32 t_j; that t_j is not exactly 2^(j/32) goes into r (Gal's accurate tables, 1986, turned round).
 * log(1 + t): s = 1 + t rounded to a 32nd, f = s c - 1, log(s) = log(1 + f) - log(c) (Tang, 1990).
 * Polynomials: Sollya, fpminimax(exp(x) - x^2/2, [|3,4|], [|SG...|], [-ln2/64, ln2/64] * 1.03, relative, 1 + x), error 2^-42;
 * fpminimax(log1p(x) + x^2/2, [|3,...,6|], [|SG...|], [-1/63.4, 1/62.9], relative, x), error 2^-41. */
#ifndef OL_CPU_KERNELS_PAIR_AVX512_H
#define OL_CPU_KERNELS_PAIR_AVX512_H

#include <immintrin.h>

/* 2^(j/32) as float32, and j ln2/32 - log of it. */
static const float pair_power[32] = {
    0x1p+0f, 0x1.059b0ep+0f, 0x1.0b5586p+0f, 0x1.11301ep+0f, 0x1.172b84p+0f, 0x1.1d4874p+0f, 0x1.2387a6p+0f, 0x1.29e9ep+0f,
    0x1.306fep+0f, 0x1.371a74p+0f, 0x1.3dea64p+0f, 0x1.44e086p+0f, 0x1.4bfdaep+0f, 0x1.5342b6p+0f, 0x1.5ab07ep+0f, 0x1.6247ecp+0f,
    0x1.6a09e6p+0f, 0x1.71f75ep+0f, 0x1.7a1148p+0f, 0x1.82589ap+0f, 0x1.8ace54p+0f, 0x1.93737cp+0f, 0x1.9c4918p+0f, 0x1.a5503cp+0f,
    0x1.ae89fap+0f, 0x1.b7f77p+0f, 0x1.c199bep+0f, 0x1.cb720ep+0f, 0x1.d5818ep+0f, 0x1.dfc974p+0f, 0x1.ea4afap+0f, 0x1.f50766p+0f,
};
static const float pair_power_rest[32] = {
    0x0p+0f, -0x1.947416p-25f, 0x1.8d96d4p-25f, -0x1.dda2fep-25f, -0x1.9c0c22p-27f, -0x1.a2fbb4p-25f, 0x1.964902p-25f, -0x1.2b0dbcp-25f,
    0x1.125002p-25f, -0x1.cde8cep-26f, 0x1.370be4p-25f, 0x1.336de2p-30f, -0x1.0a3552p-25f, -0x1.c541b6p-26f, -0x1.00d8acp-27f, -0x1.6cb284p-25f,
    0x1.26055cp-26f, 0x1.8b2bb8p-26f, -0x1.05cb44p-25f, -0x1.1c2142p-26f, 0x1.67a1cap-28f, -0x1.348e56p-25f, 0x1.a3b5e4p-28f, -0x1.0b7ec8p-25f,
    -0x1.f9c306p-27f, -0x1.e4c886p-26f, -0x1.6961b4p-28f, -0x1.b5151ep-28f, -0x1.a5217cp-28f, -0x1.ab7132p-26f, 0x1.61428ep-28f, -0x1.2ad5f8p-27f,
};
/* c, near 1 / (1 + i/32), and -log(c) in two parts, the high one a multiple of 2^-24. */
static const float pair_inverse[32] = {
    0x1p+0f, 0x1.f07c2p-1f, 0x1.e1e1e2p-1f, 0x1.d41d42p-1f, 0x1.c71c72p-1f, 0x1.bacf92p-1f, 0x1.af286cp-1f, 0x1.a41a42p-1f,
    0x1.99999ap-1f, 0x1.8f9c18p-1f, 0x1.861862p-1f, 0x1.7d05f4p-1f, 0x1.745d18p-1f, 0x1.6c16c2p-1f, 0x1.642c86p-1f, 0x1.5c9882p-1f,
    0x1.555556p-1f, 0x1.4e5e0ap-1f, 0x1.47ae14p-1f, 0x1.414142p-1f, 0x1.3b13b2p-1f, 0x1.3521dp-1f, 0x1.2f684cp-1f, 0x1.29e412p-1f,
    0x1.24924ap-1f, 0x1.1f7048p-1f, 0x1.1a7b96p-1f, 0x1.15b1e6p-1f, 0x1.111112p-1f, 0x1.0c9714p-1f, 0x1.08421p-1f, 0x1.041042p-1f,
};
static const float pair_log_high[32] = {
    0x0p+0f, 0x1.f8298p-6f, 0x1.f0a3p-5f, 0x1.6f0d2p-4f, 0x1.e2707p-4f, 0x1.29553p-3f, 0x1.5ff308p-3f, 0x1.9525a8p-3f,
    0x1.c8ff78p-3f, 0x1.fb9188p-3f, 0x1.1675c8p-2f, 0x1.2e8e2cp-2f, 0x1.4618bcp-2f, 0x1.5d1bdcp-2f, 0x1.739d8p-2f, 0x1.89a33cp-2f,
    0x1.9f323cp-2f, 0x1.b44f78p-2f, 0x1.c8ff7cp-2f, 0x1.dd469cp-2f, 0x1.f128f4p-2f, 0x1.02552ap-1f, 0x1.0be72ep-1f, 0x1.154c3ep-1f,
    0x1.1e85f4p-1f, 0x1.2795ep-1f, 0x1.307d74p-1f, 0x1.393e0ep-1f, 0x1.41d8fcp-1f, 0x1.4a4f88p-1f, 0x1.52a2d4p-1f, 0x1.5ad402p-1f,
};
static const float pair_log_low[32] = {
    0x0p+0f, 0x1.0e7834p-26f, 0x1.4022c6p-26f, 0x1.cb95aep-26f, 0x1.38abccp-26f, -0x1.df0056p-26f, -0x1.f586c2p-27f, 0x1.e8ad7p-32f,
    0x1.3cd4d2p-26f, 0x1.eaf1f2p-26f, 0x1.7aba62p-26f, -0x1.1ee2dp-30f, -0x1.de3a14p-26f, -0x1.aa7f64p-26f, -0x1.d443p-26f, -0x1.73ebdap-26f,
    0x1.97f30ap-27f, 0x1.1cc8f6p-26f, 0x1.f9a9a2p-26f, 0x1.ec1c4ap-26f, -0x1.0a1f2p-27f, -0x1.2d178p-28f, 0x1.295418p-32f, 0x1.fa6af8p-28f,
    0x1.9c1036p-27f, 0x1.d13624p-26f, -0x1.561de8p-26f, -0x1.b53abcp-26f, 0x1.88ce58p-26f, -0x1.13f04ep-27f, -0x1.34874ap-26f, 0x1.a6b3e8p-26f,
};

#define PAIR_ERROR 0x1.4p-35f
#define PAIR_INLINE static inline __attribute__((always_inline))

typedef struct pair {
    __m512 high, low;
} pair;

PAIR_INLINE __m512 pair_constant(float x) { return _mm512_set1_ps(x); }

/* exp(x) = (high + low) 2^exponent, high in [0.98, 2], |low| < 2^-12; the exponent is rounded down by scalef. |x| < 2^7. */
PAIR_INLINE pair pair_exp(__m512 x, __m512 *exponent) {
    const __m512 shift = pair_constant(0x1.8p23f);
    __m512 shifted = _mm512_fmadd_ps(x, pair_constant(0x1.715476p+5f), shift);
    __m512 k = _mm512_sub_ps(shifted, shift);
    __m512i j = _mm512_castps_si512(shifted);                                /* the permutes look at its last five bits */
    __m512 r_high = _mm512_fnmadd_ps(k, pair_constant(0x1.62e43p-6f), x);    /* exact */
    __m512 rest = _mm512_permutex2var_ps(_mm512_loadu_ps(pair_power_rest), j, _mm512_loadu_ps(pair_power_rest + 16));
    __m512 r_low = _mm512_fmadd_ps(k, pair_constant(0x1.05c61p-34f), rest);
    __m512 r = _mm512_add_ps(r_high, r_low);
    __m512 q = _mm512_fmadd_ps(pair_constant(0x1.555568p-5f), r, pair_constant(0x1.5555cep-3f));
    q = _mm512_fmadd_ps(q, r, pair_constant(0.5f));
    __m512 p = _mm512_fmadd_ps(_mm512_mul_ps(r, r), q, r_low);               /* exp(r) = 1 + r_high + p */
    __m512 t = _mm512_permutex2var_ps(_mm512_loadu_ps(pair_power), j, _mm512_loadu_ps(pair_power + 16));
    __m512 product = _mm512_mul_ps(t, r_high);
    __m512 product_low = _mm512_fmsub_ps(t, r_high, product);
    pair e;
    e.high = _mm512_add_ps(t, product);
    e.low = _mm512_add_ps(_mm512_sub_ps(product, _mm512_sub_ps(e.high, t)), _mm512_fmadd_ps(t, p, product_low));
    *exponent = _mm512_mul_ps(k, pair_constant(0x1p-5f));
    return e;
}

/* high + low rounded; lanes that the error leaves open (and NaN) are added to *open. */
PAIR_INLINE __m512 pair_round(pair x, __mmask16 *open) {
    const __m512 error = pair_constant(PAIR_ERROR);
    __m512 above = _mm512_add_ps(x.high, _mm512_fmadd_ps(x.high, error, x.low));
    __m512 below = _mm512_add_ps(x.high, _mm512_fnmadd_ps(x.high, error, x.low));
    *open |= _mm512_cmp_ps_mask(above, below, _CMP_NEQ_UQ);
    return above;
}

/* x in (low, high), where a result or a part of one is subnormal. */
PAIR_INLINE __mmask16 pair_between(__m512 x, float low, float high) {
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(x, pair_constant(high), _CMP_LT_OQ), x, pair_constant(low), _CMP_GT_OQ);
}

PAIR_INLINE __m512 pair_exp_16(__m512 x, __mmask16 *open) {
    *open = pair_between(x, -104.0f, -87.0f);
    x = _mm512_max_ps(pair_constant(-105.0f), _mm512_min_ps(pair_constant(90.0f), x));     /* NaN, the second operand, stays */
    __m512 exponent;
    pair e = pair_exp(x, &exponent);
    return _mm512_scalef_ps(pair_round(e, open), exponent);
}

/* exp(-|x|), scaled, the low part below half an ulp of the high one. */
PAIR_INLINE pair pair_exp_magnitude(__m512 x) {
    __m512 exponent;
    pair e = pair_exp(_mm512_max_ps(pair_constant(-105.0f), _mm512_or_ps(x, pair_constant(-0.0f))), &exponent);
    pair scaled;
    __m512 high = _mm512_add_ps(e.high, e.low);
    scaled.low = _mm512_scalef_ps(_mm512_add_ps(_mm512_sub_ps(e.high, high), e.low), exponent);
    scaled.high = _mm512_scalef_ps(high, exponent);
    return scaled;
}

/* e = exp(-|x|): 1 / (1 + e), or e / (1 + e) where x < 0. The quotient of the high parts, and what its remainder adds. */
PAIR_INLINE __m512 pair_sigmoid_16(__m512 x, __mmask16 *open) {
    const __m512 one = pair_constant(1.0f);
    *open = pair_between(x, -104.0f, -76.0f);
    pair e = pair_exp_magnitude(x);
    __m512 sum = _mm512_add_ps(one, e.high);
    __m512 sum_low = _mm512_add_ps(_mm512_add_ps(_mm512_sub_ps(one, sum), e.high), e.low);
    __mmask16 negative = _mm512_movepi32_mask(_mm512_castps_si512(x));
    __m512 above = _mm512_mask_mov_ps(one, negative, e.high);
    __m512 inverse = _mm512_div_ps(one, sum);
    pair y;
    y.high = _mm512_mul_ps(above, inverse);
    __m512 rest = _mm512_fnmadd_ps(y.high, sum, above);
    rest = _mm512_fnmadd_ps(y.high, sum_low, rest);
    rest = _mm512_mask_add_ps(rest, negative, rest, e.low);
    y.low = _mm512_mul_ps(rest, inverse);
    return pair_round(y, open);
}

/* max(x, 0) + log(1 + e), e = exp(-|x|). */
PAIR_INLINE __m512 pair_softplus_16(__m512 x, __mmask16 *open) {
    const __m512 one = pair_constant(1.0f);
    *open = pair_between(x, -104.0f, -76.0f);
    pair e = pair_exp_magnitude(x);
    __m512 s = _mm512_add_ps(one, e.high);
    __m512 s_low = _mm512_add_ps(_mm512_add_ps(_mm512_sub_ps(one, s), e.high), e.low);
    __m512i index = _mm512_srli_epi32(_mm512_add_epi32(_mm512_castps_si512(s), _mm512_set1_epi32(1 << 17)), 18);
    __mmask16 last = _mm512_cmp_ps_mask(s, pair_constant(2.0f - 0x1p-6f), _CMP_GE_OQ);       /* up to 2 is taken with 31 */
    index = _mm512_mask_mov_epi32(index, last, _mm512_set1_epi32(31));
    __m512 c = _mm512_permutex2var_ps(_mm512_loadu_ps(pair_inverse), index, _mm512_loadu_ps(pair_inverse + 16));
    __m512 log_high = _mm512_permutex2var_ps(_mm512_loadu_ps(pair_log_high), index, _mm512_loadu_ps(pair_log_high + 16));
    __m512 log_low = _mm512_permutex2var_ps(_mm512_loadu_ps(pair_log_low), index, _mm512_loadu_ps(pair_log_low + 16));
    __m512 product = _mm512_mul_ps(s, c);
    __m512 f = _mm512_sub_ps(product, one);                                  /* exact */
    __m512 f_low = _mm512_fmadd_ps(s_low, c, _mm512_fmsub_ps(s, c, product));
    __mmask16 small = _mm512_cmp_ps_mask(s, pair_constant(1.0f + 0x1p-6f), _CMP_LT_OQ);      /* c = 1: all bits of e */
    f = _mm512_mask_mov_ps(f, small, e.high);
    f_low = _mm512_mask_mov_ps(f_low, small, e.low);
    /* log(1 + f + f_low) = f - f^2/2 (the square in two parts) + f^3 q(f) + f_low (1 - f + f^2) */
    __m512 half = _mm512_mul_ps(f, pair_constant(-0.5f));
    __m512 square = _mm512_mul_ps(f, half);
    __m512 low = _mm512_add_ps(log_low, _mm512_fmsub_ps(f, half, square));
    __m512 q = _mm512_fmadd_ps(pair_constant(0x1.55092p-2f), f, pair_constant(-0x1.9992d2p-2f));
    q = _mm512_fmadd_ps(q, f, pair_constant(0x1.000002p-1f));
    q = _mm512_fmadd_ps(q, f, pair_constant(-0x1.555556p-1f));                        /* -2 times, as the square is */
    low = _mm512_add_ps(low, _mm512_fnmadd_ps(f_low, _mm512_fnmadd_ps(f, f, f), f_low));
    low = _mm512_fmadd_ps(_mm512_mul_ps(square, f), q, low);
    __m512 linear = _mm512_add_ps(log_high, f);                              /* exact: multiples of 2^-24, or log_high = 0 */
    __m512 sum = _mm512_add_ps(linear, square);
    low = _mm512_add_ps(low, _mm512_add_ps(_mm512_sub_ps(linear, sum), square));
    __m512 m = _mm512_max_ps(x, _mm512_setzero_ps());
    __m512 larger = _mm512_max_ps(m, sum), smaller = _mm512_min_ps(m, sum);
    pair y;
    y.high = _mm512_add_ps(larger, smaller);
    y.low = _mm512_add_ps(low, _mm512_add_ps(_mm512_sub_ps(larger, y.high), smaller));
    return pair_round(y, open);
}

/* The loop, and the second look: sixteen elements in double. Beyond the end, lanes are zeros and not stored. */
#define PAIR_KERNEL(name)                                                                                                     \
    static __attribute__((noinline)) __m512 pair_again_##name(__m512 x) {                                                     \
        float in[16], again[16];                                                                                              \
        _mm512_storeu_ps(in, x);                                                                                              \
        _Pragma("omp simd") for (int i = 0; i < 16; i++) again[i] = num_##name##_f32(in[i]);                                  \
        return _mm512_loadu_ps(again);                                                                                        \
    }                                                                                                                         \
    static void loop_##name##_f32(KERNEL_ARGUMENTS) {                                                                         \
        t_f32 *result = out;                                                                                                  \
        const t_f32 *p = x;                                                                                                   \
        (void)y, (void)z;                                                                                                     \
        for (; n >= 16; result += 16, p += 16, n -= 16) {                                                                     \
            __mmask16 open;                                                                                                   \
            __m512 v = _mm512_loadu_ps(p), r = pair_##name##_16(v, &open);                                                    \
            if (__builtin_expect(open != 0, 0)) r = pair_again_##name(v);                                                     \
            _mm512_storeu_ps(result, r);                                                                                      \
        }                                                                                                                     \
        if (n > 0) {                                                                                                          \
            __mmask16 open, there = (__mmask16)((1u << n) - 1);                                                               \
            __m512 v = _mm512_maskz_loadu_ps(there, p), r = pair_##name##_16(v, &open);                                       \
            if (open & there) r = pair_again_##name(v);                                                                       \
            _mm512_mask_storeu_ps(result, there, r);                                                                          \
        }                                                                                                                     \
    }

#define KERNEL_OWN_exp_f32 ~, KERNEL_NONE
#define KERNEL_OWN_sigmoid_f32 ~, KERNEL_NONE
#define KERNEL_OWN_softplus_f32 ~, KERNEL_NONE
PAIR_KERNEL(exp)
PAIR_KERNEL(sigmoid)
PAIR_KERNEL(softplus)

#endif
