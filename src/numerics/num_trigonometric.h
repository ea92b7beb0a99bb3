/* sin, cos, tan. */
#ifndef NUM_TRIGONOMETRIC_H
#define NUM_TRIGONOMETRIC_H

#include "num_round.h"

NUM_FN float num_sin_f32(float x) { return num_to_f32(__builtin_sin((double)x)); }
NUM_FN float num_sin_for_f16(float x) { return (float)__builtin_sin((double)x); }
NUM_FN float num_sin_for_bf16(float x) { return (float)__builtin_sin((double)x); }

NUM_FN float num_cos_f32(float x) { return num_to_f32(__builtin_cos((double)x)); }
NUM_FN float num_cos_for_f16(float x) { return (float)__builtin_cos((double)x); }
NUM_FN float num_cos_for_bf16(float x) { return (float)__builtin_cos((double)x); }

NUM_FN float num_tan_f32(float x) { return num_to_f32(__builtin_tan((double)x)); }
NUM_FN float num_tan_for_f16(float x) { return (float)__builtin_tan((double)x); }
NUM_FN float num_tan_for_bf16(float x) { return (float)__builtin_tan((double)x); }

#endif
