/* A mixer step on pools: speculative verify and every way back from it, windows in slots of their own, sequences without tokens or without a beginning,
 * padding, kept states. What is compared with is plain decode, one token at a time. */
#include "mixer_case.h"

#include "element.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HK = 1, R = 2, HV = 2, K = 32, V = 24, T = 4 };

static ol_device *best(void) { return level_device(level_count() - 1); }
static const int windows[] = { OF_WINDOW, OF_PART + OF_WINDOW, 2 * OF_PART + OF_WINDOW };

/* Eight tokens of one sequence; pools of so many slots. */
static mixer_case usual(int64_t slots, int64_t columns)
{
    uint64_t random = harness_seed;
    mixer_case c;
    mixer_usual(&c, HK, R, K, V, 1, 2 * T, columns, &random);
    mixer_pools(&c, slots, columns, &random);
    return c;
}

static void run_tokens(ol_gated_delta_mixer *m, const mixer_case *c, int64_t first, int64_t n)
{
    ol_error error;
    const ol_gated_delta_mixer_arguments a = mixer_tokens(c, first, n);
    assert_ok(ol_gated_delta_mixer_step(m, NULL, &a, &error), &error);
}

static void *slot_of(const mixer_case *c, int number, int64_t slot)
{
    const ol_tensor *t = mixer_tensor((mixer_case *)c, number);
    return (char *)t->data + slot * t->strides[0] * (int64_t)ol_dtype_size(t->dtype);
}

static size_t slot_bytes(const mixer_case *c, int number)
{
    const ol_tensor *t = mixer_tensor((mixer_case *)c, number);
    return (size_t)(t->strides[0]) * ol_dtype_size(t->dtype);
}

static const size_t state_bytes = HV * V * K * sizeof(float);
static char *state_of(const mixer_case *c, int64_t slot) { return (char *)c->step.memory[AT_STATE] + (size_t)slot * state_bytes; }
static char *output_of(const mixer_case *c, int64_t token) { return (char *)c->step.memory[AT_OUTPUT] + (size_t)token * HV * V * sizeof(float); }

/* Plain decode of tokens [0, accepted), then of tokens T, T + 1, … , whose inputs stand for what follows the accepted ones. */
static mixer_case plain_decode(const mixer_case *c, int accepted, int after)
{
    mixer_case plain;
    mixer_copy(&plain, c);
    step_take_back(&plain.step, AT_READ);
    mixer_step_table(&plain, AT_READ, 1, 0, (int32_t[]){ 0 });
    ol_gated_delta_mixer *m = mixer_of(best(), &plain);
    int32_t position = 5;
    for (int t = 0; t < accepted + after; t++, position++) {
        if (plain.memory[AT_POSITIONS])
            memcpy(plain.memory[AT_POSITIONS], &position, sizeof position);
        run_tokens(m, &plain, t < accepted ? t : T + t - accepted, 1);
    }
    ol_gated_delta_mixer_destroy(m);
    return plain;
}

static void same_outputs(const mixer_case *c, const mixer_case *plain, int accepted, int after)
{
    assert_memory_equal(output_of(c, 0), output_of(plain, 0), (size_t)(accepted * HV * V) * sizeof(float));
    assert_memory_equal(output_of(c, T), output_of(plain, T), (size_t)(after * HV * V) * sizeof(float));
}

/* A state and a window for each token in a slot of its own: both tables have a column a token. */
static void test_rollback_by_slots(void **state)
{
    (void)state;
    for (int accepted = 1; accepted <= T; accepted++) {
        mixer_case c = usual(2 * T + 1, 3), plain = plain_decode(&c, accepted, 2);
        ol_gated_delta_mixer *m = mixer_of(best(), &c);
        mixer_step_table(&c, AT_READ, 1, 0, (int32_t[]){ 0 });
        mixer_step_table(&c, AT_WRITE, 1, T, (int32_t[]){ 5, 2, 8, 1 });
        run_tokens(m, &c, 0, T);
        mixer_step_table(&c, AT_READ, 1, T, (int32_t[]){ 5, 2, 8, 1 });
        mixer_step_table(&c, AT_ACCEPTED, 1, 0, (int32_t[]){ accepted });
        mixer_step_table(&c, AT_WRITE, 1, T, (int32_t[]){ 3, 4, 6, 7 });
        run_tokens(m, &c, T, 2);
        same_outputs(&c, &plain, accepted, 2);
        assert_memory_equal(state_of(&c, 4), state_of(&plain, 0), state_bytes);
        for (int p = 0; p < 3; p++)
            assert_memory_equal(slot_of(&c, windows[p], 4), slot_of(&plain, windows[p], 0), slot_bytes(&c, windows[p]));
        ol_gated_delta_mixer_destroy(m);
        mixer_free(&c);
        mixer_free(&plain);
    }
}

/* vLLM's way: a state for each token in a slot of its own, one window that is longer by the tokens that may be taken back. */
static void test_rollback_by_dropping(void **state)
{
    (void)state;
    enum { W = 4, COLUMNS = W - 1 + T - 1 };
    for (int accepted = 1; accepted <= T; accepted++) {
        mixer_case c = usual(T + 1, COLUMNS), plain = plain_decode(&c, accepted, 3);
        ol_gated_delta_mixer *m = mixer_of(best(), &c);
        mixer_step_table(&c, AT_READ, 1, 0, (int32_t[]){ 0 });
        mixer_step_table(&c, AT_WRITE, 1, T, (int32_t[]){ 1, 2, 3, 4 });
        mixer_table(&c, AT_WINDOW_READ, 1, 0, (int32_t[]){ 0 });
        run_tokens(m, &c, 0, T);
        mixer_step_table(&c, AT_READ, 1, T, (int32_t[]){ 1, 2, 3, 4 });
        mixer_step_table(&c, AT_ACCEPTED, 1, 0, (int32_t[]){ accepted });
        mixer_table(&c, AT_DROPPED, 1, 0, (int32_t[]){ T - accepted });
        run_tokens(m, &c, T, 3);
        same_outputs(&c, &plain, accepted, 3);
        /* The newest W - 1 columns are what they would have been; older ones are what was left, and zeros. */
        for (int p = 0; p < 3; p++) {
            const float *x = slot_of(&c, windows[p], 0), *y = slot_of(&plain, windows[p], 0);
            for (size_t channel = 0; channel < slot_bytes(&c, windows[p]) / sizeof(float) / COLUMNS; channel++)
                assert_memory_equal(x + channel * COLUMNS + COLUMNS - (W - 1), y + channel * COLUMNS + COLUMNS - (W - 1), (W - 1) * sizeof(float));
        }
        ol_gated_delta_mixer_destroy(m);
        mixer_free(&c);
        mixer_free(&plain);
    }
}

/* A ring: a smaller position takes inputs back. W - 2 + T columns are enough, one less is not. */
static void test_rollback_in_a_ring(void **state)
{
    (void)state;
    enum { W = 4 };
    for (int columns = W - 3 + T; columns <= W + T; columns++) {
        int differs = 0;
        for (int accepted = 1; accepted <= T; accepted++) {
            mixer_case c = usual(T + 1, columns);
            c.options.window = OL_MIXER_WINDOW_RING;
            mixer_table(&c, AT_POSITIONS, 1, 0, (int32_t[]){ 5 });
            mixer_case plain = plain_decode(&c, accepted, 2);
            ol_gated_delta_mixer *m = mixer_of(best(), &c);
            mixer_step_table(&c, AT_READ, 1, 0, (int32_t[]){ 0 });
            mixer_step_table(&c, AT_WRITE, 1, T, (int32_t[]){ 1, 2, 3, 4 });
            mixer_table(&c, AT_WINDOW_READ, 1, 0, (int32_t[]){ 0 });
            run_tokens(m, &c, 0, T);
            mixer_step_table(&c, AT_READ, 1, T, (int32_t[]){ 1, 2, 3, 4 });
            mixer_step_table(&c, AT_ACCEPTED, 1, 0, (int32_t[]){ accepted });
            memcpy(c.memory[AT_POSITIONS], &(int32_t){ 5 + accepted }, sizeof(int32_t));
            run_tokens(m, &c, T, 2);
            differs += memcmp(output_of(&c, T), output_of(&plain, T), 2 * HV * V * sizeof(float)) != 0;
            ol_gated_delta_mixer_destroy(m);
            mixer_free(&c);
            mixer_free(&plain);
        }
        assert_int_equal(differs != 0, columns < W - 2 + T);
    }
}

/* States and windows are kept while verifying; then the accepted tokens are run over again. */
static void test_rollback_by_replay(void **state)
{
    (void)state;
    for (int accepted = 0; accepted <= T; accepted++) {
        mixer_case c = usual(1, 3), plain = plain_decode(&c, accepted, 2), before;
        ol_gated_delta_mixer *m = mixer_of(best(), &c);
        mixer_copy(&before, &c);
        c.step.arguments.state_is_kept = 1;
        run_tokens(m, &c, 0, T);
        for (int p = 0; p < 3; p++)
            assert_memory_equal(slot_of(&c, windows[p], 0), slot_of(&before, windows[p], 0), slot_bytes(&c, windows[p]));
        same_outputs(&c, &plain, accepted, 0);
        c.step.arguments.state_is_kept = 0;
        c.step.options.padding_output_untouched = 1;
        mixer_step_table(&c, AT_COUNTS, 1, 0, (int32_t[]){ accepted });
        run_tokens(m, &c, 0, T);
        step_take_back(&c.step, AT_COUNTS);
        run_tokens(m, &c, T, 2);
        assert_memory_equal(output_of(&c, T), output_of(&plain, T), 2 * HV * V * sizeof(float));
        assert_memory_equal(state_of(&c, 0), state_of(&plain, 0), state_bytes);
        for (int p = 0; p < 3; p++)
            assert_memory_equal(slot_of(&c, windows[p], 0), slot_of(&plain, windows[p], 0), slot_bytes(&c, windows[p]));
        ol_gated_delta_mixer_destroy(m);
        mixer_free(&c);
        mixer_free(&plain);
        mixer_free(&before);
    }
}

/* A buffer of states and windows after each token, beside pools that are kept. */
static void test_intermediate(void **state)
{
    (void)state;
    mixer_case c = usual(1, 4);
    step_give(&c.step, AT_INTERMEDIATE, OL_FLOAT32, 5, (int64_t[]){ 1, T, HV, V, K }, STEP_DENSE, NULL);
    for (int p = 0; p < 3; p++)
        mixer_give(&c, p * OF_PART + OF_INTERMEDIATE, OL_FLOAT32, 5, (int64_t[]){ 1, T, p == 2 ? HV : HK, p == 2 ? V : K, 4 }, STEP_DENSE, NULL);
    ol_gated_delta_mixer *m = mixer_of(best(), &c);
    c.step.arguments.state_is_kept = 1;
    run_tokens(m, &c, 0, T);
    c.step.arguments.state_is_kept = 0;
    for (int accepted = 1; accepted <= T; accepted++) {
        mixer_case plain;
        mixer_copy(&plain, &c);
        step_take_back(&plain.step, AT_INTERMEDIATE);
        for (int p = 0; p < 3; p++)
            mixer_take_back(&plain, p * OF_PART + OF_INTERMEDIATE);
        for (int t = 0; t < accepted; t++)
            run_tokens(m, &plain, t, 1);
        assert_memory_equal((char *)c.step.memory[AT_INTERMEDIATE] + (size_t)(accepted - 1) * state_bytes, state_of(&plain, 0), state_bytes);
        for (int p = 0; p < 3; p++) {
            size_t n = slot_bytes(&plain, windows[p]);
            assert_memory_equal((char *)c.memory[p * OF_PART + OF_INTERMEDIATE] + (size_t)(accepted - 1) * n, slot_of(&plain, windows[p], 0), n);
        }
        mixer_free(&plain);
    }
    ol_gated_delta_mixer_destroy(m);
    mixer_free(&c);
}

/* A sequence without an initial state does not read its window, which lies on a page that cannot be read; it starts from zeros, as a sequence whose window
 * and state are zeros does. */
static void test_no_initial_state(void **state)
{
    (void)state;
    for (int ring = 0; ring < 2; ring++) {
        mixer_case c = usual(2, 3), zeros = usual(2, 3);
        size_t page = (size_t)sysconf(_SC_PAGESIZE), most = slot_bytes(&c, windows[2]) * 2, n_bytes = (most + page - 1) / page * page;
        char *pools[3];
        if (ring) {
            c.options.window = zeros.options.window = OL_MIXER_WINDOW_RING;
            mixer_table(&c, AT_POSITIONS, 1, 0, (int32_t[]){ 9 });
            mixer_table(&zeros, AT_POSITIONS, 1, 0, (int32_t[]){ 9 });
        }
        for (int p = 0; p < 3; p++) {
            ol_tensor *t = mixer_tensor(&c, windows[p]);
            pools[p] = mmap(NULL, 2 * n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            assert_true(pools[p] != MAP_FAILED);
            memset(pools[p], 0x7f, 2 * n_bytes);
            assert_int_equal(mprotect(pools[p], n_bytes, PROT_NONE), 0);
            t->data = pools[p];
            t->strides[0] = (int64_t)(n_bytes / sizeof(float));
            memset(zeros.memory[windows[p]], 0, zeros.n_bytes[windows[p]]);
        }
        memset(zeros.step.memory[AT_STATE], 0, zeros.step.n_bytes[AT_STATE]);
        mixer_step_table(&zeros, AT_READ, 1, 0, (int32_t[]){ 0 });
        mixer_step_table(&zeros, AT_WRITE, 1, 0, (int32_t[]){ 1 });
        mixer_step_table(&c, AT_READ, 1, 0, (int32_t[]){ 0 });
        mixer_step_table(&c, AT_WRITE, 1, 0, (int32_t[]){ 1 });
        step_give(&c.step, AT_HAS_INITIAL, OL_BOOL, 1, (int64_t[]){ 1 }, STEP_DENSE, NULL);
        memset(c.step.memory[AT_HAS_INITIAL], 0, 1);
        for (int n = 0; n <= 2; n++) {
            ol_gated_delta_mixer *m = mixer_of(best(), &c);
            run_tokens(m, &c, 0, n);
            run_tokens(m, &zeros, 0, n);
            ol_gated_delta_mixer_destroy(m);
            assert_memory_equal(output_of(&c, 0), output_of(&zeros, 0), (size_t)n * HV * V * sizeof(float));
            for (int p = 0; p < 3; p++)
                assert_memory_equal(pools[p] + n_bytes, slot_of(&zeros, windows[p], 1), slot_bytes(&zeros, windows[p]));
        }
        for (int p = 0; p < 3; p++)
            munmap(pools[p], 2 * n_bytes);
        mixer_free(&c);
        mixer_free(&zeros);
    }
}

/* Inputs before number 0 are zeros, whatever a ring's columns hold. */
static void test_ring_begins(void **state)
{
    (void)state;
    mixer_case c = usual(1, 5), zeros;
    c.options.window = OL_MIXER_WINDOW_RING;
    mixer_table(&c, AT_POSITIONS, 1, 0, (int32_t[]){ 0 });
    mixer_copy(&zeros, &c);
    for (int p = 0; p < 3; p++)
        memset(zeros.memory[windows[p]], 0, zeros.n_bytes[windows[p]]);
    mixer_run(best(), &c);
    mixer_run(best(), &zeros);
    assert_memory_equal(output_of(&c, 0), output_of(&zeros, 0), c.step.n_bytes[AT_OUTPUT]);
    mixer_free(&c);
    mixer_free(&zeros);
}

/* Windows go with states where they have no slots of their own, are copied on write, and are dropped where a write slot is padding. */
static void test_write_slots(void **state)
{
    (void)state;
    mixer_case c = usual(3, 3), before, plain;
    mixer_copy(&before, &c);
    mixer_copy(&plain, &c);
    mixer_step_table(&plain, AT_READ, 1, 0, (int32_t[]){ 0 });
    mixer_run(best(), &plain);
    mixer_step_table(&c, AT_READ, 1, 0, (int32_t[]){ 0 });
    mixer_step_table(&c, AT_WRITE, 1, 0, (int32_t[]){ 2 });
    mixer_run(best(), &c);
    for (int p = 0; p < 3; p++) {
        size_t n = slot_bytes(&c, windows[p]);
        assert_memory_equal(slot_of(&c, windows[p], 2), slot_of(&plain, windows[p], 0), n);
        assert_memory_equal(slot_of(&c, windows[p], 0), slot_of(&before, windows[p], 0), 2 * n);
    }
    /* To other slots than the state's, and to none. */
    mixer_free(&c);
    mixer_copy(&c, &before);
    mixer_step_table(&c, AT_READ, 1, 0, (int32_t[]){ 0 });
    mixer_table(&c, AT_WINDOW_READ, 1, 0, (int32_t[]){ 0 });
    mixer_table(&c, AT_WINDOW_WRITE, 1, 0, (int32_t[]){ 1 });
    mixer_run(best(), &c);
    assert_memory_equal(state_of(&c, 0), state_of(&plain, 0), state_bytes);
    for (int p = 0; p < 3; p++)
        assert_memory_equal(slot_of(&c, windows[p], 1), slot_of(&plain, windows[p], 0), slot_bytes(&c, windows[p]));
    mixer_free(&c);
    mixer_copy(&c, &before);
    mixer_step_table(&c, AT_READ, 1, 0, (int32_t[]){ 0 });
    mixer_table(&c, AT_WINDOW_READ, 1, 0, (int32_t[]){ 0 });
    mixer_table(&c, AT_WINDOW_WRITE, 1, 0, (int32_t[]){ -1 });
    mixer_run(best(), &c);
    assert_memory_equal(state_of(&c, 0), state_of(&plain, 0), state_bytes);
    for (int p = 0; p < 3; p++)
        assert_memory_equal(c.memory[windows[p]], before.memory[windows[p]], c.n_bytes[windows[p]]);
    mixer_free(&c);
    mixer_free(&before);
    mixer_free(&plain);
}

/* Without tables sequence 0 is slot 0, which is not padding: its state and its windows are stored. */
static void test_numbers_of_no_table_are_not_padding(void **state)
{
    (void)state;
    mixer_case c = usual(1, 3), tabled;
    mixer_copy(&tabled, &c);
    c.step.options.padding = OL_DELTA_PADDING_NOT_POSITIVE;
    mixer_step_table(&tabled, AT_READ, 1, 0, (int32_t[]){ 0 });
    mixer_run(best(), &c);
    mixer_run(best(), &tabled);
    assert_memory_equal(output_of(&c, 0), output_of(&tabled, 0), c.step.n_bytes[AT_OUTPUT]);
    assert_memory_equal(state_of(&c, 0), state_of(&tabled, 0), state_bytes);
    for (int p = 0; p < 3; p++)
        assert_memory_equal(slot_of(&c, windows[p], 0), slot_of(&tabled, windows[p], 0), slot_bytes(&c, windows[p]));
    mixer_free(&c);
    mixer_free(&tabled);
}

/* No tokens, but something to take back: the window is shifted, once. */
static void test_dropping_without_tokens(void **state)
{
    (void)state;
    mixer_case c = usual(1, 6), before;
    mixer_copy(&before, &c);
    mixer_step_table(&c, AT_READ, 1, 0, (int32_t[]){ 0 });
    mixer_table(&c, AT_DROPPED, 1, 0, (int32_t[]){ 2 });
    ol_gated_delta_mixer *m = mixer_of(best(), &c);
    uint64_t launches = ol_device_launches(best());
    run_tokens(m, &c, 0, 0);
    assert_int_equal(ol_device_launches(best()) - launches, 1);
    for (int p = 0; p < 3; p++) {
        const float *now = c.memory[windows[p]], *was = before.memory[windows[p]];
        for (size_t i = 0; i < c.n_bytes[windows[p]] / sizeof(float); i++)
            assert_true(i % 6 < 2 ? now[i] == 0 : now[i] == was[i - 2]);
    }
    mixer_table(&c, AT_DROPPED, 1, 0, (int32_t[]){ 0 });
    run_tokens(m, &c, 0, 0);
    assert_int_equal(ol_device_launches(best()) - launches, 1);          /* nothing to write */
    ol_gated_delta_mixer_destroy(m);
    mixer_free(&c);
    mixer_free(&before);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rollback_by_slots),  cmocka_unit_test(test_rollback_by_dropping), cmocka_unit_test(test_rollback_in_a_ring),
        cmocka_unit_test(test_rollback_by_replay), cmocka_unit_test(test_intermediate),         cmocka_unit_test(test_no_initial_state),
        cmocka_unit_test(test_ring_begins),        cmocka_unit_test(test_write_slots),          cmocka_unit_test(test_dropping_without_tokens),
        cmocka_unit_test(test_numbers_of_no_table_are_not_padding),
    };
    return HARNESS_RUN(argc, argv, tests);
}
