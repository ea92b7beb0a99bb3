/* The arithmetic of every primitive for every dtype it takes: include this one. See num_base.h for the rules.
 *
 *   num_base.h             qualifiers, bit casts, canonical NaN, fused steps
 *   num_round.h            one rounding to float32, float16, bfloat16; rounding to odd
 *   num_exp64.h            exp, expm1, sigmoid, tanh in double
 *   num_log64.h            log, log1p, softplus, rsqrt in double
 *   num_base2.h            exp2, log2, log10 in double
 *   num_hyperbolic.h       sinh, cosh in double
 *   num_silu.h             silu, in double and in float32
 *   num_logaddexp.h        logaddexp: fixed operations, exact where it cancels
 *   num_transcendental32.h those of float32
 *   num_exp32.h            exp, expm1, sigmoid, softplus, tanh of the 16-bit floats, in float32
 *   num_log32.h            log, log1p of the 16-bit floats, in float32
 *   num_base2_32.h         exp2, log2, log10 of the 16-bit floats, in float32
 *   num_hyperbolic32.h     sinh, cosh of the 16-bit floats, in float32
 *   num_float32.h          float32 arithmetic
 *   num_half.h             float16 and bfloat16
 *   num_integer.h          integers and bool
 *   num_convert.h          astype */
#ifndef NUMERICS_H
#define NUMERICS_H

#include "num_base2.h"
#include "num_convert.h"
#include "num_float32.h"
#include "num_half.h"
#include "num_hyperbolic.h"
#include "num_integer.h"
#include "num_logaddexp.h"
#include "num_transcendental32.h"

#endif
