/* The pipeline: trace -> verify -> passes -> dependencies -> shape rules, program -> the backend's preparation.
 * After it a composite is immutable; replay.c takes it from there. */
#include "composite.h"
#include "status.h"
#include "trace.h"

#include <stdio.h>

typedef ol_status (*pass)(const graph *in, graph **out, ol_error *error);

/* In this order: folding makes equal constants, copies hide equal operands, merging makes nodes dead. Each changes no bit. */
static const pass passes[] = { pass_fold, pass_copy, pass_softplus, pass_cse, pass_dce };

static ol_status optimize(const graph *traced, graph **optimized, ol_error *error)
{
    graph *g = NULL;
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        graph *next;
        ol_status status = passes[i](g ? g : traced, &next, error);
        graph_destroy(g);
        if (status != OL_OK)
            return status;
        g = next;
    }
    *optimized = g;
    return OL_OK;
}

/* The composed path runs the nodes as traced that some output needs: dead code elimination, and nothing else, is done to
 * them; and each is a launch. */
static ol_status prepare_composed(ol_composite *c, ol_error *error)
{
    graph *live;
    ol_status status = pass_dce(c->traced, &live, error);
    if (status != OL_OK)
        return status;
    graph_destroy(c->traced);
    c->traced = live;
    for (size_t i = 0; i < live->n_nodes; i++)
        c->composed_launches += live->nodes[i].kind > NODE_CONSTANT;
    return OL_OK;
}

static ol_status prepare_checks(ol_composite *c, ol_error *error)
{
    size_t n = (size_t)c->traced->n_inputs + (size_t)c->traced->n_outputs;
    if (n <= FEW_TENSORS)
        return OL_OK;
    c->checks = workspace_create(&c->device->allocator, n * (sizeof(tensor_facts) + sizeof(uint32_t)), WORKSPACE_BLOCKS);
    return c->checks ? OL_OK : fail(error, OL_ERROR_MEMORY, c->traced->name, "no memory to check %zu tensors", n);
}

ol_status composite_create(ol_device *device, graph *traced, ol_composite **out, ol_error *error)
{
    ol_status status;
    dependencies *d = NULL;
    ol_composite *c = memory_take(&device->allocator, sizeof *c);
    if (!c) {
        status = fail(error, OL_ERROR_MEMORY, traced->name, "no memory for a composite");
        graph_destroy(traced);
        return status;
    }
    c->device = device;
    device_retain(device);
    c->traced = traced;
    snprintf(c->operation, sizeof c->operation, "replay %.50s", traced->name);

    if ((status = graph_verify(traced, error)) != OL_OK ||
        (status = optimize(traced, &c->optimized, error)) != OL_OK ||
        (status = dependencies_create(c->optimized, &d, error)) != OL_OK ||
        (status = shape_rules_create(c->optimized, d, &c->rules, error)) != OL_OK ||
        (status = program_create(c->optimized, d, device, device->backend->fuse, &c->program, error)) != OL_OK ||
        (status = prepare_composed(c, error)) != OL_OK ||
        (status = prepare_checks(c, error)) != OL_OK ||
        (status = device->backend->prepare(c, d, error)) != OL_OK)
        goto fail;
    dependencies_destroy(d);
    *out = c;
    return OL_OK;

fail:
    dependencies_destroy(d);
    ol_composite_destroy(c);
    return status;
}

void ol_composite_destroy(ol_composite *c)
{
    if (!c)
        return;
    ol_device *device = c->device;
    if (c->prepared)
        device->backend->release(c);
    workspace_destroy(c->checks);
    program_destroy(c->program);
    shape_rules_destroy(c->rules);
    graph_destroy(c->optimized);
    graph_destroy(c->traced);
    memory_give(&device->allocator, c, sizeof *c);
    device_release(device);
}

ol_status ol_compile(ol_device *device, const ol_builder *builder, const ol_dtype *input_dtypes, ol_composite **composite, ol_error *error)
{
    graph *traced;
    if (!device || !composite)
        return fail(error, OL_ERROR_ARGUMENT, "compile", "the device, or the place for the composite, is NULL");
    ol_status status = trace_builder(&device->allocator, builder, input_dtypes, &traced, error);
    return status == OL_OK ? composite_create(device, traced, composite, error) : status;
}

int32_t ol_composite_input_count(const ol_composite *c)
{
    return c ? c->traced->n_inputs : 0;
}

int32_t ol_composite_output_count(const ol_composite *c)
{
    return c ? c->traced->n_outputs : 0;
}

ol_dtype ol_composite_input_dtype(const ol_composite *c, int32_t index)
{
    return c && index >= 0 && index < c->traced->n_inputs ? graph_dtype(c->traced, (uint32_t)index) : OL_FLOAT32;
}

ol_dtype ol_composite_output_dtype(const ol_composite *c, int32_t index)
{
    return c && index >= 0 && index < c->traced->n_outputs ? graph_dtype(c->traced, c->traced->outputs[index]) : OL_FLOAT32;
}

const char *ol_composite_name(const ol_composite *c)
{
    return c ? c->traced->name : NULL;
}

int32_t ol_composite_composed_launches(const ol_composite *c)
{
    return c ? c->composed_launches : 0;
}
