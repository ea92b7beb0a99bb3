/* A replay on the CPU: outputs in groups of one shape, each group's tiles split into tasks, one worker per task.
 *
 * Decode-sized replays stay on the caller's thread: a task must be worth waking a thread for. A task's result does not depend
 * on how the tiles were split, since every element is computed by the same kernels from its own operands alone. */
#include "cpu/cpu.h"
#include "cpu/tile.h"
#include "numerics/fpenv.h"
#include "status.h"

#include <sched.h>

/* Cost units (primitives.def) that make a task worth a thread: some tens of microseconds. */
#define TASK_COST 1500000

ol_status cpu_prepare(ol_composite *c, const dependencies *d, ol_error *error)
{
    (void)d;
    const cpu_device *device = (const cpu_device *)c->device;
    const program *prog = c->program;
    const ol_allocator *a = &c->device->allocator;
    cpu_prepared *p = memory_take(a, sizeof *p);
    if (!p)
        return fail(error, OL_ERROR_MEMORY, c->traced->name, "no memory for a composite");
    c->prepared = p;
    p->kernels = memory_take(a, memory_size(prog->n_instructions, sizeof *p->kernels));
    if (!p->kernels)
        return fail(error, OL_ERROR_MEMORY, c->traced->name, "no memory for %zu instructions", prog->n_instructions);
    for (size_t i = 0; i < prog->n_instructions; i++) {
        const node *n = &c->optimized->nodes[prog->instructions[i].node];
        if (n->n_operands == 0)
            continue;
        ol_dtype operand = graph_dtype(c->optimized, n->operands[n->kind == NODE_BROADCAST_LIKE ? 0 : n->n_operands - 1]);
        uint8_t fused = prog->instructions[i].fused;
        if (fused)
            p->kernels[i] = cpu_fused_kernel(device->kernels, fused);
        else if (n->kind == NODE_PRIMITIVE)
            p->kernels[i] = device->kernels->primitive[n->primitive][operand];
        else
            p->kernels[i] = device->kernels->astype[operand][n->dtype];
        if (!p->kernels[i])
            return fail(error, OL_ERROR_DEVICE, node_name(n), "internal: no %s kernel for %s", ol_cpu_level_name(device->level), ol_dtype_name(operand));
    }

    p->tile_elements = TILE_MAX_ELEMENTS;
    while (p->tile_elements > 64 && tile_bytes(prog, p->tile_elements) > TILE_STACK_BYTES)
        p->tile_elements /= 2;
    while (p->tile_elements > 16 && tile_bytes(prog, p->tile_elements) > (1u << 20))
        p->tile_elements /= 2;
    p->tile_bytes = tile_bytes(prog, p->tile_elements);
    p->plan_bytes = plan_bytes(c);
    size_t n_blocks = cpu_threads_count(device->threads) + WORKSPACE_BLOCKS;
    if (p->tile_bytes > TILE_STACK_BYTES && !(p->tiles = workspace_create(a, p->tile_bytes, n_blocks)))
        return fail(error, OL_ERROR_MEMORY, c->traced->name, "no memory for tiles of %zu bytes", p->tile_bytes);
    if (p->plan_bytes > PLAN_STACK_BYTES && !(p->plans = workspace_create(a, p->plan_bytes, WORKSPACE_BLOCKS)))
        return fail(error, OL_ERROR_MEMORY, c->traced->name, "no memory for plans of %zu bytes", p->plan_bytes);
    if (!dense_prepare(c))
        return fail(error, OL_ERROR_MEMORY, c->traced->name, "no memory for %zu instructions", prog->n_instructions);
    return OL_OK;
}

void cpu_release(ol_composite *c)
{
    cpu_prepared *p = c->prepared;
    const ol_allocator *a = &c->device->allocator;
    workspace_destroy(p->tiles);
    workspace_destroy(p->plans);
    memory_give(a, p->dense.steps, p->dense.steps_bytes);
    memory_give(a, p->kernels, c->program ? c->program->n_instructions * sizeof *p->kernels : 0);
    memory_give(a, p, sizeof *p);
}

/* Tiles [first, last) of a plan, on this thread. */
static void run_tiles(const plan *p, int64_t first, int64_t last, void *block)
{
    registers r;
    registers_begin(&r, p, block);
    int64_t hoisted_piece = -1;
    for (int64_t i = first; i < last; i++) {
        tile t;
        int64_t piece = 0;
        if (p->n_pieces == 1) {
            t = (tile){ i * p->rows_per_tile, p->rows_per_tile, 0, p->row_length };
            if (t.row + t.n_rows > p->n_rows)
                t.n_rows = p->n_rows - t.row;
        } else {
            /* Piece by piece over all rows, so that what a piece hoists serves all of them. */
            piece = i / p->n_rows;
            t = (tile){ i % p->n_rows, 1, piece * p->piece_length, p->piece_length };
            if (t.offset + t.length > p->row_length)
                t.length = p->row_length - t.offset;
        }
        if (p->hoist_elements && (hoisted_piece < 0 || (piece != hoisted_piece && p->n_rows > 1))) {
            tile_hoist(&r, t.offset, p->n_rows > 1 ? t.length : p->piece_length);
            hoisted_piece = piece;
        }
        tile_run(&r, &t);
    }
}

typedef struct job {
    const plan *plan;
    int64_t tiles_per_task;
} job;

static void run_range(const plan *p, int64_t first, int64_t last)
{
    if (p->prepared->tiles) {
        /* Outputs may already be half written here, so running out of memory cannot be an error: a block comes free when
         * another task, which waits for nothing, ends. */
        void *block;
        while (!(block = workspace_take(p->prepared->tiles)))
            sched_yield();
        run_tiles(p, first, last, block);
        workspace_give(p->prepared->tiles, block);
    } else {
        _Alignas(64) char block[TILE_STACK_BYTES];
        run_tiles(p, first, last, block);
    }
}

static void run_task(void *argument, size_t index)
{
    const job *j = argument;
    fpenv host = fpenv_begin();
    int64_t first = (int64_t)index * j->tiles_per_task, last = first + j->tiles_per_task;
    run_range(j->plan, first, last < j->plan->n_tiles ? last : j->plan->n_tiles);
    fpenv_end(host);
}

/* alone: on this thread. */
static void run_plan(const plan *p, int alone)
{
    cpu_threads *threads = ((const cpu_device *)p->space.composite->device)->threads;
    int64_t n_threads = (int64_t)cpu_threads_count(threads);
    if (!alone && n_threads > 1 && p->n_tiles > 1) {
        /* In integers: the host's floating-point state is still its own here. */
        int64_t task_elements = TASK_COST / ((int64_t)p->space.composite->program->cost_per_element + 1) + 1;
        int64_t n_tasks = p->n_rows * p->row_length / task_elements;
        if (n_tasks > 4 * n_threads)
            n_tasks = 4 * n_threads;
        if (n_tasks >= 2) {
            job j = { p, (p->n_tiles + n_tasks - 1) / n_tasks };
            cpu_threads_run(threads, (size_t)((p->n_tiles + j.tiles_per_task - 1) / j.tiles_per_task), run_task, &j);
            return;
        }
    }
    fpenv host = fpenv_begin();
    run_range(p, 0, p->n_tiles);
    fpenv_end(host);
}

/* Whether anything was started: where every output is empty nothing is. */
static int replay_in(const ol_composite *c, const ol_tensor *inputs, const ol_tensor *outputs, int in_place, int alone, void *block)
{
    plan p;
    int launched = 0;
    plan_begin(&p, c, block);
    if (space_groups(&p.space, outputs) == 1) {
        if ((launched = plan_group(&p, inputs, outputs, p.space.order, (uint32_t)c->traced->n_outputs, 1, in_place)))
            run_plan(&p, alone);
    } else {
        for (uint32_t first = 0, n; first < (uint32_t)c->traced->n_outputs; first += n) {
            n = space_group_size(&p.space, outputs, first);
            if (plan_group(&p, inputs, outputs, p.space.order + first, n, 0, in_place)) {
                run_plan(&p, alone);
                launched = 1;
            }
        }
    }
    return launched;
}

ol_status cpu_replay(const ol_composite *c, ol_stream stream, const ol_tensor *inputs, const ol_tensor *outputs,
                     const tensor_facts *facts, int in_place, ol_error *error)
{
    const cpu_prepared *p = c->prepared;
    (void)stream;
    int launched;
    if (p->dense.steps && !in_place && dense_replay(c, inputs, outputs, facts)) {
        launched = 1;
    } else if (p->plans) {
        void *block = workspace_take(p->plans);
        if (!block)
            return fail(error, OL_ERROR_MEMORY, c->operation, "no memory for a plan of %zu bytes", p->plan_bytes);
        launched = replay_in(c, inputs, outputs, in_place, 0, block);
        workspace_give(p->plans, block);
    } else {
        _Alignas(64) char block[PLAN_STACK_BYTES];
        launched = replay_in(c, inputs, outputs, in_place, 0, block);
    }
    if (launched)
        device_count_launch(c->device);
    return OL_OK;
}

int cpu_replays_alone(const ol_composite *c)
{
    const cpu_prepared *p = c->prepared;
    return !p->plans && !p->tiles && c->traced->n_inputs + c->traced->n_outputs <= ALONE_TENSORS;
}

void cpu_replay_alone(const ol_composite *c, const ol_tensor *inputs, const ol_tensor *outputs)
{
    const cpu_prepared *p = c->prepared;
    tensor_facts facts[ALONE_TENSORS];
    int32_t n_inputs = c->traced->n_inputs;
    for (int32_t i = 0; i < n_inputs + c->traced->n_outputs; i++)
        tensor_examine(i < n_inputs ? &inputs[i] : &outputs[i - n_inputs], 0, c->operation, "tensor", i, &facts[i], NULL);
    if (!p->dense.steps || !dense_replay(c, inputs, outputs, facts)) {
        _Alignas(64) char block[PLAN_STACK_BYTES];
        replay_in(c, inputs, outputs, 0, 1, block);
    }
}
