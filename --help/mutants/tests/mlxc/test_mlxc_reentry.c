/* Calls from where one does not expect them: out of a destructor, out of a function that gives up its own closure, over the
 * handles that are read. */
#include "seed.h"

#include <fenv.h>
#include <string.h>

/* ---- Over the handles that are read ---- */

static int swap(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array both[2] = { input_of(input, 1), input_of(input, 0) };
    (void)payload;
    int code = mlx_exp(&both[0], both[0], stream) || mlx_vector_array_set_data(res, both, 2);
    free_all(2, both);
    return code;
}

static void results_over_inputs(void **state)
{
    const float x[2] = { 1, 2 }, y[2] = { 0, 0 }, ones[2] = { 1, 1 };
    (void)state;
    for (int is_compiled = 0; is_compiled < 2; is_compiled++) {
        mlx_array in[2] = { array_f32(2, x), array_f32(2, y) }, expected = array_f32(2, ones), r = mlx_array_new();
        mlx_vector_array v = mlx_vector_array_new_data(in, 2);
        mlx_closure c = is_compiled ? compiled(swap, NULL, true) : mlx_closure_new_func_payload(swap, NULL, NULL);
        free_all(2, in);
        OK(mlx_closure_apply(&v, c, v));
        OK(mlx_vector_array_get(&r, v, 0));
        array_equal_bits(r, expected, "exp(0)");
        OK(mlx_closure_apply(&v, c, v));
        OK(mlx_closure_apply(&v, c, v));
        assert_int_equal(mlx_vector_array_size(v), 2);
        OK(mlx_vector_array_free(v));
        OK(mlx_closure_free(c));
        free_all(1, &r);
        free_all(1, &expected);
    }
}

/* An array set from its own data, an array set to itself, a vector set from arrays that only it holds. */
static void from_itself(void **state)
{
    const float x[4] = { 1, 2, 3, 4 };
    const int two[2] = { 2, 2 };
    mlx_array a = array_f32(4, x), e = mlx_array_new_data(x, two, 2, MLX_FLOAT32);
    (void)state;
    OK(mlx_array_set_data(&a, mlx_array_data_float32(a), two, 2, MLX_FLOAT32));
    array_equal_bits(a, e, "from its own data");
    OK(mlx_array_set(&a, a));
    array_equal_bits(a, e, "set to itself");
    mlx_vector_array v = mlx_vector_array_new_value(a);
    mlx_array borrowed[2] = { a, a };
    OK(mlx_vector_array_set(&v, v));
    OK(mlx_vector_array_set_data(&v, borrowed, 2));
    OK(mlx_vector_array_get(&a, v, 1));
    OK(mlx_vector_array_set_value(&v, a));
    array_equal_bits(a, e, "out of the vector");
    OK(mlx_vector_array_free(v));
    free_all(1, &a);
    free_all(1, &e);
}

/* ---- Destructors and functions that call ---- */

static int n_released;

static void calls_back(void *data)
{
    mlx_array a = mlx_array_new_float32(0), r = mlx_array_new();
    float item = 0;
    if (mlx_exp(&r, a, stream) == 0 && mlx_array_item_float32(&item, r) == 0 && item == 1)
        n_released++;
    mlx_array_free(a);
    mlx_array_free(r);
    mlx_detail_compile_clear_cache();
    if (data) {                                          /* another closure or array goes with this one */
        mlx_closure c = { .ctx = data };
        mlx_closure_free(c);
    }
}

static void destructors_that_call(void **state)
{
    static float x[2];
    const int n = 2;
    (void)state;
    n_released = 0;
    mlx_closure inner = mlx_closure_new_func_payload(seed_rates, NULL, calls_back), outer = mlx_closure_new_func_payload(seed_rates, inner.ctx, calls_back);
    mlx_closure c = mlx_closure_new();
    OK(mlx_compile(&c, outer, true));
    OK(mlx_closure_free(outer));
    OK(mlx_closure_free(c));
    OK(mlx_detail_compile_clear_cache());
    assert_int_equal(n_released, 2);
    mlx_array a = mlx_array_new_data_managed(x, &n, 1, MLX_FLOAT32, NULL), one = mlx_array_new_float32(1), r = mlx_array_new();
    OK(mlx_add(&r, a, one, stream));
    free_all(1, &a);
    free_all(1, &one);
    free_all(1, &r);
    seed_works();
}

static mlx_closure own;

static int gives_up_itself(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    if (own.ctx) {
        mlx_closure_free(own);
        own.ctx = NULL;
        mlx_detail_compile_clear_cache();
    }
    return seed_rates(res, input, payload == &own ? NULL : payload);
}

static void gone(void *payload)
{
    (void)payload;
    n_released++;
}

static void a_closure_freed_by_its_function(void **state)
{
    (void)state;
    for (int is_compiled = 0; is_compiled < 2; is_compiled++) {
        mlx_array in[4], out[2];
        n_released = 0;
        mlx_closure plain = mlx_closure_new_func_payload(gives_up_itself, &own, gone);
        if (is_compiled) {
            own = mlx_closure_new();
            OK(mlx_compile(&own, plain, true));
            OK(mlx_closure_free(plain));
        } else
            own = plain;
        seed_inputs(in);
        OK(apply(own, 4, in, 2, out));
        OK(mlx_detail_compile_clear_cache());
        assert_int_equal(n_released, 1);
        free_all(4, in);
        free_all(2, out);
    }
    seed_works();
}

/* A function that hands back the vector it was lent, and fails or does not. */
static int gives_its_input(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    *res = input;
    return *(int *)payload;
}

static void the_input_itself_as_result(void **state)
{
    const float x[2] = { 1, 2 };
    (void)state;
    for (int is_compiled = 0; is_compiled < 2; is_compiled++)
        for (int round = 0; round < 3; round++) {
            int code = 5;
            mlx_closure plain = mlx_closure_new_func_payload(gives_its_input, &code, NULL), c = mlx_closure_new();
            mlx_array in[2] = { array_f32(2, x), array_f32(1, x) }, out[2];
            if (is_compiled)
                OK(mlx_compile(&c, plain, true));
            else
                OK(mlx_closure_set(&c, plain));
            FAILS(apply(c, 2, in, 2, out), "returned 5");
            FAILS(apply(c, 0, in, 0, out), "returned 5");
            code = 0;
            FAILS(apply(c, 0, in, 0, out), "no output");
            OK(apply(c, 2, in, 2, out));
            array_equal_bits(out[0], in[0], "the first input");
            array_equal_bits(out[1], in[1], "the second");
            free_all(2, in);
            free_all(2, out);
            OK(mlx_closure_free(plain));
            OK(mlx_closure_free(c));
        }
}

/* Of one array: the very handle it was lent, and that handle assigned to. */
static int unary_code;

static int gives_its_array(mlx_array *res, const mlx_array x)
{
    *res = x;
    return unary_code;
}

static int assigns_to_its_input(mlx_array *res, const mlx_array x)
{
    mlx_array input = x;
    *res = x;
    return mlx_negative(&input, x, stream) || unary_code;
}

static void the_array_itself_as_result(void **state)
{
    static int (*const functions[])(mlx_array *, const mlx_array) = { gives_its_array, assigns_to_its_input };
    const float x[2] = { 1, 2 }, minus[2] = { -1, -2 };
    (void)state;
    for (int i = 0; i < 4; i++) {
        mlx_closure plain = mlx_closure_new_unary(functions[i % 2]), c = mlx_closure_new();
        mlx_array in = array_f32(2, x), expected = array_f32(2, i % 2 ? minus : x), out;
        if (i & 2)
            OK(mlx_compile(&c, plain, true));
        else
            OK(mlx_closure_set(&c, plain));
        unary_code = 1;
        FAILS(apply(c, 1, &in, 1, &out), "returned 1");
        unary_code = 0;
        OK(apply(c, 1, &in, 1, &out));
        array_equal_bits(out, expected, "what the handle came to be");
        free_all(1, &in);
        free_all(1, &out);
        free_all(1, &expected);
        OK(mlx_closure_free(plain));
        OK(mlx_closure_free(c));
    }
}

/* A function that compiles and applies another, clears the cache, and applies its own closure with other inputs. */
typedef struct nest {
    mlx_closure self;
    int depth;
} nest;

static int nested(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    nest *n = payload;
    mlx_array x = input_of(input, 0);
    int code = 0;
    if (n->depth++ < 5) {
        mlx_vector_array v = mlx_vector_array_new();
        code = mlx_detail_compile_clear_cache() || mlx_closure_apply(&v, n->self, input) || mlx_vector_array_get(&x, v, 0);
        mlx_vector_array_free(v);
    }
    code = code || mlx_square(&x, x, stream) || mlx_vector_array_set_value(res, x);
    mlx_array_free(x);
    return code;
}

static void functions_that_call_themselves(void **state)
{
    const float x[1] = { 1.0625f };
    nest n = { .depth = 0 };
    mlx_array in = array_f32(1, x), out, expected = array_f32(1, x);
    (void)state;
    n.self = compiled(nested, &n, true);
    OK(apply(n.self, 1, &in, 1, &out));
    for (int i = 0; i < 6; i++)
        OK(mlx_square(&expected, expected, stream));
    array_equal_bits(out, expected, "squared six times");
    free_all(1, &in);
    free_all(1, &out);
    free_all(1, &expected);
    OK(mlx_closure_free(n.self));
}

/* A function that gives the vector it was applied to other arrays, fewer of them. */
static int changing(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array x = input_of(input, 0), other = mlx_array_new_float32(7);
    int code = mlx_exp(&x, x, stream) || mlx_vector_array_set_value(res, x) || mlx_vector_array_set_data(payload, &other, 1);
    free_all(1, &x);
    free_all(1, &other);
    return code;
}

static void an_input_that_changes_while_it_is_traced(void **state)
{
    const float x[1] = { 1.5f };
    mlx_vector_array input = mlx_vector_array_new(), output = mlx_vector_array_new();
    mlx_array in = array_f32(1, x), expected = mlx_array_new(), out = mlx_array_new();
    mlx_closure c = compiled(changing, &input, false);
    (void)state;
    for (int i = 0; i < 20; i++)
        OK(mlx_vector_array_append_value(input, in));
    OK(mlx_closure_apply(&output, c, input));
    OK(mlx_vector_array_get(&out, output, 0));
    OK(mlx_exp(&expected, in, stream));
    array_equal_bits(out, expected, "of what it was applied to");
    free_all(1, &in);
    free_all(1, &expected);
    free_all(1, &out);
    OK(mlx_vector_array_free(input));
    OK(mlx_vector_array_free(output));
    OK(mlx_closure_free(c));
}

/* A function that frees the vector that it was applied to, whose owner does not. */
static int frees_its_input(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_vector_array *given = payload;
    mlx_array x = input_of(input, 0);
    int code = mlx_exp(&x, x, stream) || mlx_vector_array_set_value(res, x);
    if (given->ctx)
        mlx_vector_array_free(*given);
    given->ctx = NULL;
    free_all(1, &x);
    return code;
}

typedef struct lender {
    mlx_closure inner;
    mlx_vector_array given;
} lender;

static int applies_it(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    lender *l = payload;
    mlx_array x = input_of(input, 0);
    l->given = mlx_vector_array_new_value(x);
    free_all(1, &x);
    return mlx_closure_apply(res, l->inner, l->given);
}

static void an_input_freed_while_it_is_used(void **state)
{
    const float x[1] = { 1.5f };
    mlx_array in = array_f32(1, x), expected = mlx_array_new(), out = mlx_array_new();
    (void)state;
    OK(mlx_exp(&expected, in, stream));
    for (int way = 0; way < 4; way++) {                  /* not compiled, compiled, disabled, within another trace */
        lender k = { { NULL }, { NULL } };
        mlx_vector_array output = mlx_vector_array_new(), input = mlx_vector_array_new_value(in);
        if (way == 0)
            k.inner = mlx_closure_new_func_payload(frees_its_input, &k.given, NULL);
        else
            k.inner = compiled(frees_its_input, &k.given, true);
        mlx_closure c = way == 3 ? compiled(applies_it, &k, true) : mlx_closure_new_func_payload(applies_it, &k, NULL);
        if (way == 2)
            OK(mlx_disable_compile());
        OK(mlx_closure_apply(&output, c, input));
        OK(mlx_enable_compile());
        OK(mlx_vector_array_get(&out, output, 0));
        array_equal_bits(out, expected, "of what was freed");
        OK(mlx_vector_array_free(input));
        OK(mlx_vector_array_free(output));
        OK(mlx_closure_free(c));
        OK(mlx_closure_free(k.inner));
    }
    free_all(1, &in);
    free_all(1, &out);
    free_all(1, &expected);
}

/* Compiled again and again, a closure is as deep as before. */
static void compiled_many_times(void **state)
{
    mlx_closure c = compiled(seed_rates, NULL, true);
    mlx_array in[4], out[2];
    (void)state;
    for (int i = 0; i < 100000; i++)
        OK(mlx_compile(&c, c, true));
    seed_inputs(in);
    OK(apply(c, 4, in, 2, out));
    free_all(4, in);
    free_all(2, out);
    OK(mlx_closure_free(c));
}

/* Constants of an operation are rounded to nearest, in whatever way the thread rounds that traces it first. */
static void constants_in_any_rounding_mode(void **state)
{
    static const int modes[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST };
    const float one[1] = { 1 };
    const uint32_t radians = 0x3c8efa35, degrees = 0x42652ee1;
    mlx_array in = array_f32(1, one), out = mlx_array_new();
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(fesetround(modes[i]), 0);
        OK(mlx_detail_compile_clear_cache());
        int code = mlx_radians(&out, in, stream);
        int same = code == 0 && memcmp(mlx_array_data_float32(out), &radians, 4) == 0;
        code |= mlx_degrees(&out, in, stream);
        same &= code == 0 && memcmp(mlx_array_data_float32(out), &degrees, 4) == 0;
        fesetround(FE_TONEAREST);
        assert_true(same);
    }
    free_all(1, &in);
    free_all(1, &out);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_over_inputs), cmocka_unit_test(from_itself), cmocka_unit_test(destructors_that_call),
        cmocka_unit_test(a_closure_freed_by_its_function), cmocka_unit_test(functions_that_call_themselves), cmocka_unit_test(the_input_itself_as_result),
        cmocka_unit_test(the_array_itself_as_result),
        cmocka_unit_test(an_input_that_changes_while_it_is_traced), cmocka_unit_test(an_input_freed_while_it_is_used),
        cmocka_unit_test(compiled_many_times),
        cmocka_unit_test(constants_in_any_rounding_mode),
    };
    return CLIENT_RUN(argc, argv, tests);
}
