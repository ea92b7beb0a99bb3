/* See device_memory.h. */
#include "device_memory.h"

#include <string.h>

bool device_has_memory(const ol_device *device) {
    return device && strncmp(ol_device_name(device), "cuda:", 5) == 0;
}

size_t tensor_bytes(const ol_tensor *tensor) {
    size_t n_bytes = ol_dtype_size(tensor->dtype);
    for (int32_t axis = 0; axis < tensor->rank; axis++) {
        n_bytes *= (size_t)tensor->shape[axis];
    }
    return n_bytes;
}

/* Whether a tensor's mirror is another one than the tensor itself. */
static bool is_apart(const ol_device *device, const ol_tensor *tensor) {
    return device_has_memory(device) && tensor_bytes(tensor) > 0;
}

ol_status mirror_make(ol_device *device, const ol_tensor *host, ol_tensor *mirror, ol_error *error) {
    *mirror = *host;
    if (!is_apart(device, host)) {
        return OL_OK;
    }
    mirror->data = NULL;
    return ol_device_allocate(device, tensor_bytes(host), &mirror->data, error);
}

void mirror_free(ol_device *device, ol_tensor *mirror) {
    if (mirror->data && is_apart(device, mirror)) {
        ol_device_free(device, mirror->data, tensor_bytes(mirror), NULL);
    }
    mirror->data = NULL;
}

/* Where the stream is not waited for, a copy from the host's memory may still be reading it. */
ol_status mirror_up(ol_device *device, const ol_tensor *host, const ol_tensor *mirror, ol_error *error) {
    if (!is_apart(device, host)) {
        return OL_OK;
    }
    ol_status status = ol_device_copy(device, NULL, mirror->data, host->data, tensor_bytes(host), error);
    return status == OL_OK ? ol_stream_synchronize(device, NULL, error) : status;
}

ol_status mirror_down(ol_device *device, const ol_tensor *host, const ol_tensor *mirror, ol_error *error) {
    if (!is_apart(device, host)) {
        return OL_OK;
    }
    ol_status status = ol_device_copy(device, NULL, host->data, mirror->data, tensor_bytes(host), error);
    return status == OL_OK ? ol_stream_synchronize(device, NULL, error) : status;
}

ol_status mirrors_make(ol_device *device, const ol_tensor *hosts, int32_t n, ol_tensor *mirrors, ol_error *error) {
    memset(mirrors, 0, sizeof *mirrors * (size_t)n);
    for (int32_t i = 0; i < n; i++) {
        ol_status status = mirror_make(device, &hosts[i], &mirrors[i], error);
        if (status != OL_OK) {
            mirrors_free(device, i, mirrors);
            return status;
        }
    }
    return OL_OK;
}

void mirrors_free(ol_device *device, int32_t n, ol_tensor *mirrors) {
    for (int32_t i = 0; i < n; i++) {
        mirror_free(device, &mirrors[i]);
    }
}

ol_status mirrors_up(ol_device *device, const ol_tensor *hosts, int32_t n, const ol_tensor *mirrors, ol_error *error) {
    ol_status status = OL_OK;
    for (int32_t i = 0; status == OL_OK && i < n; i++) {
        status = mirror_up(device, &hosts[i], &mirrors[i], error);
    }
    return status;
}

ol_status mirrors_down(ol_device *device, const ol_tensor *hosts, int32_t n, const ol_tensor *mirrors, ol_error *error) {
    ol_status status = OL_OK;
    for (int32_t i = 0; status == OL_OK && i < n; i++) {
        status = mirror_down(device, &hosts[i], &mirrors[i], error);
    }
    return status;
}
