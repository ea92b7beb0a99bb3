/* Running a task's inputs through the kernels of all levels and comparing what comes out with the reference. */
#ifndef PROVE_CHECK_H
#define PROVE_CHECK_H

#include "runs.h"

/* Buffers of one thread. */
typedef struct block block;
block *block_new(void);                          /* NULL where memory ran out */
void block_free(block *b);

typedef struct task_result {
    tally counts;
    uint64_t chunks[MAX_LEVELS][TASK_CHUNKS];    /* digests */
} task_result;

/* Called every now and then with how many inputs were done since the last call; returning false ends the task. */
typedef struct task_watch {
    bool (*go_on)(void *user, const run *r, uint64_t inputs);
    void *user;
} task_watch;

/* False where the watch ended it; the result is then worth nothing. */
bool check_task(run *r, block *b, uint64_t task, const task_watch *watch, task_result *result);

/* The digest of the inputs whose index is a multiple of digest_stride, by the kernels of the first level; 0 where memory ran out. */
uint64_t check_strided_digest(const run *r);

/* Processor seconds that an input takes, about. */
double check_speed(run *r, block *b);

/* A result depends on its own element alone, whatever its neighbours and however long the run: every input of a 16-bit unary
 * primitive again, in other orders and in runs of 1 to 5,000, against the results in input order. Returns how many differ. */
uint64_t check_neighbours(const run *r, kernel_fn kernel);

#endif
