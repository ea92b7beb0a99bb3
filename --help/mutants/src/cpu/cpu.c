/* The CPU device. */
#include "cpu/cpu.h"

#include "dtype.h"
#include "status.h"

#include <stdlib.h>
#include <string.h>

static const char *cpu_name(const ol_device *device)
{
    (void)device;
    return "cpu";
}

static const char *cpu_level(const ol_device *device)
{
    return ol_cpu_level_name(((const cpu_device *)device)->level);
}

static ol_status cpu_check_stream(const ol_device *device, ol_stream stream, const char *operation, ol_error *error)
{
    (void)device;
    return stream ? fail(error, OL_ERROR_ARGUMENT, operation, "a stream was given; a CPU takes NULL") : OL_OK;
}

static ol_status cpu_allocate(ol_device *device, ol_stream stream, size_t n_bytes, void **pointer, ol_error *error)
{
    (void)stream;
    void *p = memory_take(&device->allocator, n_bytes);
    if (!p)
        return fail(error, OL_ERROR_MEMORY, "allocate", "no memory for %zu bytes", n_bytes);
    *pointer = p;
    return OL_OK;
}

static void cpu_free(ol_device *device, ol_stream stream, void *pointer, size_t n_bytes)
{
    (void)stream;
    memory_give(&device->allocator, pointer, n_bytes);
}

static ol_status cpu_copy_out(ol_device *device, ol_stream stream, const ol_tensor *from, const ol_tensor *to, ol_error *error)
{
    (void)device, (void)stream, (void)error;
    size_t size = dtype_sizes[from->dtype];
    int64_t n = shape_elements(from->rank, from->shape), index[OL_MAX_RANK] = { 0 };
    const char *source = from->data;
    char *target = to->data;
    for (int64_t i = 0; i < n; i++) {
        memcpy(target, source + (size_t)i * size, size);
        for (int d = to->rank - 1; d >= 0; d--) {
            target += to->strides[d] * (int64_t)size;
            if (++index[d] < to->shape[d])
                break;
            target -= index[d] * to->strides[d] * (int64_t)size;
            index[d] = 0;
        }
    }
    return OL_OK;
}

/* ---- The host's memory and streams ---- */

static ol_status cpu_device_allocate(ol_device *device, size_t n_bytes, void **pointer, ol_error *error)
{
    return cpu_allocate(device, NULL, n_bytes, pointer, error);
}

static ol_status cpu_device_free(ol_device *device, void *pointer, size_t n_bytes, ol_error *error)
{
    (void)error;
    memory_give(&device->allocator, pointer, n_bytes);
    return OL_OK;
}

static ol_status cpu_device_copy(ol_device *device, ol_stream stream, void *to, const void *from, size_t n_bytes, ol_error *error)
{
    (void)device, (void)stream, (void)error;
    memmove(to, from, n_bytes);
    return OL_OK;
}

static ol_status cpu_stream_create(ol_device *device, ol_stream *stream, ol_error *error)
{
    (void)device, (void)error;
    *stream = NULL;
    return OL_OK;
}

static ol_status cpu_stream_nothing(ol_device *device, ol_stream stream, ol_error *error)
{
    (void)device, (void)stream, (void)error;
    return OL_OK;
}

static void cpu_destroy(ol_device *device)
{
    cpu_device *d = (cpu_device *)device;
    ol_allocator allocator = device->allocator;
    cpu_threads_destroy(d->threads);
    memory_give(&allocator, d, sizeof *d);
}

static const backend cpu_backend = {
    .name = cpu_name,
    .level = cpu_level,
    .fuse = cpu_fuse,
    .prepare = cpu_prepare,
    .release = cpu_release,
    .check_stream = cpu_check_stream,
    .replay = cpu_replay,
    .allocate = cpu_allocate,
    .free = cpu_free,
    .copy_out = cpu_copy_out,
    .device_allocate = cpu_device_allocate,
    .device_free = cpu_device_free,
    .device_copy = cpu_device_copy,
    .stream_create = cpu_stream_create,
    .stream_destroy = cpu_stream_nothing,
    .stream_synchronize = cpu_stream_nothing,
    .delta_prepare = cpu_delta_prepare,
    .delta_step = cpu_delta_step,
    .mixer_prepare = cpu_mixer_prepare,
    .mixer_release = cpu_mixer_release,
    .mixer_step = cpu_mixer_step,
    .destroy = cpu_destroy,
};

/* The level asked for by the options or, where they leave it open, by ONELAUNCH_CPU. */
static ol_status choose_level(ol_cpu_level asked, ol_cpu_level *level, ol_error *error)
{
    const char *name = getenv("ONELAUNCH_CPU");
    int env = asked == OL_CPU_AUTO && name && *name;
    if (env) {
        for (int l = OL_CPU_BASELINE; l <= OL_CPU_NEON; l++)
            if (strcmp(name, ol_cpu_level_name((ol_cpu_level)l)) == 0)
                asked = (ol_cpu_level)l;
        if (asked == OL_CPU_AUTO)
            return fail(error, OL_ERROR_DEVICE, "device cpu", "ONELAUNCH_CPU is \"%s\"; expected baseline, avx2, avx512 or neon", name);
    }
    if (asked == OL_CPU_AUTO)
        asked = cpu_best_level();
    if (!ol_cpu_level_name(asked))
        return fail(error, OL_ERROR_DEVICE, "device cpu", "%d is not a SIMD level", (int)asked);
    if (!ol_cpu_level_available(asked))
        return fail(error, OL_ERROR_DEVICE, "device cpu", "%s %s level %s, which this machine does not have; its best is %s", env ? "ONELAUNCH_CPU" : "the options",
                    env ? "asks for" : "ask for",
                    ol_cpu_level_name(asked), ol_cpu_level_name(cpu_best_level()));
    *level = asked;
    return OL_OK;
}

ol_status ol_device_cpu(const ol_cpu_options *options, ol_device **device, ol_error *error)
{
    ol_cpu_options o = { 0 };
    if (options)
        o = *options;
    if (!device)
        return fail(error, OL_ERROR_ARGUMENT, "device cpu", "the place for the device is NULL");
    if (!o.allocator.allocate != !o.allocator.free)
        return fail(error, OL_ERROR_ARGUMENT, "device cpu", "the allocator has one of allocate and free; expected both or neither");
    ol_cpu_level level = OL_CPU_BASELINE;
    ol_status status = choose_level(o.level, &level, error);
    if (status != OL_OK)
        return status;
    ol_allocator allocator = memory_allocator(&o.allocator);
    cpu_device *d = memory_take(&allocator, sizeof *d);
    if (!d)
        return fail(error, OL_ERROR_MEMORY, "device cpu", "no memory for a device");
    status = cpu_threads_create(&allocator, &o, &d->threads, error);
    if (status != OL_OK) {
        memory_give(&allocator, d, sizeof *d);
        return status;
    }
    d->base.backend = &cpu_backend;
    d->base.allocator = allocator;
    atomic_init(&d->base.references, 1);
    atomic_init(&d->base.launches, 0);
    d->level = level;
    d->kernels = cpu_level_kernels(level);
    cpu_levels_prepare();
    *device = &d->base;
    return OL_OK;
}
