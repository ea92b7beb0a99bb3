/* The CUDA driver, opened at the first CUDA call (libcuda.so.1) and never before: its types, declared here so that no header of
 * CUDA's is needed, and its functions.
 *
 * Names, values and signatures: NVIDIA's CUDA Driver API reference. Functions of a versioned symbol are listed with it. */
#ifndef OL_CUDA_DRIVER_H
#define OL_CUDA_DRIVER_H

#include "onelaunch.h"

#include <stddef.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

enum {
    CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NOT_INITIALIZED = 3, CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_NO_DEVICE = 100, CUDA_ERROR_NOT_READY = 600, CUDA_ERROR_ILLEGAL_ADDRESS = 700, CUDA_ERROR_MISALIGNED_ADDRESS = 716, CUDA_ERROR_LAUNCH_FAILED = 719
};

enum {
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_MEMHOSTALLOC_PORTABLE = 1, CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2, CU_STREAM_CAPTURE_STATUS_NONE = 0
};

enum { CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4 };

typedef struct CUlaunchAttribute {
    int id;
    char pad[4];
    union {
        char all[64];
        struct {
            unsigned x, y, z;
        } cluster;
    } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned n_attributes;
} CUlaunchConfig;

#define DRIVER_FUNCTIONS(F)                                                                                                   \
    F(cuInit, cuInit, (unsigned flags))                                                                                       \
    F(cuDriverGetVersion, cuDriverGetVersion, (int *version))                                                                 \
    F(cuGetErrorName, cuGetErrorName, (CUresult code, const char **name))                                                     \
    F(cuGetErrorString, cuGetErrorString, (CUresult code, const char **text))                                                 \
    F(cuDeviceGetCount, cuDeviceGetCount, (int *count))                                                                       \
    F(cuDeviceGet, cuDeviceGet, (CUdevice *device, int ordinal))                                                              \
    F(cuDeviceGetName, cuDeviceGetName, (char *name, int length, CUdevice device))                                            \
    F(cuDeviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))                               \
    F(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t *n_bytes, CUdevice device))                                              \
    F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device))                              \
    F(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                             \
    F(cuCtxGetCurrent, cuCtxGetCurrent, (CUcontext *context))                                                                 \
    F(cuCtxPushCurrent, cuCtxPushCurrent_v2, (CUcontext context))                                                             \
    F(cuCtxPopCurrent, cuCtxPopCurrent_v2, (CUcontext *context))                                                              \
    F(cuCtxGetDevice, cuCtxGetDevice, (CUdevice *device))                                                                     \
    F(cuModuleLoadData, cuModuleLoadData, (CUmodule *module, const void *image))                                              \
    F(cuModuleUnload, cuModuleUnload, (CUmodule module))                                                                      \
    F(cuModuleGetFunction, cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name))                    \
    F(cuFuncGetAttribute, cuFuncGetAttribute, (int *value, int attribute, CUfunction function))                               \
    F(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor,                               \
      (int *n_blocks, CUfunction function, int n_threads, size_t shared_bytes))                                               \
    F(cuLaunchKernel, cuLaunchKernel,                                                                                         \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, \
       unsigned shared_bytes, CUstream stream, void **parameters, void **extra))                                              \
    F(cuStreamGetCtx, cuStreamGetCtx, (CUstream stream, CUcontext *context))                                                  \
    F(cuStreamCreate, cuStreamCreate, (CUstream *stream, unsigned flags))                                                     \
    F(cuStreamDestroy, cuStreamDestroy_v2, (CUstream stream))                                                                 \
    F(cuStreamSynchronize, cuStreamSynchronize, (CUstream stream))                                                            \
    F(cuStreamIsCapturing, cuStreamIsCapturing, (CUstream stream, int *status))                                               \
    F(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (int *mode))                                      \
    F(cuEventCreate, cuEventCreate, (CUevent *event, unsigned flags))                                                         \
    F(cuEventDestroy, cuEventDestroy_v2, (CUevent event))                                                                     \
    F(cuEventRecord, cuEventRecord, (CUevent event, CUstream stream))                                                         \
    F(cuEventQuery, cuEventQuery, (CUevent event))                                                                            \
    F(cuMemAlloc, cuMemAlloc_v2, (CUdeviceptr *pointer, size_t n_bytes))                                                      \
    F(cuMemFree, cuMemFree_v2, (CUdeviceptr pointer))                                                                         \
    F(cuMemAllocAsync, cuMemAllocAsync, (CUdeviceptr *pointer, size_t n_bytes, CUstream stream))                              \
    F(cuMemFreeAsync, cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream))                                                 \
    F(cuMemsetD32Async, cuMemsetD32Async, (CUdeviceptr pointer, unsigned value, size_t n, CUstream stream))                   \
    F(cuMemHostAlloc, cuMemHostAlloc, (void **pointer, size_t n_bytes, unsigned flags))                                       \
    F(cuMemFreeHost, cuMemFreeHost, (void *pointer))                                                                          \
    F(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, (CUdeviceptr *pointer, void *host, unsigned flags))            \
    F(cuMemcpyAsync, cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t n_bytes, CUstream stream))

/* NULL where the driver is older than CUDA 11.8. */
#define DRIVER_LATER_FUNCTIONS(F)                                                                                             \
    F(cuLaunchKernelEx, cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra))

typedef struct driver {
    int version;                         /* 12040 for CUDA 12.4 */
    int has_no_device;                   /* it said so when it was initialised, and serves no further call */
#define F(name, symbol, arguments) CUresult (*name) arguments;
    DRIVER_FUNCTIONS(F)
    DRIVER_LATER_FUNCTIONS(F)
#undef F
} driver;

/* Opens and initialises the driver, once; after a failure it is tried again. The error names the library, the symbol or the code. */
ol_status driver_open(const char *operation, const driver **d, ol_error *error);

/* Fails with what the driver said: "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1): invalid argument". Codes that an earlier launch
 * left behind are said to be such. CUDA_ERROR_OUT_OF_MEMORY is OL_ERROR_MEMORY, the others OL_ERROR_DEVICE. */
__attribute__((cold))
ol_status driver_fail(const driver *d, CUresult code, const char *call, const char *operation, ol_error *error);

#endif
