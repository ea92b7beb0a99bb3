/* exp2, log2, log10 in double arithmetic, rounded once to float32; those of the 16-bit floats are in num_base2_32.h.
 *
 * exp2: x = n + r, |r| <= 1/2, both exact, so that integers give exact powers of two, ties with a subnormal included.
 *   Sollya, fpminimax(2^x, [|1,...,11|], [|D...|], [-0.5005, 0.5005], relative, 1); relative error 2^-57.3.
 *
 * log2, log10: with x = m 2^k, f = m - 1 and log(1 + f) = f - rest as in num_log64.h, the logarithm to the base b is
 * k log_b(2) + f/ln(b) - rest/ln(b). f has 24 bits and the high part of 1/ln(b) has 28, so the two largest terms are exact
 * products without a fused multiply-add; their sum is kept exact (Fast2Sum), the last addition is rounded to odd. */
#ifndef NUM_BASE2_H
#define NUM_BASE2_H

#include "num_log64.h"

#define NUM_LOG2E_HIGH_64 0x1.7154766p+0                 /* 28 bits of 1/ln2 */
#define NUM_LOG2E_LOW_64 -0x1.a8fa03d1105ep-29
#define NUM_LOG10E_64 0x1.bcb7b1526e50ep-2               /* 1/ln10 */
#define NUM_LOG10E_HIGH_64 0x1.bcb7b16p-2                /* 28 bits of it */
#define NUM_LOG10E_LOW_64 -0x1.b235e39ab2a91p-31
#define NUM_LOG10_2_HIGH_64 0x1.34413509f7ap-2           /* 44 bits of log10(2) */
#define NUM_LOG10_2_LOW_64 -0x1.0cee0ed4ca7e9p-54

/* exp2(x); beyond the clamp every result rounds to 0 or infinity. */
NUM_FN double num_exp2_64(float x) {
    double clamped = (double)num_clamp32(x, -151.0f, 129.0f);
    double shifted = clamped + NUM_SHIFT_64;
    double r = clamped - (shifted - NUM_SHIFT_64);
    double scale = num_from_bits64((num_bits64(shifted) + 1023) << 52);
    double q = 0x1.e96c0022033acp-32;
    q = num_step64(q, r, 0x1.e61da9b8fcdc1p-28);
    q = num_step64(q, r, 0x1.b52527b1de03bp-24);
    q = num_step64(q, r, 0x1.62bfc627a9753p-20);
    q = num_step64(q, r, 0x1.ffcbfc6419452p-17);
    q = num_step64(q, r, 0x1.4309130f7bdb7p-13);
    q = num_step64(q, r, 0x1.5d87fe789f11dp-10);
    q = num_step64(q, r, 0x1.3b2ab6fb9fd79p-7);
    q = num_step64(q, r, 0x1.c6b08d704a12ap-5);
    q = num_step64(q, r, 0x1.ebfbdff82c5a6p-3);
    q = num_step64(q, r, 0x1.62e42fefa39efp-1);
    return num_step64(scale * r, q, scale);
}

/* Two inputs have results so little above halfway that the doubles nearest to them are halfway. */
NUM_FN float num_exp2_f32(float x) {
    float y = (float)num_exp2_64(x);
    y = x == 0x1.853a6ep-9f ? 0x1.00870ap+0f : y;
    y = x == -0x1.e7526ep-6f ? 0x1.f58d62p-1f : y;
    return num_unless_nan32(x, y);
}

/* f - log(1 + f), for 1 + f in [sqrt(1/2), sqrt(2)). */
NUM_FN double num_log_rest64(double f) {
    double s = f / (2.0 + f);
    double z = s * s;
    double half_square = 0.5 * f * f;
    return half_square - s * (half_square + z * num_atanh_tail64(z));
}

/* Of a positive finite x; of others, some number. */
NUM_FN double num_log2_64(float x) {
    double k;
    double f = num_split64((double)x, &k) - 1.0;
    double low = num_step64(f, NUM_LOG2E_LOW_64, -(num_log_rest64(f) * NUM_LOG2E_64));
    return num_sum3_odd64(k, f * NUM_LOG2E_HIGH_64, low);
}

NUM_FN double num_log10_64(float x) {
    double k;
    double f = num_split64((double)x, &k) - 1.0;
    double low = num_step64(f, NUM_LOG10E_LOW_64, k * NUM_LOG10_2_LOW_64);
    low = num_step64(num_log_rest64(f), -NUM_LOG10E_64, low);
    return num_sum3_odd64(k * NUM_LOG10_2_HIGH_64, f * NUM_LOG10E_HIGH_64, low);
}

NUM_FN float num_log2_f32(float x) { return num_log_special32(x, (float)num_log2_64(x)); }
NUM_FN float num_log10_f32(float x) { return num_log_special32(x, (float)num_log10_64(x)); }

#endif
