/* From a composite's program to the text of its kernel.
 *
 * A value is N elements of a row side by side. What walks over the elements are functions, templates over N, FAR, whether offsets
 * need all generality, and MAPPED (words.h), which the kernel calls for the group of a thread's block:
 *
 *     for the columns of this thread                       N elements side by side in a row
 *         for the rows of this thread
 *             loads, operations, stores                    in ifs by the outputs that need them; what is the same for every
 *                                                          row ("hoisted", decided by the shapes of a replay) at the first one
 *
 * Of a kernel whose loads are few they are written by kernel_ahead.c, else here, loads first where registers allow it: the GPU waits
 * where a loaded value is used, so that loads with nothing between them wait together. Every load of an element comes before the
 * stores to it, which in-place outputs need. The compiler's time grows with the text. */
#include "cuda/device_text.h"
#include "cuda/kernel_writer.h"
#include "dtype.h"
#include "status.h"

#include <inttypes.h>
#include <string.h>

/* ---- What is computed where ---- */

/* Marks, by a number of their own, the nodes that instruction i is computed from, down to inputs, constants and hoistable values, which
 * it does not pass; those hoistable values are needed if it is. */
static void mark_tree(writer *w, size_t i)
{
    size_t n_stack = 0;
    uint32_t root = instruction_at(w, i)->node;
    w->stack[n_stack++] = root;
    w->tree[root] = ++w->mark;
    while (n_stack) {
        const node *n = node_at(w, w->stack[--n_stack]);
        for (int o = 0; o < node_reads(n); o++) {
            uint32_t operand = n->operands[o];
            if (w->k->hoisted[w->instruction_of[operand]] >= 0)
                w->needed[w->instruction_of[operand]] |= w->needed[i];
            else if (w->tree[operand] != w->mark) {
                w->tree[operand] = w->mark;
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
                if (w->tree[instruction_at(w, j)->node] == w->mark)
                    w->parts_of[j] |= (uint64_t)1 << w->k->hoisted[i];
        } else
            for (int o = 0; o < node_reads(n); o++)
                w->needed[w->instruction_of[n->operands[o]]] = 1;
    }
}

/* ---- A row ---- */

int writer_is_early(const writer *w, size_t i)
{
    return w->loads_first && instruction_at(w, i)->kind == INSTRUCTION_LOAD;
}

int writer_is_value(const writer *w, size_t i)
{
    return (w->needed[i] || (writer_is_early(w, i) && w->parts_of[i])) && instruction_at(w, i)->kind != INSTRUCTION_CONSTANT;
}

/* Opens, keeps or closes the if around what belongs to one cluster. */
static void put_cluster(writer *w, uint32_t *open, uint32_t cluster, int indent)
{
    if (w->k->n_clusters < 2 || *open == cluster)
        return;
    if (*open != NODE_NONE)
        text_add(w->t, "%*s}\n", indent, "");
    if (cluster != NODE_NONE)
        text_add(w->t, "%*sif (!MAPPED || (group[GROUP_CLUSTERS + %u] >> %u & 1)) {\n", indent, "", cluster / 64, cluster % 64);
    *open = cluster;
}

/* A hoistable value with what it alone is made of, unless an earlier row's is kept. */
static void put_hoistable(writer *w, size_t i, int indent)
{
    const instruction *in = instruction_at(w, i);
    mark_tree(w, i);
    text_add(w->t, "%*sif (!(kept >> %d & 1)) {\n", indent, "", w->k->hoisted[i]);
    for (size_t j = 0; j < i; j++) {
        const instruction *part = instruction_at(w, j);
        if (w->tree[part->node] == w->mark && part->kind != INSTRUCTION_CONSTANT && !writer_is_early(w, j)) {
            put_declaration(w, part, "v", indent + 4);
            put_statement(w, part, indent + 4);
        }
    }
    put_statement(w, in, indent + 4);
    text_add(w->t, "%*s}\n", indent, "");
}

/* Each load where something that is computed needs it. */
void put_early_loads(writer *w, const char *prefix, const char *row, const char *kept, int indent)
{
    uint32_t open = NODE_NONE;
    int inner = w->k->n_clusters < 2 ? indent : indent + 4;
    for (size_t i = 0; i < w->k->n_instructions; i++) {
        if (!writer_is_early(w, i) || !writer_is_value(w, i))
            continue;
        put_cluster(w, &open, w->k->cluster[i], indent);
        if (w->k->hoisted[i] >= 0)
            text_add(w->t, "%*sif (!(%s >> %d & 1))\n    ", inner, "", kept, w->k->hoisted[i]);
        else if (!w->needed[i])
            text_add(w->t, "%*sif (~%s & 0x%" PRIx64 "ull)\n    ", inner, "", kept, w->parts_of[i]);
        put_load(w, instruction_at(w, i), prefix, row, inner);
    }
    put_cluster(w, &open, NODE_NONE, indent);
}

void put_values(writer *w, int indent)
{
    uint32_t open = NODE_NONE;
    int inner = w->k->n_clusters < 2 ? indent : indent + 4;
    for (size_t i = 0; i < w->k->n_instructions; i++) {
        if (!w->needed[i] || !writer_is_value(w, i) || writer_is_early(w, i))
            continue;
        put_cluster(w, &open, w->k->cluster[i], indent);
        if (w->k->hoisted[i] >= 0)
            put_hoistable(w, i, inner);
        else
            put_statement(w, instruction_at(w, i), inner);
    }
    put_cluster(w, &open, NODE_NONE, indent);
}

void put_stores(writer *w, const char *mapped, int indent)
{
    const graph *g = w->g;
    for (int32_t o = 0; o < g->n_outputs; o++) {
        int tensor = (int)(g->n_inputs + o);
        text_add(w->t, "%*sif (kernel_has<%s>(group, %zu, %d)) kernel_store(v%u, %s(%d, row));\n", indent, "", mapped,
                 kernel_cluster_words(w->k), tensor, g->outputs[o], w->place, tensor);
    }
}

/* ---- The functions ---- */

void put_views(writer *w, const char *mapped)
{
    for (int32_t i = 0; i < w->g->n_inputs + w->g->n_outputs; i++)
        text_add(w->t, "    const uint64_t *view%d = kernel_view<%s>(words, group, %zu, %d);\n", (int)i, mapped, kernel_cluster_words(w->k), (int)i);
    text_add(w->t, "    const uint32_t column_threads = kernel_lower(group[GROUP_THREADS]), row_threads = kernel_upper(group[GROUP_THREADS]);\n"
                   "    const kernel_start start = kernel_start_of(group, thread);\n"
                   "    const uint32_t at = (uint32_t)(group - words);\n"
                   "    if (start.row >= row_threads) return;\n");
}

void put_columns(writer *w, const char *far, int indent)
{
    for (int32_t i = 0; i < w->g->n_inputs + w->g->n_outputs; i++)
        text_add(w->t, "%*skernel_column<%s> column%d;\n%*skernel_start_column(column%d, view%d, column);\n", indent, "", far, (int)i, indent, "",
                 (int)i, (int)i);
}

void put_columns_opening(writer *w)
{
    text_add(w->t, "/* The columns [first, last) of a group, as far as they are this thread's. */\n"
                   "template <int N, bool FAR, bool MAPPED>\n"
                   "static __device__ __forceinline__ void %s_columns(const uint64_t *words, const uint64_t *generic, const uint64_t *group,\n"
                   "                                                    uint32_t thread, uint64_t first, uint64_t last) {\n",
             w->k->name);
    put_views(w, "MAPPED");
    text_add(w->t, "    typedef typename kernel_count<FAR>::type count;\n"
                   "    const count n_rows = (count)group[GROUP_ROWS];\n"
                   "    const uint%d_t hoisted = (uint%d_t)group[GROUP_HOISTED];\n"
                   "    for (count column = (count)first + (count)start.column * N; column < (count)last; column += (count)column_threads * N) {\n",
             w->hoisted_bits, w->hoisted_bits);
    put_columns(w, "FAR", 8);
}

static void put_columns_function(writer *w)
{
    const kernel *k = w->k;
    put_columns_opening(w);
    put_constants(w);
    for (size_t i = 0; i < k->n_instructions; i++)
        if (k->hoisted[i] >= 0)
            put_declaration(w, instruction_at(w, i), "v", 8);
    text_add(w->t, "        uint%d_t kept = 0;\n"
                   "        for (count r = start.row; r < n_rows; r += row_threads) {\n"
                   "            kernel_row<FAR> row;\n"
                   "            kernel_locate(row, generic, at, group, r);\n",
             w->hoisted_bits);
    for (size_t i = 0; i < k->n_instructions; i++)
        if (writer_is_value(w, i) && k->hoisted[i] < 0)
            put_declaration(w, instruction_at(w, i), "v", 12);
    put_early_loads(w, "v", "row", "kept", 12);
    put_values(w, 12);
    put_stores(w, "MAPPED", 12);
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

/* The group is all the outputs. */
static void put_unmapped(writer *w)
{
    const kernel *k = w->k;
    text_add(w->t, "    const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;\n");
    if (k->ahead)
        text_add(w->t, "    if (kernel_upper(words[WORDS_GROUPS]) & WORDS_ONCE) {\n"
                       "        if (kernel_upper(words[WORDS_GROUPS]) & WORDS_LANES) %s_once<%d>(words, thread);\n"
                       "        else %s_once<1>(words, thread);\n"
                       "        return;\n"
                       "    }\n",
                 k->name, k->lanes, k->name);
    text_add(w->t, "    if (!kernel_lower(words[WORDS_GROUPS])) {\n"
                   "        const uint64_t *group = words + WORDS_HEAD;\n"
                   "        %s_group<false>(words, words, group, thread);\n"
                   "        return;\n"
                   "    }\n",
             k->name);
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
        put_unmapped(w);
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
                   "        if (kernel_upper(words[WORDS_GROUPS]) & WORDS_IN_TURN) __syncthreads();\n"
                   "        else first = last;\n"
                   "    }\n"
                   "}\n",
             group_words, k->name);
}

/* Bytes of a thread's loads, for which registers are always found. */
#define EARLY_BYTES 160

static void write_text(writer *w)
{
    const kernel *k = w->k;
    w->loads_first = k->load_bytes <= EARLY_BYTES;
    w->hoisted_bits = 32;
    for (size_t i = 0; i < k->n_instructions; i++)
        if (k->hoisted[i] >= 32)
            w->hoisted_bits = 64;
    mark_needed(w);
    w->place = "PLACE";
    text_add(w->t, "#define LANES _Pragma(\"unroll\") for (int i = 0; i < N; i++)\n"
                   "#define PLACE(t, row) kernel_place(generic, at, %zu, t, view##t, column##t, column, row)\n\n",
             kernel_cluster_words(k));
    if (k->ahead)
        put_ahead(w);
    else
        put_columns_function(w);
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
