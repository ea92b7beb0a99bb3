/* What a primitive's result should be, found without the library's numerics: by libm in double with a bound on its error
 * (approximate.h), and by MPFR wherever that bound leaves a doubt about the rounding (Ziv's strategy, as a filter). */
#ifndef PROVE_REFERENCE_H
#define PROVE_REFERENCE_H

#include <mpfr.h>
#include <stdint.h>

/* A binary format: precision with the hidden bit, least normal exponent, bits of infinity and of the canonical NaN. */
typedef struct format {
    const char *name;
    int precision;
    int least_exponent;
    int size;                          /* bytes */
    uint32_t infinity;
    uint32_t nan;
} format;

extern const format format_float32, format_float16, format_bfloat16;

typedef struct reference {
    const char *name;
    int arity;
    int to_bool;
    int precision;                     /* of `exact`, in bits */
    void (*exact)(mpfr_t result, double x, double y);                 /* NULL where the approximation is exact */
    const format *to;                  /* a conversion's result, from each of the other formats; NULL: the operands' format */
} reference;

const reference *reference_find(const char *name);
extern const reference reference_list[];
extern const int reference_count;

/* The value of a format's bits. */
double format_value(const format *f, uint32_t bits);
/* value rounded once to the format, ties to even, as bits; NaN is canonical. */
uint32_t format_round(const format *f, double value);
/* The same for the result of r->exact, whose precision is ample. Slow. */
uint32_t reference_exact_bits(const reference *r, const format *f, double x, double y);
/* |exact - value|, rounded up, and how many of `error` that is. */
double reference_distance(const reference *r, double x, double y, double value);
/* Frees what MPFR keeps per thread. */
void reference_thread_end(void);

#endif
