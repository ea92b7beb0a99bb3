/* The gated-delta kernels for AVX2, FMA and F16C: -mavx2 -mfma -mf16c -mbmi2. */
#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__) || defined(__AVX512F__)
#error "delta_avx2.c needs -mavx2 -mfma -mf16c -mbmi2"
#endif
#define DELTA_TABLE kernels_delta_avx2
#include "delta_body.h"
