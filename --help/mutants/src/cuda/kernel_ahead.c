/* The functions of a kernel whose loads are few, so that registers hold those of two rows.
 *
 *     NAME_row         one row's values from its loads: operations without a branch, so that the compiler may order them as it likes.
 *                      Where one of them has left an element open (kernel_quick.h), the element's values are all made again:
 *     NAME_again       by the functions that leave nothing open, for one element; called, and seldom
 *     NAME_once        where a thread has one place in one row: loads, the row, stores, with no loop
 *     NAME_columns     the loops; each row is loaded before what is computed of the one before */
#include "cuda/kernel_writer.h"

/* Values that a row gives: what is hoistable, and outputs that are no loads; each once. */
static int is_result(const writer *w, size_t i)
{
    const instruction *in = instruction_at(w, i);
    return in->kind != INSTRUCTION_LOAD && in->kind != INSTRUCTION_CONSTANT && (w->k->hoisted[i] >= 0 || writer_is_output(w, in->node));
}

static int is_loaded(const writer *w, size_t i) { return writer_is_early(w, i) && writer_is_value(w, i); }

/* `each` for every load, then every result, a comma before each. */
static void put_list(writer *w, void (*each)(writer *, const instruction *, int is_load))
{
    for (int loads = 1; loads >= 0; loads--)
        for (size_t i = 0; i < w->k->n_instructions; i++)
            if (loads ? is_loaded(w, i) : is_result(w, i)) {
                text_add(w->t, ", ");
                each(w, instruction_at(w, i), loads);
            }
}

static void each_parameter(writer *w, const instruction *in, int is_load) { put_parameter(w, in, is_load ? "const " : ""); }
static void each_argument(writer *w, const instruction *in, int is_load)
{
    (void)is_load;
    text_add(w->t, "v%u", in->node);
}

/* ---- An element again ---- */

static void put_again(writer *w)
{
    const kernel *k = w->k;
    int n = 0;
    text_add(w->t, "struct %s_element {\n", k->name);
    for (size_t i = 0; i < k->n_instructions; i++)
        if (is_result(w, i))
            text_add(w->t, "    %s v%u;\n", writer_type(instruction_at(w, i)), instruction_at(w, i)->node);
    text_add(w->t, "};\n\n/* An element by functions that leave nothing open. */\nstatic __device__ __noinline__ %s_element %s_again(", k->name, k->name);
    for (size_t i = 0; i < k->n_instructions; i++)
        if (is_loaded(w, i))
            text_add(w->t, "%s%s loaded%u", n++ ? ", " : "", writer_type(instruction_at(w, i)), instruction_at(w, i)->node);
    text_add(w->t, ") {\n    enum { N = 1 };\n    %s_element x;\n", k->name);
    put_constants(w);
    w->quick = QUICK_NOT;
    for (size_t i = 0; i < k->n_instructions; i++) {
        const instruction *in = instruction_at(w, i);
        if (in->kind == INSTRUCTION_CONSTANT)
            continue;
        put_declaration(w, in, "v", 4);
        if (is_loaded(w, i))
            text_add(w->t, "    kernel_set(v%u, 0, loaded%u);\n", in->node, in->node);
        else if (in->kind != INSTRUCTION_LOAD)
            put_statement(w, in, 4);
        if (is_result(w, i))
            text_add(w->t, "    x.v%u = v%u[0];\n", in->node, in->node);
    }
    text_add(w->t, "    return x;\n}\n\n");
}

static void put_open(writer *w)
{
    const kernel *k = w->k;
    int n = 0;
    text_add(w->t, "    bool any = false;\n"
                   "    LANES any |= open[i];\n"
                   "    if (any) {\n"
                   "        LANES if (open[i]) {\n"
                   "            const %s_element x = %s_again(",
             k->name, k->name);
    for (size_t i = 0; i < k->n_instructions; i++)
        if (is_loaded(w, i))
            text_add(w->t, "%sv%u[i]", n++ ? ", " : "", instruction_at(w, i)->node);
    text_add(w->t, ");\n");
    for (size_t i = 0; i < k->n_instructions; i++)
        if (is_result(w, i))
            text_add(w->t, "            kernel_replace(v%u, i, x.v%u);\n", instruction_at(w, i)->node, instruction_at(w, i)->node);
    text_add(w->t, "        }\n    }\n");
}

/* ---- A row ---- */

static void put_row(writer *w, int has_quick)
{
    const kernel *k = w->k;
    text_add(w->t, "/* A row: from its loads to what is hoisted, unless an earlier row's is kept, and stored. */\n"
                   "template <int N, bool MAPPED>\n"
                   "static __device__ __forceinline__ void %s_row(const uint64_t *group, uint%d_t kept",
             k->name, w->hoisted_bits);
    put_list(w, each_parameter);
    text_add(w->t, ") {\n");
    put_constants(w);
    if (has_quick)
        text_add(w->t, "    bool open[N] = {};\n");
    for (size_t i = 0; i < k->n_instructions; i++)
        if (writer_is_value(w, i) && !writer_is_early(w, i) && !is_result(w, i))
            put_declaration(w, instruction_at(w, i), "v", 4);
    w->quick = QUICK_TRIED;
    put_values(w, 4);
    if (has_quick)
        put_open(w);
    text_add(w->t, "}\n\n");
}

static void put_row_call(writer *w, const char *mapped, const char *kept, int indent)
{
    text_add(w->t, "%*s%s_row<N, %s>(group, %s", indent, "", w->k->name, mapped, kept);
    put_list(w, each_argument);
    text_add(w->t, ");\n");
}

static void put_declarations(writer *w, int (*which)(const writer *, size_t), const char *prefix, int indent)
{
    for (size_t i = 0; i < w->k->n_instructions; i++)
        if (which(w, i))
            put_declaration(w, instruction_at(w, i), prefix, indent);
}

/* ---- What walks ---- */

static void put_once(writer *w)
{
    text_add(w->t, "#define ONCE(t, row) kernel_once_place(words, %d, t, column, row)\n\n"
                   "/* WORDS_ONCE. */\n"
                   "template <int N>\n"
                   "static __device__ __forceinline__ void %s_once(const uint64_t *words, uint32_t thread) {\n"
                   "    const uint64_t *const group = words;\n"
                   "    const uint32_t threads = kernel_lower(words[ONCE_THREADS]);\n"
                   "    const uint32_t row = (uint64_t)thread * kernel_lower(words[WORDS_GROUPS]) >> (kernel_upper(words[WORDS_GROUPS]) >> WORDS_SHIFT);\n"
                   "    const uint32_t column = (thread - row * threads) * N;\n"
                   "    if (row >= kernel_upper(words[ONCE_THREADS])) return;\n",
             (int)(w->g->n_inputs + w->g->n_outputs), w->k->name);
    w->place = "ONCE";
    put_declarations(w, is_loaded, "v", 4);
    put_declarations(w, is_result, "v", 4);
    for (size_t i = 0; i < w->k->n_instructions; i++)
        if (is_loaded(w, i))
            put_load(w, instruction_at(w, i), "v", "row", 4);
    put_row_call(w, "false", "0", 4);
    put_stores(w, "false", 4);
    text_add(w->t, "}\n\n");
    w->place = "PLACE";
}

/* In the loop over rows the first time there is nothing to compute, the last time nothing to load; a thread always has a row. */
static void put_columns_function(writer *w)
{
    put_columns_opening(w);
    put_declarations(w, is_loaded, "v", 8);
    put_declarations(w, is_loaded, "ahead", 8);
    put_declarations(w, is_result, "v", 8);
    text_add(w->t, "        kernel_row<FAR> row, row_ahead;\n"
                   "        uint%d_t kept = 0, loaded = 0;\n"
                   "        for (count r = start.row;; r += row_threads) {\n"
                   "            if (r < n_rows) {\n"
                   "                kernel_locate(row_ahead, generic, at, group, r);\n",
             w->hoisted_bits);
    put_early_loads(w, "ahead", "row_ahead", "loaded", 16);
    text_add(w->t, "            }\n"
                   "            if (r != start.row) {\n");
    put_row_call(w, "MAPPED", "kept", 16);
    put_stores(w, "MAPPED", 16);
    text_add(w->t, "                kept = hoisted;\n"
                   "                if (r >= n_rows) break;\n"
                   "            }\n"
                   "            row = row_ahead;\n"
                   "            loaded = hoisted;\n");
    for (size_t i = 0; i < w->k->n_instructions; i++)
        if (is_loaded(w, i))
            text_add(w->t, "            kernel_copy(v%u, ahead%u);\n", instruction_at(w, i)->node, instruction_at(w, i)->node);
    text_add(w->t, "        }\n    }\n}\n\n");
}

void put_ahead(writer *w)
{
    int has_quick = writer_has_quick(w);
    if (has_quick)
        put_again(w);
    put_row(w, has_quick);
    put_once(w);
    put_columns_function(w);
}
