/* The gates once more, from docs/gated-delta.md's formulas and not from the graphs: element by element, every step by MPFR (reference.h)
 * and rounded where the page says; and without any rounding between, in long double, for bounds. */
#ifndef OL_GATE_REFERENCE_H
#define OL_GATE_REFERENCE_H

#include "graph_cases.h"

#include <onelaunch_gated_delta.h>

/* b, a, what is stored as the rate, dt_bias: their dtypes, and bits of one element each. */
typedef struct gate_dtypes { ol_dtype b, a, rate, bias; } gate_dtypes;
typedef struct gate_element { uint64_t b, a, rate, bias; } gate_element;
/* Bits, whether or not the options ask for each; beta's dtype is gate_beta_dtype, the others are float32. */
typedef struct gate_result { uint64_t beta, log_decay, decay; } gate_result;

ol_dtype gate_beta_dtype(const ol_gate_options *options, ol_dtype b);
gate_result gate_reference(const ol_gate_options *options, const gate_dtypes *dtypes, const gate_element *element);

/* The log decay of float32 x and rate (as it multiplies, after any exponential) in exact arithmetic, and how far the rounded one may be
 * off: an absolute bound from the roundings on the way. */
typedef struct gate_exact { long double log_decay, bound; } gate_exact;
gate_exact gate_exact_log_decay(const ol_gate_options *options, float x, long double rate_logarithm);

/* Frees what is kept between calls. */
void gate_reference_end(void);

#endif
