/* See cuda_harness.h. */
#include "cuda_harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

ol_device *cuda, *cpu;
ol_stream stream;
ol_cuda_facts gpu;
driver cu;
more_driver more;
const child_program *child_programs;
static size_t n_left;

/* ---- The driver ---- */

/* 0 where there is none. One that lacks a function is no reason to skip. */
static int find_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return 0;
#define FIND(table, name, symbol)                                     \
    if (!(*(void **)&table.name = dlsym(library, #symbol))) {         \
        fprintf(stderr, "the driver has no " #symbol "\n");           \
        exit(1);                                                      \
    }
#define F(name, symbol, arguments) FIND(cu, name, symbol)
    DRIVER_FUNCTIONS(F)
#undef F
#define F(name, symbol, arguments) FIND(more, name, symbol)
    MORE_FUNCTIONS(F)
#undef F
    return 1;
}

CUcontext current_context(void)
{
    CUcontext context = NULL;
    assert_int_equal(cu.cuCtxGetCurrent(&context), 0);
    return context;
}

void need_fake(void)
{
    if (!fake_is_loaded()) {
        print_message("needs the fake driver\n");
        skip();
    }
}

size_t compilations(void)
{
    void *library = dlopen(getenv("ONELAUNCH_NVRTC"), RTLD_NOW | RTLD_NOLOAD);
    int (*count)(void) = NULL;
    if (library) {
        *(void **)&count = dlsym(library, "fake_nvrtc_compilations");
        dlclose(library);
    }
    return count ? (size_t)count() : 0;
}

/* ---- Programs and tests ---- */

int cuda_run(int argc, char **argv, const char *group, const struct CMUnitTest *tests, size_t n_tests)
{
    enum { SKIPPED = 77 };
    ol_error error;
    int32_t version = 0;
    for (const child_program *child = child_programs; argc == 3 && strcmp(argv[1], "--child") == 0 && child && child->name; child++)
        if (strcmp(child->name, argv[2]) == 0)
            return child->run();
    if (!find_driver() || cu.cuInit(0) != CUDA_SUCCESS) {
        printf("skipped: no CUDA driver, or no GPU\n");
        return SKIPPED;
    }
    if (ol_cuda_describe(0, &gpu, &error) != OL_OK || ol_cuda_compiler(&version, &error) != OL_OK) {
        printf("skipped: %s: %s\n", error.operation, error.description);
        return SKIPPED;
    }
    printf("%s, %d multiprocessors, compute capability %d, driver %d, NVRTC %d\n", gpu.name, (int)gpu.n_multiprocessors,
           (int)gpu.capability,
           (int)gpu.driver_version, (int)version);
    cpu = level_device(level_count() - 1);
    return harness_run(argc, argv, group, tests, n_tests);
}

int cuda_set_up(void **state)
{
    ol_error error;
    (void)state;
    for (CUcontext popped; current_context();)                   /* of a test that failed */
        assert_int_equal(cu.cuCtxPopCurrent(&popped), 0);
    if (fake_is_loaded()) {
        fake_forget();
        fake_refuse_null_stream(1);
        n_left = fake_leaks();
    }
    assert_ok(ol_device_cuda(0, NULL, &cuda, &error), &error);
    assert_ok(ol_stream_create(cuda, &stream, &error), &error);
    return 0;
}

int cuda_tear_down(void **state)
{
    ol_error error;
    (void)state;
    if (stream)
        assert_ok(ol_stream_destroy(cuda, stream, &error), &error);
    ol_device_destroy(cuda);
    cuda = NULL;
    stream = NULL;
    assert_null(current_context());
    if (fake_is_loaded()) {
        fake_hold(0);
        fake_backwards(0);
        fake_refuse_null_stream(0);
        assert_int_equal(fake_violations(), 0);
        assert_int_equal(fake_leaks(), n_left);
    }
    return 0;
}

/* ---- Memory of the device ---- */

void upload(ol_device *device, ol_stream in, void *to, const void *from, size_t n_bytes)
{
    ol_error error;
    assert_ok(ol_device_copy(device, in, to, from, n_bytes, &error), &error);
    assert_ok(ol_stream_synchronize(device, in, &error), &error);
}

void download(ol_device *device, ol_stream in, void *to, const void *from, size_t n_bytes)
{
    upload(device, in, to, from, n_bytes);
}

void *device_bytes(ol_device *device, const void *bytes, size_t n_bytes)
{
    void *pointer = NULL, *filler = NULL;
    ol_error error;
    if (!bytes)
        bytes = memset(filler = malloc(n_bytes + 1), 0xA5, n_bytes);
    assert_ok(ol_device_allocate(device, n_bytes, &pointer, &error), &error);
    upload(device, device == cuda ? stream : (ol_stream)(uintptr_t)2, pointer, bytes, n_bytes);
    free(filler);
    return pointer;
}

void device_give(ol_device *device, void *pointer, size_t n_bytes)
{
    ol_error error;
    assert_ok(ol_device_free(device, pointer, n_bytes, &error), &error);
}

/* ---- Host memory ---- */

enum { LEDGER_HEAD = 64 };

static void *ledger_allocate(void *user, size_t n_bytes)
{
    ledger *l = user;
    if (++l->n_calls == l->fail_at || n_bytes == 0)
        return NULL;
    char *block = aligned_alloc(64, (LEDGER_HEAD + n_bytes + 63) / 64 * 64);
    if (!block)
        return NULL;
    memcpy(block, &n_bytes, sizeof n_bytes);
    memset(block + LEDGER_HEAD, 0xDB, n_bytes);                  /* what is not written is not zero by luck */
    l->n_blocks++;
    l->n_bytes += n_bytes;
    return block + LEDGER_HEAD;
}

static void ledger_free(void *user, void *pointer, size_t n_bytes)
{
    ledger *l = user;
    char *block = (char *)pointer - LEDGER_HEAD;
    size_t taken;
    memcpy(&taken, block, sizeof taken);
    l->n_faults += taken != n_bytes;
    l->n_blocks--;
    l->n_bytes -= taken;
    memset(pointer, 0xDD, taken);
    free(block);
}

ol_cuda_options ledger_options(ledger *l)
{
    return (ol_cuda_options){ .allocator = { ledger_allocate, ledger_free, l } };
}

/* ---- Captures ---- */

/* Makes the stream's context current, and the one before again. */
static void enter(ol_stream in)
{
    CUcontext context = NULL;
    assert_int_equal(cu.cuStreamGetCtx(in, &context), 0);
    assert_int_equal(cu.cuCtxPushCurrent(context), 0);
}

static void leave(void)
{
    CUcontext popped;
    assert_int_equal(cu.cuCtxPopCurrent(&popped), 0);
}

void capture_begin(ol_stream in, int mode)
{
    enter(in);
    assert_int_equal(more.cuStreamBeginCapture(in, mode), 0);
    leave();
}

captured capture_end(ol_stream in)
{
    captured c = { 0 };
    CUgraphNode nodes[64];
    size_t n = 0;
    enter(in);
    assert_int_equal(more.cuStreamEndCapture(in, &c.graph), 0);
    assert_int_equal(more.cuGraphGetNodes(c.graph, NULL, &n), 0);
    assert_in_range(n, 0, 64);
    if (n > 0)                                          /* which is refused otherwise */
        assert_int_equal(more.cuGraphGetNodes(c.graph, nodes, &n), 0);
    for (size_t i = 0; i < n; i++) {
        int type = -1;
        assert_int_equal(more.cuGraphNodeGetType(nodes[i], &type), 0);
        c.n_kernels += type == 0;
        c.n_others += type != 0;
    }
    assert_int_equal(more.cuGraphInstantiate(&c.executable, c.graph, 0), 0);
    leave();
    return c;
}

void captured_launch(const captured *c, ol_stream in)
{
    enter(in);
    assert_int_equal(more.cuGraphLaunch(c->executable, in), 0);
    leave();
}

void captured_destroy(captured *c)
{
    enter(stream);
    assert_int_equal(more.cuGraphExecDestroy(c->executable), 0);
    assert_int_equal(more.cuGraphDestroy(c->graph), 0);
    leave();
}

/* ---- Threads ---- */

typedef struct caller {
    pthread_t thread;
    ol_stream own;
    ol_status (*call)(ol_stream in, void *user, ol_error *error);
    void *user;
    int rounds;
    ol_status status;
    ol_error error;
} caller;

static void *call_often(void *argument)
{
    caller *c = argument;
    for (int i = 0; i < c->rounds && c->status == OL_OK; i++)
        c->status = c->call(c->own, c->user, &c->error);
    return NULL;
}

void cuda_threads(int n, int rounds, ol_status (*call)(ol_stream in, void *user, ol_error *error), void *const *users)
{
    ol_error error;
    caller *callers = calloc((size_t)n, sizeof *callers);
    assert_non_null(callers);
    for (int i = 0; i < n; i++) {
        callers[i] = (caller){ .call = call, .user = users[i], .rounds = rounds };
        assert_ok(ol_stream_create(cuda, &callers[i].own, &error), &error);
    }
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    for (int i = 0; i < n; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        assert_ok(callers[i].status, &callers[i].error);
        assert_ok(ol_stream_synchronize(cuda, callers[i].own, &error), &error);
        assert_ok(ol_stream_destroy(cuda, callers[i].own, &error), &error);
    }
    free(callers);
}

/* ---- Children ---- */

/* Takes the address sanitizer's remark on the fake driver's coroutines out. */
static void remove_remarks(char *output)
{
    char *line;
    while ((line = strstr(output, "WARNING: ASan doesn't fully support makecontext")) != NULL) {
        char *end = line + strcspn(line, "\n");
        while (line > output && line[-1] != '\n')
            line--;
        end += *end == '\n';
        memmove(line, end, strlen(end) + 1);
    }
}

int run_child(const char *name, const char *const *environment, char output[CHILD_OUTPUT])
{
    int ends[2], status = 0;
    size_t n = 0;
    ssize_t got;
    char program[4096];
    fflush(NULL);
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = '\0';
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (; *environment; environment++)
            if (strchr(*environment, '='))
                putenv((char *)(uintptr_t)*environment);
            else
                unsetenv(*environment);
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        alarm(120);
        execl(program, program, "--child", name, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    while (n < CHILD_OUTPUT - 1 && (got = read(ends[0], output + n, CHILD_OUTPUT - 1 - n)) > 0)
        n += (size_t)got;
    output[n] = '\0';
    remove_remarks(output);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        fail_msg("the child %s died of signal %d (%s): %s", name, WTERMSIG(status), strsignal(WTERMSIG(status)), output);
    return WEXITSTATUS(status);
}
