/* Scratch blocks prepared at compile time for composites too large for the stack, so that a replay allocates nothing. Nobody
 * waits for a block: when all are in use (more replays at once than there are blocks, or in a forked child, where the threads
 * that held some are gone) one is allocated. So neither fork nor a host that replays from inside its own parallel_for can
 * lock up. */
#ifndef OL_WORKSPACE_H
#define OL_WORKSPACE_H

#include "memory.h"

typedef struct workspace workspace;

#define WORKSPACE_BLOCKS 16          /* enough for as many replays of one composite at once */

/* n_blocks blocks of n_bytes each, 64-byte aligned; NULL when there is no memory. */
workspace *workspace_create(const ol_allocator *allocator, size_t n_bytes, size_t n_blocks);
void workspace_destroy(workspace *w);                            /* NULL is allowed */
void *workspace_take(workspace *w);                              /* NULL when all are in use and there is no memory */
void workspace_give(workspace *w, void *block);

#endif
