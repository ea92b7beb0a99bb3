/* What a replay refuses: each fault alone, on the first replay and on the tenth after nine good ones, on both paths. The status,
 * the operation and a description that names both sides; and nothing written, which outputs full of 0xA5 show. */
#include "graph_cases.h"

#include <stdlib.h>

/* x + y, and the square of y: outputs of two shapes. */
static int build_subject(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_add(g, in[0], in[1]);
    out[1] = ol_square(g, in[1]);
    return 0;
}

enum { ROOM = 64 };

/* A good call, which each fault then changes. */
typedef struct call {
    float x[ROOM], y[ROOM], sum[ROOM], square[ROOM];
    ol_tensor in[2], out[2];
    const ol_tensor *inputs, *outputs;
    ol_stream stream;
} call;

static void good_call(call *c)
{
    for (int i = 0; i < ROOM; i++) {
        c->x[i] = (float)i;
        c->y[i] = (float)(i + 100);
    }
    memset(c->sum, 0xA5, sizeof c->sum);
    memset(c->square, 0xA5, sizeof c->square);
    c->in[0] = ol_tensor_contiguous(c->x, OL_FLOAT32, 2, SHAPE(3, 4));
    c->in[1] = ol_tensor_contiguous(c->y, OL_FLOAT32, 1, SHAPE(4));
    c->out[0] = ol_tensor_contiguous(c->sum, OL_FLOAT32, 2, SHAPE(3, 4));
    c->out[1] = ol_tensor_contiguous(c->square, OL_FLOAT32, 1, SHAPE(4));
    c->inputs = c->in;
    c->outputs = c->out;
    c->stream = NULL;
}

static void no_inputs(call *c) { c->inputs = NULL; }
static void no_outputs(call *c) { c->outputs = NULL; }
static void a_stream(call *c) { c->stream = c; }
static void input_dtype(call *c) { c->in[1].dtype = OL_BFLOAT16; }
static void output_dtype(call *c) { c->out[0].dtype = OL_INT32; }
static void unknown_dtype(call *c) { c->in[0].dtype = (ol_dtype)12; }
static void unknown_output_dtype(call *c) { c->out[1].dtype = (ol_dtype)-1; }
static void rank_9(call *c) { c->in[0].rank = 9; }
static void rank_minus(call *c) { c->out[1].rank = -1; }
static void negative_extent(call *c) { c->in[0].shape[1] = -4; }
static void negative_after_zero(call *c) { c->in[0].shape[0] = 0, c->in[0].shape[1] = -4, c->out[0].shape[0] = 0, c->out[0].shape[1] = -4; }
static void null_input(call *c) { c->in[1].data = NULL; }
static void null_output(call *c) { c->out[1].data = NULL; }
static void clash(call *c) { c->in[1].shape[0] = 5, c->out[1].shape[0] = 5; }
static void output_shape(call *c) { c->out[0].shape[0] = 2; }
static void output_rank(call *c) { c->out[1] = ol_tensor_contiguous(c->square, OL_FLOAT32, 2, SHAPE(1, 4)); }
static void common_shape(call *c) { c->out[1] = ol_tensor_contiguous(c->square, OL_FLOAT32, 2, SHAPE(3, 4)); }
static void too_large(call *c) { c->in[0] = ol_tensor_contiguous(c->x, OL_FLOAT32, 2, SHAPE(1ll << 40, 1ll << 40)); }
static void too_far(call *c) { c->in[0].strides[0] = INT64_MAX / 4; }
static void shifted_in_place(call *c) { c->out[0].data = c->x + 1; }
static void transposed_in_place(call *c) { c->out[0] = strided(c->x, OL_FLOAT32, 2, SHAPE(3, 4), SHAPE(1, 3)); }
static void over_the_other(call *c) { c->out[1].data = c->sum + 8; }
static void over_the_other_input(call *c) { c->out[1].data = c->x + 4; }
static void repeated(call *c) { c->out[0].strides[0] = 0; }
static void folded(call *c) { c->out[0].strides[0] = 1; }

typedef struct fault {
    void (*make)(call *);
    const char *what;
    ol_status status;
    const char *side, *other_side;       /* what the description names */
} fault;

#define FAULT(make, ...) { make, #make, __VA_ARGS__ }
static const fault faults[] = {
    FAULT(no_inputs, OL_ERROR_ARGUMENT, "inputs is NULL", "2 tensors"),
    FAULT(no_outputs, OL_ERROR_ARGUMENT, "outputs is NULL", "2 tensors"),
    FAULT(a_stream, OL_ERROR_ARGUMENT, "stream", "a CPU takes NULL"),
    FAULT(input_dtype, OL_ERROR_DTYPE, "input 1 is bfloat16", "compiled for float32"),
    FAULT(output_dtype, OL_ERROR_DTYPE, "output 0 is int32", "float32"),
    FAULT(unknown_dtype, OL_ERROR_DTYPE, "input 0", "12 is not a dtype"),
    FAULT(unknown_output_dtype, OL_ERROR_DTYPE, "output 1", "-1 is not a dtype"),
    FAULT(rank_9, OL_ERROR_ARGUMENT, "input 0: rank 9", "0 to 8"),
    FAULT(rank_minus, OL_ERROR_ARGUMENT, "output 1: rank -1", "0 to 8"),
    FAULT(negative_extent, OL_ERROR_SHAPE, "input 0", "[3, -4] has a negative extent"),
    FAULT(negative_after_zero, OL_ERROR_SHAPE, "input 0", "[0, -4] has a negative extent"),
    FAULT(null_input, OL_ERROR_ARGUMENT, "input 1: data is NULL", "not empty"),
    FAULT(null_output, OL_ERROR_ARGUMENT, "output 1: data is NULL", "not empty"),
    FAULT(clash, OL_ERROR_SHAPE, "input 1 of shape [5]", "input 0 of shape [3, 4]"),
    FAULT(output_shape, OL_ERROR_SHAPE, "output 0 has shape [2, 4]", "[3, 4]"),
    FAULT(output_rank, OL_ERROR_SHAPE, "output 1 has shape [1, 4]", "give [4]"),
    FAULT(common_shape, OL_ERROR_SHAPE, "output 1 has shape [3, 4]", "give [4]"),
    FAULT(too_large, OL_ERROR_SHAPE, "input 0: shape [1099511627776, 1099511627776]", "does not fit"),
    FAULT(too_far, OL_ERROR_SHAPE, "input 0: shape [3, 4]", "does not fit"),
    FAULT(shifted_in_place, OL_ERROR_OVERLAP, "output 0", "input 0"),
    FAULT(transposed_in_place, OL_ERROR_OVERLAP, "output 0", "input 0"),
    FAULT(over_the_other, OL_ERROR_OVERLAP, "output 1", "output 0"),
    FAULT(over_the_other_input, OL_ERROR_OVERLAP, "output 1", "input 0"),
    FAULT(repeated, OL_ERROR_OVERLAP, "output 0 repeats an element", "strides [0, 1]"),
    FAULT(folded, OL_ERROR_OVERLAP, "output 0 repeats an element", "strides [1, 1]"),
};

static ol_status run(const ol_composite *composite, const call *c, int path, ol_error *error)
{
    return replay_paths[path](composite, c->stream, c->inputs, c->outputs, error);
}

static void expect_good(const ol_composite *composite, call *c, int path)
{
    ol_error untouched;
    memset(&untouched, 0x5A, sizeof untouched);
    good_call(c);
    assert_int_equal(run(composite, c, path, &untouched), OL_OK);
    assert_int_equal((unsigned)untouched.status, 0x5A5A5A5Au);                 /* a success leaves the record as it was */
    for (int i = 0; i < 12; i++)
        assert_true(c->sum[i] == c->x[i] + c->y[i % 4]);
}

static void expect_fault(const ol_composite *composite, call *c, int path, const fault *f)
{
    static call before;
    ol_error error;
    memset(&error, 0x5A, sizeof error);
    good_call(c);
    f->make(c);
    memcpy(&before, c, sizeof before);
    ol_status status = run(composite, c, path, &error);
    if (status != f->status || error.status != f->status || !strstr(error.operation, "replay") || !strstr(error.operation, "subject") ||
        !strstr(error.description, f->side) || !strstr(error.description, f->other_side) || error.code != 0)
        fail_msg("%s, %s: %s, \"%s\": \"%s\"", f->what, path_names[path], ol_status_name(status), status ? error.operation : "", status ? error.description : "");
    if (memcmp(&before, c, sizeof before) != 0)
        fail_msg("%s, %s: something was written", f->what, path_names[path]);
    assert_int_equal(run(composite, c, path, NULL), f->status);
}

static void each_fault_at_once_and_after_nine_good_replays(void **state)
{
    (void)state;
    static call c;
    for (size_t level = 0; level < level_count(); level++) {
        ol_builder builder = { .build = build_subject, .n_inputs = 2, .n_outputs = 2, .name = "subject" };
        ol_composite *composite;
        ol_error error;
        assert_ok(ol_compile(level_device(level), &builder, DTYPES(OL_FLOAT32, OL_FLOAT32), &composite, &error), &error);
        for (size_t f = 0; f < COUNT(faults); f++)
            for (int path = 0; path < 2; path++) {
                expect_fault(composite, &c, path, &faults[f]);
                for (int i = 0; i < 9; i++)
                    expect_good(composite, &c, path);
                expect_fault(composite, &c, path, &faults[f]);
                expect_good(composite, &c, path);              /* and a refusal harms no later replay */
            }
        uint64_t before = ol_device_launches(level_device(level));
        expect_fault(composite, &c, 0, &faults[0]);
        assert_int_equal(ol_device_launches(level_device(level)), before);     /* nor is it a launch */
        ol_composite_destroy(composite);
    }
}

/* A fault must be found whatever the tensors' sizes: small ones, those of one tile, and those past it. */
static void faults_at_every_size(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 1, 2, 33, 512, 513, 5000 };
    ol_composite *c = compile_on(level_device(0), build_subject, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 2);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int64_t n = sizes[i];
        size_t n_bytes = (size_t)(n + 8) * sizeof(float);
        char *data[4];
        for (int t = 0; t < 4; t++) {
            data[t] = malloc(n_bytes);
            memset(data[t], 0xA5, n_bytes);
        }
        char *pristine = malloc(n_bytes);
        memset(pristine, 0xA5, n_bytes);
        for (int path = 0; path < 2; path++)
            for (int which = 0; which < 5; which++) {
                ol_tensor in[2] = { vector_of(data[0], OL_FLOAT32, n), vector_of(data[1], OL_FLOAT32, n) };
                ol_tensor out[2] = { vector_of(data[2], OL_FLOAT32, n), vector_of(data[3], OL_FLOAT32, n) };
                ol_error error;
                ol_status expected = OL_ERROR_SHAPE;
                switch (which) {
                case 0: in[1].shape[0] = n + 1; break;         /* n = 1 broadcasts; then the outputs are too small */
                case 1: out[1].shape[0] = n + 1; break;
                case 2: out[0].dtype = OL_UINT32, expected = OL_ERROR_DTYPE; break;
                case 3: out[1].data = (char *)data[2] + 4 * (n - 1), expected = OL_ERROR_OVERLAP; break;
                default: out[1].data = (char *)data[0] + 1, expected = OL_ERROR_OVERLAP; break;
                }
                assert_int_equal(replay_paths[path](c, NULL, in, out, &error), expected);
                assert_memory_equal(data[2], pristine, n_bytes);
                assert_memory_equal(data[3], pristine, n_bytes);
                assert_memory_equal(data[0], pristine, n_bytes);
            }
        for (int t = 0; t < 4; t++)
            free(data[t]);
        free(pristine);
    }
    ol_composite_destroy(c);
}

static void null_composites(void **state)
{
    (void)state;
    ol_tensor t = { 0 };
    ol_error error;
    for (int path = 0; path < 2; path++)
        assert_fails(replay_paths[path](NULL, NULL, &t, &t, &error), &error, OL_ERROR_ARGUMENT, "replay", "composite is NULL");
    assert_fails(ol_output_shapes(NULL, &t, &t, &error), &error, OL_ERROR_ARGUMENT, "output shapes", "NULL");
    ol_composite *c = compile_on(level_device(0), build_subject, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 2);
    assert_fails(ol_output_shapes(c, &t, NULL, &error), &error, OL_ERROR_ARGUMENT, "output shapes", "NULL");
    assert_fails(ol_output_shapes(c, NULL, &t, &error), &error, OL_ERROR_ARGUMENT, "replay", "inputs is NULL");
    ol_composite_destroy(c);
}

/* Output shapes: the same refusals, and outputs left alone. */
static void output_shapes_refuse_too(void **state)
{
    (void)state;
    ol_composite *c = compile_on(level_device(0), build_subject, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 2);
    ol_tensor good[2] = { ol_tensor_contiguous(NULL, OL_FLOAT32, 2, SHAPE(3, 4)), ol_tensor_contiguous(NULL, OL_FLOAT32, 1, SHAPE(4)) }, in[2];
    static const struct { int which; int64_t extent; ol_dtype dtype; int32_t rank; ol_status status; } bad[] = {
        { 1, 5, OL_FLOAT32, 1, OL_ERROR_SHAPE }, { 1, -4, OL_FLOAT32, 1, OL_ERROR_SHAPE }, { 0, 3, OL_FLOAT16, 2, OL_ERROR_DTYPE },
        { 0, 3, (ol_dtype)44, 2, OL_ERROR_DTYPE }, { 0, 3, OL_FLOAT32, 10, OL_ERROR_ARGUMENT },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        ol_tensor out[2], before[2];
        ol_error error;
        memcpy(in, good, sizeof in);
        in[bad[i].which].shape[0] = bad[i].extent;
        in[bad[i].which].dtype = bad[i].dtype;
        in[bad[i].which].rank = bad[i].rank;
        memset(out, 0xA5, sizeof out);
        memcpy(before, out, sizeof out);
        assert_int_equal(ol_output_shapes(c, in, out, &error), bad[i].status);
        assert_memory_equal(out, before, sizeof out);
    }
    ol_composite_destroy(c);
}

/* A broadcast_to whose shape cannot be reached names both shapes. */
static int build_to_3_4(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_broadcast_to(g, in[0], 2, SHAPE(3, 4));
    return 0;
}

static void unreachable_broadcasts(void **state)
{
    (void)state;
    ol_composite *c = compile_on(level_device(0), build_to_3_4, NULL, 1, DTYPES(OL_FLOAT32), 1);
    float x[64] = { 0 }, y[64];
    static const struct { int32_t rank; int64_t dims[3]; const char *shape; } bad[] = {
        { 1, { 3 }, "[3]" }, { 2, { 4, 4 }, "[4, 4]" }, { 3, { 2, 3, 4 }, "[2, 3, 4]" }, { 1, { 0 }, "[0]" }, { 3, { 1, 3, 4 }, "[1, 3, 4]" },
    };
    memset(y, 0xA5, sizeof y);
    for (size_t i = 0; i < COUNT(bad); i++)
        for (int path = 0; path < 2; path++) {
            ol_tensor in = ol_tensor_contiguous(x, OL_FLOAT32, bad[i].rank, bad[i].dims), out = ol_tensor_contiguous(y, OL_FLOAT32, 2, SHAPE(3, 4));
            ol_error error;
            assert_fails(replay_paths[path](c, NULL, &in, &out, &error), &error, OL_ERROR_SHAPE, "replay", bad[i].shape);
            assert_non_null(strstr(error.description, "[3, 4]"));
            assert_int_equal(f32_bits(y[0]), 0xA5A5A5A5);
            assert_fails(ol_output_shapes(c, &in, &out, &error), &error, OL_ERROR_SHAPE, "replay", bad[i].shape);
        }
    ol_composite_destroy(c);
}

/* What is compiled from the gated-delta functions refuses other dtypes by the input's name. */
static void rates_of_integers(void **state)
{
    (void)state;
    ol_composite *c = NULL;
    ol_error error;
    assert_fails(ol_gated_delta_rates_compile(level_device(0), OL_FLOAT32, OL_INT32, OL_FLOAT32, OL_FLOAT32, &c, &error), &error, OL_ERROR_DTYPE, "gated_delta_rates",
                 "decay_interval_inputs is int32; expected float32");
    assert_fails(ol_gated_delta_decay_compile(level_device(0), OL_FLOAT32, (ol_dtype)77, OL_FLOAT32, &c, &error), &error, OL_ERROR_DTYPE, "gated_delta_decay",
                 "decay_rate_logarithm is no dtype");
    assert_fails(ol_gated_delta_decay_compile(NULL, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, &c, &error), &error, OL_ERROR_ARGUMENT, "compile", "NULL");
    assert_null(c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_at_once_and_after_nine_good_replays), cmocka_unit_test(faults_at_every_size), cmocka_unit_test(null_composites),
        cmocka_unit_test(output_shapes_refuse_too), cmocka_unit_test(unreachable_broadcasts), cmocka_unit_test(rates_of_integers),
    };
    return HARNESS_RUN(argc, argv, tests);
}
