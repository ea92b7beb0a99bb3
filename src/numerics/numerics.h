/* The arithmetic of every primitive for every dtype it takes: include this one. See num_base.h for the rules.
 *
 *   num_base.h             qualifiers, bit casts, canonical NaN, fused steps
 *   num_round.h            one rounding to float32, float16, bfloat16; rounding to odd
 *   num_exp64.h            exp, expm1, sigmoid, tanh in double
 *   num_log64.h            log, log1p, softplus, rsqrt in double
 *   num_logaddexp.h        logaddexp: fixed operations, exact where it cancels
 *   num_transcendental32.h those of float32
 *   num_exp32.h            exp, expm1, sigmoid, softplus, tanh of the 16-bit floats, in float32
 *   num_log32.h            log, log1p of the 16-bit floats, in float32
 *   num_arc64.h            arcsin, arccos, arctan in double
 *   num_arc32.h            arcsin, arccos, arctan of the 16-bit floats, in float32
 *   num_arctan2.h          arctan2: a first evaluation, and a second look at what that leaves open
 *   num_arc.h              all of these
 *   num_float32.h          float32 arithmetic
 *   num_half.h             float16 and bfloat16
 *   num_integer.h          integers and bool
 *   num_convert.h          astype */
#ifndef NUMERICS_H
#define NUMERICS_H

#include "num_convert.h"
#include "num_float32.h"
#include "num_half.h"
#include "num_integer.h"
#include "num_logaddexp.h"
#include "num_transcendental32.h"

#endif
