/* The short way for decode-sized replays: every tensor is one contiguous run of n elements, n fits a tile, nothing is in
 * place. Then there is nothing to plan: operands and results are the caller's memory, and the program runs once. At one token
 * this is most of what a replay costs beside its arithmetic, so it has a form of the program of its own, in which an operand is
 * a slot whatever it is: the inputs come first, then the outputs, then the registers of the values in between. */
#include "cpu/cpu.h"
#include "numerics/fpenv.h"

#include <string.h>

/* Gives each value of the program its slot. False where there are too many, or where two outputs are one value (they need a
 * copy, which only the general way makes). */
static int assign_slots(const ol_composite *c, dense_program *d, uint8_t *slot_of_register)
{
    const program *prog = c->program;
    uint32_t n_inputs = (uint32_t)c->traced->n_inputs, n_outputs = (uint32_t)c->traced->n_outputs;
    if (n_inputs + n_outputs + prog->n_registers > DENSE_MAX_SLOTS)
        return 0;
    memset(slot_of_register, 0xFF, prog->n_registers);
    for (uint32_t o = 0; o < n_outputs; o++) {
        if (slot_of_register[prog->output_registers[o]] != 0xFF)
            return 0;
        slot_of_register[prog->output_registers[o]] = (uint8_t)(n_inputs + o);
    }
    d->n_slots = n_inputs + n_outputs;
    for (size_t i = 0; i < prog->n_instructions; i++) {
        const instruction *in = &prog->instructions[i];
        if (in->kind == INSTRUCTION_LOAD || slot_of_register[in->result] != 0xFF)
            continue;
        d->offsets[d->n_slots] = (uint32_t)(prog->register_offsets[in->result] * ((const cpu_prepared *)c->prepared)->tile_elements);
        slot_of_register[in->result] = (uint8_t)d->n_slots++;
    }
    return 1;
}

int dense_prepare(ol_composite *c)
{
    cpu_prepared *p = c->prepared;
    const program *prog = c->program;
    uint8_t slot_of_register[DENSE_MAX_SLOTS];
    dense_program *d = &p->dense;
    if (p->tiles || !assign_slots(c, d, slot_of_register))
        return 1;
    d->steps_bytes = prog->n_instructions * sizeof *d->steps;
    d->steps = memory_take(&c->device->allocator, d->steps_bytes);
    if (!d->steps)
        return 0;
    for (size_t i = 0; i < prog->n_instructions; i++) {
        const instruction *in = &prog->instructions[i];
        if (in->kind == INSTRUCTION_LOAD) {                  /* until the next load of this register, it is that input */
            slot_of_register[in->result] = (uint8_t)in->payload;
            continue;
        }
        dense_step *s = &d->steps[d->n_steps++];
        *s = (dense_step){ .kernel = p->kernels[i], .result = slot_of_register[in->result], .size = prog->register_sizes[in->result],
                           .bits = in->payload };
        for (int k = 0; k < 3 && in->n_operands; k++)
            s->operands[k] = slot_of_register[in->operands[k]];
    }
    return 1;
}

/* Inputs of n elements that broadcast to an output of n elements have its shape but for ones, so every element of it is
 * computed from the same place in each of them. (Outputs may differ in shape, [2, 3] and [3, 2], when they share no input.) */
static int all_dense(const ol_tensor *tensors, const tensor_facts *facts, int32_t n_tensors, int64_t n)
{
    int dense = 1;
    for (int32_t i = 0; i < n_tensors; i++)
        dense &= facts[i].contiguous & (facts[i].n_elements == n) & dtype_aligned(tensors[i].dtype, tensors[i].data);
    return dense;
}

static void fill(char *to, uint64_t bits, size_t size, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * size, &bits, size);
}

int dense_replay(const ol_composite *c, const ol_tensor *inputs, const ol_tensor *outputs, const tensor_facts *facts)
{
    const cpu_prepared *p = c->prepared;
    const dense_program *d = &p->dense;
    int32_t n_inputs = c->traced->n_inputs, n_outputs = c->traced->n_outputs;
    int64_t n = facts[n_inputs].n_elements;
    if (n > (int64_t)p->tile_elements || n == 0 || !all_dense(inputs, facts, n_inputs, n) ||
        !all_dense(outputs, facts + n_inputs, n_outputs, n))
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
    fpenv host = fpenv_begin();
    for (const dense_step *s = d->steps, *end = s + d->n_steps; s < end; s++)
        if (s->kernel)
            s->kernel(slots[s->result], slots[s->operands[0]], slots[s->operands[1]], slots[s->operands[2]], (size_t)n);
        else
            fill(slots[s->result], s->bits, s->size, (size_t)n);
    fpenv_end(host);
    device_count_launch(c->device);
    return 1;
}
