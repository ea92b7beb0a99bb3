/* Threads through mlx-c's interface: one composite applied by all, others traced, compiled, cleared and freed meanwhile, arrays shared,
 * each thread's errors its own. */
#include "seed.h"

#include <pthread.h>

enum { N_THREADS = 6 };

typedef struct shared {
    mlx_closure rates;
    mlx_array in[4], expected[2];
} shared;

static void shared_begin(shared *s, mlx_closure rates)
{
    s->rates = rates;
    seed_inputs(s->in);
    s->expected[0] = mlx_array_new();
    s->expected[1] = mlx_array_new();
    OK(mlx_sigmoid(&s->expected[0], s->in[0], stream));
    OK(seed_decay(&s->expected[1], s->in[1], s->in[2], s->in[3]));
    OK(mlx_array_eval(s->expected[0]));
    OK(mlx_array_eval(s->expected[1]));
}

static void shared_end(shared *s)
{
    free_all(4, s->in);
    free_all(2, s->expected);
}

static bool same(mlx_array a, mlx_array b)
{
    const void *x = mlx_array_dtype(a) == MLX_FLOAT32 ? (const void *)mlx_array_data_float32(a) : (const void *)mlx_array_data_bfloat16(a);
    const void *y = mlx_array_dtype(b) == MLX_FLOAT32 ? (const void *)mlx_array_data_float32(b) : (const void *)mlx_array_data_bfloat16(b);
    return x && y && mlx_array_nbytes(a) == mlx_array_nbytes(b) && memcmp(x, y, mlx_array_nbytes(a)) == 0;
}

/* No cmocka here: it is the main thread's. */
static bool apply_once(const shared *s, mlx_closure c)
{
    mlx_vector_array in = mlx_vector_array_new_data(s->in, 4), out = { 0 };
    bool right = mlx_closure_apply(&out, c, in) == 0 && mlx_vector_array_size(out) == 2;
    for (size_t i = 0; right && i < 2; i++) {
        mlx_array r = mlx_array_new();
        right = mlx_vector_array_get(&r, out, i) == 0 && mlx_array_eval(r) == 0 && same(r, s->expected[i]);
        mlx_array_free(r);
    }
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    return right;
}

static int n_rounds(void)
{
    return sanitized() || getenv("ONELAUNCH_TEST_EMULATED") ? 60 : 600;
}

typedef struct worker {
    pthread_t thread;
    shared *s;
    int index, n_wrong;
} worker;

static void run(shared *s, void *(*work)(void *), int n)
{
    worker w[N_THREADS];
    for (int i = 0; i < n; i++) {
        w[i] = (worker){ .s = s, .index = i };
        assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].n_wrong, 0);
    }
}

static void *apply_all(void *user)
{
    worker *w = user;
    for (int i = 0; i < n_rounds(); i++)
        w->n_wrong += !apply_once(w->s, w->s->rates);
    return NULL;
}

/* Nobody has traced it before: all start at once. */
static void one_composite(void **state)
{
    shared s;
    int n_calls = 0;
    mlx_closure rates = compiled(seed_rates, &n_calls, true);
    (void)state;
    shared_begin(&s, rates);
    run(&s, apply_all, N_THREADS);
    assert_true(n_calls >= 1);
    shared_end(&s);
    OK(mlx_closure_free(rates));
}

/* Some trace, some apply, one clears the cache, one compiles and frees, one fails. */
static void *mixed(void *user)
{
    worker *w = user;
    const mlx_array none = { 0 };
    for (int i = 0; i < n_rounds(); i++)
        switch (w->index) {
        case 0:
            if (i % 10 == 0)
                w->n_wrong += mlx_detail_compile_clear_cache() != 0;
            w->n_wrong += !apply_once(w->s, w->s->rates);
            break;
        case 1: case 2: {
            mlx_closure plain = mlx_closure_new_func_payload(seed_rates, NULL, NULL), c = mlx_closure_new();
            w->n_wrong += mlx_compile(&c, plain, i % 2) != 0;
            w->n_wrong += !apply_once(w->s, c);
            w->n_wrong += !apply_once(w->s, plain);
            mlx_closure_free(plain);
            mlx_closure_free(c);
            break;
        }
        case 3: {
            mlx_array r = mlx_array_new();
            error_take();
            w->n_wrong += mlx_exp(&r, none, stream) != 1 || error_take() != 1;
            mlx_vector_array in = mlx_vector_array_new_data(w->s->in, 3), out = { 0 };
            w->n_wrong += mlx_closure_apply(&out, w->s->rates, in) != 1 || error_take() < 1;
            mlx_vector_array_free(in);
            break;
        }
        case 4: {
            mlx_array r = mlx_array_new();
            w->n_wrong += mlx_sigmoid(&r, w->s->in[0], stream) != 0 || mlx_array_eval(r) != 0 || !same(r, w->s->expected[0]);
            mlx_array_free(r);
            break;
        }
        default:
            w->n_wrong += !apply_once(w->s, w->s->rates);
        }
    return NULL;
}

static void tracing_and_applying(void **state)
{
    shared s;
    mlx_closure rates = compiled(seed_rates, NULL, true);
    (void)state;
    shared_begin(&s, rates);
    run(&s, mixed, N_THREADS);
    shared_end(&s);
    OK(mlx_closure_free(rates));
}

/* A function that asks for its input's size: each thread finds out, at other shapes, that traces of it hold for one shape each. */
static int times_its_size(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array x = mlx_array_new(), size = mlx_array_new();
    int code = mlx_vector_array_get(&x, input, 0) || mlx_array_set_float32(&size, (float)mlx_array_size(x)) || mlx_multiply(&x, x, size, stream) ||
               mlx_vector_array_set_value(res, x);
    __atomic_fetch_add((int *)payload, 1, __ATOMIC_RELAXED);
    mlx_array_free(x);
    mlx_array_free(size);
    return code;
}

static void *apply_at_many_shapes(void *user)
{
    worker *w = user;
    const float ones[7] = { 1, 1, 1, 1, 1, 1, 1 };
    for (int i = 0; i < n_rounds(); i++) {
        int n = 1 + (i + w->index) % 7;
        mlx_array x = mlx_array_new_data(ones, &n, 1, MLX_FLOAT32), r = mlx_array_new();
        mlx_vector_array in = mlx_vector_array_new_value(x), out = { 0 };
        bool right = mlx_closure_apply(&out, w->s->rates, in) == 0 && mlx_vector_array_get(&r, out, 0) == 0 && mlx_array_size(r) == (size_t)n;
        const float *data = right ? mlx_array_data_float32(r) : NULL;
        for (int k = 0; data && k < n; k++)
            w->n_wrong += data[k] != (float)n;
        w->n_wrong += !data;
        mlx_array_free(x);
        mlx_array_free(r);
        mlx_vector_array_free(in);
        mlx_vector_array_free(out);
    }
    return NULL;
}

static void shapes_asked_for(void **state)
{
    int n_calls = 0;
    shared s = { .rates = compiled(times_its_size, &n_calls, true) };
    (void)state;
    run(&s, apply_at_many_shapes, N_THREADS);
    assert_in_range(n_calls, 7, 7 * N_THREADS);
    n_calls = 0;
    run(&s, apply_at_many_shapes, N_THREADS);
    assert_int_equal(n_calls, 0);
    OK(mlx_closure_free(s.rates));
}

/* Bools of managed memory, of which all threads ask for the copy at once; and a closure disabled from being compiled, whose first count
 * all remember at once. */
static const void *seen_by[N_THREADS];

static void *read_bools(void *user)
{
    worker *w = user;
    const unsigned char *data = (const void *)mlx_array_data_bool(w->s->in[0]);
    seen_by[w->index] = data;
    for (int i = 0; i < 4000; i++)
        w->n_wrong += data[i] != (i % 3 != 0);
    w->n_wrong += !apply_once(w->s + 1, w->s->rates);
    return NULL;
}

static void first_reads(void **state)
{
    static unsigned char bytes[4000];
    const int n = 4000;
    (void)state;
    for (int i = 0; i < n; i++)
        bytes[i] = (unsigned char)(i % 3);
    for (int round = 0; round < 20; round++) {
        shared s[2];
        shared_begin(&s[1], compiled(seed_rates, NULL, true));
        s[0] = (shared){ .rates = s[1].rates, .in = { mlx_array_new_data_managed(bytes, &n, 1, MLX_BOOL, NULL) } };
        OK(mlx_disable_compile());
        run(s, read_bools, N_THREADS);
        OK(mlx_enable_compile());
        for (int i = 1; i < N_THREADS; i++)
            assert_ptr_equal(seen_by[i], seen_by[0]);
        free_all(1, s[0].in);
        OK(mlx_closure_free(s[1].rates));
        shared_end(&s[1]);
    }
}

/* References to one array taken and given up by all; the last one may go on any thread. */
static int n_released;

static void release(void *data)
{
    (void)data;
    __atomic_fetch_add(&n_released, 1, __ATOMIC_RELAXED);
}

static void *take_and_give(void *user)
{
    worker *w = user;
    for (int i = 0; i < n_rounds() * 10; i++) {
        mlx_array a = mlx_array_new();
        mlx_closure c = mlx_closure_new();
        w->n_wrong += mlx_array_set(&a, w->s->in[0]) != 0 || mlx_closure_set(&c, w->s->rates) != 0;
        w->n_wrong += mlx_array_size(a) != 4;
        mlx_array_free(a);
        mlx_closure_free(c);
    }
    return NULL;
}

static void references(void **state)
{
    static float x[4];
    const int n = 4;
    (void)state;
    n_released = 0;
    shared s = { .rates = mlx_closure_new_func_payload(seed_rates, x, release) };
    s.in[0] = mlx_array_new_data_managed(x, &n, 1, MLX_FLOAT32, release);
    run(&s, take_and_give, N_THREADS);
    assert_int_equal(n_released, 0);
    OK(mlx_closure_free(s.rates));
    free_all(1, s.in);
    assert_int_equal(n_released, 2);
}

/* A trace on one thread is none of another's business: operations there act at once. */
static bool eager_works(const shared *s)
{
    mlx_array r = mlx_array_new();
    bool right = mlx_sigmoid(&r, s->in[0], stream) == 0 && mlx_array_eval(r) == 0 && same(r, s->expected[0]);
    mlx_array_free(r);
    return right;
}

static void *eager(void *user)
{
    worker *w = user;
    w->n_wrong = !eager_works(w->s) || !apply_once(w->s, w->s->rates);
    return NULL;
}

static int starts_a_thread(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    worker w = { .s = payload };
    if (pthread_create(&w.thread, NULL, eager, &w) != 0)
        return 1;
    pthread_join(w.thread, NULL);
    return w.n_wrong ? 1 : seed_rates(res, input, NULL);
}

static void a_trace_of_one_thread(void **state)
{
    shared s;
    mlx_closure rates = compiled(seed_rates, NULL, true);
    (void)state;
    shared_begin(&s, rates);
    mlx_closure c = compiled(starts_a_thread, &s, true);
    assert_true(apply_once(&s, c));
    assert_int_equal(error_take(), 0);
    OK(mlx_closure_free(c));
    OK(mlx_closure_free(rates));
    shared_end(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(one_composite), cmocka_unit_test(tracing_and_applying), cmocka_unit_test(references),
                                        cmocka_unit_test(shapes_asked_for), cmocka_unit_test(first_reads),
                                        cmocka_unit_test(a_trace_of_one_thread) };
    return CLIENT_RUN(argc, argv, tests);
}
