/* The gated-delta step on a GPU and its pool: indices that lie in the GPU's memory and are wrong, which are skipped and counted; more
 * sequences than a grid's dimension; slots beyond 32-bit offsets; tokens split among calls; models' geometries. */
#include "step_scene.h"

#include <stdlib.h>
#include <string.h>

enum { HK = 1, R = 2, HV = 2, K = 32, V = 32 };

static step_case usual(int64_t n, int64_t n_tokens, int64_t slots)
{
    uint64_t random = harness_seed;
    step_case c;
    step_usual(&c, HK, R, K, V, n, n_tokens, &random);
    step_give(&c, AT_STATE, OL_FLOAT32, 4, (int64_t[]){ slots, HV, V, K }, STEP_DENSE, NULL);
    step_fill(&c, AT_STATE, 0, 1, STEP_USUAL, &random);
    c.options.padding_output_untouched = 1;
    return c;
}

static void give_int64(step_case *c, int number, int32_t rank, const int64_t *extents, const int64_t *values)
{
    step_give(c, number, OL_INT64, rank, extents, STEP_DENSE, NULL);
    memcpy(c->memory[number], values, c->n_bytes[number]);
}

static void put_int64(step_case *c, int number, const int64_t *values)
{
    memcpy(c->memory[number], values, c->n_bytes[number]);
}

/* The GPU is given `wrong` for the table `number`, the CPU what stands in the case; all else comes out alike, and `n` are counted. */
static void check_skipped(const step_case *c, int number, const int64_t *wrong, uint32_t n, const char *what)
{
    step_case expected, got;
    step_scene s;
    step_copy(&expected, c);
    step_copy(&got, c);
    step_run(cpu, &expected);
    put_int64(&got, number, wrong);
    put_int64(&expected, number, wrong);
    ol_gated_delta *layer = step_scene_layer(c);
    step_scene_begin(&s, &got);
    step_scene_run(layer, &s);
    uint32_t skipped = step_scene_read(&s, &got);
    if (skipped != n || !step_equal(&expected, &got))
        fail_msg("%s: %u skipped, expected %u", what, skipped, n);
    /* And uncounted. */
    s.arguments.skipped = NULL;
    step_scene_run(layer, &s);
    assert_int_equal(step_scene_read(&s, &got), n);
    step_scene_end(&s);
    ol_gated_delta_destroy(layer);
    step_free(&expected);
    step_free(&got);
}

static const int64_t far_away = (int64_t)1 << 40;

static void slots_outside_of_the_pool(void **state)
{
    (void)state;
    step_case c = usual(4, 2, 8);
    give_int64(&c, AT_READ, 1, (int64_t[]){ 4 }, (int64_t[]){ 5, -1, 2, -1 });
    check_skipped(&c, AT_READ, (int64_t[]){ 5, 8, 2, far_away }, 2, "read slots");
    c.options.padding = OL_DELTA_PADDING_NOT_POSITIVE;
    check_skipped(&c, AT_READ, (int64_t[]){ 5, 8, 2, -far_away }, 1, "read slots, and padding");
    c.options.padding = OL_DELTA_PADDING_NEGATIVE;
    put_int64(&c, AT_READ, (int64_t[]){ 5, 1, 2, 7 });
    give_int64(&c, AT_WRITE, 1, (int64_t[]){ 4 }, (int64_t[]){ 4, -1, -1, 3 });
    check_skipped(&c, AT_WRITE, (int64_t[]){ 4, 8, far_away, 3 }, 2, "write slots");
    step_free(&c);
}

/* Without padding numbers those below 0 are outside as well; a CPU refuses them, so the case has no such sequences. */
static void slots_below_zero_without_padding(void **state)
{
    (void)state;
    step_case c = usual(2, 1, 4), got, expected;
    step_scene s;
    c.options.padding = OL_DELTA_PADDING_NONE;
    give_int64(&c, AT_READ, 1, (int64_t[]){ 2 }, (int64_t[]){ -1, -far_away });
    step_copy(&expected, &c);
    step_copy(&got, &c);
    ol_gated_delta *layer = step_scene_layer(&c);
    step_scene_begin(&s, &c);
    step_scene_run(layer, &s);
    assert_int_equal(step_scene_read(&s, &got), 2);
    assert_true(step_equal(&expected, &got));
    step_scene_end(&s);
    ol_gated_delta_destroy(layer);
    step_free(&c);
    step_free(&got);
    step_free(&expected);
}

static void sequences_outside_of_the_tokens(void **state)
{
    (void)state;
    step_case c = usual(3, 2, 3);
    give_int64(&c, AT_CU_SEQLENS, 1, (int64_t[]){ 4 }, (int64_t[]){ 0, 2, 2, 2 });
    check_skipped(&c, AT_CU_SEQLENS, (int64_t[]){ 0, 2, 7, 6 }, 2, "beyond the tokens");
    check_skipped(&c, AT_CU_SEQLENS, (int64_t[]){ 0, 2, far_away, -1 }, 2, "far beyond");
    put_int64(&c, AT_CU_SEQLENS, (int64_t[]){ 0, 0, 0, 4 });
    check_skipped(&c, AT_CU_SEQLENS, (int64_t[]){ 3, 2, 0, 4 }, 2, "descending");
    step_free(&c);
}

static void counts_and_columns(void **state)
{
    (void)state;
    step_case c = usual(3, 2, 12);
    give_int64(&c, AT_READ, 2, (int64_t[]){ 3, 2 }, (int64_t[]){ 0, 1, -1, 3, 4, -1 });
    give_int64(&c, AT_ACCEPTED, 1, (int64_t[]){ 3 }, (int64_t[]){ 2, 1, 2 });
    check_skipped(&c, AT_ACCEPTED, (int64_t[]){ 2, 3, 0 }, 2, "accepted tokens");
    step_take_back(&c, AT_ACCEPTED);
    step_take_back(&c, AT_READ);
    give_int64(&c, AT_READ, 1, (int64_t[]){ 3 }, (int64_t[]){ 0, 1, 2 });
    give_int64(&c, AT_COUNTS, 1, (int64_t[]){ 3 }, (int64_t[]){ 1, 0, 0 });
    check_skipped(&c, AT_COUNTS, (int64_t[]){ 1, 3, -1 }, 2, "counts");
    step_free(&c);
}

/* Sequences that are longer than tables made for them, as only the GPU knows. */
static void tables_that_are_too_short(void **state)
{
    (void)state;
    step_case c = usual(1, 3, 6), expected, got;
    step_scene s;
    give_int64(&c, AT_CU_SEQLENS, 1, (int64_t[]){ 2 }, (int64_t[]){ 0, 3 });
    give_int64(&c, AT_WRITE, 2, (int64_t[]){ 1, 3 }, (int64_t[]){ 5, 4, -1 });
    step_give(&c, AT_INTERMEDIATE, OL_FLOAT32, 5, (int64_t[]){ 1, 3, HV, V, K }, STEP_DENSE, NULL);
    step_copy(&expected, &c);
    step_copy(&got, &c);
    step_run(cpu, &expected);
    size_t third = 2 * HV * V * K * sizeof(float);
    memcpy((char *)expected.memory[AT_INTERMEDIATE] + third, (char *)c.memory[AT_INTERMEDIATE] + third, third / 2);
    ol_gated_delta *layer = step_scene_layer(&c);
    step_scene_begin(&s, &c);
    s.arguments.write_slots.shape[1] = 2;
    s.arguments.intermediate_states.shape[1] = 2;
    step_scene_run(layer, &s);
    assert_int_equal(step_scene_read(&s, &got), 2);
    assert_true(step_equal(&expected, &got));
    step_scene_end(&s);
    ol_gated_delta_destroy(layer);
    step_free(&c);
    step_free(&expected);
    step_free(&got);
}

/* ---- Extents ---- */

/* More sequences than a grid has blocks in its second dimension (fla#1077, G19), most of them padding. */
static void G19_many_sequences(void **state)
{
    enum { N = 65600 };
    (void)state;
    uint64_t random = harness_seed;
    step_case c;
    int64_t *slots = malloc(N * sizeof *slots);
    step_usual(&c, 1, 1, 4, 4, N, 1, &random);
    for (int64_t i = 0; i < N; i++)
        slots[i] = i % 4099 && i != 65535 && i != 65536 ? -1 : i;
    give_int64(&c, AT_READ, 1, (int64_t[]){ N }, slots);
    free(slots);
    step_case expected, got;
    step_scene s;
    step_copy(&expected, &c);
    step_copy(&got, &c);
    step_run(cpu, &expected);
    ol_gated_delta *layer = step_scene_layer(&c);
    step_scene_begin(&s, &c);
    step_scene_run(layer, &s);
    assert_int_equal(step_scene_read(&s, &got), 0);
    assert_true(step_equal(&expected, &got));
    step_scene_end(&s);
    ol_gated_delta_destroy(layer);
    step_free(&c);
    step_free(&expected);
    step_free(&got);
}

/* Slots past 2^31 elements and 2^32 bytes, read and written. */
static void slots_beyond_32_bits(void **state)
{
    enum { STRIDE = 1 << 19, SLOTS = 4200, FROM = 4199, TO = 4097 };
    (void)state;
    const size_t extent = (size_t)SLOTS * STRIDE * 2;
    if (gpu.n_bytes < extent + (1 << 28)) {
        print_message("needs %zu bytes of device memory\n", extent);
        skip();
    }
    uint64_t random = harness_seed;
    step_case c, expected, got;
    step_scene s;
    ol_error error;
    void *pool;
    step_usual(&c, HK, R, K, V, 1, 1, &random);
    c.options.state_dtype = OL_BFLOAT16;
    step_give(&c, AT_STATE, OL_BFLOAT16, 4, (int64_t[]){ 2, HV, V, K }, STEP_DENSE, NULL);
    step_fill(&c, AT_STATE, 0, 1, STEP_USUAL, &random);
    give_int64(&c, AT_READ, 1, (int64_t[]){ 1 }, (int64_t[]){ 0 });
    give_int64(&c, AT_WRITE, 1, (int64_t[]){ 1 }, (int64_t[]){ 1 });
    step_copy(&expected, &c);
    step_copy(&got, &c);
    step_run(cpu, &expected);
    put_int64(&c, AT_READ, (int64_t[]){ FROM });
    put_int64(&c, AT_WRITE, (int64_t[]){ TO });
    ol_gated_delta *layer = step_scene_layer(&c);
    step_scene_begin(&s, &c);
    assert_ok(ol_device_allocate(cuda, extent, &pool, &error), &error);
    const size_t slot = HV * V * K * 2;
    upload(cuda, stream, (char *)pool + (size_t)FROM * STRIDE * 2, c.memory[AT_STATE], slot);
    s.arguments.state.data = pool;
    s.arguments.state.shape[0] = SLOTS;
    s.arguments.state.strides[0] = STRIDE;
    step_scene_run(layer, &s);
    assert_int_equal(step_scene_read(&s, &got), 0);
    assert_memory_equal(got.memory[AT_OUTPUT], expected.memory[AT_OUTPUT], got.n_bytes[AT_OUTPUT]);
    download(cuda, stream, got.memory[AT_STATE], (char *)pool + (size_t)TO * STRIDE * 2, slot);
    assert_memory_equal(got.memory[AT_STATE], (char *)expected.memory[AT_STATE] + slot, slot);
    device_give(cuda, pool, extent);
    step_scene_end(&s);
    ol_gated_delta_destroy(layer);
    step_free(&c);
    step_free(&expected);
    step_free(&got);
}

/* No sequences: tokens are padding. No tokens: nothing, or zeros for states that have none. */
static void nothing(void **state)
{
    (void)state;
    step_case c = usual(3, 1, 2);
    c.options.padding_output_untouched = 0;
    give_int64(&c, AT_CU_SEQLENS, 1, (int64_t[]){ 1 }, (int64_t[]){ 0 });
    step_scene_check_cpu(&c, "no sequences");
    step_free(&c);
    c = usual(2, 0, 2);
    step_scene_check_cpu(&c, "no tokens");
    step_give(&c, AT_HAS_INITIAL, OL_BOOL, 1, (int64_t[]){ 2 }, STEP_DENSE, NULL);
    memcpy(c.memory[AT_HAS_INITIAL], (char[]){ 1, 0 }, 2);
    step_scene_check_cpu(&c, "no tokens, no initial state");
    step_free(&c);
    c = usual(0, 0, 0);
    uint64_t before = ol_device_launches(cuda);
    step_scene s;
    ol_gated_delta *layer = step_scene_layer(&c);
    step_scene_begin(&s, &c);
    step_scene_run(layer, &s);
    assert_int_equal(ol_device_launches(cuda), before);
    step_scene_end(&s);
    ol_gated_delta_destroy(layer);
    step_free(&c);
}

/* Activations of 16 bits at odd multiples of their size, which are loaded in pairs elsewhere. */
static void halves_off_pairs(void **state)
{
    static const int moved[] = { AT_QUERY, AT_KEY, AT_VALUE };
    (void)state;
    for (size_t i = 0; i < COUNT(moved); i++) {
        uint64_t random = harness_seed;
        step_case c = usual(1, 2, 1);
        c.options.activation_dtype = c.options.output_dtype = OL_BFLOAT16;
        c.options.update_dtype = c.options.decay_dtype = c.options.decay_bias_dtype = OL_FLOAT32;
        step_give(&c, AT_QUERY, OL_BFLOAT16, 3, (int64_t[]){ 2, HK, K + 1 }, STEP_DENSE, NULL);
        step_give(&c, AT_KEY, OL_BFLOAT16, 3, (int64_t[]){ 2, HK, K + 1 }, STEP_DENSE, NULL);
        step_give(&c, AT_VALUE, OL_BFLOAT16, 3, (int64_t[]){ 2, HV, V + 2 }, STEP_DENSE, NULL);
        step_give(&c, AT_OUTPUT, OL_BFLOAT16, 3, (int64_t[]){ 2, HV, V }, STEP_DENSE, NULL);
        for (size_t j = 0; j < COUNT(moved); j++) {
            ol_tensor *t = step_tensor(&c, moved[j]);
            step_fill(&c, moved[j], 0, 1, STEP_USUAL, &random);
            t->shape[2] = moved[j] == AT_VALUE ? V : K;
            t->strides[0] -= moved[j] != AT_VALUE;       /* an even number of elements from token to token */
            t->data = (char *)t->data + (i == j ? 2 : 0);
        }
        step_scene_check_cpu(&c, "off pairs");
        step_free(&c);
    }
}

/* ---- Splits ---- */

/* A case of these tokens of one sequence. */
static ol_gated_delta_arguments tokens_of(const ol_gated_delta_arguments *a, int64_t first, int64_t n)
{
    ol_gated_delta_arguments part = *a;
    ol_tensor *const of_tokens[] = { &part.query, &part.key, &part.value, &part.update, &part.decay, &part.output };
    for (size_t i = 0; i < COUNT(of_tokens); i++) {
        of_tokens[i]->data = (char *)of_tokens[i]->data + first * of_tokens[i]->strides[0] * (int64_t)ol_dtype_size(of_tokens[i]->dtype);
        of_tokens[i]->shape[0] = n;
    }
    return part;
}

/* Twenty tokens, which are several chunks, at once, one by one and by sevens: the same bits. */
static void splits_of_tokens(void **state)
{
    enum { TOKENS = 20 };
    static const int sizes[] = { 1, 7 };
    (void)state;
    step_case c = usual(1, TOKENS, 1), whole, got;
    step_scene s;
    step_copy(&whole, &c);
    step_copy(&got, &c);
    step_run(cpu, &whole);
    step_scene_check(&c, &whole, "at once");
    ol_gated_delta *layer = step_scene_layer(&c);
    step_scene_begin(&s, &c);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        step_scene_write(&s, &c);
        for (int64_t t = 0; t < TOKENS; t += sizes[i]) {
            ol_error error;
            ol_gated_delta_arguments part = tokens_of(&s.arguments, t, t + sizes[i] < TOKENS ? sizes[i] : TOKENS - t);
            assert_ok(ol_gated_delta_step(layer, stream, &part, &error), &error);
        }
        assert_int_equal(step_scene_read(&s, &got), 0);
        assert_true(step_equal(&whole, &got));
    }
    step_scene_end(&s);
    ol_gated_delta_destroy(layer);
    step_free(&c);
    step_free(&whole);
    step_free(&got);
}

/* ---- Models ---- */

typedef struct model {
    const char *name;
    int key_heads, ratio, K, V, per_channel;
} model;

/* Fewer heads than they have, bfloat16 activations, each state: decode and verify. */
static void models(void **state)
{
    static const model all[] = { { "Qwen3.5-9B", 1, 2, 128, 128, 0 }, { "Qwen3.5-27B", 1, 3, 128, 128, 0 }, { "Kimi-Linear", 2, 1, 128, 128, 1 },
                                 { "OLMo-Hybrid", 2, 1, 96, 192, 0 } };
    (void)state;
    for (size_t m = 0; m < COUNT(all); m++)
        for (int wide = 0; wide < 2; wide++)
            for (int64_t tokens = 1; tokens <= 4; tokens += 3) {
                uint64_t random = harness_seed + m;
                step_case c;
                int64_t hk = all[m].key_heads, hv = hk * all[m].ratio, k = all[m].K, v = all[m].V, n = 2;
                ol_dtype states = wide ? OL_FLOAT32 : OL_BFLOAT16;
                step_usual(&c, (int)hk, all[m].ratio, (int)k, (int)v, n, tokens, &random);
                c.options.activation_dtype = OL_BFLOAT16;
                c.options.state_dtype = states;
                c.options.decay_per_channel = all[m].per_channel;
                step_give(&c, AT_QUERY, OL_BFLOAT16, 3, (int64_t[]){ n * tokens, hk, k }, STEP_DENSE, &random);
                step_give(&c, AT_KEY, OL_BFLOAT16, 3, (int64_t[]){ n * tokens, hk, k }, STEP_DENSE, &random);
                step_give(&c, AT_VALUE, OL_BFLOAT16, 3, (int64_t[]){ n * tokens, hv, v }, STEP_DENSE, &random);
                step_give(&c, AT_UPDATE, OL_BFLOAT16, 2, (int64_t[]){ n * tokens, hv }, STEP_DENSE, &random);
                step_give(&c, AT_DECAY, OL_BFLOAT16, all[m].per_channel ? 3 : 2, (int64_t[]){ n * tokens, hv, k }, STEP_DENSE, &random);
                step_give(&c, AT_DECAY_BIAS, OL_BFLOAT16, all[m].per_channel ? 2 : 1, (int64_t[]){ hv, k }, STEP_DENSE, &random);
                step_give(&c, AT_OUTPUT, OL_BFLOAT16, 3, (int64_t[]){ n * tokens, hv, v }, STEP_DENSE, &random);
                step_give(&c, AT_STATE, states, 4, (int64_t[]){ n, hv, v, k }, STEP_DENSE, &random);
                static const int filled[] = { AT_QUERY, AT_KEY, AT_VALUE, AT_UPDATE, AT_DECAY, AT_DECAY_BIAS, AT_STATE };
                for (size_t i = 0; i < COUNT(filled); i++)
                    step_fill(&c, filled[i], filled[i] == AT_DECAY_BIAS ? -2 : 0, 1, STEP_USUAL, &random);
                step_scene_check_cpu(&c, all[m].name);
                step_free(&c);
            }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(slots_outside_of_the_pool), CUDA_TEST(slots_below_zero_without_padding), CUDA_TEST(sequences_outside_of_the_tokens),
        CUDA_TEST(counts_and_columns),        CUDA_TEST(tables_that_are_too_short),        CUDA_TEST(G19_many_sequences),
        CUDA_TEST(slots_beyond_32_bits),      CUDA_TEST(nothing),                          CUDA_TEST(splits_of_tokens),
        CUDA_TEST(halves_off_pairs),          CUDA_TEST(models),
    };
    return CUDA_RUN(argc, argv, tests);
}
