/* power. */
#ifndef NUM_POWER_H
#define NUM_POWER_H

#include "num_round.h"

NUM_FN float num_power_f32(float x, float y) { return num_to_f32(__builtin_pow((double)x, (double)y)); }
NUM_FN float num_power_for_f16(float x, float y) { return (float)__builtin_pow((double)x, (double)y); }
NUM_FN float num_power_for_bf16(float x, float y) { return (float)__builtin_pow((double)x, (double)y); }

#endif
