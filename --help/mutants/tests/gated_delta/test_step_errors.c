/* Every refusal of a layer's options and of a step's arguments: the status, the operation, what was given and what was expected; and nothing
 * written, not even by what the indices alone make wrong. */
#include "step_case.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { HK = 2, R = 2, HV = 4, K = 20, V = 12, N = 3, T = 2 };

static step_case usual(void)
{
    uint64_t random = harness_seed;
    step_case c;
    step_usual(&c, HK, R, K, V, N, T, &random);
    return c;
}

/* ---- Options ---- */

static void refuses_options(const ol_gated_delta_options *o, ol_status status, const char *text)
{
    ol_error error;
    ol_gated_delta *layer = (ol_gated_delta *)&error;
    assert_fails(ol_gated_delta_create(level_device(0), o, &layer, &error), &error, status, "gated_delta_create", text);
    assert_ptr_equal(layer, &error);                             /* untouched */
    assert_int_equal(ol_gated_delta_create(level_device(0), o, &layer, NULL), status);
}

#define REFUSES_OPTIONS(change, status, text)                                                                                 \
    do {                                                                                                                      \
        ol_gated_delta_options o = c.options;                                                                                 \
        change;                                                                                                               \
        refuses_options(&o, status, text);                                                                                    \
    } while (0)

static void test_options(void **state)
{
    (void)state;
    step_case c = usual();
    ol_gated_delta *layer;
    ol_error error;
    assert_fails(ol_gated_delta_create(NULL, &c.options, &layer, &error), &error, OL_ERROR_ARGUMENT, "gated_delta_create", "the device is NULL");
    assert_fails(ol_gated_delta_create(level_device(0), NULL, &layer, &error), &error, OL_ERROR_ARGUMENT, "gated_delta_create", "the options are NULL");
    assert_fails(ol_gated_delta_create(level_device(0), &c.options, NULL, &error), &error, OL_ERROR_ARGUMENT, "gated_delta_create", "the place for the layer");
    REFUSES_OPTIONS(o.key_heads = 0, OL_ERROR_ARGUMENT, "key_heads is 0; expected 1 or more");
    REFUSES_OPTIONS(o.key_heads = -3, OL_ERROR_ARGUMENT, "key_heads is -3");
    REFUSES_OPTIONS(o.value_heads = 5, OL_ERROR_ARGUMENT, "value_heads is 5; expected a multiple of key_heads, 2");
    REFUSES_OPTIONS(o.value_heads = 0, OL_ERROR_ARGUMENT, "value_heads is 0");
    REFUSES_OPTIONS(o.key_dim = 0, OL_ERROR_ARGUMENT, "key_dim is 0; expected 1 to 256");
    REFUSES_OPTIONS(o.key_dim = 257, OL_ERROR_ARGUMENT, "key_dim is 257");
    REFUSES_OPTIONS(o.value_dim = 257, OL_ERROR_ARGUMENT, "value_dim is 257");
    REFUSES_OPTIONS(o.head_map = (ol_head_map)2, OL_ERROR_ARGUMENT, "head_map is 2");
    REFUSES_OPTIONS(o.state_layout = (ol_delta_layout)2, OL_ERROR_ARGUMENT, "state_layout is 2");
    REFUSES_OPTIONS(o.norm = (ol_delta_norm)5, OL_ERROR_ARGUMENT, "norm is 5");
    REFUSES_OPTIONS(o.decay = (ol_delta_decay)3, OL_ERROR_ARGUMENT, "decay is 3");
    REFUSES_OPTIONS(o.padding = (ol_delta_padding)3, OL_ERROR_ARGUMENT, "padding is 3");
    REFUSES_OPTIONS(o.activation_dtype = (ol_dtype)0, OL_ERROR_DTYPE, "activation_dtype is 0; expected float32, float16 or bfloat16");
    REFUSES_OPTIONS(o.activation_dtype = OL_INT32, OL_ERROR_DTYPE, "activation_dtype is int32");
    REFUSES_OPTIONS(o.output_dtype = (ol_dtype)77, OL_ERROR_DTYPE, "output_dtype is no dtype; expected 0, float32, float16 or bfloat16");
    REFUSES_OPTIONS(o.state_dtype = OL_INT8, OL_ERROR_DTYPE, "state_dtype is int8");
    REFUSES_OPTIONS(o.update_dtype = OL_INT8, OL_ERROR_DTYPE, "update_dtype is int8");
    REFUSES_OPTIONS(o.decay_dtype = OL_INT8, OL_ERROR_DTYPE, "decay_dtype is int8");
    REFUSES_OPTIONS(o.decay_rate_dtype = OL_INT8, OL_ERROR_DTYPE, "decay_rate_dtype is int8");
    REFUSES_OPTIONS(o.decay_bias_dtype = OL_INT8, OL_ERROR_DTYPE, "decay_bias_dtype is int8");
    REFUSES_OPTIONS(o.epsilon = -1e-6, OL_ERROR_ARGUMENT, "epsilon is -1e-06; expected a float32, 0 or more");
    REFUSES_OPTIONS(o.epsilon = (double)INFINITY, OL_ERROR_ARGUMENT, "epsilon is inf");
    REFUSES_OPTIONS(o.epsilon = (double)NAN, OL_ERROR_ARGUMENT, "epsilon is nan");
    REFUSES_OPTIONS(o.epsilon = 1e39, OL_ERROR_ARGUMENT, "epsilon is 1e+39");
    REFUSES_OPTIONS(o.scale = (double)NAN, OL_ERROR_ARGUMENT, "scale is nan");
    REFUSES_OPTIONS(o.scale = -1e39, OL_ERROR_ARGUMENT, "scale is -1e+39");
    REFUSES_OPTIONS(o.gates.output = OL_GATE_LOG_DECAY, OL_ERROR_ARGUMENT, "gates.output is 1");
    REFUSES_OPTIONS(o.gates.beta = OL_GATE_BETA_NONE, OL_ERROR_ARGUMENT, "gates.beta is 3");
    REFUSES_OPTIONS(o.gates.beta_dtype = OL_FLOAT32, OL_ERROR_ARGUMENT, "gates.beta_dtype is float32");
    REFUSES_OPTIONS(o.gates.kind = (ol_gate_kind)9, OL_ERROR_ARGUMENT, "kind is 9");
    REFUSES_OPTIONS(o.gates.lower_bound = -5, OL_ERROR_ARGUMENT, "lower_bound");
    REFUSES_OPTIONS((o.decay = OL_DELTA_DECAY_GIVEN, o.gates.sum = OL_GATE_SUM_FLOAT32), OL_ERROR_ARGUMENT, "but it is given");
    REFUSES_OPTIONS((o.decay = OL_DELTA_DECAY_LOGARITHM, o.gates.finite_rate = 1), OL_ERROR_ARGUMENT, "but it is given");
    step_free(&c);
}

/* ---- Arguments ---- */

/* The step on a case is refused so, and leaves every byte alone. */
static void refuses(step_case *c, ol_status status, const char *text)
{
    ol_error error;
    step_case before;
    ol_gated_delta *layer;
    step_copy(&before, c);
    assert_ok(ol_gated_delta_create(level_device(0), &c->options, &layer, &error), &error);
    uint64_t launches = ol_device_launches(level_device(0));
    assert_fails(ol_gated_delta_step(layer, NULL, &c->arguments, &error), &error, status, "gated_delta_step", text);
    assert_int_equal(ol_gated_delta_step(layer, NULL, &c->arguments, NULL), status);
    assert_int_equal(ol_device_launches(level_device(0)), launches);
    assert_true(step_equal(&before, c));
    ol_gated_delta_destroy(layer);
    step_free(&before);
    step_free(c);
}

#define REFUSES(change, status, text)                                                                                         \
    do {                                                                                                                      \
        step_case c = usual();                                                                                                \
        ol_gated_delta_arguments *a = &c.arguments;                                                                           \
        (void)a;                                                                                                              \
        change;                                                                                                               \
        refuses(&c, status, text);                                                                                            \
    } while (0)

static void test_missing(void **state)
{
    (void)state;
    ol_error error;
    step_case whole = usual();
    ol_gated_delta *layer;
    assert_fails(ol_gated_delta_step(NULL, NULL, &whole.arguments, &error), &error, OL_ERROR_ARGUMENT, "gated_delta_step", "the layer is NULL");
    assert_ok(ol_gated_delta_create(level_device(0), &whole.options, &layer, &error), &error);
    assert_fails(ol_gated_delta_step(layer, NULL, NULL, &error), &error, OL_ERROR_ARGUMENT, "gated_delta_step", "the arguments are NULL");
    assert_fails(ol_gated_delta_step(layer, &whole, &whole.arguments, &error), &error, OL_ERROR_ARGUMENT, "gated_delta_step", "a CPU takes NULL");
    ol_gated_delta_destroy(layer);
    ol_gated_delta_destroy(NULL);
    step_free(&whole);
    static const struct { int number; const char *text; } needed[] = {
        { AT_QUERY, "query is not given" }, { AT_KEY, "key is not given" }, { AT_VALUE, "value is not given" }, { AT_UPDATE, "update is not given" },
        { AT_DECAY, "decay is not given" }, { AT_DECAY_RATE, "decay_rate is not given" }, { AT_DECAY_BIAS, "decay_bias is not given" },
        { AT_OUTPUT, "output is not given" }, { AT_STATE, "state is not given" },
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        REFUSES(step_take_back(&c, needed[i].number), OL_ERROR_ARGUMENT, needed[i].text);
    REFUSES(c.options.decay = OL_DELTA_DECAY_GIVEN, OL_ERROR_ARGUMENT, "decay_rate is given, but the layer's options have no use for it");
    REFUSES((c.options.decay = OL_DELTA_DECAY_GIVEN, step_take_back(&c, AT_DECAY_RATE)), OL_ERROR_ARGUMENT, "decay_bias is given");
    REFUSES((c.options.gates.kind = OL_GATE_LOWER_BOUND_PLAIN, c.options.gates.lower_bound = -5), OL_ERROR_ARGUMENT, "decay_rate is given");
    REFUSES(a->query.data = NULL, OL_ERROR_ARGUMENT, "data is NULL");
}

static void test_dtypes(void **state)
{
    (void)state;
    REFUSES(a->query.dtype = OL_BFLOAT16, OL_ERROR_DTYPE, "query: dtype bfloat16; the layer was made for float32");
    REFUSES(a->key.dtype = OL_BFLOAT16, OL_ERROR_DTYPE, "key: dtype bfloat16");
    REFUSES(a->value.dtype = OL_FLOAT16, OL_ERROR_DTYPE, "value: dtype float16");
    REFUSES(a->update.dtype = OL_FLOAT16, OL_ERROR_DTYPE, "update: dtype float16");
    REFUSES(a->decay.dtype = OL_FLOAT16, OL_ERROR_DTYPE, "decay: dtype float16");
    REFUSES(a->decay_rate.dtype = OL_FLOAT16, OL_ERROR_DTYPE, "decay_rate: dtype float16");
    REFUSES(a->decay_bias.dtype = OL_FLOAT16, OL_ERROR_DTYPE, "decay_bias: dtype float16");
    REFUSES(a->output.dtype = OL_FLOAT16, OL_ERROR_DTYPE, "output: dtype float16");
    REFUSES(a->state.dtype = OL_BFLOAT16, OL_ERROR_DTYPE, "state: dtype bfloat16; the layer was made for float32");
    REFUSES(a->query.dtype = (ol_dtype)99, OL_ERROR_DTYPE, "99 is not a dtype");
    REFUSES(step_give(&c, AT_READ, OL_UINT32, 1, (int64_t[]){ N }, STEP_DENSE, NULL), OL_ERROR_DTYPE, "read_slots: dtype uint32; expected int32 or int64");
    REFUSES(step_give(&c, AT_CU_SEQLENS, OL_INT16, 1, (int64_t[]){ N + 1 }, STEP_DENSE, NULL), OL_ERROR_DTYPE, "cu_seqlens: dtype int16");
    REFUSES(step_give(&c, AT_HAS_INITIAL, OL_INT32, 1, (int64_t[]){ N }, STEP_DENSE, NULL), OL_ERROR_DTYPE, "has_initial_state: dtype int32; expected bool");
}

static void test_shapes(void **state)
{
    (void)state;
    REFUSES(a->query.shape[2] = K - 1, OL_ERROR_SHAPE, "query has shape [6, 2, 19]; expected [6, 2, 20]");
    REFUSES(a->query.rank = 2, OL_ERROR_SHAPE, "query has shape [6, 2]; expected [6, 2, 20]");
    REFUSES(a->key.shape[0] = 5, OL_ERROR_SHAPE, "key has shape [5, 2, 20]; expected [6, 2, 20]");
    REFUSES(a->key.shape[1] = 1, OL_ERROR_SHAPE, "key has shape [6, 1, 20]");
    REFUSES(a->value.shape[1] = 2, OL_ERROR_SHAPE, "value has shape [6, 2, 12]; expected [6, 4, 12], or [6, 2, 2, 12]");
    REFUSES(a->update.shape[1] = 3, OL_ERROR_SHAPE, "update has shape [6, 3]; expected [6, 4], or [6, 2, 2]");
    REFUSES(a->decay.shape[0] = 2, OL_ERROR_SHAPE, "decay has shape [2, 4]");
    REFUSES(a->decay_rate.shape[0] = 3, OL_ERROR_SHAPE, "decay_rate has shape [3]; expected [4], or [2, 2]");
    REFUSES(a->decay_bias.shape[0] = 1, OL_ERROR_SHAPE, "decay_bias has shape [1]");
    REFUSES(a->output.shape[2] = V + 1, OL_ERROR_SHAPE, "output has shape [6, 4, 13]");
    REFUSES(a->state.shape[2] = K, OL_ERROR_SHAPE, "state has shape [3, 4, 20, 20]; expected [slots, 4, 12, 20]");
    REFUSES(c.options.state_layout = OL_DELTA_KEY_VALUE, OL_ERROR_SHAPE, "state has shape [3, 4, 12, 20]; expected [slots, 4, 20, 12]");
    REFUSES(c.options.decay_per_channel = 1, OL_ERROR_SHAPE, "decay has shape [6, 4]; expected [6, 4, 20], or [6, 2, 2, 20]");
    REFUSES(a->query.strides[2] = 2, OL_ERROR_SHAPE, "query: the stride of its last axis is 2; expected 1");
    REFUSES(a->state.strides[3] = -1, OL_ERROR_SHAPE, "state: the stride of its last axis is -1");
    REFUSES(a->query.shape[0] = -1, OL_ERROR_SHAPE, "negative extent");
    REFUSES(a->query.rank = 9, OL_ERROR_ARGUMENT, "rank 9");
    REFUSES(a->state.strides[0] = INT64_MAX, OL_ERROR_SHAPE, "does not fit an address space");
    REFUSES(a->state.shape[0] = 4, OL_ERROR_SHAPE, "6 tokens do not divide among 4 sequences");
    REFUSES(step_give(&c, AT_READ, OL_INT32, 1, (int64_t[]){ N + 1 }, STEP_DENSE, NULL), OL_ERROR_SHAPE, "6 tokens do not divide among 4 sequences");
    REFUSES((step_give(&c, AT_READ, OL_INT32, 1, (int64_t[]){ N }, STEP_DENSE, NULL), step_give(&c, AT_WRITE, OL_INT32, 1, (int64_t[]){ 2 }, STEP_DENSE, NULL)),
            OL_ERROR_SHAPE, "write_slots has shape [2]; expected [3], or that and one column or more");
    REFUSES((step_give(&c, AT_READ, OL_INT32, 1, (int64_t[]){ N }, STEP_DENSE, NULL), step_give(&c, AT_COUNTS, OL_INT32, 2, (int64_t[]){ N, 1 }, STEP_DENSE, NULL)),
            OL_ERROR_SHAPE, "token_counts has shape [3, 1]; expected [3]");
    REFUSES(step_give(&c, AT_CU_SEQLENS, OL_INT32, 1, (int64_t[]){ 0 }, STEP_DENSE, NULL), OL_ERROR_SHAPE, "cu_seqlens has shape [0]; expected [sequences + 1]");
    REFUSES(step_give(&c, AT_WRITE, OL_INT32, 2, (int64_t[]){ N, 1 }, STEP_DENSE, NULL), OL_ERROR_SHAPE,
            "write_slots have 1 columns; expected one for each of the 2 tokens");
    REFUSES(step_give(&c, AT_INTERMEDIATE, OL_FLOAT32, 5, (int64_t[]){ N, 1, HV, V, K }, STEP_DENSE, NULL), OL_ERROR_SHAPE,
            "intermediate_states have room for 1 tokens a sequence; expected 2 or more");
    REFUSES(step_give(&c, AT_INTERMEDIATE, OL_FLOAT32, 5, (int64_t[]){ N, T, HV, K, V }, STEP_DENSE, NULL), OL_ERROR_SHAPE,
            "intermediate_states has shape [3, 2, 4, 20, 12]; expected [3, tokens, 4, 12, 20]");
}

static void test_overlaps(void **state)
{
    (void)state;
    REFUSES(a->output.data = a->value.data, OL_ERROR_OVERLAP, "output overlaps value; expected memory of its own");
    REFUSES(a->output.data = a->query.data, OL_ERROR_OVERLAP, "output overlaps query");
    REFUSES(a->output.data = (char *)a->state.data + 4, OL_ERROR_OVERLAP, "output overlaps state");
    REFUSES(a->key.data = (char *)a->state.data + 400, OL_ERROR_OVERLAP, "state overlaps key");
    REFUSES(a->decay_rate.data = a->state.data, OL_ERROR_OVERLAP, "state overlaps decay_rate");
    REFUSES(a->update.data = a->output.data, OL_ERROR_OVERLAP, "output overlaps update");
    REFUSES(a->output.strides[0] = 0, OL_ERROR_OVERLAP, "output repeats an element: shape [6, 4, 12] with strides [0, 12, 1]");
    REFUSES(a->output.strides[1] = 11, OL_ERROR_OVERLAP, "output repeats an element");
    REFUSES(a->state.strides[0] = 1, OL_ERROR_OVERLAP, "state repeats an element");
    REFUSES((step_give(&c, AT_INTERMEDIATE, OL_FLOAT32, 5, (int64_t[]){ N, T, HV, V, K }, STEP_DENSE, NULL), a->intermediate_states.strides[1] = 0),
            OL_ERROR_OVERLAP, "intermediate_states repeats an element");
    REFUSES((step_give(&c, AT_INTERMEDIATE, OL_FLOAT32, 5, (int64_t[]){ N, T, HV, V, K }, STEP_DENSE, NULL), a->output.data = a->intermediate_states.data),
            OL_ERROR_OVERLAP, "output overlaps intermediate_states");
    REFUSES((step_give(&c, AT_READ, OL_INT64, 1, (int64_t[]){ N }, STEP_DENSE, NULL), a->read_slots.data = a->output.data), OL_ERROR_OVERLAP,
            "output overlaps read_slots");
}

/* Interleaved views do not overlap: q, k, v and the output as columns of one buffer. */
static void test_interleaved_is_fine(void **state)
{
    (void)state;
    enum { ROW = 2 * HK * K + 2 * HV * V };
    static float rows[N * T * ROW];
    step_case apart = usual(), together;
    step_copy(&together, &apart);
    const int numbers[] = { AT_QUERY, AT_KEY, AT_VALUE, AT_OUTPUT };
    int64_t at = 0;
    for (int i = 0; i < 4; i++) {
        ol_tensor *t = step_tensor(&together, numbers[i]);
        const ol_tensor *from = step_tensor(&apart, numbers[i]);
        int64_t n = t->shape[1] * t->shape[2];
        for (int token = 0; token < N * T; token++)
            memcpy(rows + token * ROW + at, (const float *)from->data + token * n, (size_t)n * sizeof(float));
        t->data = rows + at;
        t->strides[0] = ROW;
        at += n;
    }
    step_run(level_device(0), &apart);
    step_run(level_device(0), &together);
    for (int token = 0; token < N * T; token++)
        assert_memory_equal(rows + token * ROW + ROW - HV * V, (const float *)apart.memory[AT_OUTPUT] + token * HV * V, HV * V * sizeof(float));
    step_free(&apart);
    step_free(&together);
}

/* ---- Indices ---- */

static void give_int32(step_case *c, int number, int32_t rank, const int64_t *shape, const int32_t *values, size_t n)
{
    step_give(c, number, OL_INT32, rank, shape, STEP_DENSE, NULL);
    memcpy(c->memory[number], values, n * sizeof *values);
}
#define GIVE(number, rank, shape_, ...)                                                                                       \
    give_int32(&c, number, rank, (const int64_t[])UNPACK shape_, (const int32_t[]){ __VA_ARGS__ }, sizeof((int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t))
#define UNPACK(...) { __VA_ARGS__ }

static void test_indices(void **state)
{
    (void)state;
    REFUSES(GIVE(AT_READ, 1, (N), 0, 3, 1), OL_ERROR_ARGUMENT, "read_slots of sequence 1: 3; expected 0 or more, below the pool's slots, 3");
    REFUSES((c.options.padding = OL_DELTA_PADDING_NONE, GIVE(AT_READ, 1, (N), 0, -1, 1)), OL_ERROR_ARGUMENT, "read_slots of sequence 1: -1");
    REFUSES((GIVE(AT_READ, 1, (N), 0, 1, 2), GIVE(AT_WRITE, 1, (N), 0, 1, 1000000)), OL_ERROR_ARGUMENT, "write_slots of sequence 2: 1000000");
    REFUSES(GIVE(AT_CU_SEQLENS, 1, (N + 1), 0, 2, 1, 6), OL_ERROR_ARGUMENT, "cu_seqlens of sequence 1: 2 to 1; expected numbers that do not descend");
    REFUSES(GIVE(AT_CU_SEQLENS, 1, (N + 1), 0, 2, 4, 7), OL_ERROR_ARGUMENT, "cu_seqlens of sequence 2: 4 to 7");
    REFUSES(GIVE(AT_CU_SEQLENS, 1, (N + 1), -1, 2, 4, 6), OL_ERROR_ARGUMENT, "cu_seqlens of sequence 0: -1 to 2");
    REFUSES(GIVE(AT_CU_SEQLENS, 1, (5), 0, 1, 2, 4, 6), OL_ERROR_ARGUMENT, "the slot of sequence 3: 3; expected 0 or more, below the pool's slots, 3");
    REFUSES(GIVE(AT_COUNTS, 1, (N), 2, 3, 0), OL_ERROR_ARGUMENT, "token_counts of sequence 1: 3; expected 0 to its tokens, 2");
    REFUSES(GIVE(AT_COUNTS, 1, (N), 2, -1, 0), OL_ERROR_ARGUMENT, "token_counts of sequence 1: -1");
    REFUSES((GIVE(AT_READ, 2, (N, 1), 0, 1, 2), GIVE(AT_ACCEPTED, 1, (N), 1, 1, 2)), OL_ERROR_ARGUMENT,
            "accepted_tokens of sequence 2: 2; expected 1 to the columns of read_slots, 1");
    REFUSES((GIVE(AT_READ, 2, (N, 1), 0, 1, 2), GIVE(AT_ACCEPTED, 1, (N), 0, 1, 1)), OL_ERROR_ARGUMENT, "accepted_tokens of sequence 0: 0");
    REFUSES((GIVE(AT_READ, 1, (N), 0, 1, 2), GIVE(AT_ACCEPTED, 1, (N), 1, 1, 1)), OL_ERROR_ARGUMENT, "accepted_tokens are given without columns");
    REFUSES((c.arguments.state_is_kept = 1, GIVE(AT_WRITE, 1, (N), 0, 1, 2)), OL_ERROR_ARGUMENT, "write_slots are given, but state_is_kept");
    REFUSES((GIVE(AT_CU_SEQLENS, 1, (N + 1), 0, 0, 5, 6), GIVE(AT_WRITE, 2, (N, 2), -1, -1, -1, -1, -1, -1)), OL_ERROR_ARGUMENT,
            "tokens of sequence 1: 5; expected no more than the columns of write_slots, 2");
    REFUSES((GIVE(AT_CU_SEQLENS, 1, (N + 1), 0, 0, 5, 6), step_give(&c, AT_INTERMEDIATE, OL_FLOAT32, 5, (int64_t[]){ N, T, HV, V, K }, STEP_DENSE, NULL)),
            OL_ERROR_ARGUMENT, "tokens of sequence 1: 5; expected no more than intermediate_states have room for, 2");
}

static void test_conflicts(void **state)
{
    (void)state;
    REFUSES(GIVE(AT_READ, 1, (N), 0, 1, 0), OL_ERROR_OVERLAP, "slot 0 is written twice, the second time by sequence 2; expected each slot once");
    REFUSES((GIVE(AT_READ, 1, (N), 0, 1, 2), GIVE(AT_WRITE, 1, (N), 0, 2, 2)), OL_ERROR_OVERLAP, "slot 2 is written twice, the second time by sequence 2");
    REFUSES((GIVE(AT_READ, 1, (N), 0, 1, 2), GIVE(AT_WRITE, 1, (N), 1, -1, 2)), OL_ERROR_OVERLAP, "slot 1 is read by sequence 1 and written by another");
    REFUSES(GIVE(AT_WRITE, 2, (N, T), 0, 0, -1, -1, -1, -1), OL_ERROR_OVERLAP, "slot 0 is written twice, the second time by sequence 0");
    REFUSES(GIVE(AT_WRITE, 2, (N, T), 0, 1, -1, -1, -1, -1), OL_ERROR_OVERLAP, "slot 1 is read by sequence 1 and written by another");
}

/* Conflicts in a pool of more slots than are looked at at once; and that none is seen where slots are a window apart. */
static void test_conflicts_far_apart(void **state)
{
    (void)state;
    enum { SLOTS = 400000, HALF = 131072 };
    uint64_t random = harness_seed;
    static const int32_t slots[][3] = { { 5, HALF + 5, 2 * HALF + 5 }, { 5, 3 * HALF, 3 * HALF }, { 300000, 7, 300000 } };
    for (int i = 0; i < 3; i++) {
        step_case c;
        step_usual(&c, 1, 1, 1, 1, N, 1, &random);
        step_give(&c, AT_STATE, OL_FLOAT32, 4, (int64_t[]){ SLOTS, 1, 1, 1 }, STEP_DENSE, &random);
        memset(c.memory[AT_STATE], 0, c.n_bytes[AT_STATE]);
        give_int32(&c, AT_READ, 1, (int64_t[]){ N }, slots[i], N);
        if (i == 0) {
            step_run(level_device(0), &c);
            step_free(&c);
        } else
            refuses(&c, OL_ERROR_OVERLAP, "is written twice, the second time by sequence 2");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),  cmocka_unit_test(test_missing),  cmocka_unit_test(test_dtypes),    cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_overlaps), cmocka_unit_test(test_interleaved_is_fine), cmocka_unit_test(test_indices), cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_conflicts_far_apart),
    };
    return HARNESS_RUN(argc, argv, tests);
}
