/* Which 16-bit functions of one operand this level looks up in long runs (table16.h): all whose arithmetic is slower there than
 * three or four elements per ns, which is what looking up comes to. KERNEL_TABLED_<primitive>_<dtype> is `~, 1` for these. */
#ifndef OL_CPU_KERNELS_TABLE16_H
#define OL_CPU_KERNELS_TABLE16_H

#include "table16.h"

#define KERNEL_TABLED_rsqrt_f16 ~, 1
#define KERNEL_TABLED_rsqrt_bf16 ~, 1
#define KERNEL_TABLED_exp_f16 ~, 1
#define KERNEL_TABLED_exp_bf16 ~, 1
#define KERNEL_TABLED_exp2_f16 ~, 1
#define KERNEL_TABLED_exp2_bf16 ~, 1
#define KERNEL_TABLED_expm1_f16 ~, 1
#define KERNEL_TABLED_expm1_bf16 ~, 1
#define KERNEL_TABLED_log_f16 ~, 1
#define KERNEL_TABLED_log_bf16 ~, 1
#define KERNEL_TABLED_log2_f16 ~, 1
#define KERNEL_TABLED_log2_bf16 ~, 1
#define KERNEL_TABLED_log10_f16 ~, 1
#define KERNEL_TABLED_log10_bf16 ~, 1
#define KERNEL_TABLED_log1p_f16 ~, 1
#define KERNEL_TABLED_log1p_bf16 ~, 1
#define KERNEL_TABLED_sigmoid_f16 ~, 1
#define KERNEL_TABLED_sigmoid_bf16 ~, 1
#define KERNEL_TABLED_softplus_f16 ~, 1
#define KERNEL_TABLED_softplus_bf16 ~, 1
#define KERNEL_TABLED_silu_f16 ~, 1
#define KERNEL_TABLED_silu_bf16 ~, 1
#define KERNEL_TABLED_tanh_f16 ~, 1
#define KERNEL_TABLED_tanh_bf16 ~, 1
#define KERNEL_TABLED_sin_f16 ~, 1
#define KERNEL_TABLED_sin_bf16 ~, 1
#define KERNEL_TABLED_cos_f16 ~, 1
#define KERNEL_TABLED_cos_bf16 ~, 1
#define KERNEL_TABLED_tan_f16 ~, 1
#define KERNEL_TABLED_tan_bf16 ~, 1
#define KERNEL_TABLED_sinh_f16 ~, 1
#define KERNEL_TABLED_sinh_bf16 ~, 1
#define KERNEL_TABLED_cosh_f16 ~, 1
#define KERNEL_TABLED_cosh_bf16 ~, 1
#define KERNEL_TABLED_arcsin_f16 ~, 1
#define KERNEL_TABLED_arcsin_bf16 ~, 1
#define KERNEL_TABLED_arccos_f16 ~, 1
#define KERNEL_TABLED_arccos_bf16 ~, 1
#define KERNEL_TABLED_arctan_f16 ~, 1
#define KERNEL_TABLED_arctan_bf16 ~, 1
#define KERNEL_TABLED_arcsinh_f16 ~, 1
#define KERNEL_TABLED_arcsinh_bf16 ~, 1
#define KERNEL_TABLED_arccosh_f16 ~, 1
#define KERNEL_TABLED_arccosh_bf16 ~, 1
#define KERNEL_TABLED_arctanh_f16 ~, 1
#define KERNEL_TABLED_arctanh_bf16 ~, 1
#define KERNEL_TABLED_erf_f16 ~, 1
#define KERNEL_TABLED_erf_bf16 ~, 1
#define KERNEL_TABLED_erfinv_f16 ~, 1
#define KERNEL_TABLED_erfinv_bf16 ~, 1

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

/* In 32 bits, of which the lower 16 are the entry, and two elements a lane; or by words of four, which saves loads. What is stored
 * may be what was to be loaded, but not before it is. */
static void look_up_16(const uint16_t *table, void *out, const void *x, size_t n) {
    t_u16 *result = out;
    const t_u16 *p = x;
    size_t i = 0;
#if defined(__AVX2__)
    for (; i + 16 <= n; i += 16) {
        __m256i words = _mm256_loadu_si256((const __m256i *)(p + i));
        __m256i lower = _mm256_i32gather_epi32((const int *)table, _mm256_and_si256(words, _mm256_set1_epi32(0xffff)), 2);
        __m256i upper = _mm256_i32gather_epi32((const int *)table, _mm256_srli_epi32(words, 16), 2);
        _mm256_storeu_si256((__m256i *)(result + i), _mm256_blend_epi16(lower, _mm256_slli_epi32(upper, 16), 0xaa));
    }
#else
    for (; i + 4 <= n; i += 4) {
        uint64_t word;
        memcpy(&word, p + i, sizeof word);
        result[i] = table[word & 0xffff];
        result[i + 1] = table[word >> 16 & 0xffff];
        result[i + 2] = table[word >> 32 & 0xffff];
        result[i + 3] = table[word >> 48];
    }
#endif
    for (; i < n; i++) result[i] = table[p[i]];
}

#define TABLED_0(name, dt)
#define TABLED_1(name, dt)                                                                                                    \
    static void tabled_##name##_##dt(KERNEL_ARGUMENTS) {                                                                      \
        (void)y, (void)z;                                                                                                     \
        table16_run(TABLE16_##name##_##dt, loop_##name##_##dt, look_up_16, out, x, n);                                        \
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
