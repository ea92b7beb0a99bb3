/* `onelaunch bench`: a quick measurement of the gated-delta rates on this machine, replay against composed path.
 *
 * The two take turns in short batches and the best batch of each counts, so that what else the machine does disturbs both alike.
 * On a GPU calls return before their work is done: a batch ends when the stream is empty, and how long the calls alone take is
 * measured apart, by few enough of them that the driver's queue does not fill up.
 * Inputs are made up (a fixed seed) and reused by every call, so small shapes are in cache. The full benchmark, beside other
 * libraries, is in bench/. */
#include "cli.h"
#include "commands.h"
#include "device_memory.h"
#include "floats.h"

#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHAPES = 32, N_INPUTS = 4, N_OUTPUTS = 2 };
enum { MAX_QUEUED = 256 };               /* launches; a GPU's queue takes about a thousand */
#define MAX_HEADS 65536
#define MAX_TOKENS 16777216
#define MAX_ELEMENTS ((int64_t)1 << 28)

struct options {
    const char *device;
    int32_t n_threads;
    int64_t heads;
    int64_t tokens[MAX_SHAPES];
    int n_shapes;
    ol_dtype dtype;
};

static const struct argp_option option_table[] = {
    { "device", 'd', "DEVICE", 0, CLI_DEVICE_HELP, 0 },
    { "threads", 't', "N", 0, "Use at most N threads (default: one per CPU)", 0 },
    { "heads", 'H', "H", 0, "Heads of the layer (default 32)", 0 },
    { "tokens", 'n', "T1,T2,...", 0, "Tokens of each replay (default 1,16,256,4096,65536)", 0 },
    { "dtype", 'y', "DTYPE", 0, "float32, bfloat16 (default) or float16: of all inputs but A_log, which is float32", 0 },
    { 0 },
};

static void parse_tokens(struct options *options, char *argument, struct argp_state *state) {
    char *rest = argument;
    options->n_shapes = 0;
    for (char *item; (item = strsep(&rest, ","));) {
        if (options->n_shapes == MAX_SHAPES || !cli_parse_int(item, 1, MAX_TOKENS, &options->tokens[options->n_shapes])) {
            argp_error(state, "--tokens: expected at most %d numbers from 1 to %d, separated by commas", MAX_SHAPES, MAX_TOKENS);
        }
        options->n_shapes++;
    }
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    struct options *options = state->input;
    int64_t number;
    switch (key) {
    case 'd': options->device = argument; return 0;
    case 't':
        if (!cli_parse_int(argument, 1, 4096, &number)) {
            argp_error(state, "--threads %s: expected a number from 1 to 4096", cli_printable(argument));
        }
        options->n_threads = (int32_t)number;
        return 0;
    case 'H':
        if (!cli_parse_int(argument, 1, MAX_HEADS, &options->heads)) {
            argp_error(state, "--heads %s: expected a number from 1 to %d", cli_printable(argument), MAX_HEADS);
        }
        return 0;
    case 'n': parse_tokens(options, argument, state); return 0;
    case 'y':
        if (!ol_dtype_parse(argument, &options->dtype) ||
            (options->dtype != OL_FLOAT32 && options->dtype != OL_BFLOAT16 && options->dtype != OL_FLOAT16)) {
            argp_error(state, "--dtype %s: expected float32, bfloat16 or float16", cli_printable(argument));
        }
        return 0;
    case ARGP_KEY_ARG: argp_error(state, "unexpected argument '%s'", cli_printable(argument)); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Inputs --------------------------------------------------------------------------------------------------------------- */

/* splitmix64, in [-4, 4). */
static double next_value(uint64_t *seed) {
    uint64_t z = *seed += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-50 - 4.0;
}

/* A contiguous tensor with made-up values; its data is NULL where memory ran out. */
static ol_tensor make_tensor(ol_dtype dtype, int32_t rank, const int64_t *shape, uint64_t *seed) {
    const float_format *format = float_format_named(dtype == OL_FLOAT32 ? "F32" : dtype == OL_FLOAT16 ? "F16" : "BF16");
    size_t n = (size_t)shape[0] * (size_t)(rank == 2 ? shape[1] : 1), size = ol_dtype_size(dtype);
    unsigned char *data = aligned_alloc(64, (n * size + 63) / 64 * 64);
    for (size_t i = 0; data && i < n; i++) {
        uint64_t bits = float_round(format, next_value(seed));
        if (size == 4) {
            ((uint32_t *)(void *)data)[i] = (uint32_t)bits;
        } else {
            ((uint16_t *)(void *)data)[i] = (uint16_t)bits;
        }
    }
    return ol_tensor_contiguous(data, dtype, rank, shape);
}

/* ---- Measuring ------------------------------------------------------------------------------------------------------------ */

typedef ol_status (*run_function)(const ol_composite *, ol_stream, const ol_tensor *, const ol_tensor *, ol_error *);

struct subject {
    run_function run;
    int64_t n_calls;                     /* of a batch */
    int64_t n_queued;                    /* calls in a row whose own time is measured */
    double best_ns, best_host_ns;        /* of a call */
};

struct bench {
    ol_device *device;
    const ol_composite *composite;
    ol_tensor host_inputs[N_INPUTS], host_outputs[N_OUTPUTS];
    ol_tensor inputs[N_INPUTS], outputs[N_OUTPUTS];                /* their mirrors */
};

/* Nanoseconds a call until all is done and, in *host_ns if not NULL, until the last call returned. */
static double batch_ns(const struct bench *b, run_function run, int64_t n_calls, double *host_ns) {
    double start = cli_seconds();
    for (int64_t i = 0; i < n_calls; i++) {
        run(b->composite, NULL, b->inputs, b->outputs, NULL);
    }
    if (host_ns) {
        *host_ns = 1e9 * (cli_seconds() - start) / (double)n_calls;
    }
    ol_stream_synchronize(b->device, NULL, NULL);
    return 1e9 * (cli_seconds() - start) / (double)n_calls;
}

static double smaller(double x, double y) { return x < y ? x : y; }

/* Batches of at least 50 us, on a GPU 500 us, for about half a second and at least five rounds. */
static void measure(const struct bench *b, struct subject *subjects) {
    double end = cli_seconds() + 0.5, shortest = device_has_memory(b->device) ? 500e3 : 50e3;
    for (int s = 0; s < 2; s++) {
        subjects[s].n_calls = 1;
        subjects[s].best_ns = subjects[s].best_host_ns = INFINITY;
        while (batch_ns(b, subjects[s].run, subjects[s].n_calls, NULL) * (double)subjects[s].n_calls < shortest) {
            subjects[s].n_calls *= 2;
        }
    }
    for (int round = 0; round < 5 || cli_seconds() < end; round++) {
        for (int s = 0; s < 2; s++) {
            subjects[s].best_ns = smaller(batch_ns(b, subjects[s].run, subjects[s].n_calls, NULL), subjects[s].best_ns);
            if (device_has_memory(b->device)) {
                double host_ns;
                batch_ns(b, subjects[s].run, subjects[s].n_queued, &host_ns);
                subjects[s].best_host_ns = smaller(host_ns, subjects[s].best_host_ns);
            }
        }
    }
}

/* Made-up inputs and room for outputs. False where memory of the host ran out. */
static bool make_tensors(struct bench *b, const int64_t shape[2]) {
    uint64_t seed = 1;
    bool ok = true;
    for (int i = 0; i < N_INPUTS; i++) {
        int32_t rank = i < 2 ? 2 : 1;                          /* b and a, then A_log and dt_bias */
        b->host_inputs[i] = make_tensor(ol_composite_input_dtype(b->composite, i), rank, rank == 2 ? shape : shape + 1, &seed);
        ok = ok && b->host_inputs[i].data;
    }
    for (int o = 0; o < N_OUTPUTS; o++) {
        b->host_outputs[o] = make_tensor(ol_composite_output_dtype(b->composite, o), 2, shape, &seed);
        ok = ok && b->host_outputs[o].data;
    }
    return ok;
}

/* Brings the inputs to the device and runs both paths once: whatever can fail fails here. */
static ol_status warm_up(struct bench *b, ol_error *error) {
    ol_status status = mirrors_make(b->device, b->host_inputs, N_INPUTS, b->inputs, error);
    if (status == OL_OK) {
        status = mirrors_make(b->device, b->host_outputs, N_OUTPUTS, b->outputs, error);
    }
    if (status == OL_OK) {
        status = mirrors_up(b->device, b->host_inputs, N_INPUTS, b->inputs, error);
    }
    if (status == OL_OK) {
        status = ol_replay(b->composite, NULL, b->inputs, b->outputs, error);
    }
    if (status == OL_OK) {
        status = ol_replay_composed(b->composite, NULL, b->inputs, b->outputs, error);
    }
    return status == OL_OK ? ol_stream_synchronize(b->device, NULL, error) : status;
}

/* One line of the table. */
static int bench_shape(const char *command, ol_device *device, const ol_composite *composite, const struct options *options,
                       int64_t tokens) {
    struct subject subjects[2] = {
        { .run = ol_replay, .n_queued = MAX_QUEUED },
        { .run = ol_replay_composed, .n_queued = MAX_QUEUED / ol_composite_composed_launches(composite) },
    };
    const int64_t shape[] = { tokens, options->heads };
    struct bench b = { .device = device, .composite = composite };
    ol_error error;
    int code = CLI_MISS;

    if (!make_tensors(&b, shape)) {
        cli_error(command, "no memory for %" PRId64 " tokens of %" PRId64 " heads", tokens, options->heads);
    } else if (warm_up(&b, &error) != OL_OK) {
        cli_error(command, "%s: %s", error.operation, error.description);
    } else {
        double n = (double)tokens * (double)options->heads;
        measure(&b, subjects);
        if (ol_stream_synchronize(device, NULL, &error) != OL_OK) {
            cli_error(command, "%s: %s", error.operation, error.description);
            goto done;
        }
        printf("%9" PRId64 " %13.0f %13.4f %13.0f %13.4f %9.1fx", tokens, subjects[0].best_ns, n / subjects[0].best_ns,
               subjects[1].best_ns, n / subjects[1].best_ns, subjects[1].best_ns / subjects[0].best_ns);
        if (device_has_memory(device)) {
            printf(" %13.2f %13.2f", subjects[0].best_host_ns / 1e3, subjects[1].best_host_ns / 1e3);
        }
        printf("\n");
        code = CLI_OK;
    }
done:
    mirrors_free(device, N_INPUTS, b.inputs);
    mirrors_free(device, N_OUTPUTS, b.outputs);
    for (int i = 0; i < N_INPUTS; i++) {
        free(b.host_inputs[i].data);
    }
    for (int o = 0; o < N_OUTPUTS; o++) {
        free(b.host_outputs[o].data);
    }
    return code;
}

static void print_header(const struct options *options, const ol_device *device, const ol_composite *composite) {
    bool gpu = device_has_memory(device);
    printf("%s %s, ", ol_device_name(device), ol_device_level(device));
    if (options->n_threads && !gpu) {
        printf("at most %" PRId32 " thread%s, ", options->n_threads, options->n_threads == 1 ? "" : "s");
    } else if (!gpu) {
        printf("one thread per CPU, ");
    }
    printf("%" PRId64 " head%s, %s (A_log float32); 1 launch against %" PRId32 "\n\n", options->heads,
           options->heads == 1 ? "" : "s", ol_dtype_name(options->dtype), ol_composite_composed_launches(composite));
    printf("%9s %13s %13s %13s %13s %10s%s\n", "", "replay", "", "composed", "", "replay is",
           gpu ? "   replay, the  composed, the" : "");
    printf("%9s %13s %13s %13s %13s %10s%s\n", "tokens", "ns/call", "elements/ns", "ns/call", "elements/ns", "faster",
           gpu ? "  host us/call  host us/call" : "");
}

int cmd_bench(int argc, char **argv) {
    static const struct argp argp = {
        .options = option_table,
        .parser = parse,
        .doc = "Measures the gated-delta rates on this machine: a replay (one launch) against the composed path (one launch a primitive)."
               "\vAn element is one head of one token: an update rate and a decay factor. Times are the best of many calls.",
    };
    struct options options = { .heads = 32, .tokens = { 1, 16, 256, 4096, 65536 }, .n_shapes = 5, .dtype = OL_BFLOAT16 };
    ol_device *device = NULL;
    ol_composite *composite = NULL;
    ol_error error;
    int code = CLI_OK;

    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0) {
        return CLI_USAGE;
    }
    for (int i = 0; i < options.n_shapes; i++) {
        if (options.tokens[i] * options.heads > MAX_ELEMENTS) {
            cli_error(argv[0], "%" PRId64 " tokens of %" PRId64 " heads are more than %" PRId64 " elements", options.tokens[i], options.heads,
                      MAX_ELEMENTS);
            return CLI_USAGE;
        }
    }
    if (!cli_device(argv[0], options.device, options.n_threads, &device)) {
        return CLI_USAGE;
    }
    if (ol_gated_delta_rates_compile(device, options.dtype, options.dtype, OL_FLOAT32, options.dtype, &composite, &error) != OL_OK) {
        cli_error(argv[0], "%s: %s", error.operation, error.description);
        ol_device_destroy(device);
        return CLI_MISS;
    }
    print_header(&options, device, composite);
    for (int i = 0; i < options.n_shapes && code == CLI_OK; i++) {
        code = bench_shape(argv[0], device, composite, &options, options.tokens[i]);
        cli_sync();
    }
    ol_composite_destroy(composite);
    ol_device_destroy(device);
    return code;
}
