/* What a closure handle refers to. A handle is a box with a pointer to a function, which copies of the closure share. */
#ifndef MLXC_CLOSURE_H
#define MLXC_CLOSURE_H

#include "vectors.h"

#include "mlx/c/closure.h"

/* How many outputs a function set for so many inputs. */
typedef struct mlxc_count mlxc_count;
struct mlxc_count {
    mlxc_count *next;
    size_t n_inputs, n_outputs;
};

typedef struct mlxc_function mlxc_function;
struct mlxc_function {
    atomic_size_t references;
    uint64_t serial;                   /* which no other function ever has: unlike its address, it does not come again */
    int (*plain)(mlx_vector_array *, const mlx_vector_array);
    int (*unary)(mlx_array *, const mlx_array);
    int (*with_payload)(mlx_vector_array *, const mlx_vector_array, void *);
    void *payload;
    void (*dtor)(void *);
    mlxc_function *compiled;           /* of a compiled closure: the function that it compiles; the four above are not set then */
    int is_shapeless;
    _Atomic(mlxc_count *) counts;      /* what it set when compiled: an entry for each number of inputs, only ever added */
    atomic_int detail;                 /* an mlxc_detail: what its traces so far depend on */
    atomic_int has_plans;              /* whether plans of it may be in the cache */
};

mlxc_function *mlxc_function_of(const char *function, const char *what, mlx_closure c);
/* A copy with one reference; NULL after a report. */
mlxc_function *mlxc_function_new(const char *function, const mlxc_function *like);
mlxc_function *mlxc_function_retain(mlxc_function *f);
void mlxc_function_release(mlxc_function *f);
/* Takes over the reference. */
int mlxc_closure_assign(const char *function, mlx_closure *c, mlxc_function *f);

/* Calls the function itself. NULL after a report, else what it set: one array at least. */
mlxc_vector *mlxc_function_call(const char *function, mlxc_function *f, mlxc_vector *input);
/* Checks that f has set as many arrays as the first time that it was given as many inputs, and remembers that. */
int mlxc_function_check_count(const char *function, mlxc_function *f, size_t n_inputs, size_t n_outputs);
/* Applies a compiled closure (compiled.c). */
mlxc_vector *mlxc_compiled_apply(const char *function, mlxc_function *f, mlxc_vector *input);
/* Applies either. */
mlxc_vector *mlxc_function_apply(const char *function, mlxc_function *f, mlxc_vector *input);

#endif
