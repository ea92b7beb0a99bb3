/* Dtypes by mlx-c's numbers and by onelaunch's, and the shapes that clients give. */
#include "body.h"
#include "report.h"

#include <stdio.h>

#define N_DTYPES 14

static const signed char to_core[N_DTYPES] = {
    OL_BOOL, OL_UINT8, OL_UINT16, OL_UINT32, OL_UINT64, OL_INT8, OL_INT16, OL_INT32, OL_INT64, OL_FLOAT16, OL_FLOAT32, -1, OL_BFLOAT16, -1
};

static const unsigned char from_core[OL_DTYPE_COUNT] = {
    MLX_BOOL, MLX_UINT8, MLX_UINT16, MLX_UINT32, MLX_UINT64, MLX_INT8, MLX_INT16, MLX_INT32, MLX_INT64, MLX_FLOAT16, MLX_BFLOAT16, MLX_FLOAT32
};

int mlxc_dtype_in(const char *function, mlx_dtype dtype, ol_dtype *out)
{
    if ((unsigned)dtype >= N_DTYPES)
        return mlxc_report(function, "%d is no dtype; expected 0 (bool) to 13", (int)dtype);
    if (to_core[dtype] < 0)
        return mlxc_report(function, "the dtype is %s, which this library does not have; expected bool, an integer, float16, bfloat16 or float32",
                           dtype == MLX_FLOAT64 ? "float64" : "complex64");
    *out = (ol_dtype)to_core[dtype];
    return 0;
}

mlx_dtype mlxc_dtype_out(ol_dtype dtype)
{
    return (mlx_dtype)from_core[dtype];
}

static int too_large(const char *function, const int *shape, size_t n_dimensions, ol_dtype dtype)
{
    mlxc_shape_text text;
    return mlxc_report(function, "shape %s of %s was given; expected fewer than 2^63 bytes", mlxc_shape_to_text(&text, (int32_t)n_dimensions, shape),
                       ol_dtype_name(dtype));
}

int mlxc_shape_in(const char *function, const int *shape, size_t n_dimensions, ol_dtype dtype, int64_t dims[OL_MAX_RANK])
{
    int64_t n_bytes = (int64_t)ol_dtype_size(dtype);
    int is_empty = 0;
    if (n_dimensions > OL_MAX_RANK)
        return mlxc_report(function, "%zu dimensions were given; expected 0 to %d", n_dimensions, OL_MAX_RANK);
    if (n_dimensions > 0 && !shape)
        return mlxc_report(function, "the shape is NULL; expected %zu extents", n_dimensions);
    for (size_t d = 0; d < n_dimensions; d++) {
        if (shape[d] < 0)
            return mlxc_report(function, "extent %zu of the shape is %d; expected 0 or more", d, shape[d]);
        dims[d] = shape[d];
        is_empty |= shape[d] == 0;
    }
    for (size_t d = 0; d < n_dimensions && !is_empty; d++)
        if (__builtin_mul_overflow(n_bytes, dims[d], &n_bytes))
            return too_large(function, shape, n_dimensions, dtype);
    return 0;
}

const char *mlxc_shape_to_text(mlxc_shape_text *place, int32_t rank, const int *shape)
{
    size_t n = (size_t)snprintf(place->text, sizeof place->text, "[");
    for (int32_t d = 0; d < rank; d++)     /* eight of eleven digits fit */
        n += (size_t)snprintf(place->text + n, sizeof place->text - n, d ? ", %d" : "%d", shape[d]);
    snprintf(place->text + n, sizeof place->text - n, "]");
    return place->text;
}
