/* The gated-delta layers of a checkpoint: which tensors belong together, and how their shapes fit.
 *
 * A layer is a pair PREFIX + "A_log", PREFIX + "dt_bias" of the weights, or in GGUF's words "ssm_a" and "ssm_dt.bias" (PREFIX ends in
 * whatever separates the names), with the activations PREFIX + "a" and PREFIX + "b" ("ssm_alpha", "ssm_beta"), or both in one PREFIX +
 * "ba" ("in_proj_ba", "ssm_ba"). Where those names are not in the activations file, the one tensor is taken that ends in the
 * same separator and word and has the same layer number (layers.N, blk.N …). The plain lower bound needs no A_log: there dt_bias alone
 * makes a layer.
 *
 * Two kinds: a decay per head (Qwen3-Next, OLMo hybrids), or per channel of each head (Kimi Linear), told by dt_bias.
 *
 * What a layer's files hold are its bases, contiguous; what the composite takes are views of them (rates_layer_views): slices of a
 * projection, heads in another order. On a GPU the bases are copied there, and the views made of the copies. */
#ifndef ONELAUNCH_TOOLS_RATES_LAYERS_H
#define ONELAUNCH_TOOLS_RATES_LAYERS_H

#include "checkpoint.h"
#include "rates_gates.h"

enum rates_input { RATES_B, RATES_A, RATES_A_LOG, RATES_DT_BIAS, RATES_INPUTS };      /* the composite's order */
enum rates_output { RATES_BETA, RATES_LOG_DECAY, RATES_DECAY, RATES_OUTPUTS };        /* likewise */

typedef struct rates_layer {
    char *prefix;                                  /* with its separator; may be empty */
    char *label;                                   /* the weight that messages name it by: PREFIX + "A_log" */
    int64_t number;                                /* -1 where the name has none */
    int64_t tokens, heads, channels;               /* channels is 0 where the decay is per head */
    int64_t key_heads;                             /* 0: the axis of heads is one, not [key heads, value heads of each] */
    ol_gate_options options;
    enum rates_projection projection;
    ol_head_map weights;
    checkpoint_tensor source[RATES_INPUTS];        /* tensor NULL: no input of this gate. b and a may be one tensor */
    ol_tensor base[RATES_INPUTS];                  /* contiguous: b and a, or their projection; A_log, unless there is none; dt_bias */
    int32_t n_bases;
    ol_tensor input[RATES_INPUTS];                 /* views of the bases as the composite takes them; rank -1: not there */
    int32_t n_outputs;                             /* what is computed: beta, then log decay, decay, or both */
    enum rates_output result[RATES_OUTPUTS];
    ol_tensor output[RATES_OUTPUTS];               /* contiguous, of the views' shapes; no data. By number, as what follows */
    ol_tensor stored[RATES_OUTPUTS];               /* shapes as b and a have them in their file, for the results' file */
    char *output_name[RATES_OUTPUTS];
    checkpoint_tensor reference[RATES_OUTPUTS];    /* what the activations file says the results are; tensor NULL: nothing */
} rates_layer;

typedef struct rates_selection {
    int64_t layer;                                 /* -1: all */
    const char *glob;                              /* of the prefix or of the label; NULL: all */
} rates_selection;

/* Finds the selected layers, by number, then by name. None at all is an error. */
bool rates_layers_find(checkpoint *weights, checkpoint *activations, const rates_selection *selection, const rates_gates *gates,
                       rates_layer **layers, size_t *n_layers, st_error *error);
void rates_layers_free(rates_layer *layers, size_t n_layers);

/* The views of bases that lie where layer->base lies or in copies of it. */
bool rates_layer_views(const rates_layer *layer, const ol_tensor *bases, ol_tensor views[RATES_INPUTS], ol_error *error);
/* Those that are there, as the composite's inputs; returns how many. */
int32_t rates_layer_pick(const ol_tensor views[RATES_INPUTS], ol_tensor picked[RATES_INPUTS]);
/* The composite of these options, the layer's or others, for the dtypes of the layer. */
ol_status rates_layer_compile(const rates_layer *layer, const ol_gate_options *options, ol_device *device, ol_composite **composite, ol_error *error);

#endif
