/* The short way for decode-sized replays: every tensor is one contiguous run of n elements, n fits a tile, nothing is in
 * place. Then there is nothing to plan: operands and results are the caller's memory, and the program runs once. At one token
 * this is most of what a replay costs beside its arithmetic. */
#include "cpu/cpu.h"
#include "numerics/fpenv.h"

#include <string.h>

/* Inputs of n elements that broadcast to an output of n elements have its shape but for ones, so every element of it is
 * computed from the same place in each of them. (Outputs may differ in shape, [2, 3] and [3, 2], when they share no input.) */
static int all_dense(const ol_tensor *tensors, const tensor_facts *facts, int32_t n_tensors, int64_t n)
{
    int dense = 1;
    for (int32_t i = 0; i < n_tensors; i++)
        dense &= facts[i].contiguous & (facts[i].n_elements == n) & dtype_aligned(tensors[i].dtype, tensors[i].data);
    return dense;
}

static void fill(char *to, const void *element, size_t size, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * size, element, size);
}

int dense_replay(const ol_composite *c, const ol_tensor *inputs, const ol_tensor *outputs, const tensor_facts *facts)
{
    const cpu_prepared *p = c->prepared;
    const program *prog = c->program;
    int32_t n_inputs = c->traced->n_inputs;
    int64_t n = facts[n_inputs].n_elements;
    if (!p->dense || n > (int64_t)p->tile_elements || n == 0 || !all_dense(inputs, facts, n_inputs, n) ||
        !all_dense(outputs, facts + n_inputs, prog->n_outputs, n))
        return 0;

    _Alignas(64) char memory[TILE_STACK_BYTES];
    void *slots[DENSE_MAX_REGISTERS];
    for (uint32_t r = 0; r < prog->n_registers; r++)
        slots[r] = memory + (size_t)prog->register_offsets[r] * p->tile_elements;
    for (int32_t i = 0; i < prog->n_outputs; i++)
        slots[prog->output_registers[i]] = outputs[i].data;
    fpenv host = fpenv_begin();
    for (size_t i = 0; i < prog->n_instructions; i++) {
        const instruction *in = &prog->instructions[i];
        if (in->kind == INSTRUCTION_COMPUTE)
            p->kernels[i](slots[in->result], slots[in->operands[0]], slots[in->operands[1]], slots[in->operands[2]], (size_t)n);
        else if (in->kind == INSTRUCTION_LOAD)
            slots[in->result] = inputs[in->payload].data;
        else
            fill(slots[in->result], &in->payload, prog->register_sizes[in->result], (size_t)n);
    }
    fpenv_end(host);
    device_count_launch(c->device);
    return 1;
}
