/* See step_case.h. */
#include "step_case.h"

#include "element.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t offsets[STEP_TENSORS] = {
#define AT(field) offsetof(ol_gated_delta_arguments, field)
    AT(query), AT(key), AT(value), AT(update), AT(decay), AT(decay_rate), AT(decay_bias), AT(output), AT(state), AT(read_slots), AT(write_slots),
    AT(cu_seqlens), AT(has_initial_state), AT(accepted_tokens), AT(token_counts), AT(intermediate_states),
#undef AT
};
static const char *const names[STEP_TENSORS] = { "query", "key", "value", "update", "decay", "decay_rate", "decay_bias", "output", "state", "read",
                                                 "write", "cu_seqlens", "has_initial", "accepted", "counts", "intermediate" };

ol_tensor *step_tensor(step_case *c, int number) { return (ol_tensor *)((char *)&c->arguments + offsets[number]); }

static const ol_tensor *tensor_of(const step_case *c, int number) { return (const ol_tensor *)((const char *)&c->arguments + offsets[number]); }

double step_uniform(uint64_t *random) { return (double)(random_next(random) >> 11) * 0x1p-53; }

double step_normal(uint64_t *random)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += step_uniform(random);
    return sum;
}

/* ---- Memory ---- */

void step_take_back(step_case *c, int number)
{
    guarded_free(c->memory[number]);
    c->memory[number] = NULL;
    *step_tensor(c, number) = (ol_tensor){ 0 };
}

void tensor_give(ol_tensor *t, void **memory, size_t *n_bytes, ol_dtype dtype, int32_t rank, const int64_t *shape, step_layout layout, int32_t first_moved,
                 uint64_t *random)
{
    int32_t axes[OL_MAX_RANK];
    int64_t stride = 1;
    guarded_free(*memory);
    *t = ol_tensor_contiguous(NULL, dtype, rank, shape);
    for (int32_t i = 0; i < rank; i++)
        axes[i] = rank - 1 - i;                                  /* from the innermost outwards */
    if (layout == STEP_STRIDED)
        for (int32_t i = rank - 1; i > first_moved; i--) {
            int32_t j = first_moved + (int32_t)random_below(random, (uint64_t)(i - first_moved + 1)), swapped = axes[i];
            axes[i] = axes[j];
            axes[j] = swapped;
        }
    for (int32_t i = 0; i < rank; i++) {
        t->strides[axes[i]] = stride;
        stride *= shape[axes[i]] > 0 ? shape[axes[i]] : 1;
        if (layout == STEP_STRIDED)
            stride += (int64_t)random_below(random, 4);
    }
    *n_bytes = (size_t)stride * ol_dtype_size(dtype);
    *memory = guarded_alloc(*n_bytes, layout == STEP_STRIDED ? random_below(random, 8) : 0);
    t->data = *memory;
}

void step_give(step_case *c, int number, ol_dtype dtype, int32_t rank, const int64_t *shape, step_layout layout, uint64_t *random)
{
    tensor_give(step_tensor(c, number), &c->memory[number], &c->n_bytes[number], dtype, rank, shape, layout, 1, random);
}

void step_fill(step_case *c, int number, double mean, double deviation, step_values values, uint64_t *random)
{
    tensor_fill(step_tensor(c, number), mean, deviation, values, random);
}

void tensor_fill(const ol_tensor *t, double mean, double deviation, step_values values, uint64_t *random)
{
    static const float special[] = { 0, -0.0f, 1e-40f, -1e-44f, 1e-30f, 1, -1, 1e10f, -3e38f, INFINITY, -INFINITY, NAN };
    int64_t index[OL_MAX_RANK] = { 0 };
    for (int32_t d = 0; d < t->rank; d++)
        if (t->shape[d] == 0)
            return;
    for (int done = 0; !done;) {
        float x = (float)(mean + deviation * step_normal(random));
        if (values == STEP_SPECIAL && random_below(random, 64) == 0)
            x = special[random_below(random, sizeof special / sizeof *special)];
        element_write(t->dtype, element_at(t, index), x);
        done = 1;
        for (int32_t d = t->rank - 1; done && d >= 0; d--) {
            done = ++index[d] == t->shape[d];
            if (done)
                index[d] = 0;
        }
    }
}

void step_copy(step_case *to, const step_case *from)
{
    *to = *from;
    for (int i = 0; i < STEP_TENSORS; i++)
        if (from->memory[i]) {
            to->memory[i] = guarded_alloc(from->n_bytes[i], (uintptr_t)from->memory[i] % 8);
            memcpy(to->memory[i], from->memory[i], from->n_bytes[i]);
            step_tensor(to, i)->data = (char *)to->memory[i] + ((char *)tensor_of(from, i)->data - (char *)from->memory[i]);
        }
}

void step_free(step_case *c)
{
    for (int i = 0; i < STEP_TENSORS; i++)
        guarded_free(c->memory[i]);
    memset(c, 0, sizeof *c);
}

/* ---- Cases ---- */

static void fill_inputs(step_case *c, step_values values, uint64_t *random)
{
    const ol_gated_delta_options *o = &c->options;
    step_fill(c, AT_QUERY, 0, 1, values, random);
    step_fill(c, AT_KEY, 0, 1, values, random);
    step_fill(c, AT_VALUE, 0, 1, values, random);
    step_fill(c, AT_UPDATE, 0, 1, values, random);
    if (o->decay == OL_DELTA_DECAY_LOGARITHM)
        step_fill(c, AT_DECAY, -1, 0.3, values, random);
    else if (o->decay == OL_DELTA_DECAY_GIVEN)
        step_fill(c, AT_DECAY, 0.7, 0.05, values, random);
    else
        step_fill(c, AT_DECAY, 0, 1, values, random);
    if (c->memory[AT_DECAY_RATE])
        step_fill(c, AT_DECAY_RATE, o->gates.rate == OL_GATE_RATE_NEGATED ? -4 : 0, 0.5, values, random);
    if (c->memory[AT_DECAY_BIAS])
        step_fill(c, AT_DECAY_BIAS, -2, 1, values, random);
    step_fill(c, AT_STATE, 0, 1, values, random);
}

static ol_dtype or(ol_dtype dtype, ol_dtype other) { return dtype ? dtype : other; }

void step_case_of(step_case *c, const ol_gated_delta_options *o, int64_t n, int64_t n_tokens, int64_t slots, step_values values, uint64_t *random)
{
    int64_t HK = o->key_heads, HV = o->value_heads, K = o->key_dim, V = o->value_dim, tokens = n * n_tokens;
    int channels = o->decay_per_channel != 0, key_value = o->state_layout == OL_DELTA_KEY_VALUE;
    ol_dtype act = o->activation_dtype;
    memset(c, 0, sizeof *c);
    c->options = *o;
    step_give(c, AT_QUERY, act, 3, (int64_t[]){ tokens, HK, K }, STEP_DENSE, random);
    step_give(c, AT_KEY, act, 3, (int64_t[]){ tokens, HK, K }, STEP_DENSE, random);
    step_give(c, AT_VALUE, act, 3, (int64_t[]){ tokens, HV, V }, STEP_DENSE, random);
    step_give(c, AT_UPDATE, or(o->update_dtype, act), 2, (int64_t[]){ tokens, HV }, STEP_DENSE, random);
    step_give(c, AT_DECAY, or(o->decay_dtype, act), 2 + channels, (int64_t[]){ tokens, HV, K }, STEP_DENSE, random);
    step_give(c, AT_DECAY_RATE, or(o->decay_rate_dtype, OL_FLOAT32), 1, (int64_t[]){ HV }, STEP_DENSE, random);
    step_give(c, AT_DECAY_BIAS, or(o->decay_bias_dtype, act), 1 + channels, (int64_t[]){ HV, K }, STEP_DENSE, random);
    step_give(c, AT_OUTPUT, or(o->output_dtype, act), 3, (int64_t[]){ tokens, HV, V }, STEP_DENSE, random);
    step_give(c, AT_STATE, or(o->state_dtype, OL_FLOAT32), 4, (int64_t[]){ slots, HV, key_value ? K : V, key_value ? V : K }, STEP_DENSE, random);
    fill_inputs(c, values, random);
}

void step_usual(step_case *c, int key_heads, int ratio, int key_dim, int value_dim, int64_t n, int64_t n_tokens, uint64_t *random)
{
    const ol_gated_delta_options o = { .key_heads = key_heads, .value_heads = key_heads * ratio, .key_dim = key_dim, .value_dim = value_dim,
                                       .activation_dtype = OL_FLOAT32, .norm = OL_DELTA_NORM_RSQRT };
    step_case_of(c, &o, n, n_tokens, n, STEP_USUAL, random);
}

static ol_dtype any_float(uint64_t *random) { return (ol_dtype)(OL_FLOAT16 + random_below(random, 3)); }
static int one_in(uint64_t *random, uint64_t n) { return random_below(random, n) == 0; }
static int any_dim(uint64_t *random)
{
    static const int usual[] = { 16, 32, 48, 64, 96, 100, 128, 192, 200, 256 };
    return one_in(random, 3) ? 1 + (int)random_below(random, 256) : usual[random_below(random, sizeof usual / sizeof *usual)];
}

static void any_options(ol_gated_delta_options *o, uint64_t *random)
{
    *o = (ol_gated_delta_options){ .key_heads = 1 + (int32_t)random_below(random, 3), .key_dim = any_dim(random), .value_dim = any_dim(random) };
    o->value_heads = o->key_heads * (1 + (int32_t)random_below(random, 4));
    o->activation_dtype = any_float(random);
    o->output_dtype = one_in(random, 2) ? (ol_dtype)0 : any_float(random);
    o->state_dtype = one_in(random, 2) ? (ol_dtype)0 : any_float(random);
    o->update_dtype = one_in(random, 2) ? (ol_dtype)0 : any_float(random);
    o->decay_dtype = one_in(random, 2) ? (ol_dtype)0 : any_float(random);
    o->decay_rate_dtype = one_in(random, 2) ? (ol_dtype)0 : any_float(random);
    o->decay_bias_dtype = one_in(random, 2) ? (ol_dtype)0 : any_float(random);
    o->head_map = (ol_head_map)random_below(random, 2);
    o->state_layout = (ol_delta_layout)random_below(random, 2);
    o->norm = (ol_delta_norm)random_below(random, 5);
    o->epsilon = one_in(random, 2) ? 0 : one_in(random, 2) ? 1e-5 : 1e-12;
    o->scale = one_in(random, 2) ? 0 : step_normal(random);
    o->decay = (ol_delta_decay)random_below(random, 3);
    o->decay_per_channel = (int32_t)random_below(random, 2);
    o->padding = (ol_delta_padding)random_below(random, 3);
    o->padding_output_untouched = (int32_t)random_below(random, 2);
    o->gates.beta = (ol_gate_beta)random_below(random, 3);
    o->gates.beta_rounding = one_in(random, 2) ? (ol_dtype)0 : any_float(random);
    if (o->decay != OL_DELTA_DECAY_COMPUTED)
        return;
    o->gates.kind = (ol_gate_kind)random_below(random, 4);
    o->gates.sum = (ol_gate_sum)random_below(random, 2);
    if (o->gates.kind != OL_GATE_LOWER_BOUND_PLAIN)
        o->gates.rate = (ol_gate_rate)random_below(random, 2);
    if (o->gates.kind == OL_GATE_LOWER_BOUND || o->gates.kind == OL_GATE_LOWER_BOUND_PLAIN)
        o->gates.lower_bound = -5;
    if (o->gates.kind == OL_GATE_CLAMPED)
        o->gates.interval_high = 2;
}

/* [tokens, value heads, …], their axis now and then as two. */
static void give_heads(step_case *c, int number, ol_dtype dtype, int64_t tokens, int64_t last, step_layout layout, uint64_t *random)
{
    int64_t shape[4], r = c->options.value_heads / c->options.key_heads;
    int32_t rank = 0;
    if (tokens >= 0)
        shape[rank++] = tokens;
    if (one_in(random, 4)) {
        shape[rank++] = c->options.key_heads;
        shape[rank++] = r;
    } else {
        shape[rank++] = c->options.value_heads;
    }
    if (last)
        shape[rank++] = last;
    step_give(c, number, dtype, rank, shape, layout, random);
}

void tensor_write_whole(const ol_tensor *t, int64_t i, int64_t column, int64_t value)
{
    int32_t small = (int32_t)value;
    int64_t index[2] = { i, column };
    char *p = element_at(t, index);
    if (t->dtype == OL_BOOL)
        *p = (char)value;
    else if (t->dtype == OL_INT32)
        memcpy(p, &small, sizeof small);
    else
        memcpy(p, &value, sizeof value);
}

static ol_dtype any_whole(uint64_t *random) { return one_in(random, 2) ? OL_INT32 : OL_INT64; }

void step_random(step_case *c, step_values values, uint64_t *random)
{
    memset(c, 0, sizeof *c);
    ol_gated_delta_options *o = &c->options;
    any_options(o, random);
    step_layout layout = one_in(random, 2) ? STEP_DENSE : STEP_STRIDED;
    int64_t K = o->key_dim, V = o->value_dim, HK = o->key_heads, HV = o->value_heads, channels = o->decay_per_channel ? K : 0;
    int64_t most = STEP_OPERATIONS / (K * V * HV) + 1, n = 1 + (int64_t)random_below(random, 4), lengths[4], tokens = 0, longest = 0;
    ol_dtype act = o->activation_dtype, states = o->state_dtype ? o->state_dtype : OL_FLOAT32;
    int uneven = one_in(random, 2), by_counts = one_in(random, 4);
    for (int64_t i = 0; i < n; i++) {
        int64_t limit = one_in(random, 8) ? 40 : 6;
        lengths[i] = !uneven && i ? lengths[0] : (int64_t)random_below(random, (uint64_t)(most / n < limit ? most / n : limit) + 1);
        tokens += lengths[i];
        longest = lengths[i] > longest ? lengths[i] : longest;
    }
    int64_t before = uneven ? (int64_t)random_below(random, 2) : 0, after = uneven ? (int64_t)random_below(random, 3) : 0;
    tokens += before + after;
    step_give(c, AT_QUERY, act, 3, (int64_t[]){ tokens, HK, K }, layout, random);
    step_give(c, AT_KEY, act, 3, (int64_t[]){ tokens, HK, K }, layout, random);
    give_heads(c, AT_VALUE, act, tokens, V, layout, random);
    give_heads(c, AT_UPDATE, o->update_dtype ? o->update_dtype : act, tokens, 0, layout, random);
    give_heads(c, AT_DECAY, o->decay_dtype ? o->decay_dtype : act, tokens, channels, layout, random);
    give_heads(c, AT_OUTPUT, o->output_dtype ? o->output_dtype : act, tokens, V, layout, random);
    if (o->decay == OL_DELTA_DECAY_COMPUTED) {
        if (o->gates.kind != OL_GATE_LOWER_BOUND_PLAIN)
            give_heads(c, AT_DECAY_RATE, o->decay_rate_dtype ? o->decay_rate_dtype : OL_FLOAT32, -1, 0, layout, random);
        if (one_in(random, 8))
            step_give(c, AT_DECAY_BIAS, o->decay_bias_dtype ? o->decay_bias_dtype : act, 0, NULL, layout, random);
        else
            give_heads(c, AT_DECAY_BIAS, o->decay_bias_dtype ? o->decay_bias_dtype : act, -1, channels, layout, random);
    }
    /* Slots: each number once, in any order. */
    int64_t columns = longest + (int64_t)random_below(random, 2), slots = 1 + n * (2 * columns + 2) + (int64_t)random_below(random, 5), order[512], next = 0;
    assert_true(slots <= 512);
    int64_t lowest = o->padding == OL_DELTA_PADDING_NOT_POSITIVE;
    for (int64_t i = 0; i < slots; i++)
        order[i] = i;
    for (int64_t i = slots - 1; i > lowest; i--) {
        int64_t j = lowest + (int64_t)random_below(random, (uint64_t)(i - lowest + 1)), swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
    next = lowest;
    int kv = o->state_layout == OL_DELTA_KEY_VALUE;
    step_give(c, AT_STATE, states, 4, (int64_t[]){ slots, HV, kv ? K : V, kv ? V : K }, layout, random);
    if (one_in(random, 2))
        step_give(c, AT_INTERMEDIATE, states, 5, (int64_t[]){ n, columns, HV, kv ? K : V, kv ? V : K }, layout, random);
    if (uneven || one_in(random, 2)) {
        step_give(c, AT_CU_SEQLENS, any_whole(random), 1, (int64_t[]){ n + 1 }, layout, random);
        for (int64_t i = 0, at = before; i <= n; i++) {
            tensor_write_whole(step_tensor(c, AT_CU_SEQLENS), i, 0, at);
            at += i < n ? lengths[i] : 0;
        }
    }
    if (by_counts) {
        step_give(c, AT_COUNTS, any_whole(random), 1, (int64_t[]){ n }, layout, random);
        for (int64_t i = 0; i < n; i++)
            tensor_write_whole(step_tensor(c, AT_COUNTS), i, 0, (int64_t)random_below(random, (uint64_t)lengths[i] + 1));
    }
    int tables = one_in(random, 8) ? 0 : 1 + (int)random_below(random, 3), two_axes = one_in(random, 3) && columns > 0;
    c->arguments.state_is_kept = one_in(random, 8);
    if (tables & 1) {
        step_give(c, AT_READ, any_whole(random), two_axes ? 2 : 1, (int64_t[]){ n, columns }, layout, random);
        for (int64_t i = 0; i < n; i++)
            for (int64_t t = 0; t < (two_axes ? columns : 1); t++) {
                int padding = o->padding != OL_DELTA_PADDING_NONE && one_in(random, 6);
                tensor_write_whole(step_tensor(c, AT_READ), i, t, !padding ? order[next++] : o->padding == OL_DELTA_PADDING_NEGATIVE ? -1 - (int64_t)random_below(random, 2)
                                                                                                                      : -(int64_t)random_below(random, 2));
            }
        if (two_axes && one_in(random, 2)) {
            step_give(c, AT_ACCEPTED, any_whole(random), 1, (int64_t[]){ n }, layout, random);
            for (int64_t i = 0; i < n; i++)
                tensor_write_whole(step_tensor(c, AT_ACCEPTED), i, 0, 1 + (int64_t)random_below(random, (uint64_t)columns));
        }
    }
    if (tables & 2 && !c->arguments.state_is_kept) {
        for (int64_t i = 0; !c->memory[AT_READ] && i < slots; i++) {          /* the first ones are read, by their numbers */
            order[i] = i;
            next = n > lowest ? n : lowest;
        }
        int written_columns = one_in(random, 2) && columns > 0;
        step_give(c, AT_WRITE, any_whole(random), written_columns ? 2 : 1, (int64_t[]){ n, columns }, layout, random);
        for (int64_t i = 0; i < n; i++)
            for (int64_t t = 0; t < (written_columns ? columns : 1); t++) {
                int padding = o->padding != OL_DELTA_PADDING_NONE && one_in(random, 6);
                tensor_write_whole(step_tensor(c, AT_WRITE), i, t, padding ? -1 : order[next++]);
            }
    }
    assert_true(next <= slots);
    if (one_in(random, 3)) {
        step_give(c, AT_HAS_INITIAL, OL_BOOL, 1, (int64_t[]){ n }, layout, random);
        for (int64_t i = 0; i < n; i++)
            tensor_write_whole(step_tensor(c, AT_HAS_INITIAL), i, 0, (int64_t)random_below(random, 2));
    }
    /* Without anything that says N, the state does. */
    if (!c->memory[AT_READ] && !c->memory[AT_WRITE] && !c->memory[AT_CU_SEQLENS] && !c->memory[AT_COUNTS] && !c->memory[AT_HAS_INITIAL]) {
        step_give(c, AT_STATE, states, 4, (int64_t[]){ n, HV, kv ? K : V, kv ? V : K }, layout, random);
    }
    fill_inputs(c, values, random);
}

/* ---- Running ---- */

ol_status step_try(ol_device *device, const step_case *c, ol_error *error)
{
    ol_gated_delta *layer;
    ol_status status = ol_gated_delta_create(device, &c->options, &layer, error);
    if (status != OL_OK)
        return status;
    status = ol_gated_delta_step(layer, NULL, &c->arguments, error);
    ol_gated_delta_destroy(layer);
    return status;
}

void step_run(ol_device *device, const step_case *c)
{
    ol_error error;
    ol_status status = step_try(device, c, &error);
    if (status != OL_OK)
        step_print(c);
    assert_ok(status, &error);
}

void step_reference(const step_case *c) { order_step(level_device(0), &c->options, &c->arguments); }

int step_equal(const step_case *a, const step_case *b)
{
    int equal = 1;
    for (int i = 0; i < STEP_TENSORS; i++)
        for (size_t at = 0; a->memory[i] && at < a->n_bytes[i]; at++)
            if (((const unsigned char *)a->memory[i])[at] != ((const unsigned char *)b->memory[i])[at]) {
                print_error("%s differs from byte %zu of %zu on\n", names[i], at, a->n_bytes[i]);
                equal = 0;
                break;
            }
    return equal;
}

void step_print(const step_case *c)
{
    const ol_gated_delta_options *o = &c->options;
    print_error("heads %d/%d, K %d, V %d, map %d, layout %d, norm %d, decay %d%s, gates %d, dtypes %d %d %d %d %d, padding %d %d, kept %d; ranks", o->key_heads,
                o->value_heads, o->key_dim, o->value_dim, o->head_map, o->state_layout, o->norm, o->decay, o->decay_per_channel ? " per channel" : "",
                o->gates.kind, o->activation_dtype, o->output_dtype, o->state_dtype, o->update_dtype, o->decay_dtype, o->padding,
                o->padding_output_untouched, c->arguments.state_is_kept);
    for (int i = 0; i < STEP_TENSORS; i++)
        if (c->memory[i])
            print_error(" %s %d", names[i], tensor_of(c, i)->rank);
    print_error("; %d tokens\n", (int)c->arguments.query.shape[0]);
}
