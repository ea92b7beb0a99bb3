/* Scratch blocks: a stack of free ones under a mutex. Only very large composites come here. */
#include "workspace.h"

#include <pthread.h>

struct workspace {
    ol_allocator allocator;
    pthread_mutex_t mutex;
    pthread_cond_t given;
    char *blocks;
    void **free;
    size_t block_bytes, n_blocks, n_free;
};

workspace *workspace_create(const ol_allocator *allocator, size_t n_bytes, size_t n_blocks)
{
    if (n_bytes > SIZE_MAX - 63)
        return NULL;
    workspace *w = memory_take(allocator, sizeof *w);
    if (!w)
        return NULL;
    *w = (workspace){ .allocator = *allocator, .block_bytes = (n_bytes + 63) & ~(size_t)63, .n_blocks = n_blocks, .n_free = n_blocks };
    w->blocks = memory_take(allocator, memory_size(w->block_bytes, n_blocks));
    w->free = memory_take(allocator, memory_size(n_blocks, sizeof *w->free));
    if (!w->blocks || !w->free || pthread_mutex_init(&w->mutex, NULL) != 0)
        goto fail;
    if (pthread_cond_init(&w->given, NULL) != 0) {
        pthread_mutex_destroy(&w->mutex);
        goto fail;
    }
    for (size_t i = 0; i < n_blocks; i++)
        w->free[i] = w->blocks + i * w->block_bytes;
    return w;

fail:
    memory_give(allocator, w->blocks, memory_size(w->block_bytes, n_blocks));
    memory_give(allocator, w->free, n_blocks * sizeof *w->free);
    memory_give(allocator, w, sizeof *w);
    return NULL;
}

void workspace_destroy(workspace *w)
{
    if (!w)
        return;
    ol_allocator allocator = w->allocator;
    pthread_cond_destroy(&w->given);
    pthread_mutex_destroy(&w->mutex);
    memory_give(&allocator, w->blocks, w->block_bytes * w->n_blocks);
    memory_give(&allocator, w->free, w->n_blocks * sizeof *w->free);
    memory_give(&allocator, w, sizeof *w);
}

void *workspace_take(workspace *w)
{
    pthread_mutex_lock(&w->mutex);
    while (w->n_free == 0)
        pthread_cond_wait(&w->given, &w->mutex);
    void *block = w->free[--w->n_free];
    pthread_mutex_unlock(&w->mutex);
    return block;
}

void workspace_give(workspace *w, void *block)
{
    pthread_mutex_lock(&w->mutex);
    w->free[w->n_free++] = block;
    pthread_cond_signal(&w->given);
    pthread_mutex_unlock(&w->mutex);
}
