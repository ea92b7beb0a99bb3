/* A gated-delta layer on a GPU: its kernel, made once, and a step of it, one launch. */
#include "cuda/step.h"

#include "cuda/cuda.h"
#include "cuda/nvrtc.h"
#include "cuda/step_words.h"
#include "dtype.h"
#include "memory.h"
#include "status.h"

#include <stdio.h>

typedef struct step_prepared {
    cuda_image *image;
    step_variant variants[STEP_VARIANTS];
    CUfunction functions[STEP_VARIANTS];
    function_limits limits[STEP_VARIANTS];
} step_prepared;

static const char creating[] = "gated_delta_create";

/* ---- A layer ---- */

/* The functions of a loaded kernel, and what they allow. */
static ol_status find_functions(const cuda_device *device, step_prepared *p, ol_error *error)
{
    const driver *d = device->driver;
    for (int i = 0; i < STEP_VARIANTS; i++) {
        char name[sizeof STEP_NAME + 4];
        int threads = 0;
        if (!p->variants[i].lanes)
            continue;
        snprintf(name, sizeof name, STEP_NAME "_%d", i);
        const char *call = "cuModuleGetFunction";
        CUresult code = d->cuModuleGetFunction(&p->functions[i], p->image->module, name);
        if (code == CUDA_SUCCESS) {
            call = "cuFuncGetAttribute";
            code = d->cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, p->functions[i]);
        }
        if (code != CUDA_SUCCESS)
            return driver_fail(d, code, call, creating, error);
        p->limits[i] = (function_limits){ (uint32_t)threads, 1, (uint32_t)device->n_multiprocessors };
    }
    return OL_OK;
}

ol_status cuda_delta_prepare(ol_gated_delta *layer, ol_error *error)
{
    cuda_device *device = (cuda_device *)layer->device;
    const ol_allocator *a = &device->base.allocator;
    step_prepared *p = memory_take(a, sizeof *p);
    text source = { .allocator = *a };
    cuda_scope scope;
    if (!p)
        return fail(error, OL_ERROR_MEMORY, creating, "no memory for a layer");
    layer->prepared = p;
    step_variants(&layer->options, p->variants);
    const kernel k = { .allocator = *a, .name = STEP_NAME "_2" };          /* STEP_ANY, which is always there */
    _Static_assert(STEP_ANY == 2, "the name's number");
    ol_status status = step_text(layer, &source, error);
    if (status == OL_OK)
        status = cuda_image_take(device, &k, &source, &p->image, error);
    text_free(&source);
    if (status == OL_OK && (status = cuda_enter(device, &scope, creating, error)) == OL_OK) {
        status = find_functions(device, p, error);
        cuda_leave(&scope);
    }
    return status;
}

void cuda_delta_release(ol_gated_delta *layer)
{
    step_prepared *p = layer->prepared;
    if (!p)
        return;
    if (p->image)
        cuda_image_give((cuda_device *)layer->device, p->image);
    memory_give(&layer->device->allocator, p, sizeof *p);
}

/* ---- A launch ---- */

static struct step_heads heads_of(const delta_heads *h)
{
    return (struct step_heads){ (uint64_t)(uintptr_t)h->data, h->token, h->key, h->member };
}

static struct step_states states_of(const delta_states *s)
{
    return (struct step_states){ (uint64_t)(uintptr_t)s->data, s->slot, s->token, s->key, s->member, s->row };
}

static struct step_table table_of(const delta_table *t)
{
    int32_t columns = t->n_columns > INT32_MAX ? INT32_MAX : (int32_t)t->n_columns;
    return (struct step_table){ (uint64_t)(uintptr_t)t->data, t->row, t->column, t->size, columns };
}

static struct step_words words_of(const delta_call *c)
{
    int has_channels = c->layer->options.decay_per_channel && !c->bias_is_scalar;
    return (struct step_words){
        .n_sequences = c->n_sequences, .n_tokens = c->n_tokens, .uniform_length = c->uniform_length, .n_slots = c->n_slots,
        .query = heads_of(&c->query), .key = heads_of(&c->key), .value = heads_of(&c->value), .update = heads_of(&c->update),
        .decay = heads_of(&c->decay), .state = states_of(&c->state), .output = heads_of(&c->output), .decay_rate = heads_of(&c->decay_rate),
        .decay_bias = heads_of(&c->decay_bias), .bias_channel = has_channels ? (int64_t)dtype_sizes[c->layer->options.decay_bias_dtype] : 0,
        .read = table_of(&c->read), .write = table_of(&c->write), .starts = table_of(&c->starts), .has_initial = table_of(&c->has_initial),
        .accepted = table_of(&c->accepted), .counts = table_of(&c->counts), .intermediate = states_of(&c->intermediate),
        .n_intermediate = c->n_intermediate, .skipped = (uint64_t)(uintptr_t)c->skipped, .state_is_kept = c->state_is_kept,
    };
}

/* The bits that addresses and strides have below an alignment, 0 where all are multiples of it. */
static uint64_t off_heads(const delta_heads *h)
{
    uint64_t all = (uint64_t)(uintptr_t)h->data | (uint64_t)h->token | (uint64_t)h->key | (uint64_t)h->member;
    return h->data ? all & (dtype_sizes[h->dtype] - 1) : 0;
}

static uint64_t off_states(const delta_states *s, int alignment)
{
    uint64_t all = (uint64_t)(uintptr_t)s->data | (uint64_t)s->slot | (uint64_t)s->token | (uint64_t)s->key | (uint64_t)s->member | (uint64_t)s->row;
    return s->data ? all & ((uint64_t)alignment - 1) : 0;
}

static uint64_t off_table(const delta_table *t)
{
    return t->data ? ((uint64_t)(uintptr_t)t->data | (uint64_t)t->row | (uint64_t)t->column) & ((uint64_t)t->size - 1) : 0;
}

static int is_aligned(const delta_call *c, int alignment)
{
    uint64_t off = off_heads(&c->query) | off_heads(&c->key) | off_heads(&c->value) | off_heads(&c->update) | off_heads(&c->decay) |
                   off_heads(&c->decay_rate) | off_heads(&c->decay_bias) | off_heads(&c->output) | off_states(&c->state, alignment) |
                   off_states(&c->intermediate, alignment) | off_table(&c->read) | off_table(&c->write) | off_table(&c->starts) |
                   off_table(&c->has_initial) | off_table(&c->accepted) | off_table(&c->counts);
    return off == 0;
}

step_shape cuda_delta_shape(const delta_call *c)
{
    const step_prepared *p = c->layer->prepared;
    int aligned = p->variants[STEP_MANY].lanes && is_aligned(c, p->variants[STEP_MANY].alignment);
    return step_choose(p->variants, p->limits, c->layer->options.value_dim, aligned, c->n_sequences * c->layer->options.value_heads);
}

/* Sequences are the grid's second and third dimension, so that no block divides by a number that the compiler does not know. */
ol_status cuda_delta_step_shaped(const delta_call *c, ol_stream stream, const step_shape *chosen, ol_error *error)
{
    const cuda_device *device = (const cuda_device *)c->layer->device;
    const step_prepared *p = c->layer->prepared;
    enum { MOST = 65535 };
    int64_t n = c->n_sequences < 1 ? 1 : c->n_sequences, z = (n + MOST - 1) / MOST, y = (n + z - 1) / z;
    int64_t x = (int64_t)c->layer->options.value_heads * chosen->n_parts;
    struct step_words words = words_of(c);
    void *parameter = &words;
    cuda_scope scope;
    if (x > INT32_MAX || z > MOST)
        return fail(error, OL_ERROR_LIMIT, DELTA_OPERATION, "%lld sequences of %d heads are more than a launch has blocks", (long long)n,
                    (int)c->layer->options.value_heads);
    ol_status status = cuda_enter(device, &scope, DELTA_OPERATION, error);
    if (status != OL_OK)
        return status;
    CUresult code = device->driver->cuLaunchKernel(p->functions[chosen->variant], (unsigned)x, (unsigned)y, (unsigned)z, 32 * chosen->n_warps, 1, 1, 0,
                                                   stream, &parameter, NULL);
    cuda_leave(&scope);
    if (code != CUDA_SUCCESS)
        return driver_fail(device->driver, code, "cuLaunchKernel", DELTA_OPERATION, error);
    device_count_launch(c->layer->device);
    return OL_OK;
}

/* Indices are the kernel's to look at. */
ol_status cuda_delta_step(const delta_call *c, ol_stream stream, ol_error *error)
{
    int pads = c->n_tokens > 0 && !c->layer->options.padding_output_untouched;
    int writes = c->n_sequences > 0 && (c->n_tokens > 0 || !c->state_is_kept);
    if (!pads && !writes)
        return OL_OK;
    step_shape chosen = cuda_delta_shape(c);
    return cuda_delta_step_shaped(c, stream, &chosen, error);
}
