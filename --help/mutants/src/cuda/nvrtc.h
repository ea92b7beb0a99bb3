/* NVRTC, NVIDIA's run-time compiler, opened at the first compilation, since its version is part of the key of kernels in the cache. */
#ifndef OL_CUDA_NVRTC_H
#define OL_CUDA_NVRTC_H

#include "cuda/text.h"

/* "13.0", of the library that would be used; the error names what was looked for. */
typedef struct nvrtc_version {
    int major, minor;
} nvrtc_version;
ol_status nvrtc_open(const char *operation, nvrtc_version *version, ol_error *error);

/* Options of a compilation, for a compute capability such as 90 (or the highest that this NVRTC knows below it); in the order
 * given, zero-terminated. */
#define NVRTC_OPTIONS 8
typedef struct nvrtc_options {
    char architecture[48];
    const char *list[NVRTC_OPTIONS + 1];
} nvrtc_options;
ol_status nvrtc_options_for(int capability, nvrtc_options *options, const char *operation, ol_error *error);

/* Compiles a kernel's text to machine code: appended to `image`. On failure the error has the start of the compiler's log. */
ol_status nvrtc_compile(const text *source, const char *name, const nvrtc_options *options, text *image, const char *operation, ol_error *error);

#endif
