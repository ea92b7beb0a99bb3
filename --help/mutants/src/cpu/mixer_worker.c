/* One thread's part of a mixer step: value head after value head, all rows of one, since the norm needs them.
 *
 * For a chunk of tokens, those whose keys and values have room here, q, k and v are convolved into floats; the recurrence runs over them block by block as
 * it does alone; o is normed. q and k are convolved once for the value heads of a key head that come one after the other, and again where
 * a thread begins in the middle of one: the same bits. Windows are only read here.
 *
 * A sequence of more tokens than a chunk keeps its head's state in float32 from chunk to chunk, in memory that was taken when the mixer was made. */
#include "cpu/mixer_worker.h"

#include "numerics/fpenv.h"
#include "numerics/numerics.h"

#include <sched.h>

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

/* To activation_dtype and back. */
static void round_floats(const mixer_worker *m, float *x, int n)
{
    ol_dtype dtype = m->call->recurrence.layer->options.activation_dtype;
    uint16_t narrow[OL_DELTA_MAX_DIM];
    if (dtype == OL_FLOAT32)
        return;
    m->delta.conversions->astype[OL_FLOAT32][dtype](narrow, x, NULL, NULL, (size_t)n);
    m->delta.conversions->astype[dtype][OL_FLOAT32](x, narrow, NULL, NULL, (size_t)n);
}

static void activate(const mixer_worker *m, float *x, ol_mixer_activation activation, int n)
{
    if (activation != OL_MIXER_NONE)
        m->delta.conversions->primitive[activation == OL_MIXER_SILU ? PRIMITIVE_silu : PRIMITIVE_sigmoid][OL_FLOAT32](x, x, NULL, NULL, (size_t)n);
}

static void multiply(const mixer_worker *m, float *x, const float *by, int n)
{
    m->delta.conversions->primitive[PRIMITIVE_multiply][OL_FLOAT32](x, x, by, NULL, (size_t)n);
}

/* ---- Convolution ---- */

/* n elements, stride_bytes apart. */
static void gather(const mixer_worker *m, float *to, const char *from, int64_t stride_bytes, ol_dtype dtype, int n)
{
    uint16_t halves[OL_DELTA_MAX_DIM];
    if (stride_bytes == dtype_sizes[dtype] || n == 1) {
        delta_widen(&m->delta, to, from, dtype, n);
    } else if (dtype == OL_FLOAT32) {
        for (int i = 0; i < n; i++)
            memcpy(&to[i], from + i * stride_bytes, sizeof *to);
    } else {
        for (int i = 0; i < n; i++)
            memcpy(&halves[i], from + i * stride_bytes, sizeof *halves);
        m->delta.conversions->astype[dtype][OL_FLOAT32](to, halves, NULL, NULL, (size_t)n);
    }
}

/* Channels of a head: of q, k or v. */
typedef struct channels {
    const mixer_part *part;
    const delta_sequence *s;
    int64_t window;                    /* the slot that it is read from; -1: zeros */
    int32_t key, member;
} channels;

static void load_input(const mixer_worker *m, const channels *c, int64_t token, float *to)
{
    const mixer_part *p = c->part;
    const delta_heads *in = p->input;
    const mixer_channels *w = &p->window;
    if (token >= 0) {
        delta_widen(&m->delta, to, in->data + (c->s->first + token) * in->token + c->key * in->key + c->member * in->member, in->dtype, p->dim);
        return;
    }
    int64_t column = c->window < 0 ? -1 : mixer_old_column(m->call, c->s->number, token);
    if (column < 0)
        memset(to, 0, (size_t)p->dim * sizeof *to);
    else
        gather(m, to, w->data + c->window * w->outer + c->key * w->key + c->member * w->member + column * w->column, w->channel, w->dtype, p->dim);
}

/* Tokens [token, token + n) of a sequence, into rows of row_floats. */
static void convolve(mixer_worker *m, int part, const delta_sequence *s, int32_t key, int32_t member, int64_t token, int64_t n, float *rows, int row_floats)
{
    const ol_gated_delta_mixer_options *o = &m->call->mixer->options;
    const mixer_part *p = &m->call->parts[part];
    const channels c = { p, s, delta_sequence_at(&m->call->windows, s->number).from, key, member };
    int width = o->width;
    const float *inputs[MIXER_MAX_WIDTH], *weights[MIXER_MAX_WIDTH];
    const char *weight = p->weight.data + key * p->weight.key + member * p->weight.member;
    for (int w = 0; w < width; w++) {
        gather(m, m->weights[w], weight + w * p->weight.column, p->weight.channel, p->weight.dtype, p->dim);
        weights[w] = m->weights[w];
    }
    if (p->bias.data)
        gather(m, m->bias, p->bias.data + key * p->bias.key + member * p->bias.member, p->bias.channel, p->bias.dtype, p->dim);
    else
        memset(m->bias, 0, (size_t)p->dim * sizeof *m->bias);
    /* Input `token + t` is in row (t + width - 1) mod width. */
    for (int w = 0; w < width - 1; w++)
        load_input(m, &c, token + w - (width - 1), m->inputs[w]);
    for (int64_t t = 0; t < n; t++) {
        float *row = rows + t * row_floats, sum[OL_DELTA_MAX_DIM];
        load_input(m, &c, token + t, m->inputs[(t + width - 1) % width]);
        for (int w = 0; w < width; w++)
            inputs[w] = m->inputs[(t + w) % width];
        memcpy(sum, m->bias, sizeof sum);
        m->delta.kernels->convolve(sum, inputs, weights, width, p->dim);
        memcpy(row, sum, (size_t)p->dim * sizeof *row);
        if (o->sum_rounded)
            round_floats(m, row, p->dim);
        activate(m, row, o->activation, p->dim);
        if (!o->convolved_unrounded)
            round_floats(m, row, p->dim);
    }
}

static void convolve_keys(delta_worker *w, const delta_sequence *s, int32_t key_head, int64_t token, int64_t n)
{
    mixer_worker *m = (mixer_worker *)w;       /* its first member */
    convolve(m, MIXER_QUERY, s, key_head, 0, token, n, w->query, w->block.padded);
    convolve(m, MIXER_KEY, s, key_head, 0, token, n, w->key, w->block.padded);
}

/* ---- Norm ---- */

/* A head's o, V floats with zeros to row_floats, to its output. */
static void finish(mixer_worker *m, float *o, int64_t token, int32_t key, int32_t member)
{
    const mixer_call *c = m->call;
    const ol_gated_delta_mixer_options *options = &c->mixer->options;
    const delta_heads *out = &c->recurrence.output;
    const mixer_channels *z = &c->gate;
    int V = options->recurrence.value_dim;
    if (!options->output_unrounded)
        round_floats(m, o, V);
    if (mixer_has_norm(c->mixer)) {
        float sum = m->delta.kernels->squares(o, m->row_floats);
        m->delta.kernels->scale(o, num_rsqrt_f32(sum / (float)V + c->mixer->epsilon), V);
        if (options->normalized_rounded)
            round_floats(m, o, V);
        multiply(m, o, m->norm_weight, V);
        if (options->weighted_rounded)
            round_floats(m, o, V);
    }
    if (mixer_has_gate(c->mixer)) {
        delta_widen(&m->delta, m->gate, z->data + token * z->outer + key * z->key + member * z->member, z->dtype, V);
        activate(m, m->gate, options->gate, V);
        multiply(m, o, m->gate, V);
    }
    delta_narrow(&m->delta, out->data + token * out->token + key * out->key + member * out->member, o, out->dtype, V);
}

/* ---- Heads ---- */

/* `memory` has room for all blocks of a head's state, NULL where one chunk is all there is. */
static void run_head(mixer_worker *m, const delta_sequence *s, int32_t head, float *memory)
{
    delta_worker *w = &m->delta;
    const ol_gated_delta *layer = m->call->recurrence.layer;
    int32_t key = head / layer->ratio, member = head % layer->ratio, V = layer->options.value_dim;
    for (int64_t first = 0; first < s->length; first += w->chunk_tokens) {
        int64_t n = least(w->chunk_tokens, s->length - first);
        convolve(m, MIXER_VALUE, s, key, member, first, n, m->values, m->row_floats);
        for (int row = 0, block = 0; row < V; row += w->block_rows, block++) {
            w->block.memory = memory ? memory + block * DELTA_BLOCK_FLOATS : w->memory;
            delta_worker_block(w, s, head, row, first, n);
        }
        for (int64_t t = 0; t < n; t++) {
            float *o = m->outputs + t * m->row_floats;
            memset(o + V, 0, (size_t)(m->row_floats - V) * sizeof *o);
            finish(m, o, s->first + first + t, key, member);
        }
    }
    w->block.memory = w->memory;
}

void mixer_worker_begin(mixer_worker *m, const mixer_call *call)
{
    const ol_gated_delta_options *o = &call->mixer->options.recurrence;
    delta_worker *w = &m->delta;
    delta_worker_begin(w, &call->recurrence);
    m->call = call;
    m->row_floats = (o->value_dim + DELTA_SUMS - 1) / DELTA_SUMS * DELTA_SUMS;
    w->chunk_tokens = least(w->chunk_tokens, MIXER_HEAD_FLOATS / m->row_floats);
    w->insert = (delta_insert){ convolve_keys, m->values, m->outputs, m->row_floats };
    /* What a vector reads beyond the last channel is a number, though nobody looks at what comes of it. */
    memset(m->values, 0, sizeof m->values);
    memset(m->outputs, 0, sizeof m->outputs);
    memset(m->inputs, 0, sizeof m->inputs);
    memset(m->weights, 0, sizeof m->weights);
    memset(m->bias, 0, sizeof m->bias);
    if (mixer_has_norm(call->mixer))
        gather(m, m->norm_weight, call->norm_weight.data, call->norm_weight.channel, call->norm_weight.dtype, o->value_dim);
}

void mixer_worker_run(mixer_worker *m, const delta_sequence *s, int64_t first, int64_t end)
{
    delta_worker *w = &m->delta;
    workspace *heads = m->call->mixer->prepared;
    int is_long = s->length > w->chunk_tokens;
    float *memory = NULL;
    /* Where no block is left and there is no memory for another, others are at work, and will give theirs back. */
    while (is_long && !(memory = workspace_take(heads)))
        sched_yield();
    fpenv host = fpenv_begin();
    for (int64_t head = first; head < end; head++) {
        w->last_head = is_long ? (int32_t)head + 1 : (int32_t)end;
        if (s->length == 0)
            for (int row = 0; row < m->call->recurrence.layer->options.value_dim; row += w->block_rows)
                delta_worker_block(w, s, (int32_t)head, row, 0, 0);
        else
            run_head(m, s, (int32_t)head, memory);
    }
    fpenv_end(host);
    if (memory)
        workspace_give(heads, memory);
}
