/* Text that a function gave. */
#ifndef MLX_C_STRING_H
#define MLX_C_STRING_H

#include "mlx/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mlx_string_ {
    void *ctx;
} mlx_string;

/* An empty handle, for a function to fill. */
MLX_C_API mlx_string mlx_string_new(void);
/* The text, with its terminating zero; it lives as long as the handle is neither freed nor assigned. NULL: an error. */
MLX_C_API const char *mlx_string_data(mlx_string str);
MLX_C_API int mlx_string_free(mlx_string str);

#ifdef __cplusplus
}
#endif
#endif
