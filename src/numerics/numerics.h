/* The arithmetic of every primitive for every dtype it takes: include this one. See num_base.h for the rules.
 *
 *   num_base.h             qualifiers, bit casts, canonical NaN, fused steps
 *   num_round.h            one rounding to float32, float16, bfloat16; rounding to odd
 *   num_exp64.h            exp, expm1, sigmoid, tanh in double
 *   num_log64.h            log, log1p, softplus, rsqrt in double
 *   num_logaddexp.h        logaddexp: fixed operations, exact where it cancels
 *   num_power64.h          power of float32 in double: an evaluation that tells what it leaves open, a second one for that
 *   num_power32.h          that of the 16-bit floats, in float32
 *   num_power.h            special cases of power
 *   num_transcendental32.h those of float32
 *   num_exp32.h            exp, expm1, sigmoid, softplus, tanh of the 16-bit floats, in float32
 *   num_log32.h            log, log1p of the 16-bit floats, in float32
 *   num_trigonometric.h    sin, cos, tan: in double (num_trig64.h), in fixed point for large arguments and open roundings
 *                          (num_trig_fixed.h), in float32 for the 16-bit floats (num_trig32.h)
 *   num_erf.h              erf (num_erf64.h, num_erf32.h), erfinv (num_erfinv64.h, num_erfinv32.h)
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
