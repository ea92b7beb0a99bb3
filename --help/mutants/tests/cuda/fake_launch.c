/* The fake driver's modules, functions and launches. A module is a shared object that the fake NVRTC made (fake_image.h). */
#include "fake_state.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Modules ---- */

/* The loader wants a file, and knows it by its name: each gets one of its own, which is gone once it is mapped. */
static void *load(const char *bytes, size_t n_bytes)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    void *library = NULL;
    snprintf(path, sizeof path, "%s/fake_cuda.XXXXXX", folder && *folder ? folder : "/tmp");
    int file = mkstemp(path);
    if (file < 0)
        return NULL;
    if (write(file, bytes, n_bytes) == (ssize_t)n_bytes)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "fake CUDA: an image cannot be loaded: %s\n", dlerror());
    close(file);
    unlink(path);
    return library;
}

static CUresult load_module(CUmodule *module, const void *image)
{
    fake_image_head head;
    memcpy(&head, image, sizeof head);
    const char *bytes = (const char *)image + sizeof head;
    if (memcmp(head.magic, FAKE_IMAGE_MAGIC, sizeof head.magic) != 0 || fake_checksum(bytes, head.n_bytes) != head.checksum)
        return INVALID_IMAGE;
    if (head.architecture / 10 != fake.capability / 10 || head.architecture > fake.capability)
        return NO_BINARY_FOR_GPU;
    CUresult code = fake_refused_by_capture("cuModuleLoadData");
    if (code)
        return code;
    void *library = load(bytes, head.n_bytes);
    if (!library)
        return INVALID_IMAGE;
    CUmodule m = calloc(1, sizeof *m);
    m->context = fake_current();
    m->alive = 1;
    m->has_checks = head.has_checks;
    m->library = library;
    m->image = dlsym(library, FAKE_IMAGE_SYMBOL);
    *m->image->host = &fake.host;
    while (m->image->kernels[m->n_functions].name)
        m->n_functions++;
    m->functions = calloc(m->n_functions + 1, sizeof *m->functions);
    for (size_t i = 0; i < m->n_functions; i++)
        m->functions[i] = (struct CUfunc_st){ m, &m->image->kernels[i] };
    m->next = fake.modules;
    *module = fake.modules = m;
    return 0;
}

static void unload(CUmodule m)
{
    dlclose(m->library);
    m->alive = 0;
}

void fake_unload_context(CUcontext context)
{
    for (CUmodule m = fake.modules; m; m = m->next)
        if (m->alive && m->context == context)
            unload(m);
}

size_t fake_module_leaks(void)
{
    size_t n = 0;
    for (CUmodule m = fake.modules; m; m = m->next)
        n += (size_t)m->alive;
    return n;
}

int fake_has_checks(void);
int fake_has_checks(void)
{
    int n = 0;
    fake_lock();
    for (CUmodule m = fake.modules; m; m = m->next)
        n += m->has_checks;
    fake_unlock();
    return n > 0;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    CUresult code = fake_enter("cuModuleLoadData", RULE_CONTEXT);
    return fake_leave(code ? code : load_module(module, image));
}

static CUresult check_module(CUmodule module, const char *name)
{
    for (CUmodule m = fake.modules; m; m = m->next)
        if (m == module && m->alive)
            return m->context == fake_current() ? 0 : fake_violate(INVALID_HANDLE, "%s of a module of another context", name);
    return fake_violate(INVALID_HANDLE, "%s of a module that is not loaded", name);
}

CUresult cuModuleUnload(CUmodule module)
{
    CUresult code = fake_enter("cuModuleUnload", RULE_CONTEXT | RULE_UNSAFE);
    if (!code && !(code = check_module(module, "cuModuleUnload"))) {
        fake_finish_context(module->context);
        unload(module);
    }
    return fake_leave(code);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult code = fake_enter("cuModuleGetFunction", RULE_CONTEXT);
    if (!code && !(code = check_module(module, "cuModuleGetFunction"))) {
        code = NOT_FOUND;
        for (size_t i = 0; i < module->n_functions; i++)
            if (strcmp(module->functions[i].kernel->name, name) == 0) {
                *function = &module->functions[i];
                code = 0;
            }
    }
    return fake_leave(code);
}

/* ---- Functions ---- */

int fake_function_is(CUfunction function)
{
    for (CUmodule m = fake.modules; m; m = m->next)
        if (m->alive && function >= m->functions && function < m->functions + m->n_functions)
            return 1;
    return 0;
}

static CUresult check_function(CUfunction function, const char *name)
{
    if (!fake_function_is(function))
        return fake_violate(INVALID_HANDLE, "%s of a function that is not loaded", name);
    return 0;
}

static int max_threads(CUfunction function)
{
    int bounds = function->kernel->max_threads;
    return bounds && bounds < fake.max_threads ? bounds : fake.max_threads;
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    CUresult code = fake_enter("cuFuncGetAttribute", RULE_CONTEXT);
    if (!code && !(code = check_function(function, "cuFuncGetAttribute")))
        *value = attribute == 0 ? max_threads(function) : attribute == 4 ? 32 : 0;
    return fake_leave(code);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n_blocks, CUfunction function, int n_threads, size_t shared_bytes)
{
    CUresult code = fake_enter("cuOccupancyMaxActiveBlocksPerMultiprocessor", RULE_CONTEXT);
    if (!code && !(code = check_function(function, "cuOccupancyMaxActiveBlocksPerMultiprocessor")))
        code = n_threads < 1 ? INVALID_VALUE : 0;
    if (!code)
        *n_blocks = n_threads > max_threads(function) || shared_bytes > BLOCKS_SHARED_BYTES ? 0 : fake.n_blocks;
    return fake_leave(code);
}

/* ---- Launches ---- */

static CUresult check_shape(CUfunction function, fake_place grid, fake_place block, unsigned shared_bytes)
{
    unsigned long long n_threads = (unsigned long long)block.x * block.y * block.z;
    unsigned bounds = function->kernel->max_threads ? (unsigned)function->kernel->max_threads : 1024;
    if (!grid.x || !grid.y || !grid.z || grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535 || !n_threads || block.x > 1024 ||
        block.y > 1024 || block.z > 64 || n_threads > bounds || shared_bytes > BLOCKS_SHARED_BYTES)
        return fake_violate(INVALID_VALUE, "a launch of %ux%ux%u blocks of %ux%ux%u threads", grid.x, grid.y, grid.z, block.x,
                            block.y, block.z);
    if (n_threads > (unsigned)max_threads(function))
        return fake_violate(LAUNCH_OUT_OF_RESOURCES, "a launch of %llu threads a block, where the kernel has at most %d", n_threads,
                            max_threads(function));
    return 0;
}

/* The parameters' values, copied as the driver does at the call. */
static CUresult take_parameters(op *o, void **parameters)
{
    const fake_kernel *k = o->function->kernel;
    for (int i = 0; i < k->n_parameters; i++)
        o->n_bytes += (k->sizes[i] + 15) / 16 * 16;
    if (k->n_parameters && !parameters)
        return fake_violate(INVALID_VALUE, "a launch of %s without its parameters", k->name);
    o->parameters = aligned_alloc(16, o->n_bytes + 16);
    if (!o->parameters)
        abort();
    char *at = o->parameters;
    for (int i = 0; i < k->n_parameters; i++) {
        memcpy(at, parameters[i], k->sizes[i]);
        at += (k->sizes[i] + 15) / 16 * 16;
    }
    return 0;
}

/* Of blocks along the grid's first dimension, at most as many as every device has that has any. */
static CUresult check_cluster(const CUlaunchConfig *config, unsigned *n_blocks)
{
    *n_blocks = 0;
    for (unsigned i = 0; i < config->n_attributes; i++) {
        const CUlaunchAttribute *a = &config->attributes[i];
        if (a->id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            return fake_violate(INVALID_VALUE, "a launch with attribute %d, which the fake driver does not know", a->id);
        *n_blocks = a->value.cluster.x;
        if (fake.capability < 90)
            return fake_violate(INVALID_VALUE, "a launch of clusters on a device of capability %d", fake.capability);
        if (!*n_blocks || *n_blocks > CLUSTER_BLOCKS || a->value.cluster.y != 1 || a->value.cluster.z != 1 || config->grid[0] % *n_blocks)
            return fake_violate(INVALID_CLUSTER_SIZE, "a launch of %u blocks in clusters of %ux%ux%u", config->grid[0], *n_blocks, a->value.cluster.y,
                                a->value.cluster.z);
    }
    return 0;
}

static CUresult launch(const char *name, CUfunction function, const CUlaunchConfig *config, void **parameters, void **extra)
{
    CUstream s = NULL;
    op *o = NULL;
    unsigned cluster = 0;
    const fake_place grid = { config->grid[0], config->grid[1], config->grid[2] }, block = { config->block[0], config->block[1], config->block[2] };
    CUresult code = fake_enter(name, RULE_CONTEXT);
    if (!code && !(code = check_function(function, name)))
        code = fake_stream_of(config->stream, name, &s);
    if (!code && function->module->context != fake_current())
        code = fake_violate(INVALID_HANDLE, "%s is launched with another context current than its own", function->kernel->name);
    if (!code && function->module->context != s->context)
        code = fake_violate(INVALID_HANDLE, "%s is launched in a stream of another context", function->kernel->name);
    if (!code && extra)
        code = fake_violate(INVALID_VALUE, "a launch with extra, which the fake driver does not know");
    if (!code)
        code = check_shape(function, grid, block, config->shared_bytes);
    if (!code)
        code = check_cluster(config, &cluster);
    if (!code) {
        o = fake_op(OP_LAUNCH);
        o->function = function;
        o->grid = grid;
        o->block = block;
        o->cluster = cluster;
        code = take_parameters(o, parameters);
        if (code)
            fake_op_free(o);
    }
    if (!code)
        code = fake_submit(s, o);
    if (!code && fake.poison && s->capture == CAPTURE_NONE) {
        s->context->left_behind = fake.poison;
        fake.poison = 0;
    }
    return fake_leave(code);
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                        unsigned block_z, unsigned shared_bytes, CUstream handle, void **parameters, void **extra)
{
    const CUlaunchConfig config = { .grid = { grid_x, grid_y, grid_z }, .block = { block_x, block_y, block_z }, .shared_bytes = shared_bytes, .stream = handle };
    return launch("cuLaunchKernel", function, &config, parameters, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    return launch("cuLaunchKernelEx", function, config, parameters, extra);
}
