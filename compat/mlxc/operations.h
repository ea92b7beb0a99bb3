/* The elementwise operations by number, and what each is made of. */
#ifndef MLXC_OPERATIONS_H
#define MLXC_OPERATIONS_H

#include "tape.h"

typedef enum mlxc_operation {
#define MLX_C_UNARY(name) MLXC_OP_##name,
#define MLX_C_BINARY(name) MLXC_OP_##name,
#include "mlx/c/ops.def"
#undef MLX_C_UNARY
#undef MLX_C_BINARY
    MLXC_OP_where, MLXC_OP_clip,
    MLXC_OP_astype,                    /* parameter: ol_dtype */
    MLXC_OP_round,                     /* parameter: decimals */
    MLXC_N_OPERATIONS
} mlxc_operation;

#define MLXC_MAX_DECIMALS 38

/* Appends what the operation does to the operands. */
int mlxc_emit(const char *function, mlxc_tape *t, mlxc_operation operation, int32_t parameter, const uint32_t *operands, uint32_t *step);

#endif
