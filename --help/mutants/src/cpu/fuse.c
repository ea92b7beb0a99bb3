/* Which nodes one kernel computes together: see fused_pattern in kernels.h. */
#include "cpu/cpu.h"

/* `name_widening`: of a pattern that computes in float32 only, with a first operand that is brought to it. */
static const struct pattern {
    uint8_t outer, inner;
    uint8_t negates;                     /* a negative between them */
    const char *name, *name_widening;
} patterns[FUSED_COUNT] = {
    [FUSED_SOFTPLUS_ADD] = { PRIMITIVE_softplus, PRIMITIVE_add, 0, "softplus(add)", NULL },
    [FUSED_EXP_MULTIPLY] = { PRIMITIVE_exp, PRIMITIVE_multiply, 0, "exp(multiply)", "exp(multiply(astype))" },
    [FUSED_EXP_NEGATIVE_MULTIPLY] = { PRIMITIVE_exp, PRIMITIVE_multiply, 1, "exp(negative(multiply))", "exp(negative(multiply(astype)))" },
};

static uint8_t kernel_number(int pattern, ol_dtype first)
{
    return (uint8_t)(1 + pattern * OL_DTYPE_COUNT + (int)first);
}

kernel_fn cpu_fused_kernel(const kernel_table *kernels, uint8_t number)
{
    return kernels->fused[(number - 1) / OL_DTYPE_COUNT][(number - 1) % OL_DTYPE_COUNT];
}

static int is_primitive(const graph *g, uint32_t index, primitive wanted)
{
    return g->nodes[index].kind == NODE_PRIMITIVE && g->nodes[index].primitive == wanted;
}

/* The binary node under this one, or NODE_NONE. */
static uint32_t find_inner(const graph *g, uint32_t index, const struct pattern *p, const uint8_t *once)
{
    if (!is_primitive(g, index, p->outer))
        return NODE_NONE;
    uint32_t inner = g->nodes[index].operands[0];
    if (p->negates) {
        if (!once[inner] || !is_primitive(g, inner, PRIMITIVE_negative))
            return NODE_NONE;
        inner = g->nodes[inner].operands[0];
    }
    return once[inner] && is_primitive(g, inner, p->inner) ? inner : NODE_NONE;
}

int cpu_fuse(const ol_device *device, const graph *g, uint32_t index, const uint8_t *once, fusion *f)
{
    const kernel_table *kernels = ((const cpu_device *)device)->kernels;
    for (int i = 0; i < FUSED_COUNT; i++) {
        const struct pattern *p = &patterns[i];
        uint32_t inner = find_inner(g, index, p, once);
        if (inner == NODE_NONE)
            continue;
        const uint32_t *operands = g->nodes[inner].operands;
        ol_dtype dtype = graph_dtype(g, inner);
        if (p->name_widening && dtype != OL_FLOAT32)
            return 0;
        /* The multiplication commutes, so an operand that is brought from 16 bits may be the second. */
        for (int k = 0; k < 2 && p->name_widening; k++) {
            if (!once[operands[k]] || g->nodes[operands[k]].kind != NODE_ASTYPE)
                continue;
            uint32_t narrow = g->nodes[operands[k]].operands[0];
            ol_dtype from = graph_dtype(g, narrow);
            if (from == OL_FLOAT32 || !kernels->fused[i][from])
                continue;
            *f = (fusion){ kernel_number(i, from), 2, { narrow, operands[1 - k] }, p->name_widening };
            return 1;
        }
        if (!kernels->fused[i][dtype])
            return 0;
        *f = (fusion){ kernel_number(i, dtype), 2, { operands[0], operands[1] }, p->name };
        return 1;
    }
    return 0;
}
