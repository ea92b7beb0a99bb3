/* logaddexp(x, +0) is softplus(x), bit for bit: on all 2^32 inputs of float32, where logaddexp is not proven in general, and in
 * the 16-bit types because both are correctly rounded. softplus is several times faster, and the two-operand form is how the
 * literature writes it. Not with -0: there x = -inf gives -0. */
#include "rebuild.h"

/* The operand beside a constant +0, or -1. */
static int other_operand(const graph *g, const node *n)
{
    if (n->kind == NODE_PRIMITIVE && n->primitive == PRIMITIVE_logaddexp)
        for (int k = 0; k < 2; k++) {
            const node *zero = &g->nodes[n->operands[k]];
            if (zero->kind == NODE_CONSTANT && zero->payload == 0)
                return 1 - k;
        }
    return -1;
}

static int rewrite(rebuild *r, uint32_t old, node *n)
{
    (void)old;
    int k = other_operand(r->out, n);
    if (k >= 0)
        *n = (node){ .kind = NODE_PRIMITIVE, .primitive = PRIMITIVE_softplus, .dtype = n->dtype, .n_operands = 1, .operands = { n->operands[k] } };
    return 1;
}

ol_status pass_softplus(const graph *in, graph **out, ol_error *error)
{
    return rebuild_run(in, rewrite, out, error);
}
