/* From a replay's shapes and strides to the words of its kernel (words.h) and its grid. */
#ifndef OL_CUDA_GEOMETRY_H
#define OL_CUDA_GEOMETRY_H

#include "composite.h"
#include "cuda/kernel.h"

/* What the function and the device allow. */
typedef struct function_limits {
    uint32_t max_threads;                /* of a block */
    uint32_t blocks_per_multiprocessor;  /* of so many threads */
    uint32_t n_multiprocessors;
} function_limits;

typedef struct geometry {
    uint32_t grid, block;                /* grid 0: every output is empty */
    uint32_t n_words;                    /* that were written */
} geometry;

/* Which words are addresses of which tensors (inputs, then outputs). */
#define GEOMETRY_ADDRESSES 48
typedef struct geometry_addresses {
    uint32_t n;                          /* above GEOMETRY_ADDRESSES: there are more than are kept */
    uint16_t words[GEOMETRY_ADDRESSES], tensors[GEOMETRY_ADDRESSES];
} geometry_addresses;

/* Writes the words, at most k->n_words, and gives the grid. `space_block` is space_bytes of scratch. */
geometry geometry_of(const ol_composite *c, const kernel *k, const function_limits *limits, const ol_tensor *inputs, const ol_tensor *outputs,
                     int in_place, void *space_block, uint64_t *words, geometry_addresses *addresses);

/* Geometries of earlier replays. A replay of the same shapes, strides and alignments needs only its addresses filled in. Used from
 * any thread, waiting for none. */
typedef struct geometry_memory geometry_memory;
/* False: there is no memory. *m stays NULL where the composite has too many tensors or words for remembering to be worth it. */
int geometry_memory_create(const ol_composite *c, const kernel *k, geometry_memory **m);
void geometry_memory_destroy(geometry_memory *m);                                     /* NULL is allowed */
/* Whether a replay like this one is remembered; then its words are written, addresses filled in. */
int geometry_recall(geometry_memory *m, const ol_tensor *inputs, const ol_tensor *outputs, geometry *g, uint64_t *words);
void geometry_remember(geometry_memory *m, const ol_tensor *inputs, const ol_tensor *outputs, const geometry *g, const uint64_t *words,
                       const geometry_addresses *addresses);

#endif
