/* `onelaunch rates`: the gated-delta gates (update rates and decay) of a checkpoint's layers, from recorded gating inputs.
 *
 * Layer by layer: compile for the layer's dtypes, replay once and count the launch, run the composed path and compare every
 * bit, time the replay, compare with stored results, hand both results to the writer. Only one layer's results are in memory at
 * a time, and the output file takes its name after the last layer, if nothing failed. */
#include "cli.h"
#include "commands.h"
#include "device_memory.h"
#include "floats.h"
#include "gguf.h"
#include "rates_layers.h"
#include "rates_reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Options --------------------------------------------------------------------------------------------------- */

struct options {
    const char *weights, *activations, *out, *device;
    rates_selection selection;
    rates_gates gates;
    int32_t n_threads;
    bool composed, no_verify;
};

enum { KEY_COMPOSED = 256, KEY_NO_VERIFY };

static const struct argp_option option_table[] = {
    { "weights", 'w', "CHECKPOINT", 0, "A safetensors or GGUF file, a sharded set's index, or a folder with one of these", 0 },
    { "activations", 'a', "FILE", 0, "The gating inputs a and b of the layers (safetensors or GGUF)", 0 },
    { "out", 'o', "FILE", 0, "Where to write the update rates (beta) and the decay (decay, log_decay)", 0 },
    { "layer", 'l', "N", 0, "Only the layer of this number", 0 },
    { "match", 'm', "GLOB", 0, "Only layers whose name matches, as in '*.layers.1?.linear_attn'", 0 },
    { "device", 'd', "DEVICE", 0, CLI_DEVICE_HELP, 0 },
    { "threads", 't', "N", 0, "Use at most N threads (default: one per CPU)", 0 },
    { "composed", KEY_COMPOSED, NULL, 0, "Write and time the composed path, one launch per primitive", 0 },
    { "no-verify", KEY_NO_VERIFY, NULL, 0, "Do not compare replay and composed path", 0 },
    { 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state) {
    struct options *options = state->input;
    int64_t number;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &options->gates; return 0;
    case 'w': options->weights = argument; return 0;
    case 'a': options->activations = argument; return 0;
    case 'o': options->out = argument; return 0;
    case 'm': options->selection.glob = argument; return 0;
    case 'd': options->device = argument; return 0;
    case KEY_COMPOSED: options->composed = true; return 0;
    case KEY_NO_VERIFY: options->no_verify = true; return 0;
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
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", cli_printable(argument));
        return 0;
    case ARGP_KEY_END:
        if (!options->weights || !options->activations || !options->out) {
            argp_error(state, "--weights, --activations and --out are needed");
        }
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- One layer ------------------------------------------------------------------------------------------------- */

typedef ol_status (*run_function)(const ol_composite *, ol_stream, const ol_tensor *, const ol_tensor *, ol_error *);

/* What one run of a layer gave; the row of the table. */
struct measured {
    uint64_t launches;
    double elements_per_second;
    bool equal;                        /* replay and composed path have the same bits */
    float_summary summary[RATES_OUTPUTS];
};

struct results {
    ol_tensor outputs[RATES_OUTPUTS];  /* in the host's memory */
    ol_tensor mirrors[RATES_OUTPUTS];  /* where the device computes */
    size_t n_bytes[RATES_OUTPUTS];
    int32_t n;                         /* the layer's n_outputs */
};

static void results_free(struct results *results) {
    for (int32_t which = 0; which < results->n; which++) {
        free(results->outputs[which].data);
        results->outputs[which].data = NULL;
    }
}

static bool results_allocate(const rates_layer *layer, struct results *results) {
    bool ok = true;
    results->n = layer->n_outputs;
    for (int32_t which = 0; which < results->n; which++) {
        const ol_tensor *output = &layer->output[which];
        size_t n_bytes = ol_dtype_size(output->dtype);
        for (int32_t axis = 0; axis < output->rank; axis++) {
            ok = ok && !__builtin_mul_overflow(n_bytes, (size_t)output->shape[axis], &n_bytes) && n_bytes < PTRDIFF_MAX - 64;
        }
        results->outputs[which] = *output;
        results->n_bytes[which] = n_bytes;
        results->outputs[which].data = ok ? aligned_alloc(64, n_bytes / 64 * 64 + 64) : NULL;
        ok = ok && results->outputs[which].data;
    }
    if (!ok) {
        results_free(results);
    }
    return ok;
}

/* Elements of the decay over the best time of a few runs. Short runs are timed in groups, since a clock ticks in tens of
 * nanoseconds; and on a GPU for a group's end to be waited for, not each run's. */
static double measure_rate(ol_device *device, const ol_composite *composite, run_function run, const rates_layer *layer,
                           const ol_tensor *inputs, const struct results *results) {
    double best = INFINITY, first, begin = cli_seconds(), shortest = device_has_memory(device) ? 500e-6 : 20e-6;
    run(composite, NULL, inputs, results->mirrors, NULL);
    ol_stream_synchronize(device, NULL, NULL);
    first = cli_seconds() - begin;
    int64_t group = first < shortest ? (int64_t)(shortest / (first > 1e-7 ? first : 1e-7)) : 1;
    for (int i = 0; i < 3 || (i < 50 && cli_seconds() - begin < 0.1); i++) {
        double start = cli_seconds();
        for (int64_t j = 0; j < group; j++) {
            run(composite, NULL, inputs, results->mirrors, NULL);
        }
        ol_stream_synchronize(device, NULL, NULL);
        double seconds = (cli_seconds() - start) / (double)group;
        best = seconds < best ? seconds : best;
    }
    double n = (double)layer->tokens * (double)layer->heads * (double)(layer->channels ? layer->channels : 1);
    return best > 0 ? n / best : 0;
}

static bool same_bits(const struct results *x, const struct results *y) {
    bool same = true;
    for (int32_t which = 0; which < x->n; which++) {
        same &= memcmp(x->outputs[which].data, y->outputs[which].data, x->n_bytes[which]) == 0;
    }
    return same;
}

static bool run_failed(st_error *error, const rates_layer *layer, const ol_error *reason) {
    return st_fail(error, "%s: tensor %.300s: %s: %s", layer->source[RATES_DT_BIAS].file->path, layer->label, reason->operation,
                   reason->description);
}

/* One run, its results brought to the host; *launches, if not NULL, gets how many it took. */
static ol_status run_once(ol_device *device, const ol_composite *composite, run_function run, const ol_tensor *inputs,
                          const struct results *results, uint64_t *launches, ol_error *reason) {
    uint64_t before = ol_device_launches(device);
    ol_status status = run(composite, NULL, inputs, results->mirrors, reason);
    if (launches) {
        *launches = ol_device_launches(device) - before;
    }
    return status == OL_OK ? mirrors_down(device, results->outputs, results->n, results->mirrors, reason) : status;
}

/* Runs the layer's composite on its inputs, where the device can read them, and measures it. */
static ol_status run_composite(ol_device *device, const struct options *options, const ol_composite *composite,
                               const rates_layer *layer, const ol_tensor *inputs, struct results *results, struct results *others,
                               struct measured *measured, ol_error *reason) {
    run_function run = options->composed ? ol_replay_composed : ol_replay,
                 other = options->composed ? ol_replay : ol_replay_composed;
    ol_status status = mirrors_make(device, results->outputs, results->n, results->mirrors, reason);
    if (status == OL_OK) {
        status = run_once(device, composite, run, inputs, results, &measured->launches, reason);
    }
    measured->equal = true;
    if (status == OL_OK && !options->no_verify) {
        status = mirrors_make(device, others->outputs, others->n, others->mirrors, reason);
        if (status == OL_OK) {
            status = run_once(device, composite, other, inputs, others, NULL, reason);
        }
        measured->equal = status == OL_OK && same_bits(results, others);
    }
    if (status == OL_OK) {
        measured->elements_per_second = measure_rate(device, composite, run, layer, inputs, results);
        status = ol_stream_synchronize(device, NULL, reason);
    }
    mirrors_free(device, results->n, results->mirrors);
    mirrors_free(device, others->n, others->mirrors);
    return status;
}

/* Fills results and everything that is measured; the results are the caller's to free also on failure. */
static bool run_layer(ol_device *device, const struct options *options, const rates_layer *layer, struct results *results,
                      struct results *others, struct measured *measured, st_error *error) {
    ol_composite *composite = NULL;
    ol_error reason = { 0 };
    ol_tensor bases[RATES_INPUTS], views[RATES_INPUTS], inputs[RATES_INPUTS];

    if (!results_allocate(layer, results) || (!options->no_verify && !results_allocate(layer, others))) {
        return st_fail(error, "tensor %.300s: out of memory for the results", layer->label);
    }
    ol_status status = mirrors_make(device, layer->base, layer->n_bases, bases, &reason);
    if (status == OL_OK) {
        status = mirrors_up(device, layer->base, layer->n_bases, bases, &reason);
    }
    if (status == OL_OK) {
        status = rates_layer_compile(layer, &layer->options, device, &composite, &reason);
    }
    if (status == OL_OK) {
        status = rates_layer_views(layer, bases, views, &reason) ? OL_OK : reason.status;
    }
    if (status == OL_OK) {
        rates_layer_pick(views, inputs);
        status = run_composite(device, options, composite, layer, inputs, results, others, measured, &reason);
    }
    ol_composite_destroy(composite);
    mirrors_free(device, layer->n_bases, bases);
    if (status != OL_OK) {
        return run_failed(error, layer, &reason);
    }
    bool ok = true;
    for (int32_t which = 0; which < results->n; which++) {
        const ol_tensor *output = &results->outputs[which];
        int64_t n = (int64_t)(results->n_bytes[which] / ol_dtype_size(output->dtype));
        ok = ok && float_summarize(float_format_named(st_dtype_name(output->dtype)), output->data, n, &measured->summary[which]);
    }
    return ok || st_fail(error, "tensor %.300s: out of memory for the statistics", layer->label);
}

/* ---- The table ------------------------------------------------------------------------------------------------- */

/* 100 columns, as the rows. */
static const char header[] =
    "                    dtypes of                   beta              %9s        laun-  elem. same\n"
    "layer  heads tokens b a A_log dt_bias      min median    max     min median    max  ches  per s bits\n";

/* A value in six columns. From 0 to 1, 0 and 1 themselves look different from what only rounds to them. */
static const char *six(double value, char buffer[16]) {
    double magnitude = fabs(value);
    bool whole = value == 0 || value == 1, negative = value < 0;
    snprintf(buffer, 16, whole ? "%6.0f" : magnitude < (negative ? 0.0005 : 0.00005) || magnitude >= 99999 ? "%6.0e" : negative && magnitude < 9 ? "%6.3f"
                         : magnitude < 9 ? "%6.4f" : magnitude < 99 ? "%6.2f" : magnitude < 999 ? "%6.1f" : "%6.0f", value == 0 ? 0 : value);
    return buffer;
}

/* One row. `same` is "yes", "NO", or "-" where it was not compared. */
static void print_row(const rates_layer *layer, const struct measured *measured, bool named, const char *same) {
    char number[24] = "-", heads[48], tokens[CLI_COUNT_BYTES], rate[CLI_COUNT_BYTES], dtypes[32], text[6][16];
    const float_summary *beta = &measured->summary[0], *decay = &measured->summary[layer->n_outputs - 1];
    if (named) {
        cli_put(stdout, *layer->prefix ? layer->prefix : "(no prefix)");
        putchar('\n');
    }
    if (layer->number >= 0) {
        snprintf(number, sizeof number, "%" PRId64, layer->number);
    }
    snprintf(heads, sizeof heads, layer->channels ? "%" PRId64 "x%" PRId64 : "%" PRId64, layer->heads, layer->channels);
    if (layer->tokens < 1000000) {
        snprintf(tokens, sizeof tokens, "%" PRId64, layer->tokens);
    } else {
        cli_count((double)layer->tokens, tokens);
    }
    snprintf(dtypes, sizeof dtypes, "%s %s %s %s", cli_dtype_short(layer->input[RATES_B].dtype),
             cli_dtype_short(layer->input[RATES_A].dtype), layer->input[RATES_A_LOG].rank < 0 ? "-" : cli_dtype_short(layer->input[RATES_A_LOG].dtype),
             cli_dtype_short(layer->input[RATES_DT_BIAS].dtype));
    printf("%5s %6s %6s %-19s %s %s %s  %s %s %s %5" PRIu64 " %6s %4s\n", number, heads, tokens, dtypes,
           six(beta->minimum, text[0]), six(beta->median, text[1]), six(beta->maximum, text[2]), six(decay->minimum, text[3]),
           six(decay->median, text[4]), six(decay->maximum, text[5]), measured->launches,
           cli_count(measured->elements_per_second, rate), same);
    if (beta->n_nan > 0 || decay->n_nan > 0) {
        printf("      NaN: %" PRId64 " of beta, %" PRId64 " of %s (left out of the statistics)\n", beta->n_nan, decay->n_nan,
               layer->result[layer->n_outputs - 1] == RATES_DECAY ? "decay" : "log decay");
    }
    cli_sync();                    /* whoever reads along sees each layer when it is done */
}

/* ---- The command ----------------------------------------------------------------------------------------------- */

struct job {
    const char *command;
    struct options options;
    checkpoint *weights, *activations;
    rates_layer *layers;
    size_t n_layers;
    rates_difference (*differences)[RATES_OUTPUTS];
    ol_device *device;
    st_writer *writer;
    cli_progress progress;
};

/* Layers are told apart by number; where that does not do, by name. */
static bool needs_names(const rates_layer *layers, size_t n_layers) {
    for (size_t i = 0; i < n_layers; i++) {
        if (layers[i].number < 0 || (i > 0 && layers[i].number == layers[i - 1].number)) {
            return true;
        }
    }
    return false;
}

/* The output must not be one of the inputs: replacing those is never what was meant. */
static bool check_out(const struct job *job, st_error *error) {
    struct stat status;
    if (stat(job->options.out, &status) == 0 && (checkpoint_holds_file(job->weights, status.st_dev, status.st_ino) ||
                                                 checkpoint_holds_file(job->activations, status.st_dev, status.st_ino))) {
        return st_fail(error, "%s: is also an input; name another file for --out", job->options.out);
    }
    return true;
}

static bool begin_output(struct job *job, st_error *error) {
    char producer[64];
    size_t n = 0;
    st_entry *entries = calloc(job->n_layers * RATES_OUTPUTS, sizeof *entries);
    if (!entries) {
        return st_fail(error, "out of memory for %zu layers", job->n_layers);
    }
    for (size_t i = 0; i < job->n_layers; i++) {
        for (int32_t which = 0; which < job->layers[i].n_outputs; which++) {
            entries[n++] = (st_entry){ .name = job->layers[i].output_name[which], .tensor = job->layers[i].stored[which] };
        }
    }
    snprintf(producer, sizeof producer, "onelaunch %s", ol_version());
    bool ok = st_writer_begin(job->options.out, entries, n, producer, &job->writer, error);
    free(entries);
    return ok;
}

/* Opens and checks everything: what can be refused is refused before anything is computed or created. */
static bool prepare(struct job *job, st_error *error) {
    if (!rates_gates_check(&job->options.gates, error) || !checkpoint_open(job->options.weights, &job->weights, error) ||
        !checkpoint_open(job->options.activations, &job->activations, error) ||
        !rates_layers_find(job->weights, job->activations, &job->options.selection, &job->options.gates, &job->layers, &job->n_layers, error) ||
        !check_out(job, error)) {
        return false;
    }
    job->differences = calloc(job->n_layers, sizeof *job->differences);
    if (!job->differences) {
        return st_fail(error, "out of memory for %zu layers", job->n_layers);
    }
    return true;
}

/* Counts of layers that break a promise. */
struct verdict {
    size_t n_unequal, n_launches;
    uint64_t launches;
};

/* What is not plain to see: options, and what a GGUF file's weights are. */
static void print_notes(const struct job *job) {
    const rates_layer *layer = &job->layers[0];
    const st_file *file = layer->source[RATES_DT_BIAS].file;
    const char *architecture = gguf_string(file, "general.architecture");
    char buffer[RATES_GATES_TEXT];
    const char *text = rates_gates_text(&job->options.gates, buffer);
    if (*text) {
        printf("%s\n", text);
    }
    if (file->is_gguf) {
        printf("GGUF");
        if (architecture) {
            printf(", architecture ");
            cli_put(stdout, architecture);
        }
        printf(layer->options.rate == OL_GATE_RATE_NEGATED ? ": its rates are -exp(A_log), taken as they are\n" : "\n");
        if (architecture && strncmp(architecture, "qwen35", 6) == 0) {
            printf(job->options.gates.weights == OL_HEADS_TILED
                       ? "Its heads are tiled, as files of this architecture have them; a, b and the results are grouped\n"
                       : "Its heads are tiled, as files of this architecture have them: a, b and the results are taken to be, too\n"
                         "(--head-map tiled: they are grouped, as transformers has them)\n");
        }
    }
    printf("\n");
}

/* With the first row: a run that fails before it has nothing to head. */
static void print_heading(const struct job *job) {
    printf("%s (%s), %s\n", ol_device_name(job->device), ol_device_level(job->device), job->options.composed ? "composed path" : "replay");
    print_notes(job);
    printf(header, job->options.gates.options.output == OL_GATE_LOG_DECAY ? "log decay" : "decay");
}

static bool do_layer(struct job *job, size_t index, bool named, struct verdict *verdict, st_error *error) {
    const rates_layer *layer = &job->layers[index];
    struct results results = { 0 }, others = { 0 };
    struct measured measured = { 0 };
    bool ok = run_layer(job->device, &job->options, layer, &results, &others, &measured, error);
    if (ok) {
        cli_progress_clear(&job->progress);
        if (index == 0) {
            print_heading(job);
        }
        print_row(layer, &measured, named, job->options.no_verify ? "-" : measured.equal ? "yes" : "NO");
        verdict->n_unequal += !measured.equal;
        verdict->n_launches += !job->options.composed && measured.launches != 1 && layer->tokens > 0;
        verdict->launches += measured.launches;
    }
    for (int32_t which = 0; ok && which < layer->n_outputs; which++) {       /* as many in every layer */
        ok = rates_compare(job->device, layer, which, results.outputs[which].data, &job->differences[index][which], error) &&
             st_writer_put(job->writer, index * (size_t)layer->n_outputs + (size_t)which, results.outputs[which].data, error);
    }
    results_free(&results);
    results_free(&others);
    return ok;
}

static int finish(struct job *job, const struct verdict *verdict) {
    st_error error;
    rates_print_differences(stdout, job->options.activations, job->layers, job->n_layers, job->differences);
    if (verdict->n_unequal > 0 || verdict->n_launches > 0) {
        cli_error(job->command,
                  "%zu of %zu layers differ between replay and composed path, %zu took another number of launches than 1; "
                  "nothing was written",
                  verdict->n_unequal, job->n_layers, verdict->n_launches);
        return CLI_MISS;
    }
    if (!st_writer_commit(job->writer, &error)) {
        job->writer = NULL;
        cli_error(job->command, "%s", error.text);
        return CLI_MISS;
    }
    job->writer = NULL;
    printf("\n%zu layer%s, %" PRIu64 " launch%s%s; ", job->n_layers, job->n_layers == 1 ? "" : "s", verdict->launches,
           verdict->launches == 1 ? "" : "es", job->options.composed ? " (composed path)" : "");
    printf(job->options.no_verify ? "replay and composed path were not compared; "
                                  : "replay equals the composed path bit for bit; ");
    cli_put(stdout, job->options.out);
    printf(" written\n");
    return CLI_OK;
}

static int run(struct job *job) {
    st_error error;
    struct verdict verdict = { 0 };
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
    bool named = needs_names(job->layers, job->n_layers);
    cli_progress_begin(&job->progress);
    for (size_t i = 0; i < job->n_layers; i++) {
        cli_progress_show(&job->progress, (int64_t)i, (int64_t)job->n_layers, job->layers[i].prefix);
        if (!do_layer(job, i, named, &verdict, &error)) {
            cli_progress_clear(&job->progress);
            cli_error(job->command, "%s", error.text);
            return CLI_MISS;
        }
    }
    return finish(job, &verdict);
}

int cmd_rates(int argc, char **argv) {
    static const struct argp_child children[] = { { &rates_gates_argp, 0, NULL, 0 }, { 0 } };
    static const struct argp argp = {
        .options = option_table,
        .children = children,
        .parser = parse,
        .doc = "Computes update rates (beta) and decay factors (decay) of the gated-delta layers of a checkpoint."
               "\vA layer is a pair of tensors PREFIX.A_log and PREFIX.dt_bias (GGUF: PREFIX.ssm_a and PREFIX.ssm_dt.bias) with activations "
               "PREFIX.a and PREFIX.b, or PREFIX.ba; the results are PREFIX.beta and PREFIX.decay, PREFIX.log_decay. Where the "
               "activations file holds such results, they are compared.",
    };
    struct job job = { .command = argv[0], .options.selection.layer = -1 };
    if (!cli_arguments(&argp, argc, argv, &job.options)) {
        return CLI_USAGE;
    }
    int code = run(&job);
    st_writer_abort(job.writer);
    ol_device_destroy(job.device);
    free(job.differences);
    rates_layers_free(job.layers, job.n_layers);
    checkpoint_close(job.activations);
    checkpoint_close(job.weights);
    return code;
}
