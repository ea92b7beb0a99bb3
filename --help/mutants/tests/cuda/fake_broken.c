/* Drivers that cannot be used: built with LACKS_LAUNCH, one without cuLaunchKernel (too old); else one that finds no device. The
 * symbols are those of driver.h, so that the backend finds all others. */
#include "cuda/driver.h"

/* A call gets no further than cuInit, so the others need no parameters. */
#define cuInit cuInit_below
#define cuDriverGetVersion cuDriverGetVersion_below
#define cuGetErrorName cuGetErrorName_below
#define cuGetErrorString cuGetErrorString_below
#ifdef LACKS_LAUNCH
#define cuLaunchKernel cuLaunchKernel_below
#endif
#define F(name, symbol, arguments) DEFINE(symbol)
#define DEFINE(symbol) int symbol(void); int symbol(void) { return CUDA_ERROR_NO_DEVICE; }
DRIVER_FUNCTIONS(F)
#undef cuInit
#undef cuDriverGetVersion
#undef cuGetErrorName
#undef cuGetErrorString

CUresult cuInit(unsigned flags) { return flags == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_INVALID_VALUE; }

CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult code, const char **name)
{
    *name = "CUDA_ERROR_NO_DEVICE";
    return code == CUDA_ERROR_NO_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult code, const char **text)
{
    *text = "no CUDA-capable device is detected";
    return code == CUDA_ERROR_NO_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
