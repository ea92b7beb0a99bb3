/* The passes: each does what its file says, seen in node counts, and changes no bit, seen by replaying what it leaves against
 * the graph as traced. */
#include "graph_cases.h"

#include "composite.h"
#include "trace.h"

#define BUILDER(name) static int name(ol_graph *g, const ol_value *in, ol_value *out, void *user)

typedef ol_status (*pass)(const graph *in, graph **out, ol_error *error);

static graph *trace(ol_build build, int32_t n_inputs, const ol_dtype *dtypes, int32_t n_outputs)
{
    ol_builder builder = { .build = build, .n_inputs = n_inputs, .n_outputs = n_outputs, .name = "subject" };
    graph *g = NULL;
    ol_error error;
    ol_allocator allocator = memory_allocator(NULL);
    assert_ok(trace_builder(&allocator, &builder, dtypes, &g, &error), &error);
    return g;
}

static size_t count_kind(const graph *g, node_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        n += g->nodes[i].kind == kind;
    return n;
}

/* Runs one pass and checks that it left its input alone and that its result is well formed. */
static graph *run_pass(pass p, const graph *in)
{
    graph *out = NULL;
    ol_error error;
    size_t n_nodes = in->n_nodes;
    assert_ok(p(in, &out, &error), &error);
    assert_int_equal(in->n_nodes, n_nodes);
    assert_ok(graph_verify(in, &error), &error);
    assert_ok(graph_verify(out, &error), &error);
    assert_int_equal(out->n_inputs, in->n_inputs);
    assert_int_equal(out->n_outputs, in->n_outputs);
    return out;
}

static size_t nodes_after(pass p, ol_build build, int32_t n_inputs, const ol_dtype *dtypes, int32_t n_outputs)
{
    graph *before = trace(build, n_inputs, dtypes, n_outputs), *after = run_pass(p, before);
    size_t n = after->n_nodes;
    graph_destroy(before);
    graph_destroy(after);
    return n;
}

/* ---- Folding ---- */

BUILDER(build_foldable)
{
    (void)user;
    ol_value two = ol_constant(g, OL_FLOAT32, 2), three = ol_constant(g, OL_FLOAT32, 3);
    out[0] = ol_add(g, in[0], ol_exp(g, ol_multiply(g, two, three)));
    out[1] = ol_astype(g, ol_sqrt(g, two), OL_BFLOAT16);
    return 0;
}

static void fold_computes_constants(void **state)
{
    (void)state;
    graph *traced = trace(build_foldable, 1, DTYPES(OL_FLOAT32), 2), *folded = run_pass(pass_fold, traced);
    assert_int_equal(count_kind(traced, NODE_PRIMITIVE), 4);
    assert_int_equal(count_kind(folded, NODE_PRIMITIVE), 1);   /* the add */
    int found = 0;
    for (size_t i = 0; i < folded->n_nodes; i++)
        found += folded->nodes[i].kind == NODE_CONSTANT && folded->nodes[i].payload == 0x43C9B6E3;       /* exp(6) */
    assert_int_equal(found, 1);
    /* Output 1 became a constant, so it is a copy of it. */
    const node *copy = &folded->nodes[folded->outputs[1]];
    assert_int_equal(copy->kind, NODE_ASTYPE);
    assert_int_equal(folded->nodes[copy->operands[0]].kind, NODE_CONSTANT);
    assert_int_equal(folded->nodes[copy->operands[0]].payload, 0x3FB5);
    graph_destroy(traced);
    graph_destroy(folded);
}

BUILDER(build_unfoldable)
{
    (void)user;
    ol_value zero = ol_constant(g, OL_FLOAT32, 0), one = ol_constant(g, OL_FLOAT32, 1), x = in[0];
    out[0] = ol_multiply(g, x, zero);
    out[1] = ol_subtract(g, x, x);
    out[2] = ol_add(g, x, zero);
    out[3] = ol_multiply(g, x, one);
    out[4] = ol_divide(g, x, x);
    out[5] = ol_negative(g, ol_negative(g, x));
    out[6] = ol_where(g, ol_constant(g, OL_BOOL, 1), x, zero);
    out[7] = ol_maximum(g, x, x);
    return 0;
}

static void nothing_algebraic_is_folded(void **state)
{
    (void)state;
    graph *traced = trace(build_unfoldable, 1, DTYPES(OL_FLOAT32), 8);
    static const pass passes[] = { pass_fold, pass_copy, pass_cse, pass_dce };
    for (size_t i = 0; i < COUNT(passes); i++) {
        graph *after = run_pass(passes[i], traced);
        assert_int_equal(count_kind(after, NODE_PRIMITIVE), count_kind(traced, NODE_PRIMITIVE));
        graph_destroy(traced);
        traced = after;
    }
    graph_destroy(traced);
    const uint64_t nan = 0x7FC00000, inf = 0x7F800000, minus = 0xFF800000, one = 0x3F800000;
    check_graph(build_unfoldable, NULL, 1, DTYPES(OL_FLOAT32), BITS(0x80000000, inf, minus, 0xFFA00001, 0xBF800000), 8,
                BITS(0x80000000, nan, nan, nan, 0x80000000,  0, nan, nan, nan, 0,  0, inf, minus, nan, 0xBF800000,  0x80000000, inf, minus, nan, 0xBF800000,
                     nan, nan, nan, nan, one,  0x80000000, inf, minus, nan, 0xBF800000,  0x80000000, inf, minus, nan, 0xBF800000,
                     0x80000000, inf, minus, nan, 0xBF800000), 5);
}

/* ---- Copies ---- */

BUILDER(build_copies)
{
    (void)user;
    ol_value x = ol_astype(g, ol_astype(g, in[0], OL_FLOAT32), OL_FLOAT32);
    out[0] = ol_exp(g, x);
    out[1] = x;                                                /* of an input: this one stays */
    out[2] = ol_astype(g, out[0], OL_FLOAT32);                 /* of a computed value: goes */
    out[3] = ol_astype(g, ol_astype(g, in[0], OL_FLOAT16), OL_FLOAT32);        /* no copies: two roundings */
    return 0;
}

static void copy_skips_copies_and_keeps_roundings(void **state)
{
    (void)state;
    graph *traced = trace(build_copies, 1, DTYPES(OL_FLOAT32), 4), *after = run_pass(pass_copy, traced), *live = run_pass(pass_dce, after);
    assert_int_equal(count_kind(traced, NODE_ASTYPE), 5);
    assert_int_equal(count_kind(live, NODE_ASTYPE), 3);        /* output 1's copy, and the pair */
    assert_int_equal(live->outputs[0], live->outputs[2]);
    assert_int_equal(live->nodes[live->nodes[live->outputs[0]].operands[0]].kind, NODE_INPUT);
    graph_destroy(traced);
    graph_destroy(after);
    graph_destroy(live);
    check_graph(build_copies, NULL, 1, DTYPES(OL_FLOAT32), BITS(0x3E89CCD5, 0xFFA00001), 4,
                BITS(0x3FA7880E, 0x7FC00000,  0x3E89CCD5, 0x7FC00000,  0x3FA7880E, 0x7FC00000,  0x3E89C000, 0x7FC00000), 2);
}

/* ---- Common subexpressions ---- */

BUILDER(build_common)
{
    (void)user;
    ol_value a = ol_exp(g, ol_add(g, in[0], in[1])), b = ol_exp(g, ol_add(g, in[0], in[1]));
    out[0] = ol_multiply(g, a, b);
    out[1] = b;
    out[2] = ol_exp(g, ol_add(g, in[1], in[0]));               /* the other order is another node: nothing is commuted */
    return 0;
}

static void cse_merges_equal_nodes(void **state)
{
    (void)state;
    assert_int_equal(nodes_after(pass_cse, build_common, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 3), 2 + 2 + 1 + 2);
}

static const uint32_t distinct_constants[] = { 0x00000000, 0x80000000, 0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7FA00001, 0x7F800001 };

BUILDER(build_distinct_constants)
{
    (void)user;
    for (size_t i = 0; i < COUNT(distinct_constants); i++)
        for (int twice = 0; twice < 2; twice++)
            out[2 * i + (size_t)twice] = ol_broadcast_like(g, ol_constant_bits(g, OL_FLOAT32, &distinct_constants[i]), in[0]);
    return 0;
}

static void cse_keeps_constants_of_different_bits_apart(void **state)
{
    (void)state;
    enum { N = COUNT(distinct_constants) };
    graph *traced = trace(build_distinct_constants, 1, DTYPES(OL_FLOAT32), 2 * N), *after = run_pass(pass_cse, traced);
    assert_int_equal(count_kind(traced, NODE_CONSTANT), 2 * N);
    assert_int_equal(count_kind(after, NODE_CONSTANT), N);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(after->outputs[2 * i], after->outputs[2 * i + 1]);
        const node *constant = &after->nodes[after->nodes[after->outputs[2 * i]].operands[0]];
        assert_int_equal(constant->payload, distinct_constants[i]);
    }
    graph_destroy(traced);
    graph_destroy(after);
}

BUILDER(build_same_bits_other_dtype)
{
    (void)user;
    out[0] = ol_broadcast_like(g, ol_constant(g, OL_UINT16, 0), in[0]);
    out[1] = ol_broadcast_like(g, ol_constant(g, OL_FLOAT16, 0), in[0]);
    out[2] = ol_astype(g, in[0], OL_FLOAT16);
    out[3] = ol_astype(g, in[0], OL_BFLOAT16);
    out[4] = ol_broadcast_to(g, in[0], 1, SHAPE(3));
    out[5] = ol_broadcast_to(g, in[0], 2, SHAPE(1, 3));
    return 0;
}

static void cse_looks_at_dtypes_and_shapes(void **state)
{
    (void)state;
    assert_int_equal(nodes_after(pass_cse, build_same_bits_other_dtype, 1, DTYPES(OL_FLOAT32), 6), 1 + 2 + 2 + 2 + 2);
}

/* ---- Dead code ---- */

BUILDER(build_dead)
{
    (void)user;
    ol_value dead = ol_log(g, ol_exp(g, in[1]));
    (void)ol_add(g, dead, ol_constant(g, OL_FLOAT32, 9));
    out[0] = ol_sqrt(g, in[0]);
    return 0;
}

static void dce_removes_what_no_output_needs(void **state)
{
    (void)state;
    assert_int_equal(nodes_after(pass_dce, build_dead, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 1), 2 + 1);
    /* Inputs stay, as they are the signature; dead nodes are no launches of the composed path either. */
    ol_composite *c = compile_on(level_device(0), build_dead, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 1);
    assert_int_equal(ol_composite_input_count(c), 2);
    assert_int_equal(ol_composite_composed_launches(c), 1);
    ol_composite_destroy(c);
}

/* The composed path runs the graph as traced: equal nodes, copies and foldable ones are launches there. */
/* ---- Softplus ---- */

/* user: 0 logaddexp(x, +0), 1 logaddexp(+0, x), 2 logaddexp(x, -0) */
BUILDER(build_logaddexp_zero)
{
    int form = (int)(intptr_t)user;
    ol_value zero = ol_constant(g, ol_value_dtype(g, in[0]), form == 2 ? -0.0 : 0.0);
    out[0] = form == 1 ? ol_logaddexp(g, zero, in[0]) : ol_logaddexp(g, in[0], zero);
    return 0;
}

static void logaddexp_of_plus_zero_is_softplus(void **state)
{
    (void)state;
    static const ol_dtype dtypes[] = { OL_FLOAT16, OL_BFLOAT16, OL_FLOAT32 };
    for (int t = 0; t < 3; t++)
        for (intptr_t form = 0; form < 3; form++) {
            ol_builder builder = { .build = build_logaddexp_zero, .user = (void *)form, .n_inputs = 1, .n_outputs = 1, .name = "subject" };
            for (size_t level = 0; level < level_count(); level++) {
                ol_composite *c = NULL;
                ol_error error;
                assert_ok(ol_compile(level_device(level), &builder, &dtypes[t], &c, &error), &error);
                const node *last = &c->optimized->nodes[c->optimized->outputs[0]];
                assert_int_equal(last->primitive, form == 2 ? PRIMITIVE_logaddexp : PRIMITIVE_softplus);
                /* Every 16-bit input; as many of float32, in steps that reach every exponent. */
                enum { N = 65536 };
                static uint32_t x[N], replayed[N], composed[N];
                for (uint32_t i = 0; i < N; i++)
                    if (dtypes[t] == OL_FLOAT32)
                        x[i] = i * 65537u;
                    else
                        ((uint16_t *)x)[i] = (uint16_t)i;
                ol_tensor in = vector_of(x, dtypes[t], N), out = vector_of(replayed, dtypes[t], N), reference = vector_of(composed, dtypes[t], N);
                assert_ok(ol_replay(c, NULL, &in, &out, &error), &error);
                assert_ok(ol_replay_composed(c, NULL, &in, &reference, &error), &error);
                assert_memory_equal(replayed, composed, N * ol_dtype_size(dtypes[t]));
                ol_composite_destroy(c);
            }
        }
}

static void composed_launches_are_those_traced(void **state)
{
    (void)state;
    ol_composite *c = compile_on(level_device(0), build_common, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 3);
    assert_int_equal(ol_composite_composed_launches(c), 7);
    assert_int_equal(c->optimized->n_nodes, 7);                /* 2 inputs, 5 nodes */
    ol_composite_destroy(c);
    c = compile_on(level_device(0), build_foldable, NULL, 1, DTYPES(OL_FLOAT32), 2);
    assert_int_equal(ol_composite_composed_launches(c), 5);
    ol_composite_destroy(c);
}

/* ---- All of them, on random graphs ---- */

/* Nodes of any primitive on any earlier values, constants among them, so that there is much to fold and to merge. */
BUILDER(build_random)
{
    enum { N = 40 };
    ol_value values[N + 3];
    int n = 0;
    uint64_t random = *(const uint64_t *)user;
    for (int i = 0; i < 3; i++)
        values[n++] = in[i];
    while (n < N) {
        uint64_t choice = random_below(&random, 10);
        ol_value operands[3], v;
        for (int k = 0; k < 3; k++)
            operands[k] = values[n - 1 - (int)random_below(&random, (uint64_t)(n < 8 ? n : 8))];
        if (choice == 0) {
            ol_dtype dtype = (ol_dtype)random_below(&random, OL_DTYPE_COUNT);
            uint64_t bits = random_element(&random, dtype);
            v = ol_constant_bits(g, dtype, &bits);
        } else if (choice == 1)
            v = ol_astype(g, operands[0], (ol_dtype)random_below(&random, OL_DTYPE_COUNT));
        else {
            int32_t p = (int32_t)random_below(&random, (uint64_t)ol_primitive_count());
            ol_dtype common = ol_value_dtype(g, operands[0]), ignored;
            for (int k = 1; k < ol_primitive_arity(p); k++)
                common = ol_promote(common, ol_value_dtype(g, operands[k]));
            if (!ol_primitive_result(p, common, &ignored) || !ol_primitive_result(p, ol_value_dtype(g, operands[1]), &ignored))
                continue;
            v = ol_apply(g, p, operands, ol_primitive_arity(p));
        }
        values[n++] = v;
    }
    for (int i = 0; i < 4; i++)
        out[i] = values[n - 1 - i * 7];
    return 0;
}

static void passes_change_no_bit(void **state)
{
    (void)state;
    enum { LENGTH = 37 };
    uint64_t random = harness_seed, data[3][LENGTH], results[2][4][LENGTH];
    size_t n_removed = 0;
    for (int round = 0; round < 300; round++) {
        uint64_t graph_seed = random_next(&random);
        ol_dtype dtypes[3];
        ol_tensor in[3], out[4];
        for (int i = 0; i < 3; i++) {
            dtypes[i] = (ol_dtype)random_below(&random, OL_DTYPE_COUNT);
            random_fill(&random, data[i], dtypes[i], LENGTH);
            in[i] = vector_of(data[i], dtypes[i], LENGTH);
        }
        ol_device *device = level_device((size_t)round % level_count());
        ol_composite *c = compile_on(device, build_random, &graph_seed, 3, dtypes, 4);
        n_removed += c->traced->n_nodes - (c->optimized->n_nodes < c->traced->n_nodes ? c->optimized->n_nodes : c->traced->n_nodes);
        ol_error error;
        assert_ok(ol_output_shapes(c, in, out, &error), &error);
        memset(results, 0xA5, sizeof results);
        for (int path = 0; path < 2; path++) {
            for (int o = 0; o < 4; o++)
                out[o].data = results[path][o];
            assert_ok(replay_paths[path](c, NULL, in, out, &error), &error);
        }
        if (memcmp(results[0], results[1], sizeof results[0]) != 0) {
            char text[8000];
            ol_composite_text(c, OL_TEXT_GRAPH, text, sizeof text);
            fail_msg("round %d of seed %llu at %s: replay and composed path differ\n%s", round, (unsigned long long)harness_seed, ol_device_level(device), text);
        }
        ol_composite_destroy(c);
    }
    assert_true(n_removed > 100);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fold_computes_constants), cmocka_unit_test(nothing_algebraic_is_folded), cmocka_unit_test(copy_skips_copies_and_keeps_roundings),
        cmocka_unit_test(cse_merges_equal_nodes), cmocka_unit_test(cse_keeps_constants_of_different_bits_apart),
        cmocka_unit_test(cse_looks_at_dtypes_and_shapes), cmocka_unit_test(dce_removes_what_no_output_needs),
        cmocka_unit_test(logaddexp_of_plus_zero_is_softplus), cmocka_unit_test(composed_launches_are_those_traced), cmocka_unit_test(passes_change_no_bit),
    };
    return HARNESS_RUN(argc, argv, tests);
}
