/* What each node depends on: sets of leaves (inputs, and static shapes after them), each distinct set kept once. Two nodes
 * with the same set always have the same shape, and the same invariance over rows. */
#ifndef OL_DEPENDENCIES_H
#define OL_DEPENDENCIES_H

#include "graph.h"

typedef struct dependencies {
    ol_allocator allocator;
    size_t n_leaves, n_words;
    uint64_t *bits;               /* n_sets * n_words; set 0 is empty */
    size_t n_sets, bits_capacity;
    uint32_t *slots;              /* hash table: set + 1; 0 is free */
    size_t n_slots;
    uint32_t *shape_set;          /* by node: the leaves that determine its shape */
    uint32_t *data_set;           /* by node: the inputs whose data it reads; without the `like` of a broadcast */
    size_t n_nodes;
} dependencies;

ol_status dependencies_create(const graph *g, dependencies **d, ol_error *error);
void dependencies_destroy(dependencies *d);                     /* NULL is allowed */

static inline int dependencies_has(const dependencies *d, uint32_t set, size_t leaf)
{
    return (int)(d->bits[set * d->n_words + leaf / 64] >> (leaf % 64) & 1);
}

#endif
