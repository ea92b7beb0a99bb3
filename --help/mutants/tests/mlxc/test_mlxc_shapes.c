/* Functions that find out about shapes while they are traced: by a getter, or by an operation that fails. They are traced once for each shape, also
 * when compiled shapeless, and never replayed with another one's numbers; functions that do not are traced once. */
#include "client.h"

enum { SHAPE, STRIDES, DIM, SIZE, NBYTES, OF_A_RESULT, BY_AN_ERROR, NDIM, DTYPE, N_LOOKS };

typedef struct looking {
    int how, n_calls;
} looking;

/* A number that depends on x's shape, as far as `how` looks at it. */
static float look(const looking *l, mlx_array x)
{
    mlx_array r = mlx_array_new();
    float n = 0;
    switch (l->how) {
    case SHAPE: n = (float)mlx_array_shape(x)[1]; break;
    case STRIDES: n = (float)mlx_array_strides(x)[0]; break;
    case DIM: n = (float)mlx_array_dim(x, -2); break;
    case SIZE: n = (float)mlx_array_size(x); break;
    case NBYTES: n = (float)mlx_array_nbytes(x); break;
    case NDIM: n = (float)mlx_array_ndim(x); break;
    case DTYPE: n = (float)(mlx_array_dtype(x) * 10 + mlx_array_itemsize(x)); break;
    case OF_A_RESULT:
        if (mlx_exp(&r, x, stream) == 0)
            n = (float)mlx_array_dim(r, 1);
        break;
    default:
        n = mlx_broadcast_to(&r, x, (const int[]){ 1, 2, 4 }, 3, stream) == 0 ? 1 : 2;
        error_take();
    }
    mlx_array_free(r);
    return n;
}

/* x times what is seen of it. */
static int looks(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    looking *l = payload;
    mlx_array x = input_of(input, 0), t = mlx_array_new();
    l->n_calls++;
    int code = mlx_array_set_float32(&t, look(l, x)) || mlx_multiply(&t, x, t, stream) || mlx_vector_array_set_value(res, t);
    mlx_array_free(x);
    mlx_array_free(t);
    return code;
}

/* Applies to an array of ones [1, tokens, 4] or, of rank 4, [1, 1, tokens, 4], which must give what the function gives uncompiled. */
static void apply_to(mlx_closure c, int how, int tokens, int rank)
{
    const int shape[4] = { 1, rank == 4 ? 1 : tokens, rank == 4 ? tokens : 4, 4 };
    looking plain = { .how = how };
    mlx_array one = mlx_array_new_float32(1), x = mlx_array_new(), e = mlx_array_new(), out;
    mlx_vector_array in, expected = mlx_vector_array_new();
    OK(mlx_full(&x, shape, (size_t)rank, one, MLX_FLOAT32, stream));
    in = mlx_vector_array_new_value(x);
    OK(looks(&expected, in, &plain));
    OK(mlx_vector_array_get(&e, expected, 0));
    OK(apply(c, 1, &x, 1, &out));
    array_equal_bits(out, e, "as uncompiled");
    OK(mlx_vector_array_free(in));
    OK(mlx_vector_array_free(expected));
    free_all(1, &out);
    free_all(1, &x);
    free_all(1, &e);
    free_all(1, &one);
}

static void one_trace_for_each_shape(void **state)
{
    (void)state;
    for (int how = 0; how < N_LOOKS; how++) {
        const int tokens[] = { how == BY_AN_ERROR ? 3 : 1, 5, 2, 1000 };       /* an error is one that there was */
        looking l = { .how = how };
        mlx_closure plain = mlx_closure_new_func_payload(looks, &l, NULL), c = mlx_closure_new(), again = mlx_closure_new();
        OK(mlx_compile(&c, plain, true));
        for (int round = 0; round < 3; round++)
            for (size_t i = 0; i < COUNT(tokens); i++)
                apply_to(c, how, tokens[i], 3);
        if (l.n_calls != (how < NDIM ? 4 : 1))
            fail_msg("way %d: %d calls", how, l.n_calls);
        apply_to(c, how, 5, 4);
        apply_to(c, how, 2, 4);
        apply_to(c, how, 5, 3);
        if (l.n_calls != (how < NDIM ? 6 : how == NDIM ? 2 : 1))
            fail_msg("way %d, another rank: %d calls", how, l.n_calls);
        /* Compiled by shapes, it has the plans that its shapes gave already. */
        OK(mlx_compile(&again, plain, false));
        int before = l.n_calls;
        apply_to(again, how, 5, 3);
        apply_to(again, how, 7, 3);
        assert_int_equal(l.n_calls - before, how < NDIM ? 1 : 2);
        OK(mlx_closure_free(plain));
        OK(mlx_closure_free(c));
        OK(mlx_closure_free(again));
    }
}

/* ---- Operations that are given extents ---- */

/* x * size(x) + ones of x's shape. */
static int uses_its_shape(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array x = input_of(input, 0), t = mlx_array_new();
    ++*(int *)payload;
    int code = mlx_array_set_float32(&t, (float)mlx_array_size(x)) || mlx_multiply(&t, x, t, stream);
    mlx_array one = mlx_array_new();
    code = code || mlx_ones(&one, mlx_array_shape(x), mlx_array_ndim(x), MLX_FLOAT32, stream) || mlx_add(&t, t, one, stream);
    code = code || mlx_vector_array_set_value(res, t);
    mlx_array_free(x);
    mlx_array_free(t);
    mlx_array_free(one);
    return code;
}

static void shapes_given_back(void **state)
{
    (void)state;
    for (int shapeless = 0; shapeless < 2; shapeless++) {
        int n_calls = 0;
        mlx_closure c = compiled(uses_its_shape, &n_calls, shapeless);
        for (int round = 0; round < 2; round++)
            for (int n = 0; n < 20; n++) {
                float x[20], e[20];
                for (int i = 0; i < n; i++) {
                    x[i] = (float)i;
                    e[i] = (float)(i * n + 1);
                }
                mlx_array in = array_f32(n, x), out, expected = array_f32(n, e);
                OK(apply(c, 1, &in, 1, &out));
                array_equal_bits(out, expected, "by its own shape");
                free_all(1, &in);
                free_all(1, &out);
                free_all(1, &expected);
            }
        assert_int_equal(n_calls, 20);
        OK(mlx_closure_free(c));
    }
}

/* broadcast_to and full, of a placeholder, to a shape that the function knows of itself: one trace, and an error where it does not suit. */
static int to_a_fixed_shape(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    const int wide[2] = { 2, 3 };
    mlx_array x = input_of(input, 0), y = input_of(input, 1), t = mlx_array_new();
    ++*(int *)payload;
    int code = mlx_full(&t, wide, 2, y, MLX_INT32, stream) || mlx_broadcast_to(&x, x, wide, 2, stream) || mlx_add(&t, x, t, stream) ||
               mlx_vector_array_set_value(res, t);
    mlx_array_free(x);
    mlx_array_free(y);
    mlx_array_free(t);
    return code;
}

static void a_fixed_shape(void **state)
{
    const float row[3] = { 1, 2, 3 }, one[1] = { 5 }, y[3] = { 7.75f, -1.5f, 9 };
    const float first[6] = { 8, 9, 10, 8, 9, 10 }, second[6] = { 12, 4, 14, 12, 4, 14 };
    const int wide[2] = { 2, 3 };
    int n_calls = 0;
    mlx_closure c = compiled(to_a_fixed_shape, &n_calls, true);
    mlx_array in[2] = { array_f32(3, row), mlx_array_new_float32(7.75f) }, out, e = mlx_array_new_data(first, wide, 2, MLX_FLOAT32);
    (void)state;
    OK(apply(c, 2, in, 1, &out));
    array_equal_bits(out, e, "a row and a scalar");
    free_all(1, &out);
    free_all(2, in);
    in[0] = array_f32(1, one);
    in[1] = array_f32(3, y);
    OK(mlx_array_set_data(&e, second, wide, 2, MLX_FLOAT32));
    OK(apply(c, 2, in, 1, &out));
    array_equal_bits(out, e, "one element and a row");
    free_all(1, &out);
    free_all(2, in);
    in[0] = array_f32(2, row);
    in[1] = array_f32(1, y);
    FAILS(apply(c, 2, in, 1, &out), "broadcast");
    free_all(2, in);
    free_all(1, &e);
    assert_int_equal(n_calls, 1);
    OK(mlx_closure_free(c));
}

/* A constant has the shape it was made with, of any rank, and gives it to what it meets. */
static int plus_ones(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    static const int dims[8] = { 3, 1, 2, 1, 1, 2, 1, 1 };
    mlx_array x = input_of(input, 0), ones = mlx_array_new();
    int code = mlx_ones(&ones, dims, *(size_t *)payload, MLX_FLOAT32, stream) || mlx_add(&x, x, ones, stream) || mlx_vector_array_set_value(res, x);
    mlx_array_free(x);
    mlx_array_free(ones);
    return code;
}

static void shapes_of_constants(void **state)
{
    (void)state;
    for (size_t rank = 0; rank <= 8; rank++) {
        mlx_closure plain = mlx_closure_new_func_payload(plus_ones, &rank, NULL), c = mlx_closure_new();
        mlx_array in = mlx_array_new_float32(41), out, e;
        OK(mlx_compile(&c, plain, true));
        OK(apply(plain, 1, &in, 1, &e));
        assert_int_equal(mlx_array_ndim(e), rank);
        OK(apply(c, 1, &in, 1, &out));
        array_equal_bits(out, e, "as uncompiled");
        free_all(1, &in);
        free_all(1, &out);
        free_all(1, &e);
        OK(mlx_closure_free(plain));
        OK(mlx_closure_free(c));
    }
}

/* ---- Traces within traces ---- */

/* Of the outer function's placeholder, the inner one asks for the size, which its own inputs do not tell. */
typedef struct nest {
    mlx_closure inner;
    mlx_array x;
    int n_inner, n_outer;
} nest;

static int adds_the_outer_size(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    nest *n = payload;
    mlx_array a = input_of(input, 0), size = mlx_array_new_float32((float)mlx_array_size(n->x));
    n->n_inner++;
    int code = mlx_add(&a, a, size, stream) || mlx_vector_array_set_value(res, a);
    mlx_array_free(a);
    mlx_array_free(size);
    return code;
}

static int times_the_inner_one(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    nest *n = payload;
    mlx_array hundred = mlx_array_new_float32(100), r = mlx_array_new();
    mlx_vector_array v = mlx_vector_array_new_value(hundred), out = mlx_vector_array_new();
    n->x = input_of(input, 0);
    n->n_outer++;
    int code = mlx_closure_apply(&out, n->inner, v) || mlx_vector_array_get(&r, out, 0) || mlx_multiply(&r, n->x, r, stream) ||
               mlx_vector_array_set_value(res, r);
    mlx_vector_array_free(v);
    mlx_vector_array_free(out);
    mlx_array_free(hundred);
    mlx_array_free(r);
    mlx_array_free(n->x);
    return code;
}

static void an_outer_shape(void **state)
{
    static const int sizes[] = { 1, 5, 2, 5, 1, 2 };
    nest n = { .n_inner = 0 };
    n.inner = compiled(adds_the_outer_size, &n, true);
    mlx_closure c = compiled(times_the_inner_one, &n, true);
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        float ones[5] = { 1, 1, 1, 1, 1 }, e[5];
        for (int k = 0; k < 5; k++)
            e[k] = (float)(100 + sizes[i]);
        mlx_array in = array_f32(sizes[i], ones), out, expected = array_f32(sizes[i], e);
        OK(apply(c, 1, &in, 1, &out));
        array_equal_bits(out, expected, "of the outer size");
        free_all(1, &in);
        free_all(1, &out);
        free_all(1, &expected);
    }
    assert_int_equal(n.n_outer, 3);
    assert_int_equal(n.n_inner, 3);
    OK(mlx_closure_free(c));
    OK(mlx_closure_free(n.inner));
}

/* A function that looks, called by one that does not: the outer one depends on what it saw. */
static int calls_another(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    return mlx_closure_apply(res, *(mlx_closure *)payload, input);
}

static void looks_within_another(void **state)
{
    (void)state;
    for (int is_compiled = 0; is_compiled < 2; is_compiled++) {
        looking l = { .how = SIZE };
        mlx_closure inner = is_compiled ? compiled(looks, &l, true) : mlx_closure_new_func_payload(looks, &l, NULL);
        mlx_closure c = compiled(calls_another, &inner, true);
        for (int round = 0; round < 2; round++)
            for (int tokens = 1; tokens < 4; tokens++)
                apply_to(c, SIZE, tokens, 3);
        assert_int_equal(l.n_calls, 3);
        OK(mlx_closure_free(c));
        OK(mlx_closure_free(inner));
    }
}

/* ---- After the trace ---- */

static int keeps(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    int code = mlx_vector_array_get(payload, input, 0);
    mlx_array x = input_of(input, 0);
    code = code || mlx_exp(&x, x, stream) || mlx_vector_array_set_value(res, x);
    mlx_array_free(x);
    return code;
}

/* What one trace depends on, a placeholder that was kept cannot tell another one. */
static void kept_placeholders(void **state)
{
    const float x[2] = { 0, 1 };
    mlx_array kept = mlx_array_new(), in = array_f32(2, x), out;
    mlx_closure c = compiled(keeps, &kept, true);
    (void)state;
    OK(apply(c, 1, &in, 1, &out));
    assert_int_equal(mlx_array_dtype(kept), MLX_FLOAT32);
    assert_int_equal(mlx_array_itemsize(kept), 4);
    assert_int_equal(error_take(), 0);
    assert_null(mlx_array_shape(kept));
    assert_null(mlx_array_strides(kept));
    assert_int_equal(mlx_array_ndim(kept) + mlx_array_size(kept) + mlx_array_nbytes(kept) + (size_t)mlx_array_dim(kept, 0), 0);
    assert_non_null(strstr(error_message(), "placeholder"));
    assert_int_equal(error_take(), 6);
    free_all(1, &kept);
    free_all(1, &in);
    free_all(1, &out);
    OK(mlx_closure_free(c));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_trace_for_each_shape), cmocka_unit_test(shapes_given_back), cmocka_unit_test(a_fixed_shape), cmocka_unit_test(shapes_of_constants),
       
        cmocka_unit_test(an_outer_shape), cmocka_unit_test(looks_within_another), cmocka_unit_test(kept_placeholders),
    };
    return CLIENT_RUN(argc, argv, tests);
}
