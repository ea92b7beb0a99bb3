/* erfinv of float32 in double arithmetic, with a test of the rounding, and a decision by erf for what that leaves open.
 *
 * w = -log((1 - |x|)(1 + |x|)), from an exact product but for small x (M. Giles, "Approximating the erfinv function", 2010).
 * Below w = 5 the result is x times a polynomial in w - 2.5, above, a polynomial in sqrt(w) - 3.115234375, w being at most
 * 15.95; the even and odd terms of each apart. Both interpolate in the Chebyshev nodes, from 50 digits, rounded to double:
 *   erfinv(x)/x, degree 17, w in [0, 5], error 2^-47.6;   erfinv(x), degree 16, sqrt(w) in [2.234375, 3.99609375], error 2^-47.2
 * The relative error, with roundings, was at most 2^-47.2 in 30,000 samples; the test leaves a factor of nine, and one element
 * in 2^19 open.
 *
 * Those are looked at again. Let m be halfway between the two float32 that come into question: erfinv(|x|) > m if |x| > erf(m) =
 * 2/sqrt(pi) exp(-m^2) (m + 2 m^3/3 + 4 m^5/(3*5) + 8 m^7/(3*5*7) + ...), all terms positive (Abramowitz and Stegun 7.1.6), in
 * double-double with every product rounded, to about 2^-95. */
#ifndef NUM_ERFINV64_H
#define NUM_ERFINV64_H

#include "num_log64.h"
#include "num_pair64.h"

#define NUM_TWO_OVER_SQRT_PI_64 0x1.20dd750429b6dp+0
#define NUM_TWO_OVER_SQRT_PI_LOW_64 0x1.1ae3a914fed8p-56

/* erfinv(x) / x by w, 0 <= w <= 5. */
NUM_FN double num_erfinv_ratio64(double w) {
    double t = w - 2.5, u = t * t;
    double p = -0x1.5e000937c6c94p-48;
    p = num_step64(p, u, 0x1.36f2275161becp-41);
    p = num_step64(p, u, -0x1.125970aba3e2dp-35);
    p = num_step64(p, u, 0x1.f2f386a32e165p-31);
    p = num_step64(p, u, 0x1.ccfa7d94832cdp-27);
    p = num_step64(p, u, -0x1.ca9222168d42ep-19);
    p = num_step64(p, u, 0x1.c9b437dfc2ae8p-13);
    p = num_step64(p, u, -0x1.11c3c302c7399p-8);
    p = num_step64(p, u, 0x1.805c5cfcedee6p+0);
    double q = 0x1.5fd4a83d5303fp-50;
    q = num_step64(q, u, -0x1.3486ce29f408ap-44);
    q = num_step64(q, u, 0x1.e6955551ae613p-41);
    q = num_step64(q, u, 0x1.076589ace3f1fp-33);
    q = num_step64(q, u, -0x1.753319c66b634p-27);
    q = num_step64(q, u, 0x1.01038def53e43p-21);
    q = num_step64(q, u, -0x1.4f47ffa444a2ap-18);
    q = num_step64(q, u, -0x1.4863cdfb19fa7p-10);
    q = num_step64(q, u, 0x1.f91e8993f0cbcp-3);
    return num_step64(q, t, p);
}

/* erfinv(|x|) by sqrt(w), 5 <= w <= 15.95. */
NUM_FN double num_erfinv_tail64(double s) {
    double t = s - 3.115234375, u = t * t;
    double p = 0x1.aca3a6faa0a06p-29;
    p = num_step64(p, u, -0x1.964205716907ap-24);
    p = num_step64(p, u, 0x1.11d8f10fd9f25p-21);
    p = num_step64(p, u, 0x1.0864b2a1b8284p-20);
    p = num_step64(p, u, -0x1.501116166febfp-16);
    p = num_step64(p, u, -0x1.8dd82d5e63565p-25);
    p = num_step64(p, u, 0x1.08de6ee40161cp-10);
    p = num_step64(p, u, 0x1.783225c78b6c6p-8);
    p = num_step64(p, u, 0x1.79661ec33f7adp+1);
    double q = 0x1.93b539d2b94abp-26;
    q = num_step64(q, u, 0x1.5212fb1ad3b59p-26);
    q = num_step64(q, u, -0x1.74359db0530c0p-20);
    q = num_step64(q, u, 0x1.46526d68143eep-18);
    q = num_step64(q, u, 0x1.286d0b45bcaf6p-15);
    q = num_step64(q, u, -0x1.e87870ecdc7a2p-13);
    q = num_step64(q, u, -0x1.827b1a1fc7301p-9);
    q = num_step64(q, u, 0x1.010d4cd44eb18p+0);
    return num_step64(q, t, p);
}

/* erfinv(a), 0 <= a < 1; of others, something. */
NUM_FN double num_erfinv64(double a) {
    double k;
    double m = num_split64((1.0 - a) * (1.0 + a), &k);
    double f = m - 1.0;
    double s = f / (2.0 + f), z = s * s;
    double log = num_step64(k, NUM_LN2_HIGH_64, num_step64(2.0, s, num_step64(s * z, num_atanh_tail64(z), k * NUM_LN2_LOW_64)));
    double w = -log;
    return w < 5.0 ? a * num_erfinv_ratio64(w) : num_erfinv_tail64(NUM_SQRT64(w));
}

/* y, but an infinity of 1 and -1, NaN beyond. */
NUM_FN float num_erfinv_special32(float x, float y) {
    float a = num_abs32(x);
    float special = a == 1.0f ? num_copysign32(num_inf32(), x) : num_from_bits32(NUM_NAN_BITS_F32);
    return a < 1.0f ? y : special;
}

#define NUM_ERFINV_ERROR 0x1p-44

NUM_FN num_tried32 num_erfinv_try32(float x) {
    num_tried32 out = num_tried_within32(num_erfinv64((double)num_abs32(x)), NUM_ERFINV_ERROR, x);
    out.value = num_erfinv_special32(x, out.value);
    out.open &= num_abs32(x) < 1.0f;
    return out;
}

/* erf(a) of 0 <= a < 5 with at most 26 significant bits, which makes a^2 exact. */
NUM_FN num_pair64 num_erf_pair64(double a) {
    double square = a * a;
    num_pair64 twice = { 2.0 * square, 0.0 }, factor = { a, 0.0 };
    num_pair64 constant = { NUM_TWO_OVER_SQRT_PI_64, NUM_TWO_OVER_SQRT_PI_LOW_64 };
    num_pair64 term = { 1.0, 0.0 }, sum = { 1.0, 0.0 };
    for (int k = 3; term.high > sum.high * 0x1p-110; k += 2) {
        term = num_pair_divide64(num_pair_multiply64(term, twice), (double)k);
        sum = num_pair_add64(sum, term);
    }
    sum = num_pair_multiply64(num_pair_multiply64(constant, num_pair_exp64(-square)), sum);
    return num_pair_multiply64(sum, factor);
}

/* Of what is open. */
NUM_FN float num_erfinv_again32(float x) {
    double a = (double)num_abs32(x);
    double y = num_erfinv64(a);
    float below = (float)(y * (1.0 - NUM_ERFINV_ERROR)), above = (float)(y * (1.0 + NUM_ERFINV_ERROR));
    num_pair64 at_middle = num_erf_pair64(0.5 * ((double)below + (double)above));
    return num_copysign32((a - at_middle.high) - at_middle.low > 0.0 ? above : below, x);
}

NUM_FN float num_erfinv_f32(float x) {
    num_tried32 tried = num_erfinv_try32(x);
    return tried.open ? num_erfinv_again32(x) : tried.value;
}

#endif
