/* `onelaunch check`: runs case files and reports each miss.
 *
 * All cases of one operation and dtypes run as one tensor, padded to an odd length (no vector width divides it), so that cases
 * go through vector bodies and tails as the data of a user would. A case passes when every requested path gives the
 * expected bits; it is counted once. A line that is no case, and a case that cannot be run, count as failed: nothing in a
 * file is passed over in silence. */
#include "cases.h"
#include "cli.h"
#include "commands.h"
#include "device_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_REPLAY = 1, PATH_COMPOSED = 2 };
enum { KEY_SKIP_UNKNOWN = 256 };

struct options {
    const char *device;
    int32_t n_threads;
    int paths;
    bool skip_unknown;
    char **files;
    int n_files;
};

static const struct argp_option option_table[] = {
    { "device", 'd', "DEVICE", 0, CLI_DEVICE_HELP, 0 },
    { "threads", 't', "N", 0, "Use at most N threads (default: one per CPU)", 0 },
    { "path", 'p', "PATH", 0, "replay, composed or both (default): a case passes if all are right", 0 },
    { "skip-unknown", KEY_SKIP_UNKNOWN, NULL, 0, "Pass over operations that this build does not have, and say so", 0 },
    { 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state) {
    struct options *options = state->input;
    int64_t number;
    switch (key) {
    case 'd': options->device = argument; return 0;
    case KEY_SKIP_UNKNOWN: options->skip_unknown = true; return 0;
    case 't':
        if (!cli_parse_int(argument, 1, 4096, &number)) {
            argp_error(state, "--threads %s: expected a number from 1 to 4096", cli_printable(argument));
        }
        options->n_threads = (int32_t)number;
        return 0;
    case 'p':
        options->paths = strcmp(argument, "replay") == 0     ? PATH_REPLAY
                         : strcmp(argument, "composed") == 0 ? PATH_COMPOSED
                         : strcmp(argument, "both") == 0     ? PATH_REPLAY | PATH_COMPOSED
                                                             : 0;
        if (!options->paths) {
            argp_error(state, "--path %s: expected replay, composed or both", cli_printable(argument));
        }
        return 0;
    case ARGP_KEY_ARGS:
        options->files = state->argv + state->next;
        options->n_files = state->argc - state->next;
        return 0;
    case ARGP_KEY_NO_ARGS: argp_error(state, "no case file is named"); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

struct job {
    const char *command;
    struct options options;
    ol_device *device;
    case_list list;
    const one_case **ordered;          /* the cases by batch, in the order of their lines */
    char device_failure[sizeof(((ol_error *)0)->description)];        /* the last one, "" where there was none */
    bool hopeless;                     /* it came twice: no further batch is tried */
    int64_t n_passed, n_failed, n_skipped;
};

/* "FILE:LINE: " */
static void put_place(const char *path, int64_t line) {
    cli_put(stdout, path);
    printf(":%" PRId64 ": ", line);
}

static void complain(void *user, const char *path, int64_t line, const char *text) {
    struct job *job = user;
    job->n_failed++;
    put_place(path, line);
    cli_put(stdout, text);
    putchar('\n');
}

/* ---- Running a batch ------------------------------------------------------------------------------------------- */

struct operation {
    const case_signature *signature;
    int32_t primitive;
};

static int build(ol_graph *graph, const ol_value *in, ol_value *out, void *user) {
    const struct operation *operation = user;
    out[0] = strcmp(operation->signature->op, "astype") == 0
                 ? ol_astype(graph, in[0], operation->signature->out[0])
                 : ol_apply(graph, operation->primitive, in, operation->signature->n_in);
    return 0;
}

/* Words the error, and remembers a device's: one that two batches end in alike (no compiler, a context that has failed) is no
 * fault of theirs. */
static void take_error(struct job *job, const ol_error *error, char *reason, size_t reason_bytes) {
    snprintf(reason, reason_bytes, "%s: %s", error->operation, error->description);
    if (error->status == OL_ERROR_DEVICE) {
        job->hopeless = strcmp(job->device_failure, error->description) == 0;
        snprintf(job->device_failure, sizeof job->device_failure, "%s", error->description);
    }
}

/* Compiles a signature. Where that fails, *reason says why, and *unknown whether the operation does not exist. */
static ol_composite *compile(struct job *job, const case_signature *signature, bool *unknown, char *reason, size_t reason_bytes) {
    ol_device *device = job->device;
    ol_composite *composite = NULL;
    ol_error error = { 0 };
    ol_status status;
    struct operation operation = { .signature = signature, .primitive = ol_primitive_find(signature->op) };
    const ol_builder builder = {
        .build = build, .user = &operation, .n_inputs = signature->n_in, .n_outputs = 1, .name = signature->op };

    *unknown = false;
    if (strcmp(signature->op, "rates") == 0 && signature->n_in == 4) {
        status = ol_gated_delta_rates_compile(device, signature->in[0], signature->in[1], signature->in[2], signature->in[3],
                                              &composite, &error);
    } else if (strcmp(signature->op, "astype") != 0 && operation.primitive < 0) {
        *unknown = true;
        snprintf(reason, reason_bytes, "no such operation");
        return NULL;
    } else if (signature->n_in != (operation.primitive < 0 ? 1 : ol_primitive_arity(operation.primitive))) {
        snprintf(reason, reason_bytes, "takes another number of operands than %" PRId32, signature->n_in);
        return NULL;
    } else {
        status = ol_compile(device, &builder, signature->in, &composite, &error);
    }
    if (status != OL_OK) {
        take_error(job, &error, reason, reason_bytes);
        return NULL;
    }
    for (int32_t i = 0; i < signature->n_out; i++) {
        if (ol_composite_output_dtype(composite, i) != signature->out[i]) {
            snprintf(reason, reason_bytes, "gives %s, but the case expects %s",
                     ol_dtype_name(ol_composite_output_dtype(composite, i)), ol_dtype_name(signature->out[i]));
            ol_composite_destroy(composite);
            return NULL;
        }
    }
    return composite;
}

static void put_bits(unsigned char *data, int64_t index, ol_dtype dtype, uint64_t bits) {
    size_t size = ol_dtype_size(dtype);
    union { uint8_t one; uint16_t two; uint32_t four; uint64_t eight; } value;
    switch (size) {
    case 1: value.one = (uint8_t)bits; break;
    case 2: value.two = (uint16_t)bits; break;
    case 4: value.four = (uint32_t)bits; break;
    default: value.eight = bits; break;
    }
    memcpy(data + (size_t)index * size, &value, size);
}

static uint64_t get_bits(const unsigned char *data, int64_t index, ol_dtype dtype) {
    size_t size = ol_dtype_size(dtype);
    union { uint8_t one; uint16_t two; uint32_t four; uint64_t eight; } value;
    memcpy(&value, data + (size_t)index * size, size);
    return size == 1 ? value.one : size == 2 ? value.two : size == 4 ? value.four : value.eight;
}

static bool allocate(const case_signature *signature, int64_t n, ol_tensor *inputs, ol_tensor *outputs) {
    bool ok = true;
    for (int32_t i = 0; i < signature->n_in; i++) {
        inputs[i] = ol_tensor_contiguous(calloc((size_t)n, ol_dtype_size(signature->in[i])), signature->in[i], 1, &n);
        ok = ok && inputs[i].data;
    }
    for (int32_t i = 0; i < signature->n_out; i++) {
        outputs[i] = ol_tensor_contiguous(calloc((size_t)n, ol_dtype_size(signature->out[i])), signature->out[i], 1, &n);
        ok = ok && outputs[i].data;
    }
    return ok;
}

static void print_miss(const struct job *job, const case_signature *signature, const one_case *one, const char *path,
                       const ol_tensor *outputs, int64_t index) {
    put_place(job->options.files[one->file], one->line);
    printf("%s", signature->op);
    for (int32_t i = 0; i < signature->n_in; i++) {
        printf(" %s %0*" PRIx64, ol_dtype_name(signature->in[i]), (int)(2 * ol_dtype_size(signature->in[i])), one->in[i]);
    }
    printf(": %s gives", path);
    for (int32_t i = 0; i < signature->n_out; i++) {
        int digits = (int)(2 * ol_dtype_size(signature->out[i]));
        printf("%s %s %0*" PRIx64 ", expected %0*" PRIx64, i ? ";" : "", ol_dtype_name(signature->out[i]), digits,
               get_bits(outputs[i].data, index, signature->out[i]), digits, one->out[i]);
    }
    putchar('\n');
}

/* Compares one path's outputs and marks the cases that are wrong. */
static void compare(const struct job *job, const case_signature *signature, const one_case **cases, int64_t n_cases,
                    const char *path, const ol_tensor *outputs, unsigned char *missed) {
    for (int64_t k = 0; k < n_cases; k++) {
        bool right = true;
        for (int32_t i = 0; i < signature->n_out; i++) {
            right &= get_bits(outputs[i].data, k, signature->out[i]) == cases[k]->out[i];
        }
        if (!right) {
            missed[k] = 1;
            print_miss(job, signature, cases[k], path, outputs, k);
        }
    }
}

/* None of these cases could be run: one line says so for all. */
static void give_up(struct job *job, const case_signature *signature, const one_case **cases, int64_t n_cases, bool unknown,
                    const char *reason) {
    bool skip = unknown && job->options.skip_unknown;
    put_place(job->options.files[cases[0]->file], cases[0]->line);
    printf("%s %s: ", signature->op, ol_dtype_name(signature->in[0]));
    cli_put(stdout, reason);
    printf(" (%" PRId64 " case%s %s)\n", n_cases, n_cases == 1 ? "" : "s", skip ? "skipped" : "failed");
    *(skip ? &job->n_skipped : &job->n_failed) += n_cases;
}

/* One path over the mirrors; the outputs are filled with a pattern before, so that none of another run is taken for this one's. */
static ol_status run_path(ol_device *device, int path, const ol_composite *composite, const case_signature *signature,
                          const ol_tensor *outputs, const ol_tensor *in, const ol_tensor *out, ol_error *error) {
    for (int32_t i = 0; i < signature->n_out; i++) {
        memset(outputs[i].data, 0xa5, tensor_bytes(&outputs[i]));
    }
    ol_status status = mirrors_up(device, outputs, signature->n_out, out, error);
    if (status == OL_OK) {
        status = path == PATH_REPLAY ? ol_replay(composite, NULL, in, out, error)
                                     : ol_replay_composed(composite, NULL, in, out, error);
    }
    return status == OL_OK ? mirrors_down(device, outputs, signature->n_out, out, error) : status;
}

static void run_batch(struct job *job, const case_signature *signature, const one_case **cases, int64_t n_cases) {
    char reason[700];
    bool unknown;
    ol_tensor inputs[CASE_MAX_IN] = { 0 }, outputs[CASE_MAX_OUT] = { 0 }, in[CASE_MAX_IN] = { 0 }, out[CASE_MAX_OUT] = { 0 };
    int64_t n = n_cases | 1;                       /* odd; the last case fills the room that is left */
    unsigned char *missed = calloc((size_t)n, 1);
    ol_composite *composite = compile(job, signature, &unknown, reason, sizeof reason);
    ol_error error = { 0 };
    if (!composite) {
        give_up(job, signature, cases, n_cases, unknown, reason);
        goto done;
    }
    if (!missed || !allocate(signature, n, inputs, outputs)) {
        give_up(job, signature, cases, n_cases, false, "out of memory");
        goto done;
    }
    for (int64_t k = 0; k < n; k++) {
        for (int32_t i = 0; i < signature->n_in; i++) {
            put_bits(inputs[i].data, k, signature->in[i], cases[k < n_cases ? k : n_cases - 1]->in[i]);
        }
    }
    ol_status status = mirrors_make(job->device, inputs, signature->n_in, in, &error);
    if (status == OL_OK) {
        status = mirrors_make(job->device, outputs, signature->n_out, out, &error);
    }
    if (status == OL_OK) {
        status = mirrors_up(job->device, inputs, signature->n_in, in, &error);
    }
    for (int path = PATH_REPLAY; status == OL_OK && path <= PATH_COMPOSED; path <<= 1) {
        if (!(job->options.paths & path)) {
            continue;
        }
        status = run_path(job->device, path, composite, signature, outputs, in, out, &error);
        if (status == OL_OK) {
            compare(job, signature, cases, n_cases, path == PATH_REPLAY ? "replay" : "composed path", outputs, missed);
        }
    }
    if (status != OL_OK) {
        take_error(job, &error, reason, sizeof reason);
        give_up(job, signature, cases, n_cases, false, reason);
        goto done;
    }
    for (int64_t k = 0; k < n_cases; k++) {
        *(missed[k] ? &job->n_failed : &job->n_passed) += 1;
    }
done:
    mirrors_free(job->device, CASE_MAX_IN, in);
    mirrors_free(job->device, CASE_MAX_OUT, out);
    for (int i = 0; i < CASE_MAX_IN; i++) {
        free(inputs[i].data);
    }
    for (int i = 0; i < CASE_MAX_OUT; i++) {
        free(outputs[i].data);
    }
    ol_composite_destroy(composite);
    free(missed);
}

/* ---- The command ----------------------------------------------------------------------------------------------- */

static int by_batch(const void *left, const void *right) {
    const one_case *x = *(const one_case *const *)left, *y = *(const one_case *const *)right;
    return x->batch != y->batch ? (x->batch > y->batch) - (x->batch < y->batch) : (x > y) - (x < y);
}

static bool run(struct job *job) {
    for (int32_t i = 0; i < job->options.n_files; i++) {
        errno = 0;
        if (!cases_read(&job->list, job->options.files[i], i, complain, job)) {
            cli_error(job->command, "%s: %s", job->options.files[i],
                      errno == EFBIG ? "a line of more than 64 KiB, and no file whose lines must end" : strerror(errno));
            return false;
        }
    }
    size_t n = job->list.n_cases;
    job->ordered = calloc(n + 1, sizeof(const one_case *));
    if (!job->ordered) {
        cli_error(job->command, "out of memory for %zu cases", n);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        job->ordered[i] = &job->list.cases[i];
    }
    qsort(job->ordered, n, sizeof *job->ordered, by_batch);
    size_t next = 0;
    for (size_t first = 0; first < n && !job->hopeless; first = next) {
        size_t batch = job->ordered[first]->batch;
        for (next = first; next < n && job->ordered[next]->batch == batch; next++) {
        }
        run_batch(job, &job->list.batches[batch], job->ordered + first, (int64_t)(next - first));
    }
    if (next < n) {
        cli_error(job->command, "%s fails alike again and again; the %zu cases that are left count as failed",
                  ol_device_name(job->device), n - next);
        job->n_failed += (int64_t)(n - next);
    }
    return true;
}

int cmd_check(int argc, char **argv) {
    static const struct argp argp = {
        .options = option_table,
        .parser = parse,
        .args_doc = "FILE...",
        .doc =
            "Runs case files and prints each miss with its expected and actual bits."
            "\vA line is a case by its columns: OP IN_DTYPE IN OUT_DTYPE OUT; OP DTYPE X Y OUT; OP DTYPE X Y Z OUT; "
            "the twelve columns of the gated-delta rates; or IN OUT in float32, the operation being the file's name "
            "(exp.hard). Bits are hexadecimal. The last line is \"N passed, M failed\".",
    };
    struct job job = { .command = argv[0], .options.paths = PATH_REPLAY | PATH_COMPOSED };
    if (!cli_arguments(&argp, argc, argv, &job.options)) {
        return CLI_USAGE;
    }
    int code = CLI_USAGE;
    if (cli_device(job.command, job.options.device, job.options.n_threads, &job.device) && run(&job)) {
        if (job.n_skipped > 0) {
            printf("%" PRId64 " skipped\n", job.n_skipped);
        }
        printf("%" PRId64 " passed, %" PRId64 " failed\n", job.n_passed, job.n_failed);
        bool none = job.n_passed + job.n_failed + job.n_skipped == 0;
        if (none) {
            cli_error(job.command, "no case was found in %s%s", job.options.files[0], job.options.n_files > 1 ? " or the other files" : "");
        }
        code = none || job.n_failed > 0 ? CLI_MISS : CLI_OK;
    }
    free(job.ordered);
    cases_free(&job.list);
    ol_device_destroy(job.device);
    return code;
}
