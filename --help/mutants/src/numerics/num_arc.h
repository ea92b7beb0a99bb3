/* arcsin, arccos, arctan, arctan2 of every float. */
#ifndef NUM_ARC_H
#define NUM_ARC_H

#include "num_arc32.h"
#include "num_arc64.h"
#include "num_arctan2.h"

NUM_FN float num_arcsin_f32(float x) { return num_canonical32(num_copysign32((float)num_arcsin64(num_abs32(x)), x)); }
NUM_FN float num_arccos_f32(float x) { return num_to_f32(num_arccos64(x)); }
NUM_FN float num_arctan_f32(float x) { return num_unless_nan32(x, num_copysign32((float)num_arctan64(num_abs32(x)), x)); }

#endif
