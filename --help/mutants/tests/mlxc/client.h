/* The common ground of the programs that are written against mlx-c's C interface. They know the interface and nothing of onelaunch
 * (client_launches.c alone does), as the programs of users do: what holds here holds for them.
 *
 * A program is a table of cmocka tests and `return client_run(...)`; --filter and --seed as in harness.h. Every failing call ends up
 * in the error handler that client_run sets, which keeps the messages of the thread and counts them. */
#ifndef MLXC_CLIENT_H
#define MLXC_CLIENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mlx/c/mlx.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define CLIENT_RUN(argc, argv, tests) client_run(argc, argv, #tests, tests, sizeof(tests) / sizeof *(tests))
int client_run(int argc, char **argv, const char *group, const struct CMUnitTest *tests, size_t n_tests);
extern uint64_t client_seed;
/* splitmix64: a state, and the next number. */
uint64_t random_next(uint64_t *state);

/* ---- Errors ---- */

/* The messages that came to this thread since the last error_take, one behind the other. */
const char *error_message(void);
/* How many messages came to this thread since the last call, which it forgets with their text. */
int error_take(void);
/* Puts the handler of client_run back. */
void error_handler_default(void);

/* A call that succeeds, without a message. */
#define OK(call) client_ok((call), #call, __FILE__, __LINE__)
void client_ok(int code, const char *what, const char *file, int line);
/* A call that fails, with one message or more that contain `text` (lower and upper case alike). */
#define FAILS(call, text) client_fails((call), (text), #call, __FILE__, __LINE__)
void client_fails(int code, const char *text, const char *what, const char *file, int line);

/* ---- Dtypes and bits ---- */

#define DTYPES(D)                                                                                                            \
    D(MLX_BOOL, bool, 1) D(MLX_UINT8, uint8, 1) D(MLX_UINT16, uint16, 2) D(MLX_UINT32, uint32, 4) D(MLX_UINT64, uint64, 8)   \
    D(MLX_INT8, int8, 1) D(MLX_INT16, int16, 2) D(MLX_INT32, int32, 4) D(MLX_INT64, int64, 8)                                \
    D(MLX_FLOAT16, float16, 2) D(MLX_BFLOAT16, bfloat16, 2) D(MLX_FLOAT32, float32, 4)
enum { N_DTYPES = 12 };
extern const mlx_dtype dtypes[N_DTYPES];
const char *dtype_name(mlx_dtype dtype);
size_t dtype_bytes(mlx_dtype dtype);
/* -1 where no dtype has that name. */
int dtype_find(const char *name);
bool dtype_is_float(mlx_dtype dtype);
void bits_store(void *memory, mlx_dtype dtype, size_t i, uint64_t bits);
uint64_t bits_load(const void *memory, mlx_dtype dtype, size_t i);
/* Bits of an element with the dtype's special values among them; a bool is 0 or 1. */
uint64_t bits_random(uint64_t *state, mlx_dtype dtype);

/* ---- Arrays ---- */

extern mlx_stream stream;                /* the default GPU stream, as a client written for a GPU has it */

/* An array of random bits, and one with the bits given. */
mlx_array array_random(uint64_t *state, mlx_dtype dtype, int rank, const int *shape);
mlx_array array_of_bits(mlx_dtype dtype, int rank, const int *shape, const uint64_t *bits);
mlx_array array_f32(int n, const float *values);
size_t shape_size(int rank, const int *shape);
/* The evaluated array's elements; NULL for an empty one. */
const void *array_data(mlx_array a);
/* Fails unless both have one dtype, one shape and the same bytes. */
void array_equal_bits(mlx_array a, mlx_array b, const char *what);
/* Fails unless it has these. */
void array_is(mlx_array a, mlx_dtype dtype, int rank, const int *shape);

/* ---- Closures ---- */

/* Applies to n arrays and gives the m results in out, each to be freed. */
int apply(mlx_closure cls, int n, const mlx_array *in, int m, mlx_array *out);
/* The compiled closure of a function with a payload. */
typedef int closure_function(mlx_vector_array *res, const mlx_vector_array input, void *payload);
mlx_closure compiled(closure_function *f, void *payload, bool shapeless);
/* Input i of a vector, to be freed. */
mlx_array input_of(const mlx_vector_array input, size_t i);
/* Also while an error is under way. */
void free_all(int n, mlx_array *arrays);

/* ---- Launches (client_launches.c) ---- */

/* Launches of all devices so far; -1 where they cannot be counted. */
long launches(void);
/* Whether the library has a GPU, by the device's own name. */
bool on_gpu(void);
/* Kernel launches of the fake CUDA driver so far; -1 without it. */
long fake_launches(void);
/* What was done that must not be done on a GPU, and the objects that are alive: memory, modules, streams, events. -1 without it. */
long fake_violations(void);
long fake_objects(void);

/* ---- Memory ---- */

/* Resident memory of the process, in KiB. */
long resident_kib(void);
/* Whether a sanitizer is in the process: memory and time say nothing then. */
bool sanitized(void);

#endif
