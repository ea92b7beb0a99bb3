/* Which outputs may touch what: an output may be exactly an input (in place); anything else shared is refused.
 *
 * Ranges of bytes are compared first, for nearly always they are apart; only where two meet are the strides looked at, so that
 * interleaved views of one buffer (columns of one matrix) are told from real overlaps. Up to a few dozen tensors every output
 * is held against every tensor; beyond, the ranges are sorted and swept. */
#include "composite.h"
#include "sort.h"
#include "status.h"

typedef struct check {
    const ol_composite *composite;
    const ol_tensor *inputs, *outputs;
    const tensor_facts *facts;           /* inputs first, then outputs; a tensor's number counts so too */
    uint32_t n_inputs;
    int *in_place;
    ol_error *error;
} check;

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

static inline int meet(const tensor_facts *a, const tensor_facts *b)
{
    return a->low < b->high && b->low < a->high;
}

static ol_status check_pairs(const check *c, uint32_t n)
{
    for (uint32_t o = c->n_inputs; o < n; o++)
        for (uint32_t t = 0; t < o; t++)
            if (meet(&c->facts[t], &c->facts[o])) {
                ol_status status = check_pair(c, t, o);
                if (status != OL_OK)
                    return status;
            }
    return OL_OK;
}

static int compare_low(const void *facts, uint32_t a, uint32_t b)
{
    const tensor_facts *f = facts;
    return (f[a].low > f[b].low) - (f[a].low < f[b].low);
}

static ol_status sweep(const check *c, uint32_t *order, uint32_t n)
{
    sort_indices(order, n, compare_low, c->facts);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n && c->facts[order[j]].low < c->facts[order[i]].high; j++) {
            uint32_t a = order[i] < order[j] ? order[i] : order[j], b = order[i] < order[j] ? order[j] : order[i];
            if (b < c->n_inputs || !meet(&c->facts[a], &c->facts[b]))
                continue;
            ol_status status = check_pair(c, a, b);
            if (status != OL_OK)
                return status;
        }
    return OL_OK;
}

ol_status overlap_check(const ol_composite *composite, const ol_tensor *inputs, const ol_tensor *outputs, const tensor_facts *facts,
                        uint32_t *order, int *in_place, ol_error *error)
{
    uint32_t n_inputs = (uint32_t)composite->traced->n_inputs, n = n_inputs + (uint32_t)composite->traced->n_outputs;
    check c = { composite, inputs, outputs, facts, n_inputs, in_place, error };
    *in_place = 0;
    for (uint32_t t = n_inputs; t < n; t++) {
        const ol_tensor *tensor = &outputs[t - n_inputs];
        if (!facts[t].contiguous && tensor_overlaps_itself(tensor)) {
            shape_text shape_, strides;
            return fail(error, OL_ERROR_OVERLAP, composite->operation, "output %u repeats an element: shape %s with strides %s", t - n_inputs,
                        shape_to_text(&shape_, tensor->rank, tensor->shape), shape_to_text(&strides, tensor->rank, tensor->strides));
        }
    }
    return order ? sweep(&c, order, n) : check_pairs(&c, n);
}
