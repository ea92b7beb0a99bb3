/* The kernels for AArch64, where Advanced SIMD and fused multiply-add are always there. */
#if !defined(__aarch64__)
#error "kernels_neon.c is for AArch64"
#endif
#define KERNELS_TABLE kernels_neon
#include "kernels_body.h"
