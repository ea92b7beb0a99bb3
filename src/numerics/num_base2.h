/* exp2, log2, log10. */
#ifndef NUM_BASE2_H
#define NUM_BASE2_H

#include "num_round.h"

NUM_FN float num_exp2_f32(float x) { return num_to_f32(__builtin_exp2((double)x)); }
NUM_FN float num_exp2_for_f16(float x) { return (float)__builtin_exp2((double)x); }
NUM_FN float num_exp2_for_bf16(float x) { return (float)__builtin_exp2((double)x); }

NUM_FN float num_log2_f32(float x) { return num_to_f32(__builtin_log2((double)x)); }
NUM_FN float num_log2_for_f16(float x) { return (float)__builtin_log2((double)x); }
NUM_FN float num_log2_for_bf16(float x) { return (float)__builtin_log2((double)x); }

NUM_FN float num_log10_f32(float x) { return num_to_f32(__builtin_log10((double)x)); }
NUM_FN float num_log10_for_f16(float x) { return (float)__builtin_log10((double)x); }
NUM_FN float num_log10_for_bf16(float x) { return (float)__builtin_log10((double)x); }

#endif
