/* The arguments of a mixer step, held to the mixer's options and resolved to addresses and strides (mixer.h). The recurrence's are checked by
 * delta_check; here is what the convolution, the windows and the norm add, in the same order: presence, dtype, shape, then overlaps of all that is
 * written with all the rest. Nothing reads a tensor's elements but mixer_check_indices; nothing allocates. */
#include "gated_delta/mixer.h"

#include "status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WEIGHT, BIAS, WINDOW, INTERMEDIATE, N_OF_PART };
enum { READ_SLOTS = MIXER_PARTS * N_OF_PART, WRITE_SLOTS, DROPPED, POSITIONS, GATE, NORM_WEIGHT, N_TENSORS };

static const char *const names[N_TENSORS] = {
    "query.weight", "query.bias", "query.window", "query.intermediate_windows", "key.weight", "key.bias", "key.window", "key.intermediate_windows",
    "value.weight", "value.bias", "value.window", "value.intermediate_windows", "window_read_slots", "window_write_slots", "window_dropped",
    "window_positions", "gate", "norm_weight",
};

/* What the recurrence writes comes first. */
enum { OF_RECURRENCE = 16 };
static const char *const recurrence_names[OF_RECURRENCE] = {
    "output", "state", "intermediate_states", "query", "key", "value", "update", "decay", "decay_rate", "decay_bias", "read_slots", "write_slots",
    "cu_seqlens", "has_initial_state", "accepted_tokens", "token_counts",
};

typedef struct check {
    const ol_gated_delta_mixer *m;
    const ol_gated_delta_mixer_arguments *a;
    const ol_tensor *tensors[N_TENSORS];
    tensor_facts facts[N_TENSORS];
    mixer_call *call;
    ol_error *error;
} check;

static int given(const ol_tensor *t) { return t->data != NULL || t->rank != 0; }
static int is_given(const check *c, int i) { return given(c->tensors[i]); }
static int is_of_part(int i, int kind) { return i < READ_SLOTS && i % N_OF_PART == kind; }

/* ---- Presence, dtypes ---- */

static ol_status check_presence(const check *c)
{
    const ol_gated_delta_mixer *m = c->m;
    int ring = m->options.window == OL_MIXER_WINDOW_RING;
    for (int i = 0; i < N_TENSORS; i++) {
        int needed = is_of_part(i, WEIGHT) || is_of_part(i, WINDOW) || (is_of_part(i, BIAS) && m->options.bias_dtype) || (i == POSITIONS && ring) ||
                     (i == GATE && mixer_has_gate(m)) || (i == NORM_WEIGHT && mixer_has_norm(m));
        int allowed = needed || is_of_part(i, INTERMEDIATE) || i == READ_SLOTS || (i == WRITE_SLOTS && !c->a->recurrence.state_is_kept) || (i == DROPPED && !ring);
        if (needed && !is_given(c, i))
            return fail(c->error, OL_ERROR_ARGUMENT, MIXER_OPERATION, "%s is not given; the mixer's options need it", names[i]);
        if (!allowed && is_given(c, i))
            return fail(c->error, OL_ERROR_ARGUMENT, MIXER_OPERATION, i == WRITE_SLOTS ? "%s are given, but state_is_kept says that nothing is written there; expected one of the two"
                                                                                      : "%s is given, but the mixer's options have no use for it; expected none", names[i]);
        if (is_of_part(i, INTERMEDIATE) && is_given(c, i) != is_given(c, INTERMEDIATE))
            return fail(c->error, OL_ERROR_ARGUMENT, MIXER_OPERATION, "%s is %s, but %s is not so; expected them of query, key and value or of none", names[i],
                        is_given(c, i) ? "given" : "not given", names[INTERMEDIATE]);
    }
    return OL_OK;
}

static ol_status check_dtype(const check *c, int i)
{
    const ol_gated_delta_mixer_options *o = &c->m->options;
    const ol_dtype of_part[] = { [WEIGHT] = o->weight_dtype, [BIAS] = o->bias_dtype, [WINDOW] = o->window_dtype, [INTERMEDIATE] = o->window_dtype };
    ol_dtype dtype = c->tensors[i]->dtype, wanted = i < READ_SLOTS ? of_part[i % N_OF_PART] : i == GATE ? o->gate_dtype : o->norm_weight_dtype;
    if (i >= READ_SLOTS && i <= POSITIONS)
        return dtype == OL_INT32 || dtype == OL_INT64 ? OL_OK
                   : fail(c->error, OL_ERROR_DTYPE, MIXER_OPERATION, "%s: dtype %s; expected int32 or int64", names[i], ol_dtype_name(dtype));
    if (dtype != wanted)
        return fail(c->error, OL_ERROR_DTYPE, MIXER_OPERATION, "%s: dtype %s; the mixer was made for %s", names[i], ol_dtype_name(dtype), ol_dtype_name(wanted));
    return OL_OK;
}

/* ---- Shapes ---- */

static int64_t stride_bytes(const ol_tensor *t, int32_t axis)
{
    return t->shape[axis] > 1 ? t->strides[axis] * (int64_t)dtype_sizes[t->dtype] : 0;
}

static ol_status refuse_shape(const check *c, int i, const char *expected)
{
    shape_text text;
    const ol_tensor *t = c->tensors[i];
    return fail(c->error, OL_ERROR_SHAPE, MIXER_OPERATION, "%s has shape %s; expected %s", names[i], shape_to_text(&text, t->rank, t->shape), expected);
}

/* n_outer axes, the first of n_first (-1: any), heads in one axis or two, dim, and where last is not 0 an axis of it. */
typedef struct expectation {
    int32_t n_outer;
    const char *outer;                 /* in words */
    int64_t n_first, last;
} expectation;

static ol_status resolve_channels(const check *c, int i, int part, expectation e, mixer_channels *channels)
{
    const ol_gated_delta_options *o = &c->m->options.recurrence;
    const ol_tensor *t = c->tensors[i];
    int of_keys = part != MIXER_VALUE;
    int32_t heads = of_keys ? o->key_heads : o->value_heads, dim = of_keys ? o->key_dim : o->value_dim, r = c->m->layer->ratio, axis = e.n_outer;
    int32_t flat_rank = axis + 2 + (e.last > 0), split = t->rank == flat_rank + 1 && !of_keys, inner = axis + 1 + split;
    int fits = (t->rank == flat_rank || split) && (e.n_first < 0 || t->shape[0] == e.n_first);
    if (fits)
        fits = (split ? t->shape[axis] == o->key_heads && t->shape[axis + 1] == r : t->shape[axis] == heads) && t->shape[inner] == dim &&
               (e.last == 0 || t->shape[inner + 1] == e.last);
    if (!fits) {
        char expected[200], last[32] = "", lead[64] = "";
        if (e.last > 0)
            snprintf(last, sizeof last, ", %" PRId64, e.last);
        if (e.n_first >= 0)
            snprintf(lead, sizeof lead, "%" PRId64 ", %s", e.n_first, e.outer);
        else if (e.n_outer)
            snprintf(lead, sizeof lead, "%s", e.outer);
        int n = snprintf(expected, sizeof expected, "[%s%d, %d%s]", lead, (int)heads, (int)dim, last);
        if (!of_keys)
            snprintf(expected + n, sizeof expected - (size_t)n, ", or [%s%d, %d, %d%s]", lead, (int)o->key_heads, (int)r, (int)dim, last);
        return refuse_shape(c, i, expected);
    }
    int64_t stride = stride_bytes(t, axis);
    *channels = (mixer_channels){ .data = t->data ? t->data : "", .dtype = t->dtype, .outer = axis > 0 ? stride_bytes(t, 0) : 0,
                                  .token = axis > 1 ? stride_bytes(t, 1) : 0, .key = stride, .channel = stride_bytes(t, inner),
                                  .column = e.last ? stride_bytes(t, inner + 1) : 0 };
    if (split)
        channels->member = stride_bytes(t, axis + 1);
    else if (!of_keys && o->head_map == OL_HEADS_TILED)
        channels->member = stride * o->key_heads;
    else if (!of_keys) {
        channels->key = stride * r;
        channels->member = stride;
    }
    return OL_OK;
}

static ol_status resolve_part(const check *c, int part)
{
    const ol_gated_delta_mixer_options *o = &c->m->options;
    const ol_gated_delta_options *g = &o->recurrence;
    mixer_call *call = c->call;
    mixer_part *p = &call->parts[part];
    const delta_heads *inputs[MIXER_PARTS] = { &call->recurrence.query, &call->recurrence.key, &call->recurrence.value };
    int first = part * N_OF_PART, of_keys = part != MIXER_VALUE;
    *p = (mixer_part){ .input = inputs[part], .dim = of_keys ? g->key_dim : g->value_dim, .members = of_keys ? 1 : c->m->layer->ratio };
    ol_status status = resolve_channels(c, first + WEIGHT, part, (expectation){ 0, "", -1, o->width }, &p->weight);
    if (status == OL_OK && is_given(c, first + BIAS))
        status = resolve_channels(c, first + BIAS, part, (expectation){ 0, "", -1, 0 }, &p->bias);
    if (status == OL_OK)
        status = resolve_channels(c, first + WINDOW, part, (expectation){ 1, part ? "" : "slots, ", part ? call->windows.n_slots : -1, call->n_columns }, &p->window);
    if (status == OL_OK && is_given(c, first + INTERMEDIATE))
        status = resolve_channels(c, first + INTERMEDIATE, part, (expectation){ 2, "tokens, ", call->windows.n_sequences, call->n_columns }, &p->intermediate);
    if (status == OL_OK && part == 0)
        call->windows.n_slots = c->tensors[WINDOW]->shape[0];
    if (status == OL_OK && is_given(c, first + INTERMEDIATE)) {
        int64_t n = c->tensors[first + INTERMEDIATE]->shape[1];
        call->windows.n_intermediate = part && call->windows.n_intermediate < n ? call->windows.n_intermediate : n;
        call->windows.intermediate.data = p->intermediate.data;
    }
    return status;
}

static ol_status resolve_table(const check *c, int i, delta_table *table)
{
    const ol_tensor *t = c->tensors[i];
    int64_t n = c->call->recurrence.n_sequences;
    int may_have_columns = i == READ_SLOTS || i == WRITE_SLOTS;
    *table = (delta_table){ 0 };
    if (!is_given(c, i))
        return OL_OK;
    if (!(t->rank == 1 || (may_have_columns && t->rank == 2 && t->shape[1] > 0)) || t->shape[0] != n) {
        char expected[96];
        snprintf(expected, sizeof expected, "[%" PRId64 "]%s", n, may_have_columns ? ", or that and one column or more" : "");
        return refuse_shape(c, i, expected);
    }
    *table = (delta_table){ .data = t->data ? t->data : "", .size = (int)dtype_sizes[t->dtype], .row = stride_bytes(t, 0) };
    if (t->rank == 2) {
        table->column = stride_bytes(t, 1);
        table->n_columns = t->shape[1];
    }
    return OL_OK;
}

/* The windows' way through their slots: the states' one but for what is given. */
static ol_status resolve_slots(const check *c)
{
    delta_call *w = &c->call->windows;
    *w = c->call->recurrence;
    w->padding_of = &c->call->recurrence;
    w->tables_of = "window_";
    w->operation = MIXER_OPERATION;
    w->intermediate = (delta_states){ 0 };
    w->n_intermediate = 0;
    if (!is_given(c, READ_SLOTS) && !is_given(c, WRITE_SLOTS))
        return OL_OK;
    c->call->own_slots = 1;
    ol_status status = resolve_table(c, READ_SLOTS, &w->read);
    if (status == OL_OK)
        status = resolve_table(c, WRITE_SLOTS, &w->write);
    if (w->read.n_columns == 0)
        w->accepted.data = NULL;
    return status;
}

static ol_status check_room(const check *c)
{
    const delta_call *w = &c->call->windows;
    if (w->starts.data || w->counts.data)                /* what is run is said by indices */
        return OL_OK;
    if (w->write.n_columns && w->write.n_columns < w->uniform_length)
        return fail(c->error, OL_ERROR_SHAPE, MIXER_OPERATION, "window_write_slots have %" PRId64 " columns; expected one for each of the %" PRId64 " tokens of a sequence",
                    w->write.n_columns, w->uniform_length);
    if (w->intermediate.data && w->n_intermediate < w->uniform_length)
        return fail(c->error, OL_ERROR_SHAPE, MIXER_OPERATION, "intermediate_windows have room for %" PRId64 " tokens a sequence; expected %" PRId64 " or more",
                    w->n_intermediate, w->uniform_length);
    return OL_OK;
}

static ol_status resolve_norm(const check *c)
{
    mixer_call *call = c->call;
    const ol_tensor *weight = c->tensors[NORM_WEIGHT], *gate = c->tensors[GATE];
    int32_t V = c->m->options.recurrence.value_dim;
    if (mixer_has_norm(c->m)) {
        char expected[32];
        snprintf(expected, sizeof expected, "[%d]", (int)V);
        if (weight->rank != 1 || weight->shape[0] != V)
            return refuse_shape(c, NORM_WEIGHT, expected);
        call->norm_weight = (mixer_channels){ .data = weight->data, .dtype = weight->dtype, .channel = stride_bytes(weight, 0) };
    }
    if (!mixer_has_gate(c->m))
        return OL_OK;
    ol_status status = resolve_channels(c, GATE, MIXER_VALUE, (expectation){ 1, "", call->recurrence.n_tokens, 0 }, &call->gate);
    if (status == OL_OK && V > 1 && gate->strides[gate->rank - 1] != 1)
        return fail(c->error, OL_ERROR_SHAPE, MIXER_OPERATION, "gate: the stride of its last axis is %" PRId64 "; expected 1", gate->strides[gate->rank - 1]);
    return status;
}

static ol_status resolve(const check *c)
{
    const ol_tensor *window = c->tensors[WINDOW];
    mixer_call *call = c->call;
    call->n_columns = window->rank > 0 ? window->shape[window->rank - 1] : 0;
    if (call->n_columns < c->m->options.width - 1 || call->n_columns > OL_MIXER_MAX_COLUMNS) {
        char expected[96];
        snprintf(expected, sizeof expected, "a last axis of %d to %d columns", (int)c->m->options.width - 1, OL_MIXER_MAX_COLUMNS);
        return refuse_shape(c, WINDOW, expected);
    }
    ol_status status = resolve_slots(c);
    for (int part = 0; status == OL_OK && part < MIXER_PARTS; part++)
        status = resolve_part(c, part);
    if (status == OL_OK)
        status = check_room(c);
    if (status == OL_OK)
        status = resolve_table(c, DROPPED, &call->dropped);
    if (status == OL_OK)
        status = resolve_table(c, POSITIONS, &call->positions);
    return status == OL_OK ? resolve_norm(c) : status;
}

/* ---- Overlaps ---- */

static int meet(const tensor_facts *a, const tensor_facts *b) { return a->low < b->high && b->low < a->high; }

static ol_status refuse_overlap(const check *c, const char *written, const char *other)
{
    return fail(c->error, OL_ERROR_OVERLAP, MIXER_OPERATION, "%s overlaps %s; expected memory of its own", written, other);
}

/* What is written of the mixer's own, with all; and what the recurrence writes, with the mixer's own. */
static ol_status check_overlaps(const check *c)
{
    const ol_gated_delta_arguments *a = &c->a->recurrence;
    const ol_tensor *others[OF_RECURRENCE] = { &a->output, &a->state, &a->intermediate_states, &a->query, &a->key, &a->value, &a->update, &a->decay, &a->decay_rate,
                                               &a->decay_bias, &a->read_slots, &a->write_slots, &a->cu_seqlens, &a->has_initial_state, &a->accepted_tokens,
                                               &a->token_counts };
    tensor_facts facts[OF_RECURRENCE];
    for (int o = 0; o < OF_RECURRENCE; o++) {
        facts[o] = (tensor_facts){ 0 };
        if (given(others[o]))
            (void)tensor_examine(others[o], 0, MIXER_OPERATION, recurrence_names[o], 0, &facts[o], NULL);      /* delta_check has found it right */
    }
    for (int i = 0; i < N_TENSORS; i++) {
        int written = is_of_part(i, INTERMEDIATE) || (is_of_part(i, WINDOW) && !a->state_is_kept);
        if (!is_given(c, i) || c->facts[i].n_elements == 0)
            continue;
        if (written && !c->facts[i].contiguous && tensor_overlaps_itself(c->tensors[i])) {
            shape_text shape_, strides;
            const ol_tensor *t = c->tensors[i];
            return fail(c->error, OL_ERROR_OVERLAP, MIXER_OPERATION, "%s repeats an element: shape %s with strides %s", names[i],
                        shape_to_text(&shape_, t->rank, t->shape), shape_to_text(&strides, t->rank, t->strides));
        }
        for (int other = 0; written && other < N_TENSORS; other++)
            if (other != i && is_given(c, other) && meet(&c->facts[i], &c->facts[other]) && tensors_overlap(c->tensors[i], c->tensors[other]))
                return refuse_overlap(c, names[i], names[other]);
        for (int other = 0; other < OF_RECURRENCE; other++) {
            int other_written = other < 3 && !(other == 1 && a->state_is_kept);
            if ((written || other_written) && meet(&c->facts[i], &facts[other]) && tensors_overlap(c->tensors[i], others[other]))
                return other_written ? refuse_overlap(c, recurrence_names[other], names[i]) : refuse_overlap(c, names[i], recurrence_names[other]);
        }
    }
    return OL_OK;
}

ol_status mixer_check(const ol_gated_delta_mixer *m, const ol_gated_delta_mixer_arguments *a, mixer_call *call, ol_error *error)
{
    const ol_gated_delta_convolution *parts[MIXER_PARTS] = { &a->query, &a->key, &a->value };
    check c = { .m = m, .a = a, .call = call, .error = error };
    for (int part = 0; part < MIXER_PARTS; part++) {
        const ol_tensor **of = &c.tensors[part * N_OF_PART];
        of[WEIGHT] = &parts[part]->weight;
        of[BIAS] = &parts[part]->bias;
        of[WINDOW] = &parts[part]->window;
        of[INTERMEDIATE] = &parts[part]->intermediate_windows;
    }
    c.tensors[READ_SLOTS] = &a->window_read_slots;
    c.tensors[WRITE_SLOTS] = &a->window_write_slots;
    c.tensors[DROPPED] = &a->window_dropped;
    c.tensors[POSITIONS] = &a->window_positions;
    c.tensors[GATE] = &a->gate;
    c.tensors[NORM_WEIGHT] = &a->norm_weight;
    memset(call, 0, sizeof *call);
    call->mixer = m;
    ol_status status = delta_check(m->layer, &a->recurrence, &call->recurrence, error);
    if (status == OL_OK)
        status = check_presence(&c);
    for (int i = 0; status == OL_OK && i < N_TENSORS; i++) {
        if (!is_given(&c, i))
            continue;
        status = tensor_examine(c.tensors[i], 0, MIXER_OPERATION, names[i], 0, &c.facts[i], error);
        if (status == OL_OK)
            status = check_dtype(&c, i);
    }
    if (status == OL_OK)
        status = resolve(&c);
    return status == OL_OK ? check_overlaps(&c) : status;
}

/* ---- Indices ---- */

ol_status mixer_check_indices(const mixer_call *c, ol_error *error)
{
    int64_t most = c->n_columns - (c->mixer->options.width - 1);
    ol_status status = delta_check_indices(&c->recurrence, error);
    if (status == OL_OK)
        status = delta_check_indices(&c->windows, error);
    for (int64_t i = 0; status == OL_OK && i < c->windows.n_sequences; i++) {
        delta_sequence s = delta_sequence_at(&c->windows, i);
        if (s.is_padding)
            continue;
        int64_t dropped = mixer_dropped(c, i), position = c->positions.data ? delta_table_at(&c->positions, i, 0) : 0;
        if (dropped < 0 || dropped > most)
            return fail(error, OL_ERROR_ARGUMENT, MIXER_OPERATION, "window_dropped of sequence %" PRId64 ": %" PRId64 "; expected 0 to %" PRId64 ", the columns less W-1", i,
                        dropped, most);
        if (position < 0 || position > INT64_MAX - s.length)
            return fail(error, OL_ERROR_ARGUMENT, MIXER_OPERATION, "window_positions of sequence %" PRId64 ": %" PRId64 "; expected the number of inputs before the call", i,
                        position);
    }
    return status;
}
