/* A GPU's memory. Allocating and freeing it costs more than a launch, and waits for the device; so blocks have sizes that repeat and
 * are kept, up to a bound, for the next array. Since everything on the device goes through one stream, a block that a kernel
 * still reads can be given to the next one at once. */
#include "engine.h"

#define MAX_BYTES_KEPT ((size_t)256 << 20)

/* The next of the sizes 2^k and 1.5 2^k, from 256 on. */
static size_t rounded(size_t n_bytes)
{
    size_t size = 256;
    while (size < n_bytes && size <= SIZE_MAX / 4) {
        if (size + size / 2 >= n_bytes)
            return size + size / 2;
        size *= 2;
    }
    return size < n_bytes ? n_bytes : size;
}

static void *take_kept(mlxc_engine *e, size_t n_bytes)
{
    void *pointer = NULL;
    pthread_mutex_lock(&e->lock);
    for (size_t i = e->n_kept; i-- > 0 && !pointer;)
        if (e->kept[i].n_bytes == n_bytes) {
            pointer = e->kept[i].pointer;
            e->kept[i] = e->kept[--e->n_kept];
            e->n_bytes_kept -= n_bytes;
        }
    pthread_mutex_unlock(&e->lock);
    return pointer;
}

/* Gives every block that is kept back to the device. */
static void flush(mlxc_engine *e)
{
    mlxc_block blocks[MLXC_N_KEPT];
    pthread_mutex_lock(&e->lock);
    size_t n = e->n_kept;
    for (size_t i = 0; i < n; i++)
        blocks[i] = e->kept[i];
    e->n_kept = e->n_bytes_kept = 0;
    pthread_mutex_unlock(&e->lock);
    for (size_t i = 0; i < n; i++)
        ol_device_free(e->device, blocks[i].pointer, blocks[i].n_bytes, NULL);
}

ol_status mlxc_block_take(mlxc_engine *e, size_t *n_bytes, void **pointer, ol_error *error)
{
    size_t size = rounded(*n_bytes);
    void *block = take_kept(e, size);
    if (!block && ol_device_allocate(e->device, size, &block, error) != OL_OK) {
        flush(e);
        ol_status status = ol_device_allocate(e->device, size, &block, error);
        if (status != OL_OK)
            return status;
    }
    *n_bytes = size;
    *pointer = block;
    return OL_OK;
}

void mlxc_block_give(mlxc_engine *e, void *pointer, size_t n_bytes)
{
    int keep = 0;
    if (!pointer)
        return;
    pthread_mutex_lock(&e->lock);
    if (e->n_kept < MLXC_N_KEPT && n_bytes <= MAX_BYTES_KEPT - e->n_bytes_kept) {
        e->kept[e->n_kept++] = (mlxc_block){ pointer, n_bytes };
        e->n_bytes_kept += n_bytes;
        keep = 1;
    }
    pthread_mutex_unlock(&e->lock);
    if (!keep)
        ol_device_free(e->device, pointer, n_bytes, NULL);
}

ol_status mlxc_copy(mlxc_engine *e, void *to, const void *from, size_t n_bytes, ol_error *error)
{
    ol_status status = ol_device_copy(e->device, e->stream, to, from, n_bytes, error);
    return status == OL_OK ? ol_stream_synchronize(e->device, e->stream, error) : status;
}
