#include "reference.h"

#include <math.h>
#include <string.h>

const format format_float32 = { "float32", 24, -126, 4, 0x7f800000u, 0x7fc00000u };
const format format_float16 = { "float16", 11, -14, 2, 0x7c00u, 0x7e00u };
const format format_bfloat16 = { "bfloat16", 8, -126, 2, 0x7f80u, 0x7fc0u };

/* Enough for logaddexp of two 24-bit numbers at its worst cancellation, and for exact sums of bfloat16 products. */
enum { PRECISION = 700 };

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

/* ---- Approximations in double --------------------------------------------------------------------------------------- */

#define UNARY(name, expression)                                                                                               \
    static double name(double x, double y, double *absolute) {                                                                \
        (void)y, (void)absolute;                                                                                              \
        return expression;                                                                                                    \
    }
#define BINARY(name, expression)                                                                                              \
    static double name(double x, double y, double *absolute) {                                                                \
        (void)absolute;                                                                                                       \
        return expression;                                                                                                    \
    }

UNARY(near_abs, fabs(x))
UNARY(near_negative, -x)
UNARY(near_sign, x > 0 ? 1.0 : x < 0 ? -1.0 : x)
UNARY(near_square, x * x)
UNARY(near_floor, floor(x))
UNARY(near_ceil, ceil(x))
UNARY(near_round, nearbyint(x))
UNARY(near_sqrt, sqrt(x))
UNARY(near_rsqrt, x == 0 ? copysign(INFINITY, x) : 1 / sqrt(x))
UNARY(near_reciprocal, 1 / x)
UNARY(near_exp, exp(x))
UNARY(near_expm1, expm1(x))
UNARY(near_log, log(x))
UNARY(near_log1p, log1p(x))
UNARY(near_sigmoid, 1 / (1 + exp(-x)))
UNARY(near_softplus, isnan(x) ? x : (x > 0 ? x : 0) + log1p(exp(-fabs(x))))
UNARY(near_tanh, tanh(x))
UNARY(near_isnan, isnan(x) != 0)
UNARY(near_isinf, isinf(x) != 0)
UNARY(near_isfinite, isfinite(x) != 0)
BINARY(near_add, x + y)
BINARY(near_subtract, x - y)
BINARY(near_multiply, x * y)
BINARY(near_divide, x / y)
BINARY(near_maximum, isnan(x) || isnan(y) ? NAN : x == y ? (signbit(x) ? y : x) : x > y ? x : y)
BINARY(near_minimum, isnan(x) || isnan(y) ? NAN : x == y ? (signbit(x) ? x : y) : x < y ? x : y)
BINARY(near_equal, x == y)
BINARY(near_not_equal, x != y)
BINARY(near_less, x < y)
BINARY(near_less_equal, x <= y)
BINARY(near_greater, x > y)
BINARY(near_greater_equal, x >= y)

/* Where the terms cancel, their absolute errors stay: those of the maximum and of exp(-d), whose argument is rounded. */
static double near_logaddexp(double x, double y, double *absolute) {
    if (isnan(x) || isnan(y)) return NAN;
    double larger = x > y ? x : y;
    if (isinf(x) || isinf(y)) return larger;
    double sum = larger + log1p(exp(-fabs(x - y)));
    if (larger < 0 && fabs(sum) < -larger / 2) *absolute = -larger * 0x1p-44;
    return sum;
}

/* Python's: fmod is exact; the last addition is left to the rounding, and is exact in double unless the exponents are far
 * apart, which the bound covers. */
static double near_remainder(double x, double y, double *absolute) {
    (void)absolute;
    if (isnan(x) || isnan(y) || isinf(x) || y == 0) return NAN;
    double rest = fmod(x, y);
    if (rest == 0) return copysign(0.0, y);
    return (rest < 0) != (y < 0) ? rest + y : rest;
}

static double near_floor_divide(double x, double y, double *absolute) {
    if (isnan(x) || isnan(y)) return NAN;
    if (y == 0) return x / y;
    if (isinf(x)) return NAN;
    if (isinf(y)) return x == 0 || (x < 0) == (y < 0) ? x / y : -1.0;
    double rest = fmod(x, y);
    double quotient = rint((x - rest) / y);
    int down = rest != 0 && (rest < 0) != (y < 0);
    if (fabs(quotient) >= 0x1p40) *absolute = fabs(quotient) * 0x1p-50 + 1;       /* x - rest may have been rounded */
    double result = quotient - down;
    return result == 0 ? copysign(0.0, x / y) : result;
}

/* ---- MPFR ------------------------------------------------------------------------------------------------------------ */

static _Thread_local mpfr_t scratch, other, value;
static _Thread_local int ready;

static void start(void) {
    if (ready) return;
    mpfr_inits2(PRECISION, scratch, other, value, (mpfr_ptr)0);
    ready = 1;
}

void reference_thread_end(void) {
    if (ready) mpfr_clears(scratch, other, value, (mpfr_ptr)0);
    ready = 0;
    mpfr_free_cache();
}

static void exact_square(mpfr_t r, double x, double y) { (void)y, mpfr_set_d(r, x, MPFR_RNDN), mpfr_sqr(r, r, MPFR_RNDN); }
static void exact_sqrt(mpfr_t r, double x, double y) { (void)y, mpfr_set_d(r, x, MPFR_RNDN), mpfr_sqrt(r, r, MPFR_RNDN); }
static void exact_rsqrt(mpfr_t r, double x, double y) { (void)y, mpfr_set_d(r, x, MPFR_RNDN), mpfr_rec_sqrt(r, r, MPFR_RNDN); }
static void exact_exp(mpfr_t r, double x, double y) { (void)y, mpfr_set_d(r, x, MPFR_RNDN), mpfr_exp(r, r, MPFR_RNDN); }
static void exact_expm1(mpfr_t r, double x, double y) { (void)y, mpfr_set_d(r, x, MPFR_RNDN), mpfr_expm1(r, r, MPFR_RNDN); }
static void exact_log(mpfr_t r, double x, double y) { (void)y, mpfr_set_d(r, x, MPFR_RNDN), mpfr_log(r, r, MPFR_RNDN); }
static void exact_log1p(mpfr_t r, double x, double y) { (void)y, mpfr_set_d(r, x, MPFR_RNDN), mpfr_log1p(r, r, MPFR_RNDN); }
static void exact_tanh(mpfr_t r, double x, double y) { (void)y, mpfr_set_d(r, x, MPFR_RNDN), mpfr_tanh(r, r, MPFR_RNDN); }

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
    start();
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

/* libm's double functions are within 1 or 2 ulp; the bounds leave a factor of 16 and more, and random samples check them. */
#define LIBM 0x1p-47
#define HARDWARE 0x1p-51
const reference reference_list[] = {
    { "abs", 1, 0, 0, near_abs, 0 },
    { "negative", 1, 0, 0, near_negative, 0 },
    { "sign", 1, 0, 0, near_sign, 0 },
    { "square", 1, 0, HARDWARE, near_square, exact_square },
    { "floor", 1, 0, 0, near_floor, 0 },
    { "ceil", 1, 0, 0, near_ceil, 0 },
    { "round", 1, 0, 0, near_round, 0 },
    { "sqrt", 1, 0, HARDWARE, near_sqrt, exact_sqrt },
    { "rsqrt", 1, 0, 2 * HARDWARE, near_rsqrt, exact_rsqrt },
    { "reciprocal", 1, 0, HARDWARE, near_reciprocal, exact_reciprocal },
    { "exp", 1, 0, LIBM, near_exp, exact_exp },
    { "expm1", 1, 0, LIBM, near_expm1, exact_expm1 },
    { "log", 1, 0, LIBM, near_log, exact_log },
    { "log1p", 1, 0, LIBM, near_log1p, exact_log1p },
    { "sigmoid", 1, 0, LIBM, near_sigmoid, exact_sigmoid },
    { "softplus", 1, 0, LIBM, near_softplus, exact_softplus },
    { "tanh", 1, 0, LIBM, near_tanh, exact_tanh },
    { "isnan", 1, 1, 0, near_isnan, 0 },
    { "isinf", 1, 1, 0, near_isinf, 0 },
    { "isfinite", 1, 1, 0, near_isfinite, 0 },
    { "add", 2, 0, HARDWARE, near_add, exact_add },
    { "subtract", 2, 0, HARDWARE, near_subtract, exact_subtract },
    { "multiply", 2, 0, HARDWARE, near_multiply, exact_multiply },
    { "divide", 2, 0, HARDWARE, near_divide, exact_divide },
    { "floor_divide", 2, 0, 0, near_floor_divide, exact_floor_divide },
    { "remainder", 2, 0, HARDWARE, near_remainder, exact_remainder },
    { "maximum", 2, 0, 0, near_maximum, 0 },
    { "minimum", 2, 0, 0, near_minimum, 0 },
    { "logaddexp", 2, 0, 0x1p-45, near_logaddexp, exact_logaddexp },
    { "equal", 2, 1, 0, near_equal, 0 },
    { "not_equal", 2, 1, 0, near_not_equal, 0 },
    { "less", 2, 1, 0, near_less, 0 },
    { "less_equal", 2, 1, 0, near_less_equal, 0 },
    { "greater", 2, 1, 0, near_greater, 0 },
    { "greater_equal", 2, 1, 0, near_greater_equal, 0 },
};
const int reference_count = sizeof reference_list / sizeof *reference_list;

const reference *reference_find(const char *name) {
    for (int i = 0; i < reference_count; i++)
        if (!strcmp(reference_list[i].name, name)) return &reference_list[i];
    return 0;
}
