/* The kernels for AVX2, FMA and F16C: -mavx2 -mfma -mf16c -mbmi2. */
#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__) || defined(__AVX512F__)
#error "kernels_avx2.c needs -mavx2 -mfma -mf16c -mbmi2"
#endif
#define KERNELS_TABLE kernels_avx2
#include "kernels_body.h"
