/* The two composites of onelaunch.h: the gates (gates.c) with every option at its default. */
#include "gates.h"

ol_status ol_gated_delta_rates_compile(ol_device *device, ol_dtype update_logits, ol_dtype decay_interval_inputs, ol_dtype decay_rate_logarithm,
                                       ol_dtype decay_interval_bias, ol_composite **composite, ol_error *error)
{
    const ol_gate_options options = { .beta = OL_GATE_BETA_SIGMOID };
    const ol_dtype dtypes[] = { update_logits, decay_interval_inputs, decay_rate_logarithm, decay_interval_bias };
    return gate_compile(device, &options, dtypes, "gated_delta_rates", composite, error);
}

ol_status ol_gated_delta_decay_compile(ol_device *device, ol_dtype decay_interval_inputs, ol_dtype decay_rate_logarithm,
                                       ol_dtype decay_interval_bias, ol_composite **composite, ol_error *error)
{
    const ol_gate_options options = { .beta = OL_GATE_BETA_NONE };
    const ol_dtype dtypes[] = { OL_BOOL, decay_interval_inputs, decay_rate_logarithm, decay_interval_bias };
    return gate_compile(device, &options, dtypes, "gated_delta_decay", composite, error);
}
