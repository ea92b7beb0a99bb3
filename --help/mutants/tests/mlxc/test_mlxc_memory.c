/* Who owns what, and for how long: the caller's memory taken over, references, payloads, and memory that stays flat over hundreds of
 * thousands of applies and of composites. */
#include "seed.h"

/* ---- Memory of the caller's ---- */

static int n_released;
static void *released;

static void release(void *data)
{
    n_released++;
    released = data;
}

static int passes_on(mlx_vector_array *res, const mlx_vector_array input)
{
    return mlx_vector_array_set(res, input);
}

static void managed_memory(void **state)
{
    static float x[4] = { 1, 2, 3, 4 };
    const int shape[2] = { 2, 2 };
    (void)state;
    n_released = 0;
    mlx_array a = mlx_array_new_data_managed(x, shape, 2, MLX_FLOAT32, release), b = mlx_array_new(), r = mlx_array_new(), e;
    assert_non_null(a.ctx);
    assert_ptr_equal(mlx_array_data_float32(a), x);      /* not copied */
    OK(mlx_array_set(&b, a));
    mlx_vector_array v = mlx_vector_array_new_value(a), w = mlx_vector_array_new();
    mlx_closure c = mlx_closure_new_func(passes_on);
    OK(mlx_closure_apply(&w, c, v));
    OK(mlx_exp(&r, a, stream));
    OK(mlx_array_eval(r));
    e = mlx_array_new_data(x, shape, 2, MLX_FLOAT32);
    OK(mlx_exp(&e, e, stream));
    array_equal_bits(r, e, "exp of managed memory");
    free_all(1, &a);
    OK(mlx_closure_free(c));
    OK(mlx_vector_array_free(v));
    assert_int_equal(n_released, 0);
    free_all(1, &b);
    assert_int_equal(n_released, 0);
    OK(mlx_vector_array_free(w));
    OK(mlx_synchronize(stream));
    assert_int_equal(n_released, 1);
    assert_ptr_equal(released, x);
    free_all(1, &r);
    free_all(1, &e);
    assert_int_equal(n_released, 1);
    a = mlx_array_new_data_managed(x, shape, 2, MLX_FLOAT32, NULL);
    assert_non_null(a.ctx);
    free_all(1, &a);
    /* Replaced by an assignment. */
    a = mlx_array_new_data_managed(x, shape, 2, MLX_FLOAT32, release);
    OK(mlx_array_set_int(&a, 3));
    assert_int_equal(n_released, 2);
    free_all(1, &a);
}

/* A composite keeps what its function captured, and gives it up with its last copy. */
static int adds_captured(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array x = input_of(input, 0), r = mlx_array_new();
    int code = mlx_add(&r, x, *(mlx_array *)payload, stream);
    code = code || mlx_vector_array_set_value(res, r);
    mlx_array_free(x);
    mlx_array_free(r);
    return code;
}

static void captured_memory(void **state)
{
    static float x[3] = { 1, 2, 3 };
    const int n = 3;
    (void)state;
    n_released = 0;
    mlx_array a = mlx_array_new_data_managed(x, &n, 1, MLX_FLOAT32, release), one = mlx_array_new_float32(1), out, copy = a;
    mlx_closure c = compiled(adds_captured, &copy, true);
    OK(apply(c, 1, &one, 1, &out));
    free_all(1, &out);
    free_all(1, &a);
    OK(apply(c, 1, &one, 1, &out));                      /* the array is in the composite */
    assert_true(((const float *)array_data(out))[2] == 4);
    free_all(1, &out);
    OK(mlx_closure_free(c));
    OK(mlx_detail_compile_clear_cache());
    OK(mlx_synchronize(stream));
    assert_int_equal(n_released, 1);
    free_all(1, &one);
}

/* Also one of a single element, which is none of the library's constants; of bools, any byte but 0 is true in it. */
static int picks(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array x = input_of(input, 0), y = input_of(input, 1), both = mlx_array_new();
    int code = mlx_where(&x, *(mlx_array *)payload, x, y, stream) || mlx_logical_and(&both, *(mlx_array *)payload, *(mlx_array *)payload, stream);
    code = code || mlx_vector_array_set_data(res, (mlx_array[]){ x, both }, 2);
    mlx_array_free(x);
    mlx_array_free(y);
    mlx_array_free(both);
    return code;
}

static void a_captured_bool(void **state)
{
    static unsigned char bytes[3] = { 0, 2, 255 };
    (void)state;
    n_released = 0;
    for (int i = 0; i < 3; i++) {
        mlx_array a = mlx_array_new_data_managed(&bytes[i], NULL, 0, MLX_BOOL, release), in[2] = { mlx_array_new_float32(7), mlx_array_new_float32(5) };
        mlx_array out[2], copy = a;
        mlx_closure c = compiled(picks, &copy, true);
        for (int round = 0; round < 2; round++) {
            OK(apply(c, 2, in, 2, out));
            if (round == 0)
                free_all(1, &a);
            assert_int_equal(n_released, i);
            assert_true(*(const float *)array_data(out[0]) == (i ? 7 : 5));
            assert_int_equal(*(const unsigned char *)array_data(out[1]), i > 0);
            free_all(2, out);
        }
        free_all(2, in);
        OK(mlx_closure_free(c));
        OK(mlx_synchronize(stream));
        assert_int_equal(n_released, i + 1);
    }
}

static void payloads(void **state)
{
    int payload = 0;
    mlx_closure plain, copy = mlx_closure_new(), c = mlx_closure_new();
    (void)state;
    n_released = 0;
    plain = mlx_closure_new_func_payload(seed_rates, &payload, release);
    OK(mlx_closure_set(&copy, plain));
    OK(mlx_compile(&c, plain, true));
    OK(mlx_closure_free(plain));
    OK(mlx_closure_free(copy));
    assert_int_equal(n_released, 0);
    OK(mlx_closure_free(c));
    OK(mlx_detail_compile_clear_cache());
    assert_int_equal(n_released, 1);
    assert_ptr_equal(released, &payload);
    /* Compiled over itself. */
    c = mlx_closure_new_func_payload(seed_rates, &payload, release);
    OK(mlx_compile(&c, c, true));
    OK(mlx_closure_set(&c, c));
    OK(mlx_closure_free(c));
    OK(mlx_detail_compile_clear_cache());
    assert_int_equal(n_released, 2);
}

/* ---- References ---- */

enum { N_HANDLES = 24, N_VECTORS = 6 };

/* Random assignments among handles and vectors; managed memory is released once for each array made, at the end. */
static void reference_torture(void **state)
{
    static float x[4];
    const int n = 4;
    mlx_array a[N_HANDLES] = { { 0 } };
    mlx_vector_array v[N_VECTORS] = { { 0 } };
    uint64_t random = client_seed;
    int n_made = 0;
    (void)state;
    n_released = 0;
    for (int i = 0; i < N_VECTORS; i++)
        v[i] = mlx_vector_array_new();
    for (int step = 0; step < 20000; step++) {
        uint64_t r = random_next(&random);
        mlx_array *p = &a[r % N_HANDLES], *q = &a[(r >> 8) % N_HANDLES];
        mlx_vector_array *u = &v[(r >> 16) % N_VECTORS], *w = &v[(r >> 24) % N_VECTORS];
        switch ((r >> 32) % 9) {
        case 0:
            if (p->ctx)
                OK(mlx_array_free(*p));
            *p = mlx_array_new_data_managed(x, &n, 1, MLX_FLOAT32, release);
            n_made++;
            break;
        case 1: if (q->ctx) OK(mlx_array_set(p, *q)); break;
        case 2: if (p->ctx) OK(mlx_vector_array_append_value(*u, *p)); break;
        case 3: if (mlx_vector_array_size(*u)) OK(mlx_vector_array_get(p, *u, (r >> 40) % mlx_vector_array_size(*u))); break;
        case 4: OK(mlx_vector_array_set(u, *w)); break;
        case 5: if (p->ctx) OK(mlx_vector_array_set_value(u, *p)); break;
        case 6: OK(mlx_array_free(*p)); p->ctx = NULL; break;
        case 7:
            if (p->ctx && q->ctx) {
                mlx_array both[2] = { *p, *q };
                OK(mlx_vector_array_set_data(u, both, 2));
                OK(mlx_vector_array_append_data(*u, both, 2));
            }
            break;
        default:
            OK(mlx_vector_array_free(*u));
            *u = p->ctx ? mlx_vector_array_new_value(*p) : mlx_vector_array_new_data(NULL, 0);
            assert_non_null(u->ctx);
        }
    }
    for (int i = 0; i < N_HANDLES; i++)
        OK(mlx_array_free(a[i]));
    for (int i = 0; i < N_VECTORS; i++)
        OK(mlx_vector_array_free(v[i]));
    assert_int_equal(n_released, n_made);
    print_message("%d arrays made and released\n", n_made);
}

/* ---- Flat memory ---- */

static long many(long n, void (*round)(void *), void *user)
{
    for (long i = 0; i < n / 10; i++)
        round(user);
    mlx_detail_compile_clear_cache();
    round(user);
    long before = resident_kib(), objects = fake_objects();
    for (long i = 0; i < n; i++)
        round(user);
    assert_true(fake_objects() - objects < 64);          /* memory of sizes that it did not have yet */
    long grown = resident_kib() - before;
    print_message("%ld rounds: resident memory grew by %ld KiB\n", n, grown);
    return sanitized() ? 0 : grown;
}

static long how_many(long n)
{
    return sanitized() || getenv("ONELAUNCH_TEST_EMULATED") || fake_launches() >= 0 ? n / 200 : n;
}

/* A decode step: all handles made and freed. */
static void step(void *user)
{
    mlx_closure *c = user;
    static const uint16_t x[8] = { 0x3F80, 0xBF80, 0x4000 };
    static const float a_log[8] = { 1, 2, 3 };
    const int shape[3] = { 1, 1, 8 };
    mlx_array in[4] = { mlx_array_new_data(x, shape, 3, MLX_BFLOAT16), mlx_array_new_data(x, shape, 3, MLX_BFLOAT16),
                        mlx_array_new_data(a_log, shape + 2, 1, MLX_FLOAT32), mlx_array_new_data(x, shape + 2, 1, MLX_BFLOAT16) };
    mlx_array out[2];
    OK(apply(*c, 4, in, 2, out));
    OK(mlx_array_eval(out[0]));
    OK(mlx_array_eval(out[1]));
    free_all(4, in);
    free_all(2, out);
}

/* One that changes its shape with each step. */
static void step_of_another_shape(void *user)
{
    static int tokens;
    mlx_closure *c = user;
    uint64_t random = 1;
    const int shape[3] = { 1, 1 + tokens++ % 700, 2 }, heads[1] = { 2 };
    mlx_array in[4] = { array_random(&random, MLX_FLOAT32, 3, shape), array_random(&random, MLX_FLOAT32, 3, shape),
                        array_random(&random, MLX_FLOAT32, 1, heads), array_random(&random, MLX_FLOAT32, 1, heads) };
    mlx_array out[2];
    OK(apply(*c, 4, in, 2, out));
    free_all(4, in);
    free_all(2, out);
}

/* A composite for every step. */
static void compile_and_step(void *user)
{
    (void)user;
    mlx_closure c = compiled(seed_rates, NULL, true);
    step(&c);
    OK(mlx_closure_free(c));
}

static void fail_step(void *user)
{
    mlx_array none = { 0 }, r = { 0 };
    (void)user;
    FAILS(mlx_exp(&r, none, stream), "");
}

static void memory_stays_flat(void **state)
{
    mlx_closure c = compiled(seed_rates, NULL, true), by_shape = compiled(seed_rates, NULL, false);
    (void)state;
    assert_true(many(how_many(300000), step, &c) < 2000);
    assert_true(many(how_many(50000), step_of_another_shape, &c) < 8000);
    if (fake_launches() < 0) {
        assert_true(many(how_many(40000), step_of_another_shape, &by_shape) < 16000);        /* a bounded cache */
        assert_true(many(how_many(40000), compile_and_step, NULL) < 2000);
    }
    assert_true(many(how_many(100000), fail_step, NULL) < 2000);
    OK(mlx_closure_free(c));
    OK(mlx_closure_free(by_shape));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(managed_memory), cmocka_unit_test(captured_memory), cmocka_unit_test(a_captured_bool), cmocka_unit_test(payloads), cmocka_unit_test(reference_torture),
        cmocka_unit_test(memory_stays_flat),
    };
    return CLIENT_RUN(argc, argv, tests);
}
