/* Copies: an astype to the dtype a value already has only makes NaN canonical (and bool 0 or 1). Every primitive does that
 * itself and reads all NaN alike, so a copy that is an operand is its source; one that is an output stays where its source is
 * an input or a constant (rebuild.c writes it again), and goes where its source is computed. */
#include "rebuild.h"

ol_status pass_copy(const graph *in, graph **out, ol_error *error)
{
    rebuild r;
    ol_status status = rebuild_begin(&r, in, error);
    if (status != OL_OK)
        return status;
    for (uint32_t i = 0; status == OL_OK && i < in->n_nodes; i++) {
        node n = rebuild_translate(&r, i);
        if (n.kind == NODE_ASTYPE && graph_dtype(r.out, n.operands[0]) == (ol_dtype)n.dtype)
            r.map[i] = n.operands[0];
        else
            status = rebuild_append(&r, i, &n, error);
    }
    return rebuild_end(&r, status, out, error);
}
