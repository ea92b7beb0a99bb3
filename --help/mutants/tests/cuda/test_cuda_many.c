/* Hundreds to thousands of tensors in one launch (A77): their addresses are passed with it, in as much as driver and compiler take,
 * or by pointer, in blocks that are used again when the GPU is done with them. */
#include "cuda_harness.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 3000 };

/* The sum of all inputs; sums of neighbours; copies. */
static int build_sum(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    int n = (int)(intptr_t)user;
    out[0] = in[0];
    for (int i = 1; i < n; i++)
        out[0] = ol_add(g, out[0], in[i]);
    return 0;
}

static int build_pairs(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    int n = (int)(intptr_t)user;
    for (int i = 0; i < n; i++)
        out[i] = ol_subtract(g, in[i], in[(i + 1) % n]);
    return 0;
}

static int build_split(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    int n = (int)(intptr_t)user;
    for (int i = 0; i < n; i++)
        out[i] = ol_multiply(g, in[0], ol_constant(g, OL_FLOAT32, i));
    return 0;
}

static ol_dtype dtypes[MOST];

static both compile_many(ol_build build, int n)
{
    for (int i = 0; i < n; i++)
        dtypes[i] = OL_FLOAT32;
    return compile_both(build, (void *)(intptr_t)n, build == build_split ? 1 : n, dtypes, build == build_sum ? 1 : n);
}

static void set_scene(scene *s, const both *b, manner how, int32_t rank, const int64_t *shape)
{
    scene_begin(s);
    for (int32_t i = 0; i < ol_composite_input_count(b->on_cpu); i++)
        if (rank && i % 7 == 3)
            scene_add(s, how, OL_FLOAT32, 1, shape + rank - 1);
        else
            scene_add(s, how, OL_FLOAT32, rank, shape);
    scene_add_outputs(s, b->on_cpu, how, NULL);
}

static void any_number_of_tensors(void **state)
{
    static const struct { ol_build build; int n; } cases[] = {
        { build_sum, 40 }, { build_pairs, 40 }, { build_split, 40 }, { build_sum, 300 }, { build_pairs, 300 }, { build_split, 300 },
        { build_sum, 3000 }, { build_pairs, 1000 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (cases[i].n > 300 && !fake_is_loaded())       /* NVRTC takes minutes */
            continue;
        both b = compile_many(cases[i].build, cases[i].n);
        for (manner how = 0; how < (cases[i].n > 300 ? 2 : N_MANNERS); how++) {
            scene s;
            char what[100];
            set_scene(&s, &b, how, how == DENSE ? 1 : 2, how == DENSE ? SHAPE(3) : SHAPE(2, 5));
            snprintf(what, sizeof what, "case %zu, %d tensors, %s", i, cases[i].n, manner_names[how]);
            scene_check(&s, b.on_cpu, b.on_cuda, how == MISALIGNED && cases[i].n == 40 ? WITH_COMPOSED : 0, what);
            scene_end(&s);
        }
        destroy_both(&b);
    }
}

/* ---- Blocks of parameters ---- */

enum { IN_FLIGHT = 20 };

typedef struct flight {
    scene s;
    char *memory;
    ol_tensor tensors[600];
} flight;

/* More replays at once than blocks were made for, each on its own data; then again on the same blocks. */
static void blocks_in_flight(void **state)
{
    flight *flights = calloc(IN_FLIGHT, sizeof *flights);
    size_t made[3] = { 0 };
    ol_error error;
    (void)state;
    both b = compile_many(build_pairs, 300);
    for (int i = 0; i < IN_FLIGHT; i++) {
        flight *f = &flights[i];
        harness_seed += 1;
        set_scene(&f->s, &b, DENSE, 1, SHAPE(1 + i % 3));
        f->memory = device_bytes(cuda, f->s.bytes, f->s.n_bytes);
        scene_bind(&f->s, f->memory, f->tensors);
    }
    harness_seed -= IN_FLIGHT;
    for (int round = 0; round < 3; round++) {
        if (fake_is_loaded())
            fake_hold(round < 2);
        for (int i = 0; i < IN_FLIGHT; i++)
            assert_ok(ol_replay(b.on_cuda, stream, flights[i].tensors, flights[i].tensors + 300, &error), &error);
        if (fake_is_loaded()) {
            fake_run_held();
            made[round] = fake_calls("cuMemHostAlloc");
        }
        for (int i = 0; i < IN_FLIGHT; i++) {
            flight *f = &flights[i];
            unsigned char *expected = scene_expected(&f->s, b.on_cpu), *got = malloc(f->s.n_bytes);
            download(cuda, stream, got, f->memory, f->s.n_bytes);
            scene_compare(&f->s, got, expected, "in flight");
            free(got);
            free(expected);
        }
    }
    assert_int_equal(made[0], made[1]);
    assert_int_equal(made[1], made[2]);
    if (fake_is_loaded())
        assert_int_equal(made[0], IN_FLIGHT);
    for (int i = 0; i < IN_FLIGHT; i++) {
        device_give(cuda, flights[i].memory, flights[i].s.n_bytes);
        scene_end(&flights[i].s);
    }
    free(flights);
    destroy_both(&b);
}

/* An empty replay takes a block and gives it back, and so does one that fails. */
static void blocks_come_back(void **state)
{
    ol_tensor nothing[600];
    ol_error error;
    scene s;
    (void)state;
    need_fake();
    both b = compile_many(build_pairs, 300);
    set_scene(&s, &b, DENSE, 1, SHAPE(2));
    char *memory = device_bytes(cuda, s.bytes, s.n_bytes);
    ol_tensor *tensors = calloc((size_t)s.n_tensors, sizeof *tensors);
    scene_bind(&s, memory, tensors);
    for (int i = 0; i < 600; i++)
        nothing[i] = vector_of(NULL, OL_FLOAT32, 0);
    size_t made = fake_calls("cuMemHostAlloc");
    for (int i = 0; i < 10; i++) {
        assert_ok(ol_replay(b.on_cuda, stream, nothing, nothing + 300, &error), &error);
        fake_fail("cuLaunchKernel", 1, 701);
        assert_fails(ol_replay(b.on_cuda, stream, tensors, tensors + 300, &error), &error, OL_ERROR_DEVICE, "replay case",
                     "cuLaunchKernel");
    }
    assert_int_equal(fake_calls("cuMemHostAlloc"), made);
    device_give(cuda, memory, s.n_bytes);
    free(tensors);
    scene_end(&s);
    destroy_both(&b);
}

/* ---- Older drivers pass less ---- */

static int small_parameters(void)
{
    scene s;
    char *fault = NULL;
    ol_error error;
    ol_device *device;
    ol_composite *c, *reference;
    int n = 40, code = 0;
    ol_builder builder = { .build = build_pairs, .user = (void *)(intptr_t)n, .n_inputs = n, .n_outputs = n, .name = "pairs" };
    for (int i = 0; i < n; i++)
        dtypes[i] = OL_FLOAT32;
    scene_begin(&s);
    if (ol_device_cuda(0, NULL, &device, &error) != OL_OK || ol_compile(device, &builder, dtypes, &c, &error) != OL_OK ||
        ol_compile(level_device(0), &builder, dtypes, &reference, &error) != OL_OK) {
        printf("%s: %s\n", error.operation, error.description);
        return 1;
    }
    for (int i = 0; i < n; i++)
        scene_add(&s, DENSE, OL_FLOAT32, 1, SHAPE(5));
    scene_add_outputs(&s, reference, DENSE, NULL);
    ol_tensor tensors[80];
    void *memory = NULL;
    unsigned char *expected = scene_expected(&s, reference), *got = malloc(s.n_bytes);
    ol_stream in = (ol_stream)(uintptr_t)2;
    if (ol_device_allocate(device, s.n_bytes, &memory, &error) != OL_OK ||
        ol_device_copy(device, in, memory, s.bytes, s.n_bytes, &error) != OL_OK)
        fault = "copy";
    scene_bind(&s, memory, tensors);
    if (!fault && ol_replay(c, in, tensors, tensors + n, &error) != OL_OK)
        fault = "replay";
    if (!fault && (ol_device_copy(device, in, got, memory, s.n_bytes, &error) != OL_OK ||
        ol_stream_synchronize(device, in, &error) != OL_OK))
        fault = "copy back";
    if (fault) {
        printf("%s: %s: %s\n", fault, error.operation, error.description);
        code = 2;
    } else if (memcmp(got, expected, s.n_bytes) != 0)
        code = 3;
    else if (ol_device_launches(device) != 1 || !fake_is_loaded() || fake_calls("cuMemHostAlloc") == 0)
        code = 4;                                            /* it was to be passed by pointer */
    ol_device_free(device, memory, s.n_bytes, NULL);
    ol_composite_destroy(c);
    ol_composite_destroy(reference);
    ol_device_destroy(device);
    free(got);
    free(expected);
    scene_end(&s);
    return code;
}

static void older_drivers_and_compilers(void **state)
{
    static const char *const settings[][3] = {
        { "FAKE_CUDA_DRIVER=12000", "FAKE_CUDA_STRICT=1", NULL },
        { "FAKE_CUDA_CAPABILITY=61", "FAKE_NVRTC_ARCHITECTURES=60 61 70", NULL },
    };
    char output[CHILD_OUTPUT];
    (void)state;
    need_fake();
    for (size_t i = 0; i < COUNT(settings); i++) {
        int code = run_child("small parameters", settings[i], output);
        if (code)
            fail_msg("setting %zu: code %d: %s", i, code, output);
    }
    /* A new driver, but a compiler that passes little. */
    int code = run_child("small parameters", (const char *const[]){ "FAKE_NVRTC_VERSION=12.0", NULL }, output);
    if (code)
        fail_msg("NVRTC 12.0: code %d: %s", code, output);
}

int main(int argc, char **argv)
{
    static const child_program children[] = { { "small parameters", small_parameters }, { NULL, NULL } };
    const struct CMUnitTest tests[] = {
        CUDA_TEST(any_number_of_tensors), CUDA_TEST(blocks_in_flight), CUDA_TEST(blocks_come_back),
        CUDA_TEST(older_drivers_and_compilers),
    };
    child_programs = children;
    return CUDA_RUN(argc, argv, tests);
}
