/* power of float16 and bfloat16 in float32 arithmetic: an evaluation that tells where it does not decide the rounding.
 *
 * z = y log2|x|, 2^z, as in num_power64.h, with the logarithm in two parts: high, its leading 13 or 16 bits, and low. y (11 or 8
 * bits) times high is exact, and so is that product less the integer next to it; y times low is small and may be rounded. So
 * the error hardly grows with z.
 *     s = (m - 1) / (m + 1) = s_high + s_low,   log2(m) = 2/ln2 s_high + 2/ln2 s_low + s^3 P(s^2)
 * with s_high of 12 bits: s_high (m + 1) is exact, which gives s_low, and so is s_high times the 12 bits of 2/ln2's high part.
 *
 * Of all results, with fused steps and without, float16's are off by no more than 1.72 and bfloat16's by no more than 5.99 units
 * of float32's last place, which NUM_POWER_DOUBT_F16 and NUM_POWER_DOUBT_BF16 are the next integers to. One result in 1,600 and
 * one in 5,000 has a rounding boundary as near as that: these take a second evaluation, in double (num_power.h), and so all
 * 2^32 pairs come out right (tests/prove runs them).
 *
 * P: Sollya, fpminimax((2*atanh(sqrt(x))/sqrt(x)/log(2)-2/log(2))/x, 2, [|SG...|], [2^-30, h^2], absolute), h as in
 * num_power64.h, error 2^-28.4 of log2(m). 2^r: fpminimax(2^x, [|1,...,d|], [|SG...|], [-1/2, 1/2] * 1.01, relative, 1), error
 * 2^-27.9 for float16 (d = 6) and 2^-23.3 for bfloat16 (d = 5). */
#ifndef NUM_POWER32_H
#define NUM_POWER32_H

#include "num_exp32.h"

typedef struct num_split_log32 {
    float high, low;
} num_split_log32;

NUM_FN float num_masked32(float x, uint32_t mask) { return num_from_bits32(num_bits32(x) & mask); }

/* log2 of a positive normal float32 of no more than 11 bits; high is what the mask leaves of it. */
NUM_FN num_split_log32 num_power_log2_32(float x, uint32_t mask) {
    uint32_t above = num_bits32(x) + (0x3f800000u - 0x3f3504f3u);
    float k = (float)((int32_t)(above >> 23) - 127);
    float m = num_from_bits32((above & 0x007fffffu) + 0x3f3504f3u);
    float f = m - 1.0f, d = m + 1.0f;
    float inverse = 1.0f / d;
    float s = f * inverse;
    float s_high = num_masked32(s, 0xfffff000u);
    float s_low = num_step32(-s_high, d, f) * inverse;
    float z = s * s;
    float p = num_step32(num_step32(0x1.b4f57ep-2f, z, 0x1.2761cap-1f), z, 0x1.ec70a6p-1f);
    float cube = s * z;
    num_split_log32 out;
    out.high = num_masked32(num_step32(cube, p, num_step32(s, 0x1.715476p1f, k)), mask);
    float low = num_step32(s_high, 0x1.714p1f, k - out.high);
    low = num_step32(s_high, 0x1.47652cp-11f, low);
    low = num_step32(s_low, 0x1.715476p1f, low);
    out.low = num_step32(cube, p, low);
    return out;
}

#define NUM_POWER_DOUBT_F16 2u
#define NUM_POWER_DOUBT_BF16 6u

/* The bits of x^y to within NUM_POWER_DOUBT_F16; of results far beyond float16's range, 2^20 and 2^-40. x is positive and
 * finite, y finite. */
NUM_FN uint32_t num_power_size_for_f16(float x, float y) {
    num_split_log32 log = num_power_log2_32(x, 0xfffff800u);
    float z = y * log.high;
    float shifted = z + NUM_SHIFT_32;
    float r = num_step32(y, log.low, z - (shifted - NUM_SHIFT_32));
    float p = 0x1.3fd238p-13f;
    p = num_step32(p, r, 0x1.5f13d2p-10f);
    p = num_step32(p, r, 0x1.3b307ep-7f);
    p = num_step32(p, r, 0x1.c6af6ap-5f);
    p = num_step32(p, r, 0x1.ebfbd8p-3f);
    p = num_step32(p, r, 0x1.62e43p-1f);
    uint32_t bits = num_bits32(num_step32(p, r, 1.0f)) + (num_bits32(shifted) << 23);
    bits = z < 17.0f ? bits : 0x49800000u;
    return z > -27.0f ? bits : 0x2b800000u;
}

/* The same for bfloat16, NUM_POWER_DOUBT_BF16; x is normal. Results of less than 2^-120 are got by way of 2^64 times them. */
NUM_FN uint32_t num_power_size_for_bf16(float x, float y) {
    num_split_log32 log = num_power_log2_32(x, 0xffffff00u);
    float z = y * log.high;
    float shifted = z + NUM_SHIFT_32;
    float r = num_step32(y, log.low, z - (shifted - NUM_SHIFT_32));
    float p = 0x1.5b7eaap-10f;
    p = num_step32(p, r, 0x1.3cf356p-7f);
    p = num_step32(p, r, 0x1.c6b828p-5f);
    p = num_step32(p, r, 0x1.ebf9a6p-3f);
    p = num_step32(p, r, 0x1.62e428p-1f);
    int small = z < -120.0f;
    uint32_t bits = num_bits32(num_step32(p, r, 1.0f)) + ((num_bits32(shifted) + (small ? 64u : 0u)) << 23);
    bits = bits > 0x7f7ffff0u ? 0x7f7ffff0u : bits;      /* rounds to infinity */
    bits = num_bits32(num_from_bits32(bits) * (small ? 0x1p-64f : 1.0f));
    bits = z < 128.25f ? bits : 0x7f7ffff0u;
    return z > -136.0f ? bits : 0;
}

#endif
