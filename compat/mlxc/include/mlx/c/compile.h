/* Compiling closures. */
#ifndef MLX_C_COMPILE_H
#define MLX_C_COMPILE_H

#include <stdbool.h>

#include "mlx/c/closure.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mlx_compile_mode_ {
    MLX_COMPILE_MODE_DISABLED = 0,     /* compiled closures call their function, one launch for each operation */
    MLX_COMPILE_MODE_NO_SIMPLIFY = 1,  /* as enabled: nothing that is simplified changes a bit */
    MLX_COMPILE_MODE_NO_FUSE = 2,      /* traced, then run one primitive at a time: the composed path */
    MLX_COMPILE_MODE_ENABLED = 3
} mlx_compile_mode;

/* A closure that, when applied, traces `fun` once for each combination of its inputs' dtypes (and shapes, unless shapeless; and ranks or
 * shapes all the same if `fun` asks placeholders for them), compiles what it did into a composite, and replays that in one launch.
 * Arrays that `fun` captures are kept by the composite; scalars made by this library become constants, with every bit. Composites are
 * shared by all closures compiled from copies of `fun`, in a bounded cache; those of a closure go with its last copy. Threads that apply
 * it at once for the first time may each trace. Applied to placeholders, its function becomes part of the closure that is being
 * traced. */
MLX_C_API int mlx_compile(mlx_closure *res, const mlx_closure fun, bool shapeless);

/* For the whole process, from the next apply on. */
MLX_C_API int mlx_enable_compile(void);
MLX_C_API int mlx_disable_compile(void);
MLX_C_API int mlx_set_compile_mode(mlx_compile_mode mode);

/* Forgets every composite; those being replayed go when that is done. */
MLX_C_API int mlx_detail_compile_clear_cache(void);

#ifdef __cplusplus
}
#endif
#endif
