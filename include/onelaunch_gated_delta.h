/* onelaunch for gated-delta layers: the gates that models of the family compute, as composites of onelaunch.h; the recurrence
 * step, which a layer runs after its projections and convolution, in one launch; and the mixer step, which is all between the projections
 * and the output projection, in one launch too.
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

/* ---- The recurrence step ---------------------------------------------------------------------------------------------------
 *
 * For each of N sequences, each of its T tokens and each value head, with a matrix state S of value_dim rows and key_dim columns
 * (Yang et al., "Gated Delta Networks", 2024, eq. 10; per channel: Kimi Delta Attention, 2025):
 *
 *     k^ = k normalised       q^ = q normalised, times scale         of the key head that the value head reads
 *     S  = S * decay          each column by its own decay where that is per channel
 *     u  = beta * (v - S k^)
 *     S  = S + u k^T
 *     o  = S q^
 *
 * **One order of operations**, in float32, whatever the device, SIMD level, number of threads, batch, slot, layout or split into calls:
 * a product and sum is one fused multiply-add where fma is written and two roundings elsewhere; subnormals are kept; NaN is canonical
 * in what is stored.
 *
 *     dot(x, y) of n elements: 32 sums s[0 .. 31] = +0. x and y are continued with zeros to a multiple of 32; for each k in ascending
 *               order s[k mod 32] = fma(x[k], y[k], s[k mod 32]). Then neighbours are added, s[i] = s[2i] + s[2i+1]: 16 sums, 8, 4, 2, 1.
 *     1.  sum = dot(q, q), r as `norm` says, k^[i] = k[i] * r, and with q's own sum and r q^[i] = (q[i] * r) * scale
 *     2.  beta, decay: the bits of the gates' composite; a log decay that is given goes through exp; both float32
 *     3.  for each row v: S[v][k] = S[v][k] * decay;  m = dot(S[v], k^);  u = beta * (v[v] - m);  S[v][k] = fma(u, k^[k], S[v][k]);
 *         o[v] = dot(S[v], q^)
 *     4.  o is rounded once to its dtype; the state once, where it is stored: after the last token of a call, and in each
 *         intermediate state. Within a call it is float32.
 *
 * So a token's result depends on its own sequence alone. A float32 state gives the same bits however the tokens are split into calls (eight
 * calls of one token equal one of eight). A bfloat16 or float16 state is rounded at the end of each call, so equal splits
 * give equal bits, and different splits do not. */

/* What q and k are multiplied by, sum being dot(x, x); each operation is rounded to float32, rsqrt(y) is the nearest to y^-1/2. */
typedef enum ol_delta_norm {
    OL_DELTA_NORM_NONE = 0,            /* nothing; q^ = q * scale */
    OL_DELTA_NORM_RSQRT = 1,           /* rsqrt(sum + epsilon): transformers, flash-linear-attention, vLLM, SGLang, FlashInfer */
    OL_DELTA_NORM_MAXIMUM = 2,         /* 1 / maximum(sqrt(sum), epsilon): ggml's l2_norm */
    OL_DELTA_NORM_ADDED = 3,           /* 1 / (sqrt(sum) + epsilon): TensorRT-LLM */
    OL_DELTA_NORM_RMS = 4              /* rsqrt(sum / key_dim + epsilon) * key_dim^-1/2: mlx-lm */
} ol_delta_norm;

/* What `decay` holds. */
typedef enum ol_delta_decay {
    OL_DELTA_DECAY_COMPUTED = 0,       /* a: the gates are computed as `gates` says */
    OL_DELTA_DECAY_LOGARITHM = 1,      /* the log decay, of which exp is taken */
    OL_DELTA_DECAY_GIVEN = 2           /* the decay itself */
} ol_delta_decay;

typedef enum ol_delta_layout {
    OL_DELTA_VALUE_KEY = 0,            /* [value_dim, key_dim]: vLLM, SGLang, FlashInfer ("pretranspose"), mlx-lm, ggml */
    OL_DELTA_KEY_VALUE = 1             /* [key_dim, value_dim]: transformers, flash-linear-attention's default */
} ol_delta_layout;

/* Which slot numbers say that a sequence is padding. */
typedef enum ol_delta_padding {
    OL_DELTA_PADDING_NEGATIVE = 0,     /* those below 0: SGLang, FlashInfer */
    OL_DELTA_PADDING_NOT_POSITIVE = 1, /* those below 1: vLLM, whose slot 0 is the null block */
    OL_DELTA_PADDING_NONE = 2          /* none: a number below 0 is an error */
} ol_delta_padding;

#define OL_DELTA_MAX_DIM 256           /* of key_dim and value_dim */

/* Zero is a good default for every field but the first five lines' ones that say no other. */
typedef struct ol_gated_delta_options {
    int32_t key_heads;                 /* 1 or more */
    int32_t value_heads;               /* a multiple of key_heads; r = value_heads / key_heads */
    int32_t key_dim, value_dim;        /* K and V: 1 to OL_DELTA_MAX_DIM each */
    ol_dtype activation_dtype;         /* of q, k and v: float32, float16 or bfloat16, as all dtypes here */
    ol_dtype output_dtype;             /* 0: as activation_dtype */
    ol_dtype state_dtype;              /* 0: float32 */
    ol_dtype update_dtype;             /* of b, or beta; 0: as activation_dtype */
    ol_dtype decay_dtype;              /* of a, or the log decay or decay; 0: as activation_dtype */
    ol_dtype decay_rate_dtype;         /* of A_log; 0: float32 */
    ol_dtype decay_bias_dtype;         /* of dt_bias; 0: as activation_dtype */
    ol_head_map head_map;              /* the key head that value head v reads: v / r, or v % key_heads */
    ol_delta_layout state_layout;
    ol_delta_norm norm;
    double epsilon;                    /* of the norm, 0 or more, rounded to float32; 0: 1e-6 */
    double scale;                      /* rounded to float32; 0: key_dim^-1/2 */
    ol_delta_decay decay;
    int32_t decay_per_channel;         /* not 0: a decay for each of the key_dim columns of each value head */
    /* How beta, and the decay if it is computed, come from their inputs. `output` and `beta_dtype` must be 0 (the step takes beta in float32, after
     * beta_rounding), beta not OL_GATE_BETA_NONE; a beta that is given is OL_GATE_BETA_RAW. Where the decay is given, what
     * concerns it must be 0. */
    ol_gate_options gates;
    ol_delta_padding padding;
    int32_t padding_output_untouched;  /* not 0: outputs of padding are left as they are; 0: they are zeros */
} ol_gated_delta_options;

/* A layer's step: options that were checked, and kernels. Immutable; any number of threads may run steps of it at once. */
typedef struct ol_gated_delta ol_gated_delta;

/* Checks the options, compiles the gates and chooses or compiles kernels. On a CPU this takes microseconds. `options` are not kept.
 * Destroy it with ol_gated_delta_destroy; it keeps the device alive. Errors: OL_ERROR_ARGUMENT and OL_ERROR_DTYPE name the field,
 * what it is and what was expected; OL_ERROR_MEMORY; OL_ERROR_DEVICE: the device has no such kernels. */
OL_API ol_status ol_gated_delta_create(ol_device *device, const ol_gated_delta_options *options, ol_gated_delta **layer, ol_error *error);
OL_API void ol_gated_delta_destroy(ol_gated_delta *layer);       /* NULL is allowed; not while a step of it runs */

/* The tensors of a step. A zeroed one (no data, rank 0) is not given. Strides are any 64-bit ones, in elements, but q, k, v, the output, a state's
 * and a per-channel input's last axis is contiguous (stride 1, unless its extent is 1). An axis of value heads may be
 * given as two, [key_heads, r], element [k, j] being the j-th value head that reads key head k, as interleaved projections
 * lie (ol_gated_delta_split); this is meant where [value heads] stands below.
 *
 * N, the number of sequences, is the extent of read_slots, write_slots, cu_seqlens (less 1), has_initial_state, accepted_tokens or
 * token_counts, whichever are given, which must agree; where none is, that of state. */
typedef struct ol_gated_delta_arguments {
    ol_tensor query, key;              /* [tokens, key_heads, key_dim] */
    ol_tensor value;                   /* [tokens, value heads, value_dim] */
    ol_tensor update;                  /* b or beta, [tokens, value heads] */
    ol_tensor decay;                   /* a, log decay or decay, [tokens, value heads]; per channel [tokens, value heads, key_dim] */
    ol_tensor decay_rate;              /* A_log, or as gates.rate says, [value heads]; given where the gates take it, and only there */
    ol_tensor decay_bias;              /* dt_bias, [value heads], per channel [value heads, key_dim], or a scalar (rank 0); only where the decay is computed */
    ol_tensor output;                  /* [tokens, value heads, value_dim] */
    /* The pool, [slots, value_heads, value_dim, key_dim] or [slots, value_heads, key_dim, value_dim], in one axis of heads. */
    ol_tensor state;
    /* Slots that sequences start from and that their states go to: [N], int32 or int64. Not given: sequence i reads slot i, which is no padding
     * then, and writes the slot that it reads. With two axes [N, columns], columns >= 1: the state after token t of a sequence goes to its
     * write slot of column t (there are as many columns as the longest sequence has tokens, or more; the rest is not looked at), and it starts from the read slot
     * of column accepted_tokens - 1, or 0 where those are not given. A table of two axes for write_slots only if update is on. */
    ol_tensor read_slots, write_slots;
    /* Tokens [cu_seqlens[i], cu_seqlens[i + 1]) are sequence i's: [N + 1], int32 or int64, ascending, 0 or more, at most tokens; any length, 0
     * included. Not given: tokens / N each, which must divide. */
    ol_tensor cu_seqlens;
    ol_tensor has_initial_state;       /* [N], bool: where 0 the sequence starts from zeros, and its read slot is not read. Not given: all have one */
    ol_tensor accepted_tokens;         /* [N], int32 or int64, 1 to columns; only with read_slots of two axes */
    /* [N], int32 or int64, 0 to the sequence's length: so many of its first tokens are run, as if it had no more. That replays the
     * accepted tokens of a speculative call from the state before it. Outputs of the rest are those of padding. Not given: all. */
    ol_tensor token_counts;
    /* The state after each token of each sequence: [N, T or more, value_heads, …] as a slot of the pool, in its dtype. Elements beyond a sequence's
     * tokens are untouched. Not given: not stored. */
    ol_tensor intermediate_states;
    int32_t state_is_kept;             /* not 0: the pool is read and not written; write_slots are not given then */
    /* GPUs: device memory to which the number of skipped indices is added (a slot outside of the pool, a sequence outside of
     * the tokens, a column outside of its table: nothing is read or written for these); NULL: they are not counted. On a CPU such
     * indices are errors, and this is not looked at. */
    uint32_t *skipped;
} ol_gated_delta_arguments;

/* Runs the step: one launch (none where there is nothing to write), into output, state and intermediate_states. Allocates nothing.
 *
 * A sequence whose read slot (in its column) is a padding number is padding: its tokens' outputs are zeros or untouched, as the options say, and
 * nothing else is read or written for it. So are outputs of tokens that belong to no sequence, or are beyond token_counts. A write slot that
 * is a padding number drops that state. A sequence without tokens has its initial state, or zeros, put into its write slot
 * where that is another or it has none; with write_slots of two axes nothing.
 *
 * Everything that the host can see is checked first, and on an error nothing has been written: dtypes (OL_ERROR_DTYPE); shapes,
 * strides of the last axes, tokens that do not divide (OL_ERROR_SHAPE); tensors missing, or given without use (OL_ERROR_ARGUMENT); output,
 * state or intermediate_states overlapping another tensor or themselves (OL_ERROR_OVERLAP). On a CPU that includes
 * what indices say: slots outside of the pool, cu_seqlens that descend or pass the tokens, counts out of range
 * (OL_ERROR_ARGUMENT); a slot that is written twice, or that one sequence writes and another reads (OL_ERROR_OVERLAP).
 * The host's floating-point state is neither obeyed nor changed. Returns when all is written (CPU), or when the kernel is in the stream (CUDA). */
OL_API ol_status ol_gated_delta_step(const ol_gated_delta *layer, ol_stream stream, const ol_gated_delta_arguments *arguments, ol_error *error);

/* ---- The mixer step --------------------------------------------------------------------------------------------------------
 *
 * From the projections' results to what the output projection takes: a causal convolution of width W over q, k and v, channel by channel;
 * the recurrence step of the result; and an RMS norm of each head's o with a gate z. Sources: transformers' Qwen3-Next and Qwen3.5, Kimi
 * Linear and OLMo hybrid models; docs/gated-delta.md lists which model uses which option.
 *
 * **One order of operations**, in float32, as of the recurrence step. `(activation dtype)` is a rounding to activation_dtype and back,
 * where the options ask for it:
 *
 *     1.  For each channel c and token t, x being the inputs of the sequence (those before the call from its window, before the first +0):
 *             sum = bias[c] or +0;  for w = 0 .. W-1, the oldest input first:  sum = fma(x[t - (W-1) + w][c], weight[c][w], sum)
 *             (activation dtype);  silu(sum), rounded once to float32, or sum;  (activation dtype)
 *     2.  The recurrence step of q, k and v that were found so, exactly; o stays float32.  (activation dtype)
 *     3.  For each head: sum = dot(o, o);  r = rsqrt(sum / value_dim + epsilon), each operation rounded;  for each i
 *             n = o[i] * r  (activation dtype);  y = n * weight[i]  (activation dtype);  y * act(z[i]), act rounded once to float32;
 *         rounded once to the output's dtype.
 *
 * So with the default roundings, those that storing the values between launches does, the bits are those of the pieces run one by one, and as
 * of the recurrence step a token's result depends on its own sequence alone. A window holds inputs exactly: the convolution gives the same bits
 * however tokens are split into calls. */

typedef enum ol_mixer_activation {
    OL_MIXER_SILU = 0,                 /* x sigmoid(x) */
    OL_MIXER_SIGMOID = 1,              /* of the norm's gate only: Kimi Linear, OLMo hybrids' and Qwen3.8-Flash-Next's output gate where configured so */
    OL_MIXER_NONE = 2
} ol_mixer_activation;

typedef enum ol_mixer_norm {
    OL_MIXER_NORM_RMS = 0,
    OL_MIXER_NORM_NONE = 1             /* the output is o (as output_unrounded says), rounded to the output's dtype; neither weight nor z */
} ol_mixer_norm;

/* How a window, [..., columns], holds the inputs that came before. */
typedef enum ol_mixer_window {
    /* The last inputs, the newest in the last column; a call shifts them. columns is W-1 (vLLM, SGLang, ggml, mlx-lm), W (transformers,
     * flash-linear-attention), or more, so that some may be taken back (window_dropped; vLLM under speculative decoding). */
    OL_MIXER_WINDOW_SHIFTED = 0,
    /* Input number p of a sequence, from 0, is in column p mod columns. window_positions say how many inputs came before a call. Only
     * the columns of a call's inputs change. To take inputs back is to name a smaller position: with W-2+T columns or more, any of the last T
     * inputs. */
    OL_MIXER_WINDOW_RING = 1
} ol_mixer_window;

#define OL_MIXER_MAX_COLUMNS 64        /* of a window */

/* Zero is a good default for every field but those of `recurrence` that say no other. */
typedef struct ol_gated_delta_mixer_options {
    ol_gated_delta_options recurrence; /* activation_dtype is that of q, k and v before the convolution; output_dtype that of the mixer's output */
    int32_t width;                     /* W: 2 to 4; 0: 4 */
    ol_mixer_activation activation;    /* of the convolution: OL_MIXER_SILU or OL_MIXER_NONE */
    ol_dtype weight_dtype;             /* of the convolution's weights; float32, float16 or bfloat16, as all dtypes here; 0: activation_dtype */
    ol_dtype bias_dtype;               /* of the convolution's bias; 0: it has none */
    ol_dtype window_dtype;             /* activation_dtype, or float32, which holds it exactly; 0: activation_dtype */
    ol_mixer_window window;
    int32_t sum_rounded;               /* not 0: the convolution's sum is rounded to activation_dtype before the activation (transformers without kernels) */
    int32_t convolved_unrounded;       /* not 0: q, k and v of the recurrence stay float32; 0: they are rounded, as in a buffer between launches */
    ol_mixer_norm norm;
    double epsilon;                    /* of the norm, 0 or more, rounded to float32; 0: 1e-6 */
    ol_mixer_activation gate;          /* act; OL_MIXER_NONE: there is no z */
    ol_dtype gate_dtype;               /* of z; 0: activation_dtype */
    ol_dtype norm_weight_dtype;        /* 0: float32 */
    int32_t output_unrounded;          /* not 0: o stays float32; 0: it is rounded to activation_dtype, as in a buffer between launches */
    int32_t normalized_rounded;        /* not 0: n is rounded to activation_dtype before the weight (transformers) */
    int32_t weighted_rounded;          /* not 0: and so is n * weight before the gate (transformers with a weight of that dtype) */
} ol_gated_delta_mixer_options;

/* A layer's mixer step: options that were checked, and kernels. Immutable; any number of threads may run steps of it at once. */
typedef struct ol_gated_delta_mixer ol_gated_delta_mixer;

/* As ol_gated_delta_create. Errors in `recurrence` come in the name of gated_delta_create, all others in that of gated_delta_mixer_create. On a CPU a
 * mixer keeps float32 states of a head per thread, 64 KiB each where heads are 128 by 128, for calls of many tokens a sequence. */
OL_API ol_status ol_gated_delta_mixer_create(ol_device *device, const ol_gated_delta_mixer_options *options, ol_gated_delta_mixer **mixer, ol_error *error);
OL_API void ol_gated_delta_mixer_destroy(ol_gated_delta_mixer *mixer);      /* NULL is allowed; not while a step of it runs */

/* What there is of each of q, k and v. `heads, dim` is [key_heads, key_dim] of q and k; of v [value heads, value_dim], whose value heads may be
 * given as two axes, as everywhere. Strides are any 64-bit ones, in elements: [C, W] as well as [W, C], and so windows. */
typedef struct ol_gated_delta_convolution {
    ol_tensor weight;                  /* [heads, dim, W], the oldest input's weight first */
    ol_tensor bias;                    /* [heads, dim]; given where bias_dtype is, and only there */
    ol_tensor window;                  /* the pool, [slots, heads, dim, columns]; all three have as many slots and columns */
    /* The window after each token of each sequence: [N, T or more, heads, dim, columns], in the pool's dtype, as intermediate_states.
     * Not given: not stored. Given for all three or none. */
    ol_tensor intermediate_windows;
} ol_gated_delta_convolution;

/* The tensors of a mixer step. A zeroed one is not given.
 *
 * Windows have slots as states have, in a pool of their own, and go the same ways: read_slots, write_slots, has_initial_state, accepted_tokens,
 * token_counts and state_is_kept mean for windows what they mean for states, and so a rejected token is taken back from both at once. An engine
 * whose windows have other slots than its states gives window_read_slots and window_write_slots. One whose window stays in one slot while states
 * have one for each token (vLLM's) gives read_slots of two axes, window_read_slots of one, and columns to take back from: window_dropped,
 * or the positions of a ring. */
typedef struct ol_gated_delta_mixer_arguments {
    /* As for ol_gated_delta_step, but query, key and value are the projections' results, before the convolution, and output is the mixer's:
     * [tokens, value heads, value_dim] of output_dtype. */
    ol_gated_delta_arguments recurrence;
    ol_gated_delta_convolution query, key, value;
    /* The windows' own slots, in the place of read_slots and write_slots, which are not looked at for windows if one of these is given. What read_slots
     * and write_slots may be, these may be; whether a sequence is padding is said by read_slots alone. With one axis accepted_tokens concern
     * states only. */
    ol_tensor window_read_slots, window_write_slots;
    /* OL_MIXER_WINDOW_SHIFTED only: [N], int32 or int64, 0 to columns - (W-1): so many of the newest columns are taken back before the
     * call, as if those inputs had never been (columns that nothing is left for become zeros). Not given: 0. */
    ol_tensor window_dropped;
    /* OL_MIXER_WINDOW_RING only, where it must be given: [N], int32 or int64, 0 or more: the number of inputs of the sequence before the call. Inputs
     * before number 0 are zeros, whatever the columns hold. */
    ol_tensor window_positions;
    ol_tensor gate;                    /* z: [tokens, value heads, value_dim], last axis contiguous; unless norm or gate is NONE */
    ol_tensor norm_weight;             /* [value_dim]; unless norm is NONE */
} ol_gated_delta_mixer_arguments;

/* Runs the step: one launch (none where there is nothing to write), into output, state, windows and the intermediate ones. Allocates nothing
 * (but where more threads at once than the device has run long sequences of one mixer on a CPU).
 *
 * Windows are read before any is written. A sequence without an initial state starts from a window of zeros, and its slot is not read; after
 * the call a shifted window holds the last inputs, a ring's columns that no input of the call belongs to are what they were, or zeros. A sequence
 * without tokens has its window put into its write slot where that is another, where it has no initial state, or where some of it is dropped.
 * Outputs of padding, and all that is said of them, as for ol_gated_delta_step.
 *
 * Everything that the host can see is checked first, and on an error nothing has been written. Errors: those of ol_gated_delta_step, in its name,
 * for `recurrence`; else, in the name of gated_delta_mixer_step, the same of the other tensors: OL_ERROR_DTYPE, OL_ERROR_SHAPE (columns
 * below W-1 or above OL_MIXER_MAX_COLUMNS, too), OL_ERROR_ARGUMENT (tensors missing or without use; on a CPU indices out of range, a window
 * slot that is padding where the sequence is none), OL_ERROR_OVERLAP (output, states or windows overlapping another tensor or themselves; on a CPU a
 * window slot that is written twice, or written for one sequence and read for another). On a GPU a sequence with a wrong number in a table is skipped, its
 * state and window both, and counted once in recurrence.skipped; a write slot outside of its pool is skipped and counted, once for both where it is theirs. */
OL_API ol_status ol_gated_delta_mixer_step(const ol_gated_delta_mixer *mixer, ol_stream stream, const ol_gated_delta_mixer_arguments *arguments,
                                           ol_error *error);

/* How channels lie along an axis. z may be among them or not. */
typedef enum ol_mixer_layout {
    OL_MIXER_JOINT = 0,                /* [q of all key heads, k of all key heads, v of all value heads(, z of all value heads)] */
    OL_MIXER_INTERLEAVED = 1           /* for each key head [q, k, v of its value heads(, z of its value heads)]: Qwen3-Next's in_proj_qkvz */
} ol_mixer_layout;

/* Sets the views query, key, value and gate of `tensor`, one axis of which (`axis`, from 0, or from -1 at the end) is the channels of a layer of this
 * geometry (key_heads, value_heads, key_dim, value_dim; nothing else of the options is looked at). That axis becomes [key_heads, key_dim], of
 * OL_MIXER_JOINT's v and z [value heads, value_dim], of OL_MIXER_INTERLEAVED's [key_heads, r, value_dim]. It serves a projection [tokens, C],
 * weights [C, W] or [W, C] with the strides of [C, W], a bias [C], a pool of windows [slots, C, columns] and intermediate windows alike. `gate` is NULL
 * where z is not among the channels, or not wanted. Nothing is read, strides of any sort stay. Errors: OL_ERROR_ARGUMENT: a null pointer,
 * a layout, axis or geometry that is none, a gate asked for that is not there; OL_ERROR_DTYPE: the dtype is none; OL_ERROR_SHAPE: a rank below 1 or too
 * high for the axes that are added, or an axis of another extent. */
OL_API ol_status ol_gated_delta_mixer_split(const ol_tensor *tensor, int32_t axis, ol_mixer_layout layout, const ol_gated_delta_options *geometry,
                                            ol_tensor *query, ol_tensor *key, ol_tensor *value, ol_tensor *gate, ol_error *error);

#ifdef __cplusplus
}
#endif
#endif
