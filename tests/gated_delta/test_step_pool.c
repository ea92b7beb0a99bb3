/* A step on a pool of slots: padding, sequences without an initial state, kept states, sequences without tokens, states after each token, accepted
 * tokens, and pools beyond 32-bit offsets. */
#include "step_case.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HK = 1, R = 2, HV = 2, K = 48, V = 32, SLOT = HV * V * K };

static ol_device *best(void) { return level_device(level_count() - 1); }

static step_case usual(int64_t n, int64_t n_tokens, int64_t slots)
{
    uint64_t random = harness_seed;
    step_case c;
    step_usual(&c, HK, R, K, V, n, n_tokens, &random);
    step_give(&c, AT_STATE, OL_FLOAT32, 4, (int64_t[]){ slots, HV, V, K }, STEP_DENSE, NULL);
    step_fill(&c, AT_STATE, 0, 1, STEP_USUAL, &random);
    return c;
}

static void give_int32(step_case *c, int number, int32_t rank, const int64_t *shape, const int32_t *values)
{
    step_give(c, number, OL_INT32, rank, shape, STEP_DENSE, NULL);
    memcpy(c->memory[number], values, c->n_bytes[number]);
}

static float *slot(const step_case *c, int64_t i) { return (float *)c->memory[AT_STATE] + i * SLOT; }
static float *output(const step_case *c, int64_t token) { return (float *)c->memory[AT_OUTPUT] + token * HV * V; }

static void assert_all(const void *p, size_t n_bytes, unsigned char value)
{
    for (size_t i = 0; i < n_bytes; i++)
        assert_int_equal(((const unsigned char *)p)[i], value);
}

/* What a batch of one token each gives with these read slots, of which `is_padding`; the others as if alone. */
static void padding_case(ol_delta_padding padding, int untouched, const int32_t *slots, const int *is_padding, int n)
{
    step_case c = usual(n, 1, 8), before;
    c.options.padding = padding;
    c.options.padding_output_untouched = untouched;
    give_int32(&c, AT_READ, 1, (int64_t[]){ n }, slots);
    step_copy(&before, &c);
    step_run(best(), &c);
    assert_int_equal(memcmp(slot(&c, 5), slot(&before, 5), SLOT * sizeof(float)) != 0, 1);
    for (int i = 0; i < n; i++) {
        if (is_padding[i])
            assert_all(output(&c, i), HV * V * sizeof(float), untouched ? 0xA5 : 0);
        else
            assert_true(output(&c, i)[0] != 0);
    }
    for (int s = 0; s < 8; s++) {
        int named = 0;
        for (int i = 0; i < n; i++)
            named |= !is_padding[i] && slots[i] == s;
        assert_int_equal(memcmp(slot(&c, s), slot(&before, s), SLOT * sizeof(float)) == 0, !named);
    }
    step_free(&c);
    step_free(&before);
}

static void test_padding(void **state)
{
    (void)state;
    for (int untouched = 0; untouched < 2; untouched++) {
        padding_case(OL_DELTA_PADDING_NEGATIVE, untouched, (int32_t[]){ 5, -1, 0, -7 }, (int[]){ 0, 1, 0, 1 }, 4);
        padding_case(OL_DELTA_PADDING_NOT_POSITIVE, untouched, (int32_t[]){ 5, 0, 0, -1 }, (int[]){ 0, 1, 1, 1 }, 4);
        padding_case(OL_DELTA_PADDING_NONE, untouched, (int32_t[]){ 5, 0, 7, 1 }, (int[]){ 0, 0, 0, 0 }, 4);
    }
}

/* Without read slots sequence i is slot i, and no number is padding: the first one is stored as the others are. */
static void test_numbers_of_no_table_are_not_padding(void **state)
{
    (void)state;
    for (int padding = 0; padding <= OL_DELTA_PADDING_NONE; padding++) {
        step_case c = usual(2, 1, 2), tabled;
        c.options.padding = OL_DELTA_PADDING_NONE;
        step_copy(&tabled, &c);
        c.options.padding = (ol_delta_padding)padding;
        give_int32(&tabled, AT_READ, 1, (int64_t[]){ 2 }, (int32_t[]){ 0, 1 });
        step_run(best(), &c);
        step_run(best(), &tabled);
        assert_memory_equal(slot(&c, 0), slot(&tabled, 0), 2 * SLOT * sizeof(float));
        assert_memory_equal(output(&c, 0), output(&tabled, 0), 2 * HV * V * sizeof(float));
        step_free(&c);
        step_free(&tabled);
    }
}

/* All padding: nothing to do but zeros, or nothing at all. */
static void test_all_padding(void **state)
{
    (void)state;
    for (int untouched = 0; untouched < 2; untouched++) {
        step_case c = usual(2, 1, 2), before;
        c.options.padding_output_untouched = untouched;
        give_int32(&c, AT_READ, 1, (int64_t[]){ 2 }, (int32_t[]){ -1, -1 });
        step_copy(&before, &c);
        uint64_t launches = ol_device_launches(best());
        step_run(best(), &c);
        assert_int_equal(ol_device_launches(best()) - launches, !untouched);
        if (untouched)
            assert_true(step_equal(&before, &c));
        step_free(&c);
        step_free(&before);
    }
}

static void test_nothing(void **state)
{
    (void)state;
    step_case c = usual(0, 0, 0);
    uint64_t launches = ol_device_launches(best());
    step_run(best(), &c);
    assert_int_equal(ol_device_launches(best()), launches);
    step_free(&c);
}

/* The rows before, between and after the sequences of cu_seqlens are padding too; states are read once and written elsewhere. */
static void test_outside_of_sequences(void **state)
{
    (void)state;
    step_case c = usual(6, 1, 4), plain = usual(6, 1, 4);
    give_int32(&c, AT_CU_SEQLENS, 1, (int64_t[]){ 3 }, (int32_t[]){ 1, 3, 4 });
    give_int32(&c, AT_READ, 1, (int64_t[]){ 2 }, (int32_t[]){ 3, 1 });
    give_int32(&c, AT_WRITE, 1, (int64_t[]){ 2 }, (int32_t[]){ 0, 2 });
    step_run(best(), &c);
    assert_all(output(&c, 0), HV * V * sizeof(float), 0);
    assert_all(output(&c, 4), 2 * HV * V * sizeof(float), 0);
    for (int t = 1; t < 4; t++)
        assert_true(output(&c, t)[0] != 0);
    assert_memory_equal(slot(&c, 1), slot(&plain, 1), SLOT * sizeof(float));
    assert_memory_equal(slot(&c, 3), slot(&plain, 3), SLOT * sizeof(float));
    assert_memory_not_equal(slot(&c, 0), slot(&plain, 0), SLOT * sizeof(float));
    step_free(&c);
    step_free(&plain);
}

/* A sequence without an initial state does not read its slot: it lies on a page that cannot be read. It goes on from zeros. */
static void test_no_initial_state(void **state)
{
    (void)state;
    step_case c = usual(1, 2, 1), zeros = usual(1, 2, 1);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n_bytes = (SLOT * sizeof(float) + page - 1) / page * page;
    char *pool = mmap(NULL, 2 * n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pool != MAP_FAILED);
    assert_int_equal(mprotect(pool, n_bytes, PROT_NONE), 0);
    c.arguments.state.data = pool;
    c.arguments.state.shape[0] = 2;
    c.arguments.state.strides[0] = (int64_t)(n_bytes / sizeof(float));
    give_int32(&c, AT_READ, 1, (int64_t[]){ 1 }, (int32_t[]){ 0 });
    give_int32(&c, AT_WRITE, 1, (int64_t[]){ 1 }, (int32_t[]){ 1 });
    step_give(&c, AT_HAS_INITIAL, OL_BOOL, 1, (int64_t[]){ 1 }, STEP_DENSE, NULL);
    memset(c.memory[AT_HAS_INITIAL], 0, 1);
    memset(zeros.memory[AT_STATE], 0, zeros.n_bytes[AT_STATE]);
    step_run(best(), &zeros);
    step_run(best(), &c);
    assert_memory_equal(output(&c, 0), output(&zeros, 0), 2 * HV * V * sizeof(float));
    assert_memory_equal(pool + n_bytes, slot(&zeros, 0), SLOT * sizeof(float));
    munmap(pool, 2 * n_bytes);
    step_free(&c);
    step_free(&zeros);
}

static void test_kept(void **state)
{
    (void)state;
    step_case c = usual(2, 3, 2), updated = usual(2, 3, 2), before = usual(2, 3, 2);
    c.arguments.state_is_kept = 1;
    step_run(best(), &c);
    step_run(best(), &updated);
    assert_memory_equal(c.memory[AT_STATE], before.memory[AT_STATE], c.n_bytes[AT_STATE]);
    assert_memory_equal(c.memory[AT_OUTPUT], updated.memory[AT_OUTPUT], c.n_bytes[AT_OUTPUT]);
    step_free(&c);
    step_free(&updated);
    step_free(&before);
}

/* [0, 2, 2, 3]: the second sequence has no tokens; with and without an initial state, and in place. */
static void test_no_tokens(void **state)
{
    (void)state;
    step_case c = usual(3, 1, 6), before;
    give_int32(&c, AT_CU_SEQLENS, 1, (int64_t[]){ 5 }, (int32_t[]){ 0, 2, 2, 2, 3 });
    give_int32(&c, AT_READ, 1, (int64_t[]){ 4 }, (int32_t[]){ 0, 1, 2, 3 });
    give_int32(&c, AT_WRITE, 1, (int64_t[]){ 4 }, (int32_t[]){ 0, 4, 5, 3 });
    step_give(&c, AT_HAS_INITIAL, OL_BOOL, 1, (int64_t[]){ 4 }, STEP_DENSE, NULL);
    memcpy(c.memory[AT_HAS_INITIAL], (char[]){ 1, 1, 0, 1 }, 4);
    step_copy(&before, &c);
    step_run(best(), &c);
    assert_memory_equal(slot(&c, 1), slot(&before, 1), 2 * SLOT * sizeof(float));
    assert_memory_equal(slot(&c, 4), slot(&before, 1), SLOT * sizeof(float));
    assert_all(slot(&c, 5), SLOT * sizeof(float), 0);
    assert_memory_not_equal(slot(&c, 3), slot(&before, 3), SLOT * sizeof(float));
    step_free(&c);
    step_free(&before);
}

/* Tokens one call each: the state after each into `states`, the outputs of all. */
static void one_by_one(step_case *c, int64_t n_tokens, float *states)
{
    ol_gated_delta_arguments whole = c->arguments;
    static const int numbers[] = { AT_QUERY, AT_KEY, AT_VALUE, AT_UPDATE, AT_DECAY, AT_OUTPUT };
    for (int64_t t = 0; t < n_tokens; t++) {
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            ol_tensor *x = step_tensor(c, numbers[i]);
            x->shape[0] = 1;
            x->data = (char *)c->memory[numbers[i]] + t * x->strides[0] * (int64_t)sizeof(float);
        }
        step_run(best(), c);
        memcpy(states + t * SLOT, slot(c, 0), SLOT * sizeof(float));
    }
    c->arguments = whole;
}

static void test_intermediate_states(void **state)
{
    (void)state;
    enum { T = 5 };
    static float states[T * SLOT];
    step_case c = usual(1, T, 1), single = usual(1, T, 1);
    one_by_one(&single, T, states);
    step_give(&c, AT_INTERMEDIATE, OL_FLOAT32, 5, (int64_t[]){ 1, T + 1, HV, V, K }, STEP_DENSE, NULL);
    step_run(best(), &c);
    assert_memory_equal(c.memory[AT_INTERMEDIATE], states, sizeof states);
    assert_all((float *)c.memory[AT_INTERMEDIATE] + T * SLOT, SLOT * sizeof(float), 0xA5);
    assert_memory_equal(slot(&c, 0), states + (T - 1) * SLOT, SLOT * sizeof(float));
    assert_memory_equal(c.memory[AT_OUTPUT], single.memory[AT_OUTPUT], c.n_bytes[AT_OUTPUT]);
    step_free(&c);
    step_free(&single);
}

/* Speculative decoding on a pool: a call verifies T tokens and puts each state in a slot of its own; `accepted` of them are accepted, and the
 * next call starts from there. That is what accepting nothing speculative would have computed. */
static void test_accepted_columns(void **state)
{
    (void)state;
    enum { T = 4 };
    static float states[T * SLOT];
    step_case single = usual(1, T, 1);
    one_by_one(&single, T, states);
    for (int32_t accepted = 1; accepted <= T; accepted++) {
        step_case verify = usual(1, T, 1 + 2 * T), next;
        give_int32(&verify, AT_READ, 2, (int64_t[]){ 1, T }, (int32_t[]){ 0, -1, -1, -1 });
        give_int32(&verify, AT_WRITE, 2, (int64_t[]){ 1, T }, (int32_t[]){ 3, 1, 4, 2 });
        step_run(best(), &verify);
        static const int columns[T] = { 3, 1, 4, 2 };
        for (int t = 0; t < T; t++)
            assert_memory_equal(slot(&verify, columns[t]), states + t * SLOT, SLOT * sizeof(float));
        assert_memory_equal(verify.memory[AT_OUTPUT], single.memory[AT_OUTPUT], single.n_bytes[AT_OUTPUT]);
        step_copy(&next, &verify);
        give_int32(&next, AT_READ, 2, (int64_t[]){ 1, T }, (int32_t[]){ 3, 1, 4, 2 });
        give_int32(&next, AT_WRITE, 2, (int64_t[]){ 1, T }, (int32_t[]){ 5, 6, 7, 8 });
        give_int32(&next, AT_ACCEPTED, 1, (int64_t[]){ 1 }, &accepted);
        step_run(best(), &next);
        step_case expected = usual(1, T, 1);
        memcpy(slot(&expected, 0), states + (accepted - 1) * SLOT, SLOT * sizeof(float));
        step_run(best(), &expected);
        assert_memory_equal(next.memory[AT_OUTPUT], expected.memory[AT_OUTPUT], expected.n_bytes[AT_OUTPUT]);
        assert_memory_equal(slot(&next, 8), slot(&expected, 0), SLOT * sizeof(float));
        step_free(&expected);
        step_free(&verify);
        step_free(&next);
    }
    step_free(&single);
}

/* The other way: a call that keeps the state, and then a replay of those that were accepted. */
static void test_replayed(void **state)
{
    (void)state;
    enum { T = 4 };
    static float states[T * SLOT];
    step_case single = usual(1, T, 1);
    one_by_one(&single, T, states);
    for (int32_t accepted = 0; accepted <= T; accepted++) {
        step_case c = usual(1, T, 1), before;
        c.options.padding_output_untouched = 1;
        step_copy(&before, &c);
        c.arguments.state_is_kept = 1;
        step_run(best(), &c);
        assert_memory_equal(slot(&c, 0), slot(&before, 0), SLOT * sizeof(float));
        memset(c.memory[AT_OUTPUT], 0x5A, c.n_bytes[AT_OUTPUT]);
        c.arguments.state_is_kept = 0;
        give_int32(&c, AT_COUNTS, 1, (int64_t[]){ 1 }, &accepted);
        step_run(best(), &c);
        assert_memory_equal(slot(&c, 0), accepted ? states + (accepted - 1) * SLOT : slot(&before, 0), SLOT * sizeof(float));
        assert_memory_equal(output(&c, 0), output(&single, 0), (size_t)accepted * HV * V * sizeof(float));
        assert_all(output(&c, accepted), (size_t)(T - accepted) * HV * V * sizeof(float), 0x5A);
        step_free(&c);
        step_free(&before);
    }
    step_free(&single);
}

/* Slots whose offsets pass 2^31 elements, and 2^32 bytes many times: a reserved range of which a few pages are used. */
static void far_slots(int64_t stride, const int32_t *slots, int n)
{
    int64_t most = 0;
    for (int i = 0; i < n; i++)
        most = slots[i] > most ? slots[i] : most;
    size_t n_bytes = (size_t)(most * stride + SLOT) * sizeof(float);
    float *pool = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pool == MAP_FAILED) {
        print_message("no address range of %zu bytes: skipped\n", n_bytes);
        skip();
    }
    step_case c = usual(n, 1, n), plain = usual(n, 1, n);
    for (int i = 0; i < n; i++)
        memcpy(pool + slots[i] * stride, slot(&plain, i), SLOT * sizeof(float));
    give_int32(&c, AT_READ, 1, (int64_t[]){ n }, slots);
    c.arguments.state.data = pool;
    c.arguments.state.shape[0] = most + 1;
    c.arguments.state.strides[0] = stride;
    step_run(best(), &plain);
    step_run(best(), &c);
    assert_memory_equal(c.memory[AT_OUTPUT], plain.memory[AT_OUTPUT], plain.n_bytes[AT_OUTPUT]);
    for (int i = 0; i < n; i++)
        assert_memory_equal(pool + slots[i] * stride, slot(&plain, i), SLOT * sizeof(float));
    munmap(pool, n_bytes);
    step_free(&c);
    step_free(&plain);
}

static void test_far_slots(void **state)
{
    (void)state;
    far_slots(540672, (int32_t[]){ 4097, 3, 3972, 0 }, 4);
    far_slots(((int64_t)1 << 31) + 12345, (int32_t[]){ 1, 2, 0 }, 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_padding),          cmocka_unit_test(test_all_padding),         cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_outside_of_sequences), cmocka_unit_test(test_no_initial_state), cmocka_unit_test(test_kept),
        cmocka_unit_test(test_no_tokens),        cmocka_unit_test(test_intermediate_states), cmocka_unit_test(test_accepted_columns),
        cmocka_unit_test(test_replayed),         cmocka_unit_test(test_far_slots),
        cmocka_unit_test(test_numbers_of_no_table_are_not_padding),
    };
    return HARNESS_RUN(argc, argv, tests);
}
