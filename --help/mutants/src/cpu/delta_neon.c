/* The gated-delta kernels for AArch64. */
#if !defined(__aarch64__)
#error "delta_neon.c is for AArch64"
#endif
#define DELTA_NEON
#define DELTA_TABLE kernels_delta_neon
#include "delta_body.h"
