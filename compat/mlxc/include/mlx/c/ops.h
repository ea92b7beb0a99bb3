/* Elementwise operations. Each assigns a new array to *res. On arrays they act at once, on the stream's device; on placeholders they are
 * traced. Values, rounding, promotion and special values: docs/numerics.md. Shapes broadcast as NumPy's do. */
#ifndef MLX_C_OPS_H
#define MLX_C_OPS_H

#include "mlx/c/array.h"
#include "mlx/c/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MLX_C_UNARY(name) MLX_C_API int mlx_##name(mlx_array *res, const mlx_array a, const mlx_stream s);
#define MLX_C_BINARY(name) MLX_C_API int mlx_##name(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);
#include "mlx/c/ops.def"
#undef MLX_C_UNARY
#undef MLX_C_BINARY

/* To another dtype, one rounding; the same dtype gives a copy. */
MLX_C_API int mlx_astype(mlx_array *res, const mlx_array a, mlx_dtype dtype, const mlx_stream s);
/* To `decimals` decimals (0: to integers, half to even; negative: to tens, hundreds …): for others than 0, a is multiplied by
 * the power of ten, rounded, and divided by it, in its dtype (integers in float32, and back). */
MLX_C_API int mlx_round(mlx_array *res, const mlx_array a, int decimals, const mlx_stream s);
/* minimum(maximum(a, a_min), a_max); either bound may be an empty handle, not both. */
MLX_C_API int mlx_clip(mlx_array *res, const mlx_array a, const mlx_array a_min, const mlx_array a_max, const mlx_stream s);
/* condition ? x : y */
MLX_C_API int mlx_where(mlx_array *res, const mlx_array condition, const mlx_array x, const mlx_array y, const mlx_stream s);

/* Rank 0 reads no shape. In a composite the shape is the one at the trace, and a replay that it does not suit is an error. */
MLX_C_API int mlx_broadcast_to(mlx_array *res, const mlx_array a, const int *shape, size_t shape_num, const mlx_stream s);
MLX_C_API int mlx_full(mlx_array *res, const int *shape, size_t shape_num, const mlx_array vals, mlx_dtype dtype, const mlx_stream s);
MLX_C_API int mlx_zeros(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype, const mlx_stream s);
MLX_C_API int mlx_ones(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype, const mlx_stream s);

#ifdef __cplusplus
}
#endif
#endif
