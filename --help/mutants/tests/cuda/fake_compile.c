/* The fake NVRTC's compilations: the text between fake_device.h and a table of its kernels, compiled by the host's C++ compiler in
 * a folder that is gone afterwards. Built with FAKE_CXX, FAKE_CXX_CHECKS (options, or "") and FAKE_DEVICE_FOLDER
 * (CMakeLists.txt). */
#include "fake_compile.h"

#include "fake_image.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

const char *fake_setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
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

/* The parts of `asm("INSTRUCTION %0, %1;" : "=r"(RESULT) : "r"(OPERAND))`, a 0 being the second operand or not, and its length. */
static int read_one_operand(const char *text, char *instruction, char *result, char *operands, int *length)
{
    *length = 0;
    if (sscanf(text, "asm(\"%63[a-z0-9.] %%0, %%1;\" : \"=%*[a-z]\"(%63[^)]) : \"%*[a-z]\"(%63[^)]))%n", instruction, result, operands,
               length) == 3 && *length)
        return 1;
    if (sscanf(text, "asm(\"%63[a-z0-9.] %%0, %%1, 0f00000000;\" : \"=%*[a-z]\"(%63[^)]) : \"%*[a-z]\"(%63[^)]))%n", instruction, result,
               operands, length) != 3 || !*length)
        return 0;
    strcat(operands, ", 0");
    return 1;
}

/* Of one with two operands. */
static int read_two_operands(const char *text, char *instruction, char *result, char *operands, int *length)
{
    char second[60];
    *length = 0;
    if (sscanf(text, "asm(\"%63[a-z0-9.:] %%0, %%1, %%2;\" : \"=%*[a-z]\"(%63[^)]) : \"%*[a-z]\"(%59[^)]), \"%*[a-z]\"(%59[^)]))%n", instruction,
               result, operands, second, length) != 4 || !*length)
        return 0;
    strcat(strcat(operands, ", "), second);
    return 1;
}

/* One without a result, volatile: `asm volatile("INSTRUCTION;" : : : "memory")`, or with an address and an operand. */
static int read_effect(const char *text, char *instruction, char *operands, int *length)
{
    char second[60];
    *length = 0;
    operands[0] = '\0';
    if (sscanf(text, "asm volatile(\"%63[a-z0-9.:];\" : : : \"memory\")%n", instruction, length) == 1 && *length)
        return 1;
    if (sscanf(text, "asm volatile(\"%63[a-z0-9.:] [%%0], %%1;\" : : \"%*[a-z]\"(%63[^)]), \"%*[a-z]\"(%59[^)]) : \"memory\")%n", instruction, operands, second,
               length) != 3 || !*length)
        return 0;
    strcat(strcat(operands, ", "), second);
    return 1;
}

/* Writes the text as far as `end` without its hints, which are volatile assembly of one operand. */
static void write_without_hints(FILE *f, const char *text, const char *end)
{
    static const char hint[] = "asm volatile(\"prefetch", last[] = "));";
    for (const char *next; (next = strstr(text, hint)) != NULL && next < end && strstr(next, last);) {
        fwrite(text, 1, (size_t)(next - text), f);
        text = strstr(next, last) + 2;
    }
    fwrite(text, 1, (size_t)(end - text), f);
}

/* The next assembly that is no hint. */
static const char *next_assembly(const char *text)
{
    static const char hint[] = "asm volatile(\"prefetch";
    for (; (text = strstr(text, "asm")) != NULL; text++)
        if (strncmp(text, "asm(\"", 5) == 0 || (strncmp(text, "asm volatile(\"", 14) == 0 && strncmp(text, hint, sizeof hint - 1) != 0))
            return text;
    return NULL;
}

static const char *underlined(char *instruction)
{
    for (char *p = instruction; *p; p++)
        *p = *p == '.' || *p == ':' ? '_' : *p;
    return instruction;
}

/* Writes the text with its assembly, an instruction at a time, as calls of fake_assembly.h's functions; the address of the kernel's
 * parameter as that. */
static void write_without_assembly(FILE *f, const char *text)
{
    char instruction[64], result[64], operands[128];
    for (const char *next; (next = next_assembly(text)) != NULL;) {
        int length = 0;
        write_without_hints(f, text, next);
        text = next;
        if (read_effect(next, instruction, operands, &length)) {
            fprintf(f, "fake_%s(%s)", underlined(instruction), operands);
            text += length;
            continue;
        }
        if (sscanf(next, "asm(\"mov.b64 %%0, %*[A-Za-z0-9_];\" : \"=l\"(%63[^)]))%n", result, &length) == 1 && length) {
            fprintf(f, "%s = (uint64_t)&passed", result);
            text += length;
            continue;
        }
        if (!read_one_operand(next, instruction, result, operands, &length) && !read_two_operands(next, instruction, result, operands, &length)) {
            fputc(*text++, f);           /* left to the compiler to refuse */
            continue;
        }
        fprintf(f, "%s = fake_%s(%s)", result, underlined(instruction), operands);
        text += length;
    }
    write_without_hints(f, text, text + strlen(text));
}

static int write_text(const char *path, const fake_source *source)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return 0;
    fprintf(f, "#include \"fake_device.h\"\n#line 1 \"%s\"\n", source->name);
    write_without_assembly(f, source->text);
    fprintf(f, "\n#line 1 \"kernel table\"\nFAKE_TABLE(%d, ", strstr(source->text, "__syncthreads") || strstr(source->text, "__shfl"));
    write_rows(f, source->text);
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
static int run_compiler(const char *folder, const fake_source *source, int has_checks)
{
    char text[4096], object[4096], log[4096], flags[1024], checks[] = FAKE_CXX_CHECKS, defines[2][64];
    const char *arguments[MAX_ARGUMENTS] = {
        fake_setting("FAKE_NVRTC_CXX", FAKE_CXX), "-std=c++17", "-shared", "-fPIC", "-w", "-fno-math-errno", "-fno-strict-aliasing",
        "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-nostdlib", "-I" FAKE_DEVICE_FOLDER, defines[0], defines[1],
        /* -O0 compiles fastest, and small tensors are computed in no time; it does not fuse by itself, -O1 does. */
        source->fuses ? "-O1" : "-O0", source->fuses ? "-ffp-contract=fast" : "-ffp-contract=off",
    };
    int n = 16;
    snprintf(defines[0], sizeof *defines, "-DFAKE_PARAMETER_BYTES=%d", source->parameter_bytes);
    snprintf(defines[1], sizeof *defines, "-D__CUDA_ARCH__=%d0", source->architecture);
    if (host_has_fma())
        arguments[n++] = "-mfma";
    if (has_checks) {
        arguments[n++] = "-DFAKE_CHECKS";
        n = add_words(arguments, n, checks);
    }
    snprintf(flags, sizeof flags, "%s", fake_setting("FAKE_NVRTC_FLAGS", ""));
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

char *fake_compile(const fake_source *source, size_t *n_bytes, char **log)
{
    char folder[3072], path[4096], *image = NULL;
    int has_checks = *FAKE_CXX_CHECKS && *fake_setting("FAKE_NVRTC_CHECKS", "1") != '0';
    snprintf(folder, sizeof folder, "%s/fake_nvrtc.XXXXXX", fake_setting("TMPDIR", "/tmp"));
    if (!mkdtemp(folder))
        return NULL;
    snprintf(path, sizeof path, "%s/kernel.cc", folder);
    int ok = write_text(path, source) && run_compiler(folder, source, has_checks);
    snprintf(path, sizeof path, "%s/log.txt", folder);
    *log = read_file(path, 0, NULL);
    snprintf(path, sizeof path, "%s/kernel.so", folder);
    if (ok && (image = read_file(path, sizeof(fake_image_head), n_bytes)) != NULL) {
        const fake_image_head head = { .magic = FAKE_IMAGE_MAGIC, .architecture = source->architecture, .has_checks = has_checks,
                                       .n_bytes = *n_bytes, .checksum = fake_checksum(image + sizeof head, *n_bytes) };
        memcpy(image, &head, sizeof head);
        *n_bytes += sizeof head;
    }
    remove_folder(folder);
    return image;
}
