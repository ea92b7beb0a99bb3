/* One thread's part of a gated-delta step: block after block of rows, and for each all tokens of its sequence.
 *
 * What the rows of a head share is computed before them and kept as long as it serves: k^ and q^ of a chunk of tokens serve all
 * rows of all value heads of their key head, beta and decay come for several heads at once. Sequences longer than a chunk have
 * them computed again for each block, a tenth more work. Gates are a replay of the layer's composite on views of the arguments, so
 * their bits are its own. */
#include "cpu/delta_worker.h"

#include "numerics/fpenv.h"

int delta_block_rows(const ol_gated_delta_options *o)
{
    int padded = (o->key_dim + DELTA_SUMS - 1) / DELTA_SUMS * DELTA_SUMS;
    return DELTA_BLOCK_FLOATS / padded / DELTA_LANES * DELTA_LANES;
}

static const delta_kernels *level_kernels(ol_cpu_level level)
{
    switch (level) {
#if defined(__x86_64__)
    case OL_CPU_AVX2: return &kernels_delta_avx2;
    case OL_CPU_AVX512: return &kernels_delta_avx512;
#elif defined(__aarch64__)
    case OL_CPU_NEON: return &kernels_delta_neon;
#endif
    default: return &kernels_delta_baseline;
    }
}

void delta_worker_begin(delta_worker *w, const delta_call *call)
{
    const ol_gated_delta *layer = call->layer;
    const ol_gated_delta_options *o = &layer->options;
    const cpu_device *device = (const cpu_device *)layer->device;
    int padded = (o->key_dim + DELTA_SUMS - 1) / DELTA_SUMS * DELTA_SUMS;
    w->call = call;
    w->kernels = level_kernels(device->level);
    w->conversions = device->kernels;
    w->norm = (delta_norm){ (int)o->norm, layer->epsilon, layer->scale, layer->root };
    w->block = (delta_block){ .memory = w->memory, .key_dim = o->key_dim, .padded = padded, .per_channel = o->decay_per_channel != 0, .dtype = o->state_dtype };
    w->block_rows = delta_block_rows(o);
    w->chunk_tokens = DELTA_KEY_FLOATS / padded;
    w->keys.n_tokens = w->gates.n_tokens = 0;
    w->insert = (delta_insert){ 0 };
    memset(w->decay, 0, sizeof w->decay);                      /* what is read beyond the last channel is a number */
    memset(w->value, 0, sizeof w->value);
}

/* ---- Elements of the caller's dtypes ---- */

void delta_widen(const delta_worker *w, float *to, const char *from, ol_dtype dtype, int n)
{
    uint16_t aligned[OL_DELTA_MAX_DIM];
    if (dtype == OL_FLOAT32) {
        memcpy(to, from, (size_t)n * sizeof *to);
        return;
    }
    if (!dtype_aligned(dtype, from))
        from = memcpy(aligned, from, (size_t)n * sizeof *aligned);
    w->conversions->astype[dtype][OL_FLOAT32](to, from, NULL, NULL, (size_t)n);
}

void delta_narrow(const delta_worker *w, char *to, const float *from, ol_dtype dtype, int n)
{
    uint32_t aligned[OL_DELTA_MAX_DIM];
    void *place = dtype_aligned(dtype, to) ? (void *)to : aligned;
    w->conversions->astype[OL_FLOAT32][dtype](place, from, NULL, NULL, (size_t)n);
    if (place == aligned)
        memcpy(to, aligned, (size_t)n * dtype_sizes[dtype]);
}

/* ---- k^ and q^ ---- */

static void prepare_keys(delta_worker *w, const delta_sequence *s, int32_t key_head, int64_t token, int64_t n_tokens)
{
    const delta_call *c = w->call;
    int padded = w->block.padded, K = w->block.key_dim;
    if (w->keys.n_tokens == n_tokens && w->keys.sequence == s->number && w->keys.head == key_head && w->keys.token == token)
        return;
    w->keys = (delta_span){ s->number, token, n_tokens, key_head, 1 };
    if (w->insert.keys)
        w->insert.keys(w, s, key_head, token, n_tokens);
    for (int64_t t = 0; t < n_tokens; t++) {
        float *key = w->key + t * padded, *query = w->query + t * padded;
        int64_t at = s->first + token + t;
        if (!w->insert.keys) {
            delta_widen(w, key, c->key.data + at * c->key.token + key_head * c->key.key, c->key.dtype, K);
            delta_widen(w, query, c->query.data + at * c->query.token + key_head * c->query.key, c->query.dtype, K);
        }
        memset(key + K, 0, (size_t)(padded - K) * sizeof *key);
        memset(query + K, 0, (size_t)(padded - K) * sizeof *query);
        w->kernels->normalize(key, query, K, padded, &w->norm);
    }
}

/* ---- Gates ---- */

/* A view [tokens,] keys, members[, channels] of heads, as an input of the composite. */
static ol_tensor gate_view(const delta_heads *h, int64_t token, int64_t n_tokens, int32_t key, int64_t n_keys, int32_t member, int64_t n_members, int64_t channels)
{
    int64_t size = dtype_sizes[h->dtype];
    ol_tensor t = { .data = h->data + key * h->key + member * h->member, .dtype = h->dtype };
    if (n_tokens > 0) {
        t.data = (char *)t.data + token * h->token;
        t.shape[t.rank] = n_tokens;
        t.strides[t.rank++] = h->token / size;
    }
    t.shape[t.rank] = n_keys;
    t.strides[t.rank++] = h->key / size;
    t.shape[t.rank] = n_members;
    t.strides[t.rank++] = h->member / size;
    if (channels > 0) {
        t.shape[t.rank] = channels;
        t.strides[t.rank++] = 1;
    }
    return t;
}

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

/* The heads that come with `head` at once: to the end of its key head, or whole key heads, as far as there is room and use. */
static int32_t heads_at_once(const delta_worker *w, int32_t head, int64_t n_tokens, int64_t channels)
{
    int32_t r = w->call->layer->ratio;
    int64_t room = least(DELTA_GATE_FLOATS / n_tokens, DELTA_KEY_FLOATS / (n_tokens * channels)), n = least(w->last_head - head, room);
    if (n < 1)
        n = 1;
    return (int32_t)(head % r || n < r ? least(n, r - head % r) : n - n % r);
}

static void prepare_gates(delta_worker *w, const delta_sequence *s, int32_t head, int64_t token, int64_t n_tokens)
{
    const delta_call *c = w->call;
    const ol_gated_delta *layer = c->layer;
    int64_t channels = w->block.per_channel ? w->block.key_dim : 0, at = s->first + token;
    delta_span *g = &w->gates;
    if (g->n_tokens == n_tokens && g->sequence == s->number && g->token == token && head >= g->head && head < g->head + g->n_heads)
        return;
    int32_t r = layer->ratio, n = heads_at_once(w, head, n_tokens, channels ? channels : 1);
    int32_t key = head / r, member = head % r, n_keys = n < r ? 1 : n / r, n_members = n / n_keys, n_inputs = 2;
    *g = (delta_span){ s->number, token, n_tokens, head, n };
    ol_tensor in[4] = { gate_view(&c->update, at, n_tokens, key, n_keys, member, n_members, 0),
                        gate_view(&c->decay, at, n_tokens, key, n_keys, member, n_members, channels) };
    if (c->decay_rate.data) {
        in[n_inputs] = gate_view(&c->decay_rate, 0, 0, key, n_keys, member, n_members, channels ? 1 : 0);
        n_inputs++;
    }
    if (c->bias_is_scalar)
        in[n_inputs] = (ol_tensor){ .data = c->decay_bias.data, .dtype = c->decay_bias.dtype };
    else if (c->decay_bias.data)
        in[n_inputs] = gate_view(&c->decay_bias, 0, 0, key, n_keys, member, n_members, channels);
    const int64_t extents[] = { n_tokens, n_keys, n_members, channels };
    ol_tensor out[2] = { ol_tensor_contiguous(w->beta, OL_FLOAT32, 3, extents), ol_tensor_contiguous(w->decay, OL_FLOAT32, channels ? 4 : 3, extents) };
    cpu_replay_alone(layer->gates, in, out);
}

/* ---- Blocks ---- */

/* Where rows [row, …) of a head lie in a slot of states. */
static delta_place place_of(const delta_worker *w, const delta_states *states, int64_t slot, int64_t token, int32_t head, int row)
{
    const ol_gated_delta *layer = w->call->layer;
    int64_t inner = layer->options.state_layout == OL_DELTA_KEY_VALUE ? dtype_sizes[w->block.dtype] : states->row;
    return (delta_place){ states->data + slot * states->slot + token * states->token + head / layer->ratio * states->key +
                              head % layer->ratio * states->member + row * inner,
                          states->row };
}

/* The places that the state goes to after token t of a sequence, -1 of one without tokens. */
static int places_after(const delta_worker *w, const delta_sequence *s, int64_t t, int32_t head, int row, delta_place places[2])
{
    const delta_call *c = w->call;
    int n = 0;
    int64_t slot = delta_write_slot(c, s, t);
    if (slot >= 0 && !(t < 0 && slot == s->from))
        places[n++] = place_of(w, &c->state, slot, 0, head, row);
    if (t >= 0 && c->intermediate.data)
        places[n++] = place_of(w, &c->intermediate, s->number, t, head, row);
    return n;
}

static void store_all(delta_worker *w, const delta_place *places, int n)
{
    for (int i = 0; i < n; i++)
        w->kernels->store[w->call->layer->options.state_layout](&w->block, places[i]);
}

static void run_token(delta_worker *w, const delta_sequence *s, int64_t t, int32_t head, int row, int64_t in_chunk)
{
    const delta_call *c = w->call;
    int32_t r = c->layer->ratio, key = head / r, member = head % r, n = w->block.n_rows;
    int layout = (int)c->layer->options.state_layout;
    int64_t at = s->first + t, gate = in_chunk * w->gates.n_heads + (head - w->gates.head), channels = w->block.per_channel ? w->block.key_dim : 1;
    delta_token token = { .key = w->key + in_chunk * w->block.padded, .query = w->query + in_chunk * w->block.padded, .decay = w->decay + gate * channels,
                          .value = w->value, .beta = w->beta[gate], .update = w->update, .output = w->output };
    if (w->insert.values)
        memcpy(w->value, w->insert.values + in_chunk * w->insert.row_floats + row, (size_t)n * sizeof(float));
    else
        delta_widen(w, w->value, c->value.data + at * c->value.token + key * c->value.key + member * c->value.member + row * (int64_t)dtype_sizes[c->value.dtype],
                    c->value.dtype, n);
    if (t == 0 && s->from >= 0)
        token.from = place_of(w, &c->state, s->from, 0, head, row);
    else if (t == 0)
        w->kernels->load[layout](&w->block, (delta_place){ 0 });
    /* The last state goes straight to its place if that is one; else it is stored from the block. */
    delta_place places[2];
    int n_places = places_after(w, s, t, head, row, places), straight = n_places == 1 && t == s->length - 1;
    if (straight)
        token.to = places[0];
    w->kernels->token[layout](&w->block, &token);
    if (!straight)
        store_all(w, places, n_places);
    if (w->insert.outputs)
        memcpy(w->insert.outputs + in_chunk * w->insert.row_floats + row, w->output, (size_t)n * sizeof(float));
    else
        delta_narrow(w, c->output.data + at * c->output.token + key * c->output.key + member * c->output.member + row * (int64_t)dtype_sizes[c->output.dtype],
                     w->output, c->output.dtype, n);
}

void delta_worker_block(delta_worker *w, const delta_sequence *s, int32_t head, int row, int64_t first, int64_t n)
{
    int V = w->call->layer->options.value_dim;
    w->block.n_rows = V - row < w->block_rows ? V - row : w->block_rows;
    w->block.n_lanes = (w->block.n_rows + DELTA_LANES - 1) / DELTA_LANES * DELTA_LANES;
    if (n == 0) {
        delta_place places[2];
        int n_places = places_after(w, s, -1, head, row, places);
        w->kernels->load[w->call->layer->options.state_layout](&w->block, s->from < 0 ? (delta_place){ 0 } : place_of(w, &w->call->state, s->from, 0, head, row));
        store_all(w, places, n_places);
        return;
    }
    prepare_keys(w, s, head / w->call->layer->ratio, first, n);
    prepare_gates(w, s, head, first, n);
    for (int64_t t = 0; t < n; t++)
        run_token(w, s, first + t, head, row, t);
}

void delta_worker_run(delta_worker *w, const delta_sequence *s, int64_t first, int64_t end)
{
    int n_blocks = delta_head_blocks(&w->call->layer->options);
    fpenv host = fpenv_begin();
    /* Gates of several heads at once only where the keys of all tokens fit: else each block has its chunks over again. */
    int32_t last_head = (int32_t)((end + n_blocks - 1) / n_blocks);
    for (int64_t i = first; i < end; i++) {
        int32_t head = (int32_t)(i / n_blocks);
        w->last_head = s->length <= w->chunk_tokens ? last_head : head + 1;
        int row = (int)(i % n_blocks) * w->block_rows;
        if (s->length == 0)
            delta_worker_block(w, s, head, row, 0, 0);
        for (int64_t at = 0; at < s->length; at += w->chunk_tokens)
            delta_worker_block(w, s, head, row, at, least(w->chunk_tokens, s->length - at));
    }
    fpenv_end(host);
}
