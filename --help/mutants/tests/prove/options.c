/* See options.h. */
#include "options.h"
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_SAMPLES = 256, KEY_SHOW, KEY_REPORT, KEY_STATE, KEY_LIST, KEY_DIGESTS, KEY_WRITE_DIGESTS, KEY_SHARD, KEY_HARD_PAIRS, MOST_THREADS = 1024 };

/* Relative, since a state file is of one executable: no path of the tree it was built in may be part of it. */
#define DEFAULT_DIGESTS "tests/golden/digests.tsv"

static const struct argp_option option_table[] = {
    { NULL, 0, NULL, 0, "What to run:", 1 },
    { "op", 'o', "LIST", 0, "Primitives, and conversions to DTYPE as astype_DTYPE, separated by commas (default: all)", 1 },
    { "dtype", 'd', "LIST", 0, "Operands' dtypes: float32, float16, bfloat16 (default: all)", 1 },
    { "level", 'l', "LIST", 0, "SIMD levels (default: all that this machine has). All are run together, against one reference", 1 },
    { "shard", KEY_SHARD, "I/N", 0, "Only part I (from 0) of N of each run's inputs; N is at most 2^20", 1 },
    { "hard-pairs", KEY_HARD_PAIRS, "N", OPTION_ARG_OPTIONAL,
      "Instead of all this, N pairs of float32 (default: 2^26) for each primitive of two operands, aimed at its hard spots", 1 },
    { "list", KEY_LIST, NULL, 0, "Print what there is, and stop", 1 },
    { NULL, 0, NULL, 0, "How:", 2 },
    { "threads", 't', "N", 0, "Use N threads (default: one per CPU); with 1, no thread is made", 2 },
    { "samples", KEY_SAMPLES, "N", 0, "Of each 2^32 inputs compare N random approximations with MPFR, from 0 to 2^32 (default: 2^20); of 65,536 inputs always at least one in sixteen", 2 },
    { "state", KEY_STATE, "FILE", 0, "Keep finished work in FILE and go on from it", 2 },
    { NULL, 0, NULL, 0, "What is said:", 3 },
    { "show", KEY_SHOW, "N", 0, "Print at most N wrong results of a run (default: 8)", 3 },
    { "report", KEY_REPORT, "FILE", 0, "Write the results to FILE, as JSON", 3 },
    { "quiet", 'q', NULL, 0, "Show no progress", 3 },
    { "no-progress", 'q', NULL, OPTION_ALIAS, NULL, 3 },
    { NULL, 0, NULL, 0, "Digests alone, by the kernels and without the reference, which is much faster:", 4 },
    { "digests", KEY_DIGESTS, "FILE", OPTION_ARG_OPTIONAL, "Compare with those in FILE (default: " DEFAULT_DIGESTS ", from the current folder)", 4 },
    { "write-digests", KEY_WRITE_DIGESTS, "FILE", 0, "Write them to FILE", 4 },
    { 0 },
};

static int number(struct argp_state *state, const char *option, const char *text, int64_t low, int64_t high, int64_t *result) {
    if (cli_parse_int(text, low, high, result)) return 0;
    argp_error(state, "%s %s: expected a number from %lld to %lld", option, cli_printable(text), (long long)low, (long long)high);
    return EINVAL;
}

static int shard(struct argp_state *state, char *text, run_settings *settings) {
    char *slash = strchr(text, '/');
    int64_t i, n;
    if (slash) *slash = 0;
    bool ok = slash && cli_parse_int(slash + 1, 1, 1 << 20, &n) && cli_parse_int(text, 0, n - 1, &i);
    if (slash) *slash = '/';
    if (ok) settings->shard = (unsigned)i, settings->n_shards = (unsigned)n;
    else argp_error(state, "--shard %s: expected I/N, with I from 0 to N - 1 and N from 1 to 2^20", cli_printable(text));
    return ok ? 0 : EINVAL;
}

/* Two outputs into one file would leave neither. By name, or by what exists there (not of devices: /dev/null takes all). */
static void refuse_same_file(struct argp_state *state, const char *option, const char *path, const char *other_option, const char *other) {
    struct stat a, b;
    if (!path || !other) return;
    bool same = !strcmp(path, other);
    if (!stat(path, &a) && !stat(other, &b)) same = S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    if (same) argp_error(state, "%s and %s name the same file, '%s'", option, other_option, cli_printable(path));
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    options *o = state->input;
    int64_t n = 0;
    int code = 0;
    switch (key) {
    case 'o': o->operations = argument; return 0;
    case 'd': o->dtypes = argument; return 0;
    case 'l': o->levels = argument; return 0;
    case 'q': o->quiet = true; return 0;
    case 't':
        code = number(state, "--threads", argument, 1, MOST_THREADS, &n);
        o->n_threads = (int)n;
        return code;
    case KEY_SAMPLES:
        code = number(state, "--samples", argument, 0, (int64_t)1 << 32, &n);
        o->settings.samples = (uint64_t)n;
        return code;
    case KEY_SHOW:
        code = number(state, "--show", argument, 0, 1000000000, &n);
        o->settings.show = (unsigned)n;
        return code;
    case KEY_SHARD: return shard(state, argument, &o->settings);
    case KEY_HARD_PAIRS:
        n = 1 << 26;
        code = argument ? number(state, "--hard-pairs", argument, 1, (int64_t)1 << 40, &n) : 0;
        o->settings.n_hard_pairs = (uint64_t)n;
        return code;
    case KEY_LIST: o->list = true; return 0;
    case KEY_REPORT: o->report = argument; return 0;
    case KEY_STATE: o->state = argument; return 0;
    case KEY_DIGESTS: o->digests = argument ? argument : ""; return 0;
    case KEY_WRITE_DIGESTS: o->write_digests = argument; return 0;
    case ARGP_KEY_ARG:
        if (!o->digests || *o->digests) {                                  /* not that of "--digests FILE" */
            argp_error(state, "unexpected argument '%s'", cli_printable(argument));
            return EINVAL;
        }
        o->digests = argument;
        return 0;
    case ARGP_KEY_END:
        if (o->settings.n_hard_pairs && (o->digests || o->write_digests || o->state))
            argp_error(state, "--hard-pairs goes with neither digests nor a state file");
        refuse_same_file(state, "--state", o->state, "--report", o->report);
        refuse_same_file(state, "--state", o->state, "--write-digests", o->write_digests);
        refuse_same_file(state, "--report", o->report, "--write-digests", o->write_digests);
        if (o->digests && o->write_digests) argp_error(state, "--digests and --write-digests exclude each other");
        if ((o->digests || o->write_digests) && o->settings.n_shards > 1 && !o->state)
            argp_error(state, "a digest is of all inputs: with --shard it needs a --state file that has the other shards");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

bool options_parse(int argc, char **argv, options *o) {
    static const struct argp argp = {
        .options = option_table,
        .parser = parse,
        .doc = "Proves primitives and conversions between floats by running every input: all of float32, all of a 16-bit float, all pairs of a binary primitive on 16-bit "
               "floats, and a fixed sample of 2^28 float32 pairs, against a reference by MPFR."
               "\v\"near\" counts the inputs whose approximation by the C library left the rounding open, so that MPFR decided; \"samples\" "
               "random others, by which the bound of the approximation is checked; \"seconds\" is processor time of all levels together. The "
               "digest is of all results in input order (tools/digest.h), so that levels, machines and versions can be compared.\n\n"
               "Exit status: 0 all right, 1 wrong results, 2 wrong usage or another failure.",
    };
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    *o = (options){ .operations = "all", .dtypes = "all", .levels = "all", .n_threads = n < 1 ? 1 : n > MOST_THREADS ? MOST_THREADS : (int)n,
                    .settings = { .n_shards = 1, .samples = 1u << 20, .show = 8 } };
    argp_err_exit_status = CLI_USAGE;
    if (!cli_arguments(&argp, argc, argv, o)) return false;
    if (o->digests && !*o->digests) {
        o->digests = DEFAULT_DIGESTS;
        if (access(o->digests, F_OK)) {
            cli_error("prove", "%s: %s; --digests without a FILE reads it from the current folder, so that has to be the top of the source tree",
                      o->digests, strerror(errno));
            return false;
        }
    }
    o->settings.kernels_only = o->digests || o->write_digests;
    return true;
}

/* A level that was named must be there; of all levels, those that this machine has are meant. */
static bool choose_levels(const char *command, options *o) {
    bool chosen[MAX_LEVELS] = { false }, all = !strcmp(o->levels, "all");
    if (!choose(command, "--level", o->levels, level_name, level_count, chosen)) return false;
    for (int l = 0; l < level_count; l++) {
        if (!chosen[l]) continue;
        if (ol_cpu_level_available(level_list[l].level)) o->settings.levels[o->settings.n_levels++] = &level_list[l];
        else if (all) fprintf(stderr, "%s: this machine does not have %s\n", command, level_list[l].name);
        else {
            cli_error(command, "--level %s: this machine does not have %s", o->levels, level_list[l].name);
            return false;
        }
    }
    return true;
}

bool options_choose(const char *command, options *o, bool *operations, bool *dtypes) {
    return choose(command, "--op", o->operations, operation_name, reference_count, operations) &&
           choose(command, "--dtype", o->dtypes, dtype_name, dtype_count, dtypes) && choose_levels(command, o);
}
