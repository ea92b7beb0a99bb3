/* From shapes and strides to loops, without allocating. See plan.h. */
#include "cpu/plan.h"

#include "dtype.h"
#include "sort.h"

#include <string.h>

static size_t padded(size_t n_bytes)
{
    return (n_bytes + 63) & ~(size_t)63;
}

static size_t n_tensors(const ol_composite *c)
{
    return (size_t)c->traced->n_inputs + (size_t)c->traced->n_outputs;
}

size_t plan_bytes(const ol_composite *c)
{
    return padded(n_tensors(c) * sizeof(view)) + padded(n_tensors(c) * sizeof(uint32_t)) +
           padded((size_t)c->traced->n_outputs * sizeof(uint32_t)) + 2 * padded(c->program->n_instructions) +
           padded(c->program->n_registers) + padded((size_t)c->traced->n_outputs);
}

void plan_begin(plan *p, const ol_composite *c, void *block)
{
    char *at = block;
    p->composite = c;
    p->prepared = c->prepared;
    p->views = (view *)at;
    at += padded(n_tensors(c) * sizeof(view));
    p->used = (uint32_t *)at;
    at += padded(n_tensors(c) * sizeof(uint32_t));
    p->order = (uint32_t *)at;
    at += padded((size_t)c->traced->n_outputs * sizeof(uint32_t));
    p->active = (uint8_t *)at;
    at += padded(c->program->n_instructions);
    p->hoisted = (uint8_t *)at;
    at += padded(c->program->n_instructions);
    p->marks = (uint8_t *)at;
    at += padded(c->program->n_registers);
    p->direct = (uint8_t *)at;
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

uint32_t plan_group_size(const plan *p, const ol_tensor *outputs, uint32_t first)
{
    uint32_t n = (uint32_t)p->composite->traced->n_outputs, last = first + 1;
    while (last < n && compare_shapes(&outputs[p->order[first]], &outputs[p->order[last]]) == 0)
        last++;
    return last - first;
}

uint32_t plan_groups(plan *p, const ol_tensor *outputs)
{
    uint32_t n = (uint32_t)p->composite->traced->n_outputs, n_groups = 0;
    int one_group = 1;
    for (uint32_t i = 0; i < n; i++) {
        p->order[i] = i;
        if (one_group && (outputs[i].rank != outputs[0].rank ||
                          memcmp(outputs[i].shape, outputs[0].shape, (size_t)outputs[0].rank * sizeof(int64_t)) != 0))
            one_group = i > 0 && compare_shapes(&outputs[0], &outputs[i]) == 0;
    }
    if (one_group)
        return 1;
    sort_indices(p->order, n, compare_outputs, outputs);
    for (uint32_t first = 0; first < n; n_groups++)
        first += plan_group_size(p, outputs, first);
    return n_groups;
}

/* Marks the instructions that this group's outputs need, walking back from them. Registers are reused, so a mark on a
 * register means that the value it holds at this point is wanted; the instruction that wrote it takes the mark away. */
static void find_active(plan *p)
{
    const program *prog = p->composite->program;
    memset(p->marks, 0, prog->n_registers);
    for (uint32_t m = 0; m < p->n_members; m++)
        p->marks[prog->output_registers[p->members[m]]] = 1;
    for (size_t i = prog->n_instructions; i-- > 0;) {
        const instruction *in = &prog->instructions[i];
        p->active[i] = p->marks[in->result];
        if (!p->active[i])
            continue;
        p->marks[in->result] = 0;
        for (int k = 0; k < in->n_operands; k++)
            p->marks[in->operands[k]] = 1;
    }
}

/* ---- The iteration space ---- */

/* The stride of tensor t, in bytes, along the space's dimension that is `from_right` from the innermost. */
static int64_t broadcast_stride(const ol_tensor *t, int from_right)
{
    int d = t->rank - 1 - from_right;
    return d < 0 || t->shape[d] == 1 ? 0 : t->strides[d] * dtype_sizes[t->dtype];
}

static void use_view(plan *p, uint32_t index, const ol_tensor *t, const int *from_right)
{
    view *v = &p->views[index];
    uintptr_t misaligned = (uintptr_t)t->data;
    v->data = t->data;
    v->size = dtype_sizes[t->dtype];
    for (int j = 0; j < p->rank; j++)
        v->strides[j] = broadcast_stride(t, from_right[j]);
    v->aligned = (misaligned & (v->size - 1u)) == 0;
    p->used[p->n_used++] = index;
}

/* The dimensions of the space with more than one element, outermost first, in the order in which the first output walks
 * memory, so that transposed tensors are walked along their memory too. Every output has its elements once in any order. */
static void choose_dimensions(plan *p, const ol_tensor *first, int *from_right)
{
    p->rank = 0;
    for (int d = 0; d < first->rank; d++) {
        if (first->shape[d] == 1)
            continue;
        int64_t stride = first->strides[d] < 0 ? -first->strides[d] : first->strides[d];
        int j = p->rank++;
        for (; j > 0; j--) {
            int64_t before = first->strides[first->rank - 1 - from_right[j - 1]];
            if ((before < 0 ? -before : before) >= stride)
                break;
            p->dims[j] = p->dims[j - 1];
            from_right[j] = from_right[j - 1];
        }
        p->dims[j] = first->shape[d];
        from_right[j] = first->rank - 1 - d;
    }
}

/* Merges neighbouring dimensions that every tensor in use walks as one. */
static void collapse(plan *p)
{
    int last = 0;
    for (int j = 1; j < p->rank; j++) {
        int merge = 1;
        for (uint32_t u = 0; merge && u < p->n_used; u++) {
            const view *v = &p->views[p->used[u]];
            merge = v->strides[last] == v->strides[j] * p->dims[j];
        }
        if (merge)
            p->dims[last] *= p->dims[j];
        else
            p->dims[++last] = p->dims[j];
        for (uint32_t u = 0; u < p->n_used; u++)
            p->views[p->used[u]].strides[last] = p->views[p->used[u]].strides[j];
    }
    if (p->rank > 0)
        p->rank = last + 1;
    else {
        p->rank = 1;                              /* a scalar is a row of one */
        p->dims[0] = 1;
        for (uint32_t u = 0; u < p->n_used; u++)
            p->views[p->used[u]].strides[0] = 0;
    }
}

static void describe_views(plan *p)
{
    for (uint32_t u = 0; u < p->n_used; u++) {
        view *v = &p->views[p->used[u]];
        int64_t expected = v->size;
        v->linear = v->repeated = 1;
        for (int j = p->rank - 1; j >= 0; j--) {
            v->linear &= v->strides[j] == expected;
            v->repeated &= j == p->rank - 1 || v->strides[j] == 0;
            expected *= p->dims[j];
        }
        v->scalar = v->repeated && v->strides[p->rank - 1] == 0;
        v->linear |= p->rank == 1 && p->dims[0] == 1;
    }
}

static void choose_tiles(plan *p)
{
    int64_t capacity = (int64_t)p->prepared->tile_elements;
    p->row_length = p->dims[p->rank - 1];
    p->n_rows = 1;
    for (int j = 0; j < p->rank - 1; j++)
        p->n_rows *= p->dims[j];
    p->rows_per_tile = p->n_pieces = 1;
    p->piece_length = p->row_length;
    if (p->row_length <= capacity) {
        p->rows_per_tile = capacity / p->row_length;
        if (p->rows_per_tile > p->n_rows)
            p->rows_per_tile = p->n_rows;
        p->n_tiles = (p->n_rows + p->rows_per_tile - 1) / p->rows_per_tile;
    } else {
        p->piece_length = capacity;
        p->n_pieces = (p->row_length + capacity - 1) / capacity;
        p->n_tiles = p->n_pieces * p->n_rows;
    }
}

/* Finds the instructions whose value is the same for every row (in a space of one long row: for every element). */
static void find_hoisted(plan *p)
{
    const program *prog = p->composite->program;
    p->hoist_elements = 0;
    if (!prog->hoists || (p->n_tiles == 1 && p->rows_per_tile == 1))
        return;
    int by_row = p->n_rows > 1, any = 0;
    for (size_t i = 0; i < prog->n_instructions; i++) {
        const instruction *in = &prog->instructions[i];
        p->hoisted[i] = 0;
        if (p->active && !p->active[i])
            continue;
        uint8_t invariant = 1;
        if (in->kind == INSTRUCTION_LOAD)
            invariant = by_row ? p->views[in->payload].repeated : p->views[in->payload].scalar;
        for (int k = 0; k < in->n_operands; k++)
            invariant &= p->marks[in->operands[k]];
        p->marks[in->result] = p->hoisted[i] = invariant;
        any |= invariant;
    }
    if (any)
        p->hoist_elements = by_row ? p->piece_length : 1;
}

/* An output's register may be pointed at its memory unless that memory is also an input's (it may still be read), another
 * output has the same register, or the value is hoisted. */
static void find_direct(plan *p, const ol_tensor *inputs, const ol_tensor *outputs, int in_place)
{
    const program *prog = p->composite->program;
    uint32_t n_inputs = (uint32_t)p->composite->traced->n_inputs;
    memset(p->marks, 0, prog->n_registers);
    if (p->hoist_elements)
        for (size_t i = 0; i < prog->n_instructions; i++)
            if (p->hoisted[i] && (!p->active || p->active[i]))
                p->marks[prog->instructions[i].result] = 1;
    for (uint32_t m = 0; m < p->n_members; m++) {
        uint32_t o = p->members[m], r = prog->output_registers[o];
        p->direct[o] = p->views[n_inputs + o].aligned && !p->marks[r];
        p->marks[r] = 1;
        for (uint32_t i = 0; in_place && p->direct[o] && i < n_inputs; i++)
            p->direct[o] = inputs[i].data != outputs[o].data;
    }
}

int plan_group(plan *p, const ol_tensor *inputs, const ol_tensor *outputs, const uint32_t *members, uint32_t n_members, int all, int in_place)
{
    const program *prog = p->composite->program;
    const ol_tensor *first = &outputs[members[0]];
    uint32_t n_inputs = (uint32_t)p->composite->traced->n_inputs;
    int from_right[OL_MAX_RANK];
    for (int d = 0; d < first->rank; d++)
        if (first->shape[d] == 0)
            return 0;
    p->members = members;
    p->n_members = n_members;
    if (all)
        p->active = NULL;
    else
        find_active(p);

    p->n_used = 0;
    choose_dimensions(p, first, from_right);
    for (size_t i = 0; i < prog->n_instructions; i++) {
        const instruction *in = &prog->instructions[i];
        if (in->kind == INSTRUCTION_LOAD && (all || p->active[i]))
            use_view(p, (uint32_t)in->payload, &inputs[in->payload], from_right);
    }
    for (uint32_t m = 0; m < n_members; m++)
        use_view(p, n_inputs + members[m], &outputs[members[m]], from_right);
    collapse(p);
    describe_views(p);
    choose_tiles(p);
    find_hoisted(p);
    find_direct(p, inputs, outputs, in_place);
    return 1;
}
