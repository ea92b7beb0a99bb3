/* See table16.h. */
#include "cpu/table16.h"

#include <stdatomic.h>
#include <string.h>

enum { ENTRIES = 65536, PART = 1024, PARTS = ENTRIES / PART };

/* `seen` counts elements of long runs until parts are begun; `filled` is PARTS where the table is complete, and whoever reads that
 * reads the entries, too. */
static struct table16 {
    atomic_uint seen, begun, filled;
} tables[TABLE16_COUNT];

static uint16_t entries[TABLE16_COUNT][ENTRIES];

typedef uint16_t __attribute__((__may_alias__)) element;

/* By words of four elements: loads of what was just stored to be operands need not wait, and half the loads are saved. Each
 * word is read before its results are stored, since out may be x. */
static void look_up(const uint16_t *table, element *out, const element *x, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint64_t word;
        memcpy(&word, x + i, sizeof word);
        out[i] = table[word & 0xffff];
        out[i + 1] = table[word >> 16 & 0xffff];
        out[i + 2] = table[word >> 32 & 0xffff];
        out[i + 3] = table[word >> 48];
    }
    for (; i < n; i++)
        out[i] = table[x[i]];
}

static void fill_part(struct table16 *t, uint16_t *table, kernel_fn computed)
{
    element patterns[PART];
    unsigned part = atomic_load_explicit(&t->begun, memory_order_relaxed) < PARTS ? atomic_fetch_add_explicit(&t->begun, 1, memory_order_relaxed) : PARTS;
    if (part >= PARTS)
        return;
    for (unsigned i = 0; i < PART; i++)
        patterns[i] = (uint16_t)(part * PART + i);
    computed(table + part * PART, patterns, NULL, NULL, PART);
    atomic_fetch_add_explicit(&t->filled, 1, memory_order_release);
}

void table16_run(table16_id id, kernel_fn computed, void *out, const void *x, size_t n)
{
    struct table16 *t = &tables[id];
    if (n < TABLE16_LEAST_RUN) {
        computed(out, x, NULL, NULL, n);
    } else if (atomic_load_explicit(&t->filled, memory_order_acquire) == PARTS) {
        look_up(entries[id], out, x, n);
    } else {
        computed(out, x, NULL, NULL, n);
        if (atomic_load_explicit(&t->seen, memory_order_relaxed) >= ENTRIES)
            fill_part(t, entries[id], computed);
        else
            atomic_fetch_add_explicit(&t->seen, n < ENTRIES ? (unsigned)n : ENTRIES, memory_order_relaxed);
    }
}
