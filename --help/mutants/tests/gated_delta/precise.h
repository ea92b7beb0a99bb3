/* The step in long double, from the formulas of the papers, with a bound on how far float32 in the documented order may be from it.
 *
 * Formulas: Yang et al., "Gated Delta Networks" (2024), eq. 10, decay, read, update, read; softplus gates as Mamba2 has them. Nothing of the
 * library's is used, and of the documented order only how many roundings a sum's terms meet: ceil(K / 32) + 5.
 *
 * The bound is a running one, to first order with some percent to spare. Per row of the state it carries the 2-norm of its error: a token
 * multiplies the row by (I - beta k^ k^T) diag(decay), whose norm is at most max(1, |1 - beta |k^|^2|) max |decay|, and adds the roundings
 * of that token. So it grows by a sum, not by a power, where k^ is normalised, and runs of 10,000 tokens can be held to it. */
#ifndef OL_PRECISE_H
#define OL_PRECISE_H

#include "step_case.h"

typedef struct precise {
    long double *output, *output_bound;          /* [tokens, value_heads, value_dim] */
    long double *state, *state_bound;            /* [value_heads, value_dim, key_dim], bounds [value_heads, value_dim] of each row's elements */
    size_t n_outputs, n_rows;
} precise;

/* Of a dense case of one sequence on slot 0, in layout [V, K], heads grouped, gates of kind softplus in float32 or decays given; before it is run. */
precise precise_step(const step_case *c);
void precise_free(precise *p);

#endif
