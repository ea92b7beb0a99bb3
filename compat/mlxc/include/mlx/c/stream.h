/* Streams: which device an operation runs on. */
#ifndef MLX_C_STREAM_H
#define MLX_C_STREAM_H

#include "mlx/c/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mlx_stream_ {
    void *ctx;
} mlx_stream;

/* The CPU's. ONELAUNCH_DEVICE=cpu:LEVEL sets its SIMD level. */
MLX_C_API mlx_stream mlx_default_cpu_stream_new(void);
/* That of the device which ONELAUNCH_DEVICE names, or of the CPU where it names none. A device that is named and cannot be had is an error. */
MLX_C_API mlx_stream mlx_default_gpu_stream_new(void);
MLX_C_API int mlx_stream_free(mlx_stream stream);

/* Waits until what was started on the stream's device is done, and reports what went wrong in it. */
MLX_C_API int mlx_synchronize(mlx_stream stream);

#ifdef __cplusplus
}
#endif
#endif
