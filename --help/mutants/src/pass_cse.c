/* Common subexpressions: nodes of the same kind, dtype, operands and payload have the same bits, so one is enough. Constants
 * are the same only when every bit is: -0 and +0, or two NaN payloads, stay apart. */
#define XXH_INLINE_ALL
#include "rebuild.h"
#include "status.h"

#include <string.h>
#include <xxhash.h>

static int same(const node *a, const node *b)
{
    return memcmp(a, b, sizeof *a) == 0;                /* node has no padding: 4 bytes, 3 words of 4, one of 8 */
}
_Static_assert(sizeof(node) == 24, "nodes are compared and hashed as bytes");

ol_status pass_cse(const graph *in, graph **out, ol_error *error)
{
    rebuild r;
    ol_status status = rebuild_begin(&r, in, error);
    if (status != OL_OK)
        return status;
    size_t n_slots = 16;
    while (n_slots < 2 * in->n_nodes)
        n_slots *= 2;
    uint32_t *slots = memory_take(&in->allocator, n_slots * sizeof *slots);      /* new node + 1; 0 is free */
    if (!slots)
        status = fail(error, OL_ERROR_MEMORY, in->name, "no memory for a table of %zu nodes", in->n_nodes);
    for (uint32_t i = 0; status == OL_OK && i < in->n_nodes; i++) {
        node n = rebuild_translate(&r, i);
        size_t slot = XXH3_64bits(&n, sizeof n) & (n_slots - 1);
        while (slots[slot] && !same(&r.out->nodes[slots[slot] - 1], &n))
            slot = (slot + 1) & (n_slots - 1);
        if (slots[slot])
            r.map[i] = slots[slot] - 1;
        else {
            status = rebuild_append(&r, i, &n, error);
            slots[slot] = (uint32_t)r.out->n_nodes;
        }
    }
    memory_give(&in->allocator, slots, n_slots * sizeof *slots);
    return rebuild_end(&r, status, out, error);
}
