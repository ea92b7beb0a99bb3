/* Decoding on a GPU, which has kernels of its own: one token a sequence, states in place. Byte for byte as on the CPU, in every shape of
 * launch: geometries, dtypes, layouts; slots in any order, padding among them, and slots outside of the pool. */
#include "step_scene.h"

#include <stdio.h>
#include <string.h>

#define HEADS(key, r) .key_heads = key, .value_heads = (key) * (r), .norm = OL_DELTA_NORM_RSQRT
#define KEY_VALUE .state_layout = OL_DELTA_KEY_VALUE

static const ol_gated_delta_options layers[] = {
    { HEADS(1, 2), .key_dim = 128, .value_dim = 64, .activation_dtype = OL_BFLOAT16, .state_dtype = OL_BFLOAT16 },
    { HEADS(1, 1), .key_dim = 96, .value_dim = 48, .activation_dtype = OL_FLOAT32, .decay_per_channel = 1 },
    { HEADS(2, 3), .key_dim = 64, .value_dim = 80, .activation_dtype = OL_FLOAT16, .state_dtype = OL_FLOAT16, KEY_VALUE },
    { HEADS(1, 1), .key_dim = 128, .value_dim = 32, .activation_dtype = OL_BFLOAT16, .state_dtype = OL_BFLOAT16, KEY_VALUE, .decay_per_channel = 1 },
    { HEADS(1, 1), .key_dim = 256, .value_dim = 40, .activation_dtype = OL_FLOAT32, .state_dtype = OL_BFLOAT16 },
    { HEADS(2, 1), .key_dim = 16, .value_dim = 16, .activation_dtype = OL_BFLOAT16, KEY_VALUE },
    { HEADS(1, 1), .key_dim = 52, .value_dim = 36, .activation_dtype = OL_FLOAT16, .decay_per_channel = 1 },
    { HEADS(1, 1), .key_dim = 51, .value_dim = 33, .activation_dtype = OL_FLOAT16, .state_dtype = OL_FLOAT16 },
};

enum { N = 5, SLOTS = 9 };

static step_case case_of(const ol_gated_delta_options *layer, step_values values)
{
    uint64_t random = harness_seed;
    step_case c;
    step_case_of(&c, layer, N, 1, SLOTS, values, &random);
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
        int usual = layers[i].key_dim != 51, taken = cuda_delta_shape(&call).variant;
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
