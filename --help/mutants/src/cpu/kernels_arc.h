/* arctan2: fast passes over blocks, then a second look at what they leave open (num_arctan2.h). */
#ifndef OL_CPU_KERNELS_ARC_H
#define OL_CPU_KERNELS_ARC_H

#define KERNEL_OWN_arctan2_f32 ~, KERNEL_NONE
SECOND_LOOK_2(arctan2)

/* float16, in blocks made of what is widened at a time, by the hardware where it can. Long blocks, since each that has an open
 * element costs branches that are guessed wrong. */
#define ARCTAN2_BLOCK 256

#define KERNEL_OWN_arctan2_f16 ~, KERNEL_NONE
static void loop_arctan2_f16(KERNEL_ARGUMENTS) {
    t_f16 *result = out;
    const t_f16 *p = x, *q = y;
    (void)z;
    while (n > 0) {
        _Alignas(64) float a[ARCTAN2_BLOCK], b[ARCTAN2_BLOCK], block[ARCTAN2_BLOCK];
        _Alignas(64) uint32_t open[ARCTAN2_BLOCK];
        uint32_t any = 0;
        int length = n < ARCTAN2_BLOCK ? (int)n : ARCTAN2_BLOCK, padded = half_padded(length);
        widen_block_f16(a, p, length);
        widen_block_f16(b, q, length);
        _Pragma("omp simd reduction(|:any)") for (int i = 0; i < padded; i++) {
            num_tried32 tried = num_arctan2_try_for_f16(a[i], b[i]);
            open[i] = tried.open;
            any |= tried.open;
            block[i] = tried.value;
        }
        for (int i = 0; any && i < padded; i++)
            if (open[i]) block[i] = num_arctan2_again_for_f16(a[i], b[i]);
        narrow_block_f16(result, block, length);
        result += length, p += length, q += length, n -= (size_t)length;
    }
}

/* bfloat16, in words (kernels_bf16.h), an open one looked at again as a whole. What is decided is no tie. */
#define KERNEL_OWN_arctan2_bf16 ~, KERNEL_NONE
static void loop_arctan2_bf16(KERNEL_ARGUMENTS) {
    t_word *result = out;
    const t_word *p = x, *q = y;
    (void)z;
    for (size_t words = n / 2; words > 0;) {
        _Alignas(64) uint32_t block[KERNEL_BLOCK], open[KERNEL_BLOCK];
        uint32_t any = 0;
        int length = words < KERNEL_BLOCK ? (int)words : KERNEL_BLOCK;
        _Pragma("omp simd reduction(|:any)") for (int i = 0; i < length; i++) {
            num_tried32 lower = num_arctan2_try_for_bf16(lower_bf16(p[i]), lower_bf16(q[i]));
            num_tried32 upper = num_arctan2_try_for_bf16(upper_bf16(p[i]), upper_bf16(q[i]));
            open[i] = lower.open | upper.open;
            any |= open[i];
            block[i] = join_untied_bf16(num_canonical32(lower.value), num_canonical32(upper.value));
        }
        for (int i = 0; any && i < length; i++)
            if (open[i])
                block[i] = num_arctan2_bf16((uint16_t)p[i], (uint16_t)q[i]) |
                           (uint32_t)num_arctan2_bf16((uint16_t)(p[i] >> 16), (uint16_t)(q[i] >> 16)) << 16;
        memcpy(result, block, (size_t)length * sizeof *block);
        result += length, p += length, q += length, words -= (size_t)length;
    }
    if (n & 1) ((t_bf16 *)out)[n - 1] = num_arctan2_bf16(((const t_bf16 *)x)[n - 1], ((const t_bf16 *)y)[n - 1]);
}

#endif
