/* See driver.h. */
#include "cuda/driver.h"

#include "status.h"

#include <dlfcn.h>
#include <pthread.h>

static const char library[] = "libcuda.so.1";

static ol_status load(driver *d, const char *operation, ol_error *error)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return fail(error, OL_ERROR_DEVICE, operation, "the CUDA driver cannot be opened: %s; it comes with NVIDIA's display driver", dlerror());
#define F(name, symbol, arguments)                                                                                            \
    *(void **)&d->name = dlsym(handle, #symbol);                                                                              \
    if (!d->name) {                                                                                                           \
        dlclose(handle);                                                                                                      \
        return fail(error, OL_ERROR_DEVICE, operation, "%s has no %s: the driver is older than CUDA 11.2", library, #symbol);  \
    }
    DRIVER_FUNCTIONS(F)
#undef F
#define F(name, symbol, arguments) *(void **)&d->name = dlsym(handle, #symbol);
    DRIVER_LATER_FUNCTIONS(F)
#undef F
    const char *call = "cuInit";
    CUresult code = d->cuInit(0);
    d->has_no_device = code == CUDA_ERROR_NO_DEVICE;
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_NO_DEVICE) {
        call = "cuDriverGetVersion";
        code = d->cuDriverGetVersion(&d->version);
    }
    if (code != CUDA_SUCCESS) {
        ol_status status = driver_fail(d, code, call, operation, error);
        dlclose(handle);
        return status;
    }
    return OL_OK;
}

ol_status driver_open(const char *operation, const driver **out, ol_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static driver loaded;
    static int is_loaded;
    ol_status status = OL_OK;
    pthread_mutex_lock(&lock);
    if (!is_loaded) {
        driver d = { 0 };
        status = load(&d, operation, error);
        if (status == OL_OK) {
            loaded = d;
            is_loaded = 1;
        }
    }
    pthread_mutex_unlock(&lock);
    *out = &loaded;
    return status;
}

/* Codes of a kernel that failed while it ran: every later call of the context gives them again. */
static int is_left_behind(CUresult code)
{
    return code >= CUDA_ERROR_ILLEGAL_ADDRESS && code <= CUDA_ERROR_LAUNCH_FAILED && code != 701 && code != 704 && code != 705 && code != 708 &&
           code != 709 && code != 712 && code != 713;
}

ol_status driver_fail(const driver *d, CUresult code, const char *call, const char *operation, ol_error *error)
{
    const char *name = NULL, *text = NULL;
    d->cuGetErrorName(code, &name);
    d->cuGetErrorString(code, &text);
    return fail(error, code == CUDA_ERROR_OUT_OF_MEMORY ? OL_ERROR_MEMORY : OL_ERROR_DEVICE, operation, "%s%s: %s (%d): %s",
                is_left_behind(code) ? "asynchronous, of work that was started earlier in this context: " : "", call, name ? name : "an unknown code", code,
                text ? text : "no text");
}
