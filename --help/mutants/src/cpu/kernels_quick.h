/* Loops around the quick evaluations of num_quick64.h and its kin: a block that has an open element is done again whole, by num_<name>_f32.
 * That is another loop without branches, so that where much is open (infinities, say), the cost is the sum of both. Short
 * blocks, as a longer one is done again more often; of a fixed length, which lets compilers keep constants in registers. */
#ifndef OL_CPU_KERNELS_QUICK_H
#define OL_CPU_KERNELS_QUICK_H

#define QUICK_BLOCK 64

/* Results go through a buffer, since the second loop reads operands that the output may alias. */
#define QUICK_1(name)                                                                                                         \
    static __attribute__((noinline)) void quick_again_##name(float *out, const t_f32 *x, int n) {                             \
        KERNEL_EACH(n) out[i] = num_##name##_f32(x[i]);                                                                       \
    }                                                                                                                         \
    static inline __attribute__((always_inline)) void quick_block_##name(t_f32 *out, const t_f32 *x, int n) {                 \
        float block[QUICK_BLOCK];                                                                                             \
        uint32_t open = 0;                                                                                                    \
        _Pragma("omp simd reduction(|:open)") for (int i = 0; i < n; i++) {                                                   \
            num_quick32 quick = num_##name##_quick32(x[i]);                                                                   \
            block[i] = quick.value;                                                                                           \
            open |= quick.open;                                                                                               \
        }                                                                                                                     \
        if (open >> 31) quick_again_##name(block, x, n);                                                                      \
        memcpy(out, block, (size_t)n * sizeof *block);                                                                        \
    }                                                                                                                         \
    static void loop_##name##_f32(KERNEL_ARGUMENTS) {                                                                         \
        t_f32 *result = out;                                                                                                  \
        const t_f32 *a = x;                                                                                                   \
        (void)y, (void)z;                                                                                                     \
        for (; n >= QUICK_BLOCK; n -= QUICK_BLOCK, result += QUICK_BLOCK, a += QUICK_BLOCK)                                   \
            quick_block_##name(result, a, QUICK_BLOCK);                                                                       \
        if (n > 0) quick_block_##name(result, a, (int)n);                                                                     \
    }

#define KERNEL_OWN_exp2_f32 ~, KERNEL_NONE
#define KERNEL_OWN_silu_f32 ~, KERNEL_NONE
QUICK_1(exp2)
QUICK_1(silu)

#define KERNEL_OWN_arctan_f32 ~, KERNEL_NONE
#define KERNEL_OWN_arcsin_f32 ~, KERNEL_NONE
#define KERNEL_OWN_arccos_f32 ~, KERNEL_NONE
QUICK_1(arctan)
QUICK_1(arcsin)
QUICK_1(arccos)

#if NUM_HAS_FMA
#define KERNEL_OWN_rsqrt_f32 ~, KERNEL_NONE
QUICK_1(rsqrt)
#endif

/* Those for which some level has something better. */
#if !defined(KERNEL_OWN_exp_f32)
#define KERNEL_OWN_exp_f32 ~, KERNEL_NONE
QUICK_1(exp)
#endif
#if !defined(KERNEL_OWN_sigmoid_f32)
#define KERNEL_OWN_sigmoid_f32 ~, KERNEL_NONE
#define KERNEL_OWN_softplus_f32 ~, KERNEL_NONE
QUICK_1(sigmoid)
QUICK_1(softplus)
#endif
#if !defined(KERNEL_OWN_log_f32)
#define KERNEL_OWN_log_f32 ~, KERNEL_NONE
#define KERNEL_OWN_log2_f32 ~, KERNEL_NONE
#define KERNEL_OWN_log10_f32 ~, KERNEL_NONE
#define KERNEL_OWN_log1p_f32 ~, KERNEL_NONE
QUICK_1(log)
QUICK_1(log2)
QUICK_1(log10)
QUICK_1(log1p)
#endif

#endif
