/* A gated-delta layer's step beside a copy of its states. Prints JSON.
 *
 * A step reads and writes each state once, and nothing else of note, so what it could cost at best is what a copy of as many bytes
 * costs. Both walk over the states of several layers in turn, as a model does, so that a state is not in the nearest caches when its turn
 * comes; with --layers 1 it is. Both use the same threads: those of one pool, which the device gets as its parallel_for. */
#include "measure.h"

#include <onelaunch_gated_delta.h>

#include <argp.h>
#include <inttypes.h>
#include <pthreadpool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct options {
    int n_threads, n_layers, key_heads, value_heads, key_dim, value_dim, batch;
    double seconds;                      /* per row */
};

struct run {
    const struct options *options;
    pthreadpool_t pool;
    ol_gated_delta *layer;
    ol_gated_delta_arguments arguments;
    char *states, *copies;
    size_t state_bytes;                  /* of a layer's, all sequences */
    int next;                            /* layer */
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("bench_gated_delta: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* On huge pages, as large allocations of engines are. */
static void *take(size_t n_bytes) {
    size_t huge = (size_t)2 << 20, rounded = (n_bytes + huge - 1) & ~(huge - 1);
    void *memory = aligned_alloc(huge, rounded);
    if (!memory) {
        die("no memory for %zu bytes", n_bytes);
    }
    madvise(memory, rounded, MADV_HUGEPAGE);
    memset(memory, 0, rounded);
    return memory;
}

static int next_layer(struct run *r) {
    r->next = (r->next + 1) % r->options->n_layers;
    return r->next;
}

static void call_step(void *argument) {
    struct run *r = argument;
    ol_error error;
    r->arguments.state.data = r->states + (size_t)next_layer(r) * r->state_bytes;
    if (ol_gated_delta_step(r->layer, NULL, &r->arguments, &error) != OL_OK) {
        die("%s: %s", error.operation, error.description);
    }
}

enum { PIECES_PER_THREAD = 4 };          /* as a step has tasks */

struct piece {
    char *to, *from;
    size_t n_bytes;
};

static void copy_piece(void *argument, size_t index) {
    const struct piece *p = argument;
    memcpy(p->to + index * p->n_bytes, p->from + index * p->n_bytes, p->n_bytes);
}

static void call_copy(void *argument) {
    struct run *r = argument;
    size_t at = (size_t)next_layer(r) * r->state_bytes, n = r->options->n_threads > 1 ? (size_t)(r->options->n_threads * PIECES_PER_THREAD) : 1;
    struct piece piece = { r->copies + at, r->states + at, r->state_bytes / n };
    if (n == 1) {
        copy_piece(&piece, 0);
    } else {
        pthreadpool_parallelize_1d(r->pool, copy_piece, &piece, n, 0);
    }
}

static void parallel_for(void *pool, size_t n_tasks, ol_task task, void *argument) {
    pthreadpool_parallelize_1d(pool, task, argument, n_tasks, 0);
}

static ol_tensor tensor(ol_dtype dtype, double mean, double deviation, int32_t rank, const int64_t *shape, uint64_t *seed) {
    size_t n = 1;
    for (int32_t d = 0; d < rank; d++) {
        n *= (size_t)shape[d];
    }
    ol_tensor t = ol_tensor_contiguous(take(n * ol_dtype_size(dtype)), dtype, rank, shape);
    for (size_t i = 0; i < n; i++) {
        float x = (float)(mean + deviation * measure_normal(seed));
        if (dtype == OL_FLOAT32) {
            ((float *)t.data)[i] = x;
        } else {
            ((uint16_t *)t.data)[i] = measure_bfloat16(x);
        }
    }
    return t;
}

static void bench(ol_device *device, pthreadpool_t pool, const struct options *o, ol_dtype state, ol_delta_layout layout, int64_t n_tokens, int last) {
    uint64_t seed = 1;
    int64_t n = o->batch, tokens = n * n_tokens, HK = o->key_heads, HV = o->value_heads, K = o->key_dim, V = o->value_dim;
    ol_gated_delta_options options = { .key_heads = o->key_heads, .value_heads = o->value_heads, .key_dim = o->key_dim, .value_dim = o->value_dim,
                                       .activation_dtype = OL_BFLOAT16, .state_dtype = state, .state_layout = layout, .norm = OL_DELTA_NORM_RSQRT };
    struct run r = { .options = o, .pool = pool, .state_bytes = (size_t)(n * HV * V * K) * ol_dtype_size(state) };
    ol_error error;
    if (ol_gated_delta_create(device, &options, &r.layer, &error) != OL_OK) {
        die("%s: %s", error.operation, error.description);
    }
    ol_gated_delta_arguments *a = &r.arguments;
    a->query = tensor(OL_BFLOAT16, 0, 1, 3, (int64_t[]){ tokens, HK, K }, &seed);
    a->key = tensor(OL_BFLOAT16, 0, 1, 3, (int64_t[]){ tokens, HK, K }, &seed);
    a->value = tensor(OL_BFLOAT16, 0, 1, 3, (int64_t[]){ tokens, HV, V }, &seed);
    a->update = tensor(OL_BFLOAT16, 0, 1, 2, (int64_t[]){ tokens, HV }, &seed);
    a->decay = tensor(OL_BFLOAT16, 0, 1, 2, (int64_t[]){ tokens, HV }, &seed);
    a->decay_rate = tensor(OL_FLOAT32, 0, 0.5, 1, &HV, &seed);
    a->decay_bias = tensor(OL_BFLOAT16, -2, 1, 1, &HV, &seed);
    a->output = tensor(OL_BFLOAT16, 0, 0, 3, (int64_t[]){ tokens, HV, V }, &seed);
    a->state = ol_tensor_contiguous(NULL, state, 4, (int64_t[]){ n, HV, layout == OL_DELTA_KEY_VALUE ? K : V, layout == OL_DELTA_KEY_VALUE ? V : K });
    r.states = take(r.state_bytes * (size_t)o->n_layers);
    r.copies = take(r.state_bytes * (size_t)o->n_layers);
    contestant contestants[] = { { .name = "step", .call = call_step, .argument = &r }, { .name = "copy", .call = call_copy, .argument = &r } };
    if (!measure(contestants, 2, o->seconds)) {
        die("no memory for samples");
    }
    double bytes = 2.0 * (double)r.state_bytes;
    printf("    {\"state\": \"%s\", \"layout\": \"%s\", \"tokens\": %" PRId64 ", \"step_best_us\": %.2f, \"step_median_us\": %.2f, \"copy_best_us\": %.2f,"
           " \"copy_median_us\": %.2f, \"step_gb_s\": %.2f, \"copy_gb_s\": %.2f, \"of_copy\": %.3f}%s\n",
           ol_dtype_name(state), layout == OL_DELTA_KEY_VALUE ? "KV" : "VK", n_tokens, contestants[0].best_ns / 1e3, contestants[0].median_ns / 1e3,
           contestants[1].best_ns / 1e3, contestants[1].median_ns / 1e3, bytes / contestants[0].median_ns, bytes / contestants[1].median_ns,
           contestants[1].median_ns / contestants[0].median_ns, last ? "" : ",");
    fflush(stdout);
    ol_tensor *tensors[] = { &a->query, &a->key, &a->value, &a->update, &a->decay, &a->decay_rate, &a->decay_bias, &a->output };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        free(tensors[i]->data);
    }
    free(r.states);
    free(r.copies);
    ol_gated_delta_destroy(r.layer);
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    struct options *o = state->input;
    switch (key) {
    case 't': o->n_threads = measure_parse_count(state, "--threads", argument, 1, 4096); return 0;
    case 'l': o->n_layers = measure_parse_count(state, "--layers", argument, 1, 1024); return 0;
    case 'k': o->key_heads = measure_parse_count(state, "--key-heads", argument, 1, 1024); return 0;
    case 'v': o->value_heads = measure_parse_count(state, "--value-heads", argument, 1, 1024); return 0;
    case 'K': o->key_dim = measure_parse_count(state, "--key-dim", argument, 1, 256); return 0;
    case 'V': o->value_dim = measure_parse_count(state, "--value-dim", argument, 1, 256); return 0;
    case 'b': o->batch = measure_parse_count(state, "--batch", argument, 1, 4096); return 0;
    case 's': o->seconds = measure_parse_seconds(state, "--seconds", argument); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv) {
    static const struct argp_option option_table[] = {
        { "threads", 't', "N", 0, "Threads; 1 (default) also keeps the process on one CPU", 0 },
        { "layers", 'l', "N", 0, "Layers whose states take turns (default 24, as Qwen3.5-9B has)", 0 },
        { "key-heads", 'k', "N", 0, "default 16", 0 },
        { "value-heads", 'v', "N", 0, "default 32", 0 },
        { "key-dim", 'K', "N", 0, "default 128", 0 },
        { "value-dim", 'V', "N", 0, "default 128", 0 },
        { "batch", 'b', "N", 0, "Sequences (default 1)", 0 },
        { "seconds", 's', "S", 0, "About how long to time each row (default 2)", 0 },
        { 0 },
    };
    static const struct argp argp = { .options = option_table, .parser = parse, .doc = "Times a gated-delta layer's step beside a copy of its states and prints JSON." };
    struct options o = { 1, 24, 16, 32, 128, 128, 1, 2 };
    argp_err_exit_status = 2;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return 2;
    }
    int cpu = o.n_threads == 1 ? measure_pin() : -1;
    pthreadpool_t pool = pthreadpool_create((size_t)o.n_threads);
    ol_cpu_options cpu_options = { .n_threads = o.n_threads, .parallel_for = o.n_threads > 1 ? parallel_for : NULL, .parallel_user = pool };
    ol_device *device;
    ol_error error;
    if (!pool || ol_device_cpu(&cpu_options, &device, &error) != OL_OK) {
        die("no device");
    }
    printf("{\n  \"version\": \"%s\", \"level\": \"%s\", \"threads\": %d, \"cpu\": %d, \"layers\": %d, \"batch\": %d,\n  \"key_heads\": %d, \"value_heads\": %d, "
           "\"key_dim\": %d, \"value_dim\": %d,\n  \"rows\": [\n", ol_version(), ol_device_level(device), o.n_threads, cpu, o.n_layers, o.batch, o.key_heads,
           o.value_heads, o.key_dim, o.value_dim);
    static const struct { ol_dtype state; ol_delta_layout layout; int64_t n_tokens; } rows[] = {
        { OL_FLOAT32, OL_DELTA_VALUE_KEY, 1 }, { OL_FLOAT32, OL_DELTA_VALUE_KEY, 4 }, { OL_BFLOAT16, OL_DELTA_VALUE_KEY, 1 }, { OL_BFLOAT16, OL_DELTA_VALUE_KEY, 4 },
        { OL_FLOAT32, OL_DELTA_KEY_VALUE, 1 }, { OL_FLOAT32, OL_DELTA_KEY_VALUE, 4 }, { OL_BFLOAT16, OL_DELTA_KEY_VALUE, 1 },
    };
    int n = (int)(sizeof rows / sizeof *rows);
    for (int i = 0; i < n; i++) {
        bench(device, pool, &o, rows[i].state, rows[i].layout, rows[i].n_tokens, i == n - 1);
    }
    printf("  ]\n}\n");
    ol_device_destroy(device);
    pthreadpool_destroy(pool);
    return fflush(stdout) == 0 ? 0 : 1;
}
