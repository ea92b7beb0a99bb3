/* CUDA devices. */
#include "cuda/cuda.h"

#include "cuda/nvrtc.h"
#include "memory.h"
#include "status.h"

#include <stdio.h>

ol_status cuda_enter(const cuda_device *device, cuda_scope *scope, const char *operation, ol_error *error)
{
    const driver *d = device->driver;
    CUcontext current = NULL;
    const char *call = "cuCtxGetCurrent";
    CUresult code = d->cuCtxGetCurrent(&current);
    *scope = (cuda_scope){ d, 0 };
    if (code == CUDA_SUCCESS && current != device->context) {
        call = "cuCtxPushCurrent";
        code = d->cuCtxPushCurrent(device->context);
        scope->entered = code == CUDA_SUCCESS;
    }
    return code == CUDA_SUCCESS ? OL_OK : driver_fail(d, code, call, operation, error);
}

void cuda_leave(cuda_scope *scope)
{
    CUcontext ignored;
    if (scope->entered)
        scope->driver->cuCtxPopCurrent(&ignored);
}

int cuda_relax(const driver *d)
{
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return d->cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS ? mode : -1;
}

void cuda_unrelax(const driver *d, int mode)
{
    if (mode >= 0)
        d->cuThreadExchangeStreamCaptureMode(&mode);
}

static const char *cuda_name(const ol_device *device)
{
    return ((const cuda_device *)device)->name;
}

static const char *cuda_level(const ol_device *device)
{
    return ((const cuda_device *)device)->level;
}

/* NULL and the two other handles of default streams are of whatever context is current, so of the device's. */
static ol_status cuda_check_stream(const ol_device *base, ol_stream stream, const char *operation, ol_error *error)
{
    const cuda_device *device = (const cuda_device *)base;
    CUcontext context = NULL;
    if ((uintptr_t)stream <= 2)
        return OL_OK;
    CUresult code = device->driver->cuStreamGetCtx(stream, &context);
    if (code != CUDA_SUCCESS)
        return driver_fail(device->driver, code, "cuStreamGetCtx", operation, error);
    return context == device->context ? OL_OK
                                      : fail(error, OL_ERROR_ARGUMENT, operation, "the stream belongs to another context than %s's", device->name);
}

static void cuda_destroy(ol_device *base)
{
    cuda_device *device = (cuda_device *)base;
    ol_allocator allocator = base->allocator;
    cuda_scope scope;
    int entered = cuda_enter(device, &scope, "destroy device", NULL) == OL_OK, mode = cuda_relax(device->driver);
    cuda_images_destroy(device, entered);
    cuda_unrelax(device->driver, mode);
    cuda_leave(&scope);
    if (device->has_primary)
        device->driver->cuDevicePrimaryCtxRelease(device->handle);
    pthread_mutex_destroy(&device->lock);
    memory_give(&allocator, device, sizeof *device);
}

static const backend cuda_backend = {
    .name = cuda_name,
    .level = cuda_level,
    .prepare = cuda_prepare,
    .release = cuda_release,
    .check_stream = cuda_check_stream,
    .replay = cuda_replay,
    .allocate = cuda_allocate,
    .free = cuda_free,
    .place = cuda_place,
    .copy_out = cuda_copy_out,
    .device_allocate = cuda_device_allocate,
    .device_free = cuda_device_free,
    .device_copy = cuda_device_copy,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_synchronize = cuda_stream_synchronize,
    .delta_prepare = cuda_delta_prepare,
    .delta_release = cuda_delta_release,
    .delta_step = cuda_delta_step,
    .mixer_prepare = cuda_mixer_prepare,
    .mixer_release = cuda_mixer_release,
    .mixer_step = cuda_mixer_step,
    .destroy = cuda_destroy,
};

static const char creating[] = "device cuda";

/* The number of GPUs; a driver that has none says so by an error, then or when it was initialised. */
static CUresult count_devices(const driver *d, int *n)
{
    CUresult code = d->has_no_device ? CUDA_ERROR_NO_DEVICE : d->cuDeviceGetCount(n);
    if (code == CUDA_ERROR_NO_DEVICE) {
        *n = 0;
        code = CUDA_SUCCESS;
    }
    return code;
}

static ol_status find_device(const driver *d, int32_t ordinal, CUdevice *handle, const char *operation, ol_error *error)
{
    int n = 0;
    CUresult code = count_devices(d, &n);
    if (code != CUDA_SUCCESS)
        return driver_fail(d, code, "cuDeviceGetCount", operation, error);
    if (ordinal < 0 || ordinal >= n)
        return fail(error, OL_ERROR_DEVICE, operation, "there is no cuda:%d; the driver finds %d GPU%s", (int)ordinal, n, n == 1 ? "" : "s");
    code = d->cuDeviceGet(handle, ordinal);
    return code == CUDA_SUCCESS ? OL_OK : driver_fail(d, code, "cuDeviceGet", operation, error);
}

/* The number by which the driver counts a device. */
static ol_status find_ordinal(const driver *d, CUdevice handle, int *ordinal, const char *operation, ol_error *error)
{
    int n = 0;
    CUdevice other;
    CUresult code = count_devices(d, &n);
    if (code != CUDA_SUCCESS)
        return driver_fail(d, code, "cuDeviceGetCount", operation, error);
    for (int i = 0; i < n; i++) {
        code = d->cuDeviceGet(&other, i);
        if (code != CUDA_SUCCESS)
            return driver_fail(d, code, "cuDeviceGet", operation, error);
        if (other == handle) {
            *ordinal = i;
            return OL_OK;
        }
    }
    return fail(error, OL_ERROR_DEVICE, operation, "the current context's GPU is none of the %d that the driver counts", n);
}

static ol_status read_capability(const driver *d, CUdevice handle, int *capability, int *n_multiprocessors, const char *operation, ol_error *error)
{
    int major = 0, minor = 0;
    CUresult code = d->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle);
    if (code == CUDA_SUCCESS)
        code = d->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle);
    if (code == CUDA_SUCCESS)
        code = d->cuDeviceGetAttribute(n_multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, handle);
    *capability = 10 * major + minor;
    return code == CUDA_SUCCESS ? OL_OK : driver_fail(d, code, "cuDeviceGetAttribute", operation, error);
}

/* Checks the options; a device that is filled as far as both ways of making one do it alike. */
static ol_status begin(const ol_cuda_options *options, ol_device **out, cuda_device **device, ol_error *error)
{
    ol_cuda_options o = { 0 };
    const driver *d;
    if (options)
        o = *options;
    if (!out)
        return fail(error, OL_ERROR_ARGUMENT, creating, "the place for the device is NULL");
    if (!o.allocator.allocate != !o.allocator.free)
        return fail(error, OL_ERROR_ARGUMENT, creating, "the allocator has one of allocate and free; expected both or neither");
    ol_status status = driver_open(creating, &d, error);
    if (status != OL_OK)
        return status;
    ol_allocator allocator = memory_allocator(&o.allocator);
    cuda_device *made = memory_take(&allocator, sizeof *made);
    if (!made)
        return fail(error, OL_ERROR_MEMORY, creating, "no memory for a device");
    made->base.backend = &cuda_backend;
    made->base.allocator = allocator;
    atomic_init(&made->base.references, 1);
    atomic_init(&made->base.launches, 0);
    made->driver = d;
    pthread_mutex_init(&made->lock, NULL);
    *device = made;
    return OL_OK;
}

/* What depends on the GPU alone. Takes the device over, also on failure. */
static ol_status finish(cuda_device *device, ol_device **out, ol_error *error)
{
    ol_status status = read_capability(device->driver, device->handle, &device->capability, &device->n_multiprocessors, creating, error);
    if (status != OL_OK) {
        cuda_destroy(&device->base);
        return status;
    }
    snprintf(device->name, sizeof device->name, "cuda:%d", device->ordinal);
    snprintf(device->level, sizeof device->level, "sm_%d", device->capability);
    *out = &device->base;
    return OL_OK;
}

static ol_status give_up(cuda_device *device, ol_status status)
{
    ol_allocator allocator = device->base.allocator;
    pthread_mutex_destroy(&device->lock);
    memory_give(&allocator, device, sizeof *device);
    return status;
}

ol_status ol_device_cuda(int32_t ordinal, const ol_cuda_options *options, ol_device **out, ol_error *error)
{
    cuda_device *device;
    ol_status status = begin(options, out, &device, error);
    if (status != OL_OK)
        return status;
    status = find_device(device->driver, ordinal, &device->handle, creating, error);
    if (status != OL_OK)
        return give_up(device, status);
    CUresult code = device->driver->cuDevicePrimaryCtxRetain(&device->context, device->handle);
    if (code != CUDA_SUCCESS)
        return give_up(device, driver_fail(device->driver, code, "cuDevicePrimaryCtxRetain", creating, error));
    device->has_primary = 1;
    device->ordinal = ordinal;
    return finish(device, out, error);
}

ol_status ol_device_cuda_current(const ol_cuda_options *options, ol_device **out, ol_error *error)
{
    cuda_device *device;
    ol_status status = begin(options, out, &device, error);
    if (status != OL_OK)
        return status;
    const driver *d = device->driver;
    const char *call = "cuCtxGetCurrent";
    CUresult code = d->cuCtxGetCurrent(&device->context);
    if (code == CUDA_SUCCESS && !device->context)
        return give_up(device, fail(error, OL_ERROR_DEVICE, creating, "no CUDA context is current on this thread"));
    if (code == CUDA_SUCCESS) {
        call = "cuCtxGetDevice";
        code = d->cuCtxGetDevice(&device->handle);
    }
    if (code != CUDA_SUCCESS)
        return give_up(device, driver_fail(d, code, call, creating, error));
    status = find_ordinal(d, device->handle, &device->ordinal, creating, error);
    return status == OL_OK ? finish(device, out, error) : give_up(device, status);
}

ol_status ol_cuda_count(int32_t *n_devices, ol_error *error)
{
    const driver *d;
    int n = 0;
    if (!n_devices)
        return fail(error, OL_ERROR_ARGUMENT, "cuda count", "the place for the number is NULL");
    ol_status status = driver_open("cuda count", &d, error);
    if (status != OL_OK)
        return status;
    CUresult code = count_devices(d, &n);
    if (code != CUDA_SUCCESS)
        return driver_fail(d, code, "cuDeviceGetCount", "cuda count", error);
    *n_devices = n;
    return OL_OK;
}

ol_status ol_cuda_describe(int32_t ordinal, ol_cuda_facts *facts, ol_error *error)
{
    static const char operation[] = "cuda describe";
    ol_cuda_facts f = { 0 };
    const driver *d;
    CUdevice handle;
    size_t n_bytes = 0;
    int capability = 0, n_multiprocessors = 0;
    if (!facts)
        return fail(error, OL_ERROR_ARGUMENT, operation, "the place for the facts is NULL");
    ol_status status = driver_open(operation, &d, error);
    if (status == OL_OK)
        status = find_device(d, ordinal, &handle, operation, error);
    if (status == OL_OK)
        status = read_capability(d, handle, &capability, &n_multiprocessors, operation, error);
    if (status != OL_OK)
        return status;
    CUresult code = d->cuDeviceGetName(f.name, sizeof f.name, handle);
    if (code == CUDA_SUCCESS)
        code = d->cuDeviceTotalMem(&n_bytes, handle);
    if (code != CUDA_SUCCESS)
        return driver_fail(d, code, "cuDeviceGetName or cuDeviceTotalMem", operation, error);
    f.capability = capability;
    f.n_multiprocessors = n_multiprocessors;
    f.n_bytes = n_bytes;
    f.driver_version = d->version;
    *facts = f;
    return OL_OK;
}

ol_status ol_cuda_compiler(int32_t *version, ol_error *error)
{
    nvrtc_version v = { 0, 0 };
    if (!version)
        return fail(error, OL_ERROR_ARGUMENT, "cuda compiler", "the place for the version is NULL");
    ol_status status = nvrtc_open("cuda compiler", &v, error);
    if (status == OL_OK)
        *version = 1000 * v.major + 10 * v.minor;
    return status;
}
