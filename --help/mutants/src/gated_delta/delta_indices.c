/* What a step's indices say, where the host sees them: every number in its range, and no slot that is written twice, or
 * written for one sequence and read by another (their order is not defined, so the result would not be).
 *
 * Two sequences that name one slot are found by marking slots in a bitmap on the stack: the pool is looked at in windows of as many slots
 * as it has bits, nearly always one. That is linear in the number of sequences and allocates nothing. */
#include "layer.h"

#include "status.h"

#include <inttypes.h>
#include <string.h>

static ol_status refuse(const delta_call *c, const char *table, int64_t i, int64_t given, const char *expected, int64_t limit, ol_error *error)
{
    return fail(error, OL_ERROR_ARGUMENT, c->operation, "%s%s of sequence %" PRId64 ": %" PRId64 "; expected %s%" PRId64, c->tables_of, table, i, given, expected, limit);
}

/* That it can be asked where sequence i's tokens and slot are. */
static ol_status check_tokens(const delta_call *c, int64_t i, ol_error *error)
{
    int64_t length = c->uniform_length;
    if (c->starts.data) {
        int64_t first = delta_table_at(&c->starts, i, 0), end = delta_table_at(&c->starts, i + 1, 0);
        if (first < 0 || end < first || end > c->n_tokens)
            return fail(error, OL_ERROR_ARGUMENT, c->operation, "cu_seqlens of sequence %" PRId64 ": %" PRId64 " to %" PRId64
                        "; expected numbers that do not descend, from 0 to the %" PRId64 " tokens", i, first, end, c->n_tokens);
        length = end - first;
    }
    if (c->counts.data) {
        int64_t count = delta_table_at(&c->counts, i, 0);
        if (count < 0 || count > length)
            return refuse(c, "token_counts", i, count, "0 to its tokens, ", length, error);
        length = count;
    }
    if (c->accepted.data) {
        int64_t accepted = delta_table_at(&c->accepted, i, 0);
        if (accepted < 1 || accepted > c->read.n_columns)
            return refuse(c, "accepted_tokens", i, accepted, "1 to the columns of read_slots, ", c->read.n_columns, error);
    }
    return OL_OK;
}

static int in_pool(const delta_call *c, int64_t slot) { return slot >= 0 && slot < c->n_slots; }

static ol_status check_slots(const delta_call *c, int64_t i, ol_error *error)
{
    delta_sequence s = delta_sequence_at(c, i);
    if (s.is_padding)
        return OL_OK;
    if (!in_pool(c, s.slot))
        return refuse(c, c->read.data ? "read_slots" : c->padding_of ? "slot" : "the slot", i, s.slot, "0 or more, below the pool's slots, ", c->n_slots, error);
    if (c->write.n_columns && s.length > c->write.n_columns)
        return refuse(c, "tokens", i, s.length, "no more than the columns of write_slots, ", c->write.n_columns, error);
    if (c->intermediate.data && s.length > c->n_intermediate)
        return refuse(c, "tokens", i, s.length, "no more than intermediate_states have room for, ", c->n_intermediate, error);
    if (c->state_is_kept || !c->write.data)
        return OL_OK;
    int64_t n = c->write.n_columns ? s.length : 1;
    for (int64_t t = 0; t < n; t++) {
        int64_t slot = delta_table_at(&c->write, i, t);
        if (!delta_is_padding(c, slot) && !in_pool(c, slot))
            return refuse(c, "write_slots", i, slot, "0 or more, below the pool's slots, ", c->n_slots, error);
    }
    return OL_OK;
}

/* ---- Conflicts ---- */

enum { WINDOW_SLOTS = 1 << 17 };

typedef struct window {
    uint64_t bits[WINDOW_SLOTS / 64];
    int64_t first;
} window;

static int is_inside(const window *w, int64_t slot) { return slot >= w->first && slot - w->first < WINDOW_SLOTS; }

/* Sets a slot's bit; what it was. */
static int mark(window *w, int64_t slot)
{
    uint64_t *word = &w->bits[(slot - w->first) / 64], bit = 1ull << ((slot - w->first) % 64);
    int was = (*word & bit) != 0;
    *word |= bit;
    return was;
}

static int is_marked(const window *w, int64_t slot) { return w->bits[(slot - w->first) / 64] >> ((slot - w->first) % 64) & 1; }

/* The tokens after which a sequence stores its state: all, or the last one. */
static int64_t first_stored(const delta_call *c, const delta_sequence *s) { return c->write.n_columns ? 0 : s->length - 1; }

static int writes(const delta_call *c, const delta_sequence *s, int64_t slot)
{
    for (int64_t t = first_stored(c, s); t < s->length; t++)
        if (delta_write_slot(c, s, t) == slot)
            return 1;
    return 0;
}

static ol_status check_window(const delta_call *c, window *w, ol_error *error)
{
    for (int64_t i = 0; i < c->n_sequences; i++) {
        delta_sequence s = delta_sequence_at(c, i);
        for (int64_t t = first_stored(c, &s); !s.is_padding && t < s.length; t++) {
            int64_t slot = delta_write_slot(c, &s, t);
            if (slot >= 0 && is_inside(w, slot) && mark(w, slot))
                return fail(error, OL_ERROR_OVERLAP, c->operation, "%sslot %" PRId64 " is written twice, the second time by sequence %" PRId64
                            "; expected each slot once", c->tables_of, slot, i);
        }
    }
    for (int64_t i = 0; i < c->n_sequences; i++) {
        delta_sequence s = delta_sequence_at(c, i);
        if (!s.is_padding && s.from >= 0 && is_inside(w, s.from) && is_marked(w, s.from) && !writes(c, &s, s.from))
            return fail(error, OL_ERROR_OVERLAP, c->operation, "%sslot %" PRId64 " is read by sequence %" PRId64 " and written by another", c->tables_of, s.from, i);
    }
    return OL_OK;
}

ol_status delta_check_indices(const delta_call *c, ol_error *error)
{
    ol_status status = OL_OK;
    for (int64_t i = 0; status == OL_OK && i < c->n_sequences; i++) {
        status = check_tokens(c, i, error);
        if (status == OL_OK)
            status = check_slots(c, i, error);
    }
    int may_conflict = (c->n_sequences > 1 && (c->read.data || c->write.data)) || c->write.n_columns > 1;
    if (status != OL_OK || c->state_is_kept || !may_conflict)
        return status;
    window w;
    for (w.first = 0; status == OL_OK && w.first < c->n_slots; w.first += WINDOW_SLOTS) {
        int64_t n = c->n_slots - w.first < WINDOW_SLOTS ? c->n_slots - w.first : WINDOW_SLOTS;
        memset(w.bits, 0, (size_t)(n + 63) / 64 * sizeof *w.bits);
        status = check_window(c, &w, error);
    }
    return status;
}
