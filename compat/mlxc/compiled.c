/* Compiled closures: find the plan for the inputs at hand, or trace the function and make it; then run it.
 *
 * A plan belongs to the function that was compiled, not to the compiled closure, so that compiling again costs no trace. A shapeless one
 * is kept by dtypes alone, unless the function looked at ranks or shapes while it was traced: from then on its plans are kept by
 * these too. Threads that miss at once each trace, and the first plan is kept: making one wait for the other's callback could lock up
 * both. */
#include "cache.h"
#include "closure.h"
#include "report.h"

#include "mlx/c/compile.h"

#include <stdlib.h>
#include <string.h>

#define FEW 16
#define FEW_BYTES 512

static atomic_int mode = MLX_COMPILE_MODE_ENABLED;
static atomic_uint_least64_t last_trace;

/* ---- Keys: the function's serial, the detail, and for each input its dtype, and as the detail says its rank and extents ---- */

typedef struct plan_key {
    size_t n_bytes;
    unsigned char *bytes;              /* few, or from malloc */
    _Alignas(8) unsigned char few[FEW_BYTES];
} plan_key;

static size_t key_size(const mlxc_vector *input, mlxc_detail detail)
{
    size_t n = sizeof(uint64_t) + 1 + input->n * (detail == MLXC_DTYPES ? 1 : 2);
    for (size_t i = 0; detail == MLXC_SHAPES && i < input->n; i++)
        n += (size_t)input->items[i]->view.rank * sizeof(int);
    return n;
}

static int key_make(const char *function, plan_key *key, const mlxc_function *f, const mlxc_vector *input, mlxc_detail detail)
{
    key->n_bytes = key_size(input, detail);
    key->bytes = key->n_bytes <= sizeof key->few ? key->few : malloc(key->n_bytes);
    if (!key->bytes)
        return mlxc_report_memory(function);
    unsigned char *to = key->bytes;
    memcpy(to, &f->serial, sizeof f->serial);
    to += sizeof f->serial;
    *to++ = (unsigned char)detail;
    for (size_t i = 0; i < input->n; i++) {
        const mlxc_body *b = input->items[i];
        size_t n_bytes = detail == MLXC_SHAPES ? (size_t)b->view.rank * sizeof *b->shape : 0;
        *to++ = (unsigned char)b->view.dtype;
        if (detail >= MLXC_RANKS)
            *to++ = (unsigned char)b->view.rank;
        memcpy(to, b->shape, n_bytes);
        to += n_bytes;
    }
    return 0;
}

static void key_free(plan_key *key)
{
    if (key->bytes != key->few)
        free(key->bytes);
}

/* ---- Tracing ------------------------------------------------------------------------------------------------------------------- */

static const mlxc_count *find_count(const mlxc_count *c, size_t n_inputs)
{
    while (c && c->n_inputs != n_inputs)
        c = c->next;
    return c;
}

int mlxc_function_check_count(const char *function, mlxc_function *f, size_t n_inputs, size_t n_outputs)
{
    mlxc_count *first = atomic_load(&f->counts), *made = NULL;
    const mlxc_count *before;
    while (!(before = find_count(first, n_inputs))) {
        if (!made && !(made = malloc(sizeof *made)))
            return mlxc_report_memory(function);
        *made = (mlxc_count){ first, n_inputs, n_outputs };
        if (atomic_compare_exchange_strong(&f->counts, &first, made))
            return 0;
    }
    free(made);                        /* another thread was quicker */
    if (before->n_outputs == n_outputs)
        return 0;
    return mlxc_report(function, "the closure's function set %zu outputs; expected %zu, as it set before when given %zu inputs", n_outputs,
                       before->n_outputs, n_inputs);
}

static mlxc_vector *make_placeholders(const char *function, mlxc_tape *t, const mlxc_vector *input)
{
    mlxc_vector *v = NULL;
    size_t n = 0;
    mlxc_body **bodies = malloc((input->n + 1) * sizeof *bodies);
    if (!bodies) {
        mlxc_report_memory(function);
        return NULL;
    }
    for (; n < input->n; n++) {
        uint32_t step;
        if (mlxc_tape_input(function, t, n, input->items[n], &step) || !(bodies[n] = mlxc_tape_placeholder(function, t, step)))
            break;
    }
    if (n == input->n)
        v = mlxc_vector_new(function, bodies, n);
    else
        while (n > 0)
            mlxc_body_release(bodies[--n]);
    free(bodies);
    return v;
}

/* *asked: what the plan depends on; *is_for_once: whether it holds within the traces around this one alone. */
static mlxc_plan *trace(const char *function, mlxc_function *f, const mlxc_vector *input, mlxc_detail *asked, int *is_for_once)
{
    mlxc_plan *p = NULL;
    mlxc_tape *t = calloc(1, sizeof *t);
    if (!t) {
        mlxc_report_memory(function);
        return NULL;
    }
    t->serial = atomic_fetch_add(&last_trace, 1) + 1;
    t->n_inputs = input->n;
    mlxc_vector *placeholders = make_placeholders(function, t, input), *out = NULL;
    if (placeholders) {
        mlxc_tape_begin(t);
        out = mlxc_function_apply(function, f, placeholders);
        mlxc_tape_end(t);
    }
    if (out)
        p = mlxc_plan_new(function, t, out->items, out->n);
    if (p && mlxc_function_check_count(function, f, input->n, out->n)) {
        mlxc_plan_release(p);
        p = NULL;
    }
    *asked = t->asked;
    *is_for_once = t->is_for_once;
    mlxc_vector_destroy(out);
    mlxc_vector_destroy(placeholders);
    mlxc_tape_destroy(t);
    free(t);
    return p;
}

static mlxc_vector *copy_of(const char *function, const mlxc_vector *v)
{
    for (size_t i = 0; i < v->n; i++)
        mlxc_body_retain(v->items[i]);
    return mlxc_vector_new(function, v->items, v->n);
}

static void raise_detail(mlxc_function *f, int asked)
{
    int now = atomic_load(&f->detail);
    while (now < asked && !atomic_compare_exchange_weak(&f->detail, &now, asked))
        ;
}

/* The key is of the detail given, and becomes one of what the trace depends on, where that is more. */
static mlxc_plan *make(const char *function, mlxc_function *f, const mlxc_vector *input, mlxc_detail detail, plan_key *key)
{
    mlxc_detail asked = MLXC_DTYPES;
    int is_for_once = 0;
    mlxc_plan *p = trace(function, f, input, &asked, &is_for_once);
    if (!p || is_for_once)
        return p;
    raise_detail(f, asked);
    if (asked > detail) {
        key_free(key);
        if (key_make(function, key, f, input, asked)) {
            mlxc_plan_release(p);
            return NULL;
        }
    }
    atomic_store(&f->has_plans, 1);
    mlxc_cache_add(key->bytes, key->n_bytes, p);
    return p;
}

/* Where the function is called, which may change the vector that it was applied to or free it, *kept is a copy of that. */
static mlxc_plan *find_or_make(const char *function, mlxc_function *f, const mlxc_vector *input, int is_shapeless, mlxc_vector **kept)
{
    plan_key key;
    mlxc_detail detail = is_shapeless ? (mlxc_detail)atomic_load_explicit(&f->detail, memory_order_relaxed) : MLXC_SHAPES;
    if (key_make(function, &key, f, input, detail))
        return NULL;
    mlxc_plan *p = mlxc_cache_find(key.bytes, key.n_bytes);
    if (!p && (*kept = copy_of(function, input)))
        p = make(function, f, *kept, detail, &key);
    key_free(&key);
    return p;
}

/* ---- Applying ------------------------------------------------------------------------------------------------------------------ */

static mlxc_vector *run(const char *function, mlxc_plan *p, const mlxc_vector *input, int composed)
{
    mlxc_body *few[FEW], **results = p->n_outputs <= FEW ? few : malloc(p->n_outputs * sizeof *results);
    if (!results) {
        mlxc_report_memory(function);
        return NULL;
    }
    mlxc_vector *out = mlxc_plan_run(function, p, input->items, composed, results) ? NULL : mlxc_vector_new(function, results, p->n_outputs);
    if (results != few)
        free(results);
    return out;
}

/* Whether it is applied to something that is being traced: then its function becomes part of that. */
static int is_traced(const mlxc_vector *input)
{
    for (size_t i = 0; i < input->n; i++)
        if (input->items[i]->trace)
            return 1;
    return 0;
}

mlxc_vector *mlxc_compiled_apply(const char *function, mlxc_function *compiled, mlxc_vector *input)
{
    mlxc_function *f = compiled->compiled;
    int now = atomic_load_explicit(&mode, memory_order_relaxed);
    for (size_t i = 0; i < input->n; i++)
        if (mlxc_check_placeholder(function, input->items[i]))
            return NULL;
    if (now == MLX_COMPILE_MODE_DISABLED || is_traced(input)) {
        size_t n_inputs = input->n;    /* the function may free the vector */
        mlxc_vector *out = mlxc_function_apply(function, f, input);
        if (out && mlxc_function_check_count(function, f, n_inputs, out->n)) {
            mlxc_vector_destroy(out);
            out = NULL;
        }
        return out;
    }
    mlxc_vector *kept = NULL;
    mlxc_plan *p = find_or_make(function, f, input, compiled->is_shapeless, &kept);
    mlxc_vector *out = p ? run(function, p, kept ? kept : input, now == MLX_COMPILE_MODE_NO_FUSE) : NULL;
    mlxc_vector_destroy(kept);
    mlxc_plan_release(p);
    return out;
}

int mlx_compile(mlx_closure *res, const mlx_closure fun, bool shapeless)
{
    if (!res)
        return mlxc_report_no_place(__func__);
    mlxc_function *f = mlxc_function_of(__func__, "the closure", fun);
    if (f && f->compiled)                               /* compiled anew: what it was compiled from */
        f = f->compiled;
    mlxc_function *compiled = f ? mlxc_function_new(__func__, &(mlxc_function){ .compiled = f, .is_shapeless = shapeless }) : NULL;
    if (!compiled)
        return 1;
    mlxc_function_retain(f);
    return mlxc_closure_assign(__func__, res, compiled);
}

int mlx_set_compile_mode(mlx_compile_mode m)
{
    if ((unsigned)m > MLX_COMPILE_MODE_ENABLED)
        return mlxc_report(__func__, "%d is no mode; expected 0 (disabled) to 3 (enabled)", (int)m);
    atomic_store(&mode, (int)m);
    return 0;
}

int mlx_enable_compile(void)
{
    return mlx_set_compile_mode(MLX_COMPILE_MODE_ENABLED);
}

int mlx_disable_compile(void)
{
    return mlx_set_compile_mode(MLX_COMPILE_MODE_DISABLED);
}

int mlx_detail_compile_clear_cache(void)
{
    mlxc_cache_clear();
    return 0;
}
