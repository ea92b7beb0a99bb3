/* `onelaunch step`: decodes recorded tokens with a checkpoint's gated-delta layers, and compares with what transformers made of them.
 *
 * Layer by layer: evaluate the formulas in float64 twice (step_reference.h), run all tokens in one launch, compare its results with the recorded
 * ones; then run them in calls of fewer tokens, which must give the same bits, one launch each, and time all of it. The output file takes its
 * name after the last layer, if nothing failed. */
#include "cli.h"
#include "commands.h"
#include "step_reference.h"
#include "step_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Options --------------------------------------------------------------------------------------------------- */

enum { MOST_SPLITS = 6 };

struct options {
    const char *weights, *activations, *out, *device;
    rates_selection selection;
    step_options step;
    int64_t splits[MOST_SPLITS];                   /* tokens a call */
    int32_t n_splits, n_threads;
};

enum { KEY_TOKENS = 256, KEY_PART, KEY_STATE_DTYPE, KEY_KEY_HEADS, KEY_EPSILON };

static const struct argp_option option_table[] = {
    { "weights", 'w', "CHECKPOINT", 0, "A safetensors file, a sharded set's index, or a folder with one of these", 0 },
    { "activations", 'a', "FILE", 0, "What went into the layers and what transformers made of it (safetensors)", 0 },
    { "out", 'o', "FILE", 0, "Where to write the results, in the names of the recorded ones", 0 },
    { "layer", 'l', "N", 0, "Only the layer of this number", 0 },
    { "match", 'm', "GLOB", 0, "Only layers whose name matches, as in '*.layers.1?.linear_attn'", 0 },
    { "device", 'd', "DEVICE", 0, CLI_DEVICE_HELP, 0 },
    { "threads", 't', "N", 0, "Use at most N threads (default: one per CPU)", 0 },
    { "tokens-per-call", KEY_TOKENS, "T,...", 0, "Beside all tokens at once, calls of T tokens each (default: 1,2,8)", 0 },
    { "part", KEY_PART, "PART", 0, "mixer (default): convolution, recurrence and gated norm; step: the recurrence alone, of q, k and v as the formulas give them", 0 },
    { "state-dtype", KEY_STATE_DTYPE, "DTYPE", 0, "float32 (default), bfloat16 or float16, which are rounded at the end of each call", 0 },
    { "key-heads", KEY_KEY_HEADS, "N", 0, "The number of key heads, where no recorded state's shape says it", 0 },
    { "epsilon", KEY_EPSILON, "E", 0, "Of the gated norm: the model's rms_norm_eps (default: 1e-6)", 0 },
    { 0 },
};

/* "1,2,8" */
static bool parse_splits(const char *text, struct options *options) {
    options->n_splits = 0;
    while (options->n_splits < MOST_SPLITS) {
        char number[24];
        size_t length = strcspn(text, ",");
        if (length >= sizeof number) {
            return false;
        }
        memcpy(number, text, length);
        number[length] = 0;
        if (!cli_parse_int(number, 1, INT32_MAX, &options->splits[options->n_splits++])) {
            return false;
        }
        if (!text[length]) {
            return true;
        }
        text += length + 1;
    }
    return false;
}

static bool parse_epsilon(const char *text, double *epsilon) {
    char *end;
    *epsilon = strtod(text, &end);
    return end != text && !*end && *epsilon > 0 && *epsilon <= 1;
}

static bool parse_state_dtype(const char *text, ol_dtype *dtype) {
    return ol_dtype_parse(text, dtype) && (*dtype == OL_FLOAT32 || *dtype == OL_BFLOAT16 || *dtype == OL_FLOAT16);
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    struct options *options = state->input;
    int64_t number;
    switch (key) {
    case 'w': options->weights = argument; return 0;
    case 'a': options->activations = argument; return 0;
    case 'o': options->out = argument; return 0;
    case 'm': options->selection.glob = argument; return 0;
    case 'd': options->device = argument; return 0;
    case 'l':
        if (!cli_parse_int(argument, 0, INT32_MAX, &options->selection.layer)) {
            argp_error(state, "--layer %s: expected a number from 0 on", cli_printable(argument));
        }
        return 0;
    case 't':
        if (!cli_parse_int(argument, 1, 4096, &number)) {
            argp_error(state, "--threads %s: expected a number from 1 to 4096", cli_printable(argument));
        }
        options->n_threads = (int32_t)number;
        return 0;
    case KEY_TOKENS:
        if (!parse_splits(argument, options)) {
            argp_error(state, "--tokens-per-call %s: expected up to %d numbers from 1 on, as in 1,2,8", cli_printable(argument), MOST_SPLITS);
        }
        return 0;
    case KEY_PART:
        if (strcmp(argument, "mixer") != 0 && strcmp(argument, "step") != 0) {
            argp_error(state, "--part %s: expected mixer or step", cli_printable(argument));
        }
        options->step.part = *argument == 's' ? STEP_PART_RECURRENCE : STEP_PART_MIXER;
        return 0;
    case KEY_STATE_DTYPE:
        if (!parse_state_dtype(argument, &options->step.state_dtype)) {
            argp_error(state, "--state-dtype %s: expected float32, bfloat16 or float16", cli_printable(argument));
        }
        return 0;
    case KEY_KEY_HEADS:
        if (!cli_parse_int(argument, 1, INT32_MAX, &options->step.key_heads)) {
            argp_error(state, "--key-heads %s: expected a number from 1 on", cli_printable(argument));
        }
        return 0;
    case KEY_EPSILON:
        if (!parse_epsilon(argument, &options->step.epsilon)) {
            argp_error(state, "--epsilon %s: expected a number above 0 and at most 1", cli_printable(argument));
        }
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", cli_printable(argument));
        return 0;
    case ARGP_KEY_END:
        if (!options->weights || !options->activations) {
            argp_error(state, "--weights and --activations are needed");
        }
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- One layer ------------------------------------------------------------------------------------------------- */

/* What the runs of a layer gave. Split number n_splits is all tokens at once, whose results the others are held against. */
struct measured {
    step_difference difference[STEP_RESULTS];
    step_count count[MOST_SPLITS + 1];
    bool equal[MOST_SPLITS];                       /* has the bits of all tokens at once */
};

static const float_format *format_of(ol_dtype dtype) {
    return float_format_named(st_dtype_name(dtype));
}

/* The window holds inputs: it is right if it has their bits. */
static step_difference compare_window(const step_layer *layer, const void *ours) {
    ol_dtype dtype = layer->result[STEP_WINDOW].dtype;
    const float_format *format = format_of(dtype);
    step_difference d = { .present = true, .n = step_result_count(layer, STEP_WINDOW) };
    for (int64_t i = 0; i < d.n; i++) {
        d.n_same += float_load(format, ours, i) == float_load(format, layer->captured[STEP_WINDOW].tensor->data, i);
    }
    d.within = d.n_same == d.n;
    return d;
}

static void compare(const step_layer *layer, const step_results *results, const step_values *exact, const step_values *rounded, struct measured *measured) {
    const ol_gated_delta_options *o = &layer->options.recurrence;
    for (int i = 0; i < STEP_WINDOW; i++) {
        const checkpoint_tensor *captured = &layer->captured[i];
        if (captured->tensor) {
            step_compare(format_of(o->activation_dtype), format_of(layer->result[i].dtype), results->data[i], float_format_named(captured->tensor->dtype_name),
                         captured->tensor->data, exact->result[i], rounded->result[i], step_result_count(layer, (enum step_result)i),
                         i == STEP_STATE ? (int64_t)o->key_dim * o->value_dim : o->value_dim, &measured->difference[i]);
        }
    }
    if (layer->captured[STEP_WINDOW].tensor) {
        measured->difference[STEP_WINDOW] = compare_window(layer, results->data[STEP_WINDOW]);
    }
}

/* All tokens at once into results, then each split, compared with it. */
static bool run_splits(step_machine *machine, const step_layer *layer, const struct options *options, const step_results *results, const step_results *others,
                       struct measured *measured, st_error *error) {
    int64_t tokens = layer->rates->tokens;
    bool ok = step_machine_run(machine, tokens, results, &measured->count[options->n_splits], error) &&
              step_machine_time(machine, tokens, &measured->count[options->n_splits], error);
    for (int32_t i = 0; ok && i < options->n_splits; i++) {
        ok = step_machine_run(machine, options->splits[i], others, &measured->count[i], error);
        measured->equal[i] = ok && step_results_equal(layer, results, others);
        ok = ok && step_machine_time(machine, options->splits[i], &measured->count[i], error);
    }
    return ok;
}

static bool run_layer(ol_device *device, const step_layer *layer, const struct options *options, step_results *results, struct measured *measured, st_error *error) {
    step_values exact = { 0 }, rounded = { 0 };
    step_results others = { 0 };
    step_machine *machine = NULL;
    bool ok = (step_evaluate(layer, false, &exact) && step_evaluate(layer, true, &rounded) && step_results_make(layer, options->step.part, results) &&
               step_results_make(layer, options->step.part, &others)) ||
              st_fail(error, "tensor %.300s: out of memory for the results", layer->rates->label);
    ok = ok && step_machine_make(device, layer, options->step.part, rounded.convolved, &machine, error) &&
         run_splits(machine, layer, options, results, &others, measured, error);
    if (ok) {
        compare(layer, results, &exact, &rounded, measured);
    }
    step_machine_free(machine);
    step_results_free(&others);
    step_values_free(&exact);
    step_values_free(&rounded);
    return ok;
}

/* ---- Tables ---------------------------------------------------------------------------------------------------- */

/* A distance in seven columns. */
static const char *seven(double x, char buffer[16]) {
    snprintf(buffer, 16, x == 0 ? "%7.0f" : x < 0.001 || x >= 99999.5 ? "%7.0e" : x < 9.9995 ? "%7.4f" : x < 999.95 ? "%7.2f" : "%7.0f", x);
    return buffer;
}

static const char *number_of(const step_layer *layer, char buffer[24]) {
    snprintf(buffer, 24, layer->rates->number >= 0 ? "%" PRId64 : "-", layer->rates->number);
    return buffer;
}

static void print_difference(const step_layer *layer, enum step_result result, const step_difference *d) {
    char number[24], text[7][16];
    bool all = d->n_same == d->n;
    /* Two decimals, which must not round up to all. */
    double percent = d->n > 0 ? floor(10000.0 * (double)d->n_same / (double)d->n) / 100 : 100;
    printf(all ? "%5s %-6s %9" PRId64 "    all" : "%5s %-6s %9" PRId64 " %5.2f%%", number_of(layer, number), step_result_word(result), d->n, percent);
    if (result == STEP_WINDOW) {
        printf("%*s%s\n", 65, "", d->within ? "equal" : "DIFFERS");
        return;
    }
    printf("  %s %s  %s %s  %s %s %s  %s\n", seven(d->ours.rms, text[0]), seven(d->ours.max, text[1]), seven(d->theirs.rms, text[2]), seven(d->theirs.max, text[3]),
           seven(d->noise.rms, text[4]), seven(d->noise.max, text[5]), seven(d->worst, text[6]), d->n_not_finite ? "NOT FINITE" : d->within ? "within" : "BEYOND");
    if (d->n_not_finite) {
        printf("      %" PRId64 " values are infinite or NaN, here or there or by the formulas\n", d->n_not_finite);
    } else if (!d->within && d->theirs.rms > 2 * d->noise.rms) {
        printf("      what was recorded is farther from the formulas than rounding explains: of other weights, inputs or epsilon?\n");
    }
}

static void print_layer(const step_layer *layer, const struct measured *measured, bool named) {
    if (named) {
        cli_put(stdout, *layer->rates->prefix ? layer->rates->prefix : "(no prefix)");
        putchar('\n');
    }
    for (int i = 0; i < STEP_RESULTS; i++) {
        if (measured->difference[i].present) {
            print_difference(layer, (enum step_result)i, &measured->difference[i]);
        }
    }
    cli_sync();                    /* whoever reads along sees each layer when it is done */
}

static void print_heading(ol_device *device, const struct options *options, const step_layer *layer) {
    const ol_gated_delta_options *o = &layer->options.recurrence;
    const char *dtype = ol_dtype_name(o->activation_dtype);
    printf("%s (%s), %s\n", ol_device_name(device), ol_device_level(device),
           options->step.part == STEP_PART_MIXER ? "mixer: convolution, recurrence and gated norm in one launch" : "step: the recurrence");
    printf("%d key heads of %d, %d value heads of %d, convolution of %d, %s, state %s, %" PRId64 " tokens\n\n", o->key_heads, o->key_dim, o->value_heads, o->value_dim,
           layer->options.width, dtype, ol_dtype_name(o->state_dtype), layer->rates->tokens);
    printf("Distances in spacings of %s at the value, or at its head's root mean square if that is larger:\n", dtype);
    printf("                              onelaunch from  transformers from         noise of\n"
           "                                transformers            float64         rounding\n"
           "layer what      values  equal    rms     max      rms     max      rms     max   worst\n");
}

/* "        1" … "   all 96". */
static void print_times_heading(const struct options *options, int64_t tokens) {
    char text[40];
    printf("\nCalls of so many tokens: nanoseconds a token; launches a call; are bits those of all at once?\nlayer");
    for (int32_t i = 0; i < options->n_splits; i++) {
        printf(" %9" PRId64, options->splits[i]);
    }
    snprintf(text, sizeof text, "all %" PRId64, tokens);
    printf(" %9s  launches  same bits\n", text);
}

static void print_times(const struct options *options, const step_layer *layer, const struct measured *measured) {
    char number[24];
    uint64_t calls = 0, launches = 0;
    bool equal = true;
    printf("%5s", number_of(layer, number));
    for (int32_t i = 0; i <= options->n_splits; i++) {
        printf(" %9.0f", 1e9 * measured->count[i].seconds_per_token);
        calls += measured->count[i].calls;
        launches += measured->count[i].launches;
        equal = equal && (i == options->n_splits || measured->equal[i]);
    }
    printf(calls == launches ? "  %8.0f  %9s\n" : "  %8.3f  %9s\n", (double)launches / (double)calls, equal ? "yes" : layer->options.recurrence.state_dtype == OL_FLOAT32 ? "NO" : "no");
}

/* ---- The command ----------------------------------------------------------------------------------------------- */

struct job {
    const char *command;
    struct options options;
    checkpoint *weights, *activations;
    rates_layer *rates;
    step_layer *layers;
    size_t n_layers;
    struct measured *measured;
    ol_device *device;
    st_writer *writer;
    cli_progress progress;
};

/* Layers are told apart by number; where that does not do, by name. */
static bool needs_names(const struct job *job) {
    for (size_t i = 0; i < job->n_layers; i++) {
        if (job->rates[i].number < 0 || (i > 0 && job->rates[i].number == job->rates[i - 1].number)) {
            return true;
        }
    }
    return false;
}

/* The output must not be one of the inputs: replacing those is never what was meant. */
static bool check_out(const struct job *job, st_error *error) {
    struct stat status;
    if (job->options.out && stat(job->options.out, &status) == 0 &&
        (checkpoint_holds_file(job->weights, status.st_dev, status.st_ino) || checkpoint_holds_file(job->activations, status.st_dev, status.st_ino))) {
        return st_fail(error, "%s: is also an input; name another file for --out", job->options.out);
    }
    return true;
}

/* Opens and checks everything: what can be refused is refused before anything is computed or created. */
static bool prepare(struct job *job, st_error *error) {
    rates_gates gates = { .options.sum = OL_GATE_SUM_FLOAT32 };
    if (!checkpoint_open(job->options.weights, &job->weights, error) || !checkpoint_open(job->options.activations, &job->activations, error) ||
        !rates_layers_find(job->weights, job->activations, &job->options.selection, &gates, &job->rates, &job->n_layers, error) ||
        !step_layers_make(job->weights, job->activations, job->rates, job->n_layers, &job->options.step, &job->layers, error) || !check_out(job, error)) {
        return false;
    }
    job->measured = calloc(job->n_layers, sizeof *job->measured);
    return job->measured || st_fail(error, "out of memory for %zu layers", job->n_layers);
}

/* In the recorded tensor's shape, so that `onelaunch compare` takes the two files as they are. */
static ol_tensor stored_shape(const step_layer *layer, int result) {
    ol_tensor stored = layer->result[result];
    const checkpoint_tensor *captured = &layer->captured[result];
    return captured->tensor ? ol_tensor_contiguous(NULL, stored.dtype, captured->tensor->rank, captured->tensor->shape) : stored;
}

static bool begin_output(struct job *job, st_error *error) {
    char producer[64];
    size_t n = 0;
    if (!job->options.out) {
        return true;
    }
    st_entry *entries = calloc(job->n_layers * STEP_RESULTS, sizeof *entries);
    if (!entries) {
        return st_fail(error, "out of memory for %zu layers", job->n_layers);
    }
    for (size_t i = 0; i < job->n_layers; i++) {
        for (int k = 0; k < STEP_RESULTS; k++) {
            if (step_computes(&job->options.step, (enum step_result)k)) {
                entries[n++] = (st_entry){ .name = job->layers[i].name[k], .tensor = stored_shape(&job->layers[i], k) };
            }
        }
    }
    snprintf(producer, sizeof producer, "onelaunch %s", ol_version());
    bool ok = st_writer_begin(job->options.out, entries, n, producer, &job->writer, error);
    free(entries);
    return ok;
}

static bool put_results(struct job *job, size_t layer, const step_results *results, st_error *error) {
    size_t n = 0, each = job->options.step.part == STEP_PART_MIXER ? STEP_RESULTS : 2;
    bool ok = true;
    for (int k = 0; ok && job->writer && k < STEP_RESULTS; k++) {
        if (results->data[k]) {
            ok = st_writer_put(job->writer, layer * each + n++, results->data[k], error);
        }
    }
    return ok;
}

static bool do_layer(struct job *job, size_t index, bool named, st_error *error) {
    const step_layer *layer = &job->layers[index];
    step_results results = { 0 };
    bool ok = run_layer(job->device, layer, &job->options, &results, &job->measured[index], error);
    if (ok) {
        cli_progress_clear(&job->progress);
        if (index == 0) {
            print_heading(job->device, &job->options, layer);
        }
        print_layer(layer, &job->measured[index], named);
        ok = put_results(job, index, &results, error);
    }
    step_results_free(&results);
    return ok;
}

/* Counts of layers that break a promise. */
struct verdict {
    size_t n_beyond, n_unequal, n_launches;
};

static struct verdict judge(const struct job *job) {
    struct verdict verdict = { 0 };
    for (size_t i = 0; i < job->n_layers; i++) {
        const struct measured *m = &job->measured[i];
        bool beyond = false, unequal = false, launches = false;
        for (int k = 0; k < STEP_RESULTS; k++) {
            beyond |= m->difference[k].present && !m->difference[k].within;
        }
        for (int32_t k = 0; k <= job->options.n_splits; k++) {
            launches |= m->count[k].launches != m->count[k].calls;
            unequal |= k < job->options.n_splits && !m->equal[k] && job->options.step.state_dtype == OL_FLOAT32;
        }
        verdict.n_beyond += beyond;
        verdict.n_unequal += unequal;
        verdict.n_launches += launches;
    }
    return verdict;
}

static int finish(struct job *job) {
    st_error error;
    struct verdict verdict = judge(job);
    bool is_wide = job->options.step.state_dtype == OL_FLOAT32;
    print_times_heading(&job->options, job->rates[0].tokens);
    for (size_t i = 0; i < job->n_layers; i++) {
        print_times(&job->options, &job->layers[i], &job->measured[i]);
    }
    if (!is_wide) {
        printf("A %s state is rounded at the end of each call, so that other calls may give other bits.\n", ol_dtype_name(job->options.step.state_dtype));
    }
    if (verdict.n_beyond + verdict.n_unequal + verdict.n_launches > 0) {
        cli_error(job->command,
                  "of %zu layers, %zu are not within the noise of rounding, %zu have other bits in other calls, %zu take another number of launches than 1 a call%s", job->n_layers,
                  verdict.n_beyond, verdict.n_unequal, verdict.n_launches, job->writer ? "; nothing was written" : "");
        return CLI_MISS;
    }
    if (job->writer && !st_writer_commit(job->writer, &error)) {
        job->writer = NULL;
        cli_error(job->command, "%s", error.text);
        return CLI_MISS;
    }
    printf("\n%zu layer%s, within the noise of rounding; one launch a call%s", job->n_layers, job->n_layers == 1 ? "" : "s", is_wide ? ", the same bits in calls of any length" : "");
    if (job->writer) {
        job->writer = NULL;
        printf("; ");
        cli_put(stdout, job->options.out);
        printf(" written");
    }
    printf("\n");
    return CLI_OK;
}

static int run(struct job *job) {
    st_error error;
    if (!prepare(job, &error)) {
        cli_error(job->command, "%s", error.text);
        return CLI_USAGE;
    }
    if (!cli_device(job->command, job->options.device, job->options.n_threads, &job->device)) {
        return CLI_USAGE;
    }
    if (!begin_output(job, &error)) {
        cli_error(job->command, "%s", error.text);
        return CLI_MISS;
    }
    bool named = needs_names(job);
    cli_progress_begin(&job->progress);
    for (size_t i = 0; i < job->n_layers; i++) {
        cli_progress_show(&job->progress, (int64_t)i, (int64_t)job->n_layers, job->rates[i].prefix);
        if (!do_layer(job, i, named, &error)) {
            cli_progress_clear(&job->progress);
            cli_error(job->command, "%s", error.text);
            return CLI_MISS;
        }
    }
    return finish(job);
}

int cmd_step(int argc, char **argv) {
    static const struct argp argp = {
        .options = option_table,
        .parser = parse,
        .doc = "Decodes recorded tokens with the gated-delta layers of a checkpoint, and compares with what transformers made of them."
               "\vA layer is a set of tensors PREFIX.A_log, dt_bias, conv1d.weight and norm.weight with activations PREFIX.a, b and qkvz (or qkv and z), and "
               "the results PREFIX.core, output, state and window: before the gated norm, after it, and what is carried on after the last token. "
               "Output (with --part step: core) is needed, the others are compared where they are there. "
               "A result is within the noise of rounding if it is no farther from transformers' than the formulas with transformers' roundings are from the "
               "formulas without: in the root mean square, and head by head.",
    };
    struct job job = { .command = argv[0],
                       .options = { .selection.layer = -1, .step = { .state_dtype = OL_FLOAT32, .epsilon = 1e-6 }, .splits = { 1, 2, 8 }, .n_splits = 3 } };
    if (!cli_arguments(&argp, argc, argv, &job.options)) {
        return CLI_USAGE;
    }
    int code = run(&job);
    st_writer_abort(job.writer);
    ol_device_destroy(job.device);
    free(job.measured);
    step_layers_free(job.layers, job.n_layers);
    rates_layers_free(job.rates, job.n_layers);
    checkpoint_close(job.activations);
    checkpoint_close(job.weights);
    return code;
}
