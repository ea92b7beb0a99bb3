/* Scratch blocks prepared at compile time for composites too large for the stack, so that a replay allocates nothing. When
 * all blocks are in use a taker waits; a holder never waits for another block of the same workspace, so that always ends. */
#ifndef OL_WORKSPACE_H
#define OL_WORKSPACE_H

#include "memory.h"

typedef struct workspace workspace;

/* n_blocks blocks of n_bytes each, 64-byte aligned; NULL when there is no memory. */
workspace *workspace_create(const ol_allocator *allocator, size_t n_bytes, size_t n_blocks);
void workspace_destroy(workspace *w);                            /* NULL is allowed */
void *workspace_take(workspace *w);
void workspace_give(workspace *w, void *block);

#endif
