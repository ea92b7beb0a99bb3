/* float16 and bfloat16: num_half_body.h for each. */
#ifndef NUM_HALF_H
#define NUM_HALF_H

#include "num_arc.h"
#include "num_arc_hyperbolic.h"
#include "num_base2_32.h"
#include "num_erf.h"
#include "num_float32.h"
#include "num_hyperbolic32.h"
#include "num_hypot.h"
#include "num_log32.h"
#include "num_logaddexp32.h"
#include "num_power.h"
#include "num_silu.h"
#include "num_trigonometric.h"

#define HALF(name) num_##name##_f16
#define HALF_BY_FLOAT32(name) num_##name##_for_f16
#define HALF_WIDEN num_widen_f16
#define HALF_NARROW num_narrow_f16
#define HALF_NARROW_NUMBER num_narrow_number_f16
#define HALF_INF 0x7c00u
#define HALF_NAN NUM_NAN_BITS_F16
#define HALF_ONE 0x3c00u
#include "num_half_body.h"
#undef HALF
#undef HALF_BY_FLOAT32
#undef HALF_WIDEN
#undef HALF_NARROW
#undef HALF_NARROW_NUMBER
#undef HALF_INF
#undef HALF_NAN
#undef HALF_ONE

#define HALF(name) num_##name##_bf16
#define HALF_BY_FLOAT32(name) num_##name##_for_bf16
#define HALF_WIDEN num_widen_bf16
#define HALF_NARROW num_narrow_bf16
#define HALF_NARROW_NUMBER num_narrow_number_bf16
#define HALF_INF 0x7f80u
#define HALF_NAN NUM_NAN_BITS_BF16
#define HALF_ONE 0x3f80u
#include "num_half_body.h"
#undef HALF
#undef HALF_BY_FLOAT32
#undef HALF_WIDEN
#undef HALF_NARROW
#undef HALF_NARROW_NUMBER
#undef HALF_INF
#undef HALF_NAN
#undef HALF_ONE

#endif
