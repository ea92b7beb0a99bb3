/* The ground of the numerics: qualifiers, bit casts, canonical NaN, selects, fused multiply-add.
 *
 * Everything in src/numerics is plain scalar code made of exactly specified operations (IEEE add, multiply, divide, square
 * root, compare, conversions, integer and bit operations), so that any compiler and device gives the same bits, and so that
 * a plain loop around it vectorises: no branches, no tables, no calls. The same text is meant for NVRTC: the only includes
 * are the two headers below, and a host may replace NUM_FN, NUM_FMA64, NUM_FMA32 and the square roots before including it, and
 * give what its hardware has of the same results: NUM_QUOTIENT32 and 64, NUM_NARROW_NUMBER_BF16 and _F16, NUM_WIDEN_F16.
 *
 * Compile with -ffp-contract=off -fno-math-errno -fno-trapping-math, never with -ffast-math. The floating-point environment
 * is the default one (round to nearest, subnormals kept).
 *
 * Names: num_<primitive>_<dtype>, dtypes b8 (bool), u8 u16 u32 u64, i8 i16 i32 i64, f16, bf16, f32. The 16-bit floats travel
 * as their bits, in uint16_t; a bool as a byte, any non-zero byte read as true. */
#ifndef NUM_BASE_H
#define NUM_BASE_H

#ifndef NUM_NO_INCLUDES
#include <stddef.h>
#include <stdint.h>
#endif

#ifndef NUM_FN
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define NUM_FN static __device__ __forceinline__
#else
#define NUM_FN static inline __attribute__((always_inline, unused))
#endif
#endif

/* NUM_HAS_ROUNDING says that rounding to an integer is one instruction, which the compiler's builtins become. */
#ifndef NUM_HAS_ROUNDING
#if (defined(__SSE4_1__) || defined(__aarch64__)) && !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
#define NUM_HAS_ROUNDING 1
#else
#define NUM_HAS_ROUNDING 0
#endif
#endif

/* NUM_HAS_FMA says that a fused multiply-add is one instruction. Where it is not, no step is fused and none is emulated:
 * results are correctly rounded both ways, which the exhaustive proofs show for both builds. */
#ifndef NUM_HAS_FMA
#if defined(__FMA__) || defined(__aarch64__) || defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define NUM_HAS_FMA 1
#else
#define NUM_HAS_FMA 0
#endif
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#ifndef NUM_FMA64
#define NUM_FMA64(x, y, z) __fma_rn(x, y, z)
#define NUM_FMA32(x, y, z) __fmaf_rn(x, y, z)
#define NUM_SQRT64(x) __dsqrt_rn(x)
#define NUM_SQRT32(x) __fsqrt_rn(x)
#endif
#else
#ifndef NUM_FMA64
#define NUM_FMA64(x, y, z) __builtin_fma(x, y, z)
#define NUM_FMA32(x, y, z) __builtin_fmaf(x, y, z)
#define NUM_SQRT64(x) __builtin_sqrt(x)
#define NUM_SQRT32(x) __builtin_sqrtf(x)
#endif
#endif

/* x / y where a few units in the last place do not matter (64), or where the last bit only does very near halfway (32): of normal
 * numbers well within the range. Division, unless the host has something quicker. */
#ifndef NUM_QUOTIENT64
#define NUM_QUOTIENT64(x, y) ((x) / (y))
#define NUM_QUOTIENT32(x, y) ((x) / (y))
#endif

/* x*y + z where it does not matter whether the product is rounded: polynomial steps. */
NUM_FN double num_step64(double x, double y, double z) {
#if NUM_HAS_FMA
    return NUM_FMA64(x, y, z);
#else
    return x * y + z;
#endif
}

NUM_FN float num_step32(float x, float y, float z) {
#if NUM_HAS_FMA
    return NUM_FMA32(x, y, z);
#else
    return x * y + z;
#endif
}

NUM_FN uint64_t num_bits64(double x) {
    union { double f; uint64_t u; } cast;
    cast.f = x;
    return cast.u;
}

NUM_FN double num_from_bits64(uint64_t u) {
    union { uint64_t u; double f; } cast;
    cast.u = u;
    return cast.f;
}

NUM_FN uint32_t num_bits32(float x) {
    union { float f; uint32_t u; } cast;
    cast.f = x;
    return cast.u;
}

NUM_FN float num_from_bits32(uint32_t u) {
    union { uint32_t u; float f; } cast;
    cast.u = u;
    return cast.f;
}

#define NUM_SIGN64 0x8000000000000000ull
#define NUM_SIGN32 0x80000000u
#define NUM_NAN_BITS_F32 0x7fc00000u
#define NUM_NAN_BITS_F16 0x7e00u
#define NUM_NAN_BITS_BF16 0x7fc0u
#define NUM_INF_BITS_F32 0x7f800000u

NUM_FN double num_abs64(double x) { return num_from_bits64(num_bits64(x) & ~NUM_SIGN64); }
NUM_FN float num_abs32(float x) { return num_from_bits32(num_bits32(x) & ~NUM_SIGN32); }

NUM_FN double num_copysign64(double magnitude, double sign) {
    return num_from_bits64((num_bits64(magnitude) & ~NUM_SIGN64) | (num_bits64(sign) & NUM_SIGN64));
}

NUM_FN float num_copysign32(float magnitude, float sign) {
    return num_from_bits32((num_bits32(magnitude) & ~NUM_SIGN32) | (num_bits32(sign) & NUM_SIGN32));
}

/* Constants by their bits: a division such as 1/0 would be folded with care or trapped by sanitizers. */
NUM_FN double num_inf64(void) { return num_from_bits64(0x7ff0000000000000ull); }
NUM_FN double num_nan64(void) { return num_from_bits64(0x7ff8000000000000ull); }
NUM_FN float num_inf32(void) { return num_from_bits32(NUM_INF_BITS_F32); }

/* low < 0 < high. On the bits, as signed integers below high and as unsigned ones below low: compilers turn that into two
 * instructions, and a comparison of floats into ten, for the sake of NaN. A NaN comes out as one of the bounds; callers
 * select on the argument. */
NUM_FN float num_clamp32(float x, float low, float high) {
    int32_t bits = (int32_t)num_bits32(x);
    bits = bits > (int32_t)num_bits32(high) ? (int32_t)num_bits32(high) : bits;
    uint32_t magnitude = (uint32_t)bits;
    magnitude = magnitude > num_bits32(low) ? num_bits32(low) : magnitude;
    return num_from_bits32(magnitude);
}

/* min(|x|, high), of a NaN high. */
NUM_FN float num_clamp_magnitude32(float x, float high) {
    int32_t bits = (int32_t)(num_bits32(x) & ~NUM_SIGN32);
    return num_from_bits32((uint32_t)(bits > (int32_t)num_bits32(high) ? (int32_t)num_bits32(high) : bits));
}

/* max(x, 0); of a NaN 0 or a NaN. */
NUM_FN float num_positive32(float x) {
    int32_t bits = (int32_t)num_bits32(x);
    return num_from_bits32((uint32_t)(bits < 0 ? 0 : bits));
}

/* max(x, 0), at most high; of a NaN 0 or high. */
NUM_FN float num_clamp_positive32(float x, float high) {
    int32_t bits = (int32_t)num_bits32(x);
    bits = bits > (int32_t)num_bits32(high) ? (int32_t)num_bits32(high) : bits;
    return num_from_bits32((uint32_t)(bits < 0 ? 0 : bits));
}

/* The result of every float32 primitive goes through here: any NaN becomes the canonical one (x86 keeps payloads and makes
 * negative NaNs, Arm and PTX make others). */
NUM_FN float num_canonical32(float x) { return x == x ? x : num_from_bits32(NUM_NAN_BITS_F32); }

/* A result, or that it is open: an evaluation that tells where it is not sure of the rounding, or not made for the argument.
 * Kernels run it over a block and look at the open elements again, one by one (kernels_second_look.h). */
typedef struct num_tried32 {
    float value;
    uint32_t open;
} num_tried32;

/* y, or the canonical NaN where the argument x is one: for evaluations that lose a NaN on the way. */
NUM_FN float num_unless_nan32(float x, float y) { return x == x ? y : num_from_bits32(NUM_NAN_BITS_F32); }

/* y, or what log and log1p give outside of (0, infinity) and (-1, infinity), where y is not used. */
NUM_FN float num_log_special32(float x, float y) {
    float special = x == 0.0f ? -num_inf32() : num_from_bits32(NUM_NAN_BITS_F32);
    special = x == num_inf32() ? x : special;
    return ((x > 0.0f) & (x < num_inf32())) ? y : special;
}

NUM_FN float num_log1p_special32(float x, float y) {
    float special = x == -1.0f ? -num_inf32() : num_from_bits32(NUM_NAN_BITS_F32);
    special = ((x == num_inf32()) | (x == 0.0f)) ? x : special;
    return ((x > -1.0f) & (x < num_inf32()) & (x != 0.0f)) ? y : special;
}

#endif
