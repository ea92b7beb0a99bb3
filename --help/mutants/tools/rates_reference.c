/* See rates_reference.h. */
#include "rates_reference.h"

#include "cli.h"
#include "device_memory.h"
#include "floats.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Evaluating in extended precision takes about half a microsecond an element; more than these change no conclusion. */
enum { MAX_JUDGED = 100000 };

/* ---- The formula, in extended precision ------------------------------------------------------------------------ */

static const float_format *format_of(ol_dtype dtype) {
    return float_format_named(st_dtype_name(dtype));
}

/* What an input has for an element of a result, `element` counting in rows: inputs are views of any strides, and broadcast. */
static long double input_value(const rates_layer *layer, enum rates_input which, int32_t result, int64_t element) {
    const ol_tensor *view = &layer->input[which], *output = &layer->output[result];
    const float_format *format = format_of(view->dtype);
    int64_t offset = 0;
    for (int32_t axis = output->rank - 1, own = view->rank - 1; own >= 0; axis--, own--) {
        offset += view->shape[own] == 1 ? 0 : element % output->shape[axis] * view->strides[own];
        element /= output->shape[axis];
    }
    return float_value(format, float_load(format, view->data, offset));
}

static long double exact_softplus(long double x) {
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

static long double exact_sigmoid(long double x) {
    return x >= 0 ? 1 / (1 + expl(-x)) : expl(x) / (1 + expl(x));
}

/* x, rounded to a dtype where `rounding`, else as it is. */
static long double step(long double x, ol_dtype dtype, bool rounding) {
    const float_format *format = format_of(dtype);
    return rounding ? float_value(format, float_round(format, x)) : x;
}

static long double exact_beta(const rates_layer *layer, int32_t result, int64_t element, bool rounding) {
    const ol_gate_options *o = &layer->options;
    ol_dtype from = layer->input[RATES_B].dtype, rounded = o->beta_rounding ? o->beta_rounding : from;
    long double beta = input_value(layer, RATES_B, result, element);
    if (o->beta != OL_GATE_BETA_RAW) {
        beta = step(exact_sigmoid(beta), ol_promote(from, rounded), rounding) * (o->beta == OL_GATE_BETA_DOUBLED ? 2 : 1);
    }
    return step(step(beta, rounded, rounding), layer->output[result].dtype, rounding);
}

static long double exact_rate(const rates_layer *layer, int32_t result, int64_t element, bool rounding) {
    long double stored = input_value(layer, RATES_A_LOG, result, element);
    long double rate = layer->options.rate == OL_GATE_RATE_NEGATED ? -stored : step(expl(stored), OL_FLOAT32, rounding);
    return layer->options.finite_rate && rate > FLT_MAX ? FLT_MAX : rate;
}

static long double exact_log_decay(const rates_layer *layer, int32_t result, int64_t element, bool rounding) {
    const ol_gate_options *o = &layer->options;
    ol_dtype dtype = o->sum == OL_GATE_SUM_FLOAT32 ? OL_FLOAT32 : ol_promote(layer->input[RATES_A].dtype, layer->input[RATES_DT_BIAS].dtype);
    long double x = step(input_value(layer, RATES_A, result, element) + input_value(layer, RATES_DT_BIAS, result, element), dtype, rounding);
    if (o->kind == OL_GATE_LOWER_BOUND) {
        x = step(exact_rate(layer, result, element, rounding) * x, OL_FLOAT32, rounding);
        dtype = OL_FLOAT32;
    }
    if (o->kind == OL_GATE_LOWER_BOUND || o->kind == OL_GATE_LOWER_BOUND_PLAIN) {
        return step(step(o->lower_bound, OL_FLOAT32, true) * step(exact_sigmoid(x), dtype, rounding), OL_FLOAT32, rounding);
    }
    x = o->skip_softplus ? x : step(exact_softplus(x), dtype, rounding);
    if (o->kind == OL_GATE_CLAMPED) {
        long double low = step(o->interval_low, dtype, true), high = o->interval_high != 0 ? step(o->interval_high, dtype, true) : INFINITY;
        x = x < low ? low : x > high ? high : x;
    }
    return -step(exact_rate(layer, result, element, rounding) * x, OL_FLOAT32, rounding);
}

/* An element of a result: without roundings in between, or with each of the graph's but the last. */
static long double exact_result(const rates_layer *layer, int32_t result, int64_t element, bool rounding) {
    if (layer->result[result] == RATES_BETA) {
        return exact_beta(layer, result, element, rounding);
    }
    long double gate = exact_log_decay(layer, result, element, rounding);
    return layer->result[result] == RATES_DECAY ? expl(gate) : gate;
}

static void judge(const rates_layer *layer, int32_t which, int64_t index, double ours, double theirs, uint64_t our_bits,
                  rates_difference *difference) {
    long double exact = exact_result(layer, which, index, false);
    long double our_error = fabsl(ours - exact), their_error = fabsl(theirs - exact);
    if (difference->n_judged >= MAX_JUDGED || !isfinite(exact) || !isfinite(ours) || !isfinite(theirs)) {
        return;
    }
    difference->n_judged++;
    difference->n_ours_nearer += our_error < their_error;
    difference->n_theirs_nearer += their_error < our_error;
    difference->n_as_stated +=
        float_round(format_of(layer->output[which].dtype), exact_result(layer, which, index, true)) == our_bits;
}

/* ---- Comparing ------------------------------------------------------------------------------------------------- */

/* Bits of one side in the format in which both are compared. */
static uint64_t brought_to(const float_format *unit, const float_format *format, uint64_t bits) {
    return unit == format ? bits : float_round(unit, float_value(format, bits));
}

/* The narrower of two different dtypes, where one of them holds the other; else ours. */
static const float_format *common_unit(const float_format *ours, const float_format *theirs) {
    return ours->bits > theirs->bits && ours->bits > 16 ? theirs : ours;
}

static bool compare_widened(ol_device *device, const rates_layer *layer, int32_t which, const float_format *theirs,
                            const float_format *unit, rates_difference *difference, st_error *error);

bool rates_compare(ol_device *device, const rates_layer *layer, int32_t which, const void *results,
                   rates_difference *difference, st_error *error) {
    const checkpoint_tensor *reference = &layer->reference[which];
    *difference = (rates_difference){ 0 };
    if (!reference->tensor) {
        return true;
    }
    const float_format *ours = format_of(layer->output[which].dtype), *theirs = float_format_named(reference->tensor->dtype_name);
    if (!theirs) {
        return st_fail(error, "%s: tensor %.300s: dtype %s cannot be compared with %s", reference->file->path,
                       reference->tensor->name, reference->tensor->dtype_name, ours->name);
    }
    const float_format *unit = common_unit(ours, theirs);
    difference->present = true;
    difference->other_dtype = ours == theirs ? NULL : theirs->name;
    difference->unit = unit->name;
    difference->sum_dtype = layer->options.sum == OL_GATE_SUM_FLOAT32 ? OL_FLOAT32 : ol_promote(layer->input[RATES_A].dtype, layer->input[RATES_DT_BIAS].dtype);
    difference->n = reference->tensor->n_elements;
    for (int64_t i = 0; i < difference->n; i++) {
        uint64_t our_bits = float_load(ours, results, i), their_bits = float_load(theirs, reference->tensor->data, i);
        uint64_t x = brought_to(unit, ours, our_bits), y = brought_to(unit, theirs, their_bits);
        if (float_is_nan(unit, x) || float_is_nan(unit, y)) {
            bool one_side = float_is_nan(unit, x) != float_is_nan(unit, y);
            difference->n_nan += one_side;
            difference->n_differ += one_side;
            continue;
        }
        uint64_t ulp = float_ulp_distance(unit, x, y);
        if (ulp > 0) {
            difference->n_differ++;
            difference->max_ulp = ulp > difference->max_ulp ? ulp : difference->max_ulp;
            judge(layer, which, i, float_value(ours, our_bits), float_value(theirs, their_bits), our_bits, difference);
        }
    }
    if (layer->result[which] != RATES_BETA && difference->sum_dtype != OL_FLOAT32 && difference->n_differ > 0) {
        return compare_widened(device, layer, which, theirs, unit, difference, error);
    }
    return true;
}

/* One of the decays of these options, by the library. */
static ol_status replay_decay(ol_device *device, const rates_layer *layer, const ol_gate_options *options, const ol_tensor *output, ol_error *reason) {
    ol_tensor bases[RATES_INPUTS], views[RATES_INPUTS], in[RATES_INPUTS], out = { 0 };
    ol_composite *composite = NULL;
    ol_status status = rates_layer_compile(layer, options, device, &composite, reason);
    if (status != OL_OK || (status = mirrors_make(device, layer->base, layer->n_bases, bases, reason)) != OL_OK) {
        ol_composite_destroy(composite);
        return status;
    }
    status = mirrors_up(device, layer->base, layer->n_bases, bases, reason);
    if (status == OL_OK) {
        status = mirror_make(device, output, &out, reason);
    }
    if (status == OL_OK) {
        status = rates_layer_views(layer, bases, views, reason) ? OL_OK : reason->status;
        views[RATES_B].rank = -1;                      /* beta is none of it */
    }
    if (status == OL_OK) {
        rates_layer_pick(views, in);
        status = ol_replay(composite, NULL, in, &out, reason);
    }
    if (status == OL_OK) {
        status = mirror_down(device, output, &out, reason);
    }
    mirrors_free(device, layer->n_bases, bases);
    mirror_free(device, &out);
    ol_composite_destroy(composite);
    return status;
}

/* The decay once more, with a + dt_bias in float32: how much of the difference is that one rounding? */
static bool compare_widened(ol_device *device, const rates_layer *layer, int32_t which, const float_format *theirs,
                            const float_format *unit, rates_difference *difference, st_error *error) {
    const checkpoint_tensor *reference = &layer->reference[which];
    ol_gate_options options = layer->options;
    float *decay = malloc((size_t)difference->n * sizeof(float));
    ol_tensor output = layer->output[which];
    ol_error reason = { 0 };
    bool ok = false;
    if (!decay) {
        return st_fail(error, "%s: out of memory", reference->file->path);
    }
    options.sum = OL_GATE_SUM_FLOAT32;
    options.output = layer->result[which] == RATES_DECAY ? OL_GATE_DECAY : OL_GATE_LOG_DECAY;
    options.beta = OL_GATE_BETA_NONE;
    options.beta_rounding = options.beta_dtype = 0;
    output.data = decay;
    if (replay_decay(device, layer, &options, &output, &reason) != OL_OK) {
        st_fail(error, "%s: tensor %.300s: %s: %s", reference->file->path, reference->tensor->name, reason.operation,
                reason.description);
        goto done;
    }
    difference->widened = true;
    for (int64_t i = 0; i < difference->n; i++) {
        const float_format *ours = format_of(OL_FLOAT32);
        uint64_t x = brought_to(unit, ours, float_load(ours, (const unsigned char *)decay, i));
        uint64_t y = brought_to(unit, theirs, float_load(theirs, reference->tensor->data, i));
        if (float_is_nan(unit, x) || float_is_nan(unit, y)) {
            difference->widened_n_differ += float_is_nan(unit, x) != float_is_nan(unit, y);
        } else {
            uint64_t ulp = float_ulp_distance(unit, x, y);
            difference->widened_n_differ += ulp > 0;
            difference->widened_max_ulp = ulp > difference->widened_max_ulp ? ulp : difference->widened_max_ulp;
        }
    }
    ok = true;
done:
    free(decay);
    return ok;
}

/* ---- Printing -------------------------------------------------------------------------------------------------- */

static void print_row(FILE *stream, const rates_layer *layer, int32_t index, const rates_difference *difference) {
    static const char *const names[RATES_OUTPUTS] = { "beta", "log g", "decay" };
    char number[24] = "-";
    if (layer->number >= 0) {
        snprintf(number, sizeof number, "%" PRId64, layer->number);
    }
    double share = difference->n ? 100.0 * (double)difference->n_differ / (double)difference->n : 0;
    fprintf(stream, "%5s  %-5s  %-5s  %10" PRIu64 "  %10" PRId64 " of %-10" PRId64 " %7.3f%%", number,
            names[layer->result[index]], difference->unit, difference->max_ulp, difference->n_differ, difference->n,
            share);
    if (difference->n_judged > 0) {
        fprintf(stream, "  %9" PRId64 "  %9" PRId64, difference->n_ours_nearer, difference->n_theirs_nearer);
    }
    fputc('\n', stream);
    if (difference->n_nan > 0) {
        fprintf(stream, "       %" PRId64 " of them %s on one side only\n", difference->n_nan,
                difference->n_nan == 1 ? "is a NaN" : "are NaNs");
    }
}

/* What all layers together show about one of the results. */
struct total {
    int64_t n_differ, n_nan, n_judged, n_ours, n_theirs, n_as_stated, widened_n_differ, n_widened;
    uint64_t max_ulp, widened_max_ulp;
    uint64_t left_ulp;                 /* what is left once the addition's dtype is taken out */
    bool narrow_sum;                   /* the addition's dtype explains a part: without it, fewer elements differ */
    bool other_steps;                  /* a part is due to the functions of the other side */
    bool narrow_result, wide_result, other_dtype;
};

static struct total add_up(int32_t which, size_t n_layers, rates_difference (*differences)[RATES_OUTPUTS],
                           const rates_layer *layers) {
    struct total total = { 0 };
    for (size_t i = 0; i < n_layers; i++) {
        const rates_difference *one = &differences[i][which];
        if (!one->present) {
            continue;
        }
        bool narrow = layers[i].output[which].dtype != OL_FLOAT32;
        total.n_differ += one->n_differ;
        total.n_nan += one->n_nan;
        total.n_judged += one->n_judged;
        total.n_ours += one->n_ours_nearer;
        total.n_theirs += one->n_theirs_nearer;
        total.n_as_stated += one->n_as_stated;
        total.max_ulp = one->max_ulp > total.max_ulp ? one->max_ulp : total.max_ulp;
        total.other_dtype |= one->other_dtype != NULL;
        if (one->n_differ > 0) {
            bool explained = one->widened && one->widened_n_differ < one->n_differ;
            uint64_t left = explained ? one->widened_max_ulp : one->max_ulp;
            total.narrow_sum |= explained;
            total.other_steps |= left > 0;
            total.left_ulp = left > total.left_ulp ? left : total.left_ulp;
            total.narrow_result |= narrow && one->max_ulp > 0;
            total.wide_result |= !narrow && one->max_ulp > 0;
            if (explained) {
                total.n_widened += one->n;
                total.widened_n_differ += one->widened_n_differ;
                total.widened_max_ulp = left > total.widened_max_ulp ? left : total.widened_max_ulp;
            }
        }
    }
    return total;
}

static void print_evidence(FILE *stream, const struct total *total) {
    if (total->n_judged > 0) {
        fprintf(stream,
                "    Checked in extended precision on %" PRId64 " of the %" PRId64 " elements that differ: with the graph's own\n"
                "    roundings it gives this library's bits in %" PRId64 "; without any rounding in between, this library's\n"
                "    value is nearer to the formula in %" PRId64 ", the stored one in %" PRId64 ".\n",
                total->n_judged, total->n_differ, total->n_as_stated, total->n_ours, total->n_theirs);
    }
}

/* Generous bounds on what the reasons below can explain; a larger difference must not be explained away. */
enum { BETA_16_ULP = 1, BETA_32_ULP = 64, DECAY_ULP = 4096 };

static void print_doubt(FILE *stream, const struct total *total, bool unexplained) {
    if (total->n_nan > 0) {
        fprintf(stream, "    In %" PRId64 " of the %" PRId64 " elements that differ, one side is a NaN and the other a number.\n", total->n_nan,
                total->n_differ);
    }
    if (unexplained || total->n_nan > 0) {
        fputs("    This is more than rounding explains: the stored values are of another formula or other inputs.\n", stream);
    }
}

static void print_beta_reasons(FILE *stream, const struct total *total) {
    fprintf(stream, "  beta, up to %" PRIu64 " ulp:\n", total->max_ulp);
    if (total->wide_result) {
        fputs("    Here sigmoid(b) in float32 is the exact value rounded once. The stored one comes from a float32\n"
              "    exp, an addition and a division, each with an error of its own.\n", stream);
    }
    if (total->narrow_result) {
        fputs("    b has 16 bits, and so has beta. Here sigmoid(b) is rounded once, from the exact value to 16 bits.\n"
              "    The stored one was computed in float32 and rounded again, which tips values near a midpoint.\n", stream);
    }
    print_doubt(stream, total, total->max_ulp > (total->wide_result ? BETA_32_ULP : BETA_16_ULP));
    print_evidence(stream, total);
}

static void print_decay_reasons(FILE *stream, enum rates_output which, const struct total *total) {
    const char *name = which == RATES_DECAY ? "decay" : "log decay";
    fprintf(stream, "  %s, up to %" PRIu64 " ulp:\n", name, total->max_ulp);
    if (total->narrow_sum) {
        fputs("    a and dt_bias have the same 16-bit dtype, so the graph adds them, and takes softplus, in it.\n"
              "    transformers widens a to float32 first and stays there. Both are right for the graph they state.\n", stream);
    }
    if (total->narrow_sum) {
        fprintf(stream,
                "    With a widened to float32 first, this library's %s is within %" PRIu64 " ulp of the stored one,\n"
                "    and %" PRId64 " of %" PRId64 " elements differ.\n",
                name, total->widened_max_ulp, total->widened_n_differ, total->n_widened);
    }
    if (total->other_steps && which == RATES_LOG_DECAY) {
        fputs("    Every step here is the exact result rounded once. The stored log decay comes from float32 functions\n"
              "    that are good to about an ulp each.\n", stream);
    } else if (total->other_steps) {
        fputs("    Every step here is the exact result rounded once. The stored decay comes from float32 functions\n"
              "    (exp, log1p, exp) that are good to about an ulp each, and a relative error of the exponent m in\n"
              "    exp(-m) becomes m times as large in the result: small decays differ most.\n", stream);
    }
    print_doubt(stream, total, total->left_ulp > DECAY_ULP);
    print_evidence(stream, total);
}

void rates_print_differences(FILE *stream, const char *path, const rates_layer *layers, size_t n_layers,
                             rates_difference (*differences)[RATES_OUTPUTS]) {
    struct total totals[RATES_OUTPUTS];
    int32_t n = n_layers ? layers[0].n_outputs : 0;              /* of every layer */
    int64_t n_differ = 0;
    bool any = false, other_dtype = false;
    for (int32_t which = 0; which < n; which++) {
        totals[which] = add_up(which, n_layers, differences, layers);
        n_differ += totals[which].n_differ;
        other_dtype |= totals[which].other_dtype;
        for (size_t i = 0; i < n_layers; i++) {
            any |= differences[i][which].present;
        }
    }
    if (!any) {
        return;
    }
    fputs("\nAgainst the beta and decay stored in ", stream);
    cli_put(stream, path);
    fputs("\n\nlayer  of     ulp of     max ulp  elements that differ                nearer: ours     theirs\n", stream);
    for (size_t i = 0; i < n_layers; i++) {
        for (int32_t which = 0; which < n; which++) {
            if (differences[i][which].present) {
                print_row(stream, &layers[i], which, &differences[i][which]);
            }
        }
    }
    if (other_dtype) {
        fputs("Stored in another dtype than ours in part: there, the wider side was rounded to the narrower dtype first.\n",
              stream);
    }
    if (n_differ == 0) {
        fputs("\nNo element differs.\n", stream);
        return;
    }
    fputs("\nWhy it is not zero\n", stream);
    for (int32_t which = 0; which < n; which++) {
        if (totals[which].n_differ > 0 && layers[0].result[which] == RATES_BETA) {
            print_beta_reasons(stream, &totals[which]);
        } else if (totals[which].n_differ > 0) {
            print_decay_reasons(stream, layers[0].result[which], &totals[which]);
        }
    }
}
