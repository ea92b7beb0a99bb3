/* Loaded kernels. A device keeps those that no composite uses any more, up to a number, since the same graph is often compiled
 * again (the composed path compiles one of a primitive at every node).
 *
 * The key is all that the machine code depends on, in full; it is compared whole, here and on disk. */
#include "cuda/cuda.h"

#include "cuda/cache.h"
#include "cuda/nvrtc.h"
#include "memory.h"
#include "status.h"

#include <string.h>

#define IDLE_IMAGES 512

/* What the cache's listing shows comes first (cache.h). */
static ol_status make_key(text *key, const cuda_device *device, const kernel *k, const text *source, const nvrtc_version *version,
                          const nvrtc_options *options, ol_error *error)
{
    text_add(key, "onelaunch %s\nnvrtc %d.%d\narchitecture sm_%d\nkernel %s\noptions", ol_version(), version->major, version->minor, device->capability,
             k->name);
    for (int i = 0; options->list[i]; i++)
        text_add(key, " %s", options->list[i]);
    text_add(key, "\n\n");
    text_add_bytes(key, source->bytes, source->n);
    return key->broken ? fail(error, OL_ERROR_MEMORY, k->name, "no memory for the key of a kernel") : OL_OK;
}

/* The image of this key, with one user more; NULL where there is none. */
static cuda_image *find(cuda_device *device, const text *key)
{
    for (cuda_image *image = device->images; image; image = image->next)
        if (image->key.n == key->n && memcmp(image->key.bytes, key->bytes, key->n) == 0) {
            image->users++;
            image->last_use = ++device->n_uses;
            return image;
        }
    return NULL;
}

static void destroy(const cuda_device *device, cuda_image *image, int entered)
{
    if (image->module && entered)
        device->driver->cuModuleUnload(image->module);
    far_words_destroy(device, image->far, entered);
    text_free(&image->key);
    memory_give(&device->base.allocator, image, sizeof *image);
}

/* Takes the least recently used of the idle images off, where there are too many; NULL where there are not. */
static cuda_image *take_oldest_idle(cuda_device *device)
{
    cuda_image **oldest = NULL;
    int n = 0;
    for (cuda_image **i = &device->images; *i; i = &(*i)->next)
        if ((*i)->users == 0) {
            n++;
            if (!oldest || (*i)->last_use < (*oldest)->last_use)
                oldest = i;
        }
    if (n <= IDLE_IMAGES)
        return NULL;
    cuda_image *image = *oldest;
    *oldest = image->next;
    return image;
}

/* Loads machine code and asks what its function allows. */
static CUresult load(const cuda_device *device, const kernel *k, const text *code_bytes, cuda_image *image, const char **call)
{
    const driver *d = device->driver;
    int threads = 0, blocks = 0;
    *call = "cuModuleLoadData";
    CUresult code = d->cuModuleLoadData(&image->module, code_bytes->bytes);
    if (code != CUDA_SUCCESS) {
        image->module = NULL;
        return code;
    }
    *call = "cuModuleGetFunction";
    if ((code = d->cuModuleGetFunction(&image->function, image->module, k->name)) != CUDA_SUCCESS)
        return code;
    *call = "cuFuncGetAttribute";
    if ((code = d->cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, image->function)) != CUDA_SUCCESS)
        return code;
    threads = threads > KERNEL_THREADS ? KERNEL_THREADS : threads < 1 ? 1 : threads;
    *call = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
    if ((code = d->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, image->function, threads, 0)) != CUDA_SUCCESS)
        return code;
    image->limits = (function_limits){ (uint32_t)threads, blocks < 1 ? 1 : (uint32_t)blocks, (uint32_t)device->n_multiprocessors };
    return CUDA_SUCCESS;
}

static ol_status compile(const kernel *k, const text *source, const nvrtc_options *options, const text *key, text *code_bytes, ol_error *error)
{
    code_bytes->n = 0;
    ol_status status = nvrtc_compile(source, k->name, options, code_bytes, k->name, error);
    if (status == OL_OK)
        cache_write(key, code_bytes);
    return status;
}

/* A new image: machine code from the cache or, where that has none or the driver refuses what it has, from the compiler. */
static ol_status make(const cuda_device *device, const kernel *k, const text *source, const nvrtc_options *options, text *key, cuda_image **out,
                      ol_error *error)
{
    const ol_allocator *a = &device->base.allocator;
    const char *call;
    text code_bytes = { .allocator = *a };
    cuda_image *image = memory_take(a, sizeof *image);
    ol_status status = image ? OL_OK : fail(error, OL_ERROR_MEMORY, k->name, "no memory for a kernel");
    int cached = status == OL_OK && cache_read(key, &code_bytes);
    if (status == OL_OK && !cached)
        status = compile(k, source, options, key, &code_bytes, error);
    if (status == OL_OK) {
        CUresult code = load(device, k, &code_bytes, image, &call);
        if (code != CUDA_SUCCESS && code != CUDA_ERROR_OUT_OF_MEMORY && cached) {
            if (image->module)
                device->driver->cuModuleUnload(image->module);
            image->module = NULL;
            status = compile(k, source, options, key, &code_bytes, error);
            code = status == OL_OK ? load(device, k, &code_bytes, image, &call) : CUDA_SUCCESS;
        }
        if (status == OL_OK && code != CUDA_SUCCESS)
            status = driver_fail(device->driver, code, call, k->name, error);
    }
    if (status == OL_OK && k->far)
        status = far_words_create(device, k->n_words, &image->far, error);
    text_free(&code_bytes);
    if (status != OL_OK) {
        if (image)
            destroy(device, image, 1);
        return status;
    }
    image->key = *key;
    *key = (text){ .allocator = *a };
    image->users = 1;
    *out = image;
    return OL_OK;
}

/* Keeps a new image, unless another thread made the same one meanwhile: then that one is taken. */
static cuda_image *keep(cuda_device *device, cuda_image *image)
{
    pthread_mutex_lock(&device->lock);
    cuda_image *same = find(device, &image->key), *surplus = image;
    if (!same) {
        image->last_use = ++device->n_uses;
        image->next = device->images;
        device->images = same = image;
        surplus = take_oldest_idle(device);
    }
    pthread_mutex_unlock(&device->lock);
    if (surplus)
        destroy(device, surplus, 1);
    return same;
}

ol_status cuda_image_take(cuda_device *device, const kernel *k, const text *source, cuda_image **out, ol_error *error)
{
    text key = { .allocator = device->base.allocator };
    nvrtc_version version = { 0, 0 };
    nvrtc_options options;
    cuda_scope scope;
    ol_status status = nvrtc_open(k->name, &version, error);
    if (status == OL_OK)
        status = nvrtc_options_for(device->capability, &options, k->name, error);
    if (status == OL_OK)
        status = make_key(&key, device, k, source, &version, &options, error);
    if (status == OL_OK) {
        pthread_mutex_lock(&device->lock);
        *out = find(device, &key);
        pthread_mutex_unlock(&device->lock);
        if (!*out && (status = cuda_enter(device, &scope, k->name, error)) == OL_OK) {
            int mode = cuda_relax(device->driver);
            status = make(device, k, source, &options, &key, out, error);
            if (status == OL_OK)
                *out = keep(device, *out);
            cuda_unrelax(device->driver, mode);
            cuda_leave(&scope);
        }
    }
    text_free(&key);
    return status;
}

void cuda_image_give(cuda_device *device, cuda_image *image)
{
    pthread_mutex_lock(&device->lock);
    image->users--;
    pthread_mutex_unlock(&device->lock);
}

void cuda_images_destroy(cuda_device *device, int entered)
{
    while (device->images) {
        cuda_image *image = device->images;
        device->images = image->next;
        destroy(device, image, entered);
    }
}
