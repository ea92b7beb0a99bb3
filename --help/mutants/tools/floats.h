/* Floating-point formats by their bits: distance in units in the last place (ulp), exact values, rounding, order statistics.
 * Nothing here depends on the host's floating-point mode but float_round, which expects rounding to nearest even. */
#ifndef ONELAUNCH_TOOLS_FLOATS_H
#define ONELAUNCH_TOOLS_FLOATS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct float_format {
    const char *name;                  /* as safetensors spells it */
    int32_t bits;
    int32_t fraction_bits;
} float_format;

/* F16, BF16, F32 and F64; NULL for any other dtype. */
const float_format *float_format_named(const char *safetensors_dtype);

/* Element `index` of packed data at any alignment, in the low bits. */
uint64_t float_load(const float_format *format, const unsigned char *data, int64_t index);
bool float_is_nan(const float_format *format, uint64_t bits);
/* The exact value; a NaN for a NaN. */
double float_value(const float_format *format, uint64_t bits);
/* Steps between neighbouring values from x to y; 0 between the zeros. Neither may be a NaN. */
uint64_t float_ulp_distance(const float_format *format, uint64_t x, uint64_t y);
/* The bits of the value nearest to x, ties to even; the canonical NaN for a NaN. */
uint64_t float_round(const float_format *format, long double x);

typedef struct float_summary {
    double minimum, median, maximum;   /* of what is not a NaN (the lower one of two medians); NaN where there is nothing */
    int64_t n_nan;
} float_summary;
/* False where memory (half a megabyte) ran out. The format has at most 32 bits. */
bool float_summarize(const float_format *format, const unsigned char *data, int64_t n, float_summary *summary);

#endif
