/* Memory through the caller's hooks; the default ones are the C library's. */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

static void *default_allocate(void *user, size_t n_bytes)
{
    (void)user;
    if (n_bytes > SIZE_MAX - 63)
        return NULL;
    return aligned_alloc(64, (n_bytes + 63) & ~(size_t)63);
}

static void default_free(void *user, void *pointer, size_t n_bytes)
{
    (void)user;
    (void)n_bytes;
    free(pointer);
}

ol_allocator memory_allocator(const ol_allocator *allocator)
{
    if (allocator && allocator->allocate && allocator->free)
        return *allocator;
    return (ol_allocator){ default_allocate, default_free, NULL };
}

void *memory_take(const ol_allocator *allocator, size_t n_bytes)
{
    if (n_bytes == 0)
        n_bytes = 1;
    void *pointer = allocator->allocate(allocator->user, n_bytes);
    if (pointer)
        memset(pointer, 0, n_bytes);
    return pointer;
}

void memory_give(const ol_allocator *allocator, void *pointer, size_t n_bytes)
{
    if (pointer)
        allocator->free(allocator->user, pointer, n_bytes ? n_bytes : 1);
}

size_t memory_size(size_t n, size_t size)
{
    size_t product;
    return __builtin_mul_overflow(n, size, &product) ? SIZE_MAX : product;
}

int memory_grow(const ol_allocator *allocator, void **items, size_t *capacity, size_t needed, size_t element_size)
{
    if (needed <= *capacity)
        return 1;
    size_t grown = *capacity < 16 ? 16 : *capacity;
    while (grown < needed)
        grown *= 2;
    void *moved = memory_take(allocator, memory_size(grown, element_size));
    if (!moved)
        return 0;
    if (*items)
        memcpy(moved, *items, *capacity * element_size);
    memory_give(allocator, *items, *capacity * element_size);
    *items = moved;
    *capacity = grown;
    return 1;
}
