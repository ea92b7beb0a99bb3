/* A plan: what a tape became. It is immutable, counted by reference, and run by any number of threads at once. */
#ifndef MLXC_PLAN_H
#define MLXC_PLAN_H

#include "tape.h"

typedef struct mlxc_output {
    mlxc_body *fixed;                  /* an array that the closure itself had; NULL: replayed */
    size_t replayed;                   /* which output of the composite it is; several may be one */
} mlxc_output;

typedef struct mlxc_plan {
    atomic_size_t references;
    ol_composite *composite;           /* NULL: every output is fixed */
    mlxc_engine *engine;
    size_t n_inputs, n_captured, n_replayed, n_outputs;
    mlxc_body **captured;              /* further inputs of the composite */
    mlxc_output *outputs;
} mlxc_plan;

/* Compiles a tape for these results: placeholders of it, and arrays. NULL after a report. */
mlxc_plan *mlxc_plan_new(const char *function, mlxc_tape *t, mlxc_body *const *results, size_t n_results);
mlxc_plan *mlxc_plan_retain(mlxc_plan *p);
void mlxc_plan_release(mlxc_plan *p);

/* Runs it, by the composed path if asked to, and sets results[0 .. n_outputs) to new references. On an error nothing is set. */
int mlxc_plan_run(const char *function, const mlxc_plan *p, mlxc_body *const *inputs, int composed, mlxc_body **results);

#endif
