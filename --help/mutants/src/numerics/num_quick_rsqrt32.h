/* float32 rsqrt in float32 arithmetic, for machines with an fma, and a test of the rounding.
 *
 * y = 1 / sqrt(x) after two roundings, h = x y with its exact rest, r = 1 - x y^2, |r| < 2^-22; the result is y (1 + r/2 + 3/8 r^2 + ...).
 * Relative errors: of r/2, 2^-46; of what is left out, 2^-45; of the product with y, 2^-46. 2^-43 is allowed for; one in 2^18 is
 * left open, besides what is not positive and finite. */
#ifndef NUM_QUICK_RSQRT32_H
#define NUM_QUICK_RSQRT32_H

#include "num_quick64.h"

#if NUM_HAS_FMA
NUM_FN num_quick32 num_rsqrt_quick32(float x) {
    float y = 1.0f / NUM_SQRT32(x);
    float h = x * y;
    float r = NUM_FMA32(-h, y, 1.0f) - NUM_FMA32(x, y, -h) * y;
    float c = (0.5f * y) * r, error = y * 0x1p-43f;
    float above = y + (c + error), below = y + (c - error);
    uint32_t unusual = (num_bits32(x) - 1u) | (0x7f7fffffu - num_bits32(x));
    num_quick32 out = { above, (0u - (num_bits32(above) ^ num_bits32(below))) | unusual };
    return out;
}
#endif

#endif
