/* Tensors as plain views: validity, broadcasting, and whether two views touch the same bytes. */
#ifndef OL_TENSOR_H
#define OL_TENSOR_H

#include "dtype.h"
#include "onelaunch.h"

/* A shape alone. Broadcasting joins shapes as NumPy does. */
typedef struct shape {
    int32_t rank;
    int64_t dims[OL_MAX_RANK];
} shape;

/* Joins `with` into *into. False, and *into partly joined, where they do not broadcast. Commutative and associative. */
static inline int shape_join(shape *into, int32_t rank, const int64_t *dims)
{
    if (rank > into->rank) {
        int32_t shift = rank - into->rank;
        for (int32_t d = into->rank - 1; d >= 0; d--)
            into->dims[d + shift] = into->dims[d];
        for (int32_t d = 0; d < shift; d++)
            into->dims[d] = 1;
        into->rank = rank;
    }
    int64_t *tail = into->dims + (into->rank - rank);
    for (int32_t d = 0; d < rank; d++)
        if (tail[d] == 1)
            tail[d] = dims[d];
        else if (dims[d] != 1 && dims[d] != tail[d])
            return 0;
    return 1;
}

/* The number of elements, or -1 where it does not fit an int64_t. */
int64_t shape_elements(int32_t rank, const int64_t *dims);

/* What a replay needs to know of each tensor, found in one look. */
typedef struct tensor_facts {
    uintptr_t low, high;          /* the bytes it spans: [low, high); both 0 when it is empty */
    int64_t n_elements;
    int contiguous;               /* row-major without gaps */
} tensor_facts;

/* Checks what every tensor must fulfil: dtype, rank, non-negative extents whose product and byte extent fit 63 bits, data
 * unless it is empty (or `data_optional`). `role` and `index` name it in the error: "input 2". */
ol_status tensor_examine_any(const ol_tensor *t, int data_optional, const char *operation, const char *role, int32_t index,
                             tensor_facts *facts, ol_error *error);

/* The same, quickly for what is nearly always given: a contiguous tensor with elements. */
static inline ol_status tensor_examine(const ol_tensor *t, int data_optional, const char *operation, const char *role, int32_t index,
                                       tensor_facts *facts, ol_error *error)
{
    if ((unsigned)t->dtype < OL_DTYPE_COUNT && (unsigned)t->rank <= OL_MAX_RANK && t->data) {
        int64_t n = 1;
        int32_t d = t->rank - 1;
        for (; d >= 0; d--) {
            int64_t extent = t->shape[d];
            if (extent <= 0 || (extent != 1 && t->strides[d] != n) || __builtin_mul_overflow(n, extent, &n))
                break;
        }
        if (d < 0 && n < INT64_MAX / 8) {
            *facts = (tensor_facts){ (uintptr_t)t->data, (uintptr_t)t->data + (uintptr_t)n * dtype_sizes[t->dtype], n, 1 };
            return OL_OK;
        }
    }
    return tensor_examine_any(t, data_optional, operation, role, index, facts, error);
}

/* Whether two tensors whose ranges meet share a byte. Exact for nested strides, as views made by slicing and transposing
 * have; where deciding would take too long the answer is yes. */
int tensors_overlap(const ol_tensor *a, const ol_tensor *b);
/* Whether two index vectors of one tensor name the same element. Exact and cautious in the same way. */
int tensor_overlaps_itself(const ol_tensor *t);
/* Same data, dtype, shape and strides (those of extents above 1): an in-place view. */
int tensors_identical(const ol_tensor *a, const ol_tensor *b);

#endif
