/* A text that grows. Running out of memory makes it broken and is asked for once, at the end. */
#ifndef OL_CUDA_TEXT_H
#define OL_CUDA_TEXT_H

#include "memory.h"

#include <stdarg.h>

typedef struct text {
    ol_allocator allocator;
    char *bytes;                         /* terminated by a zero */
    size_t n, capacity;
    int broken;
} text;

void text_add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_bytes(text *t, const char *bytes, size_t n);
void text_free(text *t);

#endif
