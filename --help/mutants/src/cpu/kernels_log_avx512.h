/* The logarithms of kernels_pair_log.h on AVX-512: splitting, tables of 32, a polynomial. An interval of m is a 32nd of [1, 2). In
 * the first c = 1, in the last c = 1/2, so that k log(2) - log(c) is 0 on both sides of x = 1. */
#ifndef OL_CPU_KERNELS_LOG_AVX512_H
#define OL_CPU_KERNELS_LOG_AVX512_H

typedef struct v_split {
    v_float m, k;
    v_index index;
} v_split;

/* x = m 2^k, m in [1, 2); a NaN or an infinity in one of the two unless x is positive and finite. */
V_INLINE v_split v_log_split(v_float x) {
    v_split s;
    s.m = _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan);
    s.k = _mm512_getexp_ps(x);
    s.index = _mm512_srli_epi32(_mm512_castps_si512(s.m), 18);
    return s;
}

/* x 2^-k. */
V_INLINE v_float v_split_scale(v_split s, v_float x) { return _mm512_scalef_ps(x, v_sub(v_set(0.0f), s.k)); }

V_INLINE v_float v_split_table(const float *table, v_split s) { return v_log_table(table, s.index); }

/* c, near 1 / m, of so few bits that m c - 1 is exact; -log(c) in two parts, the high one a multiple of 2^-17. */
static const float pair_center[32] = {
    0x1p+0f, 0x1.e8p-1f, 0x1.d8p-1f, 0x1.dp-1f,
    0x1.cp-1f, 0x1.b4p-1f, 0x1.a8p-1f, 0x1.ap-1f,
    0x1.94p-1f, 0x1.8cp-1f, 0x1.8p-1f, 0x1.78p-1f,
    0x1.7p-1f, 0x1.68p-1f, 0x1.6p-1f, 0x1.58p-1f,
    0x1.5p-1f, 0x1.4cp-1f, 0x1.44p-1f, 0x1.4p-1f,
    0x1.38p-1f, 0x1.34p-1f, 0x1.2cp-1f, 0x1.28p-1f,
    0x1.2p-1f, 0x1.1cp-1f, 0x1.18p-1f, 0x1.14p-1f,
    0x1.1p-1f, 0x1.0cp-1f, 0x1.08p-1f, 0x1p-1f,
};
static const float pair_ln_high[32] = {
    0x0p+0f, 0x1.895p-5f, 0x1.4d3p-4f, 0x1.9338p-4f,
    0x1.1178p-3f, 0x1.4914p-3f, 0x1.823cp-3f, 0x1.a94p-3f,
    0x1.e53p-3f, 0x1.0714p-2f, 0x1.2696p-2f, 0x1.3c26p-2f,
    0x1.522ap-2f, 0x1.68acp-2f, 0x1.7fbp-2f, 0x1.973ap-2f,
    0x1.af52p-2f, 0x1.bb96p-2f, 0x1.d49p-2f, 0x1.e148p-2f,
    0x1.fb36p-2f, 0x1.0436p-1f, 0x1.11bp-1f, 0x1.188fp-1f,
    0x1.2696p-1f, 0x1.2dbfp-1f, 0x1.3503p-1f, 0x1.3c61p-1f,
    0x1.43dap-1f, 0x1.4b7p-1f, 0x1.5323p-1f, 0x1.62e4p-1f,
};
static const float pair_ln_low[32] = {
    0x0p+0f, -0x1.57ad82p-19f, 0x1.15d208p-20f, -0x1.0d1536p-19f,
    0x1.d044fcp-20f, -0x1.3e6626p-22f, 0x1.6551a4p-23f, -0x1.2c3752p-19f,
    0x1.dffce2p-20f, -0x1.e7ecaap-20f, 0x1.089a6ep-21f, -0x1.b1199ap-19f,
    0x1.c0e714p-19f, 0x1.07d38ep-19f, -0x1.7109fap-20f, 0x1.a189acp-21f,
    0x1.2a491ap-19f, 0x1.1b80e2p-22f, 0x1.236f7ep-21f, 0x1.4344e4p-19f,
    -0x1.d4216ep-20f, 0x1.7cec08p-22f, -0x1.f70e2ap-19f, -0x1.bf0dc4p-21f,
    0x1.089a6ep-20f, 0x1.55ec38p-19f, -0x1.d4989cp-19f, -0x1.fcf25p-19f,
    -0x1.a0db88p-26f, -0x1.48347ap-20f, -0x1.d97988p-21f, 0x1.7f7d1cp-20f,
};

/* -log2(c), the high part a multiple of 2^-16; -log10(c), the high part a multiple of 2^-18. Low parts times ln2, ln10. */
static const float pair_log2_high[32] = {
    0x0p+0f, 0x1.1bbp-4f, 0x1.e0bp-4f, 0x1.22d8p-3f,
    0x1.8a88p-3f, 0x1.dacp-3f, 0x1.169cp-2f, 0x1.32cp-2f,
    0x1.5dfcp-2f, 0x1.7b88p-2f, 0x1.a9p-2f, 0x1.c818p-2f,
    0x1.e7ep-2f, 0x1.042cp-1f, 0x1.14c6p-1f, 0x1.25cp-1f,
    0x1.3722p-1f, 0x1.3ffap-1f, 0x1.52p-1f, 0x1.5b2cp-1f,
    0x1.6dep-1f, 0x1.7768p-1f, 0x1.8ad8p-1f, 0x1.94c2p-1f,
    0x1.a9p-1f, 0x1.b354p-1f, 0x1.bdcep-1f, 0x1.c87p-1f,
    0x1.d338p-1f, 0x1.de2ap-1f, 0x1.e946p-1f, 0x1p+0f,
};
static const float pair_log2_low[32] = {
    0x0p+0f, 0x1.18dac8p-19f, 0x1.2a70e4p-20f, 0x1.fb7fd6p-19f,
    0x1.0aa25ap-19f, 0x1.824066p-19f, 0x1.ce6a22p-25f, -0x1.8a7b7cp-23f,
    0x1.4102c8p-18f, 0x1.57ec36p-18f, -0x1.22dc76p-20f, 0x1.4a0f86p-18f,
    -0x1.bbe77ap-20f, -0x1.dfeec6p-21f, -0x1.b8dbdcp-19f, 0x1.bc5ff6p-19f,
    0x1.e4d07ap-21f, 0x1.2725a2p-18f, -0x1.22dc76p-18f, 0x1.55c18ap-20f,
    -0x1.542be6p-20f, -0x1.5c7306p-20f, 0x1.88a69ep-20f, 0x1.77178cp-19f,
    -0x1.22dc76p-19f, 0x1.ea88b8p-20f, 0x1.b5831ep-19f, -0x1.6f61f8p-19f,
    0x1.90280ap-22f, -0x1.39fcdep-19f, -0x1.25250cp-18f, 0x0p+0f,
};
static const float pair_log10_high[32] = {
    0x0p+0f, 0x1.55ap-6f, 0x1.2168p-5f, 0x1.5e38p-5f,
    0x1.db1p-5f, 0x1.1dd4p-4f, 0x1.4f7cp-4f, 0x1.715cp-4f,
    0x1.a57p-4f, 0x1.c904p-4f, 0x1.ffcp-4f, 0x1.129ap-3f,
    0x1.25bap-3f, 0x1.3948p-3f, 0x1.4d44p-3f, 0x1.61b6p-3f,
    0x1.76a4p-3f, 0x1.814cp-3f, 0x1.96fep-3f, 0x1.a20ap-3f,
    0x1.b88ep-3f, 0x1.c408p-3f, 0x1.db7p-3f, 0x1.e762p-3f,
    0x1.ffcp-3f, 0x1.0618p-2f, 0x1.0c67p-2f, 0x1.12cdp-2f,
    0x1.194bp-2f, 0x1.1fe2p-2f, 0x1.2692p-2f, 0x1.3441p-2f,
};
static const float pair_log10_low[32] = {
    0x0p+0f, -0x1.33e5f8p-19f, 0x1.f80488p-24f, 0x1.9cfd64p-20f,
    0x1.1c0f54p-19f, 0x1.7760b6p-19f, -0x1.85967ap-19f, 0x1.3591bp-19f,
    -0x1.b678c4p-19f, -0x1.93643p-19f, -0x1.1a2482p-21f, -0x1.a327f4p-20f,
    0x1.2b87f6p-19f, -0x1.259e12p-18f, -0x1.21114ep-23f, 0x1.53dc5cp-19f,
    0x1.ab0c68p-20f, -0x1.a511d2p-19f, -0x1.0732aep-18f, -0x1.93d21p-20f,
    0x1.de112p-20f, 0x1.09fe4p-19f, 0x1.cc5064p-19f, -0x1.fa876ap-19f,
    -0x1.1a2482p-20f, 0x1.ac75d8p-20f, 0x1.489932p-21f, 0x1.c9fdaep-20f,
    0x1.13b746p-19f, -0x1.e4c0f4p-21f, -0x1.6268d4p-21f, 0x1.e881b4p-20f,
};

/* Of the relative error, what f^2 has no part in, by interval: docs/numerics.md. */
static const float pair_log_error[32] = {
    0x1.6p-38f, 0x1.ap-34f, 0x1.cp-35f, 0x1.4p-35f,
    0x1.cp-36f, 0x1.8p-36f, 0x1.4p-36f, 0x1.2p-36f,
    0x1p-36f, 0x1.ep-37f, 0x1.cp-37f, 0x1.ap-37f,
    0x1.8p-37f, 0x1.8p-37f, 0x1.8p-37f, 0x1.ap-37f,
    0x1.cp-37f, 0x1.ep-37f, 0x1p-36f, 0x1.2p-36f,
    0x1.4p-36f, 0x1.4p-36f, 0x1.8p-36f, 0x1.ap-36f,
    0x1.ep-36f, 0x1.2p-35f, 0x1.4p-35f, 0x1.ap-35f,
    0x1.2p-34f, 0x1.ap-34f, 0x1.ap-33f, 0x1.6p-38f,
};

/* q with log(1 + f) = f - f^2/2 + f^3 q. Sollya: fpminimax(log1p(x) + x^2/2, [|3,...,6|], [|SG...|], [-0.02051, 0.03126],
 * relative, x), error 2^-38.2. */
V_INLINE v_float v_log_cubic(v_float f) {
    v_float q = v_fma(v_set(-0x1.4f2366p-3f), f, v_set(0x1.99cdf6p-3f));
    return v_fma(v_fma(q, f, v_set(-0x1.000056p-2f)), f, v_set(0x1.555554p-2f));
}

#endif
