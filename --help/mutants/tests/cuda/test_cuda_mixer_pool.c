/* The mixer step on a GPU and its pools: indices that lie in the GPU's memory and are wrong, which are skipped and counted, and nothing is written
 * for them; windows that go their own ways; tokens split among calls; models' geometries. */
#include "mixer_scene.h"

#include "element.h"

#include <stdlib.h>
#include <string.h>

enum { HK = 1, R = 2, K = 32, V = 32, W = 4 };

/* Windows of `columns` in as many slots as the states' pool has. */
static mixer_case usual(int64_t n, int64_t n_tokens, int64_t slots, int64_t columns)
{
    uint64_t random = harness_seed;
    mixer_case c;
    mixer_usual(&c, HK, R, K, V, n, n_tokens, columns, &random);
    mixer_pools(&c, slots, columns, &random);
    c.step.options.padding_output_untouched = 1;
    return c;
}

static void give_whole(mixer_case *c, int of_step, int number, int64_t n, int64_t columns, const int32_t *values)
{
    (of_step ? mixer_step_table : mixer_table)(c, number, n, columns, values);
}

/* The GPU is given `wrong` for a table, the CPU what stands in the case; all else comes out alike, and `n_skipped` are counted. */
static void check_skipped(const mixer_case *c, int of_step, int number, int64_t n, int64_t columns, const int32_t *wrong, uint32_t n_skipped, const char *what)
{
    mixer_case expected, got;
    mixer_scene s;
    mixer_copy(&expected, c);
    mixer_copy(&got, c);
    mixer_run(cpu, &expected);
    give_whole(&got, of_step, number, n, columns, wrong);
    give_whole(&expected, of_step, number, n, columns, wrong);
    ol_gated_delta_mixer *m = mixer_of(cuda, c);
    const mixer_shape shapes[] = { { STEP_MANY, 1, 8, 1 }, { STEP_MANY, 1, 8, 2 }, { STEP_MANY, 2, 2, 2 }, { STEP_ANY, 4, 2, 2 } };
    for (size_t i = 0; i < 1 + COUNT(shapes); i++) {
        mixer_case result;
        mixer_scene_begin(&s, &got);
        if (i == 0)
            mixer_scene_run(m, &s);
        else if (mixer_has_clusters((const cuda_device *)cuda))
            mixer_scene_run_shaped(m, &s, &shapes[i - 1]);
        else
            continue;
        mixer_copy(&result, &got);
        uint32_t skipped = mixer_scene_read(&s, &result);
        if (skipped != n_skipped || !mixer_equal(&expected, &result))
            fail_msg("%s: %u skipped, expected %u, shape %zu", what, skipped, n_skipped, i);
        mixer_free(&result);
        mixer_scene_end(&s);
    }
    ol_gated_delta_mixer_destroy(m);
    mixer_free(&expected);
    mixer_free(&got);
}

#define INTS(...) ((const int32_t[]){ __VA_ARGS__ })

/* Of one table for both: a number is counted once. */
static void shared_slots_outside_of_the_pools(void **state)
{
    (void)state;
    mixer_case c = usual(4, 2, 8, 3);
    mixer_step_table(&c, AT_READ, 4, 0, INTS(5, -1, 2, -1));
    check_skipped(&c, 1, AT_READ, 4, 0, INTS(5, 8, 2, 1 << 30), 2, "read slots");
    mixer_step_table(&c, AT_READ, 4, 0, INTS(5, 1, 2, 7));
    mixer_step_table(&c, AT_WRITE, 4, 0, INTS(4, -1, -1, 3));
    check_skipped(&c, 1, AT_WRITE, 4, 0, INTS(4, 8, 1 << 30, 3), 2, "write slots");
    mixer_free(&c);
}

static void window_slots_outside_of_their_pool(void **state)
{
    (void)state;
    mixer_case c = usual(3, 2, 8, 3);
    c.step.options.padding = OL_DELTA_PADDING_NEGATIVE;
    mixer_step_table(&c, AT_READ, 3, 0, INTS(0, -1, 2));
    mixer_table(&c, AT_WINDOW_READ, 3, 0, INTS(3, 4, 5));
    /* Of padding, anything; of the others the sequence is skipped, its state too. */
    check_skipped(&c, 0, AT_WINDOW_READ, 3, 0, INTS(3, 99, 5), 0, "of padding");
    mixer_step_table(&c, AT_READ, 3, 0, INTS(0, 1, -1));
    mixer_case without;
    mixer_copy(&without, &c);
    mixer_step_table(&without, AT_READ, 3, 0, INTS(0, -1, -1));         /* so the CPU leaves it alone */
    mixer_run(cpu, &without);
    mixer_scene s;
    ol_gated_delta_mixer *m = mixer_of(cuda, &c);
    static const int32_t wrong[] = { -1, 8, 1 << 30 };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        mixer_case got;
        mixer_copy(&got, &c);
        mixer_table(&got, AT_WINDOW_READ, 3, 0, INTS(3, wrong[i], 5));
        mixer_scene_begin(&s, &got);
        mixer_scene_run(m, &s);
        assert_int_equal(mixer_scene_read(&s, &got), 1);
        mixer_step_table(&without, AT_READ, 3, 0, INTS(0, 1, -1));
        mixer_table(&without, AT_WINDOW_READ, 3, 0, INTS(3, wrong[i], 5));
        assert_true(mixer_equal(&without, &got));
        mixer_scene_end(&s);
        mixer_free(&got);
    }
    ol_gated_delta_mixer_destroy(m);
    mixer_free(&without);
    mixer_table(&c, AT_WINDOW_WRITE, 3, 0, INTS(6, -1, 7));
    check_skipped(&c, 0, AT_WINDOW_WRITE, 3, 0, INTS(6, 8, 7), 1, "window write slots");
    mixer_free(&c);
}

/* Sequences of which a table's number is wrong are as padding, which the CPU is given instead, but counted. */
static void check_left_alone(const mixer_case *c, int of_step, int number, int64_t columns, const int32_t *wrong, uint32_t n_skipped, const char *what)
{
    mixer_case padding, got;
    mixer_scene s;
    mixer_copy(&padding, c);
    mixer_copy(&got, c);
    mixer_step_table(&padding, AT_READ, 2, 0, INTS(0, -1));
    mixer_run(cpu, &padding);
    mixer_step_table(&padding, AT_READ, 2, 0, INTS(0, 1));
    give_whole(&padding, of_step, number, 2, columns, wrong);
    give_whole(&got, of_step, number, 2, columns, wrong);
    ol_gated_delta_mixer *m = mixer_of(cuda, c);
    mixer_scene_begin(&s, &got);
    mixer_scene_run(m, &s);
    uint32_t skipped = mixer_scene_read(&s, &got);
    if (skipped != n_skipped || !mixer_equal(&padding, &got))
        fail_msg("%s: %u skipped, expected %u", what, skipped, n_skipped);
    mixer_scene_end(&s);
    ol_gated_delta_mixer_destroy(m);
    mixer_free(&padding);
    mixer_free(&got);
}

static void dropped_positions_and_counts(void **state)
{
    (void)state;
    mixer_case c = usual(2, 2, 2, 5);
    mixer_step_table(&c, AT_READ, 2, 0, INTS(0, 1));
    mixer_table(&c, AT_DROPPED, 2, 0, INTS(2, 1));
    check_left_alone(&c, 0, AT_DROPPED, 0, INTS(2, 3), 1, "dropped, one too many");
    check_left_alone(&c, 0, AT_DROPPED, 0, INTS(2, -1), 1, "dropped, below 0");
    mixer_take_back(&c, AT_DROPPED);
    c.options.window = OL_MIXER_WINDOW_RING;
    mixer_table(&c, AT_POSITIONS, 2, 0, INTS(7, 2));
    check_left_alone(&c, 0, AT_POSITIONS, 0, INTS(7, -1), 1, "positions");
    mixer_step_table(&c, AT_COUNTS, 2, 0, INTS(1, 2));
    check_left_alone(&c, 1, AT_COUNTS, 0, INTS(1, 3), 1, "counts");
    mixer_free(&c);
}

/* Sequences longer than the windows' own tables, as only the GPU knows: those stores are left out, and counted. */
static void tables_that_are_too_short(void **state)
{
    (void)state;
    mixer_case c = usual(1, 3, 6, 3), expected, got;
    mixer_scene s;
    mixer_step_table(&c, AT_CU_SEQLENS, 2, 0, INTS(0, 3));
    mixer_step_table(&c, AT_READ, 1, 0, INTS(0));
    mixer_table(&c, AT_WINDOW_READ, 1, 0, INTS(0));
    mixer_table(&c, AT_WINDOW_WRITE, 1, 3, INTS(5, 4, -1));
    for (int p = 0; p < 3; p++)
        mixer_give(&c, p * OF_PART + OF_INTERMEDIATE, OL_FLOAT32, 5, (int64_t[]){ 1, 3, p == 2 ? HK * R : HK, K, 3 }, STEP_DENSE, NULL);
    mixer_copy(&expected, &c);
    mixer_copy(&got, &c);
    mixer_run(cpu, &expected);
    for (int p = 0; p < 3; p++) {
        int at = p * OF_PART + OF_INTERMEDIATE;
        size_t third = c.n_bytes[at] / 3;
        memcpy((char *)expected.memory[at] + 2 * third, (char *)c.memory[at] + 2 * third, third);
    }
    ol_gated_delta_mixer *m = mixer_of(cuda, &c);
    mixer_scene_begin(&s, &c);
    s.arguments.window_write_slots.shape[1] = 2;
    s.arguments.query.intermediate_windows.shape[1] = s.arguments.key.intermediate_windows.shape[1] = s.arguments.value.intermediate_windows.shape[1] = 2;
    mixer_scene_run(m, &s);
    assert_int_equal(mixer_scene_read(&s, &got), 2);
    assert_true(mixer_equal(&expected, &got));
    mixer_scene_end(&s);
    ol_gated_delta_mixer_destroy(m);
    mixer_free(&c);
    mixer_free(&expected);
    mixer_free(&got);
}

/* ---- Ways of windows ---- */

/* A window that is written in the slot it came from and in others before, by token; in place, with columns taken back; after no tokens. */
static void windows_in_place(void **state)
{
    (void)state;
    mixer_case c = usual(1, 4, 5, 6);
    mixer_step_table(&c, AT_READ, 1, 0, INTS(2));
    mixer_step_table(&c, AT_WRITE, 1, 4, INTS(2, 0, 4, 1));
    mixer_scene_check_cpu(&c, "its own slot first");
    mixer_table(&c, AT_DROPPED, 1, 0, INTS(3));
    mixer_scene_check_cpu(&c, "and columns dropped");
    step_take_back(&c.step, AT_WRITE);
    for (int count = 0; count <= 4; count++) {
        mixer_step_table(&c, AT_COUNTS, 1, 0, &count);
        mixer_scene_check_cpu(&c, "in place, columns dropped");
    }
    mixer_take_back(&c, AT_DROPPED);
    mixer_step_table(&c, AT_COUNTS, 1, 0, INTS(0));
    mixer_step_table(&c, AT_WRITE, 1, 0, INTS(3));
    mixer_scene_check_cpu(&c, "no tokens, to another slot");
    step_give(&c.step, AT_HAS_INITIAL, OL_BOOL, 1, (int64_t[]){ 1 }, STEP_DENSE, NULL);
    memset(c.step.memory[AT_HAS_INITIAL], 0, 1);
    mixer_scene_check_cpu(&c, "no tokens, no initial state");
    mixer_free(&c);
}

/* Four value heads of a key head, of which a cluster has two at a time, or one, or all. */
static void heads_in_turns(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    mixer_case c;
    mixer_usual(&c, 2, 4, 32, 64, 2, 3, W, &random);
    mixer_scene_check_cpu(&c, "four heads");
    mixer_free(&c);
}

static void nothing(void **state)
{
    (void)state;
    mixer_case c = usual(3, 1, 2, 3);
    c.step.options.padding_output_untouched = 0;
    mixer_step_table(&c, AT_CU_SEQLENS, 1, 0, INTS(0));
    mixer_scene_check_cpu(&c, "no sequences");
    mixer_free(&c);
    c = usual(2, 0, 2, 3);
    mixer_scene_check_cpu(&c, "no tokens");
    mixer_free(&c);
    c = usual(0, 0, 0, 3);
    uint64_t before = ol_device_launches(cuda);
    ol_gated_delta_mixer *m = mixer_of(cuda, &c);
    mixer_scene s;
    mixer_scene_begin(&s, &c);
    mixer_scene_run(m, &s);
    assert_int_equal(ol_device_launches(cuda), before);
    mixer_scene_end(&s);
    ol_gated_delta_mixer_destroy(m);
    mixer_free(&c);
}

/* ---- Splits ---- */

/* Twenty tokens, which are several chunks, at once, one by one and by sevens: the same bits, windows as well. */
static void splits_of_tokens(void **state)
{
    enum { TOKENS = 20 };
    static const int sizes[] = { 1, 7 };
    (void)state;
    for (int columns = W - 1; columns <= W; columns++) {
        mixer_case c = usual(1, TOKENS, 1, columns), whole, got;
        mixer_scene s;
        mixer_copy(&whole, &c);
        mixer_copy(&got, &c);
        mixer_run(cpu, &whole);
        if (columns == W)
            mixer_scene_check(&c, &whole, "at once");
        ol_gated_delta_mixer *m = mixer_of(cuda, &c);
        mixer_scene_begin(&s, &c);
        mixer_case placed = c;                           /* its tensors in the GPU's memory */
        placed.arguments = s.arguments;
        placed.step.arguments = s.arguments.recurrence;
        for (size_t i = 0; i < COUNT(sizes); i++) {
            mixer_scene_write(&s, &c);
            for (int64_t t = 0; t < TOKENS; t += sizes[i]) {
                ol_error error;
                const ol_gated_delta_mixer_arguments part = mixer_tokens(&placed, t, t + sizes[i] < TOKENS ? sizes[i] : TOKENS - t);
                assert_ok(ol_gated_delta_mixer_step(m, stream, &part, &error), &error);
            }
            assert_int_equal(mixer_scene_read(&s, &got), 0);
            assert_true(mixer_equal(&whole, &got));
        }
        mixer_scene_end(&s);
        ol_gated_delta_mixer_destroy(m);
        mixer_free(&c);
        mixer_free(&whole);
        mixer_free(&got);
    }
}

/* ---- Models ---- */

typedef struct model {
    const char *name;
    int key_heads, ratio, K, V, per_channel;
    ol_mixer_activation gate;
} model;

/* Fewer heads than they have, bfloat16 activations: decode and verify. */
static void models(void **state)
{
    static const model all[] = { { "Qwen3.5-9B", 1, 2, 128, 128, 0, OL_MIXER_SILU },
                                 { "Qwen3.5-27B", 1, 3, 128, 128, 0, OL_MIXER_SILU },
                                 { "Kimi-Linear", 1, 1, 128, 128, 1, OL_MIXER_SIGMOID },
                                 { "OLMo-Hybrid", 1, 1, 96, 192, 0, OL_MIXER_SILU } };
    (void)state;
    for (size_t i = 0; i < COUNT(all); i++)
        for (int64_t tokens = 1; tokens <= 4; tokens += 3) {
            uint64_t random = harness_seed + i;
            mixer_case c;
            const int64_t hk = all[i].key_heads, hv = hk * all[i].ratio, k = all[i].K, v = all[i].V, n = tokens > 1 ? 1 : 2;
            mixer_usual(&c, (int)hk, all[i].ratio, (int)k, (int)v, n, tokens, W, &random);
            c.step.options.activation_dtype = OL_BFLOAT16;
            c.step.options.decay_per_channel = all[i].per_channel;
            c.step.options.gates.sum = OL_GATE_SUM_FLOAT32;
            c.options.gate = all[i].gate;
            c.options.normalized_rounded = c.options.sum_rounded = all[i].ratio > 1;
            static const int of_step[] = { AT_QUERY, AT_KEY, AT_VALUE, AT_UPDATE, AT_DECAY, AT_DECAY_BIAS, AT_OUTPUT };
            for (size_t j = 0; j < COUNT(of_step); j++) {
                const ol_tensor *t = step_tensor(&c.step, of_step[j]);
                int64_t extents[4] = { t->shape[0], t->shape[1], t->shape[2] };
                int32_t rank = t->rank;
                if (all[i].per_channel && (of_step[j] == AT_DECAY || of_step[j] == AT_DECAY_BIAS))
                    extents[rank++] = k;
                step_give(&c.step, of_step[j], OL_BFLOAT16, rank, extents, STEP_DENSE, &random);
                if (of_step[j] != AT_OUTPUT)
                    step_fill(&c.step, of_step[j], of_step[j] == AT_DECAY_BIAS ? -2 : 0, 1, STEP_USUAL, &random);
            }
            for (int p = 0; p < 3; p++) {
                const int64_t heads = p == 2 ? hv : hk, dim = p == 2 ? v : k;
                mixer_give(&c, p * OF_PART + OF_WEIGHT, OL_BFLOAT16, 3, (int64_t[]){ heads, dim, W }, STEP_DENSE, &random);
                mixer_fill(&c, p * OF_PART + OF_WEIGHT, 0.2, 0.5, STEP_USUAL, &random);
                mixer_give(&c, p * OF_PART + OF_WINDOW, OL_BFLOAT16, 4, (int64_t[]){ n, heads, dim, W }, STEP_DENSE, &random);
                mixer_fill(&c, p * OF_PART + OF_WINDOW, 0, 1, STEP_USUAL, &random);
            }
            mixer_give(&c, AT_GATE, OL_BFLOAT16, 3, (int64_t[]){ n * tokens, hv, v }, STEP_DENSE, &random);
            mixer_fill(&c, AT_GATE, 0, 2, STEP_USUAL, &random);
            mixer_scene_check_cpu(&c, all[i].name);
            mixer_free(&c);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(shared_slots_outside_of_the_pools),
        CUDA_TEST(window_slots_outside_of_their_pool),
        CUDA_TEST(dropped_positions_and_counts),
        CUDA_TEST(tables_that_are_too_short),
        CUDA_TEST(windows_in_place),
        CUDA_TEST(heads_in_turns),
        CUDA_TEST(nothing),
        CUDA_TEST(splits_of_tokens),
        CUDA_TEST(models),
    };
    return CUDA_RUN(argc, argv, tests);
}
