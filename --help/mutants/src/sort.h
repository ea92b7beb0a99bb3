/* Sorting without allocating: qsort may allocate, and a replay must not. */
#ifndef OL_SORT_H
#define OL_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Below, at or above zero as item a belongs before, beside or after item b. */
typedef int (*sort_compare)(const void *context, uint32_t a, uint32_t b);

/* Fills order with 0 .. n-1, sorted (heap sort; items that compare equal come in any order). */
void sort_indices(uint32_t *order, uint32_t n, sort_compare compare, const void *context);

#endif
