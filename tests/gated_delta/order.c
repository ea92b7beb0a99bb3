/* See order.h. */
#include "order.h"

#include "element.h"
#include "harness.h"

#include <math.h>
#include <mpfr.h>
#include <stdlib.h>
#include <string.h>

enum { SUMS = 32 };

float order_dot(const float *x, const float *y, int n)
{
    float s[SUMS] = { 0 };
    for (int k = 0; k < (n + SUMS - 1) / SUMS * SUMS; k++)
        s[k % SUMS] = fmaf(k < n ? x[k] : 0.0f, k < n ? y[k] : 0.0f, s[k % SUMS]);
    for (int m = SUMS / 2; m > 0; m /= 2)
        for (int i = 0; i < m; i++)
            s[i] = s[2 * i] + s[2 * i + 1];
    return s[0];
}

/* The float32 that is nearest to x^-1/2. */
static float nearest_rsqrt(float x)
{
    mpfr_t y;
    mpfr_init2(y, 24);
    mpfr_set_flt(y, x, MPFR_RNDN);
    mpfr_rec_sqrt(y, y, MPFR_RNDN);
    float nearest = mpfr_get_flt(y, MPFR_RNDN);
    mpfr_clear(y);
    return x == 0 ? copysignf(INFINITY, x) : nearest;
}

float order_norm_factor(const ol_gated_delta_options *o, const float *x, int n)
{
    float epsilon = o->epsilon == 0 ? 1e-6f : (float)o->epsilon, sum = order_dot(x, x, n);
    switch (o->norm) {
    case OL_DELTA_NORM_NONE: return 1;
    case OL_DELTA_NORM_RSQRT: return nearest_rsqrt(sum + epsilon);
    case OL_DELTA_NORM_MAXIMUM: {
        float root = sqrtf(sum);
        return 1.0f / (root < epsilon ? epsilon : root);                 /* a NaN root stays */
    }
    case OL_DELTA_NORM_ADDED: return 1.0f / (sqrtf(sum) + epsilon);
    case OL_DELTA_NORM_RMS: {
        float mean = sum / (float)n, r = nearest_rsqrt(mean + epsilon);
        return r * nearest_rsqrt((float)n);
    }
    }
    return NAN;
}

/* ---- Gates: the public composites on the arguments' views ---- */

static ol_dtype dtype_or(ol_dtype dtype, ol_dtype other) { return dtype ? dtype : other; }

/* A copy [n_tokens, value_heads(, channels)] in the order of the heads, so that split axes need no broadcasting; parameters have no token. */
static ol_tensor in_head_order(const ol_tensor *t, const head_axes *heads, int64_t n_tokens, int64_t channels)
{
    size_t size = ol_dtype_size(t->dtype);
    int64_t shape[3], inner = channels ? channels : 1, outer = n_tokens < 0 ? 1 : n_tokens;
    int32_t rank = 0;
    if (n_tokens >= 0)
        shape[rank++] = n_tokens;
    shape[rank++] = heads->value_heads;
    if (channels)
        shape[rank++] = channels;
    char *copy = malloc((size_t)(outer * heads->value_heads * inner) * size + 1), *to = copy;
    assert_non_null(copy);
    for (int64_t token = 0; token < outer; token++)
        for (int64_t h = 0; h < heads->value_heads; h++)
            for (int64_t c = 0; c < inner; c++, to += size)
                memcpy(to, element_of_head(t, heads, n_tokens < 0 ? -1 : token, h, channels ? c : -1), size);
    return ol_tensor_contiguous(copy, t->dtype, rank, shape);
}

static int build_exp(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_exp(g, ol_astype(g, in[0], OL_FLOAT32));
    return 0;
}

static int build_float32(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_astype(g, in[0], OL_FLOAT32);
    return 0;
}

static void run_composite(ol_composite *c, const ol_tensor *in, float *first, float *second)
{
    ol_error error;
    ol_tensor out[2];
    float *data[2] = { first, second };
    assert_ok(ol_output_shapes(c, in, out, &error), &error);
    for (int i = 0; i < ol_composite_output_count(c); i++)
        out[i].data = data[i];
    assert_ok(ol_replay(c, NULL, in, out, &error), &error);
    ol_composite_destroy(c);
}

void order_gates(ol_device *device, const ol_gated_delta_options *o, const ol_gated_delta_arguments *a, float **beta, float **decay)
{
    head_axes heads = { o->key_heads, o->value_heads, o->head_map == OL_HEADS_TILED };
    int64_t n_tokens = a->query.shape[0], channels = o->decay_per_channel ? o->key_dim : 0, inner = channels ? channels : 1;
    ol_gate_options gates = o->gates;
    ol_dtype act = o->activation_dtype;
    ol_composite *c;
    ol_error error;
    ol_tensor in[4] = { in_head_order(&a->update, &heads, n_tokens, 0), in_head_order(&a->decay, &heads, n_tokens, channels) };
    void *copies[4] = { in[0].data, in[1].data };
    *beta = malloc((size_t)(n_tokens * o->value_heads) * sizeof(float) + 1);
    *decay = malloc((size_t)(n_tokens * o->value_heads * inner) * sizeof(float) + 1);
    assert_true(*beta && *decay);
    gates.beta_dtype = OL_FLOAT32;
    if (o->decay == OL_DELTA_DECAY_COMPUTED) {
        int n = 2, has_rate = gates.kind != OL_GATE_LOWER_BOUND_PLAIN;
        if (has_rate) {
            copies[2] = (in[n] = in_head_order(&a->decay_rate, &heads, -1, 0)).data;
            if (channels) {
                in[n].rank = 2;
                in[n].shape[1] = 1;
            }
            n++;
        }
        copies[3] = (in[n] = in_head_order(&a->decay_bias, &heads, -1, a->decay_bias.rank ? channels : 0)).data;
        if (!a->decay_bias.rank)
            in[n] = a->decay_bias;
        assert_ok(ol_gated_delta_gates_compile(device, &gates, dtype_or(o->update_dtype, act), dtype_or(o->decay_dtype, act),
                                               dtype_or(o->decay_rate_dtype, OL_FLOAT32), dtype_or(o->decay_bias_dtype, act), &c, &error), &error);
        run_composite(c, in, *beta, *decay);
    } else {
        /* beta by the composite of gates whose other half is not looked at. */
        float zero = 0;
        ol_tensor any[4] = { in[0], in[0], ol_tensor_contiguous(&zero, OL_FLOAT32, 0, NULL), ol_tensor_contiguous(&zero, OL_FLOAT32, 0, NULL) };
        float *ignored = malloc((size_t)(n_tokens * o->value_heads) * sizeof(float) + 1);
        ol_dtype b = dtype_or(o->update_dtype, act);
        assert_ok(ol_gated_delta_gates_compile(device, &gates, b, b, OL_FLOAT32, OL_FLOAT32, &c, &error), &error);
        run_composite(c, any, *beta, ignored);
        free(ignored);
        ol_builder builder = { .build = o->decay == OL_DELTA_DECAY_GIVEN ? build_float32 : build_exp, .n_inputs = 1, .n_outputs = 1 };
        ol_dtype given = dtype_or(o->decay_dtype, act);
        assert_ok(ol_compile(device, &builder, &given, &c, &error), &error);
        run_composite(c, &in[1], *decay, NULL);
    }
    for (int i = 0; i < 4; i++)
        free(copies[i]);
}

/* ---- What the arguments say of sequences ---- */

static int given(const ol_tensor *t) { return t->data != NULL || t->rank != 0; }

static int64_t whole_at(const ol_tensor *t, int64_t i, int64_t column)
{
    int64_t index[2] = { i, column };
    return (int64_t)element_read(t->dtype, element_at(t, index));
}

int64_t order_sequences(const ol_gated_delta_arguments *a)
{
    if (given(&a->cu_seqlens))
        return a->cu_seqlens.shape[0] - 1;
    const ol_tensor *with_n[] = { &a->read_slots, &a->write_slots, &a->has_initial_state, &a->accepted_tokens, &a->token_counts };
    for (size_t i = 0; i < sizeof with_n / sizeof *with_n; i++)
        if (given(with_n[i]))
            return with_n[i]->shape[0];
    return a->state.shape[0];
}

static int is_padding(const ol_gated_delta_options *o, int64_t slot)
{
    return o->padding != OL_DELTA_PADDING_NONE && slot < (o->padding == OL_DELTA_PADDING_NOT_POSITIVE);
}

order_sequence order_sequence_at(const ol_gated_delta_options *o, const ol_gated_delta_arguments *a, int64_t i)
{
    int64_t n = order_sequences(a), uniform = n ? a->query.shape[0] / n : 0;
    order_sequence s = { i * uniform, uniform, i, 0 };
    if (given(&a->cu_seqlens)) {
        s.first = whole_at(&a->cu_seqlens, i, 0);
        s.length = whole_at(&a->cu_seqlens, i + 1, 0) - s.first;
    }
    if (given(&a->token_counts))
        s.length = whole_at(&a->token_counts, i, 0);
    if (given(&a->read_slots)) {
        int64_t column = given(&a->accepted_tokens) ? whole_at(&a->accepted_tokens, i, 0) - 1 : 0;
        s.read = whole_at(&a->read_slots, i, a->read_slots.rank == 2 ? column : 0);
        s.is_padding = is_padding(o, s.read);
    }
    if (given(&a->has_initial_state) && !whole_at(&a->has_initial_state, i, 0))
        s.read = -1;
    return s;
}

int64_t order_write_slot(const ol_gated_delta_options *o, const ol_gated_delta_arguments *a, int64_t i, int64_t t, int is_last)
{
    int64_t slot;
    if (a->state_is_kept)
        return -1;
    if (given(&a->write_slots) && a->write_slots.rank == 2)
        slot = t < 0 ? -1 : whole_at(&a->write_slots, i, t);
    else if (!is_last)
        return -1;
    else if (given(&a->write_slots))
        slot = whole_at(&a->write_slots, i, 0);
    else {
        ol_gated_delta_arguments stored = *a;
        stored.has_initial_state = (ol_tensor){ 0 };
        slot = order_sequence_at(o, &stored, i).read;
    }
    return (given(&a->write_slots) || given(&a->read_slots)) && is_padding(o, slot) ? -1 : slot;
}

/* ---- The step ---- */

typedef struct walk {
    const ol_gated_delta_options *o;
    const ol_gated_delta_arguments *a;
    head_axes heads;
    float *state;                      /* [V][K] */
} walk;

/* The state's element in a tensor [slots…, heads, V, K] or [slots…, heads, K, V], at the index that the first axes have. */
static void *state_at(const walk *w, const ol_tensor *t, int64_t i, int64_t token, int64_t head, int v, int k)
{
    int64_t index[5] = { i, token };
    int n = t->rank - 3;
    index[n++] = head;
    index[n++] = w->o->state_layout == OL_DELTA_KEY_VALUE ? k : v;
    index[n] = w->o->state_layout == OL_DELTA_KEY_VALUE ? v : k;
    return element_at(t, index);
}

static void store_state(const walk *w, const ol_tensor *t, int64_t i, int64_t token, int64_t head)
{
    int K = w->o->key_dim;
    for (int v = 0; v < w->o->value_dim; v++)
        for (int k = 0; k < K; k++)
            element_write(t->dtype, state_at(w, t, i, token, head, v, k), w->state[v * K + k]);
}

static void load_state(const walk *w, int64_t slot, int64_t head)
{
    int K = w->o->key_dim;
    for (int v = 0; v < w->o->value_dim; v++)
        for (int k = 0; k < K; k++)
            w->state[v * K + k] = slot < 0 ? 0.0f : (float)element_read(w->a->state.dtype, state_at(w, &w->a->state, slot, 0, head, v, k));
}

static void one_token(const walk *w, int64_t token, int64_t head, float beta, const float *decay, int channels)
{
    const ol_gated_delta_options *o = w->o;
    int K = o->key_dim;
    int64_t r = o->value_heads / o->key_heads, key_head = w->heads.tiled ? head % o->key_heads : head / r;
    float q[OL_DELTA_MAX_DIM] = { 0 }, k[OL_DELTA_MAX_DIM] = { 0 }, scale = o->scale == 0 ? nearest_rsqrt((float)K) : (float)o->scale;
    for (int i = 0; i < K; i++) {
        int64_t index[3] = { token, key_head, i };
        q[i] = (float)element_read(w->a->query.dtype, element_at(&w->a->query, index));
        k[i] = (float)element_read(w->a->key.dtype, element_at(&w->a->key, index));
    }
    float qr = order_norm_factor(o, q, K), kr = order_norm_factor(o, k, K);
    for (int i = 0; i < K; i++) {
        q[i] = (q[i] * qr) * scale;
        k[i] = k[i] * kr;
    }
    for (int v = 0; v < o->value_dim; v++) {
        float *row = w->state + v * K;
        for (int i = 0; i < K; i++)
            row[i] = row[i] * decay[channels ? i : 0];
        float m = order_dot(row, k, K);
        float rest = (float)element_read(w->a->value.dtype, element_of_head(&w->a->value, &w->heads, token, head, v)) - m;
        float u = beta * rest;
        for (int i = 0; i < K; i++)
            row[i] = fmaf(u, k[i], row[i]);
        element_write(w->a->output.dtype, element_of_head(&w->a->output, &w->heads, token, head, v), order_dot(row, q, K));
    }
}

static void pad_outputs(const walk *w, const char *is_run)
{
    for (int64_t token = 0; !w->o->padding_output_untouched && token < w->a->query.shape[0]; token++)
        for (int64_t h = 0; !is_run[token] && h < w->o->value_heads; h++)
            for (int v = 0; v < w->o->value_dim; v++)
                element_write(w->a->output.dtype, element_of_head(&w->a->output, &w->heads, token, h, v), 0.0f);
}

void order_step(ol_device *device, const ol_gated_delta_options *o, const ol_gated_delta_arguments *a)
{
    walk w = { o, a, { o->key_heads, o->value_heads, o->head_map == OL_HEADS_TILED }, malloc((size_t)o->value_dim * (size_t)o->key_dim * sizeof(float)) };
    int64_t n_tokens = a->query.shape[0], n = order_sequences(a), channels = o->decay_per_channel ? o->key_dim : 1;
    char *is_run = calloc((size_t)n_tokens + 1, 1);
    float *beta, *decay;
    assert_true(w.state && is_run);
    order_gates(device, o, a, &beta, &decay);
    for (int64_t i = 0; i < n; i++) {
        order_sequence s = order_sequence_at(o, a, i);
        for (int64_t h = 0; !s.is_padding && h < o->value_heads; h++) {
            load_state(&w, s.read, h);
            if (s.length == 0) {
                int64_t slot = order_write_slot(o, a, i, -1, 1);
                if (slot >= 0 && slot != s.read)
                    store_state(&w, &a->state, slot, 0, h);
            }
            for (int64_t t = 0; t < s.length; t++) {
                int64_t token = s.first + t, at = token * o->value_heads + h;
                is_run[token] = 1;
                one_token(&w, token, h, beta[at], decay + at * channels, o->decay_per_channel);
                int64_t slot = order_write_slot(o, a, i, t, t == s.length - 1);
                if (slot >= 0)
                    store_state(&w, &a->state, slot, 0, h);
                if (given(&a->intermediate_states))
                    store_state(&w, &a->intermediate_states, i, t, h);
            }
        }
    }
    pad_outputs(&w, is_run);
    free(beta);
    free(decay);
    free(is_run);
    free(w.state);
}
