/* What is printed while threads work: result lines on stdout, and on stderr how far the whole job is: a bar on a terminal, else a
 * line every half a minute. May be called by any thread. */
#ifndef PROVE_OUTPUT_H
#define PROVE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* To be called first; without `progress` there is none. `total` and `done` are the whole job and what a state file has of it,
 * in any unit of work. */
void output_begin(bool progress, double total, double done);
/* Shows progress, if it is time to. */
void output_progress(double done, const char *what);
/* Takes the bar away. */
void output_end(void);

/* A line, to which the newline is added. */
void output_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
