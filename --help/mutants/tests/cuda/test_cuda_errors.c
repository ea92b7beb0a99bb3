/* Wrong use of what the public header says of CUDA: each call refuses with the argument's name, and leaves its results alone. And
 * the same calls on a CPU device. */
#include "cuda_harness.h"

#include <stdio.h>
#include <stdlib.h>

static int build_add(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_add(g, in[0], in[1]);
    return 0;
}

static void *refuse(void *user, size_t n_bytes) { (void)user, (void)n_bytes; return NULL; }

#define REFUSES(call, expected, where, text)               \
    do {                                                   \
        memset(&error, 0, sizeof error);                   \
        assert_fails(call, &error, expected, where, text);  \
        error.status = (ol_status)77;                      \
    } while (0)

static void devices(void **state)
{
    ol_error error;
    ol_device *device = (ol_device *)&error;
    ol_cuda_options one = { .allocator = { .allocate = refuse } };
    int32_t n = -7;
    char text[100];
    (void)state;
    REFUSES(ol_device_cuda(0, NULL, NULL, &error), OL_ERROR_ARGUMENT, "device cuda", "the place for the device is NULL");
    REFUSES(ol_device_cuda_current(NULL, NULL, &error), OL_ERROR_ARGUMENT, "device cuda", "the place for the device is NULL");
    REFUSES(ol_device_cuda(0, &one, &device, &error), OL_ERROR_ARGUMENT, "device cuda",
            "one of allocate and free; expected both or neither");
    REFUSES(ol_device_cuda_current(&one, &device, &error), OL_ERROR_ARGUMENT, "device cuda", "one of allocate and free");
    assert_ok(ol_cuda_count(&n, &error), &error);
    assert_true(n >= 1);
    snprintf(text, sizeof text, "the driver finds %d GPU%s", (int)n, n == 1 ? "" : "s");
    const int32_t ordinals[] = { -1, n, 1000, INT32_MAX, INT32_MIN };
    for (size_t i = 0; i < COUNT(ordinals); i++) {
        char none[60];
        snprintf(none, sizeof none, "there is no cuda:%d; ", (int)ordinals[i]);
        REFUSES(ol_device_cuda(ordinals[i], NULL, &device, &error), OL_ERROR_DEVICE, "device cuda", none);
        assert_non_null(strstr(error.description, text));
        ol_cuda_facts facts = { .capability = -5 };
        REFUSES(ol_cuda_describe(ordinals[i], &facts, &error), OL_ERROR_DEVICE, "cuda describe", none);
        assert_int_equal(facts.capability, -5);
    }
    REFUSES(ol_cuda_count(NULL, &error), OL_ERROR_ARGUMENT, "cuda count", "the place for the number is NULL");
    REFUSES(ol_cuda_describe(0, NULL, &error), OL_ERROR_ARGUMENT, "cuda describe", "the place for the facts is NULL");
    REFUSES(ol_cuda_compiler(NULL, &error), OL_ERROR_ARGUMENT, "cuda compiler", "the place for the version is NULL");
    assert_ptr_equal(device, &error);                            /* untouched */
    assert_int_equal(ol_device_cuda(-1, NULL, &device, NULL), OL_ERROR_DEVICE);      /* without a record of the error */
    ol_device_destroy(NULL);
}

static void facts(void **state)
{
    ol_error error;
    ol_cuda_facts f;
    int32_t version = 0;
    char level[20];
    (void)state;
    assert_ok(ol_cuda_describe(0, &f, &error), &error);
    assert_true(f.name[0] && f.capability >= 50 && f.n_multiprocessors >= 1 && f.n_bytes > 1 << 20 && f.driver_version >= 11020);
    assert_ok(ol_cuda_compiler(&version, &error), &error);
    assert_true(version >= 11000);
    assert_string_equal(ol_device_name(cuda), "cuda:0");
    snprintf(level, sizeof level, "sm_%d", (int)f.capability);
    assert_string_equal(ol_device_level(cuda), level);
}

static void helpers(void **state)
{
    ol_error error;
    void *pointer = &error, *memory;
    ol_stream own = (ol_stream)&error;
    char bytes[4] = { 1, 2, 3, 4 };
    (void)state;
    REFUSES(ol_device_allocate(NULL, 1, &pointer, &error), OL_ERROR_ARGUMENT, "allocate", "the device is NULL");
    REFUSES(ol_device_allocate(cuda, 1, NULL, &error), OL_ERROR_ARGUMENT, "allocate", "the place for the pointer is NULL");
    REFUSES(ol_device_free(NULL, bytes, 1, &error), OL_ERROR_ARGUMENT, "free", "the device is NULL");
    REFUSES(ol_device_copy(NULL, NULL, bytes, bytes, 1, &error), OL_ERROR_ARGUMENT, "copy", "the device is NULL");
    REFUSES(ol_device_copy(cuda, stream, NULL, bytes, 1, &error), OL_ERROR_ARGUMENT, "copy", "the target is NULL");
    REFUSES(ol_device_copy(cuda, stream, bytes, NULL, 1, &error), OL_ERROR_ARGUMENT, "copy", "the source is NULL");
    REFUSES(ol_stream_create(NULL, &own, &error), OL_ERROR_ARGUMENT, "create stream", "the device is NULL");
    REFUSES(ol_stream_create(cuda, NULL, &error), OL_ERROR_ARGUMENT, "create stream", "the place for the stream is NULL");
    REFUSES(ol_stream_destroy(NULL, stream, &error), OL_ERROR_ARGUMENT, "destroy stream", "the device is NULL");
    REFUSES(ol_stream_synchronize(NULL, stream, &error), OL_ERROR_ARGUMENT, "synchronize", "the device is NULL");
    assert_ptr_equal(pointer, &error);
    assert_ptr_equal(own, &error);
    /* Nothing is fine. */
    assert_ok(ol_device_copy(cuda, stream, NULL, NULL, 0, &error), &error);
    assert_ok(ol_device_free(cuda, NULL, 0, &error), &error);
    assert_ok(ol_stream_destroy(cuda, NULL, &error), &error);
    assert_int_equal(error.status, 77);                          /* a success leaves the record alone */
    /* Between device and device, and of the host's memory with itself. */
    char back[4] = { 0 };
    assert_ok(ol_device_allocate(cuda, 8, &memory, &error), &error);
    upload(cuda, stream, memory, bytes, 4);
    upload(cuda, stream, (char *)memory + 4, memory, 4);
    download(cuda, stream, back, (char *)memory + 4, 4);
    assert_memory_equal(back, bytes, 4);
    device_give(cuda, memory, 8);
}

static void replays(void **state)
{
    ol_error error;
    (void)state;
    ol_composite *c = compile_on(cuda, build_add, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 1);
    char *memory = device_bytes(cuda, NULL, 1024), after[1024];
    ol_tensor in[2] = { vector_of(memory, OL_FLOAT32, 8), vector_of(memory + 256, OL_FLOAT32, 8) },
        out = vector_of(memory + 512, OL_FLOAT32, 8);
    uint64_t launches = ol_device_launches(cuda);
    for (int path = 0; path < 2; path++) {
        replay_path run = replay_paths[path];
        ol_tensor bad[2] = { in[0], in[1] }, wrong = out;
        REFUSES(run(NULL, stream, in, &out, &error), OL_ERROR_ARGUMENT, "replay", "the composite is NULL");
        REFUSES(run(c, stream, NULL, &out, &error), OL_ERROR_ARGUMENT, "replay case", "inputs is NULL; expected 2 tensors");
        REFUSES(run(c, stream, in, NULL, &error), OL_ERROR_ARGUMENT, "replay case", "outputs is NULL; expected 1 tensors");
        bad[1].dtype = OL_FLOAT16;
        REFUSES(run(c, stream, bad, &out, &error), OL_ERROR_DTYPE, "replay case",
                "input 1 is float16; the composite was compiled for float32");
        bad[1] = in[1];
        bad[1].shape[0] = 7;
        REFUSES(run(c, stream, bad, &out, &error), OL_ERROR_SHAPE, "replay case", "7");
        bad[1] = in[1];
        bad[1].data = NULL;
        REFUSES(run(c, stream, bad, &out, &error), OL_ERROR_ARGUMENT, "replay case", "input 1");
        bad[1] = in[1];
        bad[1].rank = 9;
        REFUSES(run(c, stream, bad, &out, &error), OL_ERROR_ARGUMENT, "replay case", "input 1");
        wrong.shape[0] = 9;
        REFUSES(run(c, stream, in, &wrong, &error), OL_ERROR_SHAPE, "replay case", "output 0 has shape [9]; its inputs give [8]");
        wrong = out;
        wrong.strides[0] = 0;
        REFUSES(run(c, stream, in, &wrong, &error), OL_ERROR_OVERLAP, "replay case", "output 0");
        wrong = out;
        wrong.data = memory + 4;
        REFUSES(run(c, stream, in, &wrong, &error), OL_ERROR_OVERLAP, "replay case", "output 0 overlaps input 0");
    }
    assert_int_equal(ol_device_launches(cuda), launches);
    download(cuda, stream, after, memory, sizeof after);
    for (size_t i = 0; i < sizeof after; i++)
        assert_int_equal((unsigned char)after[i], 0xA5);
    device_give(cuda, memory, 1024);
    ol_composite_destroy(c);
}

/* The helpers on a CPU: host memory, no streams. */
static void on_a_cpu(void **state)
{
    ol_error error;
    void *memory = NULL;
    ol_stream own = (ol_stream)&error;
    float x[2] = { 1, 2 }, y[2];
    (void)state;
    ol_composite *c = compile_on(cpu, build_add, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 1);
    ol_tensor in[2] = { vector_of(x, OL_FLOAT32, 2), vector_of(x, OL_FLOAT32, 2) }, out = vector_of(y, OL_FLOAT32, 2);
    for (int path = 0; path < 2; path++)
        REFUSES(replay_paths[path](c, stream, in, &out, &error), OL_ERROR_ARGUMENT, "replay case", "stream");
    REFUSES(ol_stream_synchronize(cpu, stream, &error), OL_ERROR_ARGUMENT, "synchronize", "stream");
    REFUSES(ol_stream_destroy(cpu, stream, &error), OL_ERROR_ARGUMENT, "destroy stream", "stream");
    REFUSES(ol_device_copy(cpu, stream, y, x, 8, &error), OL_ERROR_ARGUMENT, "copy", "stream");
    assert_ok(ol_stream_create(cpu, &own, &error), &error);
    assert_null(own);
    assert_ok(ol_device_allocate(cpu, 8, &memory, &error), &error);
    assert_ok(ol_device_copy(cpu, NULL, memory, x, 8, &error), &error);
    assert_ok(ol_stream_synchronize(cpu, NULL, &error), &error);
    assert_memory_equal(memory, x, 8);
    assert_ok(ol_device_free(cpu, memory, 8, &error), &error);
    assert_ok(ol_stream_destroy(cpu, NULL, &error), &error);
    ol_composite_destroy(c);
}

/* A graph that a CPU refuses a GPU refuses alike, and what fails to compile leaves nothing. */
static int build_wrong(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)g, (void)in, (void)user;
    out[0] = (ol_value){ 0, 0 };
    return 0;
}

static int build_code(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)g, (void)in, (void)out, (void)user;
    return 42;
}

static void compilations_fail(void **state)
{
    ol_error error;
    ol_composite *c = (ol_composite *)&error;
    const ol_dtype dtypes[2] = { OL_FLOAT32, OL_FLOAT32 };
    ol_builder builder = { .build = build_wrong, .n_inputs = 2, .n_outputs = 1, .name = "wrong" };
    (void)state;
    REFUSES(ol_compile(cuda, NULL, dtypes, &c, &error), OL_ERROR_ARGUMENT, "compile", "builder");
    REFUSES(ol_compile(cuda, &builder, NULL, &c, &error), OL_ERROR_ARGUMENT, "", "dtypes");
    REFUSES(ol_compile(cuda, &builder, dtypes, NULL, &error), OL_ERROR_ARGUMENT, "compile", "composite");
    REFUSES(ol_compile(NULL, &builder, dtypes, &c, &error), OL_ERROR_ARGUMENT, "compile", "device");
    REFUSES(ol_compile(cuda, &builder, dtypes, &c, &error), OL_ERROR_BUILDER, "", "output 0");
    builder.build = build_code;
    REFUSES(ol_compile(cuda, &builder, dtypes, &c, &error), OL_ERROR_BUILDER, "", "42");
    assert_ptr_equal(c, &error);
    if (fake_is_loaded()) {
        builder.build = build_add;
        builder.name = "refused";
        fake_fail("cuModuleLoadData", 0, 209);
        REFUSES(ol_compile(cuda, &builder, dtypes, &c, &error), OL_ERROR_DEVICE, "refused",
                "cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU (209): no kernel image");
        assert_ptr_equal(c, &error);
    }
}

/* Names that are no C identifiers, long ones, and those of C++'s own words make kernels all the same. */
static void any_name(void **state)
{
    static const char *const names[] = { "a b-c", "int", "", "\xc3\xa9t\xc3\xa9", "x\"\n\\", "ol_ol_",
                                         "aVeryLongNameThatIsLongerThanWhatIsKeptOfItAndGoesOnForQuiteAWhile_aVeryLongName" };
    const ol_dtype dtypes[2] = { OL_FLOAT32, OL_FLOAT32 };
    ol_error error;
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        ol_composite *c = NULL;
        ol_builder builder = { .build = build_add, .n_inputs = 2, .n_outputs = 1, .name = names[i] };
        ol_status on_cpu = ol_compile(cpu, &builder, dtypes, &c, &error);
        if (on_cpu == OL_OK)
            ol_composite_destroy(c);
        c = NULL;
        ol_status status = ol_compile(cuda, &builder, dtypes, &c, &error);
        if (status != on_cpu)
            fail_msg("name \"%s\": %s: %s", names[i], error.operation, error.description);
        ol_composite_destroy(c);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(devices), CUDA_TEST(facts), CUDA_TEST(helpers), CUDA_TEST(replays), CUDA_TEST(on_a_cpu),
        CUDA_TEST(compilations_fail), CUDA_TEST(any_name),
    };
    return CUDA_RUN(argc, argv, tests);
}
