/* What a launch of the mixer step is passed: the recurrence's words (step_words.h), and what the convolution, the windows and the norm add. Read
 * by the host's side as C (mixer.c) and by the kernel's text (kernel_mixer.h). Strides are in bytes; a tensor that is not given has address 0. */
#ifndef OL_CUDA_MIXER_WORDS_H
#define OL_CUDA_MIXER_WORDS_H

#include "step_words.h"

/* Channels, [outer axes, heads, dim(, columns)]. */
struct mixer_view {
    uint64_t data;
    int64_t outer, token;                /* slots or sequences, and tokens of intermediate windows; of the gate: outer is tokens */
    int64_t key, member, channel, column;
};

/* Of q, k or v. */
struct mixer_tensors {
    struct mixer_view weight, bias, window, intermediate;
};

struct mixer_words {
    struct step_words step;
    struct mixer_tensors parts[3];       /* q, k, v */
    struct mixer_view gate, norm_weight;
    struct step_table read, write;       /* of the windows: their own, or the states' */
    struct step_table dropped, positions;
    int64_t n_slots, n_intermediate;     /* of the windows */
    int32_t n_columns;
    int32_t own_slots;                   /* not 0: read and write are not the states' */
    int32_t by_accepted;                 /* not 0: the read table's column is that of the accepted tokens */
    uint32_t n_blocks, n_parts;          /* of a key head: a cluster; and of each value head that is being computed */
    uint32_t reserved;
};

#endif
