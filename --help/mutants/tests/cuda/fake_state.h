/* The fake driver's state (fake_cuda.h says what it is): one lock, held throughout every call, and lists of objects. An object's
 * structure stays when it is destroyed, so that a stale handle is recognised. */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H

#include "cuda/driver.h"
#include "fake_image.h"

#include <pthread.h>

enum fake_code {
    INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201, NO_BINARY_FOR_GPU = 209, INVALID_HANDLE = 400, ILLEGAL_STATE = 401, NOT_FOUND = 500, NOT_READY = 600,
    ILLEGAL_ADDRESS = 700, LAUNCH_OUT_OF_RESOURCES = 701, CONTEXT_IS_DESTROYED = 709, MISALIGNED_ADDRESS = 716, LAUNCH_FAILED = 719,
    CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901, CAPTURE_UNMATCHED = 903, CAPTURE_ISOLATION = 905, CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907, CAPTURE_WRONG_THREAD = 908, INVALID_CLUSTER_SIZE = 912
};

/* What a function needs and obeys. */
enum fake_rule {
    RULE_ANY = 0,                        /* works before cuInit */
    RULE_INITIALIZED = 1,
    RULE_CONTEXT = 2 | RULE_INITIALIZED, /* a current context, whose left-behind error it returns */
    RULE_UNSAFE = 4                      /* refused while a capture goes on (fake_entry.c) */
};

enum { N_DEVICES_MOST = 16, BLOCKS_SHARED_BYTES = 48 * 1024, CLUSTER_BLOCKS = 8 };

struct CUctx_st {
    CUcontext next;
    int device, alive, is_primary, retained, left_behind;
    CUstream legacy, per_thread;
};

typedef enum op_kind { OP_LAUNCH, OP_COPY, OP_SET, OP_ALLOCATE, OP_FREE, OP_RECORD, OP_WAIT } op_kind;

/* Work of a stream or a graph. */
typedef struct op {
    struct op *next;
    op_kind kind;
    uint64_t sequence;
    CUfunction function;
    fake_place grid, block;
    unsigned cluster;                    /* blocks of one, 0 without */
    char *parameters;                    /* the values, behind one another, each on a multiple of 16 */
    CUdeviceptr to, from;
    size_t n_bytes;                      /* of a launch: of its parameters */
    unsigned value;
    char *staged;                        /* of a copy from pageable memory: the bytes at the time of the call */
    CUevent event;
} op;

typedef struct CUgraph_st *CUgraph;
struct CUgraph_st {
    CUgraph next;
    int alive, is_executable;
    CUcontext context;
    op *ops;
};

typedef enum capture_status { CAPTURE_NONE = 0, CAPTURE_ACTIVE = 1, CAPTURE_BROKEN = 2 } capture_status;

struct CUstream_st {
    CUstream next;
    CUcontext context;
    int alive, is_legacy, is_blocking;   /* blocking: waits for the legacy stream and is waited for by it */
    op *held, **last_held;
    capture_status capture;
    int capture_mode;
    pthread_t capturer;
    CUgraph graph;                       /* being captured, or of the last fake_end_capture */
};

struct CUevent_st {
    CUevent next;
    CUcontext context;
    int alive, is_captured;
    CUstream stream;                     /* of the last record; NULL without */
    uint64_t sequence;
};

struct CUfunc_st {
    CUmodule module;
    const fake_kernel *kernel;
};

struct CUmod_st {
    CUmodule next;
    CUcontext context;
    int alive, has_checks;
    void *library;
    const fake_image *image;
    struct CUfunc_st *functions;
    size_t n_functions;
};

typedef enum memory_kind { MEMORY_DEVICE, MEMORY_HOST, MEMORY_MANAGED } memory_kind;

typedef struct allocation {
    char *start;
    size_t n_bytes;
    memory_kind kind;
    CUcontext context;
    int is_pooled;                       /* of cuMemAllocAsync */
    int freeing;                         /* a cuMemFreeAsync is under way */
    CUgraph graph;                       /* whose node it is */
} allocation;

typedef struct fake_state {
    int is_initialized;
    int n_devices, capability, version, n_multiprocessors, n_blocks, max_threads;
    size_t memory_bytes;
    int holds, hides, backwards, refuses_null_stream, poison;
    CUcontext contexts, primary[N_DEVICES_MOST];
    CUstream streams;
    CUevent events;
    CUmodule modules;
    CUgraph graphs;
    uint64_t sequence;
    fake_host host;
} fake_state;
extern fake_state fake;

/* fake_entry.c: every function of the driver begins with enter and, whatever that returns, ends with leave(code). */
CUresult fake_enter(const char *name, int rules);
CUresult fake_leave(CUresult code);
/* What RULE_UNSAFE does, for calls that look at something else first. */
CUresult fake_refused_by_capture(const char *name);
/* For the tests' own functions. */
void fake_lock(void);
void fake_unlock(void);
/* Notes a violation and returns `code`. */
__attribute__((format(printf, 2, 3)))
CUresult fake_violate(CUresult code, const char *format, ...);
void fake_count(const char *name);
int fake_has_capture(CUcontext context, int only_blocking);
/* Breaks the captures of a context (NULL: of all) that a wrong call has touched. */
void fake_break_captures(CUcontext context);

/* fake_context.c */
CUcontext fake_current(void);
int fake_context_is(CUcontext context);          /* a context that lives */
size_t fake_context_leaks(void);
const char *fake_error_name(CUresult code);

/* fake_memory.c */
CUresult fake_allocate(CUcontext context, memory_kind kind, size_t n_bytes, int is_pooled, CUdeviceptr *pointer);
CUresult fake_free(CUdeviceptr pointer, int host);
allocation *fake_find(uint64_t address, size_t n_bytes);     /* that holds these bytes, or NULL */
int fake_is_device_address(uint64_t address);                /* also where nothing is allocated */
void fake_free_graph(CUgraph graph);
/* Whether work of the context may use these bytes; 0 or a code, which is a violation. */
CUresult fake_check_bytes(CUcontext context, uint64_t address, size_t n_bytes, const char *what);
/* Between show and conceal device memory can be touched. */
void fake_show(void);
void fake_conceal(void);
void fake_free_context(CUcontext context);
size_t fake_memory_leaks(void);

/* fake_stream.c */
CUstream fake_stream_add(CUcontext context, int is_legacy, int is_blocking);
/* Runs what is held in a stream, up to and with a number. */
void fake_run(CUstream stream, uint64_t sequence);
CUresult fake_stream_of(CUstream handle, const char *name, CUstream *stream);     /* NULL is the current context's legacy stream */
/* Work: recorded by a capture, kept, or run now. Takes the op over, also on failure. */
CUresult fake_submit(CUstream stream, op *o);
void fake_finish_context(CUcontext context);
void fake_destroy_streams(CUcontext context);
size_t fake_stream_leaks(void);

/* fake_graph.c */
CUgraph fake_graph_create(CUcontext context, const op *ops);
void fake_graph_add(CUgraph graph, op *o);
void fake_graph_destroy(CUgraph graph);                      /* NULL is allowed */
size_t fake_graph_leaks(void);

/* fake_work.c: pieces of work, and one of them done, now. */
op *fake_op(op_kind kind);
op *fake_op_copy(const op *o);
void fake_op_free(op *o);
void fake_work(CUcontext context, const op *o);

/* fake_launch.c */
int fake_function_is(CUfunction function);       /* of a module that is loaded */
void fake_unload_context(CUcontext context);
size_t fake_module_leaks(void);

/* fake_threads.c: all threads of a launch. 0, or the code that the context is left with. */
CUresult fake_threads(CUcontext context, const op *launch);

#endif
