/* Where the values of bodies are, and bringing them where they are asked for. Copies are made once, under one lock: they are rare, and
 * wait for the device anyway. What is there already is found without it. */
#include "body.h"

#include "report.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t copying = PTHREAD_MUTEX_INITIALIZER;

static size_t bytes_of(const mlxc_body *b)
{
    return b->n_elements * ol_dtype_size(b->view.dtype);
}

static int refuse_placeholder(const char *function)
{
    return mlxc_report(function, "the array is a placeholder: it stands for an input while a closure is being traced, and has a dtype and a "
                       "shape but no values; expected an array");
}

/* What the next two find wrong goes to *error; they run under the lock. NULL after an error. */
static void *bring_to_host(mlxc_body *root, ol_error *error)
{
    void *to = atomic_load(&root->host);
    if (to)
        return to;
    to = malloc(bytes_of(root));
    if (!to) {
        *error = (ol_error){ .status = OL_ERROR_MEMORY, .operation = "copy to the host", .description = "no memory" };
        return NULL;
    }
    if (mlxc_copy(root->gpu, to, atomic_load(&root->device), bytes_of(root), error) != OL_OK) {
        free(to);
        return NULL;
    }
    root->copied = to;
    atomic_store_explicit(&root->host, to, memory_order_release);
    return to;
}

static void *bring_to_gpu(mlxc_body *root, mlxc_engine *e, ol_error *error)
{
    void *to = atomic_load(&root->device);
    size_t n_bytes = bytes_of(root);
    if (to)
        return to;
    if (mlxc_block_take(e, &n_bytes, &to, error) != OL_OK)
        return NULL;
    if (mlxc_copy(e, to, atomic_load(&root->host), bytes_of(root), error) != OL_OK) {
        mlxc_block_give(e, to, n_bytes);
        return NULL;
    }
    root->gpu = e;
    root->n_device_bytes = n_bytes;
    atomic_store_explicit(&root->device, to, memory_order_release);
    return to;
}

/* The address of a root's values for an engine; NULL after a report. */
static void *address_on(const char *function, mlxc_body *root, mlxc_engine *e)
{
    ol_error error;
    int gpu = e && e->is_gpu;
    void *address = atomic_load_explicit(gpu ? &root->device : &root->host, memory_order_acquire);
    if (address)
        return address;
    pthread_mutex_lock(&copying);
    address = gpu ? bring_to_gpu(root, e, &error) : bring_to_host(root, &error);
    pthread_mutex_unlock(&copying);
    if (!address)
        mlxc_report_core(function, &error);
    return address;
}

int mlxc_body_tensor(const char *function, mlxc_body *b, mlxc_engine *e, ol_tensor *t)
{
    if (b->trace)
        return refuse_placeholder(function);
    *t = b->view;
    if (b->n_elements > 0 && !(t->data = address_on(function, b->base ? b->base : b, e)))
        return 1;
    return 0;
}

static int is_row_major(const mlxc_body *b)
{
    for (int32_t d = 0; d < b->view.rank; d++)
        if (b->shape[d] > 1 && (size_t)b->view.strides[d] != b->strides[d])
            return 0;
    return 1;
}

/* Writes the elements of a view row-major, one innermost row after another. */
static void copy_rows(const mlxc_body *b, const unsigned char *from, unsigned char *to)
{
    size_t size = ol_dtype_size(b->view.dtype);
    int32_t rank = b->view.rank, last = rank - 1;      /* a view that is not row-major has a dimension */
    size_t row = (size_t)b->shape[last];
    int64_t index[OL_MAX_RANK] = { 0 }, offset = 0;
    for (size_t done = 0; done < b->n_elements; done += row) {
        for (size_t i = 0; i < row; i++, to += size)
            memcpy(to, from + ((size_t)offset + i * (size_t)b->view.strides[last]) * size, size);
        for (int32_t d = last; d-- > 0;) {
            offset += b->view.strides[d];
            if (++index[d] < b->shape[d])
                break;
            offset -= index[d] * b->view.strides[d];
            index[d] = 0;
        }
    }
}

/* Whether the client's own memory has a bool that is neither 0 nor 1: to read that as a bool would be undefined. */
static int has_odd_bools(const mlxc_body *b, const unsigned char *from)
{
    const mlxc_body *root = b->base ? b->base : b;
    size_t i = 0, n = root->managed && b->view.dtype == OL_BOOL ? root->n_elements : 0;
    while (i < n && from[i] <= 1)
        i++;
    return i < n;
}

/* Row-major, and of bools 0 and 1. */
static const void *dense_copy(const char *function, mlxc_body *b, const void *from)
{
    unsigned char *made = malloc(bytes_of(b));
    void *none = NULL;
    if (!made) {
        mlxc_report(function, "no memory for %zu bytes", bytes_of(b));
        return NULL;
    }
    if (is_row_major(b))
        memcpy(made, from, bytes_of(b));
    else
        copy_rows(b, from, made);
    for (size_t i = 0; b->view.dtype == OL_BOOL && i < b->n_elements; i++)
        made[i] = made[i] != 0;
    if (atomic_compare_exchange_strong(&b->dense, &none, made))
        return made;
    free(made);                        /* another thread was quicker */
    return none;
}

const void *mlxc_body_data(const char *function, mlxc_body *b)
{
    if (b->trace)
        return refuse_placeholder(function), NULL;
    if (b->n_elements == 0)
        return NULL;
    const void *dense = atomic_load_explicit(&b->dense, memory_order_acquire);
    if (dense)
        return dense;
    const void *from = address_on(function, b->base ? b->base : b, NULL);
    return !from || (is_row_major(b) && !has_odd_bools(b, from)) ? from : dense_copy(function, b, from);
}

int mlxc_body_wait(const char *function, mlxc_body *b)
{
    ol_error error;
    mlxc_body *root = b->base ? b->base : b;
    if (b->trace)
        return refuse_placeholder(function);
    if (b->n_elements == 0 || atomic_load_explicit(&root->host, memory_order_acquire))
        return 0;
    if (ol_stream_synchronize(root->gpu->device, root->gpu->stream, &error) != OL_OK)
        return mlxc_report_core(function, &error);
    return 0;
}

int mlxc_body_constant(mlxc_body *b, uint64_t *bits)
{
    mlxc_body *root = b->base ? b->base : b;
    const void *host = atomic_load_explicit(&root->host, memory_order_acquire);
    if (b->trace || root->managed || root->n_elements != 1 || !host)
        return 0;
    *bits = 0;
    memcpy(bits, host, ol_dtype_size(b->view.dtype));
    return 1;
}
