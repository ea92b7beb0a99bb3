/* The elementwise functions. On placeholders an operation is traced; on arrays it is a composite of its own, made at its first use for
 * these dtypes and replayed at once, so that its values are those of a node of a graph. */
#include "cache.h"
#include "operations.h"
#include "report.h"

#include "mlx/c/ops.h"

#include <string.h>

#define MAX_OPERANDS 3

/* An operation that was asked for, with its operands. */
typedef struct request {
    const char *function;
    mlxc_operation operation;
    int32_t parameter;
    int n_operands;
    mlxc_body *operands[MAX_OPERANDS];
    mlxc_engine *engine;
} request;

static mlxc_body *trace(const request *r, mlxc_tape *t)
{
    uint32_t operands[MAX_OPERANDS], step;
    mlxc_tape_use(t, r->engine);
    for (int i = 0; i < r->n_operands; i++)
        if (mlxc_tape_operand(r->function, t, r->operands[i], &operands[i]))
            return NULL;
    if (mlxc_emit(r->function, t, r->operation, r->parameter, operands, &step))
        return NULL;
    return mlxc_tape_placeholder(r->function, t, step);
}

/* The composite of the operation alone. */
static mlxc_plan *make_plan(const request *r)
{
    mlxc_tape t = { .serial = MLXC_NO_TRACE, .engine = r->engine, .n_inputs = (size_t)r->n_operands };
    uint32_t operands[MAX_OPERANDS], step;
    mlxc_plan *p = NULL;
    int failed = 0;
    for (int i = 0; i < r->n_operands && !failed; i++) {
        static const int64_t no_dims[1];
        mlxc_body *like = mlxc_body_new_bare(r->function, r->operands[i]->view.dtype, 0, no_dims);
        failed = !like || mlxc_tape_input(r->function, &t, (size_t)i, like, &operands[i]);
        mlxc_body_release(like);
    }
    if (!failed && mlxc_emit(r->function, &t, r->operation, r->parameter, operands, &step) == 0) {
        mlxc_body *result = mlxc_tape_placeholder(r->function, &t, step);
        if (result)
            p = mlxc_plan_new(r->function, &t, &result, 1);
        mlxc_body_release(result);
    }
    mlxc_tape_destroy(&t);
    return p;
}

typedef struct operation_key {
    uint64_t serial;                   /* 0: of an operation */
    uint64_t engine;
    int32_t operation, parameter;
    int32_t dtypes[MAX_OPERANDS], n_operands;
} operation_key;

static mlxc_body *act(const request *r)
{
    operation_key key;
    mlxc_body *result = NULL;
    memset(&key, 0, sizeof key);
    key.engine = (uint64_t)(uintptr_t)r->engine;
    key.operation = (int32_t)r->operation;
    key.parameter = r->parameter;
    key.n_operands = r->n_operands;
    for (int i = 0; i < r->n_operands; i++)
        key.dtypes[i] = (int32_t)r->operands[i]->view.dtype;
    mlxc_plan *p = mlxc_cache_find(&key, sizeof key);
    if (!p && (p = make_plan(r)))
        mlxc_cache_add(&key, sizeof key, p);
    if (p && mlxc_plan_run(r->function, p, r->operands, 0, &result))
        result = NULL;
    mlxc_plan_release(p);
    return result;
}

/* A new reference to the result; NULL after a report. */
static mlxc_body *perform(const request *r)
{
    mlxc_tape *t = NULL;
    for (int i = 0; i < r->n_operands; i++) {
        if (mlxc_check_placeholder(r->function, r->operands[i]))
            return NULL;
        if (!t && r->operands[i]->trace)
            t = mlxc_tape_of(r->operands[i]);
    }
    return t ? trace(r, t) : act(r);
}

/* Fills a request from handles. */
static int prepare(request *r, const char *function, mlxc_operation operation, int32_t parameter, const mlx_array *res, const mlx_array *handles,
                   int n, mlx_stream s)
{
    static const char *const names[MAX_OPERANDS] = { "input 0", "input 1", "input 2" };
    *r = (request){ .function = function, .operation = operation, .parameter = parameter, .n_operands = n };
    if (!res)
        return mlxc_report_no_place(function);
    for (int i = 0; i < n; i++)
        if (!(r->operands[i] = mlxc_array_body(function, names[i], handles[i])))
            return 1;
    return !(r->engine = mlxc_engine_of_stream(function, s));
}

static int apply(const char *function, mlxc_operation operation, int32_t parameter, mlx_array *res, const mlx_array *handles, int n, mlx_stream s)
{
    request r;
    return prepare(&r, function, operation, parameter, res, handles, n, s) || mlxc_array_assign(function, res, perform(&r));
}

#define MLX_C_UNARY(name) \
    int mlx_##name(mlx_array *res, const mlx_array a, const mlx_stream s) { return apply(__func__, MLXC_OP_##name, 0, res, &a, 1, s); }
#define MLX_C_BINARY(name) \
    int mlx_##name(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s) \
    { return apply(__func__, MLXC_OP_##name, 0, res, (mlx_array[]){ a, b }, 2, s); }
#include "mlx/c/ops.def"

int mlx_where(mlx_array *res, const mlx_array condition, const mlx_array x, const mlx_array y, const mlx_stream s)
{
    return apply(__func__, MLXC_OP_where, 0, res, (mlx_array[]){ condition, x, y }, 3, s);
}

int mlx_astype(mlx_array *res, const mlx_array a, mlx_dtype dtype, const mlx_stream s)
{
    ol_dtype d;
    return mlxc_dtype_in(__func__, dtype, &d) || apply(__func__, MLXC_OP_astype, (int32_t)d, res, &a, 1, s);
}

int mlx_round(mlx_array *res, const mlx_array a, int decimals, const mlx_stream s)
{
    if (decimals < -MLXC_MAX_DECIMALS || decimals > MLXC_MAX_DECIMALS)
        return mlxc_report(__func__, "%d decimals; expected -%d to %d", decimals, MLXC_MAX_DECIMALS, MLXC_MAX_DECIMALS);
    return apply(__func__, MLXC_OP_round, decimals, res, &a, 1, s);
}

int mlx_clip(mlx_array *res, const mlx_array a, const mlx_array a_min, const mlx_array a_max, const mlx_stream s)
{
    if (!a_min.ctx && !a_max.ctx)
        return mlxc_report(__func__, "both bounds are empty handles; expected one at least");
    if (a_min.ctx && a_max.ctx)
        return apply(__func__, MLXC_OP_clip, 0, res, (mlx_array[]){ a, a_min, a_max }, 3, s);
    return apply(__func__, a_min.ctx ? MLXC_OP_maximum : MLXC_OP_minimum, 0, res, (mlx_array[]){ a, a_min.ctx ? a_min : a_max }, 2, s);
}

/* ---- Filled shapes ------------------------------------------------------------------------------------------------------- */

/* Takes over the reference to `b` and gives it the shape. A view costs no memory until a client reads it; a traced one is a step. */
static mlxc_body *spread(const char *function, mlxc_body *b, size_t rank, const int64_t *dims)
{
    mlxc_body *result = NULL;
    uint32_t step;
    if (!b)
        return NULL;
    if (!b->trace)
        result = mlxc_body_view(function, b, (int32_t)rank, dims);
    else if (!mlxc_tape_broadcast_to(function, mlxc_tape_of(b), b->step, (int32_t)rank, dims, &step))
        result = mlxc_tape_placeholder(function, mlxc_tape_of(b), step);
    mlxc_body_release(b);
    return result;
}

int mlx_broadcast_to(mlx_array *res, const mlx_array a, const int *shape, size_t shape_num, const mlx_stream s)
{
    request r;
    int64_t dims[OL_MAX_RANK];
    if (prepare(&r, __func__, MLXC_OP_astype, 0, res, &a, 1, s) ||
        mlxc_shape_in(__func__, shape, shape_num, r.operands[0]->view.dtype, dims))
        return 1;
    /* A copy first, as of a node: it makes NaN canonical. */
    r.parameter = (int32_t)r.operands[0]->view.dtype;
    return mlxc_array_assign(__func__, res, spread(__func__, perform(&r), shape_num, dims));
}

int mlx_full(mlx_array *res, const int *shape, size_t shape_num, const mlx_array vals, mlx_dtype dtype, const mlx_stream s)
{
    request r;
    ol_dtype d;
    int64_t dims[OL_MAX_RANK];
    if (mlxc_dtype_in(__func__, dtype, &d) || mlxc_shape_in(__func__, shape, shape_num, d, dims) ||
        prepare(&r, __func__, MLXC_OP_astype, (int32_t)d, res, &vals, 1, s))
        return 1;
    return mlxc_array_assign(__func__, res, spread(__func__, perform(&r), shape_num, dims));
}

/* 0 or 1 everywhere, made by the library without a launch: a constant where it is traced. */
static int fill(const char *function, mlx_array *res, const int *shape, size_t rank, mlx_dtype dtype, int one, mlx_stream s)
{
    static const uint32_t ones_by_dtype[OL_DTYPE_COUNT] = {
        [OL_BOOL] = 1, [OL_UINT8] = 1, [OL_UINT16] = 1, [OL_UINT32] = 1, [OL_UINT64] = 1, [OL_INT8] = 1, [OL_INT16] = 1, [OL_INT32] = 1,
        [OL_INT64] = 1, [OL_FLOAT16] = 0x3c00, [OL_BFLOAT16] = 0x3f80, [OL_FLOAT32] = 0x3f800000
    };
    ol_dtype d;
    int64_t dims[OL_MAX_RANK];
    if (!res)
        return mlxc_report_no_place(function);
    if (mlxc_dtype_in(function, dtype, &d) || mlxc_shape_in(function, shape, rank, d, dims) || !mlxc_engine_of_stream(function, s))
        return 1;
    mlxc_body *value = mlxc_body_new_host(function, d, 0, dims);
    uint64_t bits = one ? ones_by_dtype[d] : 0;
    if (value)                         /* little-endian, as every supported machine is */
        memcpy(atomic_load_explicit(&value->host, memory_order_relaxed), &bits, ol_dtype_size(d));
    return mlxc_array_assign(function, res, spread(function, value, rank, dims));
}

int mlx_zeros(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype, const mlx_stream s)
{
    return fill(__func__, res, shape, shape_num, dtype, 0, s);
}

int mlx_ones(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype, const mlx_stream s)
{
    return fill(__func__, res, shape, shape_num, dtype, 1, s);
}
