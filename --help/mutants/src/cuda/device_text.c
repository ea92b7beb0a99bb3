/* See device_text.h. A declaration is a function, struct, union, enum or typedef at the top level, also a template; it is named by
 * its own name and, an enum, by its constants. Several may have one name (specialisations): they go together. */
#include "cuda/device_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LONG_TEXT 5000                   /* bytes: of functions that are not inlined, as a kernel would hold a dozen copies */

static const char inlined[] = "__forceinline__", called_instead[] = "__noinline__";

typedef struct declaration {
    const char *start, *end;
    int needed, direct;
    size_t walk;                         /* the last walk of reach_of that saw it, from 1 */
} declaration;

typedef struct name {
    const char *start;
    size_t length;
    size_t declaration;
} name;

typedef struct declarations {
    const ol_allocator *allocator;
    declaration *items;
    name *names;
    size_t n_items, items_capacity, n_names, names_capacity;
    int broken;
} declarations;

static int starts_name(char c) { return isalpha((unsigned char)c) || c == '_'; }
static int in_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* The next identifier in [*at, end), its length; 0 where there is none. Numbers, which hold letters too, are passed over. */
static size_t next_name(const char **at, const char *end)
{
    while (*at < end && !starts_name(**at)) {
        if (isdigit((unsigned char)**at)) {
            while (*at < end && (in_name(**at) || **at == '.'))
                ++*at;
        } else {
            ++*at;
        }
    }
    const char *p = *at;
    while (p < end && in_name(*p))
        p++;
    return (size_t)(p - *at);
}

static int same(const char *p, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(p, word, length) == 0;
}

static void add_name(declarations *x, const char *start, size_t length)
{
    if (!memory_grow(x->allocator, (void **)&x->names, &x->names_capacity, x->n_names + 1, sizeof *x->names))
        x->broken = 1;
    else
        x->names[x->n_names++] = (name){ start, length, x->n_items };
}

/* Whether p, in a declaration, ends it. */
static int ends(const char *p, int depth, int is_function)
{
    return depth == 0 && (*p == ';' || (*p == '}' && is_function));
}

/* Reads one declaration of a text that ends at `end`; where the declaration ends. The first identifier that is followed by "("
 * names a function, the one after struct, union or enum a type, the last one before the end a typedef. */
static const char *read_declaration(declarations *x, const char *start, const char *end)
{
    const char *p = start, *type_word = NULL, *last = NULL;
    size_t last_length = 0;
    int depth = 0, is_function = 0, is_typedef = 0, is_enum = 0, named = 0, in_angle = 0;
    for (; *p; p++) {
        if (isdigit((unsigned char)*p)) {
            while (in_name(p[1]) || p[1] == '.')
                p++;
        } else if (starts_name(*p)) {
            const char *q = p;
            size_t length = next_name(&q, end);
            int is_type_word = same(p, length, "struct") || same(p, length, "union") || same(p, length, "enum");
            if (depth == 0 && !in_angle) {
                is_typedef |= same(p, length, "typedef");
                is_enum |= same(p, length, "enum");
                if (is_type_word)
                    type_word = p;
                else if (type_word && !named && !is_typedef && last == type_word) {
                    add_name(x, p, length);
                    named = 1;
                }
            } else if (is_enum && depth == 1 && (*last == '{' || *last == ','))
                add_name(x, p, length);
            last = p;
            last_length = length;
            p += length - 1;
        } else if (!isspace((unsigned char)*p)) {
            if (*p == '<' && depth == 0 && last && same(last, last_length, "template"))
                in_angle = 1;
            else if (*p == '>' && depth == 0)
                in_angle = 0;
            if (*p == '(' && depth == 0 && !named && !is_typedef && !type_word) {
                add_name(x, last, last_length);
                named = is_function = 1;
            }
            if (*p == ';' && depth == 0 && is_typedef)
                add_name(x, last, last_length);
            depth += *p == '(' || *p == '{' || *p == '[';
            depth -= *p == ')' || *p == '}' || *p == ']';
            if (ends(p, depth, is_function))
                return p + 1;
            if (*p == '{' || *p == ',' )
                last = p, last_length = 1;
        }
    }
    return p;
}

static int by_name(const void *a, const void *b)
{
    const name *x = a, *y = b;
    int order = strncmp(x->start, y->start, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

static void read_all(declarations *x)
{
    const char *text_end = device_text + strlen(device_text);
    for (const char *p = device_text; !x->broken;) {
        while (isspace((unsigned char)*p))
            p++;
        if (!*p)
            break;
        if (!memory_grow(x->allocator, (void **)&x->items, &x->items_capacity, x->n_items + 1, sizeof *x->items)) {
            x->broken = 1;
            break;
        }
        const char *end = read_declaration(x, p, text_end);
        x->items[x->n_items++] = (declaration){ .start = p, .end = end };
        p = end;
    }
    if (!x->broken)
        qsort(x->names, x->n_names, sizeof *x->names, by_name);
}

/* The declarations of the identifier at p: [*first, the result). */
static const name *declarations_of(const declarations *x, const char *p, size_t length, const name **first)
{
    name wanted = { .start = p, .length = length };
    const name *found = bsearch(&wanted, x->names, x->n_names, sizeof wanted, by_name), *end = x->names + x->n_names;
    *first = found;
    if (!found)
        return found;
    while (*first > x->names && by_name(*first - 1, &wanted) == 0)
        --*first;
    while (found < end && by_name(found, &wanted) == 0)
        found++;
    return found;
}

/* Marks what [start, end) names. */
static void mark(declarations *x, const char *start, const char *end, int direct)
{
    size_t length;
    const name *i;
    for (const char *p = start; (length = next_name(&p, end)) > 0; p += length)
        for (const name *last = declarations_of(x, p, length, &i); i < last; i++) {
            x->items[i->declaration].needed = 1;
            x->items[i->declaration].direct |= direct;
        }
}

/* The bytes of text of a declaration and all it names. What is named is declared before what names it, so that recursion ends. */
static size_t reach_of(declarations *x, size_t item, size_t walk)
{
    declaration *d = &x->items[item];
    size_t reach = (size_t)(d->end - d->start), length;
    const name *i;
    d->walk = walk;
    for (const char *p = d->start; (length = next_name(&p, d->end)) > 0; p += length)
        for (const name *last = declarations_of(x, p, length, &i); i < last; i++)
            if (x->items[i->declaration].walk != walk && i->declaration < item)
                reach += reach_of(x, i->declaration, walk);
    return reach;
}

/* Of the numerics; what reads the kernel's parameters must be inlined (kernel_hardware.h). */
static int is_primitive(const declaration *d)
{
    const char *prefix = strstr(d->start, " num_"), *parameters = strchr(d->start, '(');
    return prefix && parameters && prefix < parameters && parameters < d->end;
}

/* Whether a function is called instead of inlined, and then its text says so. */
static void add_declaration(declarations *x, text *out, size_t item, int all_called)
{
    const declaration *d = &x->items[item];
    const char *qualifier = d->direct ? strstr(d->start, inlined) : NULL;
    int is_function = qualifier && qualifier < d->end && strncmp(d->start, "static __device__ ", 18) == 0 && qualifier == d->start + 18;
    if (is_function && ((all_called && is_primitive(d)) || reach_of(x, item, item + 1) > LONG_TEXT)) {
        text_add_bytes(out, d->start, (size_t)(qualifier - d->start));
        text_add_bytes(out, called_instead, strlen(called_instead));
        text_add_bytes(out, qualifier + strlen(inlined), (size_t)(d->end - qualifier) - strlen(inlined));
    } else {
        text_add_bytes(out, d->start, (size_t)(d->end - d->start));
    }
    text_add(out, "\n");
}

void device_text_for(text *out, const text *kernel, int all_called)
{
    declarations x = { .allocator = &out->allocator };
    read_all(&x);
    if (!x.broken) {
        mark(&x, kernel->bytes, kernel->bytes + kernel->n, 1);
        /* What is named is declared before what names it, so one walk back sees all. */
        for (size_t i = x.n_items; i-- > 0;)
            if (x.items[i].needed)
                mark(&x, x.items[i].start, x.items[i].end, 0);
        for (size_t i = 0; i < x.n_items; i++)
            if (x.items[i].needed)
                add_declaration(&x, out, i, all_called);
    }
    out->broken |= x.broken;
    memory_give(x.allocator, x.items, x.items_capacity * sizeof *x.items);
    memory_give(x.allocator, x.names, x.names_capacity * sizeof *x.names);
}
