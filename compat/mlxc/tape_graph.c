/* From a tape to a composite, and the placeholders that stand for its steps. */
#include "tape.h"

#include "report.h"

#include <stdlib.h>
#include <string.h>

mlxc_body *mlxc_tape_placeholder(const char *function, const mlxc_tape *t, uint32_t step)
{
    const mlxc_step *s = &t->steps[step];
    int64_t dims[OL_MAX_RANK];
    for (int32_t d = 0; d < s->rank; d++)
        dims[d] = s->dims[d];
    mlxc_body *b = mlxc_body_new_bare(function, s->dtype, s->rank, dims);
    if (b) {
        b->trace = t->serial;
        b->step = step;
    }
    return b;
}

int mlxc_check_placeholder(const char *function, const mlxc_body *b)
{
    if (!b->trace || mlxc_tape_of(b))
        return 0;
    return mlxc_report(function, "an array is a placeholder of another trace, which has ended or is another thread's; expected an array, or "
                       "a placeholder of the call of a closure that is under way on this thread");
}

int mlxc_tape_operand(const char *function, mlxc_tape *t, mlxc_body *b, uint32_t *step)
{
    if (mlxc_check_placeholder(function, b))
        return 1;
    if (!b->trace)
        return mlxc_tape_capture(function, t, b, step);
    if (b->trace != t->serial)
        return mlxc_report(function, "an array is a placeholder of the trace that this one is within; expected a placeholder of this one, "
                           "or an array");
    *step = b->step;
    return 0;
}

/* What the builder of the graph is handed. */
typedef struct graph_plan {
    const mlxc_tape *tape;
    const uint32_t *outputs;
    size_t n_outputs;
    ol_value *values;                  /* of the steps */
} graph_plan;

static ol_value value_of_step(ol_graph *g, const mlxc_step *s, const ol_value *in, const ol_value *values)
{
    ol_value operands[3];
    int64_t dims[OL_MAX_RANK];
    for (int32_t i = 0; i < s->n_operands; i++)
        operands[i] = values[s->operands[i]];
    switch (s->kind) {
    case MLXC_INPUT:
        return in[s->payload];
    case MLXC_CONSTANT:
        return ol_constant_bits(g, s->dtype, &s->payload);
    case MLXC_ASTYPE:
        return ol_astype(g, operands[0], s->dtype);
    case MLXC_PRIMITIVE:
        return ol_apply(g, s->primitive, operands, s->n_operands);
    case MLXC_BROADCAST_TO:
        for (int32_t d = 0; d < s->rank; d++)
            dims[d] = s->dims[d];
        return ol_broadcast_to(g, operands[0], s->rank, dims);
    }
    return (ol_value){ 0, 0 };
}

static int build(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    graph_plan *p = user;
    for (size_t i = 0; i < p->tape->n; i++)
        p->values[i] = value_of_step(g, &p->tape->steps[i], in, p->values);
    for (size_t i = 0; i < p->n_outputs; i++)
        out[i] = p->values[p->outputs[i]];
    return 0;
}

int mlxc_tape_compile(const char *function, const mlxc_tape *t, const uint32_t *outputs, size_t n_outputs, ol_device *device,
                      ol_composite **composite)
{
    ol_error error;
    size_t n_inputs = t->n_inputs + t->n_captured;
    if (n_inputs > OL_MAX_INPUTS || n_outputs > OL_MAX_OUTPUTS)
        return mlxc_report(function, "%zu inputs, captured arrays included, and %zu outputs; expected at most %d and %d", n_inputs, n_outputs,
                           OL_MAX_INPUTS, OL_MAX_OUTPUTS);
    ol_dtype *dtypes = malloc((n_inputs + 1) * sizeof *dtypes);
    graph_plan p = { t, outputs, n_outputs, malloc((t->n + 1) * sizeof *p.values) };
    ol_builder builder = { build, &p, (int32_t)n_inputs, (int32_t)n_outputs, function };
    int failed = 1;
    if (!dtypes || !p.values) {
        mlxc_report_memory(function);
        goto done;
    }
    for (size_t i = 0; i < t->n; i++)
        if (t->steps[i].kind == MLXC_INPUT)
            dtypes[t->steps[i].payload] = t->steps[i].dtype;
    failed = ol_compile(device, &builder, dtypes, composite, &error) != OL_OK;
    if (failed)
        mlxc_report_core(function, &error);
done:
    free(p.values);
    free(dtypes);
    return failed;
}
