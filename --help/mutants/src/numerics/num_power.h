/* power(x, y): IEEE 754 pow, with the special cases of C's annex F.
 *
 * The evaluations of num_power32.h and num_power64.h take |x|, positive and finite, and a finite y. num_power_complete32 makes
 * their result that of any x and y; kernels call it for the blocks that need it. */
#ifndef NUM_POWER_H
#define NUM_POWER_H

#include "num_power32.h"
#include "num_power64.h"

/* What is to be made of an evaluation's result. */
typedef struct num_completed32 {
    uint32_t sign;                                       /* the bit to be added; 0 for NaN */
    int replaced;                                        /* the size is not that of the evaluation */
    uint32_t size;                                       /* but this */
} num_completed32;

NUM_FN num_completed32 num_power_complete32(float x, float y) {
    float base = num_abs32(x);
    /* y is an integer, odd? From 2^24 on a float32 is an even integer; so is an infinity here. */
    float magnitude = num_clamp_magnitude32(y, 0x1p24f);
    int32_t whole = (int32_t)magnitude;
    int integer = (float)whole == magnitude;
    /* 0 or infinity, where x or y is one of them; but 1 is 1^y and x^0 */
    int zero = base == 0.0f;
    int extreme = zero | (base == num_inf32()) | (num_abs32(y) == num_inf32());
    uint32_t size = (base > 1.0f) == (y > 0.0f) ? NUM_INF_BITS_F32 : 0;
    int one = (base == 1.0f) | (y == 0.0f);
    size = one ? 0x3f800000u : size;
    /* An operand is NaN, but for NaN^0 and 1^NaN; or a finite negative x has a y that is no integer. */
    int nan = ((x != x) & (y != 0.0f)) | ((y != y) & (x != 1.0f)) | ((x < 0.0f) & (base < num_inf32()) & !integer);
    num_completed32 out;
    out.replaced = extreme | one | nan;
    out.size = nan ? NUM_NAN_BITS_F32 : size;
    out.sign = (integer & !nan) ? num_bits32(x) & ((uint32_t)whole << 31) : 0;
    return out;
}

NUM_FN float num_power_completed32(num_completed32 completed, uint32_t size) {
    return num_from_bits32((completed.replaced ? completed.size : size) | completed.sign);
}

/* ---- float32 ---------------------------------------------------------------------------------------------------------- */

NUM_FN num_tried32 num_power_try32(float x, float y) {
    num_tried32 size = num_power_try64(num_abs32(x), y);
    num_completed32 completed = num_power_complete32(x, y);
    num_tried32 out = { num_power_completed32(completed, num_bits32(size.value)), completed.replaced ? 0 : size.open };
    return out;
}

/* Of what is open: finite operands, neither of them 0, a number for result. */
NUM_FN float num_power_again32(float x, float y) {
    float size = (float)num_power_again64((double)num_abs32(x), (double)y);
    return num_power_completed32(num_power_complete32(x, y), num_bits32(size));
}

NUM_FN float num_power_f32(float x, float y) {
    num_tried32 tried = num_power_try32(x, y);
    return tried.open ? num_power_again32(x, y) : tried.value;
}

/* ---- float16 and bfloat16 ----------------------------------------------------------------------------------------------- */

/* Of what is open, to `precision` bits with least exponent `exponent`. Exact results first, which are ties for the most part
 * and frequent among powers of integers; then the first evaluation of float32, and its second where that leaves one open. */
NUM_FN float num_power_again_half(float x, float y, int precision, int exponent) {
    double base = (double)num_abs32(x), exact = num_power_exact64(base, (double)y);
    float size = num_round_precision(exact, precision, exponent);
    if (exact == 0.0) {
        uint64_t bits = num_power_exp2_bits64((double)y * num_power_log2_64(base));
        size = num_round_precision(num_from_bits64(bits - NUM_POWER_DOUBT_64), precision, exponent);
        float above = num_round_precision(num_from_bits64(bits + NUM_POWER_DOUBT_64), precision, exponent);
        if (size != above) size = num_round_precision(num_power_again64(base, (double)y), precision, exponent);
    }
    return num_power_completed32(num_power_complete32(x, y), num_bits32(size));
}

/* |x|^y is between these, and open where they do not narrow to the same float16. */
typedef struct num_bounds32 {
    float below, above;
} num_bounds32;

NUM_FN num_bounds32 num_power_bounds_for_f16(float x, float y) {
    uint32_t size = num_power_size_for_f16(num_abs32(x), y);
    num_bounds32 out = { num_from_bits32(size - NUM_POWER_DOUBT_F16), num_from_bits32(size + NUM_POWER_DOUBT_F16) };
    return out;
}

NUM_FN num_bounds32 num_power_complete_bounds(float x, float y, num_bounds32 bounds) {
    num_completed32 completed = num_power_complete32(x, y);
    num_bounds32 out = { num_power_completed32(completed, num_bits32(bounds.below)),
                         num_power_completed32(completed, num_bits32(bounds.above)) };
    return out;
}

NUM_FN float num_power_again_for_f16(float x, float y) { return num_power_again_half(x, y, 11, -14); }

NUM_FN float num_power_for_f16(float x, float y) {
    num_bounds32 bounds = num_power_complete_bounds(x, y, num_power_bounds_for_f16(x, y));
    int open = num_narrow_f16(bounds.below) != num_narrow_f16(bounds.above);
    return open ? num_power_again_for_f16(x, y) : bounds.below;
}

/* |x|^y, half a bfloat16 and the doubt more: the upper 16 bits are the result, as those of a bfloat16 are the upper ones of its
 * float32, subnormals too; it is open if the others are NUM_POWER_OPEN_BF16 or less. */
#define NUM_POWER_OPEN_BF16 (2 * NUM_POWER_DOUBT_BF16)

NUM_FN uint32_t num_power_rounded_bf16(float x, float y) {
    return num_power_size_for_bf16(num_abs32(x), y) + 0x8000u + NUM_POWER_DOUBT_BF16;
}

/* A subnormal x is left open: it is not worth two steps more for all others. */
NUM_FN num_tried32 num_power_complete_bf16(float x, float y, uint32_t rounded) {
    num_completed32 completed = num_power_complete32(x, y);
    uint32_t open = ((rounded & 0xffffu) <= NUM_POWER_OPEN_BF16) | (num_abs32(x) < 0x1p-126f);
    num_tried32 out = { num_power_completed32(completed, rounded & 0xffff0000u), completed.replaced ? 0 : open };
    return out;
}

NUM_FN float num_power_again_for_bf16(float x, float y) { return num_power_again_half(x, y, 8, -126); }

NUM_FN float num_power_for_bf16(float x, float y) {
    num_tried32 tried = num_power_complete_bf16(x, y, num_power_rounded_bf16(x, y));
    return tried.open ? num_power_again_for_bf16(x, y) : tried.value;
}

#endif
