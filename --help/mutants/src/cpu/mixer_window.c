/* Windows after a mixer step: a second pass, begun when every head of every sequence has been computed.
 *
 * The q and k channels of a key head are read by every value head that shares it, by whichever threads have those. None of them writes
 * a window, and no window is written before all have finished, so there is nothing to race for; the inputs that go into the windows are still where
 * they were. It is the same launch: a loop over the threads more, of a few bytes for each kilobyte of state.
 *
 * A unit is a head of q, k or v of a sequence. Its old columns are read before any destination is written, for one of them is
 * usually the slot they came from. */
#include "cpu/mixer_worker.h"

#include "numerics/fpenv.h"

/* Elements of windows that make a task worth a thread. */
#define TASK_ELEMENTS 32768

enum { BLOCK_CHANNELS = 64 };

typedef struct unit {
    const mixer_call *call;
    const mixer_part *part;
    const kernel_table *kernels;
    delta_sequence s;                  /* of the windows */
    int32_t key, member;
    int first, n;                      /* channels of a block */
    int has_old;
    _Alignas(64) uint32_t old[OL_MIXER_MAX_COLUMNS][BLOCK_CHANNELS];       /* in the windows' dtype, from the start of each row */
} unit;

static void gather(void *to, const char *from, int64_t stride, size_t size, int n)
{
    if (stride == (int64_t)size)
        memcpy(to, from, (size_t)n * size);
    else if (size == 4)
        for (int i = 0; i < n; i++)
            memcpy((uint32_t *)to + i, from + i * stride, 4);
    else
        for (int i = 0; i < n; i++)
            memcpy((uint16_t *)to + i, from + i * stride, 2);
}

static void scatter(char *to, int64_t stride, const void *from, size_t size, int n)
{
    if (stride == (int64_t)size)
        memcpy(to, from, (size_t)n * size);
    else if (size == 4)
        for (int i = 0; i < n; i++)
            memcpy(to + i * stride, (const uint32_t *)from + i, 4);
    else
        for (int i = 0; i < n; i++)
            memcpy(to + i * stride, (const uint16_t *)from + i, 2);
}

static char *head_in(const unit *u, const mixer_channels *t, int64_t outer, int64_t token)
{
    return t->data + outer * t->outer + token * t->token + u->key * t->key + u->member * t->member + u->first * t->channel;
}

/* A column after `n_tokens` tokens: `to` has room for a block. 0: it stays what it is in its own slot. */
static int column_after(const unit *u, int64_t n_tokens, int64_t column, int in_place, uint32_t *to)
{
    const mixer_call *c = u->call;
    const delta_heads *in = u->part->input;
    ol_dtype dtype = u->part->window.dtype;
    int64_t token = mixer_token_in(c, u->s.number, n_tokens, column), is_ring = c->positions.data != NULL;
    uint32_t from[BLOCK_CHANNELS];
    if (token >= 0) {
        size_t size = dtype_sizes[in->dtype];
        memcpy(from, in->data + (u->s.first + token) * in->token + u->key * in->key + u->member * in->member + u->first * (int64_t)size, (size_t)u->n * size);
        u->kernels->astype[in->dtype][dtype](to, from, NULL, NULL, (size_t)u->n);
        return 1;
    }
    if (is_ring && in_place && u->has_old)
        return 0;
    int64_t old = !u->has_old ? -1 : is_ring ? column : mixer_old_column(c, u->s.number, token);
    if (old < 0)
        memset(to, 0, BLOCK_CHANNELS * sizeof *to);
    else
        u->kernels->astype[dtype][dtype](to, u->old[old], NULL, NULL, (size_t)u->n);
    return 1;
}

static void write_window(const unit *u, char *to, const mixer_channels *t, int64_t n_tokens, int in_place)
{
    uint32_t column[BLOCK_CHANNELS];
    for (int64_t i = 0; i < u->call->n_columns; i++)
        if (column_after(u, n_tokens, i, in_place, column))
            scatter(to + i * t->column, t->channel, column, dtype_sizes[t->dtype], u->n);
}

/* The slot that the window goes to after token t, -1 of a sequence without tokens; -1: none. */
static int64_t slot_after(const mixer_call *c, const delta_sequence *s, int64_t t)
{
    int64_t slot = delta_write_slot(&c->windows, s, t);
    return t < 0 && slot == s->from && mixer_dropped(c, s->number) == 0 ? -1 : slot;
}

static void write_block(unit *u)
{
    const mixer_call *c = u->call;
    const delta_sequence *s = &u->s;
    const mixer_channels *w = &u->part->window, *between = &u->part->intermediate;
    int64_t first = c->windows.write.n_columns || between->data ? 0 : s->length - 1;
    for (int64_t i = 0; u->has_old && i < c->n_columns; i++)
        gather(u->old[i], head_in(u, w, s->from, 0) + i * w->column, w->channel, dtype_sizes[w->dtype], u->n);
    for (int64_t t = s->length ? first : -1; t < s->length; t++) {
        int64_t slot = slot_after(c, s, t);
        if (slot >= 0)
            write_window(u, head_in(u, w, slot, 0), w, t + 1, slot == s->from);
        if (t >= 0 && between->data)
            write_window(u, head_in(u, between, s->number, t), between, t + 1, 0);
    }
}

/* ---- Tasks ---- */

typedef struct job {
    const mixer_call *call;
    int64_t heads, n_tasks;            /* heads: of q, k and v */
} job;

/* Whether anything of sequence s's windows is to be written. */
static int is_written(const mixer_call *c, const delta_sequence *s)
{
    if (s->is_padding)
        return 0;
    if (s->length == 0)
        return slot_after(c, s, -1) >= 0;
    return !c->windows.state_is_kept || c->parts[0].intermediate.data;
}

static void run_task(void *argument, size_t index)
{
    const job *j = argument;
    const ol_gated_delta *layer = j->call->recurrence.layer;
    int64_t units = j->call->windows.n_sequences * j->heads, HK = layer->options.key_heads;
    int64_t low = (int64_t)((__int128)units * (int64_t)index / j->n_tasks), high = (int64_t)((__int128)units * ((int64_t)index + 1) / j->n_tasks);
    unit u;
    u.call = j->call;
    u.kernels = ((const cpu_device *)layer->device)->kernels;
    fpenv host = fpenv_begin();
    for (int64_t i = low; i < high; i++) {
        int64_t head = i % j->heads, value = head - 2 * HK;
        u.s = delta_sequence_at(&j->call->windows, i / j->heads);
        if (!is_written(j->call, &u.s))
            continue;
        u.part = &j->call->parts[value >= 0 ? MIXER_VALUE : head < HK ? MIXER_QUERY : MIXER_KEY];
        u.key = (int32_t)(value >= 0 ? value / layer->ratio : head % HK);
        u.member = (int32_t)(value >= 0 ? value % layer->ratio : 0);
        u.has_old = u.s.from >= 0;
        for (u.first = 0; u.first < u.part->dim; u.first += BLOCK_CHANNELS) {
            u.n = u.part->dim - u.first < BLOCK_CHANNELS ? u.part->dim - u.first : BLOCK_CHANNELS;
            write_block(&u);
        }
    }
    fpenv_end(host);
}

int mixer_write_windows(const mixer_call *c)
{
    const ol_gated_delta_options *o = &c->mixer->options.recurrence;
    cpu_threads *threads = ((const cpu_device *)c->mixer->device)->threads;
    job j = { c, 2 * (int64_t)o->key_heads + o->value_heads, 1 };
    int64_t n = 0;
    for (int64_t i = 0; i < c->windows.n_sequences; i++) {
        delta_sequence s = delta_sequence_at(&c->windows, i);
        n += is_written(c, &s);
    }
    if (n == 0)
        return 0;
    __int128 tasks = (__int128)n * c->n_columns * (2 * (int64_t)o->key_heads * o->key_dim + (int64_t)o->value_heads * o->value_dim) / TASK_ELEMENTS;
    int64_t most = 4 * (int64_t)cpu_threads_count(threads);
    j.n_tasks = tasks > most ? most : (int64_t)tasks;
    if (j.n_tasks > 1 && most > 4) {
        cpu_threads_run(threads, (size_t)j.n_tasks, run_task, &j);
    } else {
        j.n_tasks = 1;
        run_task(&j, 0);
    }
    return 1;
}
