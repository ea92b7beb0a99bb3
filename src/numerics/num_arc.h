/* arcsin, arccos, arctan, arctan2. */
#ifndef NUM_ARC_H
#define NUM_ARC_H

#include "num_round.h"

NUM_FN float num_arcsin_f32(float x) { return num_to_f32(__builtin_asin((double)x)); }
NUM_FN float num_arcsin_for_f16(float x) { return (float)__builtin_asin((double)x); }
NUM_FN float num_arcsin_for_bf16(float x) { return (float)__builtin_asin((double)x); }

NUM_FN float num_arccos_f32(float x) { return num_to_f32(__builtin_acos((double)x)); }
NUM_FN float num_arccos_for_f16(float x) { return (float)__builtin_acos((double)x); }
NUM_FN float num_arccos_for_bf16(float x) { return (float)__builtin_acos((double)x); }

NUM_FN float num_arctan_f32(float x) { return num_to_f32(__builtin_atan((double)x)); }
NUM_FN float num_arctan_for_f16(float x) { return (float)__builtin_atan((double)x); }
NUM_FN float num_arctan_for_bf16(float x) { return (float)__builtin_atan((double)x); }

NUM_FN float num_arctan2_f32(float x, float y) { return num_to_f32(__builtin_atan2((double)x, (double)y)); }
NUM_FN float num_arctan2_for_f16(float x, float y) { return (float)__builtin_atan2((double)x, (double)y); }
NUM_FN float num_arctan2_for_bf16(float x, float y) { return (float)__builtin_atan2((double)x, (double)y); }

#endif
