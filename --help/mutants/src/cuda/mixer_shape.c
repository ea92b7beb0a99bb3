/* How a mixer step is divided among clusters, blocks and warps. Only speed depends on it.
 *
 * The rule is the step's (step_shape.c) for how many warps a block has, within what a cluster holds: 8 blocks for the value heads of a key head, by
 * the parts that each is divided into. Heads that do not fit are done one after the other. */
#include "cuda/mixer.h"

#define MOST_ELEMENTS 32                     /* of a thread: in registers, beside what the convolution needs */

int mixer_has_clusters(const cuda_device *device) { return device->capability >= 90 && device->driver->cuLaunchKernelEx; }

static uint32_t warps_of(const step_variant *v, int value_dim)
{
    uint32_t rows = (uint32_t)(step_warp_rows(v) * v->groups);
    return ((uint32_t)value_dim + rows - 1) / rows;
}

uint32_t mixer_parts(const step_variant *v, int value_dim, uint32_t most_warps)
{
    return (warps_of(v, value_dim) + most_warps - 1) / most_warps;
}

void mixer_variants(const ol_gated_delta_options *o, int has_clusters, step_variant variants[STEP_VARIANTS])
{
    step_variants_within(o, MOST_ELEMENTS, variants);
    for (int i = 0; i < STEP_VARIANTS; i++) {
        step_variant *v = &variants[i];
        if (!v->lanes)
            continue;
        uint32_t parts = mixer_parts(v, o->value_dim, STEP_MOST_WARPS);
        if (has_clusters ? parts > MIXER_MOST_BLOCKS : i == STEP_FEW)
            *v = (step_variant){ 0 };
        else if (!has_clusters)
            v->groups = (int)parts;
    }
}

mixer_shape mixer_choose(const step_variant variants[STEP_VARIANTS], const function_limits limits[STEP_VARIANTS], int value_dim, int ratio, int has_clusters,
                         int is_aligned, int64_t n_items)
{
    int variant = is_aligned ? STEP_MANY : STEP_ANY;
    int64_t n_multiprocessors = limits[STEP_ANY].n_multiprocessors, n_heads = n_items * ratio;
    if (is_aligned && variants[STEP_FEW].lanes && n_heads <= STEP_FEW_WARPS_PER_MULTIPROCESSOR * n_multiprocessors / warps_of(&variants[STEP_FEW], value_dim))
        variant = STEP_FEW;
    const step_variant *v = &variants[variant];
    uint32_t most = step_most_warps(&limits[variant], STEP_MOST_WARPS), n_warps = warps_of(v, value_dim);
    while (has_clusters && most > 2 && n_heads < n_multiprocessors && n_heads * mixer_parts(v, value_dim, most) * 4 < 3 * n_multiprocessors &&
           mixer_parts(v, value_dim, most / 2) <= MIXER_MOST_BLOCKS)
        most /= 2;
    mixer_shape s = { .variant = variant, .n_parts = mixer_parts(v, value_dim, most), .n_heads = 1 };
    s.n_warps = (n_warps + s.n_parts - 1) / s.n_parts;
    for (uint32_t n = 1; has_clusters && n <= (uint32_t)ratio && n * s.n_parts <= MIXER_MOST_BLOCKS; n++)
        if ((uint32_t)ratio % n == 0)
            s.n_heads = n;
    return s;
}
