/* What the kernel of a composite is made for; see kernel.h. */
#include "cuda/kernel.h"

#include "status.h"

#include <stdio.h>
#include <string.h>

#define INLINED_INSTRUCTIONS 48          /* of a program that is inlined: the compiler's time grows with them */
#define HOISTED_COST 8                   /* of a value that is worth hoisting: in units of primitives.def */
#define COSTLY 64                        /* of a program with few values of memory to what is computed, in the same units */
#define COSTLY_BLOCKS 2                  /* of a multiprocessor, that its registers must allow: 128 a thread */
#define FULL_TENSORS 16                  /* of a kernel of that tier, at most: under a second to compile; and so for the next one */
#define PLAIN_TENSORS 48
#define AHEAD_BYTES 64                   /* of loads, for which registers are found twice */
#define LANES_INSTRUCTIONS 256           /* of a program whose threads take several elements: registers */

/* ---- Clusters: by refinement of "all in one", output by output. Costs the sum of what the outputs reach. ---- */

typedef struct refinement {
    const graph *g;
    uint32_t *by_node;                   /* the instruction of a node, or NODE_NONE */
    uint32_t *stack, *reached;
    uint32_t *seen;                      /* by node: the last output that reached it, from 1 */
    uint32_t *split_by, *split_into;     /* by cluster: the last output that split it, from 1, and what came off */
    size_t capacity;                     /* of those two */
} refinement;

static void refine(refinement *r, kernel *k, uint32_t output)
{
    const graph *g = r->g;
    size_t n_stack = 0, n_reached = 0;
    r->stack[n_stack++] = g->outputs[output];
    r->seen[g->outputs[output]] = output + 1;
    while (n_stack) {
        uint32_t i = r->stack[--n_stack];
        const node *n = &g->nodes[i];
        if (r->by_node[i] != NODE_NONE)
            r->reached[n_reached++] = r->by_node[i];
        for (int o = 0; o < node_reads(n); o++)
            if (r->seen[n->operands[o]] != output + 1) {
                r->seen[n->operands[o]] = output + 1;
                r->stack[n_stack++] = n->operands[o];
            }
    }
    for (size_t i = 0; i < n_reached; i++) {
        uint32_t *cluster = &k->cluster[r->reached[i]];
        if (r->split_by[*cluster] != output + 1) {
            r->split_by[*cluster] = output + 1;
            r->split_into[*cluster] = k->n_clusters++;
        }
        *cluster = r->split_into[*cluster];
    }
}

/* Numbers the clusters that have instructions from 0. */
static void renumber(refinement *r, kernel *k)
{
    memset(r->split_into, 0xff, r->capacity * sizeof *r->split_into);
    k->n_clusters = 0;
    for (size_t i = 0; i < k->n_instructions; i++) {
        uint32_t *number = &r->split_into[k->cluster[i]];
        if (*number == UINT32_MAX)
            *number = k->n_clusters++;
        k->cluster[i] = *number;
    }
}

static int find_clusters(kernel *k, const graph *g, const program *p)
{
    refinement r = { .g = g, .capacity = 3 * k->n_instructions + 1 };
    struct { uint32_t **array; size_t n; } arrays[] = {
        { &r.by_node, g->n_nodes }, { &r.stack, g->n_nodes }, { &r.seen, g->n_nodes }, { &r.reached, g->n_nodes },
        { &r.split_by, r.capacity }, { &r.split_into, r.capacity },
    };
    int ok = 1;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        ok &= (*arrays[i].array = memory_take(&k->allocator, memory_size(arrays[i].n, sizeof(uint32_t)))) != NULL;
    if (ok) {
        memset(r.by_node, 0xff, g->n_nodes * sizeof(uint32_t));
        for (size_t i = 0; i < k->n_instructions; i++)
            r.by_node[p->instructions[i].node] = (uint32_t)i;
        k->n_clusters = 1;
        for (uint32_t o = 0; o < (uint32_t)g->n_outputs; o++) {
            if (k->n_clusters > 2 * k->n_instructions)       /* one output splits off at most a cluster an instruction */
                renumber(&r, k);
            refine(&r, k, o);
        }
        renumber(&r, k);
    }
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        memory_give(&k->allocator, *arrays[i].array, arrays[i].n * sizeof(uint32_t));
    return ok;
}

/* ---- The rest ---- */

/* Elements of a thread: 16 bytes of the narrowest tensor, counting those of a byte as two, so that a bool mask does not decide.
 * Where much is computed with each, half as many of 16 bits: their registers keep other threads out. */
static int choose_lanes(const kernel *k, const graph *g, const program *p, int is_costly)
{
    size_t narrowest = 8;
    if (k->tier != KERNEL_FULL || p->n_instructions > LANES_INSTRUCTIONS)
        return 1;
    for (int32_t i = 0; i < g->n_inputs + g->n_outputs; i++) {
        size_t size = dtype_sizes[graph_dtype(g, i < g->n_inputs ? (uint32_t)i : g->outputs[i - g->n_inputs])];
        narrowest = size < narrowest ? size : narrowest;
    }
    int lanes = (int)(16 / (narrowest < 2 ? 2 : narrowest));
    return is_costly && lanes > 4 ? 4 : lanes;
}

/* The most words that a replay can need: each output a group of its own, no dimension collapsed, all far. */
static size_t most_words(const kernel *k, const graph *g, const dependencies *d)
{
    size_t n_tensors = (size_t)g->n_inputs + (size_t)g->n_outputs, view = VIEW_WORDS + 1 + WORDS_OUTER;
    size_t header = GROUP_CLUSTERS + kernel_cluster_words(k) + kernel_map_words(n_tensors) + WORDS_OUTER;
    size_t one_group = WORDS_HEAD + header + n_tensors * view, each = header + view, many = WORDS_HEAD;
    if (g->n_outputs == 1)
        return one_group;
    for (int32_t o = 0; o < g->n_outputs; o++) {
        size_t n_read = 0;
        for (int32_t i = 0; i < g->n_inputs; i++)
            n_read += (size_t)dependencies_has(d, d->data_set[g->outputs[o]], (size_t)i);
        many += each + n_read * view;
    }
    return many > one_group ? many : one_group;
}

static void make_name(kernel *k, const char *name)
{
    snprintf(k->name, sizeof k->name, "ol_%s", name);
    for (char *p = k->name; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *p))      /* whatever the host's locale */
            *p = '_';
}

/* The cost of what a node is computed from, down to inputs and constants, each part counted as often as it is used; up to `most`,
 * which also bounds the depth, as every node that computes anything counts. */
static unsigned cost_of(const graph *g, uint32_t index, unsigned most)
{
    const node *n = &g->nodes[index];
    unsigned cost = n->kind == NODE_PRIMITIVE ? primitive_table[n->primitive].cost : n->kind > NODE_CONSTANT;
    for (int o = 0; o < node_reads(n) && cost < most; o++)
        cost += cost_of(g, n->operands[o], most - cost);
    return cost;
}

/* Values that are worth registers in every thread for the rows in which they might be the same: not loads, nor what costs little. */
static void find_hoisted(kernel *k, const graph *g, const program *prog)
{
    int8_t bit = 0;
    for (size_t i = 0; i < k->n_instructions; i++) {
        const instruction *in = &prog->instructions[i];
        int is_output = 0;
        k->hoisted[i] = -1;
        if (!prog->hoists || !in->keeps_register || in->kind == INSTRUCTION_CONSTANT || cost_of(g, in->node, HOISTED_COST) < HOISTED_COST)
            continue;
        for (int32_t o = 0; o < prog->n_outputs; o++)
            is_output |= prog->output_registers[o] == in->result;
        if (!is_output)
            k->hoisted[i] = bit++;
    }
}

ol_status kernel_create(const graph *g, const program *p, const dependencies *d, size_t largest, kernel **out, ol_error *error)
{
    const ol_allocator *a = &g->allocator;
    kernel *k = memory_take(a, sizeof *k);
    if (!k)
        return fail(error, OL_ERROR_MEMORY, g->name, "no memory for a kernel");
    k->allocator = *a;
    k->n_instructions = p->n_instructions;
    k->cluster = memory_take(a, memory_size(k->n_instructions, sizeof *k->cluster));
    k->hoisted = memory_take(a, k->n_instructions);
    if (!k->cluster || !k->hoisted || !find_clusters(k, g, p)) {
        kernel_destroy(k);
        return fail(error, OL_ERROR_MEMORY, g->name, "no memory for the kernel of %zu instructions", p->n_instructions);
    }
    make_name(k, g->name);
    find_hoisted(k, g, p);
    int is_costly = p->cost_per_element >= COSTLY;
    int32_t n_tensors = g->n_inputs + g->n_outputs;
    k->tier = n_tensors <= FULL_TENSORS ? KERNEL_FULL : n_tensors <= PLAIN_TENSORS ? KERNEL_PLAIN : KERNEL_FAR;
    k->lanes = choose_lanes(k, g, p, is_costly);
    k->n_blocks = is_costly && k->lanes > 1 ? COSTLY_BLOCKS : 1;
    k->called = k->n_instructions > INLINED_INSTRUCTIONS;
    for (size_t i = 0; i < k->n_instructions; i++)
        if (p->instructions[i].kind == INSTRUCTION_LOAD)
            k->load_bytes += (size_t)k->lanes * dtype_sizes[p->instructions[i].dtype];
    k->ahead = k->tier == KERNEL_FULL && !k->called && k->load_bytes <= AHEAD_BYTES;
    k->n_words = most_words(k, g, d);
    k->far = k->n_words > largest;
    *out = k;
    return OL_OK;
}

void kernel_destroy(kernel *k)
{
    if (!k)
        return;
    ol_allocator a = k->allocator;
    memory_give(&a, k->cluster, k->n_instructions * sizeof *k->cluster);
    memory_give(&a, k->hoisted, k->n_instructions);
    memory_give(&a, k, sizeof *k);
}
