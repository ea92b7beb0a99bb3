/* The seed composite as a client of mlx-c writes it: update rates and decay factors of a gated-delta layer, two outputs.
 *
 *     beta  = sigmoid(b)
 *     decay = exp(-(exp(float32(A_log)) * logaddexp(a + dt_bias, 0)))
 *
 * Inputs: update logits b, pre-activations a, log rate A_log, bias dt_bias. */
#ifndef MLXC_SEED_H
#define MLXC_SEED_H

#include "client.h"

enum { SEED_B, SEED_A, SEED_A_LOG, SEED_DT_BIAS, SEED_INPUTS, SEED_OUTPUTS = 2, SEED_HEADS = 8, SEED_TOKENS = 3 };

/* b and a of [1, tokens, SEED_HEADS], A_log of [SEED_HEADS], dt_bias of [heads_of_bias], which does not broadcast with the others where that is
 * neither SEED_HEADS nor 1. */
static inline void seed_inputs_of(mlx_array in[SEED_INPUTS], int tokens, int heads_of_bias)
{
    const int shape[3] = { 1, tokens, SEED_HEADS }, heads[1] = { SEED_HEADS }, bias[1] = { heads_of_bias };
    uint64_t random = client_seed;
    in[SEED_B] = array_random(&random, MLX_BFLOAT16, 3, shape);
    in[SEED_A] = array_random(&random, MLX_BFLOAT16, 3, shape);
    in[SEED_A_LOG] = array_random(&random, MLX_FLOAT32, 1, heads);
    in[SEED_DT_BIAS] = array_random(&random, MLX_BFLOAT16, 1, bias);
}

static inline void seed_inputs(mlx_array in[SEED_INPUTS])
{
    seed_inputs_of(in, SEED_TOKENS, SEED_HEADS);
}

/* The streams are opened inside, and every handle is freed, as clients do. */
static inline int seed_decay(mlx_array *res, mlx_array a, mlx_array a_log, mlx_array dt_bias)
{
    mlx_stream s = mlx_default_gpu_stream_new();
    mlx_array x = mlx_array_new(), zero = mlx_array_new(), wide = mlx_array_new();
    int code = mlx_add(&x, a, dt_bias, s);
    code = code || mlx_zeros(&zero, NULL, 0, mlx_array_dtype(x), s);
    code = code || mlx_logaddexp(&x, x, zero, s);
    code = code || mlx_astype(&wide, a_log, MLX_FLOAT32, s);
    code = code || mlx_exp(&wide, wide, s);
    code = code || mlx_multiply(&x, wide, x, s);
    code = code || mlx_negative(&x, x, s);
    code = code || mlx_exp(res, x, s);
    mlx_array_free(x);
    mlx_array_free(zero);
    mlx_array_free(wide);
    mlx_stream_free(s);
    return code;
}

static inline int seed_rates_of(mlx_vector_array *res, const mlx_vector_array input, int *n_calls)
{
    mlx_array in[SEED_INPUTS] = { { 0 } }, out[2] = { { 0 } };
    mlx_stream s = mlx_default_gpu_stream_new();
    int code = 0;
    if (n_calls)
        __atomic_fetch_add(n_calls, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < SEED_INPUTS; i++) {
        in[i] = mlx_array_new();
        code = code || mlx_vector_array_get(&in[i], input, (size_t)i);
    }
    out[0] = mlx_array_new();
    out[1] = mlx_array_new();
    code = code || mlx_sigmoid(&out[0], in[SEED_B], s);
    code = code || seed_decay(&out[1], in[SEED_A], in[SEED_A_LOG], in[SEED_DT_BIAS]);
    code = code || mlx_vector_array_set_data(res, out, 2);
    for (int i = 0; i < SEED_INPUTS; i++)
        mlx_array_free(in[i]);
    mlx_array_free(out[0]);
    mlx_array_free(out[1]);
    mlx_stream_free(s);
    return code;
}

/* Closures' functions; `payload` counts calls, where it is not NULL. */
static inline int seed_rates(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    return seed_rates_of(res, input, payload);
}

/* An apply of the rates gives what is right, in one launch. */
static inline void seed_check(mlx_closure rates, int tokens)
{
    mlx_array in[SEED_INPUTS], out[SEED_OUTPUTS], eager = mlx_array_new();
    seed_inputs_of(in, tokens, SEED_HEADS);
    long before = launches();
    OK(apply(rates, SEED_INPUTS, in, SEED_OUTPUTS, out));
    if (before >= 0)
        assert_int_equal(launches() - before, 1);
    OK(mlx_sigmoid(&eager, in[SEED_B], stream));
    array_equal_bits(out[0], eager, "update rates");
    OK(seed_decay(&eager, in[SEED_A], in[SEED_A_LOG], in[SEED_DT_BIAS]));
    array_equal_bits(out[1], eager, "decay factors");
    OK(mlx_array_free(eager));
    free_all(SEED_INPUTS, in);
    free_all(SEED_OUTPUTS, out);
}

/* So does a new closure's: what went before has left nothing behind. */
static inline void seed_works(void)
{
    mlx_closure rates = compiled(seed_rates, NULL, true);
    seed_check(rates, SEED_TOKENS);
    OK(mlx_closure_free(rates));
}

static inline int seed_decay_alone(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array in[3], out = mlx_array_new();
    int code = 0;
    (void)payload;
    for (int i = 0; i < 3; i++) {
        in[i] = mlx_array_new();
        code = code || mlx_vector_array_get(&in[i], input, (size_t)i);
    }
    code = code || seed_decay(&out, in[0], in[1], in[2]);
    code = code || mlx_vector_array_set_value(res, out);
    for (int i = 0; i < 3; i++)
        mlx_array_free(in[i]);
    mlx_array_free(out);
    return code;
}

#endif
