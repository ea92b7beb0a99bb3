/* Integers and bool: num_integer_body.h for each of the eight integer dtypes, and bool by hand.
 *
 * A bool is a byte; any non-zero byte read is true and results are 0 or 1. Arithmetic on bool is the arithmetic on 0 and 1,
 * brought back to bool: add is or, subtract is xor, multiply is and. */
#ifndef NUM_INTEGER_H
#define NUM_INTEGER_H

#include "num_base.h"

#define INTEGER(name) num_##name##_u8
#define INTEGER_T uint8_t
#define INTEGER_U uint8_t
#define INTEGER_WIDE uint32_t
#define INTEGER_BITS 8
#define INTEGER_SIGNED 0
#include "num_integer_body.h"
#undef INTEGER
#undef INTEGER_T
#undef INTEGER_U
#undef INTEGER_WIDE
#undef INTEGER_BITS
#undef INTEGER_SIGNED

#define INTEGER(name) num_##name##_u16
#define INTEGER_T uint16_t
#define INTEGER_U uint16_t
#define INTEGER_WIDE uint32_t
#define INTEGER_BITS 16
#define INTEGER_SIGNED 0
#include "num_integer_body.h"
#undef INTEGER
#undef INTEGER_T
#undef INTEGER_U
#undef INTEGER_WIDE
#undef INTEGER_BITS
#undef INTEGER_SIGNED

#define INTEGER(name) num_##name##_u32
#define INTEGER_T uint32_t
#define INTEGER_U uint32_t
#define INTEGER_WIDE uint32_t
#define INTEGER_BITS 32
#define INTEGER_SIGNED 0
#include "num_integer_body.h"
#undef INTEGER
#undef INTEGER_T
#undef INTEGER_U
#undef INTEGER_WIDE
#undef INTEGER_BITS
#undef INTEGER_SIGNED

#define INTEGER(name) num_##name##_u64
#define INTEGER_T uint64_t
#define INTEGER_U uint64_t
#define INTEGER_WIDE uint64_t
#define INTEGER_BITS 64
#define INTEGER_SIGNED 0
#include "num_integer_body.h"
#undef INTEGER
#undef INTEGER_T
#undef INTEGER_U
#undef INTEGER_WIDE
#undef INTEGER_BITS
#undef INTEGER_SIGNED

#define INTEGER(name) num_##name##_i8
#define INTEGER_T int8_t
#define INTEGER_U uint8_t
#define INTEGER_WIDE uint32_t
#define INTEGER_BITS 8
#define INTEGER_SIGNED 1
#include "num_integer_body.h"
#undef INTEGER
#undef INTEGER_T
#undef INTEGER_U
#undef INTEGER_WIDE
#undef INTEGER_BITS
#undef INTEGER_SIGNED

#define INTEGER(name) num_##name##_i16
#define INTEGER_T int16_t
#define INTEGER_U uint16_t
#define INTEGER_WIDE uint32_t
#define INTEGER_BITS 16
#define INTEGER_SIGNED 1
#include "num_integer_body.h"
#undef INTEGER
#undef INTEGER_T
#undef INTEGER_U
#undef INTEGER_WIDE
#undef INTEGER_BITS
#undef INTEGER_SIGNED

#define INTEGER(name) num_##name##_i32
#define INTEGER_T int32_t
#define INTEGER_U uint32_t
#define INTEGER_WIDE uint32_t
#define INTEGER_BITS 32
#define INTEGER_SIGNED 1
#include "num_integer_body.h"
#undef INTEGER
#undef INTEGER_T
#undef INTEGER_U
#undef INTEGER_WIDE
#undef INTEGER_BITS
#undef INTEGER_SIGNED

#define INTEGER(name) num_##name##_i64
#define INTEGER_T int64_t
#define INTEGER_U uint64_t
#define INTEGER_WIDE uint64_t
#define INTEGER_BITS 64
#define INTEGER_SIGNED 1
#include "num_integer_body.h"
#undef INTEGER
#undef INTEGER_T
#undef INTEGER_U
#undef INTEGER_WIDE
#undef INTEGER_BITS
#undef INTEGER_SIGNED

/* ---- bool ----------------------------------------------------------------------------------------------------------- */

NUM_FN uint8_t num_truth(uint8_t x) { return x != 0; }

NUM_FN uint8_t num_abs_b8(uint8_t x) { return num_truth(x); }
NUM_FN uint8_t num_negative_b8(uint8_t x) { return num_truth(x); }
NUM_FN uint8_t num_sign_b8(uint8_t x) { return num_truth(x); }
NUM_FN uint8_t num_square_b8(uint8_t x) { return num_truth(x); }
NUM_FN uint8_t num_floor_b8(uint8_t x) { return num_truth(x); }
NUM_FN uint8_t num_ceil_b8(uint8_t x) { return num_truth(x); }
NUM_FN uint8_t num_round_b8(uint8_t x) { return num_truth(x); }
NUM_FN uint8_t num_logical_not_b8(uint8_t x) { return x == 0; }
NUM_FN uint8_t num_isnan_b8(uint8_t x) { return (void)x, (uint8_t)0; }
NUM_FN uint8_t num_isinf_b8(uint8_t x) { return (void)x, (uint8_t)0; }
NUM_FN uint8_t num_isfinite_b8(uint8_t x) { return (void)x, (uint8_t)1; }
NUM_FN uint8_t num_bitwise_invert_b8(uint8_t x) { return x == 0; }
NUM_FN uint8_t num_add_b8(uint8_t x, uint8_t y) { return (x | y) != 0; }
NUM_FN uint8_t num_subtract_b8(uint8_t x, uint8_t y) { return (x != 0) ^ (y != 0); }
NUM_FN uint8_t num_multiply_b8(uint8_t x, uint8_t y) { return (x != 0) & (y != 0); }
NUM_FN uint8_t num_floor_divide_b8(uint8_t x, uint8_t y) { return (x != 0) & (y != 0); }
NUM_FN uint8_t num_power_b8(uint8_t x, uint8_t y) { return (x != 0) | (y == 0); }
NUM_FN uint8_t num_maximum_b8(uint8_t x, uint8_t y) { return (x | y) != 0; }
NUM_FN uint8_t num_minimum_b8(uint8_t x, uint8_t y) { return (x != 0) & (y != 0); }
NUM_FN uint8_t num_equal_b8(uint8_t x, uint8_t y) { return (x != 0) == (y != 0); }
NUM_FN uint8_t num_not_equal_b8(uint8_t x, uint8_t y) { return (x != 0) ^ (y != 0); }
NUM_FN uint8_t num_less_b8(uint8_t x, uint8_t y) { return (x == 0) & (y != 0); }
NUM_FN uint8_t num_less_equal_b8(uint8_t x, uint8_t y) { return (x == 0) | (y != 0); }
NUM_FN uint8_t num_greater_b8(uint8_t x, uint8_t y) { return (x != 0) & (y == 0); }
NUM_FN uint8_t num_greater_equal_b8(uint8_t x, uint8_t y) { return (x != 0) | (y == 0); }
NUM_FN uint8_t num_logical_and_b8(uint8_t x, uint8_t y) { return (x != 0) & (y != 0); }
NUM_FN uint8_t num_logical_or_b8(uint8_t x, uint8_t y) { return (x | y) != 0; }
NUM_FN uint8_t num_bitwise_and_b8(uint8_t x, uint8_t y) { return (x != 0) & (y != 0); }
NUM_FN uint8_t num_bitwise_or_b8(uint8_t x, uint8_t y) { return (x | y) != 0; }
NUM_FN uint8_t num_bitwise_xor_b8(uint8_t x, uint8_t y) { return (x != 0) ^ (y != 0); }
NUM_FN uint8_t num_remainder_b8(uint8_t x, uint8_t y) { return (void)x, (void)y, (uint8_t)0; }
NUM_FN uint8_t num_where_b8(uint8_t condition, uint8_t x, uint8_t y) { return num_truth(condition ? x : y); }
NUM_FN uint8_t num_clip_b8(uint8_t x, uint8_t low, uint8_t high) { return num_minimum_b8(num_maximum_b8(x, low), high); }

#endif
