/* A mixer within the library, and a step of it whose arguments have been checked and resolved: what backends work from.
 *
 *     mixer_options.c  options -> a mixer          mixer_check.c  arguments -> a mixer_call, every check that reads no tensor
 *     mixer_step.c     the entry                   mixer_views.c  views of q, k, v and z in a projection's rows
 *
 * The recurrence within is a layer (layer.h) and its call, whose query, key and value are what goes into the convolution. Windows go the ways
 * of states with other slots, so what is said of them is a delta_call too: where sequences start and end, which slot a window is read from and
 * written to, and the check of all that, are the same functions. */
#ifndef OL_MIXER_H
#define OL_MIXER_H

#include "gated_delta/layer.h"

enum { MIXER_QUERY, MIXER_KEY, MIXER_VALUE, MIXER_PARTS, MIXER_MAX_WIDTH = 4 };

struct ol_gated_delta_mixer {
    ol_device *device;
    ol_gated_delta *layer;             /* the recurrence */
    ol_gated_delta_mixer_options options;      /* with width, every dtype but bias_dtype, and epsilon filled in */
    float epsilon;                     /* of the norm */
    void *prepared;                    /* the backend's */
};

/* A tensor of channels, [outer axes, heads, dim(, columns)]. Strides in bytes; 0 where the tensor has no such axis. */
typedef struct mixer_channels {
    char *data;                        /* NULL: not given */
    ol_dtype dtype;
    int64_t outer, token;              /* slots or sequences, and tokens of intermediate windows; of the gate: outer is tokens */
    int64_t key, member, channel, column;
} mixer_channels;

/* Of q, k or v. Heads of q and k have no members: their stride is 0. */
typedef struct mixer_part {
    const delta_heads *input;          /* in the recurrence's call */
    int32_t dim, members;              /* members: 1 of q and k, the ratio of v */
    mixer_channels weight, bias, window, intermediate;
} mixer_part;

/* Points into itself: not to be copied. */
typedef struct mixer_call {
    const ol_gated_delta_mixer *mixer;
    delta_call recurrence;
    delta_call windows;                /* of the same sequences, with the windows' slots */
    int own_slots;                     /* the windows' tables are not the states' */
    mixer_part parts[MIXER_PARTS];
    int64_t n_columns;
    delta_table dropped, positions;
    mixer_channels gate, norm_weight;
} mixer_call;

#define MIXER_OPERATION "gated_delta_mixer_step"

ol_status mixer_check(const ol_gated_delta_mixer *mixer, const ol_gated_delta_mixer_arguments *arguments, mixer_call *call, ol_error *error);
/* That what the indices say can be done; they are in the host's memory. */
ol_status mixer_check_indices(const mixer_call *call, ol_error *error);

static inline int mixer_has_norm(const ol_gated_delta_mixer *m) { return m->options.norm == OL_MIXER_NORM_RMS; }
static inline int mixer_has_gate(const ol_gated_delta_mixer *m) { return mixer_has_norm(m) && m->options.gate != OL_MIXER_NONE; }

/* Inputs that are taken back before sequence i's first token. */
static inline int64_t mixer_dropped(const mixer_call *c, int64_t i) { return c->dropped.data ? delta_table_at(&c->dropped, i, 0) : 0; }

/* The column of input `token` of a sequence in the window that it starts from, -1 being the last input before the call; -1: that input is
 * zero. */
static inline int64_t mixer_old_column(const mixer_call *c, int64_t i, int64_t token)
{
    if (!c->positions.data) {
        int64_t column = c->n_columns - mixer_dropped(c, i) + token;
        return column < 0 ? -1 : column;
    }
    int64_t p = delta_table_at(&c->positions, i, 0) + token;
    return p < 0 ? -1 : p % c->n_columns;
}

/* The input that column `column` holds in the window after `n_tokens` tokens of the call, where that is a token of the call. Below 0: in a
 * shifted window an input before the call; in a ring what the column has held. */
static inline int64_t mixer_token_in(const mixer_call *c, int64_t i, int64_t n_tokens, int64_t column)
{
    if (!c->positions.data)
        return n_tokens - c->n_columns + column;
    /* The last position before first + n_tokens that has this column. */
    int64_t back = (delta_table_at(&c->positions, i, 0) + n_tokens - 1 - column) % c->n_columns;
    return n_tokens - 1 - (back < 0 ? back + c->n_columns : back);
}

#endif
