/* From a composite's program to the text of its kernel.
 *
 * The text is one function template over N, the elements that a thread takes at a time, FAR, whether offsets need all generality,
 * and MAPPED (words.h); and what calls it for the group of the thread's block:
 *
 *     for the columns of this thread                       N elements side by side in a row
 *         for the rows of this thread
 *             loads, operations, stores                    in ifs by the outputs that need them; what is the same for every
 *                                                          row ("hoisted", decided by the shapes of a replay) at the first one
 *
 * A value is an array of N. Where registers allow it all loads come first: the GPU waits where a loaded value is used, so that
 * loads with nothing between them wait together. Every load of an element comes before the stores to it, which in-place outputs need. The compiler's
 * time grows with the text, so nothing is written twice. */
#include "cuda/device_text.h"
#include "cuda/kernel.h"
#include "dtype.h"
#include "status.h"

#include <inttypes.h>
#include <string.h>

typedef struct writer {
    const kernel *k;
    const graph *g;
    const program *p;
    text *t;
    uint8_t *needed;                     /* by instruction: in the loop over rows, not only inside of a hoisted value */
    uint64_t *parts_of;                  /* by instruction: the hoistable values that it is a part of, by their bits */
    int loads_first;                     /* all loads come before what is computed, so that none waits for another's use */
    uint32_t *tree;                      /* by node: the instruction + 1 whose tree it was last found to be in */
    uint32_t *instruction_of;            /* by node */
    uint32_t *stack;
} writer;

static const char *const suffixes[OL_DTYPE_COUNT] = { "b8", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "bf16", "f32" };
static const char *const types[OL_DTYPE_COUNT] = {
    "uint8_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "int8_t", "int16_t", "int32_t", "int64_t", "uint16_t", "uint16_t", "float",
};

static const instruction *instruction_at(const writer *w, size_t i) { return &w->p->instructions[i]; }
static const node *node_at(const writer *w, uint32_t n) { return &w->g->nodes[n]; }
static int is_hoistable(const writer *w, uint32_t n) { return w->k->hoisted[w->instruction_of[n]] >= 0; }

/* ---- What is computed where ---- */

/* Marks the nodes that instruction i is computed from, down to inputs, constants and hoistable values, which it does not pass;
 * those hoistable values are needed if it is. */
static void mark_tree(writer *w, size_t i)
{
    size_t n_stack = 0;
    uint32_t root = instruction_at(w, i)->node;
    w->stack[n_stack++] = root;
    w->tree[root] = (uint32_t)i + 1;
    while (n_stack) {
        const node *n = node_at(w, w->stack[--n_stack]);
        for (int o = 0; o < node_reads(n); o++) {
            uint32_t operand = n->operands[o];
            if (is_hoistable(w, operand))
                w->needed[w->instruction_of[operand]] |= w->needed[i];
            else if (w->tree[operand] != i + 1) {
                w->tree[operand] = (uint32_t)i + 1;
                w->stack[n_stack++] = operand;
            }
        }
    }
}

static void mark_needed(writer *w)
{
    const graph *g = w->g;
    for (int32_t o = 0; o < g->n_outputs; o++)
        w->needed[w->instruction_of[g->outputs[o]]] = 1;
    for (size_t i = w->k->n_instructions; i-- > 0;) {
        const node *n = node_at(w, instruction_at(w, i)->node);
        if (!w->needed[i])
            continue;
        if (w->k->hoisted[i] >= 0) {
            mark_tree(w, i);
            for (size_t j = 0; j < i; j++)
                if (w->tree[instruction_at(w, j)->node] == i + 1)
                    w->parts_of[j] |= (uint64_t)1 << w->k->hoisted[i];
        } else
            for (int o = 0; o < node_reads(n); o++)
                w->needed[w->instruction_of[n->operands[o]]] = 1;
    }
}

/* ---- Statements ---- */

static void put_constant(writer *w, const instruction *in)
{
    if (in->dtype == OL_FLOAT32)
        text_add(w->t, "    const float v%u = num_from_bits32(0x%08xu);\n", in->node, (unsigned)in->payload);
    else
        text_add(w->t, "    const %s v%u = (%s)0x%" PRIx64 "ull;\n", types[in->dtype], in->node, types[in->dtype], in->payload);
}

static void put_declaration(writer *w, const instruction *in, int indent)
{
    text_add(w->t, "%*s%s v%u[N];\n", indent, "", types[in->dtype], in->node);
}

static void put_operand(writer *w, uint32_t n)
{
    text_add(w->t, node_at(w, n)->kind == NODE_CONSTANT ? "v%u" : "v%u[i]", n);
}

/* Whether the node is a primitive that is done for all elements of a thread at once (kernel_quick.h). */
static int is_quick(const writer *w, const node *n)
{
    if (n->kind != NODE_PRIMITIVE || node_at(w, n->operands[0])->kind == NODE_CONSTANT)
        return 0;
    switch (n->primitive) {
    case PRIMITIVE_exp: case PRIMITIVE_exp2: case PRIMITIVE_sigmoid: case PRIMITIVE_softplus:
        return n->dtype == OL_FLOAT32 || n->dtype == OL_BFLOAT16;
    case PRIMITIVE_silu: case PRIMITIVE_log: return n->dtype == OL_FLOAT32;
    default: return 0;
    }
}

static int is_output(const writer *w, uint32_t n)
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

static void put_bare(writer *w, const node *n, const char *operation)
{
    if (n->n_operands == 2) {
        put_operand(w, n->operands[0]);
        text_add(w->t, " %s ", operation);
        put_operand(w, n->operands[1]);
        text_add(w->t, ";\n");
    } else {
        text_add(w->t, "%s(", operation);
        put_operand(w, n->operands[0]);
        text_add(w->t, ");\n");
    }
}

/* The statement that gives a declared value its elements. */
static void put_statement(writer *w, const instruction *in, int indent)
{
    const node *n = node_at(w, in->node);
    if (in->kind == INSTRUCTION_LOAD) {
        text_add(w->t, "%*skernel_load(v%u, PLACE(%u));\n", indent, "", in->node, (unsigned)in->payload);
        return;
    }
    if (is_quick(w, n)) {
        text_add(w->t, "%*skernel_%s_%s(v%u, v%u);\n", indent, "", primitive_table[n->primitive].name, suffixes[n->dtype], in->node,
                 n->operands[0]);
        return;
    }
    ol_dtype operand = graph_dtype(w->g, n->operands[n->kind == NODE_BROADCAST_LIKE ? 0 : n->n_operands - 1]);
    const char *bare = is_output(w, in->node) ? NULL : bare_operation(n, operand);
    text_add(w->t, "%*sLANES v%u[i] = ", indent, "", in->node);
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
    text_add(w->t, ");\n");
}

/* Whether it is a load that comes first. */
static int is_early(const writer *w, const instruction *in)
{
    return w->loads_first && in->kind == INSTRUCTION_LOAD;
}

/* A hoistable value with what it alone is made of, unless an earlier row's is kept. */
static void put_hoistable(writer *w, size_t i, int indent)
{
    const instruction *in = instruction_at(w, i);
    mark_tree(w, i);
    text_add(w->t, "%*sif (!(kept >> %d & 1)) {\n", indent, "", w->k->hoisted[i]);
    for (size_t j = 0; j < i; j++) {
        const instruction *part = instruction_at(w, j);
        if (w->tree[part->node] == i + 1 && part->kind != INSTRUCTION_CONSTANT && !is_early(w, part)) {
            put_declaration(w, part, indent + 4);
            put_statement(w, part, indent + 4);
        }
    }
    put_statement(w, in, indent + 4);
    text_add(w->t, "%*s}\n", indent, "");
}

/* ---- The loop over rows ---- */

/* Opens, keeps or closes the if around what belongs to one cluster. */
static void enter_cluster(writer *w, uint32_t *open, uint32_t cluster)
{
    if (w->k->n_clusters < 2 || *open == cluster)
        return;
    if (*open != NODE_NONE)
        text_add(w->t, "            }\n");
    if (cluster != NODE_NONE)
        text_add(w->t, "            if (!MAPPED || (group[GROUP_CLUSTERS + %u] >> %u & 1)) {\n", cluster / 64, cluster % 64);
    *open = cluster;
}

/* The loads, each where something that is computed needs it. */
static void put_loads(writer *w)
{
    uint32_t open = NODE_NONE;
    int indent = w->k->n_clusters < 2 ? 12 : 16;
    for (size_t i = 0; i < w->k->n_instructions; i++) {
        const instruction *in = instruction_at(w, i);
        if (!is_early(w, in) || (!w->needed[i] && !w->parts_of[i]))
            continue;
        enter_cluster(w, &open, w->k->cluster[i]);
        if (w->k->hoisted[i] >= 0)
            text_add(w->t, "%*sif (!(kept >> %d & 1))\n    ", indent, "", w->k->hoisted[i]);
        else if (!w->needed[i])
            text_add(w->t, "%*sif (~kept & 0x%" PRIx64 "ull)\n    ", indent, "", w->parts_of[i]);
        put_statement(w, in, indent);
    }
    enter_cluster(w, &open, NODE_NONE);
}

static void put_values(writer *w)
{
    uint32_t open = NODE_NONE;
    int indent = w->k->n_clusters < 2 ? 12 : 16;
    for (size_t i = 0; i < w->k->n_instructions; i++) {
        const instruction *in = instruction_at(w, i);
        if ((w->needed[i] || (is_early(w, in) && w->parts_of[i])) && in->kind != INSTRUCTION_CONSTANT && w->k->hoisted[i] < 0)
            put_declaration(w, in, 12);
    }
    if (w->loads_first)
        put_loads(w);
    for (size_t i = 0; i < w->k->n_instructions; i++) {
        const instruction *in = instruction_at(w, i);
        if (!w->needed[i] || in->kind == INSTRUCTION_CONSTANT || is_early(w, in))
            continue;
        enter_cluster(w, &open, w->k->cluster[i]);
        if (w->k->hoisted[i] >= 0)
            put_hoistable(w, i, indent);
        else
            put_statement(w, in, indent);
    }
    enter_cluster(w, &open, NODE_NONE);
}

static void put_stores(writer *w)
{
    const graph *g = w->g;
    for (int32_t o = 0; o < g->n_outputs; o++) {
        int tensor = (int)(g->n_inputs + o);
        text_add(w->t, "            if (kernel_has<MAPPED>(group, %zu, %d)) kernel_store(v%u, PLACE(%d));\n", kernel_cluster_words(w->k), tensor,
                 g->outputs[o], tensor);
    }
}

/* ---- The functions ---- */

static void put_group_function(writer *w)
{
    const graph *g = w->g;
    const kernel *k = w->k;
    int hoisted_bits = 32;
    for (size_t i = 0; i < k->n_instructions; i++)
        if (k->hoisted[i] >= 32)
            hoisted_bits = 64;
    text_add(w->t, "#define LANES _Pragma(\"unroll\") for (int i = 0; i < N; i++)\n"
                   "#define PLACE(t) kernel_place(generic, at, %zu, t, view##t, column##t, column, row)\n\n"
                   "/* The columns [first, last) of a group, as far as they are this thread's. */\n"
                   "template <int N, bool FAR, bool MAPPED>\n"
                   "static __device__ __forceinline__ void %s_columns(const uint64_t *words, const uint64_t *generic, const uint64_t *group, "
                   "uint32_t thread,\n                                                    uint64_t first, uint64_t last) {\n",
             kernel_cluster_words(k), k->name);
    for (int32_t i = 0; i < g->n_inputs + g->n_outputs; i++)
        text_add(w->t, "    const uint64_t *view%d = kernel_view<MAPPED>(words, group, %zu, %d);\n", (int)i, kernel_cluster_words(k), (int)i);
    text_add(w->t, "    typedef typename kernel_count<FAR>::type count;\n"
                   "    const count n_rows = (count)group[GROUP_ROWS];\n"
                   "    const uint%d_t hoisted = (uint%d_t)group[GROUP_HOISTED];\n"
                   "    const uint32_t column_threads = kernel_lower(group[GROUP_THREADS]), row_threads = kernel_upper(group[GROUP_THREADS]);\n"
                   "    const kernel_start start = kernel_start_of(group, thread);\n"
                   "    const uint32_t at = (uint32_t)(group - words);\n"
                   "    if (start.row >= row_threads) return;\n",
             hoisted_bits, hoisted_bits);
    for (size_t i = 0; i < k->n_instructions; i++)
        if (instruction_at(w, i)->kind == INSTRUCTION_CONSTANT)
            put_constant(w, instruction_at(w, i));
    text_add(w->t, "    for (count column = (count)first + (count)start.column * N; column < (count)last; column += (count)column_threads * N) {\n");
    for (int32_t i = 0; i < g->n_inputs + g->n_outputs; i++)
        text_add(w->t, "        kernel_column<FAR> column%d;\n        kernel_start_column(column%d, view%d, column);\n", (int)i, (int)i, (int)i);
    for (size_t i = 0; i < k->n_instructions; i++)
        if (k->hoisted[i] >= 0)
            put_declaration(w, instruction_at(w, i), 8);
    text_add(w->t, "        uint%d_t kept = 0;\n"
                   "        for (count r = start.row; r < n_rows; r += row_threads) {\n"
                   "            kernel_row<FAR> row;\n"
                   "            kernel_locate(row, generic, at, group, r);\n",
             hoisted_bits);
    put_values(w);
    put_stores(w);
    text_add(w->t, "            kept = hoisted;\n        }\n    }\n}\n\n");
}

/* Calls that for the group's flags: what is left of a row after whole lanes is done one by one. */
static void put_choice(writer *w)
{
    const kernel *k = w->k;
    text_add(w->t, "template <bool MAPPED>\n"
                   "static __device__ __forceinline__ void %s_group(const uint64_t *words, const uint64_t *generic, const uint64_t *group,\n"
                   "                                                uint32_t thread) {\n"
                   "    const uint64_t n_columns = group[GROUP_ROW];\n",
             k->name);
    if (k->tier == KERNEL_FAR) {
        text_add(w->t, "    %s_columns<1, true, true>(words, generic, group, thread, 0, n_columns);\n}\n\n", k->name);
        return;
    }
    text_add(w->t, "    uint64_t whole = 0;\n"
                   "    if (MAPPED && (group[GROUP_FLAGS] & GROUP_FAR)) {\n"
                   "        %s_columns<1, true, true>(words, generic, group, thread, 0, n_columns);\n"
                   "        return;\n"
                   "    }\n",
             k->name);
    if (k->lanes > 1)
        text_add(w->t, "    if (group[GROUP_FLAGS] & GROUP_LANES) {\n"
                       "        whole = n_columns / %d * %d;\n"
                       "        %s_columns<%d, false, MAPPED>(words, generic, group, thread, 0, whole);\n"
                       "    }\n",
                 k->lanes, k->lanes, k->name, k->lanes);
    text_add(w->t, "    if (whole < n_columns) %s_columns<1, false, MAPPED>(words, generic, group, thread, whole, n_columns);\n}\n\n", k->name);
}

static void put_kernel_function(writer *w)
{
    const kernel *k = w->k;
    size_t group_words = kernel_cluster_words(k) + kernel_map_words((size_t)w->g->n_inputs + (size_t)w->g->n_outputs);
    if (!k->far)
        text_add(w->t, "struct kernel_words {\n    uint64_t words[%zu];\n};\n\n", k->n_words);
    text_add(w->t, "extern \"C\" __global__ void __launch_bounds__(%d, %d) %s(%s) {\n", KERNEL_THREADS, k->n_blocks, k->name,
             k->far ? "const uint64_t *words" : "const __grid_constant__ kernel_words passed");
    if (!k->far)
        text_add(w->t, "    const uint64_t *words = passed.words;\n");
    if (k->tier == KERNEL_FULL)
        text_add(w->t, "    if (!kernel_lower(words[WORDS_GROUPS])) {\n"
                       "        %s_group<false>(words, words, words + WORDS_HEAD, blockIdx.x * blockDim.x + threadIdx.x);\n"
                       "        return;\n"
                       "    }\n",
                 k->name);
    if (k->far)
        text_add(w->t, "    const uint64_t *generic = words;\n");
    else
        text_add(w->t, "    uint64_t place;\n"
                       "    asm(\"mov.b64 %%0, %s_param_0;\" : \"=l\"(place));\n"
                       "    const uint64_t *generic = kernel_generic(place);\n",
                 k->name);
    text_add(w->t, "    const uint64_t *group = words + WORDS_HEAD;\n"
                   "    for (uint32_t g = 0, first = 0; g < kernel_lower(words[WORDS_GROUPS]); g++, group += GROUP_CLUSTERS + %zu) {\n"
                   "        const uint32_t last = kernel_lower(group[GROUP_BLOCKS]);\n"
                   "        if (blockIdx.x >= first && blockIdx.x < last)\n"
                   "            %s_group<true>(words, generic, group, (blockIdx.x - first) * blockDim.x + threadIdx.x);\n"
                   "        if (kernel_upper(words[WORDS_GROUPS])) __syncthreads();\n"
                   "        else first = last;\n"
                   "    }\n"
                   "}\n",
             group_words, k->name);
}

/* Bytes of a thread's loads, for which registers are always found. */
#define EARLY_BYTES 160

static void write_text(writer *w)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < w->k->n_instructions; i++)
        if (instruction_at(w, i)->kind == INSTRUCTION_LOAD)
            n_bytes += (size_t)w->k->lanes * dtype_sizes[instruction_at(w, i)->dtype];
    w->loads_first = n_bytes <= EARLY_BYTES;
    mark_needed(w);
    put_group_function(w);
    put_choice(w);
    put_kernel_function(w);
}

ol_status kernel_text(const kernel *k, const graph *g, const program *p, text *out, ol_error *error)
{
    const ol_allocator *a = &k->allocator;
    text function = { .allocator = *a };
    size_t n_nodes = g->n_nodes, by_node = memory_size(n_nodes, sizeof(uint32_t));
    writer w = { .k = k, .g = g, .p = p, .t = &function, .needed = memory_take(a, k->n_instructions) };
    size_t by_instruction = memory_size(k->n_instructions, sizeof *w.parts_of);
    w.parts_of = memory_take(a, by_instruction);
    w.tree = memory_take(a, by_node);
    w.instruction_of = memory_take(a, by_node);
    w.stack = memory_take(a, by_node);
    int ok = w.needed && w.parts_of && w.tree && w.instruction_of && w.stack;
    if (ok) {
        for (size_t i = 0; i < k->n_instructions; i++)
            w.instruction_of[p->instructions[i].node] = (uint32_t)i;
        write_text(&w);
        text_add(out, "enum { kernel_architecture = __CUDA_ARCH__ };\n");
        device_text_for(out, &function, k->called);
        text_add(out, "\n");
        text_add_bytes(out, function.bytes, function.n);
        ok = !function.broken && !out->broken;
    }
    memory_give(a, w.needed, k->n_instructions);
    memory_give(a, w.parts_of, by_instruction);
    memory_give(a, w.tree, by_node);
    memory_give(a, w.instruction_of, by_node);
    memory_give(a, w.stack, by_node);
    text_free(&function);
    return ok ? OL_OK : fail(error, OL_ERROR_MEMORY, g->name, "no memory for the text of a kernel");
}
