/* Tracing: the functions a builder calls, and the run of a builder.
 *
 * The builder is sticky: an invalid value in gives an invalid value out and the first error is kept, so that a builder reads
 * like the formula. Values carry the serial of their trace, so a value kept from another graph is recognised. Conversions that
 * promotion asks for are written into the graph as astype nodes: they are rounding steps, and the composed path runs them. */
#include "trace.h"

#include "dtype.h"
#include "status.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const ol_value invalid = { 0, 0 };

static ol_value trace_fail(ol_graph *t, ol_status status, const char *operation, const char *description)
{
    if (!t->failed) {
        t->failed = 1;
        fail(&t->error, status, operation, "%s", description);
    }
    return invalid;
}

/* The same with a number in the text: `format` has one %d. */
__attribute__((format(printf, 4, 0)))
static ol_value trace_fail_number(ol_graph *t, ol_status status, const char *operation, const char *format, int number)
{
    char text[120];
    snprintf(text, sizeof text, format, number);
    return trace_fail(t, status, operation, text);
}

static ol_value value_of(const ol_graph *t, uint32_t index)
{
    return (ol_value){ index, t->serial };
}

static ol_value append(ol_graph *t, const node *n)
{
    if (t->failed)
        return invalid;
    if (t->g->n_nodes >= OL_MAX_NODES) {
        char text[80];
        snprintf(text, sizeof text, "the graph has more than OL_MAX_NODES (%d) nodes", OL_MAX_NODES);
        return trace_fail(t, OL_ERROR_LIMIT, node_name(n), text);
    }
    uint32_t index = graph_append(t->g, n);
    if (index == NODE_NONE)
        return trace_fail(t, OL_ERROR_MEMORY, node_name(n), "no memory for a node");
    return value_of(t, index);
}

/* Whether every operand is a value of this graph; if not, the graph fails in the name of `operation`. */
static int operands_valid(ol_graph *t, const char *operation, const ol_value *operands, int32_t n)
{
    if (!t || t->failed)
        return 0;
    for (int32_t i = 0; i < n; i++) {
        char text[120];
        if (operands[i].graph == t->serial && operands[i].node < t->g->n_nodes)
            continue;
        snprintf(text, sizeof text, operands[i].graph == 0 ? "operand %d is an invalid value: it was never set" :
                 "operand %d is a value of another graph; a value lives while its own builder runs", (int)i + 1);
        trace_fail(t, OL_ERROR_BUILDER, operation, text);
        return 0;
    }
    return 1;
}

ol_dtype ol_value_dtype(const ol_graph *t, ol_value v)
{
    return t && v.graph == t->serial && v.node < t->g->n_nodes ? graph_dtype(t->g, v.node) : OL_FLOAT32;
}

void ol_graph_fail(ol_graph *t, const char *operation, const char *description)
{
    if (t)
        trace_fail(t, OL_ERROR_BUILDER, operation ? operation : "builder", description ? description : "the builder failed");
}

ol_value ol_constant_bits(ol_graph *t, ol_dtype dtype, const void *bits)
{
    if (!t)
        return invalid;
    if (!dtype_valid(dtype))
        return trace_fail_number(t, OL_ERROR_DTYPE, "constant", "%d is not a dtype", (int)dtype);
    if (!bits)
        return trace_fail(t, OL_ERROR_ARGUMENT, "constant", "bits is NULL");
    node n = { .kind = NODE_CONSTANT, .dtype = (uint8_t)dtype };
    memcpy(&n.payload, bits, dtype_sizes[dtype]);        /* little-endian, as every supported machine is */
    if (dtype == OL_BOOL)
        n.payload = n.payload != 0;
    return append(t, &n);
}

ol_value ol_constant(ol_graph *t, ol_dtype dtype, double value)
{
    uint64_t bits = dtype_valid(dtype) ? dtype_from_double(dtype, value) : 0;
    return ol_constant_bits(t, dtype, &bits);
}

static ol_value convert(ol_graph *t, ol_value x, ol_dtype dtype)
{
    if (t->failed || graph_dtype(t->g, x.node) == dtype)
        return t->failed ? invalid : x;
    node n = { .kind = NODE_ASTYPE, .dtype = (uint8_t)dtype, .n_operands = 1, .operands = { x.node } };
    return append(t, &n);
}

ol_value ol_astype(ol_graph *t, ol_value x, ol_dtype dtype)
{
    if (!operands_valid(t, "astype", &x, 1))
        return invalid;
    if (!dtype_valid(dtype))
        return trace_fail_number(t, OL_ERROR_DTYPE, "astype", "the target %d is not a dtype", (int)dtype);
    node n = { .kind = NODE_ASTYPE, .dtype = (uint8_t)dtype, .n_operands = 1, .operands = { x.node } };
    return append(t, &n);
}

ol_value ol_broadcast_like(ol_graph *t, ol_value x, ol_value like)
{
    if (!operands_valid(t, "broadcast_like", (ol_value[]){ x, like }, 2))
        return invalid;
    node n = { .kind = NODE_BROADCAST_LIKE, .dtype = t->g->nodes[x.node].dtype, .n_operands = 2, .operands = { x.node, like.node } };
    return append(t, &n);
}

ol_value ol_broadcast_to(ol_graph *t, ol_value x, int32_t rank, const int64_t *dims)
{
    if (!operands_valid(t, "broadcast_to", &x, 1))
        return invalid;
    if (rank < 0 || rank > OL_MAX_RANK)
        return trace_fail_number(t, OL_ERROR_ARGUMENT, "broadcast_to", "the rank is %d; expected 0 to 8", (int)rank);
    if (rank > 0 && !dims)
        return trace_fail(t, OL_ERROR_ARGUMENT, "broadcast_to", "the shape is NULL");
    shape s = { .rank = rank };
    for (int32_t d = 0; d < rank; d++)
        s.dims[d] = dims[d];
    for (int32_t d = 0; d < rank; d++)
        if (dims[d] < 0)
            return trace_fail_number(t, OL_ERROR_SHAPE, "broadcast_to", "axis %d of the shape is not within 0 to 2^63 - 1", (int)d);
    if (shape_elements(rank, s.dims) < 0)
        return trace_fail(t, OL_ERROR_SHAPE, "broadcast_to", "the shape has more elements than 63 bits count");
    size_t index = 0;
    while (index < t->g->n_shapes && memcmp(&t->g->shapes[index], &s, sizeof s) != 0)     /* equal shapes are one */
        index++;
    if (index == t->g->n_shapes && !graph_append_shape(t->g, &s, &index))
        return trace_fail(t, OL_ERROR_MEMORY, "broadcast_to", "no memory for a shape");
    node n = { .kind = NODE_BROADCAST_TO, .dtype = t->g->nodes[x.node].dtype, .n_operands = 1, .operands = { x.node }, .payload = index };
    return append(t, &n);
}

static ol_value apply(ol_graph *t, primitive p, const ol_value *operands)
{
    const primitive_info *info = &primitive_table[p];
    if (!operands_valid(t, info->name, operands, info->arity))
        return invalid;
    int first = info->rule == RULE_WHERE;                 /* where's condition is bool, whatever the rest */
    ol_dtype common = graph_dtype(t->g, operands[first].node), in, out;
    for (int i = first + 1; i < info->arity; i++)
        common = ol_promote(common, graph_dtype(t->g, operands[i].node));
    if (!primitive_types(p, common, &in, &out)) {
        char text[120];
        const char *expected = info->rule == RULE_SHIFT ? "integers" : "integers or bool";
        ol_dtype one = graph_dtype(t->g, operands[0].node), other = graph_dtype(t->g, operands[info->arity - 1].node);
        if (one != other)
            snprintf(text, sizeof text, "operands of %s and %s; expected %s", ol_dtype_name(one), ol_dtype_name(other), expected);
        else
            snprintf(text, sizeof text, "operands of %s; expected %s", ol_dtype_name(common), expected);
        return trace_fail(t, OL_ERROR_DTYPE, info->name, text);
    }
    node n = { .kind = NODE_PRIMITIVE, .primitive = (uint8_t)p, .dtype = (uint8_t)out, .n_operands = info->arity };
    for (int i = 0; i < info->arity; i++)
        n.operands[i] = convert(t, operands[i], i < first ? OL_BOOL : in).node;
    return append(t, &n);
}

ol_value ol_apply(ol_graph *t, int32_t p, const ol_value *operands, int32_t n_operands)
{
    if (!t)
        return invalid;
    if (p < 0 || p >= PRIMITIVE_COUNT)
        return trace_fail_number(t, OL_ERROR_ARGUMENT, "apply", "%d is not the number of a primitive", (int)p);
    if (!operands || n_operands != primitive_table[p].arity) {
        char text[120];
        snprintf(text, sizeof text, operands ? "%d operands were given; it takes %d" : "operands is NULL", (int)n_operands, primitive_table[p].arity);
        return trace_fail(t, OL_ERROR_ARGUMENT, primitive_table[p].name, text);
    }
    return apply(t, (primitive)p, operands);
}

#define ARITY_1(name) \
    ol_value ol_##name(ol_graph *t, ol_value x) { return apply(t, PRIMITIVE_##name, (ol_value[]){ x }); }
#define ARITY_2(name) \
    ol_value ol_##name(ol_graph *t, ol_value x, ol_value y) { return apply(t, PRIMITIVE_##name, (ol_value[]){ x, y }); }
#define ARITY_3(name) \
    ol_value ol_##name(ol_graph *t, ol_value x, ol_value y, ol_value z) { return apply(t, PRIMITIVE_##name, (ol_value[]){ x, y, z }); }
#define PRIMITIVE(name, arity, rule, cost) ARITY_##arity(name)
#include "primitives.def"
#undef PRIMITIVE

ol_status trace_begin(ol_graph *t, const ol_allocator *allocator, int32_t n_inputs, const ol_dtype *input_dtypes, int32_t n_outputs,
                      const char *name, ol_error *error)
{
    static atomic_uint serials;
    *t = (ol_graph){ 0 };
    do
        t->serial = atomic_fetch_add(&serials, 1) + 1;
    while (t->serial == 0);
    ol_status status = graph_create(allocator, n_inputs, n_outputs, name, &t->g, error);
    for (int32_t i = 0; status == OL_OK && i < n_inputs; i++) {
        node n = { .kind = NODE_INPUT, .dtype = (uint8_t)input_dtypes[i], .payload = (uint64_t)i };
        if (!dtype_valid(input_dtypes[i]))
            status = fail(error, OL_ERROR_DTYPE, "compile", "input %d: %d is not a dtype", (int)i, (int)input_dtypes[i]);
        else if (graph_append(t->g, &n) == NODE_NONE)
            status = fail(error, OL_ERROR_MEMORY, "compile", "no memory for %d inputs", (int)n_inputs);
    }
    if (status != OL_OK)
        trace_abandon(t);
    return status;
}

ol_value trace_input(const ol_graph *t, int32_t index)
{
    return value_of(t, (uint32_t)index);
}

void trace_abandon(ol_graph *t)
{
    graph_destroy(t->g);
    t->g = NULL;
}

ol_status trace_end(ol_graph *t, const ol_value *outputs, graph **g, ol_error *error)
{
    for (int32_t i = 0; i < t->g->n_outputs && !t->failed; i++) {
        char text[120];
        ol_value v = outputs[i];
        if (v.graph != t->serial || v.node >= t->g->n_nodes) {
            snprintf(text, sizeof text, v.graph == 0 ? "the builder did not set output %d" : "output %d is a value of another graph", (int)i);
            trace_fail(t, OL_ERROR_BUILDER, t->g->name, text);
            break;
        }
        if (t->g->nodes[v.node].kind <= NODE_CONSTANT)    /* an input or constant that is an output unchanged is a copy */
            v = ol_astype(t, v, graph_dtype(t->g, v.node));
        t->g->outputs[i] = v.node;
    }
    if (t->failed) {
        ol_error e = t->error;
        trace_abandon(t);
        return fail(error, e.status, e.operation, "%s", e.description);
    }
    *g = t->g;
    t->g = NULL;
    return OL_OK;
}

ol_status trace_builder(const ol_allocator *allocator, const ol_builder *builder, const ol_dtype *input_dtypes, graph **g, ol_error *error)
{
    if (!builder || !builder->build)
        return fail(error, OL_ERROR_ARGUMENT, "compile", "the builder, or its build function, is NULL");
    const char *name = builder->name ? builder->name : "composite";
    if (builder->n_inputs < 0 || builder->n_outputs < 1)
        return fail(error, OL_ERROR_ARGUMENT, name, "%d inputs and %d outputs; expected 0 or more and 1 or more",
                    (int)builder->n_inputs, (int)builder->n_outputs);
    if (builder->n_inputs > OL_MAX_INPUTS || builder->n_outputs > OL_MAX_OUTPUTS)
        return fail(error, OL_ERROR_LIMIT, name, "%d inputs and %d outputs; the limits are OL_MAX_INPUTS (%d) and OL_MAX_OUTPUTS (%d)",
                    (int)builder->n_inputs, (int)builder->n_outputs, OL_MAX_INPUTS, OL_MAX_OUTPUTS);
    if (builder->n_inputs > 0 && !input_dtypes)
        return fail(error, OL_ERROR_ARGUMENT, name, "input_dtypes is NULL");

    size_t n_values = (size_t)builder->n_inputs + (size_t)builder->n_outputs;
    ol_value *values = memory_take(allocator, n_values * sizeof *values);
    if (!values)
        return fail(error, OL_ERROR_MEMORY, name, "no memory for %zu values", n_values);
    ol_graph t;
    ol_status status = trace_begin(&t, allocator, builder->n_inputs, input_dtypes, builder->n_outputs, name, error);
    if (status == OL_OK) {
        ol_value *outputs = values + builder->n_inputs;
        for (int32_t i = 0; i < builder->n_inputs; i++)
            values[i] = trace_input(&t, i);
        int code = builder->build(&t, values, outputs, builder->user);
        if (code == 0)
            status = trace_end(&t, outputs, g, error);
        else {
            status = fail(error, OL_ERROR_BUILDER, name, t.failed ? "the builder returned %d after a failure in %s: %s" : "the builder returned %d",
                          code, t.error.operation, t.error.description);
            if (error)
                error->code = code;
            trace_abandon(&t);
        }
    }
    memory_give(allocator, values, n_values * sizeof *values);
    return status;
}
