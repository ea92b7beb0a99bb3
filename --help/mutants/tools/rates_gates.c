/* See rates_gates.h. */
#include "rates_gates.h"

#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_GATE = 512, KEY_LOWER_BOUND, KEY_DT_LIMITS, KEY_NO_SOFTPLUS, KEY_RATE, KEY_FINITE_RATE, KEY_SUM, KEY_OUTPUT, KEY_BETA, KEY_BETA_ROUNDING,
       KEY_BETA_DTYPE, KEY_PROJECTION, KEY_KEY_HEADS, KEY_HEAD_MAP };

static const struct argp_option option_table[] = {
    { NULL, 0, NULL, 0, "Gates (docs/gated-delta.md):", 1 },
    { "gate", KEY_GATE, "KIND", 0, "softplus (default), lower-bound, plain-lower-bound or clamped", 1 },
    { "lower-bound", KEY_LOWER_BOUND, "X", 0, "Of the log decay, below 0, for the kinds that have one", 1 },
    { "dt-limits", KEY_DT_LIMITS, "LOW,HIGH", 0, "What the kind clamped keeps the softplus within (default 0,inf)", 1 },
    { "no-softplus", KEY_NO_SOFTPLUS, NULL, 0, "Take a + dt_bias itself for its softplus", 1 },
    { "rate", KEY_RATE, "HOW", 0, "logarithm: the weights hold A_log; negated: -exp(A_log). Default: ssm_a is negated, A_log is not", 1 },
    { "finite-rate", KEY_FINITE_RATE, NULL, 0, "Keep the rate finite, so that it never gives NaN with a softplus of 0", 1 },
    { "sum", KEY_SUM, "HOW", 0, "Add a and dt_bias in their common dtype (promoted, default) or in float32, as transformers does", 1 },
    { "output", KEY_OUTPUT, "WHAT", 0, "decay (default), log-decay or both", 1 },
    { "beta", KEY_BETA, "HOW", 0, "sigmoid (default), doubled or raw", 1 },
    { "beta-rounding", KEY_BETA_ROUNDING, "DTYPE", 0, "Round beta to float32, float16 or bfloat16 (default: b's dtype)", 1 },
    { "beta-dtype", KEY_BETA_DTYPE, "DTYPE", 0, "Store beta in this dtype (default: the one it is rounded to)", 1 },
    { NULL, 0, NULL, 0, "Layouts:", 2 },
    { "projection", KEY_PROJECTION, "LAYOUT", 0, "separate (default): tensors b and a; halves, interleaved: one tensor ba whose rows are [b, a], or [b, a] for each key head", 2 },
    { "key-heads", KEY_KEY_HEADS, "N", 0, "Key heads, where the layout or the head map needs them (default: what a GGUF file says)", 2 },
    { "head-map", KEY_HEAD_MAP, "MAP", 0, "same (default): weights and activations have their heads in one order; tiled: the weights' heads are tiled, the activations' grouped", 2 },
    { 0 },
};

/* Which of the words this is; a usage error where it is none. The list ends in NULL. */
static int choice(struct argp_state *state, const char *option, const char *argument, const char *const *words) {
    char expected[200] = "";
    for (int i = 0; words[i]; i++) {
        if (strcmp(argument, words[i]) == 0) {
            return i;
        }
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
    }
    argp_error(state, "--%s %s: expected %s", option, cli_printable(argument), expected);
    return 0;
}

/* A number, inf included, up to `end`; false where there is none. */
static bool number_at(const char *text, const char **end, double *number) {
    char *after;
    errno = 0;
    *number = strtod(text, &after);
    *end = after;
    return after != text && (*text == '-' || *text == '.' || *text == 'i' || (*text >= '0' && *text <= '9')) && (errno == 0 || *number == 0);
}

static ol_dtype float_dtype(struct argp_state *state, const char *option, const char *argument) {
    ol_dtype dtype = OL_BOOL;
    if (!ol_dtype_parse(argument, &dtype) || dtype < OL_FLOAT16) {
        argp_error(state, "--%s %s: expected float32, float16 or bfloat16", option, cli_printable(argument));
    }
    return dtype;
}

#define WORDS(...) (const char *const[]){ __VA_ARGS__, NULL }
static const char *const kinds[] = { "softplus", "lower-bound", "plain-lower-bound", "clamped", NULL };
static const char *const outputs[] = { "decay", "log-decay", "both", NULL };
static const char *const betas[] = { "sigmoid", "doubled", "raw", NULL };
static const char *const projections[] = { "separate", "halves", "interleaved", NULL };

static error_t parse(int key, char *argument, struct argp_state *state) {
    rates_gates *gates = state->input;
    ol_gate_options *options = &gates->options;
    const char *end;
    switch (key) {
    case KEY_GATE: options->kind = (ol_gate_kind)choice(state, "gate", argument, kinds); return 0;
    case KEY_NO_SOFTPLUS: options->skip_softplus = 1; return 0;
    case KEY_RATE: gates->rate = choice(state, "rate", argument, WORDS("logarithm", "negated")) ? RATES_RATE_NEGATED : RATES_RATE_LOGARITHM; return 0;
    case KEY_FINITE_RATE: options->finite_rate = 1; return 0;
    case KEY_SUM: options->sum = (ol_gate_sum)choice(state, "sum", argument, WORDS("promoted", "float32")); return 0;
    case KEY_OUTPUT: options->output = (ol_gate_output)choice(state, "output", argument, outputs); return 0;
    case KEY_BETA: options->beta = (ol_gate_beta)choice(state, "beta", argument, betas); return 0;
    case KEY_BETA_ROUNDING: options->beta_rounding = float_dtype(state, "beta-rounding", argument); return 0;
    case KEY_BETA_DTYPE: options->beta_dtype = float_dtype(state, "beta-dtype", argument); return 0;
    case KEY_PROJECTION: gates->projection = (enum rates_projection)choice(state, "projection", argument, projections); return 0;
    case KEY_HEAD_MAP: gates->weights = (ol_head_map)choice(state, "head-map", argument, WORDS("same", "tiled")); return 0;
    case KEY_LOWER_BOUND:
        if (!number_at(argument, &end, &options->lower_bound) || *end) {
            argp_error(state, "--lower-bound %s: expected a number", cli_printable(argument));
        }
        return 0;
    case KEY_DT_LIMITS:
        if (!number_at(argument, &end, &options->interval_low) || *end != ',' || !number_at(end + 1, &end, &options->interval_high) || *end) {
            argp_error(state, "--dt-limits %s: expected two numbers, as in 0.001,inf", cli_printable(argument));
        }
        return 0;
    case KEY_KEY_HEADS:
        if (!cli_parse_int(argument, 1, INT32_MAX, &gates->key_heads)) {
            argp_error(state, "--key-heads %s: expected a number from 1 on", cli_printable(argument));
        }
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

const struct argp rates_gates_argp = { option_table, parse, NULL, NULL, NULL, NULL, NULL };

bool rates_gates_check(const rates_gates *gates, st_error *error) {
    const ol_cpu_options one_thread = { .n_threads = 1 };
    ol_gate_options options = gates->options;
    ol_device *device = NULL;
    ol_composite *composite = NULL;
    ol_error reason;
    options.rate = gates->rate == RATES_RATE_NEGATED ? OL_GATE_RATE_NEGATED : OL_GATE_RATE_LOGARITHM;
    bool ok = ol_device_cpu(&one_thread, &device, &reason) == OL_OK &&
              ol_gated_delta_gates_compile(device, &options, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, &composite, &reason) == OL_OK;
    ol_composite_destroy(composite);
    ol_device_destroy(device);
    return ok || st_fail(error, "%s: %s", reason.operation, reason.description);
}

const char *rates_gates_text(const rates_gates *gates, char text[RATES_GATES_TEXT]) {
    const ol_gate_options *o = &gates->options;
    size_t n = 0;
    text[0] = 0;
#define SAY(...) n += n < RATES_GATES_TEXT ? (size_t)snprintf(text + n, RATES_GATES_TEXT - n, __VA_ARGS__) : 0
    if (o->kind != OL_GATE_SOFTPLUS) {
        SAY(", gate %s", kinds[o->kind]);
    }
    if (o->kind == OL_GATE_LOWER_BOUND || o->kind == OL_GATE_LOWER_BOUND_PLAIN) {
        SAY(" %g", o->lower_bound);
    }
    if (o->kind == OL_GATE_CLAMPED) {
        SAY(" to %g, %g", o->interval_low, o->interval_high != 0 ? o->interval_high : HUGE_VAL);
    }
    if (o->skip_softplus) {
        SAY(", no softplus");
    }
    if (o->finite_rate) {
        SAY(", finite rate");
    }
    if (o->sum == OL_GATE_SUM_FLOAT32) {
        SAY(", a + dt_bias in float32");
    }
    if (o->beta != OL_GATE_BETA_SIGMOID || o->beta_rounding) {
        SAY(", beta %s%s%s", betas[o->beta], o->beta_rounding ? " rounded to " : "", o->beta_rounding ? ol_dtype_name(o->beta_rounding) : "");
    }
    if (gates->projection != RATES_SEPARATE) {
        SAY(", b and a %s", projections[gates->projection]);
    }
    if (gates->weights == OL_HEADS_TILED) {
        SAY(", weights' heads tiled");
    }
#undef SAY
    return n ? text + 2 : text;
}
