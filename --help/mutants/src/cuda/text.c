/* See text.h. */
#include "cuda/text.h"

#include <stdio.h>
#include <string.h>

static int reserve(text *t, size_t n)
{
    if (!t->broken && !memory_grow(&t->allocator, (void **)&t->bytes, &t->capacity, t->n + n + 1, 1))
        t->broken = 1;
    return !t->broken;
}

void text_add_bytes(text *t, const char *bytes, size_t n)
{
    if (!reserve(t, n))
        return;
    if (n)                               /* a text that is broken may have no bytes at all */
        memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    t->bytes[t->n] = 0;
}

void text_add(text *t, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n >= 0 && reserve(t, (size_t)n)) {
        vsnprintf(t->bytes + t->n, (size_t)n + 1, format, again);
        t->n += (size_t)n;
    }
    va_end(again);
}

void text_free(text *t)
{
    memory_give(&t->allocator, t->bytes, t->capacity);
    *t = (text){ .allocator = t->allocator };
}
