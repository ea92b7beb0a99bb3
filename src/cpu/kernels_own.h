/* Loops that are not one scalar function per element: a fast pass over a block, then a second look at the few elements that
 * it could not decide. Results go through a buffer, since the second look reads operands that the output may alias. */
#ifndef OL_CPU_KERNELS_OWN_H
#define OL_CPU_KERNELS_OWN_H

#define KERNEL_BLOCK 128

#include "kernels_bf16.h"
#if defined(__F16C__)
#include "kernels_f16c.h"
#endif
#if defined(__AVX512F__)
#include "kernels_vector_avx512.h"
#include "kernels_pair.h"
#elif defined(__AVX2__)
#include "kernels_vector_avx2.h"
#include "kernels_pair.h"
#endif

/* float32 loops of num_<name>_try32 (num_tried32, no branch, no table), and of num_<name>_again32 where that leaves an
 * element open. num_<name>_f32 does the same for one element. */
#define SECOND_LOOK(name, ADVANCE, TRY, AGAIN)                                                                                \
    while (n > 0) {                                                                                                           \
        float block[KERNEL_BLOCK];                                                                                            \
        uint32_t open[KERNEL_BLOCK], any = 0;                                                                                 \
        int length = n < KERNEL_BLOCK ? (int)n : KERNEL_BLOCK;                                                                \
        _Pragma("omp simd reduction(|:any)") for (int i = 0; i < length; i++) {                                               \
            num_tried32 tried = TRY;                                                                                          \
            open[i] = tried.open;                                                                                             \
            any |= tried.open;                                                                                                \
            block[i] = tried.value;                                                                                           \
        }                                                                                                                     \
        for (int i = 0; any && i < length; i++)                                                                               \
            if (open[i]) block[i] = AGAIN;                                                                                    \
        memcpy(result, block, (size_t)length * sizeof *block);                                                                \
        result += length, n -= (size_t)length;                                                                                \
        ADVANCE;                                                                                                              \
    }

#define SECOND_LOOK_1(name)                                                                                                   \
    static void loop_##name##_f32(KERNEL_ARGUMENTS) {                                                                         \
        t_f32 *result = out;                                                                                                  \
        const t_f32 *a = x;                                                                                                   \
        (void)y, (void)z;                                                                                                     \
        SECOND_LOOK(name, a += length, num_##name##_try32(a[i]), num_##name##_again32(a[i]))                                  \
    }

#define SECOND_LOOK_2(name)                                                                                                   \
    static void loop_##name##_f32(KERNEL_ARGUMENTS) {                                                                         \
        t_f32 *result = out;                                                                                                  \
        const t_f32 *a = x, *b = y;                                                                                           \
        (void)z;                                                                                                              \
        SECOND_LOOK(name, (a += length, b += length), num_##name##_try32(a[i], b[i]), num_##name##_again32(a[i], b[i]))       \
    }

#define KERNEL_OWN_logaddexp_f32 ~, KERNEL_NONE
SECOND_LOOK_2(logaddexp)

#include "kernels_arc.h"

/* The shared shape of float32 and bfloat16 remainder: a quotient of 2^49 or more takes a loop. */
#define KERNEL_OWN_remainder_f32 ~, KERNEL_NONE
SECOND_LOOK_2(remainder)

#define KERNEL_OWN_remainder_bf16 ~, KERNEL_NONE
static void loop_remainder_bf16(KERNEL_ARGUMENTS) {
    t_bf16 *result = out;
    const t_bf16 *a = x, *b = y;
    (void)z;
    while (n > 0) {
        uint16_t block[KERNEL_BLOCK];
        uint32_t large[KERNEL_BLOCK], any = 0;
        int length = n < KERNEL_BLOCK ? (int)n : KERNEL_BLOCK;
        _Pragma("omp simd reduction(|:any)") for (int i = 0; i < length; i++) {
            large[i] = (uint32_t)num_remainder_large(num_widen_bf16(a[i]), num_widen_bf16(b[i]));
            any |= large[i];
            block[i] = num_narrow_bf16(num_remainder_small32(num_widen_bf16(a[i]), num_widen_bf16(b[i])));
        }
        for (int i = 0; any && i < length; i++)
            if (large[i]) block[i] = num_narrow_bf16(num_remainder_large32(num_widen_bf16(a[i]), num_widen_bf16(b[i])));
        memcpy(result, block, (size_t)length * sizeof *block);
        result += length, a += length, b += length, n -= (size_t)length;
    }
}

/* A float16 quotient is below 2^42. */
#define KERNEL_OWN_remainder_f16 ~, KERNEL_NONE
static void loop_remainder_f16(KERNEL_ARGUMENTS) {
    t_f16 *result = out;
    const t_f16 *a = x, *b = y;
    (void)z;
    KERNEL_LOOP result[i] = num_narrow_f16(num_remainder_small32(num_widen_f16(a[i]), num_widen_f16(b[i])));
}

#endif
