/* Graphs under test, described by a builder, and checked as bits: at every SIMD level, by replay and by the composed path, at
 * the length given and repeated to a length that has both vector bodies and tails.
 *
 * Elements are written as 64-bit numbers, whatever their dtype; a table lists input 0's elements, then input 1's, … */
#ifndef OL_GRAPH_CASES_H
#define OL_GRAPH_CASES_H

#include "harness.h"

#include <string.h>

#define BITS(...) ((const uint64_t[]){ __VA_ARGS__ })
#define DTYPES(...) ((const ol_dtype[]){ __VA_ARGS__ })
#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })
#define COUNT(array) (sizeof(array) / sizeof *(array))

static inline uint64_t f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float f32_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return x;
}

/* One element of an array of a dtype, as bits. */
uint64_t element_load(const void *data, ol_dtype dtype, size_t index);
void element_store(void *data, ol_dtype dtype, size_t index, uint64_t bits);

/* A random element: half of them from the dtype's corners (zeros, ones, subnormals, extremes, infinities, NaN). */
uint64_t random_element(uint64_t *state, ol_dtype dtype);
void random_fill(uint64_t *state, void *data, ol_dtype dtype, size_t n);

/* A tensor with any strides. */
ol_tensor strided(void *data, ol_dtype dtype, int32_t rank, const int64_t *shape, const int64_t *strides);

/* Compiles or fails the test. */
ol_composite *compile_on(ol_device *device, ol_build build, void *user, int32_t n_inputs, const ol_dtype *dtypes, int32_t n_outputs);

typedef ol_status (*replay_path)(const ol_composite *, ol_stream, const ol_tensor *, const ol_tensor *, ol_error *);
/* 0: ol_replay, 1: ol_replay_composed. */
extern const replay_path replay_paths[2];
extern const char *const path_names[2];

/* Fails unless the graph gives exactly these bits, in one launch per replay. `n` elements each. */
void check_graph(ol_build build, void *user, int32_t n_inputs, const ol_dtype *dtypes, const uint64_t *inputs, int32_t n_outputs,
                 const uint64_t *expected, size_t n);

/* A builder of one primitive; `user` is primitive_named("exp"). */
int build_primitive(ol_graph *g, const ol_value *in, ol_value *out, void *user);
#define PRIMITIVE_USER(index) ((void *)(intptr_t)(index))
void *primitive_named(const char *name);
/* The same for one primitive on operands of one dtype. */
void check_primitive(const char *name, ol_dtype dtype, size_t n, const uint64_t *inputs, const uint64_t *expected);

/* A builder of three inputs and five outputs: sizes of 1, 2, 4 and 8 bytes, an input that is several outputs, one
 * node that is two outputs, constants, and broadcasts. */
int build_mixed(ol_graph *g, const ol_value *in, ol_value *out, void *user);

/* A builder of astype; `user` is the target dtype. */
int build_astype(ol_graph *g, const ol_value *in, ol_value *out, void *user);
#define DTYPE_USER(dtype) ((void *)(intptr_t)(dtype))
void check_astype(ol_dtype from, ol_dtype to, size_t n, const uint64_t *inputs, const uint64_t *expected);

/* For every primitive on every dtype it takes, as its kernels take it: calls visit with the dtypes of the operands. */
typedef void (*primitive_visit)(int32_t primitive, int32_t arity, const ol_dtype *dtypes, void *user);
void each_primitive(primitive_visit visit, void *user);

/* A host's parallel_for: up to four threads started for the call, which take indices from a shared counter. `user`, unless it
 * is NULL, is an atomic_size_t that counts the tasks. */
void host_parallel_for(void *user, size_t n_tasks, ol_task task, void *argument);

#endif
