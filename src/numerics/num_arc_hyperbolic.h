/* arcsinh, arccosh, arctanh. */
#ifndef NUM_ARC_HYPERBOLIC_H
#define NUM_ARC_HYPERBOLIC_H

#include "num_round.h"

NUM_FN float num_arcsinh_f32(float x) { return num_to_f32(__builtin_asinh((double)x)); }
NUM_FN float num_arcsinh_for_f16(float x) { return (float)__builtin_asinh((double)x); }
NUM_FN float num_arcsinh_for_bf16(float x) { return (float)__builtin_asinh((double)x); }

NUM_FN float num_arccosh_f32(float x) { return num_to_f32(__builtin_acosh((double)x)); }
NUM_FN float num_arccosh_for_f16(float x) { return (float)__builtin_acosh((double)x); }
NUM_FN float num_arccosh_for_bf16(float x) { return (float)__builtin_acosh((double)x); }

NUM_FN float num_arctanh_f32(float x) { return num_to_f32(__builtin_atanh((double)x)); }
NUM_FN float num_arctanh_for_f16(float x) { return (float)__builtin_atanh((double)x); }
NUM_FN float num_arctanh_for_bf16(float x) { return (float)__builtin_atanh((double)x); }

#endif
