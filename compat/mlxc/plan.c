/* Making and running plans. */
#include "plan.h"

#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tensors of this many inputs and outputs are on the stack; more are allocated. */
#define FEW 16

/* The output that is a step: the composite's output that it already is, or a new one. */
static mlxc_output output_of_step(uint32_t step, uint32_t *of_step, uint32_t *steps, size_t *n)
{
    int is_first = of_step[step] == 0;
    if (is_first) {
        steps[(*n)++] = step;
        of_step[step] = (uint32_t)*n;
    }
    return (mlxc_output){ NULL, of_step[step] - 1, is_first };
}

static int choose_outputs(const char *function, mlxc_plan *p, mlxc_tape *t, mlxc_body *const *results, uint32_t *steps)
{
    uint32_t *of_step = calloc(t->n + 1, sizeof *of_step);
    if (!of_step)
        return mlxc_report_memory(function);
    for (size_t i = 0; i < p->n_outputs; i++) {
        mlxc_body *b = results[i];
        if (b->trace && b->trace != t->serial) {
            free(of_step);
            return mlxc_report(function, "output %zu is a placeholder of another trace; expected an array, or a placeholder of this one", i);
        }
        if (b->trace)
            p->outputs[i] = output_of_step(b->step, of_step, steps, &p->n_replayed);
        else
            p->outputs[i].fixed = mlxc_body_retain(b);
    }
    free(of_step);
    return 0;
}

mlxc_plan *mlxc_plan_new(const char *function, mlxc_tape *t, mlxc_body *const *results, size_t n_results)
{
    uint32_t *steps = malloc((n_results + 1) * sizeof *steps);
    mlxc_plan *p = calloc(1, sizeof *p);
    if (p)
        atomic_init(&p->references, 1);
    if (!p || !steps)
        goto no_memory;
    p->engine = t->engine;
    p->n_inputs = t->n_inputs;
    p->captured = malloc((t->n_captured + 1) * sizeof(mlxc_body *));
    p->outputs = calloc(n_results + 1, sizeof *p->outputs);
    if (!p->captured || !p->outputs)
        goto no_memory;
    p->n_outputs = n_results;
    for (size_t i = 0; i < t->n_captured; i++)
        p->captured[p->n_captured++] = mlxc_body_retain(t->captured[i].body);
    if ((!p->engine && !(p->engine = mlxc_engine_default(function))) ||
        choose_outputs(function, p, t, results, steps) ||
        (p->n_replayed > 0 && mlxc_tape_compile(function, t, steps, p->n_replayed, p->engine->device, &p->composite)))
        goto fail;
    free(steps);
    return p;

no_memory:
    mlxc_report_memory(function);
fail:
    free(steps);
    mlxc_plan_release(p);
    return NULL;
}

mlxc_plan *mlxc_plan_retain(mlxc_plan *p)
{
    atomic_fetch_add_explicit(&p->references, 1, memory_order_relaxed);
    return p;
}

void mlxc_plan_release(mlxc_plan *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) != 1)
        return;
    if (p->composite && p->engine->is_gpu)       /* its kernel may still run */
        ol_stream_synchronize(p->engine->device, p->engine->stream, NULL);
    ol_composite_destroy(p->composite);
    for (size_t i = 0; i < MLXC_N_SHAPES; i++)
        mlxc_shapes_destroy(p, atomic_load(&p->shapes[i]));
    for (size_t i = 0; i < p->n_captured; i++)
        mlxc_body_release(p->captured[i]);
    for (size_t i = 0; i < p->n_outputs; i++)
        mlxc_body_release(p->outputs[i].fixed);
    free(p->captured);
    free(p->outputs);
    free(p);
}

/* ---- Errors of onelaunch's: its inputs after the closure's own are the captured arrays --------------------------------------- */

static void name_captured(const mlxc_plan *p, const char *from, char *to, size_t n_bytes)
{
    size_t n = 0, number;
    int n_read;
    while (*from && n + 1 < n_bytes)
        if (sscanf(from, "input %zu%n", &number, &n_read) == 1 && number >= p->n_inputs && number - p->n_inputs < p->n_captured) {
            n += (size_t)snprintf(to + n, n_bytes - n, "captured array %zu", number - p->n_inputs);
            from += n_read;
        } else {
            to[n++] = *from++;
        }
    to[n < n_bytes ? n : n_bytes - 1] = '\0';
}

int mlxc_plan_report(const char *function, const mlxc_plan *p, const ol_error *error)
{
    ol_error named = *error;
    name_captured(p, error->description, named.description, sizeof named.description);
    size_t n = strlen(named.description);
    if (error->status == OL_ERROR_SHAPE && !strstr(named.description, "expected"))
        snprintf(named.description + n, sizeof named.description - n, "; expected shapes that broadcast");
    return mlxc_report_core(function, &named);
}

/* ---- Running ------------------------------------------------------------------------------------------------------------- */

static int gather(const char *function, const mlxc_plan *p, mlxc_body *const *inputs, ol_tensor *tensors)
{
    for (size_t i = 0; i < p->n_inputs; i++)
        if (mlxc_body_tensor(function, inputs[i], p->engine, &tensors[i]))
            return 1;
    for (size_t i = 0; i < p->n_captured; i++)
        if (mlxc_body_tensor(function, p->captured[i], p->engine, &tensors[p->n_inputs + i]))
            return 1;
    return 0;
}

/* New bodies for the composite's outputs, and their tensors. *n_made counts them. */
static int make_outputs(const char *function, const mlxc_plan *p, mlxc_body *const *bare, ol_tensor *outputs, mlxc_body **made, size_t *n_made)
{
    for (size_t i = 0; i < p->n_replayed; i++) {
        made[i] = mlxc_body_new_like(function, bare[i], p->engine);
        if (!made[i])
            return 1;
        *n_made = i + 1;
        outputs[i] = made[i]->view;
        outputs[i].data = atomic_load_explicit(p->engine->is_gpu ? &made[i]->device : &made[i]->host, memory_order_relaxed);
    }
    return 0;
}

/* tensors: room for all inputs and outputs; made: for the composite's outputs. */
static int replay(const char *function, mlxc_plan *p, mlxc_body *const *inputs, int composed, ol_tensor *tensors, mlxc_body **made)
{
    ol_error error;
    size_t n_made = 0;
    mlxc_shapes *shapes = NULL;
    ol_tensor *outputs = tensors + p->n_inputs + p->n_captured;
    int failed = 1;
    if (gather(function, p, inputs, tensors))
        return 1;
    mlxc_body *const *bare = mlxc_plan_shapes(function, p, inputs, tensors, outputs, &shapes);
    if (bare && !make_outputs(function, p, bare, outputs, made, &n_made)) {
        failed = (composed ? ol_replay_composed : ol_replay)(p->composite, p->engine->stream, tensors, outputs, &error) != OL_OK;
        if (failed)
            mlxc_plan_report(function, p, &error);
    }
    while (failed && n_made > 0)
        mlxc_body_release(made[--n_made]);
    mlxc_shapes_destroy(p, shapes);
    return failed;
}

static void hand_out(const mlxc_plan *p, mlxc_body *const *made, mlxc_body **results)
{
    for (size_t i = 0; i < p->n_outputs; i++) {
        const mlxc_output *o = &p->outputs[i];
        results[i] = o->fixed ? mlxc_body_retain(o->fixed) : o->is_first ? made[o->replayed] : mlxc_body_retain(made[o->replayed]);
    }
}

int mlxc_plan_run(const char *function, mlxc_plan *p, mlxc_body *const *inputs, int composed, mlxc_body **results)
{
    ol_tensor few_tensors[FEW], *tensors = few_tensors;
    mlxc_body *few_made[FEW], **made = few_made;
    size_t n = p->n_inputs + p->n_captured + p->n_replayed;
    void *allocated = NULL;
    if (!p->composite) {
        for (size_t i = 0; i < p->n_inputs; i++)
            if (mlxc_check_placeholder(function, inputs[i]))
                return 1;
        hand_out(p, NULL, results);
        return 0;
    }
    if (n > FEW) {
        tensors = allocated = malloc(n * sizeof *tensors + p->n_replayed * sizeof *made);
        if (!allocated)
            return mlxc_report_memory(function);
        made = (mlxc_body **)(tensors + n);
    }
    int failed = replay(function, p, inputs, composed, tensors, made);
    if (!failed)
        hand_out(p, made, results);
    free(allocated);
    return failed;
}
