/* Offsets around 2^31 and 2^32 bytes, forward and backward, on either side (A51, A53 to A55): few elements far apart, and on a GPU
 * many elements. */
#include "cuda_harness.h"
#include "tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static int build_negative(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_negative(g, in[0]);
    return 0;
}

static int build_two(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_add(g, in[0], in[1]);
    out[1] = ol_maximum(g, in[0], in[0]);
    return 0;
}

/* ---- Few elements ---- */

enum { GUARD = 64, ROOM = 1 << 20 };
#define EXTENT (((size_t)1 << 32) + 4 * ROOM)

/* The same places on both sides. */
static unsigned char *host;
static char *device_memory;

/* Where an element lies in the memory; t's data is that of the host's memory. */
static size_t place_of(const ol_tensor *t, int64_t flat)
{
    int64_t at = (int64_t)((unsigned char *)t->data - host);
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        at += flat % t->shape[d] * t->strides[d] * (int64_t)ol_dtype_size(t->dtype);
        flat /= t->shape[d];
    }
    assert_in_range(at, GUARD, EXTENT - GUARD);
    return (size_t)at;
}

/* Copies the elements and what lies around them to the device, or compares them. */
static void exchange(const ol_tensor *t, int up, const char *what)
{
    unsigned char got[GUARD * 2 + 8];
    for (int64_t i = 0; i < shape_elements(t->rank, t->shape); i++) {
        size_t at = place_of(t, i) - GUARD, n = GUARD * 2 + ol_dtype_size(t->dtype);
        if (up)
            upload(cuda, stream, device_memory + at, host + at, n);
        else {
            download(cuda, stream, got, device_memory + at, n);
            for (size_t b = 0; b < n; b++)
                if (got[b] != host[at + b])
                    fail_msg("%s: element %lld: byte %d from it is %02x, expected %02x", what, (long long)i, (int)b - GUARD, got[b],
                             host[at + b]);
        }
    }
}

/* A tensor at an offset of the memory; strides in bytes, negative ones walk backwards from the far end. */
static ol_tensor at(size_t offset, ol_dtype dtype, int32_t rank, const int64_t *extents, const int64_t *stride_bytes)
{
    ol_tensor t = { .dtype = dtype, .rank = rank };
    for (int32_t d = 0; d < rank; d++) {
        t.shape[d] = extents[d];
        t.strides[d] = stride_bytes[d] / (int64_t)ol_dtype_size(dtype);
        if (stride_bytes[d] < 0)
            offset += (size_t)(-stride_bytes[d] * (extents[d] - 1));
    }
    t.data = host + offset;
    return t;
}

static void check(const both *b, uint64_t *random, int n_inputs, int n_outputs, ol_tensor *tensors, const char *what)
{
    ol_tensor on_gpu[4];
    ol_error error;
    int n = n_inputs + n_outputs;
    for (int i = 0; i < n; i++)
        for (int64_t e = 0; e < shape_elements(tensors[i].rank, tensors[i].shape); e++) {
            size_t p = place_of(&tensors[i], e);
            uint64_t bits = random_element(random, tensors[i].dtype);
            memset(host + p - GUARD, 0xA5, 2 * GUARD);
            memcpy(host + p, &bits, ol_dtype_size(tensors[i].dtype));
        }
    for (int i = 0; i < n; i++) {
        exchange(&tensors[i], 1, what);
        on_gpu[i] = tensors[i];
        on_gpu[i].data = device_memory + ((unsigned char *)tensors[i].data - host);
    }
    assert_ok(ol_replay(b->on_cpu, NULL, tensors, tensors + n_inputs, &error), &error);
    for (int again = 0; again < 2; again++)
        assert_ok(ol_replay(b->on_cuda, stream, on_gpu, on_gpu + n_inputs, &error), &error);
    for (int i = 0; i < n; i++)
        exchange(&tensors[i], 0, what);
}

static void memory_begin(void)
{
    ol_error error;
    host = mmap(NULL, EXTENT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(host != MAP_FAILED);
    assert_ok(ol_device_allocate(cuda, EXTENT, (void **)&device_memory, &error), &error);
}

static void memory_end(void)
{
    device_give(cuda, device_memory, EXTENT);
    munmap(host, EXTENT);
}

/* Whether 4 GiB can be had: on a GPU, or on the fake driver with FAKE_CUDA_MEMORY. */
static void need_memory(size_t n_bytes)
{
    if (gpu.n_bytes < n_bytes) {
        print_message("needs %zu bytes of device memory\n", n_bytes);
        skip();
    }
}

static void A54_few_elements_far_apart(void **state)
{
    static const ol_dtype dtypes[] = { OL_UINT8, OL_BFLOAT16, OL_FLOAT32, OL_INT64 };
    uint64_t random = harness_seed;
    (void)state;
    need_memory(EXTENT + ROOM);
    memory_begin();
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        both b = compile_both(build_negative, NULL, 1, &dtypes[i], 1);
        int64_t size = (int64_t)ol_dtype_size(dtypes[i]);
        const int64_t reaches[] = { (int64_t)INT32_MAX / size * size, (int64_t)INT32_MAX / size * size + size,
                                    ((int64_t)1 << 31) + 64 * size, (int64_t)2147483520 / size * size, (int64_t)2147942400,
                                    (int64_t)UINT32_MAX / size * size, (int64_t)1 << 32,
                                    ((int64_t)1 << 32) + 64 * size };
        for (size_t r = 0; r < COUNT(reaches); r++)
            for (int which = 1; which < 4; which++)              /* the input is far, the output, both */
                for (int backwards = 0; backwards < 2; backwards++)
                    for (int form = 0; form < 4; form++) {
                        static const int64_t shapes[4][3] = { { 2 }, { 2, 5 }, { 5, 2 }, { 2, 3, 4 } };
                        static const int32_t ranks[4] = { 1, 2, 2, 3 };
                        char what[200];
                        int64_t far = backwards ? -reaches[r] : reaches[r], strides[2][3];
                        for (int t = 0; t < 2; t++) {
                            int64_t apart = which >> t & 1 ? far : 512;
                            const int64_t forms[4][3] = { { apart }, { apart, size }, { size * 8, apart },
                                                          { apart, size * 16, -2 * size } };
                            memcpy(strides[t], forms[form], sizeof forms[form]);
                        }
                        ol_tensor tensors[2] = { at(ROOM, dtypes[i], ranks[form], shapes[form], strides[0]),
                                                 at(2 * ROOM, dtypes[i], ranks[form], shapes[form], strides[1]) };
                        snprintf(what, sizeof what, "%s, reach %lld, form %d, %s%s", ol_dtype_name(dtypes[i]), (long long)far, form,
                                 which & 1 ? "from afar" : "", which & 2 ? " to afar" : "");
                        check(&b, &random, 1, 1, tensors, what);
                    }
        destroy_both(&b);
    }
    memory_end();
}

/* One group of outputs is far, the other is not; rows far apart with lanes inside. */
static void far_and_near_groups(void **state)
{
    const int64_t far = ((int64_t)1 << 31) + 4096;
    uint64_t random = harness_seed;
    (void)state;
    need_memory(EXTENT + ROOM);
    memory_begin();
    both b = compile_both(build_two, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 2);
    for (int which = 0; which < 4; which++) {
        ol_tensor tensors[4] = { at(ROOM, OL_FLOAT32, 1, SHAPE(40), SHAPE(4)),
                                 at(ROOM + 4096, OL_FLOAT32, 2, SHAPE(2, 40), SHAPE(which & 1 ? far : 1024, 4)),
                                 at(2 * ROOM, OL_FLOAT32, 2, SHAPE(2, 40), SHAPE(which & 2 ? far : 1024, 4)),
                                 at(2 * ROOM + 8192, OL_FLOAT32, 1, SHAPE(40), SHAPE(4)) };
        check(&b, &random, 2, 2, tensors, "groups");
    }
    destroy_both(&b);
    memory_end();
}

/* ---- Many elements, on a GPU ---- */

static int build_copy(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_broadcast_like(g, in[0], in[1]);
    return 0;
}

/* Bytes of a pattern with a period that divides no power of two, so that an offset that wraps shows. */
enum { PERIOD = 1000003 };

static void many_elements(void **state)
{
    static const struct { int32_t rank; int64_t shape[2]; } cases[] = {
        { 1, { 3270680000 } }, { 2, { 8192, 176384 * 2 } }, { 2, { 8192, 262144 } }, { 2, { 262145, 8192 } },
        { 1, { ((int64_t)1 << 32) + 77 } },
    };
    static unsigned char pattern[PERIOD];
    unsigned char got[4096];
    ol_error error;
    (void)state;
    need_memory((size_t)16 << 30);
    if (fake_is_loaded())
        skip();
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t n = (size_t)(cases[i].shape[0] * (cases[i].rank > 1 ? cases[i].shape[1] : 1)), rows = n / PERIOD + 1;
        void *from, *to;
        for (size_t k = 0; k < PERIOD; k++)
            pattern[k] = (unsigned char)(k * 2654435761u >> 13);
        void *small = device_bytes(cuda, pattern, PERIOD);
        assert_ok(ol_device_allocate(cuda, rows * PERIOD, &from, &error), &error);
        assert_ok(ol_device_allocate(cuda, n, &to, &error), &error);
        ol_composite *repeat = compile_on(cuda, build_copy, NULL, 2, DTYPES(OL_UINT8, OL_UINT8), 1),
            *c = compile_on(cuda, build_negative, NULL, 1, DTYPES(OL_UINT8), 1);
        ol_tensor spread[3] = { vector_of(small, OL_UINT8, PERIOD), strided(small, OL_UINT8, 2, SHAPE((int64_t)rows, 1), SHAPE(0,
            0)),
                                ol_tensor_contiguous(from, OL_UINT8, 2, SHAPE((int64_t)rows, PERIOD)) };
        assert_ok(ol_replay(repeat, stream, spread, spread + 2, &error), &error);
        ol_tensor in = ol_tensor_contiguous(from, OL_UINT8, cases[i].rank, cases[i].shape),
            out = ol_tensor_contiguous(to, OL_UINT8, cases[i].rank, cases[i].shape);
        assert_ok(ol_replay(c, stream, &in, &out, &error), &error);
        const size_t starts[] = { 0, n / 3, ((size_t)1 << 31) - 2048, n / 7 * 5, n - sizeof got,
                                  n > ((size_t)1 << 32) ? ((size_t)1 << 32) - 2048 : 0 };
        for (size_t w = 0; w < COUNT(starts); w++) {
            const size_t n_got = n - starts[w] < sizeof got ? n - starts[w] : sizeof got;
            download(cuda, stream, got, (char *)to + starts[w], n_got);
            for (size_t k = 0; k < n_got; k++)
                if (got[k] != (unsigned char)-pattern[(starts[w] + k) % PERIOD])
                    fail_msg("case %zu: byte %zu of %zu is %02x, expected %02x", i, starts[w] + k, n, got[k],
                             (unsigned char)-pattern[(starts[w] + k) % PERIOD]);
        }
        ol_composite_destroy(repeat);
        ol_composite_destroy(c);
        device_give(cuda, small, PERIOD);
        device_give(cuda, from, rows * PERIOD);
        device_give(cuda, to, n);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { CUDA_TEST(A54_few_elements_far_apart), CUDA_TEST(far_and_near_groups),
                                        CUDA_TEST(many_elements) };
    return CUDA_RUN(argc, argv, tests);
}
