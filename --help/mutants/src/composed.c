/* The composed path: the reference of the parity contract. Each node of the graph as traced is run by itself, as a composite of
 * one primitive: one launch, its operands read from memory and its result stored in its own dtype, in a block of its own.
 * Outputs are copied to the caller at the end, so that an in-place output cannot disturb a later node. */
#include "composite.h"
#include "dtype.h"
#include "status.h"

typedef struct run {
    const ol_composite *c;
    ol_stream stream;
    ol_tensor *tensors;           /* by node */
    uint32_t *last_use;           /* by node; outputs: NODE_NONE */
} run;

static int is_computed(const node *n)
{
    return n->kind > NODE_CONSTANT;
}

static size_t tensor_bytes(const ol_tensor *t)
{
    int64_t n = shape_elements(t->rank, t->shape);
    return n < 0 ? SIZE_MAX : memory_size((size_t)n, dtype_sizes[t->dtype]);
}

/* The composite of one node: its operands are the inputs. Equal operands are separate inputs over the same memory. */
static ol_status composite_of_node(const ol_composite *c, const node *n, ol_composite **single, ol_error *error)
{
    graph *g;
    ol_status status = graph_create(&c->device->allocator, n->n_operands, 1, node_name(n), &g, error);
    if (status != OL_OK)
        return status;
    node copy = *n;
    int ok = 1;
    for (int k = 0; k < n->n_operands; k++) {
        node input = { .kind = NODE_INPUT, .dtype = c->traced->nodes[n->operands[k]].dtype, .payload = (uint64_t)k };
        ok = ok && graph_append(g, &input) != NODE_NONE;
        copy.operands[k] = (uint32_t)k;
    }
    if (n->kind == NODE_BROADCAST_TO) {
        size_t index = 0;
        ok = ok && graph_append_shape(g, &c->traced->shapes[n->payload], &index);
        copy.payload = index;
    }
    ok = ok && graph_append(g, &copy) != NODE_NONE;
    if (!ok) {
        graph_destroy(g);
        return fail(error, OL_ERROR_MEMORY, c->operation, "no memory for the composite of one node");
    }
    g->outputs[0] = (uint32_t)n->n_operands;
    return composite_create(c->device, g, single, error);
}

/* The result's tensor, with memory of its own. */
static ol_status allocate_result(run *r, uint32_t index, ol_error *error)
{
    const graph *g = r->c->traced;
    const node *n = &g->nodes[index];
    shape s = { 0 };
    for (int k = 0; k < n->n_operands; k++) {
        const ol_tensor *t = &r->tensors[n->operands[k]];
        if (!shape_join(&s, t->rank, t->shape))              /* the outputs' shapes exist, so do all inside */
            return fail(error, OL_ERROR_SHAPE, node_name(n), "internal: operands that do not broadcast");
    }
    if (n->kind == NODE_BROADCAST_TO)
        s = g->shapes[n->payload];
    ol_tensor *t = &r->tensors[index];
    *t = ol_tensor_contiguous(NULL, (ol_dtype)n->dtype, s.rank, s.dims);
    return r->c->device->backend->allocate(r->c->device, r->stream, tensor_bytes(t), &t->data, error);
}

/* A constant, where the device can read it. */
static ol_status place_constant(run *r, uint32_t index, ol_error *error)
{
    const node *n = &r->c->traced->nodes[index];
    const backend *b = r->c->device->backend;
    ol_tensor *t = &r->tensors[index];
    *t = (ol_tensor){ .dtype = (ol_dtype)n->dtype };
    if (!b->place) {
        t->data = (void *)&n->payload;
        return OL_OK;
    }
    ol_status status = b->allocate(r->c->device, r->stream, sizeof n->payload, &t->data, error);
    return status == OL_OK ? b->place(r->c->device, r->stream, t->data, n->payload, error) : status;
}

static void free_result(run *r, uint32_t index)
{
    const node *n = &r->c->traced->nodes[index];
    const backend *b = r->c->device->backend;
    ol_tensor *t = &r->tensors[index];
    if (t->data && (is_computed(n) || (n->kind == NODE_CONSTANT && b->place)))
        b->free(r->c->device, r->stream, t->data, is_computed(n) ? tensor_bytes(t) : sizeof n->payload);
    t->data = NULL;
}

static ol_status run_node(run *r, uint32_t index, ol_error *error)
{
    const node *n = &r->c->traced->nodes[index];
    ol_composite *single;
    ol_tensor operands[3];
    tensor_facts few[FEW_TENSORS], *facts;
    int in_place;
    ol_status status = allocate_result(r, index, error);
    if (status != OL_OK || (status = composite_of_node(r->c, n, &single, error)) != OL_OK)
        return status;
    for (int k = 0; k < n->n_operands; k++)
        operands[k] = r->tensors[n->operands[k]];
    status = replay_check(single, operands, &r->tensors[index], few, &facts, &in_place, error);
    if (status == OL_OK)
        status = r->c->device->backend->replay(single, r->stream, operands, &r->tensors[index], facts, in_place, error);
    ol_composite_destroy(single);
    for (int k = 0; k < n->n_operands; k++)
        if (r->last_use[n->operands[k]] == index)
            free_result(r, n->operands[k]);
    return status;
}

ol_status ol_replay_composed(const ol_composite *c, ol_stream stream, const ol_tensor *inputs, const ol_tensor *outputs, ol_error *error)
{
    tensor_facts few[FEW_TENSORS], *facts;
    int in_place;
    if (!c)
        return fail(error, OL_ERROR_ARGUMENT, "replay composed", "the composite is NULL");
    ol_status status = c->device->backend->check_stream(c->device, stream, c->operation, error);
    if (status == OL_OK)
        status = replay_check(c, inputs, outputs, few, &facts, &in_place, error);
    if (status != OL_OK)
        return status;
    replay_checked(c, facts);

    const graph *g = c->traced;
    const ol_allocator *a = &c->device->allocator;
    size_t tensors_bytes = memory_size(g->n_nodes, sizeof(ol_tensor)), uses_bytes = memory_size(g->n_nodes, sizeof(uint32_t));
    run r = { c, stream, memory_take(a, tensors_bytes), memory_take(a, uses_bytes) };
    if (!r.tensors || !r.last_use) {
        status = fail(error, OL_ERROR_MEMORY, c->operation, "no memory for %zu intermediates", g->n_nodes);
        goto done;
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        for (int k = 0; k < n->n_operands; k++)
            r.last_use[n->operands[k]] = i;
        if (n->kind == NODE_INPUT)
            r.tensors[i] = inputs[n->payload];
    }
    for (int32_t i = 0; i < g->n_outputs; i++)
        r.last_use[g->outputs[i]] = NODE_NONE;
    for (uint32_t i = 0; status == OL_OK && i < g->n_nodes; i++)
        if (is_computed(&g->nodes[i]))
            status = run_node(&r, i, error);
        else if (g->nodes[i].kind == NODE_CONSTANT)
            status = place_constant(&r, i, error);
    for (int32_t i = 0; status == OL_OK && i < g->n_outputs; i++)
        status = c->device->backend->copy_out(c->device, stream, &r.tensors[g->outputs[i]], &outputs[i], error);

done:
    for (uint32_t i = 0; r.tensors && i < g->n_nodes; i++)
        free_result(&r, i);
    memory_give(a, r.tensors, tensors_bytes);
    memory_give(a, r.last_use, uses_bytes);
    return status;
}
