/* See geometry.h.
 *
 * A group of outputs of one shape is rows of elements (space.h). Its threads are column_threads side by side in a row, times
 * row_threads, each of which walks every row_threads-th row. A thread takes `lanes` elements at a time where every tensor can be
 * moved that way and there is work enough for the whole GPU; else one, so that neighbouring threads touch neighbouring elements. */
#include "cuda/geometry.h"

#include "space.h"

#include <string.h>

#define WARP 32
#define BUSY_THREADS 128                 /* of a multiprocessor, with fewer of which there are no lanes: the others would idle */
#define ONCE_BLOCK 128                   /* threads of a block where each has one place: a multiprocessor gets its share in smaller steps */
#define WAVES 4                          /* threads, in multiples of what the GPU holds at once, before they are given more rows each */

typedef struct filler {
    const ol_composite *c;
    const kernel *k;
    const function_limits *limits;
    uint64_t *words;
    uint32_t n_tensors;
    uint32_t n_words, n_groups;          /* so far */
    uint64_t n_threads;                  /* of all groups */
    uint32_t header_words;               /* of a group */
    int mapped, in_turn, once;           /* once: WORDS_ONCE */
    geometry_addresses *addresses;
} filler;

static uint32_t lesser(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* Values that are the same for every row, by hoistable value, as bits. */
static uint64_t hoisted_bits(const space *s, const kernel *k, int64_t n_rows)
{
    const program *p = s->composite->program;
    uint64_t bits = 0;
    if (!p->hoists || n_rows < 2)
        return 0;
    for (size_t i = 0; i < p->n_instructions; i++) {
        const instruction *in = &p->instructions[i];
        if (s->active && !s->active[i])
            continue;
        uint8_t same = in->kind != INSTRUCTION_LOAD || s->views[in->payload].repeated;
        for (int o = 0; o < in->n_operands; o++)
            same &= s->marks[in->operands[o]];
        s->marks[in->result] = same;
        if (same && k->hoisted[i] >= 0)
            bits |= (uint64_t)1 << k->hoisted[i];
    }
    return bits;
}

/* Whether every offset, and every row's number, fits 31 bits. */
static int is_wide(const space *s, int64_t n_rows)
{
    int wide = n_rows > INT32_MAX || s->dims[s->rank - 1] > INT32_MAX;
    for (uint32_t u = 0; u < s->n_used && !wide; u++) {
        const view *v = &s->views[s->used[u]];
        uint64_t reach = 0;
        for (int j = 0; j < s->rank; j++) {
            uint64_t stride = v->strides[j] < 0 ? 0 - (uint64_t)v->strides[j] : (uint64_t)v->strides[j];
            uint64_t steps = (uint64_t)s->dims[j] - 1, part;
            if (__builtin_mul_overflow(stride, steps, &part) || __builtin_add_overflow(reach, part, &reach))
                return 1;
        }
        wide = reach > INT32_MAX;
    }
    return wide;
}

static int is_misaligned(const space *s)
{
    for (uint32_t u = 0; u < s->n_used; u++)
        if (!s->views[s->used[u]].aligned)
            return 1;
    return 0;
}

static int64_t rows_of(const space *s)
{
    int64_t n = 1;
    for (int j = 0; j < s->rank - 1; j++)
        n *= s->dims[j];
    return n;
}

static int is_far(const space *s, const kernel *k)
{
    return k->tier == KERNEL_FAR || s->rank - 1 > WORDS_NEAR_OUTER || is_misaligned(s) || is_wide(s, rows_of(s));
}

/* How the elements of a view can be moved, `lanes` at a time. */
static uint64_t view_how(const space *s, const view *v, int lanes)
{
    uint64_t how = 0;
    uint64_t bytes = (uint64_t)v->size * (unsigned)lanes, block = bytes < 16 ? bytes : 16, misaligned = (uintptr_t)v->data;
    for (int j = 0; j < s->rank - 1; j++)
        misaligned |= (uint64_t)v->strides[j];
    if (v->strides[s->rank - 1] == 0)
        how |= VIEW_SAME;
    else if (v->strides[s->rank - 1] == v->size && !(misaligned & (block - 1)))
        how |= VIEW_BLOCKS;
    return how;
}

static int has_lanes(const filler *f, const space *s, int64_t n_rows)
{
    int64_t row = s->dims[s->rank - 1], lanes = f->k->lanes;
    if (lanes < 2 || (row % lanes && row < 4 * lanes) ||
        (uint64_t)(n_rows * row) < (uint64_t)lanes * BUSY_THREADS * f->limits->n_multiprocessors)
        return 0;
    for (uint32_t u = 0; u < s->n_used; u++)
        if (!(view_how(s, &s->views[s->used[u]], (int)lanes) & (VIEW_BLOCKS | VIEW_SAME)))
            return 0;
    return 1;
}

static uint64_t pack(uint64_t lower, uint64_t upper)
{
    return (lower & UINT32_MAX) | upper << 32;
}

static void put_address(filler *f, const view *v, uint32_t tensor, uint32_t at)
{
    geometry_addresses *a = f->addresses;
    f->words[at] = (uint64_t)(uintptr_t)v->data;
    if (a->n < GEOMETRY_ADDRESSES) {
        a->words[a->n] = (uint16_t)at;
        a->tensors[a->n] = (uint16_t)tensor;
    }
    a->n += a->n <= GEOMETRY_ADDRESSES;
}

static void put_view(filler *f, const space *s, uint32_t tensor, int lanes, uint32_t at)
{
    const view *v = &s->views[tensor];
    uint64_t *w = f->words + at;
    put_address(f, v, tensor, at + VIEW_DATA);
    w[VIEW_STEP] = pack((uint64_t)v->strides[s->rank - 1], view_how(s, v, lanes));
    w[VIEW_STRIDES] = pack(s->rank > 1 ? (uint64_t)v->strides[s->rank - 2] : 0, s->rank > 2 ? (uint64_t)v->strides[s->rank - 3] : 0);
}

/* Divides n < 2^31 by d: n m >> shift, m = 2^shift / d rounded up, shift = 31 + log2(d) rounded up. m d exceeds 2^shift by less than
 * d <= 2^(shift - 31), and n times that is less than 2^shift. */
static uint64_t division_by(uint32_t d)
{
    uint32_t shift = 31;
    while ((uint64_t)1 << (shift - 31) < d)
        shift++;
    return pack((((uint64_t)1 << shift) + d - 1) / d, shift);
}

/* Threads of a group, columns | rows: columns first, then rows, up to so many that each has several rows to use what it hoists for. */
static uint64_t choose_threads(filler *f, uint64_t columns, uint64_t n_rows, int hoists)
{
    uint64_t most = (uint64_t)f->limits->max_threads * f->limits->blocks_per_multiprocessor * f->limits->n_multiprocessors * (hoists ? 1 : WAVES);
    if (f->in_turn)
        most = f->limits->max_threads;
    uint32_t column_threads = lesser(columns, most);
    uint32_t row_threads = lesser(n_rows, most / column_threads);
    f->n_threads += (uint64_t)column_threads * row_threads;
    return pack(column_threads, row_threads);
}

static void put_once(filler *f, const space *s, int lanes, uint64_t threads)
{
    uint64_t division = division_by((uint32_t)threads);
    f->once = 1;
    f->words[WORDS_GROUPS] = pack(division, (division >> 32) << WORDS_SHIFT | WORDS_ONCE | (lanes > 1 ? WORDS_LANES : 0));
    f->words[ONCE_THREADS] = threads;
    for (uint32_t u = 0; u < s->n_used; u++) {
        uint32_t t = s->used[u];
        const view *v = &s->views[t];
        f->words[ONCE_STEPS + t] = pack((uint64_t)v->strides[s->rank - 1], s->rank > 1 ? (uint64_t)v->strides[s->rank - 2] : 0);
        put_address(f, v, t, ONCE_STEPS + f->n_tensors + t);
    }
    f->n_words = ONCE_STEPS + 2 * f->n_tensors;
}

/* The far part: extents, then step and strides by view, in the order of the views; the block was zeroed. */
static void put_far(filler *f, const space *s)
{
    uint32_t outer = (uint32_t)s->rank - 1;
    for (uint32_t d = 0; d < outer; d++)
        f->words[f->n_words++] = (uint64_t)s->dims[outer - 1 - d];
    for (uint32_t u = 0; u < s->n_used; u++) {
        const view *v = &s->views[s->used[u]];
        uint64_t *w = f->words + f->n_words + (f->mapped ? u : s->used[u]) * (1 + outer);
        for (uint32_t d = 0; d <= outer; d++)
            w[d] = (uint64_t)v->strides[outer - d];
    }
    f->n_words += (f->mapped ? s->n_used : f->n_tensors) * (1 + outer);
}

static void put_group(filler *f, const space *s)
{
    uint64_t *group = f->words + WORDS_HEAD + f->n_groups * f->header_words;
    uint32_t outer = (uint32_t)s->rank - 1;
    int64_t n_rows = rows_of(s), row = s->dims[s->rank - 1];
    int far = is_far(s, f->k), lanes = !far && has_lanes(f, s, n_rows) ? f->k->lanes : 1;
    uint64_t hoisted = hoisted_bits(s, f->k, n_rows), threads = choose_threads(f, (uint64_t)(row / lanes), (uint64_t)n_rows, hoisted != 0);
    f->n_groups++;
    /* A thread for every place: of one with fewer rows than the group, or of columns left over, the loops must see to the rest. */
    if (f->k->ahead && !f->mapped && outer < 2 && row % lanes == 0 && threads == pack((uint64_t)(row / lanes), (uint64_t)n_rows)) {
        put_once(f, s, lanes, threads);
        return;
    }
    group[GROUP_FLAGS] = pack((lanes > 1 ? GROUP_LANES : 0) | (far ? GROUP_FAR : 0), outer);
    group[GROUP_ROWS] = (uint64_t)n_rows;
    group[GROUP_ROW] = (uint64_t)row;
    group[GROUP_HOISTED] = hoisted;
    group[GROUP_BLOCKS] = pack(0, f->n_words);
    group[GROUP_THREADS] = threads;
    group[GROUP_DIVISION] = division_by((uint32_t)threads);
    if (f->mapped) {
        uint64_t *clusters = group + GROUP_CLUSTERS, *map = clusters + kernel_cluster_words(f->k);
        for (size_t i = 0; i < f->k->n_instructions; i++)
            clusters[f->k->cluster[i] / 64] |= (uint64_t)(s->active[i] != 0) << f->k->cluster[i] % 64;
        for (uint32_t u = 0; u < s->n_used; u++)
            map[s->used[u] / 4] |= (uint64_t)(MAP_PRESENT | u) << s->used[u] % 4 * 16;
    }
    for (uint32_t u = 0; u < s->n_used; u++)
        put_view(f, s, s->used[u], lanes, f->n_words + (f->mapped ? u : s->used[u]) * VIEW_WORDS);
    f->n_words += (f->mapped ? s->n_used : f->n_tensors) * VIEW_WORDS;
    group[GROUP_EXTENT] = pack(outer > 1 ? (uint64_t)s->dims[outer - 1] : 1, f->n_words);
    if (far)
        put_far(f, s);
}

/* Whether an input that a group's output overwrites may be read by another group: then one block does them one after another. */
static int must_take_turns(const ol_composite *c, const ol_tensor *inputs, const ol_tensor *outputs)
{
    for (int32_t o = 0; o < c->traced->n_outputs; o++)
        for (int32_t i = 0; i < c->traced->n_inputs; i++)
            if (outputs[o].data && outputs[o].data == inputs[i].data)
                return 1;
    return 0;
}

static geometry choose_grid(filler *f)
{
    const function_limits *l = f->limits;
    uint64_t *group = f->words + WORDS_HEAD;
    uint64_t block = (f->n_threads + l->n_multiprocessors - 1) / l->n_multiprocessors;
    uint32_t blocks = 0;
    if (f->in_turn)
        block = l->max_threads;
    block = lesser((block + WARP - 1) / WARP * WARP, f->once ? lesser(ONCE_BLOCK, l->max_threads) : l->max_threads);
    if (f->once)
        blocks = (uint32_t)((f->n_threads + block - 1) / block);
    for (uint32_t g = 0; g < f->n_groups && !f->once; g++, group += f->header_words) {
        uint64_t threads = (group[GROUP_THREADS] & UINT32_MAX) * (group[GROUP_THREADS] >> 32);
        blocks = f->in_turn ? 1 : blocks + (uint32_t)((threads + block - 1) / block);
        group[GROUP_BLOCKS] |= blocks;
    }
    return (geometry){ .grid = blocks, .block = (uint32_t)block, .n_words = f->n_words };
}

geometry geometry_of(const ol_composite *c, const kernel *k, const function_limits *limits, const ol_tensor *inputs, const ol_tensor *outputs,
                     int in_place, void *space_block, uint64_t *words, geometry_addresses *addresses)
{
    space s;
    uint32_t n_outputs = (uint32_t)c->traced->n_outputs;
    filler f = { .c = c, .k = k, .limits = limits, .words = words, .addresses = addresses, .header_words = GROUP_CLUSTERS };
    f.n_tensors = (uint32_t)c->traced->n_inputs + n_outputs;
    space_begin(&s, c, space_block);
    uint32_t n_groups = space_groups(&s, outputs);
    f.mapped = k->tier != KERNEL_FULL || n_groups > 1 || (space_of_group(&s, inputs, outputs, s.order, n_outputs, 1) && is_far(&s, k));
    f.in_turn = n_groups > 1 && in_place && must_take_turns(c, inputs, outputs);
    if (f.mapped)
        f.header_words += (uint32_t)(kernel_cluster_words(k) + kernel_map_words(f.n_tensors));
    addresses->n = 0;
    memset(words, 0, k->n_words * sizeof *words);
    f.n_words = WORDS_HEAD + n_groups * f.header_words;
    for (uint32_t first = 0, n; first < n_outputs; first += n) {
        n = n_groups > 1 ? space_group_size(&s, outputs, first) : n_outputs;
        if (space_of_group(&s, inputs, outputs, s.order + first, n, !f.mapped))
            put_group(&f, &s);
    }
    if (!f.once)
        words[WORDS_GROUPS] = f.mapped ? pack(f.n_groups, f.in_turn ? WORDS_IN_TURN : 0) : 0;
    return choose_grid(&f);
}
