/* sinh, cosh, silu. */
#ifndef NUM_HYPERBOLIC_H
#define NUM_HYPERBOLIC_H

#include "num_round.h"

NUM_FN float num_sinh_f32(float x) { return num_to_f32(__builtin_sinh((double)x)); }
NUM_FN float num_sinh_for_f16(float x) { return (float)__builtin_sinh((double)x); }
NUM_FN float num_sinh_for_bf16(float x) { return (float)__builtin_sinh((double)x); }

NUM_FN float num_cosh_f32(float x) { return num_to_f32(__builtin_cosh((double)x)); }
NUM_FN float num_cosh_for_f16(float x) { return (float)__builtin_cosh((double)x); }
NUM_FN float num_cosh_for_bf16(float x) { return (float)__builtin_cosh((double)x); }

NUM_FN float num_silu_f32(float x) { return num_to_f32((double)x / (1.0 + __builtin_exp(-(double)x))); }
NUM_FN float num_silu_for_f16(float x) { return (float)(double)x / (1.0 + __builtin_exp(-(double)x)); }
NUM_FN float num_silu_for_bf16(float x) { return (float)(double)x / (1.0 + __builtin_exp(-(double)x)); }

#endif
