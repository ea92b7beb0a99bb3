/* See floats.h. */
#include "floats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float_format formats[] = { { "F16", 16, 10 }, { "BF16", 16, 7 }, { "F32", 32, 23 }, { "F64", 64, 52 } };

const float_format *float_format_named(const char *name) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, name) == 0) {
            return &formats[i];
        }
    }
    return NULL;
}

uint64_t float_load(const float_format *format, const unsigned char *data, int64_t index) {
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (format->bits) {
    case 16: return memcpy(&two, data + 2 * index, 2), two;
    case 32: return memcpy(&four, data + 4 * index, 4), four;
    default: return memcpy(&eight, data + 8 * index, 8), eight;
    }
}

static uint64_t sign_bit(const float_format *format) {
    return (uint64_t)1 << (format->bits - 1);
}

static int32_t exponent_bias(const float_format *format) {
    return (1 << (format->bits - format->fraction_bits - 2)) - 1;
}

static uint64_t infinity(const float_format *format) {
    return (uint64_t)(2 * exponent_bias(format) + 1) << format->fraction_bits;
}

static uint64_t magnitude(const float_format *format, uint64_t bits) {
    return bits & (sign_bit(format) - 1);
}

bool float_is_nan(const float_format *format, uint64_t bits) {
    return magnitude(format, bits) > infinity(format);
}

double float_value(const float_format *format, uint64_t bits) {
    uint64_t size = magnitude(format, bits);
    double value;
    if (size >= infinity(format)) {
        value = size == infinity(format) ? INFINITY : NAN;
    } else {
        uint64_t one = (uint64_t)1 << format->fraction_bits;
        int32_t exponent = (int32_t)(size >> format->fraction_bits);
        uint64_t units = exponent ? one | (size & (one - 1)) : size;       /* of 2^(exponent - bias - fraction_bits) */
        value = ldexp((double)units, (exponent ? exponent : 1) - exponent_bias(format) - format->fraction_bits);
    }
    return bits & sign_bit(format) ? -value : value;
}

uint64_t float_ulp_distance(const float_format *format, uint64_t x, uint64_t y) {
    uint64_t x_size = magnitude(format, x), y_size = magnitude(format, y);
    if ((x ^ y) & sign_bit(format)) {
        return x_size + y_size;
    }
    return x_size > y_size ? x_size - y_size : y_size - x_size;
}

uint64_t float_round(const float_format *format, long double x) {
    uint64_t sign = signbit(x) ? sign_bit(format) : 0;
    int exponent;
    if (isnan(x)) {
        return infinity(format) | (uint64_t)1 << (format->fraction_bits - 1);
    }
    if (isinf(x) || x == 0) {
        return sign | (x == 0 ? 0 : infinity(format));
    }
    frexpl(x, &exponent);                          /* |x| = f * 2^exponent with f in [1/2, 1) */
    exponent -= 1;
    if (exponent < 1 - exponent_bias(format)) {
        exponent = 1 - exponent_bias(format);      /* subnormal: the unit no longer shrinks */
    }
    if (exponent > exponent_bias(format)) {
        return sign | infinity(format);
    }
    /* A carry out of the fraction goes on into the exponent, up to infinity. */
    uint64_t units = (uint64_t)rintl(ldexpl(fabsl(x), format->fraction_bits - exponent));
    return sign | (((uint64_t)(exponent + exponent_bias(format) - 1) << format->fraction_bits) + units);
}

/* Maps bits to unsigned numbers in the order of their values, the negative zero before the positive one. */
static uint64_t order(const float_format *format, uint64_t bits) {
    uint64_t sign = sign_bit(format);
    return bits & sign ? sign - 1 - magnitude(format, bits) : sign | bits;
}

static uint64_t from_order(const float_format *format, uint64_t place) {
    uint64_t sign = sign_bit(format);
    return place & sign ? place & (sign - 1) : sign | (sign - 1 - place);
}

/* The median by counting: the high 16 bits of every place first, then the low 16 bits of those that share the median's. */
bool float_summarize(const float_format *format, const unsigned char *data, int64_t n, float_summary *summary) {
    enum { BINS = 65536 };
    int64_t *count = calloc(BINS, sizeof *count);
    uint64_t low = UINT64_MAX, high = 0;
    int32_t shift = format->bits - 16;
    *summary = (float_summary){ .minimum = NAN, .median = NAN, .maximum = NAN };
    if (!count) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = float_load(format, data, i);
        if (float_is_nan(format, bits)) {
            summary->n_nan++;
            continue;
        }
        uint64_t place = order(format, bits);
        low = place < low ? place : low;
        high = place > high ? place : high;
        count[place >> shift]++;
    }
    if (summary->n_nan < n) {
        int64_t before = (n - summary->n_nan - 1) / 2;                   /* how many come before the median */
        uint64_t bin = 0;
        for (; count[bin] <= before; bin++) {
            before -= count[bin];
        }
        if (shift > 0) {
            uint64_t first = bin;
            memset(count, 0, BINS * sizeof *count);
            for (int64_t i = 0; i < n; i++) {
                uint64_t bits = float_load(format, data, i);
                if (!float_is_nan(format, bits) && order(format, bits) >> shift == first) {
                    count[order(format, bits) & (BINS - 1)]++;
                }
            }
            for (bin = 0; count[bin] <= before; bin++) {
                before -= count[bin];
            }
            bin |= first << shift;
        }
        summary->minimum = float_value(format, from_order(format, low));
        summary->median = float_value(format, from_order(format, bin));
        summary->maximum = float_value(format, from_order(format, high));
    }
    free(count);
    return true;
}
