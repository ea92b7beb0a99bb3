/* Launches of a client's program: the library's own calls for a device come here first, since the program's functions stand before
 * those of the libraries it is linked with, and go on to onelaunch, which counts. Of the fake CUDA driver, its own count. */
#include "client.h"

#include <onelaunch.h>

#include <dlfcn.h>
#include <pthread.h>

static ol_device *seen[64];
static size_t n_seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void remember(ol_device *device)
{
    pthread_mutex_lock(&lock);
    if (n_seen < COUNT(seen))
        seen[n_seen++] = device;
    pthread_mutex_unlock(&lock);
}

static void *next_function(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function)
        abort();
    return function;
}

ol_status ol_device_cpu(const ol_cpu_options *options, ol_device **device, ol_error *error)
{
    ol_status (*next)(const ol_cpu_options *, ol_device **, ol_error *);
    *(void **)&next = next_function("ol_device_cpu");
    ol_status status = next(options, device, error);
    if (status == OL_OK)
        remember(*device);
    return status;
}

ol_status ol_device_cuda(int32_t ordinal, const ol_cuda_options *options, ol_device **device, ol_error *error)
{
    ol_status (*next)(int32_t, const ol_cuda_options *, ol_device **, ol_error *);
    *(void **)&next = next_function("ol_device_cuda");
    ol_status status = next(ordinal, options, device, error);
    if (status == OL_OK)
        remember(*device);
    return status;
}

/* The tests' programs keep a stream, and with it the device, until they end. */
long launches(void)
{
    uint64_t n = 0;
    uint64_t (*count)(const ol_device *);
    if (n_seen == 0)
        return -1;
    *(void **)&count = next_function("ol_device_launches");
    for (size_t i = 0; i < n_seen; i++)
        n += count(seen[i]);
    return (long)n;
}

bool on_gpu(void)
{
    const char *(*name)(const ol_device *);
    *(void **)&name = next_function("ol_device_name");
    for (size_t i = 0; i < n_seen; i++)
        if (strncmp(name(seen[i]), "cuda", 4) == 0)
            return true;
    return false;
}

/* The fake driver's own functions, where it is the one that is loaded. */
static void *fake_function(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *function = library ? dlsym(library, name) : NULL;
    if (library)
        dlclose(library);
    return function;
}

static long fake_count(const char *name)
{
    size_t (*count)(void);
    *(void **)&count = fake_function(name);
    return count ? (long)count() : -1;
}

long fake_launches(void)
{
    size_t (*calls)(const char *);
    *(void **)&calls = fake_function("fake_calls");
    return calls ? (long)calls("cuLaunchKernel") : -1;
}

long fake_violations(void)
{
    return fake_count("fake_violations");
}

long fake_objects(void)
{
    return fake_count("fake_leaks");
}
