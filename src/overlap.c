/* Which outputs may touch what: an output may be exactly an input (in place); anything else shared is refused.
 *
 * Ranges of bytes are compared first, for nearly always they are apart; only where two meet are the strides looked at, so that
 * interleaved views of one buffer (columns of one matrix) are told from real overlaps. Up to a few dozen tensors every output
 * is held against every tensor; beyond, the ranges are sorted and swept. */
#include "composite.h"
#include "status.h"

typedef struct entry {
    byte_range range;
    uint32_t tensor;                 /* inputs first, then outputs */
} entry;

typedef struct check {
    const ol_composite *composite;
    const ol_tensor *inputs, *outputs;
    uint32_t n_inputs;
    int *in_place;
    ol_error *error;
} check;

size_t overlap_scratch_bytes(size_t n_tensors)
{
    return n_tensors * sizeof(entry);
}

static const ol_tensor *tensor_of(const check *c, uint32_t tensor)
{
    return tensor < c->n_inputs ? &c->inputs[tensor] : &c->outputs[tensor - c->n_inputs];
}

/* Two tensors whose ranges meet, `b` an output. */
__attribute__((noinline))
static ol_status check_pair(const check *c, uint32_t a, uint32_t b)
{
    const ol_tensor *ta = tensor_of(c, a), *tb = tensor_of(c, b);
    if (a < c->n_inputs && tensors_identical(ta, tb)) {
        *c->in_place = 1;
        return OL_OK;
    }
    if (!tensors_overlap(ta, tb))
        return OL_OK;
    if (a < c->n_inputs)
        return fail(c->error, OL_ERROR_OVERLAP, c->composite->operation,
                    "output %u overlaps input %u without being exactly the same view (data, dtype, shape, strides)", b - c->n_inputs, a);
    uint32_t first = a < b ? a : b, second = a < b ? b : a;
    return fail(c->error, OL_ERROR_OVERLAP, c->composite->operation, "output %u overlaps output %u", second - c->n_inputs, first - c->n_inputs);
}

static int meet(byte_range a, byte_range b)
{
    return a.low < b.high && b.low < a.high;
}

static ol_status check_pairs(const check *c, const entry *entries, uint32_t n)
{
    for (uint32_t o = c->n_inputs; o < n; o++)
        for (uint32_t t = 0; t < o; t++)
            if (meet(entries[t].range, entries[o].range)) {
                ol_status status = check_pair(c, t, o);
                if (status != OL_OK)
                    return status;
            }
    return OL_OK;
}

/* Heap sort by the lower end: qsort may allocate. */
static void sift_down(entry *e, size_t root, size_t n)
{
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        child += child + 1 < n && e[child + 1].range.low > e[child].range.low;
        if (e[root].range.low >= e[child].range.low)
            return;
        entry t = e[root];
        e[root] = e[child];
        e[child] = t;
    }
}

static void sort_entries(entry *e, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(e, i, n);
    for (size_t i = n; i-- > 1;) {
        entry t = e[0];
        e[0] = e[i];
        e[i] = t;
        sift_down(e, 0, i);
    }
}

static ol_status sweep(const check *c, entry *entries, uint32_t n)
{
    sort_entries(entries, n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n && entries[j].range.low < entries[i].range.high; j++) {
            uint32_t a = entries[i].tensor, b = entries[j].tensor;
            if (a > b) {
                uint32_t t = a;
                a = b;
                b = t;
            }
            if (b < c->n_inputs || !meet(entries[i].range, entries[j].range))
                continue;
            ol_status status = check_pair(c, a, b);
            if (status != OL_OK)
                return status;
        }
    return OL_OK;
}

static int is_contiguous(const ol_tensor *t)
{
    int64_t expected = 1;
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        if (t->shape[d] != 1 && t->strides[d] != expected)
            return 0;
        expected *= t->shape[d];
    }
    return 1;
}

ol_status overlap_check(const ol_composite *composite, const ol_tensor *inputs, const ol_tensor *outputs, int *in_place, ol_error *error)
{
    uint32_t n_inputs = (uint32_t)composite->traced->n_inputs, n = n_inputs + (uint32_t)composite->traced->n_outputs;
    check c = { composite, inputs, outputs, n_inputs, in_place, error };
    entry few[OVERLAP_STACK_TENSORS];
    entry *entries = composite->ranges ? workspace_take(composite->ranges) : few;
    ol_status status = OL_OK;
    *in_place = 0;
    for (uint32_t t = 0; t < n && status == OL_OK; t++) {
        const ol_tensor *tensor = tensor_of(&c, t);
        entries[t] = (entry){ tensor_range(tensor), t };
        if (t >= n_inputs && !is_contiguous(tensor) && tensor_overlaps_itself(tensor)) {
            shape_text shape_, strides;
            status = fail(error, OL_ERROR_OVERLAP, composite->operation, "output %u repeats an element: shape %s with strides %s", t - n_inputs,
                          shape_to_text(&shape_, tensor->rank, tensor->shape), shape_to_text(&strides, tensor->rank, tensor->strides));
        }
    }
    if (status == OL_OK)
        status = composite->ranges ? sweep(&c, entries, n) : check_pairs(&c, entries, n);
    if (composite->ranges)
        workspace_give(composite->ranges, entries);
    return status;
}
