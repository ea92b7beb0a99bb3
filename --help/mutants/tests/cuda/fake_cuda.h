/* How a test speaks to the fake CUDA driver: found in the libcuda.so.1 that the process has loaded, so that the same program runs
 * on a real one, where fake_is_loaded() is 0 and nothing else here may be called.
 *
 * The fake driver does in host memory what libcuda.so.1 does, for the functions of src/cuda/driver.h and what tests need beside:
 * contexts, modules, streams, events, captures and graphs, and kernels that fake_nvrtc.c compiled. It returns the codes that the
 * real one would, and counts as violations what a program must not do:
 *
 *   - calls that are refused while a capture goes on (fake_entry.c), or work on the legacy stream then
 *   - handles that are unknown, destroyed or of another context; calls without a context
 *   - pointers that are not the device's; memory freed twice or written beyond its end
 *   - kernels' accesses outside of the context's memory, or off their alignment (where compiled with checks)
 *   - barriers that some threads of a block, or of a cluster, do not reach
 *   - launches of clusters that do not fit; stores to the shared memory of a block that is not known to have begun, or has ended
 *
 * Device memory can be touched only by kernels and copies: the host's access is a segmentation fault, as on a GPU
 * (FAKE_CUDA_HIDE=0: it can be touched). New memory is filled with 0xCD.
 *
 * Environment, read at the first call:
 *   FAKE_CUDA_DEVICES=2  FAKE_CUDA_CAPABILITY=90  FAKE_CUDA_DRIVER=13000  FAKE_CUDA_MEMORY=BYTES (of each device, 1 GiB)
 *   FAKE_CUDA_MULTIPROCESSORS=4  FAKE_CUDA_BLOCKS=2 (of each at once)  FAKE_CUDA_MAX_THREADS=64 (of a kernel's block)
 *   FAKE_CUDA_FAIL="cuModuleLoadData:1:2,cuLaunchKernel:3:700"   call number, code; number 0: every call; name *: any call
 *   FAKE_CUDA_BACKWARDS=1  blocks and threads in descending order
 *   FAKE_CUDA_HOLD=1  work waits in its stream until something waits for it (fake_hold)
 *   FAKE_CUDA_STRICT=1  a process that ends with violations or leaks says so and exits with code 99 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

static inline void *fake_symbol(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, name) : NULL;
    if (library)
        dlclose(library);
    return symbol;
}

static inline int fake_is_loaded(void)
{
    return fake_symbol("fake_calls") != NULL;
}

/* Defines NAME as a function that calls the loaded driver's. */
#define FAKE_FUNCTION(result, name, parameters, arguments)                       \
    static inline result name parameters                                         \
    {                                                                            \
        result(*function) parameters;                                            \
        *(void **)&function = fake_symbol(#name);                                \
        return function arguments;                                               \
    }

/* Calls of a function so far, by its name in driver.h ("cuMemAlloc"); "*": of all; "NULL stream": works given to the legacy one. */
FAKE_FUNCTION(size_t, fake_calls, (const char *name), (name))
FAKE_FUNCTION(size_t, fake_violations, (void), ())
/* The text of one, from 0; NULL beyond the last. */
FAKE_FUNCTION(const char *, fake_violation, (size_t i), (i))
/* Live objects: allocations, modules, streams, events, graphs, contexts retained or created. */
FAKE_FUNCTION(size_t, fake_leaks, (void), ())
/* Counts, violations and planned failures start anew; objects live on. */
FAKE_FUNCTION(int, fake_forget, (void), ())

/* The nth call from now of `name` fails with `code` (0 for nth: every call from now); "*": of any function. One plan a name. */
FAKE_FUNCTION(int, fake_fail, (const char *name, int nth, int code), (name, nth, code))
/* The next launch returns success; every call of its context after it gives `code`, until the context is destroyed. */
FAKE_FUNCTION(int, fake_poison, (int code), (code))
/* 1: work waits in its stream until something waits for it: a synchronisation, a query's successor fake_run_held, cuMemFree. */
FAKE_FUNCTION(int, fake_hold, (int holds), (holds))
FAKE_FUNCTION(int, fake_run_held, (void), ())
/* 1: device memory is out of the host's reach (the default). */
FAKE_FUNCTION(int, fake_hide, (int hides), (hides))
/* 1: blocks and threads run in descending order. */
FAKE_FUNCTION(int, fake_backwards, (int backwards), (backwards))
/* 1: any work on the legacy stream is a violation. */
FAKE_FUNCTION(int, fake_refuse_null_stream, (int refuses), (refuses))

/* Whether kernels were loaded whose every access is checked. */
FAKE_FUNCTION(int, fake_has_checks, (void), ())

/* Captures, in short: modes 0 global, 1 of the thread, 2 relaxed. The graph is kept as the stream's until the next capture or
 * its destruction; fake_graph_replay launches it in a stream. The codes are those of cuStreamBeginCapture_v2 and so on, which
 * the fake driver has too. */
FAKE_FUNCTION(int, fake_begin_capture, (void *stream, int mode), (stream, mode))
FAKE_FUNCTION(int, fake_end_capture, (void *stream, int *n_kernels, int *n_others), (stream, n_kernels, n_others))
FAKE_FUNCTION(int, fake_graph_replay, (void *captured, void *stream), (captured, stream))

#endif
