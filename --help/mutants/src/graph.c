/* The graph container. */
#include "graph.h"

#include "status.h"

#include <stdio.h>

ol_status graph_create(const ol_allocator *allocator, int32_t n_inputs, int32_t n_outputs, const char *name, graph **out, ol_error *error)
{
    graph *g = memory_take(allocator, sizeof *g);
    if (!g)
        return fail(error, OL_ERROR_MEMORY, "compile", "no memory for a graph");
    g->allocator = *allocator;
    g->n_inputs = n_inputs;
    g->n_outputs = n_outputs;
    snprintf(g->name, sizeof g->name, "%s", name ? name : "composite");
    g->outputs = memory_take(allocator, memory_size((size_t)n_outputs, sizeof *g->outputs));
    if (!g->outputs) {
        graph_destroy(g);
        return fail(error, OL_ERROR_MEMORY, "compile", "no memory for %d outputs", (int)n_outputs);
    }
    *out = g;
    return OL_OK;
}

void graph_destroy(graph *g)
{
    if (!g)
        return;
    ol_allocator allocator = g->allocator;
    memory_give(&allocator, g->nodes, g->nodes_capacity * sizeof *g->nodes);
    memory_give(&allocator, g->shapes, g->shapes_capacity * sizeof *g->shapes);
    memory_give(&allocator, g->outputs, (size_t)g->n_outputs * sizeof *g->outputs);
    memory_give(&allocator, g, sizeof *g);
}

uint32_t graph_append(graph *g, const node *n)
{
    if (!memory_grow(&g->allocator, (void **)&g->nodes, &g->nodes_capacity, g->n_nodes + 1, sizeof *g->nodes))
        return NODE_NONE;
    g->nodes[g->n_nodes] = *n;
    return (uint32_t)g->n_nodes++;
}

int graph_append_shape(graph *g, const shape *s, size_t *index)
{
    if (!memory_grow(&g->allocator, (void **)&g->shapes, &g->shapes_capacity, g->n_shapes + 1, sizeof *g->shapes))
        return 0;
    g->shapes[g->n_shapes] = *s;
    *index = g->n_shapes++;
    return 1;
}

const char *node_name(const node *n)
{
    switch ((node_kind)n->kind) {
    case NODE_INPUT: return "input";
    case NODE_CONSTANT: return "constant";
    case NODE_PRIMITIVE: return primitive_table[n->primitive].name;
    case NODE_ASTYPE: return "astype";
    case NODE_BROADCAST_LIKE: return "broadcast_like";
    case NODE_BROADCAST_TO: return "broadcast_to";
    }
    return "?";
}
