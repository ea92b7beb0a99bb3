/* From graph to program: nodes fused as the backend can, loads sunk to their first use, and a linear scan that gives values
 * registers.
 *
 * An operand's register is free for the result of the same instruction when their element sizes agree (a kernel may work in
 * place); that is why temporaries are kept apart by size. */
#include "program.h"

#include "dtype.h"
#include "status.h"

typedef enum register_class { CLASS_LOAD, CLASS_TEMPORARY, N_CLASSES } register_class;

typedef struct builder {
    const graph *g;
    program *p;
    uint32_t *last_use;           /* by node: the last node that reads it; NODE_NONE: never freed */
    uint32_t *register_of;        /* by node, or NODE_NONE before it has one */
    uint8_t *hoistable, *is_output;
    uint8_t *once;                /* by node: read once, and no output */
    uint8_t *needed;              /* by node: it has an instruction; the others are fused into one that reads them */
    const ol_device *device;
    fuse_function fuse;
    uint32_t *free_next;          /* by register: the next free one of its class and size */
    size_t free_capacity;
    uint32_t free_first[N_CLASSES][9];
} builder;

/* What computes a node: itself, or a fused kernel. */
static fusion instruction_of(const builder *b, uint32_t index)
{
    const node *n = &b->g->nodes[index];
    fusion f;
    if (b->fuse && n->kind == NODE_PRIMITIVE && b->fuse(b->device, b->g, index, b->once, &f))
        return f;
    f = (fusion){ .n_operands = (uint8_t)node_reads(n), .name = node_name(n) };
    for (int k = 0; k < f.n_operands; k++)
        f.operands[k] = n->operands[k];
    return f;
}

static uint32_t new_register(builder *b, int size)
{
    program *p = b->p;
    size_t n = p->n_registers + 1;
    if (!memory_grow(&p->allocator, (void **)&p->register_offsets, &p->registers_capacity, n, sizeof *p->register_offsets) ||
        !memory_grow(&p->allocator, (void **)&p->register_sizes, &p->sizes_capacity, n, 1) ||
        !memory_grow(&p->allocator, (void **)&b->free_next, &b->free_capacity, n, sizeof *b->free_next))
        return NODE_NONE;
    p->register_offsets[p->n_registers] = (uint32_t)p->tile_bytes_per_element;
    p->register_sizes[p->n_registers] = (uint8_t)size;
    p->tile_bytes_per_element += (size_t)size;
    return p->n_registers++;
}

static uint32_t take_register(builder *b, register_class class, int size, int dedicated)
{
    uint32_t r = b->free_first[class][size];
    if (dedicated || r == NODE_NONE)
        return new_register(b, size);
    b->free_first[class][size] = b->free_next[r];
    return r;
}

static void give_register(builder *b, uint32_t node_index)
{
    const node *n = &b->g->nodes[node_index];
    register_class class = n->kind == NODE_INPUT ? CLASS_LOAD : CLASS_TEMPORARY;
    uint32_t r = b->register_of[node_index];
    b->free_next[r] = b->free_first[class][dtype_sizes[n->dtype]];
    b->free_first[class][dtype_sizes[n->dtype]] = r;
    b->register_of[node_index] = NODE_NONE;
}

/* Emits the instruction of a node whose operands have registers; the operands that die here are freed in between, so that
 * the result may take their place. */
static int emit(builder *b, uint32_t index, const fusion *f)
{
    program *p = b->p;
    const node *n = &b->g->nodes[index];
    int dedicated = b->is_output[index] || (p->hoists && b->hoistable[index]);
    instruction i = { .dtype = n->dtype, .node = index, .payload = n->payload, .keeps_register = (uint8_t)dedicated };
    i.kind = n->kind == NODE_INPUT ? INSTRUCTION_LOAD : n->kind == NODE_CONSTANT ? INSTRUCTION_CONSTANT : INSTRUCTION_COMPUTE;
    i.n_operands = f->n_operands;
    i.fused = f->kernel;
    i.name = f->name;
    for (int k = 0; k < 3 && i.n_operands; k++)
        i.operands[k] = b->register_of[f->operands[k < i.n_operands ? k : 0]];
    for (int k = 0; k < i.n_operands; k++) {
        uint32_t o = f->operands[k];
        if (b->last_use[o] == index && b->register_of[o] != NODE_NONE)        /* not yet freed by an equal operand */
            give_register(b, o);
    }
    i.result = take_register(b, n->kind == NODE_INPUT ? CLASS_LOAD : CLASS_TEMPORARY, dtype_sizes[n->dtype], dedicated);
    if (i.result == NODE_NONE ||
        !memory_grow(&p->allocator, (void **)&p->instructions, &p->instructions_capacity, p->n_instructions + 1, sizeof *p->instructions))
        return 0;
    b->register_of[index] = i.result;
    p->instructions[p->n_instructions++] = i;
    return 1;
}

/* Marks the outputs and the nodes that one other node reads, once. */
static void mark_once(builder *b)
{
    const graph *g = b->g;
    uint8_t *read = b->needed;                                /* borrowed: 0, 1 or 2 for more */
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_operands; k++)
            read[g->nodes[i].operands[k]] += read[g->nodes[i].operands[k]] < 2;
    for (int32_t i = 0; i < g->n_outputs; i++)
        b->is_output[g->outputs[i]] = 1;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        b->once[i] = read[i] == 1 && !b->is_output[i];
        read[i] = 0;
    }
}

/* Walking back from the outputs: marks the nodes that need an instruction, those that are hoistable, and the last use of
 * each; counts the hoistable ones and adds up the cost. */
static size_t mark(builder *b, const dependencies *d)
{
    const graph *g = b->g;
    size_t n_hoistable = 0;
    mark_once(b);
    for (uint32_t i = (uint32_t)g->n_nodes; i-- > 0;) {
        const node *n = &g->nodes[i];
        b->last_use[i] = b->needed[i] && !b->is_output[i] ? b->last_use[i] : NODE_NONE;
        b->register_of[i] = NODE_NONE;
        b->p->cost_per_element += n->kind == NODE_PRIMITIVE ? primitive_table[n->primitive].cost : 1;
        if (!b->needed[i] && !b->is_output[i])
            continue;
        b->needed[i] = 1;
        fusion f = instruction_of(b, i);
        for (int k = 0; k < f.n_operands; k++) {
            uint32_t o = f.operands[k];
            if (!b->needed[o])
                b->last_use[o] = i;
            b->needed[o] = 1;
            if (d->data_set[o] != d->data_set[i] && !b->hoistable[o]) {
                b->hoistable[o] = 1;
                n_hoistable++;
            }
        }
    }
    return n_hoistable;
}

static int build(builder *b, const dependencies *d)
{
    const graph *g = b->g;
    b->p->hoists = mark(b, d) <= MAX_HOISTABLE;
    for (uint32_t i = 0; b->p->hoists && i < g->n_nodes; i++)
        if (b->hoistable[i])
            b->last_use[i] = NODE_NONE;
    for (uint32_t i = (uint32_t)g->n_inputs; i < g->n_nodes; i++) {
        if (!b->needed[i] || g->nodes[i].kind == NODE_CONSTANT)
            continue;
        fusion f = instruction_of(b, i);
        for (int k = 0; k < f.n_operands; k++) {
            uint32_t o = f.operands[k];
            fusion leaf = { .name = node_name(&g->nodes[o]) };
            if (g->nodes[o].kind <= NODE_CONSTANT && b->register_of[o] == NODE_NONE && !emit(b, o, &leaf))
                return 0;
        }
        if (!emit(b, i, &f))
            return 0;
    }
    for (int32_t i = 0; i < g->n_outputs; i++)
        b->p->output_registers[i] = b->register_of[g->outputs[i]];
    return 1;
}

ol_status program_create(const graph *g, const dependencies *d, const ol_device *device, fuse_function fuse, program **out, ol_error *error)
{
    const ol_allocator *a = &g->allocator;
    builder b = { .g = g, .device = device, .fuse = fuse };
    for (int c = 0; c < N_CLASSES; c++)
        for (int s = 0; s < 9; s++)
            b.free_first[c][s] = NODE_NONE;
    size_t n = g->n_nodes;
    b.last_use = memory_take(a, memory_size(n, sizeof *b.last_use));
    b.register_of = memory_take(a, memory_size(n, sizeof *b.register_of));
    b.hoistable = memory_take(a, n);
    b.is_output = memory_take(a, n);
    b.once = memory_take(a, n);
    b.needed = memory_take(a, n);
    program *p = b.p = memory_take(a, sizeof *p);
    if (p) {
        p->allocator = *a;
        p->n_outputs = g->n_outputs;
        p->output_registers = memory_take(a, memory_size((size_t)g->n_outputs, sizeof *p->output_registers));
    }
    int ok = b.last_use && b.register_of && b.hoistable && b.is_output && b.once && b.needed && p && p->output_registers && build(&b, d);
    memory_give(a, b.last_use, n * sizeof *b.last_use);
    memory_give(a, b.register_of, n * sizeof *b.register_of);
    memory_give(a, b.hoistable, n);
    memory_give(a, b.is_output, n);
    memory_give(a, b.once, n);
    memory_give(a, b.needed, n);
    memory_give(a, b.free_next, b.free_capacity * sizeof *b.free_next);
    if (!ok) {
        program_destroy(p);
        return fail(error, OL_ERROR_MEMORY, g->name, "no memory for a program of %zu nodes", n);
    }
    *out = p;
    return OL_OK;
}

void program_destroy(program *p)
{
    if (!p)
        return;
    ol_allocator allocator = p->allocator;
    memory_give(&allocator, p->instructions, p->instructions_capacity * sizeof *p->instructions);
    memory_give(&allocator, p->register_offsets, p->registers_capacity * sizeof *p->register_offsets);
    memory_give(&allocator, p->register_sizes, p->sizes_capacity);
    memory_give(&allocator, p->output_registers, (size_t)p->n_outputs * sizeof *p->output_registers);
    memory_give(&allocator, p, sizeof *p);
}
