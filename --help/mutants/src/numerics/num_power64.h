/* x^y of a positive x in double arithmetic, for float32: a first evaluation that tells whether it decides the rounding, and a
 * second one for where it does not.
 *
 * First: z = y log2(x), 2^z. x = m 2^k with m in [sqrt(1/2), sqrt(2)), s = (m - 1) / (m + 1), log2(m) = 2/ln2 atanh(s) =
 * s Q(s^2); m - 1 and m + 1 are exact, so the relative error stays small next to 1, where a large y calls for it. 2^z by its
 * fraction r in [-1/2, 1/2], exact, and a polynomial. In units of u = 2^-53, fused or not: Q 1.6 u and its evaluation 1.2 u;
 * the quotient, the product with s, the sum with k and the product with y u each. So z is within 6.8 u |z|, and |z| <= 151
 * wherever the result is neither 0 nor infinity for certain: 712 u of 2^z. The polynomial of 2^r adds 140 u and its evaluation
 * 4 u, which makes 856 u. (The most that was met is 515 units in the last place.) So a result is decided if moving it by 1024
 * units in the last place, each of them u of it or more, leads to the same float32: all but 2^-18 of results.
 *
 * Second: exact, if x^y has no more than 53 bits, which every tie of two float32 has (25 at most); else the same in
 * double-double (num_pair64.h), error about 2^-97 of the result, with a fixed sequence of operations,
 * none fused. Of all 2^64 pairs a few may be expected within 2^-87 of a tie, so this should decide them all; and if not, every
 * level still gives the same bits, within 0.5 ulp and 2^-70 of one.
 *
 * Q: Sollya, fpminimax(2*atanh(sqrt(x))/sqrt(x)/log(2), 6, [|D...|], [2^-60, h^2], relative),
 * h = 1.001 (sqrt(2)-1)/(sqrt(2)+1), error 2^-52.3. 2^r: fpminimax(2^x, [|1,...,9|], [|D...|], [-1/2, 1/2] * 1.0001, relative,
 * 1), error 2^-45.9. */
#ifndef NUM_POWER64_H
#define NUM_POWER64_H

#include "num_log64.h"
#include "num_pair64.h"

/* ---- First ---------------------------------------------------------------------------------------------------------- */

/* log2 of a positive finite x. */
NUM_FN double num_power_log2_64(double x) {
    uint64_t above = num_bits64(x) + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull);
    double k = num_from_bits64((above >> 52) | 0x4330000000000000ull) - (0x1p52 + 1023.0);
    double m = num_from_bits64((above & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
    double s = (m - 1.0) / (m + 1.0);
    double z = s * s;
    double square = z * z;
    double q = num_step64(0x1.f182a70f512c3p-3, z, 0x1.0bb803f9b9fe7p-2);
    q = num_step64(q, square, num_step64(0x1.484fa7ebe8cf3p-2, z, 0x1.a61756917ff12p-2));
    q = num_step64(q, square, num_step64(0x1.2776c516842ecp-1, z, 0x1.ec709dc39cc8fp-1));
    q = num_step64(q, z, 0x1.71547652b82ffp1);
    return num_step64(s, q, k);
}

/* The bits of 2^z; of a larger |z| than 200, those of 2^200 or 2^-200, whatever the steps before have given. */
NUM_FN uint64_t num_power_exp2_bits64(double z) {
    double shifted = z + NUM_SHIFT_64;
    double r = z - (shifted - NUM_SHIFT_64);
    double square = r * r;
    double p = num_step64(0x1.b3de27f7aca3fp-24, r, 0x1.63e6a560ea77ap-20);
    p = num_step64(p, square, num_step64(0x1.ffce2ff11049ap-17, r, 0x1.430897e6af608p-13));
    p = num_step64(p, square, num_step64(0x1.5d87fd93696d9p-10, r, 0x1.3b2ab724184ccp-7));
    p = num_step64(p, square, num_step64(0x1.c6b08d70c898p-5, r, 0x1.ebfbdff81bddp-3));
    p = num_step64(p, square, num_step64(0x1.62e42fefa37d1p-1, r, 1.0));
    uint64_t bits = num_bits64(p) + (num_bits64(shifted) << 52);
    bits = z < 200.0 ? bits : 0x4c70000000000000ull;
    return z > -200.0 ? bits : 0x3370000000000000ull;
}

#define NUM_POWER_DOUBT_64 1024u                         /* units in the last place */

/* x^y of a positive finite x and a finite y. */
NUM_FN num_tried32 num_power_try64(float x, float y) {
    uint64_t bits = num_power_exp2_bits64((double)y * num_power_log2_64((double)x));
    float below = (float)num_from_bits64(bits - NUM_POWER_DOUBT_64), above = (float)num_from_bits64(bits + NUM_POWER_DOUBT_64);
    num_tried32 out = { below, below != above };
    return out;
}

/* ---- Second --------------------------------------------------------------------------------------------------------- */

/* x^y, if it has no more than 53 bits; else 0. x = m 2^e with an odd m. A y that is not an integer, n / 2^j, takes j exact
 * square roots; a negative one m = 1. x and y are finite, positive and not 0. */
NUM_FN double num_power_exact64(double x, double y) {
    uint64_t bits = num_bits64(x), m = (bits & 0x000fffffffffffffull) | 0x0010000000000000ull;
    int zeros = (int)(num_bits64((double)(m & (0 - m))) >> 52) - 1023;
    int e = (int)(bits >> 52) - (1023 + 52) + zeros;
    m >>= zeros;
    if (num_abs64(y) > 0x1p20) return 0.0;
    for (; (double)(int32_t)y != y; y *= 2.0) {
        uint64_t root = (uint64_t)NUM_SQRT64((double)m);
        if ((e & 1) || root * root != m) return 0.0;
        m = root, e /= 2;
    }
    if (y < 0.0 && m != 1) return 0.0;
    uint64_t power = 1;
    for (int i = 0; m > 1 && i < (int)y; i++) {
        if ((double)power * (double)m > 0x1p53) return 0.0;
        power *= m;
    }
    double exponent = (double)e * y;
    if (num_abs64(exponent) > 300.0) return 0.0;
    return (double)power * num_from_bits64((uint64_t)(1023 + (int)exponent) << 52);
}

/* log2(x): the series of atanh to s^40/41, from s^22 on in double. */
NUM_FN num_pair64 num_pair_log2_64(double x) {
    double k;
    double m = num_split64(x, &k);
    num_pair64 one = { 1.0, 0.0 }, above = { k, 0.0 }, f = { m - 1.0, 0.0 };
    num_pair64 two_by_ln2 = { 0x1.71547652b82fep1, 0x1.777d0ffda0d24p-55 };
    num_pair64 s = num_pair_divide64(f, m + 1.0);
    num_pair64 z = num_pair_multiply64(s, s);
    double tail = 0.0;
    for (int i = 20; i >= 11; i--) tail = tail * z.high + 1.0 / (double)(2 * i + 1);
    num_pair64 sum = { tail, 0.0 };
    for (int i = 10; i >= 0; i--)
        sum = num_pair_add64(num_pair_divide64(one, (double)(2 * i + 1)), num_pair_multiply64(z, sum));
    return num_pair_add64(above, num_pair_multiply64(num_pair_multiply64(s, two_by_ln2), sum));
}

/* 2^z for |z| < 300, by exp(t) = 1 + t (1 + t/2 (1 + t/3 (...))) to t^27/27!, from t^14 on in double; rounded to odd. */
NUM_FN double num_pair_exp2_odd64(num_pair64 z) {
    double shift = NUM_SHIFT_64;
    double n = (z.high + shift) - shift;
    num_pair64 one = { 1.0, 0.0 }, ln2 = { 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56 };
    num_pair64 t = num_pair_multiply64(num_pair_sum64(z.high - n, z.low), ln2);
    double tail = 1.0;
    for (int i = 27; i >= 14; i--) tail = 1.0 + t.high / (double)i * tail;
    num_pair64 sum = { tail, 0.0 };
    for (int i = 13; i >= 1; i--)
        sum = num_pair_add64(one, num_pair_multiply64(num_pair_divide64(t, (double)i), sum));
    double scale = num_from_bits64((uint64_t)(1023 + (int)n) << 52);
    return num_odd64(scale * sum.high, scale * sum.low);
}

/* x^y of what num_power_try64 left open, exact or rounded to odd: x and y are finite, x > 0, y not 0. */
NUM_FN double num_power_again64(double x, double y) {
    num_pair64 by = { y, 0.0 };
    double exact = num_power_exact64(x, y);
    return exact != 0.0 ? exact : num_pair_exp2_odd64(num_pair_multiply64(num_pair_log2_64(x), by));
}

#endif
