/* The test programs' common ground: cmocka with --filter and --seed, seeded random numbers, guarded buffers, a device per
 * SIMD level, and comparing bits.
 *
 * A test program is a table of cmocka tests and `return harness_run(argc, argv, tests, n)`. --filter takes a cmocka pattern
 * (* and ?); --seed a number; the seed in use is printed. */
#ifndef OL_HARNESS_H
#define OL_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <onelaunch.h>

#define HARNESS_RUN(argc, argv, tests) harness_run(argc, argv, #tests, tests, sizeof(tests) / sizeof *(tests))
int harness_run(int argc, char **argv, const char *group, const struct CMUnitTest *tests, size_t n_tests);
extern uint64_t harness_seed;

/* splitmix64: a state, and the next number. */
uint64_t random_next(uint64_t *state);
/* 0 <= result < n */
static inline uint64_t random_below(uint64_t *state, uint64_t n) { return random_next(state) % n; }

/* Memory of n_bytes with canaries around it, filled with 0xA5. guarded_check fails the test if a canary changed;
 * guarded_free checks and frees. The block lies `misalignment` bytes (0 to 7) off a
 * 64-byte boundary. */
void *guarded_alloc(size_t n_bytes, size_t misalignment);
void guarded_check(const void *block);
void guarded_free(void *block);

/* The SIMD levels of this machine: n, and a single-threaded device for each, shared by all tests. */
size_t level_count(void);
ol_device *level_device(size_t i);

/* Fails with the error's text unless status is OL_OK. */
#define assert_ok(status, error) harness_assert_ok((status), (error), __FILE__, __LINE__)
void harness_assert_ok(ol_status status, const ol_error *error, const char *file, int line);
/* Fails unless status is `expected`, the operation contains `operation` and the description contains `text`. */
#define assert_fails(status, error, expected, operation, text) \
    harness_assert_fails((status), (error), (expected), (operation), (text), __FILE__, __LINE__)
void harness_assert_fails(ol_status status, const ol_error *error, ol_status expected, const char *operation, const char *text,
                          const char *file, int line);

/* A one-dimensional contiguous tensor. */
static inline ol_tensor vector_of(void *data, ol_dtype dtype, int64_t n) { return ol_tensor_contiguous(data, dtype, 1, &n); }

#endif
