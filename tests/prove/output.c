/* See output.h. */
#include "output.h"
#include "cli.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 30 };
static const double bar_seconds = 0.2, line_seconds = 30;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool wanted, terminal, shown;
    double total, done_before, start, last;
} bar;

void output_begin(bool progress, double total, double done) {
    const char *kind = getenv("TERM");
    bool obeys = kind && *kind && strcmp(kind, "dumb") != 0;              /* escape sequences */
    bar.wanted = progress && total > 0;
    bar.terminal = obeys && isatty(STDERR_FILENO);
    bar.total = total, bar.done_before = done;
    bar.start = bar.last = cli_seconds();
}

static void clear(void) {
    if (bar.shown) fputs("\r\033[K", stderr);
    bar.shown = false;
}

static void print_time(double seconds) {
    long s = (long)(seconds + 0.5);
    if (s >= 3600) fprintf(stderr, "%ld h %02ld min", s / 3600, s / 60 % 60);
    else if (s >= 60) fprintf(stderr, "%ld min %02ld s", s / 60, s % 60);
    else fprintf(stderr, "%ld s", s);
}

void output_progress(double done, const char *what) {
    if (!bar.wanted || pthread_mutex_trylock(&lock)) return;              /* another thread prints */
    double now = cli_seconds(), part = done / bar.total;
    if (now - bar.last >= (bar.terminal ? bar_seconds : line_seconds)) {
        bar.last = now;
        fflush(stdout);
        if (bar.terminal) {
            clear();
            fputc('[', stderr);
            for (int i = 0; i < WIDTH; i++) fputc(i < (int)(part * WIDTH) ? '#' : ' ', stderr);
            fputs("] ", stderr);
        } else {
            fputs("prove: ", stderr);
        }
        fprintf(stderr, "%.1f %%, ", 100 * part);
        if (done > bar.done_before) {
            print_time((now - bar.start) * (bar.total - done) / (done - bar.done_before));
            fputs(" left, ", stderr);
        }
        fputs(what, stderr);
        if (!bar.terminal) fputc('\n', stderr);
        bar.shown = bar.terminal;
        fflush(stderr);
    }
    pthread_mutex_unlock(&lock);
}

void output_end(void) {
    pthread_mutex_lock(&lock);
    clear();
    pthread_mutex_unlock(&lock);
}

void output_line(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&lock);
    clear();
    vprintf(format, arguments);
    putchar('\n');
    fflush(stdout);
    pthread_mutex_unlock(&lock);
    va_end(arguments);
}
