/* onelaunch: a chain of elementwise operations as one launch, with the same bits as running them one by one.
 *
 * Describe a graph in a builder callback, compile it for the dtypes of its inputs, replay it on tensors of any shape:
 *
 *     static int rates(ol_graph *g, const ol_value *in, ol_value *out, void *user) {
 *         out[0] = ol_sigmoid(g, in[0]);
 *         out[1] = ol_exp(g, ol_negative(g, ol_add(g, in[0], in[1])));
 *         return 0;
 *     }
 *     ol_builder builder = { .build = rates, .n_inputs = 2, .n_outputs = 2, .name = "rates" };
 *     ol_device *cpu;        ol_device_cpu(NULL, &cpu, &error);
 *     ol_composite *rates_;  ol_compile(cpu, &builder, (ol_dtype[]){ OL_BFLOAT16, OL_FLOAT32 }, &rates_, &error);
 *     ol_replay(rates_, NULL, inputs, outputs, &error);
 *
 * What is promised: a replay is one launch (none where all outputs are empty); its bits are those of the composed path (the
 * same graph run one primitive at a time); every node is its exact real result rounded once to its own dtype (float32
 * logaddexp, power and arctan2, which cannot be run on all pairs: within 0.5001 ulp); the bits do not depend on the SIMD
 * level, the thread count, the strides or the position in the tensor. docs/numerics.md has the value rules.
 *
 * Conventions. Functions return an ol_status and put results in their last pointers, untouched on failure. `ol_error *` may
 * be NULL everywhere. Strides are in elements. Nothing is printed and no state of the host is changed;
 * what the library keeps beyond its objects (a GPU's driver once loaded, compiled kernels, tables of 16-bit results) changes no result.
 * Order of this header: simple (describe, compile, replay), then devices and options, then text, introspection. */
#ifndef ONELAUNCH_H
#define ONELAUNCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OL_API __attribute__((visibility("default")))
#else
#define OL_API
#endif

#define OL_VERSION_MAJOR 0
#define OL_VERSION_MINOR 1
#define OL_VERSION_PATCH 0

/* "MAJOR.MINOR.PATCH" of the library that is loaded (the macros are those of this header). Static storage. */
OL_API const char *ol_version(void);

/* ---- Status and errors ------------------------------------------------------------------------------------------- */

/* Values are pinned: they do not change between versions. */
typedef enum ol_status {
    OL_OK = 0,
    OL_ERROR_ARGUMENT = 1,    /* a null or meaningless argument: pointer, count, rank, option */
    OL_ERROR_DTYPE = 2,       /* a dtype is unknown, not the one compiled for, or not taken by the primitive */
    OL_ERROR_SHAPE = 3,       /* shapes do not broadcast, or an output's shape is not the inferred one */
    OL_ERROR_OVERLAP = 4,     /* an output overlaps an input (other than exactly), another output, or itself */
    OL_ERROR_BUILDER = 5,     /* the builder returned a code, left an output unset, or used an invalid or foreign value */
    OL_ERROR_LIMIT = 6,       /* a stated limit (OL_MAX_*) was passed */
    OL_ERROR_MEMORY = 7,      /* an allocation failed */
    OL_ERROR_DEVICE = 8,      /* the device, SIMD level or threads cannot be had, or the device reported a failure */
    OL_ERROR_TEXT = 9         /* graph text that does not parse; the description starts with line:column */
} ol_status;

/* The caller's error record. Written by a failing call only; a success leaves it as it was. */
typedef struct ol_error {
    ol_status status;
    int code;                  /* what a builder returned, when the status is OL_ERROR_BUILDER and it returned one; else 0 */
    char operation[64];        /* what was being done: "add", "replay rates", "compile", … */
    char description[448];     /* what was given and what was expected */
} ol_error;

/* The name of a status ("OL_ERROR_SHAPE"), or "unknown status". Static storage. */
OL_API const char *ol_status_name(ol_status status);

/* ---- Dtypes ------------------------------------------------------------------------------------------------------- */

typedef enum ol_dtype {
    OL_BOOL = 0,
    OL_UINT8 = 1, OL_UINT16 = 2, OL_UINT32 = 3, OL_UINT64 = 4,
    OL_INT8 = 5, OL_INT16 = 6, OL_INT32 = 7, OL_INT64 = 8,
    OL_FLOAT16 = 9, OL_BFLOAT16 = 10, OL_FLOAT32 = 11
} ol_dtype;
#define OL_DTYPE_COUNT 12

/* "float32"; NULL for a value that is no dtype. Static storage. */
OL_API const char *ol_dtype_name(ol_dtype dtype);
/* Size of an element in bytes (a bool is one byte, 0 or 1); 0 for a value that is no dtype. */
OL_API size_t ol_dtype_size(ol_dtype dtype);
/* The dtype two operands of a binary primitive are brought to. Symmetric. bool with X is X; two signed or two unsigned: the
 * wider; unsigned with signed: the smallest signed type that holds both, uint64 with signed: float32; integer or bool with
 * a float: that float; float16 with bfloat16, and anything with float32: float32. */
OL_API ol_dtype ol_promote(ol_dtype x, ol_dtype y);
/* The dtype named so ("bfloat16"). False, and *dtype untouched, where no dtype has that name. */
OL_API int ol_dtype_parse(const char *name, ol_dtype *dtype);

/* ---- Tensors ------------------------------------------------------------------------------------------------------ */

#define OL_MAX_RANK 8

/* A view of the caller's memory. `data` is the address of element (0, …, 0), so with negative strides memory lies before it.
 * Any stride is allowed on an input; an output must not repeat an element. Misaligned data is allowed. `data` may be NULL
 * only when the tensor is empty. A bool element is the byte 0 or 1; any other byte read is taken as true. */
typedef struct ol_tensor {
    void *data;
    ol_dtype dtype;
    int32_t rank;                      /* 0 to OL_MAX_RANK; a rank 0 tensor is one element */
    int64_t shape[OL_MAX_RANK];
    int64_t strides[OL_MAX_RANK];      /* in elements */
} ol_tensor;

/* A row-major view of `data`: shape as given, strides contiguous. A rank out of range, or no shape, gives a tensor that every call refuses. */
OL_API ol_tensor ol_tensor_contiguous(void *data, ol_dtype dtype, int32_t rank, const int64_t *shape);

/* ---- Graphs: what a builder calls ----------------------------------------------------------------------------------- */

typedef struct ol_graph ol_graph;

/* A value of a graph under construction: a plain handle, valid until the builder returns. A zeroed handle is invalid; a
 * primitive on an invalid value gives an invalid value and the graph keeps the first error, so builders need no checks. */
typedef struct ol_value {
    uint32_t node;
    uint32_t graph;
} ol_value;

#define OL_MAX_NODES 262144            /* of one graph */
#define OL_MAX_INPUTS 16384
#define OL_MAX_OUTPUTS 16384
/* The inputs (and shapes of broadcast_to) that each output depends on, counted over all outputs; outputs that depend on the same
 * ones count once. Prefix sums of 5700 inputs reach it. A graph whose nodes depend on more than 256 MiB of different subsets
 * (one bit an input) is refused with OL_ERROR_LIMIT as well. */
#define OL_MAX_DEPENDENCIES 16777216

/* Sets out[0 .. n_outputs) from in[0 .. n_inputs) and returns 0; any other code fails the compilation with OL_ERROR_BUILDER, and
 * is kept in the error record beside the description of the graph's first error, if it had one. `out` arrives invalid. Called once per compilation, on the caller's thread. */
typedef int (*ol_build)(ol_graph *graph, const ol_value *in, ol_value *out, void *user);

typedef struct ol_builder {
    ol_build build;
    void *user;                        /* handed to build; the library does not look at it */
    int32_t n_inputs;                  /* 0 to OL_MAX_INPUTS */
    int32_t n_outputs;                 /* 1 to OL_MAX_OUTPUTS */
    const char *name;                  /* used in errors and text; NULL: "composite" */
} ol_builder;

/* The dtype of a value. For an invalid value: OL_FLOAT32 (so that a builder may go on; the error is kept). */
OL_API ol_dtype ol_value_dtype(const ol_graph *graph, ol_value value);

/* A constant, as a scalar of the stated dtype: `value` converted to it by the rules of astype (one rounding). */
OL_API ol_value ol_constant(ol_graph *graph, ol_dtype dtype, double value);
/* A constant whose bits are the ol_dtype_size(dtype) bytes at `bits`, kept exactly (NaN payloads are canonical only once a
 * primitive has made a result of them; integers beyond 2^53 are exact). */
OL_API ol_value ol_constant_bits(ol_graph *graph, ol_dtype dtype, const void *bits);

/* Converts to another dtype, one rounding; the same dtype gives a copy. Float to integer truncates, saturates, NaN gives 0;
 * anything to bool is x != 0 (NaN is true). Never elided: narrow then wide is two roundings. */
OL_API ol_value ol_astype(ol_graph *graph, ol_value x, ol_dtype dtype);
/* x repeated over the common shape of x and `like`; only like's shape matters. */
OL_API ol_value ol_broadcast_like(ol_graph *graph, ol_value x, ol_value like);
/* x repeated to exactly this shape; checked at replay. */
OL_API ol_value ol_broadcast_to(ol_graph *graph, ol_value x, int32_t rank, const int64_t *shape);

/* The primitives. Operands are brought to their common dtype first (ol_promote); "float" primitives bring integers and
 * bool to float32. Each result is the exact one rounded once to nearest even (float32 logaddexp, power, arctan2: within
 * 0.5001 ulp), NaN results are canonical, integers wrap.
 * docs/primitives.md lists, for each: types, special values, accuracy. Errors (sticky): a foreign or invalid value, a dtype the
 * primitive does not take, OL_MAX_NODES passed. */
#define OL_UNARY(name) OL_API ol_value ol_##name(ol_graph *graph, ol_value x);
#define OL_BINARY(name) OL_API ol_value ol_##name(ol_graph *graph, ol_value x, ol_value y);
OL_UNARY(abs)          OL_UNARY(negative)     OL_UNARY(sign)         OL_UNARY(square)
OL_UNARY(floor)        OL_UNARY(ceil)         OL_UNARY(round)        /* half to even */
/* float primitives */
OL_UNARY(sqrt)         OL_UNARY(rsqrt)        OL_UNARY(reciprocal)
OL_UNARY(exp)          OL_UNARY(expm1)        OL_UNARY(log)          OL_UNARY(log1p)
OL_UNARY(exp2)         OL_UNARY(log2)         OL_UNARY(log10)
OL_UNARY(sigmoid)      OL_UNARY(softplus)     OL_UNARY(silu)         /* x sigmoid(x), one rounding */
OL_UNARY(sin)          OL_UNARY(cos)          OL_UNARY(tan)          /* radians, of any size */
OL_UNARY(arcsin)       OL_UNARY(arccos)       OL_UNARY(arctan)
OL_UNARY(sinh)         OL_UNARY(cosh)         OL_UNARY(tanh)
OL_UNARY(arcsinh)      OL_UNARY(arccosh)      OL_UNARY(arctanh)
OL_UNARY(erf)          OL_UNARY(erfinv)
/* to bool */
OL_UNARY(logical_not)  OL_UNARY(isnan)        OL_UNARY(isinf)        OL_UNARY(isfinite)
OL_UNARY(bitwise_invert)                      /* integers and bool */
OL_BINARY(add)         OL_BINARY(subtract)    OL_BINARY(multiply)
OL_BINARY(power)                              /* IEEE 754 pow; an integer to a negative power is 0, of 1 and -1 their power */
OL_BINARY(divide)      OL_BINARY(logaddexp)   /* float primitives */
OL_BINARY(arctan2)     OL_BINARY(hypot)       /* float primitives */
OL_BINARY(floor_divide) OL_BINARY(remainder)  /* Python's signs; an integer by zero gives 0 */
OL_BINARY(maximum)     OL_BINARY(minimum)     /* NaN if either is */
OL_BINARY(equal)       OL_BINARY(not_equal)   OL_BINARY(less)        OL_BINARY(less_equal)
OL_BINARY(greater)     OL_BINARY(greater_equal)
OL_BINARY(logical_and) OL_BINARY(logical_or)
OL_BINARY(bitwise_and) OL_BINARY(bitwise_or)  OL_BINARY(bitwise_xor) /* integers and bool */
OL_BINARY(left_shift)  OL_BINARY(right_shift) /* integers; by the width or more gives 0, or the sign fill */
#undef OL_UNARY
#undef OL_BINARY
/* condition ? x : y; the condition is brought to bool. */
OL_API ol_value ol_where(ol_graph *graph, ol_value condition, ol_value x, ol_value y);
/* minimum(maximum(x, low), high). */
OL_API ol_value ol_clip(ol_graph *graph, ol_value x, ol_value low, ol_value high);
/* x * y + z with one rounding. A float primitive. */
OL_API ol_value ol_fma(ol_graph *graph, ol_value x, ol_value y, ol_value z);

/* Makes the graph fail with OL_ERROR_BUILDER and this description (a copy is kept), unless it already failed. */
OL_API void ol_graph_fail(ol_graph *graph, const char *operation, const char *description);

/* ---- Devices -------------------------------------------------------------------------------------------------------- */

typedef struct ol_device ol_device;

/* The caller's CUstream; NULL on a CPU. */
typedef void *ol_stream;

typedef enum ol_cpu_level {
    OL_CPU_AUTO = 0,                   /* ONELAUNCH_CPU if set (baseline, avx2, avx512, neon), else the best there is */
    OL_CPU_BASELINE = 1,               /* SSE2 on x86-64; plain C elsewhere */
    OL_CPU_AVX2 = 2,                   /* AVX2, FMA, F16C and BMI2 */
    OL_CPU_AVX512 = 3,                 /* AVX-512 F, BW, CD, DQ and VL */
    OL_CPU_NEON = 4                    /* AArch64 */
} ol_cpu_level;

/* Memory the library takes for itself (handles, graphs, intermediates of the composed path; scratch when more than 16 replays of
 * one very large composite run at once). Both or neither are set; they may be called from several threads at once.
 * allocate returns 64-byte aligned memory or NULL; free takes what allocate returned, with its size, never NULL. */
typedef struct ol_allocator {
    void *(*allocate)(void *user, size_t n_bytes);
    void (*free)(void *user, void *pointer, size_t n_bytes);
    void *user;
} ol_allocator;

/* The host's thread pool: calls task(argument, i) for each i in [0, n_tasks), in any order, on any threads, and returns
 * when all are done. May be called from several threads at once if replays are. */
typedef void (*ol_task)(void *argument, size_t index);
typedef void (*ol_parallel_for)(void *user, size_t n_tasks, ol_task task, void *argument);

/* Zero is a good default for every field. */
typedef struct ol_cpu_options {
    ol_cpu_level level;
    int32_t n_threads;                 /* at most so many work on a replay; 0: one per CPU available; 1: the caller's only */
    ol_parallel_for parallel_for;      /* NULL: the library's own threads, started with the device */
    void *parallel_user;
    ol_allocator allocator;            /* zeroed: aligned_alloc and free */
} ol_cpu_options;

/* A CPU device. `options` may be NULL. Starts the library's own threads unless n_threads is 1 or the host gives its own; they
 * block signals, and in a process forked later there are none, and replays run on the caller's thread. OL_ERROR_DEVICE where
 * the level (also one named by ONELAUNCH_CPU) is unknown or not available on this machine. Destroy it with ol_device_destroy;
 * composites keep it alive. */
OL_API ol_status ol_device_cpu(const ol_cpu_options *options, ol_device **device, ol_error *error);
/* Gives up the caller's reference. NULL is allowed. Not while another thread still uses the handle itself. */
OL_API void ol_device_destroy(ol_device *device);
/* Launches started on this device so far, by replays and by the composed path. */
OL_API uint64_t ol_device_launches(const ol_device *device);
/* "cpu", and the SIMD level in use: "avx512"; or "cuda:0" and "sm_90". Kept as long as the device. */
OL_API const char *ol_device_name(const ol_device *device);
OL_API const char *ol_device_level(const ol_device *device);
/* Whether this machine runs a level (OL_CPU_AUTO: yes). */
OL_API int ol_cpu_level_available(ol_cpu_level level);
/* "avx512"; NULL for a value that is no level. Static storage. */
OL_API const char *ol_cpu_level_name(ol_cpu_level level);

/* ---- NVIDIA GPUs ---------------------------------------------------------------------------------------------------------
 *
 * Nothing of CUDA is needed to build or install the library: the driver (libcuda.so.1) is opened by the first of these calls, and
 * the run-time compiler NVRTC by the first compilation, since the kernel cache knows kernels by its version (the newest is taken;
 * ONELAUNCH_NVRTC=PATH names one). What is missing is named in the error, OL_ERROR_DEVICE.
 *
 * Tensors hold device addresses (or others that the GPU can read: managed and pinned host memory), and a stream is the caller's CUstream of
 * the device's context; NULL is CUDA's default stream. A replay starts one kernel in the stream and returns; it neither
 * waits, copies nor allocates, may be recorded in a CUDA graph (the composite must outlive the graph), and leaves the thread's
 * current context as it was. What a kernel does wrong while it runs the driver reports to a later call, which says so. */

typedef struct ol_cuda_options {
    ol_allocator allocator;            /* of host memory; zeroed: aligned_alloc and free */
} ol_cuda_options;

/* The GPU of that number, as the driver counts them (CUDA_VISIBLE_DEVICES applies), in its primary context, the one that CUDA's
 * runtime uses. `options` may be NULL. */
OL_API ol_status ol_device_cuda(int32_t ordinal, const ol_cuda_options *options, ol_device **device, ol_error *error);
/* The GPU of the context that is current on this thread, in that context, which must outlive the device and its composites. */
OL_API ol_status ol_device_cuda_current(const ol_cuda_options *options, ol_device **device, ol_error *error);

typedef struct ol_cuda_facts {
    char name[96];                     /* "NVIDIA H200" */
    int32_t capability;                /* 90 for compute capability 9.0 */
    int32_t n_multiprocessors;
    uint64_t n_bytes;                  /* of its memory */
    int32_t driver_version;            /* 13000: the newest CUDA that the driver serves, 13.0 */
} ol_cuda_facts;
/* The number of GPUs; 0 and OL_OK where the driver finds none, OL_ERROR_DEVICE where there is no driver. */
OL_API ol_status ol_cuda_count(int32_t *n_devices, ol_error *error);
OL_API ol_status ol_cuda_describe(int32_t ordinal, ol_cuda_facts *facts, ol_error *error);
/* The version of the NVRTC that would be used: 13000 for 13.0. */
OL_API ol_status ol_cuda_compiler(int32_t *version, ol_error *error);

/* ---- Memory and streams of a device, for those who have none of their own --------------------------------------------------
 *
 * On a CPU memory is the allocator's, a stream is NULL, and nothing has to be waited for. */

OL_API ol_status ol_device_allocate(ol_device *device, size_t n_bytes, void **pointer, ol_error *error);
/* `n_bytes` as it was allocated; NULL is allowed. On a GPU this waits for work that may use the memory. */
OL_API ol_status ol_device_free(ol_device *device, void *pointer, size_t n_bytes, ol_error *error);
/* Copies between memory of the device and of the host, in any direction, after what is in the stream. Host memory may be used
 * again after ol_stream_synchronize. */
OL_API ol_status ol_device_copy(ol_device *device, ol_stream stream, void *to, const void *from, size_t n_bytes, ol_error *error);
/* A stream that does not wait for the default one. */
OL_API ol_status ol_stream_create(ol_device *device, ol_stream *stream, ol_error *error);
OL_API ol_status ol_stream_destroy(ol_device *device, ol_stream stream, ol_error *error);      /* NULL is allowed */
/* Waits until what is in the stream is done, and reports what went wrong in it. */
OL_API ol_status ol_stream_synchronize(ol_device *device, ol_stream stream, ol_error *error);

/* ---- The cache of compiled kernels -----------------------------------------------------------------------------------
 *
 * Kernels that were compiled for a CUDA device are kept on disk, so that the next process need not compile them. Where:
 * $ONELAUNCH_CACHE; if that is unset or empty, $XDG_CACHE_HOME/onelaunch; if that is no absolute path, $HOME/.cache/onelaunch.
 * ONELAUNCH_CACHE=off, or any other value that is not an absolute path, turns the cache off, as does an environment that names no
 * folder, and a program that runs with another user's rights (secure_getenv). The folder is made at the first write, with mode
 * 0700, and its parents, in folders that are the user's or root's. It must belong to the effective user and be writable by no one
 * else; another is neither read nor written.
 *
 * All entries together have at most 256 MiB, or $ONELAUNCH_CACHE_MIB (decimal digits; another value is ignored; 0 writes nothing).
 * A write that passes the bound removes what was used longest ago until three quarters are left. Any number of processes may use
 * one folder. A cache that is missing, damaged, full, unwritable or not safe to use costs a compilation, never an error: only the
 * functions below, which look at the cache itself, say so. */

/* Its folder, as text (see ol_composite_text), whether or not it exists: it may be a path that is too long or cannot be used. 0,
 * and an empty text, where the cache is off. */
OL_API size_t ol_cache_folder(char *buffer, size_t n_bytes);

/* A file of the cache. Texts are valid during the visit only. They come from the file, which others may have written: control
 * characters are to be filtered before a terminal sees them (not in `file`). */
typedef struct ol_cache_entry {
    const char *file;                  /* its name in the folder */
    const char *kernel;                /* name of the function; empty, as the next three, where not known or not sound */
    const char *architecture;          /* "sm_90" */
    const char *library_version;       /* "0.1.0", of the library that made it; another version does not use it */
    const char *compiler;              /* "nvrtc 13.0" */
    uint64_t n_bytes;                  /* of the file */
    int64_t last_used;                 /* seconds since 1970 */
    int is_sound;                      /* 1: it would be used; 0: damaged, or a file that is not safe to use */
} ol_cache_entry;

/* A code other than 0 ends the listing, without an error. */
typedef int (*ol_cache_visit)(void *user, const ol_cache_entry *entry);

/* Visits every entry, the most recently used first, reading each whole to check it; that does not count as a use. A folder that
 * does not exist is an empty cache, and so is none. An entry that vanishes meanwhile is left out. OL_ERROR_DEVICE: the folder
 * cannot be read, or is not safe to use; OL_ERROR_ARGUMENT: no visit; OL_ERROR_MEMORY. */
OL_API ol_status ol_cache_list(ol_cache_visit visit, void *user, ol_error *error);

/* Removes every entry, damaged ones and what interrupted writes left included, and nothing else. What was removed is counted;
 * either pointer may be NULL. Errors as above; OL_ERROR_DEVICE also where a file could not be removed: the others were. */
OL_API ol_status ol_cache_clear(uint64_t *n_removed, uint64_t *n_bytes, ol_error *error);

/* ---- Compile and replay ---------------------------------------------------------------------------------------------- */

typedef struct ol_composite ol_composite;

/* Traces the builder for these input dtypes (n_inputs of them) and compiles the graph for the device. Shapes and ranks are
 * known only at replay. Takes microseconds on a CPU; on a GPU a new kernel is compiled, in some tenths of a second, and kept
 * in memory and on disk. The composite is immutable and may be replayed by any number of threads
 * at once; destroy it with ol_composite_destroy. */
OL_API ol_status ol_compile(ol_device *device, const ol_builder *builder, const ol_dtype *input_dtypes, ol_composite **composite,
                            ol_error *error);
OL_API void ol_composite_destroy(ol_composite *composite);       /* NULL is allowed; not while it is being replayed */

/* Sets dtype, rank, shape and contiguous strides of each output from the inputs (whose data is not read and may be NULL);
 * outputs[i].data is left alone. Each output's shape is the broadcast of the inputs it depends on. OL_ERROR_SHAPE where they
 * do not broadcast. */
OL_API ol_status ol_output_shapes(const ol_composite *composite, const ol_tensor *inputs, ol_tensor *outputs, ol_error *error);

/* Runs the composite: one launch (none where every output is empty), into the caller's outputs. Allocates nothing. Checks everything first: dtypes, ranks, that
 * shapes broadcast, that each output has its inferred shape, overlap (an output may be exactly an input: same data, dtype,
 * shape and strides); on an error nothing has been written. The host's floating-point state (rounding, flush-to-zero, traps)
 * is neither obeyed nor changed. Returns when the outputs are written (CPU), or when the kernel is in the stream (CUDA). */
OL_API ol_status ol_replay(const ol_composite *composite, ol_stream stream, const ol_tensor *inputs, const ol_tensor *outputs,
                           ol_error *error);

/* The composed path, the reference of the parity contract: the same graph, as traced, one primitive and one launch at a
 * time, every intermediate stored in its own dtype. Same arguments, checks and bits as ol_replay; allocates intermediates. */
OL_API ol_status ol_replay_composed(const ol_composite *composite, ol_stream stream, const ol_tensor *inputs, const ol_tensor *outputs,
                                    ol_error *error);

/* What a composite takes and gives. Indices out of range give OL_FLOAT32. */
OL_API int32_t ol_composite_input_count(const ol_composite *composite);
OL_API int32_t ol_composite_output_count(const ol_composite *composite);
OL_API ol_dtype ol_composite_input_dtype(const ol_composite *composite, int32_t index);
OL_API ol_dtype ol_composite_output_dtype(const ol_composite *composite, int32_t index);
OL_API const char *ol_composite_name(const ol_composite *composite);
/* Launches of one composed run: the primitives of the graph as traced. */
OL_API int32_t ol_composite_composed_launches(const ol_composite *composite);

/* ---- Gated delta rates -------------------------------------------------------------------------------------------------
 *
 * The activations of a gated-delta layer (Qwen3-Next, Qwen3.5, Kimi Linear, OLMo hybrids; Yang et al., "Gated Delta Networks",
 * 2024, with Mamba2's parametrisation of the decay), in the dtypes given, each step rounded to its own dtype:
 *     update rates   beta  = sigmoid(b)                                        dtype of b
 *     decay factors  decay = exp(-(exp(float32(A_log)) * softplus(a + dt_bias)))   float32; a + dt_bias and its softplus in
 *                                                                                 ol_promote(dtype of a, dtype of dt_bias)
 * Inputs, in this order, any floating dtypes (others are OL_ERROR_DTYPE):
 *     update_logits b [tokens, heads], decay_interval_inputs a [tokens, heads],
 *     decay_rate_logarithm A_log [heads], decay_interval_bias dt_bias [heads]
 * or whatever broadcasts so; per channel (Kimi): a [tokens, heads, channels], A_log [heads, 1], dt_bias [heads, channels]
 * with b still [tokens, heads], still one launch. */
OL_API ol_status ol_gated_delta_rates_compile(ol_device *device, ol_dtype update_logits, ol_dtype decay_interval_inputs,
                                              ol_dtype decay_rate_logarithm, ol_dtype decay_interval_bias, ol_composite **composite,
                                              ol_error *error);
/* The decay factors alone, the same bits; inputs a, A_log, dt_bias. */
OL_API ol_status ol_gated_delta_decay_compile(ol_device *device, ol_dtype decay_interval_inputs, ol_dtype decay_rate_logarithm,
                                              ol_dtype decay_interval_bias, ol_composite **composite, ol_error *error);

/* ---- Text ----------------------------------------------------------------------------------------------------------------
 *
 * docs/graph-text.md has the grammar. Printing and parsing round-trip: bits of constants, order, names. */

/* The functions that give text write at most n_bytes including a terminating zero and return the length the whole text has
 * without it, as snprintf does; buffer may be NULL when n_bytes is 0. */
typedef enum ol_text_kind {
    OL_TEXT_GRAPH = 0,                 /* the graph as traced; parses again */
    OL_TEXT_OPTIMIZED = 1,             /* the graph after the passes; parses again */
    OL_TEXT_PROGRAM = 2,               /* the compiled program, for people */
    OL_TEXT_DOT = 3                    /* the optimized graph for Graphviz */
} ol_text_kind;
OL_API size_t ol_composite_text(const ol_composite *composite, ol_text_kind kind, char *buffer, size_t n_bytes);
/* The CUDA text of the composite's kernel, also of one that was compiled for a CPU. 0 where there is no memory for it. */
OL_API size_t ol_cuda_kernel_text(const ol_composite *composite, char *buffer, size_t n_bytes);

/* Compiles a graph in text form (n_bytes of UTF-8, no terminating zero needed). OL_ERROR_TEXT says line:column and what was
 * expected. */
OL_API ol_status ol_compile_text(ol_device *device, const char *text, size_t n_bytes, ol_composite **composite, ol_error *error);

/* ---- Primitives by number, for tools and bindings -------------------------------------------------------------------- */

/* Primitives are numbered 0 .. ol_primitive_count()-1 in the order of src/primitives.def; the numbers may change between
 * versions, the names do not. */
OL_API int32_t ol_primitive_count(void);
OL_API const char *ol_primitive_name(int32_t primitive);          /* NULL out of range. Static storage. */
OL_API int32_t ol_primitive_arity(int32_t primitive);             /* 0 out of range */
/* -1 where no primitive has that name. */
OL_API int32_t ol_primitive_find(const char *name);
/* Whether the primitive takes operands of this dtype, and the dtype of its result then (astype: not here, it takes all). */
OL_API int ol_primitive_result(int32_t primitive, ol_dtype operand, ol_dtype *result);
/* Applies it to arity operands (astype and the broadcasts have functions of their own and fail here). */
OL_API ol_value ol_apply(ol_graph *graph, int32_t primitive, const ol_value *operands, int32_t n_operands);

#ifdef __cplusplus
}
#endif
#endif
