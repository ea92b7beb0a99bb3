/* Every refusal of a mixer's options, of the views of its channels and of a mixer step's own arguments: the status, the operation, what was given and what was
 * expected; and nothing written. What the recurrence refuses is test_step_errors'. */
#include "mixer_case.h"

#include <math.h>
#include <string.h>

enum { HK = 2, R = 2, HV = 4, K = 20, V = 12, N = 3, T = 2 };

static mixer_case usual(void)
{
    uint64_t random = harness_seed;
    mixer_case c;
    mixer_usual(&c, HK, R, K, V, N, T, 4, &random);
    return c;
}

/* ---- Options ---- */

static void refuses_options(const mixer_case *c, const ol_gated_delta_mixer_options *changed, ol_status status, const char *operation, const char *text)
{
    ol_error error;
    ol_gated_delta_mixer_options o = *changed;
    ol_gated_delta_mixer *mixer = (ol_gated_delta_mixer *)&error;
    (void)c;
    assert_fails(ol_gated_delta_mixer_create(level_device(0), &o, &mixer, &error), &error, status, operation, text);
    assert_ptr_equal(mixer, &error);                             /* untouched */
    assert_int_equal(ol_gated_delta_mixer_create(level_device(0), &o, &mixer, NULL), status);
}

#define REFUSES_OPTIONS_AS(operation, change, status, text)                                                                   \
    do {                                                                                                                      \
        ol_gated_delta_mixer_options o = mixer_options_of(&c);                                                                \
        change;                                                                                                               \
        refuses_options(&c, &o, status, operation, text);                                                                     \
    } while (0)
#define REFUSES_OPTIONS(change, status, text) REFUSES_OPTIONS_AS("gated_delta_mixer_create", change, status, text)

static void test_options(void **state)
{
    (void)state;
    mixer_case c = usual();
    const ol_gated_delta_mixer_options good = mixer_options_of(&c);
    ol_gated_delta_mixer *mixer;
    ol_error error;
    assert_fails(ol_gated_delta_mixer_create(NULL, &good, &mixer, &error), &error, OL_ERROR_ARGUMENT, "gated_delta_mixer_create", "the device is NULL");
    assert_fails(ol_gated_delta_mixer_create(level_device(0), NULL, &mixer, &error), &error, OL_ERROR_ARGUMENT, "gated_delta_mixer_create", "the options are NULL");
    assert_fails(ol_gated_delta_mixer_create(level_device(0), &good, NULL, &error), &error, OL_ERROR_ARGUMENT, "gated_delta_mixer_create", "the place for the mixer");
    REFUSES_OPTIONS(o.width = 1, OL_ERROR_ARGUMENT, "width is 1; expected 2 to 4, or 0 for 4");
    REFUSES_OPTIONS(o.width = 5, OL_ERROR_ARGUMENT, "width is 5");
    REFUSES_OPTIONS(o.width = -4, OL_ERROR_ARGUMENT, "width is -4");
    REFUSES_OPTIONS(o.activation = OL_MIXER_SIGMOID, OL_ERROR_ARGUMENT, "activation is 1; expected OL_MIXER_SILU or OL_MIXER_NONE");
    REFUSES_OPTIONS(o.window = (ol_mixer_window)2, OL_ERROR_ARGUMENT, "window is 2");
    REFUSES_OPTIONS(o.norm = (ol_mixer_norm)2, OL_ERROR_ARGUMENT, "norm is 2");
    REFUSES_OPTIONS(o.gate = (ol_mixer_activation)3, OL_ERROR_ARGUMENT, "gate is 3");
    REFUSES_OPTIONS(o.epsilon = -1, OL_ERROR_ARGUMENT, "epsilon is -1");
    REFUSES_OPTIONS(o.epsilon = (double)NAN, OL_ERROR_ARGUMENT, "epsilon is nan");
    REFUSES_OPTIONS(o.epsilon = 1e39, OL_ERROR_ARGUMENT, "epsilon is 1e+39");
    REFUSES_OPTIONS(o.weight_dtype = OL_INT8, OL_ERROR_DTYPE, "weight_dtype is int8; expected 0, float32, float16 or bfloat16");
    REFUSES_OPTIONS(o.bias_dtype = (ol_dtype)99, OL_ERROR_DTYPE, "bias_dtype is no dtype");
    REFUSES_OPTIONS(o.gate_dtype = OL_INT8, OL_ERROR_DTYPE, "gate_dtype is int8");
    REFUSES_OPTIONS(o.norm_weight_dtype = OL_INT8, OL_ERROR_DTYPE, "norm_weight_dtype is int8");
    REFUSES_OPTIONS(o.window_dtype = OL_INT8, OL_ERROR_DTYPE, "window_dtype is int8");
    REFUSES_OPTIONS(o.window_dtype = OL_BFLOAT16, OL_ERROR_DTYPE, "window_dtype is bfloat16; expected 0, float32 or float32, which hold the inputs exactly");
    REFUSES_OPTIONS((o.norm = OL_MIXER_NORM_NONE, o.gate = OL_MIXER_SIGMOID), OL_ERROR_ARGUMENT, "there is no norm, but fields say how it is computed");
    REFUSES_OPTIONS((o.norm = OL_MIXER_NORM_NONE, o.epsilon = 1e-5), OL_ERROR_ARGUMENT, "there is no norm");
    REFUSES_OPTIONS((o.norm = OL_MIXER_NORM_NONE, o.weighted_rounded = 1), OL_ERROR_ARGUMENT, "there is no norm");
    REFUSES_OPTIONS((o.gate = OL_MIXER_NONE, o.gate_dtype = OL_FLOAT32), OL_ERROR_ARGUMENT, "gate_dtype is float32, but there is no gate");
    REFUSES_OPTIONS_AS("gated_delta_create", o.recurrence.key_heads = 0, OL_ERROR_ARGUMENT, "key_heads is 0");
    REFUSES_OPTIONS_AS("gated_delta_create", o.recurrence.activation_dtype = (ol_dtype)0, OL_ERROR_DTYPE, "activation_dtype is 0");
    mixer_free(&c);
}

/* ---- Arguments ---- */

static void refuses(mixer_case *c, ol_status status, const char *operation, const char *text)
{
    ol_error error;
    mixer_case before;
    mixer_copy(&before, c);
    assert_fails(mixer_try(level_device(level_count() - 1), c, &error), &error, status, operation, text);
    assert_true(mixer_equal(&before, c));
    mixer_free(&before);
}

#define REFUSES_AS(operation, change, status, text)                                                                           \
    do {                                                                                                                      \
        mixer_case c = usual();                                                                                               \
        ol_gated_delta_mixer_arguments *a = &c.arguments;                                                                     \
        (void)a;                                                                                                              \
        change;                                                                                                               \
        refuses(&c, status, operation, text);                                                                                 \
        mixer_free(&c);                                                                                                       \
    } while (0)
#define REFUSES(change, status, text) REFUSES_AS("gated_delta_mixer_step", change, status, text)

static void ring(mixer_case *c) { c->options.window = OL_MIXER_WINDOW_RING; }

static void test_presence(void **state)
{
    (void)state;
    REFUSES(mixer_take_back(&c, OF_WEIGHT), OL_ERROR_ARGUMENT, "query.weight is not given");
    REFUSES(mixer_take_back(&c, 2 * OF_PART + OF_WINDOW), OL_ERROR_ARGUMENT, "value.window is not given");
    REFUSES(c.options.bias_dtype = OL_FLOAT32, OL_ERROR_ARGUMENT, "query.bias is not given");
    REFUSES(mixer_give(&c, OF_PART + OF_BIAS, OL_FLOAT32, 2, (int64_t[]){ HK, K }, STEP_DENSE, NULL), OL_ERROR_ARGUMENT, "key.bias is given, but the mixer's options have no use for it");
    REFUSES(mixer_take_back(&c, AT_GATE), OL_ERROR_ARGUMENT, "gate is not given");
    REFUSES(c.options.gate = OL_MIXER_NONE, OL_ERROR_ARGUMENT, "gate is given, but");
    REFUSES(mixer_take_back(&c, AT_NORM_WEIGHT), OL_ERROR_ARGUMENT, "norm_weight is not given");
    REFUSES((c.options.norm = OL_MIXER_NORM_NONE, mixer_take_back(&c, AT_GATE)), OL_ERROR_ARGUMENT, "norm_weight is given, but");
    REFUSES(ring(&c), OL_ERROR_ARGUMENT, "window_positions is not given");
    REFUSES(mixer_table(&c, AT_POSITIONS, N, 0, (int32_t[N]){ 0 }), OL_ERROR_ARGUMENT, "window_positions is given, but");
    REFUSES((ring(&c), mixer_table(&c, AT_POSITIONS, N, 0, (int32_t[N]){ 0 }), mixer_table(&c, AT_DROPPED, N, 0, (int32_t[N]){ 0 })), OL_ERROR_ARGUMENT, "window_dropped is given, but");
    REFUSES((c.step.arguments.state_is_kept = 1, mixer_table(&c, AT_WINDOW_WRITE, N, 0, (int32_t[]){ 0, 1, 2 })), OL_ERROR_ARGUMENT, "window_write_slots are given, but state_is_kept");
    REFUSES(mixer_give(&c, OF_INTERMEDIATE, OL_FLOAT32, 5, (int64_t[]){ N, T, HK, K, 4 }, STEP_DENSE, NULL), OL_ERROR_ARGUMENT,
            "key.intermediate_windows is not given, but query.intermediate_windows is not so; expected them of query, key and value or of none");
    REFUSES_AS("gated_delta_step", step_take_back(&c.step, AT_KEY), OL_ERROR_ARGUMENT, "key is not given");
}

static void test_dtypes(void **state)
{
    (void)state;
    REFUSES(a->query.weight.dtype = OL_BFLOAT16, OL_ERROR_DTYPE, "query.weight: dtype bfloat16; the mixer was made for float32");
    REFUSES(a->value.window.dtype = OL_FLOAT16, OL_ERROR_DTYPE, "value.window: dtype float16; the mixer was made for float32");
    REFUSES(a->gate.dtype = OL_FLOAT16, OL_ERROR_DTYPE, "gate: dtype float16");
    REFUSES(a->norm_weight.dtype = OL_FLOAT16, OL_ERROR_DTYPE, "norm_weight: dtype float16");
    REFUSES(mixer_give(&c, AT_DROPPED, OL_UINT32, 1, (int64_t[]){ N }, STEP_DENSE, NULL), OL_ERROR_DTYPE, "window_dropped: dtype uint32; expected int32 or int64");
    REFUSES(mixer_give(&c, AT_WINDOW_READ, OL_FLOAT32, 1, (int64_t[]){ N }, STEP_DENSE, NULL), OL_ERROR_DTYPE, "window_read_slots: dtype float32; expected int32 or int64");
}

static void test_shapes(void **state)
{
    (void)state;
    REFUSES(a->query.weight.shape[2] = 3, OL_ERROR_SHAPE, "query.weight has shape [2, 20, 3]; expected [2, 20, 4]");
    REFUSES(a->value.weight.shape[0] = 2, OL_ERROR_SHAPE, "value.weight has shape [2, 12, 4]; expected [4, 12, 4], or [2, 2, 12, 4]");
    REFUSES(a->key.window.shape[0] = 2, OL_ERROR_SHAPE, "key.window has shape [2, 2, 20, 4]; expected [3, 2, 20, 4]");
    REFUSES(a->key.window.shape[3] = 3, OL_ERROR_SHAPE, "key.window has shape [3, 2, 20, 3]; expected [3, 2, 20, 4]");
    REFUSES(a->query.window.shape[2] = 19, OL_ERROR_SHAPE, "query.window has shape [3, 2, 19, 4]; expected [slots, 2, 20, 4]");
    REFUSES(a->query.window.shape[3] = 2, OL_ERROR_SHAPE, "expected a last axis of 3 to 64 columns");
    REFUSES(mixer_give(&c, OF_WINDOW, OL_FLOAT32, 4, (int64_t[]){ N, HK, K, 65 }, STEP_DENSE, NULL), OL_ERROR_SHAPE, "expected a last axis of 3 to 64 columns");
    REFUSES(a->gate.shape[0] = 5, OL_ERROR_SHAPE, "gate has shape [5, 4, 12]; expected [6, 4, 12], or [6, 2, 2, 12]");
    REFUSES((a->gate.strides[2] = 2, a->gate.shape[0] = 6, a->gate.strides[0] = 0), OL_ERROR_SHAPE, "gate: the stride of its last axis is 2; expected 1");
    REFUSES(a->norm_weight.shape[0] = 11, OL_ERROR_SHAPE, "norm_weight has shape [11]; expected [12]");
    REFUSES(mixer_table(&c, AT_DROPPED, 2, 0, (int32_t[]){ 0, 0 }), OL_ERROR_SHAPE, "window_dropped has shape [2]; expected [3]");
    REFUSES(mixer_table(&c, AT_WINDOW_READ, 2, 0, (int32_t[]){ 0, 1 }), OL_ERROR_SHAPE, "window_read_slots has shape [2]; expected [3], or that and one column or more");
    REFUSES(mixer_table(&c, AT_WINDOW_WRITE, N, 1, (int32_t[]){ 0, 1, 2 }), OL_ERROR_SHAPE, "window_write_slots have 1 columns; expected one for each of the 2 tokens");
    REFUSES({
        for (int p = 0; p < 3; p++)
            mixer_give(&c, p * OF_PART + OF_INTERMEDIATE, OL_FLOAT32, 5, (int64_t[]){ N, p ? T : T - 1, p == 2 ? HV : HK, p == 2 ? V : K, 4 }, STEP_DENSE, NULL);
    }, OL_ERROR_SHAPE, "intermediate_windows have room for 1 tokens a sequence; expected 2 or more");
}

static void test_overlaps(void **state)
{
    (void)state;
    REFUSES(a->key.window.data = a->query.window.data, OL_ERROR_OVERLAP, "query.window overlaps key.window; expected memory of its own");
    REFUSES(a->query.weight.data = a->value.window.data, OL_ERROR_OVERLAP, "value.window overlaps query.weight");
    REFUSES(a->gate.data = c.step.arguments.output.data, OL_ERROR_OVERLAP, "output overlaps gate");
    REFUSES(a->norm_weight.data = c.step.arguments.state.data, OL_ERROR_OVERLAP, "state overlaps norm_weight");
    REFUSES(c.step.arguments.query.data = a->key.window.data, OL_ERROR_OVERLAP, "key.window overlaps query");
    REFUSES(a->value.window.strides[1] = 0, OL_ERROR_OVERLAP, "value.window repeats an element");
}

static void test_indices(void **state)
{
    (void)state;
    REFUSES(mixer_table(&c, AT_DROPPED, N, 0, (int32_t[]){ 0, 2, 0 }), OL_ERROR_ARGUMENT, "window_dropped of sequence 1: 2; expected 0 to 1, the columns less W-1");
    REFUSES(mixer_table(&c, AT_DROPPED, N, 0, (int32_t[]){ -1, 0, 0 }), OL_ERROR_ARGUMENT, "window_dropped of sequence 0: -1");
    REFUSES((ring(&c), mixer_table(&c, AT_POSITIONS, N, 0, (int32_t[]){ 0, 0, -3 })), OL_ERROR_ARGUMENT, "window_positions of sequence 2: -3");
    REFUSES(
        {
            ring(&c);
            mixer_give(&c, AT_POSITIONS, OL_INT64, 1, (int64_t[]){ N }, STEP_DENSE, NULL);
            memcpy(c.memory[AT_POSITIONS], ((int64_t[]){ 0, INT64_MAX - 1, 0 }), 3 * sizeof(int64_t));
        },
        OL_ERROR_ARGUMENT, "window_positions of sequence 1: 9223372036854775806");
    REFUSES(mixer_table(&c, AT_WINDOW_READ, N, 0, (int32_t[]){ 0, 3, 1 }), OL_ERROR_ARGUMENT, "window_read_slots of sequence 1: 3; expected 0 or more, below the pool's slots, 3");
    REFUSES(mixer_table(&c, AT_WINDOW_READ, N, 0, (int32_t[]){ 0, -1, 1 }), OL_ERROR_ARGUMENT, "window_read_slots of sequence 1: -1");
    REFUSES(mixer_table(&c, AT_WINDOW_WRITE, N, 0, (int32_t[]){ 0, 7, 1 }), OL_ERROR_ARGUMENT, "window_write_slots of sequence 1: 7");
    REFUSES(mixer_table(&c, AT_WINDOW_WRITE, N, 0, (int32_t[]){ 0, 1, 1 }), OL_ERROR_OVERLAP, "window_slot 1 is written twice");
    REFUSES((mixer_table(&c, AT_WINDOW_READ, N, 0, (int32_t[]){ 0, 0, 1 }), mixer_table(&c, AT_WINDOW_WRITE, N, 0, (int32_t[]){ 2, 0, 1 })), OL_ERROR_OVERLAP,
            "window_slot 0 is read by sequence 0 and written by another");
    REFUSES_AS("gated_delta_step", mixer_step_table(&c, AT_READ, N, 0, (int32_t[]){ 0, 3, 1 }), OL_ERROR_ARGUMENT, "read_slots of sequence 1: 3");
}

static void test_null(void **state)
{
    (void)state;
    mixer_case c = usual();
    ol_error error;
    const ol_gated_delta_mixer_arguments a = mixer_arguments_of(&c);
    ol_gated_delta_mixer *m = mixer_of(level_device(0), &c);
    assert_fails(ol_gated_delta_mixer_step(NULL, NULL, &a, &error), &error, OL_ERROR_ARGUMENT, "gated_delta_mixer_step", "the mixer is NULL");
    assert_fails(ol_gated_delta_mixer_step(m, NULL, NULL, &error), &error, OL_ERROR_ARGUMENT, "gated_delta_mixer_step", "the arguments are NULL");
    ol_gated_delta_mixer_destroy(m);
    ol_gated_delta_mixer_destroy(NULL);
    mixer_free(&c);
}

/* ---- Views ---- */

static void test_split(void **state)
{
    (void)state;
    const ol_gated_delta_options g = { .key_heads = HK, .value_heads = HV, .key_dim = K, .value_dim = V };
    enum { C = 2 * HK * K + HV * V, Z = C + HV * V };
    static float memory[5 * Z];
    ol_tensor t = ol_tensor_contiguous(memory, OL_FLOAT32, 2, (int64_t[]){ 5, Z }), q, k, v, z;
    ol_error error;
    assert_ok(ol_gated_delta_mixer_split(&t, 1, OL_MIXER_JOINT, &g, &q, &k, &v, &z, &error), &error);
    assert_true(q.rank == 3 && q.shape[0] == 5 && q.shape[1] == HK && q.shape[2] == K && q.strides[0] == Z && q.strides[1] == K && q.strides[2] == 1 && q.data == memory);
    assert_true(k.data == memory + HK * K && v.data == memory + 2 * HK * K && z.data == memory + C && v.shape[1] == HV && v.shape[2] == V && z.strides[1] == V);
    assert_ok(ol_gated_delta_mixer_split(&t, -1, OL_MIXER_INTERLEAVED, &g, &q, &k, &v, &z, &error), &error);
    enum { GROUP = 2 * K + 2 * R * V };
    assert_true(q.strides[1] == GROUP && k.data == memory + K && v.data == memory + 2 * K && z.data == memory + 2 * K + R * V);
    assert_true(v.rank == 4 && v.shape[1] == HK && v.shape[2] == R && v.shape[3] == V && v.strides[1] == GROUP && v.strides[2] == V && v.strides[3] == 1);
    /* A pool of windows with the channels last. */
    ol_tensor pool = { .dtype = OL_BFLOAT16, .rank = 3, .shape = { 7, C, 3 }, .strides = { 3 * C + 8, 1, C } };
    assert_ok(ol_gated_delta_mixer_split(&pool, 1, OL_MIXER_JOINT, &g, &q, &k, &v, NULL, &error), &error);
    assert_true(k.rank == 4 && k.data == NULL && k.strides[0] == 3 * C + 8 && k.strides[1] == K && k.strides[2] == 1 && k.strides[3] == C && k.shape[3] == 3);
    const char *name = "gated_delta_mixer_split";
    assert_fails(ol_gated_delta_mixer_split(NULL, 1, OL_MIXER_JOINT, &g, &q, &k, &v, &z, &error), &error, OL_ERROR_ARGUMENT, name, "the tensor is NULL");
    assert_fails(ol_gated_delta_mixer_split(&t, 1, OL_MIXER_JOINT, NULL, &q, &k, &v, &z, &error), &error, OL_ERROR_ARGUMENT, name, "the geometry is NULL");
    assert_fails(ol_gated_delta_mixer_split(&t, 1, OL_MIXER_JOINT, &g, &q, &k, NULL, &z, &error), &error, OL_ERROR_ARGUMENT, name, "value is NULL");
    assert_fails(ol_gated_delta_mixer_split(&t, 1, (ol_mixer_layout)2, &g, &q, &k, &v, &z, &error), &error, OL_ERROR_ARGUMENT, name, "layout is 2");
    assert_fails(ol_gated_delta_mixer_split(&t, 2, OL_MIXER_JOINT, &g, &q, &k, &v, &z, &error), &error, OL_ERROR_ARGUMENT, name, "axis is 2; expected -2 to 1");
    assert_fails(ol_gated_delta_mixer_split(&t, 0, OL_MIXER_JOINT, &g, &q, &k, &v, &z, &error), &error, OL_ERROR_SHAPE, name, "axis 0 has 5 channels; expected 128, or 176 with a gate's");
    assert_fails(ol_gated_delta_mixer_split(&pool, 1, OL_MIXER_JOINT, &g, &q, &k, &v, &z, &error), &error, OL_ERROR_ARGUMENT, name, "a gate is asked for");
    ol_gated_delta_options bad = g;
    bad.value_heads = 3;
    assert_fails(ol_gated_delta_mixer_split(&t, 1, OL_MIXER_JOINT, &bad, &q, &k, &v, &z, &error), &error, OL_ERROR_ARGUMENT, name, "3 value heads and 2 key heads");
    bad = g;
    bad.key_dim = 257;
    assert_fails(ol_gated_delta_mixer_split(&t, 1, OL_MIXER_JOINT, &bad, &q, &k, &v, &z, &error), &error, OL_ERROR_ARGUMENT, name, "key_dim is 257");
    t.dtype = (ol_dtype)99;
    assert_fails(ol_gated_delta_mixer_split(&t, 1, OL_MIXER_JOINT, &g, &q, &k, &v, &z, &error), &error, OL_ERROR_DTYPE, name, "which is none");
    t.dtype = OL_FLOAT32;
    t.rank = 0;
    assert_fails(ol_gated_delta_mixer_split(&t, 0, OL_MIXER_JOINT, &g, &q, &k, &v, &z, &error), &error, OL_ERROR_SHAPE, name, "the rank of the tensor is 0; expected 1 to 7");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options), cmocka_unit_test(test_presence), cmocka_unit_test(test_dtypes), cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_overlaps), cmocka_unit_test(test_indices), cmocka_unit_test(test_null),   cmocka_unit_test(test_split),
    };
    return HARNESS_RUN(argc, argv, tests);
}
