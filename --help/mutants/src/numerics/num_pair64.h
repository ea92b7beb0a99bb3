/* Double-double: a number as the unevaluated sum of two doubles, high and low (Dekker, "A floating-point technique for extending
 * the available precision", 1971; Knuth's 2Sum). For second looks, where speed does not matter.
 *
 * No step is fused and none is left to the compiler, so that a result that no proof can reach (float32 logaddexp, power, arctan2)
 * still has the same bits everywhere. */
#ifndef NUM_PAIR64_H
#define NUM_PAIR64_H

#include "num_exp64.h"

typedef struct num_pair64 {
    double high, low;
} num_pair64;

NUM_FN num_pair64 num_pair_sum64(double x, double y) {
    num_pair64 s;
    s.high = x + y;
    double t = s.high - x;
    s.low = (x - (s.high - t)) + (y - t);
    return s;
}

NUM_FN num_pair64 num_pair_product64(double x, double y) {
    num_pair64 p;
    double tx = x * 134217729.0, xh = tx - (tx - x), xl = x - xh;
    double ty = y * 134217729.0, yh = ty - (ty - y), yl = y - yh;
    p.high = x * y;
    p.low = ((xh * yh - p.high) + xh * yl + xl * yh) + xl * yl;
    return p;
}

NUM_FN num_pair64 num_pair_add64(num_pair64 x, num_pair64 y) {
    num_pair64 s = num_pair_sum64(x.high, y.high);
    num_pair64 t = num_pair_sum64(x.low, y.low);
    s = num_pair_sum64(s.high, s.low + t.high);
    return num_pair_sum64(s.high, s.low + t.low);
}

NUM_FN num_pair64 num_pair_multiply64(num_pair64 x, num_pair64 y) {
    num_pair64 p = num_pair_product64(x.high, y.high);
    return num_pair_sum64(p.high, p.low + (x.high * y.low + x.low * y.high));
}

NUM_FN num_pair64 num_pair_divide64(num_pair64 x, double y) {
    double q = x.high / y;
    num_pair64 p = num_pair_product64(q, y);
    return num_pair_sum64(q, (((x.high - p.high) - p.low) + x.low) / y);
}

/* expm1(x - n ln2) for an argument r of at most ln2/2 and a little: r (1 + r/2 (1 + r/3 (1 + ...))) to the term r^28/28!,
 * the first one left out being below 2^-140 of r. */
NUM_FN num_pair64 num_pair_expm1_reduced64(double x, double n) {
    num_pair64 r = num_pair_sum64(x, -(n * NUM_LN2_HIGH_64));                /* the product is exact */
    num_pair64 middle = num_pair_product64(n, -NUM_LN2_LOW_64);              /* ln2 to 147 bits in three parts */
    num_pair64 last = { n * 0x1.ff0342542fc33p-94, 0.0 };
    r = num_pair_add64(r, num_pair_add64(middle, last));
    num_pair64 one = { 1.0, 0.0 };
    num_pair64 sum = one;
    for (int k = 28; k >= 2; k--)
        sum = num_pair_add64(one, num_pair_multiply64(num_pair_divide64(r, (double)k), sum));
    return num_pair_multiply64(r, sum);
}

/* exp(x) - 1, |x| < 700. */
NUM_FN num_pair64 num_pair_expm1_64(double x) {
    double n = (x * NUM_LOG2E_64 + NUM_SHIFT_64) - NUM_SHIFT_64;
    num_pair64 t = num_pair_expm1_reduced64(x, n);
    double scale = num_from_bits64((uint64_t)(1023 + (int64_t)n) << 52);
    num_pair64 scaled = { scale * t.high, scale * t.low }, less_1 = { scale - 1.0, 0.0 };
    return num_pair_add64(less_1, scaled);
}

/* exp(x), |x| < 700. */
NUM_FN num_pair64 num_pair_exp64(double x) {
    double n = (x * NUM_LOG2E_64 + NUM_SHIFT_64) - NUM_SHIFT_64;
    double scale = num_from_bits64((uint64_t)(1023 + (int64_t)n) << 52);
    num_pair64 one = { 1.0, 0.0 };
    num_pair64 y = num_pair_add64(one, num_pair_expm1_reduced64(x, n));
    y.high *= scale;
    y.low *= scale;
    return y;
}

NUM_FN num_pair64 num_pair_multiply_by64(num_pair64 x, double y) {
    num_pair64 factor = { y, 0.0 };
    return num_pair_multiply64(x, factor);
}

NUM_FN num_pair64 num_pair_plus64(num_pair64 x, double y) {
    num_pair64 term = { y, 0.0 };
    return num_pair_add64(x, term);
}

/* x > y */
NUM_FN int num_pair_more64(num_pair64 x, num_pair64 y) {
    num_pair64 minus_y = { -y.high, -y.low };
    return num_pair_add64(x, minus_y).high > 0.0;
}

#endif
