/* See rates_layers.h. */
#include "rates_layers.h"

#include "cli.h"

#include <ctype.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names ----------------------------------------------------------------------------------------------------- */

/* The length of name without this ending, or -1 where it does not end so. */
static ptrdiff_t stem_length(const char *name, const char *ending) {
    size_t length = strlen(name), n = strlen(ending);
    return length >= n && strcmp(name + length - n, ending) == 0 ? (ptrdiff_t)(length - n) : -1;
}

static char *join(const char *prefix, const char *ending) {
    char *name = NULL;
    return asprintf(&name, "%s%s", prefix, ending) < 0 ? NULL : name;
}

/* N of "layers.N." and its like; -1 where there is none. */
static int64_t layer_number(const char *name) {
    static const char *const words[] = { "layers", "layer", "blk", "blocks", "block", "h" };
    for (const char *part = name; *part; part += strcspn(part, "./_"), part += *part != 0) {
        size_t length = strcspn(part, "./_");
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            if (strlen(words[i]) == length && memcmp(part, words[i], length) == 0 && part[length] &&
                isdigit((unsigned char)part[length + 1])) {
                char *end;
                long long number = strtoll(part + length + 1, &end, 10);
                if (!*end || strchr("./_", *end)) {
                    return number;
                }
            }
        }
    }
    return -1;
}

/* `bare` is the prefix without its separator, which nobody writes in a glob. */
static bool selected(const rates_selection *selection, const char *a_log, const char *bare, int64_t number) {
    if (selection->layer >= 0 && number != selection->layer) {
        return false;
    }
    return !selection->glob || fnmatch(selection->glob, a_log, 0) == 0 || fnmatch(selection->glob, bare, 0) == 0;
}

/* The separator before the last word of names with this prefix: "." of "layers.0.", "." where the prefix is empty. */
static const char *separator(const char *prefix) {
    size_t length = strlen(prefix);
    return length && !isalnum((unsigned char)prefix[length - 1]) ? prefix + length - 1 : ".";
}

/* Whether an activation belongs to another layer by its very name. */
static bool has_owner(const checkpoint *weights, const char *activation, size_t ending_length, bool *out_of_memory) {
    char *prefix = strndup(activation, strlen(activation) - ending_length);
    char *a_log = prefix ? join(prefix, "A_log") : NULL;
    bool owned = a_log && checkpoint_has(weights, a_log);
    *out_of_memory |= !a_log;
    free(a_log);
    free(prefix);
    return owned;
}

/* Finds the activation named `word` ("a" or "b") of a layer. */
static bool find_activation(const checkpoint *weights, checkpoint *activations, const rates_layer *layer, const char *word,
                            checkpoint_tensor *found, st_error *error) {
    bool ok = false, out_of_memory = false;
    const char *candidate = NULL;
    char *exact = join(layer->prefix, word), *ending = join(separator(layer->prefix), word);
    if (!exact || !ending) {
        st_fail(error, "%s: out of memory", checkpoint_path(activations));
        goto done;
    }
    if (checkpoint_has(activations, exact)) {
        ok = checkpoint_find(activations, exact, found, error);
        goto done;
    }
    for (size_t i = 0; i < checkpoint_count(activations); i++) {
        const char *name = checkpoint_name(activations, i);
        if (stem_length(name, ending) < 0 || layer_number(name) != layer->number ||
            has_owner(weights, name, strlen(word), &out_of_memory)) {
            continue;
        }
        if (candidate) {
            st_fail(error, "%s: tensor %.300s: not in this file, and both %.300s and %.300s might be meant",
                    checkpoint_path(activations), exact, candidate, name);
            goto done;
        }
        candidate = name;
    }
    if (candidate && !out_of_memory) {
        ok = checkpoint_find(activations, candidate, found, error);
    } else {
        st_fail(error, "%s: tensor %.300s: not in this file, needed for %.300sA_log", checkpoint_path(activations), exact,
                layer->prefix);
    }
done:
    free(exact);
    free(ending);
    return ok;
}

/* ---- Shapes ---------------------------------------------------------------------------------------------------- */

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

/* Heads from A_log ([heads], [1, 1, heads, 1] …), channels from dt_bias ([heads], [heads, channels], [heads * channels]). */
static bool fit_weights(rates_layer *layer, st_error *error) {
    const checkpoint_tensor *a_log = &layer->source[RATES_A_LOG], *dt_bias = &layer->source[RATES_DT_BIAS];
    ol_tensor views[2];
    int64_t shape[OL_MAX_RANK] = { 0 };
    char text[2][CLI_SHAPE_BYTES];
    if (!float_view(a_log, &views[0], error) || !float_view(dt_bias, &views[1], error)) {
        return false;
    }
    cli_shape(views[0].rank, views[0].shape, text[0]);
    cli_shape(views[1].rank, views[1].shape, text[1]);
    layer->heads = a_log->tensor->n_elements;
    if (squeeze(&views[0], shape) > 1 || layer->heads == 0) {
        return st_fail(error, SHAPED ", expected one value a head", a_log->file->path, a_log->tensor->name, text[0]);
    }
    int32_t rank = squeeze(&views[1], shape);
    int64_t n = dt_bias->tensor->n_elements, heads = layer->heads;
    bool flat = rank <= 1, paired = rank == 2 && shape[0] == heads;
    if (n == 0 || n % heads != 0 || (!flat && !paired)) {
        return st_fail(error, SHAPED " does not fit the %" PRId64 " heads of %.300s, shape %s", dt_bias->file->path,
                       dt_bias->tensor->name, text[1], heads, a_log->tensor->name, text[0]);
    }
    layer->channels = n == heads ? 0 : n / heads;
    layer->input[RATES_A_LOG] =
        ol_tensor_contiguous(views[0].data, views[0].dtype, layer->channels ? 2 : 1, (int64_t[]){ heads, 1 });
    layer->input[RATES_DT_BIAS] =
        ol_tensor_contiguous(views[1].data, views[1].dtype, layer->channels ? 2 : 1, (int64_t[]){ heads, layer->channels });
    return true;
}

/* Whether the last axes of a shape are heads (and channels), apart or as one axis. channels 0: none. */
static bool ends_in(const ol_tensor *view, int64_t heads, int64_t channels) {
    int64_t last = view->rank > 0 ? view->shape[view->rank - 1] : 1;
    int64_t second = view->rank > 1 ? view->shape[view->rank - 2] : 1;
    int64_t each = channels ? channels : 1;
    return last == heads * each || (second == heads && last == each);
}

static bool fit_activation(rates_layer *layer, enum rates_input which, int64_t channels, st_error *error) {
    const checkpoint_tensor *source = &layer->source[which], *a_log = &layer->source[RATES_A_LOG];
    enum rates_output result = which == RATES_B ? RATES_BETA : RATES_DECAY;
    char text[CLI_SHAPE_BYTES], other[CLI_SHAPE_BYTES];
    ol_tensor view;
    if (!float_view(source, &view, error)) {
        return false;
    }
    if (!ends_in(&view, layer->heads, channels)) {
        cli_shape(a_log->tensor->rank, a_log->tensor->shape, other);
        cli_shape(view.rank, view.shape, text);
        return channels
                   ? st_fail(error,
                             SHAPED " does not end in %" PRId64 " heads of %" PRId64
                                    " channels, as %.300s, shape %s, and dt_bias have",
                             source->file->path, source->tensor->name, text, layer->heads, channels, a_log->tensor->name, other)
                   : st_fail(error, SHAPED " does not end in %" PRId64 " heads, as %.300s, shape %s, has", source->file->path,
                             source->tensor->name, text, layer->heads, a_log->tensor->name, other);
    }
    int64_t tokens = source->tensor->n_elements / (layer->heads * (channels ? channels : 1));
    if (which == RATES_A) {
        const checkpoint_tensor *b = &layer->source[RATES_B];
        if (tokens != layer->tokens) {
            cli_shape(b->tensor->rank, b->tensor->shape, other);
            cli_shape(view.rank, view.shape, text);
            return st_fail(error, SHAPED " has %" PRId64 " tokens, but %.300s, shape %s, has %" PRId64, source->file->path,
                        source->tensor->name, text, tokens, b->tensor->name, other, layer->tokens);
        }
    }
    layer->tokens = tokens;
    int64_t shape[3] = { tokens, layer->heads, channels };
    int32_t rank = channels ? 3 : 2;
    layer->input[which] = ol_tensor_contiguous(view.data, view.dtype, rank, shape);
    ol_dtype dtype = which == RATES_B ? view.dtype : OL_FLOAT32;
    layer->output[result] = ol_tensor_contiguous(NULL, dtype, rank, shape);
    layer->stored[result] = ol_tensor_contiguous(NULL, dtype, view.rank, view.shape);
    return true;
}

/* A stored result must have the shape that the result will have, give or take axes of extent 1; heads and channels may be
 * apart or not. */
static bool fit_reference(const rates_layer *layer, enum rates_output which, st_error *error) {
    const checkpoint_tensor *reference = &layer->reference[which];
    int64_t ours[OL_MAX_RANK] = { 0 }, split[OL_MAX_RANK] = { 0 }, theirs[OL_MAX_RANK] = { 0 };
    char text[CLI_SHAPE_BYTES], other[CLI_SHAPE_BYTES];
    ol_tensor view = { .rank = 0 };
    bool fits = false;
    if (reference->tensor->rank <= OL_MAX_RANK) {
        view = ol_tensor_contiguous(NULL, OL_FLOAT32, reference->tensor->rank, reference->tensor->shape);
        int32_t rank = squeeze(&view, theirs);
        fits = (rank == squeeze(&layer->stored[which], ours) && memcmp(ours, theirs, sizeof ours) == 0) ||
               (rank == squeeze(&layer->output[which], split) && memcmp(split, theirs, sizeof split) == 0);
    }
    return fits || st_fail(error, SHAPED ", but the result it is compared with has shape %s", reference->file->path,
                           reference->tensor->name, cli_shape(reference->tensor->rank, reference->tensor->shape, text),
                           cli_shape(layer->stored[which].rank, layer->stored[which].shape, other));
}

/* ---- Layers ---------------------------------------------------------------------------------------------------- */

static bool fill(rates_layer *layer, checkpoint *weights, checkpoint *activations, st_error *error) {
    static const char *const words[RATES_OUTPUTS] = { "beta", "decay" };
    char *a_log = join(layer->prefix, "A_log"), *dt_bias = join(layer->prefix, "dt_bias");
    bool named = a_log && dt_bias;
    bool found = named && checkpoint_find(weights, a_log, &layer->source[RATES_A_LOG], error) &&
                 checkpoint_find(weights, dt_bias, &layer->source[RATES_DT_BIAS], error);
    free(a_log);
    free(dt_bias);
    if (!named) {
        return st_fail(error, "%s: out of memory", checkpoint_path(weights));
    }
    if (!found || !find_activation(weights, activations, layer, "b", &layer->source[RATES_B], error) ||
        !find_activation(weights, activations, layer, "a", &layer->source[RATES_A], error) || !fit_weights(layer, error) ||
        !fit_activation(layer, RATES_B, 0, error) || !fit_activation(layer, RATES_A, layer->channels, error)) {
        return false;
    }
    for (int which = 0; which < RATES_OUTPUTS; which++) {
        layer->output_name[which] = join(layer->prefix, words[which]);
        if (!layer->output_name[which]) {
            return st_fail(error, "%s: out of memory", checkpoint_path(weights));
        }
        if (checkpoint_has(activations, layer->output_name[which]) &&
            (!checkpoint_find(activations, layer->output_name[which], &layer->reference[which], error) ||
             !fit_reference(layer, which, error))) {
            return false;
        }
    }
    return true;
}

static int by_number(const void *left, const void *right) {
    const rates_layer *x = left, *y = right;
    return x->number != y->number ? (x->number > y->number) - (x->number < y->number) : strcmp(x->prefix, y->prefix);
}

/* Adds the layer of a name that ends in A_log or dt_bias, which must have the other one beside it. */
static bool add(const checkpoint *weights, const char *name, const rates_selection *selection, rates_layer *layers,
                size_t *n_layers, st_error *error) {
    bool is_a_log = stem_length(name, "A_log") >= 0, ok = true;
    ptrdiff_t length = is_a_log ? stem_length(name, "A_log") : stem_length(name, "dt_bias");
    if (length < 0) {
        return true;
    }
    bool separated = length > 0 && !isalnum((unsigned char)name[length - 1]);
    char *prefix = strndup(name, (size_t)length), *bare = strndup(name, (size_t)(separated ? length - 1 : length));
    char *other = prefix ? join(prefix, is_a_log ? "dt_bias" : "A_log") : NULL;
    int64_t number = layer_number(name);
    if (!other || !bare) {
        ok = st_fail(error, "%s: out of memory", checkpoint_path(weights));
    } else if (selected(selection, is_a_log ? name : other, bare, number)) {
        if (!checkpoint_has(weights, other)) {
            ok = st_fail(error, "%s: tensor %.300s: there is no %.300s beside it", checkpoint_path(weights), name, other);
        } else if (is_a_log) {
            layers[(*n_layers)++] = (rates_layer){ .prefix = prefix, .number = number };
            prefix = NULL;
        }
    }
    free(prefix);
    free(bare);
    free(other);
    return ok;
}

static int by_value(const void *left, const void *right) {
    int64_t x = *(const int64_t *)left, y = *(const int64_t *)right;
    return (x > y) - (x < y);
}

/* "0, 1, 2 …": the lowest numbers of layers. Empty where there are none. */
static void list_numbers(const checkpoint *weights, char *text, size_t n_bytes) {
    enum { SHOWN = 8 };
    size_t n = 0, shown = 0, used = 0;
    int64_t *numbers = calloc(checkpoint_count(weights) + 1, sizeof *numbers);
    text[0] = 0;
    for (size_t i = 0; numbers && i < checkpoint_count(weights); i++) {
        const char *name = checkpoint_name(weights, i);
        if (stem_length(name, "A_log") >= 0 && layer_number(name) >= 0) {
            numbers[n++] = layer_number(name);
        }
    }
    if (n > 0) {
        qsort(numbers, n, sizeof *numbers, by_value);
    }
    for (size_t i = 0; i < n && used < n_bytes; i++) {
        if (i > 0 && numbers[i] == numbers[i - 1]) {
            continue;
        }
        if (shown++ == SHOWN) {
            snprintf(text + used, n_bytes - used, " …");
            break;
        }
        used += (size_t)snprintf(text + used, n_bytes - used, "%s%" PRId64, used ? ", " : "", numbers[i]);
    }
    free(numbers);
}

bool rates_layers_find(checkpoint *weights, checkpoint *activations, const rates_selection *selection, rates_layer **out,
                       size_t *n_out, st_error *error) {
    size_t n_layers = 0, most = 0;
    for (size_t i = 0; i < checkpoint_count(weights); i++) {
        most += stem_length(checkpoint_name(weights, i), "A_log") >= 0;
    }
    rates_layer *layers = calloc(most + 1, sizeof *layers);
    if (!layers) {
        return st_fail(error, "%s: out of memory", checkpoint_path(weights));
    }
    for (size_t i = 0; i < checkpoint_count(weights); i++) {
        if (!add(weights, checkpoint_name(weights, i), selection, layers, &n_layers, error)) {
            goto fail;
        }
    }
    if (n_layers == 0) {
        char numbers[200];
        list_numbers(weights, numbers, sizeof numbers);
        st_fail(error, "%s: no pair of tensors named …A_log and …dt_bias%s%s%s", checkpoint_path(weights),
                selection->layer >= 0 || selection->glob ? " is selected" : "",
                selection->layer >= 0 && *numbers ? "; those there are have the layer numbers " : "",
                selection->layer >= 0 ? numbers : "");
        goto fail;
    }
    qsort(layers, n_layers, sizeof *layers, by_number);
    for (size_t i = 0; i < n_layers; i++) {
        if (!fill(&layers[i], weights, activations, error)) {
            goto fail;
        }
    }
    *out = layers;
    *n_out = n_layers;
    return true;
fail:
    rates_layers_free(layers, n_layers);
    return false;
}

void rates_layers_free(rates_layer *layers, size_t n_layers) {
    for (size_t i = 0; i < n_layers; i++) {
        free(layers[i].prefix);
        for (int which = 0; which < RATES_OUTPUTS; which++) {
            free(layers[i].output_name[which]);
        }
    }
    free(layers);
}
