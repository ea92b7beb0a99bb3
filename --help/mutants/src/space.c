/* See space.h. */
#include "space.h"

#include "dtype.h"
#include "sort.h"

#include <string.h>

static size_t n_tensors(const ol_composite *c)
{
    return (size_t)c->traced->n_inputs + (size_t)c->traced->n_outputs;
}

size_t space_bytes(const ol_composite *c)
{
    return padded(n_tensors(c) * sizeof(view)) + padded(n_tensors(c) * sizeof(uint32_t)) +
           padded((size_t)c->traced->n_outputs * sizeof(uint32_t)) + padded(c->program->n_instructions) + padded(c->program->n_registers);
}

void space_begin(space *s, const ol_composite *c, void *block)
{
    char *at = block;
    s->composite = c;
    s->views = (view *)at;
    at += padded(n_tensors(c) * sizeof(view));
    s->used = (uint32_t *)at;
    at += padded(n_tensors(c) * sizeof(uint32_t));
    s->order = (uint32_t *)at;
    at += padded((size_t)c->traced->n_outputs * sizeof(uint32_t));
    s->active_block = (uint8_t *)at;
    at += padded(c->program->n_instructions);
    s->marks = (uint8_t *)at;
}

/* ---- Groups ---- */

static int leading_ones(const ol_tensor *t)
{
    int d = 0;
    while (d < t->rank && t->shape[d] == 1)
        d++;
    return d;
}

/* More elements first; then by the shape without its leading ones, so that equal ones stand together. */
static int compare_shapes(const ol_tensor *a, const ol_tensor *b)
{
    int64_t n_a = shape_elements(a->rank, a->shape), n_b = shape_elements(b->rank, b->shape);
    if (n_a != n_b)
        return n_a > n_b ? -1 : 1;
    int skip_a = leading_ones(a), skip_b = leading_ones(b);
    if (a->rank - skip_a != b->rank - skip_b)
        return a->rank - skip_a < b->rank - skip_b ? -1 : 1;
    for (int d = 0; d < a->rank - skip_a; d++)
        if (a->shape[skip_a + d] != b->shape[skip_b + d])
            return a->shape[skip_a + d] < b->shape[skip_b + d] ? -1 : 1;
    return 0;
}

static int compare_outputs(const void *outputs, uint32_t a, uint32_t b)
{
    const ol_tensor *t = outputs;
    return compare_shapes(&t[a], &t[b]);
}

uint32_t space_group_size(const space *s, const ol_tensor *outputs, uint32_t first)
{
    uint32_t n = (uint32_t)s->composite->traced->n_outputs, last = first + 1;
    while (last < n && compare_shapes(&outputs[s->order[first]], &outputs[s->order[last]]) == 0)
        last++;
    return last - first;
}

uint32_t space_groups(space *s, const ol_tensor *outputs)
{
    uint32_t n = (uint32_t)s->composite->traced->n_outputs, n_groups = 0;
    int one_group = 1;
    for (uint32_t i = 0; i < n; i++) {
        s->order[i] = i;
        if (one_group && (outputs[i].rank != outputs[0].rank ||
                          memcmp(outputs[i].shape, outputs[0].shape, (size_t)outputs[0].rank * sizeof(int64_t)) != 0))
            one_group = i > 0 && compare_shapes(&outputs[0], &outputs[i]) == 0;
    }
    if (one_group)
        return 1;
    sort_indices(s->order, n, compare_outputs, outputs);
    for (uint32_t first = 0; first < n; n_groups++)
        first += space_group_size(s, outputs, first);
    return n_groups;
}

/* Marks the instructions that this group's outputs need, walking back from them. Registers are reused, so a mark on a
 * register means that the value it holds at this point is wanted; the instruction that wrote it takes the mark away. */
static void find_active(space *s)
{
    const program *prog = s->composite->program;
    s->active = s->active_block;
    memset(s->marks, 0, prog->n_registers);
    for (uint32_t m = 0; m < s->n_members; m++)
        s->marks[prog->output_registers[s->members[m]]] = 1;
    for (size_t i = prog->n_instructions; i-- > 0;) {
        const instruction *in = &prog->instructions[i];
        s->active[i] = s->marks[in->result];
        if (!s->active[i])
            continue;
        s->marks[in->result] = 0;
        for (int k = 0; k < in->n_operands; k++)
            s->marks[in->operands[k]] = 1;
    }
}

/* ---- The iteration space ---- */

/* The stride of tensor t, in bytes, along the space's dimension that is `from_right` from the innermost. */
static int64_t broadcast_stride(const ol_tensor *t, int from_right)
{
    int d = t->rank - 1 - from_right;
    return d < 0 || t->shape[d] == 1 ? 0 : t->strides[d] * dtype_sizes[t->dtype];
}

static void use_view(space *s, uint32_t index, const ol_tensor *t, const int *from_right)
{
    view *v = &s->views[index];
    uintptr_t misaligned = (uintptr_t)t->data;
    v->data = t->data;
    v->size = dtype_sizes[t->dtype];
    for (int j = 0; j < s->rank; j++)
        v->strides[j] = broadcast_stride(t, from_right[j]);
    v->aligned = (misaligned & (v->size - 1u)) == 0;
    s->used[s->n_used++] = index;
}

/* The dimensions of the space with more than one element, outermost first, in the order in which the first output walks
 * memory, so that transposed tensors are walked along their memory too. Every output has its elements once in any order. */
static void choose_dimensions(space *s, const ol_tensor *first, int *from_right)
{
    s->rank = 0;
    for (int d = 0; d < first->rank; d++) {
        if (first->shape[d] == 1)
            continue;
        int64_t stride = first->strides[d] < 0 ? -first->strides[d] : first->strides[d];
        int j = s->rank++;
        for (; j > 0; j--) {
            int64_t before = first->strides[first->rank - 1 - from_right[j - 1]];
            if ((before < 0 ? -before : before) >= stride)
                break;
            s->dims[j] = s->dims[j - 1];
            from_right[j] = from_right[j - 1];
        }
        s->dims[j] = first->shape[d];
        from_right[j] = first->rank - 1 - d;
    }
}

/* Merges neighbouring dimensions that every tensor in use walks as one. */
static void collapse(space *s)
{
    int last = 0;
    for (int j = 1; j < s->rank; j++) {
        int merge = 1;
        for (uint32_t u = 0; merge && u < s->n_used; u++) {
            const view *v = &s->views[s->used[u]];
            merge = v->strides[last] == v->strides[j] * s->dims[j];
        }
        if (merge)
            s->dims[last] *= s->dims[j];
        else
            s->dims[++last] = s->dims[j];
        for (uint32_t u = 0; u < s->n_used; u++)
            s->views[s->used[u]].strides[last] = s->views[s->used[u]].strides[j];
    }
    if (s->rank > 0)
        s->rank = last + 1;
    else {
        s->rank = 1;                              /* a scalar is a row of one */
        s->dims[0] = 1;
        for (uint32_t u = 0; u < s->n_used; u++)
            s->views[s->used[u]].strides[0] = 0;
    }
}

static void describe_views(space *s)
{
    for (uint32_t u = 0; u < s->n_used; u++) {
        view *v = &s->views[s->used[u]];
        int64_t expected = v->size;
        v->linear = v->repeated = 1;
        for (int j = s->rank - 1; j >= 0; j--) {
            v->linear &= v->strides[j] == expected;
            v->repeated &= j == s->rank - 1 || v->strides[j] == 0;
            expected *= s->dims[j];
        }
        v->scalar = v->repeated && v->strides[s->rank - 1] == 0;
        v->linear |= s->rank == 1 && s->dims[0] == 1;
    }
}

int space_of_group(space *s, const ol_tensor *inputs, const ol_tensor *outputs, const uint32_t *members, uint32_t n_members, int all)
{
    const program *prog = s->composite->program;
    const ol_tensor *first = &outputs[members[0]];
    uint32_t n_inputs = (uint32_t)s->composite->traced->n_inputs;
    int from_right[OL_MAX_RANK];
    for (int d = 0; d < first->rank; d++)
        if (first->shape[d] == 0)
            return 0;
    s->members = members;
    s->n_members = n_members;
    s->active = NULL;
    if (!all)
        find_active(s);

    s->n_used = 0;
    choose_dimensions(s, first, from_right);
    for (size_t i = 0; i < prog->n_instructions; i++) {
        const instruction *in = &prog->instructions[i];
        if (in->kind == INSTRUCTION_LOAD && (all || s->active[i]))
            use_view(s, (uint32_t)in->payload, &inputs[in->payload], from_right);
    }
    for (uint32_t m = 0; m < n_members; m++)
        use_view(s, n_inputs + members[m], &outputs[members[m]], from_right);
    collapse(s);
    describe_views(s);
    return 1;
}
