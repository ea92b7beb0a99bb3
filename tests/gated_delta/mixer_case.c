/* See mixer_case.h. */
#include "mixer_case.h"

#include "element.h"

#include <stdlib.h>
#include <string.h>

static const size_t offsets[MIXER_TENSORS] = {
#define AT(field) offsetof(ol_gated_delta_mixer_arguments, field)
#define PART(p) AT(p.weight), AT(p.bias), AT(p.window), AT(p.intermediate_windows)
    PART(query), PART(key), PART(value), AT(window_read_slots), AT(window_write_slots), AT(window_dropped), AT(window_positions), AT(gate), AT(norm_weight),
#undef PART
#undef AT
};
static const char *const names[MIXER_TENSORS] = { "q.weight", "q.bias", "q.window", "q.intermediate", "k.weight", "k.bias", "k.window", "k.intermediate", "v.weight", "v.bias",
                                                  "v.window", "v.intermediate", "window_read", "window_write", "dropped", "positions", "gate", "norm_weight" };

ol_tensor *mixer_tensor(mixer_case *c, int number) { return (ol_tensor *)((char *)&c->arguments + offsets[number]); }

void mixer_take_back(mixer_case *c, int number)
{
    guarded_free(c->memory[number]);
    c->memory[number] = NULL;
    *mixer_tensor(c, number) = (ol_tensor){ 0 };
}

void mixer_give(mixer_case *c, int number, ol_dtype dtype, int32_t rank, const int64_t *shape, step_layout layout, uint64_t *random)
{
    /* All axes of weights, biases and windows may lie in any order. */
    tensor_give(mixer_tensor(c, number), &c->memory[number], &c->n_bytes[number], dtype, rank, shape, layout, number < AT_WINDOW_READ ? 0 : 1, random);
}

void mixer_fill(mixer_case *c, int number, double mean, double deviation, step_values values, uint64_t *random)
{
    tensor_fill(mixer_tensor(c, number), mean, deviation, values, random);
}

void mixer_copy(mixer_case *to, const mixer_case *from)
{
    *to = *from;
    step_copy(&to->step, &from->step);
    for (int i = 0; i < MIXER_TENSORS; i++)
        if (from->memory[i]) {
            ol_tensor *t = mixer_tensor(to, i);
            to->memory[i] = guarded_alloc(from->n_bytes[i], (uintptr_t)from->memory[i] % 8);
            memcpy(to->memory[i], from->memory[i], from->n_bytes[i]);
            t->data = (char *)to->memory[i] + ((char *)t->data - (char *)from->memory[i]);
        }
}

void mixer_free(mixer_case *c)
{
    step_free(&c->step);
    for (int i = 0; i < MIXER_TENSORS; i++)
        guarded_free(c->memory[i]);
    memset(c, 0, sizeof *c);
}

/* ---- Cases ---- */

static int one_in(uint64_t *random, uint64_t n) { return random_below(random, n) == 0; }
static ol_dtype any_float(uint64_t *random) { return (ol_dtype)(OL_FLOAT16 + random_below(random, 3)); }
static ol_dtype or(ol_dtype dtype, ol_dtype other) { return dtype ? dtype : other; }

/* [outer…, heads, dim(, last)] of part p, the heads of v now and then as two axes where `random_axes`. */
static void give_channels(mixer_case *c, int number, int part, ol_dtype dtype, int32_t n_outer, const int64_t *outer, int64_t last, step_layout layout, int random_axes,
                          uint64_t *random)
{
    const ol_gated_delta_options *g = &c->step.options;
    int64_t shape[6];
    int32_t rank = 0;
    for (; rank < n_outer; rank++)
        shape[rank] = outer[rank];
    if (part == 2 && random_axes && one_in(random, 4)) {
        shape[rank++] = g->key_heads;
        shape[rank++] = g->value_heads / g->key_heads;
    } else {
        shape[rank++] = part == 2 ? g->value_heads : g->key_heads;
    }
    shape[rank++] = part == 2 ? g->value_dim : g->key_dim;
    if (last)
        shape[rank++] = last;
    mixer_give(c, number, dtype, rank, shape, layout, random);
}

static void give_parts(mixer_case *c, int64_t slots, int64_t columns, int64_t n, int64_t room, step_layout layout, int random_axes, step_values values, uint64_t *random)
{
    const ol_gated_delta_mixer_options *o = &c->options;
    ol_dtype act = c->step.options.activation_dtype, windows = or(o->window_dtype, act);
    int64_t width = o->width ? o->width : 4;
    for (int part = 0; part < 3; part++) {
        int at = part * OF_PART;
        give_channels(c, at + OF_WEIGHT, part, or(o->weight_dtype, act), 0, NULL, width, layout, random_axes, random);
        mixer_fill(c, at + OF_WEIGHT, 0.2, 0.5, values, random);
        if (o->bias_dtype) {
            give_channels(c, at + OF_BIAS, part, o->bias_dtype, 0, NULL, 0, layout, random_axes, random);
            mixer_fill(c, at + OF_BIAS, 0, 0.5, values, random);
        }
        give_channels(c, at + OF_WINDOW, part, windows, 1, (int64_t[]){ slots }, columns, layout, random_axes, random);
        mixer_fill(c, at + OF_WINDOW, 0, 1, values, random);
        if (room >= 0)
            give_channels(c, at + OF_INTERMEDIATE, part, windows, 2, (int64_t[]){ n, room }, columns, layout, random_axes, random);
    }
}

static void give_norm(mixer_case *c, step_layout layout, step_values values, uint64_t *random)
{
    const ol_gated_delta_mixer_options *o = &c->options;
    const ol_gated_delta_options *g = &c->step.options;
    if (o->norm == OL_MIXER_NORM_NONE)
        return;
    mixer_give(c, AT_NORM_WEIGHT, or(o->norm_weight_dtype, OL_FLOAT32), 1, (int64_t[]){ g->value_dim }, layout, random);
    mixer_fill(c, AT_NORM_WEIGHT, 1, 0.3, values, random);
    if (o->gate == OL_MIXER_NONE)
        return;
    give_channels(c, AT_GATE, 2, or(o->gate_dtype, g->activation_dtype), 1, (int64_t[]){ c->step.arguments.query.shape[0] }, 0, layout, layout != STEP_DENSE, random);
    mixer_fill(c, AT_GATE, 0, 2, values, random);
}

void mixer_case_of(mixer_case *c, const ol_gated_delta_mixer_options *o, int64_t n, int64_t n_tokens, int64_t slots, int64_t columns, step_values values,
                   uint64_t *random)
{
    memset(c, 0, sizeof *c);
    step_case_of(&c->step, &o->recurrence, n, n_tokens, slots, values, random);
    c->options = *o;
    give_parts(c, slots, columns, n, -1, STEP_DENSE, 0, values, random);
    give_norm(c, STEP_DENSE, values, random);
}

void mixer_usual(mixer_case *c, int key_heads, int ratio, int key_dim, int value_dim, int64_t n, int64_t n_tokens, int64_t columns, uint64_t *random)
{
    const ol_gated_delta_mixer_options o = { .recurrence = { .key_heads = key_heads, .value_heads = key_heads * ratio, .key_dim = key_dim,
                                                             .value_dim = value_dim, .activation_dtype = OL_FLOAT32, .norm = OL_DELTA_NORM_RSQRT } };
    mixer_case_of(c, &o, n, n_tokens, n, columns, STEP_USUAL, random);
}

static void any_options(mixer_case *c, uint64_t *random)
{
    ol_gated_delta_mixer_options *o = &c->options;
    o->width = one_in(random, 3) ? 0 : 2 + (int32_t)random_below(random, 3);
    o->activation = one_in(random, 4) ? OL_MIXER_NONE : OL_MIXER_SILU;
    o->weight_dtype = one_in(random, 2) ? (ol_dtype)0 : any_float(random);
    o->bias_dtype = one_in(random, 2) ? (ol_dtype)0 : any_float(random);
    o->window_dtype = one_in(random, 3) ? OL_FLOAT32 : one_in(random, 2) ? (ol_dtype)0 : c->step.options.activation_dtype;
    o->window = (ol_mixer_window)random_below(random, 2);
    o->sum_rounded = (int32_t)random_below(random, 2);
    o->convolved_unrounded = (int32_t)random_below(random, 2);
    o->output_unrounded = (int32_t)random_below(random, 2);
    o->norm = one_in(random, 6) ? OL_MIXER_NORM_NONE : OL_MIXER_NORM_RMS;
    if (o->norm == OL_MIXER_NORM_NONE)
        return;
    o->epsilon = one_in(random, 2) ? 0 : 1e-5;
    o->gate = (ol_mixer_activation)random_below(random, 3);
    if (o->gate != OL_MIXER_NONE)
        o->gate_dtype = one_in(random, 2) ? (ol_dtype)0 : any_float(random);
    o->norm_weight_dtype = one_in(random, 2) ? (ol_dtype)0 : any_float(random);
    o->normalized_rounded = (int32_t)random_below(random, 2);
    o->weighted_rounded = (int32_t)random_below(random, 2);
}

static ol_dtype any_whole(uint64_t *random) { return one_in(random, 2) ? OL_INT32 : OL_INT64; }

void mixer_random(mixer_case *c, step_values values, uint64_t *random)
{
    memset(c, 0, sizeof *c);
    step_random(&c->step, values, random);
    any_options(c, random);
    const ol_gated_delta_arguments *a = &c->step.arguments;
    int ring = c->options.window == OL_MIXER_WINDOW_RING;
    step_layout layout = one_in(random, 2) ? STEP_DENSE : STEP_STRIDED;
    int64_t width = c->options.width ? c->options.width : 4, columns = width - 1 + (int64_t)random_below(random, one_in(random, 3) ? 9 : 3);
    int64_t n = order_sequences(a), slots = a->state.shape[0], room = -1, longest = 0;
    for (int64_t i = 0; i < n; i++) {
        order_sequence s = order_sequence_at(&c->step.options, a, i);
        longest = s.length > longest ? s.length : longest;
    }
    if (!c->step.memory[AT_CU_SEQLENS] && n)
        longest = a->query.shape[0] / n;
    if (one_in(random, 3))
        room = longest + (int64_t)random_below(random, 2);
    if (one_in(random, 3) && n > 0) {                                /* slots of their own, each number once */
        int64_t most = longest + 1, next = 1, own = 2 * n * most + 2;
        int two = one_in(random, 2);
        slots = own;
        mixer_give(c, AT_WINDOW_READ, any_whole(random), two ? 2 : 1, (int64_t[]){ n, most }, layout, random);
        if (c->step.memory[AT_ACCEPTED] && two)                      /* as many columns as accepted tokens may name */
            mixer_give(c, AT_WINDOW_READ, any_whole(random), 2, (int64_t[]){ n, most = a->read_slots.shape[1] > most ? a->read_slots.shape[1] : most }, layout, random);
        slots = 2 * n * most + 2;
        for (int64_t i = 0; i < n; i++)
            for (int64_t t = 0; t < (two ? most : 1); t++)
                tensor_write_whole(&c->arguments.window_read_slots, i, t, next++);
        if (!a->state_is_kept && one_in(random, 2)) {
            int written = one_in(random, 2);
            mixer_give(c, AT_WINDOW_WRITE, any_whole(random), written ? 2 : 1, (int64_t[]){ n, most }, layout, random);
            for (int64_t i = 0; i < n; i++)
                for (int64_t t = 0; t < (written ? most : 1); t++)
                    tensor_write_whole(&c->arguments.window_write_slots, i, t, c->step.options.padding != OL_DELTA_PADDING_NONE && one_in(random, 8) ? -1 : next++);
        }
        assert_true(next <= slots);
    }
    give_parts(c, slots, columns, n, room, layout, 1, values, random);
    if (ring || one_in(random, 3)) {
        int number = ring ? AT_POSITIONS : AT_DROPPED;
        mixer_give(c, number, any_whole(random), 1, (int64_t[]){ n }, layout, random);
        for (int64_t i = 0; i < n; i++)
            tensor_write_whole(mixer_tensor(c, number), i, 0, (int64_t)random_below(random, ring ? 20 : (uint64_t)(columns - width + 2)));
    }
    give_norm(c, layout, values, random);
}

/* ---- Running ---- */

ol_gated_delta_mixer_options mixer_options_of(const mixer_case *c)
{
    ol_gated_delta_mixer_options o = c->options;
    o.recurrence = c->step.options;
    return o;
}

ol_gated_delta_mixer_arguments mixer_arguments_of(const mixer_case *c)
{
    ol_gated_delta_mixer_arguments a = c->arguments;
    a.recurrence = c->step.arguments;
    return a;
}

ol_status mixer_try(ol_device *device, const mixer_case *c, ol_error *error)
{
    ol_gated_delta_mixer *mixer;
    const ol_gated_delta_mixer_options o = mixer_options_of(c);
    const ol_gated_delta_mixer_arguments a = mixer_arguments_of(c);
    ol_status status = ol_gated_delta_mixer_create(device, &o, &mixer, error);
    if (status != OL_OK)
        return status;
    status = ol_gated_delta_mixer_step(mixer, NULL, &a, error);
    ol_gated_delta_mixer_destroy(mixer);
    return status;
}

void mixer_run(ol_device *device, const mixer_case *c)
{
    ol_error error;
    ol_status status = mixer_try(device, c, &error);
    if (status != OL_OK)
        mixer_print(c);
    assert_ok(status, &error);
}

void mixer_reference(const mixer_case *c)
{
    const ol_gated_delta_mixer_options o = mixer_options_of(c);
    const ol_gated_delta_mixer_arguments a = mixer_arguments_of(c);
    order_mixer(level_device(0), &o, &a);
}

int mixer_equal(const mixer_case *a, const mixer_case *b)
{
    int equal = step_equal(&a->step, &b->step);
    for (int i = 0; i < MIXER_TENSORS; i++)
        for (size_t at = 0; a->memory[i] && at < a->n_bytes[i]; at++)
            if (((const unsigned char *)a->memory[i])[at] != ((const unsigned char *)b->memory[i])[at]) {
                print_error("%s differs from byte %zu of %zu on\n", names[i], at, a->n_bytes[i]);
                equal = 0;
                break;
            }
    return equal;
}

void mixer_print(const mixer_case *c)
{
    const ol_gated_delta_mixer_options *o = &c->options;
    step_print(&c->step);
    print_error("width %d, activation %d, dtypes %d %d %d %d %d, ring %d, columns %d, rounded %d %d %d %d %d, norm %d, gate %d;", o->width, o->activation, o->weight_dtype,
                o->bias_dtype, o->window_dtype, o->gate_dtype, o->norm_weight_dtype, o->window, (int)c->arguments.query.window.shape[3], o->sum_rounded,
                !o->convolved_unrounded, !o->output_unrounded, o->normalized_rounded, o->weighted_rounded, o->norm, o->gate);
    for (int i = 0; i < MIXER_TENSORS; i++)
        if (c->memory[i])
            print_error(" %s", names[i]);
    print_error("\n");
}

/* ---- Small changes ---- */

ol_gated_delta_mixer_arguments mixer_tokens(const mixer_case *c, int64_t first, int64_t n)
{
    ol_gated_delta_mixer_arguments a = mixer_arguments_of(c);
    ol_tensor *with_tokens[] = { &a.recurrence.query, &a.recurrence.key, &a.recurrence.value, &a.recurrence.update, &a.recurrence.decay, &a.recurrence.output, &a.gate };
    for (size_t i = 0; i < sizeof with_tokens / sizeof *with_tokens; i++)
        if (with_tokens[i]->rank) {
            with_tokens[i]->data = (char *)with_tokens[i]->data + first * with_tokens[i]->strides[0] * (int64_t)ol_dtype_size(with_tokens[i]->dtype);
            with_tokens[i]->shape[0] = n;
        }
    return a;
}

void mixer_table(mixer_case *c, int number, int64_t n, int64_t columns, const int32_t *values)
{
    mixer_give(c, number, OL_INT32, columns ? 2 : 1, (int64_t[]){ n, columns }, STEP_DENSE, NULL);
    memcpy(c->memory[number], values, (size_t)(n * (columns ? columns : 1)) * sizeof *values);
}

void mixer_step_table(mixer_case *c, int number, int64_t n, int64_t columns, const int32_t *values)
{
    step_give(&c->step, number, OL_INT32, columns ? 2 : 1, (int64_t[]){ n, columns }, STEP_DENSE, NULL);
    memcpy(c->step.memory[number], values, (size_t)(n * (columns ? columns : 1)) * sizeof *values);
}

ol_gated_delta_mixer *mixer_of(ol_device *device, const mixer_case *c)
{
    ol_gated_delta_mixer *mixer;
    ol_error error;
    const ol_gated_delta_mixer_options o = mixer_options_of(c);
    assert_ok(ol_gated_delta_mixer_create(device, &o, &mixer, &error), &error);
    return mixer;
}

void mixer_pools(mixer_case *c, int64_t slots, int64_t columns, uint64_t *random)
{
    const ol_gated_delta_options *g = &c->step.options;
    int key_value = g->state_layout == OL_DELTA_KEY_VALUE;
    step_give(&c->step, AT_STATE, or(g->state_dtype, OL_FLOAT32), 4,
              (int64_t[]){ slots, g->value_heads, key_value ? g->key_dim : g->value_dim, key_value ? g->value_dim : g->key_dim }, STEP_DENSE, random);
    step_fill(&c->step, AT_STATE, 0, 1, STEP_USUAL, random);
    for (int part = 0; part < 3; part++) {
        give_channels(c, part * OF_PART + OF_WINDOW, part, or(c->options.window_dtype, g->activation_dtype), 1, &slots, columns, STEP_DENSE, 0, random);
        mixer_fill(c, part * OF_PART + OF_WINDOW, 0, 1, STEP_USUAL, random);
    }
}
