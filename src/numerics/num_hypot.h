/* hypot. */
#ifndef NUM_HYPOT_H
#define NUM_HYPOT_H

#include "num_round.h"

NUM_FN float num_hypot_f32(float x, float y) { return num_to_f32(__builtin_hypot((double)x, (double)y)); }
NUM_FN float num_hypot_for_f16(float x, float y) { return (float)__builtin_hypot((double)x, (double)y); }
NUM_FN float num_hypot_for_bf16(float x, float y) { return (float)__builtin_hypot((double)x, (double)y); }

#endif
