/* The gated-delta step and the mixer step in a shape of launch of one's choice, which the library's interface does not offer: a shared object
 * with the library in it, that bench_gated_delta_gpu.py --shapes and bench_mixer_gpu.py --shapes load. */
#include "cuda/mixer.h"

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

/* ---- Mixers ---- */

ol_status shapes_mixer(const ol_gated_delta_mixer_options *options, ol_gated_delta_mixer **mixer, ol_error *error)
{
    ol_device *device;
    ol_status status = ol_device_cuda_current(NULL, &device, error);
    if (status != OL_OK)
        return status;
    status = ol_gated_delta_mixer_create(device, options, mixer, error);
    ol_device_destroy(device);
    return status;
}

/* Shapes that the mixer can be run in, at most so many; their number. Of MANY and FEW, and of those that decode. */
int shapes_of_mixer(const ol_gated_delta_mixer *m, mixer_shape *shapes, int most)
{
    int has_clusters = mixer_has_clusters((const cuda_device *)m->device), n = 0;
    step_variant variants[STEP_VARIANTS];
    mixer_variants(&m->options.recurrence, has_clusters, variants);
    for (int v = 0; v < STEP_VARIANTS; v++)
        for (uint32_t warps = 1; v != STEP_ANY && variants[v].lanes && warps <= 8; warps++) {
            int decodes = v > STEP_ANY;
            uint32_t parts = mixer_parts(&variants[v], m->options.recurrence.value_dim, warps), ratio = (uint32_t)m->layer->ratio;
            if (parts > (has_clusters ? MIXER_MOST_BLOCKS : 1) || (warps > 1 && parts == mixer_parts(&variants[v], m->options.recurrence.value_dim, warps - 1)))
                continue;
            for (uint32_t heads = decodes ? ratio : 1; heads <= ratio && (has_clusters || heads == 1) && n < most; heads++)
                if (ratio % heads == 0 && heads * parts <= MIXER_MOST_BLOCKS)
                    shapes[n++] = (mixer_shape){ v, parts, warps, heads };
        }
    return n;
}

ol_status shapes_mixer_chosen(const ol_gated_delta_mixer *mixer, const ol_gated_delta_mixer_arguments *arguments, mixer_shape *chosen, ol_error *error)
{
    mixer_call call;
    ol_status status = mixer_check(mixer, arguments, &call, error);
    if (status == OL_OK)
        *chosen = cuda_mixer_shape(&call);
    return status;
}

ol_status shapes_mixer_step(const ol_gated_delta_mixer *mixer, ol_stream stream, const ol_gated_delta_mixer_arguments *arguments, const mixer_shape *chosen,
                            ol_error *error)
{
    mixer_call call;
    ol_status status = mixer_check(mixer, arguments, &call, error);
    return status == OL_OK ? cuda_mixer_step_shaped(&call, stream, chosen, error) : status;
}
