/* Every golden row of the primitives that exist, and the inputs nearest to a rounding boundary, at every level and on both
 * paths. The rows of one primitive and dtype are one tensor. Rows of primitives still to come are counted, and printed. */
#include "golden_cases.h"

typedef struct group {
    char name[32];
    ol_dtype in, out;
    size_t n, capacity;
    uint64_t *x, *y, *expected;
} group;

typedef struct table {
    group groups[256];
    size_t n_groups, n_missing;
} table;

static group *group_of(table *t, const char *name, ol_dtype in, ol_dtype out)
{
    for (size_t i = t->n_groups; i-- > 0;)
        if (strcmp(t->groups[i].name, name) == 0 && t->groups[i].in == in && t->groups[i].out == out)
            return &t->groups[i];
    assert_true(t->n_groups < COUNT(t->groups));
    group *g = &t->groups[t->n_groups++];
    snprintf(g->name, sizeof g->name, "%s", name);
    g->in = in;
    g->out = out;
    return g;
}

static void add_row(group *g, uint64_t x, uint64_t y, uint64_t expected)
{
    if (g->n == g->capacity) {
        g->capacity = g->capacity ? 2 * g->capacity : 512;
        g->x = realloc(g->x, g->capacity * sizeof *g->x);
        g->y = realloc(g->y, g->capacity * sizeof *g->y);
        g->expected = realloc(g->expected, g->capacity * sizeof *g->expected);
        assert_true(g->x && g->y && g->expected);
    }
    g->x[g->n] = x;
    g->y[g->n] = y;
    g->expected[g->n++] = expected;
}

static void unary_row(char *const *f, void *user)
{
    table *t = user;
    if (ol_primitive_find(f[0]) < 0)
        t->n_missing++;
    else
        add_row(group_of(t, f[0], golden_dtype(f[1]), golden_dtype(f[3])), golden_bits(f[2]), 0, golden_bits(f[4]));
}

static void binary_row(char *const *f, void *user)
{
    table *t = user;
    if (ol_primitive_find(f[0]) < 0)
        t->n_missing++;
    else
        add_row(group_of(t, f[0], golden_dtype(f[1]), golden_dtype(f[1])), golden_bits(f[2]), golden_bits(f[3]), golden_bits(f[4]));
}

static void hard_row(char *const *f, void *user)
{
    add_row(user, golden_bits(f[0]), 0, golden_bits(f[1]));
}

/* Runs a group and gives the number of rows with other bits; prints the first few. */
static size_t count_misses(const group *g, ol_device *device, int path)
{
    int32_t p = ol_primitive_find(g->name), arity = ol_primitive_arity(p);
    ol_composite *c = compile_on(device, build_primitive, PRIMITIVE_USER(p), arity, DTYPES(g->in, g->in), 1);
    void *x = malloc(g->n * 8), *y = malloc(g->n * 8), *r = malloc(g->n * 8);
    size_t misses = 0;
    assert_int_equal(ol_composite_output_dtype(c, 0), g->out);
    for (size_t i = 0; i < g->n; i++) {
        element_store(x, g->in, i, g->x[i]);
        element_store(y, g->in, i, g->y[i]);
    }
    ol_tensor in[2] = { vector_of(x, g->in, (int64_t)g->n), vector_of(y, g->in, (int64_t)g->n) }, out = vector_of(r, g->out, (int64_t)g->n);
    ol_error error;
    assert_ok(replay_paths[path](c, NULL, in, &out, &error), &error);
    for (size_t i = 0; i < g->n; i++)
        if (element_load(r, g->out, i) != g->expected[i] && misses++ < 5)
            print_error("%s, %s, %s of %s: %llx (%llx) gives %llx, expected %llx\n", ol_device_level(device), path_names[path], g->name, ol_dtype_name(g->in),
                        (unsigned long long)g->x[i], (unsigned long long)g->y[i], (unsigned long long)element_load(r, g->out, i), (unsigned long long)g->expected[i]);
    free(x);
    free(y);
    free(r);
    ol_composite_destroy(c);
    return misses;
}

static void check_table(table *t, const char *name, size_t n_rows)
{
    size_t n_run = 0, misses = 0;
    for (size_t i = 0; i < t->n_groups; i++) {
        for (size_t level = 0; level < level_count(); level++)
            for (int path = 0; path < 2; path++)
                misses += count_misses(&t->groups[i], level_device(level), path);
        n_run += t->groups[i].n;
    }
    print_message("%s: %zu rows run at %zu levels on 2 paths, %zu rows of primitives that do not exist yet\n", name, n_run, level_count(), t->n_missing);
    for (size_t i = 0; i < t->n_groups; i++) {
        free(t->groups[i].x);
        free(t->groups[i].y);
        free(t->groups[i].expected);
    }
    assert_int_equal(n_run + t->n_missing, n_rows);
    assert_int_equal(misses, 0);
}

static void unary_table(void **state)
{
    (void)state;
    static table t;
    size_t n_rows = golden_read("unary.tsv", 5, unary_row, &t);
    assert_true(n_rows >= 23000);
    assert_true(n_rows - t.n_missing >= 9 * 3 * 339);          /* nine of the table's functions are primitives from the start */
    check_table(&t, "unary.tsv", n_rows);
}

static void binary_table(void **state)
{
    (void)state;
    static table t;
    size_t n_rows = golden_read("binary.tsv", 5, binary_row, &t);
    assert_true(n_rows >= 15000);
    assert_true(n_rows - t.n_missing >= 4 * 3 * 834);
    check_table(&t, "binary.tsv", n_rows);
}

static void hardest_inputs(void **state)
{
    (void)state;
    static const char *const names[] = { "exp", "expm1", "log", "log1p", "sigmoid", "softplus", "tanh" };
    static table t;
    size_t n_rows = 0;
    for (size_t i = 0; i < COUNT(names); i++) {
        char file[64];
        snprintf(file, sizeof file, "hard/%s.hard", names[i]);
        size_t n = golden_read(file, 2, hard_row, group_of(&t, names[i], OL_FLOAT32, OL_FLOAT32));
        assert_true(n >= 90);
        n_rows += n;
    }
    check_table(&t, "hard", n_rows);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(unary_table), cmocka_unit_test(binary_table), cmocka_unit_test(hardest_inputs) };
    return HARNESS_RUN(argc, argv, tests);
}
