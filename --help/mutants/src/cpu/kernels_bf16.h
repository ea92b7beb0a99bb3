/* bfloat16 loops made of those of kernels_half.h: sigmoid and softplus, which have tables on AVX-512; sin, cos and tan, of which
 * some elements are looked at again. */
#ifndef OL_CPU_KERNELS_BF16_H
#define OL_CPU_KERNELS_BF16_H

#define KERNEL_OWN_sigmoid_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_softplus_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_sin_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_cos_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_tan_bf16 ~, KERNEL_NONE

HALF_CHUNKS(1, sigmoid_computed, bf16, num_sigmoid_for_bf16(a[i]), HALF_SPECIAL(bf16, untied, unless_nan))
HALF_CHUNKS(1, softplus_computed, bf16, num_softplus_for_bf16(a[i]), HALF_SPECIAL(bf16, untied, unless_nan))

/* Of two nodes (kernels_fused.h): the sum is rounded, and stays in a chunk. A NaN sum has the payload of an operand, or none:
 * rounding leaves it NaN. */
static inline __attribute__((always_inline)) void add_then(kernel_fn chunks, t_bf16 *result, const t_bf16 *p,
                                                            const t_bf16 *q, size_t n) {
    for (size_t done = 0; done < n; done += HALF_CHUNK) {
        float a[HALF_CHUNK], b[HALF_CHUNK], value[HALF_CHUNK];
        t_bf16 sum[HALF_CHUNK];
        widen_chunk_bf16(a, p + done);
        widen_chunk_bf16(b, q + done);
        KERNEL_EACH(HALF_CHUNK) value[i] = a[i] + b[i];
        narrow_tied_chunk_bf16(sum, value);
        chunks(result + done, sum, NULL, NULL, HALF_CHUNK);
    }
}

static void chunks_softplus_add_computed_bf16(KERNEL_ARGUMENTS) {
    (void)z;
    add_then(chunks_softplus_computed_bf16, out, x, y, n);
}

#if defined(__AVX512BW__)
#include "kernels_bf16_table.h"
#define BF16_PICK(name, n) ((n) < TABLE_MIN_RUN ? chunks_##name##_computed_bf16 : chunks_##name##_by_table_bf16)
#else
#define BF16_PICK(name, n) chunks_##name##_computed_bf16
#endif

static void loop_sigmoid_bf16(KERNEL_ARGUMENTS) { half_by_chunks(BF16_PICK(sigmoid, n), 1, out, x, y, z, n); }
static void loop_softplus_bf16(KERNEL_ARGUMENTS) { half_by_chunks(BF16_PICK(softplus, n), 1, out, x, y, z, n); }
static void loop_softplus_add_bf16(KERNEL_ARGUMENTS) { half_by_chunks(BF16_PICK(softplus_add, n), 2, out, x, y, z, n); }

/* sin, cos, tan, in blocks: name_below_for_bf16, then a second look at arguments of 2^16 or more where a block has any. */
#define BF16_BLOCK 512

static inline int any_large_bf16(const t_bf16 *x, size_t n) {
    uint16_t any = 0;
    _Pragma("omp simd reduction(|:any)") for (size_t i = 0; i < n; i++) any |= (x[i] & 0x7fffu) + (0x8000u - NUM_TRIG_LARGE_BF16);
    return any >> 15;
}

#define BF16_TRIGONOMETRIC(name)                                                                                              \
    HALF_LOOP(1, name##_below, bf16, num_canonical32(num_##name##_below_for_bf16(a[i])), narrow_decided_chunk_bf16(result, value))\
    static void loop_##name##_bf16(KERNEL_ARGUMENTS) {                                                                        \
        t_bf16 *result = out;                                                                                                 \
        const t_bf16 *p = x;                                                                                                  \
        (void)y, (void)z;                                                                                                     \
        for (size_t length; n > 0; result += length, p += length, n -= length) {                                              \
            _Alignas(64) uint16_t numbers[BF16_BLOCK];                                                                        \
            length = n < BF16_BLOCK ? n : BF16_BLOCK;                                                                         \
            loop_##name##_below_bf16(numbers, p, NULL, NULL, length);                                                         \
            if (any_large_bf16(p, length))                                                                                    \
                for (size_t i = 0; i < length; i++)                                                                           \
                    if (num_trig_large_for_bf16(num_widen_bf16(p[i]))) numbers[i] = num_##name##_bf16(p[i]);                  \
            memcpy(result, numbers, length * sizeof *numbers);                                                                \
        }                                                                                                                     \
    }

BF16_TRIGONOMETRIC(sin)
BF16_TRIGONOMETRIC(cos)
BF16_TRIGONOMETRIC(tan)

#endif
