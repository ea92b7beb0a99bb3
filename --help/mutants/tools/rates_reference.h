/* How a layer's results differ from those that someone else computed and stored beside the activations, and why.
 *
 * The counts say how large a difference is. Who is right is decided by arithmetic, not by assertion: for the elements that
 * differ, the formula is evaluated once more in extended precision, without any rounding in between (whose result is nearer?)
 * and with the roundings that the graph states (are ours the bits that the graph asks for?). */
#ifndef ONELAUNCH_TOOLS_RATES_REFERENCE_H
#define ONELAUNCH_TOOLS_RATES_REFERENCE_H

#include "rates_layers.h"

#include <stdio.h>

typedef struct rates_difference {
    bool present;                      /* there is a stored result, in a dtype that can be compared */
    const char *other_dtype;           /* the stored dtype where it is another one than ours, else NULL */
    const char *unit;                  /* the dtype whose ulp is counted, as safetensors spells it */
    ol_dtype sum_dtype;                /* of a + dt_bias in the graph */
    int64_t n, n_differ;
    int64_t n_nan;                     /* of the differing ones, a NaN on one side only; max_ulp leaves them out */
    uint64_t max_ulp;
    int64_t n_judged;                  /* of the differing ones; all of them up to a limit */
    int64_t n_ours_nearer, n_theirs_nearer;
    int64_t n_as_stated;               /* ours has the bits of the graph's own roundings */
    bool widened;                      /* the following two are filled: the same with a + dt_bias in float32 */
    uint64_t widened_max_ulp;
    int64_t widened_n_differ;
} rates_difference;

/* Compares result `index` (contiguous, of layer->output's dtype) with layer->reference[index]. */
bool rates_compare(ol_device *device, const rates_layer *layer, int32_t index, const void *results,
                   rates_difference *difference, st_error *error);

/* The table of differences and, below it, the reasons. differences is [n_layers][RATES_OUTPUTS]. Prints nothing where no
 * layer has a stored result. */
void rates_print_differences(FILE *stream, const char *path, const rates_layer *layers, size_t n_layers,
                             rates_difference (*differences)[RATES_OUTPUTS]);

#endif
