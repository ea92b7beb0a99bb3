/* A mixer on a GPU: its kernel, made once, and a step of it, one launch. */
#include "cuda/mixer.h"

#include "cuda/mixer_words.h"
#include "dtype.h"
#include "memory.h"
#include "status.h"

static const char creating[] = "gated_delta_mixer_create";

typedef struct mixer_prepared {
    step_kernels kernels;
    int has_clusters;
} mixer_prepared;

/* ---- A mixer ---- */

/* That blocks of as many threads as the functions may have hold a head's rows. */
static ol_status check_limits(const ol_gated_delta_mixer *m, const mixer_prepared *p, ol_error *error)
{
    for (int i = 0; i < STEP_VARIANTS; i++) {
        const step_variant *v = &p->kernels.variants[i];
        const function_limits *limits = &p->kernels.limits[i];
        if (v->lanes && i < STEP_DECODE_MANY && mixer_parts(v, m->options.recurrence.value_dim, step_most_warps(limits, STEP_MOST_WARPS)) > (p->has_clusters ? MIXER_MOST_BLOCKS : 1))
            return fail(error, OL_ERROR_DEVICE, creating, "a block may have %u threads, which are too few for value_dim %d", limits->max_threads,
                        (int)m->options.recurrence.value_dim);
    }
    return OL_OK;
}

ol_status cuda_mixer_prepare(ol_gated_delta_mixer *m, ol_error *error)
{
    cuda_device *device = (cuda_device *)m->device;
    const ol_allocator *a = &device->base.allocator;
    mixer_prepared *p = memory_take(a, sizeof *p);
    text source = { .allocator = *a };
    if (!p)
        return fail(error, OL_ERROR_MEMORY, creating, "no memory for a mixer");
    m->prepared = p;
    p->has_clusters = mixer_has_clusters(device);
    mixer_variants(&m->options.recurrence, p->has_clusters, p->kernels.variants);
    ol_status status = mixer_text(m, p->has_clusters, &source, error);
    if (status == OL_OK)
        status = step_kernels_take(device, MIXER_NAME, creating, &source, &p->kernels, error);
    text_free(&source);
    return status == OL_OK ? check_limits(m, p, error) : status;
}

void cuda_mixer_release(ol_gated_delta_mixer *m)
{
    mixer_prepared *p = m->prepared;
    if (!p)
        return;
    step_kernels_give((cuda_device *)m->device, &p->kernels);
    memory_give(&m->device->allocator, p, sizeof *p);
}

/* ---- A launch ---- */

static struct mixer_view view_of(const mixer_channels *c)
{
    return (struct mixer_view){ (uint64_t)(uintptr_t)c->data, c->outer, c->token, c->key, c->member, c->channel, c->column };
}

static struct mixer_words words_of(const mixer_call *c, const mixer_shape *chosen)
{
    const delta_call *windows = &c->windows;
    struct mixer_words w = {
        .step = step_words_of(&c->recurrence), .gate = view_of(&c->gate), .norm_weight = view_of(&c->norm_weight), .read = step_table_of(&windows->read),
        .write = step_table_of(&windows->write), .dropped = step_table_of(&c->dropped), .positions = step_table_of(&c->positions),
        .n_slots = windows->n_slots, .n_intermediate = windows->n_intermediate, .n_columns = (int32_t)c->n_columns, .own_slots = c->own_slots,
        .by_accepted = windows->accepted.data != NULL, .n_blocks = chosen->n_parts * chosen->n_heads, .n_parts = chosen->n_parts,
    };
    for (int i = 0; i < MIXER_PARTS; i++) {
        const mixer_part *p = &c->parts[i];
        w.parts[i] = (struct mixer_tensors){ view_of(&p->weight), view_of(&p->bias), view_of(&p->window), view_of(&p->intermediate) };
    }
    return w;
}

/* The bits of an address and its strides below the elements' size. */
static uint64_t off_channels(const mixer_channels *c)
{
    uint64_t all = (uint64_t)(uintptr_t)c->data | (uint64_t)c->outer | (uint64_t)c->token | (uint64_t)c->key | (uint64_t)c->member | (uint64_t)c->channel |
                   (uint64_t)c->column;
    return c->data ? all & (dtype_sizes[c->dtype] - 1) : 0;
}

static int is_aligned(const mixer_call *c, int alignment)
{
    uint64_t off = off_channels(&c->gate) | off_channels(&c->norm_weight) | step_off_table(&c->windows.read) | step_off_table(&c->windows.write) |
                   step_off_table(&c->dropped) | step_off_table(&c->positions);
    for (int i = 0; i < MIXER_PARTS; i++)
        off |= off_channels(&c->parts[i].weight) | off_channels(&c->parts[i].bias) | off_channels(&c->parts[i].window) | off_channels(&c->parts[i].intermediate);
    return off == 0 && step_is_aligned(&c->recurrence, alignment);
}

int mixer_decodes(const mixer_call *c)
{
    const ol_gated_delta_mixer_options *o = &c->mixer->options;
    int moves = c->windows.write.data || c->dropped.data || c->parts[0].intermediate.data;
    return step_decodes(&c->recurrence) && !moves && (o->window == OL_MIXER_WINDOW_RING || c->n_columns <= o->width);
}

mixer_shape cuda_mixer_shape(const mixer_call *c)
{
    const mixer_prepared *p = c->mixer->prepared;
    const step_kernels *k = &p->kernels;
    const ol_gated_delta_options *o = &c->mixer->options.recurrence;
    int aligned = k->variants[STEP_MANY].lanes && is_aligned(c, k->variants[STEP_MANY].alignment);
    return mixer_choose(k->variants, k->limits, o->value_dim, c->mixer->layer->ratio, p->has_clusters, aligned, mixer_decodes(c),
                        c->recurrence.n_sequences * o->key_heads);
}

ol_status cuda_mixer_step_shaped(const mixer_call *c, ol_stream stream, const mixer_shape *chosen, ol_error *error)
{
    const mixer_prepared *p = c->mixer->prepared;
    uint32_t cluster = chosen->n_parts * chosen->n_heads;
    const step_grid grid = { c->recurrence.n_sequences, (int64_t)c->mixer->options.recurrence.key_heads * cluster, chosen->n_warps, cluster };
    struct mixer_words words = words_of(c, chosen);
    ol_status status = step_launch((const cuda_device *)c->mixer->device, p->kernels.functions[chosen->variant], &grid, stream, &words, MIXER_OPERATION, error);
    if (status == OL_OK)
        device_count_launch(c->mixer->device);
    return status;
}

/* Indices are the kernel's to look at. */
ol_status cuda_mixer_step(const mixer_call *c, ol_stream stream, ol_error *error)
{
    if (!step_has_work(&c->recurrence))
        return OL_OK;
    mixer_shape chosen = cuda_mixer_shape(c);
    return cuda_mixer_step_shaped(c, stream, &chosen, error);
}
