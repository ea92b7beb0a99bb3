/* log, log1p, softplus in double arithmetic, to be rounded once to float32; square roots.
 *
 * log: x = m 2^k with m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f), log(1 + f) = 2 atanh(s) in the form of fdlibm's
 * e_log.c, f - (f^2/2 - s (f^2/2 + s^2 P(s^2))), which keeps the leading terms exact. The last addition is rounded to odd,
 * so that results within 2^-53 of a tie fall to the right side.
 *
 * softplus: max(x, 0) + log(1 + exp(-|x|)) with log(1 + e) = 2 atanh(e / (2 + e)), or, where e > sqrt(2) - 1,
 * ln2 + 2 atanh((e - 1) / (e + 3)): one division, no exponent to extract.
 *
 * P: Sollya, fpminimax((2 atanh(sqrt(x))/sqrt(x) - 2)/x, 6, [|D...|], [2^-60, h^2], absolute), h = 1.001 (sqrt(2)-1)/(sqrt(2)+1);
 * relative error of 2 atanh 2^-57.6. All 2^32 inputs come out right, with fused steps and without (tests/prove). */
#ifndef NUM_LOG64_H
#define NUM_LOG64_H

#include "num_exp64.h"

/* P with 2 atanh(s) = 2 s + s z P(z), z = s^2, |s| <= 0.1717. */
NUM_FN double num_atanh_tail64(double z) {
    double p = 0x1.2b69b6dc2fcf9p-3;
    p = num_step64(p, z, 0x1.39fcf7eb83aafp-3);
    p = num_step64(p, z, 0x1.7462bf6599acbp-3);
    p = num_step64(p, z, 0x1.c71c62c10c6cep-3);
    p = num_step64(p, z, 0x1.2492492e0b364p-2);
    p = num_step64(p, z, 0x1.9999999995243p-2);
    return num_step64(p, z, 0x1.5555555555558p-1);
}

/* log(1 + f) + k ln2, rounded to odd, for 1 + f in [sqrt(1/2), sqrt(2)). */
NUM_FN double num_log_sum64(double f, double k) {
    double s = f / (2.0 + f);
    double z = s * s;
    double half_square = 0.5 * f * f;
    double low = num_step64(s, half_square + z * num_atanh_tail64(z), k * NUM_LN2_LOW_64);
    return num_sum3_odd64(k * NUM_LN2_HIGH_64, f, low - half_square);
}

/* A positive normal double as m 2^k, m in [sqrt(1/2), sqrt(2)). Logical shifts only: AVX2 has no arithmetic one for 64 bits. */
NUM_FN double num_split64(double x, double *k) {
    uint64_t bits = num_bits64(x);
    uint64_t above = bits + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull);
    *k = num_from_bits64((above >> 52) | 0x4330000000000000ull) - (0x1p52 + 1023.0);
    return num_from_bits64(bits - (above & 0xfff0000000000000ull) + 0x3ff0000000000000ull);
}

/* log(x) of a positive finite x; of others, some number. */
NUM_FN double num_log64(float x) {
    double k;
    double m = num_split64((double)x, &k);
    return num_log_sum64(m - 1.0, k);
}

/* log1p(x) of a finite x > -1 that is not 0. */
NUM_FN double num_log1p_64(float x) {
    double k;
    double m = num_split64(1.0 + (double)x, &k);
    return num_log_sum64(k == 0.0 ? (double)x : m - 1.0, k);
}

/* Above e = sqrt(2) - 1, that is d below this, the form around ln2 is used. */
#define NUM_SOFTPLUS_SPLIT 0x1.c34366179d427p-1          /* -log(sqrt(2) - 1) */

/* softplus(x). A sum that is an exact tie of float32 goes away from zero. */
NUM_FN double num_softplus64(float x) {
    double d = (double)num_clamp_magnitude32(x, 110.0f);
    double m = (double)num_clamp_positive32(x, 0x1.fffffep127f);
    num_reduced64 e = num_reduce_exp64(-d);
    double tail = num_exp_tail64(e.r);
    double exp_d = num_step64(e.scale, tail, e.scale);
    double exp_d_less_1 = num_step64(e.scale, tail, e.scale - 1.0);
    int upper = d < NUM_SOFTPLUS_SPLIT;
    double q = (upper ? exp_d_less_1 : exp_d) / (exp_d + (upper ? 3.0 : 2.0));
    double z = q * q;
    double low = num_step64(q * z, num_atanh_tail64(z), upper ? NUM_LN2_LOW_64 : 0.0);
    double y = (m + (upper ? NUM_LN2_HIGH_64 : 0.0)) + num_step64(2.0, q, low);
    return num_from_bits64(num_bits64(y) | 1);
}

/* 1 / sqrt(x); of a zero, infinity with its sign. */
NUM_FN double num_rsqrt64(float x) { return 1.0 / NUM_SQRT64((double)x); }

#endif
