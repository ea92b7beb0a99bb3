/* The loops of a replay: the iteration space of the outputs of one shape, collapsed, with each tensor's strides in it.
 *
 * The space is `n_rows` rows of `row_length` elements; a row is the innermost dimension after neighbours that every tensor
 * walks alike were merged. A tile is either several whole rows, or a piece of one. Values that are the same for every row
 * (exp(A_log), a bias) are hoisted: computed for one row, repeated to a tile, and kept for all tiles of a task. */
#ifndef OL_CPU_PLAN_H
#define OL_CPU_PLAN_H

#include "cpu/cpu.h"

typedef struct view {
    char *data;
    int64_t strides[OL_MAX_RANK];        /* bytes, by collapsed dimension; the last is the step inside a row */
    uint8_t size;                        /* of an element */
    uint8_t aligned;                     /* data is a multiple of size, and so is every address in it */
    uint8_t linear;                      /* the whole space is one contiguous run */
    uint8_t repeated;                    /* the same for every row */
    uint8_t scalar;                      /* one element for all */
} view;

typedef struct plan {
    const ol_composite *composite;
    const cpu_prepared *prepared;
    int32_t rank;
    int64_t dims[OL_MAX_RANK];
    int64_t n_rows, row_length;
    int64_t rows_per_tile;               /* above 1 only when a tile is whole rows */
    int64_t piece_length, n_pieces;      /* of a row; one piece when a row fits a tile */
    int64_t n_tiles;                     /* a tile is a work item; a task is a range of them */
    int64_t hoist_elements;              /* for how many elements hoisted values are computed; 0: nothing is hoisted */
    view *views;                         /* inputs, then outputs; only those in use are filled */
    uint32_t *used, n_used;              /* their indices */
    uint32_t *order;                     /* outputs, sorted into groups of one shape */
    const uint32_t *members;             /* this group's outputs */
    uint32_t n_members;
    uint8_t *active, *hoisted;           /* by instruction; active is NULL when all are */
    uint8_t *marks;                      /* by register: scratch */
    uint8_t *direct;                     /* by output: whether its register may be pointed at its memory */
} plan;

size_t plan_bytes(const ol_composite *composite);
/* Lays the plan's arrays out in `block` of plan_bytes. */
void plan_begin(plan *p, const ol_composite *composite, void *block);
/* Sorts the outputs into groups of one shape (leading ones aside), larger ones first, and returns how many groups. Larger
 * first, since an input that an output overwrites in place may be read by others of larger shape only. */
uint32_t plan_groups(plan *p, const ol_tensor *outputs);
/* The number of outputs in the group that starts at order[first]. */
uint32_t plan_group_size(const plan *p, const ol_tensor *outputs, uint32_t first);
/* Plans one group; false where it has no elements. `all`: the group is all the outputs. */
int plan_group(plan *p, const ol_tensor *inputs, const ol_tensor *outputs, const uint32_t *members, uint32_t n_members, int all, int in_place);

#endif
