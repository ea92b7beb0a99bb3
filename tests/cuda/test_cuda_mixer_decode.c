/* Decoding with the mixer step on a GPU, which has kernels of its own: one token a sequence, states and windows in place. Byte for byte as on the CPU, in
 * every shape of launch: geometries, dtypes, layouts, windows of every kind; slots in any order, padding among them, and slots outside of the pools. */
#include "mixer_scene.h"

#include <stdio.h>
#include <string.h>

typedef struct subject {
    ol_gated_delta_mixer_options options;
    int columns;                                 /* of the windows */
} subject;

#define LAYER(key, r, k, v, activations) .key_heads = key, .value_heads = (key) * (r), .key_dim = k, .value_dim = v, .activation_dtype = activations, .norm = OL_DELTA_NORM_RSQRT
#define KEY_VALUE .state_layout = OL_DELTA_KEY_VALUE
#define RING .window = OL_MIXER_WINDOW_RING

static const subject subjects[] = {
    { { .recurrence = { LAYER(1, 2, 128, 64, OL_BFLOAT16), .state_dtype = OL_BFLOAT16 }, .sum_rounded = 1, .normalized_rounded = 1 }, 4 },
    { { .recurrence = { LAYER(1, 1, 96, 48, OL_FLOAT32), .decay_per_channel = 1 }, .gate = OL_MIXER_SIGMOID, .bias_dtype = OL_BFLOAT16 }, 3 },
    { { .recurrence = { LAYER(2, 3, 64, 80, OL_FLOAT16), .state_dtype = OL_FLOAT16, KEY_VALUE, .head_map = OL_HEADS_TILED }, RING, .weighted_rounded = 1 }, 5 },
    { { .recurrence = { LAYER(1, 1, 128, 32, OL_BFLOAT16), .state_dtype = OL_BFLOAT16, KEY_VALUE, .decay_per_channel = 1 }, .norm = OL_MIXER_NORM_NONE,
        .window_dtype = OL_FLOAT32 }, 4 },
    { { .recurrence = { LAYER(1, 4, 32, 128, OL_FLOAT32), .output_dtype = OL_BFLOAT16 }, .width = 2, .activation = OL_MIXER_NONE, .gate = OL_MIXER_NONE }, 1 },
    { { .recurrence = { LAYER(1, 8, 16, 16, OL_BFLOAT16) }, .width = 3, .convolved_unrounded = 1, .output_unrounded = 1, .gate_dtype = OL_FLOAT32 }, 2 },
    { { .recurrence = { LAYER(1, 1, 52, 36, OL_FLOAT16), .decay_per_channel = 1 }, RING, .weight_dtype = OL_FLOAT32 }, 3 },
    { { .recurrence = { LAYER(1, 2, 256, 24, OL_FLOAT32), .state_dtype = OL_BFLOAT16 }, .width = 3 }, 2 },
};
/* What no kernel for decoding is made for: extents that are moved one element at a time; more value heads of a key head than blocks of a cluster. */
static const subject others[] = {
    { { .recurrence = { LAYER(1, 1, 51, 33, OL_FLOAT16), .state_dtype = OL_FLOAT16 } }, 4 },
    { { .recurrence = { LAYER(1, 9, 16, 16, OL_FLOAT32) } }, 4 },
};

enum { N = 5, SLOTS = 9 };

static mixer_case case_of(const subject *s, int64_t slots, int columns, step_values values)
{
    uint64_t random = harness_seed;
    mixer_case c;
    mixer_case_of(&c, &s->options, N, 1, slots, columns, values, &random);
    if (s->options.window == OL_MIXER_WINDOW_RING)
        mixer_table(&c, AT_POSITIONS, N, 0, (int32_t[]){ 1, 0, 7, 2000000003, 4 });
    return c;
}

/* The variant that a call takes; as many sequences as the case has, or so many. */
static int variant_of(const mixer_case *c, int64_t n)
{
    ol_gated_delta_mixer *m = mixer_of(cuda, c);
    mixer_scene s;
    mixer_call call;
    mixer_scene_begin(&s, c);
    assert_int_equal(mixer_check(m, &s.arguments, &call, NULL), OL_OK);
    if (n)
        call.recurrence.n_sequences = call.recurrence.n_tokens = n;
    int variant = cuda_mixer_shape(&call).variant;
    mixer_scene_end(&s);
    ol_gated_delta_mixer_destroy(m);
    return variant;
}

static int decodes(int variant) { return variant == STEP_DECODE_MANY || variant == STEP_DECODE_FEW; }

static void kernels_for_decoding_are_taken(void **state)
{
    (void)state;
    if (!mixer_has_clusters((const cuda_device *)cuda))
        skip();
    for (size_t i = 0; i < COUNT(subjects); i++) {
        mixer_case c = case_of(&subjects[i], N, subjects[i].columns, STEP_USUAL);
        assert_true(decodes(variant_of(&c, 0)));
        assert_int_equal(variant_of(&c, 1000000), STEP_DECODE_MANY);
        mixer_free(&c);
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        mixer_case c = case_of(&others[i], N, others[i].columns, STEP_USUAL);
        assert_false(decodes(variant_of(&c, 0)));
        mixer_free(&c);
    }
    /* Nor are they where more than a token's window is asked for. */
    static const int32_t zeros[N];
    for (int i = 0; i < 3; i++) {
        mixer_case c = case_of(&subjects[0], SLOTS, i == 0 ? 5 : 4, STEP_USUAL);
        mixer_step_table(&c, AT_READ, N, 0, (int32_t[]){ 0, 1, 2, 3, 4 });
        if (i == 1)
            mixer_table(&c, AT_DROPPED, N, 0, zeros);
        if (i == 2)
            mixer_table(&c, AT_WINDOW_WRITE, N, 0, (int32_t[]){ 0, 1, 2, 3, 4 });
        assert_false(decodes(variant_of(&c, 0)));
        mixer_free(&c);
    }
}

static void as_on_the_cpu(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(subjects); i++)
        for (int special = 0; special < 2; special++) {
            char what[96];
            step_values values = special ? STEP_SPECIAL : STEP_USUAL;
            mixer_case c = case_of(&subjects[i], N, subjects[i].columns, values);
            snprintf(what, sizeof what, "mixer %zu, slots as sequences", i);
            mixer_scene_check_cpu(&c, what);
            mixer_free(&c);
            if (special)
                continue;
            c = case_of(&subjects[i], SLOTS, subjects[i].columns, values);
            mixer_step_table(&c, AT_READ, N, 0, (int32_t[]){ 7, 0, -1, 8, 3 });
            snprintf(what, sizeof what, "mixer %zu, slots", i);
            mixer_scene_check_cpu(&c, what);
            mixer_table(&c, AT_WINDOW_READ, N, 0, (int32_t[]){ 2, 8, 5, 1, 0 });
            snprintf(what, sizeof what, "mixer %zu, windows in slots of their own", i);
            mixer_scene_check_cpu(&c, what);
            mixer_free(&c);
        }
}

/* Kernels of their own. Below 1 are padding numbers: of a table, where a window that such a slot has is not written, but not of sequences. */
static void padding(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(subjects); i += 4) {
        subject s = subjects[i];
        s.options.recurrence.padding = OL_DELTA_PADDING_NOT_POSITIVE;
        s.options.recurrence.padding_output_untouched = 1;
        mixer_case c = case_of(&s, N, s.columns, STEP_USUAL);
        mixer_scene_check_cpu(&c, "slots as sequences, none of them padding");
        mixer_step_table(&c, AT_READ, N, 0, (int32_t[]){ 4, 0, 1, -3, 2 });
        mixer_scene_check_cpu(&c, "slots, two of them padding");
        mixer_table(&c, AT_WINDOW_READ, N, 0, (int32_t[]){ 0, 1, 2, 3, 4 });
        mixer_scene_check_cpu(&c, "a window in a slot for padding");
        mixer_free(&c);
    }
}

/* They are skipped and counted once each; outputs, states and windows stay. */
static void slots_outside_of_the_pools(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(subjects); i += 2)
        for (int windows = 0; windows < 2; windows++) {
            subject s = subjects[i];
            s.options.recurrence.padding_output_untouched = 1;
            mixer_case c = case_of(&s, SLOTS, s.columns, STEP_USUAL), expected, got;
            mixer_scene placed;
            static const int32_t right[N] = { 7, 1, 2, 3, 8 }, padded[N] = { 7, -1, 2, -1, 8 }, wrong[N] = { 7, SLOTS, 2, INT32_MAX, 8 };
            mixer_step_table(&c, AT_READ, N, 0, padded);
            mixer_table(&c, AT_WINDOW_READ, N, 0, right);
            mixer_copy(&expected, &c);
            mixer_copy(&got, &c);
            mixer_run(cpu, &expected);
            memcpy(expected.step.memory[AT_READ], windows ? right : wrong, sizeof wrong);
            memcpy(got.step.memory[AT_READ], windows ? right : wrong, sizeof wrong);
            if (windows) {
                memcpy(expected.memory[AT_WINDOW_READ], wrong, sizeof wrong);
                memcpy(got.memory[AT_WINDOW_READ], wrong, sizeof wrong);
            }
            ol_gated_delta_mixer *m = mixer_of(cuda, &c);
            mixer_scene_begin(&placed, &got);
            mixer_scene_run(m, &placed);
            assert_int_equal(mixer_scene_read(&placed, &got), 2);
            assert_true(mixer_equal(&expected, &got));
            mixer_scene_end(&placed);
            ol_gated_delta_mixer_destroy(m);
            mixer_free(&expected);
            mixer_free(&got);
            mixer_free(&c);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { CUDA_TEST(kernels_for_decoding_are_taken), CUDA_TEST(as_on_the_cpu), CUDA_TEST(padding),
                                        CUDA_TEST(slots_outside_of_the_pools) };
    return CUDA_RUN(argc, argv, tests);
}
