/* The statements of a kernel's text, one an instruction, on the N elements of a thread. A value of 16 bits is a kernel_halves<T, N>,
 * any other an array of N; a constant is one element. */
#include "cuda/kernel_writer.h"
#include "dtype.h"

#include <inttypes.h>

static const char *const suffixes[OL_DTYPE_COUNT] = { "b8", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "bf16", "f32" };
static const char *const types[OL_DTYPE_COUNT] = {
    "uint8_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "int8_t", "int16_t", "int32_t", "int64_t", "uint16_t", "uint16_t", "float",
};

const char *writer_type(const instruction *in) { return types[in->dtype]; }

static void put_constant(writer *w, const instruction *in)
{
    if (in->dtype == OL_FLOAT32)
        text_add(w->t, "    const float v%u = num_from_bits32(0x%08xu);\n", in->node, (unsigned)in->payload);
    else
        text_add(w->t, "    const %s v%u = (%s)0x%" PRIx64 "ull;\n", types[in->dtype], in->node, types[in->dtype], in->payload);
}

void put_constants(writer *w)
{
    for (size_t i = 0; i < w->k->n_instructions; i++)
        if (instruction_at(w, i)->kind == INSTRUCTION_CONSTANT)
            put_constant(w, instruction_at(w, i));
}

void put_parameter(writer *w, const instruction *in, const char *qualifier)
{
    if (dtype_sizes[in->dtype] == 2)
        text_add(w->t, "%skernel_halves<%s, N> &v%u", qualifier, types[in->dtype], in->node);
    else
        text_add(w->t, "%s%s (&v%u)[N]", qualifier, types[in->dtype], in->node);
}

void put_declaration(writer *w, const instruction *in, const char *prefix, int indent)
{
    if (dtype_sizes[in->dtype] == 2)
        text_add(w->t, "%*skernel_halves<%s, N> %s%u;\n", indent, "", types[in->dtype], prefix, in->node);
    else
        text_add(w->t, "%*s%s %s%u[N];\n", indent, "", types[in->dtype], prefix, in->node);
}

static void put_operand(writer *w, uint32_t n)
{
    text_add(w->t, node_at(w, n)->kind == NODE_CONSTANT ? "v%u" : "v%u[i]", n);
}

/* Whether the node is a primitive that is done for all elements of a thread at once (kernel_quick.h). */
static int is_quick(const writer *w, const node *n)
{
    if (w->quick == QUICK_NOT || n->kind != NODE_PRIMITIVE || node_at(w, n->operands[0])->kind == NODE_CONSTANT)
        return 0;
    switch (n->primitive) {
    case PRIMITIVE_exp: case PRIMITIVE_exp2: case PRIMITIVE_sigmoid: case PRIMITIVE_softplus:
        return n->dtype == OL_FLOAT32 || n->dtype == OL_BFLOAT16;
    case PRIMITIVE_silu: case PRIMITIVE_log: return n->dtype == OL_FLOAT32;
    default: return 0;
    }
}

int writer_is_output(const writer *w, uint32_t n)
{
    for (int32_t o = 0; o < w->g->n_outputs; o++)
        if (w->g->outputs[o] == n)
            return 1;
    return 0;
}

/* An operation of one instruction, without making a NaN canonical: for values that no output shows, since every primitive takes
 * any NaN for one and makes its own canonical. NULL where there is none. */
static const char *bare_operation(const node *n, ol_dtype operand)
{
    if (n->dtype != OL_FLOAT32)
        return NULL;
    if (n->kind == NODE_ASTYPE && operand == OL_BFLOAT16)
        return "num_widen_bf16";
    if (n->kind == NODE_ASTYPE && operand == OL_FLOAT16)
        return "num_widen_f16";
    if (n->kind != NODE_PRIMITIVE || operand != OL_FLOAT32)
        return NULL;
    switch (n->primitive) {
    case PRIMITIVE_negative: return "-";
    case PRIMITIVE_add: return "+";
    case PRIMITIVE_subtract: return "-";
    case PRIMITIVE_multiply: return "*";
    default: return NULL;
    }
}

/* The same for two values of 16 bits: arithmetic that narrows two by two (kernel_halves.h). */
static int is_bare_pair(const writer *w, const node *n, ol_dtype operand)
{
    if (n->kind != NODE_PRIMITIVE || n->dtype != operand || (operand != OL_FLOAT16 && operand != OL_BFLOAT16))
        return 0;
    if (n->primitive != PRIMITIVE_add && n->primitive != PRIMITIVE_subtract && n->primitive != PRIMITIVE_multiply)
        return 0;
    return node_at(w, n->operands[0])->kind != NODE_CONSTANT && node_at(w, n->operands[1])->kind != NODE_CONSTANT;
}

static void put_bare(writer *w, const node *n, const char *operation)
{
    if (n->n_operands == 2) {
        put_operand(w, n->operands[0]);
        text_add(w->t, " %s ", operation);
        put_operand(w, n->operands[1]);
        text_add(w->t, ");\n");
    } else {
        text_add(w->t, "%s(", operation);
        put_operand(w, n->operands[0]);
        text_add(w->t, "));\n");
    }
}

void put_load(writer *w, const instruction *in, const char *prefix, const char *row, int indent)
{
    text_add(w->t, "%*skernel_load(%s%u, %s(%u, %s));\n", indent, "", prefix, in->node, w->place, (unsigned)in->payload, row);
}

static void put_quick(writer *w, const instruction *in, int indent)
{
    const node *n = node_at(w, in->node);
    const char *name = primitive_table[n->primitive].name, *suffix = suffixes[n->dtype];
    if (w->quick == QUICK_TRIED)
        text_add(w->t, "%*skernel_try_%s_%s(v%u, v%u, open);\n", indent, "", name, suffix, in->node, n->operands[0]);
    else
        text_add(w->t, "%*skernel_%s_%s(v%u, v%u);\n", indent, "", name, suffix, in->node, n->operands[0]);
}

void put_statement(writer *w, const instruction *in, int indent)
{
    const node *n = node_at(w, in->node);
    if (in->kind == INSTRUCTION_LOAD) {
        put_load(w, in, "v", "row", indent);
        return;
    }
    if (is_quick(w, n)) {
        put_quick(w, in, indent);
        return;
    }
    ol_dtype operand = graph_dtype(w->g, n->operands[n->kind == NODE_BROADCAST_LIKE ? 0 : n->n_operands - 1]);
    const char *bare = writer_is_output(w, in->node) ? NULL : bare_operation(n, operand);
    if (!writer_is_output(w, in->node) && is_bare_pair(w, n, operand)) {
        text_add(w->t, "%*skernel_%s_%s(v%u, v%u, v%u);\n", indent, "", primitive_table[n->primitive].name, suffixes[operand], in->node,
                 n->operands[0], n->operands[1]);
        return;
    }
    text_add(w->t, "%*sLANES kernel_set(v%u, i, ", indent, "", in->node);
    if (bare) {
        put_bare(w, n, bare);
        return;
    }
    if (n->kind == NODE_PRIMITIVE)
        text_add(w->t, "num_%s_%s(", primitive_table[n->primitive].name, suffixes[operand]);
    else
        text_add(w->t, "num_astype_%s_%s(", suffixes[operand], suffixes[n->dtype]);
    for (int o = 0; o < node_reads(n); o++) {
        text_add(w->t, o ? ", " : "");
        put_operand(w, n->operands[o]);
    }
    text_add(w->t, "));\n");
}

int writer_has_quick(const writer *w)
{
    for (size_t i = 0; i < w->k->n_instructions; i++)
        if (is_quick(w, node_at(w, instruction_at(w, i)->node)))
            return 1;
    return 0;
}
