/* Loops that are not one scalar function per element: a fast pass over a block, then a second look at the few elements that
 * it could not decide. Results go through a buffer, since the second look reads operands that the output may alias. */
#ifndef OL_CPU_KERNELS_OWN_H
#define OL_CPU_KERNELS_OWN_H

#define KERNEL_BLOCK 128

#if defined(__AVX512F__)
#include "kernels_vector_avx512.h"
#include "kernels_log_avx512.h"
#elif defined(__AVX2__)
#include "kernels_vector_avx2.h"
#include "kernels_log_avx2.h"
#endif
#include "kernels_half.h"
#if defined(V_LANES)
#include "kernels_f16c.h"
#endif
#include "kernels_bf16.h"
#include "kernels_second_look.h"
#include "kernels_power.h"
#if defined(V_LANES)
#include "kernels_pair.h"
#include "kernels_pair_log.h"
#endif
#if defined(__AVX512F__)
#include "kernels_pair_sigmoid.h"
#endif
#include "kernels_quick.h"

#define KERNEL_OWN_logaddexp_f32 ~, KERNEL_NONE
#define KERNEL_OWN_logaddexp_f16 ~, KERNEL_NONE
#define KERNEL_OWN_logaddexp_bf16 ~, KERNEL_NONE
SECOND_LOOK_2(logaddexp)
SECOND_LOOK_HALF_2(logaddexp, f16)
SECOND_LOOK_HALF_2(logaddexp, bf16)

#define KERNEL_OWN_sin_f32 ~, KERNEL_NONE
#define KERNEL_OWN_cos_f32 ~, KERNEL_NONE
#define KERNEL_OWN_tan_f32 ~, KERNEL_NONE
SECOND_LOOK_1(sin)
SECOND_LOOK_1(cos)
SECOND_LOOK_1(tan)

#define KERNEL_OWN_arcsinh_f32 ~, KERNEL_NONE
#define KERNEL_OWN_arccosh_f32 ~, KERNEL_NONE
#define KERNEL_OWN_arctanh_f32 ~, KERNEL_NONE
SECOND_LOOK_1(arcsinh)
SECOND_LOOK_1(arccosh)
SECOND_LOOK_1(arctanh)

#include "kernels_arc.h"

#define KERNEL_OWN_erfinv_f32 ~, KERNEL_NONE
SECOND_LOOK_1(erfinv)

/* Large quotients take another way. */
#if NUM_HAS_FMA
#define KERNEL_OWN_floor_divide_f32 ~, KERNEL_NONE
SECOND_LOOK_2(floor_divide)
#endif

#define KERNEL_OWN_remainder_f32 ~, KERNEL_NONE
SECOND_LOOK_2(remainder)

#define KERNEL_OWN_remainder_f16 ~, KERNEL_NONE
#define KERNEL_OWN_remainder_bf16 ~, KERNEL_NONE
SECOND_LOOK_HALF_2(remainder, f16)
SECOND_LOOK_HALF_2(remainder, bf16)

#define KERNEL_OWN_fma_bf16 ~, KERNEL_NONE
SECOND_LOOK_HALF_3(fma, bf16)

#endif
