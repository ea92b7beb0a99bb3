/* Vectors of arrays. A vector holds references to bodies, not handles, so what a client later assigns to a handle it put in does not
 * reach the vector. */
#include "vectors.h"

#include "report.h"

#include <stdlib.h>
#include <string.h>

mlxc_vector *mlxc_vector_of(const char *function, const char *what, mlx_vector_array v)
{
    if (!v.ctx)
        mlxc_report(function, "%s is an empty handle; expected a vector of arrays", what);
    return v.ctx;
}

static void release_all(mlxc_body *const *bodies, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mlxc_body_release(bodies[i]);
}

mlxc_vector *mlxc_vector_new(const char *function, mlxc_body *const *bodies, size_t n)
{
    mlxc_vector *v = malloc(sizeof *v);
    if (v) {
        v->capacity = sizeof v->few / sizeof *v->few;
        v->items = v->few;
        if (n > v->capacity) {
            v->capacity = n;
            v->items = n <= SIZE_MAX / sizeof *v->items ? malloc(n * sizeof *v->items) : NULL;
        }
    }
    if (!v || !v->items) {
        free(v);
        release_all(bodies, n);
        mlxc_report_memory(function);
        return NULL;
    }
    v->n = n;
    if (n > 0)
        memcpy(v->items, bodies, n * sizeof *bodies);
    return v;
}

static void release_items(mlxc_vector *v)
{
    release_all(v->items, v->n);
    if (v->items != v->few)
        free(v->items);
}

void mlxc_vector_destroy(mlxc_vector *v)
{
    if (v) {
        release_items(v);
        free(v);
    }
}

/* So that `to` has the items of `from` and nothing else changes hands. */
static void move_items(mlxc_vector *to, const mlxc_vector *from)
{
    *to = *from;
    if (from->items == from->few)
        to->items = to->few;
}

int mlxc_vector_assign(mlx_vector_array *vec, mlxc_vector *from)
{
    if (!from)
        return 1;
    if (!vec->ctx) {
        vec->ctx = from;
        return 0;
    }
    mlxc_vector last;
    move_items(&last, vec->ctx);
    move_items(vec->ctx, from);
    free(from);
    release_items(&last);              /* last of all: it may call the client's dtor */
    return 0;
}

/* Room for n more items. */
static int grow(const char *function, mlxc_vector *v, size_t n)
{
    if (n <= v->capacity - v->n)
        return 0;
    size_t capacity = 2 * v->capacity + n;
    mlxc_body **items = n <= SIZE_MAX / 32 ? malloc(capacity * sizeof *items) : NULL;
    if (!items)
        return mlxc_report_memory(function);
    memcpy(items, v->items, v->n * sizeof *items);
    if (v->items != v->few)
        free(v->items);
    v->items = items;
    v->capacity = capacity;
    return 0;
}

static int check_handles(const char *function, const mlx_array *data, size_t n)
{
    if (n > 0 && !data)
        return mlxc_report(function, "the data is NULL; expected %zu arrays", n);
    for (size_t i = 0; i < n; i++)
        if (!data[i].ctx)
            return mlxc_report(function, "array %zu of %zu is an empty handle; expected an array", i, n);
    return 0;
}

static int append(const char *function, mlxc_vector *v, const mlx_array *data, size_t n)
{
    if (!v || check_handles(function, data, n) || grow(function, v, n))
        return 1;
    for (size_t i = 0; i < n; i++)
        v->items[v->n++] = mlxc_body_retain(((mlxc_box *)data[i].ctx)->body);
    return 0;
}

static mlxc_vector *vector_of_handles(const char *function, const mlx_array *data, size_t n)
{
    mlxc_vector *v = check_handles(function, data, n) ? NULL : mlxc_vector_new(function, NULL, 0);
    if (v && append(function, v, data, n)) {
        mlxc_vector_destroy(v);
        return NULL;
    }
    return v;
}

static int assign_handles(const char *function, mlx_vector_array *vec, const mlx_array *data, size_t n)
{
    if (!vec)
        return mlxc_report_no_place(function);
    return mlxc_vector_assign(vec, vector_of_handles(function, data, n));
}

mlx_vector_array mlx_vector_array_new(void)
{
    return (mlx_vector_array){ mlxc_vector_new(__func__, NULL, 0) };
}

mlx_vector_array mlx_vector_array_new_data(const mlx_array *data, size_t size)
{
    return (mlx_vector_array){ vector_of_handles(__func__, data, size) };
}

mlx_vector_array mlx_vector_array_new_value(const mlx_array val)
{
    return (mlx_vector_array){ vector_of_handles(__func__, &val, 1) };
}

int mlx_vector_array_free(mlx_vector_array vec)
{
    mlxc_vector_destroy(vec.ctx);
    return 0;
}

int mlx_vector_array_set(mlx_vector_array *vec, const mlx_vector_array src)
{
    if (!vec)
        return mlxc_report_no_place(__func__);
    mlxc_vector *v = mlxc_vector_of(__func__, "the source", src);
    if (!v)
        return 1;
    for (size_t i = 0; i < v->n; i++)
        mlxc_body_retain(v->items[i]);
    return mlxc_vector_assign(vec, mlxc_vector_new(__func__, v->items, v->n));
}

int mlx_vector_array_set_data(mlx_vector_array *vec, const mlx_array *data, size_t size)
{
    return assign_handles(__func__, vec, data, size);
}

int mlx_vector_array_set_value(mlx_vector_array *vec, const mlx_array val)
{
    return assign_handles(__func__, vec, &val, 1);
}

int mlx_vector_array_append_data(mlx_vector_array vec, const mlx_array *data, size_t size)
{
    return append(__func__, mlxc_vector_of(__func__, "the vector", vec), data, size);
}

int mlx_vector_array_append_value(mlx_vector_array vec, const mlx_array val)
{
    return append(__func__, mlxc_vector_of(__func__, "the vector", vec), &val, 1);
}

size_t mlx_vector_array_size(mlx_vector_array vec)
{
    mlxc_vector *v = mlxc_vector_of(__func__, "the vector", vec);
    return v ? v->n : 0;
}

int mlx_vector_array_get(mlx_array *res, const mlx_vector_array vec, size_t idx)
{
    if (!res)
        return mlxc_report_no_place(__func__);
    mlxc_vector *v = mlxc_vector_of(__func__, "the vector", vec);
    if (!v)
        return 1;
    if (idx >= v->n)
        return mlxc_report(__func__, "array %zu of a vector of %zu was asked for; expected %s", idx, v->n,
                           v->n ? "a number below that" : "a vector that has arrays");
    return mlxc_array_assign(__func__, res, mlxc_body_retain(v->items[idx]));
}
