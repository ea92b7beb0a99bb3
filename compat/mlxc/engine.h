/* The devices behind streams. There are at most two, made when first asked for and kept: the CPU, and the GPU that ONELAUNCH_DEVICE
 * names; where it names none, both types of device are the CPU. */
#ifndef MLXC_ENGINE_H
#define MLXC_ENGINE_H

#include "mlx/c/stream.h"

#include <onelaunch.h>

#include <pthread.h>

#define MLXC_N_KEPT 64

/* A block of a device's memory that nothing refers to any more. */
typedef struct mlxc_block {
    void *pointer;
    size_t n_bytes;
} mlxc_block;

typedef struct mlxc_engine {
    ol_device *device;
    ol_stream stream;                  /* everything on the device goes through this one, so a block can be used again at once */
    int is_gpu;                        /* the host cannot read its memory */
    pthread_mutex_t lock;              /* of what follows */
    mlxc_block kept[MLXC_N_KEPT];
    size_t n_kept, n_bytes_kept;
} mlxc_engine;

/* NULL after a report. */
mlxc_engine *mlxc_engine_of(const char *function, mlx_device_type type);
mlxc_engine *mlxc_engine_of_stream(const char *function, mlx_stream s);
mlxc_engine *mlxc_engine_default(const char *function);

/* Memory of a GPU, in sizes that repeat; *n_bytes becomes what was taken. */
ol_status mlxc_block_take(mlxc_engine *e, size_t *n_bytes, void **pointer, ol_error *error);
void mlxc_block_give(mlxc_engine *e, void *pointer, size_t n_bytes);
/* Copies and waits. */
ol_status mlxc_copy(mlxc_engine *e, void *to, const void *from, size_t n_bytes, ol_error *error);

#endif
