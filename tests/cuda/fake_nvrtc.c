/* A stand-in for NVRTC that needs no CUDA: the text is compiled by the host's C++ compiler, over fake_device.h, to a shared object
 * that the fake driver runs (fake_image.h). Results are exact: every operation is IEEE's, fused only where the text says so.
 *
 *     FAKE_NVRTC_VERSION="12.4"           the version it claims (13.0)
 *     FAKE_NVRTC_ARCHITECTURES="80 90"    that it knows
 *     FAKE_NVRTC_FLAGS="-O1 ..."          more options for the compiler, e.g. -fsanitize=undefined -fsanitize-undefined-trap-on-error
 *     FAKE_NVRTC_CXX=PATH                 another compiler
 *     FAKE_NVRTC_CHECKS=0                 no check of each access (fake_threads.c)
 *     FAKE_NVRTC_LOG=FILE                 a line for each compilation is added to it
 *     FAKE_NVRTC_FAIL="nvrtcCompileProgram:1:6"   the first call gives code 6
 *     FAKE_NVRTC_KEEP=1                   the folder of each compilation stays, and is named on standard error
 *
 * Built from CMakeLists.txt with FAKE_CXX, FAKE_CXX_CHECKS (options, or ""), FAKE_DEVICE_FOLDER. */
#include "fake_image.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

extern char **environ;
static atomic_int n_compilations;

/* How often nvrtcCompileProgram has started the compiler: what a kernel cache saves. */
int fake_nvrtc_compilations(void);
int fake_nvrtc_compilations(void) { return atomic_load(&n_compilations); }

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

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

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    PLANNED("nvrtcVersion");
    return sscanf(setting("FAKE_NVRTC_VERSION", FAKE_NVRTC_DEFAULT_VERSION), "%d.%d", major, minor) == 2 ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_INPUT;
}

static int architectures(int *list)
{
    const char *p = setting("FAKE_NVRTC_ARCHITECTURES", FAKE_NVRTC_DEFAULT_ARCHITECTURES);
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
        "NVRTC_SUCCESS", "NVRTC_ERROR_OUT_OF_MEMORY", "NVRTC_ERROR_PROGRAM_CREATION_FAILURE", "NVRTC_ERROR_INVALID_INPUT", "NVRTC_ERROR_INVALID_PROGRAM",
        "NVRTC_ERROR_INVALID_OPTION", "NVRTC_ERROR_COMPILATION",
    };
    return code >= 0 && code < (int)(sizeof names / sizeof *names) ? names[code] : "NVRTC_ERROR unknown";
}

/* ---- Programs ---- */

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int n_headers, const char *const *headers,
                               const char *const *names)
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

/* ---- The text and its kernels ---- */

/* Writes a table row for each kernel: `__global__ void [__launch_bounds__(256)] NAME(`. */
static void write_rows(FILE *f, const char *source)
{
    static const char mark[] = "__global__", bounds[] = "__launch_bounds__(";
    for (const char *p = source; (p = strstr(p, mark)) != NULL;) {
        int max_threads = 0;
        p += strlen(mark);
        const char *end = strchr(p, '('), *found = strstr(p, bounds);
        if (found && end && found + strlen(bounds) - 1 == end) {
            max_threads = atoi(end + 1);
            end = strchr(end + 1, '(');
        }
        if (!end)
            break;
        const char *name = end;
        while (name > p && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
            name--;
        fprintf(f, "fake_entry<%.*s>::row(\"%.*s\", %d), ", (int)(end - name), name, (int)(end - name), name, max_threads);
    }
}

static int write_text(const char *path, nvrtcProgram p)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return 0;
    fprintf(f, "#include \"fake_device.h\"\n#line 1 \"%s\"\n%s\n#line 1 \"kernel table\"\nFAKE_TABLE(%d, ", p->name, p->source,
            strstr(p->source, "__syncthreads") != NULL);
    write_rows(f, p->source);
    fprintf(f, ")\n");
    return fclose(f) == 0;
}

/* ---- The compiler ---- */

static char *read_file(const char *path, size_t before, size_t *n_bytes)
{
    FILE *f = fopen(path, "rb");
    char *bytes = NULL;
    long n = 0;
    if (f && fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 && (bytes = calloc(1, before + (size_t)n + 1)) != NULL) {
        rewind(f);
        if (fread(bytes + before, 1, (size_t)n, f) != (size_t)n) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (f)
        fclose(f);
    if (n_bytes)
        *n_bytes = (size_t)n;
    return bytes;
}

#define MAX_ARGUMENTS 96

/* The words of `flags`, which is changed. */
static int add_words(const char **arguments, int n, char *flags)
{
    char *rest = NULL;
    for (char *word = strtok_r(flags, " ", &rest); word && n < MAX_ARGUMENTS - 8; word = strtok_r(NULL, " ", &rest))
        arguments[n++] = word;
    return n;
}

/* An x86-64 that fuses in one instruction is told so; the others call the C library's exact fma. */
static int host_has_fma(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("fma");
#else
    return 0;
#endif
}

/* Runs the compiler in `folder` on kernel.cc, its output in log.txt. */
static int run_compiler(const char *folder, int fuses, int has_checks)
{
    char text[4096], object[4096], log[4096], flags[1024], checks[] = FAKE_CXX_CHECKS, parameter_bytes[64];
    const char *arguments[MAX_ARGUMENTS] = {
        setting("FAKE_NVRTC_CXX", FAKE_CXX), "-std=c++17", "-shared", "-fPIC", "-w", "-fno-math-errno", "-fno-strict-aliasing", "-fno-exceptions",
        "-fno-rtti", "-fvisibility=hidden", "-nostdlib", "-I" FAKE_DEVICE_FOLDER,
        /* -O0 compiles fastest, and small tensors are computed in no time; it does not fuse by itself, -O1 does. */
        fuses ? "-O1" : "-O0", fuses ? "-ffp-contract=fast" : "-ffp-contract=off",
    };
    int n = 14, major = 0, minor = 0;
    nvrtcVersion(&major, &minor);
    snprintf(parameter_bytes, sizeof parameter_bytes, "-DFAKE_PARAMETER_BYTES=%d", major * 10 + minor >= 121 ? 32764 : 4096);
    arguments[n++] = parameter_bytes;
    if (host_has_fma())
        arguments[n++] = "-mfma";
    if (has_checks) {
        arguments[n++] = "-DFAKE_CHECKS";
        n = add_words(arguments, n, checks);
    }
    snprintf(flags, sizeof flags, "%s", setting("FAKE_NVRTC_FLAGS", ""));
    n = add_words(arguments, n, flags);
    snprintf(text, sizeof text, "%s/kernel.cc", folder);
    snprintf(object, sizeof object, "%s/kernel.so", folder);
    snprintf(log, sizeof log, "%s/log.txt", folder);
    const char *const last[] = { "-o", object, text, "-lm", "-lc", NULL };
    memcpy(arguments + n, last, sizeof last);

    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    int failed = posix_spawnp(&child, arguments[0], &actions, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) {
        fprintf(stderr, "fake NVRTC: %s cannot be run: %s\n", arguments[0], strerror(failed));
        return 0;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void remove_folder(const char *folder)
{
    static const char *const names[] = { "kernel.cc", "kernel.so", "log.txt" };
    char path[4096];
    if (getenv("FAKE_NVRTC_KEEP")) {
        fprintf(stderr, "fake NVRTC: %s\n", folder);
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void add_to_log(nvrtcProgram p, const char *architecture, int ok, double seconds)
{
    const char *path = getenv("FAKE_NVRTC_LOG");
    FILE *f = path && *path ? fopen(path, "a") : NULL;
    if (!f)
        return;
    fprintf(f, "%s %s %zu bytes %s %.0f ms\n", p->name, architecture, strlen(p->source), ok ? "compiled" : "failed", seconds * 1e3);
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
    static const char *const known[] = { "--std=c++17", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--disable-warnings" };
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
    char folder[3072], path[4096], architecture[16];
    int sm, fuses, has_checks = *FAKE_CXX_CHECKS && *setting("FAKE_NVRTC_CHECKS", "1") != '0';
    double start = now();
    nvrtcResult code = NVRTC_ERROR_COMPILATION;
    PLANNED("nvrtcCompileProgram");
    free(p->log);
    p->log = NULL;
    const char *refused = read_options(n_options, options, &sm, &fuses);
    if (refused) {
        if (asprintf(&p->log, "nvrtc: error: invalid value for %s\n", refused) < 0)
            p->log = NULL;
        return NVRTC_ERROR_INVALID_OPTION;
    }
    snprintf(folder, sizeof folder, "%s/fake_nvrtc.XXXXXX", setting("TMPDIR", "/tmp"));
    if (!mkdtemp(folder))
        return NVRTC_ERROR_INTERNAL_ERROR;
    atomic_fetch_add(&n_compilations, 1);
    snprintf(path, sizeof path, "%s/kernel.cc", folder);
    int ok = write_text(path, p) && run_compiler(folder, fuses, has_checks);
    snprintf(path, sizeof path, "%s/log.txt", folder);
    p->log = read_file(path, 0, NULL);
    if (ok) {
        snprintf(path, sizeof path, "%s/kernel.so", folder);
        size_t n = 0;
        char *image = read_file(path, sizeof(fake_image_head), &n);
        if (image) {
            fake_image_head head = { .magic = FAKE_IMAGE_MAGIC, .architecture = sm, .has_checks = has_checks, .n_bytes = n,
                                     .checksum = fake_checksum(image + sizeof head, n) };
            memcpy(image, &head, sizeof head);
            free(p->image);
            p->image = image;
            p->n_image = sizeof head + n;
            code = NVRTC_SUCCESS;
        }
    }
    remove_folder(folder);
    snprintf(architecture, sizeof architecture, "sm_%d", sm);
    add_to_log(p, architecture, code == NVRTC_SUCCESS, now() - start);
    return code;
}
