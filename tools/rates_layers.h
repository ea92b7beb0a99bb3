/* The gated-delta layers of a checkpoint: which tensors belong together, and how their shapes fit.
 *
 * A layer is a pair PREFIX + "A_log", PREFIX + "dt_bias" of the weights (PREFIX ends in whatever separates the names) with
 * the activations PREFIX + "a" and PREFIX + "b". Where those names are not in the activations file, the one tensor is taken
 * that ends in the same separator and a (or b) and has the same layer number (layers.N, blk.N …).
 *
 * Two kinds: a decay per head (Qwen3-Next, OLMo hybrids), or per channel of each head (Kimi Linear), told by dt_bias. */
#ifndef ONELAUNCH_TOOLS_RATES_LAYERS_H
#define ONELAUNCH_TOOLS_RATES_LAYERS_H

#include "checkpoint.h"

enum rates_input { RATES_B, RATES_A, RATES_A_LOG, RATES_DT_BIAS, RATES_INPUTS };      /* the composite's order */
enum rates_output { RATES_BETA, RATES_DECAY, RATES_OUTPUTS };

typedef struct rates_layer {
    char *prefix;                                  /* with its separator; may be empty */
    int64_t number;                                /* -1 where the name has none */
    int64_t tokens, heads, channels;               /* channels is 0 where the decay is per head */
    checkpoint_tensor source[RATES_INPUTS];
    ol_tensor input[RATES_INPUTS];                 /* views as the composite takes them: [tokens, heads(, channels)], … */
    ol_tensor output[RATES_OUTPUTS];               /* the same for results; no data */
    ol_tensor stored[RATES_OUTPUTS];               /* shapes of b and a as their file has them, for the results' file */
    char *output_name[RATES_OUTPUTS];
    checkpoint_tensor reference[RATES_OUTPUTS];    /* what the activations file says the results are; tensor NULL: nothing */
} rates_layer;

typedef struct rates_selection {
    int64_t layer;                                 /* -1: all */
    const char *glob;                              /* of the prefix or of A_log's name; NULL: all */
} rates_selection;

/* Finds the selected layers, by number, then by name. None at all is an error. */
bool rates_layers_find(checkpoint *weights, checkpoint *activations, const rates_selection *selection, rates_layer **layers,
                       size_t *n_layers, st_error *error);
void rates_layers_free(rates_layer *layers, size_t n_layers);

#endif
