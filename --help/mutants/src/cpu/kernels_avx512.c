/* The kernels for AVX-512 F, BW, CD, DQ and VL, on whole 512-bit registers (-mprefer-vector-width=512). */
#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512CD__) || !defined(__AVX512DQ__) || !defined(__AVX512VL__) \
    || !defined(__FMA__)
#error "kernels_avx512.c needs -mavx512f -mavx512bw -mavx512cd -mavx512dq -mavx512vl -mfma"
#endif
#define KERNELS_TABLE kernels_avx512
#include "kernels_body.h"
