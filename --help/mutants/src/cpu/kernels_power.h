/* Loops of power: the evaluation of |x|^y over a block; signs, zeros, infinities and NaN if the block has any; a second look at
 * the few elements that are open (num_power.h). Results go through a buffer, as those of kernels_own.h. */
#ifndef OL_CPU_KERNELS_POWER_H
#define OL_CPU_KERNELS_POWER_H

#define POWER_BLOCK 128

/* The sign bit tells whether x is not positive and finite, of its bits; or y not finite. */
static inline uint32_t power_special_f32(uint32_t x, uint32_t y) {
    return (x - 1u) | (NUM_INF_BITS_F32 - 1u - x) | (NUM_INF_BITS_F32 - 1u - (y & ~NUM_SIGN32));
}

/* Whether any x of a block is below `least`, the bits of a positive float, or not finite; or a y not finite. */
static inline int power_special_16(const uint16_t *x, const uint16_t *y, int length, uint32_t least, uint32_t infinity) {
    uint16_t special = 0;
    _Pragma("omp simd reduction(|:special)") for (int i = 0; i < length; i++)
        special |= (uint16_t)((x[i] - least) | (infinity - 1u - x[i]) | (infinity - 1u - (y[i] & 0x7fffu)));
    return special >> 15;
}

#define KERNEL_OWN_power_f32 ~, KERNEL_NONE
static void loop_power_f32(KERNEL_ARGUMENTS) {
    t_f32 *result = out;
    const t_f32 *a = x, *b = y;
    (void)z;
    while (n > 0) {
        float block[POWER_BLOCK];
        uint32_t open[POWER_BLOCK], any = 0, special = 0;
        int length = n < POWER_BLOCK ? (int)n : POWER_BLOCK;
        _Pragma("omp simd reduction(|:any, special)") for (int i = 0; i < length; i++) {
            num_tried32 tried = num_power_try64(num_abs32(a[i]), b[i]);
            block[i] = tried.value;
            open[i] = tried.open;
            any |= tried.open;
            special |= power_special_f32(num_bits32(a[i]), num_bits32(b[i]));
        }
        if (special >> 31) {
            _Pragma("omp simd") for (int i = 0; i < length; i++) {
                num_completed32 completed = num_power_complete32(a[i], b[i]);
                block[i] = num_power_completed32(completed, num_bits32(block[i]));
                open[i] = completed.replaced ? 0 : open[i];
            }
        }
        for (int i = 0; any && i < length; i++)
            if (open[i]) block[i] = num_power_again32(a[i], b[i]);
        memcpy(result, block, (size_t)length * sizeof *block);
        result += length, a += length, b += length, n -= (size_t)length;
    }
}

/* float16: both bounds of a result are narrowed. */
#define KERNEL_OWN_power_f16 ~, KERNEL_NONE
static void loop_power_f16(KERNEL_ARGUMENTS) {
    t_f16 *result = out;
    const t_f16 *p = x, *q = y;
    (void)z;
    while (n > 0) {
        float a[POWER_BLOCK], b[POWER_BLOCK], low[POWER_BLOCK], high[POWER_BLOCK];
        t_f16 below[POWER_BLOCK], above[POWER_BLOCK];
        uint16_t any = 0;
        int length = n < POWER_BLOCK ? (int)n : POWER_BLOCK, padded = half_padded(length);
        widen_block_f16(a, p, length);
        widen_block_f16(b, q, length);
        _Pragma("omp simd") for (int i = 0; i < padded; i++) {
            num_bounds32 bounds = num_power_bounds_for_f16(a[i], b[i]);
            low[i] = bounds.below;
            high[i] = bounds.above;
        }
        if (power_special_16(p, q, length, 1, 0x7c00)) {
            _Pragma("omp simd") for (int i = 0; i < padded; i++) {
                num_bounds32 bounds = { low[i], high[i] };
                bounds = num_power_complete_bounds(a[i], b[i], bounds);
                low[i] = bounds.below;
                high[i] = bounds.above;
            }
        }
        narrow_block_f16(below, low, length);
        narrow_block_f16(above, high, length);
        _Pragma("omp simd reduction(|:any)") for (int i = 0; i < length; i++) any |= below[i] ^ above[i];
        for (int i = 0; any && i < length; i++) {
            while (i + 4 <= length && !memcmp(below + i, above + i, 4 * sizeof *below)) i += 4;
            if (i < length && below[i] != above[i])
                below[i] = num_narrow_f16(num_power_again_for_f16(num_widen_f16(p[i]), num_widen_f16(q[i])));
        }
        memcpy(result, below, (size_t)length * sizeof *below);
        result += length, p += length, q += length, n -= (size_t)length;
    }
}

/* bfloat16: words of two elements, as in kernels_half.h; `rest` are the lower halves of what num_power_rounded_bf16 gives, and
 * 0xffff for what is not open whatever they are. */
static inline void power_complete_bf16(uint32_t *block, uint32_t *rest, const t_word *a, const t_word *b, int length) {
    _Pragma("omp simd") for (int i = 0; i < length; i++) {
        uint32_t lower_rounded = block[i] << 16 | (rest[i] & 0xffffu), upper_rounded = (block[i] & 0xffff0000u) | rest[i] >> 16;
        num_tried32 lower = num_power_complete_bf16(lower_bf16(a[i]), lower_bf16(b[i]), lower_rounded);
        num_tried32 upper = num_power_complete_bf16(upper_bf16(a[i]), upper_bf16(b[i]), upper_rounded);
        block[i] = num_bits32(lower.value) >> 16 | num_bits32(upper.value);
        rest[i] = (lower.open ? 0 : 0xffffu) | (upper.open ? 0 : 0xffff0000u);
    }
}

#define KERNEL_OWN_power_bf16 ~, KERNEL_NONE
static void loop_power_bf16(KERNEL_ARGUMENTS) {
    t_bf16 *result = out;
    const t_bf16 *p = x, *q = y;
    (void)z;
    while (n > 1) {
        uint32_t block[POWER_BLOCK / 2], rest[POWER_BLOCK / 2];
        const t_word *a = (const t_word *)p, *b = (const t_word *)q;
        const t_bf16 *rests = (const t_bf16 *)rest;
        uint16_t least = 0xffffu;
        int length = n < POWER_BLOCK ? (int)(n / 2) : POWER_BLOCK / 2;
        _Pragma("omp simd") for (int i = 0; i < length; i++) {
            uint32_t lower = num_power_rounded_bf16(lower_bf16(a[i]), lower_bf16(b[i]));
            uint32_t upper = num_power_rounded_bf16(upper_bf16(a[i]), upper_bf16(b[i]));
            block[i] = lower >> 16 | (upper & 0xffff0000u);
            rest[i] = (lower & 0xffffu) | upper << 16;
        }
        if (power_special_16(p, q, 2 * length, 0x0080, 0x7f80)) power_complete_bf16(block, rest, a, b, length);
        _Pragma("omp simd reduction(min:least)") for (int i = 0; i < 2 * length; i++) least = rests[i] < least ? rests[i] : least;
        for (int i = 0; least <= NUM_POWER_OPEN_BF16 && i < 2 * length; i++)
            if (rests[i] <= NUM_POWER_OPEN_BF16)
                ((t_bf16 *)block)[i] = num_narrow_bf16(num_power_again_for_bf16(num_widen_bf16(p[i]), num_widen_bf16(q[i])));
        memcpy(result, block, (size_t)length * sizeof *block);
        result += 2 * length, p += 2 * length, q += 2 * length, n -= 2 * (size_t)length;
    }
    if (n) *result = num_power_bf16(*p, *q);
}

#endif
