/* What a vector handle is: a box of references to bodies. */
#ifndef MLXC_VECTOR_H
#define MLXC_VECTOR_H

#include "body.h"

#include "mlx/c/vector.h"

typedef struct mlxc_vector {
    mlxc_body **items;
    size_t n, capacity;
    mlxc_body *few[6];                 /* items, where they are no more than this */
} mlxc_vector;

/* The vector of a handle; NULL after a report that calls it `what`. */
mlxc_vector *mlxc_vector_of(const char *function, const char *what, mlx_vector_array v);
/* A vector of n references that it takes over, on an error too. NULL after a report. */
mlxc_vector *mlxc_vector_new(const char *function, mlxc_body *const *bodies, size_t n);
void mlxc_vector_destroy(mlxc_vector *v);
/* Gives *vec the items of `from`, which goes (NULL: an error was reported). 0 or 1. */
int mlxc_vector_assign(mlx_vector_array *vec, mlxc_vector *from);

#endif
