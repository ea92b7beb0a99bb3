/* Every elementwise function of the interface: at once against compiled, for every dtype and all pairs of dtypes, equal bits; and that
 * what one refuses, the other refuses. */
#include "client.h"
#include "elementwise.h"

typedef int unary(mlx_array *res, const mlx_array a, const mlx_stream s);
typedef int binary(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

typedef struct function {
    const char *name;
    unary *one;
    binary *two;
} function;

static const function functions[] = {
#define X(name) { #name, mlx_##name, NULL },
    MLXC_UNARY(X)
#undef X
#define X(name) { #name, NULL, mlx_##name },
    MLXC_BINARY(X)
#undef X
};

static int call(mlx_array *res, const function *f, const mlx_array *in)
{
    return f->one ? f->one(res, in[0], stream) : f->two(res, in[0], in[1], stream);
}

static int traced(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array in[2] = { input_of(input, 0), input_of(input, mlx_vector_array_size(input) - 1) }, r = mlx_array_new();
    int code = call(&r, payload, in);
    code = code || mlx_vector_array_set_value(res, r);
    free_all(2, in);
    mlx_array_free(r);
    return code;
}

/* Both ways; whether it was accepted. */
static bool check(const function *f, mlx_closure c, const mlx_array *in, const char *what)
{
    mlx_array eager = mlx_array_new(), out;
    int n = f->one ? 1 : 2, code = call(&eager, f, in);
    if (code != 0) {
        assert_true(error_take() >= 1);
        assert_null(eager.ctx);
        FAILS(apply(c, n, in, 1, &out), "");
        return false;
    }
    OK(apply(c, n, in, 1, &out));
    array_equal_bits(out, eager, what);
    free_all(1, &out);
    OK(mlx_array_free(eager));
    return true;
}

static void every_function_and_dtype(void **state)
{
    const int shape[2] = { 7, 11 };
    uint64_t random = client_seed;
    int n_accepted = 0, n_refused = 0;
    (void)state;
    for (size_t k = 0; k < COUNT(functions); k++) {
        const function *f = &functions[k];
        mlx_closure c = compiled(traced, (void *)f, true);
        for (int i = 0; i < N_DTYPES; i++)
            for (int j = 0; j < (f->one ? 1 : N_DTYPES); j++) {
                mlx_array in[2] = { array_random(&random, dtypes[i], 2, shape), array_random(&random, dtypes[j], 2, shape) };
                if (check(f, c, in, f->name))
                    n_accepted++;
                else {
                    n_refused++;
                    /* Bits of floats, and shifts of bools, are all there is to refuse. */
                    if (strncmp(f->name, "bitwise", 7) != 0 && !strstr(f->name, "shift"))
                        fail_msg("%s refuses %s and %s", f->name, dtype_name(dtypes[i]), dtype_name(dtypes[j]));
                }
                free_all(2, in);
            }
        OK(mlx_closure_free(c));
    }
    print_message("%zu functions, %d combinations of dtypes accepted, %d refused\n", COUNT(functions), n_accepted, n_refused);
    assert_true(n_accepted > 2000);
}

static void shapes_that_broadcast(void **state)
{
    static const struct { int rank[2], dims[2][8]; } shapes[] = {
        { { 0, 0 }, { { 0 }, { 0 } } },
        { { 0, 3 }, { { 0 }, { 2, 3, 4 } } },
        { { 1, 2 }, { { 5 }, { 3, 1 } } },
        { { 2, 2 }, { { 3, 1 }, { 1, 4 } } },
        { { 1, 2 }, { { 0 }, { 3, 1 } } },               /* no elements */
        { { 2, 2 }, { { 2, 0 }, { 1, 1 } } },
        { { 1, 1 }, { { 1 }, { 0 } } },
        { { 8, 8 }, { { 2, 1, 2, 1, 2, 1, 2, 1 }, { 1, 3, 1, 2, 1, 2, 1, 2 } } },
        { { 8, 1 }, { { 1, 1, 2, 1, 1, 1, 1, 3 }, { 3 } } },
        { { 4, 0 }, { { 1, 2, 1, 67 }, { 0 } } },
        { { 1, 1 }, { { 1027 }, { 1027 } } },
    };
    uint64_t random = client_seed;
    (void)state;
    for (size_t k = 0; k < COUNT(functions); k += 3) {
        const function *f = &functions[k];
        mlx_closure c = compiled(traced, (void *)f, true);
        for (size_t s = 0; s < COUNT(shapes); s++)
            for (int swapped = 0; swapped < 2; swapped++) {
                mlx_dtype dtype = strncmp(f->name, "bitwise", 7) == 0 || strstr(f->name, "shift") ? MLX_INT16 : MLX_FLOAT32;
                int a = swapped, b = 1 - swapped;
                mlx_array in[2] = { array_random(&random, dtype, shapes[s].rank[a], shapes[s].dims[a]),
                                    array_random(&random, dtype, shapes[s].rank[b], shapes[s].dims[b]) };
                assert_true(check(f, c, in, f->name));
                free_all(2, in);
            }
        OK(mlx_closure_free(c));
    }
}

static void shapes_that_do_not(void **state)
{
    static const int dims[][2][2] = { { { 2, 3 }, { 2, 4 } }, { { 2, 3 }, { 3, 3 } }, { { 0, 3 }, { 2, 3 } } };
    uint64_t random = client_seed;
    (void)state;
    for (size_t k = 0; k < COUNT(functions); k++)
        for (size_t s = 0; functions[k].two && s < COUNT(dims); s++) {
            mlx_array in[2] = { array_random(&random, MLX_INT32, 2, dims[s][0]), array_random(&random, MLX_INT32, 2, dims[s][1]) }, out, r = mlx_array_new();
            mlx_closure c = compiled(traced, (void *)&functions[k], true);
            FAILS(call(&r, &functions[k], in), "broadcast");
            FAILS(apply(c, 2, in, 1, &out), "broadcast");
            OK(mlx_closure_free(c));
            free_all(2, in);
        }
}

/* The result may be a handle that is an operand, and one that holds something else. */
static void results_over_operands(void **state)
{
    const float x[3] = { 1, -2, 0.5f };
    mlx_array a = array_f32(3, x), b, r = mlx_array_new_int(9), expected = mlx_array_new();
    (void)state;
    OK(mlx_exp(&expected, a, stream));
    OK(mlx_exp(&r, a, stream));
    array_equal_bits(r, expected, "over another array");
    b = mlx_array_new();
    OK(mlx_array_set(&b, a));
    OK(mlx_exp(&b, b, stream));
    array_equal_bits(b, expected, "over the operand");
    OK(mlx_add(&expected, a, a, stream));
    OK(mlx_array_set(&b, a));
    OK(mlx_add(&b, b, b, stream));
    array_equal_bits(b, expected, "over both operands");
    assert_true(mlx_array_data_float32(a)[1] == -2);     /* another reference is not written */
    free_all(1, &a);
    free_all(1, &b);
    free_all(1, &r);
    free_all(1, &expected);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_and_dtype), cmocka_unit_test(shapes_that_broadcast), cmocka_unit_test(shapes_that_do_not),
        cmocka_unit_test(results_over_operands),
    };
    return CLIENT_RUN(argc, argv, tests);
}
