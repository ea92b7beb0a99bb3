/* A plan: what a tape became. It is immutable, counted by reference, and run by any number of threads at once. */
#ifndef MLXC_PLAN_H
#define MLXC_PLAN_H

#include "tape.h"

typedef struct mlxc_output {
    mlxc_body *fixed;                  /* an array that the closure itself had; NULL: replayed */
    size_t replayed;                   /* which output of the composite it is; several may be one */
    int is_first;                      /* no output before it is that one */
} mlxc_output;

/* Which shapes some inputs give, so that most replays need not infer them. Once a plan has it, it does not change. */
typedef struct mlxc_shapes {
    mlxc_body **inputs, **outputs;     /* bare bodies: of the closure's inputs, of the composite's outputs */
} mlxc_shapes;

#define MLXC_N_SHAPES 8

typedef struct mlxc_plan {
    atomic_size_t references;
    ol_composite *composite;           /* NULL: every output is fixed */
    mlxc_engine *engine;
    size_t n_inputs, n_captured, n_replayed, n_outputs;
    mlxc_body **captured;              /* further inputs of the composite */
    mlxc_output *outputs;
    _Atomic(mlxc_shapes *) shapes[MLXC_N_SHAPES];      /* filled in order */
} mlxc_plan;

/* Compiles a tape for these results: placeholders of it, and arrays. NULL after a report. */
mlxc_plan *mlxc_plan_new(const char *function, mlxc_tape *t, mlxc_body *const *results, size_t n_results);
mlxc_plan *mlxc_plan_retain(mlxc_plan *p);
void mlxc_plan_release(mlxc_plan *p);

/* Bare bodies of the composite's outputs for these inputs: known already, or inferred from tensors; or, once the plan has no room
 * to remember more, *made, which is the caller's to destroy. NULL after a report. tensors: room for the composite's outputs. */
mlxc_body *const *mlxc_plan_shapes(const char *function, mlxc_plan *p, mlxc_body *const *inputs, const ol_tensor *tensors, ol_tensor *outputs,
                                   mlxc_shapes **made);
void mlxc_shapes_destroy(const mlxc_plan *p, mlxc_shapes *s);

/* Reports an error of its composite's, which names captured arrays as such. 1. */
int mlxc_plan_report(const char *function, const mlxc_plan *p, const ol_error *error);

/* Runs it, by the composed path if asked to, and sets results[0 .. n_outputs) to new references. On an error nothing is set. */
int mlxc_plan_run(const char *function, mlxc_plan *p, mlxc_body *const *inputs, int composed, mlxc_body **results);

#endif
