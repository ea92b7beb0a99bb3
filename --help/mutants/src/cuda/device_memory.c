/* Memory, copies and streams: for the composed path in the order of its stream, and for callers who have none of their own. */
#include "cuda/cuda.h"

#include "status.h"

/* Runs a driver call in the device's context. Relaxed: an allocation, a free or a wait beside a stream capture would break it. */
#define IN_CONTEXT(device, operation, name, ...)                                                                              \
    do {                                                                                                                      \
        cuda_scope scope;                                                                                                     \
        ol_status entered = cuda_enter(device, &scope, operation, error);                                                     \
        if (entered != OL_OK)                                                                                                 \
            return entered;                                                                                                   \
        int mode = cuda_relax((device)->driver);                                                                              \
        CUresult code = (device)->driver->name(__VA_ARGS__);                                                                  \
        cuda_unrelax((device)->driver, mode);                                                                                 \
        cuda_leave(&scope);                                                                                                   \
        if (code != CUDA_SUCCESS)                                                                                             \
            return driver_fail((device)->driver, code, #name, operation, error);                                              \
    } while (0)

static const cuda_device *of(const ol_device *device)
{
    return (const cuda_device *)device;
}

/* The driver refuses to allocate nothing. */
static size_t at_least_one(size_t n_bytes)
{
    return n_bytes ? n_bytes : 1;
}

ol_status cuda_allocate(ol_device *device, ol_stream stream, size_t n_bytes, void **pointer, ol_error *error)
{
    CUdeviceptr p = 0;
    IN_CONTEXT(of(device), "allocate", cuMemAllocAsync, &p, at_least_one(n_bytes), stream);
    *pointer = (void *)(uintptr_t)p;
    return OL_OK;
}

static ol_status free_in_stream(ol_device *device, ol_stream stream, void *pointer, ol_error *error)
{
    IN_CONTEXT(of(device), "free", cuMemFreeAsync, (CUdeviceptr)(uintptr_t)pointer, stream);
    return OL_OK;
}

void cuda_free(ol_device *device, ol_stream stream, void *pointer, size_t n_bytes)
{
    (void)n_bytes;
    free_in_stream(device, stream, pointer, NULL);
}

/* By fills, which take the value with the call: a copy would read the host's memory later, or not at all in a capture. */
ol_status cuda_place(ol_device *device, ol_stream stream, void *to, uint64_t bits, ol_error *error)
{
    CUdeviceptr p = (CUdeviceptr)(uintptr_t)to;
    IN_CONTEXT(of(device), "place constant", cuMemsetD32Async, p, (unsigned)bits, 1, stream);
    IN_CONTEXT(of(device), "place constant", cuMemsetD32Async, p + 4, (unsigned)(bits >> 32), 1, stream);
    return OL_OK;
}

/* A composite of one copy, in unsigned integers, which keep every bit; not counted as a launch of the graph's. */
static int copy_builder(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_astype(g, in[0], ol_value_dtype(g, in[0]));
    return 0;
}

ol_status cuda_copy_out(ol_device *device, ol_stream stream, const ol_tensor *from, const ol_tensor *to, ol_error *error)
{
    static const ol_dtype by_size[] = { [1] = OL_UINT8, [2] = OL_UINT16, [4] = OL_UINT32, [8] = OL_UINT64 };
    static const ol_builder builder = { .build = copy_builder, .n_inputs = 1, .n_outputs = 1, .name = "copy" };
    ol_dtype dtype = by_size[dtype_sizes[from->dtype]];
    ol_tensor source = *from, target = *to;
    ol_composite *copy;
    source.dtype = target.dtype = dtype;
    ol_status status = ol_compile(device, &builder, &dtype, &copy, error);
    if (status != OL_OK)
        return status;
    ((cuda_prepared *)copy->prepared)->is_own_copy = 1;
    status = ol_replay(copy, stream, &source, &target, error);
    ol_composite_destroy(copy);
    return status;
}

/* ---- For callers ---- */

ol_status cuda_device_allocate(ol_device *device, size_t n_bytes, void **pointer, ol_error *error)
{
    CUdeviceptr p = 0;
    IN_CONTEXT(of(device), "allocate", cuMemAlloc, &p, at_least_one(n_bytes));
    *pointer = (void *)(uintptr_t)p;
    return OL_OK;
}

ol_status cuda_device_free(ol_device *device, void *pointer, size_t n_bytes, ol_error *error)
{
    (void)n_bytes;
    IN_CONTEXT(of(device), "free", cuMemFree, (CUdeviceptr)(uintptr_t)pointer);
    return OL_OK;
}

ol_status cuda_device_copy(ol_device *device, ol_stream stream, void *to, const void *from, size_t n_bytes, ol_error *error)
{
    IN_CONTEXT(of(device), "copy", cuMemcpyAsync, (CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, n_bytes, stream);
    return OL_OK;
}

ol_status cuda_stream_create(ol_device *device, ol_stream *stream, ol_error *error)
{
    CUstream s = NULL;
    IN_CONTEXT(of(device), "create stream", cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
    *stream = s;
    return OL_OK;
}

ol_status cuda_stream_destroy(ol_device *device, ol_stream stream, ol_error *error)
{
    IN_CONTEXT(of(device), "destroy stream", cuStreamDestroy, stream);
    return OL_OK;
}

ol_status cuda_stream_synchronize(ol_device *device, ol_stream stream, ol_error *error)
{
    IN_CONTEXT(of(device), "synchronize", cuStreamSynchronize, stream);
    return OL_OK;
}
