/* float32 arcsinh, arccosh, arctanh: a quick evaluation in double, and a second look at the few results that it leaves open.
 *
 * All three are 2 atanh(s) for an s without cancellation, since tanh(y/2) = sinh(y) / (cosh(y) + 1):
 *     arcsinh(x): s = x / (1 + sqrt(x^2 + 1)),   arccosh(x): s = sqrt(x^2 - 1) / (x + 1),   arctanh(x): y/2, s = x.
 * Larger results take k ln2 off: with S = exp(y) = x + sqrt(x^2 +- 1) = m 2^k, or S = (1 + x) / (1 - x) for 2 arctanh(x),
 * y = k ln2 + 2 atanh((m - 1) / (m + 1)); k = 0 is the form above. x^2 has 48 bits and is exact, x^2 - 1 is exact where it
 * cancels. One division, no table; about 2^-51 of the result is lost. A result is open when it is within 2^-47 of halfway
 * between two float32, which is one in 2^22.
 *
 * Which side of halfway, the inverse function tells: y > m exactly if x > sinh(m), cosh(m), tanh(m). In t = exp(m) - 1 or
 * exp(2m) - 1, in double-double (num_pair64.h, error 2^-98), these have no cancellation:
 *     2 x (1 + t) > t (t + 2),    2 (x - 1) (1 + t) > t^2,    2 x > (1 - x) t.
 * x - 1 and 1 - x are exact, and y = m does not happen, exp(m) being transcendental. */
#ifndef NUM_ARC_HYPERBOLIC64_H
#define NUM_ARC_HYPERBOLIC64_H

#include "num_log64.h"
#include "num_pair64.h"

/* ---- The quick evaluation ------------------------------------------------------------------------------------------- */

/* P with 2 atanh(s) = 2 s + s z P(z), z = s^2, |s| <= 0.2002: wider than num_atanh_tail64. Sollya,
 * fpminimax((2 atanh(sqrt(x))/sqrt(x) - 2)/x, 6, [|D...|], [2^-60, 0.2002^2], absolute); relative error of 2 atanh 2^-54. */
NUM_FN double num_atanh_wide_tail64(double z) {
    double p = 0x1.35a7976770b64p-3;
    p = num_step64(p, z, 0x1.3901b865a253bp-3);
    p = num_step64(p, z, 0x1.746bc596f1b1p-3);
    p = num_step64(p, z, 0x1.c71c3c9a0ad84p-3);
    p = num_step64(p, z, 0x1.24924952510d6p-2);
    p = num_step64(p, z, 0x1.999999997c22dp-2);
    return num_step64(p, z, 0x1.555555555556ep-1);
}

/* k ln2 + 2 atanh(numerator / denominator). */
NUM_FN double num_log_ratio64(double numerator, double denominator, double k) {
    double s = numerator / denominator;
    double z = s * s;
    return num_step64(k, 0x1.62e42fefa39efp-1, num_step64(s * z, num_atanh_wide_tail64(z), s + s));
}

/* log(S), S = x + root; in the form for k = 0, s is numerator / denominator. */
NUM_FN double num_log_grown64(double x, double root, double numerator, double denominator) {
    double k;
    double m = num_split64(x + root, &k);
    return num_log_ratio64(k == 0.0 ? numerator : m - 1.0, k == 0.0 ? denominator : m + 1.0, k);
}

/* Of |x|. */
NUM_FN double num_arcsinh64(float x) {
    double a = (double)num_abs32(x);
    double root = NUM_SQRT64(a * a + 1.0);
    return num_log_grown64(a, root, a, 1.0 + root);
}

/* NaN for x < 1. */
NUM_FN double num_arccosh64(float x) {
    double a = (double)x;
    double root = NUM_SQRT64(a * a - 1.0);
    return num_log_grown64(a, root, root, a + 1.0);
}

/* Of |x| < 1; of others, some number. The bits of 1 + |x| and 1 - |x|, read as integers, are their logarithms to base 2 to
 * 0.087: that makes k the nearest integer to within 0.087, and |s| < 0.202. */
NUM_FN double num_arctanh64(float x) {
    float magnitude = num_abs32(x);
    uint32_t n = (num_bits32(1.0f + magnitude) - num_bits32(1.0f - magnitude) + 0x00400000u) >> 23;
    double a = (double)magnitude, b = 1.0 + a;
    double c = (1.0 - a) * (double)num_from_bits32((n + 127u) << 23);
    return 0.5 * num_log_ratio64(n == 0 ? a + a : b - c, b + c, (double)(int32_t)n);
}

/* ---- The second look ------------------------------------------------------------------------------------------------ */

/* y > 0 rounded, and whether anything within 2^-47 of it would round differently. Infinity and NaN are not open. */
NUM_FN num_tried32 num_try_near32(double y) {
    float low = (float)(y * (1.0 - 0x1p-47)), high = (float)(y * (1.0 + 0x1p-47));
    num_tried32 out = { high, low < high };
    return out;
}

/* The point halfway between two float32 that y, which is normal as a float32, is open at. */
NUM_FN double num_halfway64(double y) { return num_from_bits64((num_bits64(y) & ~0x1fffffffull) | 0x10000000ull); }

/* The float32 above or below that. */
NUM_FN float num_beside32(double halfway, int above) {
    return (float)num_from_bits64(num_bits64(halfway) + (above ? 0x10000000ull : -0x10000000ull));
}

NUM_FN float num_arcsinh_again32(float x) {
    double halfway = num_halfway64(num_arcsinh64(x));
    num_pair64 t = num_pair_expm1_64(halfway);
    num_pair64 twice_sinh = num_pair_multiply64(t, num_pair_plus64(t, 2.0));                 /* both times exp(m) */
    num_pair64 twice_x = num_pair_multiply_by64(num_pair_plus64(t, 1.0), 2.0 * (double)num_abs32(x));
    return num_copysign32(num_beside32(halfway, num_pair_more64(twice_x, twice_sinh)), x);
}

NUM_FN float num_arccosh_again32(float x) {
    double halfway = num_halfway64(num_arccosh64(x));
    num_pair64 t = num_pair_expm1_64(halfway);
    num_pair64 twice_x = num_pair_multiply_by64(num_pair_plus64(t, 1.0), 2.0 * ((double)x - 1.0));
    return num_beside32(halfway, num_pair_more64(twice_x, num_pair_multiply64(t, t)));
}

NUM_FN float num_arctanh_again32(float x) {
    double a = (double)num_abs32(x), halfway = num_halfway64(num_arctanh64(x));
    num_pair64 t = num_pair_expm1_64(2.0 * halfway), twice_x = { 2.0 * a, 0.0 };
    return num_copysign32(num_beside32(halfway, num_pair_more64(twice_x, num_pair_multiply_by64(t, 1.0 - a))), x);
}

/* ---- Both together -------------------------------------------------------------------------------------------------- */

NUM_FN num_tried32 num_arcsinh_try32(float x) {
    num_tried32 tried = num_try_near32(num_arcsinh64(x));
    float y = num_copysign32(num_abs32(x) < num_inf32() ? tried.value : num_inf32(), x);
    num_tried32 out = { num_unless_nan32(x, y), tried.open };
    return out;
}

NUM_FN num_tried32 num_arccosh_try32(float x) {
    num_tried32 tried = num_try_near32(num_arccosh64(x));
    float special = x == num_inf32() ? x : num_from_bits32(NUM_NAN_BITS_F32);
    int inside = (x >= 1.0f) & (x < num_inf32());
    num_tried32 out = { inside ? tried.value : special, inside ? tried.open : 0u };
    return out;
}

NUM_FN num_tried32 num_arctanh_try32(float x) {
    num_tried32 tried = num_try_near32(num_arctanh64(x));
    float magnitude = num_abs32(x);
    float special = magnitude == 1.0f ? num_copysign32(num_inf32(), x) : num_from_bits32(NUM_NAN_BITS_F32);
    int inside = magnitude < 1.0f;
    num_tried32 out = { inside ? num_copysign32(tried.value, x) : special, inside ? tried.open : 0u };
    return out;
}

NUM_FN float num_arcsinh_f32(float x) {
    num_tried32 tried = num_arcsinh_try32(x);
    return tried.open ? num_arcsinh_again32(x) : tried.value;
}

NUM_FN float num_arccosh_f32(float x) {
    num_tried32 tried = num_arccosh_try32(x);
    return tried.open ? num_arccosh_again32(x) : tried.value;
}

NUM_FN float num_arctanh_f32(float x) {
    num_tried32 tried = num_arctanh_try32(x);
    return tried.open ? num_arctanh_again32(x) : tried.value;
}

#endif
