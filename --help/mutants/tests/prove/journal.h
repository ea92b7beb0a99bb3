/* The state file: finished tasks, so that a job that was ended at any time goes on where it was.
 *
 * Lines of text, each ending in the XXH3-64 of what stands before it, each written at once. The first says what the results
 * depend on: the library's version and the executable's digest, the kind of job, samples, levels, processor and libraries. The
 * others are a finished task each, for any primitive and dtype, so one file serves jobs of other --op, --dtype and --shard, and the
 * files of several shards may be joined by `cat`. A file of anything else and a damaged one are refused; what stands after the
 * last newline, as where the machine lost power in the midst of a line, is cut off. */
#ifndef PROVE_JOURNAL_H
#define PROVE_JOURNAL_H

#include "check.h"
#include "runs.h"

typedef struct journal journal;

/* Opens or makes the file, and puts the tasks that it has into the runs. NULL, with a message, where that failed. */
journal *journal_open(const char *command, const char *path, const char *identity, run *runs, int n_runs);
bool journal_write(journal *j, const run *r, uint64_t task, const task_result *result);
/* How many tasks of the chosen runs it had when it was opened. */
uint64_t journal_n_tasks(const journal *j);
void journal_close(journal *j);

/* Adds a task's result to its run. */
void journal_add_result(run *r, uint64_t task, const task_result *result);

#endif
