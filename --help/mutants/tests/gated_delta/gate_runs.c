/* See gate_runs.h. */
#include "gate_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

gate_elements gate_elements_make(gate_dtypes dtypes, size_t n)
{
    gate_elements e = { dtypes, n, calloc(n, sizeof *e.at) };
    assert_non_null(e.at);
    return e;
}

void gate_elements_free(gate_elements *e)
{
    free(e->at);
    e->at = NULL;
}

ol_composite *gate_composite(ol_device *device, const ol_gate_options *o, const gate_dtypes *d)
{
    ol_composite *c = NULL;
    ol_error error;
    assert_ok(ol_gated_delta_gates_compile(device, o, d->b, d->a, d->rate, d->bias, &c, &error), &error);
    assert_int_equal(ol_composite_input_count(c), 4 - (o->beta == OL_GATE_BETA_NONE) - (o->kind == OL_GATE_LOWER_BOUND_PLAIN));
    assert_int_equal(ol_composite_output_count(c), 1 + (o->beta != OL_GATE_BETA_NONE) + (o->output == OL_GATE_LOG_DECAY_AND_DECAY));
    return c;
}

int32_t gate_pick_inputs(const ol_gate_options *o, const ol_tensor all[4], ol_tensor picked[4])
{
    int32_t n = 0;
    if (o->beta != OL_GATE_BETA_NONE)
        picked[n++] = all[0];
    picked[n++] = all[1];
    if (o->kind != OL_GATE_LOWER_BOUND_PLAIN)
        picked[n++] = all[2];
    picked[n++] = all[3];
    return n;
}

int32_t gate_pick_outputs(const ol_gate_options *o, const ol_tensor all[3], ol_tensor picked[3])
{
    int32_t n = 0;
    if (o->beta != OL_GATE_BETA_NONE)
        picked[n++] = all[0];
    if (o->output != OL_GATE_DECAY)
        picked[n++] = all[1];
    if (o->output != OL_GATE_LOG_DECAY)
        picked[n++] = all[2];
    return n;
}

size_t gate_check(const ol_gate_options *o, const gate_elements *e, const char *what)
{
    static const char *const names[] = { "beta", "log decay", "decay" };
    const ol_dtype in_dtypes[] = { e->dtypes.b, e->dtypes.a, e->dtypes.rate, e->dtypes.bias };
    ol_tensor in[4], out[3], picked_in[4], picked_out[3];
    gate_result *expected = malloc(e->n * sizeof *expected);
    size_t n_compared = 0, n_wrong = 0;
    ol_error error;
    assert_non_null(expected);
    for (int k = 0; k < 4; k++)
        in[k] = vector_of(guarded_alloc(e->n * ol_dtype_size(in_dtypes[k]), 0), in_dtypes[k], (int64_t)e->n);
    for (size_t i = 0; i < e->n; i++) {
        expected[i] = gate_reference(o, &e->dtypes, &e->at[i]);
        const uint64_t bits[] = { e->at[i].b, e->at[i].a, e->at[i].rate, e->at[i].bias };
        for (int k = 0; k < 4; k++)
            element_store(in[k].data, in_dtypes[k], i, bits[k]);
    }
    gate_pick_inputs(o, in, picked_in);
    for (size_t level = 0; level < level_count(); level++)
        for (int path = 0; path < 2; path++) {
            ol_device *device = level_device(level);
            ol_composite *c = gate_composite(device, o, &e->dtypes);
            for (int k = 0; k < 3; k++) {
                ol_dtype dtype = k ? OL_FLOAT32 : gate_beta_dtype(o, e->dtypes.b);
                out[k] = vector_of(guarded_alloc(e->n * ol_dtype_size(dtype), 0), dtype, (int64_t)e->n);
            }
            int32_t n_outputs = gate_pick_outputs(o, out, picked_out);
            uint64_t before = ol_device_launches(device);
            assert_ok(replay_paths[path](c, NULL, picked_in, picked_out, &error), &error);
            assert_int_equal(ol_device_launches(device) - before, path ? ol_composite_composed_launches(c) : 1);
            for (int32_t k = 0; k < n_outputs; k++) {
                int which = picked_out[k].data == out[0].data ? 0 : picked_out[k].data == out[1].data ? 1 : 2;
                assert_int_equal(ol_composite_output_dtype(c, k), picked_out[k].dtype);
                for (size_t i = 0; i < e->n; i++, n_compared++) {
                    uint64_t right = which == 0 ? expected[i].beta : which == 1 ? expected[i].log_decay : expected[i].decay;
                    uint64_t got = element_load(picked_out[k].data, picked_out[k].dtype, i);
                    if (got != right && n_wrong++ < 5)
                        print_error("%s (%s), %s, %s: b %llx a %llx rate %llx dt_bias %llx: %s is %llx, expected %llx\n", what, gate_describe(o), ol_device_level(device),
                                    path_names[path], (unsigned long long)e->at[i].b, (unsigned long long)e->at[i].a, (unsigned long long)e->at[i].rate,
                                    (unsigned long long)e->at[i].bias, names[which], (unsigned long long)got, (unsigned long long)right);
                }
            }
            for (int k = 0; k < 3; k++)
                guarded_free(out[k].data);
            ol_composite_destroy(c);
        }
    for (int k = 0; k < 4; k++)
        guarded_free(in[k].data);
    free(expected);
    assert_int_equal(n_wrong, 0);
    return n_compared;
}

const char *gate_describe(const ol_gate_options *o)
{
    static char text[240];
    snprintf(text, sizeof text, "kind %d rate %d sum %d output %d beta %d rounding %s dtype %s%s%s lb %g low %g high %g", (int)o->kind, (int)o->rate, (int)o->sum,
             (int)o->output, (int)o->beta, o->beta_rounding ? ol_dtype_name(o->beta_rounding) : "-", o->beta_dtype ? ol_dtype_name(o->beta_dtype) : "-",
             o->skip_softplus ? " no softplus" : "", o->finite_rate ? " finite" : "", o->lower_bound, o->interval_low, o->interval_high);
    return text;
}

ol_gate_options gate_random_options(uint64_t *random)
{
    static const ol_dtype dtypes[] = { 0, OL_FLOAT32, OL_FLOAT16, OL_BFLOAT16 };
    static const double bounds[] = { -5, -1, -0x1p-20, -1e30f };
    static const double limits[][2] = { { 0, 0 }, { 0x1p-10, 0x1p-3 }, { 0, 2 }, { -1, 0x1p100 }, { -INFINITY, INFINITY }, { 3, 3 }, { 0.1f, 1.7f } };
    ol_gate_options o = { 0 };
    o.kind = (ol_gate_kind)random_below(random, 4);
    o.sum = (ol_gate_sum)random_below(random, 2);
    o.output = (ol_gate_output)random_below(random, 3);
    o.beta = (ol_gate_beta)random_below(random, 4);
    if (o.beta != OL_GATE_BETA_NONE) {
        o.beta_rounding = dtypes[random_below(random, 4)];
        o.beta_dtype = dtypes[random_below(random, 4)];
    }
    if (o.kind != OL_GATE_LOWER_BOUND_PLAIN) {
        o.rate = (ol_gate_rate)random_below(random, 2);
        o.finite_rate = (int32_t)random_below(random, 2);
    }
    if (o.kind == OL_GATE_SOFTPLUS || o.kind == OL_GATE_CLAMPED)
        o.skip_softplus = random_below(random, 4) == 0;
    else
        o.lower_bound = bounds[random_below(random, COUNT(bounds))];
    if (o.kind == OL_GATE_CLAMPED) {
        const double *pair = limits[random_below(random, COUNT(limits))];
        o.interval_low = pair[0];
        o.interval_high = pair[1];
    }
    return o;
}
