/* One tile through the program. */
#ifndef OL_CPU_TILE_H
#define OL_CPU_TILE_H

#include "cpu/plan.h"

typedef struct tile {
    int64_t row, n_rows;                 /* whole rows, or one row's … */
    int64_t offset, length;              /* … piece: elements [offset, offset + length) */
} tile;

/* A worker's registers: where each starts in its memory, and where its value is now (its memory, an input or an output). */
typedef struct registers {
    const plan *plan;
    char *memory;
    void **slots;
} registers;

size_t tile_bytes(const program *p, size_t tile_elements);
/* Lays the registers out in `block` of tile_bytes. */
void registers_begin(registers *r, const plan *p, void *block);
/* Computes the hoisted values for the tiles that share this piece, and repeats them to a whole tile. */
void tile_hoist(registers *r, int64_t offset, int64_t length);
void tile_run(registers *r, const tile *t);

#endif
