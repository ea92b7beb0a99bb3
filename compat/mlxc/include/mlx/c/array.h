/* Arrays: immutable values of a dtype and a shape, in memory of the host, of a GPU, or both; or, while a closure is being traced,
 * placeholders, which have a dtype and a shape and no values. */
#ifndef MLX_C_ARRAY_H
#define MLX_C_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
#include <complex>
#endif

#include "mlx/c/string.h"

#ifdef __cplusplus
typedef std::complex<float> mlx_complex64_t;
extern "C" {
#else
typedef float _Complex mlx_complex64_t;
#endif

typedef struct mlx_array_ {
    void *ctx;
} mlx_array;

/* float64 and complex64 have numbers and no arrays: asking for one is an error. */
typedef enum mlx_dtype_ {
    MLX_BOOL = 0,
    MLX_UINT8 = 1, MLX_UINT16 = 2, MLX_UINT32 = 3, MLX_UINT64 = 4,
    MLX_INT8 = 5, MLX_INT16 = 6, MLX_INT32 = 7, MLX_INT64 = 8,
    MLX_FLOAT16 = 9, MLX_FLOAT32 = 10, MLX_FLOAT64 = 11, MLX_BFLOAT16 = 12, MLX_COMPLEX64 = 13
} mlx_dtype;

/* ---- Making and freeing ------------------------------------------------------------------------------------------- */

/* An empty handle. */
MLX_C_API mlx_array mlx_array_new(void);
MLX_C_API int mlx_array_free(mlx_array arr);
/* Scalars, of rank 0: bool, int32, float32. */
MLX_C_API mlx_array mlx_array_new_bool(bool val);
MLX_C_API mlx_array mlx_array_new_int(int val);
MLX_C_API mlx_array mlx_array_new_float32(float val);
MLX_C_API mlx_array mlx_array_new_float(float val);
/* A copy of `data`, row-major, of `dim` (0 to 8) dimensions; rank 0 reads no shape. */
MLX_C_API mlx_array mlx_array_new_data(const void *data, const int *shape, int dim, mlx_dtype dtype);
/* An array over the caller's memory, which is not copied and may not change while the array lives. dtor (NULL is allowed) is called
 * with `data` once, when nothing refers to it any more; on an error it is not called. */
MLX_C_API mlx_array mlx_array_new_data_managed(void *data, const int *shape, int dim, mlx_dtype dtype, void (*dtor)(void *));

/* Assign: an empty handle is filled. */
MLX_C_API int mlx_array_set(mlx_array *arr, const mlx_array src);
MLX_C_API int mlx_array_set_bool(mlx_array *arr, bool val);
MLX_C_API int mlx_array_set_int(mlx_array *arr, int val);
MLX_C_API int mlx_array_set_float32(mlx_array *arr, float val);
MLX_C_API int mlx_array_set_float(mlx_array *arr, float val);
MLX_C_API int mlx_array_set_data(mlx_array *arr, const void *data, const int *shape, int dim, mlx_dtype dtype);

/* ---- What an array is: placeholders answer too, during their trace ---------------------------------------------------- */

/* What is asked of a placeholder here, apart from its dtype, has the composite kept for its inputs' ranks (ndim) or shapes alone. */
MLX_C_API mlx_dtype mlx_array_dtype(const mlx_array arr);
MLX_C_API size_t mlx_array_ndim(const mlx_array arr);
/* ndim numbers, valid as long as the array. For a rank of 0: a pointer not to be read. */
MLX_C_API const int *mlx_array_shape(const mlx_array arr);
/* In elements. Those of the data that mlx_array_data_… gives, which is row-major always. */
MLX_C_API const size_t *mlx_array_strides(const mlx_array arr);
/* The extent of a dimension; a negative one counts from the last. */
MLX_C_API int mlx_array_dim(const mlx_array arr, int dim);
MLX_C_API size_t mlx_array_size(const mlx_array arr);
MLX_C_API size_t mlx_array_nbytes(const mlx_array arr);
MLX_C_API size_t mlx_array_itemsize(const mlx_array arr);

/* ---- Its values: an error for placeholders, and where the dtype is another ------------------------------------------- */

/* Waits until the values are there. */
MLX_C_API int mlx_array_eval(mlx_array arr);
/* array([[1, 2], [3, 4]], dtype=int32); what is long is shortened. */
MLX_C_API int mlx_array_tostring(mlx_string *str, const mlx_array arr);

/* The value of an array of one element. 16-bit floats are given as their bits. */
MLX_C_API int mlx_array_item_bool(bool *res, const mlx_array arr);
MLX_C_API int mlx_array_item_uint8(uint8_t *res, const mlx_array arr);
MLX_C_API int mlx_array_item_uint16(uint16_t *res, const mlx_array arr);
MLX_C_API int mlx_array_item_uint32(uint32_t *res, const mlx_array arr);
MLX_C_API int mlx_array_item_uint64(uint64_t *res, const mlx_array arr);
MLX_C_API int mlx_array_item_int8(int8_t *res, const mlx_array arr);
MLX_C_API int mlx_array_item_int16(int16_t *res, const mlx_array arr);
MLX_C_API int mlx_array_item_int32(int32_t *res, const mlx_array arr);
MLX_C_API int mlx_array_item_int64(int64_t *res, const mlx_array arr);
MLX_C_API int mlx_array_item_float16(uint16_t *res, const mlx_array arr);
MLX_C_API int mlx_array_item_bfloat16(uint16_t *res, const mlx_array arr);
MLX_C_API int mlx_array_item_float32(float *res, const mlx_array arr);
MLX_C_API int mlx_array_item_float64(double *res, const mlx_array arr);               /* always an error */
MLX_C_API int mlx_array_item_complex64(mlx_complex64_t *res, const mlx_array arr);    /* always an error */

/* The elements, row-major, valid as long as the array; NULL: an error, except where there are no elements. */
MLX_C_API const bool *mlx_array_data_bool(const mlx_array arr);
MLX_C_API const uint8_t *mlx_array_data_uint8(const mlx_array arr);
MLX_C_API const uint16_t *mlx_array_data_uint16(const mlx_array arr);
MLX_C_API const uint32_t *mlx_array_data_uint32(const mlx_array arr);
MLX_C_API const uint64_t *mlx_array_data_uint64(const mlx_array arr);
MLX_C_API const int8_t *mlx_array_data_int8(const mlx_array arr);
MLX_C_API const int16_t *mlx_array_data_int16(const mlx_array arr);
MLX_C_API const int32_t *mlx_array_data_int32(const mlx_array arr);
MLX_C_API const int64_t *mlx_array_data_int64(const mlx_array arr);
MLX_C_API const uint16_t *mlx_array_data_float16(const mlx_array arr);
MLX_C_API const uint16_t *mlx_array_data_bfloat16(const mlx_array arr);
MLX_C_API const float *mlx_array_data_float32(const mlx_array arr);
MLX_C_API const double *mlx_array_data_float64(const mlx_array arr);                  /* always an error */
MLX_C_API const mlx_complex64_t *mlx_array_data_complex64(const mlx_array arr);       /* always an error */

#ifdef __cplusplus
}
#endif
#endif
