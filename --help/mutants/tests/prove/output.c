/* See output.h. */
#include "output.h"
#include "cli.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void time_text(double seconds, char text[32]) {
    long s = (long)(seconds + 0.5);
    if (s >= 3600) snprintf(text, 32, "%ld h %02ld min", s / 3600, s / 60 % 60);
    else if (s >= 60) snprintf(text, 32, "%ld min %02ld s", s / 60, s % 60);
    else snprintf(text, 32, "%ld s", s);
}

void output_progress(double done, const char *what) {
    if (!bar.wanted || pthread_mutex_trylock(&lock)) return;              /* another thread prints */
    double now = cli_seconds(), part = done / bar.total;
    if (now - bar.last >= (bar.terminal ? bar_seconds : line_seconds)) {
        char left[32], text[160];
        bool known = done > bar.done_before;
        time_text(known ? (now - bar.start) * (bar.total - done) / (done - bar.done_before) : 0, left);
        snprintf(text, sizeof text, "%.1f %%, %s%s%s", 100 * part, known ? left : "", known ? " left, " : "", what);
        bar.last = now;
        cli_sync();
        if (bar.terminal) cli_progress_draw(cli_progress_columns(), part, text);
        else fprintf(stderr, "prove: %s\n", text);
        bar.shown = bar.terminal;
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
    cli_sync();
    pthread_mutex_unlock(&lock);
    va_end(arguments);
}
