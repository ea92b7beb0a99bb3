/* The seed composite through mlx-c's interface: the golden table whole, token counts as a server has them, the decay alone, one
 * trace, one launch. */
#include "seed.h"

typedef struct mix {
    mlx_dtype dtypes[4], out_dtypes[2];      /* b, a, A_log, dt_bias; beta, decay */
    int n, capacity;
    uint64_t *bits[6];
} mix;

static mlx_dtype dtype_of(const char *field)
{
    int dtype = dtype_find(field);
    if (dtype < 0)
        fail_msg("\"%s\" is no dtype", field);
    return (mlx_dtype)dtype;
}

static void mix_add(mix *m, char *const *fields)
{
    static const int columns[6] = { 4, 5, 6, 7, 9, 11 };
    if (m->n == m->capacity) {
        m->capacity = m->capacity ? 2 * m->capacity : 1024;
        for (int k = 0; k < 6; k++)
            assert_non_null(m->bits[k] = realloc(m->bits[k], (size_t)m->capacity * sizeof(uint64_t)));
    }
    for (int k = 0; k < 6; k++)
        m->bits[k][m->n] = strtoull(fields[columns[k]], NULL, 16);
    m->n++;
}

static int read_rates(mix *mixes, int max, int *n_rows)
{
    char line[512];
    int n_mixes = 0;
    FILE *file = fopen(GOLDEN_DIR "/rates.tsv", "r");
    assert_non_null(file);
    for (*n_rows = 0; fgets(line, sizeof line, file);) {
        char *fields[12], *save = NULL, *field = strtok_r(line, " \t\n", &save);
        int n = 0, k = 0;
        if (!field || field[0] == '#')
            continue;
        for (; field && n < 12; field = strtok_r(NULL, " \t\n", &save))
            fields[n++] = field;
        assert_int_equal(n, 12);
        mlx_dtype d[4] = { dtype_of(fields[0]), dtype_of(fields[1]), dtype_of(fields[2]), dtype_of(fields[3]) };
        while (k < n_mixes && memcmp(mixes[k].dtypes, d, sizeof d) != 0)
            k++;
        if (k == n_mixes) {
            assert_true(++n_mixes <= max);
            memcpy(mixes[k].dtypes, d, sizeof d);
            mixes[k].out_dtypes[0] = dtype_of(fields[8]);
            mixes[k].out_dtypes[1] = dtype_of(fields[10]);
        }
        mix_add(&mixes[k], fields);
        ++*n_rows;
    }
    fclose(file);
    return n_mixes;
}

static void golden_table(void **state)
{
    static mix mixes[81];
    int n_rows = 0, n_mixes = read_rates(mixes, COUNT(mixes), &n_rows), n_calls = 0;
    mlx_closure rates = compiled(seed_rates, &n_calls, true), decay = compiled(seed_decay_alone, NULL, true);
    (void)state;
    assert_true(n_rows >= 12000 && n_mixes >= 2);
    for (int k = 0; k < n_mixes; k++) {
        mix *m = &mixes[k];
        mlx_array in[4], out[2], alone, expected[2];
        for (int i = 0; i < 4; i++)
            in[i] = array_of_bits(m->dtypes[i], 1, &m->n, m->bits[i]);
        for (int i = 0; i < 2; i++)
            expected[i] = array_of_bits(m->out_dtypes[i], 1, &m->n, m->bits[4 + i]);
        OK(apply(rates, 4, in, 2, out));
        OK(apply(decay, 3, in + 1, 1, &alone));
        array_equal_bits(out[0], expected[0], "beta");
        array_equal_bits(out[1], expected[1], "decay");
        array_equal_bits(alone, expected[1], "the decay alone");
        free_all(4, in);
        free_all(2, out);
        free_all(2, expected);
        free_all(1, &alone);
        for (int i = 0; i < 6; i++)
            free(m->bits[i]);
    }
    assert_int_equal(n_calls, n_mixes);              /* traced once for each mix of dtypes */
    print_message("rates.tsv: %d rows in %d mixes of dtypes\n", n_rows, n_mixes);
    OK(mlx_closure_free(rates));
    OK(mlx_closure_free(decay));
}

/* ---- Token counts ---- */

enum { HEADS = 32 };

/* [1, T, H] and [H]: each result is that of the same composite uncompiled, and of every token alone. */
static void check_tokens(mlx_closure rates, mlx_closure decay, mlx_dtype dtype, int tokens, uint64_t *random)
{
    const int shape[3] = { 1, tokens, HEADS }, heads[1] = { HEADS };
    mlx_array in[4] = { array_random(random, dtype, 3, shape), array_random(random, dtype, 3, shape), array_random(random, MLX_FLOAT32, 1, heads),
                        array_random(random, dtype, 1, heads) };
    mlx_array out[2], alone, eager = mlx_array_new();
    long before = launches(), fake_before = fake_launches();
    const char *device = getenv("ONELAUNCH_DEVICE");
    if (before >= 0)
        assert_int_equal(on_gpu(), device && strncmp(device, "cuda", 4) == 0);
    OK(apply(rates, 4, in, 2, out));
    OK(mlx_array_eval(out[0]));
    OK(mlx_array_eval(out[1]));
    if (before >= 0)
        assert_int_equal(launches() - before, 1);
    if (fake_before >= 0)
        assert_int_equal(fake_launches() - fake_before, 1);
    array_is(out[0], dtype, 3, shape);
    array_is(out[1], MLX_FLOAT32, 3, shape);

    OK(apply(decay, 3, in + 1, 1, &alone));
    array_equal_bits(out[1], alone, "decay beside beta against the decay alone");
    OK(seed_decay(&eager, in[1], in[2], in[3]));
    array_equal_bits(out[1], eager, "decay compiled against one by one");
    OK(mlx_sigmoid(&eager, in[0], stream));
    array_equal_bits(out[0], eager, "beta compiled against one by one");
    OK(mlx_array_free(eager));
    free_all(4, in);
    free_all(2, out);
    free_all(1, &alone);
}

static void token_counts(void **state)
{
    static const int counts[] = { 1, 2, 5, 64, 1000, 4096, 1 };
    static const mlx_dtype types[] = { MLX_BFLOAT16, MLX_FLOAT32, MLX_FLOAT16 };
    uint64_t random = client_seed;
    (void)state;
    for (size_t d = 0; d < COUNT(types); d++) {
        int n_calls = 0;
        mlx_closure rates = compiled(seed_rates, &n_calls, true), decay = compiled(seed_decay_alone, NULL, true);
        for (size_t t = 0; t < COUNT(counts); t++)
            check_tokens(rates, decay, types[d], counts[t], &random);
        assert_int_equal(n_calls, 1);
        OK(mlx_closure_free(rates));
        OK(mlx_closure_free(decay));
    }
}

/* With shapes in the trace's key as the original has it (shapeless is false) the results are the same. */
static void with_shapes(void **state)
{
    static const int counts[] = { 1, 3, 64, 1, 3 };
    uint64_t random = client_seed;
    (void)state;
    mlx_closure rates = compiled(seed_rates, NULL, false), decay = compiled(seed_decay_alone, NULL, false);
    for (size_t t = 0; t < COUNT(counts); t++)
        check_tokens(rates, decay, MLX_BFLOAT16, counts[t], &random);
    OK(mlx_closure_free(rates));
    OK(mlx_closure_free(decay));
}

/* Any shapes that broadcast, from one trace: by channel, a rate for all, scalars, no token at all. */
static void other_shapes(void **state)
{
    static const struct { int rank[4], dims[4][3], out_rank, out[3]; } shapes[] = {
        { { 2, 3, 2, 2 }, { { 5, 4 }, { 5, 4, 6 }, { 4, 1 }, { 4, 6 } }, 3, { 5, 4, 6 } },
        { { 0, 0, 0, 0 }, { { 0 }, { 0 }, { 0 }, { 0 } }, 0, { 0 } },
        { { 3, 3, 0, 1 }, { { 1, 3, 8 }, { 1, 3, 8 }, { 0 }, { 8 } }, 3, { 1, 3, 8 } },
        { { 3, 3, 1, 1 }, { { 1, 0, 8 }, { 1, 0, 8 }, { 8 }, { 8 } }, 3, { 1, 0, 8 } },
        { { 1, 1, 1, 2 }, { { 7 }, { 1 }, { 1 }, { 2, 3 } }, 2, { 2, 3 } },
    };
    uint64_t random = client_seed;
    int n_calls = 0;
    mlx_closure rates = compiled(seed_rates, &n_calls, true);
    (void)state;
    for (size_t k = 0; k < COUNT(shapes); k++) {
        mlx_array in[4], out[2], eager = mlx_array_new();
        for (int i = 0; i < 4; i++)
            in[i] = array_random(&random, MLX_FLOAT32, shapes[k].rank[i], shapes[k].dims[i]);
        OK(apply(rates, 4, in, 2, out));
        array_is(out[0], MLX_FLOAT32, shapes[k].rank[0], shapes[k].dims[0]);
        array_is(out[1], MLX_FLOAT32, shapes[k].out_rank, shapes[k].out);
        OK(seed_decay(&eager, in[1], in[2], in[3]));
        array_equal_bits(out[1], eager, "decay");
        OK(mlx_array_free(eager));
        free_all(4, in);
        free_all(2, out);
    }
    assert_int_equal(n_calls, 1);
    OK(mlx_closure_free(rates));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(golden_table), cmocka_unit_test(token_counts), cmocka_unit_test(with_shapes),
                                        cmocka_unit_test(other_shapes) };
    return CLIENT_RUN(argc, argv, tests);
}
