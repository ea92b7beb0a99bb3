/* See mixer_order.h. */
#include "mixer_order.h"

#include "element.h"
#include "harness.h"

#include <math.h>
#include <mpfr.h>
#include <stdlib.h>
#include <string.h>

static int given(const ol_tensor *t) { return t->data != NULL || t->rank != 0; }

static ol_dtype dtype_or(ol_dtype dtype, ol_dtype other) { return dtype ? dtype : other; }

static float rounded_to(ol_dtype dtype, float x)
{
    char element[4];
    element_write(dtype, element, x);
    return (float)element_read(dtype, element);
}

/* ---- Activations: the nearest float32, ties to even, subnormals too ---- */

static float nearest(mpfr_t y, int inexact)
{
    mpfr_exp_t low = mpfr_get_emin(), high = mpfr_get_emax();
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
    inexact = mpfr_check_range(y, inexact, MPFR_RNDN);
    mpfr_subnormalize(y, inexact, MPFR_RNDN);
    float x = mpfr_get_flt(y, MPFR_RNDN);
    mpfr_set_emin(low);
    mpfr_set_emax(high);
    return x;
}

/* x^power / (1 + exp(-x)) with many digits, then one rounding. */
static float logistic(float x, int times_x)
{
    mpfr_t wide, y;
    mpfr_inits2(300, wide, (mpfr_ptr)0);
    mpfr_init2(y, 24);
    mpfr_set_flt(wide, -x, MPFR_RNDN);
    mpfr_exp(wide, wide, MPFR_RNDN);
    mpfr_add_ui(wide, wide, 1, MPFR_RNDN);
    if (times_x) {
        mpfr_t numerator;
        mpfr_init2(numerator, 24);
        mpfr_set_flt(numerator, x, MPFR_RNDN);
        mpfr_div(wide, numerator, wide, MPFR_RNDN);
        mpfr_clear(numerator);
    } else {
        mpfr_ui_div(wide, 1, wide, MPFR_RNDN);
    }
    float result = nearest(y, mpfr_set(y, wide, MPFR_RNDN));
    mpfr_clears(wide, y, (mpfr_ptr)0);
    return result;
}

float order_activate(ol_mixer_activation activation, float x)
{
    if (activation == OL_MIXER_NONE || isnan(x))
        return x;
    if (activation == OL_MIXER_SIGMOID)
        return isinf(x) ? (x > 0 ? 1.0f : 0.0f) : logistic(x, 0);
    if (isinf(x))
        return x > 0 ? x : -0.0f;
    return x == 0 ? x : logistic(x, 1);
}

/* ---- Where windows are ---- */

static int windows_apart(const ol_gated_delta_mixer_arguments *a) { return given(&a->window_read_slots) || given(&a->window_write_slots); }

/* The recurrence's arguments, with the windows' slots in the place of the states'. */
static ol_gated_delta_arguments window_arguments(const ol_gated_delta_mixer_arguments *a)
{
    ol_gated_delta_arguments w = a->recurrence;
    if (windows_apart(a)) {
        w.read_slots = a->window_read_slots;
        w.write_slots = a->window_write_slots;
        if (w.read_slots.rank != 2)
            w.accepted_tokens = (ol_tensor){ 0 };
    }
    /* What N is, is said by the recurrence's. */
    if (!given(&w.cu_seqlens) && !given(&w.read_slots) && !given(&w.write_slots) && !given(&w.has_initial_state) && !given(&w.token_counts))
        w.state.shape[0] = order_sequences(&a->recurrence);
    return w;
}

static int64_t whole_at(const ol_tensor *t, int64_t i) { return given(t) ? (int64_t)element_read(t->dtype, element_at(t, &i)) : 0; }

typedef struct part {
    const ol_gated_delta_mixer_options *o;
    const ol_gated_delta_mixer_arguments *a;
    const ol_gated_delta_convolution *c;
    const ol_tensor *input;
    int32_t n_heads, dim;
    head_axes heads;
    int width;
    int64_t n_columns;
} part;

static part part_of(const ol_gated_delta_mixer_options *o, const ol_gated_delta_mixer_arguments *a, int number)
{
    const ol_gated_delta_convolution *c[] = { &a->query, &a->key, &a->value };
    const ol_tensor *inputs[] = { &a->recurrence.query, &a->recurrence.key, &a->recurrence.value };
    const ol_gated_delta_options *g = &o->recurrence;
    part p = { .o = o, .a = a, .c = c[number], .input = inputs[number], .width = o->width ? o->width : 4 };
    p.n_heads = number == 2 ? g->value_heads : g->key_heads;
    p.dim = number == 2 ? g->value_dim : g->key_dim;
    p.heads = number == 2 ? (head_axes){ g->key_heads, g->value_heads, g->head_map == OL_HEADS_TILED } : (head_axes){ g->key_heads, g->key_heads, 0 };
    p.n_columns = c[number]->window.shape[c[number]->window.rank - 1];
    return p;
}

/* Of [n_outer indices, heads in one axis or two, dim(, last)]. */
static void *channel_at(const ol_tensor *t, const head_axes *heads, int n_outer, int64_t first, int64_t second, int64_t head, int64_t dim, int64_t last)
{
    ol_tensor inner = *t;
    inner.data = (char *)t->data + ((n_outer > 0 ? first * t->strides[0] : 0) + (n_outer > 1 ? second * t->strides[1] : 0) + (last >= 0 ? last * t->strides[t->rank - 1] : 0)) *
                                       (int64_t)ol_dtype_size(t->dtype);
    inner.rank = t->rank - n_outer - (last >= 0);
    memmove(inner.shape, t->shape + n_outer, (size_t)inner.rank * sizeof *inner.shape);
    memmove(inner.strides, t->strides + n_outer, (size_t)inner.rank * sizeof *inner.strides);
    return element_of_head(&inner, heads, -1, head, dim);
}

/* ---- Windows ---- */

/* The input of a channel, `before` inputs before the call's first token (1: the last one), as the window that sequence i starts from has it. */
static float input_before(const part *p, int64_t i, int64_t slot, int64_t before, int64_t head, int64_t dim)
{
    int64_t column = p->n_columns - whole_at(&p->a->window_dropped, i) - before;
    if (p->o->window == OL_MIXER_WINDOW_RING) {
        int64_t position = whole_at(&p->a->window_positions, i) - before;
        column = position < 0 ? -1 : position % p->n_columns;
    }
    if (slot < 0 || column < 0)
        return 0;
    return (float)element_read(p->c->window.dtype, channel_at(&p->c->window, &p->heads, 1, slot, 0, head, dim, column));
}

static float input_at(const part *p, const order_sequence *s, int64_t i, int64_t slot, int64_t t, int64_t head, int64_t dim)
{
    return t < 0 ? input_before(p, i, slot, -t, head, dim) : (float)element_read(p->input->dtype, element_of_head(p->input, &p->heads, s->first + t, head, dim));
}

/* Writes the window after n tokens of the call to a place of [columns]. `old`: all columns that the sequence started from; zeros where it had none. */
static void store_window(const part *p, const order_sequence *s, int64_t i, int64_t slot, int64_t n, int64_t head, int64_t dim, const float *old, const ol_tensor *t,
                         int n_outer, int64_t first, int64_t second)
{
    float columns[OL_MIXER_MAX_COLUMNS];
    int64_t R = p->n_columns;
    memcpy(columns, old, sizeof columns);
    if (p->o->window == OL_MIXER_WINDOW_RING) {
        int64_t position = whole_at(&p->a->window_positions, i);
        for (int64_t token = 0; token < n; token++)
            columns[(position + token) % R] = input_at(p, s, i, slot, token, head, dim);
    } else {
        int64_t dropped = whole_at(&p->a->window_dropped, i);
        memset(columns, 0, sizeof columns);
        for (int64_t column = dropped; column < R; column++)       /* what is dropped leaves zeros at the oldest end */
            columns[column] = old[column - dropped];
        for (int64_t token = 0; token < n; token++) {
            memmove(columns, columns + 1, (size_t)(R - 1) * sizeof *columns);
            columns[R - 1] = input_at(p, s, i, slot, token, head, dim);
        }
    }
    for (int64_t column = 0; column < R; column++)
        element_write(t->dtype, channel_at(t, &p->heads, n_outer, first, second, head, dim, column), columns[column]);
}

static void write_windows(const part *p)
{
    ol_gated_delta_arguments w = window_arguments(p->a);
    const ol_gated_delta_options *g = &p->o->recurrence;
    int64_t n = order_sequences(&p->a->recurrence);
    int ring = p->o->window == OL_MIXER_WINDOW_RING;
    for (int64_t i = 0; i < n; i++) {
        order_sequence s = order_sequence_at(g, &p->a->recurrence, i);
        int64_t from = order_sequence_at(g, &w, i).read;
        for (int64_t head = 0; !s.is_padding && head < p->n_heads; head++)
            for (int64_t dim = 0; dim < p->dim; dim++) {
                float old[OL_MIXER_MAX_COLUMNS] = { 0 };
                for (int64_t column = 0; from >= 0 && column < p->n_columns; column++)
                    old[column] = (float)element_read(p->c->window.dtype, channel_at(&p->c->window, &p->heads, 1, from, 0, head, dim, column));
                for (int64_t t = s.length ? 0 : -1; t < s.length; t++) {
                    int64_t to = order_write_slot(g, &w, i, t, t == s.length - 1);
                    int stays = t < 0 && to == from && (ring || whole_at(&p->a->window_dropped, i) == 0);
                    if (to >= 0 && !stays)
                        store_window(p, &s, i, from, t + 1, head, dim, old, &p->c->window, 1, to, 0);
                    if (t >= 0 && given(&p->c->intermediate_windows))
                        store_window(p, &s, i, from, t + 1, head, dim, old, &p->c->intermediate_windows, 2, i, t);
                }
            }
    }
}

/* ---- Convolution ---- */

float *order_convolve(const ol_gated_delta_mixer_options *o, const ol_gated_delta_mixer_arguments *a, int number)
{
    part p = part_of(o, a, number);
    ol_gated_delta_arguments w = window_arguments(a);
    ol_dtype act = o->recurrence.activation_dtype;
    int64_t n = order_sequences(&a->recurrence);
    float *result = calloc((size_t)(p.input->shape[0] * p.n_heads * p.dim) + 1, sizeof *result);
    assert_non_null(result);
    for (int64_t i = 0; i < n; i++) {
        order_sequence s = order_sequence_at(&o->recurrence, &a->recurrence, i);
        int64_t from = order_sequence_at(&o->recurrence, &w, i).read;
        for (int64_t t = 0; !s.is_padding && t < s.length; t++)
            for (int64_t head = 0; head < p.n_heads; head++)
                for (int64_t dim = 0; dim < p.dim; dim++) {
                    float sum = 0;
                    if (o->bias_dtype)
                        sum = (float)element_read(o->bias_dtype, channel_at(&p.c->bias, &p.heads, 0, 0, 0, head, dim, -1));
                    for (int k = 0; k < p.width; k++) {
                        float weight = (float)element_read(p.c->weight.dtype, channel_at(&p.c->weight, &p.heads, 0, 0, 0, head, dim, k));
                        sum = fmaf(input_at(&p, &s, i, from, t - (p.width - 1) + k, head, dim), weight, sum);
                    }
                    if (o->sum_rounded)
                        sum = rounded_to(act, sum);
                    sum = order_activate(o->activation, sum);
                    result[((s.first + t) * p.n_heads + head) * p.dim + dim] = o->convolved_unrounded ? sum : rounded_to(act, sum);
                }
    }
    return result;
}

/* ---- Norm ---- */

static float nearest_rsqrt(float x)
{
    mpfr_t y;
    mpfr_init2(y, 24);
    mpfr_set_flt(y, x, MPFR_RNDN);
    mpfr_rec_sqrt(y, y, MPFR_RNDN);
    float result = x == 0 ? copysignf(INFINITY, x) : mpfr_get_flt(y, MPFR_RNDN);
    mpfr_clear(y);
    return result;
}

void order_norm(const ol_gated_delta_mixer_options *o, float *x, const float *weight, const float *z, int n)
{
    ol_dtype act = o->recurrence.activation_dtype;
    float r = 1;
    for (int i = 0; !o->output_unrounded && i < n; i++)
        x[i] = rounded_to(act, x[i]);
    if (o->norm == OL_MIXER_NORM_RMS) {
        float mean = order_dot(x, x, n) / (float)n;
        r = nearest_rsqrt(mean + (o->epsilon == 0 ? 1e-6f : (float)o->epsilon));
    }
    for (int i = 0; i < n && o->norm == OL_MIXER_NORM_RMS; i++) {
        float y = x[i] * r;
        if (o->normalized_rounded)
            y = rounded_to(act, y);
        y = y * weight[i];
        if (o->weighted_rounded)
            y = rounded_to(act, y);
        x[i] = o->gate == OL_MIXER_NONE ? y : y * order_activate(o->gate, z[i]);
    }
}

/* ---- The step ---- */

void order_mixer(ol_device *device, const ol_gated_delta_mixer_options *o, const ol_gated_delta_mixer_arguments *a)
{
    const ol_gated_delta_options *g = &o->recurrence;
    const ol_gated_delta_arguments *r = &a->recurrence;
    int64_t n_tokens = r->query.shape[0], HV = g->value_heads, V = g->value_dim;
    float *parts[3], *out = malloc((size_t)(n_tokens * HV * V) * sizeof(float) + 1);
    assert_non_null(out);
    for (int i = 0; i < 3; i++)
        parts[i] = order_convolve(o, a, i);
    /* The recurrence on float32 q, k, v and output; every dtype that followed activation_dtype is what it was. */
    ol_gated_delta_options wide = *g;
    ol_gated_delta_arguments inner = *r;
    wide.update_dtype = dtype_or(g->update_dtype, g->activation_dtype);
    wide.decay_dtype = dtype_or(g->decay_dtype, g->activation_dtype);
    wide.decay_bias_dtype = dtype_or(g->decay_bias_dtype, g->activation_dtype);
    wide.activation_dtype = wide.output_dtype = OL_FLOAT32;
    wide.padding_output_untouched = 0;
    inner.query = ol_tensor_contiguous(parts[0], OL_FLOAT32, 3, (int64_t[]){ n_tokens, g->key_heads, g->key_dim });
    inner.key = ol_tensor_contiguous(parts[1], OL_FLOAT32, 3, (int64_t[]){ n_tokens, g->key_heads, g->key_dim });
    inner.value = ol_tensor_contiguous(parts[2], OL_FLOAT32, 3, (int64_t[]){ n_tokens, HV, V });
    inner.output = ol_tensor_contiguous(out, OL_FLOAT32, 3, (int64_t[]){ n_tokens, HV, V });
    order_step(device, &wide, &inner);
    for (int i = 0; i < 3; i++) {
        part p = part_of(o, a, i);
        write_windows(&p);
        free(parts[i]);
    }
    head_axes heads = { g->key_heads, g->value_heads, g->head_map == OL_HEADS_TILED };
    char *is_run = calloc((size_t)n_tokens + 1, 1);
    assert_non_null(is_run);
    for (int64_t i = 0; i < order_sequences(r); i++) {
        order_sequence s = order_sequence_at(g, r, i);
        memset(is_run + s.first, !s.is_padding, (size_t)s.length);
    }
    for (int64_t t = 0; t < n_tokens; t++)
        for (int64_t h = 0; h < HV; h++) {
            float *x = out + (t * HV + h) * V, weight[OL_DELTA_MAX_DIM] = { 0 }, z[OL_DELTA_MAX_DIM] = { 0 };
            for (int64_t v = 0; v < V; v++) {
                if (given(&a->norm_weight))
                    weight[v] = (float)element_read(a->norm_weight.dtype, element_at(&a->norm_weight, &v));
                if (given(&a->gate))
                    z[v] = (float)element_read(a->gate.dtype, element_of_head(&a->gate, &heads, t, h, v));
            }
            if (is_run[t])
                order_norm(o, x, weight, z, (int)V);
            for (int64_t v = 0; v < V && (is_run[t] || !g->padding_output_untouched); v++)
                element_write(r->output.dtype, element_of_head(&r->output, &heads, t, h, v), is_run[t] ? x[v] : 0.0f);
        }
    free(is_run);
    free(out);
}
