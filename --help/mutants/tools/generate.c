/* Random graphs: see generate.h. Tensors and data are made by generate_tensors.c, values by generate_values.c. */
#include "generate.h"

#include <stdlib.h>
#include <string.h>

uint64_t generate_next(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);        /* Steele, Lea, Flood: "Fast splittable pseudorandom number generators" */
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t generate_below(uint64_t *state, uint64_t n) {
    return generate_next(state) % n;
}

bool generate_chance(uint64_t *state, int percent) {
    return generate_below(state, 100) < (uint64_t)percent;
}

static uint64_t below(generated *c, uint64_t n) {
    return generate_below(&c->state, n);
}

static bool chance(generated *c, int percent) {
    return generate_chance(&c->state, percent);
}

/* Half of all are floats, as graphs of the real world are nearly all floats. */
static ol_dtype random_dtype(generated *c) {
    return chance(c, 50) ? (ol_dtype)(OL_FLOAT16 + below(c, 3)) : (ol_dtype)below(c, OL_DTYPE_COUNT);
}

static ol_dtype random_integer(generated *c) {
    return (ol_dtype)(OL_UINT8 + below(c, 8));
}

/* ---- Values ------------------------------------------------------------------------------------------------------------------ */

/* The index of the new value; 0 with *failed where memory ran out, so that callers need not stop at once. */
static uint32_t append(generated *c, const generated_value *v, bool *failed) {
    if (c->n_values == c->values_capacity) {
        size_t capacity = 2 * c->values_capacity + 32;
        generated_value *grown = realloc(c->values, capacity * sizeof *grown);
        if (!grown) {
            *failed = true;
            return 0;
        }
        c->values = grown;
        c->values_capacity = capacity;
    }
    c->values[c->n_values] = *v;
    return (uint32_t)c->n_values++;
}

/* The shape of a value is the broadcast of its operands' shapes; they are of one family, so they fit. */
static void join_shape(generated_value *v, const generated_value *operand) {
    if (operand->family >= 0) {
        v->family = operand->family;
    }
    int64_t joined[OL_MAX_RANK];
    int32_t rank = v->rank > operand->rank ? v->rank : operand->rank;
    for (int32_t d = 0; d < rank; d++) {
        int32_t mine = d - (rank - v->rank), theirs = d - (rank - operand->rank);
        int64_t x = mine < 0 ? 1 : v->shape[mine], y = theirs < 0 ? 1 : operand->shape[theirs];
        joined[d] = x == 1 ? y : x;
    }
    v->rank = rank;
    memcpy(v->shape, joined, sizeof joined);
}

static uint32_t add_constant(generated *c, ol_dtype dtype, bool *failed) {
    generated_value v = { .kind = STEP_CONSTANT, .dtype = dtype, .family = -1 };
    v.bits = generate_bits(&c->state, dtype);
    return append(c, &v, failed);
}

static uint32_t add_astype(generated *c, uint32_t operand, ol_dtype dtype, bool *failed) {
    generated_value v = { .kind = STEP_ASTYPE, .operands = { operand }, .dtype = dtype, .family = -1 };
    join_shape(&v, &c->values[operand]);
    return append(c, &v, failed);
}

/* A value that may meet `family` (-1: any): often a recent one, so that graphs are deep, often an input, so that not every
 * value ends as a NaN. */
static uint32_t pick(generated *c, int32_t family, bool *failed) {
    if (c->n_values == 0 || chance(c, 12)) {
        return add_constant(c, random_dtype(c), failed);
    }
    for (int attempt = 0; attempt < 40; attempt++) {
        uint64_t n = c->n_values, kind = below(c, 10), i = below(c, n);
        if (kind < 5 && n > 8) {
            i = n - 1 - below(c, 8);
        } else if (kind < 8 && c->n_inputs > 0) {
            i = below(c, (uint64_t)c->n_inputs);
        }
        if (family < 0 || c->values[i].family < 0 || c->values[i].family == family) {
            return (uint32_t)i;
        }
    }
    return add_constant(c, random_dtype(c), failed);
}

static int32_t family_of(const generated *c, const uint32_t *operands, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        if (c->values[operands[i]].family >= 0) {
            return c->values[operands[i]].family;
        }
    }
    return -1;
}

static ol_dtype common_dtype(const generated *c, int32_t primitive, const uint32_t *operands) {
    int32_t first = strcmp(ol_primitive_name(primitive), "where") == 0;
    ol_dtype common = c->values[operands[first]].dtype;
    for (int32_t i = first + 1; i < ol_primitive_arity(primitive); i++) {
        common = ol_promote(common, c->values[operands[i]].dtype);
    }
    return common;
}

static void add_primitive(generated *c, int32_t primitive, bool *failed) {
    generated_value v = { .kind = STEP_PRIMITIVE, .primitive = primitive, .family = -1 };
    int32_t arity = ol_primitive_arity(primitive);
    for (int32_t i = 0; i < arity; i++) {
        v.operands[i] = pick(c, family_of(c, v.operands, i), failed);
        if (*failed) {
            return;
        }
    }
    if (arity > 1 && chance(c, 5)) {
        v.operands[1] = v.operands[0];
    }
    if (!ol_primitive_result(primitive, common_dtype(c, primitive, v.operands), &v.dtype)) {
        ol_dtype dtype = random_integer(c);
        for (int32_t i = 0; i < arity; i++) {
            v.operands[i] = add_astype(c, v.operands[i], dtype, failed);
        }
        if (*failed || !ol_primitive_result(primitive, dtype, &v.dtype)) {
            return;
        }
    }
    for (int32_t i = 0; i < arity; i++) {
        join_shape(&v, &c->values[v.operands[i]]);
    }
    append(c, &v, failed);
}

static void add_unary(generated *c, const char *name, uint32_t operand, bool *failed) {
    generated_value v = { .kind = STEP_PRIMITIVE, .primitive = ol_primitive_find(name), .operands = { operand }, .family = -1 };
    if (ol_primitive_result(v.primitive, c->values[operand].dtype, &v.dtype)) {
        join_shape(&v, &c->values[operand]);
        append(c, &v, failed);
    }
}

/* What backends have single kernels for, which random steps seldom make: softplus(x + y), exp(x y), exp(-(x y)), with an
 * operand brought to float32 now and then. */
static void add_idiom(generated *c, bool *failed) {
    bool is_sum = chance(c, 40);
    if (chance(c, 40)) {
        uint32_t operand = pick(c, -1, failed);
        if (!*failed) {
            add_astype(c, operand, OL_FLOAT32, failed);
        }
    }
    for (int step = 0; step < 3 && !*failed; step++) {
        uint32_t last = (uint32_t)c->n_values - 1;
        if (step == 0) {
            add_primitive(c, ol_primitive_find(is_sum ? "add" : "multiply"), failed);
        } else if (step == 2) {
            add_unary(c, is_sum ? "softplus" : "exp", last, failed);
        } else if (!is_sum && chance(c, 50)) {
            add_unary(c, "negative", last, failed);
        }
    }
}

static void add_broadcast_like(generated *c, bool *failed) {
    generated_value v = { .kind = STEP_BROADCAST_LIKE, .family = -1 };
    v.operands[0] = pick(c, -1, failed);
    v.operands[1] = *failed ? 0 : pick(c, family_of(c, v.operands, 1), failed);
    if (*failed) {
        return;
    }
    v.dtype = c->values[v.operands[0]].dtype;
    join_shape(&v, &c->values[v.operands[0]]);
    join_shape(&v, &c->values[v.operands[1]]);
    append(c, &v, failed);
}

/* To a shape between the operand's and the family's; a constant goes to any family. */
static void add_broadcast_to(generated *c, bool *failed) {
    uint32_t operand = pick(c, -1, failed);
    if (*failed) {
        return;
    }
    const generated_value *x = &c->values[operand];
    generated_value v = { .kind = STEP_BROADCAST_TO, .operands = { operand }, .dtype = x->dtype, .family = x->family };
    if (v.family < 0) {
        v.family = (int32_t)below(c, (uint64_t)c->n_families);
    }
    int32_t full = c->family_rank[v.family];
    v.rank = x->rank + (int32_t)below(c, (uint64_t)(full - x->rank) + 1);
    for (int32_t d = 0; d < v.rank; d++) {
        int32_t theirs = d - (v.rank - x->rank);
        v.shape[d] = theirs < 0 ? 1 : x->shape[theirs];
        if (v.shape[d] == 1 && chance(c, 60)) {
            v.shape[d] = c->family_shape[v.family][full - v.rank + d];
        }
    }
    append(c, &v, failed);
}

static void add_step(generated *c, bool *failed) {
    uint64_t kind = below(c, 100);
    if (kind < 4) {
        add_constant(c, random_dtype(c), failed);
    } else if (kind < 24) {
        uint32_t operand = pick(c, -1, failed);
        if (!*failed) {
            add_astype(c, operand, random_dtype(c), failed);
        }
    } else if (kind < 28) {
        add_broadcast_like(c, failed);
    } else if (kind < 32) {
        add_broadcast_to(c, failed);
    } else if (kind < 36) {
        add_idiom(c, failed);
    } else {
        add_primitive(c, (int32_t)below(c, (uint64_t)ol_primitive_count()), failed);
    }
}

/* ---- The graph ----------------------------------------------------------------------------------------------------------------- */

/* Few as a rule; at times as many as allowed, so that what is sized for few has to grow. */
static int32_t random_count(generated *c, int32_t usual, int32_t most) {
    int32_t n = chance(c, 3) ? most : 1 + (int32_t)below(c, (uint64_t)usual);
    return n < most ? n : most;
}

static bool add_inputs(generated *c) {
    bool failed = false;
    int32_t n_inputs = chance(c, 2) ? 0 : random_count(c, 6, c->limits.max_tensors);
    ol_dtype usual = random_dtype(c);
    bool one_dtype = chance(c, 30);
    for (int32_t i = 0; i < n_inputs; i++) {
        generated_value v = { .kind = STEP_INPUT, .dtype = one_dtype ? usual : random_dtype(c) };
        v.family = i < c->n_families ? i : (int32_t)below(c, (uint64_t)c->n_families);
        generate_input_shape(c, &v);
        append(c, &v, &failed);
    }
    c->n_inputs = n_inputs;
    c->input_dtypes = calloc((size_t)n_inputs + 1, sizeof *c->input_dtypes);
    if (failed || !c->input_dtypes) {
        return false;
    }
    for (int32_t i = 0; i < n_inputs; i++) {
        c->input_dtypes[i] = c->values[i].dtype;
    }
    return true;
}

/* The last value, so that the graph is not all dead, and others: mostly computed ones. */
static bool choose_outputs(generated *c) {
    bool failed = false;
    c->n_outputs = random_count(c, 5, c->limits.max_tensors);
    c->outputs = calloc((size_t)c->n_outputs, sizeof *c->outputs);
    if (!c->outputs) {
        return false;
    }
    for (int32_t i = 0; i < c->n_outputs; i++) {
        uint64_t kind = below(c, 100);
        if (i == 0) {
            c->outputs[i] = (uint32_t)c->n_values - 1;
        } else if (kind < 70) {
            uint64_t n = c->n_values < 12 ? c->n_values : 12;
            c->outputs[i] = (uint32_t)(c->n_values - 1 - below(c, n));
        } else if (kind < 75) {
            c->outputs[i] = c->outputs[below(c, (uint64_t)i)];
        } else if (kind < 80) {
            c->outputs[i] = add_constant(c, random_dtype(c), &failed);
        } else if (kind < 87 && c->n_inputs > 0) {
            c->outputs[i] = (uint32_t)below(c, (uint64_t)c->n_inputs);
        } else {
            c->outputs[i] = (uint32_t)below(c, c->n_values);
        }
    }
    return !failed;
}

static bool generate_graph(generated *c) {
    bool failed = false;
    c->tidy = chance(c, 25);
    c->n_families = c->tidy || chance(c, 70) ? 1 : 2 + (int32_t)below(c, 2);
    for (int32_t f = 0; f < c->n_families; f++) {
        generate_family_shape(c, f);
    }
    if (!add_inputs(c)) {
        return false;
    }
    /* Of three sizes: a few steps, where every output is close to the inputs; the usual; long. */
    uint64_t size = below(c, 10), most = size < 4 ? 4 : size < 9 ? 24 : (uint64_t)c->limits.max_steps;
    if (most > (uint64_t)c->limits.max_steps) {
        most = (uint64_t)c->limits.max_steps;
    }
    for (uint64_t n = 1 + below(c, most); n > 0 && !failed; n--) {
        add_step(c, &failed);
    }
    return !failed && choose_outputs(c);
}

generated *generate_case(uint64_t seed, const generate_limits *limits) {
    generated *c = calloc(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    c->seed = c->state = seed;
    c->limits = *limits;
    if (!generate_graph(c) || !generate_tensors(c)) {
        generate_free(c);
        return NULL;
    }
    return c;
}

void generate_free(generated *c) {
    if (!c) {
        return;
    }
    free(c->values);
    free(c->input_dtypes);
    free(c->outputs);
    free(c->tensors);
    free(c->offsets);
    free(c->arena);
    free(c);
}

bool generate_has_empty(const generated *c) {
    for (size_t i = 0; i < c->n_values; i++) {
        for (int32_t d = 0; d < c->values[i].rank; d++) {
            if (c->values[i].shape[d] == 0) {
                return true;
            }
        }
    }
    return false;
}

/* ---- Tracing ------------------------------------------------------------------------------------------------------------------- */

static ol_value trace_value(ol_graph *graph, const generated_value *v, const ol_value *values) {
    ol_value operands[3];
    switch (v->kind) {
    case STEP_CONSTANT: return ol_constant_bits(graph, v->dtype, &v->bits);
    case STEP_ASTYPE: return ol_astype(graph, values[v->operands[0]], v->dtype);
    case STEP_BROADCAST_LIKE: return ol_broadcast_like(graph, values[v->operands[0]], values[v->operands[1]]);
    case STEP_BROADCAST_TO: return ol_broadcast_to(graph, values[v->operands[0]], v->rank, v->shape);
    case STEP_INPUT: break;
    case STEP_PRIMITIVE:
        for (int i = 0; i < 3; i++) {
            operands[i] = values[v->operands[i]];
        }
        return ol_apply(graph, v->primitive, operands, ol_primitive_arity(v->primitive));
    }
    return (ol_value){ 0 };
}

static int build(ol_graph *graph, const ol_value *in, ol_value *out, void *user) {
    const generated *c = user;
    ol_value *values = calloc(c->n_values, sizeof *values);
    if (!values) {
        return 1;
    }
    for (size_t i = 0; i < c->n_values; i++) {
        const generated_value *v = &c->values[i];
        values[i] = v->kind == STEP_INPUT ? in[i] : trace_value(graph, v, values);
        if (ol_value_dtype(graph, values[i]) != v->dtype) {
            char text[128];
            snprintf(text, sizeof text, "value %zu has dtype %s; predicted %s", i, ol_dtype_name(ol_value_dtype(graph, values[i])),
                     ol_dtype_name(v->dtype));
            ol_graph_fail(graph, "generated graph", text);
        }
    }
    for (int32_t i = 0; i < c->n_outputs; i++) {
        out[i] = values[c->outputs[i]];
    }
    free(values);
    return 0;
}

ol_builder generate_builder(const generated *c) {
    return (ol_builder){ .build = build, .user = (void *)(uintptr_t)c, .n_inputs = c->n_inputs, .n_outputs = c->n_outputs, .name = "generated" };
}
