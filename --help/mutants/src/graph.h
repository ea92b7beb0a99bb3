/* The graph: a list of nodes in topological order, and the outputs.
 *
 * Nodes 0 .. n_inputs-1 are the inputs in order. Every operand comes before its user. The operands of a primitive already
 * have the dtype its kernel takes: tracing writes the conversions out as astype nodes, so that they are nodes, rounded and
 * counted, like any other. Outputs are never inputs or constants themselves, nor twice the same node by accident of tracing:
 * an output that is one gets a copy node (astype to its own dtype). */
#ifndef OL_GRAPH_H
#define OL_GRAPH_H

#include "memory.h"
#include "onelaunch.h"
#include "primitives.h"
#include "tensor.h"

typedef enum node_kind {
    NODE_INPUT,               /* payload: its index */
    NODE_CONSTANT,            /* payload: its bits */
    NODE_PRIMITIVE,
    NODE_ASTYPE,              /* to the node's dtype; from that dtype it is a copy */
    NODE_BROADCAST_LIKE,      /* operands: x, like */
    NODE_BROADCAST_TO         /* payload: index into shapes */
} node_kind;

typedef struct node {
    uint8_t kind;             /* node_kind */
    uint8_t primitive;        /* of NODE_PRIMITIVE */
    uint8_t dtype;            /* of the result */
    uint8_t n_operands;
    uint32_t operands[3];
    uint64_t payload;
} node;

typedef struct graph {
    ol_allocator allocator;
    node *nodes;
    size_t n_nodes, nodes_capacity;
    shape *shapes;            /* those of NODE_BROADCAST_TO */
    size_t n_shapes, shapes_capacity;
    uint32_t *outputs;        /* node indices */
    int32_t n_inputs, n_outputs;
    char name[64];
} graph;

/* An empty graph; OL_ERROR_MEMORY leaves nothing to destroy. */
ol_status graph_create(const ol_allocator *allocator, int32_t n_inputs, int32_t n_outputs, const char *name, graph **g, ol_error *error);
void graph_destroy(graph *g);                                          /* NULL is allowed */

#define NODE_NONE UINT32_MAX
/* Appends a node and returns its index; NODE_NONE when there is no memory. The caller has checked OL_MAX_NODES. */
uint32_t graph_append(graph *g, const node *n);
/* Appends a static shape; false when there is no memory. */
int graph_append_shape(graph *g, const shape *s, size_t *index);

/* The dtype of a node's operand (as the kernel is given it). */
static inline ol_dtype graph_dtype(const graph *g, uint32_t index) { return (ol_dtype)g->nodes[index].dtype; }
/* The operands whose data a node reads: a broadcast's `like` gives only its shape. */
static inline int node_reads(const node *n) { return n->kind == NODE_BROADCAST_LIKE ? 1 : n->n_operands; }
/* The name of what a node does, for errors and text: "add", "astype", "broadcast_to", "input", "constant". */
const char *node_name(const node *n);

/* verify.c: whether the invariants above hold; a violation is a bug of ours, named in the error. */
ol_status graph_verify(const graph *g, ol_error *error);

/* The passes: each gives a new graph with the same outputs' bits and leaves its input alone. */
ol_status pass_fold(const graph *in, graph **out, ol_error *error);    /* constants of constants, by the kernels themselves */
ol_status pass_copy(const graph *in, graph **out, ol_error *error);    /* operands that are copies become their sources */
ol_status pass_softplus(const graph *in, graph **out, ol_error *error);    /* logaddexp(x, +0) becomes softplus(x) */
ol_status pass_cse(const graph *in, graph **out, ol_error *error);     /* equal nodes become one */
ol_status pass_dce(const graph *in, graph **out, ol_error *error);     /* nodes no output needs go; inputs stay */

#endif
