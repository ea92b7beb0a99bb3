/* What a driver answers to calls while a stream is being captured: the rules that the fake one enforces (fake_entry.c), in a table
 * that holds for the real one too. A program of its own, which needs nothing but a libcuda.so.1 and, for the real one, a GPU:
 *
 *     cc -D_GNU_SOURCE -Iinclude -Isrc tests/cuda/driver_rules.c -ldl -pthread && ./a.out
 *
 * A line for each case that differs; exit code 1 if one does, 77 without a driver or a device. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

typedef struct CUgraph_st *CUgraph;
enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

static driver d;
static CUresult (*begin_capture)(CUstream, int), (*end_capture)(CUstream, CUgraph *), (*destroy_graph)(CUgraph);
static CUresult (*synchronize)(void), (*query_stream)(CUstream);
static CUcontext context;
static CUstream captured, blocking, idle;
static CUevent event;
static CUdeviceptr memory, unneeded, unneeded_async;
static void *host;

static CUresult work(CUstream s) { return d.cuMemsetD32Async(memory, 1, 1, s); }

/* ---- Calls; each leaves things as they were where it succeeds ---- */

static CUresult allocate(void)
{
    CUresult code = d.cuMemAlloc(&unneeded, 4);
    return code ? code : d.cuMemFree(unneeded);
}

static CUresult free_memory(void) { return d.cuMemFree(unneeded); }

static CUresult allocate_host(void)
{
    CUresult code = d.cuMemHostAlloc(&host, 4, CU_MEMHOSTALLOC_PORTABLE);
    return code ? code : d.cuMemFreeHost(host);
}

static CUresult create_event(void)
{
    CUevent e;
    CUresult code = d.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING);
    return code ? code : d.cuEventDestroy(e);
}

static CUresult create_stream(void)
{
    CUstream s;
    CUresult code = d.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
    return code ? code : d.cuStreamDestroy(s);
}

static CUresult allocate_relaxed(void)
{
    int mode = RELAXED;
    CUresult code = d.cuThreadExchangeStreamCaptureMode(&mode), called = allocate();
    return code ? code : d.cuThreadExchangeStreamCaptureMode(&mode) ? -1 : called;
}

static CUresult query_relaxed(void)
{
    int mode = RELAXED;
    d.cuThreadExchangeStreamCaptureMode(&mode);
    CUresult called = d.cuEventQuery(event);
    d.cuThreadExchangeStreamCaptureMode(&mode);
    return called;
}

static void *elsewhere(void *code)
{
    CUcontext popped;
    d.cuCtxPushCurrent(context);
    *(CUresult *)code = allocate();
    d.cuCtxPopCurrent(&popped);
    return NULL;
}

static CUresult allocate_elsewhere(void)
{
    pthread_t thread;
    CUresult code = -1;
    pthread_create(&thread, NULL, elsewhere, &code);
    pthread_join(thread, NULL);
    return code;
}

static CUresult query_event(void) { return d.cuEventQuery(event); }
static CUresult synchronize_idle(void) { return d.cuStreamSynchronize(idle); }
static CUresult synchronize_captured(void) { return d.cuStreamSynchronize(captured); }
static CUresult query_idle(void) { return query_stream(idle); }
static CUresult synchronize_context(void) { return synchronize(); }
static CUresult work_captured(void) { return work(captured); }
static CUresult work_idle(void) { return work(idle); }
static CUresult work_legacy(void) { return work(NULL); }

static CUresult status_of(CUstream s)
{
    int status = -1;
    CUresult code = d.cuStreamIsCapturing(s, &status);
    return code ? code : 1000 + status;
}

static CUresult status_captured(void) { return status_of(captured); }
static CUresult status_idle(void) { return status_of(idle); }
static CUresult status_legacy(void) { return status_of(NULL); }

static CUresult context_of_captured(void)
{
    CUcontext found;
    CUresult code = d.cuStreamGetCtx(captured, &found);
    return code ? code : found == context ? 0 : -1;
}

/* Within the capture: an event of it is not to be asked, nor told from outside. */
static CUresult query_captured_event(void)
{
    CUresult code = d.cuEventRecord(event, captured);
    return code ? code : d.cuEventQuery(event);
}

static CUresult allocate_async_idle(void)
{
    CUdeviceptr p;
    CUresult code = d.cuMemAllocAsync(&p, 4, idle);
    return code ? code : d.cuMemFreeAsync(p, idle);
}

static CUresult allocate_async_relaxed(void)
{
    int mode = RELAXED;
    d.cuThreadExchangeStreamCaptureMode(&mode);
    CUresult called = allocate_async_idle();
    d.cuThreadExchangeStreamCaptureMode(&mode);
    return called;
}

/* Of memory that was there before. */
static CUresult free_async_idle(void)
{
    CUresult code = d.cuMemFreeAsync(unneeded_async, idle);
    if (!code)
        unneeded_async = 0;
    return code;
}

static CUresult allocate_async_captured(void)
{
    CUdeviceptr p;
    CUresult code = d.cuMemAllocAsync(&p, 4, captured);
    return code ? code : d.cuMemFreeAsync(p, captured);
}

static CUresult load_module(void)
{
    CUmodule module;
    return d.cuModuleLoadData(&module, "not an image; long enough for a driver to look at its first bytes, and to refuse them");
}

/* ---- The table ---- */

static const struct rule {
    const char *name;
    CUresult (*call)(void);
    int blocking, mode, code, end;       /* the capture's stream and mode; what the call gives, and the capture's end */
} rules[] = {
    { "work in the captured stream", work_captured, 0, GLOBAL, 0, 0 },
    { "work in another stream", work_idle, 0, GLOBAL, 0, 0 },
    { "work in the legacy stream beside one that does not block", work_legacy, 0, GLOBAL, 0, 0 },
    { "work in the legacy stream beside a blocking one", work_legacy, 1, GLOBAL, 906, 901 },
    { "the status of the captured stream", status_captured, 0, GLOBAL, 1001, 0 },
    { "the status of another stream", status_idle, 0, GLOBAL, 1000, 0 },
    { "the status of the legacy stream", status_legacy, 0, GLOBAL, 1000, 0 },
    { "the status of the legacy stream beside a blocking one", status_legacy, 1, GLOBAL, 906, 0 },
    { "the captured stream's context", context_of_captured, 0, GLOBAL, 0, 0 },
    { "cuMemAlloc", allocate, 0, GLOBAL, 900, 901 },
    { "cuMemAlloc in a capture of the thread", allocate, 0, THREAD_LOCAL, 900, 901 },
    { "cuMemAlloc in a relaxed capture", allocate, 0, RELAXED, 0, 0 },
    { "cuMemAlloc of a relaxed thread", allocate_relaxed, 0, GLOBAL, 0, 0 },
    { "cuMemAlloc of another thread", allocate_elsewhere, 0, GLOBAL, 900, 901 },
    { "cuMemAlloc of another thread beside a capture of this one", allocate_elsewhere, 0, THREAD_LOCAL, 0, 0 },
    { "cuMemFree", free_memory, 0, GLOBAL, 900, 901 },
    { "cuMemHostAlloc", allocate_host, 0, GLOBAL, 900, 901 },
    { "cuModuleLoadData of what is no image", load_module, 0, GLOBAL, 200, 0 },
    { "cuEventCreate", create_event, 0, GLOBAL, 0, 0 },
    { "cuStreamCreate", create_stream, 0, GLOBAL, 0, 0 },
    { "cuEventQuery", query_event, 0, GLOBAL, 900, 901 },
    { "cuEventQuery of a relaxed thread", query_relaxed, 0, GLOBAL, 0, 0 },
    { "cuEventQuery of an event of the capture", query_captured_event, 0, RELAXED, 907, 901 },
    { "cuStreamSynchronize of another stream", synchronize_idle, 0, GLOBAL, 900, 901 },
    { "cuStreamSynchronize of the captured stream", synchronize_captured, 0, RELAXED, 900, 901 },
    { "cuStreamQuery of another stream", query_idle, 0, GLOBAL, 900, 901 },
    { "cuCtxSynchronize", synchronize_context, 0, GLOBAL, 900, 901 },
    { "cuMemAllocAsync in another stream", allocate_async_idle, 0, GLOBAL, 900, 901 },
    { "cuMemAllocAsync in another stream of a relaxed thread", allocate_async_relaxed, 0, GLOBAL, 0, 0 },
    { "cuMemFreeAsync in another stream", free_async_idle, 0, GLOBAL, 900, 901 },
    { "cuMemAllocAsync in the captured stream", allocate_async_captured, 0, GLOBAL, 0, 0 },
};

/* Whether a case is as the table has it. */
static int check(const struct rule *r)
{
    CUstream s = r->blocking ? blocking : captured;
    CUgraph graph = NULL;
    CUresult begun, code, ended;
    d.cuEventRecord(event, idle);        /* of no capture */
    if (!unneeded_async)
        d.cuMemAllocAsync(&unneeded_async, 4, idle);
    d.cuStreamSynchronize(idle);
    d.cuMemAlloc(&unneeded, 4);
    begun = begin_capture(s, r->mode);
    code = r->call();
    ended = end_capture(s, &graph);
    if (graph)
        destroy_graph(graph);
    if (code || r->call != free_memory)
        d.cuMemFree(unneeded);
    if (begun == 0 && code == r->code && ended == r->end)
        return 1;
    printf("%s: begin %d, call %d (expected %d), end %d (expected %d)\n", r->name, begun, code, r->code, ended, r->end);
    return 0;
}

int main(void)
{
    int n_differ = 0, n_rules = (int)(sizeof rules / sizeof *rules);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return printf("skipped: no CUDA driver\n"), 77;
#define F(name, symbol, arguments) *(void **)&d.name = dlsym(library, #symbol);
    DRIVER_FUNCTIONS(F)
#undef F
    *(void **)&begin_capture = dlsym(library, "cuStreamBeginCapture_v2");
    *(void **)&end_capture = dlsym(library, "cuStreamEndCapture");
    *(void **)&destroy_graph = dlsym(library, "cuGraphDestroy");
    *(void **)&synchronize = dlsym(library, "cuCtxSynchronize");
    *(void **)&query_stream = dlsym(library, "cuStreamQuery");
    if (d.cuInit(0) || d.cuDevicePrimaryCtxRetain(&context, 0))
        return printf("skipped: no CUDA device\n"), 77;
    if (d.cuCtxPushCurrent(context) || d.cuMemAlloc(&memory, 4) || d.cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING) ||
        d.cuStreamCreate(&blocking, 0) || d.cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING) ||
        d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING))
        return printf("the driver cannot be set up\n"), 1;
    for (int i = 0; i < n_rules; i++)
        n_differ += !check(&rules[i]);
    printf("%d cases, %d differ\n", n_rules, n_differ);
    return n_differ != 0;
}
