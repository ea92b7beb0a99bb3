/* Conversions between all dtypes (the primitive astype): num_astype_<from>_<to>.
 *
 * Float to integer truncates toward zero, saturates, and gives 0 for NaN; the range is checked before the conversion, which
 * is undefined beyond it. Anything to bool is x != 0. float16 and bfloat16 become float32 exactly first; from there one
 * rounding is left, if any. A dtype to itself copies, with canonical NaN, and a bool as 0 or 1. */
#ifndef NUM_CONVERT_H
#define NUM_CONVERT_H

#include "num_half.h"

#define CONVERT(to) num_astype_u8_##to
#define CONVERT_T uint8_t
#define CONVERT_BITS 8
#define CONVERT_SIGNED 0
#include "num_convert_body.h"
#undef CONVERT
#undef CONVERT_T
#undef CONVERT_BITS
#undef CONVERT_SIGNED

#define CONVERT(to) num_astype_u16_##to
#define CONVERT_T uint16_t
#define CONVERT_BITS 16
#define CONVERT_SIGNED 0
#include "num_convert_body.h"
#undef CONVERT
#undef CONVERT_T
#undef CONVERT_BITS
#undef CONVERT_SIGNED

#define CONVERT(to) num_astype_u32_##to
#define CONVERT_T uint32_t
#define CONVERT_BITS 32
#define CONVERT_SIGNED 0
#include "num_convert_body.h"
#undef CONVERT
#undef CONVERT_T
#undef CONVERT_BITS
#undef CONVERT_SIGNED

#define CONVERT(to) num_astype_u64_##to
#define CONVERT_T uint64_t
#define CONVERT_BITS 64
#define CONVERT_SIGNED 0
#include "num_convert_body.h"
#undef CONVERT
#undef CONVERT_T
#undef CONVERT_BITS
#undef CONVERT_SIGNED

#define CONVERT(to) num_astype_i8_##to
#define CONVERT_T int8_t
#define CONVERT_BITS 8
#define CONVERT_SIGNED 1
#include "num_convert_body.h"
#undef CONVERT
#undef CONVERT_T
#undef CONVERT_BITS
#undef CONVERT_SIGNED

#define CONVERT(to) num_astype_i16_##to
#define CONVERT_T int16_t
#define CONVERT_BITS 16
#define CONVERT_SIGNED 1
#include "num_convert_body.h"
#undef CONVERT
#undef CONVERT_T
#undef CONVERT_BITS
#undef CONVERT_SIGNED

#define CONVERT(to) num_astype_i32_##to
#define CONVERT_T int32_t
#define CONVERT_BITS 32
#define CONVERT_SIGNED 1
#include "num_convert_body.h"
#undef CONVERT
#undef CONVERT_T
#undef CONVERT_BITS
#undef CONVERT_SIGNED

#define CONVERT(to) num_astype_i64_##to
#define CONVERT_T int64_t
#define CONVERT_BITS 64
#define CONVERT_SIGNED 1
#include "num_convert_body.h"
#undef CONVERT
#undef CONVERT_T
#undef CONVERT_BITS
#undef CONVERT_SIGNED

/* ---- bool ----------------------------------------------------------------------------------------------------------- */

NUM_FN uint8_t num_astype_b8_b8(uint8_t x) { return x != 0; }
NUM_FN uint8_t num_astype_b8_u8(uint8_t x) { return x != 0; }
NUM_FN uint16_t num_astype_b8_u16(uint8_t x) { return x != 0; }
NUM_FN uint32_t num_astype_b8_u32(uint8_t x) { return x != 0; }
NUM_FN uint64_t num_astype_b8_u64(uint8_t x) { return x != 0; }
NUM_FN int8_t num_astype_b8_i8(uint8_t x) { return x != 0; }
NUM_FN int16_t num_astype_b8_i16(uint8_t x) { return x != 0; }
NUM_FN int32_t num_astype_b8_i32(uint8_t x) { return x != 0; }
NUM_FN int64_t num_astype_b8_i64(uint8_t x) { return x != 0; }
NUM_FN uint16_t num_astype_b8_f16(uint8_t x) { return x != 0 ? 0x3c00u : 0; }
NUM_FN uint16_t num_astype_b8_bf16(uint8_t x) { return x != 0 ? 0x3f80u : 0; }
NUM_FN float num_astype_b8_f32(uint8_t x) { return x != 0 ? 1.0f : 0.0f; }

/* ---- float32 -------------------------------------------------------------------------------------------------------- */

/* To the integers a 32-bit conversion covers: clamp as floats (the bounds are exact), then convert. */
NUM_FN int32_t num_saturate32(float x, float low, float high) {
    x = x == x ? x : 0.0f;
    x = x < low ? low : x;
    return (int32_t)(x > high ? high : x);
}

NUM_FN uint8_t num_astype_f32_b8(float x) { return x != 0.0f; }
NUM_FN uint8_t num_astype_f32_u8(float x) { return (uint8_t)num_saturate32(x, 0.0f, 255.0f); }
NUM_FN uint16_t num_astype_f32_u16(float x) { return (uint16_t)num_saturate32(x, 0.0f, 65535.0f); }
NUM_FN int8_t num_astype_f32_i8(float x) { return (int8_t)num_saturate32(x, -128.0f, 127.0f); }
NUM_FN int16_t num_astype_f32_i16(float x) { return (int16_t)num_saturate32(x, -32768.0f, 32767.0f); }

/* The wider ones' upper bounds are no floats: what reaches 2^width is selected after the conversion. */
NUM_FN uint32_t num_astype_f32_u32(float x) {
    int inside = (x > 0.0f) & (x < 0x1p32f);
    uint32_t converted = (uint32_t)(inside ? x : 0.0f);
    return x >= 0x1p32f ? UINT32_MAX : converted;
}

NUM_FN uint64_t num_astype_f32_u64(float x) {
    int inside = (x > 0.0f) & (x < 0x1p64f);
    uint64_t converted = (uint64_t)(inside ? x : 0.0f);
    return x >= 0x1p64f ? UINT64_MAX : converted;
}

NUM_FN int32_t num_astype_f32_i32(float x) {
    int inside = (x > -0x1p31f) & (x < 0x1p31f);
    int32_t converted = (int32_t)(inside ? x : 0.0f);
    converted = x >= 0x1p31f ? INT32_MAX : converted;
    return x <= -0x1p31f ? INT32_MIN : converted;
}

NUM_FN int64_t num_astype_f32_i64(float x) {
    int inside = (x > -0x1p63f) & (x < 0x1p63f);
    int64_t converted = (int64_t)(inside ? x : 0.0f);
    converted = x >= 0x1p63f ? INT64_MAX : converted;
    return x <= -0x1p63f ? INT64_MIN : converted;
}

NUM_FN uint16_t num_astype_f32_f16(float x) { return num_narrow_f16(x); }
NUM_FN uint16_t num_astype_f32_bf16(float x) { return num_narrow_bf16(x); }
NUM_FN float num_astype_f32_f32(float x) { return num_canonical32(x); }

/* ---- float16 --------------------------------------------------------------------------------------------------------- */

NUM_FN uint8_t num_astype_f16_b8(uint16_t x) { return (x & 0x7fffu) != 0; }
NUM_FN uint8_t num_astype_f16_u8(uint16_t x) { return num_astype_f32_u8(num_widen_f16(x)); }
NUM_FN uint16_t num_astype_f16_u16(uint16_t x) { return num_astype_f32_u16(num_widen_f16(x)); }
NUM_FN uint32_t num_astype_f16_u32(uint16_t x) { return num_astype_f32_u32(num_widen_f16(x)); }
NUM_FN uint64_t num_astype_f16_u64(uint16_t x) { return num_astype_f32_u64(num_widen_f16(x)); }
NUM_FN int8_t num_astype_f16_i8(uint16_t x) { return num_astype_f32_i8(num_widen_f16(x)); }
NUM_FN int16_t num_astype_f16_i16(uint16_t x) { return num_astype_f32_i16(num_widen_f16(x)); }
NUM_FN int32_t num_astype_f16_i32(uint16_t x) { return num_astype_f32_i32(num_widen_f16(x)); }
NUM_FN int64_t num_astype_f16_i64(uint16_t x) { return num_astype_f32_i64(num_widen_f16(x)); }
NUM_FN uint16_t num_astype_f16_f16(uint16_t x) { return num_canonical_f16(x); }
NUM_FN uint16_t num_astype_f16_bf16(uint16_t x) { return num_narrow_bf16(num_widen_f16(x)); }
NUM_FN float num_astype_f16_f32(uint16_t x) { return num_canonical32(num_widen_f16(x)); }

/* ---- bfloat16 -------------------------------------------------------------------------------------------------------- */

NUM_FN uint8_t num_astype_bf16_b8(uint16_t x) { return (x & 0x7fffu) != 0; }
NUM_FN uint8_t num_astype_bf16_u8(uint16_t x) { return num_astype_f32_u8(num_widen_bf16(x)); }
NUM_FN uint16_t num_astype_bf16_u16(uint16_t x) { return num_astype_f32_u16(num_widen_bf16(x)); }
NUM_FN uint32_t num_astype_bf16_u32(uint16_t x) { return num_astype_f32_u32(num_widen_bf16(x)); }
NUM_FN uint64_t num_astype_bf16_u64(uint16_t x) { return num_astype_f32_u64(num_widen_bf16(x)); }
NUM_FN int8_t num_astype_bf16_i8(uint16_t x) { return num_astype_f32_i8(num_widen_bf16(x)); }
NUM_FN int16_t num_astype_bf16_i16(uint16_t x) { return num_astype_f32_i16(num_widen_bf16(x)); }
NUM_FN int32_t num_astype_bf16_i32(uint16_t x) { return num_astype_f32_i32(num_widen_bf16(x)); }
NUM_FN int64_t num_astype_bf16_i64(uint16_t x) { return num_astype_f32_i64(num_widen_bf16(x)); }
NUM_FN uint16_t num_astype_bf16_f16(uint16_t x) { return num_narrow_f16(num_widen_bf16(x)); }
NUM_FN uint16_t num_astype_bf16_bf16(uint16_t x) { return num_canonical_bf16(x); }
NUM_FN float num_astype_bf16_f32(uint16_t x) { return num_canonical32(num_widen_bf16(x)); }

#endif
