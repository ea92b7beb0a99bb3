/* A thread's part of a gated-delta step. */
#ifndef OL_DELTA_WORKER_H
#define OL_DELTA_WORKER_H

#include "cpu/cpu.h"
#include "cpu/delta_kernels.h"
#include "gated_delta/layer.h"

enum {
    DELTA_KEY_FLOATS = 2048,           /* k^, or q^, of so many tokens as fit: 16 of 128 */
    DELTA_GATE_FLOATS = 1024           /* beta; decays per channel have the room of keys */
};

/* Some tokens and heads of a sequence, for which something has been computed. */
typedef struct delta_span {
    int64_t sequence, token, n_tokens; /* token: of the sequence; n_tokens 0: nothing */
    int32_t head, n_heads;
} delta_span;

struct delta_worker;

/* What a mixer step has in the place of tensors. */
typedef struct delta_insert {
    /* Puts q and k of tokens of a sequence, before they are normalised, into rows of w->query and w->key. NULL: they are tensors. */
    void (*keys)(struct delta_worker *w, const delta_sequence *s, int32_t key_head, int64_t token, int64_t n_tokens);
    const float *values;               /* v of the tokens of a chunk, rows of row_floats; NULL: a tensor */
    float *outputs;                    /* and o */
    int row_floats;
} delta_insert;

/* Lives on a task's stack: some 50 KiB. Heads are numbered by key head and member, key * ratio + member. */
typedef struct delta_worker {
    const delta_call *call;
    const delta_kernels *kernels;
    const kernel_table *conversions;
    delta_norm norm;
    delta_insert insert;
    delta_block block;
    int block_rows;                    /* of all but a head's last block */
    int64_t chunk_tokens;              /* whose keys have room at once */
    int32_t last_head;                 /* the end of the heads for which gates are worth computing at once */
    delta_span keys, gates;
    _Alignas(64) float memory[DELTA_BLOCK_FLOATS], key[DELTA_KEY_FLOATS], query[DELTA_KEY_FLOATS];
    _Alignas(64) float decay[DELTA_KEY_FLOATS + DELTA_SUMS], beta[DELTA_GATE_FLOATS];
    _Alignas(64) float value[OL_DELTA_MAX_DIM], update[OL_DELTA_MAX_DIM], output[OL_DELTA_MAX_DIM];
} delta_worker;

/* Rows of a block, and blocks of a head. */
int delta_block_rows(const ol_gated_delta_options *options);
static inline int delta_head_blocks(const ol_gated_delta_options *options)
{
    int rows = delta_block_rows(options);
    return (options->value_dim + rows - 1) / rows;
}

void delta_worker_begin(delta_worker *w, const delta_call *call);
/* Blocks [first, end) of all heads of a sequence, numbered head by head: every token of the sequence over each. */
void delta_worker_run(delta_worker *w, const delta_sequence *s, int64_t first, int64_t end);
/* A head's rows from `row` on, block_rows of them or those that are left: tokens [first, first + n) of a sequence, n at most chunk_tokens; where n is 0,
 * the state of a sequence without tokens. The block is w->block.memory, which is to be the same one for all chunks of these rows. */
void delta_worker_block(delta_worker *w, const delta_sequence *s, int32_t head, int row, int64_t first, int64_t n);

/* n elements of a tensor, contiguous, to floats and back: one rounding, canonical NaN. */
void delta_widen(const delta_worker *w, float *to, const char *from, ol_dtype dtype, int n);
void delta_narrow(const delta_worker *w, char *to, const float *from, ol_dtype dtype, int n);

#endif
