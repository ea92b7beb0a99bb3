/* What there is to run: each primitive at each dtype, and each conversion astype_<dtype> from each other dtype, with its reference and
 * its kernels at the chosen levels. A run's dtype is that of its operands. */
#ifndef PROVE_RUNS_H
#define PROVE_RUNS_H

#include "approximate.h"
#include "cpu/cpu.h"
#include "digest.h"
#include "reference.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { MAX_LEVELS = 4, TASK_CHUNKS = 4 };
#define TASK (TASK_CHUNKS * (uint64_t)DIGEST_CHUNK)       /* inputs: what a thread does at once, and what a state file keeps */

typedef struct level_info {
    const char *name;
    ol_cpu_level level;
} level_info;
extern const level_info level_list[];
extern const int level_count;

typedef struct dtype_info {
    const format *format;
    ol_dtype dtype;
} dtype_info;
extern const dtype_info dtype_list[];
extern const int dtype_count;

typedef struct tally {
    uint64_t near;                               /* inputs that the approximation left open and MPFR decided */
    uint64_t samples;                            /* inputs whose approximation was compared with MPFR to check its bound */
    uint64_t unsound;                            /* those of them where the bound did not hold */
    uint64_t wrong[MAX_LEVELS];
    uint64_t off;                                /* results that are not the nearest, but within the tolerance */
    double worst;                                /* of these, in ulp */
    double seconds;                              /* of processor time */
} tally;

/* All values of a 16-bit format, and the neighbourhoods of its results by magnitude. */
typedef struct format_table {
    double values[65536];
    neighbourhood results[32768];
} format_table;

typedef struct run {
    const reference *reference;
    const format *format, *result;               /* of operands, and of results (where they are not bool) */
    const format_table *operand_table, *result_table;                    /* of these; NULL for float32 */
    approximate_fn approximate;
    filter_fn filter;
    double tolerance;                            /* in ulp, of a primitive that is not correctly rounded; else 0 */
    kernel_fn kernels[MAX_LEVELS];
    const level_info *const *levels;
    int n_levels;
    bool kernels_only;                           /* only their digests are wanted */
    bool hard_pairs;                             /* inputs are those of hard_pairs.h */
    uint64_t samples;                            /* of 2^32 inputs */
    unsigned show;                               /* at most so many wrong results are printed */
    uint64_t inputs, n_chunks;
    uint64_t first_task, end_task, n_left;       /* this shard's, and those of them that are not done */
    bool *done;                                  /* by task, also of other shards where a state file has them */
    uint64_t *chunks[MAX_LEVELS];                /* their digests */
    tally total;                                 /* of this shard */
    atomic_uint n_shown;
} run;

/* The names in a comma-separated list, or all. Marks chosen[i] for name i of n; false, with a message that names what there
 * is, where the list has something else. `option` is for the message. */
bool choose(const char *command, const char *option, const char *list, const char *(*name)(int i), int n, bool *chosen);
const char *operation_name(int i);
const char *dtype_name(int i);
const char *level_name(int i);

/* What stays the same for all runs. */
typedef struct run_settings {
    const level_info *levels[MAX_LEVELS];
    int n_levels;
    unsigned shard, n_shards;
    uint64_t samples;
    unsigned show;
    bool kernels_only;
    uint64_t n_hard_pairs;                       /* not 0: float32 pairs are that many of hard_pairs.h */
} run_settings;

/* To be called once, before any run is made. */
void runs_prepare(void);
/* Is there such a run? No conversion is from a dtype to itself. */
bool run_exists(int operation, int dtype);
/* False where memory ran out. The settings must outlive the run. */
bool run_init(run *r, int operation, int dtype, const run_settings *settings);
void run_free(run *r);

uint64_t run_tasks(const run *r);
/* Inputs of a task. */
uint64_t run_task_inputs(const run *r, uint64_t task);
/* Inputs of this shard. */
uint64_t run_shard_inputs(const run *r);
/* False where not all inputs are done, those of other shards included. */
bool run_digest(const run *r, int level, uint64_t *digest);
/* All inputs there are? Not with two float32 operands, where they are a sample. */
bool run_exhaustive(const run *r);
size_t run_result_bytes(const run *r);

/* "libmvec avx512": the approximations in use. */
const char *approximation_name(void);

#endif
