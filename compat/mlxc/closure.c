/* Closures: their handles, and calling the client's function. */
#include "closure.h"

#include "cache.h"
#include "last_call.h"
#include "nesting.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls within calls; a closure that applies itself would use up the stack. */
#define MAX_DEPTH 200

static atomic_uint_least64_t last_serial;
static _Thread_local mlxc_nesting nesting;

mlxc_function *mlxc_function_of(const char *function, const char *what, mlx_closure c)
{
    if (c.ctx)
        return *(mlxc_function **)c.ctx;
    mlxc_report(function, "%s is an empty handle; expected a closure", what);
    return NULL;
}

mlxc_function *mlxc_function_new(const char *function, const mlxc_function *like)
{
    mlxc_function *f = malloc(sizeof *f);
    if (!f) {
        mlxc_report_memory(function);
        return NULL;
    }
    *f = *like;
    atomic_init(&f->references, 1);
    f->serial = atomic_fetch_add(&last_serial, 1) + 1;
    return f;
}

mlxc_function *mlxc_function_retain(mlxc_function *f)
{
    atomic_fetch_add_explicit(&f->references, 1, memory_order_relaxed);
    return f;
}

void mlxc_function_release(mlxc_function *f)
{
    if (!f || atomic_fetch_sub_explicit(&f->references, 1, memory_order_acq_rel) != 1)
        return;
    mlxc_function *compiled = f->compiled;
    mlxc_count *next = atomic_load(&f->counts);
    if (atomic_load(&f->has_plans))
        mlxc_cache_forget(f->serial);
    for (mlxc_count *c = next; c; c = next) {
        next = c->next;
        free(c);
    }
    mlxc_last_call(f, f->dtor, f->payload);
    mlxc_function_release(compiled);   /* which compiles none itself */
}

int mlxc_closure_assign(const char *function, mlx_closure *c, mlxc_function *f)
{
    mlxc_function **box = c->ctx;
    if (!f)
        return 1;
    if (!box) {
        box = malloc(sizeof *box);
        if (!box) {
            mlxc_function_release(f);
            return mlxc_report_memory(function);
        }
        *box = f;
        c->ctx = box;
        return 0;
    }
    mlxc_function *last = *box;
    *box = f;
    mlxc_function_release(last);
    return 0;
}

/* ---- Handles --------------------------------------------------------------------------------------------------------------- */

mlx_closure mlx_closure_new(void)
{
    return (mlx_closure){ NULL };
}

/* The dtor is only the closure's once there is one. */
static mlx_closure handle_of(const char *function, const mlxc_function *like, void (*dtor)(void *))
{
    mlx_closure c = { NULL };
    if (!like->plain && !like->unary && !like->with_payload) {
        mlxc_report(function, "the function is NULL; expected one to call");
        return c;
    }
    mlxc_function *f = mlxc_function_new(function, like);
    if (!mlxc_closure_assign(function, &c, f))
        f->dtor = dtor;
    return c;
}

mlx_closure mlx_closure_new_func(int (*fun)(mlx_vector_array *, const mlx_vector_array))
{
    return handle_of(__func__, &(mlxc_function){ .plain = fun }, NULL);
}

mlx_closure mlx_closure_new_func_payload(int (*fun)(mlx_vector_array *, const mlx_vector_array, void *), void *payload, void (*dtor)(void *))
{
    return handle_of(__func__, &(mlxc_function){ .with_payload = fun, .payload = payload }, dtor);
}

mlx_closure mlx_closure_new_unary(int (*fun)(mlx_array *, const mlx_array))
{
    return handle_of(__func__, &(mlxc_function){ .unary = fun }, NULL);
}

int mlx_closure_set(mlx_closure *c, const mlx_closure src)
{
    if (!c)
        return mlxc_report_no_place(__func__);
    mlxc_function *f = mlxc_function_of(__func__, "the source", src);
    return f ? mlxc_closure_assign(__func__, c, mlxc_function_retain(f)) : 1;
}

int mlx_closure_free(mlx_closure c)
{
    if (c.ctx) {
        mlxc_function *f = *(mlxc_function **)c.ctx;
        free(c.ctx);
        mlxc_function_release(f);
    }
    return 0;
}

/* ---- Calling ----------------------------------------------------------------------------------------------------------------- */

/* The input of a client's function is a handle on loan; a function that hands that very handle back means what it refers to. */
static int call_vector(mlxc_function *f, mlxc_vector *input, mlx_vector_array *out)
{
    mlx_vector_array in = { input };
    int code = f->plain ? f->plain(out, in) : f->with_payload(out, in, f->payload);
    if (out->ctx == input) {
        out->ctx = NULL;
        if (code == 0)
            mlx_vector_array_set(out, in);
    }
    return code;
}

static int call_unary(const char *function, mlxc_function *f, mlxc_vector *input, mlx_vector_array *out)
{
    mlxc_box box = { input->items[0] };
    mlx_array in = { &box }, result = { NULL };
    mlxc_body_retain(box.body);        /* the box's own, in case the function assigns to it */
    int code = f->unary(&result, in);
    mlxc_body *b = code == 0 && result.ctx ? mlxc_body_retain(((mlxc_box *)result.ctx)->body) : NULL;
    if (result.ctx != &box)
        mlx_array_free(result);
    mlxc_body_release(box.body);
    if (b)
        out->ctx = mlxc_vector_new(function, &b, 1);
    return code;
}

#define WHY "; the last error in it was: "

/* Says why too: a handler may keep the last message only. Of calls within calls, the reason of the innermost. */
static void report_call(const char *function, int code)
{
    char cause[MLXC_MAX_MESSAGE / 2];
    const char *last = mlxc_last_message(), *of_inner = strstr(last, WHY);
    snprintf(cause, sizeof cause, "%s", of_inner ? of_inner + strlen(WHY) : last);
    const char *before = *cause ? WHY : "";
    if (code != 0)
        mlxc_report(function, "the closure's function returned %d; expected 0%s%s", code, before, cause);
    else
        mlxc_report(function, "the closure's function returned 0 and set no output; expected one array at least%s%s", before, cause);
}

mlxc_vector *mlxc_function_call(const char *function, mlxc_function *f, mlxc_vector *input)
{
    mlx_vector_array out = { NULL };
    if (f->unary && input->n != 1) {
        mlxc_report(function, "%zu arrays were given to a function of one array; expected one", input->n);
        return NULL;
    }
    if (!mlxc_nesting_enter(&nesting, MLXC_FRAME, MAX_DEPTH)) {
        mlxc_report(function, "closures apply each other %d deep; expected fewer: does one apply itself?", MAX_DEPTH);
        return NULL;
    }
    *mlxc_last_message() = '\0';
    int code = f->unary ? call_unary(function, f, input, &out) : call_vector(f, input, &out);
    mlxc_nesting_leave(&nesting, MLXC_FRAME);
    mlxc_vector *v = out.ctx;
    if (code == 0 && v && v->n > 0)
        return v;
    mlxc_vector_destroy(v);
    report_call(function, code);
    return NULL;
}

mlxc_vector *mlxc_function_apply(const char *function, mlxc_function *f, mlxc_vector *input)
{
    return f->compiled ? mlxc_compiled_apply(function, f, input) : mlxc_function_call(function, f, input);
}

int mlx_closure_apply(mlx_vector_array *res, mlx_closure cls, const mlx_vector_array input)
{
    if (!res)
        return mlxc_report_no_place(__func__);
    mlxc_function *f = mlxc_function_of(__func__, "the closure", cls);
    mlxc_vector *in = f ? mlxc_vector_of(__func__, "the input", input) : NULL;
    if (!in)
        return 1;
    mlxc_function_retain(f);           /* the function may free the closure that it is called by */
    mlxc_vector *out = mlxc_function_apply(__func__, f, in);
    mlxc_function_release(f);
    return mlxc_vector_assign(res, out);
}
