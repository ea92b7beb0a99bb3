/* Views: validity, extents, overlap.
 *
 * Two strided views share a byte if the difference of their addresses is a sum of their strides times bounded counters. That
 * is a bounded linear Diophantine equation; a depth-first search from the largest stride down decides it at once for nested
 * strides (each stride is larger than all smaller ones can reach together, so at most two counters are possible per level).
 * A budget bounds the rest, and running out of it counts as an overlap, which is the safe answer. */
#include "tensor.h"

#include "dtype.h"
#include "status.h"

#include <string.h>

int64_t shape_elements(int32_t rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int32_t d = 0; d < rank; d++)
        if (dims[d] == 0)
            return 0;
    for (int32_t d = 0; d < rank; d++)
        if (__builtin_mul_overflow(n, dims[d], &n))
            return -1;
    return n;
}

ol_tensor ol_tensor_contiguous(void *data, ol_dtype dtype, int32_t rank, const int64_t *dims)
{
    ol_tensor t = { .data = data, .dtype = dtype, .rank = rank > 0 && !dims ? -1 : rank };
    int64_t stride = 1;
    for (int32_t d = (t.rank <= OL_MAX_RANK ? t.rank : 0) - 1; d >= 0; d--) {
        t.shape[d] = dims[d];
        t.strides[d] = stride;
        if (dims[d] > 0 && __builtin_mul_overflow(stride, dims[d], &stride))
            stride = INT64_MAX;          /* tensor_check refuses such a shape */
    }
    return t;
}

/* Bytes from the first element down to the lowest and up to the end of the highest one. False on overflow. */
static int tensor_reach(const ol_tensor *t, int64_t *below, int64_t *above)
{
    int64_t size = dtype_sizes[t->dtype];
    *below = 0;
    *above = size;
    for (int32_t d = 0; d < t->rank; d++) {
        int64_t reach;
        if (t->shape[d] <= 1)
            continue;
        if (__builtin_mul_overflow(t->shape[d] - 1, t->strides[d], &reach) || __builtin_mul_overflow(reach, size, &reach) ||
            (reach < 0 ? __builtin_add_overflow(*below, reach, below) : __builtin_add_overflow(*above, reach, above)))
            return 0;
    }
    return 1;
}

ol_status tensor_examine_any(const ol_tensor *t, int data_optional, const char *operation, const char *role, int32_t index,
                             tensor_facts *facts, ol_error *error)
{
    if (!dtype_valid(t->dtype))
        return fail(error, OL_ERROR_DTYPE, operation, "%s %d: %d is not a dtype", role, (int)index, (int)t->dtype);
    if (t->rank < 0 || t->rank > OL_MAX_RANK)
        return fail(error, OL_ERROR_ARGUMENT, operation, "%s %d: rank %d, expected 0 to %d", role, (int)index, (int)t->rank, OL_MAX_RANK);
    shape_text shape_, strides;
    for (int32_t d = 0; d < t->rank; d++)
        if (t->shape[d] < 0)
            return fail(error, OL_ERROR_SHAPE, operation, "%s %d: shape %s has a negative extent", role, (int)index,
                        shape_to_text(&shape_, t->rank, t->shape));
    int64_t n = shape_elements(t->rank, t->shape), below = 0, above = 0;
    if (n < 0 || (n > 0 && !tensor_reach(t, &below, &above)))
        return fail(error, OL_ERROR_SHAPE, operation, "%s %d: shape %s with strides %s does not fit an address space", role, (int)index,
                    shape_to_text(&shape_, t->rank, t->shape), shape_to_text(&strides, t->rank, t->strides));
    if (n > 0 && !t->data && !data_optional)
        return fail(error, OL_ERROR_ARGUMENT, operation, "%s %d: data is NULL though the tensor is not empty", role, (int)index);
    *facts = (tensor_facts){ 0, 0, n, 1 };
    if (n > 0) {
        facts->low = (uintptr_t)t->data + (uintptr_t)below;
        facts->high = (uintptr_t)t->data + (uintptr_t)above;
    }
    int64_t expected = 1;
    for (int32_t d = t->rank - 1; n > 0 && d >= 0; d--) {
        facts->contiguous &= t->shape[d] == 1 || t->strides[d] == expected;
        expected *= t->shape[d];
    }
    return OL_OK;
}

/* A term stride * counter with counter in [low, high] and stride > 0. */
typedef struct term { int64_t stride, low, high; } term;

typedef struct search {
    term terms[2 * OL_MAX_RANK + 1];
    int n_terms;
    int budget;
} search;

static void search_add(search *s, int64_t stride, int64_t low, int64_t high)
{
    if (stride == 0 || (low == 0 && high == 0))
        return;
    if (stride < 0) {
        int64_t t = low;
        stride = -stride;
        low = -high;
        high = -t;
    }
    int i = s->n_terms++;
    for (; i > 0 && s->terms[i - 1].stride < stride; i--)        /* sorted, largest stride first */
        s->terms[i] = s->terms[i - 1];
    s->terms[i] = (term){ stride, low, high };
}

/* The same where only reachable sums matter: two terms of one stride are one term, whose counter is the sum of theirs. Without
 * this, views of equal strides would be searched through every way to split each counter. */
static void search_add_merged(search *s, int64_t stride, int64_t low, int64_t high)
{
    int negative = stride < 0;
    for (int i = 0; stride != 0 && i < s->n_terms; i++)
        if (s->terms[i].stride == (negative ? -stride : stride)) {
            s->terms[i].low += negative ? -high : low;
            s->terms[i].high += negative ? -low : high;
            return;
        }
    search_add(s, stride, low, high);
}

static __int128 floor_division(__int128 a, __int128 b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Whether the terms from `first` on can sum to target. 128-bit sums cannot overflow here: 17 products of 63-bit numbers. */
static int search_reaches(search *s, int first, __int128 target)
{
    if (s->budget-- <= 0)
        return 1;
    if (first == s->n_terms)
        return target == 0;
    __int128 low = 0, high = 0;
    for (int i = first + 1; i < s->n_terms; i++) {
        low += (__int128)s->terms[i].stride * s->terms[i].low;
        high += (__int128)s->terms[i].stride * s->terms[i].high;
    }
    const term *t = &s->terms[first];
    /* stride * counter must lie in [target - high, target - low]. */
    __int128 from = -floor_division(high - target, t->stride), to = floor_division(target - low, t->stride);
    if (from < t->low)
        from = t->low;
    if (to > t->high)
        to = t->high;
    for (__int128 c = from; c <= to; c++)
        if (search_reaches(s, first + 1, target - c * t->stride))
            return 1;
    return 0;
}

int tensors_overlap(const ol_tensor *a, const ol_tensor *b)
{
    search s = { .budget = 20000 };
    int64_t a_size = dtype_sizes[a->dtype], b_size = dtype_sizes[b->dtype];
    for (int32_t d = 0; d < a->rank; d++)
        search_add_merged(&s, a->strides[d] * a_size, 0, a->shape[d] - 1);
    for (int32_t d = 0; d < b->rank; d++)
        search_add_merged(&s, b->strides[d] * b_size, -(b->shape[d] - 1), 0);
    search_add_merged(&s, 1, -(b_size - 1), a_size - 1);                 /* the bytes inside an element of each */
    return search_reaches(&s, 0, (__int128)(intptr_t)b->data - (__int128)(intptr_t)a->data);
}

int tensor_overlaps_itself(const ol_tensor *t)
{
    /* Nested strides, the common case: each is beyond all that the smaller ones reach together. */
    search s = { .budget = 20000 };
    for (int32_t d = 0; d < t->rank; d++) {
        if (t->shape[d] == 0)
            return 0;
        if (t->shape[d] > 1 && t->strides[d] == 0)
            return 1;
        search_add(&s, t->strides[d], 0, t->shape[d] - 1);
    }
    int64_t reach = 0;
    int nested = 1;
    for (int i = s.n_terms - 1; i >= 0; i--) {
        nested &= s.terms[i].stride > reach;
        reach += s.terms[i].stride * (s.terms[i].high - s.terms[i].low);
    }
    if (nested)
        return 0;
    /* Otherwise: two different index vectors with one address. Their difference d is not zero; fix its first non-zero
     * component (by symmetry positive) in turn and let the later ones be free. */
    for (int first = 0; first < s.n_terms; first++) {
        search difference = { .budget = s.budget };
        search_add(&difference, s.terms[first].stride, 1, s.terms[first].high - s.terms[first].low);
        for (int i = first + 1; i < s.n_terms; i++) {
            int64_t n = s.terms[i].high - s.terms[i].low;
            search_add_merged(&difference, s.terms[i].stride, -n, n);
        }
        if (search_reaches(&difference, 0, 0))
            return 1;
    }
    return 0;
}

int tensors_identical(const ol_tensor *a, const ol_tensor *b)
{
    if (a->data != b->data || a->dtype != b->dtype || a->rank != b->rank)
        return 0;
    for (int32_t d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d] || (a->shape[d] > 1 && a->strides[d] != b->strides[d]))
            return 0;
    return 1;
}
