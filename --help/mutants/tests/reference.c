/* See reference.h. The first half evaluates one operation, the second walks a graph. */
#include "reference.h"

#include <mpfr.h>
#include <stdlib.h>
#include <string.h>

/* ---- Formats --------------------------------------------------------------------------------------------------------- */

typedef struct format {
    int precision;                     /* with the hidden bit */
    int emin, emax;                    /* of MPFR, whose significands are in [1/2, 1): least subnormal is 2^(emin-1) */
    int width;
    uint64_t infinity, nan;
} format;

static const format formats[] = {
    { 11, -23, 16, 16, 0x7C00, 0x7E00 }, { 8, -132, 128, 16, 0x7F80, 0x7FC0 }, { 24, -148, 128, 32, 0x7F800000, 0x7FC00000 },
};

static const format *format_of(ol_dtype dtype)
{
    return &formats[dtype - OL_FLOAT16];
}

static int is_float(ol_dtype dtype) { return dtype >= OL_FLOAT16; }
static int is_signed(ol_dtype dtype) { return dtype >= OL_INT8 && dtype <= OL_INT64; }
static int width_of(ol_dtype dtype) { return 8 * (int)ol_dtype_size(dtype); }

/* The exact value of bits. `value` has at least 24 bits. */
static void decode(mpfr_t value, const format *f, uint64_t bits)
{
    int fraction_bits = f->precision - 1;
    uint64_t magnitude = bits & ((1ull << (f->width - 1)) - 1);
    if (magnitude > f->infinity)
        mpfr_set_nan(value);
    else if (magnitude == f->infinity)
        mpfr_set_inf(value, 1);
    else {
        uint64_t exponent = magnitude >> fraction_bits, fraction = magnitude & ((1ull << fraction_bits) - 1);
        if (exponent)
            fraction |= 1ull << fraction_bits;
        mpfr_set_ui_2exp(value, fraction, f->emin - 1 + (exponent ? (long)exponent - 1 : 0), MPFR_RNDN);
    }
    if (bits >> (f->width - 1))
        mpfr_neg(value, value, MPFR_RNDN);
}

/* value rounded once to the format, ties to even. Works in integers: value / quantum, where the quantum is the unit in the
 * last place that the format has at value's magnitude. */
static uint64_t encode(const format *f, const mpfr_t value)
{
    uint64_t sign = mpfr_signbit(value) ? 1ull << (f->width - 1) : 0;
    if (mpfr_nan_p(value))
        return f->nan;
    if (mpfr_inf_p(value))
        return sign | f->infinity;
    if (mpfr_zero_p(value))
        return sign;
    long exponent = mpfr_get_exp(value) - f->precision;              /* of the quantum, unless subnormal */
    if (exponent < f->emin - 1)
        exponent = f->emin - 1;
    mpfr_t scaled;
    mpfr_init2(scaled, mpfr_get_prec(value));
    mpfr_mul_2si(scaled, value, -exponent, MPFR_RNDN);
    mpfr_roundeven(scaled, scaled);
    uint64_t significand = (uint64_t)labs(mpfr_get_si(scaled, MPFR_RNDN));
    mpfr_clear(scaled);
    if (significand >> f->precision) {                               /* rounded up to the next power of two */
        significand >>= 1;
        exponent++;
    }
    if (exponent + f->precision > f->emax)
        return sign | f->infinity;
    if (!(significand >> (f->precision - 1)))
        return sign | significand;                                   /* subnormal: its exponent is the least */
    return sign | (((uint64_t)(exponent - (f->emin - 1) + 1) << (f->precision - 1)) + (significand & ((1ull << (f->precision - 1)) - 1)));
}

/* ---- Float functions that MPFR has not got --------------------------------------------------------------------------- */

/* An approximation and a bound on its absolute error, at the precision of the variables. */
typedef void (*enclosing)(mpfr_t value, mpfr_t error, const mpfr_t x, const mpfr_t y);

/* error = 2^-precision * (scale) * |by| */
static void relative_error(mpfr_t error, const mpfr_t by, const mpfr_t scale)
{
    mpfr_abs(error, by, MPFR_RNDU);
    mpfr_mul(error, error, scale, MPFR_RNDU);
    mpfr_mul_2si(error, error, -(long)mpfr_get_prec(error), MPFR_RNDU);
}

/* 1 / (1 + e^-x): e^-x is off by one rounding, 1 + it and the quotient by one each. */
static void enclose_sigmoid(mpfr_t value, mpfr_t error, const mpfr_t x, const mpfr_t y)
{
    mpfr_t eight;
    (void)y;
    mpfr_neg(value, x, MPFR_RNDN);
    mpfr_exp(value, value, MPFR_RNDN);
    mpfr_add_ui(value, value, 1, MPFR_RNDN);
    mpfr_ui_div(value, 1, value, MPFR_RNDN);
    mpfr_init2(eight, 8);
    mpfr_set_ui(eight, 8, MPFR_RNDN);
    relative_error(error, value, eight);
    mpfr_clear(eight);
}

/* max + log1p(e^(min - max)), both finite. With L the logarithm: the difference d is off by 2^-p |d|, which makes e^d, and L,
 * off by that much of themselves; then one rounding each for e^d, L and the sum. */
static void enclose_logaddexp(mpfr_t value, mpfr_t error, const mpfr_t x, const mpfr_t y)
{
    mpfr_prec_t p = mpfr_get_prec(value);
    mpfr_t d, l, scale, part;
    mpfr_inits2(p, d, l, scale, part, (mpfr_ptr)0);
    mpfr_srcptr larger = mpfr_greater_p(x, y) ? x : y, smaller = larger == (mpfr_srcptr)x ? y : x;
    mpfr_sub(d, smaller, larger, MPFR_RNDN);
    mpfr_exp(l, d, MPFR_RNDN);
    mpfr_log1p(l, l, MPFR_RNDN);
    mpfr_add(value, larger, l, MPFR_RNDN);
    mpfr_abs(scale, d, MPFR_RNDU);
    mpfr_add_ui(scale, scale, 8, MPFR_RNDU);
    relative_error(error, l, scale);
    mpfr_set_ui(scale, 2, MPFR_RNDN);
    mpfr_set_prec(part, p);
    relative_error(part, value, scale);
    mpfr_add(error, error, part, MPFR_RNDU);
    mpfr_clears(d, l, scale, part, (mpfr_ptr)0);
}

/* Raises the precision until both ends of the enclosure round alike. *other: what else is within 0.5001 ulp, or the same. */
static uint64_t round_enclosed(const format *f, enclosing function, const mpfr_t x, const mpfr_t y, uint64_t *other)
{
    for (mpfr_prec_t p = 160;; p *= 2) {
        mpfr_t value, error, low, high;
        mpfr_inits2(p, value, error, low, high, (mpfr_ptr)0);
        function(value, error, x, y);
        mpfr_sub(low, value, error, MPFR_RNDD);
        mpfr_add(high, value, error, MPFR_RNDU);
        if (mpfr_zero_p(low) && mpfr_zero_p(high)) {                 /* underflow, or an exact zero: +0 */
            mpfr_setsign(low, low, 0, MPFR_RNDN);
            mpfr_setsign(high, high, 0, MPFR_RNDN);
        }
        uint64_t bits = encode(f, low);
        int decided = bits == encode(f, high);
        *other = bits;
        if (decided && mpfr_regular_p(value)) {                      /* a shift by 0.0001 ulp that changes the rounding */
            long exponent = mpfr_get_exp(value) - f->precision;
            mpfr_set_d(error, 0.0001, MPFR_RNDU);
            mpfr_mul_2si(error, error, exponent < f->emin - 1 ? f->emin - 1 : exponent, MPFR_RNDN);
            mpfr_sub(low, value, error, MPFR_RNDD);
            mpfr_add(high, value, error, MPFR_RNDU);
            *other = encode(f, low) != bits ? encode(f, low) : encode(f, high);
        }
        mpfr_clears(value, error, low, high, (mpfr_ptr)0);
        if (decided)
            return bits;
    }
}

/* x / (1 + e^-x): one rounding more than sigmoid. */
static void enclose_silu(mpfr_t value, mpfr_t error, const mpfr_t x, const mpfr_t y)
{
    mpfr_t ten;
    enclose_sigmoid(value, error, x, y);
    mpfr_mul(value, value, x, MPFR_RNDN);
    mpfr_init2(ten, 8);
    mpfr_set_ui(ten, 10, MPFR_RNDN);
    relative_error(error, value, ten);
    mpfr_clear(ten);
}

/* The v between 0 and 2^7 with erf(v) = |x| < 1, by bisection: erf grows, so that the interval is an enclosure. Of large x by
 * erfc, whose value tells them apart. */
static void enclose_erfinv(mpfr_t value, mpfr_t error, const mpfr_t x, const mpfr_t y)
{
    mpfr_prec_t p = mpfr_get_prec(value);
    mpfr_t low, high, middle, f, wanted;
    (void)y;
    mpfr_inits2(p, low, high, middle, f, (mpfr_ptr)0);
    mpfr_init2(wanted, 400);                                         /* 1 - |x|, exactly */
    mpfr_abs(wanted, x, MPFR_RNDN);
    mpfr_ui_sub(wanted, 1, wanted, MPFR_RNDN);
    mpfr_abs(low, x, MPFR_RNDD);                                     /* x sqrt(pi) / 2 <= erfinv(x) */
    mpfr_mul_d(low, low, 0.875, MPFR_RNDD);
    mpfr_mul_2ui(high, low, 6, MPFR_RNDU);
    while (mpfr_sub(f, high, low, MPFR_RNDU), mpfr_get_exp(f) > mpfr_get_exp(low) - 80) {
        mpfr_add(middle, low, high, MPFR_RNDN);
        mpfr_div_2ui(middle, middle, 1, MPFR_RNDN);
        mpfr_erfc(f, middle, MPFR_RNDN);
        int below = mpfr_cmp_d(middle, 0.5) < 0 ? (mpfr_erf(f, middle, MPFR_RNDN), mpfr_cmpabs(f, x) < 0) : mpfr_greater_p(f, wanted);
        mpfr_set(below ? low : high, middle, MPFR_RNDN);
    }
    mpfr_add(value, low, high, MPFR_RNDN);
    mpfr_div_2ui(value, value, 1, MPFR_RNDN);
    mpfr_sub(error, high, low, MPFR_RNDU);
    if (mpfr_signbit(x))
        mpfr_neg(value, value, MPFR_RNDN);
    mpfr_clears(low, high, middle, f, wanted, (mpfr_ptr)0);
}

static reference_value logaddexp(const format *f, const mpfr_t x, const mpfr_t y)
{
    reference_value r = { 0 };
    if (mpfr_nan_p(x) || mpfr_nan_p(y))
        r.bits = f->nan;
    else if ((mpfr_inf_p(x) && mpfr_sgn(x) > 0) || (mpfr_inf_p(y) && mpfr_sgn(y) > 0))
        r.bits = f->infinity;
    else if (mpfr_inf_p(x))
        r.bits = encode(f, y);
    else if (mpfr_inf_p(y))
        r.bits = encode(f, x);
    else
        r.bits = round_enclosed(f, enclose_logaddexp, x, y, &r.other);
    if (f->precision != 24 || !mpfr_number_p(x) || !mpfr_number_p(y))  /* the 16-bit formats are promised to be right */
        r.other = r.bits;
    return r;
}

static uint64_t sigmoid(const format *f, const mpfr_t x)
{
    uint64_t ignored;
    if (mpfr_nan_p(x))
        return f->nan;
    if (mpfr_inf_p(x)) {
        mpfr_t limit;
        mpfr_init2(limit, 8);
        mpfr_set_ui(limit, mpfr_sgn(x) > 0, MPFR_RNDN);
        uint64_t bits = encode(f, limit);
        mpfr_clear(limit);
        return bits;
    }
    return round_enclosed(f, enclose_sigmoid, x, x, &ignored);
}

static uint64_t silu(const format *f, const mpfr_t x)
{
    uint64_t ignored, sign = mpfr_signbit(x) ? 1ull << (f->width - 1) : 0;
    if (mpfr_nan_p(x))
        return f->nan;
    if (mpfr_zero_p(x) || mpfr_inf_p(x))
        return mpfr_inf_p(x) && !sign ? f->infinity : sign;          /* silu(-inf) is the limit, -0 */
    if (mpfr_cmp_si(x, -100000) < 0)
        return sign;                                                 /* e^x is less than any format's, maybe than MPFR's least */
    return round_enclosed(f, enclose_silu, x, x, &ignored);
}

static uint64_t erfinv(const format *f, const mpfr_t x)
{
    uint64_t ignored, sign = mpfr_signbit(x) ? 1ull << (f->width - 1) : 0;
    if (mpfr_nan_p(x) || mpfr_cmpabs_ui(x, 1) > 0)
        return f->nan;
    if (mpfr_zero_p(x) || mpfr_cmpabs_ui(x, 1) == 0)
        return mpfr_zero_p(x) ? sign : sign | f->infinity;
    return round_enclosed(f, enclose_erfinv, x, x, &ignored);
}

/* ---- Quotient and remainder of floats: Python's signs ----------------------------------------------------------------- */

/* Wide enough for every quotient of two floats of these formats to the unit, and for every remainder. */
enum { WIDE = 640 };

static int opposite_signs(const mpfr_t x, const mpfr_t y)
{
    return mpfr_signbit(x) != mpfr_signbit(y);
}

/* By zero as IEEE 754 divides. An infinite dividend has no quotient that rounds down: NaN. */
static void floor_divide(mpfr_t r, const mpfr_t x, const mpfr_t y)
{
    mpfr_set_prec(r, WIDE);
    if (mpfr_inf_p(x) && !mpfr_zero_p(y))
        mpfr_set_nan(r);
    else if (mpfr_inf_p(y) && mpfr_regular_p(x) && opposite_signs(x, y))
        mpfr_set_si(r, -1, MPFR_RNDN);
    else {
        mpfr_div(r, x, y, mpfr_regular_p(x) && mpfr_regular_p(y) ? MPFR_RNDD : MPFR_RNDN);
        mpfr_rint_floor(r, r, MPFR_RNDN);
    }
}

/* x - y floor(x / y): the divisor's sign, also on a zero. */
static void remainder_of(mpfr_t r, const mpfr_t x, const mpfr_t y)
{
    mpfr_set_prec(r, WIDE);
    mpfr_fmod(r, x, y, MPFR_RNDN);
    if (mpfr_nan_p(r))
        return;
    if (mpfr_zero_p(r))
        mpfr_setsign(r, r, mpfr_signbit(y), MPFR_RNDN);
    else if (opposite_signs(r, y))
        mpfr_add(r, r, y, MPFR_RNDN);
}

/* ---- Float primitives ------------------------------------------------------------------------------------------------- */

static void larger_of(mpfr_t r, const mpfr_t x, const mpfr_t y)
{
    if (mpfr_nan_p(x) || mpfr_nan_p(y))
        mpfr_set_nan(r);
    else if (mpfr_zero_p(x) && mpfr_zero_p(y))
        mpfr_set_zero(r, mpfr_signbit(x) && mpfr_signbit(y) ? -1 : 1);
    else
        mpfr_set(r, mpfr_greater_p(x, y) ? x : y, MPFR_RNDN);
}

static void smaller_of(mpfr_t r, const mpfr_t x, const mpfr_t y)
{
    if (mpfr_nan_p(x) || mpfr_nan_p(y))
        mpfr_set_nan(r);
    else if (mpfr_zero_p(x) && mpfr_zero_p(y))
        mpfr_set_zero(r, mpfr_signbit(x) || mpfr_signbit(y) ? -1 : 1);
    else
        mpfr_set(r, mpfr_less_p(x, y) ? x : y, MPFR_RNDN);
}

static void sign_of(mpfr_t r, const mpfr_t x)
{
    mpfr_set(r, x, MPFR_RNDN);
    if (!mpfr_nan_p(x) && !mpfr_zero_p(x))
        mpfr_set_si(r, mpfr_sgn(x), MPFR_RNDN);
}

/* MPFR's functions round correctly, but to a precision and not to a format's subnormals: their results, rounded down and up, are
 * an enclosure, and where its ends fall apart in the format the precision is raised. An exact result has one end alone. */
typedef int (*directed)(mpfr_t, const mpfr_t, mpfr_rnd_t);

static uint64_t round_directed(const format *f, directed function, const mpfr_t x)
{
    for (mpfr_prec_t p = 64;; p *= 2) {
        mpfr_t low, high;
        mpfr_inits2(p, low, high, (mpfr_ptr)0);
        int inexact = function(low, x, MPFR_RNDD);
        uint64_t bits = encode(f, low), other = bits;
        if (inexact) {
            function(high, x, MPFR_RNDU);
            other = encode(f, high);
        }
        mpfr_clears(low, high, (mpfr_ptr)0);
        if (bits == other)
            return bits;
    }
}

/* The same of two operands. Where the two ends stay apart, the result is within 2^-1000 of halfway of itself but not exact:
 * MPFR gives the ternary value that tells. arctan2 of a subnormal quotient that is halfway is one of these. */
typedef int (*directed_2)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);

static reference_value round_directed_2(const format *f, directed_2 function, const mpfr_t x, const mpfr_t y, int is_open)
{
    for (mpfr_prec_t p = 64;; p *= 2) {
        mpfr_t low, high, shift;
        mpfr_inits2(p, low, high, shift, (mpfr_ptr)0);
        int inexact = function(low, x, y, MPFR_RNDD);
        reference_value r = { .bits = encode(f, low), .other = encode(f, low) };
        int decided = 1;
        if (inexact) {
            function(high, x, y, MPFR_RNDU);
            decided = encode(f, high) == r.bits;
            if (is_open && decided && mpfr_regular_p(low)) {         /* what else is within 0.5001 ulp */
                long exponent = mpfr_get_exp(low) - f->precision;
                mpfr_set_d(shift, 0.0001, MPFR_RNDU);
                mpfr_mul_2si(shift, shift, exponent < f->emin - 1 ? f->emin - 1 : exponent, MPFR_RNDN);
                mpfr_sub(low, low, shift, MPFR_RNDD);
                mpfr_add(high, high, shift, MPFR_RNDU);
                r.other = encode(f, low) != r.bits ? encode(f, low) : encode(f, high);
            }
        }
        mpfr_clears(low, high, shift, (mpfr_ptr)0);
        if (decided)
            return r;
    }
}

static int inverse_root(mpfr_t r, const mpfr_t x, mpfr_rnd_t rounding)
{
    if (mpfr_zero_p(x)) {                                            /* IEEE 754 rSqrt, where MPFR has +inf for both */
        mpfr_set_inf(r, mpfr_signbit(x) ? -1 : 1);
        return 0;
    }
    return mpfr_rec_sqrt(r, x, rounding);
}

static int inverse(mpfr_t r, const mpfr_t x, mpfr_rnd_t rounding)
{
    return mpfr_ui_div(r, 1, x, rounding);
}

/* Cut off after hundreds of bits, with one more bit far below to tell that something was cut off: never a tie by mistake. */
static void divide(mpfr_t r, const mpfr_t x, const mpfr_t y)
{
    mpfr_set_prec(r, WIDE);
    if (mpfr_div(r, x, y, MPFR_RNDZ) != 0) {
        mpfr_t last;
        mpfr_init2(last, 64);
        mpfr_set_ui_2exp(last, 1, mpfr_get_exp(r) - 500, MPFR_RNDN);
        mpfr_setsign(last, last, mpfr_signbit(r), MPFR_RNDN);
        mpfr_add(r, r, last, MPFR_RNDN);
        mpfr_clear(last);
    }
}

static reference_value bits_of(uint64_t bits)
{
    return (reference_value){ .bits = bits, .other = bits };
}

static int compares(int32_t p, const mpfr_t x, const mpfr_t y)
{
    switch (p) {
    case PRIMITIVE_equal: return mpfr_equal_p(x, y) != 0;
    case PRIMITIVE_not_equal: return mpfr_equal_p(x, y) == 0;
    case PRIMITIVE_less: return mpfr_less_p(x, y) != 0;
    case PRIMITIVE_less_equal: return mpfr_lessequal_p(x, y) != 0;
    case PRIMITIVE_greater: return mpfr_greater_p(x, y) != 0;
    case PRIMITIVE_greater_equal: return mpfr_greaterequal_p(x, y) != 0;
    case PRIMITIVE_isnan: return mpfr_nan_p(x) != 0;
    case PRIMITIVE_isinf: return mpfr_inf_p(x) != 0;
    case PRIMITIVE_isfinite: return mpfr_number_p(x) != 0;
    default: return -1;
    }
}

/* r is wide enough for sums, products and fused products of any two floats of these formats to be exact: 2^-298 to 2^256. */
static reference_value float_result(int32_t p, const format *f, mpfr_t r, const mpfr_t x, const mpfr_t y, const mpfr_t z)
{
    switch (p) {
    case PRIMITIVE_exp: return bits_of(round_directed(f, mpfr_exp, x));
    case PRIMITIVE_expm1: return bits_of(round_directed(f, mpfr_expm1, x));
    case PRIMITIVE_log: return bits_of(round_directed(f, mpfr_log, x));
    case PRIMITIVE_log1p: return bits_of(round_directed(f, mpfr_log1p, x));
    case PRIMITIVE_tanh: return bits_of(round_directed(f, mpfr_tanh, x));
    case PRIMITIVE_exp2: return bits_of(round_directed(f, mpfr_exp2, x));
    case PRIMITIVE_log2: return bits_of(round_directed(f, mpfr_log2, x));
    case PRIMITIVE_log10: return bits_of(round_directed(f, mpfr_log10, x));
    case PRIMITIVE_sin: return bits_of(round_directed(f, mpfr_sin, x));
    case PRIMITIVE_cos: return bits_of(round_directed(f, mpfr_cos, x));
    case PRIMITIVE_tan: return bits_of(round_directed(f, mpfr_tan, x));
    case PRIMITIVE_sinh: return bits_of(round_directed(f, mpfr_sinh, x));
    case PRIMITIVE_cosh: return bits_of(round_directed(f, mpfr_cosh, x));
    case PRIMITIVE_arcsin: return bits_of(round_directed(f, mpfr_asin, x));
    case PRIMITIVE_arccos: return bits_of(round_directed(f, mpfr_acos, x));
    case PRIMITIVE_arctan: return bits_of(round_directed(f, mpfr_atan, x));
    case PRIMITIVE_arcsinh: return bits_of(round_directed(f, mpfr_asinh, x));
    case PRIMITIVE_arccosh: return bits_of(round_directed(f, mpfr_acosh, x));
    case PRIMITIVE_arctanh: return bits_of(round_directed(f, mpfr_atanh, x));
    case PRIMITIVE_erf: return bits_of(round_directed(f, mpfr_erf, x));
    case PRIMITIVE_sqrt: return bits_of(round_directed(f, mpfr_sqrt, x));
    case PRIMITIVE_rsqrt: return bits_of(round_directed(f, inverse_root, x));
    case PRIMITIVE_reciprocal: return bits_of(round_directed(f, inverse, x));
    case PRIMITIVE_sigmoid: return bits_of(sigmoid(f, x));
    case PRIMITIVE_silu: return bits_of(silu(f, x));
    case PRIMITIVE_erfinv: return bits_of(erfinv(f, x));
    case PRIMITIVE_power: return round_directed_2(f, mpfr_pow, x, y, f->precision == 24);
    case PRIMITIVE_arctan2: return round_directed_2(f, mpfr_atan2, x, y, f->precision == 24);
    case PRIMITIVE_hypot: return round_directed_2(f, mpfr_hypot, x, y, 0);
    case PRIMITIVE_logaddexp: return logaddexp(f, x, y);
    case PRIMITIVE_softplus: {
        mpfr_set_zero(r, 1);
        reference_value v = logaddexp(f, x, r);
        return bits_of(v.bits);                                      /* unary: right on every input */
    }
    case PRIMITIVE_abs: mpfr_abs(r, x, MPFR_RNDN); break;
    case PRIMITIVE_negative: mpfr_neg(r, x, MPFR_RNDN); break;
    case PRIMITIVE_sign: sign_of(r, x); break;
    case PRIMITIVE_square: mpfr_mul(r, x, x, MPFR_RNDN); break;
    case PRIMITIVE_floor: mpfr_rint_floor(r, x, MPFR_RNDN); break;
    case PRIMITIVE_ceil: mpfr_rint_ceil(r, x, MPFR_RNDN); break;
    case PRIMITIVE_round: mpfr_rint_roundeven(r, x, MPFR_RNDN); break;
    case PRIMITIVE_add: mpfr_add(r, x, y, MPFR_RNDN); break;
    case PRIMITIVE_subtract: mpfr_sub(r, x, y, MPFR_RNDN); break;
    case PRIMITIVE_multiply: mpfr_mul(r, x, y, MPFR_RNDN); break;
    case PRIMITIVE_divide: divide(r, x, y); break;
    case PRIMITIVE_floor_divide: floor_divide(r, x, y); break;
    case PRIMITIVE_remainder: remainder_of(r, x, y); break;
    case PRIMITIVE_maximum: larger_of(r, x, y); break;
    case PRIMITIVE_minimum: smaller_of(r, x, y); break;
    case PRIMITIVE_clip: {
        mpfr_t larger;
        mpfr_init2(larger, 64);
        larger_of(larger, x, y);
        smaller_of(r, larger, z);
        mpfr_clear(larger);
        break;
    }
    case PRIMITIVE_fma: mpfr_fma(r, x, y, z, MPFR_RNDN); break;
    default: abort();                                                /* a primitive without a reference is no test */
    }
    return bits_of(encode(f, r));
}

static reference_value float_primitive(int32_t p, ol_dtype dtype, const reference_value *operands)
{
    const format *f = format_of(dtype);
    mpfr_t v[3], r;
    int arity = ol_primitive_arity(p);
    for (int i = 0; i < 3; i++) {
        mpfr_init2(v[i], 64);
        decode(v[i], f, operands[i < arity ? i : 0].bits);
    }
    mpfr_init2(r, WIDE);
    int truth = compares(p, v[0], v[1]);
    reference_value result = truth >= 0 ? bits_of((uint64_t)truth) : float_result(p, f, r, v[0], v[1], v[2]);
    mpfr_clears(v[0], v[1], v[2], r, (mpfr_ptr)0);
    return result;
}

/* ---- Integers and bool -------------------------------------------------------------------------------------------------- */

static __int128 integer_value(ol_dtype dtype, uint64_t bits)
{
    int width = width_of(dtype);
    if (dtype == OL_BOOL)
        return bits != 0;
    if (is_signed(dtype) && bits >> (width - 1))
        return (__int128)bits - ((__int128)1 << width);
    return (__int128)bits;
}

/* Wraps; a bool is whether it is not 0. */
static uint64_t integer_bits(ol_dtype dtype, __int128 value)
{
    int width = width_of(dtype);
    if (dtype == OL_BOOL)
        return value != 0;
    return (uint64_t)(value & (((__int128)1 << width) - 1));
}

static __int128 floor_quotient(__int128 x, __int128 y)
{
    return y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0));
}

/* By the width or more, and by a negative amount, nothing is left but the fill. */
static __int128 shifted(int32_t p, ol_dtype dtype, __int128 x, __int128 amount)
{
    int out = amount < 0 || amount >= width_of(dtype);
    if (p == PRIMITIVE_left_shift)
        return out ? 0 : x * ((__int128)1 << amount);
    return out ? (x < 0 ? -1 : 0) : x >> amount;
}

/* x^n, its low 64 bits, by squares from the top bit of n; to a negative power the quotient toward zero, 0 of 0. */
static __int128 raised(__int128 x, __int128 n)
{
    if (n < 0)
        return x == 1 ? 1 : x == -1 ? (n % 2 ? -1 : 1) : 0;
    uint64_t r = 1, base = (uint64_t)x;
    for (int bit = 63; bit >= 0; bit--)
        r = r * r * (((uint64_t)n >> bit & 1) ? base : 1);
    return (__int128)r;
}

static reference_value integer_primitive(int32_t p, ol_dtype dtype, const reference_value *operands)
{
    __int128 v[3] = { 0 };
    for (int i = 0; i < ol_primitive_arity(p); i++)
        v[i] = integer_value(dtype, operands[i].bits);
    __int128 x = v[0], y = v[1], z = v[2], r;
    switch (p) {
    case PRIMITIVE_abs: r = x < 0 ? -x : x; break;
    case PRIMITIVE_negative: r = -x; break;
    case PRIMITIVE_sign: r = (x > 0) - (x < 0); break;
    case PRIMITIVE_square: r = (__int128)((unsigned __int128)(uint64_t)x * (uint64_t)x); break;     /* only the low bits count */
    case PRIMITIVE_floor: case PRIMITIVE_ceil: case PRIMITIVE_round: r = x; break;
    case PRIMITIVE_add: r = x + y; break;
    case PRIMITIVE_subtract: r = x - y; break;
    case PRIMITIVE_multiply: r = (__int128)((unsigned __int128)(uint64_t)x * (uint64_t)y); break;
    case PRIMITIVE_power: r = raised(x, y); break;
    case PRIMITIVE_floor_divide: r = floor_quotient(x, y); break;
    case PRIMITIVE_remainder: r = y == 0 ? 0 : x - y * floor_quotient(x, y); break;
    case PRIMITIVE_maximum: r = x > y ? x : y; break;
    case PRIMITIVE_minimum: r = x < y ? x : y; break;
    case PRIMITIVE_clip: r = x > y ? x : y; r = r < z ? r : z; break;
    case PRIMITIVE_bitwise_invert: r = dtype == OL_BOOL ? !x : ~x; break;
    case PRIMITIVE_bitwise_and: r = x & y; break;
    case PRIMITIVE_bitwise_or: r = x | y; break;
    case PRIMITIVE_bitwise_xor: r = x ^ y; break;
    case PRIMITIVE_left_shift: case PRIMITIVE_right_shift: r = shifted(p, dtype, x, y); break;
    case PRIMITIVE_equal: return bits_of(x == y);
    case PRIMITIVE_not_equal: return bits_of(x != y);
    case PRIMITIVE_less: return bits_of(x < y);
    case PRIMITIVE_less_equal: return bits_of(x <= y);
    case PRIMITIVE_greater: return bits_of(x > y);
    case PRIMITIVE_greater_equal: return bits_of(x >= y);
    case PRIMITIVE_logical_not: return bits_of(!x);
    case PRIMITIVE_logical_and: return bits_of(x && y);
    case PRIMITIVE_logical_or: return bits_of(x || y);
    case PRIMITIVE_isnan: case PRIMITIVE_isinf: return bits_of(0);
    case PRIMITIVE_isfinite: return bits_of(1);
    default: abort();
    }
    return bits_of(integer_bits(dtype, r));
}

/* What depends on a value that may be either of two may be anything. */
static int is_open(reference_value v)
{
    return v.uncertain || v.bits != v.other;
}

/* ---- Conversions --------------------------------------------------------------------------------------------------------- */

/* Truncated toward zero, saturated; NaN is 0. */
static uint64_t float_to_integer(const mpfr_t value, ol_dtype to)
{
    int width = width_of(to);
    __int128 low = is_signed(to) ? -((__int128)1 << (width - 1)) : 0, high = ((__int128)1 << (width - is_signed(to))) - 1, r;
    if (mpfr_nan_p(value))
        return 0;
    if (mpfr_inf_p(value) || mpfr_get_exp(value) > 100)
        r = mpfr_signbit(value) ? low : high;
    else if (mpfr_zero_p(value))
        r = 0;
    else {
        mpfr_t whole;
        mpfr_init2(whole, 64);                                       /* floats have 24 bits at most */
        mpfr_rint_trunc(whole, value, MPFR_RNDN);
        long exponent = mpfr_zero_p(whole) ? 0 : mpfr_get_exp(whole) > 40 ? mpfr_get_exp(whole) - 40 : 0;
        mpfr_mul_2si(whole, whole, -exponent, MPFR_RNDN);
        r = (__int128)mpfr_get_si(whole, MPFR_RNDN) * ((__int128)1 << exponent);
        mpfr_clear(whole);
    }
    return integer_bits(to, r < low ? low : r > high ? high : r);
}

static uint64_t integer_to_float(__int128 value, ol_dtype to)
{
    mpfr_t v;
    mpfr_init2(v, 64);
    if (value < 0)
        mpfr_set_ui(v, (unsigned long)-value, MPFR_RNDN), mpfr_neg(v, v, MPFR_RNDN);
    else
        mpfr_set_ui(v, (unsigned long)value, MPFR_RNDN);
    uint64_t bits = encode(format_of(to), v);
    mpfr_clear(v);
    return bits;
}

reference_value reference_astype(ol_dtype from, ol_dtype to, reference_value x)
{
    reference_value r;
    if (!is_float(from)) {
        __int128 value = integer_value(from, x.bits);
        r = bits_of(is_float(to) ? integer_to_float(value, to) : integer_bits(to, value));
    } else {
        mpfr_t value;
        mpfr_init2(value, 64);
        decode(value, format_of(from), x.bits);
        r = bits_of(is_float(to) ? encode(format_of(to), value) : to == OL_BOOL ? !mpfr_zero_p(value) : float_to_integer(value, to));
        mpfr_clear(value);
    }
    r.uncertain = is_open(x);
    return r;
}

reference_value reference_primitive(int32_t p, ol_dtype dtype, const reference_value *operands)
{
    reference_value r;
    mpfr_set_emin(mpfr_get_emin_min());                              /* so that only the formats' own ranges count */
    mpfr_set_emax(mpfr_get_emax_max());
    if (p == PRIMITIVE_where) {
        reference_value chosen = operands[operands[0].bits != 0 ? 1 : 2];
        r = reference_astype(dtype, dtype, chosen);                  /* a NaN becomes canonical */
    } else
        r = is_float(dtype) ? float_primitive(p, dtype, operands) : integer_primitive(p, dtype, operands);
    for (int i = 0; i < ol_primitive_arity(p); i++)
        r.uncertain |= is_open(operands[i]);
    return r;
}

/* ---- Graphs ---------------------------------------------------------------------------------------------------------------- */

typedef struct array {
    int32_t rank;
    int64_t dims[OL_MAX_RANK], n;
    reference_value *values;
} array;

static int join(array *into, const array *with)
{
    int32_t rank = into->rank > with->rank ? into->rank : with->rank;
    int64_t dims[OL_MAX_RANK];
    for (int32_t d = 0; d < rank; d++) {
        int32_t a = d - (rank - into->rank), b = d - (rank - with->rank);
        int64_t x = a < 0 ? 1 : into->dims[a], y = b < 0 ? 1 : with->dims[b];
        if (x != y && x != 1 && y != 1)
            return 0;
        dims[d] = x == 1 ? y : x;
    }
    into->rank = rank;
    memcpy(into->dims, dims, sizeof *dims * (size_t)rank);
    return 1;
}

static int take_values(array *a)
{
    a->n = 1;
    for (int32_t d = 0; d < a->rank; d++)
        a->n *= a->dims[d];
    a->values = calloc((size_t)a->n + 1, sizeof *a->values);
    return a->values != NULL;
}

/* The element of `from` that stands at place `index` (row-major) of `of` after broadcasting. */
static reference_value broadcast_element(const array *from, const array *of, int64_t index)
{
    int64_t at = 0, step = 1;
    for (int32_t d = of->rank - 1; d >= 0; d--) {
        int32_t mine = d - (of->rank - from->rank);
        int64_t i = index % of->dims[d];
        index /= of->dims[d];
        if (mine >= 0) {
            at += (from->dims[mine] == 1 ? 0 : i) * step;
            step *= from->dims[mine];
        }
    }
    return from->values[at];
}

static int load_input(array *a, const ol_tensor *t)
{
    size_t size = ol_dtype_size(t->dtype);
    a->rank = t->rank;
    memcpy(a->dims, t->shape, sizeof t->shape);
    if (!take_values(a))
        return 0;
    for (int64_t i = 0; i < a->n; i++) {
        int64_t rest = i, at = 0;
        for (int32_t d = t->rank - 1; d >= 0; d--) {
            at += rest % t->shape[d] * t->strides[d];
            rest /= t->shape[d];
        }
        memcpy(&a->values[i].bits, (const char *)t->data + at * (int64_t)size, size);
        if (t->dtype == OL_BOOL)
            a->values[i].bits = a->values[i].bits != 0;              /* any other byte is true */
        a->values[i].other = a->values[i].bits;
    }
    return 1;
}

static int run_node(const graph *g, const node *n, array *arrays, array *result)
{
    if (n->kind == NODE_BROADCAST_TO) {
        result->rank = g->shapes[n->payload].rank;
        memcpy(result->dims, g->shapes[n->payload].dims, sizeof result->dims);
    }
    for (int k = 0; k < n->n_operands; k++)
        if (!join(result, &arrays[n->operands[k]]))
            return 0;
    if (!take_values(result))
        return 0;
    for (int64_t i = 0; i < result->n; i++) {
        reference_value operands[3] = { 0 };
        ol_dtype dtype = OL_BOOL;
        int n_data = n->kind == NODE_BROADCAST_LIKE ? 1 : n->n_operands;
        for (int k = 0; k < n_data; k++) {
            operands[k] = broadcast_element(&arrays[n->operands[k]], result, i);
            dtype = graph_dtype(g, n->operands[k]);
        }
        if (n->kind == NODE_CONSTANT)
            result->values[i] = bits_of(n->payload);
        else if (n->kind == NODE_PRIMITIVE)
            result->values[i] = reference_primitive(n->primitive, dtype, operands);
        else
            result->values[i] = reference_astype(dtype, (ol_dtype)n->dtype, operands[0]);
    }
    return 1;
}

int reference_run(const graph *g, const ol_tensor *inputs, reference_value **results)
{
    array *arrays = calloc(g->n_nodes + 1, sizeof *arrays);
    int ok = arrays != NULL;
    for (size_t i = 0; ok && i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        ok = n->kind == NODE_INPUT ? load_input(&arrays[i], &inputs[n->payload]) : run_node(g, n, arrays, &arrays[i]);
    }
    for (int32_t o = 0; ok && o < g->n_outputs; o++) {
        const array *a = &arrays[g->outputs[o]];
        results[o] = malloc(((size_t)a->n + 1) * sizeof *results[o]);
        ok = results[o] != NULL;
        if (ok)
            memcpy(results[o], a->values, (size_t)a->n * sizeof *results[o]);
    }
    for (size_t i = 0; arrays && i < g->n_nodes; i++)
        free(arrays[i].values);
    free(arrays);
    return ok;
}

void reference_end(void)
{
    mpfr_free_cache();
}
