/* What the runs gave: a line per run and level, and all of it as JSON. */
#ifndef PROVE_REPORT_H
#define PROVE_REPORT_H

#include "facts.h"
#include "options.h"
#include "runs.h"

/* Prints a run's lines. */
void report_run(const run *r);
/* Writes the file, all or nothing. False, with a message, where that failed. */
bool report_write(const char *command, const options *o, const prove_facts *f, const run *runs, int n_runs);

#endif
