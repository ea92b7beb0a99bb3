/* Words that a kernel takes by pointer: blocks of pinned host memory that the GPU reads, since a copy to its own memory would be work
 * in the stream beside the kernel. Each has an event that is recorded after the kernel.
 *
 * A few are made when the kernel is loaded. More are made only when all are in use: by kernels not yet done, or by stream captures. */
#include "cuda/cuda.h"

#include "memory.h"
#include "status.h"

#include <string.h>

#define FIRST_BLOCKS 4

typedef enum block_state { BLOCK_FREE, BLOCK_TAKEN, BLOCK_IN_FLIGHT, BLOCK_RECORDED } block_state;

struct far_block {
    far_block *next;
    struct far_words *owner;
    block_state state;
    uint64_t *words;
    CUdeviceptr address;
    CUevent event;
};

struct far_words {
    pthread_mutex_t lock;
    size_t n_words;
    far_block *blocks;
};

static ol_status add_block(const cuda_device *device, struct far_words *far, const char *operation, ol_error *error)
{
    const driver *d = device->driver;
    far_block *b = memory_take(&device->base.allocator, sizeof *b);
    const char *call = "cuMemHostAlloc";
    void *host = NULL;
    if (!b)
        return fail(error, OL_ERROR_MEMORY, operation, "no memory for a block of parameters");
    CUresult code = d->cuMemHostAlloc(&host, far->n_words * sizeof(uint64_t), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    b->words = host;
    if (code == CUDA_SUCCESS) {
        call = "cuMemHostGetDevicePointer";
        code = d->cuMemHostGetDevicePointer(&b->address, host, 0);
    }
    if (code == CUDA_SUCCESS) {
        call = "cuEventCreate";
        code = d->cuEventCreate(&b->event, CU_EVENT_DISABLE_TIMING);
    }
    if (code != CUDA_SUCCESS) {
        if (host)
            d->cuMemFreeHost(host);
        memory_give(&device->base.allocator, b, sizeof *b);
        return driver_fail(d, code, call, operation, error);
    }
    b->owner = far;
    b->next = far->blocks;
    far->blocks = b;
    return OL_OK;
}

ol_status far_words_create(const cuda_device *device, size_t n_words, struct far_words **out, ol_error *error)
{
    struct far_words *far = memory_take(&device->base.allocator, sizeof *far);
    if (!far)
        return fail(error, OL_ERROR_MEMORY, "device cuda", "no memory for blocks of parameters");
    pthread_mutex_init(&far->lock, NULL);
    far->n_words = n_words;
    for (int i = 0; i < FIRST_BLOCKS; i++) {
        ol_status status = add_block(device, far, "device cuda", error);
        if (status != OL_OK) {
            far_words_destroy(device, far, 1);
            return status;
        }
    }
    *out = far;
    return OL_OK;
}

void far_words_destroy(const cuda_device *device, struct far_words *far, int entered)
{
    const driver *d = device->driver;
    if (!far)
        return;
    while (far->blocks) {
        far_block *b = far->blocks;
        far->blocks = b->next;
        if (entered) {
            d->cuEventDestroy(b->event);
            d->cuMemFreeHost(b->words);
        }
        memory_give(&device->base.allocator, b, sizeof *b);
    }
    pthread_mutex_destroy(&far->lock);
    memory_give(&device->base.allocator, far, sizeof *far);
}

static far_block *find_free(const driver *d, struct far_words *far)
{
    for (far_block *b = far->blocks; b; b = b->next) {
        if (b->state == BLOCK_IN_FLIGHT && d->cuEventQuery(b->event) == CUDA_SUCCESS)
            b->state = BLOCK_FREE;
        if (b->state == BLOCK_FREE)
            return b;
    }
    return NULL;
}

ol_status far_words_take(const cuda_device *device, struct far_words *far, far_block **block, uint64_t **words, CUdeviceptr *address,
                         const char *operation, ol_error *error)
{
    const driver *d = device->driver;
    ol_status status = OL_OK;
    pthread_mutex_lock(&far->lock);
    int mode = cuda_relax(d);
    far_block *b = find_free(d, far);
    if (!b && (status = add_block(device, far, operation, error)) == OL_OK)
        b = far->blocks;
    if (b) {
        b->state = BLOCK_TAKEN;
        *block = b;
        *words = b->words;
        *address = b->address;
    }
    cuda_unrelax(d, mode);
    pthread_mutex_unlock(&far->lock);
    return status;
}

void far_words_give(const cuda_device *device, far_block *b, CUstream stream, int launched)
{
    const driver *d = device->driver;
    int capturing = 0;
    block_state state = BLOCK_FREE;
    pthread_mutex_lock(&b->owner->lock);
    int mode = cuda_relax(d);
    if (launched) {
        /* Where the driver does not say, the block stays taken: it must never be written under a kernel's hands. */
        state = BLOCK_RECORDED;
        if (d->cuStreamIsCapturing(stream, &capturing) == CUDA_SUCCESS && capturing == CU_STREAM_CAPTURE_STATUS_NONE &&
            d->cuEventRecord(b->event, stream) == CUDA_SUCCESS)
            state = BLOCK_IN_FLIGHT;
    }
    cuda_unrelax(d, mode);
    b->state = state;
    pthread_mutex_unlock(&b->owner->lock);
}
