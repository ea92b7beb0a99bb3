/* Constant folding: a node whose operands are all constants becomes a constant, computed by the very kernels that a replay
 * would run, so not a bit can change. x*0, x-x and x+0 with an x that is not constant stay as they are. */
#include "numerics/evaluate.h"
#include "rebuild.h"

static int foldable(const graph *g, const node *n)
{
    if (n->kind != NODE_PRIMITIVE && n->kind != NODE_ASTYPE)
        return 0;
    for (int i = 0; i < n->n_operands; i++)
        if (g->nodes[n->operands[i]].kind != NODE_CONSTANT)
            return 0;
    return 1;
}

static node fold(const graph *g, const node *n)
{
    uint64_t operands[3] = { 0 };
    for (int i = 0; i < n->n_operands; i++)
        operands[i] = g->nodes[n->operands[i]].payload;
    node constant = { .kind = NODE_CONSTANT, .dtype = n->dtype };
    ol_dtype operand_dtype = graph_dtype(g, n->operands[n->n_operands - 1]);
    constant.payload = n->kind == NODE_ASTYPE ? evaluate_astype(operand_dtype, (ol_dtype)n->dtype, operands[0])
                                              : evaluate_primitive((primitive)n->primitive, operand_dtype, operands);
    return constant;
}

static int rewrite(rebuild *r, uint32_t old, node *n)
{
    (void)old;
    if (foldable(r->out, n))
        *n = fold(r->out, n);
    return 1;
}

ol_status pass_fold(const graph *in, graph **out, ol_error *error)
{
    return rebuild_run(in, rewrite, out, error);
}
