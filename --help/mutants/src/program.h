/* The program: the optimized graph as a straight line of instructions on registers, each of which holds a tile of one value.
 *
 * Registers are of three kinds, and never change kind: those that loads fill (which may be pointed straight at an input's
 * memory, so nothing else writes them), temporaries (reused once their value is dead), and dedicated ones, which nothing else
 * uses: outputs (which may be pointed straight at an output's memory) and hoistable values. A hoistable value is one whose
 * inputs are a proper part of a user's inputs, so that it may be the same for every row of a replay; which ones are is known
 * only from the shapes (cpu/plan.c). There are at most MAX_HOISTABLE of these, or none. */
#ifndef OL_PROGRAM_H
#define OL_PROGRAM_H

#include "dependencies.h"
#include "graph.h"

#define MAX_HOISTABLE 64

typedef enum instruction_kind {
    INSTRUCTION_LOAD,             /* payload: input */
    INSTRUCTION_CONSTANT,         /* payload: bits */
    INSTRUCTION_COMPUTE           /* payload unused; the node says what */
} instruction_kind;

typedef struct instruction {
    uint8_t kind;                 /* instruction_kind */
    uint8_t dtype;                /* of the result */
    uint8_t n_operands;
    uint8_t keeps_register;       /* nothing else uses the result's: an output, or hoistable */
    uint8_t fused;                /* the backend's number of a kernel for several nodes, of which `node` is the last; or 0 */
    uint32_t result;              /* register */
    uint32_t operands[3];         /* registers; the ones past n_operands repeat the first */
    uint32_t node;                /* of the optimized graph */
    uint64_t payload;
    const char *name;             /* of the operation */
} instruction;

/* A kernel for a node together with operands of it that nothing else reads. */
typedef struct fusion {
    uint8_t kernel;               /* the backend's number, not 0 */
    uint8_t n_operands;
    uint32_t operands[3];         /* nodes */
    const char *name;
} fusion;

/* What a backend has of these: whether there is one for `node`, where once[i] says that node i is read once and no output.
 * What is left out must be what the fused kernel computes, bit for bit. */
typedef int (*fuse_function)(const ol_device *device, const graph *g, uint32_t node, const uint8_t *once, fusion *f);

typedef struct program {
    ol_allocator allocator;
    instruction *instructions;
    size_t n_instructions, instructions_capacity;
    uint32_t n_registers;
    uint32_t *register_offsets;   /* n_registers: where a register starts, in bytes per element of the tile */
    uint8_t *register_sizes;      /* element size */
    size_t registers_capacity, sizes_capacity;
    size_t tile_bytes_per_element;/* all registers together */
    uint32_t *output_registers;   /* by output; two outputs that are one node share one */
    int32_t n_outputs;
    int hoists;                   /* whether hoistable values have registers of their own */
    uint64_t cost_per_element;    /* sum of the primitives' costs */
} program;

ol_status program_create(const graph *g, const dependencies *d, const ol_device *device, fuse_function fuse, program **p, ol_error *error);
void program_destroy(program *p);                               /* NULL is allowed */

#endif
