/* Replay: check everything, then hand over to the device. And output shape inference by the same rules. */
#include "composite.h"
#include "status.h"

#include <string.h>

static ol_status check_tensor(const ol_composite *c, const ol_tensor *t, ol_dtype expected, int data_optional, const char *role, int32_t index,
                              ol_error *error)
{
    ol_status status = tensor_check(t, data_optional, c->operation, role, index, error);
    if (status == OL_OK && t->dtype != expected)
        return fail(error, OL_ERROR_DTYPE, c->operation, "%s %d is %s; the composite was compiled for %s", role, (int)index,
                    ol_dtype_name(t->dtype), ol_dtype_name(expected));
    return status;
}

static ol_status check_inputs(const ol_composite *c, const ol_tensor *inputs, int data_optional, ol_error *error)
{
    if (c->traced->n_inputs > 0 && !inputs)
        return fail(error, OL_ERROR_ARGUMENT, c->operation, "inputs is NULL; expected %d tensors", (int)c->traced->n_inputs);
    for (int32_t i = 0; i < c->traced->n_inputs; i++) {
        ol_status status = check_tensor(c, &inputs[i], graph_dtype(c->traced, (uint32_t)i), data_optional, "input", i, error);
        if (status != OL_OK)
            return status;
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

ol_status replay_check(const ol_composite *c, const ol_tensor *inputs, const ol_tensor *outputs, int *in_place, ol_error *error)
{
    ol_status status = check_inputs(c, inputs, 0, error);
    if (status != OL_OK)
        return status;
    if (!outputs)
        return fail(error, OL_ERROR_ARGUMENT, c->operation, "outputs is NULL; expected %d tensors", (int)c->traced->n_outputs);
    for (int32_t i = 0; i < c->traced->n_outputs; i++) {
        status = check_tensor(c, &outputs[i], graph_dtype(c->traced, c->traced->outputs[i]), 0, "output", i, error);
        if (status != OL_OK)
            return status;
    }
    if (c->rules->n_rules > c->rules->n_output_rules && (status = check_broadcasts(c, inputs, error)) != OL_OK)
        return status;
    if ((status = check_output_shapes(c, inputs, outputs, error)) != OL_OK)
        return status;
    return overlap_check(c, inputs, outputs, in_place, error);
}

ol_status ol_replay(const ol_composite *c, ol_stream stream, const ol_tensor *inputs, const ol_tensor *outputs, ol_error *error)
{
    int in_place;
    if (!c)
        return fail(error, OL_ERROR_ARGUMENT, "replay", "the composite is NULL");
    ol_status status = replay_check(c, inputs, outputs, &in_place, error);
    return status == OL_OK ? c->device->backend->replay(c, stream, inputs, outputs, in_place, error) : status;
}

ol_status ol_output_shapes(const ol_composite *c, const ol_tensor *inputs, ol_tensor *outputs, ol_error *error)
{
    if (!c || !outputs)
        return fail(error, OL_ERROR_ARGUMENT, "output shapes", "the composite, or the place for the outputs, is NULL");
    ol_status status = check_inputs(c, inputs, 1, error);
    if (status == OL_OK)
        status = check_broadcasts(c, inputs, error);
    shape s;
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
