/* See cli.h. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* open takes the lowest number that is free; what is only read cannot be written to either, so that cli_flush will say so. */
void cli_hold_descriptors(void) {
    for (int held = 0; held >= 0 && held <= STDERR_FILENO;) {
        held = open("/dev/null", O_RDONLY);
        if (held > STDERR_FILENO) {
            close(held);
        }
    }
}

/* C0 controls and DEL, and the C1 controls as UTF-8 writes them (c2 80 to c2 9f): all that a terminal would obey. */
void cli_put(FILE *stream, const char *text) {
    for (const unsigned char *byte = (const unsigned char *)text; *byte; byte++) {
        if (*byte == 0xc2 && byte[1] >= 0x80 && byte[1] <= 0x9f) {
            byte++;
            fputc('?', stream);
        } else {
            fputc(*byte < 0x20 || *byte == 0x7f ? '?' : *byte, stream);
        }
    }
}

const char *cli_printable(const char *text) {
    static char buffer[1024];
    size_t used = 0;
    for (const unsigned char *byte = (const unsigned char *)text; *byte && used + 9 < sizeof buffer; byte++) {
        bool c1 = *byte == 0xc2 && byte[1] >= 0x80 && byte[1] <= 0x9f;
        if (*byte < 0x20 || *byte == 0x7f || c1) {
            used += (size_t)snprintf(buffer + used, sizeof buffer - used, c1 ? "\\x%02x\\x%02x" : "\\x%02x", *byte, byte[1]);
            byte += c1;
        } else {
            buffer[used++] = (char)*byte;
        }
    }
    buffer[used] = 0;
    return buffer;
}

void cli_error(const char *command, const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cli_sync();                            /* so that what came before it also stands before it */
    fprintf(stderr, "%s: ", command);
    cli_put(stderr, text);
    fputc('\n', stderr);
}

bool cli_arguments(const struct argp *argp, int argc, char **argv, void *input) {
    error_t code = argp_parse(argp, argc, argv, 0, NULL, input);
    if (code) {
        cli_error(argv[0], "%s", strerror(code));
    }
    return code == 0;
}

static bool level_named(const char *name, ol_cpu_level *level) {
    for (int candidate = OL_CPU_BASELINE; ol_cpu_level_name((ol_cpu_level)candidate); candidate++) {
        if (strcmp(name, ol_cpu_level_name((ol_cpu_level)candidate)) == 0) {
            *level = (ol_cpu_level)candidate;
            return true;
        }
    }
    return false;
}

/* "cuda" and "cuda:N". What the driver says is passed on: why there is none, or how many GPUs it finds. */
static bool cuda_device(const char *command, const char *name, ol_device **device) {
    int64_t ordinal = 0;
    ol_error error = { 0 };
    if (name[4] == ':' && (name[5] < '0' || name[5] > '9' || !cli_parse_int(name + 5, 0, INT32_MAX, &ordinal))) {
        cli_error(command, "--device %s: \"%s\" is no number of a GPU; expected cuda:0, cuda:1, ...", name, name + 5);
        return false;
    }
    if (ol_device_cuda((int32_t)ordinal, NULL, device, &error) != OL_OK) {
        cli_error(command, "--device %s: %s", name, error.description);
        return false;
    }
    return true;
}

static bool cpu_device(const char *command, const char *name, int32_t n_threads, ol_device **device) {
    ol_cpu_options options = { .n_threads = n_threads };
    ol_error error = { 0 };
    if (name[3] == ':' && !level_named(name + 4, &options.level)) {
        cli_error(command, "--device %s: unknown SIMD level \"%s\"; `onelaunch devices` lists them", name, name + 4);
        return false;
    }
    if (ol_device_cpu(&options, device, &error) != OL_OK) {
        cli_error(command, "--device %s: %s", name, error.description);
        return false;
    }
    return true;
}

bool cli_device(const char *command, const char *name, int32_t n_threads, ol_device **device) {
    if (!name || strcmp(name, "cpu") == 0 || strncmp(name, "cpu:", 4) == 0) {
        return cpu_device(command, name ? name : "cpu", n_threads, device);
    }
    if (strcmp(name, "cuda") == 0 || strncmp(name, "cuda:", 5) == 0) {
        return cuda_device(command, name, device);
    }
    cli_error(command, "--device %s: unknown device; expected cpu, cpu:LEVEL, cuda or cuda:N", name);
    return false;
}

bool cli_parse_int(const char *text, int64_t low, int64_t high, int64_t *number) {
    const char *digits = text + (*text == '-');        /* strtoll alone takes spaces and a plus as well */
    char *end;
    if (*digits < '0' || *digits > '9') {
        return false;
    }
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *end || value < low || value > high) {
        return false;
    }
    *number = value;
    return true;
}

const char *cli_shape(int32_t rank, const int64_t *shape, char buffer[CLI_SHAPE_BYTES]) {
    static const char more[] = "…]";
    size_t used = 0;
    buffer[used++] = '[';
    for (int32_t axis = 0; axis < rank; axis++) {
        size_t space = CLI_SHAPE_BYTES - used;
        int length = axis < OL_MAX_RANK ? snprintf(buffer + used, space, "%s%" PRId64, axis ? ", " : "", shape[axis]) : -1;
        if (length < 0 || (size_t)length + sizeof more > space) {
            memcpy(buffer + used, more, sizeof more);
            return buffer;
        }
        used += (size_t)length;
    }
    buffer[used++] = ']';
    buffer[used] = 0;
    return buffer;
}

const char *cli_dtype_short(ol_dtype dtype) {
    switch (dtype) {
    case OL_FLOAT16: return "f16";
    case OL_BFLOAT16: return "bf16";
    case OL_FLOAT32: return "f32";
    default: return ol_dtype_name(dtype);
    }
}

const char *cli_count(double count, char buffer[CLI_COUNT_BYTES]) {
    static const char prefixes[] = " kMGTPE";
    size_t prefix = 0;
    while (count >= 999.95 && prefix + 2 < sizeof prefixes) {
        count /= 1000;
        prefix++;
    }
    if (prefix == 0) {
        snprintf(buffer, CLI_COUNT_BYTES, "%.0f", count);
    } else {
        snprintf(buffer, CLI_COUNT_BYTES, "%.1f%c", count, prefixes[prefix]);
    }
    return buffer;
}

double cli_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void cli_progress_begin(cli_progress *progress) {
    const char *kind = getenv("TERM");
    bool obeys = kind && *kind && strcmp(kind, "dumb") != 0;           /* escape sequences */
    *progress = (cli_progress){ .start = cli_seconds(), .terminal = obeys && isatty(STDERR_FILENO) };
}

int cli_progress_columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* The last column stays free, since some terminals wrap where it is written. Bytes are counted for columns: a character never
 * has more columns than bytes. */
void cli_progress_draw(int columns, double part, const char *text) {
    enum { LEAST_COLUMNS = 16, LEAST_BAR = 10, LONGEST_BAR = 40, BRACKETS = 3 };
    if (columns < LEAST_COLUMNS) {
        return;
    }
    int left = columns - 1, length = (int)strnlen(text, (size_t)left);
    int width = left - length - BRACKETS < LONGEST_BAR ? left - length - BRACKETS : LONGEST_BAR;
    while (length > 0 && text[length] && ((unsigned char)text[length] & 0xc0) == 0x80) {
        length--;                                      /* not in the midst of a character */
    }
    fputs("\r\033[K", stderr);
    if (width >= LEAST_BAR) {
        int filled = (int)(width * part);
        fputc('[', stderr);
        for (int i = 0; i < width; i++) {
            fputc(i < filled ? '#' : ' ', stderr);
        }
        fputs("] ", stderr);
    }
    fprintf(stderr, "%.*s", length, text);
    fflush(stderr);
}

void cli_progress_show(cli_progress *progress, int64_t done, int64_t total, const char *what) {
    char text[512];
    if (!progress->terminal || total <= 0 || cli_seconds() - progress->start < 0.5) {
        return;
    }
    cli_sync();
    snprintf(text, sizeof text, "%" PRId64 "/%" PRId64 " %s", done, total, cli_printable(what));
    cli_progress_draw(cli_progress_columns(), (double)done / (double)total, text);
    progress->shown = true;
}

void cli_progress_clear(cli_progress *progress) {
    if (progress->shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        progress->shown = false;
    }
}

/* Why writing to stdout failed first: a failed write drops what it was to write, so that a later flush has nothing left to fail
 * at, and by then errno tells of something else. */
static int stdout_error;

void cli_sync(void) {
    if (fflush(stdout) != 0 && !stdout_error) {
        stdout_error = errno;
    }
}

static const char *program;
static bool is_flushed;

bool cli_flush(const char *command) {
    is_flushed = true;
    cli_sync();
    if (stdout_error || ferror(stdout)) {
        cli_error(command, "standard output: %s", stdout_error ? strerror(stdout_error) : "it could not be written");
        return false;
    }
    return true;
}

static void flush_at_exit(void) {
    if (!is_flushed && !cli_flush(program)) {
        _exit(CLI_USAGE);
    }
}

void cli_flush_at_exit(const char *command) {
    program = command;
    atexit(flush_at_exit);
}
