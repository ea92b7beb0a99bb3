/* From shapes and strides to loops, without allocating. See plan.h. */
#include "cpu/plan.h"

#include <string.h>

size_t plan_bytes(const ol_composite *c)
{
    return space_bytes(c) + padded(c->program->n_instructions) + padded((size_t)c->traced->n_outputs);
}

void plan_begin(plan *p, const ol_composite *c, void *block)
{
    char *at = block;
    p->prepared = c->prepared;
    space_begin(&p->space, c, at);
    at += space_bytes(c);
    p->hoisted = (uint8_t *)at;
    at += padded(c->program->n_instructions);
    p->direct = (uint8_t *)at;
}

static void choose_tiles(plan *p)
{
    int64_t capacity = (int64_t)p->prepared->tile_elements;
    p->row_length = p->space.dims[p->space.rank - 1];
    p->n_rows = 1;
    for (int j = 0; j < p->space.rank - 1; j++)
        p->n_rows *= p->space.dims[j];
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
    const program *prog = p->space.composite->program;
    p->hoist_elements = 0;
    if (!prog->hoists || (p->n_tiles == 1 && p->rows_per_tile == 1))
        return;
    int by_row = p->n_rows > 1, any = 0;
    for (size_t i = 0; i < prog->n_instructions; i++) {
        const instruction *in = &prog->instructions[i];
        p->hoisted[i] = 0;
        if (p->space.active && !p->space.active[i])
            continue;
        uint8_t invariant = 1;
        if (in->kind == INSTRUCTION_LOAD)
            invariant = by_row ? p->space.views[in->payload].repeated : p->space.views[in->payload].scalar;
        for (int k = 0; k < in->n_operands; k++)
            invariant &= p->space.marks[in->operands[k]];
        p->space.marks[in->result] = p->hoisted[i] = invariant;
        any |= invariant;
    }
    if (any)
        p->hoist_elements = by_row ? p->piece_length : 1;
}

/* An output's register may be pointed at its memory unless that memory is also an input's (it may still be read), another
 * output has the same register, or the value is hoisted. */
static void find_direct(plan *p, const ol_tensor *inputs, const ol_tensor *outputs, int in_place)
{
    const program *prog = p->space.composite->program;
    uint32_t n_inputs = (uint32_t)p->space.composite->traced->n_inputs;
    memset(p->space.marks, 0, prog->n_registers);
    if (p->hoist_elements)
        for (size_t i = 0; i < prog->n_instructions; i++)
            if (p->hoisted[i] && (!p->space.active || p->space.active[i]))
                p->space.marks[prog->instructions[i].result] = 1;
    for (uint32_t m = 0; m < p->space.n_members; m++) {
        uint32_t o = p->space.members[m], r = prog->output_registers[o];
        p->direct[o] = p->space.views[n_inputs + o].aligned && !p->space.marks[r];
        p->space.marks[r] = 1;
        for (uint32_t i = 0; in_place && p->direct[o] && i < n_inputs; i++)
            p->direct[o] = inputs[i].data != outputs[o].data;
    }
}

int plan_group(plan *p, const ol_tensor *inputs, const ol_tensor *outputs, const uint32_t *members, uint32_t n_members, int all, int in_place)
{
    if (!space_of_group(&p->space, inputs, outputs, members, n_members, all))
        return 0;
    choose_tiles(p);
    find_hoisted(p);
    find_direct(p, inputs, outputs, in_place);
    return 1;
}
