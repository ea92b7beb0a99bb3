/* Adversarial values of each dtype, as bits: those where an implementation that is nearly right goes wrong. */
#include "generate.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Zeros, infinities, NaNs with payloads, subnormals, the ends of the range, halves (ties of round), 1/3, log(1/2) (where
 * logaddexp crosses zero), ends of exp, first values that float16 and each integer type cannot hold. bfloat16 takes the upper halves. */
static const uint32_t special_float32[] = {
    0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345, 0x7FFFFFFF, 0x00000001, 0x80000001, 0x007FFFFF,
    0x00800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0xBF800000, 0x3F000000, 0xBF000000, 0x3FC00000, 0x40200000, 0xC0200000,
    0x3EAAAAAB, 0xBF317218, 0xBF317217, 0x3F7FFFFF, 0x3F800001, 0xBF7FFFFF, 0x42B17217, 0x42B17218, 0xC2AEAC50, 0xC2CFF1B4, 0xC2CFF1B5,
    0x41100000, 0x41102CB3, 0x4B000000, 0x4AFFFFFF, 0x4B800000, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x33800000, 0x33000000, 0x33000001,
    0x437F8000, 0x43800000, 0x46FFFE00, 0x47000000, 0x477FFF00, 0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x4F7FFFFF, 0x4F800000,
    0x5EFFFFFF, 0x5F000000, 0xDF000000, 0x5F7FFFFF, 0x5F800000, 0x1F800000, 0x5F3504F3, 0x80000000, 0x3F808000, 0x3F818000, 0x3F801000,
};
static const uint16_t special_float16[] = {
    0x0000, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFE55, 0x7FFF, 0x0001, 0x8001, 0x03FF, 0x0400, 0x8400, 0x7BFF, 0xFBFF, 0x3C00, 0xBC00,
    0x3800, 0xB800, 0x3E00, 0x4100, 0xC100, 0x3555, 0xB98C, 0xB98B, 0x3BFF, 0x3C01, 0xBBFF, 0x498B, 0x498C, 0xCC29, 0xCC53, 0x6400, 0x63FF,
    0x6800, 0x5BF8, 0x5C00, 0x7800, 0xF800, 0x0800, 0x1400, 0x5000,
};

/* Zero, small numbers, the ends of the signed and the unsigned range, shifts by the width and about. Taken modulo 2^width. */
static size_t integer_specials(ol_dtype dtype, uint64_t values[16]) {
    uint64_t width = 8 * ol_dtype_size(dtype), top = 1ull << (width - 1);
    const uint64_t list[] = { 0, 1, 2, 3, 7, ~0ull, ~1ull, ~6ull, top, top - 1, top + 1, width - 1, width, width + 1 };
    for (size_t i = 0; i < COUNT(list); i++) {
        values[i] = width == 64 ? list[i] : list[i] & ((1ull << width) - 1);
    }
    return COUNT(list);
}

size_t generate_special_count(ol_dtype dtype) {
    uint64_t values[16];
    switch (dtype) {
    case OL_BOOL: return 2;
    case OL_FLOAT16: return COUNT(special_float16);
    case OL_BFLOAT16: case OL_FLOAT32: return COUNT(special_float32);
    default: return integer_specials(dtype, values);
    }
}

uint64_t generate_special(ol_dtype dtype, size_t index) {
    uint64_t values[16];
    switch (dtype) {
    case OL_BOOL: return index;
    case OL_FLOAT16: return special_float16[index];
    case OL_BFLOAT16: return special_float32[index] >> 16;
    case OL_FLOAT32: return special_float32[index];
    default: integer_specials(dtype, values); return values[index];
    }
}

typedef struct layout {
    int fraction_bits, bias, width;
} layout;

static const layout layouts[] = { { 10, 15, 16 }, { 7, 127, 16 }, { 23, 127, 32 } };

static uint64_t float_bits(uint64_t *state, ol_dtype dtype) {
    const layout *f = &layouts[dtype - OL_FLOAT16];
    uint64_t random = generate_next(state), fraction = random & ((1u << f->fraction_bits) - 1), sign = (random >> 63) << (f->width - 1);
    uint64_t kind = generate_below(state, 100), exponent;
    if (kind < 20) {
        return generate_special(dtype, random % generate_special_count(dtype));
    }
    if (kind < 35) {
        return (random >> 20) & ((1ull << f->width) - 1);
    }
    if (kind < 40) {
        return sign | fraction;                              /* subnormal */
    }
    /* Near one, in the range where the functions are not yet flat; half of them short, so that exact ties occur. */
    exponent = (uint64_t)f->bias + generate_below(state, 16) - 9;
    if (kind < 70) {
        fraction &= ~0ull << (f->fraction_bits - (int)generate_below(state, 6));
        fraction &= (1u << f->fraction_bits) - 1;
    }
    return sign | exponent << f->fraction_bits | fraction;
}

static uint64_t integer_bits(uint64_t *state, ol_dtype dtype) {
    unsigned width = 8 * (unsigned)ol_dtype_size(dtype);
    uint64_t mask = width == 64 ? ~0ull : (1ull << width) - 1, top = 1ull << (width - 1), random = generate_next(state);
    uint64_t near = generate_below(state, 5) - 2;             /* -2 to 2 */
    switch (generate_below(state, 6)) {
    case 0: return random & mask;
    case 1: return ((random & 1 ? top : 0) + near) & mask;    /* around the ends of the signed and the unsigned range */
    case 2: return ((1ull << random % width) + near) & mask;  /* around powers of two: float32 ties at 2^24 and 2^53 */
    case 3: return (random >> random % 64) & mask;            /* of any magnitude */
    default: return (random % 80 - (random >> 32 & 1 ? 40 : 0)) & mask;    /* shift amounts, small numbers */
    }
}

uint64_t generate_bits(uint64_t *state, ol_dtype dtype) {
    if (dtype == OL_BOOL) {
        return generate_next(state) & 1;
    }
    return dtype >= OL_FLOAT16 ? float_bits(state, dtype) : integer_bits(state, dtype);
}
