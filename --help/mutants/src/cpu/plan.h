/* The loops of a replay over the iteration space of the outputs of one shape (space.h).
 *
 * The space is `n_rows` rows of `row_length` elements; a row is the innermost dimension after neighbours that every tensor
 * walks alike were merged. A tile is either several whole rows, or a piece of one. Values that are the same for every row
 * (exp(A_log), a bias) are hoisted: computed for one row, repeated to a tile, and kept for all tiles of a task. */
#ifndef OL_CPU_PLAN_H
#define OL_CPU_PLAN_H

#include "cpu/cpu.h"
#include "space.h"

typedef struct plan {
    space space;
    const cpu_prepared *prepared;
    int64_t n_rows, row_length;
    int64_t rows_per_tile;               /* above 1 only when a tile is whole rows */
    int64_t piece_length, n_pieces;      /* of a row; one piece when a row fits a tile */
    int64_t n_tiles;                     /* a tile is a work item; a task is a range of them */
    int64_t hoist_elements;              /* for how many elements hoisted values are computed; 0: nothing is hoisted */
    uint8_t *hoisted;                    /* by instruction */
    uint8_t *direct;                     /* by output: whether its register may be pointed at its memory */
} plan;

size_t plan_bytes(const ol_composite *composite);
/* Lays the plan's arrays out in `block` of plan_bytes. */
void plan_begin(plan *p, const ol_composite *composite, void *block);
/* Plans one group; false where it has no elements. `all`: the group is all the outputs. */
int plan_group(plan *p, const ol_tensor *inputs, const ol_tensor *outputs, const uint32_t *members, uint32_t n_members, int all, int in_place);

#endif
