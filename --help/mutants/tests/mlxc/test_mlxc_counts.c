/* How many outputs a compiled function sets. The first call that succeeds says, for each number of inputs, in whatever dtypes, shapes and
 * mode it was; another number in a later trace is an error of that apply, and the next right one works. */
#include "client.h"

typedef struct setting {
    size_t n_outputs;
    int code, n_calls;
} setting;

/* exp of the first input, n_outputs times. */
static int sets(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    setting *s = payload;
    mlx_vector_array all = mlx_vector_array_new();
    mlx_array x = input_of(input, 0), r = mlx_array_new();
    int code = mlx_exp(&r, x, stream);
    s->n_calls++;
    for (size_t i = 0; i < s->n_outputs; i++)
        code = code || mlx_vector_array_append_value(all, r);
    code = code || mlx_vector_array_set(res, all);
    mlx_vector_array_free(all);
    mlx_array_free(x);
    mlx_array_free(r);
    return code ? code : s->code;
}

/* Applies to n_inputs arrays of a dtype and an extent; 0 or 1. */
static int apply_sized(mlx_closure c, int n_inputs, mlx_dtype dtype, int extent, size_t n_outputs)
{
    mlx_array one = mlx_array_new(), in[3], out[4];
    OK(mlx_ones(&one, &extent, 1, dtype, stream));
    for (int i = 0; i < n_inputs; i++)
        in[i] = one;
    int code = apply(c, n_inputs, in, (int)n_outputs, out);
    if (code == 0)
        free_all((int)n_outputs, out);
    free_all(1, &one);
    return code;
}

#define ANOTHER "set 3 outputs; expected 2, as it set before when given 1 inputs"

/* A retrace at another dtype, at another shape, after the cache was cleared, in another mode. */
static void another_count(void **state)
{
    (void)state;
    for (int shapeless = 0; shapeless < 2; shapeless++) {
        setting s = { .n_outputs = 2 };
        mlx_closure c = compiled(sets, &s, shapeless);
        OK(apply_sized(c, 1, MLX_FLOAT32, 4, 2));
        s.n_outputs = 3;
        FAILS(apply_sized(c, 1, MLX_FLOAT16, 4, 3), ANOTHER);
        if (shapeless)
            OK(apply_sized(c, 1, MLX_FLOAT32, 5, 2));               /* no trace, so the same as before */
        else
            FAILS(apply_sized(c, 1, MLX_FLOAT32, 5, 3), ANOTHER);
        OK(apply_sized(c, 1, MLX_FLOAT32, 4, 2));
        OK(mlx_detail_compile_clear_cache());
        FAILS(apply_sized(c, 1, MLX_FLOAT32, 4, 3), ANOTHER);
        FAILS(apply_sized(c, 1, MLX_FLOAT32, 4, 3), ANOTHER);       /* nothing of it is kept */
        OK(mlx_disable_compile());
        FAILS(apply_sized(c, 1, MLX_FLOAT32, 4, 3), ANOTHER);
        s.n_outputs = 2;
        OK(apply_sized(c, 1, MLX_FLOAT32, 4, 2));
        OK(mlx_enable_compile());
        OK(apply_sized(c, 1, MLX_FLOAT32, 4, 2));
        OK(apply_sized(c, 1, MLX_FLOAT16, 4, 2));
        OK(mlx_closure_free(c));
    }
}

/* Numbers of inputs are apart, whatever comes between. */
static void by_the_number_of_inputs(void **state)
{
    setting s = { .n_outputs = 2 };
    mlx_closure c = compiled(sets, &s, true);
    (void)state;
    OK(apply_sized(c, 1, MLX_FLOAT32, 4, 2));
    s.n_outputs = 4;
    OK(apply_sized(c, 2, MLX_FLOAT32, 4, 4));
    s.n_outputs = 1;
    OK(apply_sized(c, 3, MLX_FLOAT32, 4, 1));
    s.n_outputs = 3;
    FAILS(apply_sized(c, 1, MLX_INT8, 4, 3), ANOTHER);
    FAILS(apply_sized(c, 2, MLX_INT8, 4, 3), "expected 4, as it set before when given 2 inputs");
    FAILS(apply_sized(c, 3, MLX_INT8, 4, 3), "expected 1, as it set before when given 3 inputs");
    s.n_outputs = 4;
    OK(apply_sized(c, 2, MLX_INT8, 4, 4));
    OK(mlx_closure_free(c));
}

/* A call that failed says nothing; nor does what the function sets uncompiled. */
static void calls_that_do_not_count(void **state)
{
    setting s = { .n_outputs = 3, .code = 1 };
    mlx_closure plain = mlx_closure_new_func_payload(sets, &s, NULL), c = mlx_closure_new();
    (void)state;
    OK(mlx_compile(&c, plain, true));
    FAILS(apply_sized(c, 1, MLX_FLOAT32, 4, 3), "returned 1");
    s.n_outputs = 0;
    s.code = 0;
    FAILS(apply_sized(c, 1, MLX_FLOAT32, 4, 3), "no output");
    for (s.n_outputs = 4; s.n_outputs > 1; s.n_outputs--)
        OK(apply_sized(plain, 1, MLX_FLOAT32, 4, s.n_outputs));
    s.n_outputs = 2;
    OK(apply_sized(c, 1, MLX_FLOAT32, 4, 2));
    s.n_outputs = 3;
    OK(apply_sized(plain, 1, MLX_FLOAT32, 4, 3));
    FAILS(apply_sized(c, 1, MLX_FLOAT16, 4, 3), ANOTHER);
    OK(mlx_closure_free(plain));
    OK(mlx_closure_free(c));
}

/* All closures that are compiled from copies of a function share what it set; one of the same C function and payload is another. */
static void whose_count_it_is(void **state)
{
    setting s = { .n_outputs = 2 };
    mlx_closure plain = mlx_closure_new_func_payload(sets, &s, NULL), copy = mlx_closure_new(), c = mlx_closure_new(), d = mlx_closure_new();
    mlx_closure other = compiled(sets, &s, true);
    (void)state;
    OK(mlx_closure_set(&copy, plain));
    OK(mlx_compile(&c, plain, true));
    OK(mlx_compile(&d, copy, false));
    OK(mlx_compile(&d, d, false));
    OK(apply_sized(c, 1, MLX_FLOAT32, 4, 2));
    s.n_outputs = 3;
    FAILS(apply_sized(d, 1, MLX_FLOAT32, 5, 3), ANOTHER);
    OK(apply_sized(other, 1, MLX_FLOAT32, 4, 3));
    OK(mlx_closure_free(plain));
    OK(mlx_closure_free(copy));
    OK(mlx_closure_free(c));
    OK(mlx_closure_free(d));
    OK(mlx_closure_free(other));
}

/* Within another trace. */
typedef struct caller {
    mlx_closure inner;
} caller;

static int calls(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    return mlx_closure_apply(res, ((caller *)payload)->inner, input);
}

static void within_another_trace(void **state)
{
    setting s = { .n_outputs = 2 };
    caller k = { compiled(sets, &s, true) };
    mlx_closure c = compiled(calls, &k, true);
    (void)state;
    OK(apply_sized(c, 1, MLX_FLOAT32, 4, 2));
    s.n_outputs = 3;
    FAILS(apply_sized(c, 1, MLX_FLOAT16, 4, 3), ANOTHER);
    FAILS(apply_sized(k.inner, 1, MLX_FLOAT16, 4, 3), ANOTHER);
    s.n_outputs = 2;
    OK(apply_sized(c, 1, MLX_FLOAT16, 4, 2));
    OK(mlx_closure_free(c));
    OK(mlx_closure_free(k.inner));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_count), cmocka_unit_test(by_the_number_of_inputs), cmocka_unit_test(calls_that_do_not_count),
        cmocka_unit_test(whose_count_it_is), cmocka_unit_test(within_another_trace),
    };
    return CLIENT_RUN(argc, argv, tests);
}
