/* A stand-in for NVRTC that needs no CUDA: the text is compiled by the host's C++ compiler (fake_compile.c) to what the fake driver
 * runs. Results are exact: every operation is IEEE's, fused only where the text says so.
 *
 *     FAKE_NVRTC_VERSION="12.4"           the version it claims (13.0)
 *     FAKE_NVRTC_ARCHITECTURES="80 90"    that it knows
 *     FAKE_NVRTC_FLAGS="-O1 ..."          more options for the compiler; "-fsanitize=undefined -fsanitize-undefined-trap-on-error"
 *                                         ends the process where a kernel's result depends on the device
 *     FAKE_NVRTC_CXX=PATH                 another compiler
 *     FAKE_NVRTC_CHECKS=0                 no check of each access (fake_threads.c)
 *     FAKE_NVRTC_LOG=FILE                 a line for each compilation is added to it
 *     FAKE_NVRTC_FAIL="nvrtcCompileProgram:1:6"   the first call gives code 6
 *     FAKE_NVRTC_KEEP=1                   the folder of each compilation stays, and is named on standard error */
#include "fake_compile.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef FAKE_NVRTC_DEFAULT_VERSION
#define FAKE_NVRTC_DEFAULT_VERSION "13.0"
#define FAKE_NVRTC_DEFAULT_ARCHITECTURES "80 86 89 90 100 120"
#endif

typedef int nvrtcResult;
enum {
    NVRTC_SUCCESS = 0, NVRTC_ERROR_OUT_OF_MEMORY = 1, NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2, NVRTC_ERROR_INVALID_INPUT = 3,
    NVRTC_ERROR_INVALID_PROGRAM = 4, NVRTC_ERROR_INVALID_OPTION = 5, NVRTC_ERROR_COMPILATION = 6, NVRTC_ERROR_INTERNAL_ERROR = 11
};

typedef struct nvrtcProgram_st {
    char *source, *name;
    char *log;
    char *image;
    size_t n_image;
} *nvrtcProgram;

static atomic_int n_compilations;

/* How often nvrtcCompileProgram has started the compiler: what a kernel cache saves. */
int fake_nvrtc_compilations(void);
int fake_nvrtc_compilations(void) { return atomic_load(&n_compilations); }

/* The code that a call is to fail with, or 0. Each function counts its own calls. */
static nvrtcResult planned(const char *function, atomic_int *calls)
{
    const char *plan = getenv("FAKE_NVRTC_FAIL");
    int number, code, call = atomic_fetch_add(calls, 1) + 1;
    size_t length = strlen(function);
    if (plan && strncmp(plan, function, length) == 0 && sscanf(plan + length, ":%d:%d", &number, &code) == 2 && number == call)
        return code;
    return NVRTC_SUCCESS;
}

#define PLANNED(function)                                            \
    do {                                                             \
        static atomic_int calls;                                     \
        nvrtcResult planned_ = planned(function, &calls);            \
        if (planned_)                                                \
            return planned_;                                         \
    } while (0)

/* ---- Queries ---- */

static int read_version(int *major, int *minor)
{
    return sscanf(fake_setting("FAKE_NVRTC_VERSION", FAKE_NVRTC_DEFAULT_VERSION), "%d.%d", major, minor) == 2;
}

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    PLANNED("nvrtcVersion");
    return read_version(major, minor) ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_INPUT;
}

static int architectures(int *list)
{
    const char *p = fake_setting("FAKE_NVRTC_ARCHITECTURES", FAKE_NVRTC_DEFAULT_ARCHITECTURES);
    int n = 0, one, length;
    for (; sscanf(p, "%d%n", &one, &length) == 1; p += length, n++)
        if (list)
            list[n] = one;
    return n;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *n)
{
    PLANNED("nvrtcGetNumSupportedArchs");
    *n = architectures(NULL);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *list)
{
    PLANNED("nvrtcGetSupportedArchs");
    architectures(list);
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult code)
{
    static const char *const names[] = {
        "NVRTC_SUCCESS", "NVRTC_ERROR_OUT_OF_MEMORY", "NVRTC_ERROR_PROGRAM_CREATION_FAILURE", "NVRTC_ERROR_INVALID_INPUT",
        "NVRTC_ERROR_INVALID_PROGRAM", "NVRTC_ERROR_INVALID_OPTION", "NVRTC_ERROR_COMPILATION",
    };
    return code >= 0 && code < (int)(sizeof names / sizeof *names) ? names[code] : "NVRTC_ERROR unknown";
}

/* ---- Programs ---- */

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int n_headers,
                               const char *const *headers, const char *const *names)
{
    PLANNED("nvrtcCreateProgram");
    (void)headers, (void)names;
    nvrtcProgram p = calloc(1, sizeof *p);
    if (!source || n_headers || !p) {
        free(p);
        return n_headers ? NVRTC_ERROR_PROGRAM_CREATION_FAILURE : source ? NVRTC_ERROR_OUT_OF_MEMORY : NVRTC_ERROR_INVALID_INPUT;
    }
    p->source = strdup(source);
    p->name = strdup(name ? name : "default_program");
    *program = p;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    PLANNED("nvrtcDestroyProgram");
    if (!program || !*program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    free((*program)->source);
    free((*program)->name);
    free((*program)->log);
    free((*program)->image);
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *n_bytes)
{
    PLANNED("nvrtcGetProgramLogSize");
    *n_bytes = strlen(program->log ? program->log : "") + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    PLANNED("nvrtcGetProgramLog");
    strcpy(log, program->log ? program->log : "");
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *n_bytes)
{
    PLANNED("nvrtcGetCUBINSize");
    *n_bytes = program->n_image;
    return program->image ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *image)
{
    PLANNED("nvrtcGetCUBIN");
    if (!program->image)
        return NVRTC_ERROR_INVALID_PROGRAM;
    memcpy(image, program->image, program->n_image);
    return NVRTC_SUCCESS;
}

/* ---- Compiling ---- */

static void add_to_log(nvrtcProgram p, int architecture, double seconds)
{
    FILE *f = fopen(fake_setting("FAKE_NVRTC_LOG", "/dev/null"), "a");
    if (!f)
        return;
    fprintf(f, "%s sm_%d %zu bytes %s %.0f ms\n", p->name, architecture, strlen(p->source), p->image ? "compiled" : "failed",
            seconds * 1e3);
    fclose(f);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* As NVRTC: what it does not know is an error; without --fmad=false a multiplication and an addition may be fused. */
static const char *read_options(int n_options, const char *const *options, int *architecture, int *fuses)
{
    static const char *const known[] = { "--std=c++17", "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
                                         "--disable-warnings" };
    int list[256], n = architectures(list), is_known = 0;
    *architecture = 0;
    *fuses = 1;
    for (int i = 0; i < n_options; i++) {
        int found = sscanf(options[i], "--gpu-architecture=sm_%d", architecture) == 1;
        if (strcmp(options[i], "--fmad=false") == 0) {
            *fuses = 0;
            found = 1;
        }
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found |= strcmp(options[i], known[k]) == 0;
        if (!found)
            return options[i];
    }
    for (int i = 0; i < n; i++)
        is_known |= list[i] == *architecture;
    return is_known ? NULL : "--gpu-architecture";
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n_options, const char *const *options)
{
    double start = now();
    int architecture, fuses, major = 0, minor = 0;
    PLANNED("nvrtcCompileProgram");
    free(p->log);
    free(p->image);
    p->log = p->image = NULL;
    const char *refused = read_options(n_options, options, &architecture, &fuses);
    if (refused) {
        if (asprintf(&p->log, "nvrtc: error: invalid value for %s\n", refused) < 0)
            p->log = NULL;
        return NVRTC_ERROR_INVALID_OPTION;
    }
    atomic_fetch_add(&n_compilations, 1);
    read_version(&major, &minor);
    const fake_source source = { .text = p->source, .name = p->name, .architecture = architecture, .fuses = fuses,
                                 .parameter_bytes = major * 10 + minor >= 121 ? 32764 : 4096 };
    p->image = fake_compile(&source, &p->n_image, &p->log);
    add_to_log(p, architecture, now() - start);
    return p->image ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}
