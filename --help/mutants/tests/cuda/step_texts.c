/* Writes the CUDA texts of gated-delta steps and of mixer steps into a folder, NAME.cu each: geometries of models, dtypes, layouts, norms and gates. For
 * what compilers make of them (test_kernel_text_nvrtc.py). No GPU, and nothing of CUDA, is needed.
 *
 * usage: step_texts FOLDER [NAME...]: all, or those whose name starts with one of these. */
#include "cuda/mixer.h"

#include "memory.h"

#include <stdio.h>
#include <string.h>

typedef struct subject {
    const char *name;
    ol_gated_delta_options options;
} subject;

#define BF16 .activation_dtype = OL_BFLOAT16
#define QWEN BF16, .key_heads = 16, .value_heads = 32, .key_dim = 128, .value_dim = 128, .norm = OL_DELTA_NORM_RSQRT
#define LARGEST BF16, .key_heads = 2, .value_heads = 4, .key_dim = 256, .value_dim = 256, .norm = OL_DELTA_NORM_RSQRT
#define RMS .norm = OL_DELTA_NORM_RMS
#define RAW .decay = OL_DELTA_DECAY_GIVEN, .gates = { .beta = OL_GATE_BETA_RAW }

static const subject subjects[] = {
    { "qwen_9b", { QWEN } },
    { "qwen_9b_bf16_state", { QWEN, .state_dtype = OL_BFLOAT16 } },
    { "qwen_9b_f16_state", { QWEN, .state_dtype = OL_FLOAT16 } },
    { "qwen_9b_key_value", { QWEN, .state_layout = OL_DELTA_KEY_VALUE } },
    { "qwen_9b_key_value_bf16_state", { QWEN, .state_layout = OL_DELTA_KEY_VALUE, .state_dtype = OL_BFLOAT16 } },
    { "qwen_27b", { BF16, .key_heads = 16, .value_heads = 48, .key_dim = 128, .value_dim = 128, .norm = OL_DELTA_NORM_RSQRT } },
    { "kimi_linear", { BF16, .key_heads = 32, .value_heads = 32, .key_dim = 128, .value_dim = 128, .norm = OL_DELTA_NORM_RSQRT, .decay_per_channel = 1 } },
    { "kimi_linear_bf16_state", { BF16, .key_heads = 32, .value_heads = 32, .key_dim = 128, .value_dim = 128, .norm = OL_DELTA_NORM_RSQRT,
                                  .decay_per_channel = 1, .state_dtype = OL_BFLOAT16 } },
    { "kimi_k3", { BF16, .key_heads = 96, .value_heads = 96, .key_dim = 128, .value_dim = 128, .norm = OL_DELTA_NORM_RSQRT, .decay_per_channel = 1,
                   .gates = { .kind = OL_GATE_LOWER_BOUND, .lower_bound = -5 } } },
    { "olmo_hybrid", { BF16, .key_heads = 30, .value_heads = 30, .key_dim = 96, .value_dim = 192, .norm = OL_DELTA_NORM_RSQRT,
                       .gates = { .beta = OL_GATE_BETA_DOUBLED } } },
    { "olmo_hybrid_bf16_state", { BF16, .key_heads = 30, .value_heads = 30, .key_dim = 96, .value_dim = 192, .norm = OL_DELTA_NORM_RSQRT,
                                  .state_dtype = OL_BFLOAT16, .gates = { .beta = OL_GATE_BETA_DOUBLED } } },
    { "largest", { LARGEST } },
    { "largest_channels", { LARGEST, .decay_per_channel = 1, .state_dtype = OL_BFLOAT16 } },
    { "largest_key_value", { LARGEST, .state_layout = OL_DELTA_KEY_VALUE } },
    { "small", { .activation_dtype = OL_FLOAT32, .key_heads = 2, .value_heads = 4, .key_dim = 16, .value_dim = 16, .norm = OL_DELTA_NORM_MAXIMUM } },
    { "odd", { .activation_dtype = OL_FLOAT16, .key_heads = 1, .value_heads = 3, .key_dim = 37, .value_dim = 19, .norm = OL_DELTA_NORM_ADDED,
               .state_dtype = OL_FLOAT16 } },
    { "odd_key_value", { .activation_dtype = OL_FLOAT16, .key_heads = 1, .value_heads = 3, .key_dim = 50, .value_dim = 33,
                         .state_layout = OL_DELTA_KEY_VALUE, .decay = OL_DELTA_DECAY_LOGARITHM, .padding = OL_DELTA_PADDING_NOT_POSITIVE } },
    { "given", { .activation_dtype = OL_FLOAT32, .key_heads = 4, .value_heads = 8, .key_dim = 64, .value_dim = 80, RMS, RAW, .padding = OL_DELTA_PADDING_NONE,
                 .padding_output_untouched = 1, .decay_per_channel = 1 } },
    { "mamba", { BF16, .key_heads = 8, .value_heads = 16, .key_dim = 100, .value_dim = 48, .head_map = OL_HEADS_TILED, .state_dtype = OL_FLOAT16,
                 .gates = { .kind = OL_GATE_CLAMPED, .interval_low = 0.001, .interval_high = 0.1, .finite_rate = 1, .sum = OL_GATE_SUM_FLOAT32,
                            .beta_rounding = OL_FLOAT32 } } },
    { "negated", { .activation_dtype = OL_FLOAT32, .output_dtype = OL_BFLOAT16, .update_dtype = OL_FLOAT32, .key_heads = 16, .value_heads = 32, .key_dim = 128,
                   .value_dim = 128, .norm = OL_DELTA_NORM_MAXIMUM, .head_map = OL_HEADS_TILED, .gates = { .rate = OL_GATE_RATE_NEGATED } } },
};

/* Of mixers, with clusters or without. Those without keep rows in memory: their names say so. */
typedef struct mixer_subject {
    const char *name;
    int has_clusters;
    ol_gated_delta_mixer_options options;
} mixer_subject;

#define QWEN_MIXER .recurrence = { QWEN, .gates = { .sum = OL_GATE_SUM_FLOAT32 } }, .sum_rounded = 1, .normalized_rounded = 1
#define KIMI_MIXER                                                                                                                                       \
    .recurrence = { BF16, .key_heads = 32, .value_heads = 32, .key_dim = 128, .value_dim = 128, .norm = OL_DELTA_NORM_RSQRT, .decay_per_channel = 1 }, \
    .gate = OL_MIXER_SIGMOID

static const mixer_subject mixers[] = {
    { "step_mixer_qwen_9b", 1, { QWEN_MIXER } },
    { "step_mixer_qwen_9b_bf16_state", 1, { .recurrence = { QWEN, .state_dtype = OL_BFLOAT16 }, .weighted_rounded = 1 } },
    { "step_mixer_qwen_9b_key_value", 1, { .recurrence = { QWEN, .state_layout = OL_DELTA_KEY_VALUE }, .window = OL_MIXER_WINDOW_RING } },
    { "step_mixer_kimi_linear", 1, { KIMI_MIXER } },
    { "step_mixer_olmo_hybrid", 1, { .recurrence = { BF16, .key_heads = 30, .value_heads = 30, .key_dim = 96, .value_dim = 192, .norm = OL_DELTA_NORM_RSQRT,
                                                      .gates = { .beta = OL_GATE_BETA_DOUBLED } }, .gate = OL_MIXER_SIGMOID } },
    { "step_mixer_largest", 1, { .recurrence = { LARGEST }, .bias_dtype = OL_FLOAT32 } },
    { "step_mixer_odd", 1, { .recurrence = { .activation_dtype = OL_FLOAT16, .key_heads = 1, .value_heads = 3, .key_dim = 37, .value_dim = 19,
                                             .norm = OL_DELTA_NORM_ADDED, .state_dtype = OL_FLOAT16 }, .width = 3, .activation = OL_MIXER_NONE,
                              .gate = OL_MIXER_NONE, .bias_dtype = OL_BFLOAT16, .window = OL_MIXER_WINDOW_RING } },
    { "step_mixer_plain", 1, { .recurrence = { .activation_dtype = OL_FLOAT32, .key_heads = 4, .value_heads = 8, .key_dim = 64, .value_dim = 80, RMS, RAW },
                               .width = 2, .norm = OL_MIXER_NORM_NONE } },
    { "mixer_alone_qwen_9b", 0, { QWEN_MIXER } },
    { "mixer_alone_kimi_linear", 0, { KIMI_MIXER } },
    { "mixer_alone_largest", 0, { .recurrence = { LARGEST } } },
};

static int is_asked(const char *name, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strncmp(name, argv[i], strlen(argv[i])) == 0)
            return 1;
    return argc == 2;
}

static int write_file(const char *folder, const char *prefix, const char *name, const text *t)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s.cu", folder, prefix, name);
    FILE *f = fopen(path, "w");
    int ok = f && fwrite(t->bytes, 1, t->n, f) == t->n;
    if (f)
        ok &= fclose(f) == 0;
    if (!ok)
        fprintf(stderr, "step_texts: %s cannot be written\n", path);
    return ok;
}

static int write_text(const char *folder, const subject *s, ol_device *device)
{
    ol_gated_delta *layer = NULL;
    ol_error error;
    text t = { .allocator = memory_allocator(NULL) };
    ol_status status = ol_gated_delta_create(device, &s->options, &layer, &error);
    if (status == OL_OK)
        status = step_text(layer, &t, &error);
    if (status != OL_OK)
        fprintf(stderr, "step_texts: %s: %s\n", s->name, error.description);
    int ok = status == OL_OK && write_file(folder, "step_", s->name, &t);
    text_free(&t);
    ol_gated_delta_destroy(layer);
    return ok;
}

static int write_mixer(const char *folder, const mixer_subject *s, ol_device *device)
{
    ol_gated_delta_mixer *mixer = NULL;
    ol_error error;
    text t = { .allocator = memory_allocator(NULL) };
    ol_status status = ol_gated_delta_mixer_create(device, &s->options, &mixer, &error);
    if (status == OL_OK)
        status = mixer_text(mixer, s->has_clusters, &t, &error);
    if (status != OL_OK)
        fprintf(stderr, "step_texts: %s: %s\n", s->name, error.description);
    int ok = status == OL_OK && write_file(folder, "", s->name, &t);
    text_free(&t);
    ol_gated_delta_mixer_destroy(mixer);
    return ok;
}

int main(int argc, char **argv)
{
    ol_device *device;
    int n = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: step_texts FOLDER [NAME...]\n");
        return 2;
    }
    if (ol_device_cpu(NULL, &device, NULL) != OL_OK)
        return 1;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (is_asked(subjects[i].name, argc, argv)) {
            if (!write_text(argv[1], &subjects[i], device))
                return 1;
            n++;
        }
    for (size_t i = 0; i < sizeof mixers / sizeof *mixers; i++)
        if (is_asked(mixers[i].name, argc, argv)) {
            if (!write_mixer(argv[1], &mixers[i], device))
                return 1;
            n++;
        }
    printf("%d kernels\n", n);
    ol_device_destroy(device);
    return 0;
}
