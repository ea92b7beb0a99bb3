/* `onelaunch parity`: the contract itself, on generated cases.
 *
 * Each case is compared on every level asked for, with one thread and with several; or on a GPU and, for the replay, on the CPU.
 * Case number N of a seed is the same
 * whatever came before it, so a miss is reproduced by --seed and --case. Sizes: mostly small, where shapes and strides
 * matter; every thirty-second is large enough to be split over threads. */
#include "cli.h"
#include "commands.h"
#include "device_memory.h"
#include "parity_case.h"

#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICES = 12, KEY_CASE = 256 };

struct options {
    const char *device;
    const char *level;
    int64_t seed, first, graphs, seconds, threads;
};

static const struct argp_option option_table[] = {
    { "device", 'd', "DEVICE", 0, "cpu (default: every SIMD level there is), cpu:LEVEL, cuda or cuda:N", 0 },
    { "level", 'l', "LEVEL", 0, "Only this SIMD level: baseline, avx2, avx512 or neon; of a GPU: the one it is compared with", 0 },
    { "seed", 's', "N", 0, "Where the cases come from (default: 1)", 0 },
    { "case", KEY_CASE, "N", 0, "Start with case N of the seed (default: 0)", 0 },
    { "graphs", 'g', "N", 0, "Stop after N graphs (default: none but the time)", 0 },
    { "seconds", 't', "S", 0, "Stop after S seconds (default: 6; with --graphs: none)", 0 },
    { "threads", 'j', "N", 0, "Also compare with N threads (default: 4; 1: leave that out)", 0 },
    { 0 },
};

static void parse_number(struct argp_state *state, const char *name, const char *text, int64_t low, int64_t high, int64_t *number) {
    if (!cli_parse_int(text, low, high, number)) {
        argp_error(state, "--%s %s: expected a number from %" PRId64 " to %" PRId64, name, cli_printable(text), low, high);
    }
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    struct options *options = state->input;
    switch (key) {
    case 'd': options->device = argument; return 0;
    case 'l': options->level = argument; return 0;
    case 's': parse_number(state, "seed", argument, 0, INT64_MAX, &options->seed); return 0;
    case KEY_CASE: parse_number(state, "case", argument, 0, INT64_MAX, &options->first); return 0;
    case 'g': parse_number(state, "graphs", argument, 1, INT64_MAX, &options->graphs); return 0;
    case 't': parse_number(state, "seconds", argument, 1, 1000000, &options->seconds); return 0;
    case 'j': parse_number(state, "threads", argument, 1, 256, &options->threads); return 0;
    case ARGP_KEY_ARG: argp_error(state, "unexpected argument '%s'", cli_printable(argument)); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Devices -------------------------------------------------------------------------------------------------------------------- */

struct devices {
    parity_device list[MAX_DEVICES];
    char names[MAX_DEVICES][48];
    size_t n;
};

static bool add_device(const char *command, struct devices *devices, const char *name, int64_t threads, bool composed) {
    parity_device *d = &devices->list[devices->n];
    char *title = devices->names[devices->n];
    if (!cli_device(command, name, (int32_t)threads, &d->device)) {
        return false;
    }
    int length = snprintf(title, sizeof devices->names[0], "%s:%s", ol_device_name(d->device), ol_device_level(d->device));
    if (!device_has_memory(d->device)) {
        snprintf(title + length, sizeof devices->names[0] - (size_t)length, ", %d thread%s", (int)threads, threads == 1 ? "" : "s");
    }
    d->name = title;
    d->composed = composed;
    devices->n++;
    return true;
}

/* Where nothing can be compiled there is nothing to compare. */
static bool can_compile(const char *command, ol_device *device) {
    ol_composite *composite;
    ol_error error;
    if (ol_gated_delta_rates_compile(device, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, &composite, &error) != OL_OK) {
        cli_error(command, "%s: %s", error.operation, error.description);
        return false;
    }
    ol_composite_destroy(composite);
    return true;
}

/* A GPU with both paths, and the CPU's replay: the bits are those of every device. */
static bool open_gpu(const char *command, const struct options *options, struct devices *devices) {
    char name[64] = "cpu";
    if (options->level) {
        snprintf(name, sizeof name, "cpu:%s", options->level);
    }
    return add_device(command, devices, options->device, 1, true) && can_compile(command, devices->list[0].device) &&
           add_device(command, devices, name, 1, false);
}

/* Each level with one thread, then each with several: the first is what the others are held against. */
static bool open_devices(const char *command, const struct options *options, struct devices *devices) {
    const char *only = options->level;
    char name[64];
    ol_device *usual = NULL;
    if (options->device && strncmp(options->device, "cuda", 4) == 0) {
        return open_gpu(command, options, devices);
    }
    if (options->device && strncmp(options->device, "cpu:", 4) == 0) {
        only = options->device + 4;
        if (options->level && strcmp(options->level, only) != 0) {
            cli_error(command, "--device %s and --level %s name different SIMD levels", options->device, options->level);
            return false;
        }
    } else if (options->device && strcmp(options->device, "cpu") != 0) {
        return cli_device(command, options->device, 1, &usual);        /* there is none of this name, as that says */
    }
    if (!only) {                         /* a wrong ONELAUNCH_CPU is an error here as elsewhere, though each level is run anyway */
        if (!cli_device(command, NULL, 1, &usual)) {
            return false;
        }
        ol_device_destroy(usual);
    }
    for (int64_t threads = 1;; threads = options->threads) {
        if (only) {
            snprintf(name, sizeof name, "cpu:%s", only);
            if (!add_device(command, devices, name, threads, threads == 1)) {
                return false;
            }
        }
        for (int level = OL_CPU_BASELINE; !only && ol_cpu_level_name((ol_cpu_level)level); level++) {
            snprintf(name, sizeof name, "cpu:%s", ol_cpu_level_name((ol_cpu_level)level));
            if (ol_cpu_level_available((ol_cpu_level)level) && !add_device(command, devices, name, threads, threads == 1)) {
                return false;
            }
        }
        if (threads == options->threads) {
            return true;
        }
    }
}

static void close_devices(struct devices *devices) {
    for (size_t i = 0; i < devices->n; i++) {
        ol_device_destroy(devices->list[i].device);
    }
}

/* ---- What was covered ----------------------------------------------------------------------------------------------------------- */

struct coverage {
    int64_t primitive[256];
    int64_t kind[STEP_BROADCAST_TO + 1];
    int64_t dtype[OL_DTYPE_COUNT];
    bool astype[OL_DTYPE_COUNT][OL_DTYPE_COUNT];
    int64_t n_values, n_outputs, n_in_place, n_strided, n_empty;
    int64_t rank[OL_MAX_RANK + 1];
};

static bool is_contiguous(const ol_tensor *t) {
    int64_t expected = 1;
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        if (t->shape[d] != 1 && t->strides[d] != expected) {
            return false;
        }
        expected *= t->shape[d];
    }
    return true;
}

static void cover(struct coverage *coverage, const generated *c) {
    for (size_t i = 0; i < c->n_values; i++) {
        const generated_value *v = &c->values[i];
        coverage->kind[v->kind]++;
        coverage->dtype[v->dtype]++;
        coverage->n_values += v->kind != STEP_INPUT && v->kind != STEP_CONSTANT;
        if (v->kind == STEP_PRIMITIVE && v->primitive < 256) {
            coverage->primitive[v->primitive]++;
        }
        if (v->kind == STEP_ASTYPE) {
            coverage->astype[c->values[v->operands[0]].dtype][v->dtype] = true;
        }
    }
    coverage->n_outputs += c->n_outputs;
    coverage->n_empty += generate_has_empty(c);
    for (int32_t i = 0; i < c->n_inputs + c->n_outputs; i++) {
        coverage->n_strided += !is_contiguous(&c->tensors[i]);
        coverage->rank[c->tensors[i].rank]++;
        for (int32_t j = 0; i >= c->n_inputs && j < c->n_inputs; j++) {
            if (c->offsets[i] >= 0 && c->offsets[i] == c->offsets[j]) {
                coverage->n_in_place++;
                break;
            }
        }
    }
}

static void print_primitives(const struct coverage *coverage) {
    int32_t n = ol_primitive_count(), n_missing = 0;
    printf("\nprimitives, by how many nodes had them:\n");
    for (int32_t p = 0; p < n && p < 256; p++) {
        printf("  %-14s %7" PRId64 "%s", ol_primitive_name(p), coverage->primitive[p], p % 5 == 4 || p == n - 1 ? "\n" : "");
        n_missing += coverage->primitive[p] == 0;
    }
    int n_pairs = 0;
    for (int from = 0; from < OL_DTYPE_COUNT; from++) {
        for (int to = 0; to < OL_DTYPE_COUNT; to++) {
            n_pairs += coverage->astype[from][to];
        }
    }
    printf("  %-14s %7" PRId64 "  (%d of %d pairs of dtypes)\n", "astype", coverage->kind[STEP_ASTYPE], n_pairs, OL_DTYPE_COUNT * OL_DTYPE_COUNT);
    printf("  %-14s %7" PRId64 "  %-14s %7" PRId64 "  %-14s %7" PRId64 "\n", "broadcast_like", coverage->kind[STEP_BROADCAST_LIKE], "broadcast_to",
           coverage->kind[STEP_BROADCAST_TO], "constant", coverage->kind[STEP_CONSTANT]);
    if (n_missing > 0) {
        printf("  %d primitives were not met: run longer\n", (int)n_missing);
    }
}

static void print_summary(const struct devices *devices, const struct coverage *coverage, const parity_tally *tally, double seconds) {
    char count[3][CLI_COUNT_BYTES];
    print_primitives(coverage);
    printf("\ndtypes, by how many values had them:\n");
    for (int d = 0; d < OL_DTYPE_COUNT; d++) {
        printf("  %-9s %7" PRId64 "%s", ol_dtype_name((ol_dtype)d), coverage->dtype[d], d % 6 == 5 ? "\n" : "");
    }
    printf("\nranks 0 to %d: ", OL_MAX_RANK);
    for (int rank = 0; rank <= OL_MAX_RANK; rank++) {
        printf(" %" PRId64, coverage->rank[rank]);
    }
    printf(" tensors; %" PRId64 " not contiguous, %" PRId64 " outputs in place, %" PRId64 " graphs with empty values\n\n", coverage->n_strided,
           coverage->n_in_place, coverage->n_empty);
    for (size_t i = 0; i < devices->n; i++) {
        printf("  %s: replay%s\n", devices->list[i].name, devices->list[i].composed ? " and composed path" : "");
    }
    printf("%" PRId64 " graphs of %" PRId64 " nodes and %" PRId64 " outputs: %s replays and %s composed runs, %s elements, all bits equal (%.1f s)\n",
           tally->n_cases, coverage->n_values, coverage->n_outputs, cli_count((double)tally->n_replays, count[0]),
           cli_count((double)tally->n_composed, count[1]), cli_count((double)tally->n_elements, count[2]), seconds);
}

/* ---- The run -------------------------------------------------------------------------------------------------------------------- */

static generated *case_number(uint64_t seed, int64_t number) {
    static const generate_limits small = { 1100, 0, 60, 8 }, many = { 70, 0, 400, 90 }, large = { 120000, 40000, 12, 4 };
    uint64_t state = seed ^ (uint64_t)number * 0x9E3779B97F4A7C15u;
    return generate_case(generate_next(&state), number % 32 == 31 ? &large : number % 32 == 7 ? &many : &small);
}

static int compare_cases(const char *command, const struct options *options, const struct devices *devices) {
    struct coverage coverage = { 0 };
    parity_tally tally = { 0 };
    cli_progress progress;
    double start = cli_seconds();
    cli_progress_begin(&progress);
    for (int64_t i = 0; options->graphs == 0 || i < options->graphs; i++) {
        double elapsed = cli_seconds() - start;
        if (options->seconds > 0 && elapsed >= (double)options->seconds) {
            break;
        }
        if (i % 64 == 0) {
            cli_progress_show(&progress, options->graphs ? i : (int64_t)elapsed, options->graphs ? options->graphs : options->seconds,
                              options->graphs ? "graphs" : "seconds");
        }
        char *failure = NULL;
        generated *c = case_number((uint64_t)options->seed, options->first + i);
        bool ok = c && parity_run(c, devices->list, devices->n, &tally, NULL, &failure);
        if (ok) {
            cover(&coverage, c);
        }
        generate_free(c);
        if (!ok) {
            cli_progress_clear(&progress);
            if (failure) {
                printf("%s\nReproduce: onelaunch parity%s%s --seed %" PRId64 " --case %" PRId64 " --graphs 1\n", failure,
                       options->device ? " --device " : "", options->device ? options->device : "", options->seed,
                       options->first + i);
            }
            cli_error(command, "seed %" PRId64 ", case %" PRId64 ": %s", options->seed, options->first + i, failure ? "a difference" : "out of memory");
            free(failure);
            return CLI_MISS;
        }
    }
    cli_progress_clear(&progress);
    print_summary(devices, &coverage, &tally, cli_seconds() - start);
    return CLI_OK;
}

int cmd_parity(int argc, char **argv) {
    static const struct argp argp = {
        .options = option_table,
        .parser = parse,
        .doc = "Compares replays with the composed path, bit for bit, on generated graphs and inputs: at every SIMD level, with one thread and "
               "with several, and all of them with each other; or on a GPU, and its bits with the CPU's. Counts launches on the "
               "way: one a replay."
               "\vOn a difference prints the graph, the tensors, the first element that differs and how to reproduce it. Exit code 1 then.",
    };
    struct options options = { .seed = 1, .threads = 4 };
    struct devices devices = { 0 };
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0) {
        return CLI_USAGE;
    }
    if (options.seconds == 0 && options.graphs == 0) {
        options.seconds = 6;
    }
    int code = CLI_USAGE;
    if (open_devices(argv[0], &options, &devices)) {
        printf("seed %" PRId64 "\n", options.seed);
        code = compare_cases(argv[0], &options, &devices);
    }
    close_devices(&devices);
    return code;
}
