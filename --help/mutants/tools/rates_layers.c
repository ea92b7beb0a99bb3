/* See rates_layers.h. */
#include "rates_layers.h"

#include "cli.h"
#include "rates_fit.h"

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

/* What a layer's weights are called: in checkpoints of transformers, and in GGUF files, whose rate is negated already. */
static const struct naming {
    const char *rate, *bias;
    ol_gate_rate holds;
} namings[] = { { "A_log", "dt_bias", OL_GATE_RATE_LOGARITHM }, { "ssm_a", "ssm_dt.bias", OL_GATE_RATE_NEGATED } };
enum { N_NAMINGS = sizeof namings / sizeof namings[0] };

/* What activations may be called; the first is the name that messages ask for. */
static const char *const words_of_b[] = { "b", "ssm_beta", NULL }, *const words_of_a[] = { "a", "ssm_alpha", NULL },
                  *const words_of_both[] = { "ba", "in_proj_ba", "ssm_ba", NULL };

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
    bool owned = false;
    *out_of_memory |= !prefix;
    for (int i = 0; prefix && !owned && i < N_NAMINGS; i++) {
        char *bias = join(prefix, namings[i].bias);
        owned = bias && checkpoint_has(weights, bias);
        *out_of_memory |= !bias;
        free(bias);
    }
    free(prefix);
    return owned;
}

/* Finds the activation of a layer that is named by one of the words. */
static bool find_activation(const checkpoint *weights, checkpoint *activations, const rates_layer *layer, const char *const *words,
                            checkpoint_tensor *found, st_error *error) {
    bool out_of_memory = false;
    const char *candidate = NULL;
    for (int w = 0; words[w]; w++) {
        char *exact = join(layer->prefix, words[w]);
        bool is_there = exact && checkpoint_has(activations, exact), ok = is_there && checkpoint_find(activations, exact, found, error);
        out_of_memory |= !exact;
        free(exact);
        if (is_there) {
            return ok;
        }
    }
    for (int w = 0; words[w]; w++) {
        char *ending = join(separator(layer->prefix), words[w]);
        out_of_memory |= !ending;
        for (size_t i = 0; ending && i < checkpoint_count(activations); i++) {
            const char *name = checkpoint_name(activations, i);
            if (stem_length(name, ending) < 0 || layer_number(name) != layer->number ||
                has_owner(weights, name, strlen(words[w]), &out_of_memory)) {
                continue;
            }
            if (candidate) {
                free(ending);
                return st_fail(error, "%s: tensor %.300s%s: not in this file, and both %.300s and %.300s might be meant",
                               checkpoint_path(activations), layer->prefix, words[0], candidate, name);
            }
            candidate = name;
        }
        free(ending);
    }
    if (out_of_memory) {
        return st_fail(error, "%s: out of memory", checkpoint_path(activations));
    }
    return candidate ? checkpoint_find(activations, candidate, found, error)
                     : st_fail(error, "%s: tensor %.300s%s: not in this file, needed for %.300s", checkpoint_path(activations), layer->prefix,
                               words[0], layer->label);
}

/* ---- Layers ---------------------------------------------------------------------------------------------------- */

static bool fill(rates_layer *layer, checkpoint *weights, checkpoint *activations, const rates_gates *gates, st_error *error) {
    static const char *const words[RATES_OUTPUTS] = { "beta", "log_decay", "decay" };
    bool together = gates->projection != RATES_SEPARATE;
    if (!find_activation(weights, activations, layer, together ? words_of_both : words_of_b, &layer->source[RATES_B], error) ||
        (!together && !find_activation(weights, activations, layer, words_of_a, &layer->source[RATES_A], error))) {
        return false;
    }
    if (together) {
        layer->source[RATES_A] = layer->source[RATES_B];
    }
    if (!rates_fit(layer, gates, error)) {
        return false;
    }
    for (int32_t i = 0; i < layer->n_outputs; i++) {
        layer->output_name[i] = join(layer->prefix, words[layer->result[i]]);
        if (!layer->output_name[i]) {
            return st_fail(error, "%s: out of memory", checkpoint_path(weights));
        }
        if (checkpoint_has(activations, layer->output_name[i]) &&
            (!checkpoint_find(activations, layer->output_name[i], &layer->reference[i], error) || !rates_fit_reference(layer, i, error))) {
            return false;
        }
    }
    return true;
}

static int by_number(const void *left, const void *right) {
    const rates_layer *x = left, *y = right;
    return x->number != y->number ? (x->number > y->number) - (x->number < y->number) : strcmp(x->prefix, y->prefix);
}

/* Sets the layer's weights, label and options; takes the prefix. */
static bool start(rates_layer *layer, checkpoint *weights, char *prefix, const struct naming *naming, const rates_gates *gates, st_error *error) {
    bool has_rate = gates->options.kind != OL_GATE_LOWER_BOUND_PLAIN;
    *layer = (rates_layer){ .prefix = prefix, .options = gates->options };
    char *bias = join(prefix, naming->bias);
    layer->label = join(prefix, has_rate ? naming->rate : naming->bias);
    layer->number = layer->label ? layer_number(layer->label) : -1;
    if (has_rate) {
        layer->options.rate = gates->rate == RATES_RATE_BY_NAME ? naming->holds : gates->rate == RATES_RATE_NEGATED ? OL_GATE_RATE_NEGATED : OL_GATE_RATE_LOGARITHM;
    }
    bool ok = bias && layer->label ? checkpoint_find(weights, bias, &layer->source[RATES_DT_BIAS], error) &&
                                         (!has_rate || checkpoint_find(weights, layer->label, &layer->source[RATES_A_LOG], error))
                                   : st_fail(error, "%s: out of memory", checkpoint_path(weights));
    free(bias);
    return ok;
}

/* Adds the layer of a name that ends in one of the words of a naming, which must have the other one beside it, unless the gate
 * needs no rate. */
static bool add(checkpoint *weights, const char *name, const struct naming *naming, const rates_selection *selection, const rates_gates *gates,
                rates_layer *layers, size_t *n_layers, st_error *error) {
    bool has_rate = gates->options.kind != OL_GATE_LOWER_BOUND_PLAIN, is_rate = stem_length(name, naming->rate) >= 0, ok = true;
    ptrdiff_t length = stem_length(name, is_rate ? naming->rate : naming->bias);
    if (length < 0 || (is_rate && !has_rate)) {
        return true;
    }
    bool separated = length > 0 && !isalnum((unsigned char)name[length - 1]);
    char *prefix = strndup(name, (size_t)length), *bare = strndup(name, (size_t)(separated ? length - 1 : length));
    char *other = prefix ? join(prefix, is_rate || !has_rate ? naming->bias : naming->rate) : NULL;
    if (!other || !bare) {
        ok = st_fail(error, "%s: out of memory", checkpoint_path(weights));
    } else if (selected(selection, is_rate ? name : other, bare, layer_number(name))) {
        if (!checkpoint_has(weights, other)) {
            ok = st_fail(error, "%s: tensor %.300s: there is no %.300s beside it", checkpoint_path(weights), name, other);
        } else if (is_rate == has_rate) {              /* once a pair */
            ok = start(&layers[(*n_layers)++], weights, prefix, naming, gates, error);
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
        for (int k = 0; k < N_NAMINGS && layer_number(name) >= 0; k++) {
            if (stem_length(name, namings[k].bias) >= 0) {
                numbers[n++] = layer_number(name);
                break;
            }
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

bool rates_layers_find(checkpoint *weights, checkpoint *activations, const rates_selection *selection, const rates_gates *gates,
                       rates_layer **out, size_t *n_out, st_error *error) {
    size_t n_layers = 0, most = 0;
    for (size_t i = 0; i < checkpoint_count(weights); i++) {
        for (int k = 0; k < N_NAMINGS; k++) {
            most += stem_length(checkpoint_name(weights, i), namings[k].bias) >= 0;
        }
    }
    rates_layer *layers = calloc(most + 1, sizeof *layers);
    if (!layers) {
        return st_fail(error, "%s: out of memory", checkpoint_path(weights));
    }
    for (size_t i = 0; i < checkpoint_count(weights); i++) {
        for (int k = 0; k < N_NAMINGS; k++) {
            if (!add(weights, checkpoint_name(weights, i), &namings[k], selection, gates, layers, &n_layers, error)) {
                goto fail;
            }
        }
    }
    if (n_layers == 0) {
        char numbers[200];
        list_numbers(weights, numbers, sizeof numbers);
        st_fail(error, "%s: no pair of tensors named …A_log and …dt_bias, or …ssm_a and …ssm_dt.bias%s%s%s", checkpoint_path(weights),
                selection->layer >= 0 || selection->glob ? ", is selected" : "",
                selection->layer >= 0 && *numbers ? "; those there are have the layer numbers " : "",
                selection->layer >= 0 ? numbers : "");
        goto fail;
    }
    qsort(layers, n_layers, sizeof *layers, by_number);
    for (size_t i = 0; i < n_layers; i++) {
        if (!fill(&layers[i], weights, activations, gates, error)) {
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

ol_status rates_layer_compile(const rates_layer *layer, const ol_gate_options *options, ol_device *device, ol_composite **composite, ol_error *error) {
    const ol_tensor *in = layer->input;
    return ol_gated_delta_gates_compile(device, options, in[RATES_B].dtype, in[RATES_A].dtype, in[RATES_A_LOG].dtype, in[RATES_DT_BIAS].dtype, composite, error);
}

void rates_layers_free(rates_layer *layers, size_t n_layers) {
    for (size_t i = 0; i < n_layers; i++) {
        free(layers[i].prefix);
        free(layers[i].label);
        for (int which = 0; which < RATES_OUTPUTS; which++) {
            free(layers[i].output_name[which]);
        }
    }
    free(layers);
}
