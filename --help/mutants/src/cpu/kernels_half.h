/* Loops of 16-bit floats, in chunks: a chunk of operands is widened into small arrays of float32, the float32 function is
 * evaluated over their fixed length, the results are narrowed. Compilers keep such arrays in registers, so that a chunk is
 * two vectors that touch memory only where the 16-bit elements are; a loop over mixed widths they would not vectorise as well,
 * or not at all. What is left of a run is filled up with zeros.
 *
 * In which order a chunk's elements lie in its arrays is left to the four functions below: bfloat16, and float16 where no
 * instruction converts it, are taken as words of two elements, whose upper one is brought to its place by a mask and whose
 * lower one by a shift, and come first the lower ones, then the upper ones. For little-endian machines, which all levels are.
 *
 * Narrowing: `any` makes a NaN canonical, and is for what arithmetic gives, whose payload is that of a 16-bit operand or none;
 * `tied` is for numbers, and what a NaN becomes does not matter; `untied` for numbers that are never halfway between two
 * bfloat16, as results of exp and its kin are not and their float32 evaluation is not either (that of log is, for one input):
 * there bfloat16 rounds half up. The proof runs all of them. `decided` is `untied` that keeps the canonical NaN. Special values
 * are put in on 16-bit elements, of which a vector holds most. */
#ifndef OL_CPU_KERNELS_HALF_H
#define OL_CPU_KERNELS_HALF_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

typedef uint32_t __attribute__((__may_alias__, __aligned__(2))) t_word;

#if defined(V_LANES)
#define HALF_CHUNK (2 * V_LANES)
#else
#define HALF_CHUNK 8
#endif
#define HALF_WORDS (HALF_CHUNK / 2)

/* ---- bfloat16 -------------------------------------------------------------------------------------------------------- */

static inline float lower_bf16(uint32_t word) { return num_from_bits32(word << 16); }
static inline float upper_bf16(uint32_t word) { return num_from_bits32(word & 0xffff0000u); }

static inline uint32_t join_untied_bf16(float lower, float upper) {
    return ((num_bits32(lower) + 0x8000u) >> 16) | ((num_bits32(upper) + 0x8000u) & 0xffff0000u);
}

static inline void widen_chunk_bf16(float *a, const t_bf16 *x) {
    const t_word *words = (const t_word *)x;
    KERNEL_EACH(HALF_WORDS) a[i] = lower_bf16(words[i]);
    KERNEL_EACH(HALF_WORDS) a[HALF_WORDS + i] = upper_bf16(words[i]);
}

/* Halves apart: the low one carries where it is above 0x8000, or just that and the high one odd. (x + y + 1) >> 1 without
 * overflow is an instruction, which makes the carry the upper bit. */
static inline void narrow_tied_chunk_bf16(t_bf16 *out, const float *value) {
    t_word high[HALF_WORDS], low[HALF_WORDS];
    const t_bf16 *h = (const t_bf16 *)high, *l = (const t_bf16 *)low;
    KERNEL_EACH(HALF_WORDS) {
        uint32_t lower = num_bits32(value[i]), upper = num_bits32(value[HALF_WORDS + i]);
        high[i] = lower >> 16 | (upper & 0xffff0000u);
        low[i] = (lower & 0xffffu) | upper << 16;
    }
    KERNEL_EACH(HALF_CHUNK) {
        uint32_t below_half = (h[i] & 1u) | 0x7ffeu;
        uint16_t carry = (uint16_t)((l[i] + below_half + 1u) >> 1) >> 15;
        out[i] = (uint16_t)(h[i] + carry);
    }
}

static inline void narrow_any_chunk_bf16(t_bf16 *out, const float *value) {
    t_bf16 rounded[HALF_CHUNK];
    narrow_tied_chunk_bf16(rounded, value);
    KERNEL_EACH(HALF_CHUNK) out[i] = num_canonical_bf16(rounded[i]);
}

static inline void narrow_untied_chunk_bf16(t_bf16 *out, const float *value) {
    t_word *words = (t_word *)out;
    KERNEL_EACH(HALF_WORDS) words[i] = join_untied_bf16(value[i], value[HALF_WORDS + i]);
}

/* ---- float16 --------------------------------------------------------------------------------------------------------- */

#if defined(V_LANES)

static inline void widen_chunk_f16(float *a, const t_f16 *x) {
    v_store(a, v_widen_f16(v_load_narrow(x)));
    v_store(a + V_LANES, v_widen_f16(v_load_narrow(x + V_LANES)));
}

static inline void narrow_tied_chunk_f16(t_f16 *out, const float *value) {
    v_store_f16(out, v_load(value), v_load(value + V_LANES));
}

static inline void narrow_any_chunk_f16(t_f16 *out, const float *value) {
    t_f16 converted[HALF_CHUNK];
    narrow_tied_chunk_f16(converted, value);
    KERNEL_EACH(HALF_CHUNK) out[i] = num_canonical_f16(converted[i]);
}

#else

static inline void widen_chunk_f16(float *a, const t_f16 *x) {
    const t_word *words = (const t_word *)x;
    KERNEL_EACH(HALF_WORDS) a[i] = num_widen_upper_f16(words[i] << 16);
    KERNEL_EACH(HALF_WORDS) a[HALF_WORDS + i] = num_widen_upper_f16(words[i]);
}

#if defined(__SSE2__)

/* |x| as a float16, in the lower 16 bits, and 126 << 10 too much. Adding 2^13 times the power of two in |x|, or in the least
 * normal float16, puts the last bit of the result at that of a float32, so that the hardware's addition rounds: the last bits
 * of the sum are the significand, leading 1 included, and the exponent counts from there. 65536 and more, and NaN, become
 * 65536, whose exponent is that of infinity. */
static inline __m128i narrow_magnitudes_f16(__m128 x) {
    const __m128 infinity = _mm_set1_ps(num_inf32());
    __m128 magnitude = _mm_min_ps(_mm_andnot_ps(_mm_set1_ps(-0.0f), x), _mm_set1_ps(0x1p16f));
    __m128 power = _mm_max_ps(_mm_and_ps(magnitude, infinity), _mm_set1_ps(0x1p-14f));
    __m128i shift = _mm_add_epi32(_mm_castps_si128(power), _mm_set1_epi32(13 << 23));
    __m128 sum = _mm_add_ps(magnitude, _mm_castsi128_ps(shift));
    return _mm_add_epi32(_mm_castps_si128(sum), _mm_srli_epi32(shift, 13));
}

/* The upper halves of the elements of a chunk. */
static inline __m128i upper_halves(const float *value) {
    __m128i lower = _mm_loadu_si128((const __m128i *)value), upper = _mm_loadu_si128((const __m128i *)(value + HALF_WORDS));
    return _mm_or_si128(_mm_srli_epi32(lower, 16), _mm_andnot_si128(_mm_set1_epi32(0xffff), upper));
}

static inline __m128i narrow_numbers_f16(const float *value) {
    __m128i lower = narrow_magnitudes_f16(_mm_loadu_ps(value)), upper = narrow_magnitudes_f16(_mm_loadu_ps(value + HALF_WORDS));
    __m128i magnitude = _mm_or_si128(_mm_and_si128(_mm_set1_epi32(0xffff), lower), _mm_slli_epi32(upper, 16));
    magnitude = _mm_sub_epi16(magnitude, _mm_set1_epi16((int16_t)(126 << 10)));
    return _mm_or_si128(magnitude, _mm_and_si128(upper_halves(value), _mm_set1_epi16((int16_t)0x8000)));
}

static inline void narrow_tied_chunk_f16(t_f16 *out, const float *value) {
    _mm_storeu_si128((__m128i *)out, narrow_numbers_f16(value));
}

static inline void narrow_any_chunk_f16(t_f16 *out, const float *value) {
    __m128i magnitude = _mm_and_si128(upper_halves(value), _mm_set1_epi16(0x7fff));
    __m128i nan = _mm_cmpgt_epi16(magnitude, _mm_set1_epi16(0x7f80)), canonical = _mm_set1_epi16(NUM_NAN_BITS_F16);
    __m128i y = _mm_or_si128(_mm_and_si128(nan, canonical), _mm_andnot_si128(nan, narrow_numbers_f16(value)));
    _mm_storeu_si128((__m128i *)out, y);
}

#else

static inline void narrow_any_chunk_f16(t_f16 *out, const float *value) {
    t_word *words = (t_word *)out;
    KERNEL_EACH(HALF_WORDS) words[i] = num_narrow_f16(value[i]) | (uint32_t)num_narrow_f16(value[HALF_WORDS + i]) << 16;
}

static inline void narrow_tied_chunk_f16(t_f16 *out, const float *value) { narrow_any_chunk_f16(out, value); }

#endif
#endif

static inline void narrow_untied_chunk_f16(t_f16 *out, const float *value) { narrow_tied_chunk_f16(out, value); }

static inline void narrow_decided_chunk_f16(t_f16 *out, const float *value) {
#if defined(V_LANES)
    narrow_tied_chunk_f16(out, value);
#else
    narrow_any_chunk_f16(out, value);
#endif
}

static inline void narrow_decided_chunk_bf16(t_bf16 *out, const float *value) { narrow_untied_chunk_bf16(out, value); }

/* The first n < HALF_CHUNK elements of a chunk, the others zeros; and back. By words where those can be masked. */
static inline void load_rest(uint16_t *chunk, const t_u16 *x, size_t n) {
#if defined(V_LANES)
    v_store(chunk, v_load_part(x, n / 2));
    if (n & 1) chunk[n - 1] = x[n - 1];
#else
    memset(chunk, 0, HALF_CHUNK * sizeof *chunk);
    memcpy(chunk, x, n * sizeof *chunk);
#endif
}

static inline void store_rest(t_u16 *out, const t_u16 *chunk, size_t n) {
#if defined(V_LANES)
    v_store_part(out, v_load(chunk), n / 2);
    if (n & 1) out[n - 1] = chunk[n - 1];
#else
    memcpy(out, chunk, n * sizeof *chunk);
#endif
}

/* ---- Blocks, for loops that look again at some elements ------------------------------------------------------------------ */

/* `length` elements to float32 and back, in chunks, the last one filled up with zeros: float32 arithmetic is to run over
 * half_padded(length), and the elements are to be told by their index in the block alone. */
#define HALF_BLOCK 64

static inline int half_padded(int length) { return (length + HALF_CHUNK - 1) & -HALF_CHUNK; }

#define HALF_BLOCK_FUNCTIONS(dt)                                                                                              \
    static inline void widen_block_##dt(float *out, const t_##dt *x, int length) {                                            \
        int whole = length & -HALF_CHUNK;                                                                                     \
        for (int i = 0; i < whole; i += HALF_CHUNK) widen_chunk_##dt(out + i, x + i);                                         \
        if (whole < length) {                                                                                                 \
            t_##dt last[HALF_CHUNK];                                                                                          \
            load_rest(last, x + whole, (size_t)(length - whole));                                                             \
            widen_chunk_##dt(out + whole, last);                                                                              \
        }                                                                                                                     \
    }                                                                                                                         \
    static inline void narrow_block_##dt(t_##dt *out, const float *x, int length) {                                           \
        int whole = length & -HALF_CHUNK;                                                                                     \
        for (int i = 0; i < whole; i += HALF_CHUNK) narrow_any_chunk_##dt(out + i, x + i);                                    \
        if (whole < length) {                                                                                                 \
            t_##dt last[HALF_CHUNK];                                                                                          \
            narrow_any_chunk_##dt(last, x + whole);                                                                           \
            store_rest(out + whole, last, (size_t)(length - whole));                                                          \
        }                                                                                                                     \
    }
HALF_BLOCK_FUNCTIONS(f16)
HALF_BLOCK_FUNCTIONS(bf16)

/* ---- Loops ----------------------------------------------------------------------------------------------------------- */

/* n elements by `chunks`, which takes a multiple of HALF_CHUNK. */
static __attribute__((noinline)) void half_by_chunks(kernel_fn chunks, int arity, KERNEL_ARGUMENTS) {
    size_t rest = n % HALF_CHUNK, whole = n - rest;
    uint16_t operands[3][HALF_CHUNK], results[HALF_CHUNK];
    if (whole) chunks(out, x, y, z, whole);
    if (!rest) return;
    load_rest(operands[0], (const t_u16 *)x + whole, rest);
    if (arity > 1) load_rest(operands[1], (const t_u16 *)y + whole, rest);
    if (arity > 2) load_rest(operands[2], (const t_u16 *)z + whole, rest);
    chunks(results, operands[0], operands[1], operands[2], HALF_CHUNK);
    store_rest((t_u16 *)out + whole, results, rest);
}

/* EXPRESSION is the float32 result of a[i], b[i], c[i]; PUT brings what is in value[] to `result`. */
#define HALF_CHUNKS(arity, name, dt, EXPRESSION, PUT)                                                                         \
    static void chunks_##name##_##dt(KERNEL_ARGUMENTS) {                                                                      \
        t_##dt *result = out;                                                                                                 \
        const t_##dt *p = x;                                                                                                  \
        for (size_t done = 0; done < n; done += HALF_CHUNK, result += HALF_CHUNK, p += HALF_CHUNK) {                          \
            float a[HALF_CHUNK], b[HALF_CHUNK], c[HALF_CHUNK], value[HALF_CHUNK];                                             \
            widen_chunk_##dt(a, p);                                                                                           \
            if (arity > 1) widen_chunk_##dt(b, (const t_##dt *)y + done);                                                     \
            if (arity > 2) widen_chunk_##dt(c, (const t_##dt *)z + done);                                                     \
            (void)b, (void)c;                                                                                                 \
            KERNEL_EACH(HALF_CHUNK) value[i] = EXPRESSION;                                                                    \
            PUT;                                                                                                              \
        }                                                                                                                     \
    }

#define HALF_LOOP(arity, name, dt, EXPRESSION, PUT)                                                                           \
    HALF_CHUNKS(arity, name, dt, EXPRESSION, PUT)                                                                             \
    static void loop_##name##_##dt(KERNEL_ARGUMENTS) { half_by_chunks(chunks_##name##_##dt, arity, out, x, y, z, n); }

/* PUT: narrowed; with special values, too, by num_<special>_<dtype> of the first operand and the number. */
#define HALF_ANY(dt) narrow_any_chunk_##dt(result, value)
#define HALF_SPECIAL(dt, ties, special)                                                                                       \
    t_##dt numbers[HALF_CHUNK];                                                                                               \
    narrow_##ties##_chunk_##dt(numbers, value);                                                                               \
    KERNEL_EACH(HALF_CHUNK) result[i] = num_##special##_##dt(p[i], numbers[i])

#define KERNEL_OWN_square_f16 ~, KERNEL_NONE
#define KERNEL_OWN_floor_f16 ~, KERNEL_NONE
#define KERNEL_OWN_ceil_f16 ~, KERNEL_NONE
#define KERNEL_OWN_round_f16 ~, KERNEL_NONE
#define KERNEL_OWN_sqrt_f16 ~, KERNEL_NONE
#define KERNEL_OWN_rsqrt_f16 ~, KERNEL_NONE
#define KERNEL_OWN_reciprocal_f16 ~, KERNEL_NONE
#define KERNEL_OWN_exp_f16 ~, KERNEL_NONE
#define KERNEL_OWN_expm1_f16 ~, KERNEL_NONE
#define KERNEL_OWN_log_f16 ~, KERNEL_NONE
#define KERNEL_OWN_log1p_f16 ~, KERNEL_NONE
#define KERNEL_OWN_sigmoid_f16 ~, KERNEL_NONE
#define KERNEL_OWN_softplus_f16 ~, KERNEL_NONE
#define KERNEL_OWN_tanh_f16 ~, KERNEL_NONE
#define KERNEL_OWN_exp2_f16 ~, KERNEL_NONE
#define KERNEL_OWN_log2_f16 ~, KERNEL_NONE
#define KERNEL_OWN_log10_f16 ~, KERNEL_NONE
#define KERNEL_OWN_silu_f16 ~, KERNEL_NONE
#define KERNEL_OWN_sin_f16 ~, KERNEL_NONE
#define KERNEL_OWN_cos_f16 ~, KERNEL_NONE
#define KERNEL_OWN_tan_f16 ~, KERNEL_NONE
#define KERNEL_OWN_sinh_f16 ~, KERNEL_NONE
#define KERNEL_OWN_cosh_f16 ~, KERNEL_NONE
#define KERNEL_OWN_arcsin_f16 ~, KERNEL_NONE
#define KERNEL_OWN_arccos_f16 ~, KERNEL_NONE
#define KERNEL_OWN_arctan_f16 ~, KERNEL_NONE
#define KERNEL_OWN_arcsinh_f16 ~, KERNEL_NONE
#define KERNEL_OWN_arccosh_f16 ~, KERNEL_NONE
#define KERNEL_OWN_arctanh_f16 ~, KERNEL_NONE
#define KERNEL_OWN_erf_f16 ~, KERNEL_NONE
#define KERNEL_OWN_erfinv_f16 ~, KERNEL_NONE
#define KERNEL_OWN_add_f16 ~, KERNEL_NONE
#define KERNEL_OWN_subtract_f16 ~, KERNEL_NONE
#define KERNEL_OWN_multiply_f16 ~, KERNEL_NONE
#define KERNEL_OWN_divide_f16 ~, KERNEL_NONE
#define KERNEL_OWN_floor_divide_f16 ~, KERNEL_NONE
#define KERNEL_OWN_hypot_f16 ~, KERNEL_NONE
#define KERNEL_OWN_fma_f16 ~, KERNEL_NONE
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
#define KERNEL_OWN_tanh_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_exp2_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_log2_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_log10_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_silu_bf16 ~, KERNEL_NONE
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
#define KERNEL_OWN_floor_divide_bf16 ~, KERNEL_NONE
#define KERNEL_OWN_hypot_bf16 ~, KERNEL_NONE

#define HALF_BY_FLOAT32(name) num_##name##_for_f16
#define HALF_1(name, EXPRESSION) HALF_LOOP(1, name, f16, EXPRESSION, HALF_ANY(f16))
#define HALF_2(name, EXPRESSION) HALF_LOOP(2, name, f16, EXPRESSION, HALF_ANY(f16))
#define HALF_DECIDED_1(name) HALF_LOOP(1, name, f16, num_##name##_for_f16(a[i]), narrow_decided_chunk_f16(result, value))
#define HALF_NUMBER_1(name, ties, special) HALF_LOOP(1, name, f16, num_##name##_for_f16(a[i]), HALF_SPECIAL(f16, ties, special))
#include "kernels_half_body.h"
HALF_1(sin, num_sin_for_f16(a[i]))
HALF_1(cos, num_cos_for_f16(a[i]))
HALF_1(tan, num_tan_for_f16(a[i]))
HALF_NUMBER_1(sigmoid, untied, unless_nan)
HALF_NUMBER_1(softplus, untied, unless_nan)
HALF_LOOP(3, fma, f16, num_fma_for_f16(a[i], b[i], c[i]), HALF_ANY(f16))
#undef HALF_BY_FLOAT32
#undef HALF_1
#undef HALF_2
#undef HALF_DECIDED_1
#undef HALF_NUMBER_1

#define HALF_BY_FLOAT32(name) num_##name##_for_bf16
#define HALF_1(name, EXPRESSION) HALF_LOOP(1, name, bf16, EXPRESSION, HALF_ANY(bf16))
#define HALF_2(name, EXPRESSION) HALF_LOOP(2, name, bf16, EXPRESSION, HALF_ANY(bf16))
#define HALF_DECIDED_1(name) HALF_LOOP(1, name, bf16, num_##name##_for_bf16(a[i]), narrow_decided_chunk_bf16(result, value))
#define HALF_NUMBER_1(name, ties, special) HALF_LOOP(1, name, bf16, num_##name##_for_bf16(a[i]), HALF_SPECIAL(bf16, ties, special))
#include "kernels_half_body.h"
#undef HALF_BY_FLOAT32
#undef HALF_1
#undef HALF_2
#undef HALF_DECIDED_1
#undef HALF_NUMBER_1

#endif
