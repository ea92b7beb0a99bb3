/* The step in its documented order of operations (onelaunch_gated_delta.h), one scalar after the other: the definition of every
 * bit of it. Written from the header's text; it shares nothing with the library's kernels but the gates, which it has
 * computed by their public composite. */
#ifndef OL_ORDER_H
#define OL_ORDER_H

#include <onelaunch_gated_delta.h>

/* Runs the step on host tensors that are as ol_gated_delta_step wants them, which is not checked. The gates come from composites compiled
 * for `device`. Ends the test where it has no memory. */
void order_step(ol_device *device, const ol_gated_delta_options *options, const ol_gated_delta_arguments *arguments);

/* beta [tokens, value_heads] and the decay [tokens, value_heads] or [tokens, value_heads, key_dim], in float32, as the step has them. The caller
 * frees both. */
void order_gates(ol_device *device, const ol_gated_delta_options *options, const ol_gated_delta_arguments *arguments, float **beta, float **decay);

/* The 32 sums of the order, and their tree. */
float order_dot(const float *x, const float *y, int n);
/* r, by which a key or query of n elements is multiplied. */
float order_norm_factor(const ol_gated_delta_options *options, const float *x, int n);

/* What a step means, whoever computes it: where sequence i starts and ends and where its states are. */
typedef struct order_sequence {
    int64_t first, length;             /* tokens that are run */
    int64_t read;                      /* slot; -1: starts from zeros */
    int is_padding;
} order_sequence;
int64_t order_sequences(const ol_gated_delta_arguments *arguments);
order_sequence order_sequence_at(const ol_gated_delta_options *options, const ol_gated_delta_arguments *arguments, int64_t i);
/* The slot that the state after token t of sequence i goes to, -1 for none. `is_last` is of the tokens that are run. */
int64_t order_write_slot(const ol_gated_delta_options *options, const ol_gated_delta_arguments *arguments, int64_t i, int64_t t, int is_last);

#endif
