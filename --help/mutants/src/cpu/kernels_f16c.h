/* Loops between float16 and another dtype, for levels with F16C: the hardware converts a block. Elements lie in order there. */
#ifndef OL_CPU_KERNELS_F16C_H
#define OL_CPU_KERNELS_F16C_H

#define F16C_COMPARE(name)                                                                                                    \
    static void loop_##name##_f16(KERNEL_ARGUMENTS) {                                                                         \
        t_b8 *result = out;                                                                                                   \
        const t_f16 *p = x, *q = y;                                                                                           \
        (void)z;                                                                                                              \
        while (n > 0) {                                                                                                       \
            float a[HALF_BLOCK], b[HALF_BLOCK];                                                                               \
            int length = n < HALF_BLOCK ? (int)n : HALF_BLOCK;                                                                \
            widen_block_f16(a, p, length);                                                                                    \
            widen_block_f16(b, q, length);                                                                                    \
            _Pragma("omp simd") for (int i = 0; i < length; i++) result[i] = num_##name##_f32(a[i], b[i]);                    \
            result += length, p += length, q += length, n -= (size_t)length;                                                  \
        }                                                                                                                     \
    }

#define KERNEL_OWN_equal_f16 ~, KERNEL_NONE
#define KERNEL_OWN_not_equal_f16 ~, KERNEL_NONE
#define KERNEL_OWN_less_f16 ~, KERNEL_NONE
#define KERNEL_OWN_less_equal_f16 ~, KERNEL_NONE
#define KERNEL_OWN_greater_f16 ~, KERNEL_NONE
#define KERNEL_OWN_greater_equal_f16 ~, KERNEL_NONE
#define KERNEL_OWN_astype_f16_f32 ~, KERNEL_NONE
#define KERNEL_OWN_astype_f32_f16 ~, KERNEL_NONE

F16C_COMPARE(equal)
F16C_COMPARE(not_equal)
F16C_COMPARE(less)
F16C_COMPARE(less_equal)
F16C_COMPARE(greater)
F16C_COMPARE(greater_equal)

static void loop_astype_f16_f32(KERNEL_ARGUMENTS) {
    t_f32 *result = out;
    const t_f16 *p = x;
    (void)y, (void)z;
    while (n > 0) {
        float a[HALF_BLOCK];
        int length = n < HALF_BLOCK ? (int)n : HALF_BLOCK;
        widen_block_f16(a, p, length);
        _Pragma("omp simd") for (int i = 0; i < length; i++) result[i] = num_canonical32(a[i]);
        result += length, p += length, n -= (size_t)length;
    }
}

static void loop_astype_f32_f16(KERNEL_ARGUMENTS) {
    t_f16 *result = out;
    const t_f32 *p = x;
    (void)y, (void)z;
    while (n > 0) {
        float block[HALF_BLOCK];
        int length = n < HALF_BLOCK ? (int)n : HALF_BLOCK;
        _Pragma("omp simd") for (int i = 0; i < length; i++) block[i] = num_canonical32(p[i]);
        narrow_block_f16(result, block, length);
        result += length, p += length, n -= (size_t)length;
    }
}

#endif
