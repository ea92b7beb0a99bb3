/* bfloat16 sigmoid and softplus of long runs by tables, for AVX-512, whose gathers are faster than the arithmetic.
 *
 * A table has an entry for each magnitude between TABLE_LOW, below which neither function changes, and TABLE_HIGH, above which
 * sigmoid does not and softplus is x or 0: 2,621, for either sign. They are filled by the arithmetic when a process makes its
 * first device (kernel_table's prepare). Short runs, a few tokens that come once in a while, would only wait for the table's
 * memory. */
#ifndef OL_CPU_KERNELS_BF16_TABLE_H
#define OL_CPU_KERNELS_BF16_TABLE_H

#include <immintrin.h>

#define TABLE_LOW 0x3880                         /* 2^-14 */
#define TABLE_HIGH 0x42bc                        /* NUM_CLAMP_BF16 */
#define TABLE_SIGN (TABLE_HIGH - TABLE_LOW + 1)  /* where negative x start */
#define TABLE_MIN_RUN 1024

#define KERNELS_PREPARE fill_bf16_tables

typedef struct bf16_table {
    uint16_t entries[2 * TABLE_SIGN + 1];        /* a gather reads two */
} bf16_table;

static bf16_table sigmoid_table, softplus_table;

static void fill_bf16_tables(void) {
    for (uint16_t i = 0; i < TABLE_SIGN; i++) {
        uint16_t x = (uint16_t)(TABLE_LOW + i), minus_x = x | 0x8000u;
        sigmoid_table.entries[i] = num_sigmoid_bf16(x);
        sigmoid_table.entries[TABLE_SIGN + i] = num_sigmoid_bf16(minus_x);
        softplus_table.entries[i] = num_softplus_bf16(x);
        softplus_table.entries[TABLE_SIGN + i] = num_softplus_bf16(minus_x);
    }
}

/* Thirty-two elements; of a NaN, an entry. */
static inline __attribute__((always_inline)) __m512i look_up(const bf16_table *table, __m512i x, __m512i magnitude) {
    __m512i index = _mm512_max_epu16(magnitude, _mm512_set1_epi16(TABLE_LOW));
    index = _mm512_sub_epi16(_mm512_min_epu16(index, _mm512_set1_epi16(TABLE_HIGH)), _mm512_set1_epi16(TABLE_LOW));
    index = _mm512_mask_add_epi16(index, _mm512_movepi16_mask(x), index, _mm512_set1_epi16(TABLE_SIGN));
    __m512i lower = _mm512_i32gather_epi32(_mm512_and_si512(index, _mm512_set1_epi32(0xffff)), table->entries, 2);
    __m512i upper = _mm512_i32gather_epi32(_mm512_srli_epi32(index, 16), table->entries, 2);
    return _mm512_mask_blend_epi16(0xaaaaaaaau, lower, _mm512_slli_epi32(upper, 16));
}

static inline __attribute__((always_inline)) __m512i nan_where_bf16(__m512i magnitude, __m512i result) {
    return _mm512_mask_mov_epi16(result, _mm512_cmpgt_epu16_mask(magnitude, _mm512_set1_epi16(0x7f80)),
                                 _mm512_set1_epi16(NUM_NAN_BITS_BF16));
}

static inline __attribute__((always_inline)) __m512i look_up_sigmoid(__m512i x) {
    __m512i magnitude = _mm512_and_si512(x, _mm512_set1_epi16(0x7fff));
    return nan_where_bf16(magnitude, look_up(&sigmoid_table, x, magnitude));
}

static inline __attribute__((always_inline)) __m512i look_up_softplus(__m512i x) {
    __m512i magnitude = _mm512_and_si512(x, _mm512_set1_epi16(0x7fff));
    __m512i y = look_up(&softplus_table, x, magnitude);
    y = _mm512_mask_mov_epi16(y, _mm512_cmpgt_epi16_mask(x, _mm512_set1_epi16(TABLE_HIGH)), x);
    return nan_where_bf16(magnitude, y);
}

static void chunks_sigmoid_by_table_bf16(KERNEL_ARGUMENTS) {
    (void)y, (void)z;
    for (size_t i = 0; i < n; i += HALF_CHUNK)
        _mm512_storeu_si512((t_bf16 *)out + i, look_up_sigmoid(_mm512_loadu_si512((const t_bf16 *)x + i)));
}

static void chunks_softplus_by_table_bf16(KERNEL_ARGUMENTS) {
    (void)y, (void)z;
    for (size_t i = 0; i < n; i += HALF_CHUNK)
        _mm512_storeu_si512((t_bf16 *)out + i, look_up_softplus(_mm512_loadu_si512((const t_bf16 *)x + i)));
}

static void chunks_softplus_add_by_table_bf16(KERNEL_ARGUMENTS) {
    (void)z;
    add_then(chunks_softplus_by_table_bf16, out, x, y, n);
}

#endif
