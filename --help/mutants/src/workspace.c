/* Scratch blocks, each with a flag. Only very large composites come here. */
#include "workspace.h"

#include <stdatomic.h>

struct workspace {
    ol_allocator allocator;
    char *blocks;
    atomic_flag *taken;
    size_t block_bytes, n_blocks;
};

workspace *workspace_create(const ol_allocator *allocator, size_t n_bytes, size_t n_blocks)
{
    if (n_bytes > SIZE_MAX - 63)
        return NULL;
    workspace *w = memory_take(allocator, sizeof *w);
    if (!w)
        return NULL;
    *w = (workspace){ .allocator = *allocator, .block_bytes = (n_bytes + 63) & ~(size_t)63, .n_blocks = n_blocks };
    w->blocks = memory_take(allocator, memory_size(w->block_bytes, n_blocks));
    w->taken = memory_take(allocator, memory_size(n_blocks, sizeof *w->taken));
    if (!w->blocks || !w->taken) {
        workspace_destroy(w);
        return NULL;
    }
    for (size_t i = 0; i < n_blocks; i++)
        atomic_flag_clear(&w->taken[i]);
    return w;
}

void workspace_destroy(workspace *w)
{
    if (!w)
        return;
    ol_allocator allocator = w->allocator;
    memory_give(&allocator, w->blocks, memory_size(w->block_bytes, w->n_blocks));
    memory_give(&allocator, w->taken, w->n_blocks * sizeof *w->taken);
    memory_give(&allocator, w, sizeof *w);
}

void *workspace_take(workspace *w)
{
    for (size_t i = 0; i < w->n_blocks; i++)
        if (!atomic_flag_test_and_set_explicit(&w->taken[i], memory_order_acquire))
            return w->blocks + i * w->block_bytes;
    return memory_take(&w->allocator, w->block_bytes);
}

void workspace_give(workspace *w, void *block)
{
    uintptr_t at = (uintptr_t)block - (uintptr_t)w->blocks;
    if (at < w->block_bytes * w->n_blocks)
        atomic_flag_clear_explicit(&w->taken[at / w->block_bytes], memory_order_release);
    else
        memory_give(&w->allocator, block, w->block_bytes);
}
