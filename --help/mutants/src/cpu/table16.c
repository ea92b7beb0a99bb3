/* See table16.h. */
#include "cpu/table16.h"

#include <stdatomic.h>

enum { ENTRIES = 65536, PART = 1024, PARTS = ENTRIES / PART };

/* `seen` counts elements of long runs until parts are begun; `filled` is PARTS where the table is complete, and whoever reads that
 * reads the entries, too. */
static struct table16 {
    atomic_uint seen, begun, filled;
} tables[TABLE16_COUNT];

static uint16_t entries[TABLE16_COUNT][ENTRIES + TABLE16_PADDING];

static void fill_part(struct table16 *t, uint16_t *table, kernel_fn computed)
{
    uint16_t patterns[PART];
    unsigned part = atomic_load_explicit(&t->begun, memory_order_relaxed);
    if (part < PARTS)
        part = atomic_fetch_add_explicit(&t->begun, 1, memory_order_relaxed);
    if (part >= PARTS)
        return;
    for (unsigned i = 0; i < PART; i++)
        patterns[i] = (uint16_t)(part * PART + i);
    computed(table + part * PART, patterns, NULL, NULL, PART);
    atomic_fetch_add_explicit(&t->filled, 1, memory_order_release);
}

void table16_run(table16_id id, kernel_fn computed, table16_look_up look_up, void *out, const void *x, size_t n)
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

void table16_forget(void)
{
    for (int i = 0; i < TABLE16_COUNT; i++) {
        atomic_store(&tables[i].seen, 0);
        atomic_store(&tables[i].begun, 0);
        atomic_store(&tables[i].filled, 0);
    }
}
