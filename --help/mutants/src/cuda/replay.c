/* A composite on the GPU: prepared once, then one launch a replay. */
#include "cuda/cuda.h"

#include "cuda/nvrtc.h"
#include "memory.h"
#include "space.h"
#include "status.h"

ol_status cuda_prepare(ol_composite *c, const dependencies *d, ol_error *error)
{
    cuda_device *device = (cuda_device *)c->device;
    const ol_allocator *a = &c->device->allocator;
    cuda_prepared *p = memory_take(a, sizeof *p);
    text source = { .allocator = *a };
    if (!p)
        return fail(error, OL_ERROR_MEMORY, c->traced->name, "no memory for a composite");
    c->prepared = p;
    nvrtc_version compiler = { 0, 0 };
    ol_status status = nvrtc_open(c->traced->name, &compiler, error);
    int has_large = device->driver->version >= 12010 && 1000 * compiler.major + 10 * compiler.minor >= 12010 && device->capability >= 70;
    if (status == OL_OK)
        status = kernel_create(c->optimized, c->program, d, has_large ? KERNEL_WORDS_LARGE : KERNEL_WORDS_SMALL, &p->kernel, error);
    if (status == OL_OK)
        status = kernel_text(p->kernel, c->optimized, c->program, &source, error);
    if (status == OL_OK)
        status = cuda_image_take(device, p->kernel, &source, &p->image, error);
    text_free(&source);
    if (status != OL_OK)
        return status;
    p->space_bytes = space_bytes(c);
    if (p->space_bytes > SPACE_STACK_BYTES && !(p->spaces = workspace_create(a, p->space_bytes, WORKSPACE_BLOCKS)))
        return fail(error, OL_ERROR_MEMORY, c->traced->name, "no memory for spaces of %zu bytes", p->space_bytes);
    if (!geometry_memory_create(c, p->kernel, &p->remembered))
        return fail(error, OL_ERROR_MEMORY, c->traced->name, "no memory to remember shapes");
    return OL_OK;
}

void cuda_release(ol_composite *c)
{
    cuda_prepared *p = c->prepared;
    if (p->image)
        cuda_image_give((cuda_device *)c->device, p->image);
    kernel_destroy(p->kernel);
    workspace_destroy(p->spaces);
    geometry_memory_destroy(p->remembered);
    memory_give(&c->device->allocator, p, sizeof *p);
}

/* The words and the grid of a replay: remembered, or from its shapes. */
static ol_status plan(const ol_composite *c, const ol_tensor *inputs, const ol_tensor *outputs, int in_place, uint64_t *words, geometry *g, ol_error *error)
{
    const cuda_prepared *p = c->prepared;
    geometry_addresses addresses;
    /* Which group reads what another overwrites is not part of what is remembered. */
    geometry_memory *remembered = in_place && c->traced->n_outputs > 1 ? NULL : p->remembered;
    if (remembered && geometry_recall(remembered, inputs, outputs, g, words))
        return OL_OK;
    _Alignas(64) char few[SPACE_STACK_BYTES];
    void *block = p->spaces ? workspace_take(p->spaces) : few;
    if (!block)
        return fail(error, OL_ERROR_MEMORY, c->operation, "no memory for a space of %zu bytes", p->space_bytes);
    *g = geometry_of(c, p->kernel, &p->image->limits, inputs, outputs, in_place, block, words, &addresses);
    if (p->spaces)
        workspace_give(p->spaces, block);
    if (remembered)
        geometry_remember(remembered, inputs, outputs, g, words, &addresses);
    return OL_OK;
}

static ol_status launch(const ol_composite *c, CUstream stream, const geometry *g, void *parameter, ol_error *error)
{
    const cuda_device *device = (const cuda_device *)c->device;
    const cuda_prepared *p = c->prepared;
    cuda_scope scope;
    ol_status status = cuda_enter(device, &scope, c->operation, error);
    if (status != OL_OK)
        return status;
    CUresult code = device->driver->cuLaunchKernel(p->image->function, g->grid, 1, 1, g->block, 1, 1, 0, stream, &parameter, NULL);
    cuda_leave(&scope);
    if (code != CUDA_SUCCESS)
        return driver_fail(device->driver, code, "cuLaunchKernel", c->operation, error);
    if (!p->is_own_copy)
        device_count_launch(c->device);
    return OL_OK;
}

static ol_status replay_near(const ol_composite *c, CUstream stream, const ol_tensor *inputs, const ol_tensor *outputs, int in_place, uint64_t *words,
                             ol_error *error)
{
    geometry g;
    ol_status status = plan(c, inputs, outputs, in_place, words, &g, error);
    return status == OL_OK && g.grid ? launch(c, stream, &g, words, error) : status;
}

static ol_status replay_far(const ol_composite *c, CUstream stream, const ol_tensor *inputs, const ol_tensor *outputs, int in_place, ol_error *error)
{
    const cuda_device *device = (const cuda_device *)c->device;
    const cuda_prepared *p = c->prepared;
    geometry g = { 0 };
    far_block *block;
    uint64_t *words;
    CUdeviceptr address;
    cuda_scope scope;
    ol_status status = cuda_enter(device, &scope, c->operation, error);
    if (status != OL_OK)
        return status;
    status = far_words_take(device, p->image->far, &block, &words, &address, c->operation, error);
    if (status == OL_OK) {
        status = plan(c, inputs, outputs, in_place, words, &g, error);
        int launched = 0;
        if (status == OL_OK && g.grid) {
            status = launch(c, stream, &g, &address, error);
            launched = status == OL_OK;
        }
        far_words_give(device, block, stream, launched);
    }
    cuda_leave(&scope);
    return status;
}

ol_status cuda_replay(const ol_composite *c, ol_stream stream, const ol_tensor *inputs, const ol_tensor *outputs,
                      const tensor_facts *facts, int in_place, ol_error *error)
{
    const kernel *k = ((const cuda_prepared *)c->prepared)->kernel;
    (void)facts;
    if (k->far)
        return replay_far(c, stream, inputs, outputs, in_place, error);
    if (k->n_words <= KERNEL_WORDS_SMALL) {
        uint64_t words[KERNEL_WORDS_SMALL];
        return replay_near(c, stream, inputs, outputs, in_place, words, error);
    }
    uint64_t words[KERNEL_WORDS_LARGE];
    return replay_near(c, stream, inputs, outputs, in_place, words, error);
}
