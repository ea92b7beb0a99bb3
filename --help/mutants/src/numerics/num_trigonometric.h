/* sin, cos, tan: float32 here, 16-bit floats in num_trig32.h. */
#ifndef NUM_TRIGONOMETRIC_H
#define NUM_TRIGONOMETRIC_H

#include "num_trig32.h"
#include "num_trig64.h"

NUM_FN num_tried32 num_sin_try32(float x) { return num_trig_tried32(x, num_sin64((double)x)); }
NUM_FN num_tried32 num_cos_try32(float x) { return num_trig_tried32(x, num_cos64((double)x)); }
NUM_FN num_tried32 num_tan_try32(float x) { return num_trig_tried32(x, num_tan64((double)x)); }

NUM_FN float num_sin_again32(float x) { return num_to_f32(num_sin_fixed64(x)); }
NUM_FN float num_cos_again32(float x) { return num_to_f32(num_cos_fixed64(x)); }
NUM_FN float num_tan_again32(float x) { return num_to_f32(num_tan_fixed64(x)); }

NUM_FN float num_sin_f32(float x) {
    num_tried32 tried = num_sin_try32(x);
    return tried.open ? num_sin_again32(x) : tried.value;
}

NUM_FN float num_cos_f32(float x) {
    num_tried32 tried = num_cos_try32(x);
    return tried.open ? num_cos_again32(x) : tried.value;
}

NUM_FN float num_tan_f32(float x) {
    num_tried32 tried = num_tan_try32(x);
    return tried.open ? num_tan_again32(x) : tried.value;
}

#endif
