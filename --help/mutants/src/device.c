/* What all devices share: reference counting, the launch count, and the way to their memory and streams. */
#include "backend.h"

#include "status.h"

void device_release(ol_device *device)
{
    if (atomic_fetch_sub_explicit(&device->references, 1, memory_order_acq_rel) == 1)
        device->backend->destroy(device);
}

void ol_device_destroy(ol_device *device)
{
    if (device)
        device_release(device);
}

uint64_t ol_device_launches(const ol_device *device)
{
    return device ? atomic_load_explicit(&device->launches, memory_order_relaxed) : 0;
}

const char *ol_device_name(const ol_device *device)
{
    return device ? device->backend->name(device) : NULL;
}

const char *ol_device_level(const ol_device *device)
{
    return device ? device->backend->level(device) : NULL;
}

static ol_status missing(const char *operation, const char *what, ol_error *error)
{
    return fail(error, OL_ERROR_ARGUMENT, operation, "%s is NULL", what);
}

ol_status ol_device_allocate(ol_device *device, size_t n_bytes, void **pointer, ol_error *error)
{
    if (!device || !pointer)
        return missing("allocate", device ? "the place for the pointer" : "the device", error);
    return device->backend->device_allocate(device, n_bytes, pointer, error);
}

ol_status ol_device_free(ol_device *device, void *pointer, size_t n_bytes, ol_error *error)
{
    if (!device)
        return missing("free", "the device", error);
    return pointer ? device->backend->device_free(device, pointer, n_bytes, error) : OL_OK;
}

ol_status ol_device_copy(ol_device *device, ol_stream stream, void *to, const void *from, size_t n_bytes, ol_error *error)
{
    if (!device || (n_bytes && (!to || !from)))
        return missing("copy", !device ? "the device" : !to ? "the target" : "the source", error);
    ol_status status = device->backend->check_stream(device, stream, "copy", error);
    return status == OL_OK && n_bytes ? device->backend->device_copy(device, stream, to, from, n_bytes, error) : status;
}

ol_status ol_stream_create(ol_device *device, ol_stream *stream, ol_error *error)
{
    if (!device || !stream)
        return missing("create stream", device ? "the place for the stream" : "the device", error);
    return device->backend->stream_create(device, stream, error);
}

ol_status ol_stream_destroy(ol_device *device, ol_stream stream, ol_error *error)
{
    if (!device)
        return missing("destroy stream", "the device", error);
    ol_status status = device->backend->check_stream(device, stream, "destroy stream", error);
    return status == OL_OK && stream ? device->backend->stream_destroy(device, stream, error) : status;
}

ol_status ol_stream_synchronize(ol_device *device, ol_stream stream, ol_error *error)
{
    if (!device)
        return missing("synchronize", "the device", error);
    ol_status status = device->backend->check_stream(device, stream, "synchronize", error);
    return status == OL_OK ? device->backend->stream_synchronize(device, stream, error) : status;
}
