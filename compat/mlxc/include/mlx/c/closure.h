/* Closures: functions from a vector of arrays to a vector of arrays, counted by reference. */
#ifndef MLX_C_CLOSURE_H
#define MLX_C_CLOSURE_H

#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mlx_closure_ {
    void *ctx;
} mlx_closure;

/* An empty handle. */
MLX_C_API mlx_closure mlx_closure_new(void);
/* `fun` gets *res empty, assigns a vector to it and returns 0. The input is a loan. */
MLX_C_API mlx_closure mlx_closure_new_func(int (*fun)(mlx_vector_array *res, const mlx_vector_array input));
/* The same with a payload; dtor (NULL is allowed) is called with it once, when the last copy of the closure goes. */
MLX_C_API mlx_closure mlx_closure_new_func_payload(int (*fun)(mlx_vector_array *res, const mlx_vector_array input, void *payload),
                                                   void *payload, void (*dtor)(void *));
/* From one array to one; *res arrives empty. */
MLX_C_API mlx_closure mlx_closure_new_unary(int (*fun)(mlx_array *res, const mlx_array input));
MLX_C_API int mlx_closure_set(mlx_closure *cls, const mlx_closure src);
MLX_C_API int mlx_closure_free(mlx_closure cls);

/* Calls the function, or replays the composite of a compiled one. *res is assigned on success only. An error: the function returns
 * another code than 0, leaves *res without an array, or, compiled, sets another number of arrays than the first time that it was given as many inputs. */
MLX_C_API int mlx_closure_apply(mlx_vector_array *res, mlx_closure cls, const mlx_vector_array input);

#ifdef __cplusplus
}
#endif
#endif
