/* Shape inference, compiled: which leaves determine the shape of each output, and what the explicit broadcasts demand. Read
 * at every replay, since what was fine for one shape is no excuse for the next. */
#ifndef OL_SHAPE_RULES_H
#define OL_SHAPE_RULES_H

#include "dependencies.h"
#include "graph.h"

/* A joined shape: the leaves [first, first + n) of rules->leaves; then it must equal static shape `exact`, unless -1. */
typedef struct shape_rule {
    uint32_t first, n;
    int32_t exact;
} shape_rule;

typedef struct shape_rules {
    ol_allocator allocator;
    shape_rule *rules;            /* first one for each distinct set of an output, then one for each broadcast_to */
    size_t n_rules, rules_capacity;
    size_t n_output_rules;
    uint32_t *leaves;             /* input index, or n_inputs + index of a static shape */
    size_t n_leaves, leaves_capacity;
    uint32_t *output_rule;        /* by output */
    shape *shapes;                /* the static ones */
    size_t n_shapes;
    int32_t n_inputs, n_outputs;
} shape_rules;

ol_status shape_rules_create(const graph *g, const dependencies *d, shape_rules **rules, ol_error *error);
void shape_rules_destroy(shape_rules *rules);                   /* NULL is allowed */

/* The shape that a rule gives for these inputs; OL_ERROR_SHAPE names the inputs that do not fit. */
ol_status shape_rule_apply(const shape_rules *rules, size_t rule, const ol_tensor *inputs, const char *operation, shape *result,
                           ol_error *error);

#endif
