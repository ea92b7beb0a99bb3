/* What `onelaunch step` runs: gated-delta layers as transformers stores them, with recorded decoding.
 *
 * A layer is one of `onelaunch rates` (rates_layers.h: PREFIX + "A_log", "dt_bias", activations "a" and "b") that also has the weights
 * PREFIX + "conv1d.weight" and "norm.weight", and the activations "qkvz", as Qwen3-Next's in_proj_qkvz gives it (interleaved per key head), or
 * "qkv" and "z", as Qwen3.5's projections do. What transformers made of them is "core", before the norm, "output", after it, and the
 * "state" and "window" after the last token, both of which started from zeros.
 *
 * Sizes follow from the tensors: value heads from A_log, value_dim from norm.weight, width and channels from conv1d.weight. What is left of
 * the channels is the keys', whose number of heads and size only the state's shape, or the user, tells apart. */
#ifndef ONELAUNCH_TOOLS_STEP_LAYERS_H
#define ONELAUNCH_TOOLS_STEP_LAYERS_H

#include "rates_layers.h"

enum step_base { STEP_B, STEP_A, STEP_A_LOG, STEP_DT_BIAS, STEP_QKV, STEP_Z, STEP_CONVOLUTION, STEP_NORM, STEP_BASES };
enum step_result { STEP_CORE, STEP_OUTPUT, STEP_STATE, STEP_WINDOW, STEP_RESULTS };

enum step_part {
    STEP_PART_MIXER,                   /* convolution, recurrence, gated norm: one launch */
    STEP_PART_RECURRENCE               /* the recurrence alone */
};

typedef struct step_options {
    enum step_part part;
    int64_t key_heads;                 /* 0: as the state's shape says */
    ol_dtype state_dtype;
    double epsilon;                    /* of the gated norm */
} step_options;

typedef struct step_layer {
    const rates_layer *rates;          /* names, number, tokens; belongs to the caller */
    ol_gated_delta_mixer_options options;          /* what transformers computes, all roundings included */
    int64_t channels;                  /* of the convolution: 2 * key_heads * key_dim + value_heads * value_dim */
    bool has_z;                        /* z is among the channels of STEP_QKV; STEP_Z is not there */
    ol_tensor base[STEP_BASES];        /* contiguous, in the files: [tokens, heads] twice, [heads] twice, [tokens, C], [tokens, heads, value_dim], [C, W], [value_dim] */
    ol_tensor result[STEP_RESULTS];    /* what is computed: [tokens, heads, value_dim] twice, [1, heads, key_dim, value_dim], [1, C, W]. No data */
    checkpoint_tensor captured[STEP_RESULTS];      /* tensor NULL: the file does not have it, or the part does not compute it */
    char *name[STEP_RESULTS];          /* PREFIX + "core" … */
} step_layer;

/* "core", "output", "state", "window". */
const char *step_result_word(enum step_result result);
/* Whether the part computes this result at all. */
bool step_computes(const step_options *options, enum step_result result);

/* Makes the layers of a checkpoint's rates layers. */
bool step_layers_make(checkpoint *weights, checkpoint *activations, const rates_layer *rates, size_t n_layers, const step_options *options,
                      step_layer **layers, st_error *error);
void step_layers_free(step_layer *layers, size_t n_layers);

/* How many bytes, and elements, a result has. */
int64_t step_result_count(const step_layer *layer, enum step_result result);

#endif
