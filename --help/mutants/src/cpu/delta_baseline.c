/* The gated-delta kernels that every machine runs: SSE2 on x86-64, plain C elsewhere. */
#if defined(__AVX__) || defined(__FMA__)
#error "delta_baseline.c is built without ISA flags"
#endif
#define DELTA_TABLE kernels_delta_baseline
#include "delta_body.h"
