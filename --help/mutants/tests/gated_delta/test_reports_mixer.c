/* Public bug reports on gated-delta kernels: those rows that are about the convolution, its windows or the whole chain. Each test is named after its row. */
#include "mixer_case.h"

#include "element.h"

#include <stdlib.h>
#include <string.h>

enum { HK = 2, R = 2, HV = 4, K = 32, V = 24 };

static ol_device *best(void) { return level_device(level_count() - 1); }
static const int windows[] = { OF_WINDOW, OF_PART + OF_WINDOW, 2 * OF_PART + OF_WINDOW };

static mixer_case usual(int64_t n, int64_t n_tokens, int64_t slots, int64_t columns)
{
    uint64_t random = harness_seed;
    mixer_case c;
    mixer_usual(&c, HK, R, K, V, n, n_tokens, columns, &random);
    mixer_pools(&c, slots, columns, &random);
    return c;
}

static void run_tokens(const mixer_case *c, int64_t first, int64_t n)
{
    ol_error error;
    ol_gated_delta_mixer *m = mixer_of(best(), c);
    const ol_gated_delta_mixer_arguments a = mixer_tokens(c, first, n);
    assert_ok(ol_gated_delta_mixer_step(m, NULL, &a, &error), &error);
    ol_gated_delta_mixer_destroy(m);
}

static const size_t state_bytes = HV * V * K * sizeof(float), output_bytes = HV * V * sizeof(float);
static char *state_of(const mixer_case *c, int64_t slot) { return (char *)c->step.memory[AT_STATE] + (size_t)slot * state_bytes; }
static char *output_of(const mixer_case *c, int64_t token) { return (char *)c->step.memory[AT_OUTPUT] + (size_t)token * output_bytes; }
static char *window_of(const mixer_case *c, int p, int64_t slot, int64_t slots)
{
    return (char *)c->memory[windows[p]] + (size_t)slot * (c->n_bytes[windows[p]] / (size_t)slots);
}

/* Padding (read slot -1, or 0 where that is the null block) leaves slot 0's window alone, as its state. */
static void pads(ol_delta_padding padding, const int32_t *slots)
{
    mixer_case c = usual(3, 1, 6, 3), before;
    c.step.options.padding = padding;
    mixer_step_table(&c, AT_READ, 3, 0, slots);
    mixer_copy(&before, &c);
    mixer_run(best(), &c);
    for (int p = 0; p < 3; p++)
        for (int64_t s = 0; s < 6; s++)
            assert_int_equal(memcmp(window_of(&c, p, s, 6), window_of(&before, p, s, 6), c.n_bytes[windows[p]] / 6) != 0, s == slots[0]);
    for (size_t i = 0; i < 2 * output_bytes; i++)
        assert_int_equal(output_of(&c, 1)[i], 0);
    mixer_free(&c);
    mixer_free(&before);
}

static void G13_pad_is_0(void **state)
{
    (void)state;
    pads(OL_DELTA_PADDING_NOT_POSITIVE, (int32_t[]){ 5, 0, 0 });
}

static void G15_pad_is_minus_1(void **state)
{
    (void)state;
    pads(OL_DELTA_PADDING_NEGATIVE, (int32_t[]){ 5, -1, -1 });
}

/* Slots are named without a pool that has them: refused, for windows as for states, and nothing is written. */
static void G17_slots_beyond_the_windows(void **state)
{
    (void)state;
    mixer_case c = usual(2, 1, 8, 3), before;
    ol_error error;
    mixer_step_table(&c, AT_READ, 2, 0, (int32_t[]){ 2, 5 });
    for (int p = 0; p < 3; p++)
        mixer_tensor(&c, windows[p])->shape[0] = 2;
    mixer_copy(&before, &c);
    assert_fails(mixer_try(best(), &c, &error), &error, OL_ERROR_ARGUMENT, "gated_delta_mixer_step", "window_read_slots of sequence 0: 2; expected 0 or more, below the pool's slots, 2");
    assert_true(mixer_equal(&before, &c));
    mixer_free(&c);
    mixer_free(&before);
}

/* Two live requests on one window slot: refused, though their states are apart. */
static void G27_two_requests_on_one_window(void **state)
{
    (void)state;
    mixer_case c = usual(2, 1, 4, 3), before;
    ol_error error;
    mixer_step_table(&c, AT_READ, 2, 0, (int32_t[]){ 1, 3 });
    mixer_table(&c, AT_WINDOW_READ, 2, 0, (int32_t[]){ 2, 2 });
    mixer_copy(&before, &c);
    assert_fails(mixer_try(best(), &c, &error), &error, OL_ERROR_OVERLAP, "gated_delta_mixer_step", "window_slot 2 is written twice, the second time by sequence 1");
    assert_true(mixer_equal(&before, &c));
    mixer_free(&c);
    mixer_free(&before);
}

/* Packed samples: the second one's convolution and recurrence know nothing of the first one's tokens. */
static void G29_packed_samples_do_not_leak(void **state)
{
    (void)state;
    for (int first = 1; first < 6; first++) {
        mixer_case c = usual(1, 6, 2, 3), other, alone;
        mixer_step_table(&c, AT_CU_SEQLENS, 3, 0, (int32_t[]){ 0, first, 6 });
        step_give(&c.step, AT_HAS_INITIAL, OL_BOOL, 1, (int64_t[]){ 2 }, STEP_DENSE, NULL);
        memset(c.step.memory[AT_HAS_INITIAL], 0, 2);
        mixer_copy(&other, &c);
        mixer_copy(&alone, &c);
        for (int number = AT_QUERY; number <= AT_DECAY; number++)
            memset(other.step.memory[number], 0x41, other.step.n_bytes[number] / 6 * (size_t)first);
        mixer_run(best(), &c);
        mixer_run(best(), &other);
        assert_memory_not_equal(output_of(&c, 0), output_of(&other, 0), (size_t)first * output_bytes);
        assert_memory_equal(output_of(&c, first), output_of(&other, first), (size_t)(6 - first) * output_bytes);
        assert_memory_equal(state_of(&c, 1), state_of(&other, 1), state_bytes);
        step_take_back(&alone.step, AT_CU_SEQLENS);
        mixer_step_table(&alone, AT_READ, 1, 0, (int32_t[]){ 1 });
        step_give(&alone.step, AT_HAS_INITIAL, OL_BOOL, 1, (int64_t[]){ 1 }, STEP_DENSE, NULL);
        memset(alone.step.memory[AT_HAS_INITIAL], 0, 1);
        run_tokens(&alone, first, 6 - first);
        assert_memory_equal(output_of(&c, first), output_of(&alone, first), (size_t)(6 - first) * output_bytes);
        for (int p = 0; p < 3; p++)
            assert_memory_equal(window_of(&c, p, 1, 2), window_of(&alone, p, 1, 2), c.n_bytes[windows[p]] / 2);
        mixer_free(&c);
        mixer_free(&other);
        mixer_free(&alone);
    }
}

/* A token after a prefill shorter, as long as and longer than the window, whatever its columns: the bits of the whole run, no tolerance. */
static void G31_prefill_then_a_token(void **state)
{
    (void)state;
    for (int prompt = 1; prompt <= 6; prompt++)
        for (int columns = 3; columns <= 5; columns++) {
            mixer_case c = usual(1, prompt + 1, 1, columns), whole;
            step_give(&c.step, AT_HAS_INITIAL, OL_BOOL, 1, (int64_t[]){ 1 }, STEP_DENSE, NULL);
            memset(c.step.memory[AT_HAS_INITIAL], 0, 1);
            mixer_copy(&whole, &c);
            mixer_run(best(), &whole);
            run_tokens(&c, 0, prompt);
            memset(c.step.memory[AT_HAS_INITIAL], 1, 1);
            run_tokens(&c, prompt, 1);
            memset(c.step.memory[AT_HAS_INITIAL], 0, 1);
            assert_true(mixer_equal(&c, &whole));
            mixer_free(&c);
            mixer_free(&whole);
        }
    /* A window that is too short is refused. */
    mixer_case c = usual(1, 1, 1, 2);
    ol_error error;
    assert_fails(mixer_try(best(), &c, &error), &error, OL_ERROR_SHAPE, "gated_delta_mixer_step", "query.window has shape [1, 2, 32, 2]; expected a last axis of 3 to 64 columns");
    mixer_free(&c);
}

/* cu_seqlens [0, 5, 5, 9]: the sequence without tokens has its state and window put through. */
static void G33_sequence_without_tokens(void **state)
{
    (void)state;
    mixer_case c = usual(1, 9, 6, 3), before;
    mixer_step_table(&c, AT_CU_SEQLENS, 4, 0, (int32_t[]){ 0, 5, 5, 9 });
    mixer_step_table(&c, AT_READ, 3, 0, (int32_t[]){ 0, 1, 2 });
    mixer_step_table(&c, AT_WRITE, 3, 0, (int32_t[]){ 3, 4, 5 });
    mixer_copy(&before, &c);
    mixer_run(best(), &c);
    assert_memory_equal(state_of(&c, 4), state_of(&before, 1), state_bytes);
    assert_memory_not_equal(state_of(&c, 3), state_of(&before, 0), state_bytes);
    for (int p = 0; p < 3; p++) {
        assert_memory_equal(window_of(&c, p, 4, 6), window_of(&before, p, 1, 6), c.n_bytes[windows[p]] / 6);
        assert_memory_equal(window_of(&c, p, 0, 6), window_of(&before, p, 0, 6), c.n_bytes[windows[p]] / 6 * 3);
    }
    mixer_free(&c);
    mixer_free(&before);
}

/* z, b and a as slices of a wider row that starts off any alignment: the same bits as from tensors of their own. */
static void G41_strided_slices(void **state)
{
    (void)state;
    mixer_case c = usual(3, 2, 3, 3), sliced;
    mixer_copy(&sliced, &c);
    ol_tensor *slices[] = { &sliced.step.arguments.update, &sliced.step.arguments.decay, &sliced.arguments.gate, &sliced.step.arguments.query };
    enum { ROW = 5 + 2 * HV + HV * V + HK * K };
    float *rows = malloc(6 * ROW * sizeof *rows);
    assert_non_null(rows);
    int64_t at = 5;
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        ol_tensor *t = slices[i];
        int64_t n = t->strides[0];
        for (int64_t row = 0; row < 6; row++)
            memcpy(rows + row * ROW + at, (float *)t->data + row * n, (size_t)n * sizeof *rows);
        t->data = rows + at;
        t->strides[0] = ROW;
        at += n;
    }
    mixer_run(best(), &c);
    mixer_run(best(), &sliced);
    assert_memory_equal(output_of(&c, 0), output_of(&sliced, 0), 6 * output_bytes);
    assert_memory_equal(state_of(&c, 0), state_of(&sliced, 0), 3 * state_bytes);
    free(rows);
    mixer_free(&c);
    mixer_free(&sliced);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(G13_pad_is_0),
        cmocka_unit_test(G15_pad_is_minus_1),
        cmocka_unit_test(G17_slots_beyond_the_windows),
        cmocka_unit_test(G27_two_requests_on_one_window),
        cmocka_unit_test(G29_packed_samples_do_not_leak),
        cmocka_unit_test(G31_prefill_then_a_token),
        cmocka_unit_test(G33_sequence_without_tokens),
        cmocka_unit_test(G41_strided_slices),
    };
    return HARNESS_RUN(argc, argv, tests);
}
