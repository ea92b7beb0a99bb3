/* Memory through the caller's hooks. Every block's size is known where it is freed, so that simple allocators suffice. */
#ifndef OL_MEMORY_H
#define OL_MEMORY_H

#include "onelaunch.h"

/* The default hooks where `allocator` is NULL or zeroed. */
ol_allocator memory_allocator(const ol_allocator *allocator);

/* 64-byte aligned, zeroed; NULL when there is none. A size of 0 gives a block of 1. */
void *memory_take(const ol_allocator *allocator, size_t n_bytes);
void memory_give(const ol_allocator *allocator, void *pointer, size_t n_bytes);      /* NULL is allowed */

/* n * size, or SIZE_MAX where that overflows (which no allocator grants). */
size_t memory_size(size_t n, size_t size);

/* Grows the array *items of `capacity` elements to hold at least `needed`, doubling. False, and nothing changed, when
 * there is no memory. */
int memory_grow(const ol_allocator *allocator, void **items, size_t *capacity, size_t needed, size_t element_size);

#endif
