/* See step_reference.h. */
#include "step_reference.h"

#include <math.h>
#include <stdlib.h>

/* ---- Formulas ---------------------------------------------------------------------------------------------------- */

static const float_format *format_of(ol_dtype dtype) {
    return float_format_named(st_dtype_name(dtype));
}

static double at(const ol_tensor *tensor, int64_t index) {
    const float_format *format = format_of(tensor->dtype);
    return float_value(format, float_load(format, tensor->data, index));
}

/* Through float32, in which transformers computes what it then rounds to a narrower dtype. */
static double round_to(ol_dtype dtype, bool is_rounded, double x) {
    const float_format *format = format_of(dtype);
    return is_rounded && dtype != OL_FLOAT32 ? float_value(format, float_round(format, (float)x)) : x;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x * sigmoid(x); }
static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

/* Where channel c of q, k and v (joint, as the convolution has them) or of z lies in a row of the projection. */
typedef struct places {
    int64_t keys, values, key_heads, key_dim, value_dim, ratio, row;
    bool interleaved;
} places;

static places places_of(const step_layer *layer) {
    const ol_gated_delta_options *o = &layer->options.recurrence;
    return (places){ .keys = (int64_t)o->key_heads * o->key_dim, .values = (int64_t)o->value_heads * o->value_dim, .key_heads = o->key_heads, .key_dim = o->key_dim,
                     .value_dim = o->value_dim, .ratio = o->value_heads / o->key_heads, .row = layer->base[STEP_QKV].shape[1], .interleaved = layer->has_z };
}

/* An interleaved row is, for each key head, [q, k, v of its value heads, z of its value heads]. */
static int64_t interleaved_place(const places *p, int64_t part, int64_t channel) {
    int64_t each = part < 2 ? p->key_dim : p->ratio * p->value_dim, head = channel / each;
    int64_t before = part < 3 ? part * p->key_dim : 2 * p->key_dim + each;
    return head * (p->row / p->key_heads) + before + channel % each;
}

static double input_at(const step_layer *layer, const places *p, int64_t token, int64_t channel) {
    int64_t part = channel < p->keys ? 0 : channel < 2 * p->keys ? 1 : 2;
    int64_t place = p->interleaved ? interleaved_place(p, part, channel - part * p->keys) : channel;
    return at(&layer->base[STEP_QKV], token * p->row + place);
}

static double gate_at(const step_layer *layer, const places *p, int64_t token, int64_t channel) {
    return p->interleaved ? at(&layer->base[STEP_QKV], token * p->row + interleaved_place(p, 3, channel)) : at(&layer->base[STEP_Z], token * p->values + channel);
}

static void convolve(const step_layer *layer, const places *p, bool is_rounded, double *convolved) {
    const ol_gated_delta_mixer_options *o = &layer->options;
    ol_dtype dtype = o->recurrence.activation_dtype;
    for (int64_t t = 0; t < layer->rates->tokens; t++) {
        for (int64_t c = 0; c < layer->channels; c++) {
            double sum = 0;
            for (int64_t w = 0; w < o->width; w++) {
                int64_t from = t - (o->width - 1) + w;
                sum += from < 0 ? 0 : input_at(layer, p, from, c) * at(&layer->base[STEP_CONVOLUTION], c * o->width + w);
            }
            sum = round_to(dtype, is_rounded && o->sum_rounded, sum);
            convolved[t * layer->channels + c] = round_to(dtype, is_rounded, silu(sum));
        }
    }
}

static void normalise(const double *x, int64_t n, double scale, double *result) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] * x[i];
    }
    for (int64_t i = 0; i < n; i++) {
        result[i] = x[i] / sqrt(sum + 1e-6) * scale;
    }
}

/* One token of one value head; S is [key_dim][value_dim]. */
static void recur(const step_layer *layer, bool is_rounded, int64_t token, int64_t head, const double *q, const double *k, const double *v, double *S, double *core) {
    const ol_gated_delta_options *o = &layer->options.recurrence;
    int64_t K = o->key_dim, V = o->value_dim, i = token * o->value_heads + head;
    double beta = round_to(o->update_dtype, is_rounded, sigmoid(at(&layer->base[STEP_B], i)));
    double x = at(&layer->base[STEP_A], i) + at(&layer->base[STEP_DT_BIAS], head);
    double decay = exp(-exp(at(&layer->base[STEP_A_LOG], head)) * softplus(x));
    for (int64_t column = 0; column < V; column++) {
        double memory = 0, read = 0;
        for (int64_t row = 0; row < K; row++) {
            S[row * V + column] *= decay;
            memory += S[row * V + column] * k[row];
        }
        for (int64_t row = 0; row < K; row++) {
            S[row * V + column] += k[row] * beta * (v[column] - memory);
            read += S[row * V + column] * q[row];
        }
        core[column] = round_to(o->activation_dtype, is_rounded, read);
    }
}

static void norm(const step_layer *layer, const places *p, bool is_rounded, int64_t token, int64_t head, const double *core, double *output) {
    const ol_gated_delta_mixer_options *o = &layer->options;
    ol_dtype dtype = o->recurrence.activation_dtype;
    double sum = 0;
    for (int64_t i = 0; i < p->value_dim; i++) {
        sum += core[i] * core[i];
    }
    for (int64_t i = 0; i < p->value_dim; i++) {
        double n = round_to(dtype, is_rounded && o->normalized_rounded, core[i] / sqrt(sum / (double)p->value_dim + o->epsilon));
        n = round_to(dtype, is_rounded && o->weighted_rounded, n * at(&layer->base[STEP_NORM], i));
        output[i] = round_to(dtype, is_rounded, n * silu(gate_at(layer, p, token, head * p->value_dim + i)));
    }
}

bool step_evaluate(const step_layer *layer, bool is_rounded, step_values *values) {
    const ol_gated_delta_options *o = &layer->options.recurrence;
    places p = places_of(layer);
    *values = (step_values){ .convolved = calloc((size_t)(layer->rates->tokens * layer->channels), sizeof(double)) };
    bool ok = values->convolved != NULL;
    for (int i = 0; i < STEP_WINDOW; i++) {
        values->result[i] = calloc((size_t)step_result_count(layer, (enum step_result)i), sizeof(double));
        ok = ok && values->result[i];
    }
    if (!ok) {
        return false;
    }
    convolve(layer, &p, is_rounded, values->convolved);
    for (int64_t t = 0; t < layer->rates->tokens; t++) {
        const double *row = values->convolved + t * layer->channels;
        for (int64_t head = 0; head < o->value_heads; head++) {
            double q[OL_DELTA_MAX_DIM], k[OL_DELTA_MAX_DIM];
            int64_t key_head = head / p.ratio, vector = (t * o->value_heads + head) * p.value_dim;
            normalise(row + key_head * p.key_dim, p.key_dim, 1 / sqrt((double)p.key_dim), q);
            normalise(row + p.keys + key_head * p.key_dim, p.key_dim, 1, k);
            recur(layer, is_rounded, t, head, q, k, row + 2 * p.keys + head * p.value_dim, values->result[STEP_STATE] + head * p.key_dim * p.value_dim,
                  values->result[STEP_CORE] + vector);
            norm(layer, &p, is_rounded, t, head, values->result[STEP_CORE] + vector, values->result[STEP_OUTPUT] + vector);
        }
    }
    for (int64_t i = 0; i < step_result_count(layer, STEP_STATE); i++) {
        values->result[STEP_STATE][i] = round_to(o->state_dtype, is_rounded, values->result[STEP_STATE][i]);
    }
    return true;
}

void step_values_free(step_values *values) {
    for (int i = 0; i < STEP_WINDOW; i++) {
        free(values->result[i]);
    }
    free(values->convolved);
}

/* ---- Distances --------------------------------------------------------------------------------------------------- */

/* The spacing of a format's numbers at x. */
static double spacing(const float_format *format, double x) {
    int32_t bias = (1 << (format->bits - format->fraction_bits - 2)) - 1, exponent;
    frexp(x, &exponent);
    exponent = x == 0 || exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    return ldexp(1, exponent - format->fraction_bits);
}

/* Adds a distance; rms is a sum of squares until the end. */
static void add(step_distance *distance, double units) {
    distance->rms += units * units;
    distance->max = units > distance->max ? units : distance->max;
}

/* The two sides of a comparison, in the formats that they are stored in, and both evaluations. */
typedef struct sides {
    const float_format *format, *ours_format, *theirs_format;
    const void *ours, *theirs;
    const double *exact, *rounded;
} sides;

static void compare_group(const sides *s, int64_t first, int64_t n, step_difference *d) {
    double squares = 0, noise = 0, worst = 0;
    for (int64_t i = first; i < first + n; i++) {
        squares += s->exact[i] * s->exact[i];
    }
    double scale = sqrt(squares / (double)n);
    for (int64_t i = first; i < first + n; i++) {
        double ours = float_value(s->ours_format, float_load(s->ours_format, s->ours, i)), exact = s->exact[i];
        double theirs = float_value(s->theirs_format, float_load(s->theirs_format, s->theirs, i)), rounded = s->rounded[i];
        d->n_same += ours == theirs;
        if (!isfinite(ours) || !isfinite(theirs) || !isfinite(rounded) || !isfinite(scale)) {
            d->n_not_finite++;
            continue;
        }
        double unit = spacing(s->format, fmax(fabs(exact), scale));
        add(&d->ours, fabs(ours - theirs) / unit);
        add(&d->theirs, fabs(theirs - exact) / unit);
        add(&d->noise, fabs(rounded - exact) / unit);
        noise = fmax(noise, fabs(rounded - exact) / unit);
        worst = fmax(worst, fabs(ours - theirs) / unit);
    }
    d->worst = fmax(d->worst, worst / (noise + 1));
}

void step_compare(const float_format *format, const float_format *ours_format, const void *ours, const float_format *theirs_format, const void *theirs,
                  const double *exact, const double *rounded, int64_t n, int64_t group, step_difference *difference) {
    sides s = { format, ours_format, theirs_format, ours, theirs, exact, rounded };
    *difference = (step_difference){ .present = true, .n = n };
    for (int64_t first = 0; first < n; first += group) {
        compare_group(&s, first, group, difference);
    }
    int64_t n_finite = n - difference->n_not_finite;
    step_distance *all[] = { &difference->ours, &difference->theirs, &difference->noise };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        all[i]->rms = n_finite > 0 ? sqrt(all[i]->rms / (double)n_finite) : 0;
    }
    difference->within = difference->n_not_finite == 0 && difference->ours.rms <= difference->noise.rms && difference->worst <= 1;
}
