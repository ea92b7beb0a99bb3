/* The iteration space of the outputs of one shape: its dimensions, collapsed, and each tensor's strides in them. From concrete
 * tensors at every replay, without allocating; what a backend makes of it (tiles, blocks of threads) is its own.
 *
 * Outputs of one composite may differ in shape. They are sorted into groups of one shape; each group has a space of its own,
 * and the instructions that its outputs need. */
#ifndef OL_SPACE_H
#define OL_SPACE_H

#include "composite.h"

typedef struct view {
    char *data;
    int64_t strides[OL_MAX_RANK];        /* bytes, by collapsed dimension; the last is the step inside a row */
    uint8_t size;                        /* of an element */
    uint8_t aligned;                     /* data is a multiple of size, and so is every address in it */
    uint8_t linear;                      /* the whole space is one contiguous run */
    uint8_t repeated;                    /* the same for every row */
    uint8_t scalar;                      /* one element for all */
} view;

typedef struct space {
    const ol_composite *composite;
    int32_t rank;                        /* at least 1; the last dimension is a row */
    int64_t dims[OL_MAX_RANK];
    view *views;                         /* inputs, then outputs; only those in use are filled */
    uint32_t *used, n_used;              /* their indices */
    uint32_t *order;                     /* outputs, sorted into groups of one shape */
    const uint32_t *members;             /* this group's outputs */
    uint32_t n_members;
    uint8_t *active;                     /* by instruction; NULL when all are */
    uint8_t *active_block;               /* where `active` is kept */
    uint8_t *marks;                      /* by register: scratch */
} space;

size_t space_bytes(const ol_composite *composite);
/* Lays the space's arrays out in `block` of space_bytes, 64-byte aligned. */
void space_begin(space *s, const ol_composite *composite, void *block);
/* Sorts the outputs into groups of one shape (leading ones aside), larger ones first, and returns how many groups. Larger
 * first, since an input that an output overwrites in place may be read by others of larger shape only. */
uint32_t space_groups(space *s, const ol_tensor *outputs);
/* The number of outputs in the group that starts at order[first]. */
uint32_t space_group_size(const space *s, const ol_tensor *outputs, uint32_t first);
/* The space of one group; false where it has no elements. `all`: the group is all the outputs. */
int space_of_group(space *s, const ol_tensor *inputs, const ol_tensor *outputs, const uint32_t *members, uint32_t n_members, int all);

/* A part of a block that a struct's arrays are laid out in. */
static inline size_t padded(size_t n_bytes)
{
    return (n_bytes + 63) & ~(size_t)63;
}

#endif
