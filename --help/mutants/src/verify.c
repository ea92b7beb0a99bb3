/* The graph verifier, run after tracing and after every pass. What it reports is a bug of the library. */
#include "dtype.h"
#include "graph.h"
#include "status.h"

static const char *node_fault(const graph *g, uint32_t index)
{
    const node *n = &g->nodes[index];
    ol_dtype operand_dtypes[3] = { 0 }, in, out;
    if (!dtype_valid((ol_dtype)n->dtype))
        return "its dtype";
    if (n->n_operands > 3)
        return "its operand count";
    for (int i = 0; i < n->n_operands; i++) {
        if (n->operands[i] >= index)
            return "an operand that does not come before it";
        operand_dtypes[i] = graph_dtype(g, n->operands[i]);
    }
    if ((n->kind == NODE_INPUT) != (index < (uint32_t)g->n_inputs))
        return "an input out of place";
    switch ((node_kind)n->kind) {
    case NODE_INPUT:
        return n->payload == index && n->n_operands == 0 ? NULL : "its index";
    case NODE_CONSTANT:
        return n->n_operands == 0 && (dtype_sizes[n->dtype] == 8 || n->payload >> (8 * dtype_sizes[n->dtype]) == 0) ? NULL : "its bits";
    case NODE_ASTYPE:
        return n->n_operands == 1 ? NULL : "its operand count";
    case NODE_BROADCAST_LIKE:
        return n->n_operands == 2 && operand_dtypes[0] == (ol_dtype)n->dtype ? NULL : "its operands";
    case NODE_BROADCAST_TO:
        return n->n_operands == 1 && operand_dtypes[0] == (ol_dtype)n->dtype && n->payload < g->n_shapes ? NULL : "its operands";
    case NODE_PRIMITIVE: {
        if (n->primitive >= PRIMITIVE_COUNT || n->n_operands != primitive_table[n->primitive].arity)
            return "its arity";
        int first = primitive_table[n->primitive].rule == RULE_WHERE;
        if (first && operand_dtypes[0] != OL_BOOL)
            return "a condition that is not bool";
        if (!primitive_types((primitive)n->primitive, operand_dtypes[first], &in, &out) || in != operand_dtypes[first] ||
            out != (ol_dtype)n->dtype)
            return "its types";
        for (int i = first + 1; i < n->n_operands; i++)
            if (operand_dtypes[i] != in)
                return "operands of different dtypes";
        return NULL;
    }
    }
    return "its kind";
}

ol_status graph_verify(const graph *g, ol_error *error)
{
    if (g->n_nodes < (size_t)g->n_inputs)
        return fail(error, OL_ERROR_ARGUMENT, g->name, "internal: the graph has fewer nodes than inputs");
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const char *fault = node_fault(g, i);
        if (fault)
            return fail(error, OL_ERROR_ARGUMENT, node_name(&g->nodes[i]), "internal: node %u violates the graph's rules: %s", i, fault);
    }
    for (int32_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] >= g->n_nodes || g->nodes[g->outputs[i]].kind <= NODE_CONSTANT)
            return fail(error, OL_ERROR_ARGUMENT, g->name, "internal: output %d is no computed node", (int)i);
    return OL_OK;
}
