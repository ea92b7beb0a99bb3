/* arcsin, arccos, arctan in double arithmetic, to be rounded once to float32.
 *
 * arctan: m = |x|. Below tan(pi/8), arctan(m) itself; up to tan(3 pi/8), pi/4 + arctan((m - 1) / (m + 1)); above,
 * pi/2 + arctan(-1 / m). The arguments t that this leaves, one division whichever it is, are within tan(pi/8), where
 * arctan(t) = t + t z P(z), z = t^2.
 *
 * arcsin and arccos: arcsin(r) = r + r z Q(z), z = r^2, for r = |x| up to 1/2, and above for r = sqrt(z), z = (1 - |x|) / 2,
 * arccos(|x|) = 2 arcsin(r).
 *
 * Where a constant is added, the addition is a Fast2Sum and the constant has a second part; the last addition is rounded to
 * odd, so that results within 2^-53 of a tie fall to the right side.
 *
 * P: Sollya, fpminimax((atan(sqrt(x))/sqrt(x) - 1)/x, 10, [|D...|], [2^-60, tan(pi/8)^2 * 1.0001], absolute), error 2^-57.4
 *    of t.
 * Q: the same of asin, 12, [2^-60, 1/4], error 2^-58 of r. All 2^32 inputs come out right, with fused steps and without
 * (tests/prove). */
#ifndef NUM_ARC64_H
#define NUM_ARC64_H

#include "num_round.h"

#define NUM_PI_64 0x1.921fb54442d18p+1
#define NUM_PI_REST_64 0x1.678afae35cdd1p-55             /* the part of pi beyond that double, over it */
#define NUM_TAN_PI_8 0x1.a8279ap-2f
#define NUM_TAN_3PI_8 0x1.3504f4p+1f

/* P with arctan(t) = t + t z P(z), z = t^2, |t| <= tan(pi/8). */
NUM_FN double num_arctan_tail64(double z) {
    double p = -0x1.3b6bc9dbce375p-6;
    p = num_step64(p, z, 0x1.41ebf2741e80cp-5);
    p = num_step64(p, z, -0x1.a0ccbaa914324p-5);
    p = num_step64(p, z, 0x1.dff0e1d90857ap-5);
    p = num_step64(p, z, -0x1.10fb22b32a6efp-4);
    p = num_step64(p, z, 0x1.3b12708092d13p-4);
    p = num_step64(p, z, -0x1.745d0bd0c48efp-4);
    p = num_step64(p, z, 0x1.c71c718a11e06p-4);
    p = num_step64(p, z, -0x1.249249243f9cbp-3);
    p = num_step64(p, z, 0x1.9999999999451p-3);
    return num_step64(p, z, -0x1.5555555555555p-2);
}

/* Q with arcsin(r) = r + r z Q(z), z = r^2, |r| <= 1/2. */
NUM_FN double num_arcsin_tail64(double z) {
    double q = 0x1.dc181d90b7926p-6;
    q = num_step64(q, z, -0x1.f58c5842771abp-7);
    q = num_step64(q, z, 0x1.2205421c2561bp-6);
    q = num_step64(q, z, 0x1.5e2915a6757a2p-8);
    q = num_step64(q, z, 0x1.532a914f6156p-7);
    q = num_step64(q, z, 0x1.7801021f27f49p-7);
    q = num_step64(q, z, 0x1.c9d30ac3e3e3ep-7);
    q = num_step64(q, z, 0x1.1c4d112cecd74p-6);
    q = num_step64(q, z, 0x1.6e8bb37521b17p-6);
    q = num_step64(q, z, 0x1.f1c71c11dee9fp-6);
    q = num_step64(q, z, 0x1.6db6db6e48603p-5);
    q = num_step64(q, z, 0x1.3333333332da2p-4);
    return num_step64(q, z, 0x1.5555555555556p-3);
}

/* c + high + low rounded to odd: c 0 or a double for a multiple of pi/4, |c| >= |high|, and low much smaller. */
NUM_FN double num_arc_sum64(double c, double high, double low) {
    return num_sum3_odd64(c, high, num_step64(c, NUM_PI_REST_64, low));
}

/* arctan(m), m >= 0; of a NaN, some number. */
NUM_FN double num_arctan64(float m) {
    int middle = m > NUM_TAN_PI_8, upper = m > NUM_TAN_3PI_8;
    double x = (double)m;
    double numerator = middle ? x - 1.0 : x, denominator = middle ? x + 1.0 : 1.0;
    numerator = upper ? -1.0 : numerator;
    denominator = upper ? x : denominator;
    double c = middle ? NUM_PI_64 / 4 : 0.0;
    c = upper ? NUM_PI_64 / 2 : c;
    double t = numerator / denominator;
    double z = t * t;
    return num_arc_sum64(c, t, t * (z * num_arctan_tail64(z)));
}

/* The r of arcsin and arccos, and r z Q(z). */
typedef struct num_arcsin_parts64 {
    double r, tail;
} num_arcsin_parts64;

NUM_FN num_arcsin_parts64 num_arcsin_parts_of64(double m, int upper) {
    num_arcsin_parts64 out;
    double z = upper ? 0.5 - 0.5 * m : m * m;
    out.r = upper ? NUM_SQRT64(z) : m;
    out.tail = out.r * (z * num_arcsin_tail64(z));
    return out;
}

/* arcsin(m), 0 <= m <= 1; above 1, NaN. */
NUM_FN double num_arcsin64(float m) {
    int upper = m > 0.5f;
    num_arcsin_parts64 p = num_arcsin_parts_of64((double)m, upper);
    double factor = upper ? -2.0 : 1.0;
    return num_arc_sum64(upper ? NUM_PI_64 / 2 : 0.0, factor * p.r, factor * p.tail);
}

/* arccos(x), |x| <= 1; beyond, NaN. */
NUM_FN double num_arccos64(float x) {
    float m = num_abs32(x);
    int upper = m > 0.5f;
    num_arcsin_parts64 p = num_arcsin_parts_of64((double)m, upper);
    double factor = num_from_bits64(num_bits64(upper ? 2.0 : -1.0) ^ (num_bits64((double)x) & NUM_SIGN64));
    double c = upper ? (x < 0.0f ? NUM_PI_64 : 0.0) : NUM_PI_64 / 2;
    return num_arc_sum64(c, factor * p.r, factor * p.tail);
}

#endif
