/* Graph text: what is printed parses to the same graph, every literal keeps its bits, every mistake is named with its line and
 * column. docs/graph-text.md has the grammar. */
#include "graph_cases.h"

#include "parity_case.h"

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER "onelaunch graph 1\n"

static ol_composite *parse_bytes(const char *text, size_t n)
{
    ol_composite *c;
    ol_error error;
    /* A copy of exactly this length, so that reading past it is found. */
    char *copy = malloc(n + !n);
    assert_non_null(copy);
    memcpy(copy, text, n);
    assert_ok(ol_compile_text(level_device(0), copy, n, &c, &error), &error);
    free(copy);
    return c;
}

static ol_composite *parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static char *print(const ol_composite *c, ol_text_kind kind)
{
    size_t n = ol_composite_text(c, kind, NULL, 0);
    char *text = malloc(n + 1);
    assert_non_null(text);
    assert_int_equal(ol_composite_text(c, kind, text, n + 1), n);
    assert_int_equal(strlen(text), n);
    return text;
}

/* ---- Round trips ---------------------------------------------------------------------------------------------------- */

/* Prints, parses, prints; gives the parsed composite. */
static ol_composite *round_trip(const ol_composite *c, ol_text_kind kind)
{
    char *first = print(c, kind);
    ol_composite *again = parse(first);
    char *second = print(again, OL_TEXT_GRAPH);
    assert_string_equal(first, second);
    assert_string_equal(ol_composite_name(c), ol_composite_name(again));
    free(first);
    free(second);
    return again;
}

/* Replays both on the case's tensors: a graph that prints alike must also compute alike. */
static void check_same_results(const generated *g, const ol_composite *a, const ol_composite *b)
{
    const ol_composite *composites[2] = { a, b };
    size_t n_bytes = (g->arena_bytes + 63) & ~(size_t)63;
    unsigned char *arena[2];
    ol_tensor *tensors = calloc((size_t)(g->n_inputs + g->n_outputs), sizeof *tensors);
    assert_non_null(tensors);
    for (int i = 0; i < 2; i++) {
        ol_error error;
        arena[i] = aligned_alloc(64, n_bytes);
        assert_non_null(arena[i]);
        memcpy(arena[i], g->arena, g->arena_bytes);
        generate_bind(g, arena[i], tensors);
        assert_ok(ol_replay(composites[i], NULL, tensors, tensors + g->n_inputs, &error), &error);
    }
    assert_memory_equal(arena[0], arena[1], g->arena_bytes);
    free(arena[0]);
    free(arena[1]);
    free(tensors);
}

static void test_random_graphs_round_trip(void **state)
{
    (void)state;
    uint64_t seed = harness_seed;
    for (int i = 0; i < 600; i++) {
        generate_limits limits = { 70, 0, i % 20 == 0 ? 400 : 40, i % 20 == 1 ? 90 : 6 };
        generated *g = generate_case(random_next(&seed), &limits);
        ol_composite *c, *traced, *optimized;
        ol_error error;
        assert_non_null(g);
        ol_builder builder = generate_builder(g);
        assert_ok(ol_compile(level_device(0), &builder, g->input_dtypes, &c, &error), &error);
        traced = round_trip(c, OL_TEXT_GRAPH);
        assert_int_equal(ol_composite_composed_launches(traced), ol_composite_composed_launches(c));
        check_same_results(g, c, traced);
        optimized = round_trip(c, OL_TEXT_OPTIMIZED);
        check_same_results(g, c, optimized);
        ol_composite_destroy(optimized);
        ol_composite_destroy(traced);
        ol_composite_destroy(c);
        generate_free(g);
    }
}

/* The text that a graph in any accepted spelling prints as. */
static void check_prints_as(const char *text, const char *expected)
{
    ol_composite *c = parse(text);
    char *printed = print(c, OL_TEXT_GRAPH);
    assert_string_equal(printed, expected);
    ol_composite_destroy(round_trip(c, OL_TEXT_GRAPH));
    free(printed);
    ol_composite_destroy(c);
}

static void test_spellings(void **state)
{
    (void)state;
    /* Names of one's own, blanks, comments, carriage returns, no newline at the end, no name. */
    check_prints_as("# first\n\n  onelaunch\tgraph 1   # header\r\n gate.x = input bfloat16\r\n\ty=exp gate.x#comment\noutput y",
                    HEADER "name \"composite\"\nv0 = input bfloat16\nv1 = exp v0    # bfloat16\noutput v1\n");
    /* Conversions that promotion asks for are written out; an output that is an input is a copy. */
    check_prints_as(HEADER "name \"mixed\"\na = input float16\nb = input bfloat16\nc = add a b\noutput c\noutput a\n",
                    HEADER "name \"mixed\"\nv0 = input float16\nv1 = input bfloat16\nv2 = astype float32 v0\nv3 = astype float32 v1\n"
                           "v4 = add v2 v3    # float32\nv5 = astype float16 v0\noutput v4\noutput v5\n");
    /* Inputs come first; what no output needs goes; keywords may be names. */
    check_prints_as(HEADER "name = input float32\ndead = exp name\none = constant float32 1\noutput = input float32\nadd = add output one\noutput add\n",
                    HEADER "name \"composite\"\nv0 = input float32\nv1 = input float32\nv2 = constant float32 0x3f800000\n"
                           "v3 = add v1 v2    # float32\noutput v3\n");
    /* Broadcasts. */
    check_prints_as(HEADER "x = input int8\ny = input bool\na = broadcast_like x y\nb = broadcast_to [] x\nc = broadcast_to [ 2,0 , 9223372036854775807 ] x\n"
                           "output a\noutput b\noutput c\n",
                    HEADER "name \"composite\"\nv0 = input int8\nv1 = input bool\nv2 = broadcast_like v0 v1    # int8\nv3 = broadcast_to [] v0    # int8\n"
                           "v4 = broadcast_to [2, 0, 9223372036854775807] v0    # int8\noutput v2\noutput v3\noutput v4\n");
}

static void test_names(void **state)
{
    (void)state;
    /* Escapes, bytes of UTF-8, the empty name, the longest one. */
    check_prints_as(HEADER "name \"a\\\"b\\\\c\\x0ad\\x7f\\x41\"\nx = input int8\ny = abs x\noutput y\n",
                    HEADER "name \"a\\\"b\\\\c\\x0ad\\x7fA\"\nv0 = input int8\nv1 = abs v0    # int8\noutput v1\n");
    check_prints_as(HEADER "name \"\xc3\xa9\xe2\x82\xac # \"\nx = input int8\ny = abs x\noutput y\n",
                    HEADER "name \"\xc3\xa9\xe2\x82\xac # \"\nv0 = input int8\nv1 = abs v0    # int8\noutput v1\n");
    check_prints_as(HEADER "name \"\"\nx = input int8\ny = abs x\noutput y\n", HEADER "name \"\"\nv0 = input int8\nv1 = abs v0    # int8\noutput v1\n");
    char text[400], name[64];
    memset(name, 'n', 63);
    name[63] = '\0';
    snprintf(text, sizeof text, HEADER "name \"%s\"\nv0 = input int8\nv1 = abs v0    # int8\noutput v1\n", name);
    check_prints_as(text, text);
}

/* A constant as written, and the bits it prints as. */
static void check_literal(const char *dtype, const char *literal, const char *bits)
{
    char text[200], expected[200];
    snprintf(text, sizeof text, HEADER "c = constant %s %s\nd = astype %s c\noutput d\n", dtype, literal, dtype);
    snprintf(expected, sizeof expected, HEADER "name \"composite\"\nv0 = constant %s %s\nv1 = astype %s v0\noutput v1\n", dtype, bits, dtype);
    check_prints_as(text, expected);
}

/* Whatever way the host rounds, in either of an x86-64's two units; and its state and flags are as they were. */
static void test_literals_under_any_rounding(void **state)
{
    (void)state;
    static const int modes[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        feclearexcept(FE_ALL_EXCEPT);
        fesetround(modes[i]);
        check_literal("float32", "16777217.0000000001", "0x4b800000");       /* the double below it is a tie of two float32 */
        check_literal("float32", "16777218.9999999999", "0x4b800002");
        check_literal("float32", "-0.1", "0xbdcccccd");
        int kept = fegetround() == modes[i] && !fetestexcept(FE_ALL_EXCEPT);
        fesetenv(FE_DFL_ENV);
        assert_true(kept);
    }
}

static void test_literals(void **state)
{
    (void)state;
    check_literal("bool", "true", "0x01");
    check_literal("bool", "false", "0x00");
    check_literal("bool", "0x1", "0x01");
    check_literal("uint8", "255", "0xff");
    check_literal("int8", "-128", "0x80");
    check_literal("int8", "0xfF", "0xff");
    check_literal("uint16", "65535", "0xffff");
    check_literal("int16", "-1", "0xffff");
    check_literal("uint32", "4294967295", "0xffffffff");
    check_literal("int32", "-2147483648", "0x80000000");
    check_literal("uint64", "18446744073709551615", "0xffffffffffffffff");
    check_literal("int64", "-9223372036854775808", "0x8000000000000000");
    check_literal("int64", "9007199254740993", "0x0020000000000001");        /* no double on the way */
    check_literal("float32", "0.1", "0x3dcccccd");
    check_literal("float32", "-0", "0x80000000");
    check_literal("float32", "-0.0", "0x80000000");
    check_literal("float32", "1e-45", "0x00000001");
    check_literal("float32", "inf", "0x7f800000");
    check_literal("float32", "-inf", "0xff800000");
    check_literal("float32", "nan", "0x7fc00000");
    check_literal("float32", "0xffc12345", "0xffc12345");                    /* a payload is kept */
    check_literal("float32", "0x1", "0x00000001");                           /* bits, not a number */
    check_literal("float16", "65519.99", "0x7bff");
    check_literal("float16", "65520", "0x7c00");
    check_literal("float16", "0.333333333333333", "0x3555");
    check_literal("bfloat16", "-1.5e0", "0xbfc0");
    check_literal("bfloat16", "3.0e38", "0x7f62");
}

static void test_lengths_as_snprintf(void **state)
{
    (void)state;
    ol_composite *c = parse(HEADER "x = input float32\ny = exp x\noutput y\n");
    for (int kind = OL_TEXT_GRAPH; kind <= OL_TEXT_DOT; kind++) {
        char *whole = print(c, (ol_text_kind)kind);
        size_t n = strlen(whole);
        for (size_t room = 1; room <= n + 2; room++) {
            char *part = guarded_alloc(room, 0);
            assert_int_equal(ol_composite_text(c, (ol_text_kind)kind, part, room), n);
            assert_int_equal(strlen(part), room > n ? n : room - 1);
            assert_memory_equal(part, whole, strlen(part));
            guarded_free(part);
        }
        free(whole);
    }
    assert_int_equal(ol_composite_text(NULL, OL_TEXT_GRAPH, NULL, 0), 0);
    ol_composite_destroy(c);
}

/* ---- Mistakes --------------------------------------------------------------------------------------------------------- */

static void check_fails(const char *text, size_t n, ol_status status, const char *expected)
{
    ol_composite *c = (ol_composite *)(uintptr_t)1;
    ol_error error = { 0 };
    char *copy = malloc(n + !n);
    assert_non_null(copy);
    memcpy(copy, text, n);
    ol_status got = ol_compile_text(level_device(0), copy, n, &c, &error);
    free(copy);
    if (got != status || error.status != status || strncmp(error.description, expected, strlen(expected)) != 0)
        fail_msg("expected %s \"%s…\"; got %s \"%s\" for:\n%.200s", ol_status_name(status), expected, ol_status_name(got), error.description, text);
    assert_true(c == (ol_composite *)(uintptr_t)1);                          /* untouched */
}

static void test_each_mistake_is_named_with_its_place(void **state)
{
    (void)state;
    static const struct { const char *text, *expected; } mistakes[] = {
        { "", "1:1: expected the header \"onelaunch graph 1\"" },
        { "\n  # nothing\n", "3:1: expected the header" },
        { "  onelaunch graph 2\n", "1:3: expected the header" },
        { "onelaunch graph\n", "1:1: expected the header" },
        { HEADER, "2:1: the graph has no output" },
        { HEADER "x = input int8\n", "3:1: the graph has no output" },
        { "onelaunch graph 1 x\n", "1:19: expected the end of the line" },
        { HEADER "x = input int8 y\n", "2:16: expected the end of the line" },
        { HEADER "x = input int8\noutput x x\n", "3:10: expected the end of the line" },
        { HEADER "  = input int8\n", "2:3: expected a statement" },
        { HEADER "\n\t(x)\n", "3:2: expected a statement" },
        { HEADER "x input int8\n", "2:3: expected '='" },
        { HEADER "x = input int9\n", "2:11: expected a dtype, such as float32" },
        { HEADER "x = input\n", "2:10: expected a dtype" },
        { HEADER "x = constant\n", "2:13: expected a dtype" },
        { HEADER "x = input int8\ny = astype x\n", "3:12: expected a dtype" },
        { HEADER "x = constant int8\n", "2:18: expected a constant: 0x and its bits, or a number" },
        { HEADER "x = constant int8 128\n", "2:19: not a constant of dtype int8" },
        { HEADER "x = constant int8 -129\n", "2:19: not a constant of dtype int8" },
        { HEADER "x = constant uint8 256\n", "2:20: not a constant of dtype uint8" },
        { HEADER "x = constant uint8 -1\n", "2:20: not a constant of dtype uint8" },
        { HEADER "x = constant uint64 18446744073709551616\n", "2:21: not a constant of dtype uint64" },
        { HEADER "x = constant int64 -9223372036854775809\n", "2:20: not a constant of dtype int64" },
        { HEADER "x = constant int32 1.5\n", "2:20: not a constant of dtype int32" },
        { HEADER "x = constant int32 true\n", "2:20: not a constant of dtype int32" },
        { HEADER "x = constant bool 2\n", "2:19: not a constant of dtype bool" },
        { HEADER "x = constant bool 0x2\n", "2:19: not a constant of dtype bool" },
        { HEADER "x = constant float16 0x12345\n", "2:22: not a constant of dtype float16" },
        { HEADER "x = constant float32 0x\n", "2:22: not a constant of dtype float32" },
        { HEADER "x = constant float32 0x1g\n", "2:22: not a constant of dtype float32" },
        { HEADER "x = constant float32 1.2.3\n", "2:22: not a constant of dtype float32" },
        { HEADER "name x\n", "2:6: expected '\"'" },
        { HEADER "name \"x\n", "2:8: expected '\"'" },
        { HEADER "name \"x\\n\"\n", "2:8: an unknown escape" },
        { HEADER "name \"x\\xZ0\"\n", "2:8: expected \\x and two digits" },
        { HEADER "name \"\\x00\"\n", "2:10: a name has" },
        { HEADER "name \"0123456789012345678901234567890123456789012345678901234567890123\"\n", "2:70: a name has" },
        { HEADER "x = input int8\ny = broadcast_to x\n", "3:18: expected '['" },
        { HEADER "x = input int8\ny = broadcast_to [2,] x\n", "3:21: expected an extent" },
        { HEADER "x = input int8\ny = broadcast_to [-1] x\n", "3:19: expected an extent" },
        { HEADER "x = input int8\ny = broadcast_to [9223372036854775808] x\n", "3:19: expected an extent" },
        { HEADER "x = input int8\ny = broadcast_to [1,1,1,1,1,1,1,1,1] x\n", "3:35: more than 8 dimensions" },
        { HEADER "x = input int8\ny = broadcast_to [1 2] x\n", "3:21: expected ']'" },
        { HEADER "x = input int8\ny = add x\n", "3:10: expected the name of a value" },
        { HEADER "output\n", "2:7: expected the name of a value" },
        { HEADER "x = input int8\ny = broadcast_like x\n", "3:21: expected the name of a value" },
        { HEADER "x = input int8\ny = add x z\noutput y\n", "3:11: no value has the name z" },
        { HEADER "y = abs x\nx = input int8\noutput y\n", "2:9: no value has the name x (a value is defined before it is used)" },
        { HEADER "output x\nx = input int8\n", "2:8: no value has the name x" },
        { HEADER "x = input int8\ny = lgamma x\n", "3:5: no primitive has the name lgamma" },
        { HEADER "x =\n", "2:4: no primitive has the name" },
        { HEADER "x = input int8\nx = abs x\noutput x\n", "3:1: the name x is already taken" },
        { HEADER "x = input int8\nx = input int8\noutput x\n", "3:1: the name x is already taken" },
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        check_fails(mistakes[i].text, strlen(mistakes[i].text), OL_ERROR_TEXT, mistakes[i].expected);
    check_fails("onelaunch graph 1\0\n", 19, OL_ERROR_TEXT, "1:18: expected the end of the line");
}

/* What the tracing functions refuse: their own status, and the line. */
static void test_refusals_of_tracing_name_the_line(void **state)
{
    (void)state;
    static const struct { const char *text; ol_status status; const char *expected; } refusals[] = {
        { HEADER "x = input float32\ny = bitwise_and x x\noutput y\n", OL_ERROR_DTYPE, "3: operands of float32; expected integers or bool" },
        { HEADER "x = input bool\n\ny = left_shift x x\noutput y\n", OL_ERROR_DTYPE, "4: operands of bool; expected integers" },
        { HEADER "x = input int8\ny = broadcast_to [4611686018427387904, 4] x\noutput y\n", OL_ERROR_SHAPE, "3: the shape has more elements" },
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        check_fails(refusals[i].text, strlen(refusals[i].text), refusals[i].status, refusals[i].expected);
}

/* A statement repeated up to a limit is fine; one more is refused with its line. */
static void check_limit(const char *before, const char *statement, int numbered, int limit, const char *after, const char *expected)
{
    for (int extra = 0; extra < 2; extra++) {
        char *text = malloc((size_t)limit * 40 + 200), *at = text;
        assert_non_null(text);
        at += sprintf(at, "%s", before);
        for (int i = 0; i < limit + extra; i++)
            at += numbered ? sprintf(at, "i%d = %s\n", i, statement) : sprintf(at, "%s\n", statement);
        at += sprintf(at, "%s", after);
        if (extra)
            check_fails(text, (size_t)(at - text), OL_ERROR_LIMIT, expected);
        else
            ol_composite_destroy(parse_bytes(text, (size_t)(at - text)));
        free(text);
    }
}

static void test_limits(void **state)
{
    (void)state;
    check_limit(HEADER, "input int8", 1, OL_MAX_INPUTS, "y = abs i7\noutput y\n", "16386: more than OL_MAX_INPUTS (16384) inputs");
    check_limit(HEADER "x = input int8\ny = abs x\n", "output y", 0, OL_MAX_OUTPUTS, "", "16388: more than OL_MAX_OUTPUTS (16384) outputs");
}

static void test_null_arguments(void **state)
{
    (void)state;
    ol_composite *c;
    ol_error error;
    assert_fails(ol_compile_text(NULL, "", 0, &c, &error), &error, OL_ERROR_ARGUMENT, "graph text", "NULL");
    assert_fails(ol_compile_text(level_device(0), NULL, 1, &c, &error), &error, OL_ERROR_ARGUMENT, "graph text", "NULL");
    assert_fails(ol_compile_text(level_device(0), "", 0, NULL, &error), &error, OL_ERROR_ARGUMENT, "graph text", "NULL");
    assert_int_equal(ol_compile_text(level_device(0), "x", 1, &c, NULL), OL_ERROR_TEXT);
}

/* What is computed from a node is looked at no deeper than it must be: a chain of copies would be the end of the stack. */
static int build_deep(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    ol_value x = in[0];
    for (int i = 0; i < 200000; i++)
        x = ol_broadcast_like(g, x, in[1]);
    out[0] = ol_add(g, x, in[2]);
    return 0;
}

static void test_kernel_text_of_a_deep_graph(void **state)
{
    (void)state;
    ol_composite *c = compile_on(level_device(0), build_deep, NULL, 3, DTYPES(OL_FLOAT32, OL_FLOAT32, OL_FLOAT32), 1);
    assert_true(ol_cuda_kernel_text(c, NULL, 0) > 200000);
    ol_composite_destroy(c);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest text[] = {
        cmocka_unit_test(test_random_graphs_round_trip),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_literals),
        cmocka_unit_test(test_literals_under_any_rounding),
        cmocka_unit_test(test_lengths_as_snprintf),
        cmocka_unit_test(test_each_mistake_is_named_with_its_place),
        cmocka_unit_test(test_refusals_of_tracing_name_the_line),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_null_arguments),
        cmocka_unit_test(test_kernel_text_of_a_deep_graph),
    };
    return HARNESS_RUN(argc, argv, text);
}
