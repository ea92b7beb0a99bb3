/* One tile through the program: loads, kernels, stores.
 *
 * A load points the register at the input where the tile's elements lie there contiguous and aligned, and gathers them
 * otherwise, by bytes, so that any stride and alignment works. Outputs likewise: written in place by the last kernel, or
 * scattered at the end of the tile, after every load of it, which is what makes in-place outputs right. */
#include "cpu/tile.h"

#include <string.h>

size_t tile_bytes(const program *p, size_t tile_elements)
{
    return ((p->n_registers * sizeof(void *) + 63) & ~(size_t)63) + p->tile_bytes_per_element * tile_elements;
}

static void *register_memory(const registers *r, uint32_t index)
{
    return r->memory + (size_t)r->plan->space.composite->program->register_offsets[index] * r->plan->prepared->tile_elements;
}

void registers_begin(registers *r, const plan *p, void *block)
{
    const program *prog = p->space.composite->program;
    r->plan = p;
    r->slots = block;
    r->memory = (char *)block + ((prog->n_registers * sizeof(void *) + 63) & ~(size_t)63);
    for (uint32_t i = 0; i < prog->n_registers; i++)
        r->slots[i] = register_memory(r, i);
}

/* ---- Moving elements ---- */

/* Elements are moved as bytes: what they mean does not matter here, nor how they are aligned. */
#define COPY_LOOP(size) \
    for (int64_t i = 0; i < n; i++) \
        memcpy(to + i * to_step, from + i * from_step, size)

static void copy_strided(char *to, int64_t to_step, const char *from, int64_t from_step, int size, int64_t n)
{
    if (from_step == size && to_step == size) {
        memcpy(to, from, (size_t)(n * size));
        return;
    }
    switch (size) {
    case 1: COPY_LOOP(1); break;
    case 2: COPY_LOOP(2); break;
    case 4: COPY_LOOP(4); break;
    default: COPY_LOOP(8); break;
    }
}

/* Where row `row` of a view starts, in bytes from its data, and the index of that row in each outer dimension. */
static int64_t row_start(const plan *p, const view *v, int64_t row, int64_t *index)
{
    int64_t start = 0;
    for (int d = p->space.rank - 2; d >= 0; d--) {
        index[d] = d == 0 ? row : row % p->space.dims[d];
        row /= p->space.dims[d];
        start += index[d] * v->strides[d];
    }
    return start;
}

/* From one row's start to the next one's. */
static int64_t next_row(const plan *p, const view *v, int64_t start, int64_t *index)
{
    for (int d = p->space.rank - 2; d >= 0; d--) {
        start += v->strides[d];
        if (++index[d] < p->space.dims[d] || d == 0)
            break;
        start -= index[d] * v->strides[d];
        index[d] = 0;
    }
    return start;
}

/* The tile's elements in the view's own memory, or NULL where they do not lie there as a kernel needs them. */
static char *tile_in_place(const plan *p, const view *v, const tile *t)
{
    int64_t index[OL_MAX_RANK];
    if (!v->aligned)
        return NULL;
    if (v->linear)
        return v->data + (t->row * p->row_length + t->offset) * v->size;
    if (t->n_rows == 1 && v->strides[p->space.rank - 1] == v->size)
        return v->data + row_start(p, v, t->row, index) + t->offset * v->size;
    return NULL;
}

static void gather(const plan *p, const view *v, const tile *t, char *to)
{
    int64_t index[OL_MAX_RANK], step = v->strides[p->space.rank - 1], n_row = t->length * v->size;
    if (v->scalar) {
        memcpy(to, v->data, v->size);
        repeat_bytes(to, v->size, (size_t)(t->n_rows * n_row));
        return;
    }
    int64_t start = row_start(p, v, t->row, index);
    int64_t n_rows = v->repeated ? 1 : t->n_rows;
    for (int64_t r = 0; r < n_rows; r++) {
        copy_strided(to + r * n_row, v->size, v->data + start + t->offset * step, step, v->size, t->length);
        start = next_row(p, v, start, index);
    }
    repeat_bytes(to, (size_t)(n_rows * n_row), (size_t)(t->n_rows * n_row));
}

static void scatter(const plan *p, const view *v, const tile *t, const char *from)
{
    int64_t index[OL_MAX_RANK], step = v->strides[p->space.rank - 1], n_row = t->length * v->size;
    int64_t start = row_start(p, v, t->row, index);
    for (int64_t r = 0; r < t->n_rows; r++) {
        copy_strided(v->data + start + t->offset * step, step, from + r * n_row, v->size, v->size, t->length);
        start = next_row(p, v, start, index);
    }
}

/* ---- Instructions ---- */

static inline void run_instruction(registers *r, size_t i, const tile *t)
{
    const plan *p = r->plan;
    const instruction *in = &p->space.composite->program->instructions[i];
    int64_t n = t->n_rows * t->length;
    if (in->kind == INSTRUCTION_COMPUTE) {
        p->prepared->kernels[i](r->slots[in->result], r->slots[in->operands[0]], r->slots[in->operands[1]], r->slots[in->operands[2]], (size_t)n);
    } else if (in->kind == INSTRUCTION_LOAD) {
        const view *v = &p->space.views[in->payload];
        char *place = tile_in_place(p, v, t);
        if (!place) {
            place = register_memory(r, in->result);
            gather(p, v, t, place);
        }
        r->slots[in->result] = place;
    } else {
        int size = p->space.composite->program->register_sizes[in->result];
        memcpy(r->slots[in->result], &in->payload, (size_t)size);
        repeat_bytes(r->slots[in->result], (size_t)size, (size_t)(n * size));
    }
}

void tile_hoist(registers *r, int64_t offset, int64_t length)
{
    const plan *p = r->plan;
    const program *prog = p->space.composite->program;
    /* One row (in a space of one long row: one element), then repeated to the rows (elements) of a tile. */
    int by_row = p->n_rows > 1;
    tile one = { 0, 1, offset, by_row ? length : 1 };
    int64_t n_tile = by_row ? p->rows_per_tile * length : length;
    for (size_t i = 0; i < prog->n_instructions; i++) {
        const instruction *in = &prog->instructions[i];
        if ((p->space.active && !p->space.active[i]) || !p->hoisted[i])
            continue;
        run_instruction(r, i, &one);
        if (!in->keeps_register || n_tile == one.length)
            continue;
        size_t size = prog->register_sizes[in->result];
        char *own = register_memory(r, in->result);
        if (r->slots[in->result] != own)                    /* a load: repeated beside the input, not in it */
            memcpy(own, r->slots[in->result], (size_t)one.length * size);
        r->slots[in->result] = own;
        repeat_bytes(own, (size_t)one.length * size, (size_t)n_tile * size);
    }
}

void tile_run(registers *r, const tile *t)
{
    const plan *p = r->plan;
    const program *prog = p->space.composite->program;
    const view *output_views = p->space.views + p->space.composite->traced->n_inputs;
    for (uint32_t m = 0; m < p->space.n_members; m++) {
        uint32_t o = p->space.members[m];
        char *place = p->direct[o] ? tile_in_place(p, &output_views[o], t) : NULL;
        if (p->direct[o])
            r->slots[prog->output_registers[o]] = place ? place : register_memory(r, prog->output_registers[o]);
    }
    if (p->space.active || p->hoist_elements) {
        for (size_t i = 0; i < prog->n_instructions; i++)
            if ((!p->space.active || p->space.active[i]) && !(p->hoist_elements && p->hoisted[i]))
                run_instruction(r, i, t);
    } else {
        for (size_t i = 0; i < prog->n_instructions; i++)
            run_instruction(r, i, t);
    }
    for (uint32_t m = 0; m < p->space.n_members; m++) {
        uint32_t o = p->space.members[m];
        if (!p->direct[o] || !tile_in_place(p, &output_views[o], t))
            scatter(p, &output_views[o], t, r->slots[prog->output_registers[o]]);
    }
}
