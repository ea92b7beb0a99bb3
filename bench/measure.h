/* Timing for the benchmarks: contestants take turns in short batches, so that a disturbance of the machine falls on all of them
 * alike; the best and the median batch of each are kept. The best is what the code costs, the median what a user sees. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct contestant {
    const char *name;
    void (*call)(void *argument);
    void *argument;
    double best_ns, median_ns;           /* per call; set by measure() */
} contestant;

/* Nanoseconds of a clock that only goes forward. */
double measure_clock_ns(void);

/* Times every contestant for about `seconds` altogether, and at least 15 rounds. False: no memory. */
bool measure(contestant *contestants, int n, double seconds);

/* Values of options: plain decimal numbers, and for seconds fractions, more than 0 and no more than a day. What is something else
 * ends the process with a message and exit status 2 (argp_err_exit_status must say so). */
double measure_parse_seconds(struct argp_state *state, const char *option, const char *text);
int measure_parse_count(struct argp_state *state, const char *option, const char *text, int low, int high);

/* Sorts the samples; their median. */
double measure_median(double *samples, size_t n);

/* Keeps the calling thread, and those it will start, on one CPU: the last one it may use (the first has most interrupts).
 * Returns its number, or -1. */
int measure_pin(void);

/* A normal deviate, near enough (the sum of twelve uniform ones), from a generator with the state *seed. */
double measure_normal(uint64_t *seed);
double measure_uniform(uint64_t *seed);            /* [0, 1) */

/* A finite float32 as the bits of a near bfloat16, for making inputs. */
uint16_t measure_bfloat16(float x);

#endif
