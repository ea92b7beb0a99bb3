/* The digest of a primitive at a dtype, or of a conversion from it: one number for all results, by which SIMD levels, machines and
 * versions can be compared. Shared by `onelaunch digest` and tests/prove, and so by the committed tests/golden/digests.tsv.
 *
 * The digest is XXH3-64 over the digests of consecutive chunks, each as 8 bytes, little-endian. A chunk is the results of
 * 2^20 inputs (the last one may be short), and its digest is XXH3-64 over their bytes in input order, elements
 * little-endian; bool is a byte of 0 or 1. It depends on neither threads nor tasks nor shards.
 *
 * Inputs, by their index:
 *   one operand, 16 bits       all 2^16 patterns, the index being the pattern (one short chunk)
 *   one operand, float32       all 2^32 patterns
 *   two operands, 16 bits      all 2^32 pairs, the index being x << 16 | y
 *   two operands, float32      2^28 pairs out of 2^64: a fixed pseudo-random sample, see digest.c
 *
 * Conversions are the operations astype_float32, astype_float16 and astype_bfloat16, named for the dtype of their results; the dtype
 * beside the name is that of the operand, one of the other two, which the inputs are of.
 *
 * The bytes are those in memory: little-endian machines, as all that are supported. */
#ifndef ONELAUNCH_TOOLS_DIGEST_H
#define ONELAUNCH_TOOLS_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* Inputs of a chunk. */
#define DIGEST_CHUNK ((size_t)1 << 20)

/* How many inputs a primitive of so many operands of so many bytes each has; 0 where none are defined. */
uint64_t digest_inputs(int arity, size_t element_bytes);
/* Writes the inputs first, first + stride, ... n of them: n elements of x, and of y where there are two operands. */
void digest_fill(int arity, size_t element_bytes, uint64_t first, uint64_t stride, size_t n, void *x, void *y);

/* The strided digest, which takes milliseconds, is over the inputs whose index is a multiple of this: all of the 2^16, one in
 * 4,099 (a prime) of more. */
uint64_t digest_stride(int arity, size_t element_bytes);

uint64_t digest_chunk(const void *results, size_t bytes);
uint64_t digest_all(const uint64_t *chunks, size_t n);

/* A chunk's digest from its results piece by piece. NULL where memory ran out. */
typedef struct digest_stream digest_stream;
digest_stream *digest_stream_new(void);
void digest_stream_free(digest_stream *stream);
void digest_stream_begin(digest_stream *stream);
void digest_stream_add(digest_stream *stream, const void *results, size_t bytes);
uint64_t digest_stream_end(const digest_stream *stream);

/* splitmix64: the number that follows the state x. */
static inline uint64_t digest_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

#endif
