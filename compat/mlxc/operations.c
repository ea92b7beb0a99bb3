/* Most operations are the primitive of their name. The others are a few primitives, and one launch all the same. */
#include "operations.h"

#include <math.h>

#define DEGREES 57.295779513082320876798f
#define RADIANS 0.01745329251994329576924f

static const char *const names[MLXC_N_OPERATIONS] = {
#define MLX_C_UNARY(name) [MLXC_OP_##name] = #name,
#define MLX_C_BINARY(name) [MLXC_OP_##name] = #name,
#include "mlx/c/ops.def"
#undef MLX_C_UNARY
#undef MLX_C_BINARY
    [MLXC_OP_where] = "where", [MLXC_OP_clip] = "clip", [MLXC_OP_astype] = "astype", [MLXC_OP_round] = "round"
};

static int is_float(ol_dtype dtype)
{
    return dtype == OL_FLOAT16 || dtype == OL_BFLOAT16 || dtype == OL_FLOAT32;
}

/* The operand as a float: integers and bool in float32. */
static int as_float(const char *function, mlxc_tape *t, uint32_t operand, uint32_t *step)
{
    *step = operand;
    return is_float(t->steps[operand].dtype) ? 0 : mlxc_tape_astype(function, t, operand, OL_FLOAT32, step);
}

/* x times, or over, a constant of its dtype. */
static int scale(const char *function, mlxc_tape *t, const char *primitive, uint32_t x, float factor, uint32_t *step)
{
    uint32_t operands[2] = { x, 0 };
    if (mlxc_tape_constant(function, t, t->steps[x].dtype, factor, &operands[1]))
        return 1;
    return mlxc_tape_primitive(function, t, primitive, operands, step);
}

static int emit_scaled(const char *function, mlxc_tape *t, uint32_t operand, float factor, uint32_t *step)
{
    uint32_t x;
    return as_float(function, t, operand, &x) || scale(function, t, "multiply", x, factor, step);
}

/* The compiler rounds these; the caller's thread may round in another way. */
static float power_of_ten(uint32_t n)
{
    static const float powers[] = { 1e0f,  1e1f,  1e2f,  1e3f,  1e4f,  1e5f,  1e6f,  1e7f,  1e8f,  1e9f,  1e10f, 1e11f, 1e12f,
                                    1e13f, 1e14f, 1e15f, 1e16f, 1e17f, 1e18f, 1e19f, 1e20f, 1e21f, 1e22f, 1e23f, 1e24f, 1e25f,
                                    1e26f, 1e27f, 1e28f, 1e29f, 1e30f, 1e31f, 1e32f, 1e33f, 1e34f, 1e35f, 1e36f, 1e37f, 1e38f };
    return n < sizeof powers / sizeof *powers ? powers[n] : INFINITY;
}

static int emit_round(const char *function, mlxc_tape *t, int32_t decimals, uint32_t operand, uint32_t *step)
{
    ol_dtype dtype = t->steps[operand].dtype;
    float power = power_of_ten(decimals < 0 ? 0u - (uint32_t)decimals : (uint32_t)decimals);
    uint32_t x;
    if (decimals == 0)
        return mlxc_tape_primitive(function, t, "round", &operand, step);
    if (!is_float(dtype) && decimals > 0)
        return mlxc_tape_astype(function, t, operand, dtype, step);      /* integers have no decimals */
    return as_float(function, t, operand, &x) ||
           scale(function, t, decimals > 0 ? "multiply" : "divide", x, power, &x) ||
           mlxc_tape_primitive(function, t, "round", &x, &x) ||
           scale(function, t, decimals > 0 ? "divide" : "multiply", x, power, step) ||
           (!is_float(dtype) && mlxc_tape_astype(function, t, *step, dtype, step));
}

/* Of bools as of uint8. */
static int emit_shift(const char *function, mlxc_tape *t, const char *name, const uint32_t *operands, uint32_t *step)
{
    uint32_t both[2] = { operands[0], operands[1] };
    if (t->steps[both[0]].dtype == OL_BOOL && t->steps[both[1]].dtype == OL_BOOL &&
        mlxc_tape_astype(function, t, both[0], OL_UINT8, &both[0]))
        return 1;
    return mlxc_tape_primitive(function, t, name, both, step);
}

int mlxc_emit(const char *function, mlxc_tape *t, mlxc_operation operation, int32_t parameter, const uint32_t *operands, uint32_t *step)
{
    switch (operation) {
    case MLXC_OP_astype:
        return mlxc_tape_astype(function, t, operands[0], (ol_dtype)parameter, step);
    case MLXC_OP_stop_gradient:
        return mlxc_tape_astype(function, t, operands[0], t->steps[operands[0]].dtype, step);
    case MLXC_OP_degrees:
        return emit_scaled(function, t, operands[0], DEGREES, step);
    case MLXC_OP_radians:
        return emit_scaled(function, t, operands[0], RADIANS, step);
    case MLXC_OP_round:
        return emit_round(function, t, parameter, operands[0], step);
    case MLXC_OP_left_shift:
    case MLXC_OP_right_shift:
        return emit_shift(function, t, names[operation], operands, step);
    default:
        return mlxc_tape_primitive(function, t, names[operation], operands, step);
    }
}
