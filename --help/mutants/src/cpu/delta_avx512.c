/* The gated-delta kernels for AVX-512, on whole 512-bit registers. */
#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) || !defined(__AVX512VL__) || !defined(__FMA__)
#error "delta_avx512.c needs -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma"
#endif
#define DELTA_TABLE kernels_delta_avx512
#include "delta_body.h"
