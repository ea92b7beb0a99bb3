/* Making bodies, and letting go of them. One block of malloc holds a body and, behind it, its values in host memory: at decode
 * size that is one trip to the allocator's cache of this thread, so there are no free lists here. */
#include "body.h"

#include "last_call.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64

/* Of an array whose bytes can be counted: the caller has seen to that. */
static void shape_body(mlxc_body *b, ol_dtype dtype, int32_t rank, const int64_t *dims)
{
    size_t stride = 1, n = 1;
    b->view = ol_tensor_contiguous(NULL, dtype, rank, dims);
    for (int32_t d = rank; d-- > 0;) {
        b->shape[d] = (int)dims[d];
        b->strides[d] = stride;
        stride *= dims[d] > 0 ? (size_t)dims[d] : 1;
        n *= (size_t)dims[d];
    }
    b->n_elements = n;
}

/* A copy of a bare body, with n_bytes for values behind it. */
static mlxc_body *take(const char *function, const mlxc_body *bare, size_t n_bytes)
{
    mlxc_body *b = n_bytes > (size_t)PTRDIFF_MAX / 2 ? NULL : malloc(sizeof *b + (n_bytes ? n_bytes + ALIGNMENT - 1 : 0));
    if (!b) {
        mlxc_report(function, "no memory for an array of %zu bytes", n_bytes);
        return NULL;
    }
    memcpy(b, bare, sizeof *b);
    atomic_init(&b->references, 1);
    if (n_bytes) {
        uintptr_t end = (uintptr_t)(b + 1);
        atomic_init(&b->host, (void *)((end + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1)));
    }
    return b;
}

static size_t bytes_of(const mlxc_body *b)
{
    return b->n_elements * ol_dtype_size(b->view.dtype);
}

mlxc_body *mlxc_body_new_host(const char *function, ol_dtype dtype, int32_t rank, const int64_t *dims)
{
    mlxc_body bare;
    memset(&bare, 0, sizeof bare);
    shape_body(&bare, dtype, rank, dims);
    return take(function, &bare, bytes_of(&bare));
}

mlxc_body *mlxc_body_new_bare(const char *function, ol_dtype dtype, int32_t rank, const int64_t *dims)
{
    mlxc_body bare;
    memset(&bare, 0, sizeof bare);
    shape_body(&bare, dtype, rank, dims);
    return take(function, &bare, 0);
}

mlxc_body *mlxc_body_new_like(const char *function, const mlxc_body *bare, mlxc_engine *e)
{
    ol_error error;
    void *pointer;
    size_t n_bytes = bytes_of(bare);
    mlxc_body *b = take(function, bare, e->is_gpu ? 0 : n_bytes);
    if (!b || !e->is_gpu || n_bytes == 0)
        return b;
    if (mlxc_block_take(e, &n_bytes, &pointer, &error) != OL_OK) {
        mlxc_body_release(b);
        mlxc_report_core(function, &error);
        return NULL;
    }
    b->gpu = e;
    b->n_device_bytes = n_bytes;
    atomic_init(&b->device, pointer);
    return b;
}

mlxc_body *mlxc_body_view(const char *function, mlxc_body *from, int32_t rank, const int64_t *dims)
{
    int32_t offset = rank - from->view.rank;
    int broadcasts = offset >= 0;
    for (int32_t d = 0; broadcasts && d < from->view.rank; d++)
        broadcasts = from->shape[d] == dims[offset + d] || from->shape[d] == 1;
    if (!broadcasts) {
        mlxc_shape_text first, second;
        int to[OL_MAX_RANK];
        for (int32_t d = 0; d < rank; d++)
            to[d] = (int)dims[d];
        mlxc_report(function, "shape %s does not broadcast to %s; expected extents that are equal, or 1", mlxc_shape_to_text(&first, from->view.rank, from->shape),
                    mlxc_shape_to_text(&second, rank, to));
        return NULL;
    }
    mlxc_body *b = mlxc_body_new_bare(function, from->view.dtype, rank, dims);
    if (!b)
        return NULL;
    for (int32_t d = 0; d < rank; d++)
        b->view.strides[d] = d < offset || from->shape[d - offset] != dims[d] || dims[d] == 1 ? 0 : from->view.strides[d - offset];
    b->base = mlxc_body_retain(from);
    return b;
}

mlxc_body *mlxc_body_retain(mlxc_body *b)
{
    atomic_fetch_add_explicit(&b->references, 1, memory_order_relaxed);
    return b;
}

void mlxc_body_release(mlxc_body *b)
{
    if (!b || atomic_fetch_sub_explicit(&b->references, 1, memory_order_acq_rel) != 1)
        return;
    if (b->gpu)
        mlxc_block_give(b->gpu, atomic_load(&b->device), b->n_device_bytes);
    free(b->copied);
    free(atomic_load_explicit(&b->dense, memory_order_relaxed));
    mlxc_body *base = b->base;
    mlxc_last_call(b, b->dtor, b->managed);
    mlxc_body_release(base);           /* which has no base itself */
}
