/* Random functions: chains of the interface's operations over random inputs and captured arrays, with several outputs. Uncompiled, they
 * run one by one; compiled, for other shapes from the same trace, and in the composed path, they have equal bits. */
#include "client.h"
#include "elementwise.h"

typedef int unary(mlx_array *res, const mlx_array a, const mlx_stream s);
typedef int binary(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s);

static unary *const ones[] = {
#define X(name) mlx_##name,
    MLXC_UNARY(X)
};
static binary *const twos[] = {
    MLXC_BINARY(X)
#undef X
};

enum { MAX_VALUES = 64, MAX_INPUTS = 5, MAX_OUTPUTS = 6, N_CAPTURED = 3 };

typedef struct program {
    uint64_t seed;
    int n_operations;
    mlx_array captured[N_CAPTURED];
} program;

/* The same operations at each call: they follow from the seed, and which are refused from dtypes alone. */
static int run(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    const program *p = payload;
    uint64_t random = p->seed;
    mlx_array values[MAX_VALUES] = { { 0 } }, out[MAX_OUTPUTS];
    int n = 0, n_out = 0, code = 0, n_inputs = (int)mlx_vector_array_size(input);
    for (; n < n_inputs; n++)
        values[n] = input_of(input, (size_t)n);
    for (int i = 0; i < p->n_operations && n < MAX_VALUES - 1 && code == 0; i++) {
        uint64_t r = random_next(&random);
        mlx_array x = values[r % (uint64_t)n], y = values[(r >> 8) % (uint64_t)n], z = values[(r >> 16) % (uint64_t)n], v = mlx_array_new();
        if ((r >> 24) % 8 == 0)
            y = p->captured[(r >> 32) % N_CAPTURED];
        switch ((r >> 40) % 8) {
        case 0: case 1: case 2: code = ones[(r >> 48) % COUNT(ones)](&v, x, stream); break;
        case 3: case 4: case 5: code = twos[(r >> 48) % COUNT(twos)](&v, x, y, stream); break;
        case 6: code = mlx_astype(&v, x, dtypes[(r >> 48) % N_DTYPES], stream); break;
        default: code = (r >> 48) % 2 ? mlx_where(&v, x, y, z, stream) : mlx_clip(&v, x, y, z, stream);
        }
        if (code != 0 && !v.ctx) {                       /* refused for its dtypes: left out, here as there */
            error_take();
            code = 0;
            continue;
        }
        values[n++] = v;
    }
    code = code || mlx_square(&values[n++], values[0], stream);
    for (; n_out < MAX_OUTPUTS && n_out < n - n_inputs; n_out++)
        out[n_out] = values[n - 1 - n_out];
    code = code || mlx_vector_array_set_data(res, out, (size_t)n_out);
    for (int i = 0; i < n; i++)
        mlx_array_free(values[i]);
    return code;
}

/* Inputs that broadcast to [a, b, c], of the dtypes that the seed says. */
static int make_inputs(mlx_array *in, uint64_t seed, const int *dims, uint64_t *random)
{
    int n = 1 + (int)(random_next(&seed) % MAX_INPUTS);
    for (int i = 0; i < n; i++) {
        uint64_t r = random_next(&seed), how = random_next(random);
        int shape[3], rank = (int)(how % 4);
        for (int d = 0; d < rank; d++)
            shape[d] = (how >> (8 + d)) % 4 == 0 ? 1 : dims[3 - rank + d];
        in[i] = array_random(random, dtypes[r % N_DTYPES], rank, shape);
    }
    return n;
}

static mlx_vector_array call(mlx_closure c, int n, const mlx_array *in)
{
    mlx_vector_array input = mlx_vector_array_new_data(in, (size_t)n), out = mlx_vector_array_new();
    OK(mlx_closure_apply(&out, c, input));
    OK(mlx_vector_array_free(input));
    return out;
}

static void same(mlx_vector_array x, mlx_vector_array y, const char *what)
{
    size_t n = mlx_vector_array_size(x);
    assert_int_equal(n, mlx_vector_array_size(y));
    for (size_t i = 0; i < n; i++) {
        mlx_array a = input_of(x, i), b = input_of(y, i);
        array_equal_bits(a, b, what);
        free_all(1, &a);
        free_all(1, &b);
    }
}

static void random_functions(void **state)
{
    int n_programs = sanitized() ? 100 : getenv("ONELAUNCH_TEST_EMULATED") ? 60 : 500;
    uint64_t random = client_seed;
    (void)state;
    for (int k = 0; k < n_programs; k++) {
        program p = { .seed = random_next(&random), .n_operations = 1 + (int)(random_next(&random) % 40) };
        for (int i = 0; i < N_CAPTURED; i++)
            p.captured[i] = array_random(&random, dtypes[random_next(&random) % N_DTYPES], 0, NULL);
        mlx_closure plain = mlx_closure_new_func_payload(run, &p, NULL), shapeless = mlx_closure_new(), by_shape = mlx_closure_new();
        OK(mlx_compile(&shapeless, plain, true));
        OK(mlx_compile(&by_shape, plain, false));
        for (int t = 0; t < 4; t++) {
            uint64_t r = random_next(&random);
            const int dims[3] = { 1 + (int)(r % 3), (r >> 8) % 16 == 0 ? 0 : 1 + (int)((r >> 16) % 9), 1 + (int)((r >> 24) % 70) };
            mlx_array in[MAX_INPUTS];
            int n = make_inputs(in, p.seed, dims, &random);
            mlx_vector_array expected = call(plain, n, in), got = call(shapeless, n, in);
            same(got, expected, "shapeless");
            OK(mlx_vector_array_free(got));
            got = call(by_shape, n, in);
            same(got, expected, "by shape");
            OK(mlx_vector_array_free(got));
            OK(mlx_set_compile_mode(MLX_COMPILE_MODE_NO_FUSE));
            got = call(shapeless, n, in);
            OK(mlx_set_compile_mode(MLX_COMPILE_MODE_ENABLED));
            same(got, expected, "composed");
            OK(mlx_vector_array_free(got));
            OK(mlx_vector_array_free(expected));
            free_all(n, in);
        }
        OK(mlx_closure_free(plain));
        OK(mlx_closure_free(shapeless));
        OK(mlx_closure_free(by_shape));
        free_all(N_CAPTURED, p.captured);
    }
    print_message("%d functions\n", n_programs);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_functions) };
    return CLIENT_RUN(argc, argv, tests);
}
