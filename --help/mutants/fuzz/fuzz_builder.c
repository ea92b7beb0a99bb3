/* Fuzzes builders: the bytes are a program of calls, with invalid, foreign and made-up handles, wrong dtypes, ranks and counts
 * among them. Nothing may crash; a failure must name itself; a graph that compiles gives the same bits by the composed path and
 * by replay. Seeds: fuzz/corpus/builder.
 *
 * The bytes: dtypes of inputs, then calls of an opcode byte and its arguments, to the end. A handle is one byte, an index into the values so
 * far (modulo their number); a few indices stand for handles that are wrong in one way each. */
#include "compare_replays.h"

#include <string.h>

enum { MAX_VALUES = 240, MAX_CALLS = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct reader {
    const uint8_t *at, *end;
} reader;

static uint8_t take(reader *r) {
    return r->at < r->end ? *r->at++ : 0;
}

/* Little-endian; what is missing is 0. */
static uint64_t take_word(reader *r) {
    uint64_t word = 0;
    for (int i = 0; i < 8; i++) {
        word |= (uint64_t)take(r) << (8 * i);
    }
    return word;
}

typedef struct program {
    reader code;
    int32_t n_inputs, n_outputs;
    ol_value values[MAX_VALUES];
    uint32_t n_values;
} program;

/* From the run before: a value of another graph. */
static ol_value foreign;

static ol_value take_value(program *p) {
    uint8_t index = take(&p->code);
    ol_value v = p->n_values ? p->values[index % p->n_values] : (ol_value){ 0 };
    switch (index) {
    case 255: return (ol_value){ 0 };
    case 254: return foreign;
    case 253: v.node += 1000; return v;
    case 252: v.node = UINT32_MAX; return v;
    case 251: v.graph++; return v;
    default: return v;
    }
}

/* Mostly a dtype, at times a number that is none. */
static ol_dtype take_dtype(program *p) {
    uint8_t d = take(&p->code);
    return d >= 250 ? (ol_dtype)(d - 252) : (ol_dtype)(d % OL_DTYPE_COUNT);
}

static ol_value call_broadcast_to(program *p, ol_graph *g) {
    static const int64_t extents[] = { 0, 1, 1, 2, 3, 7, 16, 17, 33, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 32 };
    int64_t shape[16];
    uint8_t rank = take(&p->code) % 12;
    for (int i = 0; i < 16; i++) {
        shape[i] = i < rank ? extents[take(&p->code) % 13] : 1;
    }
    return ol_broadcast_to(g, take_value(p), rank == 11 ? -1 : rank, rank == 10 ? NULL : shape);
}

static ol_value call_constant(program *p, ol_graph *g) {
    ol_dtype dtype = take_dtype(p);
    uint64_t bits = take_word(&p->code);
    double value;
    memcpy(&value, &bits, sizeof value);
    switch (take(&p->code) % 8) {
    case 0: return ol_constant(g, dtype, value);
    case 1: return ol_constant(g, dtype, (double)(int64_t)(bits >> 40) / 16);
    case 2: return ol_constant_bits(g, dtype, bits == 0 ? NULL : &bits);
    default: return ol_constant_bits(g, dtype, &bits);
    }
}

static ol_value call(program *p, ol_graph *g) {
    uint8_t opcode = take(&p->code);
    ol_value operands[4];
    int32_t primitive;
    if (opcode < 160) {
        primitive = opcode % ol_primitive_count();
        for (int i = 0; i < ol_primitive_arity(primitive); i++) {
            operands[i] = take_value(p);
        }
        return ol_apply(g, primitive, operands, ol_primitive_arity(primitive));
    }
    switch (opcode) {
    default: {
        ol_dtype dtype = take_dtype(p);
        return ol_astype(g, take_value(p), dtype);
    }
    case 200: case 201: case 202: case 203: case 204: case 205: return call_constant(p, g);
    case 210: case 211: case 212: operands[0] = take_value(p); return ol_broadcast_like(g, operands[0], take_value(p));
    case 213: case 214: case 215: return call_broadcast_to(p, g);
    case 250:
        primitive = (int8_t)take(&p->code);
        for (int i = 0; i < 4; i++) {
            operands[i] = take_value(p);
        }
        return ol_apply(g, primitive, operands, take(&p->code) % 5);
    case 251:
        primitive = take(&p->code);
        ol_graph_fail(g, primitive & 1 ? NULL : "fuzz", primitive & 2 ? NULL : "%s%n");
        return (ol_value){ 0 };
    case 252: operands[0] = take_value(p); return ol_clip(g, operands[0], take_value(p), operands[0]);
    case 253: operands[0] = take_value(p); return ol_where(g, operands[0], take_value(p), operands[0]);
    case 254: return ol_apply(g, take(&p->code), NULL, 1);
    case 255: operands[0] = take_value(p); return ol_constant(NULL, ol_value_dtype(g, operands[0]), 1);
    }
}

static int build(ol_graph *g, const ol_value *in, ol_value *out, void *user) {
    program *p = user;
    p->n_values = 0;
    for (int32_t i = 0; i < p->n_inputs; i++) {
        p->values[p->n_values++] = in[i];
    }
    for (int n = 0; p->code.at < p->code.end && n < MAX_CALLS; n++) {
        ol_value v = call(p, g);
        if (!ol_dtype_name(ol_value_dtype(g, v))) {
            abort();
        }
        if (p->n_values < MAX_VALUES) {
            p->values[p->n_values++] = v;
        }
    }
    for (int32_t i = 0; i < p->n_outputs; i++) {
        uint32_t back = (uint32_t)i * 2 + 1;
        if (back <= p->n_values) {
            out[i] = p->values[p->n_values - back];
        }
    }
    foreign = p->n_values ? p->values[p->n_values - 1] : foreign;
    return p->n_values > 3 && p->n_values % 64 == 63 ? 17 : 0;
}

static ol_status compile(int best, program p, const ol_dtype *dtypes, ol_composite **composite, ol_error *error) {
    ol_builder builder = { .build = build, .user = &p, .n_inputs = p.n_inputs, .n_outputs = p.n_outputs, .name = "fuzz" };
    return ol_compile(fuzz_device(best), &builder, dtypes, composite, error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    program p = { .code = { data, data + size } };
    ol_dtype dtypes[16];
    ol_composite *composite = NULL, *best = NULL;
    ol_error error = { 0 };
    uint8_t counts = take(&p.code);
    p.n_inputs = counts & 7;
    p.n_outputs = 1 + (counts >> 3 & 7);
    for (int32_t i = 0; i < p.n_inputs; i++) {
        dtypes[i] = take_dtype(&p);
    }
    ol_value before = foreign;                           /* both runs must see the same bytes mean the same */
    ol_status status = compile(0, p, dtypes, &composite, &error);
    if (status != OL_OK) {
        if (composite || error.status != status || !error.operation[0] || !error.description[0]) {
            abort();
        }
        if (error.code != 0 && status != OL_ERROR_BUILDER) {
            abort();
        }
        return 0;
    }
    foreign = before;
    if (compile(1, p, dtypes, &best, &error) != OL_OK) {
        fprintf(stderr, "%s: %s\n", error.operation, error.description);
        abort();
    }
    fuzz_replay(composite, best, data, size);
    ol_composite_destroy(best);
    ol_composite_destroy(composite);
    return 0;
}
