/* arcsin, arccos, arctan of float16 and bfloat16 in float32 arithmetic; see num_exp32.h for what makes that right.
 *
 * Arguments outside of the domain give a NaN (a root of a negative number).
 *
 * arctan: t P(t^2), t = |x| or, above 1, pi/2 less that of t = 1 / |x|.
 * arcsin: r Q(r^2), r = |x| or, above 1/2, pi/2 less twice that of r = sqrt((1 - |x|) / 2).
 * arccos: sqrt(1 - |x|) R(|x|) or, below 0, pi less that.
 * num_arc64.h's further split of arctan would save steps here too, but takes more selects.
 *
 * Polynomials: Sollya, fpminimax(..., d, [|SG...|], I, relative) of atan(sqrt(x))/sqrt(x) on [2^-40, 1], of
 * asin(sqrt(x))/sqrt(x) on [2^-40, 1/4], of acos(x)/sqrt(1 - x) on [0, 1 - 2^-30]; for float16's arctan, of
 * (atan(sqrt(x))/sqrt(x) - 1)/x with absolute error. Those of float16's arctan and arccos were then moved a little. */
#ifndef NUM_ARC32_H
#define NUM_ARC32_H

#include "num_exp32.h"

#define NUM_PI_32 0x1.921fb6p+1f
#define NUM_PI_2_REST_32 -0x1.777a5cp-25f                /* pi/2 less the half of that */

/* ---- bfloat16 ------------------------------------------------------------------------------------------------------- */

NUM_FN float num_arctan_for_bf16(float x) {
    float m = num_abs32(x);
    int upper = m > 1.0f;
    float t = upper ? -1.0f / m : m;
    float z = t * t;
    float p = 0x1.86f8d6p-6f;
    p = num_step32(p, z, -0x1.78871ep-4f);
    p = num_step32(p, z, 0x1.7b5204p-3f);
    p = num_step32(p, z, -0x1.53a956p-2f);
    p = num_step32(p, z, 0x1.fffc12p-1f);
    return num_copysign32(num_step32(t, p, upper ? NUM_PI_32 / 2 : 0.0f), x);
}

NUM_FN float num_arcsin_for_bf16(float x) {
    float m = num_abs32(x);
    int upper = m > 0.5f;
    float z = upper ? num_step32(-0.5f, m, 0.5f) : m * m;
    float r = upper ? NUM_SQRT32(z) : m;
    float q = 0x1.0a788p-4f;
    q = num_step32(q, z, 0x1.24d192p-4f);
    q = num_step32(q, z, 0x1.55b648p-3f);
    q = num_step32(q, z, 0x1.ffffcep-1f);
    return num_copysign32(num_step32(upper ? -2.0f : 1.0f, r * q, upper ? NUM_PI_32 / 2 : 0.0f), x);
}

NUM_FN float num_arccos_for_bf16(float x) {
    float m = num_abs32(x);
    float r = -0x1.1a6ea6p-8f;
    r = num_step32(r, m, 0x1.3be37p-6f);
    r = num_step32(r, m, -0x1.6fd038p-5f);
    r = num_step32(r, m, 0x1.67db58p-4f);
    r = num_step32(r, m, -0x1.b75102p-3f);
    r = num_step32(r, m, 0x1.921fa2p+0f);
    float y = NUM_SQRT32(1.0f - m) * r;
    return x < 0.0f ? NUM_PI_32 - y : y;
}

/* ---- float16 -------------------------------------------------------------------------------------------------------- */

/* The sum of pi/2 and t is kept exact (Fast2Sum), the last addition is rounded to odd. */
NUM_FN float num_arctan_for_f16(float x) {
    float m = num_abs32(x);
    int upper = m > 1.0f;
    float t = upper ? -1.0f / m : m;
    float z = t * t;
    float p = -0x1.b35b5ep-8f;
    p = num_step32(p, z, 0x1.f807ccp-6f);
    p = num_step32(p, z, -0x1.164846p-4f);
    p = num_step32(p, z, 0x1.ac041ap-4f);
    p = num_step32(p, z, -0x1.22986p-3f);
    p = num_step32(p, z, 0x1.997ca6p-3f);
    p = num_step32(p, z, -0x1.555522p-2f);
    float c = upper ? NUM_PI_32 / 2 : 0.0f;
    float sum = c + t;
    float rest = ((c - sum) + t) + (upper ? NUM_PI_2_REST_32 : 0.0f);
    float low = num_step32(t * z, p, rest);
    float y = sum + low;
    return num_copysign32(num_odd_forced32(y, (sum - y) + low), x);
}

NUM_FN float num_arcsin_for_f16(float x) {
    float m = num_abs32(x);
    int upper = m > 0.5f;
    float z = upper ? num_step32(-0.5f, m, 0.5f) : m * m;
    float r = upper ? NUM_SQRT32(z) : m;
    float q = 0x1.a0d73ep-5f;
    q = num_step32(q, z, 0x1.43b2d6p-5f);
    q = num_step32(q, z, 0x1.3541ccp-4f);
    q = num_step32(q, z, 0x1.554c2ap-3f);
    q = num_step32(q, z, 0x1.000002p+0f);
    return num_copysign32(num_step32(upper ? -2.0f : 1.0f, r * q, upper ? NUM_PI_32 / 2 : 0.0f), x);
}

NUM_FN float num_arccos_for_f16(float x) {
    float m = num_abs32(x);
    float r = -0x1.395094p-10f;
    r = num_step32(r, m, 0x1.a5016ep-8f);
    r = num_step32(r, m, -0x1.120568p-6f);
    r = num_step32(r, m, 0x1.f5a314p-6f);
    r = num_step32(r, m, -0x1.9a21bep-5f);
    r = num_step32(r, m, 0x1.6c5cecp-4f);
    r = num_step32(r, m, -0x1.b77e5cp-3f);
    r = num_step32(r, m, 0x1.921fb6p+0f);
    float y = NUM_SQRT32(1.0f - m) * r;
    return x < 0.0f ? NUM_PI_32 - y : y;
}

#endif
