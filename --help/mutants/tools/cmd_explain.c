/* `onelaunch explain`: a graph, the program it becomes, and its launches. The graph is a built-in composite or a file in the text
 * form of docs/graph-text.md; what is printed under "graph" can be saved and read again. */
#include "cli.h"
#include "commands.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DTYPES = 4, KEY_DOT = 256, KEY_OPTIMIZED, KEY_CUDA };
#define MAX_FILE_BYTES (64u << 20)

struct options {
    const char *what;
    ol_dtype dtypes[MAX_DTYPES];
    int n_dtypes;                        /* 0: not given */
    bool dot, optimized, cuda;
};

static const struct argp_option option_table[] = {
    { "dtypes", 't', "A,B,...", 0, "Dtypes of a built-in composite's inputs (default: bfloat16, with float32 for A_log)", 0 },
    { "optimized", KEY_OPTIMIZED, 0, 0, "Show the graph after the passes instead of the one traced", 0 },
    { "dot", KEY_DOT, 0, 0, "Print the graph after the passes for Graphviz, and nothing else", 0 },
    { "cuda", KEY_CUDA, 0, 0, "Print the text of its CUDA kernel, and nothing else; needs neither a GPU nor CUDA", 0 },
    { 0 },
};

static void parse_dtypes(struct argp_state *state, const char *text, struct options *options) {
    options->n_dtypes = 0;
    for (const char *at = text;; at++) {
        char name[16];
        size_t length = strcspn(at, ",");
        if (length < sizeof name) {
            memcpy(name, at, length);
            name[length] = 0;
        }
        if (length >= sizeof name || options->n_dtypes == MAX_DTYPES || !ol_dtype_parse(name, &options->dtypes[options->n_dtypes++])) {
            argp_error(state, "--dtypes %s: expected up to %d dtypes such as bfloat16,float32", cli_printable(text), MAX_DTYPES);
            return;
        }
        at += length;
        if (!*at) {
            return;
        }
    }
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    struct options *options = state->input;
    switch (key) {
    case 't': parse_dtypes(state, argument, options); return 0;
    case KEY_DOT: options->dot = true; return 0;
    case KEY_OPTIMIZED: options->optimized = true; return 0;
    case KEY_CUDA: options->cuda = true; return 0;
    case ARGP_KEY_END:
        if (options->cuda && (options->dot || options->optimized)) {
            argp_error(state, "--cuda and --%s are different things to print", options->dot ? "dot" : "optimized");
        }
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0) {
            argp_error(state, "unexpected argument '%s'", cli_printable(argument));
        }
        options->what = argument;
        return 0;
    case ARGP_KEY_NO_ARGS: argp_error(state, "expected rates, decay, or a graph's file"); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Where the composite comes from --------------------------------------------------------------------------------------------- */

/* A whole file, or standard input for "-". NULL, with a message, on failure. */
static char *read_file(const char *command, const char *path, size_t *n_bytes) {
    bool standard_input = strcmp(path, "-") == 0;
    FILE *stream = standard_input ? stdin : fopen(path, "rb");
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room);
    bool failed = !stream || !text;
    while (!failed) {
        used += fread(text + used, 1, room - used, stream);
        if (used < room) {
            failed = ferror(stream) != 0;
            break;
        }
        char *grown = realloc(text, room *= 2);
        if (room > MAX_FILE_BYTES) {
            errno = EFBIG;
        }
        text = grown ? grown : text;
        failed = !grown || room > MAX_FILE_BYTES;
    }
    if (failed) {
        cli_error(command, "%s: %s", standard_input ? "standard input" : path, strerror(errno));
        free(text);
        text = NULL;
    }
    if (stream && !standard_input) {
        fclose(stream);
    }
    *n_bytes = used;
    return text;
}

/* "FILE:LINE:COLUMN: what". Descriptions of what is wrong with the text start with the place; what the tracing functions refuse
 * starts with the line and is told with the operation. */
static void report(const char *command, const char *path, const ol_error *error) {
    size_t digits = strspn(error->description, "0123456789");
    if (error->status == OL_ERROR_TEXT) {
        cli_error(command, "%s:%s", path, error->description);
    } else if (digits > 0 && error->description[digits] == ':') {
        cli_error(command, "%s:%.*s: %s%s", path, (int)digits, error->description, error->operation, error->description + digits);
    } else {
        cli_error(command, "%s: %s: %s", path, error->operation, error->description);
    }
}

static bool compile_file(const char *command, ol_device *device, const struct options *options, ol_composite **composite) {
    const char *name = strcmp(options->what, "-") == 0 ? "standard input" : options->what;
    ol_error error = { 0 };
    size_t n_bytes;
    if (options->n_dtypes > 0) {
        cli_error(command, "%s: --dtypes is for rates and decay; a graph's file states its own", name);
        return false;
    }
    char *text = read_file(command, options->what, &n_bytes);
    if (!text) {
        return false;
    }
    bool ok = ol_compile_text(device, text, n_bytes, composite, &error) == OL_OK;
    if (!ok) {
        report(command, name, &error);
    }
    free(text);
    return ok;
}

static bool compile_built_in(const char *command, ol_device *device, const struct options *options, ol_composite **composite) {
    bool rates = strcmp(options->what, "rates") == 0;
    int n = rates ? 4 : 3;
    ol_dtype usual[MAX_DTYPES] = { OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16 };
    const ol_dtype *d = options->n_dtypes > 0 ? options->dtypes : rates ? usual : usual + 1;
    ol_error error = { 0 };
    if (options->n_dtypes > 0 && options->n_dtypes != n) {
        cli_error(command, "--dtypes: %d given; %s takes %d: %sa, A_log, dt_bias", options->n_dtypes, options->what, n, rates ? "b, " : "");
        return false;
    }
    ol_status status = rates ? ol_gated_delta_rates_compile(device, d[0], d[1], d[2], d[3], composite, &error)
                             : ol_gated_delta_decay_compile(device, d[0], d[1], d[2], composite, &error);
    if (status != OL_OK) {
        cli_error(command, "%s: %s: %s", options->what, error.operation, error.description);
    }
    return status == OL_OK;
}

/* ---- What is printed -------------------------------------------------------------------------------------------------------------- */

static char *text_of(const ol_composite *composite, ol_text_kind kind) {
    size_t n = ol_composite_text(composite, kind, NULL, 0);
    char *text = malloc(n + 1);
    if (text) {
        ol_composite_text(composite, kind, text, n + 1);
    }
    return text;
}

static char *kernel_text_of(const ol_composite *composite) {
    size_t n = ol_cuda_kernel_text(composite, NULL, 0);
    char *text = n > 0 ? malloc(n + 1) : NULL;
    if (text && ol_cuda_kernel_text(composite, text, n + 1) != n) {
        free(text);
        text = NULL;
    }
    return text;
}

/* Line by line: a graph's name may hold what a terminal would obey. */
static void put_lines(const char *text) {
    while (*text) {
        size_t length = strcspn(text, "\n");
        char *line = strndup(text, length);
        if (line) {
            cli_put(stdout, line);
            free(line);
        }
        putchar('\n');
        text += length + (text[length] == '\n');
    }
}

static void print_signature(const ol_composite *composite) {
    int32_t n_in = ol_composite_input_count(composite), n_out = ol_composite_output_count(composite);
    cli_put(stdout, ol_composite_name(composite));
    printf(": %d input%s (", (int)n_in, n_in == 1 ? "" : "s");
    for (int32_t i = 0; i < n_in; i++) {
        printf("%s%s", i ? ", " : "", ol_dtype_name(ol_composite_input_dtype(composite, i)));
    }
    printf("), %d output%s (", (int)n_out, n_out == 1 ? "" : "s");
    for (int32_t i = 0; i < n_out; i++) {
        printf("%s%s", i ? ", " : "", ol_dtype_name(ol_composite_output_dtype(composite, i)));
    }
    printf(")\n");
}

/* The instructions that the program marks as hoisted, each with its node: "exp v5". */
static void print_hoisted(const char *program) {
    int n = 0;
    for (const char *line = program; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t length = strcspn(line, "\n");
        const char *mark = memmem(line, length, "; hoisted", 9), *operation = memmem(line, length, " = ", 3), *node = memmem(line, length, " v", 2);
        if (!mark || !operation || !node || node > mark) {
            continue;
        }
        operation += 3;
        printf("%s%.*s%.*s", n++ ? ", " : "hoisted where their inputs are the same for every row: ", (int)strcspn(operation, " "), operation,
               (int)(mark - node), node);
    }
    printf(n ? " (numbered as in the optimized graph)\n" : "hoisted: nothing\n");
}

static bool print_kernel(const char *command, const ol_composite *composite) {
    char *text = kernel_text_of(composite);
    if (text) {
        put_lines(text);
    } else {
        cli_error(command, "out of memory");
    }
    free(text);
    return text != NULL;
}

static bool explain(const char *command, const ol_composite *composite, const struct options *options) {
    ol_text_kind kind = options->dot ? OL_TEXT_DOT : options->optimized ? OL_TEXT_OPTIMIZED : OL_TEXT_GRAPH;
    char *graph = text_of(composite, kind), *program = text_of(composite, OL_TEXT_PROGRAM);
    if (!graph || !program) {
        cli_error(command, "out of memory");
    } else if (options->dot) {
        put_lines(graph);
    } else {
        int launches = (int)ol_composite_composed_launches(composite);
        print_signature(composite);
        printf("\n---- graph%s ----\n", options->optimized ? ", optimized" : "");
        put_lines(graph);
        printf("\n---- program ----\n");
        put_lines(program);
        printf("\nlaunches: 1 a replay; one primitive at a time (the composed path): %d\n", launches);
        print_hoisted(program);
    }
    bool ok = graph && program;
    free(graph);
    free(program);
    return ok;
}

int cmd_explain(int argc, char **argv) {
    static const struct argp argp = {
        .options = option_table,
        .parser = parse,
        .args_doc = "rates|decay|FILE",
        .doc = "Shows a graph, the program it becomes, its launches and what is hoisted; or the CUDA kernel it becomes."
               "\vThe graph is a built-in composite (rates: inputs b, a, A_log, dt_bias; decay: a, A_log, dt_bias) or a file in text form; "
               "- reads standard input. Errors name FILE:LINE:COLUMN. Exit code 2 where the graph cannot be read or compiled.",
    };
    struct options options = { 0 };
    ol_device *device = NULL;
    ol_composite *composite = NULL;
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0) {
        return CLI_USAGE;
    }
    int code = CLI_USAGE;
    bool built_in = strcmp(options.what, "rates") == 0 || strcmp(options.what, "decay") == 0;
    if (cli_device(argv[0], NULL, 1, &device) &&
        (built_in ? compile_built_in : compile_file)(argv[0], device, &options, &composite)) {
        bool ok = options.cuda ? print_kernel(argv[0], composite) : explain(argv[0], composite, &options);
        code = ok ? CLI_OK : CLI_MISS;
    }
    ol_composite_destroy(composite);
    ol_device_destroy(device);
    return code;
}
