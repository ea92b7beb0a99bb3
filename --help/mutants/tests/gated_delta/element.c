/* See element.h. */
#include "element.h"

#include <math.h>
#include <string.h>

void *element_at(const ol_tensor *t, const int64_t *index)
{
    int64_t offset = 0;
    for (int32_t d = 0; d < t->rank; d++)
        offset += index[d] * t->strides[d];
    return (char *)t->data + offset * (int64_t)ol_dtype_size(t->dtype);
}

static double from_half(uint16_t bits)
{
    int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                       : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                      : ldexp(fraction, -24);
    return bits >> 15 ? -magnitude : magnitude;
}

static uint16_t to_half(float value)
{
    if (isnan(value))
        return 0x7e00;
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs((double)value);
    if (magnitude >= 65520)
        return sign | 0x7c00;
    int exponent = magnitude >= 0x1p-14 ? ilogb(magnitude) : -14;
    int units = (int)nearbyint(ldexp(magnitude, 10 - exponent));          /* 1024 to 2048 where normal */
    return sign | (uint16_t)(units + ((exponent + 14) << 10));            /* 2048 carries into the exponent; a subnormal has none */
}

static uint16_t to_brain(float value)
{
    uint32_t bits;
    if (isnan(value))
        return 0x7fc0;
    memcpy(&bits, &value, sizeof bits);
    uint32_t rest = bits & 0xffff, upper = bits >> 16;
    return (uint16_t)(upper + (rest > 0x8000 || (rest == 0x8000 && (upper & 1))));
}

double element_read(ol_dtype dtype, const void *p)
{
    uint16_t half;
    uint32_t word;
    float value;
    int32_t small;
    int64_t large;
    switch (dtype) {
    case OL_BOOL: return *(const uint8_t *)p != 0;
    case OL_FLOAT16: memcpy(&half, p, 2); return from_half(half);
    case OL_BFLOAT16: memcpy(&half, p, 2); word = (uint32_t)half << 16; memcpy(&value, &word, 4); return (double)value;
    case OL_FLOAT32: memcpy(&value, p, 4); return (double)value;
    case OL_INT32: memcpy(&small, p, 4); return small;
    case OL_INT64: memcpy(&large, p, 8); return (double)large;
    default: return NAN;
    }
}

void element_write(ol_dtype dtype, void *p, float value)
{
    static const uint32_t nan_bits = 0x7fc00000;
    uint16_t half = dtype == OL_FLOAT16 ? to_half(value) : to_brain(value);
    if (dtype == OL_FLOAT32)
        memcpy(p, isnan(value) ? (const void *)&nan_bits : &value, 4);
    else
        memcpy(p, &half, 2);
}

void *element_of_head(const ol_tensor *t, const head_axes *heads, int64_t token, int64_t head, int64_t last)
{
    int64_t index[OL_MAX_RANK] = { 0 }, r = heads->value_heads / heads->key_heads;
    int32_t n = 0;
    if (t->rank == 0)
        return t->data;
    if (token >= 0)
        index[n++] = token;
    if (t->rank == n + 1 + (last >= 0))
        index[n++] = head;
    else {
        index[n++] = heads->tiled ? head % heads->key_heads : head / r;
        index[n++] = heads->tiled ? head / heads->key_heads : head % r;
    }
    if (last >= 0)
        index[n] = last;
    return element_at(t, index);
}
