/* See gate_reference.h. */
#include "gate_reference.h"

#include "reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

typedef struct number { ol_dtype dtype; uint64_t bits; } number;

/* MPFR takes microseconds a function and tests ask for the same ones again (softplus of every a, for each kind): float32 results are
 * kept, by operand. */
enum { KEPT = 1 << 20 };
typedef struct kept { uint32_t used, name, operand, result; } kept;
static kept *cache;

static number astype(number x, ol_dtype dtype)
{
    return (number){ dtype, reference_astype(x.dtype, dtype, (reference_value){ x.bits, x.bits, 0 }).bits };
}

static uint64_t evaluate(const char *name, ol_dtype dtype, uint64_t x, uint64_t y)
{
    const reference_value operands[] = { { x, x, 0 }, { y, y, 0 } };
    reference_value r = reference_primitive(ol_primitive_find(name), dtype, operands);
    assert_true(r.bits == r.other && !r.uncertain);
    return r.bits;
}

static number unary(const char *name, number x)
{
    uint32_t id = (uint32_t)name[0] << 8 | (uint32_t)name[1], operand = (uint32_t)x.bits;
    if (x.dtype != OL_FLOAT32)
        return (number){ x.dtype, evaluate(name, x.dtype, x.bits, 0) };
    if (!cache)
        assert_non_null(cache = calloc(KEPT, sizeof *cache));
    kept *slot = &cache[((operand * 2654435761u) ^ (id * 40503u)) % KEPT];
    if (!slot->used || slot->name != id || slot->operand != operand)
        *slot = (kept){ 1, id, operand, (uint32_t)evaluate(name, OL_FLOAT32, operand, 0) };
    return (number){ OL_FLOAT32, slot->result };
}

static number binary(const char *name, number x, number y)
{
    ol_dtype dtype = ol_promote(x.dtype, y.dtype);
    return (number){ dtype, evaluate(name, dtype, astype(x, dtype).bits, astype(y, dtype).bits) };
}

/* Of a number that float32 holds. */
static number constant(double value, ol_dtype dtype)
{
    assert_true((double)(float)value == value || isnan(value));
    return astype((number){ OL_FLOAT32, f32_bits((float)value) }, dtype);
}

ol_dtype gate_beta_dtype(const ol_gate_options *o, ol_dtype b)
{
    return o->beta_dtype ? o->beta_dtype : o->beta_rounding ? o->beta_rounding : b;
}

static uint64_t beta_of(const ol_gate_options *o, number b)
{
    ol_dtype rounding = o->beta_rounding ? o->beta_rounding : b.dtype;
    number beta = b;
    if (o->beta != OL_GATE_BETA_RAW) {
        beta = unary("sigmoid", astype(b, ol_promote(b.dtype, rounding)));
        if (o->beta == OL_GATE_BETA_DOUBLED)
            beta = binary("add", beta, beta);
    }
    return astype(astype(beta, rounding), gate_beta_dtype(o, b.dtype)).bits;
}

static number rate_of(const ol_gate_options *o, number stored)
{
    const number most = constant(FLT_MAX, OL_FLOAT32);
    number rate = astype(stored, OL_FLOAT32);
    rate = o->rate == OL_GATE_RATE_NEGATED ? unary("negative", rate) : unary("exp", rate);
    return o->finite_rate && f32_of(rate.bits) > FLT_MAX ? most : rate;
}

static number log_decay_of(const ol_gate_options *o, number x, number stored)
{
    number y;
    switch (o->kind) {
    case OL_GATE_LOWER_BOUND:
        x = binary("multiply", rate_of(o, stored), x);
        /* fall through */
    case OL_GATE_LOWER_BOUND_PLAIN:
        return binary("multiply", unary("sigmoid", x), constant(o->lower_bound, OL_FLOAT32));
    case OL_GATE_CLAMPED:
    case OL_GATE_SOFTPLUS:
        break;
    }
    y = o->skip_softplus ? x : unary("softplus", x);
    if (o->kind == OL_GATE_CLAMPED) {
        y = binary("maximum", y, constant(o->interval_low, y.dtype));
        y = binary("minimum", y, constant(o->interval_high ? o->interval_high : (double)INFINITY, y.dtype));
    }
    return unary("negative", binary("multiply", rate_of(o, stored), y));
}

gate_result gate_reference(const ol_gate_options *o, const gate_dtypes *d, const gate_element *e)
{
    gate_result result = { 0, 0, 0 };
    number a = { d->a, e->a }, bias = { d->bias, e->bias };
    if (o->beta != OL_GATE_BETA_NONE)
        result.beta = beta_of(o, (number){ d->b, e->b });
    if (o->sum == OL_GATE_SUM_FLOAT32) {
        a = astype(a, OL_FLOAT32);
        bias = astype(bias, OL_FLOAT32);
    }
    number gate = log_decay_of(o, binary("add", a, bias), (number){ d->rate, e->rate });
    assert_int_equal(gate.dtype, OL_FLOAT32);
    result.log_decay = gate.bits;
    result.decay = unary("exp", gate).bits;
    return result;
}

/* ---- Without roundings ------------------------------------------------------------------------------------------------ */

static long double softplus(long double x) { return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)); }
static long double sigmoid(long double x) { return x >= 0 ? 1 / (1 + expl(-x)) : expl(x) / (1 + expl(x)); }

/* u: half an ulp of a float32 near 1, the relative error of one rounding. Below the least normal float32 a rounding is off by half the
 * least subnormal instead, which the next factor multiplies. */
gate_exact gate_exact_log_decay(const ol_gate_options *o, float x, long double rate_logarithm)
{
    const long double u = 0x1p-24L, tiny = 0x1p-150L, slack = 1 + 0x1p-20L;
    long double rate = expl(rate_logarithm), y, lb = (long double)o->lower_bound;
    switch (o->kind) {
    case OL_GATE_LOWER_BOUND: {
        long double z = rate * x, d = 2 * u * fabsl(z) + tiny;               /* exp and the product: z is off by d */
        long double s = sigmoid(z), worst = fmaxl(fabsl(sigmoid(z + d) - s), fabsl(s - sigmoid(z - d)));
        return (gate_exact){ lb * s, (-lb * (worst + 2 * u * s + tiny) + tiny) * slack };
    }
    case OL_GATE_LOWER_BOUND_PLAIN:
        y = sigmoid(x);
        return (gate_exact){ lb * y, (-lb * (2 * u * y + tiny) + tiny) * slack };
    case OL_GATE_CLAMPED:
    case OL_GATE_SOFTPLUS:
        break;
    }
    y = o->skip_softplus ? x : softplus(x);
    if (o->kind == OL_GATE_CLAMPED)
        y = fminl(fmaxl(y, o->interval_low), o->interval_high ? (long double)o->interval_high : (long double)INFINITY);
    return (gate_exact){ -rate * y, (3 * u * rate * fabsl(y) + tiny * (rate + fabsl(y)) + tiny) * slack };
}

void gate_reference_end(void)
{
    free(cache);
    cache = NULL;
    reference_end();
}
