/* Decoding on a GPU, which has kernels of its own: one token a sequence, states in place. Byte for byte as on the CPU, in every shape of
 * launch: geometries, dtypes, layouts; slots in any order, padding among them, and slots outside of the pool. */
#include "step_scene.h"

#include <stdio.h>
#include <string.h>

typedef struct layer {
    int key_heads, ratio, K, V;
    ol_dtype activations, states;
    ol_delta_layout layout;
    int per_channel;
} layer;

static const layer layers[] = {
    { 1, 2, 128, 64, OL_BFLOAT16, OL_BFLOAT16, OL_DELTA_VALUE_KEY, 0 },
    { 1, 1, 96, 48, OL_FLOAT32, OL_FLOAT32, OL_DELTA_VALUE_KEY, 1 },
    { 2, 3, 64, 80, OL_FLOAT16, OL_FLOAT16, OL_DELTA_KEY_VALUE, 0 },
    { 1, 1, 128, 32, OL_BFLOAT16, OL_BFLOAT16, OL_DELTA_KEY_VALUE, 1 },
    { 1, 1, 256, 40, OL_FLOAT32, OL_BFLOAT16, OL_DELTA_VALUE_KEY, 0 },
    { 2, 1, 16, 16, OL_BFLOAT16, OL_FLOAT32, OL_DELTA_KEY_VALUE, 0 },
    { 1, 1, 52, 36, OL_FLOAT16, OL_FLOAT32, OL_DELTA_VALUE_KEY, 1 },
    { 1, 1, 51, 33, OL_FLOAT16, OL_FLOAT16, OL_DELTA_VALUE_KEY, 0 },
};

enum { N = 5, SLOTS = 9 };

static step_case case_of(const layer *l, step_values values)
{
    const int64_t hk = l->key_heads, hv = hk * l->ratio;
    const int kv = l->layout == OL_DELTA_KEY_VALUE;
    uint64_t random = harness_seed;
    step_case c;
    step_usual(&c, l->key_heads, l->ratio, l->K, l->V, N, 1, &random);
    c.options.activation_dtype = l->activations;
    c.options.state_dtype = l->states;
    c.options.state_layout = l->layout;
    c.options.decay_per_channel = l->per_channel;
    step_give(&c, AT_QUERY, l->activations, 3, (int64_t[]){ N, hk, l->K }, STEP_DENSE, &random);
    step_give(&c, AT_KEY, l->activations, 3, (int64_t[]){ N, hk, l->K }, STEP_DENSE, &random);
    step_give(&c, AT_VALUE, l->activations, 3, (int64_t[]){ N, hv, l->V }, STEP_DENSE, &random);
    step_give(&c, AT_UPDATE, l->activations, 2, (int64_t[]){ N, hv }, STEP_DENSE, &random);
    step_give(&c, AT_DECAY, l->activations, l->per_channel ? 3 : 2, (int64_t[]){ N, hv, l->K }, STEP_DENSE, &random);
    step_give(&c, AT_DECAY_BIAS, l->activations, l->per_channel ? 2 : 1, (int64_t[]){ hv, l->K }, STEP_DENSE, &random);
    step_give(&c, AT_OUTPUT, l->activations, 3, (int64_t[]){ N, hv, l->V }, STEP_DENSE, &random);
    step_give(&c, AT_STATE, l->states, 4, (int64_t[]){ SLOTS, hv, kv ? l->K : l->V, kv ? l->V : l->K }, STEP_DENSE, &random);
    static const int filled[] = { AT_QUERY, AT_KEY, AT_VALUE, AT_UPDATE, AT_DECAY, AT_DECAY_BIAS, AT_STATE };
    for (size_t i = 0; i < COUNT(filled); i++)
        step_fill(&c, filled[i], filled[i] == AT_DECAY_BIAS ? -2 : 0, 1, values, &random);
    return c;
}

static void give_slots(step_case *c, const int32_t *slots)
{
    step_give(c, AT_READ, OL_INT32, 1, (int64_t[]){ N }, STEP_DENSE, NULL);
    memcpy(c->memory[AT_READ], slots, c->n_bytes[AT_READ]);
}

/* All but the last, which no kernel moves in pieces, has kernels of its own; and both are taken, by these few sequences or by more. */
static void kernels_for_decoding_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(layers); i++) {
        step_case c = case_of(&layers[i], STEP_USUAL);
        step_tensor(&c, AT_STATE)->shape[0] = N;
        ol_gated_delta *l = step_scene_layer(&c);
        step_scene s;
        delta_call call;
        step_scene_begin(&s, &c);
        assert_int_equal(delta_check(l, &s.arguments, &call, NULL), OL_OK);
        int usual = layers[i].K != 51, taken = cuda_delta_shape(&call).variant;
        assert_true(usual ? taken == STEP_DECODE_FEW || taken == STEP_DECODE_MANY : taken == STEP_ANY);
        call.n_sequences = call.n_tokens = 1000000;
        assert_int_equal(cuda_delta_shape(&call).variant, usual ? STEP_DECODE_MANY : STEP_ANY);
        call.n_tokens++;
        assert_true(cuda_delta_shape(&call).variant < STEP_DECODE_MANY);
        step_scene_end(&s);
        ol_gated_delta_destroy(l);
        step_free(&c);
    }
}

static void as_on_the_cpu(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(layers); i++)
        for (int special = 0; special < 2; special++) {
            char what[64];
            step_case c = case_of(&layers[i], special ? STEP_SPECIAL : STEP_USUAL);
            snprintf(what, sizeof what, "layer %zu, slots as sequences", i);
            step_tensor(&c, AT_STATE)->shape[0] = N;
            step_scene_check_cpu(&c, what);
            step_tensor(&c, AT_STATE)->shape[0] = SLOTS;
            give_slots(&c, (int32_t[]){ 7, 0, -1, 8, 3 });
            snprintf(what, sizeof what, "layer %zu, slots", i);
            step_scene_check_cpu(&c, what);
            c.options.padding = OL_DELTA_PADDING_NOT_POSITIVE;
            c.options.padding_output_untouched = 1;
            if (i % 4 == 0) {                    /* kernels of their own, which take a while to compile */
                snprintf(what, sizeof what, "layer %zu, padding", i);
                step_scene_check_cpu(&c, what);
                step_take_back(&c, AT_READ);
                step_tensor(&c, AT_STATE)->shape[0] = N;
                snprintf(what, sizeof what, "layer %zu, slots as sequences, none of them padding", i);
                step_scene_check_cpu(&c, what);
            }
            step_free(&c);
        }
}

/* They are skipped and counted once each; outputs and states stay. */
static void slots_outside_of_the_pool(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(layers); i += 3) {
        step_case c = case_of(&layers[i], STEP_USUAL), expected, got;
        step_scene s;
        c.options.padding_output_untouched = 1;
        give_slots(&c, (int32_t[]){ 7, -1, 2, -1, 8 });
        step_copy(&expected, &c);
        step_copy(&got, &c);
        step_run(cpu, &expected);
        static const int32_t wrong[N] = { 7, SLOTS, 2, INT32_MAX, 8 };
        memcpy(expected.memory[AT_READ], wrong, sizeof wrong);
        memcpy(got.memory[AT_READ], wrong, sizeof wrong);
        ol_gated_delta *l = step_scene_layer(&c);
        step_scene_begin(&s, &got);
        step_scene_run(l, &s);
        assert_int_equal(step_scene_read(&s, &got), 2);
        assert_true(step_equal(&expected, &got));
        step_scene_end(&s);
        ol_gated_delta_destroy(l);
        step_free(&expected);
        step_free(&got);
        step_free(&c);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { CUDA_TEST(kernels_for_decoding_are_taken), CUDA_TEST(as_on_the_cpu), CUDA_TEST(slots_outside_of_the_pool) };
    return CUDA_RUN(argc, argv, tests);
}
