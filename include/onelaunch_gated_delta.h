/* onelaunch for gated-delta layers: the gates that models of the family compute, as composites of onelaunch.h.
 *
 * The two functions of onelaunch.h (ol_gated_delta_rates_compile, ol_gated_delta_decay_compile) are the default of what is here: zeroed options give
 * their very bits. docs/gated-delta.md lists which model uses which option, with sources.
 *
 * Conventions are those of onelaunch.h: results through the last pointers, untouched on failure; `ol_error *` may be NULL; strides in elements. */
#ifndef ONELAUNCH_GATED_DELTA_H
#define ONELAUNCH_GATED_DELTA_H

#include <onelaunch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Gates ---------------------------------------------------------------------------------------------------------------
 *
 * Of a layer's projections b (update_logits) and a (decay_interval_inputs), and its parameters A_log and dt_bias:
 *
 *     beta       the update rate, as `beta` says                                          below
 *     x          a + dt_bias                                                              in the dtype that `sum` says
 *     rate       exp(float32(A_log)), or -float32(what is stored), as `rate` says         float32
 *     log decay  as `kind` says                                                           float32
 *     decay      exp(log decay)                                                           float32
 *
 * Each operation is a primitive of onelaunch.h, rounded once to its dtype; a negation and a doubling are exact. Nothing is thresholded,
 * clamped or flushed but by the options that say so. */

/* How the log decay comes from x and rate. What is computed of x alone (softplus(x), sigmoid(x), a clip) has the dtype of x. */
typedef enum ol_gate_kind {
    OL_GATE_SOFTPLUS = 0,              /* -(rate * softplus(x)): Qwen3-Next, Qwen3.5, Kimi Linear, OLMo hybrids */
    OL_GATE_LOWER_BOUND = 1,           /* lower_bound * sigmoid(rate * x): Kimi Delta Attention's safe gate */
    OL_GATE_LOWER_BOUND_PLAIN = 2,     /* lower_bound * sigmoid(x): the same without A_log, which is no input then */
    OL_GATE_CLAMPED = 3                /* -(rate * clip(softplus(x), interval_low, interval_high)): Mamba2's dt; first softplus, then the clip */
} ol_gate_kind;

/* What the third input holds. */
typedef enum ol_gate_rate {
    OL_GATE_RATE_LOGARITHM = 0,        /* A_log: the rate is exp(float32(A_log)) */
    OL_GATE_RATE_NEGATED = 1           /* -exp(A_log), as GGUF files store it (ssm_a): the rate is its negation; it is not exponentiated again */
} ol_gate_rate;

/* The dtype of x = a + dt_bias. */
typedef enum ol_gate_sum {
    OL_GATE_SUM_PROMOTED = 0,          /* ol_promote(dtype of a, dtype of dt_bias): both bfloat16 are added in bfloat16 */
    OL_GATE_SUM_FLOAT32 = 1            /* both are converted first, as transformers' a.float() + dt_bias */
} ol_gate_sum;

/* Which of the two the composite gives. */
typedef enum ol_gate_output {
    OL_GATE_DECAY = 0,                 /* exp(log decay) */
    OL_GATE_LOG_DECAY = 1,
    OL_GATE_LOG_DECAY_AND_DECAY = 2    /* two outputs, in this order */
} ol_gate_output;

/* How beta comes from b. */
typedef enum ol_gate_beta {
    OL_GATE_BETA_SIGMOID = 0,          /* sigmoid(b) */
    OL_GATE_BETA_DOUBLED = 1,          /* 2 * sigmoid(b), sigmoid rounded first: negative eigenvalues are allowed (OLMo hybrids) */
    OL_GATE_BETA_RAW = 2,              /* b itself, which is already an update rate */
    OL_GATE_BETA_NONE = 3              /* b is no input and beta no output */
} ol_gate_beta;

/* Zero is a good default for every field but the lower bound of the kinds that need one. A field that the kind has no use for must
 * be zero: a lower bound beside a softplus would otherwise be lost silently. */
typedef struct ol_gate_options {
    ol_gate_kind kind;
    ol_gate_rate rate;                 /* not with OL_GATE_LOWER_BOUND_PLAIN */
    ol_gate_sum sum;
    ol_gate_output output;
    ol_gate_beta beta;
    /* The floating dtype that beta is rounded to; 0: that of b. From a b of that dtype in one rounding; else computed in the common
     * dtype (ol_promote) of both and then rounded: OL_FLOAT32 for bfloat16 b is sigmoid(float32(b)), unrounded but for float32. */
    ol_dtype beta_rounding;
    /* The floating dtype that beta is stored in; 0: that it was rounded to. bfloat16 rounding stored as float32 is what engines do
     * whose buffer of update rates is float32 and whose activations are bfloat16. */
    ol_dtype beta_dtype;
    int32_t skip_softplus;             /* not 0: softplus(x) is x itself (Mamba2's dt_softplus off); OL_GATE_SOFTPLUS and OL_GATE_CLAMPED only */
    int32_t finite_rate;               /* not 0: the rate is at most FLT_MAX, so that times a softplus of 0 it is 0 (decay 1), not NaN */
    double lower_bound;                /* of the log decay, below 0 and finite; rounded to float32. The kinds with a lower bound only */
    double interval_low;               /* OL_GATE_CLAMPED only: the clip's limits, -inf to +inf, low <= high, rounded to the dtype of x. */
    double interval_high;              /* 0: no upper limit (+inf) */
} ol_gate_options;

/* Compiles the gates for inputs of these floating dtypes (float32, float16, bfloat16). The composite's inputs, in this order, those
 * left out that the options have no use for (their dtype is not looked at):
 *     b        [tokens, heads]      unless beta is OL_GATE_BETA_NONE
 *     a        [tokens, heads], or [tokens, heads, channels] for a decay per channel
 *     A_log    [heads], or [heads, 1] beside channels; unless kind is OL_GATE_LOWER_BOUND_PLAIN
 *     dt_bias  [heads], or [heads, channels]; a model without one gives a scalar zero (rank 0)
 * or whatever broadcasts so, at any strides: slices of one projection included (ol_gated_delta_split). Outputs, in this order: beta
 * unless there is none (shape of b); log decay, decay, or both, as `output` says (shape of a). One launch a replay.
 * `options` may be NULL: the default. It is not kept. Special values are in docs/gated-delta.md; the one to know: an infinite rate (A_log
 * above 88.7) times a softplus of 0 is NaN, as IEEE 754 has it, unless finite_rate is set.
 * Errors: OL_ERROR_ARGUMENT for an option that is unknown, has no use in this kind, or is out of its range; OL_ERROR_DTYPE for
 * an input, beta_rounding or beta_dtype that is not floating; those of ol_compile. Threads, allocation: as ol_compile. */
OL_API ol_status ol_gated_delta_gates_compile(ol_device *device, const ol_gate_options *options, ol_dtype update_logits,
                                              ol_dtype decay_interval_inputs, ol_dtype decay_rate, ol_dtype decay_interval_bias,
                                              ol_composite **composite, ol_error *error);

/* ---- Slices of a projection -------------------------------------------------------------------------------------------------
 *
 * Models compute b and a by one projection. They are views of its rows, so nothing has to be copied. */

typedef enum ol_gate_layout {
    OL_GATE_HALVES = 0,                /* a row is [b of all value heads, a of all value heads] */
    OL_GATE_INTERLEAVED = 1            /* a row is, for each key head, [b of its value heads, a of its value heads]: Qwen3-Next's in_proj_ba */
} ol_gate_layout;

/* Sets the views b and a of `projection`, whose last axis has 2 * value heads elements (r = value heads / key heads). OL_GATE_HALVES:
 * [..., value heads]; key_heads is not looked at. OL_GATE_INTERLEAVED: one axis more, [..., key_heads, r]. Strides of any sort stay
 * what they are; nothing is read. OL_ERROR_ARGUMENT: a null pointer, a layout that is unknown, key_heads below 1; OL_ERROR_DTYPE: the
 * projection's dtype is none; OL_ERROR_SHAPE: a rank below 1, too high for one axis more, or a last axis that does not divide so. */
OL_API ol_status ol_gated_delta_split(const ol_tensor *projection, ol_gate_layout layout, int64_t key_heads, ol_tensor *b, ol_tensor *a,
                                      ol_error *error);

/* The order of value heads along an axis: value head v of v = 0 .. value heads - 1 reads key head v / r (grouped), or v % key heads
 * (tiled, as GGUF files of Qwen3.5 have them). */
typedef enum ol_head_map {
    OL_HEADS_GROUPED = 0,
    OL_HEADS_TILED = 1
} ol_head_map;

/* Sets `view` to `tensor` with its axis of value heads (`axis`, from 0, or from -1 at the end) as two, [key_heads, r], in grouped order
 * whatever order it lies in. So A_log, dt_bias and outputs of [value heads] meet interleaved b and a, and weights in tiled order meet activations in
 * grouped order, without a copy. Nothing is read. Errors as for ol_gated_delta_split; OL_ERROR_ARGUMENT: an axis that is not there. */
OL_API ol_status ol_gated_delta_heads_view(const ol_tensor *tensor, int32_t axis, int64_t key_heads, ol_head_map map, ol_tensor *view,
                                           ol_error *error);

#ifdef __cplusplus
}
#endif
#endif
