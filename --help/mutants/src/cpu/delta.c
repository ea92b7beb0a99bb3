/* A gated-delta step on the CPU: checked, split over the threads, one launch.
 *
 * Work items are the blocks of rows of every head of every sequence (delta_worker.h), each as heavy as its sequence has tokens. A task is a run
 * of items of about equal weight, found by walking over the sequences' lengths, so nothing is stored and nothing allocated. An item's result
 * does not depend on which task has it. */
#include "cpu/mixer_worker.h"
#include "status.h"

/* Elements of states times tokens that make a task worth a thread: some tens of microseconds. */
#define TASK_ELEMENTS 65536

ol_status cpu_delta_prepare(ol_gated_delta *layer, ol_error *error)
{
    if (!cpu_replays_alone(layer->gates))
        return fail(error, OL_ERROR_LIMIT, "gated_delta_create", "the gates do not fit the stack; expected a smaller graph");
    return OL_OK;
}

/* The weight of an item of a sequence; 0: nothing is to be done for it. */
static int64_t item_weight(const delta_call *c, const delta_sequence *s)
{
    if (s->is_padding)
        return 0;
    if (s->length == 0) {
        int64_t slot = delta_write_slot(c, s, -1);
        return slot >= 0 && slot != s->from;
    }
    return s->length;
}

/* ---- Padding ---- */

static int zero_outputs(const delta_call *c, int64_t first, int64_t end)
{
    const ol_gated_delta_options *o = &c->layer->options;
    size_t n_bytes = (size_t)o->value_dim * dtype_sizes[c->output.dtype];
    for (int64_t t = first; t < end; t++)
        for (int32_t key = 0; key < o->key_heads; key++)
            for (int32_t member = 0; member < c->layer->ratio; member++)
                memset(c->output.data + t * c->output.token + key * c->output.key + member * c->output.member, 0, n_bytes);
    return first < end;
}

int delta_zero_padding(const delta_call *c)
{
    int any = 0;
    int64_t n = c->n_sequences;
    if (c->layer->options.padding_output_untouched)
        return 0;
    if (c->starts.data) {
        any |= zero_outputs(c, 0, n ? delta_table_at(&c->starts, 0, 0) : c->n_tokens);
        any |= n ? zero_outputs(c, delta_table_at(&c->starts, n, 0), c->n_tokens) : 0;
    }
    if (!c->read.data && !c->counts.data)
        return any;
    for (int64_t i = 0; i < n; i++) {
        delta_sequence s = delta_sequence_at(c, i);
        int64_t end = c->starts.data ? delta_table_at(&c->starts, i + 1, 0) : s.first + c->uniform_length;
        any |= zero_outputs(c, s.is_padding ? s.first : s.first + s.length, end);
    }
    return any;
}

/* ---- Tasks ---- */

typedef struct job {
    const delta_call *call;
    const mixer_call *mixer;           /* NULL: a step of the recurrence alone */
    int64_t weight, n_tasks, items_per_sequence;
} job;

static int64_t ceiling(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

/* Runs the items of index's share on a worker: of a mixer if `m` is one. */
static void run_items(const job *j, size_t index, delta_worker *w, mixer_worker *m)
{
    /* 128-bit products, for weights are as large as memory. */
    int64_t low = (int64_t)((__int128)j->weight * (int64_t)index / j->n_tasks), high = (int64_t)((__int128)j->weight * ((int64_t)index + 1) / j->n_tasks);
    int64_t before = 0;
    for (int64_t i = 0; i < j->call->n_sequences && before < high; i++) {
        delta_sequence s = delta_sequence_at(j->call, i);
        int64_t weight = item_weight(j->call, &s), all = weight * j->items_per_sequence;
        if (weight > 0 && before + all > low) {
            /* Those items that begin in [low, high). */
            int64_t first = ceiling(low - before, weight), end = ceiling(high - before, weight);
            end = end < j->items_per_sequence ? end : j->items_per_sequence;
            if (m)
                mixer_worker_run(m, &s, first, end);
            else
                delta_worker_run(w, &s, first, end);
        }
        before += all;
    }
}

static void run_task(void *argument, size_t index)
{
    const job *j = argument;
    delta_worker w;
    delta_worker_begin(&w, j->call);
    run_items(j, index, &w, NULL);
}

static void run_mixer_task(void *argument, size_t index)
{
    const job *j = argument;
    mixer_worker m;
    mixer_worker_begin(&m, j->mixer);
    run_items(j, index, NULL, &m);
}

int delta_run(const delta_call *c, const mixer_call *mixer)
{
    const ol_gated_delta_options *o = &c->layer->options;
    cpu_threads *threads = ((const cpu_device *)c->layer->device)->threads;
    /* A mixer's items are whole heads, for the norm needs all rows of one. */
    int64_t items_per_head = mixer ? 1 : delta_head_blocks(o), rows = mixer ? o->value_dim : delta_block_rows(o);
    ol_task task = mixer ? run_mixer_task : run_task;
    job j = { .call = c, .mixer = mixer, .items_per_sequence = (int64_t)o->value_heads * items_per_head };
    for (int64_t i = 0; i < c->n_sequences; i++) {
        delta_sequence s = delta_sequence_at(c, i);
        j.weight += item_weight(c, &s) * j.items_per_sequence;
    }
    if (j.weight == 0)
        return 0;
    int64_t n_threads = (int64_t)cpu_threads_count(threads), block = rows * o->key_dim;
    __int128 n_tasks = (__int128)j.weight * block / TASK_ELEMENTS;
    n_tasks = n_tasks > 4 * n_threads ? 4 * n_threads : n_tasks;
    j.n_tasks = n_threads > 1 && n_tasks >= 2 ? (int64_t)n_tasks : 1;
    if (j.n_tasks > 1)
        cpu_threads_run(threads, (size_t)j.n_tasks, task, &j);
    else
        task(&j, 0);
    return 1;
}

ol_status cpu_delta_step(const delta_call *c, ol_stream stream, ol_error *error)
{
    (void)stream;
    ol_status status = delta_check_indices(c, error);
    if (status != OL_OK)
        return status;
    int padded = delta_zero_padding(c);
    if (delta_run(c, NULL) || padded)
        device_count_launch(c->layer->device);
    return OL_OK;
}
