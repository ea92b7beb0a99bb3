/* The arithmetic of every primitive for every dtype it takes: include this one. See num_base.h for the rules.
 *
 *   num_base.h             qualifiers, bit casts, canonical NaN, fused steps
 *   num_round.h            one rounding to float32, float16, bfloat16; rounding to odd
 *   In double, for float32 (and what is too near halfway for the 16-bit floats):
 *   num_exp64.h            exp, expm1, sigmoid, tanh                    num_base2.h            exp2, log2, log10
 *   num_log64.h            log, log1p, softplus, rsqrt                  num_silu.h             silu
 *   num_hyperbolic.h       sinh, cosh                                   num_arc64.h            arcsin, arccos, arctan
 *   num_arc_hyperbolic64.h arcsinh, arccosh, arctanh                    num_trig64.h           sin, cos, tan
 *   num_trig_fixed.h       sin, cos, tan of any argument in fixed point num_erf64.h            erf
 *   num_erfinv64.h         erfinv                                       num_power64.h          power
 *   num_arctan2.h          arctan2                                      num_hypot.h            hypot
 *   num_logaddexp.h        logaddexp: fixed operations, exact where it cancels
 *   num_pair64.h           double-double, for second looks
 *   num_quick64.h          exp, exp2, sigmoid, silu, softplus, log: fewer steps, and what they leave open
 *   num_transcendental32.h the float32 primitives of the first of these
 *   In float32, for the 16-bit floats:
 *   num_exp32.h            exp, expm1, sigmoid, softplus, tanh          num_log32.h            log, log1p
 *   num_base2_32.h         exp2, log2, log10                            num_hyperbolic32.h     sinh, cosh
 *   num_arc32.h            arcsin, arccos, arctan                       num_arc_hyperbolic32.h arcsinh, arccosh, arctanh
 *   num_trig32.h           sin, cos, tan                                num_erf32.h            erf, erfinv
 *   num_power32.h          power                                        num_logaddexp32.h      logaddexp
 *   All dtypes of one primitive: num_arc.h, num_arc_hyperbolic.h, num_erf.h, num_power.h (special cases), num_trigonometric.h
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
#include "num_quick64.h"
#include "num_quick_arc64.h"
#include "num_quick_rsqrt32.h"
#include "num_transcendental32.h"

#endif
