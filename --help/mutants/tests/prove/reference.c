#include "reference.h"

#include <math.h>
#include <string.h>

const format format_float32 = { "float32", 24, -126, 4, 0x7f800000u, 0x7fc00000u };
const format format_float16 = { "float16", 11, -14, 2, 0x7c00u, 0x7e00u };
const format format_bfloat16 = { "bfloat16", 8, -126, 2, 0x7f80u, 0x7fc0u };

/* Enough to tell any result from halfway. WIDE: for logaddexp of two 24-bit numbers at its worst cancellation, exact sums of
 * bfloat16 products, and arctan2 next to a subnormal quotient that is halfway. */
enum { NARROW = 250, WIDE = 700 };

static uint64_t bits_of(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

double format_value(const format *f, uint32_t bits) {
    uint32_t sign_bit = 1u << (f->size * 8 - 1);
    uint32_t magnitude = bits & (sign_bit - 1);
    double sign = bits & sign_bit ? -1.0 : 1.0;
    uint32_t fraction = magnitude & ((1u << (f->precision - 1)) - 1);
    int exponent = (int)(magnitude >> (f->precision - 1));
    if (magnitude > f->infinity) return NAN;
    if (magnitude == f->infinity) return sign * INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, f->least_exponent - f->precision + 1);
    return sign * ldexp(fraction + (1u << (f->precision - 1)), f->least_exponent - f->precision + exponent);
}

/* In integers: the significand is cut at the format's last bit (a subnormal's is higher up); with the exponent less one
 * added above it, the hidden bit carries the exponent to its place. */
uint32_t format_round(const format *f, double value) {
    uint64_t bits = bits_of(value), magnitude = bits & 0x7fffffffffffffffull;
    uint32_t sign = (uint32_t)(bits >> 63) << (f->size * 8 - 1);
    if (magnitude > 0x7ff0000000000000ull) return f->nan;
    int exponent = (int)(magnitude >> 52) - 1023;
    uint64_t significand = (magnitude & 0xfffffffffffffull) | 0x10000000000000ull;
    if (exponent < -1000) return sign;
    int below = exponent < f->least_exponent ? f->least_exponent - exponent : 0;
    int drop = 53 - f->precision + below;
    if (drop > 54) return sign;
    uint64_t kept = significand >> drop, rest = significand & ((1ull << drop) - 1), half = 1ull << (drop - 1);
    kept += (rest > half) | ((rest == half) & (kept & 1));
    uint64_t rounded = kept + ((uint64_t)(exponent + below - f->least_exponent) << (f->precision - 1));
    return sign | (uint32_t)(rounded < f->infinity ? rounded : f->infinity);
}

/* ---- MPFR ------------------------------------------------------------------------------------------------------------ */

static _Thread_local mpfr_t scratch, other, value;
static _Thread_local int precision;              /* of these; 0: not made */

static void start(int wanted) {
    if (precision == wanted) return;
    reference_thread_end();
    mpfr_inits2(wanted, scratch, other, value, (mpfr_ptr)0);
    precision = wanted;
}

void reference_thread_end(void) {
    if (precision) mpfr_clears(scratch, other, value, (mpfr_ptr)0);
    precision = 0;
    mpfr_free_cache();
}

#define UNARY_BY_MPFR(name, function)                                                                                         \
    static void exact_##name(mpfr_t r, double x, double y) {                                                                  \
        (void)y;                                                                                                              \
        mpfr_set_d(r, x, MPFR_RNDN);                                                                                          \
        function(r, r, MPFR_RNDN);                                                                                            \
    }

#define BINARY_BY_MPFR(name, function)                                                                                        \
    static void exact_##name(mpfr_t r, double x, double y) {                                                                  \
        mpfr_set_d(r, x, MPFR_RNDN);                                                                                          \
        mpfr_set_d(other, y, MPFR_RNDN);                                                                                      \
        function(r, r, other, MPFR_RNDN);                                                                                     \
    }
UNARY_BY_MPFR(square, mpfr_sqr)
UNARY_BY_MPFR(sqrt, mpfr_sqrt)
UNARY_BY_MPFR(rsqrt, mpfr_rec_sqrt)
UNARY_BY_MPFR(exp, mpfr_exp)
UNARY_BY_MPFR(exp2, mpfr_exp2)
UNARY_BY_MPFR(expm1, mpfr_expm1)
UNARY_BY_MPFR(log, mpfr_log)
UNARY_BY_MPFR(log2, mpfr_log2)
UNARY_BY_MPFR(log10, mpfr_log10)
UNARY_BY_MPFR(log1p, mpfr_log1p)
UNARY_BY_MPFR(sin, mpfr_sin)
UNARY_BY_MPFR(cos, mpfr_cos)
UNARY_BY_MPFR(tan, mpfr_tan)
UNARY_BY_MPFR(sinh, mpfr_sinh)
UNARY_BY_MPFR(cosh, mpfr_cosh)
UNARY_BY_MPFR(tanh, mpfr_tanh)
UNARY_BY_MPFR(erf, mpfr_erf)
UNARY_BY_MPFR(arcsin, mpfr_asin)
UNARY_BY_MPFR(arccos, mpfr_acos)
UNARY_BY_MPFR(arctan, mpfr_atan)
UNARY_BY_MPFR(arcsinh, mpfr_asinh)
UNARY_BY_MPFR(arccosh, mpfr_acosh)
UNARY_BY_MPFR(arctanh, mpfr_atanh)
BINARY_BY_MPFR(power, mpfr_pow)
BINARY_BY_MPFR(arctan2, mpfr_atan2)
BINARY_BY_MPFR(hypot, mpfr_hypot)

static void exact_reciprocal(mpfr_t r, double x, double y) {
    (void)y;
    mpfr_set_d(r, x, MPFR_RNDN);
    mpfr_ui_div(r, 1, r, MPFR_RNDN);
}

static void exact_sigmoid(mpfr_t r, double x, double y) {
    exact_exp(r, -x, y);
    mpfr_add_ui(r, r, 1, MPFR_RNDN);
    mpfr_ui_div(r, 1, r, MPFR_RNDN);
}

static void exact_silu(mpfr_t r, double x, double y) {
    exact_sigmoid(r, x, y);
    mpfr_mul_d(r, r, x, MPFR_RNDN);
}

/* Newton's method on erfc(v) = 1 - |x|, from a few correct bits to all: v + (erfc(v) - (1 - |x|)) exp(v^2) sqrt(pi) / 2. The
 * difference loses no more bits than x itself lacks, since 1 - |x| is exact. */
static void exact_erfinv(mpfr_t r, double x, double y) {
    (void)y;
    double magnitude = fabs(x), w = -log1p(-magnitude * magnitude);
    double a = 2 / (M_PI * 0.147) + -w / 2;                              /* S. Winitzki's approximation, to start with */
    mpfr_set_d(r, magnitude < 1e-3 ? magnitude * 0.886 : sqrt(sqrt(a * a + w / 0.147) - a), MPFR_RNDN);
    for (int step = 0; step < 12; step++) {
        mpfr_set_d(other, magnitude, MPFR_RNDN);
        if (magnitude < 0.5) {
            mpfr_erf(scratch, r, MPFR_RNDN);
            mpfr_sub(other, other, scratch, MPFR_RNDN);
        } else {
            mpfr_ui_sub(other, 1, other, MPFR_RNDN);
            mpfr_erfc(scratch, r, MPFR_RNDN);
            mpfr_sub(other, scratch, other, MPFR_RNDN);
        }
        mpfr_sqr(scratch, r, MPFR_RNDN);
        mpfr_exp(scratch, scratch, MPFR_RNDN);
        mpfr_mul(other, other, scratch, MPFR_RNDN);
        mpfr_const_pi(scratch, MPFR_RNDN);
        mpfr_sqrt(scratch, scratch, MPFR_RNDN);
        mpfr_div_2ui(scratch, scratch, 1, MPFR_RNDN);
        mpfr_mul(other, other, scratch, MPFR_RNDN);
        mpfr_add(r, r, other, MPFR_RNDN);
        if (mpfr_zero_p(other) || mpfr_get_exp(other) < mpfr_get_exp(r) - 110) break;    /* the next one is below 2^-200 */
    }
    if (x < 0) mpfr_neg(r, r, MPFR_RNDN);
}

static void exact_logaddexp(mpfr_t r, double x, double y) {
    double larger = x > y ? x : y;
    mpfr_set_d(r, x > y ? y : x, MPFR_RNDN);
    mpfr_sub_d(r, r, larger, MPFR_RNDN);
    mpfr_exp(r, r, MPFR_RNDN);
    mpfr_log1p(r, r, MPFR_RNDN);
    mpfr_add_d(r, r, larger, MPFR_RNDN);
}

static void exact_softplus(mpfr_t r, double x, double y) { (void)y, exact_logaddexp(r, x, 0.0); }
static void exact_add(mpfr_t r, double x, double y) { mpfr_set_d(r, x, MPFR_RNDN), mpfr_add_d(r, r, y, MPFR_RNDN); }
static void exact_subtract(mpfr_t r, double x, double y) { mpfr_set_d(r, x, MPFR_RNDN), mpfr_sub_d(r, r, y, MPFR_RNDN); }
static void exact_multiply(mpfr_t r, double x, double y) { mpfr_set_d(r, x, MPFR_RNDN), mpfr_mul_d(r, r, y, MPFR_RNDN); }
static void exact_divide(mpfr_t r, double x, double y) { mpfr_set_d(r, x, MPFR_RNDN), mpfr_div_d(r, r, y, MPFR_RNDN); }

static void exact_remainder(mpfr_t r, double x, double y) {
    mpfr_set_d(r, x, MPFR_RNDN);
    mpfr_set_d(other, y, MPFR_RNDN);
    mpfr_fmod(r, r, other, MPFR_RNDN);
    if (!mpfr_zero_p(r) && (mpfr_sgn(r) < 0) != (y < 0)) mpfr_add(r, r, other, MPFR_RNDN);
}

static void exact_floor_divide(mpfr_t r, double x, double y) {
    exact_remainder(r, x, y);
    mpfr_d_sub(r, x, r, MPFR_RNDN);
    mpfr_div_d(r, r, y, MPFR_RNDN);
}

/* Finite and not zero: scaled so that the format's last bit is a unit, rounded to an integer, scaled back. */
uint32_t reference_exact_bits(const reference *r, const format *f, double x, double y) {
    start(r->precision);
    r->exact(value, x, y);
    if (!mpfr_regular_p(value)) return format_round(f, mpfr_get_d(value, MPFR_RNDN));
    long exponent = mpfr_get_exp(value) - 1;
    if (exponent > 1000) return format_round(f, mpfr_sgn(value) < 0 ? -INFINITY : INFINITY);
    if (exponent < f->least_exponent) exponent = f->least_exponent;
    long unit = exponent - f->precision + 1;
    mpfr_mul_2si(scratch, value, -unit, MPFR_RNDN);
    mpfr_roundeven(scratch, scratch);
    mpfr_mul_2si(scratch, scratch, unit, MPFR_RNDN);
    return format_round(f, mpfr_get_d(scratch, MPFR_RNDN));
}

double reference_distance(const reference *r, double x, double y, double v) {
    start(r->precision);
    r->exact(value, x, y);
    mpfr_sub_d(value, value, v, MPFR_RNDA);
    return fabs(mpfr_get_d(value, MPFR_RNDA));
}

const reference reference_list[] = {
    { "abs", 1, 0, 0, 0, 0 },
    { "negative", 1, 0, 0, 0, 0 },
    { "sign", 1, 0, 0, 0, 0 },
    { "square", 1, 0, NARROW, exact_square, 0 },
    { "floor", 1, 0, 0, 0, 0 },
    { "ceil", 1, 0, 0, 0, 0 },
    { "round", 1, 0, 0, 0, 0 },
    { "sqrt", 1, 0, NARROW, exact_sqrt, 0 },
    { "rsqrt", 1, 0, NARROW, exact_rsqrt, 0 },
    { "reciprocal", 1, 0, NARROW, exact_reciprocal, 0 },
    { "exp", 1, 0, NARROW, exact_exp, 0 },
    { "exp2", 1, 0, NARROW, exact_exp2, 0 },
    { "expm1", 1, 0, NARROW, exact_expm1, 0 },
    { "log", 1, 0, NARROW, exact_log, 0 },
    { "log2", 1, 0, NARROW, exact_log2, 0 },
    { "log10", 1, 0, NARROW, exact_log10, 0 },
    { "log1p", 1, 0, NARROW, exact_log1p, 0 },
    { "sigmoid", 1, 0, NARROW, exact_sigmoid, 0 },
    { "softplus", 1, 0, WIDE, exact_softplus, 0 },
    { "silu", 1, 0, NARROW, exact_silu, 0 },
    { "tanh", 1, 0, NARROW, exact_tanh, 0 },
    { "sin", 1, 0, NARROW, exact_sin, 0 },
    { "cos", 1, 0, NARROW, exact_cos, 0 },
    { "tan", 1, 0, NARROW, exact_tan, 0 },
    { "sinh", 1, 0, NARROW, exact_sinh, 0 },
    { "cosh", 1, 0, NARROW, exact_cosh, 0 },
    { "arcsin", 1, 0, NARROW, exact_arcsin, 0 },
    { "arccos", 1, 0, NARROW, exact_arccos, 0 },
    { "arctan", 1, 0, NARROW, exact_arctan, 0 },
    { "arcsinh", 1, 0, NARROW, exact_arcsinh, 0 },
    { "arccosh", 1, 0, NARROW, exact_arccosh, 0 },
    { "arctanh", 1, 0, NARROW, exact_arctanh, 0 },
    { "erf", 1, 0, NARROW, exact_erf, 0 },
    { "erfinv", 1, 0, NARROW, exact_erfinv, 0 },
    { "isnan", 1, 1, 0, 0, 0 },
    { "isinf", 1, 1, 0, 0, 0 },
    { "isfinite", 1, 1, 0, 0, 0 },
    { "add", 2, 0, WIDE, exact_add, 0 },
    { "subtract", 2, 0, WIDE, exact_subtract, 0 },
    { "multiply", 2, 0, WIDE, exact_multiply, 0 },
    { "divide", 2, 0, WIDE, exact_divide, 0 },
    { "floor_divide", 2, 0, WIDE, exact_floor_divide, 0 },
    { "remainder", 2, 0, WIDE, exact_remainder, 0 },
    { "maximum", 2, 0, 0, 0, 0 },
    { "minimum", 2, 0, 0, 0, 0 },
    { "logaddexp", 2, 0, WIDE, exact_logaddexp, 0 },
    { "power", 2, 0, WIDE, exact_power, 0 },
    { "arctan2", 2, 0, WIDE, exact_arctan2, 0 },
    { "hypot", 2, 0, WIDE, exact_hypot, 0 },
    { "equal", 2, 1, 0, 0, 0 },
    { "not_equal", 2, 1, 0, 0, 0 },
    { "less", 2, 1, 0, 0, 0 },
    { "less_equal", 2, 1, 0, 0, 0 },
    { "greater", 2, 1, 0, 0, 0 },
    { "greater_equal", 2, 1, 0, 0, 0 },
    { "astype_float32", 1, 0, 0, 0, &format_float32 },
    { "astype_float16", 1, 0, 0, 0, &format_float16 },
    { "astype_bfloat16", 1, 0, 0, 0, &format_bfloat16 },
};
const int reference_count = sizeof reference_list / sizeof *reference_list;

const reference *reference_find(const char *name) {
    for (int i = 0; i < reference_count; i++)
        if (!strcmp(reference_list[i].name, name)) return &reference_list[i];
    return 0;
}
