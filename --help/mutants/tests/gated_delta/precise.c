/* See precise.h. */
#include "precise.h"

#include "element.h"

#include <math.h>
#include <stdlib.h>

typedef long double real;

static const real U = 0x1p-24L;                  /* float32 rounds by no more than this part of a result, … */
static const real TINY = 0x1p-149L;              /* … or, below the normal numbers, than half of this */
static const real SPARE = 1.02L;                 /* for what first order leaves out */

/* A number and a bound on its error. */
typedef struct about {
    real value, error;
} about;

static about rounded(real value, real error) { return (about){ value, error + U * (fabsl(value) + error) + TINY }; }

/* ---- Gates ---- */

static about beta_of(const ol_gated_delta_options *o, real b)
{
    real sigmoid = 1 / (1 + expl(-b));
    if (o->gates.beta == OL_GATE_BETA_RAW)
        return (about){ b, 0 };
    return o->gates.beta == OL_GATE_BETA_DOUBLED ? rounded(2 * sigmoid, 0) : rounded(sigmoid, 0);
}

static real softplus(real x) { return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)); }

/* exp(-(exp(A_log) softplus(a + dt_bias))), each step rounded. An overflow of the rate is not bounded: infinite times something. */
static about decay_of(real a, real bias, real log_rate)
{
    real x = a + bias, sigmoid = 1 / (1 + expl(-x)), rate = expl(log_rate);
    about interval = rounded(softplus(x), SPARE * U * fabsl(x) * sigmoid);
    real g = rate * interval.value;
    if (rate > 3.4e38L)
        return (about){ expl(-g), g > 200 ? TINY : INFINITY };
    about exponent = rounded(g, rate * interval.error + U * rate * (interval.value + interval.error) + TINY * interval.value);
    return rounded(expl(-g), SPARE * (expl(exponent.error - g) - expl(-g)));
}

/* ---- Keys and queries ---- */

typedef struct vector {
    real x[OL_DELTA_MAX_DIM];
    real relative, absolute;                     /* of each element: relative |x| + absolute */
    real norm;
} vector;

static real roundings(int n) { return (real)((n + 31) / 32 + 5); }

static vector normalised(const ol_gated_delta_options *o, const ol_tensor *t, int64_t token, int64_t head, real scale, int n_scalings)
{
    int K = o->key_dim;
    real sum = 0, epsilon = (float)(o->epsilon == 0 ? 1e-6 : o->epsilon), r = 1, error = 0, squares = 0;
    vector v = { .absolute = TINY };
    for (int i = 0; i < K; i++) {
        int64_t index[3] = { token, head, i };
        v.x[i] = element_read(t->dtype, element_at(t, index));
        sum += v.x[i] * v.x[i];
    }
    real sum_error = SPARE * roundings(K) * U * sum + 64 * TINY, length = sqrtl(sum);
    real length_error = U * length + (length > 0 ? fminl(sum_error / length, sqrtl(sum_error)) : sqrtl(sum_error));
    switch (o->norm) {
    case OL_DELTA_NORM_NONE: break;
    case OL_DELTA_NORM_RSQRT:
        r = 1 / sqrtl(sum + epsilon);
        error = (sum_error / (sum + epsilon) + U) / 2 + U;
        break;
    case OL_DELTA_NORM_MAXIMUM:
        r = 1 / fmaxl(length, epsilon);
        error = length_error * r + U;
        break;
    case OL_DELTA_NORM_ADDED:
        r = 1 / (length + epsilon);
        error = length_error * r + 2 * U;
        break;
    case OL_DELTA_NORM_RMS:
        r = 1 / sqrtl(sum / K + epsilon) / sqrtl(K);
        error = ((sum_error / K + TINY) / (sum / K + epsilon) + 2 * U) / 2 + 3 * U;
        break;
    }
    for (int i = 0; i < K; i++) {
        v.x[i] *= r * scale;
        squares += v.x[i] * v.x[i];
    }
    v.norm = sqrtl(squares);
    v.relative = SPARE * (error + (o->norm == OL_DELTA_NORM_NONE ? 0 : U) + (real)n_scalings * U);
    return v;
}

/* ---- The recurrence ---- */

/* sum of |x_i| |y_i|, and the norm of x. */
static void magnitudes(const real *x, const real *y, int n, real *products, real *norm)
{
    real squares = 0;
    *products = 0;
    for (int i = 0; i < n; i++) {
        *products += fabsl(x[i] * y[i]);
        squares += x[i] * x[i];
    }
    *norm = sqrtl(squares);
}

static real dot(const real *x, const real *y, int n)
{
    real sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* One row over one token; *error is of the row's 2-norm. */
static about one_row(real *row, real *error, int K, const vector *k, const vector *q, about beta, const about *decay, int channels, real value)
{
    real products, norm, root = sqrtl(K), decayed_error = 0, most = 0, n = roundings(K);
    for (int i = 0; i < K; i++) {
        about d = decay[channels ? i : 0];
        real e = (fabsl(row[i]) + *error) * d.error;
        decayed_error += e * e;
        most = fmaxl(most, d.value + d.error);
        row[i] *= d.value;
    }
    magnitudes(row, k->x, K, &products, &norm);
    real e = most * *error + SPARE * (sqrtl(decayed_error) + U * norm + root * TINY);
    real m = dot(row, k->x, K), reach = e * k->norm;                     /* how far m may be off for the row's error alone */
    real m_error = SPARE * ((n * U + k->relative) * (products + reach) + root * k->absolute * (norm + e) + 64 * TINY);
    real u = beta.value * (value - m), off = fabsl(value - m) + reach + m_error;
    real u_error = SPARE * ((beta.value + beta.error) * (m_error + U * off) + beta.error * off + U * (beta.value + beta.error) * off + TINY);
    real u_size = fabsl(u) + beta.value * reach + u_error;
    for (int i = 0; i < K; i++)
        row[i] += u * k->x[i];
    magnitudes(row, q->x, K, &products, &norm);
    real growth = fmaxl(1, fabsl(1 - beta.value * k->norm * k->norm)) + 4 * k->relative * beta.value * k->norm * k->norm;
    *error = growth * e + SPARE * (u_error * k->norm + u_size * (k->relative * k->norm + root * k->absolute) + U * (norm + e) + root * TINY);
    real o_error = *error * q->norm + SPARE * ((n * U + q->relative) * (products + *error * q->norm) + root * q->absolute * (norm + *error) + 64 * TINY);
    return (about){ dot(row, q->x, K), o_error };
}

precise precise_step(const step_case *c)
{
    const ol_gated_delta_options *o = &c->options;
    const ol_gated_delta_arguments *a = &c->arguments;
    int K = o->key_dim, V = o->value_dim, HV = o->value_heads, r = HV / o->key_heads, channels = o->decay_per_channel;
    int64_t n_tokens = a->query.shape[0];
    head_axes heads = { o->key_heads, HV, 0 };
    precise p = { .n_outputs = (size_t)(n_tokens * HV * V), .n_rows = (size_t)(HV * V) };
    p.output = calloc(p.n_outputs + 1, sizeof(real));
    p.output_bound = calloc(p.n_outputs + 1, sizeof(real));
    p.state = calloc(p.n_rows * (size_t)K + 1, sizeof(real));
    p.state_bound = calloc(p.n_rows + 1, sizeof(real));
    real *row_error = calloc(p.n_rows + 1, sizeof(real));
    assert_true(p.output && p.output_bound && p.state && p.state_bound && row_error);
    for (int64_t i = 0; i < (int64_t)p.n_rows * K; i++)
        p.state[i] = element_read(a->state.dtype, (char *)a->state.data + i * (int64_t)ol_dtype_size(a->state.dtype));
    real scale = o->scale == 0 ? 1 / sqrtl(K) : (real)(float)o->scale;
    static const real units[] = { [OL_FLOAT16] = 0x1p-11L, [OL_BFLOAT16] = 0x1p-8L, [OL_FLOAT32] = 0x1p-24L };
    static const real tinies[] = { [OL_FLOAT16] = 0x1p-24L, [OL_BFLOAT16] = 0x1p-133L, [OL_FLOAT32] = 0x1p-149L };
    for (int64_t t = 0; t < n_tokens; t++)
        for (int h = 0; h < HV; h++) {
            vector k = normalised(o, &a->key, t, h / r, 1, 0), q = normalised(o, &a->query, t, h / r, scale, 2);
            about beta = beta_of(o, element_read(a->update.dtype, element_of_head(&a->update, &heads, t, h, -1))), decay[OL_DELTA_MAX_DIM];
            for (int i = 0; i < (channels ? K : 1); i++) {
                real d = element_read(a->decay.dtype, element_of_head(&a->decay, &heads, t, h, channels ? i : -1));
                if (o->decay == OL_DELTA_DECAY_GIVEN)
                    decay[i] = (about){ d, 0 };
                else if (o->decay == OL_DELTA_DECAY_LOGARITHM)
                    decay[i] = rounded(expl(d), 0);
                else
                    decay[i] = decay_of(d, element_read(a->decay_bias.dtype, element_of_head(&a->decay_bias, &heads, -1, h, channels ? i : -1)),
                                        element_read(a->decay_rate.dtype, element_of_head(&a->decay_rate, &heads, -1, h, -1)));
            }
            for (int v = 0; v < V; v++) {
                size_t row = (size_t)(h * V + v), at = (size_t)(t * HV + h) * (size_t)V + (size_t)v;
                real value = element_read(a->value.dtype, element_of_head(&a->value, &heads, t, h, v));
                about out = one_row(p.state + row * (size_t)K, &row_error[row], K, &k, &q, beta, decay, channels, value);
                p.output[at] = out.value;
                p.output_bound[at] = out.error + units[a->output.dtype] * (fabsl(out.value) + out.error) + tinies[a->output.dtype];
            }
        }
    for (size_t row = 0; row < p.n_rows; row++) {
        real largest = 0;
        for (int i = 0; i < K; i++)
            largest = fmaxl(largest, fabsl(p.state[row * (size_t)K + (size_t)i]));
        p.state_bound[row] = row_error[row] + units[a->state.dtype] * (largest + row_error[row]) * (a->state.dtype != OL_FLOAT32) + tinies[a->state.dtype];
    }
    free(row_error);
    return p;
}

void precise_free(precise *p)
{
    free(p->output);
    free(p->output_bound);
    free(p->state);
    free(p->state_bound);
}
