/* See rates_fit.h. */
#include "rates_fit.h"

#include "cli.h"
#include "gguf.h"

#include <inttypes.h>
#include <string.h>

/* "FILE: tensor NAME: shape [2, 3]" */
#define SHAPED "%s: tensor %.300s: shape %s"

/* A view as the file has it; only floats will do. */
static bool float_view(const checkpoint_tensor *source, ol_tensor *view, st_error *error) {
    if (!st_view(source->file, source->tensor, view, error)) {
        return false;
    }
    if (view->dtype != OL_FLOAT32 && view->dtype != OL_FLOAT16 && view->dtype != OL_BFLOAT16) {
        return st_fail(error, "%s: tensor %.300s: dtype %s, expected F32, F16 or BF16", source->file->path, source->tensor->name,
                       source->tensor->dtype_name);
    }
    return true;
}

/* Extents other than 1; returns how many. */
static int32_t squeeze(const ol_tensor *view, int64_t shape[OL_MAX_RANK]) {
    int32_t rank = 0;
    for (int32_t axis = 0; axis < view->rank; axis++) {
        if (view->shape[axis] != 1) {
            shape[rank++] = view->shape[axis];
        }
    }
    return rank;
}

/* ---- Weights --------------------------------------------------------------------------------------------------- */

/* Where no A_log says how many heads there are: dt_bias of [heads, channels] does, else b. */
static bool heads_of_activations(rates_layer *layer, int32_t rank, const int64_t *bias_shape, st_error *error) {
    const checkpoint_tensor *b = &layer->source[RATES_B];
    ol_tensor view;
    if (!float_view(b, &view, error)) {
        return false;
    }
    int64_t last = view.rank > 0 ? view.shape[view.rank - 1] : 1;
    layer->heads = rank == 2 ? bias_shape[0] : layer->projection == RATES_SEPARATE ? last : last / 2;
    return layer->heads > 0 || st_fail(error, SHAPED ", expected heads on the last axis", b->file->path, b->tensor->name,
                                       cli_shape(view.rank, view.shape, (char[CLI_SHAPE_BYTES]){ 0 }));
}

/* Heads from A_log ([heads], [1, 1, heads, 1] …), channels from dt_bias ([heads], [heads, channels], [heads * channels]). */
static bool fit_weights(rates_layer *layer, st_error *error) {
    const checkpoint_tensor *a_log = &layer->source[RATES_A_LOG], *dt_bias = &layer->source[RATES_DT_BIAS];
    ol_tensor rate = { .rank = -1 }, bias;
    int64_t shape[OL_MAX_RANK] = { 0 };
    char text[2][CLI_SHAPE_BYTES];
    if ((a_log->tensor && !float_view(a_log, &rate, error)) || !float_view(dt_bias, &bias, error)) {
        return false;
    }
    if (a_log->tensor) {
        layer->heads = a_log->tensor->n_elements;
        if (squeeze(&rate, shape) > 1 || layer->heads == 0) {
            return st_fail(error, SHAPED ", expected one value a head", a_log->file->path, a_log->tensor->name, cli_shape(rate.rank, rate.shape, text[0]));
        }
    }
    int32_t rank = squeeze(&bias, shape);
    if (!a_log->tensor && !heads_of_activations(layer, rank, shape, error)) {
        return false;
    }
    int64_t n = dt_bias->tensor->n_elements, heads = layer->heads;
    bool flat = rank <= 1, paired = rank == 2 && shape[0] == heads;
    if (n == 0 || n % heads != 0 || (!flat && !paired)) {
        const checkpoint_tensor *other = a_log->tensor ? a_log : &layer->source[RATES_B];
        return st_fail(error, SHAPED " does not fit the %" PRId64 " heads of %.300s, shape %s", dt_bias->file->path, dt_bias->tensor->name,
                       cli_shape(bias.rank, bias.shape, text[1]), heads, other->tensor->name,
                       cli_shape(other->tensor->rank, other->tensor->shape, text[0]));
    }
    layer->channels = n == heads ? 0 : n / heads;
    if (a_log->tensor) {
        layer->base[layer->n_bases++] = ol_tensor_contiguous(rate.data, rate.dtype, layer->channels ? 2 : 1, (int64_t[]){ heads, 1 });
    }
    layer->base[layer->n_bases++] = ol_tensor_contiguous(bias.data, bias.dtype, layer->channels ? 2 : 1, (int64_t[]){ heads, layer->channels });
    return true;
}

/* ---- Activations ----------------------------------------------------------------------------------------------- */

/* Whether the last axes of a shape are heads (and channels), apart or as one axis. channels 0: none. */
static bool ends_in(const ol_tensor *view, int64_t heads, int64_t channels) {
    int64_t last = view->rank > 0 ? view->shape[view->rank - 1] : 1;
    int64_t second = view->rank > 1 ? view->shape[view->rank - 2] : 1;
    int64_t each = channels ? channels : 1;
    return last == heads * each || (second == heads && last == each);
}

/* The weight whose shape an activation is held against. */
static const st_tensor *judge_of(const rates_layer *layer) {
    return layer->source[RATES_A_LOG].tensor ? layer->source[RATES_A_LOG].tensor : layer->source[RATES_DT_BIAS].tensor;
}

static bool fit_activation(rates_layer *layer, enum rates_input which, int64_t channels, ol_tensor *stored, st_error *error) {
    const checkpoint_tensor *source = &layer->source[which];
    const st_tensor *judge = judge_of(layer);
    char text[CLI_SHAPE_BYTES], other[CLI_SHAPE_BYTES];
    ol_tensor view;
    if (!float_view(source, &view, error)) {
        return false;
    }
    cli_shape(judge->rank, judge->shape, other);
    cli_shape(view.rank, view.shape, text);
    if (!ends_in(&view, layer->heads, channels)) {
        return channels ? st_fail(error, SHAPED " does not end in %" PRId64 " heads of %" PRId64 " channels, as %.300s, shape %s, and dt_bias have", source->file->path,
                                  source->tensor->name, text, layer->heads, channels, judge->name, other)
                        : st_fail(error, SHAPED " does not end in %" PRId64 " heads, as %.300s, shape %s, has", source->file->path, source->tensor->name, text,
                                  layer->heads, judge->name, other);
    }
    int64_t tokens = source->tensor->n_elements / (layer->heads * (channels ? channels : 1));
    if (which == RATES_A && tokens != layer->tokens) {
        const checkpoint_tensor *b = &layer->source[RATES_B];
        return st_fail(error, SHAPED " has %" PRId64 " tokens, but %.300s, shape %s, has %" PRId64, source->file->path, source->tensor->name, text, tokens, b->tensor->name,
                       cli_shape(b->tensor->rank, b->tensor->shape, other), layer->tokens);
    }
    layer->tokens = tokens;
    layer->base[layer->n_bases++] = ol_tensor_contiguous(view.data, view.dtype, channels ? 3 : 2, (int64_t[]){ tokens, layer->heads, channels });
    *stored = view;
    return true;
}

/* One tensor of [..., 2 * heads]. */
static bool fit_projection(rates_layer *layer, ol_tensor *stored, st_error *error) {
    const checkpoint_tensor *source = &layer->source[RATES_B];
    char text[CLI_SHAPE_BYTES];
    ol_tensor view;
    if (!float_view(source, &view, error)) {
        return false;
    }
    if (layer->channels) {
        return st_fail(error, "%s: tensor %.300s: a decay for each of %" PRId64 " channels (dt_bias of %.300s) does not come from one projection beside b", source->file->path,
                       source->tensor->name, layer->channels, layer->prefix);
    }
    if (view.rank < 1 || view.shape[view.rank - 1] != 2 * layer->heads) {
        return st_fail(error, SHAPED " does not end in b and a of %" PRId64 " heads", source->file->path, source->tensor->name, cli_shape(view.rank, view.shape, text), layer->heads);
    }
    layer->tokens = source->tensor->n_elements / (2 * layer->heads);
    layer->base[layer->n_bases++] = ol_tensor_contiguous(view.data, view.dtype, 2, (int64_t[]){ layer->tokens, 2 * layer->heads });
    view.shape[view.rank - 1] = layer->heads;
    stored[0] = stored[1] = view;
    return true;
}

/* ---- Views ----------------------------------------------------------------------------------------------------- */

bool rates_layer_views(const rates_layer *layer, const ol_tensor *bases, ol_tensor views[RATES_INPUTS], ol_error *error) {
    ol_status status = OL_OK;
    const ol_tensor *base = bases;
    bool interleaved = layer->projection == RATES_INTERLEAVED;
    if (layer->projection == RATES_SEPARATE) {
        views[RATES_B] = *base++;
        views[RATES_A] = *base++;
    } else {
        status = ol_gated_delta_split(base++, interleaved ? OL_GATE_INTERLEAVED : OL_GATE_HALVES, layer->key_heads, &views[RATES_B], &views[RATES_A], error);
    }
    if (layer->source[RATES_A_LOG].tensor) {
        views[RATES_A_LOG] = *base++;
    } else {
        views[RATES_A_LOG] = (ol_tensor){ .rank = -1 };
    }
    views[RATES_DT_BIAS] = *base;
    for (int which = 0; status == OL_OK && layer->key_heads && which < RATES_INPUTS; which++) {
        bool is_weight = which >= RATES_A_LOG;
        if (views[which].rank >= 0 && (is_weight || !interleaved)) {
            status = ol_gated_delta_heads_view(&views[which], is_weight ? 0 : 1, layer->key_heads, is_weight ? layer->weights : OL_HEADS_GROUPED, &views[which], error);
        }
    }
    return status == OL_OK;
}

int32_t rates_layer_pick(const ol_tensor views[RATES_INPUTS], ol_tensor picked[RATES_INPUTS]) {
    int32_t n = 0;
    for (int which = 0; which < RATES_INPUTS; which++) {
        if (views[which].rank >= 0) {
            picked[n++] = views[which];
        }
    }
    return n;
}

/* The number of key heads, where it is needed. */
static bool find_key_heads(rates_layer *layer, const rates_gates *gates, st_error *error) {
    const st_file *file = layer->source[RATES_DT_BIAS].file;
    const char *architecture = gguf_string(file, "general.architecture");
    char key[200];
    layer->key_heads = 0;
    if (layer->projection != RATES_INTERLEAVED && layer->weights == OL_HEADS_GROUPED) {
        return true;
    }
    layer->key_heads = gates->key_heads;
    if (!layer->key_heads && architecture && snprintf(key, sizeof key, "%s.ssm.group_count", architecture) < (int)sizeof key) {
        gguf_number(file, key, &layer->key_heads);
    }
    if (layer->key_heads < 1) {
        return st_fail(error, "%s: does not say how many key heads there are, which %s needs; give --key-heads", file->path,
                       layer->projection == RATES_INTERLEAVED ? "--projection interleaved" : "--head-map tiled");
    }
    if (layer->heads % layer->key_heads != 0) {
        return st_fail(error, "%s: tensor %.300s: %" PRId64 " heads are no multiple of %" PRId64 " key heads", file->path, layer->label, layer->heads, layer->key_heads);
    }
    return true;
}

/* ---- Results --------------------------------------------------------------------------------------------------- */

static void add_result(rates_layer *layer, enum rates_output result, ol_dtype dtype, const ol_tensor *like, const ol_tensor *stored) {
    int32_t i = layer->n_outputs++;
    layer->result[i] = result;
    layer->output[i] = ol_tensor_contiguous(NULL, dtype, like->rank, like->shape);
    layer->stored[i] = ol_tensor_contiguous(NULL, dtype, stored->rank, stored->shape);
}

bool rates_fit(rates_layer *layer, const rates_gates *gates, st_error *error) {
    ol_tensor stored[2], weights[2];
    ol_error reason;
    layer->projection = gates->projection;
    layer->weights = gates->weights;
    if (!fit_weights(layer, error) || !find_key_heads(layer, gates, error)) {
        return false;
    }
    int32_t n_weights = layer->n_bases;                /* found first, but they come behind the activations */
    memcpy(weights, layer->base, sizeof weights);
    layer->n_bases = 0;
    if (!(layer->projection != RATES_SEPARATE ? fit_projection(layer, stored, error)
                                              : fit_activation(layer, RATES_B, 0, &stored[0], error) &&
                                                    fit_activation(layer, RATES_A, layer->channels, &stored[1], error))) {
        return false;
    }
    memcpy(layer->base + layer->n_bases, weights, (size_t)n_weights * sizeof *weights);
    layer->n_bases += n_weights;
    if (!rates_layer_views(layer, layer->base, layer->input, &reason)) {
        return st_fail(error, "%s: tensor %.300s: %s: %s", layer->source[RATES_DT_BIAS].file->path, layer->label, reason.operation, reason.description);
    }
    const ol_gate_options *o = &layer->options;
    const ol_tensor *b = &layer->input[RATES_B], *a = &layer->input[RATES_A];
    add_result(layer, RATES_BETA, o->beta_dtype ? o->beta_dtype : o->beta_rounding ? o->beta_rounding : b->dtype, b, &stored[0]);
    if (o->output != OL_GATE_DECAY) {
        add_result(layer, RATES_LOG_DECAY, OL_FLOAT32, a, &stored[1]);
    }
    if (o->output != OL_GATE_LOG_DECAY) {
        add_result(layer, RATES_DECAY, OL_FLOAT32, a, &stored[1]);
    }
    return true;
}

/* A stored result must have the shape that the result will have, give or take axes of extent 1; heads and channels may be
 * apart or not. */
bool rates_fit_reference(const rates_layer *layer, int32_t i, st_error *error) {
    const checkpoint_tensor *reference = &layer->reference[i];
    int64_t ours[OL_MAX_RANK] = { 0 }, split[OL_MAX_RANK] = { 0 }, theirs[OL_MAX_RANK] = { 0 };
    int64_t whole[] = { layer->tokens, layer->heads, layer->channels ? layer->channels : 1 };
    char text[CLI_SHAPE_BYTES], other[CLI_SHAPE_BYTES];
    ol_tensor view = { .rank = 0 };
    bool fits = false;
    if (reference->tensor->rank <= OL_MAX_RANK) {
        view = ol_tensor_contiguous(NULL, OL_FLOAT32, reference->tensor->rank, reference->tensor->shape);
        ol_tensor apart = ol_tensor_contiguous(NULL, OL_FLOAT32, layer->result[i] == RATES_BETA ? 2 : 3, whole);
        int32_t rank = squeeze(&view, theirs);
        fits = (rank == squeeze(&layer->stored[i], ours) && memcmp(ours, theirs, sizeof ours) == 0) ||
               (rank == squeeze(&apart, split) && memcmp(split, theirs, sizeof split) == 0);
    }
    return fits || st_fail(error, SHAPED ", but the result it is compared with has shape %s", reference->file->path,
                           reference->tensor->name, cli_shape(reference->tensor->rank, reference->tensor->shape, text),
                           cli_shape(layer->stored[i].rank, layer->stored[i].shape, other));
}
