/* Devices. There are two: the CPU, and the "GPU", which is the device that ONELAUNCH_DEVICE names (cuda, cuda:N), or else the CPU. */
#ifndef MLX_C_DEVICE_H
#define MLX_C_DEVICE_H

#include "mlx/c/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mlx_device_ {
    void *ctx;
} mlx_device;

typedef enum mlx_device_type_ { MLX_CPU = 0, MLX_GPU = 1 } mlx_device_type;

/* `index` is 0: which GPU that is, ONELAUNCH_DEVICE says. */
MLX_C_API mlx_device mlx_device_new_type(mlx_device_type type, int index);
MLX_C_API int mlx_device_free(mlx_device dev);

/* Of the process. At first the GPU where ONELAUNCH_DEVICE names one, else the CPU. Composites in which no stream was used run there. */
MLX_C_API int mlx_get_default_device(mlx_device *dev);
MLX_C_API int mlx_set_default_device(mlx_device dev);

#ifdef __cplusplus
}
#endif
#endif
