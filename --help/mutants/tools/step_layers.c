/* See step_layers.h. */
#include "step_layers.h"

#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "FILE: tensor NAME: shape [2, 3]" */
#define SHAPED "%s: tensor %.300s: shape %s"

static const char *const words[STEP_RESULTS] = { "core", "output", "state", "window" };

const char *step_result_word(enum step_result result) {
    return words[result];
}

bool step_computes(const step_options *options, enum step_result result) {
    return options->part == STEP_PART_MIXER || result == STEP_CORE || result == STEP_STATE;
}

/* ---- Tensors of the files ---------------------------------------------------------------------------------------- */

static char *join(const char *prefix, const char *word) {
    char *name = NULL;
    return asprintf(&name, "%s%s", prefix, word) < 0 ? NULL : name;
}

/* The first of the words that the set has after the prefix; found->tensor is NULL where it has none. */
static bool look_up(checkpoint *set, const char *prefix, const char *const *list, checkpoint_tensor *found, st_error *error) {
    *found = (checkpoint_tensor){ 0 };
    for (; *list; list++) {
        char *name = join(prefix, *list);
        bool ok = name || st_fail(error, "%s: out of memory", checkpoint_path(set));
        if (ok && checkpoint_has(set, name)) {
            ok = checkpoint_find(set, name, found, error);
        }
        free(name);
        if (!ok || found->tensor) {
            return ok;
        }
    }
    return true;
}

static bool missing(const checkpoint *set, const rates_layer *rates, const char *word, const char *otherwise, st_error *error) {
    return st_fail(error, "%s: tensor %.300s%s: not in this file, needed for %.300s%s", checkpoint_path(set), rates->prefix, word, rates->label, otherwise);
}

/* A view as the file has it; only floats will do. */
static bool float_view(const checkpoint_tensor *source, ol_tensor *view, st_error *error) {
    if (!st_view(source->file, source->tensor, view, error)) {
        return false;
    }
    return view->dtype == OL_FLOAT32 || view->dtype == OL_FLOAT16 || view->dtype == OL_BFLOAT16 ||
           st_fail(error, "%s: tensor %.300s: dtype %s, expected F32, F16 or BF16", source->file->path, source->tensor->name, source->tensor->dtype_name);
}

static bool misshaped(const checkpoint_tensor *source, const ol_tensor *view, st_error *error, const char *expected) {
    return st_fail(error, SHAPED ", expected %s", source->file->path, source->tensor->name, cli_shape(view->rank, view->shape, (char[CLI_SHAPE_BYTES]){ 0 }), expected);
}

/* ---- Weights and sizes ------------------------------------------------------------------------------------------- */

static bool fit_norm(step_layer *layer, checkpoint *weights, st_error *error) {
    static const char *const list[] = { "norm.weight", NULL };
    checkpoint_tensor source;
    ol_tensor view;
    if (!look_up(weights, layer->rates->prefix, list, &source, error)) {
        return false;
    }
    if (!source.tensor) {
        return missing(weights, layer->rates, list[0], "", error);
    }
    if (!float_view(&source, &view, error)) {
        return false;
    }
    if (view.rank != 1 || view.shape[0] < 1 || view.shape[0] > OL_DELTA_MAX_DIM) {
        return misshaped(&source, &view, error, "[value_dim], from 1 to 256");
    }
    layer->base[STEP_NORM] = view;
    layer->options.recurrence.value_dim = (int32_t)view.shape[0];
    layer->options.norm_weight_dtype = view.dtype;
    return true;
}

/* [C, 1, W], as torch has a convolution of a group a channel, or [C, W]. */
static bool fit_convolution(step_layer *layer, checkpoint *weights, checkpoint_tensor *source, st_error *error) {
    static const char *const list[] = { "conv1d.weight", NULL }, *const bias[] = { "conv1d.bias", NULL };
    checkpoint_tensor other;
    ol_tensor view;
    if (!look_up(weights, layer->rates->prefix, list, source, error) || !look_up(weights, layer->rates->prefix, bias, &other, error)) {
        return false;
    }
    if (!source->tensor) {
        return missing(weights, layer->rates, list[0], "", error);
    }
    if (other.tensor) {
        return st_fail(error, "%s: tensor %.300s: this command knows no convolutions with a bias", other.file->path, other.tensor->name);
    }
    if (!float_view(source, &view, error)) {
        return false;
    }
    int64_t width = view.rank > 1 ? view.shape[view.rank - 1] : 0;
    if (!(view.rank == 2 || (view.rank == 3 && view.shape[1] == 1)) || width < 2 || width > 4 || view.shape[0] < 1) {
        return misshaped(source, &view, error, "[channels, 1, width], a width from 2 to 4");
    }
    layer->channels = view.shape[0];
    layer->base[STEP_CONVOLUTION] = ol_tensor_contiguous(view.data, view.dtype, 2, (int64_t[]){ layer->channels, width });
    layer->options.width = (int32_t)width;
    layer->options.weight_dtype = view.dtype;
    return true;
}

/* key_dim by the state's shape, [..., value heads, key_dim, value_dim]; 0 where it does not say. */
static bool key_dim_of_state(const step_layer *layer, const checkpoint_tensor *state, int64_t *key_dim, st_error *error) {
    const ol_gated_delta_options *o = &layer->options.recurrence;
    ol_tensor view;
    *key_dim = 0;
    if (!state->tensor) {
        return true;
    }
    if (!float_view(state, &view, error)) {
        return false;
    }
    const int64_t *last = view.rank < 3 ? NULL : view.shape + view.rank - 3;
    if (!last || last[0] != o->value_heads || last[1] < 1 || last[2] != o->value_dim || state->tensor->n_elements != last[0] * last[1] * last[2]) {
        char expected[120];
        snprintf(expected, sizeof expected, "[1, %d, key_dim, %d], the value heads of A_log and the value_dim of norm.weight", o->value_heads, o->value_dim);
        return misshaped(state, &view, error, expected);
    }
    *key_dim = last[1];
    return true;
}

/* Key heads and their size, whose product is known. */
static bool fit_keys(step_layer *layer, const checkpoint_tensor *convolution, const checkpoint_tensor *state, const step_options *options, st_error *error) {
    ol_gated_delta_options *o = &layer->options.recurrence;
    const char *file = convolution->file->path, *name = convolution->tensor->name;
    int64_t keys = layer->channels - (int64_t)o->value_heads * o->value_dim, key_dim;
    if (keys < 2 || keys % 2 != 0) {
        return st_fail(error, "%s: tensor %.300s: %" PRId64 " channels do not hold q, k and v of %d value heads of %d", file, name, layer->channels, o->value_heads, o->value_dim);
    }
    keys /= 2;
    if (!key_dim_of_state(layer, state, &key_dim, error)) {
        return false;
    }
    if (!key_dim && !options->key_heads) {
        return st_fail(error, "%s: tensor %.300s: %" PRId64 " channels for keys may be any number of heads, and there is no %.300sstate to tell; give --key-heads", file, name, keys,
                       layer->rates->prefix);
    }
    int64_t heads = options->key_heads ? options->key_heads : keys / key_dim;
    key_dim = key_dim ? key_dim : keys / heads;
    if (heads < 1 || key_dim < 1 || key_dim > OL_DELTA_MAX_DIM || keys != heads * key_dim || o->value_heads % heads != 0) {
        return st_fail(error, "%s: tensor %.300s: %" PRId64 " channels for keys are not those of %" PRId64 " key heads of %" PRId64 ", which %d value heads read", file, name, keys,
                       heads, key_dim, o->value_heads);
    }
    o->key_heads = (int32_t)heads;
    o->key_dim = (int32_t)key_dim;
    return true;
}

/* ---- Activations ------------------------------------------------------------------------------------------------- */

/* Whether the elements are those of one sequence: n a token, and no axis of several sequences before the tokens'. */
static bool is_sequence(const ol_tensor *view, int64_t tokens, int64_t n, int64_t n_elements) {
    int32_t axis = 0;
    while (axis < view->rank && view->shape[axis] == 1) {
        axis++;
    }
    return n_elements == tokens * n && (tokens == 1 || (axis < view->rank && view->shape[axis] == tokens));
}

static bool fit_tokens(const step_layer *layer, const checkpoint_tensor *source, int64_t n, const char *what, ol_tensor *view, st_error *error) {
    if (!float_view(source, view, error)) {
        return false;
    }
    if (!is_sequence(view, layer->rates->tokens, n, source->tensor->n_elements)) {
        char expected[200];
        snprintf(expected, sizeof expected, "[1, %" PRId64 ", %" PRId64 "]: %s, the tokens of a and b, one sequence", layer->rates->tokens, n, what);
        return misshaped(source, view, error, expected);
    }
    return true;
}

static bool fit_projections(step_layer *layer, checkpoint *activations, st_error *error) {
    static const char *const both[] = { "qkvz", "in_proj_qkvz", NULL }, *const qkv[] = { "qkv", "in_proj_qkv", NULL }, *const z[] = { "z", "in_proj_z", NULL };
    const char *prefix = layer->rates->prefix;
    const ol_gated_delta_options *o = &layer->options.recurrence;
    int64_t values = (int64_t)o->value_heads * o->value_dim;
    checkpoint_tensor source, gate;
    ol_tensor view;
    if (!fit_tokens(layer, &layer->rates->source[RATES_B], o->value_heads, "b of all value heads", &view, error) ||
        !fit_tokens(layer, &layer->rates->source[RATES_A], o->value_heads, "a of all value heads", &view, error) ||
        !look_up(activations, prefix, both, &source, error)) {
        return false;
    }
    layer->has_z = source.tensor != NULL;
    if (!layer->has_z) {
        if (!look_up(activations, prefix, qkv, &source, error) || !look_up(activations, prefix, z, &gate, error)) {
            return false;
        }
        if (!source.tensor || !gate.tensor) {
            return missing(activations, layer->rates, source.tensor ? z[0] : both[0], source.tensor ? "" : " (or qkv and z)", error);
        }
        if (!fit_tokens(layer, &gate, values, "z of all value heads", &view, error)) {
            return false;
        }
        layer->base[STEP_Z] = ol_tensor_contiguous(view.data, view.dtype, 3, (int64_t[]){ layer->rates->tokens, o->value_heads, o->value_dim });
        layer->options.gate_dtype = view.dtype;
    }
    int64_t n = layer->channels + (layer->has_z ? values : 0);
    if (!fit_tokens(layer, &source, n, layer->has_z ? "q, k, v and z of all heads" : "q, k and v of all heads", &view, error)) {
        return false;
    }
    if (view.dtype == OL_FLOAT32) {
        return st_fail(error, "%s: tensor %.300s: dtype F32, expected BF16 or F16: results are held to the noise of 16-bit activations", source.file->path, source.tensor->name);
    }
    layer->base[STEP_QKV] = ol_tensor_contiguous(view.data, view.dtype, 2, (int64_t[]){ layer->rates->tokens, n });
    layer->options.recurrence.activation_dtype = view.dtype;
    return true;
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

static bool fit_results(step_layer *layer, const checkpoint_tensor *state, checkpoint *activations, const step_options *options, st_error *error) {
    const ol_gated_delta_options *o = &layer->options.recurrence;
    int64_t values = (int64_t)o->value_heads * o->value_dim, rows[] = { layer->rates->tokens, o->value_heads, o->value_dim };
    enum step_result needed = options->part == STEP_PART_MIXER ? STEP_OUTPUT : STEP_CORE;
    ol_tensor view;
    layer->result[STEP_CORE] = layer->result[STEP_OUTPUT] = ol_tensor_contiguous(NULL, o->activation_dtype, 3, rows);
    layer->result[STEP_STATE] = ol_tensor_contiguous(NULL, options->state_dtype, 4, (int64_t[]){ 1, o->value_heads, o->key_dim, o->value_dim });
    layer->result[STEP_WINDOW] = ol_tensor_contiguous(NULL, o->activation_dtype, 3, (int64_t[]){ 1, layer->channels, layer->options.width });
    for (int i = 0; i < STEP_RESULTS; i++) {
        layer->name[i] = join(layer->rates->prefix, words[i]);
        if (!layer->name[i]) {
            return st_fail(error, "%s: out of memory", checkpoint_path(activations));
        }
        if (!step_computes(options, (enum step_result)i)) {
            continue;
        }
        if (i == STEP_STATE) {
            layer->captured[i] = *state;               /* its shape is what sizes were taken from */
            continue;
        }
        if (!look_up(activations, layer->rates->prefix, (const char *[]){ words[i], NULL }, &layer->captured[i], error)) {
            return false;
        }
        const checkpoint_tensor *captured = &layer->captured[i];
        if (!captured->tensor) {
            if (i == (int)needed) {
                return missing(activations, layer->rates, words[i], "", error);
            }
        } else if (i == STEP_WINDOW) {
            int64_t n = layer->channels * layer->options.width;
            if (!float_view(captured, &view, error)) {
                return false;
            }
            if (captured->tensor->n_elements != n || view.shape[view.rank - 1] != layer->options.width) {
                char expected[120];
                snprintf(expected, sizeof expected, "[1, %" PRId64 ", %d], the channels and width of conv1d.weight", layer->channels, layer->options.width);
                return misshaped(captured, &view, error, expected);
            }
        } else if (!fit_tokens(layer, captured, values, "a value of all value heads", &view, error)) {
            return false;
        }
        if (captured->tensor && view.dtype != o->activation_dtype) {
            return st_fail(error, "%s: tensor %.300s: dtype %s, expected %s, that of q, k and v", captured->file->path, captured->tensor->name, captured->tensor->dtype_name,
                           st_dtype_name(o->activation_dtype));
        }
    }
    return true;
}

int64_t step_result_count(const step_layer *layer, enum step_result result) {
    int64_t n = 1;
    for (int32_t axis = 0; axis < layer->result[result].rank; axis++) {
        n *= layer->result[result].shape[axis];
    }
    return n;
}

/* ---- Layers ------------------------------------------------------------------------------------------------------ */

/* What transformers computes, and where it rounds: wherever torch puts a tensor of the activations' dtype between two operations. */
static void set_options(step_layer *layer, const step_options *options) {
    ol_gated_delta_mixer_options *o = &layer->options;
    ol_gated_delta_options *r = &o->recurrence;
    r->state_dtype = options->state_dtype;
    r->update_dtype = layer->base[STEP_B].dtype;
    r->decay_dtype = layer->base[STEP_A].dtype;
    r->decay_rate_dtype = layer->base[STEP_A_LOG].dtype;
    r->decay_bias_dtype = layer->base[STEP_DT_BIAS].dtype;
    r->state_layout = OL_DELTA_KEY_VALUE;
    r->norm = OL_DELTA_NORM_RSQRT;
    r->gates.sum = OL_GATE_SUM_FLOAT32;
    o->epsilon = options->epsilon;
    o->sum_rounded = o->weight_dtype == r->activation_dtype;
    o->normalized_rounded = 1;
    o->weighted_rounded = o->norm_weight_dtype == r->activation_dtype;
}

static bool make(step_layer *layer, checkpoint *weights, checkpoint *activations, const step_options *options, st_error *error) {
    static const char *const state_words[] = { "state", NULL };
    const rates_layer *rates = layer->rates;
    checkpoint_tensor convolution, state;
    if (rates->channels) {
        return st_fail(error, "%s: tensor %.300s: a decay for each channel; this command runs layers with one a head", rates->source[RATES_DT_BIAS].file->path,
                       rates->source[RATES_DT_BIAS].tensor->name);
    }
    if (rates->options.rate != OL_GATE_RATE_LOGARITHM) {
        return st_fail(error, "%s: tensor %.300s: a rate as GGUF files store it; this command takes checkpoints of transformers", rates->source[RATES_A_LOG].file->path, rates->label);
    }
    if (rates->heads > INT32_MAX / OL_DELTA_MAX_DIM || rates->tokens < 1) {
        return st_fail(error, "%s: tensor %.300s: %" PRId64 " heads and %" PRId64 " tokens are no layer to run", checkpoint_path(weights), rates->label, rates->heads, rates->tokens);
    }
    layer->options.recurrence.value_heads = (int32_t)rates->heads;
    memcpy(layer->base, rates->base, 4 * sizeof *layer->base);         /* b, a, A_log, dt_bias: in this order there, too */
    if (!fit_norm(layer, weights, error) || !fit_convolution(layer, weights, &convolution, error) ||
        !look_up(activations, rates->prefix, state_words, &state, error) || !fit_keys(layer, &convolution, &state, options, error) ||
        !fit_projections(layer, activations, error) || !fit_results(layer, &state, activations, options, error)) {
        return false;
    }
    set_options(layer, options);
    return true;
}

bool step_layers_make(checkpoint *weights, checkpoint *activations, const rates_layer *rates, size_t n_layers, const step_options *options,
                      step_layer **out, st_error *error) {
    step_layer *layers = calloc(n_layers, sizeof *layers);
    if (!layers) {
        return st_fail(error, "%s: out of memory", checkpoint_path(weights));
    }
    for (size_t i = 0; i < n_layers; i++) {
        layers[i].rates = &rates[i];
        if (!make(&layers[i], weights, activations, options, error)) {
            step_layers_free(layers, n_layers);
            return false;
        }
    }
    *out = layers;
    return true;
}

void step_layers_free(step_layer *layers, size_t n_layers) {
    for (size_t i = 0; layers && i < n_layers; i++) {
        for (int k = 0; k < STEP_RESULTS; k++) {
            free(layers[i].name[k]);
        }
    }
    free(layers);
}
