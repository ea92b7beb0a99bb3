/* A gated-delta layer on a GPU: its kernel, made once, and a step of it, one launch. */
#include "cuda/step.h"

#include "cuda/nvrtc.h"
#include "cuda/step_words.h"
#include "dtype.h"
#include "memory.h"
#include "status.h"

#include <stdio.h>

static const char creating[] = "gated_delta_create";

/* ---- Kernels ---- */

ol_status step_kernels_take(cuda_device *device, const char *name, const char *operation, text *source, step_kernels *k, ol_error *error)
{
    const driver *d = device->driver;
    kernel named = { .allocator = device->base.allocator };
    cuda_scope scope;
    snprintf(named.name, sizeof named.name, "%s_%d", name, STEP_ANY);      /* which is always there */
    ol_status status = cuda_image_take(device, &named, source, &k->image, error);
    if (status == OL_OK)
        status = cuda_enter(device, &scope, operation, error);
    if (status != OL_OK)
        return status;
    for (int i = 0; status == OL_OK && i < STEP_VARIANTS; i++) {
        char each[sizeof named.name];
        int threads = 0;
        if (!k->variants[i].lanes)
            continue;
        snprintf(each, sizeof each, "%s_%d", name, i);
        const char *call = "cuModuleGetFunction";
        CUresult code = d->cuModuleGetFunction(&k->functions[i], k->image->module, each);
        if (code == CUDA_SUCCESS) {
            call = "cuFuncGetAttribute";
            code = d->cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k->functions[i]);
        }
        if (code != CUDA_SUCCESS)
            status = driver_fail(d, code, call, operation, error);
        k->limits[i] = (function_limits){ (uint32_t)threads, 1, (uint32_t)device->n_multiprocessors };
    }
    cuda_leave(&scope);
    return status;
}

void step_kernels_give(cuda_device *device, step_kernels *k)
{
    if (k->image)
        cuda_image_give(device, k->image);
}

/* ---- A layer ---- */

ol_status cuda_delta_prepare(ol_gated_delta *layer, ol_error *error)
{
    const ol_allocator *a = &layer->device->allocator;
    step_kernels *k = memory_take(a, sizeof *k);
    text source = { .allocator = *a };
    if (!k)
        return fail(error, OL_ERROR_MEMORY, creating, "no memory for a layer");
    layer->prepared = k;
    step_variants(&layer->options, k->variants);
    ol_status status = step_text(layer, &source, error);
    if (status == OL_OK)
        status = step_kernels_take((cuda_device *)layer->device, STEP_NAME, creating, &source, k, error);
    text_free(&source);
    return status;
}

void cuda_delta_release(ol_gated_delta *layer)
{
    step_kernels *k = layer->prepared;
    if (!k)
        return;
    step_kernels_give((cuda_device *)layer->device, k);
    memory_give(&layer->device->allocator, k, sizeof *k);
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

struct step_table step_table_of(const delta_table *t)
{
    int32_t columns = t->n_columns > INT32_MAX ? INT32_MAX : (int32_t)t->n_columns;
    return (struct step_table){ (uint64_t)(uintptr_t)t->data, t->row, t->column, t->size, columns };
}

struct step_words step_words_of(const delta_call *c)
{
    int has_channels = c->layer->options.decay_per_channel && !c->bias_is_scalar;
    return (struct step_words){
        .n_sequences = c->n_sequences, .n_tokens = c->n_tokens, .uniform_length = c->uniform_length, .n_slots = c->n_slots,
        .query = heads_of(&c->query), .key = heads_of(&c->key), .value = heads_of(&c->value), .update = heads_of(&c->update),
        .decay = heads_of(&c->decay), .state = states_of(&c->state), .output = heads_of(&c->output), .decay_rate = heads_of(&c->decay_rate),
        .decay_bias = heads_of(&c->decay_bias), .bias_channel = has_channels ? (int64_t)dtype_sizes[c->layer->options.decay_bias_dtype] : 0,
        .read = step_table_of(&c->read), .write = step_table_of(&c->write), .starts = step_table_of(&c->starts), .has_initial = step_table_of(&c->has_initial),
        .accepted = step_table_of(&c->accepted), .counts = step_table_of(&c->counts), .intermediate = states_of(&c->intermediate),
        .n_intermediate = c->n_intermediate, .skipped = (uint64_t)(uintptr_t)c->skipped, .state_is_kept = c->state_is_kept,
    };
}

/* The bits that addresses and strides have below an alignment, 0 where all are multiples of it. */
static uint64_t off_places(const delta_heads *h, size_t alignment)
{
    uint64_t all = (uint64_t)(uintptr_t)h->data | (uint64_t)h->token | (uint64_t)h->key | (uint64_t)h->member;
    return h->data ? all & (alignment - 1) : 0;
}

static uint64_t off_heads(const delta_heads *h) { return off_places(h, dtype_sizes[h->dtype]); }

/* Of an even number of elements, which are loaded in pairs; of 16 bits a pair is a word. */
static uint64_t off_pairs(const delta_heads *h, int32_t dim) { return dim % 2 == 0 ? off_places(h, 4) : off_heads(h); }

static uint64_t off_states(const delta_states *s, int alignment)
{
    uint64_t all = (uint64_t)(uintptr_t)s->data | (uint64_t)s->slot | (uint64_t)s->token | (uint64_t)s->key | (uint64_t)s->member | (uint64_t)s->row;
    return s->data ? all & ((uint64_t)alignment - 1) : 0;
}

uint64_t step_off_table(const delta_table *t)
{
    return t->data ? ((uint64_t)(uintptr_t)t->data | (uint64_t)t->row | (uint64_t)t->column) & ((uint64_t)t->size - 1) : 0;
}

int step_is_aligned(const delta_call *c, int alignment)
{
    uint64_t off = off_heads(&c->query) | off_heads(&c->key) | off_heads(&c->value) | off_heads(&c->update) | off_heads(&c->decay) |
                   off_heads(&c->decay_rate) | off_heads(&c->decay_bias) | off_heads(&c->output) | off_states(&c->state, alignment) |
                   off_states(&c->intermediate, alignment) | step_off_table(&c->read) | step_off_table(&c->write) | step_off_table(&c->starts) |
                   step_off_table(&c->has_initial) | step_off_table(&c->accepted) | step_off_table(&c->counts);
    return off == 0;
}

int step_decodes(const delta_call *c)
{
    int has_tables = c->starts.data || c->has_initial.data || c->accepted.data || c->counts.data || c->write.data;
    return c->n_tokens == c->n_sequences && !has_tables && !c->intermediate.data && !c->state_is_kept;
}

step_shape cuda_delta_shape(const delta_call *c)
{
    const step_kernels *k = c->layer->prepared;
    const ol_gated_delta_options *o = &c->layer->options;
    int aligned = k->variants[STEP_MANY].lanes && step_is_aligned(c, k->variants[STEP_MANY].alignment) &&
                  (off_pairs(&c->query, o->key_dim) | off_pairs(&c->key, o->key_dim) | off_pairs(&c->value, o->value_dim)) == 0;
    return step_choose(k->variants, k->limits, o->value_dim, aligned, step_decodes(c), c->n_sequences * o->value_heads);
}

/* Sequences are the grid's second and third dimension, so that no block divides by a number that the compiler does not know. */
ol_status step_launch(const cuda_device *device, CUfunction function, const step_grid *g, ol_stream stream, void *words, const char *operation, ol_error *error)
{
    enum { MOST = 65535 };
    const driver *d = device->driver;
    int64_t n = g->n_sequences < 1 ? 1 : g->n_sequences, z = (n + MOST - 1) / MOST, y = (n + z - 1) / z;
    CUlaunchAttribute cluster = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.cluster = { g->cluster, 1, 1 } };
    const CUlaunchConfig config = { .grid = { (unsigned)g->n_blocks, (unsigned)y, (unsigned)z }, .block = { 32 * g->n_warps, 1, 1 }, .stream = stream,
                                    .attributes = &cluster, .n_attributes = 1 };
    cuda_scope scope;
    if (g->n_blocks > INT32_MAX || z > MOST)
        return fail(error, OL_ERROR_LIMIT, operation, "%lld sequences of %lld blocks are more than a launch has", (long long)n, (long long)g->n_blocks);
    ol_status status = cuda_enter(device, &scope, operation, error);
    if (status != OL_OK)
        return status;
    CUresult code = g->cluster > 1 ? d->cuLaunchKernelEx(&config, function, &words, NULL)
                                   : d->cuLaunchKernel(function, config.grid[0], config.grid[1], config.grid[2], config.block[0], 1, 1, 0, stream, &words, NULL);
    cuda_leave(&scope);
    return code == CUDA_SUCCESS ? OL_OK : driver_fail(d, code, g->cluster > 1 ? "cuLaunchKernelEx" : "cuLaunchKernel", operation, error);
}

ol_status cuda_delta_step_shaped(const delta_call *c, ol_stream stream, const step_shape *chosen, ol_error *error)
{
    const step_kernels *k = c->layer->prepared;
    const step_grid grid = { c->n_sequences, (int64_t)c->layer->options.value_heads * chosen->n_parts, chosen->n_warps, 1 };
    struct step_words words = step_words_of(c);
    ol_status status = step_launch((const cuda_device *)c->layer->device, k->functions[chosen->variant], &grid, stream, &words, DELTA_OPERATION, error);
    if (status == OL_OK)
        device_count_launch(c->layer->device);
    return status;
}

int step_has_work(const delta_call *c)
{
    int pads = c->n_tokens > 0 && !c->layer->options.padding_output_untouched;
    return pads || (c->n_sequences > 0 && (c->n_tokens > 0 || !c->state_is_kept));
}

/* Indices are the kernel's to look at. */
ol_status cuda_delta_step(const delta_call *c, ol_stream stream, ol_error *error)
{
    if (!step_has_work(c))
        return OL_OK;
    step_shape chosen = cuda_delta_shape(c);
    return cuda_delta_step_shaped(c, stream, &chosen, error);
}
