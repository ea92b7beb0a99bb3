/* Graph text to graph, through the same tracing functions that builders call: promotion, type rules and limits are theirs.
 *
 * Two passes over the lines. The first counts inputs, outputs and statements, so that all memory is taken at once; the second
 * builds. A statement is a line; names are bound once. Text is bytes with a length: it needs no terminating zero. */
#define XXH_INLINE_ALL
#include "composite.h"
#include "dtype.h"
#include "numerics/fpenv.h"
#include "status.h"
#include "trace.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define MAX_TOKEN 128

typedef struct binding {
    const char *name;                    /* into the text; NULL: free */
    size_t length;
    ol_value value;
} binding;

typedef struct parser {
    const char *at, *end;                /* the rest of the text */
    const char *line_start;
    int line;
    ol_graph *trace;                     /* NULL in the counting pass */
    binding *bindings;
    size_t n_bindings;                   /* slots; a power of two */
    ol_value *outputs;
    int32_t n_inputs, n_outputs;
    ol_dtype *input_dtypes;
    size_t n_statements;
    char name[64];
    ol_error *error;
    ol_status status;
} parser;

/* ---- Tokens ---- */

typedef struct token {
    const char *text;
    size_t length;
} token;

__attribute__((format(printf, 3, 4)))
static int syntax(parser *p, const char *where, const char *format, ...)
{
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    p->status = fail(p->error, OL_ERROR_TEXT, "graph text", "%d:%d: %s", p->line, (int)(where - p->line_start) + 1, text);
    return 0;
}

static void skip_blanks(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r'))
        p->at++;
}

static int at_line_end(parser *p)
{
    skip_blanks(p);
    return p->at == p->end || *p->at == '\n' || *p->at == '#';
}

static void next_line(parser *p)
{
    while (p->at < p->end && *p->at != '\n')
        p->at++;
    if (p->at < p->end)
        p->at++;
    p->line++;
    p->line_start = p->at;
}

static int is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '%' || c == '-' || c == '+';
}

static token word(parser *p)
{
    skip_blanks(p);
    token t = { p->at, 0 };
    while (p->at < p->end && is_word(*p->at))
        p->at++;
    t.length = (size_t)(p->at - t.text);
    return t;
}

static int token_is(token t, const char *text)
{
    return t.length == strlen(text) && memcmp(t.text, text, t.length) == 0;
}

/* The token as a string; false where it is longer than any name the language has. */
static int token_copy(token t, char *buffer)
{
    if (t.length >= MAX_TOKEN)
        return 0;
    memcpy(buffer, t.text, t.length);
    buffer[t.length] = '\0';
    return 1;
}

static int expect(parser *p, char c)
{
    skip_blanks(p);
    if (p->at < p->end && *p->at == c) {
        p->at++;
        return 1;
    }
    return syntax(p, p->at, "expected '%c'", c);
}

static int dtype_token(parser *p, ol_dtype *dtype)
{
    char text[MAX_TOKEN];
    token t = word(p);
    if (token_copy(t, text) && ol_dtype_parse(text, dtype))
        return 1;
    return syntax(p, t.text, "expected a dtype, such as float32");
}

/* ---- Literals ---- */

static int decimal_float(const char *text, double *value)
{
    char *end;
    if (strpbrk(text, "xX"))                          /* strtod would take hexadecimal as a number; here 0x is bits */
        return 0;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return 0;
    fpenv_libc host = fpenv_libc_begin();             /* strtod obeys the rounding mode */
    *value = strtod_l(text, &end, c);
    fpenv_libc_end(host);
    freelocale(c);
    return *text && !*end;
}

static int decimal_integer(const char *text, ol_dtype dtype, uint64_t *bits)
{
    char *end;
    errno = 0;
    int width = 8 * dtype_sizes[dtype];
    if (text[0] == '-') {
        long long v = strtoll(text, &end, 10);
        if (dtype_is_unsigned(dtype) || (width < 64 && v < -(1ll << (width - 1))))
            return 0;
        *bits = (uint64_t)v;
    } else {
        unsigned long long v = strtoull(text, &end, 10);
        int bits_free = dtype_is_unsigned(dtype) ? width : width - 1;
        if (bits_free < 64 && v >> bits_free)
            return 0;
        *bits = v;
    }
    if (width < 64)
        *bits &= (1ull << width) - 1;
    return errno == 0 && *end == '\0' && end != text && text[0] != '+';
}

/* 0x… is bits, of at most the dtype's width; else a number in decimal (read as a double, then converted as ol_constant does;
 * integers exactly), inf, nan, true, false. */
static int literal(parser *p, ol_dtype dtype, uint64_t *bits)
{
    char text[MAX_TOKEN];
    token t = word(p);
    double value;
    if (t.length == 0)
        return syntax(p, t.text, "expected a constant: 0x and its bits, or a number");
    if (token_copy(t, text)) {
        if (text[0] == '0' && text[1] == 'x') {
            size_t digits = strspn(text + 2, "0123456789abcdefABCDEF");
            *bits = strtoull(text + 2, NULL, 16);
            if (digits > 0 && digits <= 2u * dtype_sizes[dtype] && text[2 + digits] == '\0' && (dtype != OL_BOOL || *bits <= 1))
                return 1;
        } else if (dtype == OL_BOOL) {
            *bits = strcmp(text, "true") == 0;
            if (*bits || strcmp(text, "false") == 0)
                return 1;
        } else if (dtype_is_float(dtype)) {
            if (decimal_float(text, &value)) {
                *bits = dtype_from_double(dtype, value);
                return 1;
            }
        } else if (decimal_integer(text, dtype, bits))
            return 1;
    }
    return syntax(p, t.text, "not a constant of dtype %s", ol_dtype_name(dtype));
}

static int quoted_name(parser *p)
{
    size_t n = 0;
    if (!expect(p, '"'))
        return 0;
    for (; p->at < p->end && *p->at != '"' && *p->at != '\n'; p->at++) {
        int c = (unsigned char)*p->at;
        if (c == '\\') {
            char hex[3] = { 0 };
            if (p->end - p->at >= 4 && p->at[1] == 'x') {
                memcpy(hex, p->at + 2, 2);
                if (strspn(hex, "0123456789abcdef") != 2)
                    return syntax(p, p->at, "expected \\x and two digits");
                c = (int)strtoul(hex, NULL, 16);
                p->at += 3;
            } else if (p->end - p->at >= 2 && (p->at[1] == '"' || p->at[1] == '\\'))
                c = *++p->at;
            else
                return syntax(p, p->at, "an unknown escape");
        }
        if (c == 0 || n + 1 >= sizeof p->name)
            return syntax(p, p->at, "a name has at most %zu bytes, none of them zero", sizeof p->name - 1);
        p->name[n++] = (char)c;
    }
    p->name[n] = '\0';
    return expect(p, '"');
}

static int static_shape(parser *p, shape *s)
{
    s->rank = 0;
    if (!expect(p, '['))
        return 0;
    skip_blanks(p);
    if (p->at < p->end && *p->at == ']') {
        p->at++;
        return 1;
    }
    for (;;) {
        char text[MAX_TOKEN];
        uint64_t extent;
        token t = word(p);
        if (!token_copy(t, text) || text[0] == '-' || !decimal_integer(text, OL_INT64, &extent))
            return syntax(p, t.text, "expected an extent");
        if (s->rank == OL_MAX_RANK)
            return syntax(p, t.text, "more than %d dimensions", OL_MAX_RANK);
        s->dims[s->rank++] = (int64_t)extent;
        skip_blanks(p);
        if (p->at < p->end && *p->at == ',') {
            p->at++;
            continue;
        }
        return expect(p, ']');
    }
}

/* ---- Names ---- */

static binding *find(parser *p, token name)
{
    size_t i = XXH3_64bits(name.text, name.length) & (p->n_bindings - 1);
    while (p->bindings[i].name && !(p->bindings[i].length == name.length && memcmp(p->bindings[i].name, name.text, name.length) == 0))
        i = (i + 1) & (p->n_bindings - 1);
    return &p->bindings[i];
}

static int value_token(parser *p, ol_value *value)
{
    token t = word(p);
    if (t.length == 0)
        return syntax(p, t.text, "expected the name of a value");
    if (!p->trace)
        return 1;
    binding *b = find(p, t);
    if (!b->name)
        return syntax(p, t.text, "no value has the name %.*s (a value is defined before it is used)", t.length > 64 ? 64 : (int)t.length, t.text);
    *value = b->value;
    return 1;
}

/* ---- Statements ---- */

/* The right-hand side of NAME = … */
static int expression(parser *p, ol_value *result)
{
    token operation = word(p);
    ol_dtype dtype = OL_FLOAT32;
    ol_value operands[3] = { { 0 } };
    uint64_t bits = 0;
    shape s;
    char name[MAX_TOKEN];
    if (token_is(operation, "input")) {
        if (!dtype_token(p, &dtype))
            return 0;
        if (p->trace)
            *result = trace_input(p->trace, p->n_inputs);
        if (p->input_dtypes)
            p->input_dtypes[p->n_inputs] = dtype;
        if (p->n_inputs == OL_MAX_INPUTS) {
            p->status = fail(p->error, OL_ERROR_LIMIT, "graph text", "%d: more than OL_MAX_INPUTS (%d) inputs", p->line, OL_MAX_INPUTS);
            return 0;
        }
        p->n_inputs++;
        return 1;
    }
    if (token_is(operation, "constant")) {
        if (!dtype_token(p, &dtype) || !literal(p, dtype, &bits))
            return 0;
        if (p->trace)
            *result = ol_constant_bits(p->trace, dtype, &bits);
        return 1;
    }
    if (token_is(operation, "astype")) {
        if (!dtype_token(p, &dtype) || !value_token(p, &operands[0]))
            return 0;
        if (p->trace)
            *result = ol_astype(p->trace, operands[0], dtype);
        return 1;
    }
    if (token_is(operation, "broadcast_like")) {
        if (!value_token(p, &operands[0]) || !value_token(p, &operands[1]))
            return 0;
        if (p->trace)
            *result = ol_broadcast_like(p->trace, operands[0], operands[1]);
        return 1;
    }
    if (token_is(operation, "broadcast_to")) {
        if (!static_shape(p, &s) || !value_token(p, &operands[0]))
            return 0;
        if (p->trace)
            *result = ol_broadcast_to(p->trace, operands[0], s.rank, s.dims);
        return 1;
    }
    int32_t number = token_copy(operation, name) ? ol_primitive_find(name) : -1;
    if (number < 0)
        return syntax(p, operation.text, "no primitive has the name %.*s", operation.length > 64 ? 64 : (int)operation.length, operation.text);
    int32_t arity = ol_primitive_arity(number);
    for (int32_t i = 0; i < arity; i++)
        if (!value_token(p, &operands[i]))
            return 0;
    if (p->trace)
        *result = ol_apply(p->trace, number, operands, arity);
    return 1;
}

static int statement(parser *p)
{
    token first = word(p);
    ol_value value = { 0 };
    if (first.length == 0)
        return syntax(p, first.text, "expected a statement");
    p->n_statements++;
    if (token_is(first, "name") && !(skip_blanks(p), p->at < p->end && *p->at == '='))
        return quoted_name(p);
    if (token_is(first, "output") && !(skip_blanks(p), p->at < p->end && *p->at == '=')) {
        if (!value_token(p, &value))
            return 0;
        if (p->outputs)
            p->outputs[p->n_outputs] = value;
        if (p->n_outputs == OL_MAX_OUTPUTS) {
            p->status = fail(p->error, OL_ERROR_LIMIT, "graph text", "%d: more than OL_MAX_OUTPUTS (%d) outputs", p->line, OL_MAX_OUTPUTS);
            return 0;
        }
        p->n_outputs++;
        return 1;
    }
    if (!expect(p, '=') || !expression(p, &value))
        return 0;
    if (p->trace) {
        binding *b = find(p, first);
        if (b->name)
            return syntax(p, first.text, "the name %.*s is already taken", first.length > 64 ? 64 : (int)first.length, first.text);
        *b = (binding){ first.text, first.length, value };
        if (p->trace->failed) {
            ol_error e = p->trace->error;
            p->status = fail(p->error, e.status, e.operation, "%d: %s", p->line, e.description);
            return 0;
        }
    }
    return 1;
}

static int pass(parser *p, const char *text, size_t n_bytes)
{
    p->at = p->line_start = text;
    p->end = text + n_bytes;
    p->line = 1;
    p->n_inputs = p->n_outputs = 0;
    p->n_statements = 0;
    int header = 0;
    while (p->at < p->end) {
        if (!at_line_end(p)) {
            const char *start = p->at;
            if (!header) {
                token a = word(p), b = word(p), c = word(p);
                if (!token_is(a, "onelaunch") || !token_is(b, "graph") || !token_is(c, "1"))
                    return syntax(p, start, "expected the header \"onelaunch graph 1\"");
                header = 1;
            } else if (!statement(p))
                return 0;
            if (!at_line_end(p))
                return syntax(p, p->at, "expected the end of the line");
        }
        next_line(p);
    }
    if (!header)
        return syntax(p, p->at, "expected the header \"onelaunch graph 1\"");
    if (p->n_outputs == 0)
        return syntax(p, p->at, "the graph has no output");
    return 1;
}

static ol_status parse(const ol_allocator *a, const char *text, size_t n_bytes, graph **g, ol_error *error)
{
    parser p = { .error = error, .name = "composite" };
    ol_graph trace;
    if (!pass(&p, text, n_bytes))
        return p.status;
    size_t n_inputs = (size_t)p.n_inputs, n_outputs = (size_t)p.n_outputs;
    p.n_bindings = 16;
    while (p.n_bindings < 2 * p.n_statements)
        p.n_bindings *= 2;
    p.bindings = memory_take(a, memory_size(p.n_bindings, sizeof *p.bindings));
    p.outputs = memory_take(a, n_outputs * sizeof *p.outputs);
    p.input_dtypes = memory_take(a, n_inputs * sizeof *p.input_dtypes);
    if (!p.bindings || !p.outputs || !p.input_dtypes)
        p.status = fail(error, OL_ERROR_MEMORY, "graph text", "no memory for %zu statements", p.n_statements);
    else if (pass(&p, text, n_bytes) &&                        /* for the inputs' dtypes */
             (p.status = trace_begin(&trace, a, (int32_t)n_inputs, p.input_dtypes, (int32_t)n_outputs, p.name, error)) == OL_OK) {
        p.trace = &trace;
        if (pass(&p, text, n_bytes))
            p.status = trace_end(&trace, p.outputs, g, error);
        else
            trace_abandon(&trace);
    }
    memory_give(a, p.bindings, p.n_bindings * sizeof *p.bindings);
    memory_give(a, p.outputs, n_outputs * sizeof *p.outputs);
    memory_give(a, p.input_dtypes, n_inputs * sizeof *p.input_dtypes);
    return p.status;
}

ol_status ol_compile_text(ol_device *device, const char *text, size_t n_bytes, ol_composite **composite, ol_error *error)
{
    graph *g;
    if (!device || !composite || (!text && n_bytes))
        return fail(error, OL_ERROR_ARGUMENT, "graph text", "the device, the text, or the place for the composite is NULL");
    ol_status status = parse(&device->allocator, n_bytes ? text : "", n_bytes, &g, error);
    return status == OL_OK ? composite_create(device, g, composite, error) : status;
}
