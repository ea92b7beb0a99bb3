/* Copies: an astype to the dtype a value already has only makes NaN canonical (and bool 0 or 1). Every primitive does that
 * itself and reads all NaN alike, so a copy that is an operand is its source; one that is an output stays where its source is
 * an input or a constant (rebuild.c writes it again), and goes where its source is computed. */
#include "rebuild.h"

static int rewrite(rebuild *r, uint32_t old, node *n)
{
    if (n->kind != NODE_ASTYPE || graph_dtype(r->out, n->operands[0]) != (ol_dtype)n->dtype)
        return 1;
    r->map[old] = n->operands[0];
    return 0;
}

ol_status pass_copy(const graph *in, graph **out, ol_error *error)
{
    return rebuild_run(in, rewrite, out, error);
}
