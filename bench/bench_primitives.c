/* Every primitive on its own: a one-node graph replayed on 4096 contiguous elements, one thread, for float32, float16 and
 * bfloat16 at each SIMD level this machine has, and astype between the three; for float32 beside other libraries' vector
 * functions on the same elements (functions.h), which take turns with it. Prints JSON; report.py makes the tables.
 * The figures include a replay's fixed cost, spread over 4096 elements. */
#include "functions.h"
#include "measure.h"

#include <onelaunch.h>

#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_ELEMENTS = 4096, MAX_OPERANDS = 3, MAX_LEVELS = 8, MAX_CONTESTANTS = 24 };
static const ol_dtype dtypes[] = { OL_FLOAT32, OL_FLOAT16, OL_BFLOAT16 };
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

/* What a graph of one node is: a primitive, or astype where the primitive is -1. */
struct subject {
    int32_t primitive;
    ol_dtype to;
};

static int build(ol_graph *graph, const ol_value *in, ol_value *out, void *user) {
    const struct subject *s = user;
    out[0] = s->primitive < 0 ? ol_astype(graph, in[0], s->to) : ol_apply(graph, s->primitive, in, ol_primitive_arity(s->primitive));
    return 0;
}

/* A normal deviate of twice the usual width, brought to where the function is defined: a NaN may take another path through the
 * hardware. */
static double argument_of(const char *name, double value) {
    static const char *const positive[] = { "sqrt", "rsqrt", "log", "log1p", "log2", "log10", "power", "arccosh" };
    static const char *const unit[] = { "arcsin", "arccos", "arctanh", "erfinv" };
    for (size_t i = 0; i < sizeof positive / sizeof *positive; i++) {
        if (strcmp(name, positive[i]) == 0) {
            return fabs(value) + (strcmp(name, "arccosh") == 0 ? 1.0 : 0.01);
        }
    }
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++) {
        if (strcmp(name, unit[i]) == 0) {
            return tanh(value / 2);
        }
    }
    return value;
}

/* `wide` brought to the dtype by the library itself. */
static void fill(ol_device *device, const float *wide, ol_dtype dtype, void *out) {
    struct subject subject = { -1, dtype };
    const ol_builder builder = { .build = build, .user = &subject, .n_inputs = 1, .n_outputs = 1 };
    ol_composite *composite;
    ol_tensor from = ol_tensor_contiguous((void *)(uintptr_t)wide, OL_FLOAT32, 1, (int64_t[]){ N_ELEMENTS });
    ol_tensor to = ol_tensor_contiguous(out, dtype, 1, (int64_t[]){ N_ELEMENTS });
    if (ol_compile(device, &builder, (ol_dtype[]){ OL_FLOAT32 }, &composite, NULL) != OL_OK ||
        ol_replay(composite, NULL, &from, &to, NULL) != OL_OK) {
        fputs("bench_primitives: astype failed\n", stderr);
        exit(1);
    }
    ol_composite_destroy(composite);
}

struct run {
    ol_composite *composite;
    ol_tensor inputs[MAX_OPERANDS], output;
};

static void call_replay(void *argument) {
    struct run *r = argument;
    ol_replay(r->composite, NULL, r->inputs, &r->output, NULL);
}

/* One loop of another library. */
struct peer_run {
    function_loop loop;
    const float *x, *y;
    float *out;
};

static void call_peer(void *argument) {
    struct peer_run *r = argument;
    r->loop(r->out, r->x, r->y, N_ELEMENTS);
}

static const function_peer *peers_of(const char *level) {
    static const function_peer none[] = { { NULL, NULL, NULL } };
#if defined(__x86_64__)
    if (strcmp(level, "avx2") == 0) {
        return functions_avx2;
    }
    if (strcmp(level, "avx512") == 0) {
        return functions_avx512;
    }
#endif
    return strcmp(level, "baseline") == 0 ? functions_baseline : none;
}

struct memory {
    _Alignas(64) float wide[MAX_OPERANDS][N_ELEMENTS], operand[MAX_OPERANDS][N_ELEMENTS], result[N_ELEMENTS];
};

/* Levels take turns, so that their figures compare. */
static void bench_one(ol_device *const *devices, int n_levels, struct subject subject, ol_dtype dtype, double seconds) {
    static struct memory memory;
    static int separator;
    const char *name = subject.primitive < 0 ? "astype" : ol_primitive_name(subject.primitive);
    int arity = subject.primitive < 0 ? 1 : ol_primitive_arity(subject.primitive);
    struct run runs[MAX_LEVELS];
    contestant contestants[MAX_CONTESTANTS];
    struct peer_run peer_runs[MAX_CONTESTANTS];
    const char *library[MAX_CONTESTANTS];
    ol_dtype input_dtypes[MAX_OPERANDS] = { dtype, dtype, dtype };
    const ol_builder builder = { .build = build, .user = &subject, .n_inputs = arity, .n_outputs = 1, .name = name };
    uint64_t seed = 1;

    if (strcmp(name, "where") == 0) {
        input_dtypes[0] = OL_BOOL;
    }
    for (int i = 0; i < arity; i++) {
        for (int e = 0; e < N_ELEMENTS; e++) {
            double value = 2.0 * measure_normal(&seed);
            memory.wide[i][e] = (float)(input_dtypes[i] == OL_BOOL ? value > 0 : i > 0 ? value : argument_of(name, value));
        }
        fill(devices[0], memory.wide[i], input_dtypes[i], memory.operand[i]);
    }
    for (int l = 0; l < n_levels; l++) {
        struct run *r = &runs[l];
        ol_error error;
        if (ol_compile(devices[l], &builder, input_dtypes, &r->composite, &error) != OL_OK) {
            fprintf(stderr, "bench_primitives: %s %s: %s\n", name, ol_dtype_name(dtype), error.description);
            exit(1);
        }
        for (int i = 0; i < arity; i++) {
            r->inputs[i] = ol_tensor_contiguous(memory.operand[i], input_dtypes[i], 1, (int64_t[]){ N_ELEMENTS });
        }
        r->output = ol_tensor_contiguous(memory.result, ol_composite_output_dtype(r->composite, 0), 1, (int64_t[]){ N_ELEMENTS });
        if (ol_replay(r->composite, NULL, r->inputs, &r->output, &error) != OL_OK) {
            fprintf(stderr, "bench_primitives: %s %s: %s\n", name, ol_dtype_name(dtype), error.description);
            exit(1);
        }
        contestants[l] = (contestant){ .name = ol_device_level(devices[l]), .call = call_replay, .argument = r };
    }
    int n_contestants = n_levels;
    for (int l = 0; l < n_levels && dtype == OL_FLOAT32; l++) {
        for (const function_peer *peer = peers_of(ol_device_level(devices[l])); peer->primitive && n_contestants < MAX_CONTESTANTS; peer++) {
            if (strcmp(peer->primitive, name) == 0) {
                struct peer_run *r = &peer_runs[n_contestants];
                *r = (struct peer_run){ peer->loop, memory.operand[0], memory.operand[1], memory.result };
                library[n_contestants] = peer->peer;
                contestants[n_contestants++] = (contestant){ .name = ol_device_level(devices[l]), .call = call_peer, .argument = r };
            }
        }
    }
    if (!measure(contestants, n_contestants, seconds * n_contestants / n_levels)) {
        fputs("bench_primitives: no memory for samples\n", stderr);
        exit(1);
    }
    for (int i = 0; i < n_contestants; i++) {
        printf("%s\n    {\"library\": \"%s\", \"primitive\": \"%s\", \"dtype\": \"%s\", \"result\": \"%s\", \"level\": \"%s\", "
               "\"best_ns\": %.1f, \"median_ns\": %.1f}",
               separator ? "," : "", i < n_levels ? "onelaunch" : library[i], name, ol_dtype_name(dtype), ol_dtype_name(runs[0].output.dtype),
               contestants[i].name, contestants[i].best_ns, contestants[i].median_ns);
        separator = 1;
    }
    for (int l = 0; l < n_levels; l++) {
        ol_composite_destroy(runs[l].composite);
    }
}

/* Those whose operands stay floats: integers' and booleans' primitives are not measured. */
static int takes(int32_t primitive, ol_dtype dtype) {
    ol_dtype result;
    return strncmp(ol_primitive_name(primitive), "logical_", 8) != 0 && ol_primitive_result(primitive, dtype, &result);
}

struct options {
    double seconds;
    const char *primitives;              /* names with commas between; NULL: all */
};

static int is_wanted(const struct options *options, const char *name) {
    size_t length = strlen(name);
    for (const char *at = options->primitives; at; at = strchr(at, ','), at += at != NULL) {
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == 0)) {
            return 1;
        }
    }
    return !options->primitives;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    struct options *options = state->input;
    switch (key) {
    case 's': options->seconds = measure_parse_seconds(state, "--seconds", argument); return 0;
    case 'p':
        options->primitives = argument;
        for (char *end = argument; *end; argument = end + (*end == ',')) {
            end = argument + strcspn(argument, ",");
            char *name = strndup(argument, (size_t)(end - argument));
            if (name && strcmp(name, "astype") != 0 && ol_primitive_find(name) < 0) {
                argp_error(state, "--primitive: there is no '%s'", name);
            }
            free(name);
        }
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv) {
    static const struct argp_option option_table[] = {
        { "primitive", 'p', "NAME,...", 0, "Only these, and astype", 0 },
        { "seconds", 's', "S", 0, "About how long to time each primitive and dtype (default 0.1)", 0 },
        { 0 },
    };
    static const struct argp argp = { .options = option_table, .parser = parse,
                                      .doc = "Times every primitive on 4096 elements at each SIMD level and prints JSON." };
    struct options options = { .seconds = 0.1 };
    argp_err_exit_status = 2;
    if (argp_parse(&argp, argc, argv, 0, NULL, &options) != 0) {
        return 2;
    }

    measure_pin();
    ol_device *devices[MAX_LEVELS];
    int n_levels = 0;
    for (int level = OL_CPU_BASELINE; ol_cpu_level_name((ol_cpu_level)level); level++) {
        ol_cpu_options cpu = { .level = (ol_cpu_level)level, .n_threads = 1 };
        if (ol_cpu_level_available((ol_cpu_level)level) && n_levels < MAX_LEVELS && ol_device_cpu(&cpu, &devices[n_levels], NULL) == OL_OK) {
            n_levels++;
        }
    }
    if (n_levels == 0) {
        fputs("bench_primitives: no SIMD level is available\n", stderr);
        return 1;
    }
    printf("{\n  \"version\": \"%s\", \"elements\": %d,\n  \"primitives\": [", ol_version(), N_ELEMENTS);
    for (int32_t p = 0; p < ol_primitive_count(); p++) {
        for (int d = 0; d < N_DTYPES; d++) {
            if (is_wanted(&options, ol_primitive_name(p)) && takes(p, dtypes[d])) {
                bench_one(devices, n_levels, (struct subject){ p, dtypes[d] }, dtypes[d], options.seconds);
            }
        }
    }
    for (int from = 0; from < N_DTYPES; from++) {
        for (int to = 0; to < N_DTYPES; to++) {
            if (from != to && is_wanted(&options, "astype")) {
                bench_one(devices, n_levels, (struct subject){ -1, dtypes[to] }, dtypes[from], options.seconds);
            }
        }
    }
    printf("\n  ]\n}\n");
    for (int l = 0; l < n_levels; l++) {
        ol_device_destroy(devices[l]);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
