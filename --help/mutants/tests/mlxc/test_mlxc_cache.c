/* The cache of traces: whose they are, how long they stay, and that it is bounded. */
#include "seed.h"

/* The applies of one closure, in use all the time, between which others come and go. */
static void in_constant_use(void **state)
{
    const int n_others = fake_launches() >= 0 ? 30 : sanitized() ? 1300 : 3000;
    (void)state;
    for (int shapeless = 0; shapeless < 2; shapeless++) {
        int n_calls = 0, n_other_calls = 0;
        mlx_closure mine = compiled(seed_rates, &n_calls, shapeless), others = compiled(seed_rates, &n_other_calls, false);
        for (int i = 0; i < n_others; i++) {
            mlx_array in[SEED_INPUTS], out[SEED_OUTPUTS];
            seed_inputs_of(in, 1 + i, SEED_HEADS);
            OK(apply(others, SEED_INPUTS, in, SEED_OUTPUTS, out));
            free_all(SEED_INPUTS, in);
            free_all(SEED_OUTPUTS, out);
            if (i % 100 == 0)
                seed_check(mine, SEED_TOKENS);
        }
        assert_int_equal(n_calls, 1);
        assert_int_equal(n_other_calls, n_others);
        OK(mlx_closure_free(mine));
        OK(mlx_closure_free(others));
    }
}

/* What was not used for long is traced again. */
static void out_of_use(void **state)
{
    int n_calls = 0, n_other_calls = 0;
    mlx_closure mine = compiled(seed_rates, &n_calls, true), others = compiled(seed_rates, &n_other_calls, false);
    (void)state;
    if (fake_launches() >= 0)
        skip();
    seed_check(mine, 1);
    for (int i = 0; i < 1100; i++) {
        mlx_array in[SEED_INPUTS], out[SEED_OUTPUTS];
        seed_inputs_of(in, 1 + i, SEED_HEADS);
        OK(apply(others, SEED_INPUTS, in, SEED_OUTPUTS, out));
        free_all(SEED_INPUTS, in);
        free_all(SEED_OUTPUTS, out);
    }
    seed_check(mine, 1);
    assert_int_equal(n_calls, 2);
    OK(mlx_closure_free(mine));
    OK(mlx_closure_free(others));
}

/* Compiled anew in a loop, as a program may at each token: one trace, and no memory. */
static void compiled_anew(void **state)
{
    const int n = sanitized() || fake_launches() >= 0 ? 200 : 50000;
    (void)state;
    for (int way = 0; way < 3; way++) {
        int n_calls = 0;
        long before = 0;
        mlx_closure plain = mlx_closure_new_func_payload(seed_rates, &n_calls, NULL), c = mlx_closure_new();
        mlx_array in[SEED_INPUTS], out[SEED_OUTPUTS];
        seed_inputs(in);
        OK(mlx_compile(&c, plain, true));
        for (int i = 0; i < n; i++) {
            mlx_closure next = mlx_closure_new();
            if (i == n / 10)
                before = resident_kib();
            if (way == 0)
                OK(mlx_compile(&c, plain, true));        /* from the function */
            else if (way == 1)
                OK(mlx_compile(&c, c, true));            /* from itself */
            else {
                OK(mlx_compile(&next, c, true));         /* from the one before, which goes */
                OK(mlx_closure_free(c));
                c = next;
            }
            OK(apply(c, SEED_INPUTS, in, SEED_OUTPUTS, out));
            free_all(SEED_OUTPUTS, out);
        }
        long grown = resident_kib() - before;
        print_message("%d times: %d traces, resident memory grew by %ld KiB\n", n, n_calls, grown);
        assert_int_equal(n_calls, 1);
        assert_true(sanitized() || grown < 500);
        seed_check(c, 5);
        free_all(SEED_INPUTS, in);
        OK(mlx_closure_free(plain));
        OK(mlx_closure_free(c));
    }
}

/* ---- Keys: no two of these are one ---- */

static int sum(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array r = input_of(input, 0), x = mlx_array_new();
    int code = 0;
    ++*(int *)payload;
    for (size_t i = 1; i < mlx_vector_array_size(input); i++)
        code = code || mlx_vector_array_get(&x, input, i) || mlx_add(&r, r, x, stream);
    code = code || mlx_vector_array_set_value(res, r);
    mlx_array_free(r);
    mlx_array_free(x);
    return code;
}

static void inputs_that_run_together(void **state)
{
    static const struct { int n; struct { int rank, dims[3]; } inputs[3]; } cases[] = {
        { 1, { { 1, { 2 } } } }, { 1, { { 2, { 2, 2 } } } }, { 1, { { 2, { 1, 2 } } } }, { 1, { { 2, { 2, 1 } } } }, { 1, { { 0, { 0 } } } },
        { 1, { { 1, { 0 } } } }, { 1, { { 1, { 1 } } } }, { 1, { { 3, { 1, 1, 2 } } } }, { 2, { { 1, { 2 } }, { 0, { 0 } } } },
        { 2, { { 0, { 0 } }, { 1, { 2 } } } }, { 2, { { 1, { 2 } }, { 1, { 1 } } } }, { 2, { { 1, { 1 } }, { 1, { 2 } } } },
        { 3, { { 0, { 0 } }, { 0, { 0 } }, { 1, { 2 } } } }, { 1, { { 1, { 256 } } } }, { 1, { { 1, { 65536 } } } },
    };
    static const mlx_dtype kinds[] = { MLX_FLOAT32, MLX_INT32, MLX_BOOL };
    int n_calls = 0;
    mlx_closure c = compiled(sum, &n_calls, false);
    (void)state;
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < COUNT(cases); i++)
            for (size_t d = 0; d < COUNT(kinds); d++) {
                mlx_array in[3], out, e = mlx_array_new();
                for (int k = 0; k < cases[i].n; k++) {
                    in[k] = mlx_array_new();
                    OK(mlx_ones(&in[k], cases[i].inputs[k].dims, (size_t)cases[i].inputs[k].rank, kinds[d], stream));
                }
                OK(mlx_array_set(&e, in[0]));
                for (int k = 1; k < cases[i].n; k++)
                    OK(mlx_add(&e, e, in[k], stream));
                OK(apply(c, cases[i].n, in, 1, &out));
                array_equal_bits(out, e, "the sum");
                free_all(cases[i].n, in);
                free_all(1, &out);
                free_all(1, &e);
            }
    assert_int_equal(n_calls, COUNT(cases) * COUNT(kinds));
    OK(mlx_closure_free(c));
}

/* A key of dtypes alone, of two inputs, and one of a dtype and a rank, of one: float32 and bool, which is 0; float32 and rank 0. */
static int sum_or_rank(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    if (mlx_vector_array_size(input) > 1)
        return sum(res, input, payload);
    mlx_array x = input_of(input, 0), r = mlx_array_new();
    ++*(int *)payload;
    int code = mlx_array_set_float32(&r, 10 + (float)mlx_array_ndim(x)) || mlx_add(&r, x, r, stream) || mlx_vector_array_set_value(res, r);
    mlx_array_free(x);
    mlx_array_free(r);
    return code;
}

static void keys_of_another_detail(void **state)
{
    int n_calls = 0;
    const float ones[1] = { 1 };
    mlx_closure c = compiled(sum_or_rank, &n_calls, true);
    mlx_array in[2] = { mlx_array_new_float32(1), mlx_array_new_bool(true) }, row = array_f32(1, ones), out;
    (void)state;
    for (int round = 0; round < 2; round++) {
        OK(apply(c, 2, in, 1, &out));
        assert_true(((const float *)array_data(out))[0] == 2);
        free_all(1, &out);
        OK(apply(c, 1, &row, 1, &out));
        assert_true(((const float *)array_data(out))[0] == 12);
        free_all(1, &out);
        OK(apply(c, 1, in, 1, &out));
        assert_true(((const float *)array_data(out))[0] == 11);
        free_all(1, &out);
    }
    assert_int_equal(n_calls, 4);                        /* that of two inputs again, once ranks mattered */
    free_all(2, in);
    free_all(1, &row);
    OK(mlx_closure_free(c));
}

/* So many inputs that the key does not fit in place: the last one counts too. */
static void long_keys(void **state)
{
    enum { N = 600 };
    static mlx_array in[N];
    (void)state;
    for (int shapeless = 0; shapeless < 2; shapeless++) {
        int n_calls = 0;
        mlx_closure c = compiled(sum, &n_calls, shapeless);
        mlx_array out;
        for (int i = 0; i < N; i++)
            in[i] = mlx_array_new_float32(1);
        for (int round = 0; round < 2; round++)
            for (int k = 0; k < 3; k++) {
                if (k == 0)
                    OK(mlx_array_set_float32(&in[N - 1], 1));
                else
                    OK(mlx_ones(&in[N - 1], (const int[]){ k }, 1, k == 1 ? MLX_FLOAT32 : MLX_INT32, stream));
                OK(apply(c, N, in, 1, &out));
                assert_int_equal(mlx_array_ndim(out), k > 0);
                assert_int_equal(mlx_array_size(out), k > 0 ? k : 1);
                assert_true(((const float *)array_data(out))[0] == N);
                free_all(1, &out);
            }
        assert_int_equal(n_calls, shapeless ? 2 : 3);
        free_all(N, in);
        OK(mlx_closure_free(c));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_constant_use), cmocka_unit_test(out_of_use), cmocka_unit_test(compiled_anew),
        cmocka_unit_test(inputs_that_run_together), cmocka_unit_test(keys_of_another_detail),
        cmocka_unit_test(long_keys),
    };
    return CLIENT_RUN(argc, argv, tests);
}
