/* The rates as an engineer would write them by hand for one layer: one loop over the elements, everything fused, the library's
 * own scalar arithmetic (src/numerics), exp(A_log) taken once per call. It is compiled once per SIMD level with exactly the
 * flags of that level's kernels. A replay differs from it in structure, and in arithmetic where a level has kernels of its own
 * for a primitive (src/cpu/kernels_own.h). Its bits are those of a replay. */
#ifndef BENCH_HAND_LOOP_H
#define BENCH_HAND_LOOP_H

#include <stddef.h>
#include <stdint.h>

#define HAND_LOOP_MAX_HEADS 256

/* [tokens, heads] contiguous; A_log and dt_bias are [heads]; heads <= HAND_LOOP_MAX_HEADS. The decay is always float32. */
#define HAND_LOOP_DECLARE(level)                                                                                              \
    void hand_loop_f32_##level(float *beta, float *decay, const float *b, const float *a, const float *A_log,                 \
                               const float *dt_bias, size_t tokens, size_t heads);                                            \
    void hand_loop_bf16_##level(uint16_t *beta, float *decay, const uint16_t *b, const uint16_t *a, const float *A_log,       \
                                const uint16_t *dt_bias, size_t tokens, size_t heads);

HAND_LOOP_DECLARE(baseline)
#if defined(__x86_64__)
HAND_LOOP_DECLARE(avx2)
HAND_LOOP_DECLARE(avx512)
#elif defined(__aarch64__)
HAND_LOOP_DECLARE(neon)
#endif

#endif
