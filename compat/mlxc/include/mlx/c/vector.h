/* Vectors of arrays. A vector holds references of its own: the caller still frees the handles it put in or got out. */
#ifndef MLX_C_VECTOR_H
#define MLX_C_VECTOR_H

#include "mlx/c/array.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mlx_vector_array_ {
    void *ctx;
} mlx_vector_array;

/* A live vector of no arrays. */
MLX_C_API mlx_vector_array mlx_vector_array_new(void);
MLX_C_API mlx_vector_array mlx_vector_array_new_data(const mlx_array *data, size_t size);
MLX_C_API mlx_vector_array mlx_vector_array_new_value(const mlx_array val);
MLX_C_API int mlx_vector_array_free(mlx_vector_array vec);

/* Assign: an empty handle is filled. */
MLX_C_API int mlx_vector_array_set(mlx_vector_array *vec, const mlx_vector_array src);
MLX_C_API int mlx_vector_array_set_data(mlx_vector_array *vec, const mlx_array *data, size_t size);
MLX_C_API int mlx_vector_array_set_value(mlx_vector_array *vec, const mlx_array val);

/* The vector must be live. */
MLX_C_API int mlx_vector_array_append_data(mlx_vector_array vec, const mlx_array *data, size_t size);
MLX_C_API int mlx_vector_array_append_value(mlx_vector_array vec, const mlx_array val);

MLX_C_API size_t mlx_vector_array_size(mlx_vector_array vec);
/* *res becomes another reference to array idx. */
MLX_C_API int mlx_vector_array_get(mlx_array *res, const mlx_vector_array vec, size_t idx);

#ifdef __cplusplus
}
#endif
#endif
