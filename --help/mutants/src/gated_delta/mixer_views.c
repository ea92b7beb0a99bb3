/* q, k, v and z among the channels of a projection, of weights or of windows, as views. Nothing is read or copied, so they hold for a
 * device's memory too. */
#include "onelaunch_gated_delta.h"

#include "dtype.h"
#include "status.h"

#include <inttypes.h>
#include <string.h>

static const char operation[] = "gated_delta_mixer_split";

/* Where one of the four lies along the axis: from element `first` on, `outer` groups, `stride` elements apart, each of `members` heads (0: the
 * groups are heads) of dim elements. */
typedef struct place {
    int64_t first, outer, stride, members, dim;
} place;

static int64_t times(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

static ol_tensor view_of(const ol_tensor *t, int32_t axis, const place *p)
{
    ol_tensor v = *t;
    int64_t stride = t->strides[axis];
    int32_t added = p->members ? 2 : 1;
    size_t n_behind = (size_t)(t->rank - axis - 1);
    memmove(&v.shape[axis + added + 1], &t->shape[axis + 1], n_behind * sizeof *v.shape);
    memmove(&v.strides[axis + added + 1], &t->strides[axis + 1], n_behind * sizeof *v.strides);
    v.shape[axis] = p->outer;
    v.strides[axis] = times(stride, p->stride);
    if (p->members) {
        v.shape[axis + 1] = p->members;
        v.strides[axis + 1] = times(stride, p->dim);
    }
    v.shape[axis + added] = p->dim;
    v.strides[axis + added] = stride;
    v.rank += added;
    /* An integer, since a device's address is no object of ours; NULL stays NULL. */
    if (t->data)
        v.data = (void *)((uintptr_t)t->data + (uintptr_t)times(stride, p->first) * dtype_sizes[t->dtype]);
    return v;
}

static ol_status check_geometry(const ol_gated_delta_options *g, ol_error *error)
{
    if (g->key_heads < 1 || g->value_heads < 1 || g->value_heads % g->key_heads)
        return fail(error, OL_ERROR_ARGUMENT, operation, "%d value heads and %d key heads; expected 1 or more, and a multiple", (int)g->value_heads, (int)g->key_heads);
    if (g->key_dim < 1 || g->key_dim > OL_DELTA_MAX_DIM || g->value_dim < 1 || g->value_dim > OL_DELTA_MAX_DIM)
        return fail(error, OL_ERROR_ARGUMENT, operation, "key_dim is %d and value_dim is %d; expected 1 to %d", (int)g->key_dim, (int)g->value_dim, OL_DELTA_MAX_DIM);
    return OL_OK;
}

ol_status ol_gated_delta_mixer_split(const ol_tensor *tensor, int32_t axis, ol_mixer_layout layout, const ol_gated_delta_options *g, ol_tensor *query,
                                     ol_tensor *key, ol_tensor *value, ol_tensor *gate, ol_error *error)
{
    if (!tensor || !g || !query || !key || !value)
        return fail(error, OL_ERROR_ARGUMENT, operation, "%s is NULL", !tensor ? "the tensor" : !g ? "the geometry" : !query ? "query" : !key ? "key" : "value");
    if ((unsigned)layout > OL_MIXER_INTERLEAVED)
        return fail(error, OL_ERROR_ARGUMENT, operation, "layout is %d; expected OL_MIXER_JOINT or OL_MIXER_INTERLEAVED", (int)layout);
    ol_status status = check_geometry(g, error);
    if (status != OL_OK)
        return status;
    if (!dtype_valid(tensor->dtype))
        return fail(error, OL_ERROR_DTYPE, operation, "the dtype of the tensor is %d, which is none", (int)tensor->dtype);
    int interleaved = layout == OL_MIXER_INTERLEAVED;
    int32_t max_rank = OL_MAX_RANK - (interleaved ? 2 : 1);
    if (tensor->rank < 1 || tensor->rank > max_rank)
        return fail(error, OL_ERROR_SHAPE, operation, "the rank of the tensor is %d; expected 1 to %d", (int)tensor->rank, (int)max_rank);
    int32_t at = axis < 0 ? axis + tensor->rank : axis;
    if (at < 0 || at >= tensor->rank)
        return fail(error, OL_ERROR_ARGUMENT, operation, "axis is %d; expected %d to %d", (int)axis, (int)-tensor->rank, (int)tensor->rank - 1);
    int64_t K = g->key_dim, V = g->value_dim, HK = g->key_heads, HV = g->value_heads, r = HV / HK;
    int64_t without = 2 * HK * K + HV * V, with = without + HV * V, n = tensor->shape[at];
    if (n != without && n != with)
        return fail(error, OL_ERROR_SHAPE, operation, "axis %d has %" PRId64 " channels; expected %" PRId64 ", or %" PRId64 " with a gate's", (int)axis, n, without, with);
    if (gate && n != with)
        return fail(error, OL_ERROR_ARGUMENT, operation, "a gate is asked for, but axis %d has %" PRId64 " channels, without one; expected %" PRId64, (int)axis, n, with);
    int64_t group = n / HK;            /* the channels of a key head */
    const place joint[] = { { 0, HK, K, 0, K }, { HK * K, HK, K, 0, K }, { 2 * HK * K, HV, V, 0, V }, { without, HV, V, 0, V } };
    const place by_key[] = { { 0, HK, group, 0, K }, { K, HK, group, 0, K }, { 2 * K, HK, group, r, V }, { 2 * K + r * V, HK, group, r, V } };
    const place *p = interleaved ? by_key : joint;
    ol_tensor views[4];
    for (int i = 0; i < (gate ? 4 : 3); i++)
        views[i] = view_of(tensor, at, &p[i]);
    *query = views[0];
    *key = views[1];
    *value = views[2];
    if (gate)
        *gate = views[3];
    return OL_OK;
}
