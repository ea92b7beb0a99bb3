/* The rates of a gated-delta layer, as graphs on the public interface. Formulas: Yang et al., "Gated Delta Networks" (2024),
 * eq. 10, with the decay parametrised as in Mamba2; softplus is logaddexp(x, 0), with no threshold. */
#include "onelaunch.h"

#include "dtype.h"
#include "status.h"

/* exp(-(exp(float32(A_log)) * softplus(a + dt_bias))). The rate exp(A_log) is taken in float32, whatever A_log is stored in. */
static ol_value decay_factor(ol_graph *g, ol_value interval_input, ol_value rate_logarithm, ol_value interval_bias)
{
    ol_value interval = ol_softplus(g, ol_add(g, interval_input, interval_bias));
    ol_value rate = ol_exp(g, ol_astype(g, rate_logarithm, OL_FLOAT32));
    return ol_exp(g, ol_negative(g, ol_multiply(g, rate, interval)));
}

static int build_rates(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_sigmoid(g, in[0]);
    out[1] = decay_factor(g, in[1], in[2], in[3]);
    return 0;
}

static int build_decay(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = decay_factor(g, in[0], in[1], in[2]);
    return 0;
}

static ol_status check_floats(const char *operation, const char *const *names, const ol_dtype *dtypes, int n, ol_error *error)
{
    for (int i = 0; i < n; i++)
        if (!dtype_valid(dtypes[i]) || !dtype_is_float(dtypes[i]))
            return fail(error, OL_ERROR_DTYPE, operation, "%s is %s; expected float32, float16 or bfloat16", names[i],
                        dtype_valid(dtypes[i]) ? ol_dtype_name(dtypes[i]) : "no dtype");
    return OL_OK;
}

static const char *const input_names[] = { "update_logits", "decay_interval_inputs", "decay_rate_logarithm", "decay_interval_bias" };

ol_status ol_gated_delta_rates_compile(ol_device *device, ol_dtype update_logits, ol_dtype decay_interval_inputs, ol_dtype decay_rate_logarithm,
                                       ol_dtype decay_interval_bias, ol_composite **composite, ol_error *error)
{
    const ol_dtype dtypes[] = { update_logits, decay_interval_inputs, decay_rate_logarithm, decay_interval_bias };
    const ol_builder builder = { .build = build_rates, .n_inputs = 4, .n_outputs = 2, .name = "gated_delta_rates" };
    ol_status status = check_floats(builder.name, input_names, dtypes, 4, error);
    return status == OL_OK ? ol_compile(device, &builder, dtypes, composite, error) : status;
}

ol_status ol_gated_delta_decay_compile(ol_device *device, ol_dtype decay_interval_inputs, ol_dtype decay_rate_logarithm,
                                       ol_dtype decay_interval_bias, ol_composite **composite, ol_error *error)
{
    const ol_dtype dtypes[] = { decay_interval_inputs, decay_rate_logarithm, decay_interval_bias };
    const ol_builder builder = { .build = build_decay, .n_inputs = 3, .n_outputs = 1, .name = "gated_delta_decay" };
    ol_status status = check_floats(builder.name, input_names + 1, dtypes, 3, error);
    return status == OL_OK ? ol_compile(device, &builder, dtypes, composite, error) : status;
}
