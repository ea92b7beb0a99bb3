/* Which gates `onelaunch rates` computes: the options of ol_gated_delta_gates_compile as a user gives them, and how the files lay out
 * what goes in. */
#ifndef ONELAUNCH_TOOLS_RATES_GATES_H
#define ONELAUNCH_TOOLS_RATES_GATES_H

#include "safetensors.h"

#include <argp.h>
#include <onelaunch_gated_delta.h>

enum rates_projection { RATES_SEPARATE, RATES_HALVES, RATES_INTERLEAVED };
enum rates_rate { RATES_RATE_BY_NAME, RATES_RATE_LOGARITHM, RATES_RATE_NEGATED };

typedef struct rates_gates {
    ol_gate_options options;           /* but for the rate, which is each layer's */
    enum rates_rate rate;              /* by name: A_log is a logarithm, ssm_a negated */
    enum rates_projection projection;  /* b and a as two tensors, or as one */
    int64_t key_heads;                 /* 0: as a GGUF file says */
    ol_head_map weights;               /* the weights' heads against the activations': OL_HEADS_GROUPED: the same order */
} rates_gates;

/* Parses the options about gates; the input is a rates_gates. A child of the command's parser. */
extern const struct argp rates_gates_argp;

/* Whether the options go together, by the library's own word. */
bool rates_gates_check(const rates_gates *gates, st_error *error);

/* The options as a sentence, "gate softplus, output decay …"; empty where all are the default. */
#define RATES_GATES_TEXT 300
const char *rates_gates_text(const rates_gates *gates, char text[RATES_GATES_TEXT]);

#endif
