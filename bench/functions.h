/* Other libraries' vector functions of float32, for the table of primitives: SLEEF's 1-ulp versions, glibc's libmvec, and glibc's
 * scalar functions, each as a loop over contiguous elements at one SIMD level. */
#ifndef BENCH_FUNCTIONS_H
#define BENCH_FUNCTIONS_H

#include <stddef.h>

typedef void (*function_loop)(float *out, const float *x, const float *y, size_t n);

typedef struct function_peer {
    const char *primitive;
    const char *peer;                    /* "SLEEF", "libmvec", "glibc" */
    function_loop loop;                  /* n is a multiple of 16 */
} function_peer;

/* Ended by an entry without a primitive. */
extern const function_peer functions_baseline[];
#if defined(__x86_64__)
extern const function_peer functions_avx2[], functions_avx512[];
#endif

#endif
