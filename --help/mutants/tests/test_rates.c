/* The gated-delta rates: the golden table whole, the decay alone against the decay beside beta, every mix of dtypes, and the
 * shapes in which exp(A_log) and dt_bias are the same for every token, which the executor computes once. */
#include "golden_cases.h"

typedef struct mix {
    ol_dtype dtypes[4];                        /* b, a, A_log, dt_bias */
    ol_dtype beta, decay;
    size_t n, capacity;
    uint64_t *in[4], *out[2];
} mix;

typedef struct table {
    mix mixes[81];
    size_t n_mixes;
} table;

static void rates_row(char *const *f, void *user)
{
    table *t = user;
    ol_dtype dtypes[4];
    mix *m = NULL;
    for (int k = 0; k < 4; k++)
        dtypes[k] = golden_dtype(f[k]);
    for (size_t i = 0; i < t->n_mixes; i++)
        if (memcmp(t->mixes[i].dtypes, dtypes, sizeof dtypes) == 0)
            m = &t->mixes[i];
    if (!m) {
        assert_true(t->n_mixes < COUNT(t->mixes));
        m = &t->mixes[t->n_mixes++];
        memcpy(m->dtypes, dtypes, sizeof dtypes);
        m->beta = golden_dtype(f[8]);
        m->decay = golden_dtype(f[10]);
    }
    if (m->n == m->capacity) {
        m->capacity = m->capacity ? 2 * m->capacity : 512;
        for (int k = 0; k < 4; k++)
            assert_non_null(m->in[k] = realloc(m->in[k], m->capacity * sizeof(uint64_t)));
        for (int k = 0; k < 2; k++)
            assert_non_null(m->out[k] = realloc(m->out[k], m->capacity * sizeof(uint64_t)));
    }
    for (int k = 0; k < 4; k++)
        m->in[k][m->n] = golden_bits(f[4 + k]);
    m->out[0][m->n] = golden_bits(f[9]);
    m->out[1][m->n++] = golden_bits(f[11]);
}

static void compile_both(ol_device *device, const ol_dtype *d, ol_composite **rates, ol_composite **decay)
{
    ol_error error;
    assert_ok(ol_gated_delta_rates_compile(device, d[0], d[1], d[2], d[3], rates, &error), &error);
    assert_ok(ol_gated_delta_decay_compile(device, d[1], d[2], d[3], decay, &error), &error);
}

static size_t count_misses(const mix *m, ol_device *device, int path)
{
    ol_composite *rates, *decay;
    ol_tensor in[4], out[2], alone;
    ol_error error;
    size_t misses = 0;
    compile_both(device, m->dtypes, &rates, &decay);
    assert_int_equal(ol_composite_output_dtype(rates, 0), m->beta);
    assert_int_equal(ol_composite_output_dtype(rates, 1), m->decay);
    for (int k = 0; k < 4; k++) {
        in[k] = vector_of(malloc(m->n * 4), m->dtypes[k], (int64_t)m->n);
        for (size_t i = 0; i < m->n; i++)
            element_store(in[k].data, m->dtypes[k], i, m->in[k][i]);
    }
    out[0] = vector_of(malloc(m->n * 4), m->beta, (int64_t)m->n);
    out[1] = vector_of(malloc(m->n * 4), m->decay, (int64_t)m->n);
    alone = vector_of(malloc(m->n * 4), m->decay, (int64_t)m->n);
    uint64_t before = ol_device_launches(device);
    assert_ok(replay_paths[path](rates, NULL, in, out, &error), &error);
    assert_int_equal(ol_device_launches(device) - before, path ? ol_composite_composed_launches(rates) : 1);
    assert_ok(replay_paths[path](decay, NULL, in + 1, &alone, &error), &error);
    for (int o = 0; o < 2; o++)
        for (size_t i = 0; i < m->n; i++)
            if (element_load(out[o].data, out[o].dtype, i) != m->out[o][i] && misses++ < 5)
                print_error("%s, %s: b %llx a %llx A_log %llx dt_bias %llx (%s %s %s %s): %s %llx, expected %llx\n", ol_device_level(device), path_names[path],
                            (unsigned long long)m->in[0][i], (unsigned long long)m->in[1][i], (unsigned long long)m->in[2][i], (unsigned long long)m->in[3][i],
                            ol_dtype_name(m->dtypes[0]), ol_dtype_name(m->dtypes[1]), ol_dtype_name(m->dtypes[2]), ol_dtype_name(m->dtypes[3]), o ? "decay" : "beta",
                            (unsigned long long)element_load(out[o].data, out[o].dtype, i), (unsigned long long)m->out[o][i]);
    assert_memory_equal(alone.data, out[1].data, m->n * ol_dtype_size(m->decay));
    for (int k = 0; k < 4; k++)
        free(in[k].data);
    free(out[0].data);
    free(out[1].data);
    free(alone.data);
    ol_composite_destroy(rates);
    ol_composite_destroy(decay);
    return misses;
}

static void golden_table(void **state)
{
    (void)state;
    static table t;
    size_t n_rows = golden_read("rates.tsv", 12, rates_row, &t), misses = 0, n_run = 0;
    for (size_t i = 0; i < t.n_mixes; i++) {
        for (size_t level = 0; level < level_count(); level++)
            for (int path = 0; path < 2; path++)
                misses += count_misses(&t.mixes[i], level_device(level), path);
        n_run += t.mixes[i].n;
        for (int k = 0; k < 4; k++)
            free(t.mixes[i].in[k]);
        free(t.mixes[i].out[0]);
        free(t.mixes[i].out[1]);
    }
    print_message("rates.tsv: %zu rows in %zu mixes of dtypes\n", n_run, t.n_mixes);
    assert_int_equal(n_run, n_rows);
    assert_true(n_rows >= 12000 && t.n_mixes >= 2);
    assert_int_equal(misses, 0);
}

/* ---- Hoisting ---- */

typedef struct rates_shape {
    const char *what;
    int32_t rank[4];
    int64_t dims[4][3];
} rates_shape;

enum { HEADS = 32, CHANNELS = 6, T = -1 };     /* T: the number of tokens, to be filled in */

static const rates_shape rates_shapes[] = {
    { "by head", { 2, 2, 1, 1 }, { { T, HEADS }, { T, HEADS }, { HEADS }, { HEADS } } },
    { "one rate for all heads", { 2, 2, 0, 1 }, { { T, HEADS }, { T, HEADS }, { 0 }, { HEADS } } },
    { "scalars", { 1, 1, 0, 0 }, { { T }, { T }, { 0 }, { 0 } } },
    { "by token", { 2, 2, 2, 2 }, { { T, HEADS }, { T, HEADS }, { T, 1 }, { 1, 1 } } },
    { "a bias by token, a rate by head", { 2, 2, 1, 2 }, { { T, HEADS }, { T, HEADS }, { HEADS }, { T, 1 } } },
    { "by channel", { 2, 3, 2, 2 }, { { T, HEADS }, { T, HEADS, CHANNELS }, { HEADS, 1 }, { HEADS, CHANNELS } } },
    { "nothing by token", { 1, 1, 1, 1 }, { { HEADS }, { HEADS }, { HEADS }, { HEADS } } },
    { "a wide head", { 2, 2, 1, 1 }, { { T, 700 }, { T, 700 }, { 700 }, { 700 } } },
    { "heads that do not divide a tile", { 2, 2, 1, 1 }, { { T, 33 }, { T, 33 }, { 33 }, { 33 } } },
};

static void check_hoisting(ol_device *device, const rates_shape *s, const ol_dtype *dtypes, int64_t tokens, uint64_t *random)
{
    ol_composite *rates, *decay;
    ol_tensor in[4], out[2], wide_in[4], wide_out[2], alone;
    ol_error error;
    compile_both(device, dtypes, &rates, &decay);
    for (int k = 0; k < 4; k++) {
        int64_t dims[3], n = 1;
        for (int32_t d = 0; d < s->rank[k]; d++)
            n *= dims[d] = s->dims[k][d] == T ? tokens : s->dims[k][d];
        in[k] = ol_tensor_contiguous(guarded_alloc((size_t)n * ol_dtype_size(dtypes[k]), 0), dtypes[k], s->rank[k], dims);
        random_fill(random, in[k].data, dtypes[k], (size_t)n);
    }
    memset(out, 0, sizeof out);
    assert_ok(ol_output_shapes(rates, in, out, &error), &error);
    for (int path = 0; path < 2; path++) {
        size_t n_bytes[2];
        for (int o = 0; o < 2; o++) {
            int64_t n = 1;
            for (int32_t d = 0; d < out[o].rank; d++)
                n *= out[o].shape[d];
            n_bytes[o] = (size_t)n * ol_dtype_size(out[o].dtype);
            out[o].data = guarded_alloc(n_bytes[o], 0);
            wide_out[o] = out[o];
            wide_out[o].data = guarded_alloc(n_bytes[o], 0);
        }
        uint64_t before = ol_device_launches(device);
        assert_ok(replay_paths[path](rates, NULL, in, out, &error), &error);
        if (path == 0)
            assert_int_equal(ol_device_launches(device) - before, 1);

        /* The same with every input repeated in memory to its output's shape: nothing to hoist. */
        for (int k = 0; k < 4; k++) {
            const ol_tensor *like = &out[k > 0];
            int64_t n = (int64_t)(n_bytes[k > 0] / ol_dtype_size(like->dtype));
            wide_in[k] = ol_tensor_contiguous(guarded_alloc((size_t)n * ol_dtype_size(dtypes[k]), 0), dtypes[k], like->rank, like->shape);
            for (int64_t e = 0; e < n; e++) {
                int64_t flat = e, at = 0;
                for (int32_t d = like->rank - 1, own = in[k].rank - 1; d >= 0; d--, own--) {
                    if (own >= 0 && in[k].shape[own] != 1)
                        at += flat % like->shape[d] * in[k].strides[own];
                    flat /= like->shape[d];
                }
                element_store(wide_in[k].data, dtypes[k], (size_t)e, element_load(in[k].data, dtypes[k], (size_t)at));
            }
        }
        assert_ok(ol_replay(rates, NULL, wide_in, wide_out, &error), &error);
        alone = out[1];
        alone.data = guarded_alloc(n_bytes[1], 0);
        assert_ok(replay_paths[path](decay, NULL, in + 1, &alone, &error), &error);
        for (int o = 0; o < 2; o++)
            if (memcmp(out[o].data, wide_out[o].data, n_bytes[o]) != 0)
                fail_msg("%s, %s, %s, %lld tokens: output %d differs from the one with repeated inputs", ol_device_level(device), path_names[path], s->what, (long long)tokens, o);
        if (memcmp(alone.data, out[1].data, n_bytes[1]) != 0)
            fail_msg("%s, %s, %s, %lld tokens: the decay alone differs", ol_device_level(device), path_names[path], s->what, (long long)tokens);
        for (int k = 0; k < 4; k++)
            guarded_free(wide_in[k].data);
        for (int o = 0; o < 2; o++) {
            guarded_free(wide_out[o].data);
            guarded_free(out[o].data);
        }
        guarded_free(alone.data);
    }
    for (int k = 0; k < 4; k++)
        guarded_free(in[k].data);
    ol_composite_destroy(rates);
    ol_composite_destroy(decay);
}

static void hoisted_values_have_the_same_bits(void **state)
{
    (void)state;
    static const int64_t tokens[] = { 1, 2, 16, 17, 1000 };
    static const ol_dtype mixes[][4] = {
        { OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16 }, { OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32 }, { OL_FLOAT16, OL_BFLOAT16, OL_FLOAT16, OL_FLOAT32 },
    };
    uint64_t random = harness_seed;
    for (size_t level = 0; level < level_count(); level++)
        for (size_t s = 0; s < COUNT(rates_shapes); s++)
            for (size_t t = 0; t < COUNT(tokens); t++)
                for (size_t m = 0; m < (tokens[t] > 100 ? 1 : COUNT(mixes)); m++)
                    check_hoisting(level_device(level), &rates_shapes[s], mixes[(m + s) % COUNT(mixes)], tokens[t], &random);
}

static void every_mix_of_dtypes(void **state)
{
    (void)state;
    static const ol_dtype floats[] = { OL_FLOAT16, OL_BFLOAT16, OL_FLOAT32 };
    uint64_t random = harness_seed;
    for (int i = 0; i < 81; i++) {
        ol_dtype dtypes[4] = { floats[i % 3], floats[i / 3 % 3], floats[i / 9 % 3], floats[i / 27] };
        for (size_t level = 0; level < level_count(); level++)
            check_hoisting(level_device(level), &rates_shapes[i % 2 ? 0 : 5], dtypes, 17, &random);
    }
}

/* decay is NaN where exp(A_log) is infinite and the softplus is 0; for finite inputs and a finite rate it is in [0, 1]. */
static void decay_at_the_edges(void **state)
{
    (void)state;
    /* a, A_log, dt_bias: exp(A_log) inf and softplus 0; inf and softplus 1; both finite, extreme; an infinite a either way. */
    static const uint32_t cases[][4] = {
        { 0xC3480000, 0x43480000, 0, 0x7FC00000 }, { 0x3F800000, 0x43480000, 0, 0 }, { 0x7F7FFFFF, 0x42B00000, 0, 0 }, { 0xC3480000, 0x42B00000, 0, 0x3F800000 },
        { 0x7F800000, 0, 0, 0 }, { 0xFF800000, 0, 0, 0x3F800000 }, { 0x7F800000, 0, 0xFF800000, 0x7FC00000 }, { 0, 0xFF800000, 0, 0x3F800000 },
    };
    for (size_t level = 0; level < level_count(); level++)
        for (int path = 0; path < 2; path++) {
            ol_composite *rates, *decay;
            ol_error error;
            uint32_t in[3][COUNT(cases)], out[COUNT(cases)];
            ol_tensor tensors[3], result = vector_of(out, OL_FLOAT32, COUNT(cases));
            compile_both(level_device(level), DTYPES(OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32), &rates, &decay);
            for (int k = 0; k < 3; k++) {
                for (size_t i = 0; i < COUNT(cases); i++)
                    in[k][i] = cases[i][k];
                tensors[k] = vector_of(in[k], OL_FLOAT32, COUNT(cases));
            }
            assert_ok(replay_paths[path](decay, NULL, tensors, &result, &error), &error);
            for (size_t i = 0; i < COUNT(cases); i++)
                if (out[i] != cases[i][3])
                    fail_msg("%s, case %zu: %08x, expected %08x", ol_device_level(level_device(level)), i, out[i], cases[i][3]);
            ol_composite_destroy(rates);
            ol_composite_destroy(decay);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_table), cmocka_unit_test(hoisted_values_have_the_same_bits), cmocka_unit_test(every_mix_of_dtypes),
        cmocka_unit_test(decay_at_the_edges),
    };
    return HARNESS_RUN(argc, argv, tests);
}
