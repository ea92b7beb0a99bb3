/* What mlx-c's interface costs beside onelaunch's own: the gated-delta rates on [1, T, 32], bfloat16, the same graph in one process.
 * Prints JSON: nanoseconds per call, best and median batch, and the median as a multiple of ol_replay's.
 *
 *     ol_replay        tensors ready, the caller's outputs
 *     apply            the input vector ready; the output vector made and freed
 *     apply and read   besides, both outputs taken out, evaluated, their data's address asked for, freed
 *     whole step       besides, the four inputs copied into new arrays and the input vector made, all freed: a decode step of a client
 *                      that keeps nothing
 *     whole step, managed  the same over the caller's memory
 *
 * Before anything is timed, all must give the same bits. The process stays on one CPU. */
#include "measure.h"

#include "mlx/c/mlx.h"

#include <onelaunch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 32, MAX_TOKENS = 4096, N_INPUTS = 4, N_OUTPUTS = 2 };
static const int token_counts[] = { 1, 4, 16, 64, 4096 };

typedef struct run {
    int tokens;
    ol_composite *composite;
    ol_tensor in[N_INPUTS], out[N_OUTPUTS];
    mlx_closure closure;
    mlx_array arrays[N_INPUTS];
    mlx_vector_array inputs;
    const void *read[N_OUTPUTS];         /* where the last call's outputs are; copied by keep, if that is not NULL */
    void *keep[N_OUTPUTS];
} run;

static const mlx_dtype mlx_dtypes[N_INPUTS] = { MLX_BFLOAT16, MLX_BFLOAT16, MLX_FLOAT32, MLX_BFLOAT16 };
static const ol_dtype ol_dtypes[N_INPUTS] = { OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16 };
static const size_t out_bytes[N_OUTPUTS] = { 2, 4 };

static void must(int code, const char *what) {
    if (code != 0) {
        fprintf(stderr, "bench_mlxc: %s failed\n", what);
        exit(1);
    }
}

/* ---- The graph, twice ---- */

static int build(ol_graph *g, const ol_value *in, ol_value *out, void *user) {
    (void)user;
    ol_value x = ol_add(g, in[1], in[3]);
    ol_value s = ol_logaddexp(g, x, ol_constant(g, ol_value_dtype(g, x), 0.0));
    out[0] = ol_sigmoid(g, in[0]);
    out[1] = ol_exp(g, ol_negative(g, ol_multiply(g, ol_exp(g, ol_astype(g, in[2], OL_FLOAT32)), s)));
    return 0;
}

static int trace(mlx_vector_array *res, const mlx_vector_array input) {
    mlx_stream s = mlx_default_gpu_stream_new();
    mlx_array in[N_INPUTS] = { { 0 } }, out[N_OUTPUTS] = { { 0 } }, x = mlx_array_new(), t = mlx_array_new();
    int code = 0;
    for (size_t i = 0; i < N_INPUTS; i++) {
        code = code || mlx_vector_array_get(&in[i], input, i);
    }
    code = code || mlx_sigmoid(&out[0], in[0], s);
    code = code || mlx_add(&x, in[1], in[3], s) || mlx_zeros(&t, NULL, 0, mlx_array_dtype(x), s) || mlx_logaddexp(&x, x, t, s);
    code = code || mlx_astype(&t, in[2], MLX_FLOAT32, s) || mlx_exp(&t, t, s) || mlx_multiply(&x, t, x, s) || mlx_negative(&x, x, s);
    code = code || mlx_exp(&out[1], x, s) || mlx_vector_array_set_data(res, out, N_OUTPUTS);
    for (int i = 0; i < N_INPUTS; i++) {
        mlx_array_free(in[i]);
    }
    mlx_array_free(out[0]);
    mlx_array_free(out[1]);
    mlx_array_free(x);
    mlx_array_free(t);
    mlx_stream_free(s);
    return code;
}

/* ---- Contestants ---- */

static void keep(run *r) {
    for (int o = 0; o < N_OUTPUTS; o++) {
        if (r->keep[o]) {
            memcpy(r->keep[o], r->read[o], (size_t)(r->tokens * HEADS) * out_bytes[o]);
        }
    }
}

static void call_replay(void *argument) {
    run *r = argument;
    ol_replay(r->composite, NULL, r->in, r->out, NULL);
    r->read[0] = r->out[0].data;
    r->read[1] = r->out[1].data;
    keep(r);
}

static void read_outputs(run *r, mlx_vector_array outputs) {
    mlx_array beta = { 0 }, decay = { 0 };
    mlx_vector_array_get(&beta, outputs, 0);
    mlx_vector_array_get(&decay, outputs, 1);
    mlx_array_eval(beta);
    mlx_array_eval(decay);
    r->read[0] = mlx_array_data_bfloat16(beta);
    r->read[1] = mlx_array_data_float32(decay);
    keep(r);
    mlx_array_free(beta);
    mlx_array_free(decay);
}

static void call_apply(void *argument) {
    run *r = argument;
    mlx_vector_array outputs = { 0 };
    mlx_closure_apply(&outputs, r->closure, r->inputs);
    if (r->keep[0]) {
        read_outputs(r, outputs);
    }
    mlx_vector_array_free(outputs);
}

static void call_apply_and_read(void *argument) {
    run *r = argument;
    mlx_vector_array outputs = { 0 };
    mlx_closure_apply(&outputs, r->closure, r->inputs);
    read_outputs(r, outputs);
    mlx_vector_array_free(outputs);
}

static void whole_step(run *r, int managed) {
    const int shape[3] = { 1, r->tokens, HEADS };
    mlx_array arrays[N_INPUTS];
    mlx_vector_array outputs = { 0 };
    for (int i = 0; i < N_INPUTS; i++) {
        int rank = i < 2 ? 3 : 1;
        arrays[i] = managed ? mlx_array_new_data_managed(r->in[i].data, shape + 3 - rank, rank, mlx_dtypes[i], NULL)
                            : mlx_array_new_data(r->in[i].data, shape + 3 - rank, rank, mlx_dtypes[i]);
    }
    mlx_vector_array inputs = mlx_vector_array_new_data(arrays, N_INPUTS);
    mlx_closure_apply(&outputs, r->closure, inputs);
    read_outputs(r, outputs);
    mlx_vector_array_free(outputs);
    mlx_vector_array_free(inputs);
    for (int i = 0; i < N_INPUTS; i++) {
        mlx_array_free(arrays[i]);
    }
}

static void call_whole_step(void *argument) {
    whole_step(argument, 0);
}

static void call_whole_step_managed(void *argument) {
    whole_step(argument, 1);
}

/* ---- The benchmark ---- */

static void fill(void *data, mlx_dtype dtype, size_t n, double scale) {
    uint64_t seed = 1;
    for (size_t i = 0; i < n; i++) {
        float x = (float)(scale * measure_normal(&seed));
        if (dtype == MLX_FLOAT32) {
            ((float *)data)[i] = x;
        } else {
            ((uint16_t *)data)[i] = measure_bfloat16(x);
        }
    }
}

static void check(const contestant *contestants, int n, run *r) {
    void *first[N_OUTPUTS], *memory[N_OUTPUTS];
    for (int o = 0; o < N_OUTPUTS; o++) {
        must(!(first[o] = malloc(MAX_TOKENS * HEADS * 4)) || !(memory[o] = malloc(MAX_TOKENS * HEADS * 4)), "malloc");
    }
    for (int i = 0; i < n; i++) {
        memcpy(r->keep, i ? memory : first, sizeof memory);
        contestants[i].call(r);
        for (int o = 0; o < N_OUTPUTS; o++) {
            must(memcmp(first[o], r->keep[o], (size_t)(r->tokens * HEADS) * out_bytes[o]) != 0, contestants[i].name);
        }
    }
    memset(r->keep, 0, sizeof r->keep);
    for (int o = 0; o < N_OUTPUTS; o++) {
        free(first[o]);
        free(memory[o]);
    }
}

static void bench(ol_composite *composite, mlx_closure closure, void *const *data, int tokens, double seconds, int last) {
    run r = { .tokens = tokens, .composite = composite, .closure = closure };
    const int64_t shape[3] = { 1, tokens, HEADS };
    const int dims[3] = { 1, tokens, HEADS };
    for (int i = 0; i < N_INPUTS; i++) {
        int rank = i < 2 ? 3 : 1;
        r.in[i] = ol_tensor_contiguous(data[i], ol_dtypes[i], rank, shape + 3 - rank);
        r.arrays[i] = mlx_array_new_data(data[i], dims + 3 - rank, rank, mlx_dtypes[i]);
    }
    for (int o = 0; o < N_OUTPUTS; o++) {
        r.out[o] = ol_tensor_contiguous(data[N_INPUTS + o], ol_composite_output_dtype(composite, o), 3, shape);
    }
    r.inputs = mlx_vector_array_new_data(r.arrays, N_INPUTS);
    contestant contestants[] = {
        { .name = "ol_replay", .call = call_replay, .argument = &r },
        { .name = "apply", .call = call_apply, .argument = &r },
        { .name = "apply and read", .call = call_apply_and_read, .argument = &r },
        { .name = "whole step", .call = call_whole_step, .argument = &r },
        { .name = "whole step, managed", .call = call_whole_step_managed, .argument = &r },
    };
    int n = (int)(sizeof contestants / sizeof *contestants);
    check(contestants, n, &r);
    must(!measure(contestants, n, seconds), "measuring");
    for (int i = 0; i < n; i++) {
        printf("    {\"tokens\": %d, \"contestant\": \"%s\", \"best_ns\": %.1f, \"median_ns\": %.1f, \"times_replay\": %.2f}%s\n", tokens,
               contestants[i].name, contestants[i].best_ns, contestants[i].median_ns, contestants[i].median_ns / contestants[0].median_ns,
               last && i == n - 1 ? "" : ",");
    }
    mlx_vector_array_free(r.inputs);
    for (int i = 0; i < N_INPUTS; i++) {
        mlx_array_free(r.arrays[i]);
    }
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 3;
    if (argc > 2 || !(seconds > 0)) {
        fprintf(stderr, "usage: bench_mlxc [SECONDS]      for each token count (default 3)\n");
        return 2;
    }
    measure_pin();
    ol_device *device;
    ol_composite *composite;
    ol_builder builder = { .build = build, .n_inputs = N_INPUTS, .n_outputs = N_OUTPUTS, .name = "rates" };
    must(ol_device_cpu(&(ol_cpu_options){ .n_threads = 1 }, &device, NULL), "ol_device_cpu");
    must(ol_compile(device, &builder, ol_dtypes, &composite, NULL), "ol_compile");
    mlx_closure plain = mlx_closure_new_func(trace), closure = mlx_closure_new();
    must(mlx_compile(&closure, plain, true), "mlx_compile");
    void *data[N_INPUTS + N_OUTPUTS];
    for (int i = 0; i < N_INPUTS + N_OUTPUTS; i++) {
        must(!(data[i] = aligned_alloc(64, MAX_TOKENS * HEADS * 4)), "malloc");
        if (i < N_INPUTS) {
            fill(data[i], mlx_dtypes[i], i < 2 ? MAX_TOKENS * HEADS : HEADS, i < 2 ? 2 : 1);
        }
    }
    printf("{\n  \"level\": \"%s\",\n  \"results\": [\n", ol_device_level(device));
    for (size_t i = 0; i < sizeof token_counts / sizeof *token_counts; i++) {
        bench(composite, closure, data, token_counts[i], seconds, i + 1 == sizeof token_counts / sizeof *token_counts);
    }
    printf("  ]\n}\n");
    for (int i = 0; i < N_INPUTS + N_OUTPUTS; i++) {
        free(data[i]);
    }
    mlx_closure_free(closure);
    mlx_closure_free(plain);
    ol_composite_destroy(composite);
    ol_device_destroy(device);
    return 0;
}
