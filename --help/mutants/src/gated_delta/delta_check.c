/* The arguments of a step, held to the layer's options and resolved to addresses and strides (layer.h). Nothing here reads a tensor's
 * elements, so it serves every device; nothing allocates.
 *
 * One table says of each tensor where it is, whether it must be given, what axes it has and whether it is written; everything else follows
 * it in order: presence, dtype, shape, last axis, then overlaps of what is written with all the rest. */
#include "layer.h"

#include "gates.h"
#include "status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { QUERY, KEY, VALUE, UPDATE, DECAY, DECAY_RATE, DECAY_BIAS, OUTPUT, STATE, READ_SLOTS, WRITE_SLOTS, CU_SEQLENS, HAS_INITIAL, ACCEPTED, COUNTS,
       INTERMEDIATE, N_TENSORS };

static const char *const names[N_TENSORS] = {
    "query", "key", "value", "update", "decay", "decay_rate", "decay_bias", "output", "state", "read_slots", "write_slots", "cu_seqlens",
    "has_initial_state", "accepted_tokens", "token_counts", "intermediate_states",
};

typedef struct check {
    const ol_gated_delta *layer;
    const ol_gated_delta_arguments *a;
    const ol_tensor *tensors[N_TENSORS];
    tensor_facts facts[N_TENSORS];
    delta_call *call;
    ol_error *error;
} check;

static int is_given(const check *c, int i) { return c->tensors[i]->data != NULL || c->tensors[i]->rank != 0; }

static ol_status refuse(const check *c, ol_status status, int i, const char *what)
{
    return fail(c->error, status, DELTA_OPERATION, "%s %s", names[i], what);
}

/* ---- Presence, dtypes ---- */

static ol_status check_presence(const check *c)
{
    const ol_gated_delta_options *o = &c->layer->options;
    int computed = o->decay == OL_DELTA_DECAY_COMPUTED;
    for (int i = 0; i < N_TENSORS; i++) {
        int needed = i <= DECAY || i == OUTPUT || i == STATE;
        if (i == DECAY_RATE)
            needed = computed && gate_has_input(&o->gates, GATE_RATE);
        if (i == DECAY_BIAS)
            needed = computed;
        if (needed && !is_given(c, i))
            return refuse(c, OL_ERROR_ARGUMENT, i, "is not given; the layer's options need it");
        if (!needed && is_given(c, i) && (i == DECAY_RATE || i == DECAY_BIAS))
            return refuse(c, OL_ERROR_ARGUMENT, i, "is given, but the layer's options have no use for it; expected none");
    }
    if (c->a->state_is_kept && is_given(c, WRITE_SLOTS))
        return refuse(c, OL_ERROR_ARGUMENT, WRITE_SLOTS, "are given, but state_is_kept says that nothing is written there; expected one of the two");
    if (is_given(c, ACCEPTED) && (!is_given(c, READ_SLOTS) || c->tensors[READ_SLOTS]->rank != 2))
        return refuse(c, OL_ERROR_ARGUMENT, ACCEPTED, "are given without columns of read_slots to choose from; expected read_slots of two axes");
    return OL_OK;
}

static ol_status check_dtype(const check *c, int i)
{
    const ol_gated_delta_options *o = &c->layer->options;
    const ol_dtype floats[] = { [QUERY] = o->activation_dtype, [KEY] = o->activation_dtype, [VALUE] = o->activation_dtype, [UPDATE] = o->update_dtype,
                                [DECAY] = o->decay_dtype, [DECAY_RATE] = o->decay_rate_dtype, [DECAY_BIAS] = o->decay_bias_dtype,
                                [OUTPUT] = o->output_dtype, [STATE] = o->state_dtype, [INTERMEDIATE] = o->state_dtype };
    ol_dtype given = c->tensors[i]->dtype, wanted = floats[i];
    if (i >= READ_SLOTS && i < INTERMEDIATE) {
        if (i == HAS_INITIAL ? given == OL_BOOL : given == OL_INT32 || given == OL_INT64)
            return OL_OK;
        return fail(c->error, OL_ERROR_DTYPE, DELTA_OPERATION, "%s: dtype %s; expected %s", names[i], ol_dtype_name(given),
                    i == HAS_INITIAL ? "bool" : "int32 or int64");
    }
    if (given != wanted)
        return fail(c->error, OL_ERROR_DTYPE, DELTA_OPERATION, "%s: dtype %s; the layer was made for %s", names[i], ol_dtype_name(given),
                    ol_dtype_name(wanted));
    return OL_OK;
}

/* ---- Shapes ---- */

static ol_status refuse_shape(const check *c, int i, const char *expected)
{
    shape_text given;
    const ol_tensor *t = c->tensors[i];
    return fail(c->error, OL_ERROR_SHAPE, DELTA_OPERATION, "%s has shape %s; expected %s", names[i], shape_to_text(&given, t->rank, t->shape), expected);
}

static int64_t stride_bytes(const ol_tensor *t, int32_t axis)
{
    return t->shape[axis] > 1 ? t->strides[axis] * (int64_t)dtype_sizes[t->dtype] : 0;
}

static int last_is_contiguous(const ol_tensor *t)
{
    return t->rank == 0 || t->shape[t->rank - 1] <= 1 || t->strides[t->rank - 1] == 1;
}

static ol_status refuse_last_axis(const check *c, int i)
{
    return fail(c->error, OL_ERROR_SHAPE, DELTA_OPERATION, "%s: the stride of its last axis is %" PRId64 "; expected 1", names[i],
                c->tensors[i]->strides[c->tensors[i]->rank - 1]);
}

/* [tokens,] heads[, inner]: the heads of keys, or of values in one axis or two. n_tokens -1: no tokens; inner 0: none. */
static ol_status resolve_heads(const check *c, int i, int64_t n_tokens, int of_keys, int64_t inner, delta_heads *heads)
{
    const ol_gated_delta_options *o = &c->layer->options;
    const ol_tensor *t = c->tensors[i];
    int32_t axis = n_tokens >= 0, flat_rank = axis + 1 + (inner > 0), r = c->layer->ratio;
    int split = t->rank == flat_rank + 1 && !of_keys;
    int fits = (t->rank == flat_rank || split) && (axis == 0 || t->shape[0] == n_tokens) && (inner == 0 || t->shape[t->rank - 1] == inner);
    if (fits && split)
        fits = t->shape[axis] == o->key_heads && t->shape[axis + 1] == r;
    else if (fits)
        fits = t->shape[axis] == (of_keys ? o->key_heads : o->value_heads);
    if (!fits) {
        char expected[160], lead[32] = "", last[32] = "";
        if (n_tokens >= 0)
            snprintf(lead, sizeof lead, "%" PRId64 ", ", n_tokens);
        if (inner)
            snprintf(last, sizeof last, ", %" PRId64, inner);
        int n = snprintf(expected, sizeof expected, "[%s%d%s]", lead, (int)(of_keys ? o->key_heads : o->value_heads), last);
        if (!of_keys)
            snprintf(expected + n, sizeof expected - (size_t)n, ", or [%s%d, %d%s]", lead, (int)o->key_heads, (int)r, last);
        return refuse_shape(c, i, expected);
    }
    if (inner && !last_is_contiguous(t))
        return refuse_last_axis(c, i);
    *heads = (delta_heads){ .data = t->data, .dtype = t->dtype, .token = axis ? stride_bytes(t, 0) : 0 };
    int64_t stride = stride_bytes(t, axis);
    if (of_keys)
        heads->key = stride;
    else if (split) {
        heads->key = stride;
        heads->member = stride_bytes(t, axis + 1);
    } else if (o->head_map == OL_HEADS_TILED) {
        heads->key = stride;
        heads->member = stride * o->key_heads;
    } else {
        heads->key = stride * r;
        heads->member = stride;
    }
    return OL_OK;
}

/* [slots or sequences, (tokens,) heads, rows, columns]. */
static ol_status resolve_states(const check *c, int i, int64_t n_first, delta_states *states)
{
    const ol_gated_delta_options *o = &c->layer->options;
    const ol_tensor *t = c->tensors[i];
    int32_t rank = i == STATE ? 4 : 5, axis = rank - 3;
    int key_value = o->state_layout == OL_DELTA_KEY_VALUE;
    int32_t rows = key_value ? o->key_dim : o->value_dim, columns = key_value ? o->value_dim : o->key_dim;
    if (t->rank != rank || (n_first >= 0 && t->shape[0] != n_first) || t->shape[axis] != o->value_heads || t->shape[axis + 1] != rows ||
        t->shape[axis + 2] != columns) {
        char expected[160], first[32] = "slots";
        if (n_first >= 0)
            snprintf(first, sizeof first, "%" PRId64, n_first);
        snprintf(expected, sizeof expected, "[%s, %s%d, %d, %d]", first, i == STATE ? "" : "tokens, ", (int)o->value_heads, (int)rows, (int)columns);
        return refuse_shape(c, i, expected);
    }
    if (!last_is_contiguous(t))
        return refuse_last_axis(c, i);
    int64_t head = stride_bytes(t, axis);
    *states = (delta_states){ .data = t->data, .slot = stride_bytes(t, 0), .token = i == STATE ? 0 : stride_bytes(t, 1), .row = stride_bytes(t, axis + 1) };
    states->key = o->head_map == OL_HEADS_TILED ? head : head * c->layer->ratio;
    states->member = o->head_map == OL_HEADS_TILED ? head * o->key_heads : head;
    return OL_OK;
}

static ol_status resolve_table(const check *c, int i, int64_t n_rows, delta_table *table)
{
    const ol_tensor *t = c->tensors[i];
    int may_have_columns = i == READ_SLOTS || i == WRITE_SLOTS;
    *table = (delta_table){ 0 };
    if (!is_given(c, i))
        return OL_OK;
    if (t->shape[0] != n_rows || !(t->rank == 1 || (may_have_columns && t->rank == 2 && t->shape[1] > 0))) {
        char expected[96];
        snprintf(expected, sizeof expected, "[%" PRId64 "]%s", n_rows, may_have_columns ? ", or that and one column or more" : "");
        return refuse_shape(c, i, expected);
    }
    *table = (delta_table){ .data = t->data ? t->data : "", .size = (int)dtype_sizes[t->dtype], .row = stride_bytes(t, 0) };
    if (t->rank == 2) {
        table->column = stride_bytes(t, 1);
        table->n_columns = t->shape[1];
    }
    return OL_OK;
}

/* N, of the first tensor that has it; that the others agree is seen when they are resolved. */
static ol_status count_sequences(const check *c, int64_t *n)
{
    static const int with_n[] = { CU_SEQLENS, READ_SLOTS, WRITE_SLOTS, HAS_INITIAL, ACCEPTED, COUNTS };
    *n = c->tensors[STATE]->rank > 0 ? c->tensors[STATE]->shape[0] : 0;
    for (size_t i = 0; i < sizeof with_n / sizeof *with_n; i++)
        if (is_given(c, with_n[i])) {
            const ol_tensor *t = c->tensors[with_n[i]];
            if (t->rank < 1 || (with_n[i] == CU_SEQLENS && (t->rank != 1 || t->shape[0] < 1)))
                return refuse_shape(c, with_n[i], with_n[i] == CU_SEQLENS ? "[sequences + 1]" : "[sequences]");
            *n = t->shape[0] - (with_n[i] == CU_SEQLENS);
            return OL_OK;
        }
    return OL_OK;
}

static ol_status check_lengths(const check *c)
{
    delta_call *call = c->call;
    int64_t n = call->n_sequences;
    if (call->starts.data)
        return OL_OK;
    if (n == 0 ? call->n_tokens != 0 : call->n_tokens % n != 0)
        return fail(c->error, OL_ERROR_SHAPE, DELTA_OPERATION, "%" PRId64 " tokens do not divide among %" PRId64 " sequences; expected a multiple, or cu_seqlens",
                    call->n_tokens, n);
    call->uniform_length = n ? call->n_tokens / n : 0;
    if (call->counts.data)               /* what is run may be shorter */
        return OL_OK;
    if (call->write.n_columns && call->write.n_columns < call->uniform_length)
        return fail(c->error, OL_ERROR_SHAPE, DELTA_OPERATION, "write_slots have %" PRId64 " columns; expected one for each of the %" PRId64 " tokens of a sequence",
                    call->write.n_columns, call->uniform_length);
    if (call->intermediate.data && call->n_intermediate < call->uniform_length)
        return fail(c->error, OL_ERROR_SHAPE, DELTA_OPERATION, "intermediate_states have room for %" PRId64 " tokens a sequence; expected %" PRId64 " or more",
                    call->n_intermediate, call->uniform_length);
    return OL_OK;
}

static ol_status resolve(const check *c)
{
    const ol_gated_delta_options *o = &c->layer->options;
    delta_call *call = c->call;
    int64_t channels = o->decay_per_channel ? o->key_dim : 0, n_tokens = c->tensors[QUERY]->rank > 0 ? c->tensors[QUERY]->shape[0] : 0;
    ol_status status = OL_OK;
    call->n_tokens = n_tokens;
#define RESOLVE(call_) if (status == OL_OK) status = (call_)
    RESOLVE(count_sequences(c, &call->n_sequences));
    RESOLVE(resolve_heads(c, QUERY, n_tokens, 1, o->key_dim, &call->query));
    RESOLVE(resolve_heads(c, KEY, n_tokens, 1, o->key_dim, &call->key));
    RESOLVE(resolve_heads(c, VALUE, n_tokens, 0, o->value_dim, &call->value));
    RESOLVE(resolve_heads(c, UPDATE, n_tokens, 0, 0, &call->update));
    RESOLVE(resolve_heads(c, DECAY, n_tokens, 0, channels, &call->decay));
    if (is_given(c, DECAY_RATE))
        RESOLVE(resolve_heads(c, DECAY_RATE, -1, 0, 0, &call->decay_rate));
    call->bias_is_scalar = is_given(c, DECAY_BIAS) && c->tensors[DECAY_BIAS]->rank == 0;
    if (call->bias_is_scalar)
        call->decay_bias = (delta_heads){ .data = c->tensors[DECAY_BIAS]->data, .dtype = c->tensors[DECAY_BIAS]->dtype };
    else if (is_given(c, DECAY_BIAS))
        RESOLVE(resolve_heads(c, DECAY_BIAS, -1, 0, channels, &call->decay_bias));
    RESOLVE(resolve_heads(c, OUTPUT, n_tokens, 0, o->value_dim, &call->output));
    RESOLVE(resolve_states(c, STATE, -1, &call->state));
    RESOLVE(resolve_table(c, READ_SLOTS, call->n_sequences, &call->read));
    RESOLVE(resolve_table(c, WRITE_SLOTS, call->n_sequences, &call->write));
    RESOLVE(resolve_table(c, CU_SEQLENS, call->n_sequences + 1, &call->starts));
    RESOLVE(resolve_table(c, HAS_INITIAL, call->n_sequences, &call->has_initial));
    RESOLVE(resolve_table(c, ACCEPTED, call->n_sequences, &call->accepted));
    RESOLVE(resolve_table(c, COUNTS, call->n_sequences, &call->counts));
    if (is_given(c, INTERMEDIATE)) {
        RESOLVE(resolve_states(c, INTERMEDIATE, call->n_sequences, &call->intermediate));
        call->n_intermediate = c->tensors[INTERMEDIATE]->shape[1];
    }
    if (status == OL_OK)
        call->n_slots = c->tensors[STATE]->shape[0];
    RESOLVE(check_lengths(c));
#undef RESOLVE
    return status;
}

/* ---- Overlaps ---- */

static int meet(const tensor_facts *a, const tensor_facts *b)
{
    return a->low < b->high && b->low < a->high;
}

static ol_status check_overlaps(const check *c)
{
    static const int written[] = { OUTPUT, STATE, INTERMEDIATE };
    for (size_t w = 0; w < sizeof written / sizeof *written; w++) {
        int i = written[w];
        const ol_tensor *t = c->tensors[i];
        if (!is_given(c, i) || c->facts[i].n_elements == 0 || (i == STATE && c->a->state_is_kept))
            continue;
        if (!c->facts[i].contiguous && tensor_overlaps_itself(t)) {
            shape_text shape_, strides;
            return fail(c->error, OL_ERROR_OVERLAP, DELTA_OPERATION, "%s repeats an element: shape %s with strides %s", names[i],
                        shape_to_text(&shape_, t->rank, t->shape), shape_to_text(&strides, t->rank, t->strides));
        }
        for (int other = 0; other < N_TENSORS; other++)
            if (other != i && is_given(c, other) && meet(&c->facts[i], &c->facts[other]) && tensors_overlap(t, c->tensors[other]))
                return fail(c->error, OL_ERROR_OVERLAP, DELTA_OPERATION, "%s overlaps %s; expected memory of its own", names[i], names[other]);
    }
    return OL_OK;
}

ol_status delta_check(const ol_gated_delta *layer, const ol_gated_delta_arguments *a, delta_call *call, ol_error *error)
{
    check c = { .layer = layer, .a = a, .call = call, .error = error,
                .tensors = { &a->query, &a->key, &a->value, &a->update, &a->decay, &a->decay_rate, &a->decay_bias, &a->output, &a->state,
                             &a->read_slots, &a->write_slots, &a->cu_seqlens, &a->has_initial_state, &a->accepted_tokens, &a->token_counts,
                             &a->intermediate_states } };
    memset(call, 0, sizeof *call);
    call->layer = layer;
    call->tables_of = "";
    call->operation = DELTA_OPERATION;
    call->state_is_kept = a->state_is_kept != 0;
    call->skipped = a->skipped;
    ol_status status = check_presence(&c);
    for (int i = 0; status == OL_OK && i < N_TENSORS; i++) {
        if (!is_given(&c, i))
            continue;
        status = tensor_examine(c.tensors[i], 0, DELTA_OPERATION, names[i], 0, &c.facts[i], error);
        if (status == OL_OK)
            status = check_dtype(&c, i);
    }
    if (status == OL_OK)
        status = resolve(&c);
    return status == OL_OK ? check_overlaps(&c) : status;
}
