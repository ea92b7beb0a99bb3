/* See nvrtc.h. Names, values and signatures: NVIDIA's NVRTC reference. */
#include "cuda/nvrtc.h"

#include "status.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nvrtcProgram_st *nvrtcProgram;
typedef int nvrtcResult;

#define NVRTC_FUNCTIONS(F)                                                                                                    \
    F(nvrtcVersion, (int *major, int *minor))                                                                                 \
    F(nvrtcGetNumSupportedArchs, (int *n))                                                                                    \
    F(nvrtcGetSupportedArchs, (int *architectures))                                                                           \
    F(nvrtcCreateProgram, (nvrtcProgram *program, const char *source, const char *name, int n_headers, const char *const *headers, \
                           const char *const *names))                                                                         \
    F(nvrtcDestroyProgram, (nvrtcProgram *program))                                                                           \
    F(nvrtcCompileProgram, (nvrtcProgram program, int n_options, const char *const *options))                                 \
    F(nvrtcGetProgramLogSize, (nvrtcProgram program, size_t *n_bytes))                                                        \
    F(nvrtcGetProgramLog, (nvrtcProgram program, char *log))                                                                  \
    F(nvrtcGetCUBINSize, (nvrtcProgram program, size_t *n_bytes))                                                             \
    F(nvrtcGetCUBIN, (nvrtcProgram program, char *image))

typedef struct nvrtc {
#define F(name, arguments) nvrtcResult (*name) arguments;
    NVRTC_FUNCTIONS(F)
#undef F
    const char *(*nvrtcGetErrorString)(nvrtcResult code);
    nvrtc_version version;
} nvrtc;

static nvrtc loaded;

/* ---- Where it may be ---- */

/* Newest first; the last, without a version, is a link that comes with development packages. */
static const char *const names[] = { "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.8", "libnvrtc.so.11.7", "libnvrtc.so.11.6",
                                     "libnvrtc.so.11.5", "libnvrtc.so.11.4", "libnvrtc.so.11.3", "libnvrtc.so.11.2", "libnvrtc.so" };

/* Where the loader does not look: the toolkit, and the Python packages nvidia-cuda-nvrtc (13) and nvidia-cuda-nvrtc-cu12 in the
 * environment that is active, the user's, or the system's. $ is the variable's value or, where it is unset, nowhere. */
static const char *const folders[] = {
    "$CUDA_HOME/lib64", "$CUDA_PATH/lib64", "/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/opt/cuda/lib64",
    "$VIRTUAL_ENV/lib/python3*/site-packages/nvidia/cu13/lib", "$VIRTUAL_ENV/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib",
    "$CONDA_PREFIX/lib", "$HOME/.local/lib/python3*/site-packages/nvidia/cu13/lib", "$HOME/.local/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib",
    "/usr/local/lib/python3*/dist-packages/nvidia/cu13/lib", "/usr/local/lib/python3*/dist-packages/nvidia/cuda_nvrtc/lib",
    "/usr/local/lib/python3*/site-packages/nvidia/cu13/lib", "/usr/local/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib",
    "/usr/lib/python3*/dist-packages/nvidia/cu13/lib", "/usr/lib/python3*/dist-packages/nvidia/cuda_nvrtc/lib",
};

static void *open_in_folder(const char *folder, const char *name)
{
    char pattern[4096];
    const char *prefix = "", *rest = folder;
    char variable[32];
    if (*folder == '$') {
        size_t length = strcspn(folder, "/");
        snprintf(variable, sizeof variable, "%.*s", (int)length - 1, folder + 1);
        prefix = getenv(variable);
        rest = folder + length;
        if (!prefix || !*prefix)
            return NULL;
    }
    if (snprintf(pattern, sizeof pattern, "%s%s/%s", prefix, rest, name) >= (int)sizeof pattern)
        return NULL;
    glob_t found;
    void *handle = NULL;
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = found.gl_pathc; !handle && i-- > 0;)          /* sorted: the last is the newest */
            handle = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
    return handle;
}

static void *open_anywhere(void)
{
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        void *handle = dlopen(names[n], RTLD_NOW | RTLD_LOCAL);
        for (size_t f = 0; !handle && f < sizeof folders / sizeof *folders; f++)
            handle = open_in_folder(folders[f], names[n]);
        if (handle)
            return handle;
    }
    return NULL;
}

static ol_status load(nvrtc *n, const char *operation, ol_error *error)
{
    const char *asked = getenv("ONELAUNCH_NVRTC");
    void *handle = asked && *asked ? dlopen(asked, RTLD_NOW | RTLD_LOCAL) : open_anywhere();
    if (!handle && asked && *asked)
        return fail(error, OL_ERROR_DEVICE, operation, "ONELAUNCH_NVRTC is \"%s\", which cannot be opened: %s", asked, dlerror());
    if (!handle)
        return fail(error, OL_ERROR_DEVICE, operation,
                    "CUDA's run-time compiler was not found: libnvrtc.so.13, .12 or .11.x, by the loader, in CUDA_HOME, in /usr/local/cuda*/lib64, or in "
                    "the Python package nvidia-cuda-nvrtc; ONELAUNCH_NVRTC=PATH names one");
#define F(name, arguments)                                                                                                    \
    *(void **)&n->name = dlsym(handle, #name);                                                                                \
    if (!n->name) {                                                                                                           \
        dlclose(handle);                                                                                                      \
        return fail(error, OL_ERROR_DEVICE, operation, "the NVRTC that was found%s%s has no %s: it is older than 11.2, or another library", \
                    asked && *asked ? " as ONELAUNCH_NVRTC=" : "", asked && *asked ? asked : "", #name);                      \
    }
    NVRTC_FUNCTIONS(F)
#undef F
    *(void **)&n->nvrtcGetErrorString = dlsym(handle, "nvrtcGetErrorString");
    nvrtcResult code = n->nvrtcVersion(&n->version.major, &n->version.minor);
    return code == 0 ? OL_OK : fail(error, OL_ERROR_DEVICE, operation, "nvrtcVersion: code %d", code);
}

ol_status nvrtc_open(const char *operation, nvrtc_version *version, ol_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int is_loaded;
    ol_status status = OL_OK;
    pthread_mutex_lock(&lock);
    if (!is_loaded) {
        nvrtc n = { 0 };
        status = load(&n, operation, error);
        if (status == OL_OK) {
            loaded = n;
            is_loaded = 1;
        }
    }
    pthread_mutex_unlock(&lock);
    if (status == OL_OK)
        *version = loaded.version;
    return status;
}

static ol_status nvrtc_fail(nvrtcResult code, const char *call, const char *operation, ol_error *error)
{
    const char *said = loaded.nvrtcGetErrorString ? loaded.nvrtcGetErrorString(code) : "no text";
    return fail(error, OL_ERROR_DEVICE, operation, "%s of NVRTC %d.%d: %s (%d)", call, loaded.version.major, loaded.version.minor, said, code);
}

ol_status nvrtc_options_for(int capability, nvrtc_options *o, const char *operation, ol_error *error)
{
    int architectures[256], n = 0, best = 0;
    nvrtc_version version;
    ol_status status = nvrtc_open(operation, &version, error);
    if (status != OL_OK)
        return status;
    nvrtcResult code = loaded.nvrtcGetNumSupportedArchs(&n);
    if (code == 0 && n <= 256)
        code = loaded.nvrtcGetSupportedArchs(architectures);
    if (code != 0)
        return nvrtc_fail(code, "nvrtcGetSupportedArchs", operation, error);
    for (int i = 0; i < n && i < 256; i++)
        if (architectures[i] / 10 == capability / 10 && architectures[i] <= capability && architectures[i] > best)
            best = architectures[i];
    if (!best)
        return fail(error, OL_ERROR_DEVICE, operation, "NVRTC %d.%d makes no code for compute capability %d.%d; its own go from %d.%d to %d.%d",
                    version.major, version.minor, capability / 10, capability % 10, n ? architectures[0] / 10 : 0, n ? architectures[0] % 10 : 0,
                    n ? architectures[n - 1] / 10 : 0, n ? architectures[n - 1] % 10 : 0);
    /* Every operation exactly as written: nothing fused, no subnormal flushed, division and square root of IEEE 754. */
    snprintf(o->architecture, sizeof o->architecture, "--gpu-architecture=sm_%d", best);
    const char *const list[NVRTC_OPTIONS + 1] = { o->architecture, "--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
                                                  "--disable-warnings" };
    memcpy(o->list, list, sizeof list);
    return OL_OK;
}

/* The log's first line with an error, or its start. */
static ol_status compiler_fail(nvrtcProgram program, nvrtcResult code, const ol_allocator *allocator, const char *operation, ol_error *error)
{
    size_t n = 0;
    char *taken = loaded.nvrtcGetProgramLogSize(program, &n) == 0 && n > 0 ? memory_take(allocator, n) : NULL;
    const char *log = taken && loaded.nvrtcGetProgramLog(program, taken) == 0 ? taken : "";
    const char *line = strstr(log, "error");
    while (line && line > log && line[-1] != '\n')
        line--;
    line = line ? line : *log ? log : "no log";
    ol_status status = fail(error, OL_ERROR_DEVICE, operation, "NVRTC %d.%d: %s (%d): %.*s", loaded.version.major, loaded.version.minor,
                loaded.nvrtcGetErrorString ? loaded.nvrtcGetErrorString(code) : "", code, (int)strcspn(line, "\n"), line);
    memory_give(allocator, taken, n);
    return status;
}

ol_status nvrtc_compile(const text *source, const char *name, const nvrtc_options *options, text *image, const char *operation, ol_error *error)
{
    nvrtcProgram program = NULL;
    char file[96];
    int n_options = 0;
    size_t n = 0;
    snprintf(file, sizeof file, "%s.cu", name);
    while (options->list[n_options])
        n_options++;
    nvrtcResult code = loaded.nvrtcCreateProgram(&program, source->bytes, file, 0, NULL, NULL);
    if (code != 0)
        return nvrtc_fail(code, "nvrtcCreateProgram", operation, error);
    ol_status status = OL_OK;
    code = loaded.nvrtcCompileProgram(program, n_options, options->list);
    if (code != 0)
        status = compiler_fail(program, code, &image->allocator, operation, error);
    else if ((code = loaded.nvrtcGetCUBINSize(program, &n)) != 0)
        status = nvrtc_fail(code, "nvrtcGetCUBINSize", operation, error);
    if (status == OL_OK) {
        char *bytes = memory_take(&image->allocator, n);
        if (!bytes)
            status = fail(error, OL_ERROR_MEMORY, operation, "no memory for %zu bytes of machine code", n);
        else if ((code = loaded.nvrtcGetCUBIN(program, bytes)) != 0)
            status = nvrtc_fail(code, "nvrtcGetCUBIN", operation, error);
        else
            text_add_bytes(image, bytes, n);
        memory_give(&image->allocator, bytes, n);
    }
    loaded.nvrtcDestroyProgram(&program);
    if (status == OL_OK && image->broken)
        status = fail(error, OL_ERROR_MEMORY, operation, "no memory for %zu bytes of machine code", n);
    return status;
}
