/* What a device offers to the core: prepare a composite once, replay it on checked tensors, count launches. */
#ifndef OL_BACKEND_H
#define OL_BACKEND_H

#include "program.h"
#include "tensor.h"

#include <stdatomic.h>

struct ol_gated_delta;
struct delta_call;
struct ol_gated_delta_mixer;
struct mixer_call;

typedef struct backend {
    const char *(*name)(const ol_device *device);           /* "cpu" */
    const char *(*level)(const ol_device *device);
    fuse_function fuse;                    /* NULL: it has no kernels for several nodes */
    /* Backend data of a composite whose program is ready, in composite->prepared. */
    ol_status (*prepare)(ol_composite *composite, const dependencies *d, ol_error *error);
    void (*release)(ol_composite *composite);
    /* Whether the stream is one of this device's; the error is in the name of `operation`. */
    ol_status (*check_stream)(const ol_device *device, ol_stream stream, const char *operation, ol_error *error);
    /* Replays on tensors that replay.c has checked; counts the launch. `facts`: of the inputs, then of the outputs;
     * `in_place`: some output is exactly an input. */
    ol_status (*replay)(const ol_composite *composite, ol_stream stream, const ol_tensor *inputs, const ol_tensor *outputs,
                        const tensor_facts *facts, int in_place, ol_error *error);
    /* Memory the device computes in, for intermediates of the composed path: in the order of the stream. */
    ol_status (*allocate)(ol_device *device, ol_stream stream, size_t n_bytes, void **pointer, ol_error *error);
    void (*free)(ol_device *device, ol_stream stream, void *pointer, size_t n_bytes);
    /* Writes a constant's bits, 8 bytes, to such memory; NULL: kernels read the host's. */
    ol_status (*place)(ol_device *device, ol_stream stream, void *to, uint64_t bits, ol_error *error);
    /* Copies a contiguous tensor of intermediates to one of the caller's views, byte for byte. */
    ol_status (*copy_out)(ol_device *device, ol_stream stream, const ol_tensor *from, const ol_tensor *to, ol_error *error);
    /* What the functions of these names in the header do. */
    ol_status (*device_allocate)(ol_device *device, size_t n_bytes, void **pointer, ol_error *error);
    ol_status (*device_free)(ol_device *device, void *pointer, size_t n_bytes, ol_error *error);
    ol_status (*device_copy)(ol_device *device, ol_stream stream, void *to, const void *from, size_t n_bytes, ol_error *error);
    ol_status (*stream_create)(ol_device *device, ol_stream *stream, ol_error *error);
    ol_status (*stream_destroy)(ol_device *device, ol_stream stream, ol_error *error);
    ol_status (*stream_synchronize)(ol_device *device, ol_stream stream, ol_error *error);
    /* Gated-delta layers (gated_delta/layer.h). delta_prepare: backend data of a layer whose gates are compiled, in layer->prepared;
     * NULL: the device has no such kernels. delta_release may be NULL, and takes what a failed delta_prepare left. delta_step: of
     * checked arguments; checks what indices say where the host sees them, runs, and counts the launch. */
    ol_status (*delta_prepare)(struct ol_gated_delta *layer, ol_error *error);
    void (*delta_release)(struct ol_gated_delta *layer);
    ol_status (*delta_step)(const struct delta_call *call, ol_stream stream, ol_error *error);
    /* The same of mixers (gated_delta/mixer.h), whose layer is made; mixer_step NULL: the device has no such kernels. */
    ol_status (*mixer_prepare)(struct ol_gated_delta_mixer *mixer, ol_error *error);
    void (*mixer_release)(struct ol_gated_delta_mixer *mixer);
    ol_status (*mixer_step)(const struct mixer_call *call, ol_stream stream, ol_error *error);
    void (*destroy)(ol_device *device);
} backend;

/* Every device starts with this. */
struct ol_device {
    const backend *backend;
    ol_allocator allocator;
    atomic_int references;                 /* the caller's, and one per composite */
    atomic_uint_fast64_t launches;
};

static inline void device_retain(ol_device *device)
{
    atomic_fetch_add_explicit(&device->references, 1, memory_order_relaxed);
}

void device_release(ol_device *device);

static inline void device_count_launch(ol_device *device)
{
    atomic_fetch_add_explicit(&device->launches, 1, memory_order_relaxed);
}

#endif
