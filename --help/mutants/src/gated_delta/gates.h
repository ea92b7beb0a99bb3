/* The gate family within the library: its options checked once, and its graphs under whatever name. */
#ifndef OL_GATES_H
#define OL_GATES_H

#include "onelaunch_gated_delta.h"

#include <string.h>

/* The composite's inputs, in its order; gate_inputs leaves out those that the options have no use for. */
enum gate_input { GATE_B, GATE_A, GATE_RATE, GATE_BIAS, GATE_INPUTS };
int gate_has_input(const ol_gate_options *options, enum gate_input input);

/* By its bits, so that a host that reads subnormals as zero does not matter. */
static inline int gate_is_zero(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits << 1 == 0;
}

/* Whether the options mean something; else the error says which does not, under this operation. Allocates nothing. */
ol_status gate_options_check(const ol_gate_options *options, const char *operation, ol_error *error);

/* The composite of checked options, named so. dtypes: of b, a, rate, bias. */
ol_status gate_compile(ol_device *device, const ol_gate_options *options, const ol_dtype dtypes[GATE_INPUTS], const char *name,
                       ol_composite **composite, ol_error *error);

/* beta of b, for builders of graphs that have no other gate. */
ol_value gate_update_rate(ol_graph *g, const ol_gate_options *options, ol_value b);

#endif
