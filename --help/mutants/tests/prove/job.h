/* All tasks of all runs, on a number of threads. */
#ifndef PROVE_JOB_H
#define PROVE_JOB_H

#include "journal.h"
#include "runs.h"

typedef struct job {
    const char *command;                         /* for messages */
    run *runs;
    int n_runs, n_threads;
    bool progress;
    journal *journal;                            /* NULL without a state file */
    void (*finished)(const run *r);              /* called once for each run, in their order */
} job;

typedef enum job_end {
    JOB_DONE,
    JOB_STOPPED,                                 /* by job_stop_signal */
    JOB_FAILED                                   /* a message said why */
} job_end;

/* The signal that was caught; 0 for none. Threads end soon after it. */
int job_stop_signal(void);
/* From now on an interrupt, a hangup and a request to terminate stop the job in good order; a second one ends the process. */
void job_catch_signals(void);

job_end job_run(job *j);

#endif
