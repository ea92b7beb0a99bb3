/* arcsinh, arccosh, arctanh: of float32 in double, of the 16-bit floats in float32. */
#ifndef NUM_ARC_HYPERBOLIC_H
#define NUM_ARC_HYPERBOLIC_H

#include "num_arc_hyperbolic32.h"
#include "num_arc_hyperbolic64.h"

#endif
