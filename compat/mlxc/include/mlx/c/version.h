/* The version of the interface. */
#ifndef MLX_C_VERSION_H
#define MLX_C_VERSION_H

#include "mlx/c/string.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0.6.0 (onelaunch 0.1.0)": the version of mlx-c whose interface this is, and that of the library that serves it. */
MLX_C_API int mlx_version(mlx_string *str);

#ifdef __cplusplus
}
#endif
#endif
