/* The CPU backend: its device, what it prepares for a composite, and the files' interfaces to one another.
 *
 *     detect.c   which SIMD levels this machine has      threads.c  the host's parallel_for, or our own threads
 *     plan.c     shapes and strides -> loops             tile.c     one tile through the program
 *     execute.c  a replay: groups, tasks, tiles          dense.c    the short way for decode-sized replays
 *     delta.c    a step of a gated-delta layer: tasks    delta_worker.c one thread's part of it
 *     mixer.c    a mixer step                            mixer_worker.c one thread's part of it
 *     mixer_window.c its windows' shift                  cpu.c      the device */
#ifndef OL_CPU_H
#define OL_CPU_H

#include "composite.h"
#include "cpu/kernels.h"
#include "workspace.h"

#include <string.h>

typedef struct cpu_threads cpu_threads;

typedef struct cpu_device {
    ol_device base;
    ol_cpu_level level;
    const kernel_table *kernels;
    cpu_threads *threads;
} cpu_device;

/* detect.c */
ol_cpu_level cpu_best_level(void);
const kernel_table *cpu_level_kernels(ol_cpu_level level);       /* NULL where the level is not compiled for this machine */
void cpu_levels_prepare(void);                                   /* before any kernel; only the first call does anything */

/* fuse.c */
int cpu_fuse(const ol_device *device, const graph *g, uint32_t node, const uint8_t *once, fusion *f);      /* fuse_function */
kernel_fn cpu_fused_kernel(const kernel_table *kernels, uint8_t number);

/* threads.c */
ol_status cpu_threads_create(const ol_allocator *allocator, const ol_cpu_options *options, cpu_threads **threads, ol_error *error);
void cpu_threads_destroy(cpu_threads *threads);                  /* NULL is allowed */
size_t cpu_threads_count(const cpu_threads *threads);            /* at most so many work at once */
void cpu_threads_run(cpu_threads *threads, size_t n_tasks, ol_task task, void *argument);

/* dense.c's form of the program: slots are the inputs, the outputs, and the registers of the other values. */
typedef struct dense_step {
    kernel_fn kernel;                    /* NULL: a constant; its bits are in `bits` */
    uint8_t result, operands[3];         /* slots */
    uint8_t size;                        /* of an element of the result */
    uint8_t keeps_register;              /* an output, or a value that others of more inputs read */
    uint64_t bits;
    uint64_t inputs;                     /* the inputs whose data the result depends on, one bit each */
} dense_step;

#define DENSE_MAX_SLOTS 64

typedef struct dense_program {
    dense_step *steps;                   /* NULL where dense.c cannot serve */
    size_t n_steps, steps_bytes;
    uint32_t n_slots;
    uint64_t mixed_inputs;               /* inputs that are read together with others; they have a register of their own */
    uint32_t offsets[DENSE_MAX_SLOTS];   /* bytes into the registers' memory; of outputs unused */
} dense_program;

/* What is prepared for a composite: its kernels, and scratch where the stack is too small. */
typedef struct cpu_prepared {
    kernel_fn *kernels;                  /* by instruction; NULL for loads and constants */
    size_t tile_elements;                /* capacity of a tile; a multiple of 16 */
    size_t tile_bytes;                   /* registers and their slots */
    size_t plan_bytes;
    workspace *tiles, *plans;            /* NULL where the stack serves */
    dense_program dense;
} cpu_prepared;

#define TILE_STACK_BYTES 32768
#define PLAN_STACK_BYTES 8192
#define TILE_MAX_ELEMENTS 1024

/* execute.c: the backend's entry points */
ol_status cpu_prepare(ol_composite *composite, const dependencies *d, ol_error *error);
void cpu_release(ol_composite *composite);
ol_status cpu_replay(const ol_composite *composite, ol_stream stream, const ol_tensor *inputs, const ol_tensor *outputs,
                     const tensor_facts *facts, int in_place, ol_error *error);

/* A part of another launch: replays a small composite on this thread, on tensors that fit it and of which none is in place, and counts
 * nothing. cpu_replays_alone: whether it can be replayed so, which needs no memory but the stack. */
#define ALONE_TENSORS 8
int cpu_replays_alone(const ol_composite *composite);
void cpu_replay_alone(const ol_composite *composite, const ol_tensor *inputs, const ol_tensor *outputs);

/* delta.c: the backend's entry points for gated-delta layers */
struct delta_call;
ol_status cpu_delta_prepare(struct ol_gated_delta *layer, ol_error *error);
ol_status cpu_delta_step(const struct delta_call *call, ol_stream stream, ol_error *error);

/* mixer.c: the same for mixers */
struct mixer_call;
ol_status cpu_mixer_prepare(struct ol_gated_delta_mixer *mixer, ol_error *error);
void cpu_mixer_release(struct ol_gated_delta_mixer *mixer);
ol_status cpu_mixer_step(const struct mixer_call *call, ol_stream stream, ol_error *error);

/* dense.c: the replay of a few tokens, where every tensor is one contiguous run and all fit a tile. dense_prepare leaves steps
 * NULL where the composite is too large for it; false: no memory. dense_replay gives false, and has done nothing, where the
 * replay is not such a one. */
int dense_prepare(ol_composite *composite);
int dense_replay(const ol_composite *composite, const ol_tensor *inputs, const ol_tensor *outputs, const tensor_facts *facts);

/* Repeats the first n_bytes of a block until `total` bytes are filled. */
static inline void repeat_bytes(void *block, size_t n_bytes, size_t total)
{
    while (n_bytes < total) {
        size_t n = n_bytes < total - n_bytes ? n_bytes : total - n_bytes;
        memcpy((char *)block + n_bytes, block, n);
        n_bytes += n;
    }
}

#endif
