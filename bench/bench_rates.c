/* The gated-delta rates on [tokens, 32]: a replay, the composed path, and a hand-written fused loop with the same arithmetic
 * (hand_loop.h), for float32 and bfloat16 inputs. Prints JSON; report.py makes the table.
 *
 * Before anything is timed the three must agree in every bit. The same buffers serve all contestants and every call, so what
 * fits a cache is in it; a call of fewer than 64 tokens takes the next ones of the first 64, since a kernel may take longer
 * for some values, and one token would meet them always or never. With one thread the process stays on one CPU; the hand loop has only one thread and is left out
 * with more. */
#include "hand_loop.h"
#include "measure.h"

#include <onelaunch.h>

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADS = 32, N_SHAPES = 5, WINDOW_TOKENS = 64, COMPILE_REPEATS = 2000 };
static const int64_t token_counts[N_SHAPES] = { 1, 16, 256, 4096, 65536 };
enum { MAX_ELEMENTS = 65536 * HEADS };
#define HUGE_PAGE ((size_t)2 << 20)

struct options {
    int32_t n_threads;
    double seconds;                      /* per shape and dtype */
    const char *dump;
    int compile_only;
};

typedef void hand_f32(float *, float *, const float *, const float *, const float *, const float *, size_t, size_t);
typedef void hand_bf16(uint16_t *, float *, const uint16_t *, const uint16_t *, const float *, const uint16_t *, size_t, size_t);

static const struct hand_level {
    const char *name;
    hand_f32 *f32;
    hand_bf16 *bf16;
} hand_levels[] = {
    { "baseline", hand_loop_f32_baseline, hand_loop_bf16_baseline },
#if defined(__x86_64__)
    { "avx2", hand_loop_f32_avx2, hand_loop_bf16_avx2 },
    { "avx512", hand_loop_f32_avx512, hand_loop_bf16_avx512 },
#elif defined(__aarch64__)
    { "neon", hand_loop_f32_neon, hand_loop_bf16_neon },
#endif
};

enum { B, A, A_LOG, DT_BIAS, N_INPUTS };
enum { BETA, DECAY, N_OUTPUTS };
static const char *const input_names[N_INPUTS] = { "b", "a", "A_log", "dt_bias" };
static const char *const output_names[N_OUTPUTS] = { "beta", "decay" };

/* One dtype's inputs and outputs at the largest shape; smaller shapes use their beginning. */
struct data {
    ol_dtype dtypes[N_INPUTS];
    void *inputs[N_INPUTS];
    void *outputs[N_OUTPUTS], *expected[N_OUTPUTS];
};

struct run {
    ol_composite *composite;
    ol_tensor inputs[N_INPUTS], outputs[N_OUTPUTS];
    const struct hand_level *hand;
    const struct data *data;
    int64_t tokens;
    int64_t first;                       /* the token at which the next call's inputs start */
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("bench_rates: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* Zeroed memory, large blocks on huge pages, as NumPy has its arrays (the peers' inputs): without, misses of the TLB are a
 * good part of the time of the largest shape. */
static void *take(size_t n_bytes) {
    size_t alignment = n_bytes >= HUGE_PAGE ? HUGE_PAGE : 64;
    void *memory = aligned_alloc(alignment, (n_bytes + alignment - 1) & ~(alignment - 1));
    if (!memory) {
        die("no memory for %zu bytes", n_bytes);
    }
    if (alignment == HUGE_PAGE) {
        madvise(memory, n_bytes, MADV_HUGEPAGE);
    }
    memset(memory, 0, n_bytes);
    return memory;
}

static int64_t input_elements(int input, int64_t tokens) {
    return input == A_LOG || input == DT_BIAS ? HEADS : tokens * HEADS;
}

/* Inputs as a layer has them: logits and interval inputs around 0, A_log and dt_bias from Mamba2's initialisation (rates
 * uniform in [1, 16), intervals between 0.001 and 0.1, their softplus inverted). */
static double input_value(int input, uint64_t *seed) {
    switch (input) {
    case A_LOG: return log(1.0 + 15.0 * measure_uniform(seed));
    case DT_BIAS: return log(expm1(exp(log(1e-3) + log(100.0) * measure_uniform(seed))));
    default: return 2.0 * measure_normal(seed);
    }
}

static struct data make_data(ol_dtype dtype) {
    struct data d = { .dtypes = { dtype, dtype, OL_FLOAT32, dtype } };
    uint64_t seed = 1;
    for (int i = 0; i < N_INPUTS; i++) {
        int64_t n = input_elements(i, MAX_ELEMENTS / HEADS);
        d.inputs[i] = take((size_t)n * ol_dtype_size(d.dtypes[i]));
        for (int64_t e = 0; e < n; e++) {
            float value = (float)input_value(i, &seed);
            if (d.dtypes[i] == OL_FLOAT32) {
                ((float *)d.inputs[i])[e] = value;
            } else {
                ((uint16_t *)d.inputs[i])[e] = measure_bfloat16(value);
            }
        }
    }
    for (int o = 0; o < N_OUTPUTS; o++) {
        d.outputs[o] = take(MAX_ELEMENTS * sizeof(float));
        d.expected[o] = take(MAX_ELEMENTS * sizeof(float));
    }
    return d;
}

static void free_data(struct data *d) {
    for (int i = 0; i < N_INPUTS; i++) {
        free(d->inputs[i]);
    }
    for (int o = 0; o < N_OUTPUTS; o++) {
        free(d->outputs[o]);
        free(d->expected[o]);
    }
}

static ol_composite *compile(ol_device *device, const struct data *d) {
    ol_composite *composite;
    ol_error error;
    if (ol_gated_delta_rates_compile(device, d->dtypes[B], d->dtypes[A], d->dtypes[A_LOG], d->dtypes[DT_BIAS], &composite, &error) != OL_OK) {
        die("%s: %s", error.operation, error.description);
    }
    return composite;
}

/* Moves a run on to the next tokens. */
static void next_tokens(struct run *r) {
    r->first = r->first + 2 * r->tokens <= WINDOW_TOKENS ? r->first + r->tokens : 0;
    for (int i = B; i <= A; i++) {
        r->inputs[i].data = (char *)r->data->inputs[i] + (size_t)(r->first * HEADS) * ol_dtype_size(r->data->dtypes[i]);
    }
}

static void call_replay(void *argument) {
    struct run *r = argument;
    next_tokens(r);
    ol_replay(r->composite, NULL, r->inputs, r->outputs, NULL);
}

static void call_composed(void *argument) {
    struct run *r = argument;
    next_tokens(r);
    ol_replay_composed(r->composite, NULL, r->inputs, r->outputs, NULL);
}

static void call_hand(void *argument) {
    struct run *r = argument;
    next_tokens(r);
    if (r->inputs[B].dtype == OL_FLOAT32) {
        r->hand->f32(r->outputs[BETA].data, r->outputs[DECAY].data, r->inputs[B].data, r->inputs[A].data, r->inputs[A_LOG].data,
                     r->inputs[DT_BIAS].data, (size_t)r->tokens, HEADS);
    } else {
        r->hand->bf16(r->outputs[BETA].data, r->outputs[DECAY].data, r->inputs[B].data, r->inputs[A].data, r->inputs[A_LOG].data,
                      r->inputs[DT_BIAS].data, (size_t)r->tokens, HEADS);
    }
}

/* `first` past the window: the first call starts at token 0. */
static struct run make_run(ol_composite *composite, const struct data *d, const struct hand_level *hand, int64_t tokens) {
    struct run r = { .composite = composite, .hand = hand, .data = d, .tokens = tokens, .first = WINDOW_TOKENS };
    for (int i = 0; i < N_INPUTS; i++) {
        int per_head = i == A_LOG || i == DT_BIAS;
        r.inputs[i] = ol_tensor_contiguous(d->inputs[i], d->dtypes[i], per_head ? 1 : 2, (int64_t[]){ per_head ? HEADS : tokens, HEADS });
    }
    for (int o = 0; o < N_OUTPUTS; o++) {
        r.outputs[o] = ol_tensor_contiguous(d->outputs[o], ol_composite_output_dtype(composite, o), 2, (int64_t[]){ tokens, HEADS });
    }
    return r;
}

/* Every contestant's outputs must be the first one's, bit for bit, on the same tokens. */
static void check(const contestant *contestants, int n, struct run *r, const struct data *d) {
    ol_error error;
    if (ol_replay(r->composite, NULL, r->inputs, r->outputs, &error) != OL_OK) {
        die("%s: %s", error.operation, error.description);
    }
    for (int i = 0; i < n; i++) {
        for (int o = 0; o < N_OUTPUTS; o++) {
            size_t n_bytes = (size_t)(r->tokens * HEADS) * ol_dtype_size(r->outputs[o].dtype);
            if (i > 0) {
                memset(d->outputs[o], 0xa5, n_bytes);
            }
        }
        r->first = WINDOW_TOKENS;
        contestants[i].call(r);
        for (int o = 0; o < N_OUTPUTS; o++) {
            size_t n_bytes = (size_t)(r->tokens * HEADS) * ol_dtype_size(r->outputs[o].dtype);
            if (i == 0) {
                memcpy(d->expected[o], d->outputs[o], n_bytes);
            } else if (memcmp(d->expected[o], d->outputs[o], n_bytes) != 0) {
                die("%s and %s differ in %s (%" PRId64 " tokens, %s)", contestants[0].name, contestants[i].name, output_names[o], r->tokens,
                    ol_dtype_name(r->inputs[B].dtype));
            }
        }
    }
}

static void write_file(const char *folder, ol_dtype dtype, const char *name, const void *data, size_t n_bytes) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s.bin", folder, ol_dtype_name(dtype), name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, n_bytes, file) != n_bytes || fclose(file) != 0) {
        die("%s: %s", path, strerror(errno));
    }
}

/* The largest shape's inputs and correct outputs, for peers to compute on and be compared with. */
static void dump(const char *folder, struct run *r) {
    r->first = WINDOW_TOKENS;
    call_replay(r);
    for (int i = 0; i < N_INPUTS; i++) {
        write_file(folder, r->inputs[B].dtype, input_names[i], r->inputs[i].data,
                   (size_t)input_elements(i, r->tokens) * ol_dtype_size(r->inputs[i].dtype));
    }
    for (int o = 0; o < N_OUTPUTS; o++) {
        write_file(folder, r->inputs[B].dtype, output_names[o], r->outputs[o].data,
                   (size_t)(r->tokens * HEADS) * ol_dtype_size(r->outputs[o].dtype));
    }
}

/* The first compilation of the process, then many. */
static void time_compiling(ol_device *device) {
    struct data d = { .dtypes = { OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16 } };
    double *samples = take(COMPILE_REPEATS * sizeof *samples), first = 0;
    for (int i = -1; i < COMPILE_REPEATS; i++) {
        double start = measure_clock_ns();
        ol_composite *composite = compile(device, &d);
        double us = 1e-3 * (measure_clock_ns() - start);
        ol_composite_destroy(composite);
        *(i < 0 ? &first : &samples[i]) = us;
    }
    double median = measure_median(samples, COMPILE_REPEATS);
    printf("  \"compile_us\": {\"first\": %.2f, \"best\": %.2f, \"median\": %.2f}", first, samples[0], median);
    free(samples);
}

static void bench_dtype(ol_device *device, ol_dtype dtype, const struct options *options, int last) {
    struct data d = make_data(dtype);
    ol_composite *composite = compile(device, &d);
    const struct hand_level *hand = NULL;
    for (size_t i = 0; i < sizeof hand_levels / sizeof *hand_levels; i++) {
        if (strcmp(hand_levels[i].name, ol_device_level(device)) == 0) {
            hand = &hand_levels[i];
        }
    }
    for (int s = 0; s < N_SHAPES; s++) {
        struct run r = make_run(composite, &d, hand, token_counts[s]);
        contestant contestants[] = {
            { .name = "replay", .call = call_replay, .argument = &r },
            { .name = "composed", .call = call_composed, .argument = &r },
            { .name = "hand loop", .call = call_hand, .argument = &r },
        };
        int n = options->n_threads == 1 && hand ? 3 : 2;
        check(contestants, n, &r, &d);
        if (!measure(contestants, n, options->seconds)) {
            die("no memory for samples");
        }
        for (int i = 0; i < n; i++) {
            printf("    {\"dtype\": \"%s\", \"tokens\": %" PRId64 ", \"contestant\": \"%s\", \"best_ns\": %.2f, \"median_ns\": %.2f}%s\n",
                   ol_dtype_name(dtype), token_counts[s], contestants[i].name, contestants[i].best_ns, contestants[i].median_ns,
                   last && s == N_SHAPES - 1 && i == n - 1 ? "" : ",");
        }
        if (options->dump && s == N_SHAPES - 1) {
            dump(options->dump, &r);
        }
    }
    ol_composite_destroy(composite);
    free_data(&d);
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    struct options *options = state->input;
    switch (key) {
    case 't': options->n_threads = measure_parse_count(state, "--threads", argument, 0, 4096); return 0;
    case 's': options->seconds = measure_parse_seconds(state, "--seconds", argument); return 0;
    case 'd': options->dump = argument; return 0;
    case 'c': options->compile_only = 1; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv) {
    static const struct argp_option option_table[] = {
        { "threads", 't', "N", 0, "At most N threads; 1 (default) also keeps the process on one CPU, 0: one per CPU", 0 },
        { "seconds", 's', "S", 0, "About how long to time each shape and dtype (default 2)", 0 },
        { "compile-only", 'c', NULL, 0, "Time compiling only", 0 },
        { "dump", 'd', "DIR", 0, "Write the largest shape's inputs and outputs as raw files", 0 },
        { 0 },
    };
    static const struct argp argp = { .options = option_table, .parser = parse,
                                      .doc = "Times the gated-delta rates on [tokens, 32] and prints JSON." };
    struct options options = { .n_threads = 1, .seconds = 2 };
    argp_err_exit_status = 2;
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0) {
        return 2;
    }

    int cpu = options.n_threads == 1 ? measure_pin() : -1;
    ol_device *device;
    ol_error error;
    ol_cpu_options cpu_options = { .n_threads = options.n_threads };
    if (ol_device_cpu(&cpu_options, &device, &error) != OL_OK) {
        die("%s: %s", error.operation, error.description);
    }
    printf("{\n  \"version\": \"%s\", \"level\": \"%s\", \"threads\": %" PRId32 ", \"cpu\": %d, \"heads\": %d,\n", ol_version(),
           ol_device_level(device), options.n_threads, cpu, HEADS);
    time_compiling(device);
    if (!options.compile_only) {
        printf(",\n  \"rates\": [\n");
        bench_dtype(device, OL_FLOAT32, &options, 0);
        bench_dtype(device, OL_BFLOAT16, &options, 1);
        printf("  ]");
    }
    printf("\n}\n");
    ol_device_destroy(device);
    return fflush(stdout) == 0 ? 0 : 1;
}
