/* What a composite refuses through mlx-c's interface: each time code 1 and a message, results untouched, and the next right apply
 * works as if nothing had been. */
#include "seed.h"

static void three_inputs(void **state)
{
    mlx_closure rates = compiled(seed_rates, NULL, true);
    mlx_array in[4], out[2];
    (void)state;
    for (int round = 0; round < 2; round++) {            /* before the first trace, and after */
        seed_inputs_of(in, 2, SEED_HEADS);
        FAILS(apply(rates, 3, in, 2, out), "");
        free_all(4, in);
        seed_check(rates, 2);
    }
    OK(mlx_closure_free(rates));
}

static void no_inputs_and_too_many(void **state)
{
    mlx_closure rates = compiled(seed_rates, NULL, true);
    mlx_array in[5], out[2], eager = mlx_array_new();
    (void)state;
    FAILS(apply(rates, 0, in, 2, out), "");
    seed_inputs_of(in, 2, SEED_HEADS);
    in[4] = in[0];
    OK(apply(rates, 5, in, 2, out));                     /* one that the function does not look at is no error */
    OK(seed_decay(&eager, in[1], in[2], in[3]));
    array_equal_bits(out[1], eager, "with an input to spare");
    OK(mlx_array_free(eager));
    free_all(4, in);
    free_all(2, out);
    OK(mlx_closure_free(rates));
}

/* On the first apply and, what the original does not check, on a later one. The result keeps what it had. */
static void shapes_that_do_not_broadcast(void **state)
{
    (void)state;
    for (int shapeless = 0; shapeless < 2; shapeless++)
        for (int first = 0; first < 2; first++) {
            mlx_closure rates = compiled(seed_rates, NULL, shapeless);
            mlx_array in[4], kept = mlx_array_new_int(42);
            mlx_vector_array res = mlx_vector_array_new_value(kept), input;
            if (!first)
                seed_check(rates, 3);
            seed_inputs_of(in, 3, SEED_HEADS - 1);
            input = mlx_vector_array_new_data(in, 4);
            FAILS(mlx_closure_apply(&res, rates, input), "broadcast");
            assert_int_equal(mlx_vector_array_size(res), 1);
            OK(mlx_vector_array_free(input));
            OK(mlx_vector_array_free(res));
            free_all(4, in);
            free_all(1, &kept);
            seed_check(rates, 5);
            OK(mlx_closure_free(rates));
        }
}

/* The message says which operation, and both shapes. */
static void a_message_with_shapes(void **state)
{
    const int three[1] = { 3 }, four[1] = { 4 };
    uint64_t random = client_seed;
    mlx_array a = array_random(&random, MLX_FLOAT32, 1, three), b = array_random(&random, MLX_FLOAT32, 1, four), res = mlx_array_new();
    (void)state;
    assert_int_equal(mlx_add(&res, a, b, stream), 1);
    print_message("%s\n", error_message());
    assert_non_null(strstr(error_message(), "add"));
    assert_non_null(strchr(error_message(), '3'));
    assert_non_null(strchr(error_message(), '4'));
    error_take();
    assert_null(res.ctx);
    free_all(1, &a);
    free_all(1, &b);
}

/* ---- Functions that set nothing, or fail ---- */

static int sets_nothing(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    (void)input;
    (void)payload;
    return res->ctx ? 2 : 0;                             /* it arrives empty */
}

static int fails_when_told(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    int code = *(int *)payload;
    return code ? code : seed_rates(res, input, NULL);
}

static int sets_and_fails(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    int code = seed_rates(res, input, NULL);
    return code ? code : *(int *)payload;
}

static int gives_an_empty_array(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array nothing = mlx_array_new();
    (void)input;
    (void)payload;
    return mlx_vector_array_set_value(res, nothing);
}

static void empty_functions(void **state)
{
    mlx_array in[4], out[2];
    mlx_closure nothing = { 0 }, c = { 0 };
    (void)state;
    seed_inputs_of(in, 2, SEED_HEADS);
    c = compiled(sets_nothing, NULL, true);
    FAILS(apply(c, 4, in, 2, out), "");
    FAILS(apply(c, 4, in, 2, out), "");
    OK(mlx_closure_free(c));
    c = compiled(gives_an_empty_array, NULL, true);
    FAILS(apply(c, 4, in, 1, out), "");
    OK(mlx_closure_free(c));
    c.ctx = NULL;
    FAILS(mlx_compile(&c, nothing, true), "");
    assert_null(c.ctx);
    FAILS(apply(nothing, 4, in, 2, out), "");
    free_all(4, in);
}

/* Any code that is not 0; a failure is not remembered. */
static void failing_functions(void **state)
{
    static closure_function *const functions[] = { fails_when_told, sets_and_fails };
    static const int codes[] = { 1, -1, 7, 2147483647 };
    (void)state;
    for (size_t f = 0; f < COUNT(functions); f++)
        for (size_t k = 0; k < COUNT(codes); k++) {
            int code = codes[k];
            mlx_array in[4], out[2];
            mlx_closure c = compiled(functions[f], &code, true);
            seed_inputs_of(in, 2, SEED_HEADS);
            FAILS(apply(c, 4, in, 2, out), "");
            code = 0;
            seed_check(c, 2);
            code = codes[k];
            seed_check(c, 7);                                 /* traced already: the function is not called again */
            OK(mlx_closure_free(c));
            free_all(4, in);
        }
}

/* An error within the function that it swallows leaves it without a result, which is an error of the apply. */
static int swallows_an_error(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array a = input_of(input, 0), r = mlx_array_new();
    (void)payload;
    (void)!mlx_bitwise_and(&r, a, a, stream);            /* not on floats */
    if (!r.ctx)
        (void)!mlx_exp(&r, r, stream);                   /* an empty operand */
    (void)!mlx_vector_array_set_value(res, r);
    mlx_array_free(a);
    mlx_array_free(r);
    return 0;
}

static void swallowed_errors(void **state)
{
    const float x[2] = { 1, 2 };
    mlx_array in = array_f32(2, x), out;
    mlx_closure c = compiled(swallows_an_error, NULL, true);
    (void)state;
    FAILS(apply(c, 1, &in, 1, &out), "");
    free_all(1, &in);
    OK(mlx_closure_free(c));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_inputs), cmocka_unit_test(no_inputs_and_too_many), cmocka_unit_test(shapes_that_do_not_broadcast),
        cmocka_unit_test(a_message_with_shapes), cmocka_unit_test(empty_functions), cmocka_unit_test(failing_functions),
        cmocka_unit_test(swallowed_errors),
    };
    return CLIENT_RUN(argc, argv, tests);
}
