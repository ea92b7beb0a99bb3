/* arcsin, arccos, arctan, arctan2 of every float. */
#ifndef NUM_ARC_H
#define NUM_ARC_H

#include "num_arc32.h"
#include "num_arc64.h"

NUM_FN float num_arcsin_f32(float x) { return num_canonical32(num_copysign32((float)num_arcsin64(num_abs32(x)), x)); }
NUM_FN float num_arccos_f32(float x) { return num_to_f32(num_arccos64(x)); }
NUM_FN float num_arctan_f32(float x) { return num_unless_nan32(x, num_copysign32((float)num_arctan64(num_abs32(x)), x)); }

NUM_FN float num_arctan2_f32(float y, float x) { return num_to_f32(__builtin_atan2((double)y, (double)x)); }
NUM_FN float num_arctan2_for_f16(float y, float x) { return (float)__builtin_atan2((double)y, (double)x); }
NUM_FN float num_arctan2_for_bf16(float y, float x) { return (float)__builtin_atan2((double)y, (double)x); }

#endif
