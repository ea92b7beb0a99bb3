/* `onelaunch digest`: the digests of primitives and conversions (digest.h), recomputed on this machine and compared with the committed
 * ones.
 *
 * The committed ones are tests/golden/digests.tsv, compiled in; `./dev prove --write-digests` makes it. */
#include "cli.h"
#include "commands.h"
#include "device_memory.h"
#include "digest.h"
#include "digest_device.h"

#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *op, *dtype;
    uint64_t whole, strided;
};

static const struct row committed[] = {
#include "digests_table.h"
    { NULL, NULL, 0, 0 },
};

static const ol_dtype dtypes[] = { OL_FLOAT32, OL_FLOAT16, OL_BFLOAT16 };
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };
enum { KEY_STRIDED = 256 };

struct options {
    const char *device;
    int32_t n_threads;
    bool *chosen;                                /* by operation; NULL: all */
    bool dtype_chosen[N_DTYPES];                 /* none: all */
    bool strided;
};

static const struct argp_option option_table[] = {
    { "op", 'o', "OP,...", 0, "Only these primitives, and conversions: astype_float32, astype_float16, astype_bfloat16", 0 },
    { "dtype", 'y', "DTYPE,...", 0, "Only operands of these: float32, float16, bfloat16", 0 },
    { "device", 'd', "DEVICE", 0, CLI_DEVICE_HELP, 0 },
    { "threads", 't', "N", 0, "Use at most N threads (default: one per CPU)", 0 },
    { "strided", KEY_STRIDED, NULL, 0, "Only one input in 4,099 of those that have more than 65,536: seconds instead of minutes", 0 },
    { 0 },
};

/* ---- Operations: the primitives by their numbers, then a conversion to each dtype ---------------------------------------- */

static const char *const conversion_names[N_DTYPES] = { "astype_float32", "astype_float16", "astype_bfloat16" };

static int32_t operation_count(void) { return ol_primitive_count() + N_DTYPES; }

/* The index in `dtypes` that it converts to; negative for a primitive. */
static int32_t conversion_to(int32_t operation) { return operation - ol_primitive_count(); }

static const char *operation_name(int32_t operation) {
    int32_t to = conversion_to(operation);
    return to >= 0 ? conversion_names[to] : ol_primitive_name(operation);
}

static int32_t operation_arity(int32_t operation) { return conversion_to(operation) >= 0 ? 1 : ol_primitive_arity(operation); }

/* -1 where there is none. */
static int32_t find_operation(const char *name) {
    for (int32_t to = 0; to < N_DTYPES; to++) {
        if (strcmp(name, conversion_names[to]) == 0) {
            return ol_primitive_count() + to;
        }
    }
    return ol_primitive_find(name);
}

/* Those with a digest: of one or two operands, which stay floats; conversions from another dtype. */
static bool has_digest(int32_t operation, ol_dtype dtype) {
    ol_dtype result;
    int32_t to = conversion_to(operation);
    if (to >= 0) {
        return dtypes[to] != dtype;
    }
    return ol_primitive_arity(operation) <= 2 && strncmp(ol_primitive_name(operation), "logical_", 8) != 0 &&
           ol_primitive_result(operation, dtype, &result);
}

static bool has_any_digest(int32_t operation) {
    for (int d = 0; d < N_DTYPES; d++) {
        if (has_digest(operation, dtypes[d])) {
            return true;
        }
    }
    return false;
}

/* "abs, add, ...", to be freed; NULL where memory ran out. */
static char *names_with_digests(void) {
    char *names = NULL;
    size_t n_bytes;
    FILE *stream = open_memstream(&names, &n_bytes);
    for (int32_t operation = 0; stream && operation < operation_count(); operation++) {
        if (has_any_digest(operation)) {
            fprintf(stream, "%s%s", ftell(stream) > 0 ? ", " : "", operation_name(operation));
        }
    }
    if (!stream || fclose(stream) != 0) {
        free(names);
        return NULL;
    }
    return names;
}

/* ---- Options ----------------------------------------------------------------------------------------------------------------- */

static void choose_ops(struct options *options, char *list, struct argp_state *state) {
    if (!options->chosen && !(options->chosen = calloc((size_t)operation_count(), sizeof *options->chosen))) {
        argp_failure(state, CLI_USAGE, 0, "out of memory");
        return;
    }
    for (char *name; (name = strsep(&list, ","));) {
        int32_t operation = find_operation(name);
        if (operation < 0 || !has_any_digest(operation)) {
            char *names = names_with_digests();
            argp_error(state, "--op %s: %s; there are %s", *name ? cli_printable(name) : "(an empty name)",
                       operation < 0 ? "no primitive or conversion has this name" : "digests are of primitives of one or two floats",
                       names ? names : "none, for want of memory");
            free(names);
            return;
        }
        options->chosen[operation] = true;
    }
}

static void choose_dtypes(struct options *options, char *list, struct argp_state *state) {
    for (char *name; (name = strsep(&list, ","));) {
        bool found = false;
        for (int d = 0; d < N_DTYPES; d++) {
            if (strcmp(name, ol_dtype_name(dtypes[d])) == 0) {
                options->dtype_chosen[d] = found = true;
            }
        }
        if (!found) {
            argp_error(state, "--dtype %s: expected float32, float16 or bfloat16", cli_printable(name));
        }
    }
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    struct options *options = state->input;
    int64_t number;
    switch (key) {
    case 'o': choose_ops(options, argument, state); return 0;
    case 'y': choose_dtypes(options, argument, state); return 0;
    case 'd': options->device = argument; return 0;
    case 't':
        if (!cli_parse_int(argument, 1, 4096, &number)) {
            argp_error(state, "--threads %s: expected a number from 1 to 4096", cli_printable(argument));
        }
        options->n_threads = (int32_t)number;
        return 0;
    case KEY_STRIDED: options->strided = true; return 0;
    case ARGP_KEY_ARG: argp_error(state, "unexpected argument '%s'", cli_printable(argument)); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- One digest -------------------------------------------------------------------------------------------------------------- */

struct job {
    const char *command;
    struct options options;
    ol_device *device;
    void *x, *y, *result;                        /* a chunk each, of the widest dtype; NULL for a GPU */
    uint64_t *chunks;                            /* digests of the chunks of one operation */
    cli_progress progress;
    const char *current;                         /* the operation in work */
    int64_t n_done, n_all;                       /* chunks of the whole job */
};

static int build(ol_graph *graph, const ol_value *in, ol_value *out, void *user) {
    int32_t operation = *(const int32_t *)user, to = conversion_to(operation);
    out[0] = to >= 0 ? ol_astype(graph, in[0], dtypes[to]) : ol_apply(graph, operation, in, ol_primitive_arity(operation));
    return 0;
}

static uint64_t stride_of(int32_t operation, ol_dtype dtype, bool strided) {
    return strided ? digest_stride(operation_arity(operation), ol_dtype_size(dtype)) : 1;
}

static uint64_t n_inputs(int32_t operation, ol_dtype dtype, bool strided) {
    uint64_t stride = stride_of(operation, dtype, strided);
    return (digest_inputs(operation_arity(operation), ol_dtype_size(dtype)) + stride - 1) / stride;
}

static int64_t n_chunks(uint64_t n) { return (int64_t)((n + DIGEST_CHUNK - 1) / DIGEST_CHUNK); }

static void show_progress(void *user, int64_t n_chunks) {
    struct job *job = user;
    job->n_done += n_chunks;
    cli_progress_show(&job->progress, job->n_done, job->n_all, job->current);
}

static ol_status compute_on_cpu(struct job *job, const ol_composite *composite, uint64_t n, uint64_t stride, ol_error *error) {
    int arity = ol_composite_input_count(composite);
    ol_dtype dtype = ol_composite_input_dtype(composite, 0);
    ol_status status = OL_OK;
    for (uint64_t first = 0; status == OL_OK && first < n; first += DIGEST_CHUNK) {
        int64_t length = (int64_t)(n - first < DIGEST_CHUNK ? n - first : DIGEST_CHUNK);
        digest_fill(arity, ol_dtype_size(dtype), first * stride, stride, (size_t)length, job->x, job->y);
        ol_tensor inputs[2] = { ol_tensor_contiguous(job->x, dtype, 1, &length), ol_tensor_contiguous(job->y, dtype, 1, &length) };
        ol_tensor output = ol_tensor_contiguous(job->result, ol_composite_output_dtype(composite, 0), 1, &length);
        status = ol_replay(composite, NULL, inputs, &output, error);
        job->chunks[first / DIGEST_CHUNK] = digest_chunk(job->result, (size_t)length * ol_dtype_size(output.dtype));
        show_progress(job, 1);
    }
    return status;
}

static bool compute(struct job *job, int32_t operation, ol_dtype dtype, uint64_t *digest) {
    bool strided = job->options.strided;
    uint64_t n = n_inputs(operation, dtype, strided), stride = stride_of(operation, dtype, strided);
    ol_composite *composite = NULL;
    ol_error error = { 0 };
    job->current = operation_name(operation);
    const ol_builder builder = {
        .build = build, .user = &operation, .n_inputs = operation_arity(operation), .n_outputs = 1, .name = job->current };
    ol_status status = ol_compile(job->device, &builder, (ol_dtype[]){ dtype, dtype }, &composite, &error);
    if (status == OL_OK && device_has_memory(job->device)) {
        const digest_work work = { job->device, composite, n, stride, job->chunks, show_progress, job };
        status = digest_on_device(&work, &error);
    } else if (status == OL_OK) {
        status = compute_on_cpu(job, composite, n, stride, &error);
    }
    ol_composite_destroy(composite);
    if (status != OL_OK) {
        cli_progress_clear(&job->progress);
        cli_error(job->command, "%s %s: %s: %s", job->current, ol_dtype_name(dtype), error.operation, error.description);
        return false;
    }
    *digest = digest_all(job->chunks, (size_t)n_chunks(n));
    return true;
}

/* ---- The command ------------------------------------------------------------------------------------------------------------- */

static const struct row *find_row(int32_t operation, ol_dtype dtype) {
    for (const struct row *row = committed; row->op; row++) {
        if (strcmp(row->op, operation_name(operation)) == 0 && strcmp(row->dtype, ol_dtype_name(dtype)) == 0) {
            return row;
        }
    }
    return NULL;
}

static bool is_chosen(const struct options *options, int32_t operation, int d) {
    bool any = false;
    for (int i = 0; i < N_DTYPES; i++) {
        any |= options->dtype_chosen[i];
    }
    return (!any || options->dtype_chosen[d]) && (!options->chosen || options->chosen[operation]) && has_digest(operation, dtypes[d]);
}

static bool check_row(struct job *job, int32_t operation, ol_dtype dtype, bool *equal) {
    const struct row *row = find_row(operation, dtype);
    uint64_t digest;
    if (!compute(job, operation, dtype, &digest)) {
        return false;
    }
    uint64_t expected = !row ? 0 : job->options.strided ? row->strided : row->whole;
    *equal = row && digest == expected;
    cli_progress_clear(&job->progress);
    printf("%-15s %-9s %016" PRIx64 "  ", operation_name(operation), ol_dtype_name(dtype), digest);
    if (*equal) {
        printf("equal\n");
    } else if (row) {
        printf("DIFFERS from the committed %016" PRIx64 "\n", expected);
    } else {
        printf("MISSING: no digest is committed\n");
    }
    return true;
}

static int run(struct job *job) {
    int64_t n_equal = 0, n_other = 0;
    for (int32_t o = 0; o < operation_count(); o++) {
        for (int d = 0; d < N_DTYPES; d++) {
            if (is_chosen(&job->options, o, d)) {
                job->n_all += n_chunks(n_inputs(o, dtypes[d], job->options.strided));
            }
        }
    }
    if (job->n_all == 0) {
        cli_error(job->command, "nothing to compare: no conversion is from a dtype to itself");
        return CLI_USAGE;
    }
    cli_progress_begin(&job->progress);
    for (int32_t o = 0; o < operation_count(); o++) {
        for (int d = 0; d < N_DTYPES; d++) {
            bool equal = true;
            if (!is_chosen(&job->options, o, d)) {
                continue;
            }
            if (!check_row(job, o, dtypes[d], &equal)) {
                return CLI_MISS;
            }
            *(equal ? &n_equal : &n_other) += 1;
        }
    }
    cli_progress_clear(&job->progress);
    printf("%s:%s: %" PRId64 " digests equal, %" PRId64 " not\n", ol_device_name(job->device), ol_device_level(job->device), n_equal, n_other);
    return n_other == 0 ? CLI_OK : CLI_MISS;
}

static bool allocate(struct job *job) {
    job->chunks = malloc(sizeof *job->chunks * (((size_t)1 << 32) / DIGEST_CHUNK));
    if (device_has_memory(job->device)) {
        return job->chunks != NULL;
    }
    job->x = malloc(DIGEST_CHUNK * sizeof(float));
    job->y = malloc(DIGEST_CHUNK * sizeof(float));
    job->result = malloc(DIGEST_CHUNK * sizeof(float));
    return job->x && job->y && job->result && job->chunks;
}

int cmd_digest(int argc, char **argv) {
    static const struct argp argp = {
        .options = option_table,
        .parser = parse,
        .doc = "Recomputes the digests of primitives, and of conversions between floats, on this machine and compares them with the committed "
               "ones: whether every result, on every input, has the bits it has on every other machine."
               "\vA digest is over all results in input order: all 2^32 inputs of float32, all 2^16 of float16 and bfloat16, all 2^32 pairs "
               "of these, and of float32 pairs a fixed sample of 2^28.",
    };
    struct job job = { .command = argv[0] };
    if (!cli_arguments(&argp, argc, argv, &job.options)) {
        return CLI_USAGE;
    }
    int code = CLI_USAGE;
    if (cli_device(job.command, job.options.device, job.options.n_threads, &job.device)) {
        if (allocate(&job)) {
            code = run(&job);
        } else {
            cli_error(job.command, "out of memory");
            code = CLI_MISS;
        }
    }
    ol_device_destroy(job.device);
    free(job.x);
    free(job.y);
    free(job.result);
    free(job.chunks);
    free(job.options.chosen);
    return code;
}
