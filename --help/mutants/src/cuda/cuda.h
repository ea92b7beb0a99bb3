/* The CUDA backend: its device, what it prepares for a composite, and the files' interfaces to one another.
 *
 *     driver.c   libcuda.so.1                             nvrtc.c         the run-time compiler
 *     kernel.c, kernel_text.c, kernel_ahead.c, kernel_statements.c, device_text.c: from the program to the kernel's text;
 *                explain.c shows it
 *     kernel_support.h, kernel_hardware.h, kernel_halves.h, kernel_quick.h, kernel_float32.h, kernel_bf16.h, words.h: the part of
 *                that text which is the same for all
 *     cache*.c   compiled kernels on disk                 image.c         and loaded in a context
 *     geometry.c shapes and strides -> a kernel's words and its grid; geometry_memory.c remembers
 *     replay.c   a launch                                 far_words.c     words too many to be passed with it
 *     step*.c    the gated-delta step: step.h says what each file does; mixer*.c: the mixer step, mixer.h
 *     device.c   the device                               device_memory.c memory, copies, streams, the composed path's needs */
#ifndef OL_CUDA_H
#define OL_CUDA_H

#include "composite.h"
#include "cuda/driver.h"
#include "cuda/geometry.h"
#include "cuda/kernel.h"
#include "workspace.h"

#include <pthread.h>

typedef struct cuda_image cuda_image;

typedef struct cuda_device {
    ol_device base;
    const driver *driver;
    CUcontext context;
    CUdevice handle;
    int has_primary;                     /* the context is the primary one, and retained */
    int ordinal, capability, n_multiprocessors;
    char name[24], level[16];            /* "cuda:0", "sm_90" */
    pthread_mutex_t lock;                /* of the images */
    cuda_image *images;
    uint64_t n_uses;                     /* of images: the clock of their last uses */
} cuda_device;

/* Makes the device's context current on this thread, and what was before it again. */
typedef struct cuda_scope {
    const driver *driver;
    int entered;
} cuda_scope;
ol_status cuda_enter(const cuda_device *device, cuda_scope *scope, const char *operation, ol_error *error);
void cuda_leave(cuda_scope *scope);

/* While a capture goes on anywhere in the process, calls that may wait are refused and break it, unless the thread says that it means
 * them; and takes that back. */
int cuda_relax(const driver *d);
void cuda_unrelax(const driver *d, int mode);

/* image.c: the loaded kernel of a text: from this device's images, the cache on disk, or the compiler. */
ol_status cuda_image_take(cuda_device *device, const kernel *k, const text *source, cuda_image **image, ol_error *error);
void cuda_image_give(cuda_device *device, cuda_image *image);
void cuda_images_destroy(cuda_device *device, int entered);      /* not entered: what the driver holds of them stays */

struct far_words;
struct cuda_image {
    cuda_image *next;
    text key;                            /* what the image was made from, in full */
    int users;
    uint64_t last_use;
    CUmodule module;
    CUfunction function;
    function_limits limits;
    struct far_words *far;               /* where the kernel takes its words by pointer */
};

/* far_words.c: blocks of words that the host writes and the GPU reads. A block is free again when the kernel that reads it is
 * done; one that a stream capture recorded stays taken, since graphs made of it may be launched at any time. */
typedef struct far_block far_block;
ol_status far_words_create(const cuda_device *device, size_t n_words, struct far_words **far, ol_error *error);
void far_words_destroy(const cuda_device *device, struct far_words *far, int entered);        /* NULL is allowed */
ol_status far_words_take(const cuda_device *device, struct far_words *far, far_block **block, uint64_t **words, CUdeviceptr *address,
                         const char *operation, ol_error *error);
/* After the launch into `stream`, or without one (`launched` 0). */
void far_words_give(const cuda_device *device, far_block *block, CUstream stream, int launched);

/* What is prepared for a composite. */
typedef struct cuda_prepared {
    kernel *kernel;
    cuda_image *image;
    size_t space_bytes;
    workspace *spaces;                   /* NULL where the stack serves */
    geometry_memory *remembered;         /* NULL where geometry is not remembered */
    int is_own_copy;                     /* the composed path's last step, which is no launch of the graph's */
} cuda_prepared;

#define SPACE_STACK_BYTES 8192

/* replay.c */
ol_status cuda_prepare(ol_composite *composite, const dependencies *d, ol_error *error);
void cuda_release(ol_composite *composite);
ol_status cuda_replay(const ol_composite *composite, ol_stream stream, const ol_tensor *inputs, const ol_tensor *outputs,
                      const tensor_facts *facts, int in_place, ol_error *error);

/* step.c: the gated-delta step; see step.h. */
ol_status cuda_delta_prepare(struct ol_gated_delta *layer, ol_error *error);
void cuda_delta_release(struct ol_gated_delta *layer);
ol_status cuda_delta_step(const struct delta_call *call, ol_stream stream, ol_error *error);

/* mixer.c: the mixer step; see cuda/mixer.h. */
ol_status cuda_mixer_prepare(struct ol_gated_delta_mixer *mixer, ol_error *error);
void cuda_mixer_release(struct ol_gated_delta_mixer *mixer);
ol_status cuda_mixer_step(const struct mixer_call *call, ol_stream stream, ol_error *error);

/* device_memory.c: the backend's functions of these names. */
ol_status cuda_allocate(ol_device *device, ol_stream stream, size_t n_bytes, void **pointer, ol_error *error);
void cuda_free(ol_device *device, ol_stream stream, void *pointer, size_t n_bytes);
ol_status cuda_place(ol_device *device, ol_stream stream, void *to, uint64_t bits, ol_error *error);
ol_status cuda_copy_out(ol_device *device, ol_stream stream, const ol_tensor *from, const ol_tensor *to, ol_error *error);
ol_status cuda_device_allocate(ol_device *device, size_t n_bytes, void **pointer, ol_error *error);
ol_status cuda_device_free(ol_device *device, void *pointer, size_t n_bytes, ol_error *error);
ol_status cuda_device_copy(ol_device *device, ol_stream stream, void *to, const void *from, size_t n_bytes, ol_error *error);
ol_status cuda_stream_create(ol_device *device, ol_stream *stream, ol_error *error);
ol_status cuda_stream_destroy(ol_device *device, ol_stream stream, ol_error *error);
ol_status cuda_stream_synchronize(ol_device *device, ol_stream stream, ol_error *error);

#endif
