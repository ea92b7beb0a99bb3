/* Results of 16-bit functions that are looked up in long runs: by table16_run itself, with a function that counts its calls, and by
 * replays of every primitive that may be looked up, long after long, against short ones, which never are. */
#include "harness.h"

#include "cpu/table16.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { PATTERNS = 65536, RUN = 1024 };

/* With tables that no level uses. */
static atomic_uint n_calls;

static void counted(void *out, const void *x, const void *y, const void *z, size_t n)
{
    const uint16_t *operands = x;
    (void)y, (void)z;
    atomic_fetch_add(&n_calls, 1);
    for (size_t i = 0; i < n; i++)
        ((uint16_t *)out)[i] = (uint16_t)(operands[i] * 31 + 7);
}

static void look_up(const uint16_t *table, void *out, const void *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint16_t *)out)[i] = table[((const uint16_t *)x)[i]];
}

/* A run from pattern `first` on, every result compared. */
static void run(table16_id id, uint16_t first, size_t n, int in_place, size_t misalignment)
{
    uint16_t *x = guarded_alloc(n * sizeof *x, 2 * misalignment), *out = in_place ? x : guarded_alloc(n * sizeof *out, 2);
    for (size_t i = 0; i < n; i++)
        x[i] = (uint16_t)(first + i * 5);
    table16_run(id, counted, look_up, out, x, n);
    for (size_t i = 0; i < n; i++)
        if (out[i] != (uint16_t)((uint16_t)(first + i * 5) * 31 + 7))
            fail_msg("element %zu of %zu is %04x", i, n, (unsigned)out[i]);
    if (!in_place)
        guarded_free(out);
    guarded_free(x);
}

static void is_filled_by_long_runs_alone(void **state)
{
    const table16_id id = TABLE16_square_bf16;
    (void)state;
    n_calls = 0;
    for (int i = 0; i < 1000; i++)
        run(id, (uint16_t)i, TABLE16_LEAST_RUN - 1, 0, 0);
    assert_int_equal(n_calls, 1000);                         /* no part was filled */
    n_calls = 0;
    for (int i = 0; i < 64; i++)
        run(id, (uint16_t)(i * 999), RUN, 0, 0);
    assert_int_equal(n_calls, 64);                           /* the first 65,536 elements */
    for (int i = 0; i < 64; i++)
        run(id, (uint16_t)(i * 999), RUN, 0, 0);
    assert_int_equal(n_calls, 64 + 2 * 64);                  /* a part with each */
    for (size_t n = TABLE16_LEAST_RUN; n < TABLE16_LEAST_RUN + 40; n++)
        for (int in_place = 0; in_place < 2; in_place++)
            run(id, (uint16_t)(n * 777), n, in_place, n % 4);
    run(id, 0, PATTERNS, 0, 0);
    assert_int_equal(n_calls, 64 + 2 * 64);                  /* all looked up */
    run(id, 0, 100, 0, 0);
    assert_int_equal(n_calls, 64 + 2 * 64 + 1);
    n_calls = 0;
    run(TABLE16_sqrt_bf16, 0, RUN, 0, 0);
    assert_int_equal(n_calls, 1);                            /* another table */
}

static void *runs_of_a_thread(void *wrong)
{
    uint16_t x[RUN], out[RUN];
    for (int k = 0; k < 400; k++) {
        for (size_t i = 0; i < RUN; i++)
            x[i] = (uint16_t)(k * 7919 + (int)i * 63);
        table16_run(TABLE16_reciprocal_bf16, counted, look_up, out, x, RUN);
        for (size_t i = 0; i < RUN; i++)
            if (out[i] != (uint16_t)(x[i] * 31 + 7))
                atomic_fetch_add((atomic_int *)wrong, 1);
    }
    return NULL;
}

static void threads_fill_one_table(void **state)
{
    enum { N_THREADS = 4 };
    pthread_t threads[N_THREADS];
    atomic_int wrong = 0;
    (void)state;
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, runs_of_a_thread, &wrong), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
    n_calls = 0;
    run(TABLE16_reciprocal_bf16, 0, RUN, 0, 0);
    assert_int_equal(n_calls, 0);
}

/* ---- Replays ---- */

static int build(ol_graph *graph, const ol_value *in, ol_value *out, void *user)
{
    out[0] = ol_apply(graph, *(const int32_t *)user, in, 1);
    return 0;
}

static void replay(const ol_composite *c, ol_dtype dtype, void *out, const void *x, int64_t n)
{
    ol_tensor in = vector_of((void *)(uintptr_t)x, dtype, n), result = vector_of(out, dtype, n);
    ol_error error;
    assert_ok(ol_replay(c, NULL, &in, &result, &error), &error);
}

static void long_replays_equal_short_ones(void **state)
{
    static const char *const names[] = {
#define NAME(name) #name,
        TABLE16_FUNCTIONS(NAME)
#undef NAME
    };
    static const ol_dtype dtypes[] = { OL_FLOAT16, OL_BFLOAT16 };
    static uint16_t x[PATTERNS], expected[PATTERNS], out[PATTERNS];
    (void)state;
    for (size_t i = 0; i < PATTERNS; i++)
        x[i] = (uint16_t)(i * 40503u);                       /* odd: a permutation */
    for (size_t l = 0; l < level_count(); l++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            for (size_t d = 0; d < 2; d++) {
                int32_t number = ol_primitive_find(names[k]);
                ol_builder builder = { .build = build, .user = &number, .n_inputs = 1, .n_outputs = 1, .name = names[k] };
                ol_composite *c;
                ol_error error;
                assert_ok(ol_compile(level_device(l), &builder, &dtypes[d], &c, &error), &error);
                for (size_t i = 0; i < PATTERNS; i += 256)
                    replay(c, dtypes[d], expected + i, x + i, 256);
                for (int again = 0; again < 3; again++) {    /* computed, filling, looked up */
                    replay(c, dtypes[d], out, x, PATTERNS);
                    replay(c, dtypes[d], out + 1, x + 1, 1021);                 /* not aligned, not whole */
                    if (memcmp(out, expected, sizeof out) != 0)
                        fail_msg("%s %s %s, replay %d", names[k], ol_dtype_name(dtypes[d]), ol_device_level(level_device(l)), again);
                }
                ol_composite_destroy(c);
            }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_replays_equal_short_ones), cmocka_unit_test(is_filled_by_long_runs_alone),
        cmocka_unit_test(threads_fill_one_table),
    };
    return HARNESS_RUN(argc, argv, tests);
}
