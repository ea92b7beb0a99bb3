/* Which 16-bit functions of one operand this level looks up in long runs (table16.h): those whose arithmetic is slower there than
 * three or four elements per ns, which is what looking up comes to. KERNEL_TABLED_<primitive>_<dtype> is `~, 1` for these. */
#ifndef OL_CPU_KERNELS_TABLE16_H
#define OL_CPU_KERNELS_TABLE16_H

#include "table16.h"

#define KERNEL_TABLED_rsqrt_f16 ~, 1
#define KERNEL_TABLED_rsqrt_bf16 ~, 1
#define KERNEL_TABLED_exp_f16 ~, 1
#define KERNEL_TABLED_expm1_f16 ~, 1
#define KERNEL_TABLED_log_f16 ~, 1
#define KERNEL_TABLED_log2_f16 ~, 1
#define KERNEL_TABLED_log10_f16 ~, 1
#define KERNEL_TABLED_log1p_f16 ~, 1
#define KERNEL_TABLED_sigmoid_f16 ~, 1
#define KERNEL_TABLED_softplus_f16 ~, 1
#define KERNEL_TABLED_silu_f16 ~, 1
#define KERNEL_TABLED_tanh_f16 ~, 1
#define KERNEL_TABLED_tan_f16 ~, 1
#define KERNEL_TABLED_sinh_f16 ~, 1
#define KERNEL_TABLED_cosh_f16 ~, 1
#define KERNEL_TABLED_arcsin_f16 ~, 1
#define KERNEL_TABLED_arccos_f16 ~, 1
#define KERNEL_TABLED_arctan_f16 ~, 1
#define KERNEL_TABLED_arcsinh_f16 ~, 1
#define KERNEL_TABLED_arccosh_f16 ~, 1
#define KERNEL_TABLED_arctanh_f16 ~, 1
#define KERNEL_TABLED_erf_f16 ~, 1
#define KERNEL_TABLED_erfinv_f16 ~, 1
#define KERNEL_TABLED_exp_bf16 ~, 1
#define KERNEL_TABLED_log_bf16 ~, 1
#define KERNEL_TABLED_log2_bf16 ~, 1
#define KERNEL_TABLED_log10_bf16 ~, 1
#define KERNEL_TABLED_log1p_bf16 ~, 1
#define KERNEL_TABLED_silu_bf16 ~, 1
#define KERNEL_TABLED_tanh_bf16 ~, 1
#define KERNEL_TABLED_cos_bf16 ~, 1
#define KERNEL_TABLED_tan_bf16 ~, 1
#define KERNEL_TABLED_sinh_bf16 ~, 1
#define KERNEL_TABLED_cosh_bf16 ~, 1
#define KERNEL_TABLED_arcsin_bf16 ~, 1
#define KERNEL_TABLED_arccos_bf16 ~, 1
#define KERNEL_TABLED_arctan_bf16 ~, 1
#define KERNEL_TABLED_arcsinh_bf16 ~, 1
#define KERNEL_TABLED_arccosh_bf16 ~, 1
#define KERNEL_TABLED_arctanh_bf16 ~, 1
#define KERNEL_TABLED_erfinv_bf16 ~, 1

/* Sixteen lanes compute these as fast, and bfloat16 sigmoid and softplus have smaller tables there. */
#if !defined(__AVX512F__)
#define KERNEL_TABLED_exp2_f16 ~, 1
#define KERNEL_TABLED_sin_f16 ~, 1
#define KERNEL_TABLED_cos_f16 ~, 1
#define KERNEL_TABLED_exp2_bf16 ~, 1
#define KERNEL_TABLED_expm1_bf16 ~, 1
#define KERNEL_TABLED_sigmoid_bf16 ~, 1
#define KERNEL_TABLED_softplus_bf16 ~, 1
#define KERNEL_TABLED_sin_bf16 ~, 1
#define KERNEL_TABLED_erf_bf16 ~, 1
#endif

/* Without instructions that convert float16 or round to an integer. */
#if defined(__SSE2__) && !defined(__AVX__)
#define KERNEL_TABLED_floor_f16 ~, 1
#define KERNEL_TABLED_ceil_f16 ~, 1
#define KERNEL_TABLED_round_f16 ~, 1
#define KERNEL_TABLED_square_f16 ~, 1
#define KERNEL_TABLED_sqrt_f16 ~, 1
#define KERNEL_TABLED_reciprocal_f16 ~, 1
#define KERNEL_TABLED_floor_bf16 ~, 1
#define KERNEL_TABLED_ceil_bf16 ~, 1
#define KERNEL_TABLED_round_bf16 ~, 1
#endif

#define TABLED_0(name, dt)
#define TABLED_1(name, dt)                                                                                                    \
    static void tabled_##name##_##dt(KERNEL_ARGUMENTS) {                                                                      \
        (void)y, (void)z;                                                                                                     \
        table16_run(TABLE16_##name##_##dt, loop_##name##_##dt, out, x, n);                                                    \
    }
#define TABLED_AGAIN(choice, name, dt) TABLED_##choice(name, dt)
#define TABLED_CHOOSE(choice, name, dt) TABLED_AGAIN(choice, name, dt)
#define TABLED(arity, name, dt, rt) TABLED_CHOOSE(KERNEL_PICK(KERNEL_TABLED_##name##_##dt, 0), name, dt)

/* The kernel of the level's table. */
#define KERNEL_NAME_0(name, dt) loop_##name##_##dt
#define KERNEL_NAME_1(name, dt) tabled_##name##_##dt
#define KERNEL_NAME_AGAIN(choice, name, dt) KERNEL_NAME_##choice(name, dt)
#define KERNEL_NAME_CHOOSE(choice, name, dt) KERNEL_NAME_AGAIN(choice, name, dt)
#define KERNEL_NAME(name, dt) KERNEL_NAME_CHOOSE(KERNEL_PICK(KERNEL_TABLED_##name##_##dt, 0), name, dt)

#endif
