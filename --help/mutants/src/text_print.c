/* Graphs and programs as text. The grammar is in docs/graph-text.md; text_parse.c reads it back. Constants are printed as bits,
 * so that nothing is lost; nothing here depends on the locale. */
#include "composite.h"
#include "dtype.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

typedef struct writer {
    char *buffer;
    size_t n_bytes, length;              /* length: of the whole text, written or not */
} writer;

__attribute__((format(printf, 2, 3)))
static void put(writer *w, const char *format, ...)
{
    char *at = w->length < w->n_bytes ? w->buffer + w->length : NULL;
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(at, at ? w->n_bytes - w->length : 0, format, arguments);
    va_end(arguments);
    w->length += n > 0 ? (size_t)n : 0;
}

static void put_name(writer *w, const char *name)
{
    put(w, "\"");
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        if (*c == '"' || *c == '\\')
            put(w, "\\%c", *c);
        else
            put(w, *c < 0x20 || *c == 0x7F ? "\\x%02x" : "%c", *c);
    put(w, "\"");
}

static void put_node(writer *w, const graph *g, uint32_t index)
{
    const node *n = &g->nodes[index];
    put(w, "v%" PRIu32 " = %s", index, node_name(n));
    if (n->kind == NODE_INPUT || n->kind == NODE_CONSTANT || n->kind == NODE_ASTYPE)
        put(w, " %s", ol_dtype_name((ol_dtype)n->dtype));
    if (n->kind == NODE_CONSTANT)
        put(w, " 0x%0*" PRIx64, 2 * dtype_sizes[n->dtype], n->payload);
    if (n->kind == NODE_BROADCAST_TO) {
        const shape *s = &g->shapes[n->payload];
        put(w, " [");
        for (int32_t d = 0; d < s->rank; d++)
            put(w, d ? ", %" PRId64 : "%" PRId64, s->dims[d]);
        put(w, "]");
    }
    for (int k = 0; k < n->n_operands; k++)
        put(w, " v%" PRIu32, n->operands[k]);
}

static void put_graph(writer *w, const graph *g)
{
    put(w, "onelaunch graph 1\nname ");
    put_name(w, g->name);
    put(w, "\n");
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        put_node(w, g, i);
        if (g->nodes[i].kind > NODE_ASTYPE || g->nodes[i].kind == NODE_PRIMITIVE)
            put(w, "    # %s", ol_dtype_name((ol_dtype)g->nodes[i].dtype));
        put(w, "\n");
    }
    for (int32_t i = 0; i < g->n_outputs; i++)
        put(w, "output v%" PRIu32 "\n", g->outputs[i]);
}

static void put_dot(writer *w, const graph *g)
{
    put(w, "digraph ");
    put_name(w, g->name);
    put(w, " {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const node *n = &g->nodes[i];
        put(w, "  v%" PRIu32 " [label=\"%s", i, node_name(n));
        if (n->kind == NODE_INPUT)
            put(w, " %" PRIu64, n->payload);
        if (n->kind == NODE_CONSTANT)
            put(w, " 0x%0*" PRIx64, 2 * dtype_sizes[n->dtype], n->payload);
        put(w, "\\n%s\"%s];\n", ol_dtype_name((ol_dtype)n->dtype), n->kind <= NODE_CONSTANT ? ", style=rounded" : "");
        for (int k = 0; k < n->n_operands; k++)
            put(w, "  v%" PRIu32 " -> v%" PRIu32 "%s;\n", n->operands[k], i, n->kind == NODE_BROADCAST_LIKE && k == 1 ? " [style=dashed]" : "");
    }
    for (int32_t i = 0; i < g->n_outputs; i++)
        put(w, "  output%d [label=\"output %d\", shape=ellipse];\n  v%" PRIu32 " -> output%d;\n", (int)i, (int)i, g->outputs[i], (int)i);
    put(w, "}\n");
}

static void put_program(writer *w, const ol_composite *c)
{
    const program *p = c->program;
    put(w, "program ");
    put_name(w, c->traced->name);
    put(w, ": %zu instructions, %" PRIu32 " registers, %zu bytes an element, 1 launch (composed: %d)\n", p->n_instructions, p->n_registers,
        p->tile_bytes_per_element, (int)c->composed_launches);
    for (size_t i = 0; i < p->n_instructions; i++) {
        const instruction *in = &p->instructions[i];
        int output = 0;
        put(w, "  r%" PRIu32 " = %s", in->result, in->kind == INSTRUCTION_LOAD ? "load" : in->name);
        if (in->kind == INSTRUCTION_LOAD)
            put(w, " input %" PRIu64, in->payload);
        if (in->kind == INSTRUCTION_CONSTANT)
            put(w, " 0x%0*" PRIx64, 2 * dtype_sizes[in->dtype], in->payload);
        for (int k = 0; k < in->n_operands; k++)
            put(w, " r%" PRIu32, in->operands[k]);
        put(w, "    # %s v%" PRIu32, ol_dtype_name((ol_dtype)in->dtype), in->node);
        for (int32_t o = 0; o < c->optimized->n_outputs; o++)
            if (c->optimized->outputs[o] == in->node) {
                put(w, output ? ", output %d" : "; output %d", (int)o);
                output = 1;
            }
        if (in->keeps_register && !output)
            put(w, "; hoisted where its inputs are the same for every row");
        put(w, "\n");
    }
}

size_t ol_composite_text(const ol_composite *c, ol_text_kind kind, char *buffer, size_t n_bytes)
{
    writer w = { buffer, buffer ? n_bytes : 0, 0 };
    if (w.n_bytes)
        buffer[0] = '\0';
    if (!c)
        return 0;
    switch (kind) {
    case OL_TEXT_GRAPH: put_graph(&w, c->traced); break;
    case OL_TEXT_OPTIMIZED: put_graph(&w, c->optimized); break;
    case OL_TEXT_PROGRAM: put_program(&w, c); break;
    case OL_TEXT_DOT: put_dot(&w, c->optimized); break;
    }
    return w.length;
}
