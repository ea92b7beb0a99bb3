/* Views that meet the gates where models leave them: two slices of one projection, and an axis of value heads as two. Nothing is read or
 * copied, so the same views hold for a device's memory. */
#include "onelaunch_gated_delta.h"

#include "dtype.h"
#include "status.h"

#include <inttypes.h>
#include <string.h>

/* The address so many elements on; NULL stays NULL (a tensor without data, for ol_output_shapes). Integers, since a device's
 * address is no object of ours. */
static void *data_at(const ol_tensor *t, int64_t n_elements)
{
    return t->data ? (void *)((uintptr_t)t->data + (uintptr_t)n_elements * dtype_sizes[t->dtype]) : NULL;
}

static ol_status check(const ol_tensor *t, int32_t max_rank, const char *operation, const char *what, ol_error *error)
{
    if (!dtype_valid(t->dtype))
        return fail(error, OL_ERROR_DTYPE, operation, "the dtype of the %s is %d, which is none", what, (int)t->dtype);
    if (t->rank < 1 || t->rank > max_rank)
        return fail(error, OL_ERROR_SHAPE, operation, "the rank of the %s is %d; expected 1 to %d", what, (int)t->rank, (int)max_rank);
    return OL_OK;
}

/* Axis `axis` of n elements as two of outer and n / outer, with these strides. */
static void split_axis(ol_tensor *t, int32_t axis, int64_t outer, int64_t outer_stride, int64_t inner, int64_t inner_stride)
{
    size_t n_behind = (size_t)(t->rank - axis - 1);
    memmove(&t->shape[axis + 2], &t->shape[axis + 1], n_behind * sizeof *t->shape);
    memmove(&t->strides[axis + 2], &t->strides[axis + 1], n_behind * sizeof *t->strides);
    t->shape[axis] = outer;
    t->shape[axis + 1] = inner;
    t->strides[axis] = outer_stride;
    t->strides[axis + 1] = inner_stride;
    t->rank++;
}

ol_status ol_gated_delta_split(const ol_tensor *projection, ol_gate_layout layout, int64_t key_heads, ol_tensor *b, ol_tensor *a, ol_error *error)
{
    static const char operation[] = "gated_delta_split";
    if (!projection || !b || !a)
        return fail(error, OL_ERROR_ARGUMENT, operation, "%s is NULL", !projection ? "the projection" : !b ? "b" : "a");
    if ((unsigned)layout > OL_GATE_INTERLEAVED)
        return fail(error, OL_ERROR_ARGUMENT, operation, "layout is %d; expected OL_GATE_HALVES or OL_GATE_INTERLEAVED", (int)layout);
    int interleaved = layout == OL_GATE_INTERLEAVED;
    if (interleaved && key_heads < 1)
        return fail(error, OL_ERROR_ARGUMENT, operation, "key_heads is %" PRId64 "; expected at least 1", key_heads);
    ol_status status = check(projection, interleaved ? OL_MAX_RANK - 1 : OL_MAX_RANK, operation, "projection", error);
    if (status != OL_OK)
        return status;
    ol_tensor half = *projection;
    int32_t last = half.rank - 1;
    int64_t n = half.shape[last], stride = half.strides[last], groups = interleaved ? key_heads : 1;
    if (n < 0 || n % 2 != 0 || n / 2 % groups != 0)
        return fail(error, OL_ERROR_SHAPE, operation, "the projection's last axis has %" PRId64 " elements; expected b and a of equally many value heads for each of %" PRId64 " key heads",
                    n, groups);
    int64_t each = n / 2 / groups;                     /* value heads of a key head */
    int64_t group_stride = (int64_t)((uint64_t)stride * (uint64_t)(2 * each)), offset = (int64_t)((uint64_t)stride * (uint64_t)each);
    if (interleaved)
        split_axis(&half, last, groups, group_stride, each, stride);
    else
        half.shape[last] = each;
    *b = half;
    half.data = data_at(&half, offset);
    *a = half;
    return OL_OK;
}

ol_status ol_gated_delta_heads_view(const ol_tensor *tensor, int32_t axis, int64_t key_heads, ol_head_map map, ol_tensor *view, ol_error *error)
{
    static const char operation[] = "gated_delta_heads_view";
    if (!tensor || !view)
        return fail(error, OL_ERROR_ARGUMENT, operation, "%s is NULL", !tensor ? "the tensor" : "the view");
    if ((unsigned)map > OL_HEADS_TILED)
        return fail(error, OL_ERROR_ARGUMENT, operation, "map is %d; expected OL_HEADS_GROUPED or OL_HEADS_TILED", (int)map);
    if (key_heads < 1)
        return fail(error, OL_ERROR_ARGUMENT, operation, "key_heads is %" PRId64 "; expected at least 1", key_heads);
    ol_status status = check(tensor, OL_MAX_RANK - 1, operation, "tensor", error);
    if (status != OL_OK)
        return status;
    int32_t at = axis < 0 ? axis + tensor->rank : axis;
    if (at < 0 || at >= tensor->rank)
        return fail(error, OL_ERROR_ARGUMENT, operation, "axis is %d; expected %d to %d", (int)axis, (int)-tensor->rank, (int)tensor->rank - 1);
    int64_t n = tensor->shape[at], stride = tensor->strides[at], each = n / key_heads;
    if (n < 0 || n % key_heads != 0)
        return fail(error, OL_ERROR_SHAPE, operation, "axis %d has %" PRId64 " value heads; expected a multiple of the %" PRId64 " key heads", (int)axis, n, key_heads);
    ol_tensor split = *tensor;
    if (map == OL_HEADS_GROUPED)                       /* head k * each + j is [k, j] */
        split_axis(&split, at, key_heads, (int64_t)((uint64_t)stride * (uint64_t)each), each, stride);
    else                                               /* head j * key_heads + k is */
        split_axis(&split, at, key_heads, stride, each, (int64_t)((uint64_t)stride * (uint64_t)key_heads));
    *view = split;
    return OL_OK;
}
