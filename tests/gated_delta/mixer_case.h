/* A mixer step with its tensors in guarded memory: the recurrence's are a step_case's, the others are here. */
#ifndef OL_MIXER_CASE_H
#define OL_MIXER_CASE_H

#include "mixer_order.h"
#include "step_case.h"

/* Of part p (0 q, 1 k, 2 v): p * OF_PART + WEIGHT, and so on. */
enum { OF_WEIGHT, OF_BIAS, OF_WINDOW, OF_INTERMEDIATE, OF_PART };
enum { AT_WINDOW_READ = 3 * OF_PART, AT_WINDOW_WRITE, AT_DROPPED, AT_POSITIONS, AT_GATE, AT_NORM_WEIGHT, MIXER_TENSORS };

typedef struct mixer_case {
    step_case step;                    /* its options and arguments are the recurrence's; mixer_options_of and mixer_arguments_of put them in */
    ol_gated_delta_mixer_options options;
    ol_gated_delta_mixer_arguments arguments;
    void *memory[MIXER_TENSORS];
    size_t n_bytes[MIXER_TENSORS];
} mixer_case;

ol_tensor *mixer_tensor(mixer_case *c, int number);
void mixer_give(mixer_case *c, int number, ol_dtype dtype, int32_t rank, const int64_t *shape, step_layout layout, uint64_t *random);
void mixer_fill(mixer_case *c, int number, double mean, double deviation, step_values values, uint64_t *random);
void mixer_take_back(mixer_case *c, int number);

/* N sequences of T tokens on pools of slots, windows of `columns`, dense, no indices. */
void mixer_case_of(mixer_case *c, const ol_gated_delta_mixer_options *options, int64_t n_sequences, int64_t n_tokens, int64_t slots, int64_t columns,
                   step_values values, uint64_t *random);
/* float32 all, one sequence a slot, no indices: SiLU both, windows of `columns`, all defaults. */
void mixer_usual(mixer_case *c, int key_heads, int ratio, int key_dim, int value_dim, int64_t n_sequences, int64_t n_tokens, int64_t columns, uint64_t *random);
/* What options, dtypes, strides and indices there may be. */
void mixer_random(mixer_case *c, step_values values, uint64_t *random);

void mixer_copy(mixer_case *to, const mixer_case *from);
void mixer_free(mixer_case *c);
ol_status mixer_try(ol_device *device, const mixer_case *c, ol_error *error);
void mixer_run(ol_device *device, const mixer_case *c);
void mixer_reference(const mixer_case *c);
int mixer_equal(const mixer_case *a, const mixer_case *b);
void mixer_print(const mixer_case *c);

/* The whole of both, current: the step's options and arguments within the mixer's. */
ol_gated_delta_mixer_options mixer_options_of(const mixer_case *c);
ol_gated_delta_mixer_arguments mixer_arguments_of(const mixer_case *c);
/* The arguments with tokens [first, first + n) only, in the case's own memory. */
ol_gated_delta_mixer_arguments mixer_tokens(const mixer_case *c, int64_t first, int64_t n);
/* Gives a table of one or two axes (columns 0: one) these numbers, as int32. */
void mixer_table(mixer_case *c, int number, int64_t n, int64_t columns, const int32_t *values);
void mixer_step_table(mixer_case *c, int number, int64_t n, int64_t columns, const int32_t *values);
/* A mixer of the case's options. The caller destroys it. */
ol_gated_delta_mixer *mixer_of(ol_device *device, const mixer_case *c);
/* Pools of so many slots, filled at random: states, and windows of `columns`. */
void mixer_pools(mixer_case *c, int64_t slots, int64_t columns, uint64_t *random);

#endif
