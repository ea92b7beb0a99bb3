/* Chains and nests of any depth, on a thread with the stack that Rust gives its own (2 MiB): the library's recursion never uses it up. */
#include "client.h"

#include <pthread.h>

static void on_a_small_stack(void *(*work)(void *), void *user)
{
    pthread_attr_t attributes;
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, (size_t)(sanitized() ? 8 : 2) << 20), 0);
    assert_int_equal(pthread_create(&thread, &attributes, work, user), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    pthread_attr_destroy(&attributes);
    assert_ptr_equal(result, user);                      /* what it returns if all was well */
}

/* ---- Destructors that release the next of a chain ---- */

enum { N_LINKS = 100000 };
static long n_released;

static void release_closure(void *next)
{
    mlx_closure c = { next };
    n_released++;
    mlx_closure_free(c);
}

static void release_array(void *next)
{
    mlx_array a = { next };
    n_released++;
    mlx_array_free(a);
}

static int one(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    (void)payload;
    return mlx_vector_array_set(res, input);
}

static void *chain_of_closures(void *user)
{
    mlx_closure last = mlx_closure_new();
    n_released = 0;
    for (int i = 0; i < N_LINKS; i++) {
        mlx_closure next = mlx_closure_new_func_payload(one, last.ctx, release_closure);
        last = mlx_closure_new();
        if (mlx_compile(&last, next, true) || mlx_closure_free(next))
            return NULL;
    }
    mlx_closure_free(last);
    return n_released == N_LINKS ? user : NULL;
}

/* The data of each is the handle of the next. */
static void *chain_of_arrays(void *user)
{
    mlx_array last = mlx_array_new_float32(1);
    n_released = 0;
    for (int i = 0; i < N_LINKS && last.ctx; i++)
        last = mlx_array_new_data_managed(last.ctx, NULL, 0, MLX_UINT8, release_array);
    mlx_array_free(last);
    return n_released == N_LINKS ? user : NULL;
}

/* A compiled closure whose composite is the last owner of the array that it captured, whose destructor frees the next closure. */
typedef struct link {
    float values[2];
    mlx_array captured;
    mlx_closure next;
} link;

static void release_link(void *data)
{
    link *l = data;
    n_released++;
    mlx_closure_free(l->next);
    free(l);
}

static int adds_captured(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array x = mlx_array_new();
    int code = mlx_vector_array_get(&x, input, 0) || mlx_add(&x, x, ((link *)payload)->captured, stream) || mlx_vector_array_set_value(res, x);
    mlx_array_free(x);
    return code;
}

static void *chain_through_composites(void *user)
{
    const int two = 2, n = sanitized() || fake_launches() >= 0 ? 50 : 700;
    mlx_closure last = mlx_closure_new();
    mlx_array in = mlx_array_new_float32(1);
    mlx_vector_array v = mlx_vector_array_new_value(in), out = mlx_vector_array_new();
    int code = 0;
    n_released = 0;
    for (int i = 0; i < n && !code; i++) {
        link *l = calloc(1, sizeof *l);
        if (!l)
            return NULL;
        l->next = last;
        l->captured = mlx_array_new_data_managed(l, &two, 1, MLX_FLOAT32, release_link);
        mlx_closure plain = mlx_closure_new_func_payload(adds_captured, l, NULL);
        last = mlx_closure_new();
        code = mlx_compile(&last, plain, true) || mlx_closure_apply(&out, last, v) || mlx_array_free(l->captured) || mlx_closure_free(plain);
    }
    code = code || n_released > 0 || mlx_closure_free(last);
    mlx_vector_array_free(v);
    mlx_vector_array_free(out);
    mlx_array_free(in);
    return !code && n_released == n ? user : NULL;
}

static void chains(void **state)
{
    static void *(*const works[])(void *) = { chain_of_closures, chain_of_arrays, chain_through_composites };
    (void)state;
    for (size_t i = 0; i < COUNT(works); i++)
        on_a_small_stack(works[i], &n_released);
    assert_int_equal(error_take(), 0);
}

/* What is put off is made before the outermost call is over, and a short nest is not put off at all. */
static int order[3], n_ordered;

static void release_in_order(void *data)
{
    link *l = data;
    int number = (int)l->values[0];
    mlx_closure_free(l->next);
    order[n_ordered++] = number;
}

static void a_short_nest(void **state)
{
    link links[3] = { { .values = { 0 } }, { .values = { 1 } }, { .values = { 2 } } };
    mlx_closure last = mlx_closure_new();
    (void)state;
    for (int i = 0; i < 3; i++) {
        links[i].next = last;
        last = mlx_closure_new_func_payload(one, &links[i], release_in_order);
    }
    n_ordered = 0;
    OK(mlx_closure_free(last));
    assert_int_equal(n_ordered, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(order[i], i);                   /* the inner ones had returned */
}

/* ---- Closures that apply themselves, in each mode ---- */

static int applies_itself(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    return mlx_closure_apply(res, *(mlx_closure *)payload, input);
}

/* To an array, so that each apply is a trace within the others. */
static int applies_itself_to_an_array(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    static uint16_t shape;
    int n = 1 + __atomic_fetch_add(&shape, 1, __ATOMIC_RELAXED) % 1000;
    mlx_array x = mlx_array_new();
    (void)input;
    int code = mlx_zeros(&x, &n, 1, MLX_FLOAT32, stream);
    mlx_vector_array v = mlx_vector_array_new_value(x);
    code = code || mlx_closure_apply(res, *(mlx_closure *)payload, v);
    mlx_vector_array_free(v);
    mlx_array_free(x);
    return code;
}

static void *self_applying(void *user)
{
    static closure_function *const functions[] = { applies_itself, applies_itself_to_an_array };
    mlx_array x = mlx_array_new_float32(1);
    mlx_vector_array v = mlx_vector_array_new_value(x), out = { 0 };
    int n_failed = 0;
    for (int i = 0; i < 8; i++) {
        mlx_closure self = { 0 }, plain = mlx_closure_new_func_payload(functions[i % 2], &self, NULL);
        if (i & 4 ? mlx_disable_compile() : mlx_enable_compile())
            return NULL;
        if (i & 2 ? mlx_compile(&self, plain, false) : mlx_closure_set(&self, plain))
            return NULL;
        n_failed += mlx_closure_apply(&out, self, v) == 1 && error_take() == 201;
        mlx_closure_free(plain);
        mlx_closure_free(self);
    }
    mlx_enable_compile();
    mlx_vector_array_free(v);
    mlx_array_free(x);
    return n_failed == 8 && !out.ctx ? user : NULL;
}

static void closures_that_apply_themselves(void **state)
{
    (void)state;
    on_a_small_stack(self_applying, &n_released);
}

/* ---- Long graphs ---- */

static int adds_often(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array r = mlx_array_new(), half = mlx_array_new_float32(0.5f);
    int code = mlx_vector_array_get(&r, input, 0);
    for (int i = 0; i < *(int *)payload; i++)
        code = code || (i % 2 ? mlx_negative(&r, r, stream) : mlx_add(&r, r, half, stream));
    code = code || mlx_vector_array_set_value(res, r);
    mlx_array_free(r);
    mlx_array_free(half);
    return code;
}

static void *long_graph(void *user)
{
    int n = sanitized() || fake_launches() >= 0 ? 400 : 80000;
    mlx_closure plain = mlx_closure_new_func_payload(adds_often, &n, NULL), c = mlx_closure_new();
    mlx_array x = mlx_array_new_float32(3), r = mlx_array_new();
    mlx_vector_array v = mlx_vector_array_new_value(x), out = { 0 };
    float item = 0;
    int code = mlx_compile(&c, plain, true) || mlx_closure_apply(&out, c, v) || mlx_vector_array_get(&r, out, 0) || mlx_array_item_float32(&item, r);
    mlx_closure_free(plain);
    mlx_closure_free(c);
    mlx_array_free(x);
    mlx_array_free(r);
    mlx_vector_array_free(v);
    mlx_vector_array_free(out);
    return code == 0 && item == 3 ? user : NULL;
}

static void long_graphs(void **state)
{
    (void)state;
    on_a_small_stack(long_graph, &n_released);
}

/* One operation more than a graph may have is an error, and not the end. */
static void a_graph_that_is_too_long(void **state)
{
    int n = 300000;
    mlx_array x = mlx_array_new_float32(3), out;
    mlx_closure c = compiled(adds_often, &n, true);
    (void)state;
    FAILS(apply(c, 1, &x, 1, &out), "expected at most so many");
    free_all(1, &x);
    OK(mlx_closure_free(c));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains), cmocka_unit_test(a_short_nest), cmocka_unit_test(closures_that_apply_themselves),
        cmocka_unit_test(long_graphs), cmocka_unit_test(a_graph_that_is_too_long),
    };
    return CLIENT_RUN(argc, argv, tests);
}
