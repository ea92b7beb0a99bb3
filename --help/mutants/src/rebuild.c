/* What the passes share. */
#include "rebuild.h"

#include "status.h"

#include <string.h>

static ol_status no_memory(const graph *in, ol_error *error)
{
    return fail(error, OL_ERROR_MEMORY, in->name, "no memory for a graph of %zu nodes", in->n_nodes);
}

ol_status rebuild_begin(rebuild *r, const graph *in, ol_error *error)
{
    *r = (rebuild){ .in = in };
    ol_status status = graph_create(&in->allocator, in->n_inputs, in->n_outputs, in->name, &r->out, error);
    if (status != OL_OK)
        return status;
    graph *g = r->out;
    if (!memory_grow(&g->allocator, (void **)&g->nodes, &g->nodes_capacity, in->n_nodes, sizeof *g->nodes) ||
        !memory_grow(&g->allocator, (void **)&g->shapes, &g->shapes_capacity, in->n_shapes, sizeof *g->shapes) ||
        !(r->map = memory_take(&g->allocator, memory_size(in->n_nodes, sizeof *r->map)))) {
        graph_destroy(g);
        return no_memory(in, error);
    }
    if (in->n_shapes)
        memcpy(g->shapes, in->shapes, in->n_shapes * sizeof *g->shapes);
    g->n_shapes = in->n_shapes;
    return OL_OK;
}

node rebuild_translate(const rebuild *r, uint32_t old)
{
    node n = r->in->nodes[old];
    for (int i = 0; i < n.n_operands; i++)
        n.operands[i] = r->map[n.operands[i]];
    return n;
}

ol_status rebuild_append(rebuild *r, uint32_t old, const node *n, ol_error *error)
{
    uint32_t index = graph_append(r->out, n);
    if (index == NODE_NONE)
        return no_memory(r->in, error);
    r->map[old] = index;
    return OL_OK;
}

ol_status rebuild_end(rebuild *r, ol_status status, graph **out, ol_error *error)
{
    for (int32_t i = 0; status == OL_OK && i < r->in->n_outputs; i++) {
        uint32_t index = r->map[r->in->outputs[i]];
        if (r->out->nodes[index].kind <= NODE_CONSTANT) {          /* an output that became a constant is a copy of it */
            node copy = { .kind = NODE_ASTYPE, .dtype = r->out->nodes[index].dtype, .n_operands = 1, .operands = { index } };
            index = graph_append(r->out, &copy);
            if (index == NODE_NONE)
                status = no_memory(r->in, error);
        }
        r->out->outputs[i] = index;
    }
    memory_give(&r->out->allocator, r->map, r->in->n_nodes * sizeof *r->map);
    if (status == OL_OK)
        status = graph_verify(r->out, error);
    if (status == OL_OK)
        *out = r->out;
    else
        graph_destroy(r->out);
    return status;
}

ol_status rebuild_run(const graph *in, rebuild_rewrite rewrite, graph **out, ol_error *error)
{
    rebuild r;
    ol_status status = rebuild_begin(&r, in, error);
    if (status != OL_OK)
        return status;
    for (uint32_t i = 0; status == OL_OK && i < in->n_nodes; i++) {
        node n = rebuild_translate(&r, i);
        if (rewrite(&r, i, &n))
            status = rebuild_append(&r, i, &n, error);
    }
    return rebuild_end(&r, status, out, error);
}
