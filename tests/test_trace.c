/* Tracing: the sticky builder. Whatever a builder does wrong becomes a status, the operation, and a description that names both
 * sides; the first error is the one that is kept. */
#include "graph_cases.h"

#include <stdio.h>
#include <stdlib.h>

#define BUILDER(name) static int name(ol_graph *g, const ol_value *in, ol_value *out, void *user)

static ol_status compile_named(ol_build build, void *user, int32_t n_inputs, int32_t n_outputs, const ol_dtype *dtypes, ol_composite **c, ol_error *error)
{
    ol_builder builder = { .build = build, .user = user, .n_inputs = n_inputs, .n_outputs = n_outputs, .name = "subject" };
    return ol_compile(level_device(0), &builder, dtypes, c, error);
}

/* ---- Values that are not values ---- */

BUILDER(build_unset_operand)
{
    (void)user;
    ol_value unset = { 0, 0 };
    out[0] = ol_add(g, in[0], unset);
    assert_int_equal(out[0].graph, 0);                         /* invalid in, invalid out … */
    assert_int_equal(ol_value_dtype(g, out[0]), OL_FLOAT32);   /* … and harmless to ask about */
    out[0] = ol_exp(g, ol_negative(g, out[0]));
    return 0;
}

static ol_value kept;

BUILDER(build_and_keep)
{
    (void)user;
    kept = out[0] = ol_exp(g, in[0]);
    return 0;
}

/* This graph has a node of the same number; only the value's own graph tells them apart. */
BUILDER(build_with_kept)
{
    (void)user;
    ol_value own = ol_sqrt(g, ol_sqrt(g, in[0]));
    assert_true(kept.node <= own.node);
    out[0] = ol_multiply(g, kept, own);
    return 0;
}

BUILDER(build_kept_output)
{
    (void)user;
    out[0] = ol_sqrt(g, ol_sqrt(g, in[0]));
    out[0] = kept;
    return 0;
}

BUILDER(build_beyond)
{
    (void)user;
    ol_value beyond = in[0];
    beyond.node = 1000;
    out[0] = ol_where(g, in[0], in[0], beyond);
    return 0;
}

BUILDER(build_first_error_wins)
{
    (void)user;
    ol_value unset = { 0, 0 };
    out[0] = ol_sqrt(g, unset);
    out[0] = ol_bitwise_and(g, in[0], in[0]);                  /* would be OL_ERROR_DTYPE */
    ol_graph_fail(g, "mine", "too late");
    return 0;
}

BUILDER(build_no_output)
{
    (void)user;
    out[0] = ol_exp(g, in[0]);
    return 0;                                                  /* out[1] is left */
}

BUILDER(build_code)
{
    (void)user;
    out[0] = ol_exp(g, in[0]);
    return 42;
}

BUILDER(build_code_after_failure)
{
    (void)user;
    out[0] = ol_bitwise_invert(g, in[0]);
    return -7;
}

BUILDER(build_fail)
{
    (void)in, (void)out, (void)user;
    char description[] = "heads must be even";
    ol_graph_fail(g, "my rates", description);
    memset(description, 'x', sizeof description - 1);          /* a copy was kept */
    return 0;
}

BUILDER(build_fail_unnamed)
{
    (void)in, (void)out, (void)user;
    ol_graph_fail(g, NULL, NULL);
    return 0;
}

/* ---- Types ---- */

BUILDER(build_float_bits)
{
    (void)user;
    out[0] = ol_bitwise_or(g, in[0], in[0]);
    return 0;
}

BUILDER(build_mixed_shift)
{
    (void)user;
    out[0] = ol_left_shift(g, ol_constant(g, OL_INT32, 1), in[0]);
    return 0;
}

BUILDER(build_bool_shift)
{
    (void)user;
    ol_value truth = ol_isnan(g, in[0]);
    out[0] = ol_left_shift(g, truth, truth);
    return 0;
}

BUILDER(build_astype_nothing)
{
    (void)user;
    out[0] = ol_astype(g, in[0], (ol_dtype)12);
    return 0;
}

BUILDER(build_constant_nothing)
{
    (void)in, (void)user;
    out[0] = ol_constant(g, (ol_dtype)-1, 1.0);
    return 0;
}

BUILDER(build_constant_null)
{
    (void)in, (void)user;
    out[0] = ol_constant_bits(g, OL_FLOAT32, NULL);
    return 0;
}

BUILDER(build_rank_9)
{
    (void)user;
    out[0] = ol_broadcast_to(g, in[0], 9, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1));
    return 0;
}

BUILDER(build_negative_extent)
{
    (void)user;
    out[0] = ol_broadcast_to(g, in[0], 2, SHAPE(2, -1));
    return 0;
}

BUILDER(build_huge_shape)
{
    (void)user;
    out[0] = ol_broadcast_to(g, in[0], 2, SHAPE(1ll << 40, 1ll << 40));
    return 0;
}

BUILDER(build_null_shape)
{
    (void)user;
    out[0] = ol_broadcast_to(g, in[0], 1, NULL);
    return 0;
}

BUILDER(build_wrong_arity)
{
    (void)user;
    out[0] = ol_apply(g, ol_primitive_find("add"), in, 1);
    return 0;
}

BUILDER(build_no_primitive)
{
    (void)user;
    out[0] = ol_apply(g, 9999, in, 1);
    return 0;
}

BUILDER(build_too_many_nodes)
{
    (void)user;
    out[0] = in[0];
    for (int i = 0; i < OL_MAX_NODES; i++)
        out[0] = ol_negative(g, out[0]);
    return 0;
}

typedef struct trace_case {
    const char *what;
    ol_build build;
    int32_t n_outputs;
    ol_status status;
    const char *operation, *description, *also;
    int code;
} trace_case;

static const trace_case trace_cases[] = {
    { "unset operand", build_unset_operand, 1, OL_ERROR_BUILDER, "add", "operand 2", "never set", 0 },
    { "foreign operand", build_with_kept, 1, OL_ERROR_BUILDER, "multiply", "operand 1", "another graph", 0 },
    { "foreign output", build_kept_output, 1, OL_ERROR_BUILDER, "subject", "output 0", "another graph", 0 },
    { "node out of range", build_beyond, 1, OL_ERROR_BUILDER, "where", "operand 3", "", 0 },
    { "first error", build_first_error_wins, 1, OL_ERROR_BUILDER, "sqrt", "operand 1", "", 0 },
    { "output left", build_no_output, 2, OL_ERROR_BUILDER, "subject", "output 1", "did not set", 0 },
    { "code", build_code, 1, OL_ERROR_BUILDER, "subject", "the builder returned 42", "", 42 },
    { "code after failure", build_code_after_failure, 1, OL_ERROR_BUILDER, "subject", "returned -7", "bitwise_invert: operands of float32", -7 },
    { "ol_graph_fail", build_fail, 1, OL_ERROR_BUILDER, "my rates", "heads must be even", "", 0 },
    { "ol_graph_fail of nothing", build_fail_unnamed, 1, OL_ERROR_BUILDER, "builder", "the builder failed", "", 0 },
    { "bits of a float", build_float_bits, 1, OL_ERROR_DTYPE, "bitwise_or", "operands of float32", "expected integers or bool", 0 },
    { "shift by a float", build_mixed_shift, 1, OL_ERROR_DTYPE, "left_shift", "operands of int32 and float32", "expected integers", 0 },
    { "shift of a bool", build_bool_shift, 1, OL_ERROR_DTYPE, "left_shift", "operands of bool", "expected integers", 0 },
    { "astype to no dtype", build_astype_nothing, 1, OL_ERROR_DTYPE, "astype", "not a dtype", "", 0 },
    { "constant of no dtype", build_constant_nothing, 1, OL_ERROR_DTYPE, "constant", "not a dtype", "", 0 },
    { "constant of no bits", build_constant_null, 1, OL_ERROR_ARGUMENT, "constant", "bits is NULL", "", 0 },
    { "rank 9", build_rank_9, 1, OL_ERROR_ARGUMENT, "broadcast_to", "0 to 8", "", 0 },
    { "negative extent", build_negative_extent, 1, OL_ERROR_SHAPE, "broadcast_to", "axis 1 of the shape", "not within 0 to 2^63 - 1", 0 },
    { "too many elements", build_huge_shape, 1, OL_ERROR_SHAPE, "broadcast_to", "more elements", "", 0 },
    { "shape NULL", build_null_shape, 1, OL_ERROR_ARGUMENT, "broadcast_to", "the shape is NULL", "", 0 },
    { "wrong arity", build_wrong_arity, 1, OL_ERROR_ARGUMENT, "add", "operands", "", 0 },
    { "no primitive", build_no_primitive, 1, OL_ERROR_ARGUMENT, "apply", "not the number of a primitive", "", 0 },
    { "node limit", build_too_many_nodes, 1, OL_ERROR_LIMIT, "negative", "OL_MAX_NODES (262144)", "", 0 },
};

static void what_a_builder_can_do_wrong(void **state)
{
    (void)state;
    ol_composite *c = NULL;
    assert_int_equal(compile_named(build_and_keep, NULL, 1, 1, DTYPES(OL_FLOAT32), &c, NULL), OL_OK);
    ol_composite_destroy(c);
    for (size_t i = 0; i < COUNT(trace_cases); i++) {
        const trace_case *t = &trace_cases[i];
        ol_composite *untouched = (ol_composite *)&untouched;
        ol_error error;
        memset(&error, 0x5A, sizeof error);
        ol_status status = compile_named(t->build, NULL, 1, t->n_outputs, DTYPES(OL_FLOAT32), &untouched, &error);
        if (status != t->status || error.status != t->status || strcmp(error.operation, t->operation) != 0 || !strstr(error.description, t->description) ||
            !strstr(error.description, t->also ? t->also : "") || error.code != t->code)
            fail_msg("%s: %s (code %d), \"%s\": \"%s\"", t->what, ol_status_name(status), error.code, error.operation, error.description);
        assert_ptr_equal(untouched, (ol_composite *)&untouched);
        assert_int_equal(compile_named(t->build, NULL, 1, t->n_outputs, DTYPES(OL_FLOAT32), &untouched, NULL), t->status);      /* no record: the same */
    }
}

/* ---- Arguments of ol_compile ---- */

static void arguments_of_compile(void **state)
{
    (void)state;
    ol_builder good = { .build = build_and_keep, .n_inputs = 1, .n_outputs = 1, .name = "subject" }, b;
    ol_composite *c = NULL;
    ol_error error;
    assert_fails(ol_compile(NULL, &good, DTYPES(OL_FLOAT32), &c, &error), &error, OL_ERROR_ARGUMENT, "compile", "NULL");
    assert_fails(ol_compile(level_device(0), &good, DTYPES(OL_FLOAT32), NULL, &error), &error, OL_ERROR_ARGUMENT, "compile", "NULL");
    assert_fails(ol_compile(level_device(0), NULL, DTYPES(OL_FLOAT32), &c, &error), &error, OL_ERROR_ARGUMENT, "compile", "builder");
    assert_fails(ol_compile(level_device(0), &good, NULL, &c, &error), &error, OL_ERROR_ARGUMENT, "subject", "input_dtypes is NULL");
    assert_fails(ol_compile(level_device(0), &good, DTYPES((ol_dtype)55), &c, &error), &error, OL_ERROR_DTYPE, "compile", "input 0: 55");
    b = good, b.build = NULL;
    assert_fails(ol_compile(level_device(0), &b, DTYPES(OL_FLOAT32), &c, &error), &error, OL_ERROR_ARGUMENT, "compile", "build function");
    b = good, b.n_inputs = -1;
    assert_fails(ol_compile(level_device(0), &b, DTYPES(OL_FLOAT32), &c, &error), &error, OL_ERROR_ARGUMENT, "subject", "-1 inputs");
    b = good, b.n_outputs = 0;
    assert_fails(ol_compile(level_device(0), &b, DTYPES(OL_FLOAT32), &c, &error), &error, OL_ERROR_ARGUMENT, "subject", "0 outputs");
    assert_null(c);
    b = good, b.name = NULL;
    assert_ok(ol_compile(level_device(0), &b, DTYPES(OL_FLOAT32), &c, &error), &error);
    assert_string_equal(ol_composite_name(c), "composite");
    ol_composite_destroy(c);
}

/* The tracing functions on a NULL graph give an invalid value, as on any that failed. */
static void a_null_graph_is_harmless(void **state)
{
    (void)state;
    ol_value v = { 0, 0 };
    assert_int_equal(ol_add(NULL, v, v).graph, 0);
    assert_int_equal(ol_constant(NULL, OL_FLOAT32, 1).graph, 0);
    assert_int_equal(ol_astype(NULL, v, OL_FLOAT32).graph, 0);
    assert_int_equal(ol_apply(NULL, 0, &v, 1).graph, 0);
    assert_int_equal(ol_broadcast_like(NULL, v, v).graph, 0);
    assert_int_equal(ol_value_dtype(NULL, v), OL_FLOAT32);
    ol_graph_fail(NULL, "x", "y");
}

/* ---- What is right ---- */

BUILDER(build_input_and_constant)
{
    (void)user;
    out[0] = in[0];
    out[1] = in[0];
    out[2] = ol_constant(g, OL_INT16, -3);
    return 0;
}

static void inputs_and_constants_as_outputs(void **state)
{
    (void)state;
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *c = compile_on(level_device(level), build_input_and_constant, NULL, 1, DTYPES(OL_FLOAT16), 3);
        uint16_t x[5] = { 0x3C00, 0xFE01, 1, 0x8000, 0x7C00 }, r[2][5], k = 0;
        ol_tensor in = vector_of(x, OL_FLOAT16, 5);
        ol_tensor out[3] = { vector_of(r[0], OL_FLOAT16, 5), vector_of(r[1], OL_FLOAT16, 5), ol_tensor_contiguous(&k, OL_INT16, 0, NULL) };
        ol_error error;
        for (int path = 0; path < 2; path++) {
            memset(r, 0xA5, sizeof r);
            assert_ok(replay_paths[path](c, NULL, &in, out, &error), &error);
            for (int i = 0; i < 5; i++) {
                assert_int_equal(r[0][i], i == 1 ? 0x7E00 : x[i]);             /* a copy is a node: its NaN is canonical */
                assert_int_equal(r[1][i], r[0][i]);
            }
            assert_int_equal((int16_t)k, -3);
        }
        ol_composite_destroy(c);
    }
}

static void what_a_composite_says_of_itself(void **state)
{
    (void)state;
    ol_composite *c = compile_on(level_device(0), build_input_and_constant, NULL, 1, DTYPES(OL_FLOAT16), 3);
    assert_int_equal(ol_composite_input_count(c), 1);
    assert_int_equal(ol_composite_output_count(c), 3);
    assert_int_equal(ol_composite_input_dtype(c, 0), OL_FLOAT16);
    assert_int_equal(ol_composite_output_dtype(c, 2), OL_INT16);
    assert_int_equal(ol_composite_output_dtype(c, 3), OL_FLOAT32);             /* out of range */
    assert_int_equal(ol_composite_output_dtype(c, -1), OL_FLOAT32);
    assert_int_equal(ol_composite_input_dtype(c, 1), OL_FLOAT32);
    assert_string_equal(ol_composite_name(c), "case");
    ol_composite_destroy(c);
    ol_composite_destroy(NULL);
    assert_int_equal(ol_composite_input_count(NULL), 0);
    assert_int_equal(ol_composite_output_count(NULL), 0);
    assert_int_equal(ol_composite_composed_launches(NULL), 0);
    assert_int_equal(ol_device_launches(NULL), 0);
    ol_device_destroy(NULL);
}

/* A name too long for the error record is cut at a whole character, and nothing is overrun. */
static void long_names_are_cut(void **state)
{
    (void)state;
    char name[300];
    for (int i = 0; i < 298; i += 2)
        memcpy(name + i, "\xC3\xA4", 2);                       /* ä */
    name[298] = '\0';
    ol_builder b = { .build = build_code, .n_inputs = 1, .n_outputs = 1, .name = name };
    ol_composite *c = NULL;
    ol_error error;
    assert_int_equal(ol_compile(level_device(0), &b, DTYPES(OL_FLOAT32), &c, &error), OL_ERROR_BUILDER);
    size_t n = strlen(error.operation);
    assert_true(n >= 40 && n < sizeof error.operation && n % 2 == 0);
    b.build = build_and_keep;
    assert_ok(ol_compile(level_device(0), &b, DTYPES(OL_FLOAT32), &c, &error), &error);
    n = strlen(ol_composite_name(c));
    assert_true(n >= 40 && n < 64);
    float x;
    ol_tensor t = vector_of(&x, OL_FLOAT32, 1), wrong = vector_of(&x, OL_INT32, 1);
    assert_int_equal(ol_replay(c, NULL, &wrong, &t, &error), OL_ERROR_DTYPE);
    assert_true(strncmp(error.operation, "replay \xC3\xA4", 9) == 0);
    ol_composite_destroy(c);
}

/* ---- Devices ---- */

static void free_nothing(void *user, void *pointer, size_t n_bytes)
{
    (void)user, (void)pointer, (void)n_bytes;
}

static void devices_and_levels(void **state)
{
    (void)state;
    ol_device *device = NULL;
    ol_error error;
    static const char *const names[] = { "auto", "baseline", "avx2", "avx512", "neon" };
    int refused = 0;
    for (int l = 0; l <= OL_CPU_NEON; l++) {
        ol_cpu_options options = { .level = (ol_cpu_level)l, .n_threads = 1 };
        assert_string_equal(ol_cpu_level_name((ol_cpu_level)l), names[l]);
        if (ol_cpu_level_available((ol_cpu_level)l)) {
            assert_ok(ol_device_cpu(&options, &device, &error), &error);
            assert_string_equal(ol_device_name(device), "cpu");
            if (l != OL_CPU_AUTO)
                assert_string_equal(ol_device_level(device), names[l]);
            ol_device_destroy(device);
            if (l != OL_CPU_AUTO) {
                setenv("ONELAUNCH_CPU", names[l], 1);
                assert_ok(ol_device_cpu(&(ol_cpu_options){ .n_threads = 1 }, &device, &error), &error);
                assert_string_equal(ol_device_level(device), names[l]);
                ol_device_destroy(device);
            }
        } else {
            device = NULL;
            assert_fails(ol_device_cpu(&options, &device, &error), &error, OL_ERROR_DEVICE, "device cpu", names[l]);
            setenv("ONELAUNCH_CPU", names[l], 1);
            assert_fails(ol_device_cpu(NULL, &device, &error), &error, OL_ERROR_DEVICE, "device cpu", "ONELAUNCH_CPU");
            assert_null(device);
            refused++;
        }
    }
    assert_true(refused > 0);                                  /* no machine has both AVX and NEON */
    setenv("ONELAUNCH_CPU", "sse9", 1);
    assert_fails(ol_device_cpu(NULL, &device, &error), &error, OL_ERROR_DEVICE, "device cpu", "\"sse9\"; expected baseline, avx2, avx512 or neon");
    /* An explicit level does not read the variable; an empty one is none. */
    assert_ok(ol_device_cpu(&(ol_cpu_options){ .level = OL_CPU_BASELINE, .n_threads = 1 }, &device, &error), &error);
    ol_device_destroy(device);
    setenv("ONELAUNCH_CPU", "", 1);
    assert_ok(ol_device_cpu(&(ol_cpu_options){ .n_threads = 1 }, &device, &error), &error);
    ol_device_destroy(device);
    unsetenv("ONELAUNCH_CPU");

    device = NULL;
    assert_fails(ol_device_cpu(NULL, NULL, &error), &error, OL_ERROR_ARGUMENT, "device cpu", "NULL");
    assert_fails(ol_device_cpu(&(ol_cpu_options){ .level = (ol_cpu_level)9 }, &device, &error), &error, OL_ERROR_DEVICE, "device cpu", "9 is not a SIMD level");
    assert_fails(ol_device_cpu(&(ol_cpu_options){ .n_threads = -1 }, &device, &error), &error, OL_ERROR_ARGUMENT, "device cpu", "n_threads is -1");
    assert_fails(ol_device_cpu(&(ol_cpu_options){ .allocator.free = free_nothing }, &device, &error), &error, OL_ERROR_ARGUMENT,
                 "device cpu", "allocator");
    assert_null(device);
    assert_null(ol_cpu_level_name((ol_cpu_level)9));
}

/* A composite outlives the caller's reference to its device. */
static void a_composite_keeps_its_device(void **state)
{
    (void)state;
    ol_device *device;
    ol_error error;
    assert_ok(ol_device_cpu(&(ol_cpu_options){ .n_threads = 1 }, &device, &error), &error);
    ol_composite *c = compile_on(device, build_and_keep, NULL, 1, DTYPES(OL_FLOAT32), 1);
    ol_device_destroy(device);
    float x = 0, y = 0;
    ol_tensor in = vector_of(&x, OL_FLOAT32, 1), out = vector_of(&y, OL_FLOAT32, 1);
    assert_ok(ol_replay(c, NULL, &in, &out, &error), &error);
    assert_true(y == 1.0f);
    ol_composite_destroy(c);
}

static void the_version_is_the_headers(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", OL_VERSION_MAJOR, OL_VERSION_MINOR, OL_VERSION_PATCH);
    assert_string_equal(ol_version(), text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_builder_can_do_wrong), cmocka_unit_test(arguments_of_compile), cmocka_unit_test(a_null_graph_is_harmless),
        cmocka_unit_test(inputs_and_constants_as_outputs), cmocka_unit_test(what_a_composite_says_of_itself), cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(devices_and_levels), cmocka_unit_test(a_composite_keeps_its_device), cmocka_unit_test(the_version_is_the_headers),
    };
    return HARNESS_RUN(argc, argv, tests);
}
