/* Writes the CUDA texts of gated-delta steps into a folder, NAME.cu each: geometries of models, dtypes, layouts, norms and gates. For
 * what compilers make of them (test_kernel_text_nvrtc.py). No GPU, and nothing of CUDA, is needed.
 *
 * usage: step_texts FOLDER [NAME...]: all, or those whose name starts with one of these. */
#include "cuda/step.h"

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

static int is_asked(const char *name, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strncmp(name, argv[i], strlen(argv[i])) == 0)
            return 1;
    return argc == 2;
}

static int write_text(const char *folder, const subject *s, ol_device *device)
{
    char path[4096];
    ol_gated_delta *layer;
    ol_error error;
    if (ol_gated_delta_create(device, &s->options, &layer, &error) != OL_OK) {
        fprintf(stderr, "step_texts: %s: %s\n", s->name, error.description);
        return 0;
    }
    text t = { .allocator = memory_allocator(NULL) };
    snprintf(path, sizeof path, "%s/step_%s.cu", folder, s->name);
    FILE *f = step_text(layer, &t, &error) == OL_OK ? fopen(path, "w") : NULL;
    int ok = f && fwrite(t.bytes, 1, t.n, f) == t.n;
    if (f)
        ok &= fclose(f) == 0;
    text_free(&t);
    ol_gated_delta_destroy(layer);
    if (!ok)
        fprintf(stderr, "step_texts: %s cannot be written\n", path);
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
    printf("%d kernels\n", n);
    ol_device_destroy(device);
    return 0;
}
