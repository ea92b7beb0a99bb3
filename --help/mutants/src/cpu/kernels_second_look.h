/* Loops of functions that leave an element open now and then: num_<name>_try32, or num_<name>_try_for_<16-bit dtype>, which has no
 * branch, gives a result or leaves it open (num_tried32); num_<name>_again32 (_again_for_<dtype>) is for those, one by one. The
 * functions for 16-bit dtypes take float32 and give a float32 that is still to be narrowed. num_<name>_<dtype> does the same for
 * one element. */
#ifndef OL_CPU_KERNELS_SECOND_LOOK_H
#define OL_CPU_KERNELS_SECOND_LOOK_H

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

#define SECOND_LOOK_HALF(dt, WIDEN, TRY, AGAIN)                                                                               \
    while (n > 0) {                                                                                                           \
        float a[HALF_BLOCK], b[HALF_BLOCK], c[HALF_BLOCK], block[HALF_BLOCK];                                                 \
        uint32_t open[HALF_BLOCK], any = 0;                                                                                   \
        int length = n < HALF_BLOCK ? (int)n : HALF_BLOCK, padded = half_padded(length);                                      \
        (void)b, (void)c;                                                                                                     \
        WIDEN;                                                                                                                \
        _Pragma("omp simd reduction(|:any)") for (int i = 0; i < padded; i++) {                                               \
            num_tried32 tried = TRY;                                                                                          \
            open[i] = tried.open;                                                                                             \
            any |= tried.open;                                                                                                \
            block[i] = tried.value;                                                                                           \
        }                                                                                                                     \
        for (int i = 0; any && i < padded; i++)                                                                               \
            if (open[i]) block[i] = AGAIN;                                                                                    \
        narrow_block_##dt(result, block, length);                                                                             \
        result += length, n -= (size_t)length;                                                                                \
    }

#define SECOND_LOOK_HALF_2(name, dt)                                                                                          \
    static void loop_##name##_##dt(KERNEL_ARGUMENTS) {                                                                        \
        t_##dt *result = out;                                                                                                 \
        const t_##dt *p = x, *q = y;                                                                                          \
        (void)z;                                                                                                              \
        SECOND_LOOK_HALF(dt, (widen_block_##dt(a, p, length), widen_block_##dt(b, q, length), p += length, q += length),      \
                         num_##name##_try_for_##dt(a[i], b[i]), num_##name##_again_for_##dt(a[i], b[i]))                      \
    }

#define SECOND_LOOK_HALF_3(name, dt)                                                                                          \
    static void loop_##name##_##dt(KERNEL_ARGUMENTS) {                                                                        \
        t_##dt *result = out;                                                                                                 \
        const t_##dt *p = x, *q = y, *r = z;                                                                                  \
        SECOND_LOOK_HALF(dt, (widen_block_##dt(a, p, length), widen_block_##dt(b, q, length), widen_block_##dt(c, r, length), \
                              p += length, q += length, r += length),                                                         \
                         num_##name##_try_for_##dt(a[i], b[i], c[i]), num_##name##_again_for_##dt(a[i], b[i], c[i]))          \
    }

#endif
