/* Public bug reports against fusers of elementwise graphs, replayed here: the rows on indexing, A50 to A55.
 *
 * Extents beyond 2^31 live in sparse memory: pages that are reserved, not there until touched. Memory ends at a guard page, so
 * that reading or writing one byte past a view is a fault, not luck. */
#include "graph_cases.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static char *reserve(size_t n_bytes)
{
    char *memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        print_message("skipped: %zu bytes of address space are not to be had\n", n_bytes);
        skip();
    }
    return memory;
}

/* n_bytes that end exactly at a page that faults, the page before them faulting too when they fill whole pages. */
typedef struct walled { char *map, *data; size_t map_bytes; } walled;

static walled walled_alloc(size_t n_bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (n_bytes + page - 1) / page * page;
    walled w = { .map_bytes = body + 2 * page };
    w.map = reserve(w.map_bytes);
    assert_int_equal(mprotect(w.map, page, PROT_NONE), 0);
    assert_int_equal(mprotect(w.map + page + body, page, PROT_NONE), 0);
    w.data = w.map + page + body - n_bytes;
    return w;
}

static void walled_free(walled w)
{
    munmap(w.map, w.map_bytes);
}

/* Walls around every tensor: inputs that are views of the end of a buffer, outputs likewise. */
static void check_walled(ol_device *device, const ol_dtype *dtypes, ol_build build, void *user, int32_t n_inputs, int64_t rows, int64_t last)
{
    ol_composite *c = compile_on(device, build, user, n_inputs, dtypes, 1);
    ol_dtype out_dtype = ol_composite_output_dtype(c, 0);
    uint64_t random = harness_seed;
    size_t n = (size_t)(rows * last);
    walled memory[4];
    ol_tensor in[3], out;
    ol_error error;
    for (int k = 0; k < n_inputs; k++) {
        /* The first half of the buffer is NaN poison (all ones); the view is the second half. */
        size_t n_bytes = n * ol_dtype_size(dtypes[k]);
        memory[k] = walled_alloc(2 * n_bytes);
        memset(memory[k].data, 0xFF, n_bytes);
        random_fill(&random, memory[k].data + n_bytes, dtypes[k], n);
        in[k] = ol_tensor_contiguous(memory[k].data + n_bytes, dtypes[k], 2, SHAPE(rows, last));
    }
    memory[3] = walled_alloc(n * ol_dtype_size(out_dtype));
    out = ol_tensor_contiguous(memory[3].data, out_dtype, 2, SHAPE(rows, last));
    assert_ok(ol_replay(c, NULL, in, &out, &error), &error);

    char first[4096];
    assert_true(n * ol_dtype_size(out_dtype) <= sizeof first);
    memcpy(first, out.data, n * ol_dtype_size(out_dtype));
    assert_ok(ol_replay_composed(c, NULL, in, &out, &error), &error);
    assert_memory_equal(first, out.data, n * ol_dtype_size(out_dtype));
    /* The poison before the view changes nothing. */
    for (int k = 0; k < n_inputs; k++)
        memset(memory[k].data, 0, n * ol_dtype_size(dtypes[k]));
    assert_ok(ol_replay(c, NULL, in, &out, &error), &error);
    assert_memory_equal(first, out.data, n * ol_dtype_size(out_dtype));
    for (int k = 0; k < n_inputs; k++)
        walled_free(memory[k]);
    walled_free(memory[3]);
    ol_composite_destroy(c);
}

static void walled_primitive(int32_t p, int32_t arity, const ol_dtype *dtypes, void *user)
{
    const int64_t *shape = user;
    for (size_t level = 0; level < level_count(); level++)
        check_walled(level_device(level), dtypes, build_primitive, PRIMITIVE_USER(p), arity, shape[0], shape[1]);
}

static void A50_a_view_of_half_a_buffer(void **state)
{
    (void)state;
    each_primitive(walled_primitive, (int64_t[]){ 1, 19 });
}

static int build_gate(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_exp(g, ol_negative(g, ol_multiply(g, ol_exp(g, in[0]), ol_softplus(g, ol_add(g, in[1], in[2])))));
    return 0;
}

static void A52_odd_last_dimensions_are_not_read_past(void **state)
{
    (void)state;
    static const int64_t lasts[] = { 48, 1, 31, 33, 47 };
    for (size_t i = 0; i < COUNT(lasts); i++)
        for (int64_t rows = 1; rows <= 5; rows += 4)
            for (size_t level = 0; level < level_count(); level++) {
                check_walled(level_device(level), DTYPES(OL_FLOAT32, OL_BFLOAT16, OL_BFLOAT16), build_gate, NULL, 3, rows, lasts[i]);
                check_walled(level_device(level), DTYPES(OL_FLOAT16, OL_FLOAT16, OL_FLOAT32), build_gate, NULL, 3, rows, lasts[i]);
            }
    each_primitive(walled_primitive, (int64_t[]){ 1, 33 });
}

/* The largest element offsets of the report, on both sides of 2^31: rows far apart in a sparse buffer, against each row by
 * itself. */
static void A51_offsets_on_both_sides_of_int32(void **state)
{
    (void)state;
    static const int64_t last_offsets[] = { 2147483520, 2147942400, 4294967296 + 64 };
    enum { ROWS = 4, WIDTH = 64 };
    for (size_t i = 0; i < COUNT(last_offsets); i++) {
        int64_t row_stride = (last_offsets[i] - (WIDTH - 1)) / (ROWS - 1), extent = row_stride * (ROWS - 1) + WIDTH;
        size_t n_bytes = (size_t)extent * 2;
        char *in_memory = reserve(n_bytes), *out_memory = reserve(n_bytes);
        uint64_t random = harness_seed;
        for (int r = 0; r < ROWS; r++)
            random_fill(&random, in_memory + r * row_stride * 2, OL_BFLOAT16, WIDTH);
        for (size_t level = 0; level < level_count(); level++)
            for (int path = 0; path < 2; path++) {
                ol_composite *c = compile_on(level_device(level), build_primitive, primitive_named("sigmoid"), 1, DTYPES(OL_BFLOAT16), 1);
                ol_tensor in = strided(in_memory, OL_BFLOAT16, 2, SHAPE(ROWS, WIDTH), SHAPE(row_stride, 1)), out = in;
                ol_error error;
                out.data = out_memory;
                assert_ok(replay_paths[path](c, NULL, &in, &out, &error), &error);
                for (int r = 0; r < ROWS; r++) {
                    uint16_t alone[WIDTH];
                    ol_tensor row = vector_of(in_memory + r * row_stride * 2, OL_BFLOAT16, WIDTH), result = vector_of(alone, OL_BFLOAT16, WIDTH);
                    assert_ok(ol_replay(c, NULL, &row, &result, &error), &error);
                    assert_memory_equal(out_memory + r * row_stride * 2, alone, sizeof alone);
                    memset(out_memory + r * row_stride * 2, 0, sizeof alone);
                }
                ol_composite_destroy(c);
            }
        munmap(in_memory, n_bytes);
        munmap(out_memory, n_bytes);
    }
}

/* More than 2^31 bytes of addresses over few pages: windows of one file, again and again, the last one with pages of its own.
 * A window is no divisor of 2^31, so that an offset that wrapped reads or writes another byte of the pattern. */
static char *mirrored(size_t n_bytes, size_t window)
{
    size_t n_windows = (n_bytes + window - 1) / window;
    int file = memfd_create("mirrored", 0);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, (off_t)(2 * window)), 0);
    char *memory = reserve(n_windows * window);
    for (size_t w = 0; w < n_windows; w++)
        assert_true(mmap(memory + w * window, window, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, w + 1 == n_windows ? (off_t)window : 0) != MAP_FAILED);
    close(file);
    return memory;
}

/* The cheapest whole run over more than 2^31 elements: the complement of bytes. */
static void check_large(int32_t rank, const int64_t *shape, size_t window)
{
    size_t n = 1;
    for (int32_t d = 0; d < rank; d++)
        n *= (size_t)shape[d];
    if (SANITIZED) {
        print_message("skipped: too slow under a sanitizer\n");
        skip();
    }
    size_t last = (n - 1) / window * window;
    char *from = mirrored(n, window), *to = mirrored(n, window);
    for (size_t i = 0; i < window; i++)
        from[i] = (char)(i * 2654435761u >> 13);
    memcpy(from + last, from, n - last);
    ol_composite *c = compile_on(level_device(level_count() - 1), build_primitive, primitive_named("bitwise_invert"), 1, DTYPES(OL_UINT8), 1);
    ol_tensor in = ol_tensor_contiguous(from, OL_UINT8, rank, shape), out = ol_tensor_contiguous(to, OL_UINT8, rank, shape);
    ol_error error;
    assert_ok(ol_replay(c, NULL, &in, &out, &error), &error);
    size_t wrong = 0;
    for (size_t i = 0; i < window; i++)
        wrong += to[i] != (char)~from[i];
    for (size_t i = last; i < n; i++)
        wrong += to[i] != (char)~from[i];
    assert_int_equal(wrong, 0);
    ol_composite_destroy(c);
    munmap(from, (n + window - 1) / window * window);
    munmap(to, (n + window - 1) / window * window);
}

static void A53_a_large_matrix(void **state)
{
    (void)state;
    check_large(2, SHAPE(8192, 262144 + 128), 96 * (262144 + 128));        /* 2^31 + 2^20 elements of one byte */
}

static void A54_few_elements_far_apart(void **state)
{
    (void)state;
    static const int64_t distances[] = { (1ll << 31) + 64, -((1ll << 31) + 64), (1ll << 32) + 1, -(1ll << 32) };
    static const ol_dtype dtypes[] = { OL_FLOAT32, OL_BFLOAT16, OL_UINT8 };
    for (size_t i = 0; i < COUNT(distances); i++)
        for (size_t d = 0; d < COUNT(dtypes); d++) {
            int64_t distance = distances[i], ahead = distance < 0 ? -distance : 0;
            size_t size = ol_dtype_size(dtypes[d]), n_bytes = (size_t)(distance < 0 ? -distance : distance) * size + size;
            char *in_memory = reserve(n_bytes), *out_memory = reserve(n_bytes);
            char *in_origin = in_memory + (size_t)ahead * size, *out_origin = out_memory + (size_t)ahead * size;
            ol_tensor in = strided(in_origin, dtypes[d], 1, SHAPE(2), &distance), out = strided(out_origin, dtypes[d], 1, SHAPE(2), &distance);
            uint64_t two = dtypes[d] == OL_FLOAT32 ? 0x40000000 : dtypes[d] == OL_BFLOAT16 ? 0x4000 : 2;
            uint64_t three = dtypes[d] == OL_FLOAT32 ? 0x40400000 : dtypes[d] == OL_BFLOAT16 ? 0x4040 : 3;
            uint64_t four = dtypes[d] == OL_FLOAT32 ? 0x40800000 : dtypes[d] == OL_BFLOAT16 ? 0x4080 : 4;
            uint64_t nine = dtypes[d] == OL_FLOAT32 ? 0x41100000 : dtypes[d] == OL_BFLOAT16 ? 0x4110 : 9;
            element_store(in_origin, dtypes[d], 0, two);
            memcpy(in_origin + distance * (int64_t)size, &three, size);
            for (size_t level = 0; level < level_count(); level++) {
                ol_composite *c = compile_on(level_device(level), build_primitive, primitive_named("square"), 1, &dtypes[d], 1);
                ol_error error;
                for (int path = 0; path < 2; path++) {
                    memset(out_origin, 0, size);
                    memset(out_origin + distance * (int64_t)size, 0, size);
                    assert_ok(replay_paths[path](c, NULL, &in, &out, &error), &error);
                    assert_int_equal(element_load(out_origin, dtypes[d], 0), four);
                    assert_int_equal(element_load(out_origin + distance * (int64_t)size, dtypes[d], 0), nine);
                }
                ol_composite_destroy(c);
            }
            munmap(in_memory, n_bytes);
            munmap(out_memory, n_bytes);
        }
}

static void A55_a_vector_longer_than_2_to_31(void **state)
{
    (void)state;
    check_large(1, SHAPE(3270680000), 3 << 23);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(A50_a_view_of_half_a_buffer), cmocka_unit_test(A51_offsets_on_both_sides_of_int32),
        cmocka_unit_test(A52_odd_last_dimensions_are_not_read_past), cmocka_unit_test(A53_a_large_matrix),
        cmocka_unit_test(A54_few_elements_far_apart), cmocka_unit_test(A55_a_vector_longer_than_2_to_31),
    };
    return HARNESS_RUN(argc, argv, tests);
}
