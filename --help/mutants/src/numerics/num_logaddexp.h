/* float32 logaddexp(x, y) = log(exp(x) + exp(y)): within 0.5001 ulp, and the same bits from every compiler and level.
 *
 * It takes two operands, so it cannot be proven by running all inputs, and "correctly rounded" cannot guard its bits. So its
 * operations are fixed: no fused multiply-add anywhere in this file.
 *
 * The fast path is max + log(1 + exp(-|x - y|)) in double, absolute error about 2^-50 of the larger term. That is enough
 * unless exp(x) + exp(y) is near 1, where the terms cancel. num_logaddexp_cancels tells (the result is small beside the
 * maximum), and num_logaddexp_exact32 then computes
 *     s = expm1(max) + exp(min), the exponentials in double-double (error 2^-98),   result = log1p(s), s small.
 * The kernel runs the fast path over a block and mends the few elements that cancel. */
#ifndef NUM_LOGADDEXP_H
#define NUM_LOGADDEXP_H

#include "num_pair64.h"

#define NUM_LOGADDEXP_SPLIT 0x1.c34366179d427p-1         /* -log(sqrt(2) - 1): see softplus in num_log64.h */

/* The tails of num_exp64.h and num_log64.h with every product rounded. */
NUM_FN double num_exp_tail_unfused64(double r) {
    double q = 0x1.ad900f724987bp-26;
    q = q * r + 0x1.28ae1ad674e04p-22;
    q = q * r + 0x1.71df1b087452ap-19;
    q = q * r + 0x1.a0199942cbe04p-16;
    q = q * r + 0x1.a01a012edb89ap-13;
    q = q * r + 0x1.6c16c1847f533p-10;
    q = q * r + 0x1.1111111126ecbp-7;
    q = q * r + 0x1.55555555506a4p-5;
    q = q * r + 0x1.55555555554fdp-3;
    q = q * r + 0x1.000000000000ap-1;
    return (r * r) * q + r;
}

NUM_FN double num_atanh_tail_unfused64(double z) {
    double p = 0x1.2b69b6dc2fcf9p-3;
    p = p * z + 0x1.39fcf7eb83aafp-3;
    p = p * z + 0x1.7462bf6599acbp-3;
    p = p * z + 0x1.c71c62c10c6cep-3;
    p = p * z + 0x1.2492492e0b364p-2;
    p = p * z + 0x1.9999999995243p-2;
    return p * z + 0x1.5555555555558p-1;
}

/* The two operands by size, the smaller one no more than 110 below: exp(-110) is too little to matter next to any float32.
 * Of infinities and NaN, anything; num_logaddexp_special32 replaces the result. */
typedef struct num_ordered32 {
    float larger, smaller;
} num_ordered32;

NUM_FN num_ordered32 num_logaddexp_order32(float x, float y) {
    num_ordered32 out;
    out.larger = x > y ? x : y;
    float smaller = x > y ? y : x;
    float least = out.larger - 110.0f;
    out.smaller = smaller > least ? smaller : least;
    return out;
}

/* NaN if either is, else the larger one, to the bit, if it is +inf or the other one -inf. */
NUM_FN float num_logaddexp_special32(float x, float y, float result) {
    float larger = x > y ? x : y, smaller = x > y ? y : x;
    result = ((int)(larger == num_inf32()) | (int)(smaller == -num_inf32())) ? larger : result;
    return ((x == x) & (y == y)) ? result : num_from_bits32(NUM_NAN_BITS_F32);
}

/* The fast path, as a double that is never an exact tie of float32. */
NUM_FN double num_logaddexp64(num_ordered32 xy) {
    double m = (double)xy.larger;
    double d = m - (double)xy.smaller;
    num_reduced64 e = num_reduce_exp64(-d);
    double tail = num_exp_tail_unfused64(e.r);
    double exp_d = e.scale * tail + e.scale;
    double exp_d_less_1 = e.scale * tail + (e.scale - 1.0);
    int upper = d < NUM_LOGADDEXP_SPLIT;
    double q = (upper ? exp_d_less_1 : exp_d) / (exp_d + (upper ? 3.0 : 2.0));
    double z = q * q;
    double low = (q * z) * num_atanh_tail_unfused64(z) + (upper ? NUM_LN2_LOW_64 : 0.0);
    double sum = (m + (upper ? NUM_LN2_HIGH_64 : 0.0)) + (2.0 * q + low);
    return num_from_bits64(num_bits64(sum) | 1);
}

/* Whether the fast path's result has lost more bits than float32 can spare. */
NUM_FN int num_logaddexp_cancels(float larger, float result) {
    return (larger < 0.0f) & (num_abs32(result) < larger * -0x1p-10f);
}

/* logaddexp where the fast path cancels: -ln2 < max < 0, min < 0, |result| < 2^-10. */
NUM_FN float num_logaddexp_exact32(float x, float y) {
    double larger = x > y ? x : y, smaller = x > y ? y : x;
    num_pair64 s = num_pair_add64(num_pair_expm1_64(larger), num_pair_exp64(smaller));
    /* log1p(s) = s - s^2/2 + s^3/3 - s^4/4 + s^5/5, |s| < 2^-9 */
    double h = s.high;
    double series = h * h * (-0.5 + h * (0x1.5555555555555p-2 + h * (-0.25 + h * 0x1.999999999999ap-3)));
    return (float)(h + (s.low + series));
}

NUM_FN num_tried32 num_logaddexp_try32(float x, float y) {
    num_ordered32 xy = num_logaddexp_order32(x, y);
    float sum = (float)num_logaddexp64(xy);
    num_tried32 out = { num_logaddexp_special32(x, y, sum), (uint32_t)num_logaddexp_cancels(xy.larger, sum) };
    return out;
}

/* Of what cancels, which is finite. */
NUM_FN float num_logaddexp_again32(float x, float y) { return num_logaddexp_exact32(x, y); }

NUM_FN float num_logaddexp_f32(float x, float y) {
    num_tried32 tried = num_logaddexp_try32(x, y);
    return tried.open ? num_logaddexp_again32(x, y) : tried.value;
}

#endif
