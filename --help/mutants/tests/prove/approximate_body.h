/* The approximations, as loops that the compiler may turn into calls of libmvec. Included by approximate_<level>.c, which
 * defines APPROXIMATIONS and is compiled with that level's flags. */
#include "approximate.h"

#include <math.h>
#include <stddef.h>

/* glibc declares these as vector functions under -ffast-math only, which a reference must not be compiled with. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define VECTOR_1(name) __attribute__((__simd__("notinbranch"))) double name(double);
#define VECTOR_2(name) __attribute__((__simd__("notinbranch"))) double name(double, double);
VECTOR_1(exp) VECTOR_1(exp2) VECTOR_1(expm1) VECTOR_1(log) VECTOR_1(log2) VECTOR_1(log10) VECTOR_1(log1p)
VECTOR_1(sin) VECTOR_1(cos) VECTOR_1(tan) VECTOR_1(asin) VECTOR_1(acos) VECTOR_1(atan)
VECTOR_1(sinh) VECTOR_1(cosh) VECTOR_1(tanh) VECTOR_1(asinh) VECTOR_1(acosh) VECTOR_1(atanh)
VECTOR_1(erf) VECTOR_1(erfc)
VECTOR_2(pow) VECTOR_2(atan2) VECTOR_2(hypot)
#endif

#define ARGUMENTS const double *restrict x, const double *restrict y, double *restrict value, double *restrict error, int n
#define EACH _Pragma("omp simd") for (int i = 0; i < n; i++)

/* The result is EXPRESSION of a (and b), within `relative` of itself. */
#define UNARY(name, relative, EXPRESSION)                                                                                     \
    static void near_##name(ARGUMENTS) {                                                                                      \
        (void)y;                                                                                                              \
        EACH {                                                                                                                \
            double a = x[i];                                                                                                  \
            value[i] = EXPRESSION;                                                                                            \
            error[i] = fabs(value[i]) * (relative);                                                                           \
        }                                                                                                                     \
    }
#define BINARY(name, relative, EXPRESSION)                                                                                    \
    static void near_##name(ARGUMENTS) {                                                                                      \
        EACH {                                                                                                                \
            double a = x[i], b = y[i];                                                                                        \
            value[i] = EXPRESSION;                                                                                            \
            error[i] = fabs(value[i]) * (relative);                                                                           \
        }                                                                                                                     \
    }

/* libm's double functions are within 1 or 2 ulp, libmvec's within 4 (2^-50); the bounds leave a factor of 16 and more, and
 * random samples check them. */
#define LIBM 0x1p-46
#define HARDWARE 0x1p-51
#define EXACT 0.0

UNARY(astype, EXACT, a)
UNARY(abs, EXACT, fabs(a))
UNARY(negative, EXACT, -a)
UNARY(sign, EXACT, a > 0 ? 1.0 : a < 0 ? -1.0 : a)
UNARY(square, HARDWARE, a * a)
UNARY(floor, EXACT, floor(a))
UNARY(ceil, EXACT, ceil(a))
UNARY(round, EXACT, rint(a))
UNARY(sqrt, HARDWARE, sqrt(a))
UNARY(rsqrt, 2 * HARDWARE, a == 0 ? copysign(INFINITY, a) : 1 / sqrt(a))
UNARY(reciprocal, HARDWARE, 1 / a)
UNARY(exp, LIBM, exp(a))
UNARY(exp2, LIBM, exp2(a))
UNARY(expm1, LIBM, expm1(a))
UNARY(log, LIBM, log(a))
UNARY(log2, LIBM, log2(a))
UNARY(log10, LIBM, log10(a))
UNARY(log1p, LIBM, log1p(a))
UNARY(sigmoid, LIBM, 1 / (1 + exp(-a)))
UNARY(silu, LIBM, a == -INFINITY ? -0.0 : a / (1 + exp(-a)))
UNARY(softplus, LIBM, a != a ? a : (a > 0 ? a : 0) + log1p(exp(-fabs(a))))
UNARY(tanh, LIBM, tanh(a))
UNARY(sin, LIBM, sin(a))
UNARY(cos, LIBM, cos(a))
UNARY(tan, LIBM, tan(a))
UNARY(arcsin, LIBM, asin(a))
UNARY(arccos, LIBM, acos(a))
UNARY(arctan, LIBM, atan(a))
UNARY(sinh, LIBM, sinh(a))
UNARY(cosh, LIBM, cosh(a))
UNARY(arcsinh, LIBM, asinh(a))
UNARY(arccosh, LIBM, acosh(a))
UNARY(arctanh, LIBM, atanh(a))
UNARY(erf, LIBM, erf(a))
UNARY(isnan, EXACT, isnan(a) != 0)
UNARY(isinf, EXACT, isinf(a) != 0)
UNARY(isfinite, EXACT, isfinite(a) != 0)
BINARY(add, HARDWARE, a + b)
BINARY(subtract, HARDWARE, a - b)
BINARY(multiply, HARDWARE, a * b)
BINARY(divide, HARDWARE, a / b)
BINARY(maximum, EXACT, a != a || b != b ? NAN : a == b ? (signbit(a) ? b : a) : a > b ? a : b)
BINARY(minimum, EXACT, a != a || b != b ? NAN : a == b ? (signbit(a) ? a : b) : a < b ? a : b)
BINARY(equal, EXACT, a == b)
BINARY(not_equal, EXACT, a != b)
BINARY(less, EXACT, a < b)
BINARY(less_equal, EXACT, a <= b)
BINARY(greater, EXACT, a > b)
BINARY(greater_equal, EXACT, a >= b)
BINARY(power, LIBM, pow(a, b))
BINARY(arctan2, LIBM, atan2(a, b))
BINARY(hypot, LIBM, hypot(a, b))

/* A start by M. Giles, "Approximating the erfinv function" (2010; single precision), then one step of Halley's method on
 * erf(v) - x, or for larger x on erfc(v) - (1 - x), where 1 - x is exact: 3 v^2 times the start's error cubed is left. */
static void near_erfinv(ARGUMENTS) {
    (void)y;
    EACH {
        double a = fabs(x[i]), inside = a < 1 ? a : 0.5;
        double w = -log((1 - inside) * (1 + inside)), c = w - 2.5, t = sqrt(w) - 3;
        double p = 2.81022636e-08, q = -0.000200214257;
        p = 3.43273939e-07 + p * c, q = 0.000100950558 + q * t;
        p = -3.5233877e-06 + p * c, q = 0.00134934322 + q * t;
        p = -4.39150654e-06 + p * c, q = -0.00367342844 + q * t;
        p = 0.00021858087 + p * c, q = 0.00573950773 + q * t;
        p = -0.00125372503 + p * c, q = -0.0076224613 + q * t;
        p = -0.00417768164 + p * c, q = 0.00943887047 + q * t;
        p = 0.246640727 + p * c, q = 1.00167406 + q * t;
        p = 1.50140941 + p * c, q = 2.83297682 + q * t;
        double v = (w < 5 ? p : q) * inside;
        double below = erf(v) - inside, above = (1 - inside) - erfc(v);
        double step = (inside < 0.5 ? below : above) * 0x1.c5bf891b4ef6ap-1 * exp(v * v);       /* sqrt(pi) / 2 */
        v -= step / (1 + v * step);
        v = inside < 0x1p-100 ? inside * 0x1.c5bf891b4ef6ap-1 : v;
        value[i] = a < 1 ? copysign(v, x[i]) : a == 1 ? copysign(INFINITY, x[i]) : NAN;
        error[i] = fabs(value[i]) * 0x1p-44;
    }
}

/* Where the terms cancel, their absolute errors stay: those of the maximum and of exp(-d), whose argument is rounded. */
static void near_logaddexp(ARGUMENTS) {
    EACH {
        double a = x[i], b = y[i];
        double larger = a > b ? a : b;
        double sum = larger + log1p(exp(-fabs(a - b)));
        value[i] = a != a || b != b ? NAN : isinf(a) || isinf(b) ? larger : sum;
        error[i] = fabs(value[i]) * 0x1p-45 + (larger < 0 && fabs(sum) < -larger / 2 && !isinf(larger) ? -larger * 0x1p-44 : 0.0);
    }
}

/* Python's: fmod is exact; the last addition is left to the rounding, and is exact in double unless the exponents are far
 * apart, which the bound covers. */
static void near_remainder(ARGUMENTS) {
    for (int i = 0; i < n; i++) {
        double a = x[i], b = y[i], rest = fmod(a, b);
        value[i] = a != a || b != b || isinf(a) || b == 0 ? NAN : rest == 0 ? copysign(0.0, b) : (rest < 0) != (b < 0) ? rest + b : rest;
        error[i] = fabs(value[i]) * HARDWARE;
    }
}

static void near_floor_divide(ARGUMENTS) {
    for (int i = 0; i < n; i++) {
        double a = x[i], b = y[i];
        error[i] = 0;
        if (a != a || b != b) value[i] = NAN;
        else if (b == 0) value[i] = a / b;
        else if (isinf(a)) value[i] = NAN;
        else if (isinf(b)) value[i] = a == 0 || (a < 0) == (b < 0) ? a / b : -1.0;
        else {
            double rest = fmod(a, b);
            double quotient = rint((a - rest) / b);
            double result = quotient - (rest != 0 && (rest < 0) != (b < 0));
            if (fabs(quotient) >= 0x1p40) error[i] = fabs(quotient) * 0x1p-49 + 4;    /* a - rest may have been rounded */
            value[i] = result == 0 ? copysign(0.0, a / b) : result;
        }
    }
}

/* ---- The filter ------------------------------------------------------------------------------------------------------ */

static inline uint64_t bits_of(double x) {
    union { double f; uint64_t u; } cast = { .f = x };
    return cast.u;
}

static inline double float_value(uint32_t bits) {
    union { uint32_t u; float f; } cast = { .u = bits };
    return cast.f;
}

/* Inside of the neighbourhood whatever the error; or equal, as an infinity is, or a zero; or both NaN. */
static inline int32_t is_open(double value, double error, neighbourhood of, int negative, int canonical_nan) {
    double magnitude = negative ? -value : value;
    int inside = (magnitude - error > of.low) & (magnitude + error < of.high);
    int equal = bits_of(magnitude) == bits_of(of.value);
    return !(inside | equal | (canonical_nan & (value != value)));
}

static void filter_float32(const double *value, const double *error, const void *got, const neighbourhood *table, int32_t *open, int n) {
    const uint32_t *bits = got;
    (void)table;
    EACH {
        uint32_t magnitude = bits[i] & 0x7fffffffu;
        uint32_t below = magnitude == 0 ? 0 : magnitude - 1, finite = magnitude > 0x7f7fffffu ? 0x7f7fffffu : magnitude;
        double own = float_value(magnitude), next = finite == 0x7f7fffffu ? 0x1p128 : float_value(finite + 1);
        neighbourhood of = { own, (float_value(below) + own) * 0.5, (own + next) * 0.5 };
        of.low = magnitude == 0x7f800000u ? 0x1.ffffffp127 : of.low;
        of.high = magnitude == 0x7f800000u ? INFINITY : of.high;
        open[i] = is_open(value[i], error[i], of, bits[i] >> 31 != 0, bits[i] == 0x7fc00000u);
    }
}

static void filter_16_bits(const double *value, const double *error, const void *got, const neighbourhood *table, int32_t *open, int n) {
    const uint16_t *bits = got;
    EACH {
        neighbourhood of = table[bits[i] & 0x7fffu];
        open[i] = is_open(value[i], error[i], of, bits[i] >> 15 != 0, (bits[i] & 0x8000u) == 0 && of.value != of.value);
    }
}

const filters FILTERS = { filter_float32, filter_16_bits };

/* ---- The list -------------------------------------------------------------------------------------------------------- */

#define ENTRY(name) { #name, near_##name },
const approximation APPROXIMATIONS[] = {
    ENTRY(abs) ENTRY(negative) ENTRY(sign) ENTRY(square) ENTRY(floor) ENTRY(ceil) ENTRY(round) ENTRY(sqrt) ENTRY(rsqrt)
    ENTRY(reciprocal) ENTRY(exp) ENTRY(exp2) ENTRY(expm1) ENTRY(log) ENTRY(log2) ENTRY(log10) ENTRY(log1p) ENTRY(sigmoid)
    ENTRY(silu) ENTRY(softplus) ENTRY(tanh) ENTRY(sin) ENTRY(cos) ENTRY(tan) ENTRY(arcsin) ENTRY(arccos) ENTRY(arctan)
    ENTRY(sinh) ENTRY(cosh) ENTRY(arcsinh) ENTRY(arccosh) ENTRY(arctanh) ENTRY(erf) ENTRY(erfinv) ENTRY(isnan) ENTRY(isinf)
    ENTRY(isfinite) ENTRY(add) ENTRY(subtract) ENTRY(multiply) ENTRY(divide) ENTRY(floor_divide) ENTRY(remainder)
    ENTRY(maximum) ENTRY(minimum) ENTRY(logaddexp) ENTRY(equal) ENTRY(not_equal) ENTRY(less) ENTRY(less_equal)
    ENTRY(greater) ENTRY(greater_equal) ENTRY(power) ENTRY(arctan2) ENTRY(hypot)
    { "astype_float32", near_astype }, { "astype_float16", near_astype }, { "astype_bfloat16", near_astype },
    { NULL, NULL },
};
