/* What shapes a plan's outputs have. onelaunch infers them; plans remember the first few answers, since a program that decodes asks for
 * the same one at each token. Remembered ones are only ever added, so they are read without a lock. */
#include "plan.h"

#include "report.h"

#include <stdlib.h>
#include <string.h>

static int same_shape(const mlxc_body *x, const mlxc_body *y)
{
    return x->view.rank == y->view.rank && memcmp(x->shape, y->shape, (size_t)x->view.rank * sizeof *x->shape) == 0;
}

static int serves(const mlxc_plan *p, const mlxc_shapes *s, mlxc_body *const *inputs)
{
    for (size_t i = 0; i < p->n_inputs; i++)
        if (!same_shape(s->inputs[i], inputs[i]))
            return 0;
    return 1;
}

void mlxc_shapes_destroy(const mlxc_plan *p, mlxc_shapes *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < p->n_inputs + p->n_replayed; i++)
        mlxc_body_release(s->inputs[i]);
    free(s);
}

/* Bare bodies of the shapes of the inputs and of the composite's outputs. */
static mlxc_shapes *record(const char *function, const mlxc_plan *p, mlxc_body *const *inputs, const ol_tensor *outputs)
{
    size_t n = p->n_inputs + p->n_replayed;
    mlxc_shapes *s = calloc(1, sizeof *s + n * sizeof(mlxc_body *));
    if (!s) {
        mlxc_report_memory(function);
        return NULL;
    }
    s->inputs = (mlxc_body **)(s + 1);
    s->outputs = s->inputs + p->n_inputs;
    for (size_t i = 0; i < n; i++) {
        const ol_tensor *t = i < p->n_inputs ? &inputs[i]->view : &outputs[i - p->n_inputs];
        s->inputs[i] = mlxc_body_new_bare(function, t->dtype, t->rank, t->shape);
        if (!s->inputs[i]) {
            mlxc_shapes_destroy(p, s);
            return NULL;
        }
    }
    return s;
}

mlxc_body *const *mlxc_plan_shapes(const char *function, mlxc_plan *p, mlxc_body *const *inputs, const ol_tensor *tensors, ol_tensor *outputs,
                                   mlxc_shapes **made)
{
    ol_error error;
    mlxc_shapes *s;
    size_t slot = 0;
    for (; slot < MLXC_N_SHAPES && (s = atomic_load_explicit(&p->shapes[slot], memory_order_acquire)); slot++)
        if (serves(p, s, inputs))
            return s->outputs;
    if (ol_output_shapes(p->composite, tensors, outputs, &error) != OL_OK) {
        mlxc_plan_report(function, p, &error);
        return NULL;
    }
    s = record(function, p, inputs, outputs);
    if (!s)
        return NULL;
    for (mlxc_shapes *none = NULL; slot < MLXC_N_SHAPES; slot++, none = NULL)
        if (atomic_compare_exchange_strong(&p->shapes[slot], &none, s))
            return s->outputs;
    *made = s;
    return s->outputs;
}
