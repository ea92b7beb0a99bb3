/* See measure.h. */
#include "measure.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MIN_ROUNDS = 15, MAX_ROUNDS = 4000 };
#define SAMPLE_NS 50000.0

double measure_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static double batch_ns(const contestant *c, size_t n_calls) {
    double start = measure_clock_ns();
    for (size_t i = 0; i < n_calls; i++) {
        c->call(c->argument);
    }
    return (measure_clock_ns() - start) / (double)n_calls;
}

/* Calls in a batch that lasts SAMPLE_NS; warms up on the way. */
static size_t calibrate(const contestant *c) {
    size_t n_calls = 1;
    while (n_calls < 1000000 && batch_ns(c, n_calls) * (double)n_calls < SAMPLE_NS) {
        n_calls *= 2;
    }
    return n_calls;
}

static int ascending(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

double measure_median(double *samples, size_t n) {
    qsort(samples, n, sizeof *samples, ascending);
    return n % 2 ? samples[n / 2] : 0.5 * (samples[n / 2 - 1] + samples[n / 2]);
}

bool measure(contestant *contestants, int n, double seconds) {
    size_t *n_calls = malloc((size_t)n * sizeof *n_calls);
    double *samples = malloc((size_t)n * MAX_ROUNDS * sizeof *samples);
    size_t n_rounds = 0;
    bool ok = n_calls && samples;
    for (int i = 0; ok && i < n; i++) {
        n_calls[i] = calibrate(&contestants[i]);
    }
    double end = measure_clock_ns() + 1e9 * seconds;
    while (ok && n_rounds < MAX_ROUNDS && (n_rounds < MIN_ROUNDS || measure_clock_ns() < end)) {
        for (int i = 0; i < n; i++) {
            samples[(size_t)i * MAX_ROUNDS + n_rounds] = batch_ns(&contestants[i], n_calls[i]);
        }
        n_rounds++;
    }
    for (int i = 0; ok && i < n; i++) {
        contestants[i].median_ns = measure_median(samples + (size_t)i * MAX_ROUNDS, n_rounds);
        contestants[i].best_ns = samples[(size_t)i * MAX_ROUNDS];
    }
    free(samples);
    free(n_calls);
    return ok;
}

/* strtod and strtol alone take spaces, signs, hexadecimal numbers, infinities and NaN as well. */
double measure_parse_seconds(struct argp_state *state, const char *option, const char *text) {
    char *end;
    double seconds = strtod(text, &end);
    if (!*text || text[strspn(text, "0123456789.")] || *end || !(seconds > 0 && seconds <= 86400)) {
        argp_error(state, "%s %s: expected seconds, more than 0 and no more than 86400", option, text);
    }
    return seconds;
}

int measure_parse_count(struct argp_state *state, const char *option, const char *text, int low, int high) {
    errno = 0;
    long number = strtol(text, NULL, 10);
    if (!*text || text[strspn(text, "0123456789")] || errno || number < low || number > high) {
        argp_error(state, "%s %s: expected a number from %d to %d", option, text, low, high);
    }
    return (int)number;
}

int measure_pin(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return -1;
    }
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
        if (CPU_ISSET(cpu, &set)) {
            CPU_ZERO(&set);
            CPU_SET(cpu, &set);
            return sched_setaffinity(0, sizeof set, &set) == 0 ? cpu : -1;
        }
    }
    return -1;
}

/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014). */
double measure_uniform(uint64_t *seed) {
    uint64_t z = *seed += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

double measure_normal(uint64_t *seed) {
    double sum = -6.0;
    for (int i = 0; i < 12; i++) {
        sum += measure_uniform(seed);
    }
    return sum;
}

uint16_t measure_bfloat16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x8000u) >> 16);
}
