/* The short way for the replay of a few tokens: every tensor is one contiguous run, nothing is in place, and all of it fits a
 * tile. Each input has either as many elements as the outputs, or is a row that they repeat ([heads] beside [tokens, heads]).
 * Then there is nothing to plan: operands and results are the caller's memory, and the program runs once, what depends on rows
 * alone for one row. At one token this is most of what a replay costs beside its arithmetic, so the program has a form of its
 * own here, in which an operand is a slot whatever it is: the inputs first, then the outputs, then registers. */
#include "cpu/cpu.h"
#include "numerics/fpenv.h"

#define NO_SLOT 0xFF

/* Gives each value of the program its slot. False where there are too many, or where two outputs are one value (they need a
 * copy, which only the general way makes). */
static int assign_slots(const ol_composite *c, dense_program *d, uint8_t *slot_of_register)
{
    const program *prog = c->program;
    size_t capacity = ((const cpu_prepared *)c->prepared)->tile_elements;
    uint32_t n_inputs = (uint32_t)c->traced->n_inputs, n_outputs = (uint32_t)c->traced->n_outputs;
    if (n_inputs + n_outputs + prog->n_registers > DENSE_MAX_SLOTS)
        return 0;
    memset(slot_of_register, NO_SLOT, prog->n_registers);
    for (uint32_t o = 0; o < n_outputs; o++) {
        if (slot_of_register[prog->output_registers[o]] != NO_SLOT)
            return 0;
        slot_of_register[prog->output_registers[o]] = (uint8_t)(n_inputs + o);
    }
    d->n_slots = n_inputs + n_outputs;
    for (size_t i = 0; i < prog->n_instructions; i++) {
        const instruction *in = &prog->instructions[i];
        uint32_t offset = (uint32_t)(prog->register_offsets[in->result] * capacity);
        if (in->kind == INSTRUCTION_LOAD) {
            d->offsets[in->payload] = offset;
            d->mixed_inputs |= (uint64_t)in->keeps_register << in->payload;
        } else if (slot_of_register[in->result] == NO_SLOT) {
            d->offsets[d->n_slots] = offset;
            slot_of_register[in->result] = (uint8_t)d->n_slots++;
        }
    }
    return 1;
}

int dense_prepare(ol_composite *c)
{
    cpu_prepared *p = c->prepared;
    const program *prog = c->program;
    uint8_t slot_of_register[DENSE_MAX_SLOTS];
    uint64_t inputs_of_register[DENSE_MAX_SLOTS] = { 0 };
    dense_program *d = &p->dense;
    if (p->tiles || !prog->hoists || !assign_slots(c, d, slot_of_register))
        return 1;
    d->steps_bytes = prog->n_instructions * sizeof *d->steps;
    d->steps = memory_take(&c->device->allocator, d->steps_bytes);
    if (!d->steps)
        return 0;
    for (size_t i = 0; i < prog->n_instructions; i++) {
        const instruction *in = &prog->instructions[i];
        if (in->kind == INSTRUCTION_LOAD) {                  /* until the next load of this register, it is that input */
            slot_of_register[in->result] = (uint8_t)in->payload;
            inputs_of_register[in->result] = 1ull << in->payload;
            continue;
        }
        dense_step *s = &d->steps[d->n_steps++];
        *s = (dense_step){ .kernel = p->kernels[i], .result = slot_of_register[in->result], .size = prog->register_sizes[in->result],
                           .keeps_register = in->keeps_register, .bits = in->payload };
        for (int k = 0; k < 3 && in->n_operands; k++) {
            s->operands[k] = slot_of_register[in->operands[k]];
            s->inputs |= inputs_of_register[in->operands[k]];
        }
        inputs_of_register[in->result] = s->inputs;
    }
    return 1;
}

/* Whether the tensors are runs of n elements that kernels can be pointed at. */
static int outputs_dense(const ol_tensor *outputs, const tensor_facts *facts, int32_t n_outputs, int64_t n)
{
    int dense = 1;
    for (int32_t i = 0; i < n_outputs; i++)
        dense &= facts[i].contiguous & (facts[i].n_elements == n) & dtype_aligned(outputs[i].dtype, outputs[i].data);
    return dense;
}

/* Whether an input's shape, leading ones aside, is the end of the output's: then it is one row of it, repeated. */
static int is_row_of(const ol_tensor *input, const ol_tensor *output)
{
    int32_t skip = 0;
    while (skip < input->rank && input->shape[skip] == 1)
        skip++;
    int32_t rank = input->rank - skip;
    for (int32_t d = 1; d <= rank; d++)
        if (d > output->rank || input->shape[input->rank - d] != output->shape[output->rank - d])
            return 0;
    return 1;
}

/* Finds the inputs that are rows, all of *row elements. Inputs of n elements that broadcast to an output of n elements have its
 * shape but for ones, so each element is computed from the same place in them, whatever the outputs' shapes are; rows need
 * outputs of one shape. */
static int inputs_dense(const ol_composite *c, const ol_tensor *inputs, const ol_tensor *outputs, const tensor_facts *facts, int64_t n,
                        int64_t *row, uint64_t *rows)
{
    *rows = 0;
    *row = n;
    for (int32_t i = 0; i < c->traced->n_inputs; i++) {
        if (!facts[i].contiguous || !dtype_aligned(inputs[i].dtype, inputs[i].data))
            return 0;
        if (facts[i].n_elements == n)
            continue;
        if ((*rows && facts[i].n_elements != *row) || !is_row_of(&inputs[i], &outputs[0]))
            return 0;
        *row = facts[i].n_elements;
        *rows |= 1ull << i;
    }
    for (int32_t o = 1; *rows && o < c->traced->n_outputs; o++)
        if (outputs[o].rank != outputs[0].rank || memcmp(outputs[o].shape, outputs[0].shape, (size_t)outputs[0].rank * sizeof(int64_t)) != 0)
            return 0;
    return 1;
}

static void fill(char *to, uint64_t bits, size_t size, size_t n)
{
    memcpy(to, &bits, size);
    repeat_bytes(to, size, n * size);
}

int dense_replay(const ol_composite *c, const ol_tensor *inputs, const ol_tensor *outputs, const tensor_facts *facts)
{
    const cpu_prepared *p = c->prepared;
    const dense_program *d = &p->dense;
    int32_t n_inputs = c->traced->n_inputs, n_outputs = c->traced->n_outputs;
    int64_t n = facts[n_inputs].n_elements, row;
    uint64_t rows;
    if (n > (int64_t)p->tile_elements || n == 0 || !outputs_dense(outputs, facts + n_inputs, n_outputs, n) ||
        !inputs_dense(c, inputs, outputs, facts, n, &row, &rows))
        return 0;

    _Alignas(64) char memory[TILE_STACK_BYTES];
    void *slots[DENSE_MAX_SLOTS];
    uint32_t slot = 0;
    for (int32_t i = 0; i < n_inputs; i++)
        slots[slot++] = inputs[i].data;
    for (int32_t i = 0; i < n_outputs; i++)
        slots[slot++] = outputs[i].data;
    for (; slot < d->n_slots; slot++)
        slots[slot] = memory + d->offsets[slot];
    for (uint64_t repeated = rows & d->mixed_inputs; repeated; repeated &= repeated - 1) {
        int i = __builtin_ctzll(repeated);
        size_t size = dtype_sizes[inputs[i].dtype];
        slots[i] = memory + d->offsets[i];
        memcpy(slots[i], inputs[i].data, (size_t)row * size);
        repeat_bytes(slots[i], (size_t)row * size, (size_t)n * size);
    }
    fpenv host = fpenv_begin();
    for (const dense_step *s = d->steps, *end = s + d->n_steps; s < end; s++)
        if (!s->kernel)
            fill(slots[s->result], s->bits, s->size, (size_t)n);
        else if (s->inputs & ~rows || row == n)
            s->kernel(slots[s->result], slots[s->operands[0]], slots[s->operands[1]], slots[s->operands[2]], (size_t)n);
        else {
            s->kernel(slots[s->result], slots[s->operands[0]], slots[s->operands[1]], slots[s->operands[2]], (size_t)row);
            if (s->keeps_register)
                repeat_bytes(slots[s->result], (size_t)row * s->size, (size_t)n * s->size);
        }
    fpenv_end(host);
    return 1;
}
