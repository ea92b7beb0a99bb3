/* The kernels that every machine runs: SSE2 on x86-64, plain C elsewhere. */
#if defined(__AVX__) || defined(__FMA__)
#error "kernels_baseline.c is built without ISA flags"
#endif
#define KERNELS_TABLE kernels_baseline
#include "kernels_body.h"
