/* Interned sets of leaves. A graph has few distinct ones, so that sets cost little even for thousands of inputs. */
#define XXH_INLINE_ALL
#include "dependencies.h"

#include "status.h"

#include <string.h>
#include <xxhash.h>

#define MAX_SET_BYTES (256u << 20)       /* the header says what that means */

static ol_status refuse(const graph *g, int too_large, ol_error *error)
{
    if (too_large)
        return fail(error, OL_ERROR_LIMIT, g->name, "the nodes depend on too many different subsets of the inputs and static shapes (more than %u MiB of them, one bit each)",
                    MAX_SET_BYTES >> 20);
    return fail(error, OL_ERROR_MEMORY, g->name, "no memory for the dependencies of %zu nodes", g->n_nodes);
}

/* Makes room for one more set; its words are the scratch that a new set is built in. */
static int reserve(dependencies *d)
{
    return memory_grow(&d->allocator, (void **)&d->bits, &d->bits_capacity, (d->n_sets + 1) * d->n_words, sizeof *d->bits);
}

static int grow_slots(dependencies *d)
{
    size_t n = d->n_slots ? 2 * d->n_slots : 64;
    uint32_t *slots = memory_take(&d->allocator, memory_size(n, sizeof *slots));
    if (!slots)
        return 0;
    for (size_t set = 0; set < d->n_sets; set++) {
        size_t i = XXH3_64bits(d->bits + set * d->n_words, d->n_words * sizeof *d->bits) & (n - 1);
        while (slots[i])
            i = (i + 1) & (n - 1);
        slots[i] = (uint32_t)set + 1;
    }
    memory_give(&d->allocator, d->slots, d->n_slots * sizeof *d->slots);
    d->slots = slots;
    d->n_slots = n;
    return 1;
}

/* The set whose words stand in the scratch: an older one with the same words, or a new one. False: no memory. */
static int intern(dependencies *d, uint32_t *set)
{
    size_t n_bytes = d->n_words * sizeof *d->bits;
    if (2 * (d->n_sets + 1) > d->n_slots && !grow_slots(d))
        return 0;
    const uint64_t *words = d->bits + d->n_sets * d->n_words;
    size_t i = XXH3_64bits(words, n_bytes) & (d->n_slots - 1);
    for (; d->slots[i]; i = (i + 1) & (d->n_slots - 1))
        if (memcmp(d->bits + (d->slots[i] - 1) * d->n_words, words, n_bytes) == 0) {
            *set = d->slots[i] - 1;
            return 1;
        }
    *set = (uint32_t)d->n_sets++;
    d->slots[i] = *set + 1;
    return 1;
}

static int unite(dependencies *d, uint32_t a, uint32_t b, uint32_t *set)
{
    if (a == b || b == 0) {
        *set = a;
        return 1;
    }
    if (a == 0) {
        *set = b;
        return 1;
    }
    if (!reserve(d))
        return 0;
    uint64_t *words = d->bits + d->n_sets * d->n_words;
    for (size_t w = 0; w < d->n_words; w++)
        words[w] = d->bits[a * d->n_words + w] | d->bits[b * d->n_words + w];
    return intern(d, set);
}

static int single(dependencies *d, size_t leaf, uint32_t *set)
{
    if (!reserve(d))
        return 0;
    uint64_t *words = d->bits + d->n_sets * d->n_words;
    memset(words, 0, d->n_words * sizeof *words);
    words[leaf / 64] |= 1ull << (leaf % 64);
    return intern(d, set);
}

static int visit(dependencies *d, const graph *g, uint32_t i)
{
    const node *n = &g->nodes[i];
    uint32_t shape_leaves = 0, data_leaves = 0, leaf;
    for (int k = 0; k < n->n_operands; k++) {
        if (!unite(d, shape_leaves, d->shape_set[n->operands[k]], &shape_leaves))
            return 0;
        if ((n->kind != NODE_BROADCAST_LIKE || k == 0) && !unite(d, data_leaves, d->data_set[n->operands[k]], &data_leaves))
            return 0;
    }
    if (n->kind == NODE_INPUT) {
        if (!single(d, n->payload, &leaf))
            return 0;
        shape_leaves = data_leaves = leaf;
    }
    if (n->kind == NODE_BROADCAST_TO &&
        (!single(d, (size_t)g->n_inputs + n->payload, &leaf) || !unite(d, shape_leaves, leaf, &shape_leaves)))
        return 0;
    d->shape_set[i] = shape_leaves;
    d->data_set[i] = data_leaves;
    return 1;
}

ol_status dependencies_create(const graph *g, dependencies **out, ol_error *error)
{
    dependencies *d = memory_take(&g->allocator, sizeof *d);
    if (!d)
        return refuse(g, 0, error);
    *d = (dependencies){ .allocator = g->allocator, .n_nodes = g->n_nodes, .n_leaves = (size_t)g->n_inputs + g->n_shapes };
    d->n_words = d->n_leaves / 64 + 1;
    d->shape_set = memory_take(&d->allocator, memory_size(g->n_nodes, sizeof *d->shape_set));
    d->data_set = memory_take(&d->allocator, memory_size(g->n_nodes, sizeof *d->data_set));
    uint32_t empty = 0;
    int ok = d->shape_set && d->data_set && reserve(d);
    if (ok) {
        memset(d->bits, 0, d->n_words * sizeof *d->bits);
        ok = intern(d, &empty);
    }
    int too_large = 0;
    for (uint32_t i = 0; ok && i < g->n_nodes; i++) {
        ok = visit(d, g, i);
        too_large = d->n_sets * d->n_words * sizeof *d->bits > MAX_SET_BYTES;
        ok = ok && !too_large;
    }
    if (!ok) {
        dependencies_destroy(d);
        return refuse(g, too_large, error);
    }
    *out = d;
    return OL_OK;
}

void dependencies_destroy(dependencies *d)
{
    if (!d)
        return;
    ol_allocator allocator = d->allocator;
    memory_give(&allocator, d->bits, d->bits_capacity * sizeof *d->bits);
    memory_give(&allocator, d->slots, d->n_slots * sizeof *d->slots);
    memory_give(&allocator, d->shape_set, d->n_nodes * sizeof *d->shape_set);
    memory_give(&allocator, d->data_set, d->n_nodes * sizeof *d->data_set);
    memory_give(&allocator, d, sizeof *d);
}
