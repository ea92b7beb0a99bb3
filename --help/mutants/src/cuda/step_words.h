/* What a launch of the gated-delta step is passed. Read by the host's side as C (step.c) and by the kernel's text (kernel_step.h).
 *
 * Strides are in bytes. An axis of value heads is walked by key head and member (gated_delta/layer.h). A tensor that is not given has
 * address 0. Those that every launch needs come first: a kernel's first look at its parameters is slow. */
#ifndef OL_CUDA_STEP_WORDS_H
#define OL_CUDA_STEP_WORDS_H

struct step_heads {
    uint64_t data;
    int64_t token, key, member;
};

struct step_states {
    uint64_t data;
    int64_t slot, token;                 /* of the pool: slot; of intermediate states: sequence and token */
    int64_t key, member, row;
};

struct step_table {
    uint64_t data;
    int64_t row, column;
    int32_t size, n_columns;             /* bytes of an element: 1 (bool), 4 or 8; columns, 0 where there is one axis */
};

struct step_words {
    int64_t n_sequences, n_tokens;
    int64_t uniform_length;              /* of each sequence, where there are no starts */
    int64_t n_slots;
    struct step_heads query, key, value, update, decay;
    struct step_states state;
    struct step_heads output;
    struct step_heads decay_rate, decay_bias;
    int64_t bias_channel;                /* stride of the bias's channels, 0 where it is the same for all */
    struct step_table read, write, starts, has_initial, accepted, counts;
    struct step_states intermediate;
    int64_t n_intermediate;              /* its tokens of a sequence */
    uint64_t skipped;
    int64_t state_is_kept;
};

#endif
