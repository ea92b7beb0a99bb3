/* The gates of gated-delta layers as graphs on the public interface. Formulas: Yang et al., "Gated Delta Networks" (2024), eq. 10, with the
 * decay parametrised as in Mamba2 (Dao and Gu, "Transformers are SSMs", 2024), whose dt is clipped after the softplus; the lower bound
 * is Kimi Delta Attention's safe gate. softplus is logaddexp(x, 0), with no threshold.
 *
 * Choices that do not change a bit are not made here: a rate stored negated keeps its sign until a multiplication, since rounding is
 * symmetric, so both ways to store a rate give equal bits where the stored one is the rounded exponential. */
#include "gates.h"

#include "dtype.h"
#include "status.h"

#include <float.h>
#include <math.h>

int gate_has_input(const ol_gate_options *o, enum gate_input input)
{
    return input == GATE_B ? o->beta != OL_GATE_BETA_NONE : input == GATE_RATE ? o->kind != OL_GATE_LOWER_BOUND_PLAIN : 1;
}

/* To a dtype that it may have already: no node then, so that the default is the graph that engines write. */
static ol_value brought_to(ol_graph *g, ol_value x, ol_dtype dtype)
{
    return ol_value_dtype(g, x) == dtype ? x : ol_astype(g, x, dtype);
}

ol_value gate_update_rate(ol_graph *g, const ol_gate_options *o, ol_value b)
{
    ol_dtype from = ol_value_dtype(g, b), rounded = o->beta_rounding ? o->beta_rounding : from, stored = o->beta_dtype ? o->beta_dtype : rounded;
    ol_value beta;
    if (o->beta == OL_GATE_BETA_RAW) {
        beta = ol_astype(g, b, rounded);               /* a copy where it has that dtype: an output is a node */
    } else {
        beta = ol_sigmoid(g, brought_to(g, b, ol_promote(from, rounded)));
        if (o->beta == OL_GATE_BETA_DOUBLED)
            beta = ol_multiply(g, beta, ol_constant(g, ol_value_dtype(g, beta), 2.0));
        beta = brought_to(g, beta, rounded);
    }
    return brought_to(g, beta, stored);
}

static ol_value interval_input(ol_graph *g, const ol_gate_options *o, ol_value a, ol_value bias)
{
    if (o->sum == OL_GATE_SUM_FLOAT32) {
        a = brought_to(g, a, OL_FLOAT32);
        bias = brought_to(g, bias, OL_FLOAT32);
    }
    return ol_add(g, a, bias);
}

/* The rate times y, or minus it. */
static ol_value rate_times(ol_graph *g, const ol_gate_options *o, ol_value stored, ol_value y, int minus)
{
    int is_negated = o->rate == OL_GATE_RATE_NEGATED;
    ol_value rate = brought_to(g, stored, OL_FLOAT32);
    if (!is_negated)
        rate = ol_exp(g, rate);
    if (o->finite_rate)
        rate = is_negated ? ol_maximum(g, rate, ol_constant(g, OL_FLOAT32, -FLT_MAX)) : ol_minimum(g, rate, ol_constant(g, OL_FLOAT32, FLT_MAX));
    ol_value product = ol_multiply(g, rate, y);
    return is_negated == minus ? product : ol_negative(g, product);
}

static ol_value log_decay(ol_graph *g, const ol_gate_options *o, ol_value x, ol_value rate)
{
    ol_dtype dtype = ol_value_dtype(g, x);
    switch (o->kind) {
    case OL_GATE_LOWER_BOUND:
        x = rate_times(g, o, rate, x, 0);
        /* fall through */
    case OL_GATE_LOWER_BOUND_PLAIN:
        return ol_multiply(g, ol_constant(g, OL_FLOAT32, o->lower_bound), ol_sigmoid(g, x));
    case OL_GATE_CLAMPED:
    case OL_GATE_SOFTPLUS:
        break;
    }
    if (!o->skip_softplus)
        x = ol_softplus(g, x);
    if (o->kind == OL_GATE_CLAMPED)
        x = ol_clip(g, x, ol_constant(g, dtype, o->interval_low), ol_constant(g, dtype, gate_is_zero(o->interval_high) ? (double)INFINITY : o->interval_high));
    return rate_times(g, o, rate, x, 1);
}

static int build_gates(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    const ol_gate_options *o = user;
    ol_value inputs[GATE_INPUTS] = { { 0, 0 } };
    for (int i = 0, n = 0; i < GATE_INPUTS; i++)
        if (gate_has_input(o, (enum gate_input)i))
            inputs[i] = in[n++];
    if (gate_has_input(o, GATE_B))
        *out++ = gate_update_rate(g, o, inputs[GATE_B]);
    ol_value gate = log_decay(g, o, interval_input(g, o, inputs[GATE_A], inputs[GATE_BIAS]), inputs[GATE_RATE]);
    if (o->output != OL_GATE_DECAY)
        *out++ = gate;
    if (o->output != OL_GATE_LOG_DECAY)
        *out = ol_exp(g, gate);
    return 0;
}

ol_status gate_compile(ol_device *device, const ol_gate_options *o, const ol_dtype dtypes[GATE_INPUTS], const char *name,
                       ol_composite **composite, ol_error *error)
{
    static const char *const input_names[GATE_INPUTS] = { "update_logits", "decay_interval_inputs", "decay_rate_logarithm", "decay_interval_bias" };
    ol_gate_options kept = *o;
    ol_builder builder = { .build = build_gates, .user = &kept, .name = name };
    ol_dtype used[GATE_INPUTS];
    for (int i = 0; i < GATE_INPUTS; i++) {
        if (!gate_has_input(o, (enum gate_input)i))
            continue;
        if (!dtype_valid(dtypes[i]) || !dtype_is_float(dtypes[i]))
            return fail(error, OL_ERROR_DTYPE, name, "%s is %s; expected float32, float16 or bfloat16",
                        i == GATE_RATE && o->rate == OL_GATE_RATE_NEGATED ? "decay_rate" : input_names[i],
                        dtype_valid(dtypes[i]) ? ol_dtype_name(dtypes[i]) : "no dtype");
        used[builder.n_inputs++] = dtypes[i];
    }
    builder.n_outputs = gate_has_input(o, GATE_B) + 1 + (o->output == OL_GATE_LOG_DECAY_AND_DECAY);
    return ol_compile(device, &builder, used, composite, error);
}

ol_status ol_gated_delta_gates_compile(ol_device *device, const ol_gate_options *options, ol_dtype update_logits, ol_dtype decay_interval_inputs,
                                       ol_dtype decay_rate, ol_dtype decay_interval_bias, ol_composite **composite, ol_error *error)
{
    static const char name[] = "gated_delta_gates";
    const ol_gate_options zeroed = { 0 };
    const ol_gate_options *o = options ? options : &zeroed;
    const ol_dtype dtypes[GATE_INPUTS] = { update_logits, decay_interval_inputs, decay_rate, decay_interval_bias };
    ol_status status = gate_options_check(o, name, error);
    return status == OL_OK ? gate_compile(device, o, dtypes, name, composite, error) : status;
}
