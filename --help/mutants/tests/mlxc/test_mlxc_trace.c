/* What a function may do while it is traced: ask a placeholder for its dtype, open streams, make constants, call closures; and what
 * it may not, each with a message: read a placeholder's data, evaluate it, keep it and use it later. */
#include "seed.h"


/* ---- Placeholders ---- */

typedef struct answers {
    mlx_dtype dtype, sum_dtype;
    int eval_code, item_code, n_messages, is_used;
    bool has_data;
    mlx_array kept;
} answers;

static int asks(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    answers *a = payload;
    mlx_array x = input_of(input, 0), y = input_of(input, 1), sum = mlx_array_new();
    mlx_stream s = mlx_default_cpu_stream_new();
    float item = 7;
    a->dtype = mlx_array_dtype(x);
    int code = mlx_add(&sum, x, y, s);
    a->sum_dtype = mlx_array_dtype(sum);
    error_take();
    a->eval_code = mlx_array_eval(sum);
    a->n_messages = error_take();
    a->has_data = mlx_array_data_float32(sum) || mlx_array_data_float32(x) || mlx_array_data_uint16(x);
    a->n_messages += error_take();
    a->item_code = mlx_array_item_float32(&item, sum);
    a->n_messages += error_take();
    assert_true(item == 7);
    a->kept = mlx_array_new();
    code = code || mlx_array_set(&a->kept, sum);
    code = code || mlx_vector_array_set_value(res, sum);
    mlx_array_free(x);
    mlx_array_free(y);
    mlx_array_free(sum);
    mlx_stream_free(s);
    return code;
}

static void placeholders(void **state)
{
    const int shape[2] = { 2, 3 };
    uint64_t random = client_seed;
    answers a = { 0 };
    mlx_closure c = compiled(asks, &a, true);
    mlx_array in[2] = { array_random(&random, MLX_FLOAT16, 2, shape), array_random(&random, MLX_BFLOAT16, 2, shape) }, out, r = mlx_array_new();
    (void)state;
    OK(apply(c, 2, in, 1, &out));
    assert_int_equal(a.dtype, MLX_FLOAT16);
    assert_int_equal(a.sum_dtype, MLX_FLOAT32);
    assert_int_equal(a.eval_code, 1);
    assert_int_equal(a.item_code, 1);
    assert_false(a.has_data);
    assert_true(a.n_messages >= 3);

    /* One that outlives its trace. */
    float item;
    FAILS(mlx_array_eval(a.kept), "");
    FAILS(mlx_exp(&r, a.kept, stream), "");
    FAILS(mlx_add(&r, in[0], a.kept, stream), "");
    FAILS(mlx_array_item_float32(&item, a.kept), "");
    assert_null(mlx_array_data_float32(a.kept));
    assert_true(error_take() >= 1);
    mlx_array_dtype(a.kept);
    error_take();
    mlx_array with_kept[2] = { in[0], a.kept };
    FAILS(apply(c, 2, with_kept, 1, &r), "");

    /* And is the input, or the output, of another trace. */
    OK(mlx_array_free(a.kept));
    OK(mlx_closure_free(c));
    free_all(2, in);
    free_all(1, &out);
    OK(mlx_array_free(r));
}

static int uses_another_traces(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    answers *a = payload;
    mlx_array x = input_of(input, 0), r = mlx_array_new();
    int code = a->is_used == 1 ? mlx_add(&r, x, a->kept, stream) : a->is_used == 2 ? mlx_array_set(&r, a->kept) : mlx_exp(&r, x, stream);
    code = code || mlx_vector_array_set_value(res, r);
    mlx_array_free(x);
    mlx_array_free(r);
    return code;
}

static void a_placeholder_of_another_trace(void **state)
{
    const float x[2] = { 1, 2 };
    (void)state;
    for (int how = 0; how < 3; how++) {
        answers a = { 0 };
        mlx_array in[2] = { array_f32(2, x), array_f32(2, x) }, out;
        mlx_closure c = compiled(asks, &a, true), d = compiled(uses_another_traces, &a, true);
        OK(apply(c, 2, in, 1, &out));
        free_all(1, &out);
        a.is_used = how;
        if (how == 0) {
            OK(apply(d, 1, in, 1, &out));
            free_all(1, &out);
        } else
            FAILS(apply(d, 1, in, 1, &out), "");
        OK(mlx_array_free(a.kept));
        OK(mlx_closure_free(c));
        OK(mlx_closure_free(d));
        free_all(2, in);
    }
}

/* ---- What may be done ---- */

/* Constants of every kind, captured arrays and closures called within. */
typedef struct captured {
    mlx_closure inner;
    mlx_array constants[3];
} captured;

static int third(mlx_array *res, const mlx_array x)
{
    mlx_array c = mlx_array_new_float32(1.0f / 3);
    int code = mlx_multiply(res, x, c, stream);
    mlx_array_free(c);
    return code;
}

static int uses_captured(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    captured *k = payload;
    mlx_vector_array inner = mlx_vector_array_new();
    mlx_array r = mlx_array_new();
    int code = mlx_closure_apply(&inner, k->inner, input);
    code = code || mlx_vector_array_get(&r, inner, 0);
    for (size_t i = 0; i < COUNT(k->constants); i++)
        code = code || mlx_add(&r, r, k->constants[i], stream);
    code = code || mlx_vector_array_set_value(res, r);
    mlx_vector_array_free(inner);
    mlx_array_free(r);
    return code;
}

static void captured_values(void **state)
{
    const float x[3] = { 1, -0.0f, 3e38f }, many[3] = { 0.125f, 1e-40f, -3e38f };
    (void)state;
    for (int inner_is_compiled = 0; inner_is_compiled < 2; inner_is_compiled++) {
        captured k = { .constants = { mlx_array_new_float32(0.70710678f), mlx_array_new_float32(-0.0f), array_f32(3, many) } };
        mlx_closure plain = mlx_closure_new_unary(third), c;
        k.inner = mlx_closure_new();
        if (inner_is_compiled)
            OK(mlx_compile(&k.inner, plain, true));
        else
            OK(mlx_closure_set(&k.inner, plain));
        c = compiled(uses_captured, &k, true);
        mlx_array in = array_f32(3, x), out, eager = mlx_array_new();
        for (int round = 0; round < 2; round++) {
            long before = launches();
            OK(apply(c, 1, &in, 1, &out));
            OK(mlx_array_eval(out));
            if (before >= 0)
                assert_int_equal(launches() - before, 1);
            OK(third(&eager, in));
            for (size_t i = 0; i < 3; i++)
                OK(mlx_add(&eager, eager, k.constants[i], stream));
            array_equal_bits(out, eager, "captured values");
            free_all(1, &out);
        }
        OK(mlx_array_free(eager));
        free_all(1, &in);
        free_all(3, k.constants);
        OK(mlx_closure_free(k.inner));
        OK(mlx_closure_free(plain));
        OK(mlx_closure_free(c));
    }
}

/* An input that is an output, an output given twice, a constant as output, outputs of their own shapes: still one launch. */
static int odd_outputs(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    const int two[1] = { 2 };
    mlx_array x = input_of(input, 0), y = input_of(input, 1), out[5] = { { 0 } };
    int code = 0;
    (void)payload;
    for (int i = 0; i < 5; i++)
        out[i] = mlx_array_new();
    code = code || mlx_array_set(&out[0], x) || mlx_exp(&out[1], y, stream) || mlx_array_set(&out[2], out[1]);
    code = code || mlx_ones(&out[3], two, 1, MLX_INT8, stream) || mlx_add(&out[4], x, y, stream);
    code = code || mlx_vector_array_set_data(res, out, 5);
    mlx_array_free(x);
    mlx_array_free(y);
    free_all(5, out);
    return code;
}

static void outputs_of_all_kinds(void **state)
{
    const int x_shape[2] = { 3, 1 }, y_shape[1] = { 4 }, sum_shape[2] = { 3, 4 }, two[1] = { 2 };
    uint64_t random = client_seed;
    mlx_closure c = compiled(odd_outputs, NULL, true);
    mlx_array in[2] = { array_random(&random, MLX_FLOAT32, 2, x_shape), array_random(&random, MLX_FLOAT32, 1, y_shape) }, out[5], eager = mlx_array_new();
    (void)state;
    for (int round = 0; round < 2; round++) {
        long before = launches();
        OK(apply(c, 2, in, 5, out));
        for (int i = 0; i < 5; i++)
            OK(mlx_array_eval(out[i]));
        if (before >= 0)
            assert_true(launches() - before <= 1);
        array_is(out[0], MLX_FLOAT32, 2, x_shape);
        array_is(out[4], MLX_FLOAT32, 2, sum_shape);
        OK(mlx_exp(&eager, in[1], stream));
        array_equal_bits(out[1], eager, "exp");
        array_equal_bits(out[2], eager, "exp, again");
        OK(mlx_ones(&eager, two, 1, MLX_INT8, stream));
        array_equal_bits(out[3], eager, "a constant");
        OK(mlx_add(&eager, in[0], in[1], stream));
        array_equal_bits(out[4], eager, "the sum");
        free_all(5, out);
    }
    OK(mlx_array_free(eager));
    free_all(2, in);
    OK(mlx_closure_free(c));
}

/* One closure, as many outputs as inputs: a trace for each number. */
static int exp_of_each(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_vector_array all = mlx_vector_array_new();
    int code = 0;
    (void)payload;
    for (size_t i = 0; i < mlx_vector_array_size(input); i++) {
        mlx_array x = input_of(input, i);
        code = code || mlx_exp(&x, x, stream) || mlx_vector_array_append_value(all, x);
        mlx_array_free(x);
    }
    code = code || mlx_vector_array_set(res, all);
    mlx_vector_array_free(all);
    return code;
}

static void as_many_outputs_as_inputs(void **state)
{
    const float x[2] = { 0, 1 };
    mlx_closure c = compiled(exp_of_each, NULL, true);
    mlx_array in[5], out[5], expected = mlx_array_new();
    (void)state;
    for (int i = 0; i < 5; i++)
        in[i] = array_f32(2, x);
    OK(mlx_exp(&expected, in[0], stream));
    for (int round = 0; round < 2; round++)
        for (int n = 1; n <= 5; n++) {
            OK(apply(c, n, in, n, out));
            array_equal_bits(out[n - 1], expected, "exp");
            free_all(n, out);
        }
    free_all(5, in);
    free_all(1, &expected);
    OK(mlx_closure_free(c));
}

/* A compiled closure applied to arrays while another is traced is traced itself, and its results are constants of that one; what belongs
 * to the outer trace is of no use in the inner one. */
typedef struct outer {
    mlx_closure inner;
    mlx_array *captured;               /* what the inner function adds; NULL: 1 */
    mlx_array x;
    int is_wrong, n_calls;
} outer;

static int adds(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    outer *o = payload;
    mlx_array x = input_of(input, 0), one = mlx_array_new_float32(1);
    o->n_calls++;
    int code = mlx_add(&x, x, o->captured ? *o->captured : one, stream) || mlx_vector_array_set_value(res, x);
    mlx_array_free(x);
    mlx_array_free(one);
    return code;
}

static int applies_to_an_array(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    const float two[2] = { 1, 2 };
    outer *o = payload;
    mlx_array in = mlx_array_new_data(two, (const int[]){ 2 }, 1, MLX_FLOAT32), r = mlx_array_new();
    mlx_vector_array v = mlx_vector_array_new_value(in), out = mlx_vector_array_new();
    o->x = input_of(input, 0);
    if (o->is_wrong)
        o->captured = &o->x;
    int code = mlx_closure_apply(&out, o->inner, v) || mlx_vector_array_get(&r, out, 0) || mlx_multiply(&r, o->x, r, stream) ||
               mlx_vector_array_set_value(res, r);
    o->captured = NULL;
    mlx_vector_array_free(v);
    mlx_vector_array_free(out);
    mlx_array_free(in);
    mlx_array_free(r);
    mlx_array_free(o->x);
    return code;
}

static void a_trace_within_a_trace(void **state)
{
    const float x[2] = { 3, 4 }, right[2] = { 6, 12 };
    (void)state;
    for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
        outer o = { .is_wrong = is_wrong };
        mlx_array in = array_f32(2, x), out, expected = array_f32(2, right);
        o.inner = compiled(adds, &o, true);
        mlx_closure c = compiled(applies_to_an_array, &o, true);
        for (int round = 0; round < 2; round++)
            if (is_wrong)
                FAILS(apply(c, 1, &in, 1, &out), "placeholder");
            else {
                OK(apply(c, 1, &in, 1, &out));
                array_equal_bits(out, expected, "with a result of the inner one");
                free_all(1, &out);
                assert_int_equal(o.n_calls, 1);
            }
        free_all(1, &in);
        free_all(1, &expected);
        OK(mlx_closure_free(c));
        OK(mlx_closure_free(o.inner));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placeholders), cmocka_unit_test(a_placeholder_of_another_trace), cmocka_unit_test(captured_values),
        cmocka_unit_test(outputs_of_all_kinds), cmocka_unit_test(as_many_outputs_as_inputs),
        cmocka_unit_test(a_trace_within_a_trace),
    };
    return CLIENT_RUN(argc, argv, tests);
}
