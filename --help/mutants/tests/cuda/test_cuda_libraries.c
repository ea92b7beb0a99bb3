/* CUDA's libraries missing, broken, old or new, and processes that fork or end (A64, A65, A73, A80). In children, since a process
 * opens a library once. */
#include "cuda_harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int build_twice(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_add(g, in[0], in[0]);
    return 0;
}

static const ol_builder builder = { .build = build_twice, .n_inputs = 1, .n_outputs = 1, .name = "twice" };

/* ---- What children do ---- */

/* A CPU device does its work, whatever becomes of CUDA. */
static int cpu_works(void)
{
    ol_device *device;
    ol_composite *c;
    ol_error error;
    float x = 21, y = 0;
    ol_tensor in = vector_of(&x, OL_FLOAT32, 1), out = vector_of(&y, OL_FLOAT32, 1);
    ol_cpu_options options = { .n_threads = 1 };
    if (ol_device_cpu(&options, &device, &error) != OL_OK)
        return 0;
    int ok = ol_compile(device, &builder, DTYPES(OL_FLOAT32), &c, &error) == OL_OK &&
             ol_replay(c, NULL, &in, &out, &error) == OL_OK && y == 42;
    ol_composite_destroy(c);
    ol_device_destroy(device);
    return ok;
}

typedef struct kit {
    ol_device *device;
    ol_composite *c;
    ol_stream own;
    char *memory;
} kit;

static int kit_make(kit *k, ol_error *error)
{
    memset(k, 0, sizeof *k);
    return ol_device_cuda(0, NULL, &k->device, error) == OL_OK &&
           ol_compile(k->device, &builder, DTYPES(OL_FLOAT32), &k->c, error) == OL_OK &&
           ol_stream_create(k->device, &k->own, error) == OL_OK &&
           ol_device_allocate(k->device, 8, (void **)&k->memory, error) == OL_OK;
}

static int kit_works(const kit *k, ol_error *error)
{
    float x = 21, y = 0;
    ol_tensor in = vector_of(k->memory, OL_FLOAT32, 1), out = vector_of(k->memory + 4, OL_FLOAT32, 1);
    return ol_device_copy(k->device, k->own, k->memory, &x, 4, error) == OL_OK &&
           ol_replay(k->c, k->own, &in, &out, error) == OL_OK &&
           ol_device_copy(k->device, k->own, &y, k->memory + 4, 4, error) == OL_OK &&
           ol_stream_synchronize(k->device, k->own, error) == OL_OK && y == 42;
}

static void kit_end(kit *k)
{
    ol_device_free(k->device, k->memory, 8, NULL);
    ol_stream_destroy(k->device, k->own, NULL);
    ol_composite_destroy(k->c);
    ol_device_destroy(k->device);
}

/* Says what each call says, one to a line. */
static int say(void)
{
    int32_t n = -1, version = -1;
    ol_cuda_facts facts = { .capability = -1 };
    ol_error error;
    kit k;
    if (ol_cuda_count(&n, &error) == OL_OK)
        printf("count: %d\n", (int)n);
    else
        printf("count: %s: %s\n", ol_status_name(error.status), error.description);
    if (ol_cuda_describe(0, &facts, &error) != OL_OK)
        printf("describe: %s: %s\n", ol_status_name(error.status), error.description);
    if (ol_cuda_compiler(&version, &error) == OL_OK)
        printf("compiler: %d\n", (int)version);
    else
        printf("compiler: %s: %s\n", ol_status_name(error.status), error.description);
    if (kit_make(&k, &error) && kit_works(&k, &error))
        printf("works\n");
    else
        printf("work: %s: %s\n", ol_status_name(error.status), error.description);
    kit_end(&k);
    printf("%s\n", cpu_works() ? "cpu works" : "cpu fails");
    return 0;
}

/* ---- Missing, broken, old, new ---- */

static void check_saying(const char *const *environment, const char *const *expected)
{
    char output[CHILD_OUTPUT];
    int code = run_child("say", environment, output);
    if (code)
        fail_msg("code %d: %s", code, output);
    for (; *expected; expected++)
        if (!strstr(output, *expected))
            fail_msg("with %s: no \"%s\" in: %s", environment[0], *expected, output);
}

#define WITH(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void the_driver_is_missing_or_broken(void **state)
{
    char folder[] = "/tmp/onelaunch_test.XXXXXX", file[100], setting[200];
    (void)state;
    need_fake();
    check_saying(WITH("LD_LIBRARY_PATH=" BROKEN "/driver_too_old"),
                 WITH("count: OL_ERROR_DEVICE: libcuda.so.1 has no cuLaunchKernel: the driver is older than CUDA 11.2\n",
                      "describe: OL_ERROR_DEVICE: libcuda.so.1",
                      "work: OL_ERROR_DEVICE: libcuda.so.1 has no cuLaunchKernel", "cpu works"));
    check_saying(WITH("LD_LIBRARY_PATH=" BROKEN "/driver_no_device"),
                 WITH("count: 0\n", "describe: OL_ERROR_DEVICE: there is no cuda:0; the driver finds 0 GPUs\n",
                      "work: OL_ERROR_DEVICE: there is no cuda:0; the driver finds 0 GPUs\n", "cpu works"));
    check_saying(WITH("FAKE_CUDA_DEVICES=0"),
                 WITH("count: 0\n", "work: OL_ERROR_DEVICE: there is no cuda:0; the driver finds 0 GPUs\n", "cpu works"));
    /* An empty file in the driver's place. */
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/libcuda.so.1", folder);
    snprintf(setting, sizeof setting, "LD_LIBRARY_PATH=%s", folder);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fclose(f);
    check_saying(WITH(setting), WITH("count: OL_ERROR_DEVICE: the CUDA driver cannot be opened: ", "libcuda.so.1: file too short",
                                     "cpu works"));
    unlink(file);
    rmdir(folder);
}

static void A80_the_compiler_is_missing_or_broken(void **state)
{
    (void)state;
    need_fake();
    const char *const off = "ONELAUNCH_CACHE=off";
    check_saying(WITH("ONELAUNCH_NVRTC=/nowhere/libnvrtc.so.13", off),
                 WITH("compiler: OL_ERROR_DEVICE: ONELAUNCH_NVRTC is \"/nowhere/libnvrtc.so.13\", which cannot be opened: ",
                      "work: OL_ERROR_DEVICE: ONELAUNCH_NVRTC is \"/nowhere/libnvrtc.so.13\"", "count: 2\n", "cpu works"));
    check_saying(WITH("ONELAUNCH_NVRTC=" BROKEN "/libnvrtc_no_cubin.so", off),
                 WITH("compiler: OL_ERROR_DEVICE: the NVRTC that was found as ONELAUNCH_NVRTC=" BROKEN
                      "/libnvrtc_no_cubin.so has no nvrtcGetCUBIN",
                      "cpu works"));
    check_saying(WITH("ONELAUNCH_NVRTC=" BROKEN "/libnvrtc_old.so", off),
                 WITH("compiler: 11000\n",
                      "work: OL_ERROR_DEVICE: NVRTC 11.0 makes no code for compute capability 9.0; its own go from 7.0 to 8.0\n",
                      "cpu works"));
    check_saying(WITH("FAKE_NVRTC_VERSION=99.3", off), WITH("compiler: 99030\n", "works\n", "cpu works"));
    check_saying(WITH("FAKE_NVRTC_ARCHITECTURES=80 89", "FAKE_CUDA_CAPABILITY=87", off), WITH("works\n"));
    check_saying(WITH("FAKE_NVRTC_ARCHITECTURES=", "FAKE_CUDA_CAPABILITY=55", off),
                 WITH("work: OL_ERROR_DEVICE: NVRTC 13.0 makes no code for compute capability 5.5; its own go from 8.0 to 12.0"));
    /* The compiler's own words. */
    check_saying(WITH("FAKE_NVRTC_FLAGS=-include no_such_builtins.h", off),
                 WITH("work: OL_ERROR_DEVICE: NVRTC 13.0: NVRTC_ERROR_COMPILATION (6): ", "no_such_builtins.h: No such file",
                      "cpu works"));
    check_saying(WITH("FAKE_NVRTC_CXX=/bin/false", off),
                 WITH("work: OL_ERROR_DEVICE: NVRTC 13.0: NVRTC_ERROR_COMPILATION (6): no log\n", "cpu works"));
}

static void every_call_of_the_compiler_fails_once(void **state)
{
    static const char *const calls[] = { "nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs", "nvrtcCreateProgram",
                                         "nvrtcGetCUBINSize", "nvrtcGetCUBIN" };
    (void)state;
    need_fake();
    for (size_t i = 0; i < COUNT(calls); i++) {
        char plan[100], expected[100];
        snprintf(plan, sizeof plan, "FAKE_NVRTC_FAIL=%s:1:1", calls[i]);
        snprintf(expected, sizeof expected, "work: OL_ERROR_DEVICE: %s of NVRTC 13.0: NVRTC_ERROR_OUT_OF_MEMORY (1)\n",
                 i == 0 ? "nvrtcGetSupportedArchs" : calls[i]);
        check_saying(WITH(plan, "ONELAUNCH_CACHE=off", "FAKE_CUDA_STRICT=1"), WITH(expected, "cpu works"));
    }
    check_saying(WITH("FAKE_NVRTC_FAIL=nvrtcVersion:1:3", "ONELAUNCH_CACHE=off"),
                 WITH("compiler: OL_ERROR_DEVICE: nvrtcVersion: code 3\n", "works\n"));
    check_saying(WITH("FAKE_NVRTC_FAIL=nvrtcCompileProgram:1:11", "ONELAUNCH_CACHE=off"),
                 WITH("work: OL_ERROR_DEVICE: NVRTC 13.0: NVRTC_ERROR unknown (11): no log"));
    check_saying(WITH("FAKE_NVRTC_FAIL=nvrtcDestroyProgram:1:4", "ONELAUNCH_CACHE=off", "ASAN_OPTIONS=detect_leaks=0"),
                 WITH("works\n"));
}

/* ---- A73: nothing is included ---- */

static void A73_the_text_is_self_contained(void **state)
{
    char folder[] = "/tmp/onelaunch_test.XXXXXX", output[CHILD_OUTPUT], setting[3][100], file[3][100];
    static const char *const headers[] = { "cuda.h", "cuda_runtime.h", "cuda_fp16.h" };
    (void)state;
    ol_composite *c = compile_on(cuda, build_primitive, primitive_named("exp"), 1, DTYPES(OL_FLOAT16), 1);
    size_t n = ol_cuda_kernel_text(c, NULL, 0);
    char *text = malloc(n + 1);
    assert_int_equal(ol_cuda_kernel_text(c, text, n + 1), n);
    assert_null(strstr(text, "#include"));
    free(text);
    ol_composite_destroy(c);
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 3; i++) {
        static const char *const variables[] = { "CPATH", "CUDA_HOME", "CUDA_PATH" };
        snprintf(setting[i], sizeof setting[i], "%s=%s", variables[i], folder);
        snprintf(file[i], sizeof file[i], "%s/%s", folder, headers[i]);
        FILE *f = fopen(file[i], "w");
        assert_non_null(f);
        fprintf(f, "#error an old header was found\n");
        fclose(f);
    }
    int code = run_child("elsewhere", WITH(setting[0], fake_is_loaded() ? setting[1] : "NONE",
                                           fake_is_loaded() ? setting[2] : "NONE", "ONELAUNCH_CACHE=off"), output);
    if (code || !strstr(output, "works\n"))
        fail_msg("code %d: %s", code, output);
    for (int i = 0; i < 3; i++)
        unlink(file[i]);
    rmdir(folder);
}

static int elsewhere(void)
{
    return chdir(getenv("CPATH")) == 0 ? say() : 1;
}

/* ---- A64: forks ---- */

/* What a child of this process gives; its own children may not hang. */
static int in_fork(int (*body)(void))
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        exit(body());
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static int is_open(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (handle)
        dlclose(handle);
    return handle != NULL;
}

static int use_cuda(void)
{
    ol_error error;
    kit k;
    int ok = kit_make(&k, &error) && kit_works(&k, &error);
    if (!ok)
        printf("%s: %s\n", error.operation, error.description);
    kit_end(&k);
    return !ok;
}

/* CPU work opens nothing of CUDA's, and a child forked after it may. */
static int fork_before_cuda(void)
{
    if (!cpu_works() || is_open("libcuda.so.1"))
        return 1;
    if (in_fork(use_cuda))
        return 2;
    if (is_open("libcuda.so.1"))
        return 3;
    return use_cuda() ? 4 : 0;
}

static kit inherited;

/* After a fork CUDA is not to be had: each call says so, or works, and nothing hangs or crashes. */
static int use_inherited(void)
{
    ol_error error = { 0 };
    ol_device *device = NULL;
    ol_composite *c = NULL;
    int32_t n;
    if (fake_is_loaded())
        fake_fail("*", 0, 3);                                    /* as the driver does */
    const ol_status results[] = { kit_works(&inherited, &error) ? OL_OK : error.status, ol_device_cuda(0, NULL, &device, &error),
                                  ol_cuda_count(&n, &error),
                                  ol_compile(inherited.device, &builder, DTYPES(OL_FLOAT32), &c, &error) };
    for (size_t i = 0; i < COUNT(results); i++)
        if (results[i] != OL_OK && results[i] != OL_ERROR_DEVICE)
            return 1;
    if (fake_is_loaded() && !strstr(error.description, "CUDA_ERROR_NOT_INITIALIZED (3)") && results[3] != OL_OK)
        return 2;
    ol_composite_destroy(c);
    ol_device_destroy(device);
    kit_end(&inherited);
    return cpu_works() ? 0 : 3;
}

static int fork_after_cuda(void)
{
    ol_error error;
    if (!kit_make(&inherited, &error) || !kit_works(&inherited, &error))
        return 10;
    int code = in_fork(use_inherited);
    if (code)
        return code;
    if (!kit_works(&inherited, &error))                          /* the parent goes on */
        return 11;
    kit_end(&inherited);
    return 0;
}

static void A64_forks(void **state)
{
    static const char *const names[] = { "fork before CUDA", "fork after CUDA" };
    char output[CHILD_OUTPUT];
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        int code = run_child(names[i], WITH("ASAN_OPTIONS=detect_leaks=0"), output);
        if (code || *output)
            fail_msg("%s: code %d: %s", names[i], code, output);
    }
}

/* ---- A65: the end ---- */

static void *replay_for_ever(void *user)
{
    kit *k = user;
    ol_tensor in = vector_of(k->memory, OL_FLOAT32, 1), out = vector_of(k->memory + 4, OL_FLOAT32, 1);
    for (;;)
        ol_replay(k->c, k->own, &in, &out, NULL);
    return NULL;
}

static int exit_with_all_alive(void)
{
    ol_error error;
    static kit k[2];
    for (int i = 0; i < 2; i++)
        if (!kit_make(&k[i], &error) || !kit_works(&k[i], &error))
            return 1;
    exit(0);
}

static int exit_with_a_thread(void)
{
    ol_error error;
    static kit k;
    pthread_t thread;
    if (!kit_make(&k, &error) || !kit_works(&k, &error) || pthread_create(&thread, NULL, replay_for_ever, &k) != 0)
        return 1;
    usleep(50000);
    exit(0);
}

/* From a destructor of the program, when the driver may have ended already. */
static kit last;
static void end_late(void)
{
    kit_end(&last);
    ol_device *device = NULL;
    if (ol_device_cuda(0, NULL, &device, NULL) == OL_OK)
        ol_device_destroy(device);
}

static int exit_with_late_destruction(void)
{
    ol_error error;
    if (atexit(end_late) != 0 || !kit_make(&last, &error) || !kit_works(&last, &error))
        return 1;
    if (fake_is_loaded())
        fake_fail("*", 0, 4);                                    /* CUDA_ERROR_DEINITIALIZED */
    exit(0);
}

static void A65_ends_are_silent(void **state)
{
    static const char *const names[] = { "exit with all alive", "exit with a thread", "exit with late destruction" };
    char output[CHILD_OUTPUT];
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        int code = run_child(names[i], WITH("ASAN_OPTIONS=detect_leaks=0", "TSAN_OPTIONS=report_bugs=0"), output);
        if (code || *output)
            fail_msg("%s: code %d: %s", names[i], code, output);
    }
}

int main(int argc, char **argv)
{
    static const child_program children[] = {
        { "say", say }, { "elsewhere", elsewhere }, { "fork before CUDA", fork_before_cuda },
        { "fork after CUDA", fork_after_cuda },
        { "exit with all alive", exit_with_all_alive }, { "exit with a thread", exit_with_a_thread },
        { "exit with late destruction", exit_with_late_destruction }, { NULL, NULL },
    };
    const struct CMUnitTest tests[] = {
        CUDA_TEST(the_driver_is_missing_or_broken), CUDA_TEST(A80_the_compiler_is_missing_or_broken),
        CUDA_TEST(every_call_of_the_compiler_fails_once),
        CUDA_TEST(A73_the_text_is_self_contained), CUDA_TEST(A64_forks), CUDA_TEST(A65_ends_are_silent),
    };
    child_programs = children;
    return CUDA_RUN(argc, argv, tests);
}
