/* Memory of a layer: each allocation of its creation fails once, with a clean OL_ERROR_MEMORY, nothing leaked and nothing left behind; a step allocates
 * nothing, neither through the device's hooks nor from the C library, whose functions are wrapped (-Wl,--wrap=…). */
#include "step_case.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_size_t n_library_calls;

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *pointer, size_t n_bytes);
void *__real_aligned_alloc(size_t alignment, size_t n_bytes);
int __real_posix_memalign(void **pointer, size_t alignment, size_t n_bytes);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *pointer, size_t n_bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes);
int __wrap_posix_memalign(void **pointer, size_t alignment, size_t n_bytes);

void *__wrap_malloc(size_t n_bytes) { return atomic_fetch_add(&n_library_calls, 1), __real_malloc(n_bytes); }
void *__wrap_calloc(size_t n, size_t size) { return atomic_fetch_add(&n_library_calls, 1), __real_calloc(n, size); }
void *__wrap_realloc(void *pointer, size_t n_bytes) { return atomic_fetch_add(&n_library_calls, 1), __real_realloc(pointer, n_bytes); }
void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes) { return atomic_fetch_add(&n_library_calls, 1), __real_aligned_alloc(alignment, n_bytes); }
int __wrap_posix_memalign(void **pointer, size_t alignment, size_t n_bytes)
{
    return atomic_fetch_add(&n_library_calls, 1), __real_posix_memalign(pointer, alignment, n_bytes);
}

typedef struct ledger {
    size_t n_calls, fail_at;                     /* the call that fails; 0: none */
    size_t n_blocks, n_bytes;                    /* alive */
} ledger;

static void *ledger_allocate(void *user, size_t n_bytes)
{
    ledger *l = user;
    if (++l->n_calls == l->fail_at)
        return NULL;
    void *pointer = __real_aligned_alloc(64, (n_bytes + 63) / 64 * 64);
    if (pointer)
        memset(pointer, 0xDB, n_bytes);
    l->n_blocks++;
    l->n_bytes += n_bytes;
    return pointer;
}

static void ledger_free(void *user, void *pointer, size_t n_bytes)
{
    ledger *l = user;
    l->n_blocks--;
    l->n_bytes -= n_bytes;
    free(pointer);
}

static ol_device *device_of(ledger *l, int threads)
{
    ol_cpu_options options = { .n_threads = threads, .allocator = { ledger_allocate, ledger_free, l } };
    ol_device *device;
    ol_error error;
    assert_ok(ol_device_cpu(&options, &device, &error), &error);
    return device;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    for (int decay = OL_DELTA_DECAY_COMPUTED; decay <= OL_DELTA_DECAY_GIVEN; decay++) {
        step_case c;
        step_usual(&c, 1, 2, 32, 16, 2, 2, &random);
        c.options.decay = (ol_delta_decay)decay;
        ledger l = { 0 };
        ol_device *device = device_of(&l, 1);
        size_t before = l.n_bytes, k = 1, failures = 0;
        for (int failed = 1; failed; k++) {
            ol_gated_delta *layer = NULL;
            ol_error error;
            l.n_calls = 0;
            l.fail_at = k;
            ol_status status = ol_gated_delta_create(device, &c.options, &layer, &error);
            failed = l.n_calls >= k;
            if (failed) {
                assert_int_equal(status, OL_ERROR_MEMORY);
                assert_int_equal(error.status, OL_ERROR_MEMORY);
                assert_true(strlen(error.description) > 0);
                assert_null(layer);
                failures++;
            } else {
                assert_ok(status, &error);
                ol_gated_delta_destroy(layer);
            }
            assert_int_equal(l.n_bytes, before);
        }
        assert_true(failures >= 10);
        ol_device_destroy(device);
        assert_int_equal(l.n_blocks, 0);
        step_free(&c);
    }
}

/* A layer keeps its device alive. */
static void test_layer_outlives_handle(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    step_case c, expected;
    ol_gated_delta *layer;
    ol_error error;
    ledger l = { 0 };
    step_usual(&c, 1, 2, 32, 16, 2, 2, &random);
    step_copy(&expected, &c);
    step_reference(&expected);
    ol_device *device = device_of(&l, 1);
    assert_ok(ol_gated_delta_create(device, &c.options, &layer, &error), &error);
    ol_device_destroy(device);
    assert_ok(ol_gated_delta_step(layer, NULL, &c.arguments, &error), &error);
    assert_true(step_equal(&expected, &c));
    ol_gated_delta_destroy(layer);
    assert_int_equal(l.n_blocks, 0);
    step_free(&c);
    step_free(&expected);
}

static void test_step_allocates_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        uint64_t random = harness_seed * 77 + (uint64_t)i;
        step_case c;
        ol_gated_delta *layer;
        ol_error error;
        ledger l = { 0 };
        step_random(&c, STEP_USUAL, &random);
        ol_device *device = device_of(&l, 1 + i % 3);
        assert_ok(ol_gated_delta_create(device, &c.options, &layer, &error), &error);
        size_t calls = l.n_calls, library_calls = atomic_load(&n_library_calls);
        for (int run = 0; run < 3; run++)
            assert_ok(ol_gated_delta_step(layer, NULL, &c.arguments, &error), &error);
        assert_int_equal(l.n_calls, calls);
        assert_int_equal(atomic_load(&n_library_calls), library_calls);
        ol_gated_delta_destroy(layer);
        ol_device_destroy(device);
        step_free(&c);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_layer_outlives_handle),
        cmocka_unit_test(test_step_allocates_nothing),
    };
    return HARNESS_RUN(argc, argv, tests);
}
