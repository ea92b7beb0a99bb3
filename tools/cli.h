/* What the commands share: exit codes, messages, the --device option, aligned text, a progress bar.
 *
 * Messages go to stderr as "onelaunch NAME: FILE: tensor TENSOR: what was given and what was expected". Names come from files
 * that others wrote, so everything that is printed passes through a filter that replaces control characters: a tensor's
 * name must not be able to drive a terminal. */
#ifndef ONELAUNCH_TOOLS_CLI_H
#define ONELAUNCH_TOOLS_CLI_H

#include <argp.h>
#include <onelaunch.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum cli_exit {
    CLI_OK = 0,          /* the job is done and nothing was missed */
    CLI_MISS = 1,        /* a miss, a difference, or a failure of the job itself */
    CLI_USAGE = 2        /* wrong usage, input that could not be read, or a standard output that could not be written */
};

/* To be called first: where the caller has closed a standard stream, no file may take its number and be written to. */
void cli_hold_descriptors(void);

/* Prints "COMMAND: message\n" to stderr. `command` is argv[0] as a command gets it. */
void cli_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes text to a stream, control characters replaced by '?'. */
void cli_put(FILE *stream, const char *text);

/* The text with control characters as \xNN, for argp_error, which has no such filter. In a static buffer, cut where that
 * ends. */
const char *cli_printable(const char *text);

/* Parses a command's arguments. False, with a message, where that failed; wrong usage does not return. */
bool cli_arguments(const struct argp *argp, int argc, char **argv, void *input);

/* Makes the device named by --device: "cpu", "cpu:LEVEL" (baseline, avx2, avx512, neon), "cuda", which is "cuda:0", or "cuda:N";
 * NULL is "cpu". n_threads as in ol_cpu_options; a GPU has none. On failure prints the reason and returns false. */
#define CLI_DEVICE_HELP "cpu (default), cpu:LEVEL, cuda or cuda:N"
bool cli_device(const char *command, const char *name, int32_t n_threads, ol_device **device);

/* Parses a whole decimal number in [low, high]: digits, after a minus where it may be negative, and nothing else. */
bool cli_parse_int(const char *text, int64_t low, int64_t high, int64_t *number);

/* "[2, 3]" into the buffer, which is also returned; what does not fit ends in "…". */
#define CLI_SHAPE_BYTES 200
const char *cli_shape(int32_t rank, const int64_t *shape, char buffer[CLI_SHAPE_BYTES]);

/* "f32", "bf16": a dtype in a narrow column. Static storage. */
const char *cli_dtype_short(ol_dtype dtype);

/* "12.3M": a count or a rate with a decimal prefix, at most six characters wide. */
#define CLI_COUNT_BYTES 32
const char *cli_count(double count, char buffer[CLI_COUNT_BYTES]);

/* Seconds of a clock that only goes forward. */
double cli_seconds(void);

/* A bar on stderr; shown only when that is a terminal, not a dumb one, and the work has already taken half a second. It fits into
 * a line: where that is narrow, the bar goes, then the end of the text; below 16 columns nothing is shown. */
typedef struct cli_progress {
    double start;
    bool terminal;
    bool shown;
} cli_progress;
void cli_progress_begin(cli_progress *progress);
void cli_progress_show(cli_progress *progress, int64_t done, int64_t total, const char *what);
/* Takes the bar off the screen, before a line is printed and at the end. */
void cli_progress_clear(cli_progress *progress);
/* What it is made of, for tests/prove, whose threads share one. The width of stderr's terminal, 80 where it does not say; a line of
 * that width in place of the one the cursor is on, with a bar filled by `part` of 1. */
int cli_progress_columns(void);
void cli_progress_draw(int columns, double part, const char *text);

/* Flushes stdout before the end, as where stderr is to follow it; if that fails, cli_flush will say why. */
void cli_sync(void);

/* Flushes stdout; false, with a message, if what was printed could not be written (a full disk, a closed pipe). */
bool cli_flush(const char *command);

/* At exit too, where nothing else flushed: what argp prints before it exits itself (--help, --version) may be lost to a full disk as well, and
 * the exit status is CLI_USAGE then. */
void cli_flush_at_exit(const char *command);

#endif
