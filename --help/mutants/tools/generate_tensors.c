/* Shapes, strides, places and data of a case's tensors: see generate.h. */
#include "generate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { FILLER = 0xA5, GUARD_BYTES = 128 };

static uint64_t below(generated *c, uint64_t n) {
    return generate_below(&c->state, n);
}

static bool chance(generated *c, int percent) {
    return generate_chance(&c->state, percent);
}

static int64_t count_elements(int32_t rank, const int64_t *shape) {
    int64_t n = 1;
    for (int32_t d = 0; d < rank; d++) {
        n *= shape[d];
    }
    return n;
}

/* ---- Shapes -------------------------------------------------------------------------------------------------------------------- */

/* Around vector widths, tile lengths and their multiples. */
static const int64_t boundaries[] = { 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513,
                                      1000, 1023, 1024, 1025, 1537, 2048, 4099, 16411, 65543, 200003 };

static int64_t boundary_up_to(generated *c, int64_t most) {
    size_t n = 1;
    while (n < COUNT(boundaries) && boundaries[n] <= most) {
        n++;
    }
    return boundaries[below(c, n)];
}

void generate_family_shape(generated *c, int32_t family) {
    int64_t *shape = c->family_shape[family], left = c->limits.max_elements;
    uint64_t kind = below(c, 100);
    int32_t rank = kind < 4 ? 0 : kind < 30 ? 1 : kind < 70 ? 2 : kind < 82 ? 3 : 4 + (int32_t)below(c, 5);
    for (int32_t d = rank - 1; d >= 0; d--) {
        /* The last one or two dimensions are the long ones; which of them is left to chance. */
        int64_t most = rank - d > 2 ? (left < 5 ? left : 5) : rank > 1 && chance(c, 50) && left > 70 ? 70 : left;
        shape[d] = chance(c, 8) ? 1 : boundary_up_to(c, most);
        left /= shape[d];
    }
    if (c->limits.min_elements > 0) {
        int64_t inner = rank > 0 ? count_elements(rank, shape) / shape[0] : 1;
        rank = rank > 0 ? rank : 1;
        if (rank == 1 || inner * shape[0] < c->limits.min_elements) {
            shape[0] = c->limits.min_elements / inner + 1 + (int64_t)below(c, 100);
        }
    } else if (rank > 0 && chance(c, 3)) {
        shape[below(c, (uint64_t)rank)] = 0;
    }
    c->family_rank[family] = rank;
}

/* The whole shape, or the tail of it, or with extents of 1. An extent of 0 may be met by 1 as well. */
void generate_input_shape(generated *c, generated_value *v) {
    int32_t full = c->family_rank[v->family];
    uint64_t kind = below(c, c->tidy ? 80 : 100);
    v->rank = full == 0 || kind < 55 ? full : kind < 80 ? full - 1 : (int32_t)below(c, (uint64_t)full + 1);
    for (int32_t d = 0; d < v->rank; d++) {
        v->shape[d] = c->family_shape[v->family][full - v->rank + d];
        if (chance(c, kind < 40 || c->tidy ? 0 : 20)) {
            v->shape[d] = 1;
        }
    }
}

/* ---- Strides -------------------------------------------------------------------------------------------------------------------- */

enum { LAYOUT_PERMUTED = 1, LAYOUT_STEPPED = 2, LAYOUT_NEGATIVE = 4, LAYOUT_REPEATED = 8 };

/* Gives the tensor strides, times `spread`. *before and *elements: how many elements of room it needs before its first
 * element and in all. */
static void choose_strides(generated *c, ol_tensor *t, unsigned layout, int64_t spread, int64_t *before, int64_t *elements) {
    int32_t order[OL_MAX_RANK];
    int64_t stride = spread, last = 0;
    int n_steps = 0;                                         /* of many dimensions few are stepped: the room needed multiplies */
    *before = 0;
    for (int32_t d = 0; d < t->rank; d++) {
        order[d] = t->rank - 1 - d;                          /* innermost first */
    }
    for (int32_t d = t->rank - 1; layout & LAYOUT_PERMUTED && d > 0; d--) {
        int32_t other = (int32_t)below(c, (uint64_t)d + 1), kept = order[d];
        order[d] = order[other];
        order[other] = kept;
    }
    for (int32_t i = 0; i < t->rank; i++) {
        int32_t d = order[i];
        int64_t extent = t->shape[d];
        if (extent <= 1) {
            t->strides[d] = chance(c, 50) ? stride : (int64_t)below(c, 2000001) - 1000000;       /* never used */
            continue;
        }
        if (layout & LAYOUT_REPEATED && chance(c, 50)) {
            t->strides[d] = 0;
            continue;
        }
        if (layout & LAYOUT_STEPPED && n_steps < 2 && chance(c, 50)) {
            n_steps++;
            stride *= 2 + (int64_t)below(c, 2);
        }
        t->strides[d] = stride;
        last += stride * (extent - 1);
        if (layout & LAYOUT_NEGATIVE && chance(c, 60)) {
            t->strides[d] = -stride;
            *before += stride * (extent - 1);
        }
        stride *= extent;
        if (layout & LAYOUT_STEPPED && chance(c, 30)) {
            stride += spread * (int64_t)(1 + below(c, 7));    /* rows with padding between them */
        }
    }
    *elements = last + 1;
}

static unsigned random_layout(generated *c, bool is_output) {
    uint64_t kind = c->tidy ? 0 : below(c, 100);
    unsigned layout = kind < 45 ? 0 : kind < 60 ? LAYOUT_PERMUTED : kind < 72 ? LAYOUT_STEPPED : kind < 82 ? LAYOUT_NEGATIVE : (unsigned)below(c, 8);
    if (!is_output && !c->tidy && chance(c, 10)) {
        layout |= LAYOUT_REPEATED;
    }
    return layout;
}

/* ---- Places --------------------------------------------------------------------------------------------------------------------- */

/* Takes room in the arena; the first element's offset from the last 64-byte boundary is any multiple of the dtype's size, or,
 * at times, misaligned. */
static int64_t take_room(generated *c, size_t size, int64_t before, int64_t elements) {
    size_t at = ((c->arena_bytes + GUARD_BYTES + 63) & ~(size_t)63) + (c->tidy || chance(c, 60) ? 0 : size * (size_t)below(c, 64 / size));
    if (size > 1 && !c->tidy && chance(c, 15)) {
        at += 1 + (size_t)below(c, size - 1);
    }
    c->arena_bytes = at + size * (size_t)elements + GUARD_BYTES;
    return (int64_t)(at + size * (size_t)before);
}

static bool is_empty(const ol_tensor *t) {
    return count_elements(t->rank, t->shape) == 0;
}

static void place(generated *c, int32_t index, bool is_output) {
    ol_tensor *t = &c->tensors[index];
    int64_t before, elements;
    choose_strides(c, t, random_layout(c, is_output), 1, &before, &elements);
    c->offsets[index] = is_empty(t) && chance(c, 50) ? -1 : take_room(c, ol_dtype_size(t->dtype), before, elements);
}

static bool same_type(const ol_tensor *x, const ol_tensor *y) {
    return x->dtype == y->dtype && x->rank == y->rank && memcmp(x->shape, y->shape, sizeof x->shape) == 0;
}

static bool repeats(const ol_tensor *t) {
    for (int32_t d = 0; d < t->rank; d++) {
        if (t->shape[d] > 1 && t->strides[d] == 0) {
            return true;
        }
    }
    return false;
}

static bool place_input(generated *c, int32_t index) {
    /* The same view as an earlier input: one tensor given twice. */
    for (int32_t i = 0; i < index && chance(c, 6); i++) {
        if (same_type(&c->tensors[i], &c->tensors[index])) {
            c->tensors[index] = c->tensors[i];
            c->offsets[index] = c->offsets[i];
            return true;
        }
    }
    place(c, index, false);
    return true;
}

/* Whether an earlier output lies in this input's memory. */
static bool taken(const generated *c, int32_t input, int32_t before_output) {
    for (int32_t o = c->n_inputs; o < before_output; o++) {
        if (c->offsets[o] == c->offsets[input]) {
            return true;
        }
    }
    return false;
}

static bool place_in_input(generated *c, int32_t index) {
    for (int32_t i = 0; i < c->n_inputs; i++) {
        const ol_tensor *input = &c->tensors[i];
        if (same_type(input, &c->tensors[index]) && !repeats(input) && c->offsets[i] >= 0 && !taken(c, i, index)) {
            memcpy(c->tensors[index].strides, input->strides, sizeof input->strides);
            c->offsets[index] = c->offsets[i];
            return true;
        }
    }
    return false;
}

/* Two or three outputs of one shape in one block, element by element in turn, as columns of a matrix are. */
static int32_t place_interleaved(generated *c, int32_t index) {
    int32_t n = 1, most = c->n_inputs + c->n_outputs - index;
    int64_t before, elements;
    ol_tensor *t = &c->tensors[index];
    while (n < 3 && n < most && same_type(t, t + n)) {
        n++;
    }
    if (n == 1 || is_empty(t)) {
        return 0;
    }
    choose_strides(c, t, random_layout(c, true), n, &before, &elements);
    size_t size = ol_dtype_size(t->dtype);
    int64_t offset = take_room(c, size, before, elements + n);
    for (int32_t i = 0; i < n; i++) {
        memcpy(t[i].strides, t->strides, sizeof t->strides);
        c->offsets[index + i] = offset + (int64_t)size * i;
    }
    return n;
}

/* ---- Data ----------------------------------------------------------------------------------------------------------------------- */

const unsigned char *generate_element(const ol_tensor *t, int64_t index) {
    const unsigned char *at = t->data;
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        at += index % t->shape[d] * t->strides[d] * (int64_t)ol_dtype_size(t->dtype);
        index /= t->shape[d];
    }
    return at;
}

static void fill(generated *c, const ol_tensor *t) {
    int64_t n = count_elements(t->rank, t->shape);
    size_t size = ol_dtype_size(t->dtype);
    bool any_byte = t->dtype == OL_BOOL && chance(c, 20);     /* any byte but 0 is true */
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = any_byte && chance(c, 50) ? below(c, 256) : generate_bits(&c->state, t->dtype);
        unsigned char *at = (unsigned char *)(uintptr_t)generate_element(t, i);
        memcpy(at, &bits, size);                              /* little-endian */
    }
}

void generate_bind(const generated *c, unsigned char *arena, ol_tensor *tensors) {
    for (int32_t i = 0; i < c->n_inputs + c->n_outputs; i++) {
        tensors[i] = c->tensors[i];
        tensors[i].data = c->offsets[i] < 0 ? NULL : arena + c->offsets[i];
    }
}

bool generate_tensors(generated *c) {
    int32_t n = c->n_inputs + c->n_outputs;
    c->tensors = calloc((size_t)n, sizeof *c->tensors);
    c->offsets = calloc((size_t)n, sizeof *c->offsets);
    if (!c->tensors || !c->offsets) {
        return false;
    }
    for (int32_t i = 0; i < n; i++) {
        const generated_value *v = &c->values[i < c->n_inputs ? (uint32_t)i : c->outputs[i - c->n_inputs]];
        c->tensors[i].dtype = v->dtype;
        c->tensors[i].rank = v->rank;
        memcpy(c->tensors[i].shape, v->shape, sizeof v->shape);
    }
    for (int32_t i = 0; i < c->n_inputs; i++) {
        place_input(c, i);
    }
    for (int32_t i = c->n_inputs, placed; i < n; i += placed) {
        placed = c->tidy ? 0 : chance(c, 20) ? place_in_input(c, i) : chance(c, 25) ? place_interleaved(c, i) : 0;
        if (placed == 0) {
            place(c, i, true);
            placed = 1;
        }
    }
    c->arena_bytes += GUARD_BYTES;
    c->arena = aligned_alloc(64, (c->arena_bytes + 63) & ~(size_t)63);
    if (!c->arena) {
        return false;
    }
    memset(c->arena, FILLER, c->arena_bytes);
    for (int32_t i = 0; i < c->n_inputs; i++) {
        ol_tensor bound = c->tensors[i];
        bound.data = c->offsets[i] < 0 ? NULL : c->arena + c->offsets[i];
        fill(c, &bound);
    }
    return true;
}

/* ---- Describing ------------------------------------------------------------------------------------------------------------------ */

static void put_list(FILE *stream, int32_t rank, const int64_t *list) {
    fputc('[', stream);
    for (int32_t d = 0; d < rank; d++) {
        fprintf(stream, d ? ", %" PRId64 : "%" PRId64, list[d]);
    }
    fputc(']', stream);
}

void generate_describe(const generated *c, FILE *stream) {
    for (int32_t i = 0; i < c->n_inputs + c->n_outputs; i++) {
        const ol_tensor *t = &c->tensors[i];
        bool is_output = i >= c->n_inputs;
        fprintf(stream, "%s %d: %s shape ", is_output ? "output" : "input", (int)(is_output ? i - c->n_inputs : i), ol_dtype_name(t->dtype));
        put_list(stream, t->rank, t->shape);
        fputs(" strides ", stream);
        put_list(stream, t->rank, t->strides);
        if (c->offsets[i] < 0) {
            fputs(", no data", stream);
        } else {
            fprintf(stream, ", %" PRId64 " bytes past a 64-byte boundary", c->offsets[i] % 64);
        }
        for (int32_t j = 0; j < c->n_inputs && j < i; j++) {
            if (c->offsets[i] >= 0 && c->offsets[j] == c->offsets[i]) {
                fprintf(stream, ", the memory of input %d", (int)j);
            }
        }
        fputc('\n', stream);
    }
}
