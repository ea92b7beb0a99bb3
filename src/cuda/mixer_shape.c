/* How a mixer step is divided among clusters, blocks and warps. Only speed depends on it.
 *
 * The rule is the step's (step_shape.c) for how many warps a block has, within what a cluster holds: 8 blocks for the value heads of a key head, by
 * the parts that each is divided into. Heads that do not fit are done one after the other, but where there is one token a sequence: that has kernels of
 * its own, which have all value heads of a key head side by side. */
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

/* Clusters of all value heads of a key head, or none. Beside a state's registers a thread has what step_shape.c counts with: the convolution comes before
 * the state is widened, and blocks may have twice the warps. */
static void take_decode(const ol_gated_delta_options *o, const step_variant of_step[STEP_VARIANTS], step_variant variants[STEP_VARIANTS])
{
    uint32_t ratio = (uint32_t)(o->value_heads / o->key_heads);
    for (int i = STEP_DECODE_MANY; i <= STEP_DECODE_FEW; i++) {
        const step_variant *v = &of_step[i];
        if (!v->lanes || ratio > MIXER_MOST_BLOCKS || mixer_parts(v, o->value_dim, STEP_MOST_WARPS) * ratio > MIXER_MOST_BLOCKS)
            continue;
        variants[i] = *v;
        variants[i].n_blocks = v->n_blocks * STEP_DECODE_WARPS / STEP_MOST_WARPS;
    }
}

void mixer_variants(const ol_gated_delta_options *o, int has_clusters, step_variant variants[STEP_VARIANTS])
{
    step_variant of_step[STEP_VARIANTS];
    step_variants_within(o, MOST_ELEMENTS, variants);
    for (int i = 0; i < STEP_DECODE_MANY; i++) {
        step_variant *v = &variants[i];
        if (!v->lanes)
            continue;
        uint32_t parts = mixer_parts(v, o->value_dim, STEP_MOST_WARPS);
        if (has_clusters ? parts > MIXER_MOST_BLOCKS : i == STEP_FEW)
            *v = (step_variant){ 0 };
        else if (!has_clusters)
            v->groups = (int)parts;
    }
    step_variants(o, of_step);
    if (has_clusters && variants[STEP_MANY].lanes)
        take_decode(o, of_step, variants);
}

/* Blocks of four warps, where a cluster has as many; else of up to eight. Whether it has. */
static int decode_shape(const step_variant variants[STEP_VARIANTS], const function_limits limits[STEP_VARIANTS], int variant, int value_dim, int ratio,
                        mixer_shape *s)
{
    if (!variants[variant].lanes)
        return 0;
    for (uint32_t most = STEP_DECODE_WARPS; most <= STEP_MOST_WARPS; most *= 2) {
        uint32_t n_parts = mixer_parts(&variants[variant], value_dim, step_most_warps(&limits[variant], most));
        *s = (mixer_shape){ .variant = variant, .n_parts = n_parts, .n_heads = (uint32_t)ratio };
        s->n_warps = (warps_of(&variants[variant], value_dim) + n_parts - 1) / n_parts;
        if (n_parts * s->n_heads <= MIXER_MOST_BLOCKS)
            return 1;
    }
    return 0;
}

mixer_shape mixer_choose(const step_variant variants[STEP_VARIANTS], const function_limits limits[STEP_VARIANTS], int value_dim, int ratio, int has_clusters,
                         int is_aligned, int decodes, int64_t n_items)
{
    mixer_shape s;
    int variant = is_aligned ? STEP_MANY : STEP_ANY;
    int64_t n_multiprocessors = limits[STEP_ANY].n_multiprocessors, n_heads = n_items * ratio;
    if (is_aligned && variants[STEP_FEW].lanes && n_heads <= STEP_FEW_WARPS_PER_MULTIPROCESSOR * n_multiprocessors / warps_of(&variants[STEP_FEW], value_dim))
        variant = STEP_FEW;
    if (decodes && variant == STEP_FEW && decode_shape(variants, limits, STEP_DECODE_FEW, value_dim, ratio, &s))
        return s;
    if (decodes && variant != STEP_ANY && decode_shape(variants, limits, STEP_DECODE_MANY, value_dim, ratio, &s))
        return s;
    const step_variant *v = &variants[variant];
    uint32_t most = step_most_warps(&limits[variant], STEP_MOST_WARPS), n_warps = warps_of(v, value_dim);
    while (has_clusters && most > 2 && n_heads < n_multiprocessors && n_heads * mixer_parts(v, value_dim, most) * 4 < 3 * n_multiprocessors &&
           mixer_parts(v, value_dim, most / 2) <= MIXER_MOST_BLOCKS)
        most /= 2;
    s = (mixer_shape){ .variant = variant, .n_parts = mixer_parts(v, value_dim, most), .n_heads = 1 };
    s.n_warps = (n_warps + s.n_parts - 1) / s.n_parts;
    for (uint32_t n = 1; has_clusters && n <= (uint32_t)ratio && n * s.n_parts <= MIXER_MOST_BLOCKS; n++)
        if ((uint32_t)ratio % n == 0)
            s.n_heads = n;
    return s;
}
