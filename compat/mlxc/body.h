/* What an array handle refers to. A handle is a box with a pointer to a body; bodies are immutable, counted by reference, and shared
 * between handles, vectors and composites. Boxes exist because a handle is a struct that clients copy: assigning to one copy
 * must be seen through the others, as mlx-c has it.
 *
 * A body's values are in host memory, in a GPU's, or in both (it is copied when first asked for where it is not); or it is a view
 * of another body, with strides of zero; or it is a placeholder, which has none. */
#ifndef MLXC_BODY_H
#define MLXC_BODY_H

#include "engine.h"

#include "mlx/c/array.h"

#include <stdatomic.h>

typedef struct mlxc_body mlxc_body;
struct mlxc_body {
    atomic_size_t references;
    ol_tensor view;                    /* where elements are from the address on; its data is not used */
    size_t n_elements;
    int shape[OL_MAX_RANK];            /* both as clients see them */
    size_t strides[OL_MAX_RANK];       /* row-major, whatever the view's */

    uint64_t trace;                    /* a placeholder: the serial of its trace; else 0 */
    uint32_t step;                     /* and its number in it */

    mlxc_body *base;                   /* a view: the body that has the memory, itself no view; else NULL */
    _Atomic(void *) host;              /* the address in host memory; NULL: on the GPU only */
    _Atomic(void *) dense;             /* its elements row-major in memory of its own, once a client asked for a view's, or for bools of
                                        * the client's memory that are neither 0 nor 1; else NULL */
    _Atomic(void *) device;            /* the address in the GPU's memory; NULL: not there */
    size_t n_device_bytes;
    mlxc_engine *gpu;                  /* whose memory that is */
    void *copied;                      /* host memory from malloc into which values of the GPU were copied */
    void (*dtor)(void *);              /* of the client's memory */
    void *managed;                     /* the client's memory; NULL where the memory is ours */
};

typedef struct mlxc_box {
    mlxc_body *body;
} mlxc_box;

/* The dtype, or a report. */
int mlxc_dtype_in(const char *function, mlx_dtype dtype, ol_dtype *out);
mlx_dtype mlxc_dtype_out(ol_dtype dtype);

/* Checks a client's shape. */
int mlxc_shape_in(const char *function, const int *shape, size_t n_dimensions, ol_dtype dtype, int64_t dims[OL_MAX_RANK]);

/* "[2, 3]" in the place given, for messages. */
typedef struct mlxc_shape_text {
    char text[128];
} mlxc_shape_text;
const char *mlxc_shape_to_text(mlxc_shape_text *place, int32_t rank, const int *shape);

/* Bodies whose values are not set yet. NULL after a report. In host memory, at `host`; with no memory. */
mlxc_body *mlxc_body_new_host(const char *function, ol_dtype dtype, int32_t rank, const int64_t *dims);
mlxc_body *mlxc_body_new_bare(const char *function, ol_dtype dtype, int32_t rank, const int64_t *dims);
/* On an engine, of the shape and dtype of a bare one: what a replay makes, and so what is quick. */
mlxc_body *mlxc_body_new_like(const char *function, const mlxc_body *bare, mlxc_engine *e);
/* `from`, itself no view, repeated to a shape that it broadcasts to. */
mlxc_body *mlxc_body_view(const char *function, mlxc_body *from, int32_t rank, const int64_t *dims);
mlxc_body *mlxc_body_retain(mlxc_body *b);
void mlxc_body_release(mlxc_body *b);                                      /* NULL is allowed */

/* The body as a tensor in memory that the engine reads. */
int mlxc_body_tensor(const char *function, mlxc_body *b, mlxc_engine *e, ol_tensor *t);
/* Its elements row-major in host memory; NULL after a report (also for placeholders), or where there are none. */
const void *mlxc_body_data(const char *function, mlxc_body *b);
/* Waits for its values. */
int mlxc_body_wait(const char *function, mlxc_body *b);
/* Whether all elements are one value that the library itself holds, and its bits. */
int mlxc_body_constant(mlxc_body *b, uint64_t *bits);

/* The body of a handle; NULL after a report that calls it `what`. */
mlxc_body *mlxc_array_body(const char *function, const char *what, mlx_array a);
/* Takes over the reference (NULL: an error was reported). 0 or 1. */
int mlxc_array_assign(const char *function, mlx_array *res, mlxc_body *b);

#endif
