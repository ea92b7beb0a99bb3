/* arctan, arcsin and arccos of float32 as in num_arc64.h with fewer steps, and the test of num_quick64.h. Relative errors: arctan
 * 2^-38.29, arcsin 2^-38.02 of t or r, and no more of a result, as pi/4, pi/2 or pi, to which a part of the arguments is added,
 * leaves more than that part. Tested with 2^-37, one in 2^12 left open. NaN, arguments outside of the domain and tiny ones
 * are open without a look.
 *
 * P, Q: Chebyshev interpolation in 200 bits of (atan(sqrt(x))/sqrt(x) - 1)/x on [0, tan(pi/8)^2 * 1.0001], degree 6, and of the same of
 * asin on [0, 1/4], degree 7, coefficients rounded to double; errors by 2,000 points. */
#ifndef NUM_QUICK_ARC64_H
#define NUM_QUICK_ARC64_H

#include "num_arc64.h"
#include "num_quick64.h"

#define NUM_QUICK_ARC_DOUBT (1u << 16)

/* y with the sign of x; open where |x| > limit, NaN, or so small that the result may be subnormal. 0 is not open. */
NUM_FN num_quick32 num_quick_arc_tried(float x, double y, float limit) {
    uint32_t magnitude = num_bits32(num_abs32(x));
    uint32_t tiny = (magnitude - num_bits32(0x1p-124f)) & ~(magnitude - 1u);
    num_quick32 out = { num_copysign32((float)y, x),
                        num_quick_near_halfway(y, NUM_QUICK_ARC_DOUBT) | num_quick_beyond(x, limit) | tiny };
    return out;
}

NUM_FN num_quick32 num_arctan_quick32(float x) {
    double m = (double)num_abs32(x);
    double numerator = m > NUM_TAN_PI_8 ? m - 1.0 : m, denominator = m > NUM_TAN_PI_8 ? m + 1.0 : 1.0;
    double c = m > NUM_TAN_PI_8 ? NUM_PI_64 / 4 : 0.0;
    numerator = m > NUM_TAN_3PI_8 ? -1.0 : numerator;
    denominator = m > NUM_TAN_3PI_8 ? m : denominator;
    c = m > NUM_TAN_3PI_8 ? NUM_PI_64 / 2 : c;
    double t = NUM_QUOTIENT64(numerator, denominator);
    double z = t * t;
    double p = -0x1.4b348fe081416p-5;
    p = num_step64(p, z, 0x1.24425ba99f811p-4);
    p = num_step64(p, z, -0x1.71d3963f586fcp-4);
    p = num_step64(p, z, 0x1.c6f683c68ff3fp-4);
    p = num_step64(p, z, -0x1.2491c07b55c0bp-3);
    p = num_step64(p, z, 0x1.9999982560b1bp-3);
    p = num_step64(p, z, -0x1.55555555020aap-2);
    return num_quick_arc_tried(x, num_step64(t * z, p, t) + c, num_inf32());
}

/* arcsin(r), r = m or sqrt((1 - m) / 2). */
NUM_FN double num_quick_arcsin64(double m) {
    double z = m > 0.5 ? 0.5 - 0.5 * m : m * m;
    double r = m > 0.5 ? NUM_SQRT64(z) : m;
    double q = 0x1.e0231588b1e55p-6;
    q = num_step64(q, z, 0x1.64b97e009bd03p-8);
    q = num_step64(q, z, 0x1.3c5053c2afce1p-6);
    q = num_step64(q, z, 0x1.6a9e3262c37dbp-6);
    q = num_step64(q, z, 0x1.f208eb1ddd0fbp-6);
    q = num_step64(q, z, 0x1.6db5cfb6af282p-5);
    q = num_step64(q, z, 0x1.333334ceb6520p-4);
    q = num_step64(q, z, 0x1.55555554ee47bp-3);
    return num_step64(r * z, q, r);
}

NUM_FN num_quick32 num_arcsin_quick32(float x) {
    double m = (double)num_abs32(x), y = num_quick_arcsin64(m);
    return num_quick_arc_tried(x, m > 0.5 ? num_step64(-2.0, y, NUM_PI_64 / 2) : y, 1.0f);
}

/* arccos is never tiny. */
NUM_FN num_quick32 num_arccos_quick32(float x) {
    double a = (double)x, m = num_abs64(a), y = num_quick_arcsin64(m);
    double factor = num_copysign64(m > 0.5 ? 2.0 : 1.0, m > 0.5 ? a : -a);
    double c = m > 0.5 ? (a < 0.0 ? NUM_PI_64 : 0.0) : NUM_PI_64 / 2;
    y = num_step64(factor, y, c);
    num_quick32 out = { (float)y, num_quick_near_halfway(y, NUM_QUICK_ARC_DOUBT) | num_quick_beyond(x, 1.0f) };
    return out;
}

#endif
