/* exp, exp2, sigmoid, silu, softplus and logarithms of float32 in double arithmetic with fewer steps than a proof of every input takes,
 * and a test of what they leave open. Special values, arguments near the ends of the range and subnormal results are open
 * without a look. What is open goes to num_<name>_f32; kernels_quick.h has the loops.
 *
 * The test looks at the 29 bits that rounding to float32 drops: a relative error below e is at most 2^53 e units in the last
 * place, and if halfway, 2^28, is not within so many, the evaluation and the function round alike. Relative errors:
 *   2^r, |r| <= 1/2     2^-40.23 of the polynomial; x log2(e) is rounded at 2^-47. Tested with 2^-39, one in 2^14 left open.
 *   sigmoid, silu       that of exp(-x), times exp(-x) / (1 + exp(-x)) < 1. The same.
 *   softplus            the same times less than 1, and 2^-38.53 of 2 atanh(s): 2^-38.1. Tested with 2^-37.4, one in 2^12 open.
 *   log, log2, log10, log1p  2^-37.77 of 2 atanh(s), as |log(m)| <= |log(m 2^k)|. Tested with 2^-37, one in 2^12 open.
 * Beside these the roundings of double arithmetic, fused or not, a few units in 2^-53, are nothing.
 *
 * Sollya: fpminimax(2^x, 8, [|D...|], [-1/2, 1/2], relative), fpminimax(2 atanh(sqrt(x))/sqrt(x), n, [|D...|], [2^-40, h],
 * relative) with n = 4, h = (1.001 (sqrt(2)-1)/(sqrt(2)+1))^2 for log and n = 6, h = 1/9 for softplus; errors by dirtyinfnorm. */
#ifndef NUM_QUICK64_H
#define NUM_QUICK64_H

#include "num_log64.h"

/* The top bit of `open` says that the value is open; the others say nothing. Without AVX such a bit is cheaper than 0 or 1. */
typedef struct num_quick32 {
    float value;
    uint32_t open;
} num_quick32;

#define NUM_QUICK_POWER_DOUBT (1u << 14)                 /* 2^53 times the error that is allowed for */
#define NUM_QUICK_SOFTPLUS_DOUBT (3u << 14)
#define NUM_QUICK_LOG_DOUBT (1u << 16)
#define NUM_QUICK_RANGE 87.0f                            /* exp(-87) is still a normal float32 */

/* Top bit: y is within `doubt` units in its last place of halfway between two normal float32. */
NUM_FN uint32_t num_quick_near_halfway(double y, uint32_t doubt) {
    return (((uint32_t)num_bits64(y) - (0x10000000u - doubt)) & 0x1fffffffu) - 2 * doubt;
}

/* Top bit: |x| > limit, or NaN. */
NUM_FN uint32_t num_quick_beyond(float x, float limit) { return num_bits32(limit) - num_bits32(num_abs32(x)); }

/* 2^r, |r| <= 1/2. Even and odd terms apart: shorter chains, for one more product. */
NUM_FN double num_quick_power64(double r) {
    double s = r * r;
    double even = 0x1.61afc979a0255p-20;
    even = num_step64(even, s, 0x1.430acca942495p-13);
    even = num_step64(even, s, 0x1.3b2ab5c524986p-7);
    even = num_step64(even, s, 0x1.ebfbdff931a34p-3);
    even = num_step64(even, s, 0x1.ffffffffff7a3p-1);
    double odd = 0x1.00dad25260f5cp-16;
    odd = num_step64(odd, s, 0x1.5d87483851badp-10);
    odd = num_step64(odd, s, 0x1.c6b08dd46d3d7p-5);
    odd = num_step64(odd, s, 0x1.62e42fef8615ep-1);
    return num_step64(odd, r, even);
}

/* exp(x) = p 2^n, n in the last bits of *shifted. */
NUM_FN double num_quick_exp_parts64(double x, uint64_t *shifted) {
    double t = x * NUM_LOG2E_64;
    double sum = t + NUM_SHIFT_64;
    *shifted = num_bits64(sum);
    return num_quick_power64(t - (sum - NUM_SHIFT_64));
}

NUM_FN double num_quick_exp64(double x) {
    uint64_t shifted;
    double p = num_quick_exp_parts64(x, &shifted);
    return num_from_bits64(num_bits64(p) + (shifted << 52));
}

/* p 2^n rounded; in float32 it takes half the instructions. n in the last bits of shifted. */
NUM_FN num_quick32 num_quick_scale(double p, uint32_t shifted) {
    num_quick32 out;
    out.value = num_from_bits32(num_bits32((float)p) + (shifted << 23));
    out.open = num_quick_near_halfway(p, NUM_QUICK_POWER_DOUBT);
    return out;
}

NUM_FN num_quick32 num_exp_quick32(float x) {
    uint64_t shifted;
    double p = num_quick_exp_parts64((double)x, &shifted);
    num_quick32 out = num_quick_scale(p, (uint32_t)shifted);
    out.open |= num_quick_beyond(x, NUM_QUICK_RANGE);
    return out;
}

/* The reduction is exact in float32. */
NUM_FN num_quick32 num_exp2_quick32(float x) {
    float shifted = x + 0x1.8p23f;
    double p = num_quick_power64((double)(x - (shifted - 0x1.8p23f)));
    num_quick32 out = num_quick_scale(p, num_bits32(shifted));
    out.open |= num_quick_beyond(x, 125.0f);
    return out;
}

NUM_FN num_quick32 num_sigmoid_quick32(float x) {
    double y = NUM_QUOTIENT64(1.0, 1.0 + num_quick_exp64(-(double)x));
    num_quick32 out = { (float)y, num_quick_near_halfway(y, NUM_QUICK_POWER_DOUBT) | num_quick_beyond(x, NUM_QUICK_RANGE) };
    return out;
}

/* A result is subnormal where x is or nearly is. 0 is not open. */
NUM_FN num_quick32 num_silu_quick32(float x) {
    double y = NUM_QUOTIENT64((double)x, 1.0 + num_quick_exp64(-(double)x));
    uint32_t magnitude = num_bits32(num_abs32(x));
    uint32_t tiny = (magnitude - num_bits32(0x1p-124f)) & ~(magnitude - 1u);
    num_quick32 out = { (float)y, num_quick_near_halfway(y, NUM_QUICK_POWER_DOUBT) | num_quick_beyond(x, NUM_QUICK_RANGE) | tiny };
    return out;
}

/* max(x, 0) + 2 atanh(s), s = e / (2 + e), e = exp(-|x|): s <= 1/3. */
NUM_FN num_quick32 num_softplus_quick32(float x) {
    double e = num_quick_exp64(-(double)num_abs32(x));
    double s = NUM_QUOTIENT64(e, 2.0 + e);
    double z = s * s;
    double p = 0x1.c01343e4c20fcp-3;
    p = num_step64(p, z, 0x1.5e8bd2fd0a76bp-3);
    p = num_step64(p, z, 0x1.c8d30b5fd77a9p-3);
    p = num_step64(p, z, 0x1.24899120ffbd3p-2);
    p = num_step64(p, z, 0x1.9999c391fae3bp-2);
    p = num_step64(p, z, 0x1.5555552f97e86p-1);
    p = num_step64(p, z, 0x1.0000000002c3bp+1);
    double y = num_step64(p, s, (double)num_positive32(x));
    num_quick32 out = { (float)y, num_quick_near_halfway(y, NUM_QUICK_SOFTPLUS_DOUBT) | num_quick_beyond(x, NUM_QUICK_RANGE) };
    return out;
}

/* log(1 + f), f + 1 in [sqrt(1/2), sqrt(2)]. */
NUM_FN double num_quick_log64(double f) {
    double s = NUM_QUOTIENT64(f, 2.0 + f);
    double z = s * s;
    double p = 0x1.e3becdaa5440bp-3;
    p = num_step64(p, z, 0x1.24325c1ee58bbp-2);
    p = num_step64(p, z, 0x1.999a9e24d0056p-2);
    p = num_step64(p, z, 0x1.555554d9d249cp-1);
    p = num_step64(p, z, 0x1.0000000004adbp+1);
    return p * s;
}

/* x = m 2^k as in num_split64, on the float32; m - 1 of a positive normal x. */
NUM_FN double num_quick_split64(float x, double *k) {
    uint32_t bits = num_bits32(x);
    uint32_t above = bits + (0x3f800000u - 0x3f3504f3u);
    float m = num_from_bits32(bits - (above & 0xff800000u) + 0x3f800000u);
    *k = (double)((int32_t)(above >> 23) - 127);
    return (double)(m - 1.0f);
}

NUM_FN num_quick32 num_quick_log_tried(float x, double y) {
    uint32_t unusual = (num_bits32(x) - 0x00800000u) | (0x7f7fffffu - num_bits32(x));
    num_quick32 out = { (float)y, num_quick_near_halfway(y, NUM_QUICK_LOG_DOUBT) | unusual };
    return out;
}

NUM_FN num_quick32 num_log_quick32(float x) {
    double k, log = num_quick_log64(num_quick_split64(x, &k));
    return num_quick_log_tried(x, num_step64(k, 0x1.62e42fefa39efp-1, log));
}

NUM_FN num_quick32 num_log2_quick32(float x) {
    double k, log = num_quick_log64(num_quick_split64(x, &k));
    return num_quick_log_tried(x, num_step64(log, NUM_LOG2E_64, k));
}

NUM_FN num_quick32 num_log10_quick32(float x) {
    double k, log = num_quick_log64(num_quick_split64(x, &k));
    return num_quick_log_tried(x, num_step64(k, 0x1.34413509f79ffp-2, log * 0x1.bcb7b1526e50ep-2));
}

/* 1 + x is split in double, where only what is too small to matter is rounded off. Besides, x <= -1 is open. */
NUM_FN num_quick32 num_log1p_quick32(float x) {
    double k, m = num_split64(1.0 + (double)x, &k);
    double log = num_quick_log64(k == 0.0 ? (double)x : m - 1.0);
    num_quick32 out = num_quick_log_tried(num_abs32(x), num_step64(k, 0x1.62e42fefa39efp-1, log));
    out.open |= num_bits32(x) & (0x3f7fffffu - num_bits32(num_abs32(x)));
    return out;
}

#endif
