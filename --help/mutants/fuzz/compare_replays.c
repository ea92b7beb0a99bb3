/* See compare_replays.h. Every tensor has memory of its own, of exactly its size, so that a sanitizer sees a byte too many. */
#include "compare_replays.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_TENSORS = 200, MAX_ELEMENTS = 600, MAX_LAUNCHES = 400 };

/* Refuses large blocks: an intermediate may be huge where another input's extent of 0 makes every output empty. */
static void *allocate_some(void *user, size_t n_bytes) {
    (void)user;
    return n_bytes > 64u << 20 ? NULL : aligned_alloc(64, (n_bytes + 63) & ~(size_t)63);
}

static void free_some(void *user, void *pointer, size_t n_bytes) {
    (void)user, (void)n_bytes;
    free(pointer);
}

ol_device *fuzz_device(int best) {
    static ol_device *devices[2];
    if (!devices[best]) {
        ol_cpu_options options = { .level = best ? OL_CPU_AUTO : OL_CPU_BASELINE, .n_threads = 1, .allocator = { allocate_some, free_some, NULL } };
        if (ol_device_cpu(&options, &devices[best], NULL) != OL_OK) {
            abort();
        }
    }
    return devices[best];
}

static int64_t count_elements(const ol_tensor *t) {
    int64_t n = 1;
    for (int32_t d = 0; d < t->rank; d++) {
        if (t->shape[d] == 0) {
            return 0;
        }
        if (__builtin_mul_overflow(n, t->shape[d], &n)) {
            return INT64_MAX;
        }
    }
    return n;
}

/* FNV-1a: shapes and values that are the same for the same bytes. */
static uint64_t next(uint64_t *state) {
    *state = (*state ^ (*state >> 29)) * 0x100000001B3u + 0x9E3779B97F4A7C15u;
    return *state ^ (*state >> 31);
}

/* The shapes of all inputs broadcast: [a, b] with an extent dropped or 1 here and there. */
static void shape_inputs(const ol_composite *composite, ol_tensor *inputs, uint64_t *state) {
    static const int64_t extents[] = { 0, 1, 2, 3, 7, 16, 17, 33 };
    int64_t rows = extents[1 + next(state) % 5], columns = extents[next(state) % 8];
    for (int32_t i = 0; i < ol_composite_input_count(composite); i++) {
        uint64_t kind = next(state) % 8;
        int64_t shape[2] = { kind == 0 ? 1 : rows, kind == 1 ? 1 : columns };
        int32_t rank = kind == 2 ? 1 : kind == 3 ? 0 : 2;
        inputs[i] = ol_tensor_contiguous(NULL, ol_composite_input_dtype(composite, i), rank, shape + (2 - rank));
    }
}

static void allocate(ol_tensor *t) {
    size_t n_bytes = (size_t)count_elements(t) * ol_dtype_size(t->dtype);
    t->data = malloc(n_bytes ? n_bytes : 1);
    if (!t->data) {
        abort();
    }
    memset(t->data, 0xA5, n_bytes);
}

/* Half of the elements from the input bytes, so that the fuzzer can choose them, half at random; transposed at times. */
static void fill(ol_tensor *t, const uint8_t *data, size_t size, uint64_t *state) {
    size_t n_bytes = (size_t)count_elements(t) * ol_dtype_size(t->dtype), at = size ? next(state) % size : 0;
    unsigned char *to = t->data;
    for (size_t i = 0; i < n_bytes; i++) {
        to[i] = size && next(state) & 1 ? data[(at + i) % size] : (unsigned char)(next(state) >> 11);
    }
    if (t->rank == 2 && next(state) % 4 == 0) {
        t->strides[0] = 1;
        t->strides[1] = t->shape[0];
    }
}

/* False where the composed path had no memory; a replay needs none. */
static bool run(const ol_composite *composite, bool composed, const ol_tensor *inputs, const ol_tensor *outputs) {
    ol_error error = { 0 };
    ol_status status = composed ? ol_replay_composed(composite, NULL, inputs, outputs, &error) : ol_replay(composite, NULL, inputs, outputs, &error);
    if (status != OL_OK && !(composed && status == OL_ERROR_MEMORY)) {
        fprintf(stderr, "%s: %s: %s\n", ol_status_name(status), error.operation, error.description);
        abort();
    }
    return status == OL_OK;
}

static void compare(const ol_tensor *expected, const ol_tensor *got, int32_t n, const char *what) {
    for (int32_t i = 0; i < n; i++) {
        if (memcmp(expected[i].data, got[i].data, (size_t)count_elements(&expected[i]) * ol_dtype_size(expected[i].dtype)) != 0) {
            fprintf(stderr, "output %d: %s differs from the composed path\n", (int)i, what);
            abort();
        }
    }
}

void fuzz_replay(const ol_composite *baseline, const ol_composite *best, const uint8_t *data, size_t size) {
    static ol_tensor inputs[MAX_TENSORS], expected[MAX_TENSORS], got[MAX_TENSORS];
    int32_t n_in = ol_composite_input_count(baseline), n_out = ol_composite_output_count(baseline);
    uint64_t state = size;
    for (size_t i = 0; i < size; i++) {
        state = (state ^ data[i]) * 0x100000001B3u;
    }
    if (n_in > MAX_TENSORS || n_out > MAX_TENSORS || ol_composite_composed_launches(baseline) > MAX_LAUNCHES) {
        return;
    }
    memset(expected, 0, sizeof expected);
    shape_inputs(baseline, inputs, &state);
    if (ol_output_shapes(baseline, inputs, expected, NULL) != OL_OK) {
        return;                                              /* broadcast_to */
    }
    for (int32_t i = 0; i < n_out; i++) {
        if (count_elements(&expected[i]) > MAX_ELEMENTS) {
            return;
        }
    }
    for (int32_t i = 0; i < n_in; i++) {
        allocate(&inputs[i]);
        fill(&inputs[i], data, size, &state);
    }
    for (int32_t i = 0; i < n_out; i++) {
        got[i] = expected[i];
        allocate(&expected[i]);
        allocate(&got[i]);
    }
    if (run(baseline, true, inputs, expected)) {
        run(baseline, false, inputs, got);
        compare(expected, got, n_out, "replay at baseline");
        run(best, false, inputs, got);
        compare(expected, got, n_out, "replay at the best level");
    }
    for (int32_t i = 0; i < n_in; i++) {
        free(inputs[i].data);
    }
    for (int32_t i = 0; i < n_out; i++) {
        free(expected[i].data);
        free(got[i].data);
    }
}
