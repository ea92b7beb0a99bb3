/* bfloat16 loops over words of two elements: the upper element is a float32 once the lower one is masked off, the lower one
 * once it is shifted up, so nothing has to be unpacked or packed. For little-endian machines, which all levels are.
 *
 * The float32 expressions give canonical NaN, which the rounding keeps. */
#ifndef OL_CPU_KERNELS_BF16_H
#define OL_CPU_KERNELS_BF16_H

typedef uint32_t __attribute__((__may_alias__, __aligned__(2))) t_word;

static inline float lower_bf16(uint32_t word) { return num_from_bits32(word << 16); }
static inline float upper_bf16(uint32_t word) { return num_from_bits32(word & 0xffff0000u); }

static inline uint32_t join_bf16(float lower, float upper) {
    uint32_t l = num_bits32(lower), u = num_bits32(upper);
    l += l & 0x10000u ? 0x8000u : 0x7fffu;
    u += u & 0x10000u ? 0x8000u : 0x7fffu;
    return (l >> 16) | (u & 0xffff0000u);
}

/* For functions whose results are never halfway between two bfloat16, as exp's and its kin's, and whose float32 evaluation
 * never is either (that of log is, for one input): half up. The proof runs all of them. */
static inline uint32_t join_untied_bf16(float lower, float upper) {
    return ((num_bits32(lower) + 0x8000u) >> 16) | ((num_bits32(upper) + 0x8000u) & 0xffff0000u);
}

#define BF16_1(name, join, EXPRESSION)                                                                                        \
    static inline __attribute__((always_inline)) float float_##name##_bf16(float a) { return EXPRESSION; }                    \
    static void loop_##name##_bf16(KERNEL_ARGUMENTS) {                                                                        \
        t_word *result = out;                                                                                                 \
        const t_word *p = x;                                                                                                  \
        (void)y, (void)z;                                                                                                     \
        _Pragma("omp simd") for (size_t i = 0; i < n / 2; i++)                                                                \
            result[i] = join(float_##name##_bf16(lower_bf16(p[i])), float_##name##_bf16(upper_bf16(p[i])));                   \
        if (n & 1) ((t_bf16 *)out)[n - 1] = num_##name##_bf16(((const t_bf16 *)x)[n - 1]);                                    \
    }

#define BF16_2(name, EXPRESSION)                                                                                              \
    static inline __attribute__((always_inline)) float float_##name##_bf16(float a, float b) { return EXPRESSION; }           \
    static void loop_##name##_bf16(KERNEL_ARGUMENTS) {                                                                        \
        t_word *result = out;                                                                                                 \
        const t_word *p = x, *q = y;                                                                                          \
        (void)z;                                                                                                              \
        _Pragma("omp simd") for (size_t i = 0; i < n / 2; i++)                                                                \
            result[i] = join_bf16(float_##name##_bf16(lower_bf16(p[i]), lower_bf16(q[i])),                                    \
                                  float_##name##_bf16(upper_bf16(p[i]), upper_bf16(q[i])));                                   \
        if (n & 1) ((t_bf16 *)out)[n - 1] = num_##name##_bf16(((const t_bf16 *)x)[n - 1], ((const t_bf16 *)y)[n - 1]);        \
    }

#define KERNEL_OWN_square_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_floor_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_ceil_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_round_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_sqrt_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_rsqrt_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_reciprocal_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_exp_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_expm1_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_log_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_log1p_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_sigmoid_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_softplus_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_tanh_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_exp2_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_log2_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_log10_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_silu_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_sin_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_cos_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_tan_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_sinh_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_cosh_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_arcsin_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_arccos_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_arctan_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_arcsinh_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_arccosh_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_arctanh_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_erf_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_erfinv_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_add_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_subtract_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_multiply_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_divide_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_power_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_hypot_bf16 ~, KERNEL_NONE

BF16_1(square, join_bf16, num_square_f32(a))
BF16_1(floor, join_bf16, num_floor_f32(a))
BF16_1(ceil, join_bf16, num_ceil_f32(a))
BF16_1(round, join_bf16, num_round_f32(a))
BF16_1(sqrt, join_bf16, num_sqrt_f32(a))
BF16_1(rsqrt, join_bf16, num_canonical32(num_rsqrt_for_half(a)))
BF16_1(reciprocal, join_bf16, num_reciprocal_f32(a))
BF16_1(exp, join_untied_bf16, num_unless_nan32(a, num_exp_for_bf16(a)))
BF16_1(expm1, join_untied_bf16, num_unless_nan32(a, num_expm1_for_bf16(a)))
BF16_1(log, join_bf16, num_log_special32(a, num_log_for_bf16(a)))
BF16_1(log1p, join_untied_bf16, num_log1p_special32(a, num_log1p_for_bf16(a)))
BF16_1(tanh, join_untied_bf16, num_unless_nan32(a, num_tanh_for_bf16(a)))
BF16_1(exp2, join_bf16, num_unless_nan32(a, num_canonical32(num_exp2_for_bf16(a))))
BF16_1(log2, join_bf16, num_unless_nan32(a, num_canonical32(num_log2_for_bf16(a))))
BF16_1(log10, join_bf16, num_unless_nan32(a, num_canonical32(num_log10_for_bf16(a))))
BF16_1(silu, join_bf16, num_unless_nan32(a, num_canonical32(num_silu_for_bf16(a))))
BF16_1(sin, join_bf16, num_unless_nan32(a, num_canonical32(num_sin_for_bf16(a))))
BF16_1(cos, join_bf16, num_unless_nan32(a, num_canonical32(num_cos_for_bf16(a))))
BF16_1(tan, join_bf16, num_unless_nan32(a, num_canonical32(num_tan_for_bf16(a))))
BF16_1(sinh, join_bf16, num_unless_nan32(a, num_canonical32(num_sinh_for_bf16(a))))
BF16_1(cosh, join_bf16, num_unless_nan32(a, num_canonical32(num_cosh_for_bf16(a))))
BF16_1(arcsin, join_bf16, num_unless_nan32(a, num_canonical32(num_arcsin_for_bf16(a))))
BF16_1(arccos, join_bf16, num_unless_nan32(a, num_canonical32(num_arccos_for_bf16(a))))
BF16_1(arctan, join_bf16, num_unless_nan32(a, num_canonical32(num_arctan_for_bf16(a))))
BF16_1(arcsinh, join_bf16, num_unless_nan32(a, num_canonical32(num_arcsinh_for_bf16(a))))
BF16_1(arccosh, join_bf16, num_unless_nan32(a, num_canonical32(num_arccosh_for_bf16(a))))
BF16_1(arctanh, join_bf16, num_unless_nan32(a, num_canonical32(num_arctanh_for_bf16(a))))
BF16_1(erf, join_bf16, num_unless_nan32(a, num_canonical32(num_erf_for_bf16(a))))
BF16_1(erfinv, join_bf16, num_unless_nan32(a, num_canonical32(num_erfinv_for_bf16(a))))
BF16_2(add, num_add_f32(a, b))
BF16_2(subtract, num_subtract_f32(a, b))
BF16_2(multiply, num_multiply_f32(a, b))
BF16_2(divide, num_divide_f32(a, b))
BF16_2(power, num_canonical32(num_power_for_bf16(a, b)))
BF16_2(hypot, num_canonical32(num_hypot_for_bf16(a, b)))

/* sigmoid and softplus, in blocks: what works on bits (clamping magnitudes, putting NaN back) has loops of its own over 16-bit
 * elements, twice as many to a vector as words. Of a NaN the arithmetic makes some number. */
#define BF16_BLOCK 512
#define BF16_CLAMP 0x42bc                        /* NUM_CLAMP_BF16 */

static inline void clamp_magnitudes_bf16(uint16_t *magnitude, const t_bf16 *x, size_t n) {
    KERNEL_LOOP {
        uint16_t m = x[i] & 0x7fffu;
        magnitude[i] = m > BF16_CLAMP ? BF16_CLAMP : m;
    }
}

static inline void restore_nan_bf16(t_bf16 *result, const t_bf16 *x, const uint16_t *numbers, size_t n) {
    KERNEL_LOOP result[i] = (x[i] & 0x7fffu) > 0x7f80u ? NUM_NAN_BITS_BF16 : numbers[i];
}

/* One division for the two elements of a word: it is what the loop would wait for. */
static inline void sigmoid_block_bf16(t_bf16 *result, const t_bf16 *x, size_t n) {
    _Alignas(64) uint16_t magnitude[BF16_BLOCK], numbers[BF16_BLOCK];
    const t_word *words = (const t_word *)x, *magnitudes = (const t_word *)magnitude;
    t_word *joined = (t_word *)numbers;
    clamp_magnitudes_bf16(magnitude, x, n);
    _Pragma("omp simd") for (size_t i = 0; i < n / 2; i++) {
        num_quotient32 q = num_sigmoid_quotient_for_bf16(lower_bf16(magnitudes[i]), (words[i] & 0x8000u) != 0);
        num_quotient32 r = num_sigmoid_quotient_for_bf16(upper_bf16(magnitudes[i]), (int32_t)words[i] < 0);
        float inverse = 1.0f / (q.denominator * r.denominator);
        joined[i] = join_untied_bf16(q.numerator * r.denominator * inverse, r.numerator * q.denominator * inverse);
    }
    restore_nan_bf16(result, x, numbers, n);
}

static inline void softplus_block_bf16(t_bf16 *result, const t_bf16 *x, size_t n) {
    _Alignas(64) uint16_t magnitude[BF16_BLOCK], positive[BF16_BLOCK], numbers[BF16_BLOCK];
    const t_word *magnitudes = (const t_word *)magnitude, *positives = (const t_word *)positive;
    t_word *joined = (t_word *)numbers;
    clamp_magnitudes_bf16(magnitude, x, n);
    KERNEL_LOOP positive[i] = (int16_t)x[i] < 0 ? 0 : x[i];
    _Pragma("omp simd") for (size_t i = 0; i < n / 2; i++)
        joined[i] = join_untied_bf16(num_softplus_parts_for_bf16(lower_bf16(magnitudes[i]), lower_bf16(positives[i])),
                                     num_softplus_parts_for_bf16(upper_bf16(magnitudes[i]), upper_bf16(positives[i])));
    restore_nan_bf16(result, x, numbers, n);
}

/* x + y, rounded; of a NaN any. A NaN sum has the payload of an operand, or none: rounding leaves it NaN. */
static inline void add_block_bf16(uint16_t *sum, const t_bf16 *x, const t_bf16 *y, size_t n) {
    const t_word *a = (const t_word *)x, *b = (const t_word *)y;
    t_word *joined = (t_word *)sum;
    _Pragma("omp simd") for (size_t i = 0; i < n / 2; i++)
        joined[i] = join_bf16(lower_bf16(a[i]) + lower_bf16(b[i]), upper_bf16(a[i]) + upper_bf16(b[i]));
}

#if defined(__AVX512BW__)
#include "kernels_bf16_table.h"
#define BF16_BY_TABLE(n) ((n) >= TABLE_MIN_RUN)
#else
#define BF16_BY_TABLE(n) 0
#define sigmoid_by_table_bf16 sigmoid_block_bf16
#define softplus_by_table_bf16 softplus_block_bf16
#endif

/* The next block of n > 1 elements: an even number. The last of an odd number goes by itself. */
static inline size_t bf16_block(size_t n) { return n < BF16_BLOCK ? n & ~(size_t)1 : BF16_BLOCK; }

/* The loop of name_block_bf16, and of name_by_table_bf16 for the whole blocks of a long run. */
#define BF16_BLOCKED(name)                                                                                                    \
    static inline void name##_either_bf16(t_bf16 *result, const t_bf16 *x, size_t length, int by_table) {                     \
        if (by_table && length == BF16_BLOCK)                                                                                 \
            name##_by_table_bf16(result, x, length);                                                                          \
        else                                                                                                                  \
            name##_block_bf16(result, x, length);                                                                             \
    }                                                                                                                         \
    static void loop_##name##_bf16(KERNEL_ARGUMENTS) {                                                                        \
        t_bf16 *result = out;                                                                                                 \
        const t_bf16 *p = x;                                                                                                  \
        int by_table = BF16_BY_TABLE(n);                                                                                      \
        (void)y, (void)z;                                                                                                     \
        for (size_t length; n > 1; result += length, p += length, n -= length) {                                              \
            length = bf16_block(n);                                                                                           \
            name##_either_bf16(result, p, length, by_table);                                                                  \
        }                                                                                                                     \
        if (n) *result = num_##name##_bf16(*p);                                                                               \
    }

BF16_BLOCKED(sigmoid)
BF16_BLOCKED(softplus)

/* Of two nodes (kernels_fused.h): the sum is rounded, and stays in a block. */
static void loop_softplus_add_bf16(KERNEL_ARGUMENTS) {
    t_bf16 *result = out;
    const t_bf16 *p = x, *q = y;
    int by_table = BF16_BY_TABLE(n);
    (void)z;
    for (size_t length; n > 1; result += length, p += length, q += length, n -= length) {
        _Alignas(64) uint16_t sum[BF16_BLOCK];
        length = bf16_block(n);
        add_block_bf16(sum, p, q, length);
        softplus_either_bf16(result, sum, length, by_table);
    }
    if (n) *result = num_softplus_bf16(num_add_bf16(*p, *q));
}

#endif
