/* Shape inference. Broadcasting is commutative and associative, so an output's shape is the join of its leaves in any order,
 * and if that join exists, so does every join inside the graph. */
#include "shape_rules.h"

#include "status.h"

#include <string.h>

/* Adds a rule for the leaves of a set. 0: no memory; -1: too many leaves in all. */
static int add_rule(shape_rules *r, const dependencies *d, uint32_t set, int32_t exact)
{
    shape_rule rule = { (uint32_t)r->n_leaves, 0, exact };
    for (size_t leaf = 0; leaf < d->n_leaves; leaf++) {
        if (!dependencies_has(d, set, leaf))
            continue;
        if (r->n_leaves >= OL_MAX_DEPENDENCIES)
            return -1;
        if (!memory_grow(&r->allocator, (void **)&r->leaves, &r->leaves_capacity, r->n_leaves + 1, sizeof *r->leaves))
            return 0;
        r->leaves[r->n_leaves++] = (uint32_t)leaf;
        rule.n++;
    }
    if (!memory_grow(&r->allocator, (void **)&r->rules, &r->rules_capacity, r->n_rules + 1, sizeof *r->rules))
        return 0;
    r->rules[r->n_rules++] = rule;
    return 1;
}

static int build(shape_rules *r, const graph *g, const dependencies *d)
{
    int ok = 1;
    uint32_t *rule_of_set = memory_take(&r->allocator, memory_size(d->n_sets, sizeof *rule_of_set));      /* rule + 1 */
    if (!rule_of_set)
        return 0;
    for (int32_t i = 0; ok > 0 && i < g->n_outputs; i++) {
        uint32_t set = d->shape_set[g->outputs[i]];
        if (!rule_of_set[set]) {
            ok = add_rule(r, d, set, -1);
            rule_of_set[set] = (uint32_t)r->n_rules;
        }
        r->output_rule[i] = rule_of_set[set] - 1;
    }
    r->n_output_rules = r->n_rules;
    memset(rule_of_set, 0, d->n_sets * sizeof *rule_of_set);      /* from here: static shape + 1 of the set's last rule */
    for (size_t i = 0; ok > 0 && i < g->n_nodes; i++) {
        uint32_t set = d->shape_set[i];
        if (g->nodes[i].kind != NODE_BROADCAST_TO || rule_of_set[set] == g->nodes[i].payload + 1)
            continue;
        ok = add_rule(r, d, set, (int32_t)g->nodes[i].payload);
        rule_of_set[set] = (uint32_t)g->nodes[i].payload + 1;
    }
    memory_give(&r->allocator, rule_of_set, d->n_sets * sizeof *rule_of_set);
    return ok;
}

ol_status shape_rules_create(const graph *g, const dependencies *d, shape_rules **out, ol_error *error)
{
    shape_rules *r = memory_take(&g->allocator, sizeof *r);
    if (!r)
        return fail(error, OL_ERROR_MEMORY, g->name, "no memory for shape rules");
    *r = (shape_rules){ .allocator = g->allocator, .n_inputs = g->n_inputs, .n_outputs = g->n_outputs, .n_shapes = g->n_shapes };
    r->output_rule = memory_take(&r->allocator, memory_size((size_t)g->n_outputs, sizeof *r->output_rule));
    r->shapes = memory_take(&r->allocator, memory_size(g->n_shapes, sizeof *r->shapes));
    int ok = r->output_rule && r->shapes;
    if (ok) {
        if (g->n_shapes)
            memcpy(r->shapes, g->shapes, g->n_shapes * sizeof *g->shapes);
        ok = build(r, g, d);
    }
    if (ok <= 0) {
        shape_rules_destroy(r);
        if (ok < 0)
            return fail(error, OL_ERROR_LIMIT, g->name, "the inputs that each output depends on are more than OL_MAX_DEPENDENCIES (%d) in all", OL_MAX_DEPENDENCIES);
        return fail(error, OL_ERROR_MEMORY, g->name, "no memory for shape rules");
    }
    *out = r;
    return OL_OK;
}

void shape_rules_destroy(shape_rules *r)
{
    if (!r)
        return;
    ol_allocator allocator = r->allocator;
    memory_give(&allocator, r->rules, r->rules_capacity * sizeof *r->rules);
    memory_give(&allocator, r->leaves, r->leaves_capacity * sizeof *r->leaves);
    memory_give(&allocator, r->output_rule, (size_t)r->n_outputs * sizeof *r->output_rule);
    memory_give(&allocator, r->shapes, r->n_shapes * sizeof *r->shapes);
    memory_give(&allocator, r, sizeof *r);
}

/* The shape of a leaf, and its name for errors. */
static inline int32_t leaf_shape(const shape_rules *r, uint32_t leaf, const ol_tensor *inputs, const int64_t **dims)
{
    if (leaf < (uint32_t)r->n_inputs) {
        *dims = inputs[leaf].shape;
        return inputs[leaf].rank;
    }
    const shape *s = &r->shapes[leaf - (uint32_t)r->n_inputs];
    *dims = s->dims;
    return s->rank;
}

/* Names the two leaves that clash: the one that did not join, and the first earlier one it does not broadcast with. */
__attribute__((cold, noinline))
static ol_status clash(const shape_rules *r, const shape_rule *rule, uint32_t at, const ol_tensor *inputs, const char *operation, ol_error *error)
{
    const int64_t *dims, *other_dims = NULL;
    int32_t rank = leaf_shape(r, r->leaves[at], inputs, &dims), other_rank = 0;
    uint32_t other = rule->first;
    for (; other < at; other++) {
        shape joined = { .rank = rank };
        memcpy(joined.dims, dims, sizeof *dims * (size_t)rank);
        other_rank = leaf_shape(r, r->leaves[other], inputs, &other_dims);
        if (!shape_join(&joined, other_rank, other_dims))
            break;
    }
    shape_text text, other_text;
    const char *kinds[2];
    uint32_t index[2] = { r->leaves[other], r->leaves[at] };
    for (int i = 0; i < 2; i++) {
        kinds[i] = index[i] < (uint32_t)r->n_inputs ? "input" : "broadcast_to shape";
        index[i] -= index[i] < (uint32_t)r->n_inputs ? 0 : (uint32_t)r->n_inputs;
    }
    return fail(error, OL_ERROR_SHAPE, operation, "%s %u of shape %s does not broadcast with %s %u of shape %s", kinds[1], index[1],
                shape_to_text(&text, rank, dims), kinds[0], index[0], shape_to_text(&other_text, other_rank, other_dims));
}

ol_status shape_rule_apply(const shape_rules *r, size_t which, const ol_tensor *inputs, const char *operation, shape *result, ol_error *error)
{
    const shape_rule *rule = &r->rules[which];
    result->rank = 0;
    for (uint32_t i = rule->first; i < rule->first + rule->n; i++) {
        const int64_t *dims;
        int32_t rank = leaf_shape(r, r->leaves[i], inputs, &dims);
        if (i == rule->first) {
            result->rank = rank;
            for (int32_t d = 0; d < rank; d++)
                result->dims[d] = dims[d];
        } else if (!shape_join(result, rank, dims))
            return clash(r, rule, i, inputs, operation, error);
    }
    if (rule->exact >= 0) {
        const shape *exact = &r->shapes[rule->exact];
        if (exact->rank != result->rank || memcmp(exact->dims, result->dims, (size_t)exact->rank * sizeof *exact->dims) != 0) {
            shape_text text, wanted;
            return fail(error, OL_ERROR_SHAPE, operation, "broadcast_to: a value that needs shape %s does not broadcast to %s",
                        shape_to_text(&text, result->rank, result->dims), shape_to_text(&wanted, exact->rank, exact->dims));
        }
    }
    return OL_OK;
}
