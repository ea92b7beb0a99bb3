/* Arrays as text: array([[1, 2], [3, 4]], dtype=int32). Dimensions longer than twice EDGE are shortened to that many at each end once
 * the array has more than MANY elements. */
#include "body.h"
#include "report.h"
#include "text.h"

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EDGE 3
#define MANY 1000

typedef struct printer {
    FILE *to;
    const mlxc_body *b;
    const unsigned char *data;
} printer;

static float half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff, bits;
    float f = (float)fraction * 0x1p-24f;      /* a subnormal, or zero */
    if (exponent != 0)
        bits = (exponent == 31 ? 0xffu : exponent + 112) << 23 | fraction << 13;
    else
        memcpy(&bits, &f, sizeof bits);
    bits |= sign;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float float_of(ol_dtype dtype, const unsigned char *at)
{
    uint16_t h = 0;
    uint32_t bits;
    float f;
    memcpy(dtype == OL_FLOAT32 ? (void *)&f : (void *)&h, at, ol_dtype_size(dtype));
    if (dtype == OL_BFLOAT16) {
        bits = (uint32_t)h << 16;
        memcpy(&f, &bits, sizeof f);
    } else if (dtype == OL_FLOAT16) {
        f = half_to_float(h);
    }
    return f;
}

#define PRINT(dtype, type, format) case dtype: { type v; memcpy(&v, at, sizeof v); fprintf(to, "%" format, v); break; }
static void print_element(FILE *to, ol_dtype dtype, const unsigned char *at)
{
    switch (dtype) {
    case OL_BOOL: fputs(*at ? "True" : "False", to); break;
    PRINT(OL_UINT8, uint8_t, PRIu8)
    PRINT(OL_UINT16, uint16_t, PRIu16)
    PRINT(OL_UINT32, uint32_t, PRIu32)
    PRINT(OL_UINT64, uint64_t, PRIu64)
    PRINT(OL_INT8, int8_t, PRId8)
    PRINT(OL_INT16, int16_t, PRId16)
    PRINT(OL_INT32, int32_t, PRId32)
    PRINT(OL_INT64, int64_t, PRId64)
    default: {
        float f = float_of(dtype, at);
        if (f != f)
            fputs("nan", to);
        else
            fprintf(to, "%g", (double)f);
    }
    }
}
#undef PRINT

/* The part of the array that dimensions before d have chosen, which starts at element `first`. */
static void print_dimension(const printer *p, int32_t d, size_t first)
{
    if (d == p->b->view.rank) {
        print_element(p->to, p->b->view.dtype, p->data + first * ol_dtype_size(p->b->view.dtype));
        return;
    }
    int n = p->b->shape[d], shortened = p->b->n_elements > MANY && n > 2 * EDGE;
    fputs("[", p->to);
    for (int i = 0; i < n; i++) {
        if (i > 0)
            fputs(", ", p->to);
        if (shortened && i == EDGE) {
            fputs("..., ", p->to);
            i = n - EDGE;
        }
        print_dimension(p, d + 1, first + (size_t)i * p->b->strides[d]);
    }
    fputs("]", p->to);
}

int mlx_array_tostring(mlx_string *str, const mlx_array arr)
{
    char *text = NULL;
    size_t n_bytes;
    if (!str)
        return mlxc_report_no_place(__func__);
    mlxc_body *b = mlxc_array_body(__func__, "the array", arr);
    if (!b || mlxc_body_wait(__func__, b))
        return 1;
    printer p = { NULL, b, mlxc_body_data(__func__, b) };
    if (b->n_elements > 0 && !p.data)
        return 1;
    locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);      /* numbers have a point in any locale */
    p.to = c ? open_memstream(&text, &n_bytes) : NULL;
    if (!p.to) {
        if (c)
            freelocale(c);
        return mlxc_report_memory(__func__);
    }
    locale_t callers = uselocale(c);
    fputs("array(", p.to);
    if (b->n_elements > 0)
        print_dimension(&p, 0, 0);
    else
        fputs("[]", p.to);
    fprintf(p.to, ", dtype=%s)", ol_dtype_name(b->view.dtype));
    uselocale(callers);
    freelocale(c);
    int failed = ferror(p.to);
    if (fclose(p.to) != 0 || failed) {
        free(text);
        text = NULL;
    }
    return mlxc_string_assign(__func__, str, text);
}
