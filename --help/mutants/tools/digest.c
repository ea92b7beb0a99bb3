/* See digest.h. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "digest.h"

#include <string.h>

/* Where functions of two operands are apt to go wrong: zeros, ones, a half, and the ends of subnormal, normal and finite. */
static const uint32_t special[] = {
    0x00000000, 0x00000001, 0x007fffff, 0x00800000, 0x3effffff, 0x3f000000, 0x3f7fffff, 0x3f800000,
    0x3f800001, 0x40000000, 0x4b7fffff, 0x4b800000, 0x4f000000, 0x7f7fffff, 0x7f800000, 0x7fc00000,
};

/* The exponent from -16 to 15, by the pattern's own last bits of it. */
static uint32_t moderate(uint32_t bits) { return (bits & 0x807fffffu) | (111 + (bits >> 23 & 31)) << 23; }

/* The pair of float32 patterns of an index below 2^28. By its last two bits: any patterns; moderate exponents; y within 32
 * ulp of x or -x, x of any or of a moderate exponent; one of the two a multiple of 1/4 between -32 and 32, or one time in
 * eight a special value, the other any or moderate. */
static void sample_pair(uint64_t index, uint32_t *x, uint32_t *y) {
    uint64_t bits = digest_mix(index), choice = digest_mix(bits);
    uint32_t a = (uint32_t)bits, b = (uint32_t)(bits >> 32);
    if (index % 4 == 1) {
        a = moderate(a), b = moderate(b);
    } else if (index % 4 == 2) {
        a = choice & 1 ? moderate(a) : a;
        b = (a + b % 65 - 32) ^ (b & 0x80000000u);
    } else if (index % 4 == 3) {
        float quarters = (float)((int)(b & 255) - 128) / 4;
        a = choice & 1 ? moderate(a) : a;
        memcpy(&b, &quarters, sizeof b);
        if ((choice >> 1) % 8 == 0) b = special[choice >> 4 & 15] | (uint32_t)(choice >> 8 & 1) << 31;
        if (choice >> 9 & 1) {
            uint32_t other = a;
            a = b, b = other;
        }
    }
    *x = a, *y = b;
}

uint64_t digest_inputs(int arity, size_t element_bytes) {
    if (arity == 1 && element_bytes == 2) return 1ull << 16;
    if (arity == 1 && element_bytes == 4) return 1ull << 32;
    if (arity == 2 && element_bytes == 2) return 1ull << 32;
    if (arity == 2 && element_bytes == 4) return 1ull << 28;
    return 0;
}

void digest_fill(int arity, size_t element_bytes, uint64_t first, uint64_t stride, size_t n, void *x, void *y) {
    uint64_t index = first;
    if (element_bytes == 2) {
        uint16_t *xs = x, *ys = y;
        for (size_t i = 0; i < n; i++) xs[i] = (uint16_t)(arity == 1 ? first + i * stride : (first + i * stride) >> 16);
        for (size_t i = 0; arity == 2 && i < n; i++) ys[i] = (uint16_t)(first + i * stride);
    } else {
        uint32_t *xs = x, *ys = y;
        for (size_t i = 0; i < n; i++, index += stride) {
            if (arity == 1) xs[i] = (uint32_t)index;
            else sample_pair(index, &xs[i], &ys[i]);
        }
    }
}

uint64_t digest_stride(int arity, size_t element_bytes) { return digest_inputs(arity, element_bytes) <= 1ull << 16 ? 1 : 4099; }

uint64_t digest_chunk(const void *results, size_t bytes) { return XXH3_64bits(results, bytes); }

uint64_t digest_all(const uint64_t *chunks, size_t n) { return XXH3_64bits(chunks, n * sizeof *chunks); }

digest_stream *digest_stream_new(void) { return (digest_stream *)XXH3_createState(); }
void digest_stream_free(digest_stream *stream) { XXH3_freeState((XXH3_state_t *)stream); }
void digest_stream_begin(digest_stream *stream) { XXH3_64bits_reset((XXH3_state_t *)stream); }
void digest_stream_add(digest_stream *stream, const void *results, size_t bytes) { XXH3_64bits_update((XXH3_state_t *)stream, results, bytes); }
uint64_t digest_stream_end(const digest_stream *stream) { return XXH3_64bits_digest((const XXH3_state_t *)stream); }
