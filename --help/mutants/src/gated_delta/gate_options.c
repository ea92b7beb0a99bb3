/* Whether gate options mean something. What a kind has no use for must be zero: silence about a lower bound beside a softplus, say,
 * would let a model run with gates that it was not trained with.
 *
 * Numbers are compared as bits, so that neither a NaN nor the host's floating-point state matters. */
#include "gates.h"

#include "dtype.h"
#include "status.h"

#include <string.h>

#define DOUBLE_INFINITY_BITS INT64_C(0x7ff0000000000000)

/* Doubles in the order of these numbers; -0 is +0. NaN lies beyond the infinities, on either side. */
static int64_t order_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? INT64_MIN - bits : bits;
}

static int is_nan(double x) { return order_of(x) > DOUBLE_INFINITY_BITS || order_of(x) < -DOUBLE_INFINITY_BITS; }

static const char *const kind_names[] = { "softplus", "lower bound", "plain lower bound", "clamped" };

/* `given` is what stands there, `expected` what may. */
static ol_status refuse(const char *operation, const char *field, long given, const char *expected, ol_error *error)
{
    return fail(error, OL_ERROR_ARGUMENT, operation, "%s is %ld; expected %s", field, given, expected);
}

static ol_status refuse_use(const char *operation, const char *field, ol_gate_kind kind, const char *where, ol_error *error)
{
    return fail(error, OL_ERROR_ARGUMENT, operation, "%s is given, but the gate's kind is %s; expected 0, or %s", field, kind_names[kind], where);
}

static ol_status check_choices(const ol_gate_options *o, const char *operation, ol_error *error)
{
    if ((unsigned)o->kind > OL_GATE_CLAMPED)
        return refuse(operation, "kind", (long)o->kind, "a gate kind, OL_GATE_SOFTPLUS to OL_GATE_CLAMPED", error);
    if ((unsigned)o->rate > OL_GATE_RATE_NEGATED)
        return refuse(operation, "rate", (long)o->rate, "OL_GATE_RATE_LOGARITHM or OL_GATE_RATE_NEGATED", error);
    if ((unsigned)o->sum > OL_GATE_SUM_FLOAT32)
        return refuse(operation, "sum", (long)o->sum, "OL_GATE_SUM_PROMOTED or OL_GATE_SUM_FLOAT32", error);
    if ((unsigned)o->output > OL_GATE_LOG_DECAY_AND_DECAY)
        return refuse(operation, "output", (long)o->output, "OL_GATE_DECAY, OL_GATE_LOG_DECAY or OL_GATE_LOG_DECAY_AND_DECAY", error);
    if ((unsigned)o->beta > OL_GATE_BETA_NONE)
        return refuse(operation, "beta", (long)o->beta, "OL_GATE_BETA_SIGMOID to OL_GATE_BETA_NONE", error);
    return OL_OK;
}

static ol_status check_beta_dtype(const ol_gate_options *o, ol_dtype dtype, const char *field, const char *operation, ol_error *error)
{
    if (dtype == 0)
        return OL_OK;
    if (!dtype_valid(dtype) || !dtype_is_float(dtype))
        return fail(error, OL_ERROR_DTYPE, operation, "%s is %s; expected 0, float32, float16 or bfloat16", field,
                    dtype_valid(dtype) ? ol_dtype_name(dtype) : "no dtype");
    if (o->beta == OL_GATE_BETA_NONE)
        return fail(error, OL_ERROR_ARGUMENT, operation, "%s is %s, but beta is OL_GATE_BETA_NONE; expected 0", field, ol_dtype_name(dtype));
    return OL_OK;
}

static ol_status check_lower_bound(const ol_gate_options *o, const char *operation, ol_error *error)
{
    /* As it enters the graph: a subnormal double is no bound. */
    uint64_t bits = dtype_from_double(OL_FLOAT32, o->lower_bound);
    if (bits <= 0x80000000u || bits >= 0xff800000u)
        return fail(error, OL_ERROR_ARGUMENT, operation, "lower_bound is %g; expected a finite float32 below 0 for the kind %s", o->lower_bound,
                    kind_names[o->kind]);
    return OL_OK;
}

static ol_status check_limits(const ol_gate_options *o, const char *operation, ol_error *error)
{
    if (is_nan(o->interval_low) || is_nan(o->interval_high) ||
        (!gate_is_zero(o->interval_high) && order_of(o->interval_low) > order_of(o->interval_high)))
        return fail(error, OL_ERROR_ARGUMENT, operation, "interval_low is %g and interval_high %g; expected numbers, the low one not above the high one",
                    o->interval_low, o->interval_high);
    return OL_OK;
}

ol_status gate_options_check(const ol_gate_options *o, const char *operation, ol_error *error)
{
    ol_status status = check_choices(o, operation, error);
    if (status != OL_OK)
        return status;
    int bounded = o->kind == OL_GATE_LOWER_BOUND || o->kind == OL_GATE_LOWER_BOUND_PLAIN;
    if (!gate_has_input(o, GATE_RATE) && o->rate != 0)
        return refuse_use(operation, "rate", o->kind, "a kind with A_log", error);
    if (!gate_has_input(o, GATE_RATE) && o->finite_rate)
        return refuse_use(operation, "finite_rate", o->kind, "a kind with A_log", error);
    if (bounded && o->skip_softplus)
        return refuse_use(operation, "skip_softplus", o->kind, "softplus or clamped", error);
    if (!bounded && !gate_is_zero(o->lower_bound))
        return refuse_use(operation, "lower_bound", o->kind, "a kind with a lower bound", error);
    if (o->kind != OL_GATE_CLAMPED && !(gate_is_zero(o->interval_low) && gate_is_zero(o->interval_high)))
        return refuse_use(operation, gate_is_zero(o->interval_low) ? "interval_high" : "interval_low", o->kind, "clamped", error);
    if (bounded && (status = check_lower_bound(o, operation, error)) != OL_OK)
        return status;
    if (o->kind == OL_GATE_CLAMPED && (status = check_limits(o, operation, error)) != OL_OK)
        return status;
    status = check_beta_dtype(o, o->beta_rounding, "beta_rounding", operation, error);
    return status == OL_OK ? check_beta_dtype(o, o->beta_dtype, "beta_dtype", operation, error) : status;
}
