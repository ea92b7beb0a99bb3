/* Pairs of float32 aimed at the hard spots of each function of two operands, whose 2^64 pairs cannot all be run: `prove --hard-pairs`. */
#ifndef PROVE_HARD_PAIRS_H
#define PROVE_HARD_PAIRS_H

#include <stddef.h>
#include <stdint.h>

/* Writes the pairs of the indices first, first + 1, ... A pair is a function of the operation and the index alone. */
void hard_pairs_fill(const char *operation, uint64_t first, size_t n, uint32_t *x, uint32_t *y);

#endif
