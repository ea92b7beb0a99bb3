/* The fake driver's errors, devices and contexts; each thread has a stack of current contexts. */
#include "fake_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_DEPTH = 64 };
static __thread CUcontext stack[STACK_DEPTH];
static __thread int depth;

/* ---- Errors ---- */

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
    { 0, "CUDA_SUCCESS", "no error" },
    { 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
    { 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
    { 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
    { 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
    { 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
    { 200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid" },
    { 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
    { 209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device" },
    { 400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
    { 401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state" },
    { 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
    { 600, "CUDA_ERROR_NOT_READY", "device not ready" },
    { 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
    { 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch" },
    { 709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed" },
    { 716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address" },
    { 719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
    { 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing" },
    { 901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture" },
    { 903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not initiated in this stream" },
    { 905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream" },
    { 906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream" },
    { 907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream" },
    { 908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "attempt to terminate a thread-local capture sequence from another thread" },
};

static int error_at(CUresult code)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            return (int)i;
    return -1;
}

const char *fake_error_name(CUresult code)
{
    int i = error_at(code);
    return i < 0 ? NULL : errors[i].name;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    CUresult code = fake_enter("cuGetErrorName", RULE_ANY);
    *name = fake_error_name(error);
    return fake_leave(!code && !*name ? INVALID_VALUE : code);
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    CUresult code = fake_enter("cuGetErrorString", RULE_ANY);
    int i = error_at(error);
    *text = i < 0 ? NULL : errors[i].text;
    return fake_leave(!code && i < 0 ? INVALID_VALUE : code);
}

/* ---- Devices ---- */

CUresult cuInit(unsigned flags)
{
    CUresult code = fake_enter("cuInit", RULE_ANY);
    if (!code)
        code = flags ? INVALID_VALUE : fake.n_devices == 0 ? NO_DEVICE : 0;
    if (!code)
        fake.is_initialized = 1;
    return fake_leave(code);
}

CUresult cuDriverGetVersion(int *version)
{
    CUresult code = fake_enter("cuDriverGetVersion", RULE_ANY);
    if (!code)
        *version = fake.version;
    return fake_leave(code);
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult code = fake_enter("cuDeviceGetCount", RULE_INITIALIZED);
    if (!code)
        *count = fake.n_devices;
    return fake_leave(code);
}

static CUresult check_device(CUdevice device)
{
    return device >= 0 && device < fake.n_devices ? 0 : INVALID_DEVICE;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult code = fake_enter("cuDeviceGet", RULE_INITIALIZED);
    if (!code && !(code = check_device(ordinal)))
        *device = ordinal;
    return fake_leave(code);
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    CUresult code = fake_enter("cuDeviceGetName", RULE_INITIALIZED);
    if (!code && !(code = check_device(device)))
        snprintf(name, (size_t)length, "Fake GPU %d", device);
    return fake_leave(code);
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    CUresult code = fake_enter("cuDeviceGetAttribute", RULE_INITIALIZED);
    if (!code && !(code = check_device(device)))
        switch (attribute) {
        case 1: *value = 1024; break;                            /* MAX_THREADS_PER_BLOCK */
        case 10: *value = 32; break;                             /* WARP_SIZE */
        case 16: *value = fake.n_multiprocessors; break;
        case 41: case 115: *value = 1; break;                    /* UNIFIED_ADDRESSING, MEMORY_POOLS_SUPPORTED */
        case 75: *value = fake.capability / 10; break;
        case 76: *value = fake.capability % 10; break;
        default: code = INVALID_VALUE;
        }
    return fake_leave(code);
}

CUresult cuDeviceTotalMem_v2(size_t *n_bytes, CUdevice device)
{
    CUresult code = fake_enter("cuDeviceTotalMem", RULE_INITIALIZED);
    if (!code && !(code = check_device(device)))
        *n_bytes = fake.memory_bytes;
    return fake_leave(code);
}

/* ---- Contexts ---- */

static CUcontext add_context(int device, int is_primary)
{
    CUcontext context = calloc(1, sizeof *context);
    if (!context)
        abort();
    context->device = device;
    context->alive = 1;
    context->is_primary = is_primary;
    context->next = fake.contexts;
    fake.contexts = context;
    context->legacy = fake_stream_add(context, 1, 0);
    context->per_thread = fake_stream_add(context, 0, 1);
    return context;
}

static void destroy_context(CUcontext context)
{
    fake_finish_context(context);
    fake_destroy_streams(context);
    fake_unload_context(context);
    fake_free_context(context);
    context->alive = 0;
}

CUcontext fake_current(void) { return depth ? stack[depth - 1] : NULL; }

int fake_context_is(CUcontext context)
{
    for (CUcontext c = fake.contexts; c; c = c->next)
        if (c == context)
            return c->alive;
    return 0;
}

size_t fake_context_leaks(void)
{
    size_t n = 0;
    for (CUcontext c = fake.contexts; c; c = c->next)
        n += c->alive ? c->is_primary ? (size_t)c->retained : 1 : 0;
    return n;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult code = fake_enter("cuDevicePrimaryCtxRetain", RULE_INITIALIZED);
    if (!code && !(code = check_device(device))) {
        if (!fake.primary[device])
            fake.primary[device] = add_context(device, 1);
        fake.primary[device]->retained++;
        *context = fake.primary[device];
    }
    return fake_leave(code);
}

/* The last release destroys what the context holds; a later retain makes a new one. */
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult code = fake_enter("cuDevicePrimaryCtxRelease", RULE_INITIALIZED);
    if (!code && !(code = check_device(device))) {
        if (!fake.primary[device]) {
            code = fake_violate(INVALID_CONTEXT, "a primary context is released more often than retained");
        } else if (--fake.primary[device]->retained == 0) {
            destroy_context(fake.primary[device]);
            fake.primary[device] = NULL;
        }
    }
    return fake_leave(code);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    CUresult code = fake_enter("cuDevicePrimaryCtxGetState", RULE_INITIALIZED);
    if (!code && !(code = check_device(device))) {
        *flags = 0;
        *active = fake.primary[device] != NULL;
    }
    return fake_leave(code);
}

static CUresult push(CUcontext context)
{
    if (!fake_context_is(context))
        return fake_violate(INVALID_CONTEXT, "a context is made current that does not live");
    if (depth == STACK_DEPTH)
        return fake_violate(INVALID_VALUE, "%d contexts are pushed on a thread's stack", STACK_DEPTH);
    stack[depth++] = context;
    return 0;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    CUresult code = fake_enter("cuCtxCreate", RULE_INITIALIZED | RULE_UNSAFE);
    (void)flags;
    if (!code && !(code = check_device(device))) {
        *context = add_context(device, 0);
        code = push(*context);
    }
    return fake_leave(code);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    CUresult code = fake_enter("cuCtxDestroy", RULE_INITIALIZED | RULE_UNSAFE);
    if (!code && (!fake_context_is(context) || context->is_primary))
        code = fake_violate(INVALID_CONTEXT, "cuCtxDestroy of what is no created context");
    if (!code) {
        destroy_context(context);
        if (fake_current() == context)
            depth--;
    }
    return fake_leave(code);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult code = fake_enter("cuCtxGetCurrent", RULE_INITIALIZED);
    if (!code)
        *context = fake_current();
    return fake_leave(code);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult code = fake_enter("cuCtxSetCurrent", RULE_INITIALIZED);
    if (!code) {
        depth -= depth > 0;
        code = context ? push(context) : 0;
    }
    return fake_leave(code);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CUresult code = fake_enter("cuCtxPushCurrent", RULE_INITIALIZED);
    return fake_leave(code ? code : push(context));
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult code = fake_enter("cuCtxPopCurrent", RULE_INITIALIZED);
    if (!code && !depth)
        code = fake_violate(INVALID_CONTEXT, "cuCtxPopCurrent of an empty stack");
    if (!code) {
        depth--;
        if (context)
            *context = stack[depth];
    }
    return fake_leave(code);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUresult code = fake_enter("cuCtxGetDevice", RULE_INITIALIZED);
    if (!code && !fake_current())
        code = INVALID_CONTEXT;          /* no violation: it is a way to ask */
    if (!code)
        *device = fake_current()->device;
    return fake_leave(code);
}

CUresult cuCtxSynchronize(void)
{
    CUresult code = fake_enter("cuCtxSynchronize", RULE_CONTEXT | RULE_UNSAFE);
    if (!code) {
        fake_finish_context(fake_current());
        code = fake_current()->left_behind;
    }
    return fake_leave(code);
}
