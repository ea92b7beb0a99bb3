/* A gated-delta layer within the library, and a step of it whose arguments have been checked and resolved: what backends work from.
 *
 *     delta_options.c  options -> a layer          delta_check.c    arguments -> a delta_call, every check that needs no memory read
 *     delta_step.c     the entry                   delta_indices.c  checks of what indices say, for devices whose memory the host sees
 *
 * Value heads are walked by key head and member: whatever the head map and whether an axis of value heads comes as one or as two,
 * value head (k, j) of key head k and j in [0, r) lies at k * key + j * member. So no backend needs to know either. */
#ifndef OL_LAYER_H
#define OL_LAYER_H

#include "backend.h"
#include "onelaunch_gated_delta.h"

struct ol_gated_delta {
    ol_device *device;
    ol_gated_delta_options options;    /* with every dtype, epsilon and scale filled in */
    float epsilon, scale;
    float root;                        /* key_dim^-1/2 */
    int32_t ratio;                     /* value heads of a key head */
    /* (b, a, A_log, dt_bias), those that the options take, or (beta, decay) -> beta, decay; float32 both. */
    ol_composite *gates;
    void *prepared;                    /* the backend's */
};

/* A tensor of heads. Strides in bytes; 0 where the tensor has no such axis. The last axis is contiguous. */
typedef struct delta_heads {
    char *data;                        /* NULL: not given */
    ol_dtype dtype;
    int64_t token, key, member;
} delta_heads;

/* States: a slot is [heads, rows, contiguous]; `row` is the stride of value_dim, or of key_dim where that is the outer one. */
typedef struct delta_states {
    char *data;
    int64_t slot, token;               /* of the pool: slot; of intermediate states: sequence and token */
    int64_t key, member, row;
} delta_states;

/* Whole numbers or bools. */
typedef struct delta_table {
    const char *data;                  /* NULL: not given */
    int size;                          /* of an element: 1 (bool), 4 or 8 */
    int64_t row, column;               /* strides in bytes */
    int64_t n_columns;                 /* 0: one axis */
} delta_table;

typedef struct delta_call {
    const ol_gated_delta *layer;
    int64_t n_tokens, n_sequences;
    int64_t uniform_length;            /* of each sequence, without cu_seqlens */
    int64_t n_slots, n_intermediate;   /* extents of the pool, and of intermediate states' tokens */
    delta_heads query, key, value, update, decay, decay_rate, decay_bias, output;
    delta_states state, intermediate;
    delta_table read, write, starts, has_initial, accepted, counts;
    int state_is_kept, bias_is_scalar;
    uint32_t *skipped;
    /* Of the windows of a mixer step (mixer.h), which go their own ways in slots of their own: the call whose read slots say what is padding, and
     * in whose tables' names, and whose operation's, errors come. Of states: NULL, "", DELTA_OPERATION. */
    const struct delta_call *padding_of;
    const char *tables_of, *operation;
} delta_call;

/* delta_options.c: a layer without its kernels; destroyed as any. What a mixer has within, whose kernels are its own. */
ol_status delta_create(ol_device *device, const ol_gated_delta_options *options, ol_gated_delta **layer, ol_error *error);

/* delta_check.c: every check of a step that reads no tensor. */
ol_status delta_check(const ol_gated_delta *layer, const ol_gated_delta_arguments *arguments, delta_call *call, ol_error *error);

/* delta_indices.c: that what the indices say can be done; they are in the host's memory. */
ol_status delta_check_indices(const delta_call *call, ol_error *error);

#define DELTA_OPERATION "gated_delta_step"

static inline int64_t delta_table_at(const delta_table *t, int64_t row, int64_t column)
{
    const char *p = t->data + row * t->row + column * t->column;
    int32_t small;
    int64_t large;
    if (t->size == 1)
        return *(const uint8_t *)p != 0;
    if (t->size == 4) {
        __builtin_memcpy(&small, p, sizeof small);
        return small;
    }
    __builtin_memcpy(&large, p, sizeof large);
    return large;
}

/* A sequence, of indices that were checked. */
typedef struct delta_sequence {
    int64_t number;
    int64_t first, length;             /* the tokens that are run */
    int64_t slot;                      /* the number in the read table */
    int64_t from;                      /* the slot that it starts from; -1: zeros */
    int is_padding;
} delta_sequence;

static inline int delta_is_padding(const delta_call *c, int64_t slot)
{
    ol_delta_padding padding = c->layer->options.padding;
    return padding != OL_DELTA_PADDING_NONE && slot < (padding == OL_DELTA_PADDING_NOT_POSITIVE);
}

static inline int64_t delta_read_slot(const delta_call *c, int64_t i)
{
    return c->read.data ? delta_table_at(&c->read, i, c->accepted.data ? delta_table_at(&c->accepted, i, 0) - 1 : 0) : i;
}

static inline int delta_sequence_is_padding(const delta_call *c, int64_t i) { return c->read.data && delta_is_padding(c, delta_read_slot(c, i)); }

static inline delta_sequence delta_sequence_at(const delta_call *c, int64_t i)
{
    delta_sequence s = { .number = i, .first = i * c->uniform_length, .length = c->uniform_length };
    if (c->starts.data) {
        s.first = delta_table_at(&c->starts, i, 0);
        s.length = delta_table_at(&c->starts, i + 1, 0) - s.first;
    }
    if (c->counts.data)
        s.length = delta_table_at(&c->counts, i, 0);
    s.slot = delta_read_slot(c, i);
    s.is_padding = c->padding_of ? delta_sequence_is_padding(c->padding_of, i) : delta_sequence_is_padding(c, i);
    s.from = c->has_initial.data && !delta_table_at(&c->has_initial, i, 0) ? -1 : s.slot;
    return s;
}

/* The slot that the state goes to after token t (t = -1 of a sequence without tokens); -1: none. Numbers of tables may be padding; where there are
 * none, a sequence's own number never is. */
static inline int64_t delta_write_slot(const delta_call *c, const delta_sequence *s, int64_t t)
{
    int64_t slot = s->slot;
    if (c->state_is_kept)
        return -1;
    if (c->write.n_columns > 0) {
        if (t < 0)
            return -1;
        slot = delta_table_at(&c->write, s->number, t);
    } else if (t != s->length - 1) {
        return -1;
    } else if (c->write.data) {
        slot = delta_table_at(&c->write, s->number, 0);
    }
    return (c->write.data || c->read.data) && delta_is_padding(c, slot) ? -1 : slot;
}

#endif
