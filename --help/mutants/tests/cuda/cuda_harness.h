/* The CUDA tests' common ground: the driver as the tests call it, a device and a stream for each test, captures, and scenes:
 * tensors in one piece of memory, whose replay on the GPU is held against the CPU's, byte for byte.
 *
 * The programs run on the fake driver (fake_cuda.h; CMakeLists.txt sets the environment) and, unchanged, on a GPU. What only the
 * fake can do is skipped there, with a word. Without a GPU a program says so and ends with code 77. */
#ifndef OL_CUDA_HARNESS_H
#define OL_CUDA_HARNESS_H

#include "graph_cases.h"

#include "cuda/driver.h"
#include "fake_cuda.h"

/* ---- Programs and tests ---- */

#define CUDA_RUN(argc, argv, tests) cuda_run(argc, argv, #tests, tests, sizeof(tests) / sizeof *(tests))
int cuda_run(int argc, char **argv, const char *group, const struct CMUnitTest *tests, size_t n_tests);

/* A test with a device and a stream; after it, nothing is left and nothing was done that must not be. */
#define CUDA_TEST(name) cmocka_unit_test_setup_teardown(name, cuda_set_up, cuda_tear_down)
int cuda_set_up(void **state);
int cuda_tear_down(void **state);
extern ol_device *cuda, *cpu;
extern ol_stream stream;
extern ol_cuda_facts gpu;                /* of device 0 */

/* Skips the test, on a real driver. */
void need_fake(void);

/* How often the fake NVRTC has compiled in this process; 0 with a real one. */
size_t compilations(void);

/* ---- The driver ---- */

extern driver cu;

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;

#define MORE_FUNCTIONS(F)                                                                                                     \
    F(cuCtxCreate, cuCtxCreate_v2, (CUcontext *context, unsigned flags, CUdevice device))                                     \
    F(cuCtxDestroy, cuCtxDestroy_v2, (CUcontext context))                                                                     \
    F(cuCtxSetCurrent, cuCtxSetCurrent, (CUcontext context))                                                                  \
    F(cuStreamBeginCapture, cuStreamBeginCapture_v2, (CUstream stream, int mode))                                             \
    F(cuStreamEndCapture, cuStreamEndCapture, (CUstream stream, CUgraph *graph))                                              \
    F(cuGraphGetNodes, cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *n))                                       \
    F(cuGraphNodeGetType, cuGraphNodeGetType, (CUgraphNode node, int *type))                                                  \
    F(cuGraphInstantiate, cuGraphInstantiateWithFlags, (CUgraphExec *executable, CUgraph graph, unsigned long long flags))    \
    F(cuGraphLaunch, cuGraphLaunch, (CUgraphExec executable, CUstream stream))                                                \
    F(cuGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec executable))                                                       \
    F(cuGraphDestroy, cuGraphDestroy, (CUgraph graph))

typedef struct more_driver {
#define F(name, symbol, arguments) CUresult (*name) arguments;
    MORE_FUNCTIONS(F)
#undef F
} more_driver;
extern more_driver more;

/* The context that is current on this thread. */
CUcontext current_context(void);

/* ---- Memory of the device ---- */

/* n_bytes of device memory, which hold a copy of these bytes (NULL: 0xA5). */
void *device_bytes(ol_device *device, const void *bytes, size_t n_bytes);
void device_give(ol_device *device, void *pointer, size_t n_bytes);
/* Copies in the stream, and waits. */
void upload(ol_device *device, ol_stream in, void *to, const void *from, size_t n_bytes);
void download(ol_device *device, ol_stream in, void *to, const void *from, size_t n_bytes);

/* ---- Scenes ---- */

/* Where a tensor's elements lie. */
typedef enum manner { DENSE, MISALIGNED, GAPPED, ROWS_APART, REVERSED, TRANSPOSED, RANDOM, N_MANNERS } manner;
extern const char *const manner_names[N_MANNERS];

/* The tensors of a replay, inputs first, in one piece of memory with filler around each. */
typedef struct scene {
    uint64_t random;
    unsigned char *bytes;                /* what the memory holds before a replay */
    size_t n_bytes, capacity;
    ol_tensor *tensors;
    size_t *offsets;                     /* of element (0, …, 0), in the memory */
    int32_t n_tensors, tensors_capacity;
} scene;

void scene_begin(scene *s);
void scene_end(scene *s);
/* A tensor of random elements. */
ol_tensor *scene_add(scene *s, manner how, ol_dtype dtype, int32_t rank, const int64_t *dims);
/* One that broadcasts to the dims: some of its dimensions are 1, stepped by 0, or left out. */
ol_tensor *scene_add_broadcast(scene *s, manner how, ol_dtype dtype, int32_t rank, const int64_t *dims);
/* The outputs that the composite gives of the inputs so far; output i is exactly the input in_place[i] where that is not
 * negative (NULL: none is). */
void scene_add_outputs(scene *s, const ol_composite *c, manner how, const int32_t *in_place);
/* The tensors in memory of another address. */
void scene_bind(const scene *s, void *memory, ol_tensor *tensors);
/* The memory as the composite leaves it, which a CPU has. */
unsigned char *scene_expected(const scene *s, const ol_composite *on_cpu);
/* Fails, with the tensor and the element, unless the memory is the expected one. */
void scene_compare(const scene *s, const unsigned char *got, const unsigned char *expected, const char *what);

enum { WITH_COMPOSED = 1 };
/* Replays twice, so that the second finds what the first remembered, then composed if asked for, all against the CPU; and counts
 * launches. */
void scene_check(const scene *s, const ol_composite *on_cpu, const ol_composite *on_cuda, int how, const char *what);

/* Compiles the same graph on both. */
typedef struct both {
    ol_composite *on_cpu, *on_cuda;
} both;
both compile_both(ol_build build, void *user, int32_t n_inputs, const ol_dtype *dtypes, int32_t n_outputs);
void destroy_both(both *b);

/* ---- Host memory ---- */

/* An allocator that keeps books and may fail. */
typedef struct ledger {
    size_t n_calls, fail_at;             /* the call that fails, from 1; 0: none */
    size_t n_blocks, n_bytes;            /* alive */
    size_t n_faults;                     /* frees of another size */
} ledger;
ol_cuda_options ledger_options(ledger *l);

/* ---- Captures ---- */

typedef struct captured {
    CUgraph graph;
    CUgraphExec executable;
    size_t n_kernels, n_others;
} captured;

enum { CAPTURE_GLOBAL = 0, CAPTURE_THREAD_LOCAL = 1, CAPTURE_RELAXED = 2 };
void capture_begin(ol_stream in, int mode);
captured capture_end(ol_stream in);
void captured_launch(const captured *c, ol_stream in);
void captured_destroy(captured *c);

/* ---- Threads ---- */

/* Threads that call `rounds` times, each with a stream and a user of its own; all have to succeed. What they did is done. */
void cuda_threads(int n, int rounds, ol_status (*call)(ol_stream in, void *user, ol_error *error), void *const *users);

/* ---- Children ---- */

/* Runs this program again, as `--child NAME`, with more environment ("NAME=VALUE", or "NAME" to unset it; NULL-terminated); it may
 * not hang. Its exit code; what it printed is in `output`. */
#define CHILD_OUTPUT 4000
int run_child(const char *name, const char *const *environment, char output[CHILD_OUTPUT]);
/* What runs in a child: gives its exit code. Set before cuda_run. */
typedef struct child_program {
    const char *name;
    int (*run)(void);
} child_program;
extern const child_program *child_programs;          /* ended by a NULL name */

#endif
