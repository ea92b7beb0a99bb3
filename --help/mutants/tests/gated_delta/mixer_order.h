/* The mixer step in its documented order of operations (onelaunch_gated_delta.h), one scalar after the other: the definition of every bit of it, and
 * of where windows are read and written. Written from the header's text; around the recurrence of order.h, it shares nothing with the library. */
#ifndef OL_MIXER_ORDER_H
#define OL_MIXER_ORDER_H

#include "order.h"

/* Runs the step on host tensors that are as ol_gated_delta_mixer_step wants them, which is not checked. The gates come from composites for `device`. */
void order_mixer(ol_device *device, const ol_gated_delta_mixer_options *options, const ol_gated_delta_mixer_arguments *arguments);

/* The pieces, for tests that take them one by one. A head's o, `n` floats, becomes what is stored; z and weight have n elements. */
float order_activate(ol_mixer_activation activation, float x);
void order_norm(const ol_gated_delta_mixer_options *options, float *o, const float *weight, const float *z, int n);

/* q, k or v (part 0, 1, 2) of all tokens that are run, as float32 [tokens, heads, dim] in the order of the heads; the caller frees it. */
float *order_convolve(const ol_gated_delta_mixer_options *options, const ol_gated_delta_mixer_arguments *arguments, int part);


#endif
