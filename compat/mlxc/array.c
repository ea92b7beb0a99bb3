/* Array handles: making, assigning, asking what they are. */
#include "report.h"
#include "tape.h"

#include <stdlib.h>
#include <string.h>

mlxc_body *mlxc_array_body(const char *function, const char *what, mlx_array a)
{
    if (a.ctx)
        return ((mlxc_box *)a.ctx)->body;
    mlxc_report(function, "%s is an empty handle; expected an array", what);
    return NULL;
}

int mlxc_array_assign(const char *function, mlx_array *res, mlxc_body *b)
{
    mlxc_box *box = res->ctx;
    if (!b)
        return 1;
    if (!box) {
        box = malloc(sizeof *box);
        if (!box) {
            mlxc_body_release(b);
            return mlxc_report_memory(function);
        }
        box->body = b;
        res->ctx = box;
        return 0;
    }
    mlxc_body *last = box->body;
    box->body = b;
    mlxc_body_release(last);           /* last of all: it may call the client's dtor */
    return 0;
}

/* ---- Making ------------------------------------------------------------------------------------------------------------ */

static size_t n_elements(int rank, const int64_t *dims)
{
    size_t n = 1;
    for (int d = 0; d < rank; d++)
        n = dims[d] == 0 || n == 0 ? 0 : n * (size_t)dims[d];
    return n;
}

static mlxc_body *copy_of(const char *function, const void *data, const int *shape, int dim, mlx_dtype dtype)
{
    ol_dtype d;
    int64_t dims[OL_MAX_RANK];
    if (dim < 0)
        return mlxc_report(function, "%d dimensions were given; expected 0 to %d", dim, OL_MAX_RANK), NULL;
    if (mlxc_dtype_in(function, dtype, &d) || mlxc_shape_in(function, shape, (size_t)dim, d, dims))
        return NULL;
    if (!data && n_elements(dim, dims) > 0)
        return mlxc_report(function, "the data is NULL; expected %zu elements", n_elements(dim, dims)), NULL;
    mlxc_body *b = mlxc_body_new_host(function, d, dim, dims);
    unsigned char *to = b ? atomic_load_explicit(&b->host, memory_order_relaxed) : NULL;
    if (to)
        memcpy(to, data, b->n_elements * ol_dtype_size(d));
    for (size_t i = 0; to && d == OL_BOOL && i < b->n_elements; i++)      /* whatever byte means true, clients read 1 */
        to[i] = to[i] != 0;
    return b;
}

/* A live handle over the body; empty where there is none. */
static mlx_array handle_of(const char *function, mlxc_body *b)
{
    mlx_array a = { NULL };
    mlxc_array_assign(function, &a, b);
    return a;
}

static int assign_copy(const char *function, mlx_array *arr, const void *data, mlx_dtype dtype)
{
    if (!arr)
        return mlxc_report_no_place(function);
    return mlxc_array_assign(function, arr, copy_of(function, data, NULL, 0, dtype));
}

#define SCALAR(name, type, dtype) \
    mlx_array mlx_array_new_##name(type val) { return handle_of(__func__, copy_of(__func__, &val, NULL, 0, dtype)); } \
    int mlx_array_set_##name(mlx_array *arr, type val) { return assign_copy(__func__, arr, &val, dtype); }
SCALAR(bool, bool, MLX_BOOL)
SCALAR(int, int, MLX_INT32)
SCALAR(float32, float, MLX_FLOAT32)
SCALAR(float, float, MLX_FLOAT32)
#undef SCALAR

mlx_array mlx_array_new(void)
{
    return (mlx_array){ NULL };
}

mlx_array mlx_array_new_data(const void *data, const int *shape, int dim, mlx_dtype dtype)
{
    return handle_of(__func__, copy_of(__func__, data, shape, dim, dtype));
}

int mlx_array_set_data(mlx_array *arr, const void *data, const int *shape, int dim, mlx_dtype dtype)
{
    if (!arr)
        return mlxc_report_no_place(__func__);
    return mlxc_array_assign(__func__, arr, copy_of(__func__, data, shape, dim, dtype));
}

mlx_array mlx_array_new_data_managed(void *data, const int *shape, int dim, mlx_dtype dtype, void (*dtor)(void *))
{
    ol_dtype d;
    int64_t dims[OL_MAX_RANK];
    mlx_array none = { NULL };
    if (dim < 0)
        return mlxc_report(__func__, "%d dimensions were given; expected 0 to %d", dim, OL_MAX_RANK), none;
    if (mlxc_dtype_in(__func__, dtype, &d) || mlxc_shape_in(__func__, shape, (size_t)dim, d, dims))
        return none;
    if (!data && n_elements(dim, dims) > 0)
        return mlxc_report(__func__, "the data is NULL; expected %zu elements", n_elements(dim, dims)), none;
    mlxc_body *b = mlxc_body_new_bare(__func__, d, dim, dims);
    mlx_array a = handle_of(__func__, b);
    if (a.ctx) {                       /* only now is the memory ours to release */
        atomic_init(&b->host, data);
        b->managed = data;
        b->dtor = dtor;
    }
    return a;
}

int mlx_array_free(mlx_array a)
{
    mlxc_box *box = a.ctx;
    if (box) {
        mlxc_body *b = box->body;
        free(box);
        mlxc_body_release(b);
    }
    return 0;
}

int mlx_array_set(mlx_array *arr, const mlx_array src)
{
    if (!arr)
        return mlxc_report_no_place(__func__);
    mlxc_body *b = mlxc_array_body(__func__, "the source", src);
    return b ? mlxc_array_assign(__func__, arr, mlxc_body_retain(b)) : 1;
}

/* ---- Asking: the name of a getter, what it tells of a placeholder, and the answer ------------------------------------------ */

#define ASK(type, name, detail, none, value) \
    type mlx_array_##name(const mlx_array arr) \
    { \
        mlxc_body *b = mlxc_array_body(__func__, "the array", arr); \
        return b && !mlxc_tape_ask(__func__, b, detail) ? (value) : (none); \
    }
ASK(size_t, ndim, MLXC_RANKS, 0, (size_t)b->view.rank)
ASK(const int *, shape, MLXC_SHAPES, NULL, b->shape)
ASK(const size_t *, strides, MLXC_SHAPES, NULL, b->strides)
ASK(size_t, size, MLXC_SHAPES, 0, b->n_elements)
ASK(size_t, nbytes, MLXC_SHAPES, 0, b->n_elements * ol_dtype_size(b->view.dtype))
#undef ASK

/* Every trace depends on dtypes, so a placeholder answers these for good. */
mlx_dtype mlx_array_dtype(const mlx_array arr)
{
    mlxc_body *b = mlxc_array_body(__func__, "the array", arr);
    return b ? mlxc_dtype_out(b->view.dtype) : MLX_BOOL;
}

size_t mlx_array_itemsize(const mlx_array arr)
{
    mlxc_body *b = mlxc_array_body(__func__, "the array", arr);
    return b ? ol_dtype_size(b->view.dtype) : 0;
}

int mlx_array_dim(const mlx_array arr, int dim)
{
    mlxc_body *b = mlxc_array_body(__func__, "the array", arr);
    if (!b || mlxc_tape_ask(__func__, b, MLXC_SHAPES))
        return 0;
    int rank = (int)b->view.rank;
    if (rank == 0)
        return mlxc_report(__func__, "dimension %d of an array of rank 0 was asked for; expected an array that has dimensions", dim), 0;
    if (dim < -rank || dim >= rank)
        return mlxc_report(__func__, "dimension %d of an array of rank %d was asked for; expected %d to %d", dim, rank, -rank, rank - 1), 0;
    return b->shape[dim < 0 ? dim + rank : dim];
}

int mlx_array_eval(mlx_array arr)
{
    mlxc_body *b = mlxc_array_body(__func__, "the array", arr);
    return b ? mlxc_body_wait(__func__, b) : 1;
}
