/* Replay: check everything, then hand over to the device. And output shape inference by the same rules. */
#include "composite.h"
#include "status.h"

#include <string.h>

/* Examines n tensors and compares their dtypes with those that the nodes at `expected` have. */
static ol_status check_tensors(const ol_composite *c, const ol_tensor *tensors, int32_t n, const uint32_t *expected, int data_optional,
                               const char *role, tensor_facts *facts, ol_error *error)
{
    if (n > 0 && !tensors)
        return fail(error, OL_ERROR_ARGUMENT, c->operation, "%ss is NULL; expected %d tensors", role, (int)n);
    for (int32_t i = 0; i < n; i++) {
        const ol_tensor *t = &tensors[i];
        ol_dtype wanted = graph_dtype(c->traced, expected ? expected[i] : (uint32_t)i);
        ol_status status = tensor_examine(t, data_optional, c->operation, role, i, &facts[i], error);
        if (status != OL_OK)
            return status;
        if (t->dtype != wanted)
            return fail(error, OL_ERROR_DTYPE, c->operation, "%s %d is %s; the composite was compiled for %s", role, (int)i,
                        ol_dtype_name(t->dtype), ol_dtype_name(wanted));
    }
    return OL_OK;
}

/* Every explicit broadcast must give its shape. */
static ol_status check_broadcasts(const ol_composite *c, const ol_tensor *inputs, ol_error *error)
{
    const shape_rules *r = c->rules;
    shape ignored;
    for (size_t i = r->n_output_rules; i < r->n_rules; i++) {
        ol_status status = shape_rule_apply(r, i, inputs, c->operation, &ignored, error);
        if (status != OL_OK)
            return status;
    }
    return OL_OK;
}

static ol_status check_output_shapes(const ol_composite *c, const ol_tensor *inputs, const ol_tensor *outputs, ol_error *error)
{
    shape expected = { 0 };
    uint32_t rule = UINT32_MAX;
    for (int32_t i = 0; i < c->traced->n_outputs; i++) {
        const ol_tensor *t = &outputs[i];
        if (c->rules->output_rule[i] != rule) {
            rule = c->rules->output_rule[i];
            ol_status status = shape_rule_apply(c->rules, rule, inputs, c->operation, &expected, error);
            if (status != OL_OK)
                return status;
        }
        int same = t->rank == expected.rank;
        for (int32_t d = 0; same && d < t->rank; d++)
            same = t->shape[d] == expected.dims[d];
        if (!same) {
            shape_text given, wanted;
            return fail(error, OL_ERROR_SHAPE, c->operation, "output %d has shape %s; its inputs give %s", (int)i,
                        shape_to_text(&given, t->rank, t->shape), shape_to_text(&wanted, expected.rank, expected.dims));
        }
    }
    return OL_OK;
}

ol_status replay_check(const ol_composite *c, const ol_tensor *inputs, const ol_tensor *outputs, tensor_facts few[FEW_TENSORS],
                       tensor_facts **facts, int *in_place, ol_error *error)
{
    int32_t n_inputs = c->traced->n_inputs, n_outputs = c->traced->n_outputs;
    tensor_facts *f = c->checks ? workspace_take(c->checks) : few;
    if (!f)
        return fail(error, OL_ERROR_MEMORY, c->operation, "no memory to check %d tensors", (int)(n_inputs + n_outputs));
    ol_status status = check_tensors(c, inputs, n_inputs, NULL, 0, "input", f, error);
    if (status == OL_OK)
        status = check_tensors(c, outputs, n_outputs, c->traced->outputs, 0, "output", f + n_inputs, error);
    if (status == OL_OK && c->rules->n_rules > c->rules->n_output_rules)
        status = check_broadcasts(c, inputs, error);
    if (status == OL_OK)
        status = check_output_shapes(c, inputs, outputs, error);
    if (status == OL_OK)
        status = overlap_check(c, inputs, outputs, f, c->checks ? (uint32_t *)(f + n_inputs + n_outputs) : NULL, in_place, error);
    if (status == OL_OK)
        *facts = f;
    else
        replay_checked(c, f);
    return status;
}

void replay_checked(const ol_composite *c, tensor_facts *facts)
{
    if (c->checks)
        workspace_give(c->checks, facts);
}

ol_status ol_replay(const ol_composite *c, ol_stream stream, const ol_tensor *inputs, const ol_tensor *outputs, ol_error *error)
{
    tensor_facts few[FEW_TENSORS], *facts;
    int in_place;
    if (!c)
        return fail(error, OL_ERROR_ARGUMENT, "replay", "the composite is NULL");
    ol_status status = c->device->backend->check_stream(c->device, stream, c->operation, error);
    if (status == OL_OK)
        status = replay_check(c, inputs, outputs, few, &facts, &in_place, error);
    if (status != OL_OK)
        return status;
    status = c->device->backend->replay(c, stream, inputs, outputs, facts, in_place, error);
    replay_checked(c, facts);
    return status;
}

ol_status ol_output_shapes(const ol_composite *c, const ol_tensor *inputs, ol_tensor *outputs, ol_error *error)
{
    tensor_facts ignored;
    shape s;
    if (!c || !outputs)
        return fail(error, OL_ERROR_ARGUMENT, "output shapes", "the composite, or the place for the outputs, is NULL");
    ol_status status = OL_OK;
    if (c->traced->n_inputs > 0 && !inputs)
        status = check_tensors(c, NULL, c->traced->n_inputs, NULL, 1, "input", NULL, error);
    for (int32_t i = 0; status == OL_OK && i < c->traced->n_inputs; i++) {
        uint32_t index = (uint32_t)i;
        status = check_tensors(c, &inputs[i], 1, &index, 1, "input", &ignored, error);
    }
    if (status == OL_OK)
        status = check_broadcasts(c, inputs, error);
    for (size_t rule = 0; status == OL_OK && rule < c->rules->n_output_rules; rule++) {      /* all of them before any output is written */
        status = shape_rule_apply(c->rules, rule, inputs, c->operation, &s, error);
        if (status == OL_OK && shape_elements(s.rank, s.dims) < 0) {
            shape_text text;
            status = fail(error, OL_ERROR_SHAPE, c->operation, "an output of shape %s has more elements than 63 bits count",
                          shape_to_text(&text, s.rank, s.dims));
        }
    }
    for (int32_t i = 0; status == OL_OK && i < c->traced->n_outputs; i++) {
        shape_rule_apply(c->rules, c->rules->output_rule[i], inputs, c->operation, &s, NULL);
        void *data = outputs[i].data;
        outputs[i] = ol_tensor_contiguous(data, graph_dtype(c->traced, c->traced->outputs[i]), s.rank, s.dims);
    }
    return status;
}
