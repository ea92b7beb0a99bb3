/* erf, erfinv. */
#ifndef NUM_ERF_H
#define NUM_ERF_H

#include "num_erf32.h"
#include "num_erf64.h"

NUM_FN float num_erfinv_f32(float x) { return num_to_f32(__builtin_erf((double)x)); }
NUM_FN float num_erfinv_for_f16(float x) { return (float)__builtin_erf((double)x); }
NUM_FN float num_erfinv_for_bf16(float x) { return (float)__builtin_erf((double)x); }

#endif
