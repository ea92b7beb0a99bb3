/* What the gates refuse: options that mean nothing, or nothing in their kind, are named with what was given and what was expected, and
 * nothing is written; and what the views of projections and heads refuse. */
#include "gate_runs.h"

#include <math.h>

static ol_composite *const untouched = (ol_composite *)(uintptr_t)0x5a5a;

static void refuse(ol_gate_options o, ol_status status, const char *text)
{
    ol_composite *c = untouched;
    ol_error error = { 0 };
    assert_fails(ol_gated_delta_gates_compile(level_device(0), &o, OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16, &c, &error), &error, status, "gated_delta_gates", text);
    assert_ptr_equal(c, untouched);
    assert_int_equal(ol_gated_delta_gates_compile(level_device(0), &o, OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16, &c, NULL), status);
}

static void accept(ol_gate_options o)
{
    ol_composite_destroy(gate_composite(level_device(0), &o, &(gate_dtypes){ OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16 }));
}

#define OPTIONS(...) (ol_gate_options){ __VA_ARGS__ }
#define LOWER .kind = OL_GATE_LOWER_BOUND
#define PLAIN .kind = OL_GATE_LOWER_BOUND_PLAIN
#define CLAMPED .kind = OL_GATE_CLAMPED

static void unknown_choices(void **state)
{
    (void)state;
    refuse(OPTIONS(.kind = (ol_gate_kind)4), OL_ERROR_ARGUMENT, "kind is 4; expected a gate kind");
    refuse(OPTIONS(.kind = (ol_gate_kind)-1), OL_ERROR_ARGUMENT, "kind is ");
    refuse(OPTIONS(.rate = (ol_gate_rate)2), OL_ERROR_ARGUMENT, "rate is 2; expected OL_GATE_RATE_LOGARITHM");
    refuse(OPTIONS(.sum = (ol_gate_sum)2), OL_ERROR_ARGUMENT, "sum is 2; expected OL_GATE_SUM_PROMOTED");
    refuse(OPTIONS(.output = (ol_gate_output)3), OL_ERROR_ARGUMENT, "output is 3; expected OL_GATE_DECAY");
    refuse(OPTIONS(.beta = (ol_gate_beta)4), OL_ERROR_ARGUMENT, "beta is 4; expected OL_GATE_BETA_SIGMOID");
    refuse(OPTIONS(.beta_rounding = OL_INT32), OL_ERROR_DTYPE, "beta_rounding is int32; expected 0, float32, float16 or bfloat16");
    refuse(OPTIONS(.beta_dtype = (ol_dtype)12), OL_ERROR_DTYPE, "beta_dtype is no dtype; expected 0, float32");
}

static void options_without_use(void **state)
{
    (void)state;
    refuse(OPTIONS(.lower_bound = -5), OL_ERROR_ARGUMENT, "lower_bound is given, but the gate's kind is softplus; expected 0, or a kind with a lower bound");
    refuse(OPTIONS(CLAMPED, .lower_bound = NAN), OL_ERROR_ARGUMENT, "lower_bound is given, but the gate's kind is clamped");
    refuse(OPTIONS(.interval_high = 1), OL_ERROR_ARGUMENT, "interval_high is given, but the gate's kind is softplus; expected 0, or clamped");
    refuse(OPTIONS(LOWER, .lower_bound = -5, .interval_low = 1), OL_ERROR_ARGUMENT, "interval_low is given, but the gate's kind is lower bound");
    refuse(OPTIONS(LOWER, .lower_bound = -5, .skip_softplus = 1), OL_ERROR_ARGUMENT, "skip_softplus is given, but the gate's kind is lower bound; expected 0, or softplus or clamped");
    refuse(OPTIONS(PLAIN, .lower_bound = -5, .rate = OL_GATE_RATE_NEGATED), OL_ERROR_ARGUMENT, "rate is given, but the gate's kind is plain lower bound");
    refuse(OPTIONS(PLAIN, .lower_bound = -5, .finite_rate = 1), OL_ERROR_ARGUMENT, "finite_rate is given, but the gate's kind is plain lower bound");
    refuse(OPTIONS(.beta = OL_GATE_BETA_NONE, .beta_rounding = OL_FLOAT32), OL_ERROR_ARGUMENT, "beta_rounding is float32, but beta is OL_GATE_BETA_NONE; expected 0");
    refuse(OPTIONS(.beta = OL_GATE_BETA_NONE, .beta_dtype = OL_FLOAT16), OL_ERROR_ARGUMENT, "beta_dtype is float16, but beta is OL_GATE_BETA_NONE");
    accept(OPTIONS(.lower_bound = -0.0, .interval_low = -0.0));
}

static void numbers_out_of_range(void **state)
{
    (void)state;
    static const double bounds[] = { 0, -0.0, 5, -INFINITY, INFINITY, NAN, -1e39, -1e-60, 1e-320, -1e-320 };
    for (size_t i = 0; i < COUNT(bounds); i++) {
        refuse(OPTIONS(LOWER, .lower_bound = bounds[i]), OL_ERROR_ARGUMENT, "expected a finite float32 below 0 for the kind lower bound");
        refuse(OPTIONS(PLAIN, .lower_bound = bounds[i]), OL_ERROR_ARGUMENT, "expected a finite float32 below 0 for the kind plain lower bound");
    }
    refuse(OPTIONS(LOWER, .lower_bound = 5), OL_ERROR_ARGUMENT, "lower_bound is 5;");
    accept(OPTIONS(LOWER, .lower_bound = -1e-45));                     /* the least subnormal float32 */
    accept(OPTIONS(PLAIN, .lower_bound = -3.4e38));
    refuse(OPTIONS(CLAMPED, .interval_low = 2, .interval_high = 1), OL_ERROR_ARGUMENT, "interval_low is 2 and interval_high 1; expected numbers");
    refuse(OPTIONS(CLAMPED, .interval_low = NAN), OL_ERROR_ARGUMENT, "expected numbers, the low one not above the high one");
    refuse(OPTIONS(CLAMPED, .interval_high = -NAN), OL_ERROR_ARGUMENT, "expected numbers");
    refuse(OPTIONS(CLAMPED, .interval_high = -1), OL_ERROR_ARGUMENT, "interval_low is 0 and interval_high -1");
    accept(OPTIONS(CLAMPED, .interval_low = 2));
    accept(OPTIONS(CLAMPED, .interval_low = -INFINITY, .interval_high = -1));
    accept(OPTIONS(CLAMPED, .interval_low = INFINITY, .interval_high = INFINITY));
}

static void dtypes_of_inputs(void **state)
{
    (void)state;
    ol_composite *c = untouched;
    ol_error error = { 0 };
    const ol_gate_options negated = { .rate = OL_GATE_RATE_NEGATED }, plain = { PLAIN, .lower_bound = -5, .beta = OL_GATE_BETA_NONE };
    ol_device *device = level_device(0);
    assert_fails(ol_gated_delta_gates_compile(device, NULL, OL_INT8, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, &c, &error), &error, OL_ERROR_DTYPE, "gated_delta_gates",
                 "update_logits is int8; expected float32, float16 or bfloat16");
    assert_fails(ol_gated_delta_gates_compile(device, NULL, OL_FLOAT32, (ol_dtype)99, OL_FLOAT32, OL_FLOAT32, &c, &error), &error, OL_ERROR_DTYPE, "gated_delta_gates",
                 "decay_interval_inputs is no dtype");
    assert_fails(ol_gated_delta_gates_compile(device, NULL, OL_FLOAT32, OL_FLOAT32, OL_UINT8, OL_FLOAT32, &c, &error), &error, OL_ERROR_DTYPE, "gated_delta_gates",
                 "decay_rate_logarithm is uint8");
    assert_fails(ol_gated_delta_gates_compile(device, &negated, OL_FLOAT32, OL_FLOAT32, OL_UINT8, OL_FLOAT32, &c, &error), &error, OL_ERROR_DTYPE, "gated_delta_gates",
                 "decay_rate is uint8");
    assert_fails(ol_gated_delta_gates_compile(device, NULL, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_BOOL, &c, &error), &error, OL_ERROR_DTYPE, "gated_delta_gates",
                 "decay_interval_bias is bool");
    assert_fails(ol_gated_delta_gates_compile(NULL, NULL, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, &c, &error), &error, OL_ERROR_ARGUMENT, "", "device");
    assert_ptr_equal(c, untouched);
    /* Inputs that are none have no dtype. */
    assert_ok(ol_gated_delta_gates_compile(device, &plain, (ol_dtype)99, OL_FLOAT32, (ol_dtype)-1, OL_FLOAT32, &c, &error), &error);
    assert_int_equal(ol_composite_input_count(c), 2);
    ol_composite_destroy(c);
}

static void splits_that_are_refused(void **state)
{
    (void)state;
    uint16_t data[64];
    ol_tensor p = ol_tensor_contiguous(data, OL_BFLOAT16, 2, SHAPE(2, 12)), kept, b, a;
    ol_error error = { 0 };
    memset(&kept, 0x77, sizeof kept);
    b = a = kept;
#define REFUSED(call, status, text) assert_fails(call, &error, status, "gated_delta_", text)
    REFUSED(ol_gated_delta_split(NULL, OL_GATE_HALVES, 1, &b, &a, &error), OL_ERROR_ARGUMENT, "the projection is NULL");
    REFUSED(ol_gated_delta_split(&p, OL_GATE_HALVES, 1, NULL, &a, &error), OL_ERROR_ARGUMENT, "b is NULL");
    REFUSED(ol_gated_delta_split(&p, OL_GATE_HALVES, 1, &b, NULL, &error), OL_ERROR_ARGUMENT, "a is NULL");
    REFUSED(ol_gated_delta_split(&p, (ol_gate_layout)2, 1, &b, &a, &error), OL_ERROR_ARGUMENT, "layout is 2; expected OL_GATE_HALVES");
    REFUSED(ol_gated_delta_split(&p, OL_GATE_INTERLEAVED, 0, &b, &a, &error), OL_ERROR_ARGUMENT, "key_heads is 0; expected at least 1");
    REFUSED(ol_gated_delta_split(&p, OL_GATE_INTERLEAVED, 4, &b, &a, &error), OL_ERROR_SHAPE, "last axis has 12 elements; expected b and a of equally many value heads for each of 4 key heads");
    REFUSED(ol_gated_delta_split(&p, OL_GATE_INTERLEAVED, INT64_MAX, &b, &a, &error), OL_ERROR_SHAPE, "last axis has 12");
    p.shape[1] = 11;
    REFUSED(ol_gated_delta_split(&p, OL_GATE_HALVES, 1, &b, &a, &error), OL_ERROR_SHAPE, "last axis has 11");
    p.rank = 0;
    REFUSED(ol_gated_delta_split(&p, OL_GATE_HALVES, 1, &b, &a, &error), OL_ERROR_SHAPE, "the rank of the projection is 0; expected 1 to 8");
    p.rank = 8;
    REFUSED(ol_gated_delta_split(&p, OL_GATE_INTERLEAVED, 1, &b, &a, &error), OL_ERROR_SHAPE, "the rank of the projection is 8; expected 1 to 7");
    p.dtype = (ol_dtype)12;
    REFUSED(ol_gated_delta_split(&p, OL_GATE_HALVES, 1, &b, &a, &error), OL_ERROR_DTYPE, "the dtype of the projection is 12, which is none");
    assert_memory_equal(&b, &kept, sizeof b);
    assert_memory_equal(&a, &kept, sizeof a);
}

static void heads_views_that_are_refused(void **state)
{
    (void)state;
    float data[12];
    ol_tensor t = ol_tensor_contiguous(data, OL_FLOAT32, 2, SHAPE(2, 6)), kept, view;
    ol_error error = { 0 };
    memset(&kept, 0x77, sizeof kept);
    view = kept;
    REFUSED(ol_gated_delta_heads_view(NULL, 0, 1, OL_HEADS_GROUPED, &view, &error), OL_ERROR_ARGUMENT, "the tensor is NULL");
    REFUSED(ol_gated_delta_heads_view(&t, 0, 1, OL_HEADS_GROUPED, NULL, &error), OL_ERROR_ARGUMENT, "the view is NULL");
    REFUSED(ol_gated_delta_heads_view(&t, 1, 2, (ol_head_map)2, &view, &error), OL_ERROR_ARGUMENT, "map is 2; expected OL_HEADS_GROUPED or OL_HEADS_TILED");
    REFUSED(ol_gated_delta_heads_view(&t, 1, -2, OL_HEADS_TILED, &view, &error), OL_ERROR_ARGUMENT, "key_heads is -2; expected at least 1");
    REFUSED(ol_gated_delta_heads_view(&t, 2, 2, OL_HEADS_TILED, &view, &error), OL_ERROR_ARGUMENT, "axis is 2; expected -2 to 1");
    REFUSED(ol_gated_delta_heads_view(&t, -3, 2, OL_HEADS_TILED, &view, &error), OL_ERROR_ARGUMENT, "axis is -3; expected -2 to 1");
    REFUSED(ol_gated_delta_heads_view(&t, INT32_MIN, 2, OL_HEADS_TILED, &view, &error), OL_ERROR_ARGUMENT, "axis is -2147483648");
    REFUSED(ol_gated_delta_heads_view(&t, 1, 4, OL_HEADS_TILED, &view, &error), OL_ERROR_SHAPE, "axis 1 has 6 value heads; expected a multiple of the 4 key heads");
    t.rank = 8;
    REFUSED(ol_gated_delta_heads_view(&t, 1, 2, OL_HEADS_TILED, &view, &error), OL_ERROR_SHAPE, "the rank of the tensor is 8; expected 1 to 7");
    assert_memory_equal(&view, &kept, sizeof view);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_choices), cmocka_unit_test(options_without_use), cmocka_unit_test(numbers_out_of_range),
        cmocka_unit_test(dtypes_of_inputs), cmocka_unit_test(splits_that_are_refused), cmocka_unit_test(heads_views_that_are_refused),
    };
    return HARNESS_RUN(argc, argv, tests);
}
