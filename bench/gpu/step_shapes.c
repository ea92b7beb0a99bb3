/* The gated-delta step in a shape of launch of one's choice, which the library's interface does not offer: a shared object with the
 * library in it, that bench_gated_delta_gpu.py --shapes loads. */
#include "cuda/step.h"

/* In the current context. */
ol_status shapes_layer(const ol_gated_delta_options *options, ol_gated_delta **layer, ol_error *error)
{
    ol_device *device;
    ol_status status = ol_device_cuda_current(NULL, &device, error);
    if (status != OL_OK)
        return status;
    status = ol_gated_delta_create(device, options, layer, error);
    ol_device_destroy(device);
    return status;
}

/* Rows of a warp, or 0 where there is no such variant. */
int shapes_rows(const ol_gated_delta_options *options, int variant)
{
    step_variant variants[STEP_VARIANTS];
    ol_gated_delta_options filled = *options;
    if (!filled.state_dtype)
        filled.state_dtype = OL_FLOAT32;
    step_variants(&filled, variants);
    return variant < STEP_VARIANTS && variants[variant].lanes ? step_warp_rows(&variants[variant]) : 0;
}

/* The one that the library takes. */
ol_status shapes_chosen(const ol_gated_delta *layer, const ol_gated_delta_arguments *arguments, step_shape *chosen, ol_error *error)
{
    delta_call call;
    ol_status status = delta_check(layer, arguments, &call, error);
    if (status == OL_OK)
        *chosen = cuda_delta_shape(&call);
    return status;
}

ol_status shapes_step(const ol_gated_delta *layer, ol_stream stream, const ol_gated_delta_arguments *arguments, const step_shape *chosen, ol_error *error)
{
    delta_call call;
    ol_status status = delta_check(layer, arguments, &call, error);
    return status == OL_OK ? cuda_delta_step_shaped(&call, stream, chosen, error) : status;
}
