/* What a primitive's result is about, in double, with a bound on the error: the first, fast half of the reference. By libm,
 * and where the C library has vector versions of its functions (libmvec, on x86-64) by those: approximate_body.h is compiled
 * once for each width. None of it is the library's own arithmetic. */
#ifndef PROVE_APPROXIMATE_H
#define PROVE_APPROXIMATE_H

#include <stdint.h>

/* n results value[i] of x[i] (and y[i]), each within error[i] of the exact one. An error of 0: exact. */
typedef void (*approximate_fn)(const double *x, const double *y, double *value, double *error, int n);

/* What lies around a result: its value, and the middles between it and its neighbours, as magnitudes. */
typedef struct neighbourhood {
    double value, low, high;
} neighbourhood;

/* open[i] = whether value[i] and its error leave it open that `got` is the correctly rounded result. A zero's low is 0; an
 * infinity's high is infinity. Results are float32 bits, or indices of a table of all 65,536 results of a 16-bit format. */
typedef void (*filter_fn)(const double *value, const double *error, const void *got, const neighbourhood *table, int32_t *open, int n);

typedef struct filters {
    filter_fn of_float32, of_16_bits;
} filters;

typedef struct approximation {
    const char *name;
    approximate_fn function;
} approximation;

/* Ended by an entry without a name. */
extern const approximation approximations_baseline[];
extern const filters filters_baseline;
#if defined(__x86_64__)
extern const approximation approximations_avx2[], approximations_avx512[];
extern const filters filters_avx2, filters_avx512;
#endif

#endif
