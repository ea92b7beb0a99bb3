/* The scalar steps of the gated-delta recurrence (onelaunch_gated_delta.h has the order of operations that all devices follow). The
 * sums are the devices' own: on the CPU src/cpu/delta_body.h, with num_fma_f32 where there is no instruction for it.
 *
 * A NaN in the middle has any payload; what is stored is made canonical there. */
#ifndef NUM_GATED_DELTA_H
#define NUM_GATED_DELTA_H

#include "num_float32.h"
#include "num_transcendental32.h"

/* By what a key or query is multiplied whose dot product with itself is `sum`: the kinds of ol_delta_norm, by number. root is n^-1/2
 * of its n elements. */
NUM_FN float num_delta_norm_factor(int norm, float sum, float n, float root, float epsilon) {
    float length = NUM_SQRT32(sum);
    float longer = length < epsilon ? epsilon : length;                 /* a NaN length stays */
    float r = 1.0f;
    r = norm == 1 ? num_rsqrt_f32(sum + epsilon) : r;
    r = norm == 2 ? 1.0f / longer : r;
    r = norm == 3 ? 1.0f / (length + epsilon) : r;
    r = norm == 4 ? num_rsqrt_f32(sum / n + epsilon) * root : r;
    return r;
}

/* u of a row: the update rate times what the state lacks of the value. */
NUM_FN float num_delta_update(float beta, float value, float read) { return beta * (value - read); }

#endif
