/* What the passes share: a new graph grown from an old one, with a map from old nodes to new ones. */
#ifndef OL_REBUILD_H
#define OL_REBUILD_H

#include "graph.h"

typedef struct rebuild {
    const graph *in;
    graph *out;
    uint32_t *map;            /* old node -> new node */
} rebuild;

ol_status rebuild_begin(rebuild *r, const graph *in, ol_error *error);
/* The old node with its operands as new nodes. */
node rebuild_translate(const rebuild *r, uint32_t old);
/* Appends n as the new form of `old`. */
ol_status rebuild_append(rebuild *r, uint32_t old, const node *n, ol_error *error);
/* Ends the pass: with status OL_OK so far, maps the outputs and hands over the graph; else releases everything. */
ol_status rebuild_end(rebuild *r, ol_status status, graph **out, ol_error *error);

/* A whole pass that looks at one node at a time. `rewrite` is given the old node with new operands; it may change it, or set
 * r->map[old] to a node that already stands for it and return 0, so that nothing is appended. */
typedef int (*rebuild_rewrite)(rebuild *r, uint32_t old, node *n);
ol_status rebuild_run(const graph *in, rebuild_rewrite rewrite, graph **out, ol_error *error);

#endif
