/* Bits do not depend on where elements lie: any strides, alignment, order of dimensions, length, thread count and level give
 * the bits of a contiguous replay at the first level; and nothing but the outputs' elements is written. */
#include "graph_cases.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Tensors in odd places ---- */

typedef struct placed {
    ol_tensor view;
    char *block;                               /* guarded, of n_bytes */
    size_t n_bytes;
} placed;

static size_t count_of(int32_t rank, const int64_t *shape)
{
    size_t n = 1;
    for (int32_t d = 0; d < rank; d++)
        n *= (size_t)shape[d];
    return n;
}

/* The address of element `flat`, counted in row-major order. */
static char *element_at(const ol_tensor *t, size_t flat)
{
    int64_t at = 0;
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        at += (int64_t)(flat % (size_t)t->shape[d]) * t->strides[d];
        flat /= (size_t)t->shape[d];
    }
    return (char *)t->data + at * (int64_t)ol_dtype_size(t->dtype);
}

typedef enum manner { DENSE, MISALIGNED, GAPPED, REVERSED, TRANSPOSED, RANDOM, N_MANNERS } manner;
static const char *const manner_names[] = { "dense", "misaligned", "gapped", "reversed", "transposed", "random" };

/* Memory for a tensor of this shape: dimensions in some order, with gaps, some of them walked backwards. */
static placed place(uint64_t *random, manner how, ol_dtype dtype, int32_t rank, const int64_t *shape)
{
    placed p = { .view = { .dtype = dtype, .rank = rank } };
    size_t size = ol_dtype_size(dtype), misalignment = how == MISALIGNED ? 1 : how == RANDOM ? random_below(random, 8) : 0;
    int32_t order[OL_MAX_RANK];
    int64_t extent = 1, start = 0;
    for (int32_t d = 0; d < rank; d++)
        order[d] = how == TRANSPOSED ? d : rank - 1 - d;       /* innermost first */
    for (int32_t d = rank - 1; how == RANDOM && d > 0; d--) {
        int32_t other = (int32_t)random_below(random, (uint64_t)d + 1), t = order[d];
        order[d] = order[other];
        order[other] = t;
    }
    for (int32_t i = 0; i < rank; i++) {
        int32_t d = order[i];
        int64_t gap = how == GAPPED ? 2 + (i == 0) : how == RANDOM ? 1 + (int64_t)random_below(random, 3) : 1, stride = extent * gap;
        int backwards = how == REVERSED || (how == RANDOM && random_below(random, 3) == 0);
        p.view.shape[d] = shape[d];
        p.view.strides[d] = backwards ? -stride : stride;
        if (shape[d] > 0) {
            start += backwards ? (shape[d] - 1) * stride : 0;
            extent = stride * (shape[d] - 1) + extent;
        }
    }
    p.n_bytes = (size_t)extent * size + misalignment;          /* the bytes before the first element are a gap, too */
    p.block = guarded_alloc(p.n_bytes, 0);
    p.view.data = p.block + misalignment + (size_t)start * size;
    return p;
}

/* Fails unless the elements are these and the bytes between them still 0xA5. */
static void check_all(const placed *p, const uint64_t *expected, const char *what)
{
    size_t n = count_of(p->view.rank, p->view.shape), size = ol_dtype_size(p->view.dtype);
    char *copy = malloc(p->n_bytes + 1);
    guarded_check(p->block);
    memcpy(copy, p->block, p->n_bytes);
    for (size_t i = 0; i < n; i++) {
        char *at = element_at(&p->view, i);
        if (memcmp(at, &expected[i], size) != 0) {
            uint64_t got = 0;
            memcpy(&got, at, size);
            fail_msg("%s: element %zu of %zu is %llx, expected %llx", what, i, n, (unsigned long long)got, (unsigned long long)expected[i]);
        }
        memset(copy + (at - p->block), 0xA5, size);
    }
    for (size_t i = 0; i < p->n_bytes; i++)
        if ((unsigned char)copy[i] != 0xA5)
            fail_msg("%s: byte %zu, in a gap between elements, was written", what, i);
    free(copy);
}

/* ---- Graphs ---- */

typedef struct subject {
    const char *name;
    ol_build build;
    void *user;
    int32_t n_inputs, n_outputs;
    ol_dtype dtypes[3];
} subject;

static int build_rates(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    ol_value rate = ol_exp(g, ol_astype(g, in[1], OL_FLOAT32));
    out[0] = ol_exp(g, ol_negative(g, ol_multiply(g, rate, ol_softplus(g, ol_add(g, in[0], in[2])))));
    return 0;
}

static const subject subjects[] = {
    { "mixed", build_mixed, NULL, 3, 5, { OL_FLOAT32, OL_BFLOAT16, OL_INT8 } },
    { "mixed 16", build_mixed, NULL, 3, 5, { OL_FLOAT16, OL_FLOAT16, OL_FLOAT16 } },
    { "rates", build_rates, NULL, 3, 1, { OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16 } },
};

/* The elements of every tensor of a call, in row-major order of the full shape, and the bits a contiguous call gives. */
typedef struct reference {
    uint64_t *in[3], *out[5];
    size_t n;
} reference;

static void reference_end(reference *r)
{
    for (int i = 0; i < 3; i++)
        free(r->in[i]);
    for (int i = 0; i < 5; i++)
        free(r->out[i]);
}

/* `broadcast`: a shape for each input, rank as the full one, extents the full ones or 1. */
static reference reference_begin(const subject *s, uint64_t *random, int32_t rank, const int64_t *shape, int64_t (*broadcast)[OL_MAX_RANK])
{
    reference r = { .n = count_of(rank, shape) };
    ol_tensor in[3], out[5];
    ol_error error;
    ol_composite *c = compile_on(level_device(0), s->build, s->user, s->n_inputs, s->dtypes, s->n_outputs);
    for (int i = 0; i < s->n_inputs; i++) {
        r.in[i] = malloc((r.n + 1) * sizeof(uint64_t));
        char *dense = guarded_alloc(r.n * ol_dtype_size(s->dtypes[i]), 0);
        for (size_t e = 0; e < r.n; e++) {
            size_t flat = e, source = 0, scale = 1;            /* the element this one repeats */
            for (int32_t d = rank - 1; d >= 0; d--) {
                size_t at = flat % (size_t)shape[d];
                flat /= (size_t)shape[d];
                if (broadcast[i][d] != 1)
                    source += at * scale;
                scale *= (size_t)shape[d];
            }
            r.in[i][e] = source < e ? r.in[i][source] : random_element(random, s->dtypes[i]);
            element_store(dense, s->dtypes[i], e, r.in[i][e]);
        }
        in[i] = vector_of(dense, s->dtypes[i], (int64_t)r.n);
    }
    for (int o = 0; o < s->n_outputs; o++)
        out[o] = vector_of(guarded_alloc(r.n * ol_dtype_size(ol_composite_output_dtype(c, o)), 0), ol_composite_output_dtype(c, o), (int64_t)r.n);
    assert_ok(ol_replay(c, NULL, in, out, &error), &error);
    for (int o = 0; o < s->n_outputs; o++) {
        r.out[o] = malloc((r.n + 1) * sizeof(uint64_t));
        for (size_t e = 0; e < r.n; e++)
            r.out[o][e] = element_load(out[o].data, out[o].dtype, e);
        guarded_free(out[o].data);
    }
    for (int i = 0; i < s->n_inputs; i++)
        guarded_free(in[i].data);
    ol_composite_destroy(c);
    return r;
}

/* A view of an input's own elements: those of the reference where every broadcast index is 0. */
static placed place_input(uint64_t *random, manner how, const subject *s, const reference *r, int i, int32_t rank, const int64_t *shape, const int64_t *own)
{
    placed p = place(random, how, s->dtypes[i], rank, own);
    for (size_t e = 0; e < count_of(rank, own); e++) {
        size_t flat = e, full = 0, scale = 1;
        for (int32_t d = rank - 1; d >= 0; d--) {
            full += flat % (size_t)own[d] * scale;
            flat /= (size_t)own[d];
            scale *= (size_t)shape[d];
        }
        memcpy(element_at(&p.view, e), &r->in[i][full], ol_dtype_size(s->dtypes[i]));
    }
    /* Half of the broadcasts are written as a stride of 0 over the whole extent instead of an extent of 1. */
    for (int32_t d = 0; d < rank; d++)
        if (own[d] == 1 && shape[d] != 1 && random_below(random, 2)) {
            p.view.shape[d] = shape[d];
            p.view.strides[d] = 0;
        }
    return p;
}

static void check_layout(ol_device *device, const subject *s, const reference *r, uint64_t *random, manner how, int32_t rank, const int64_t *shape,
                         int64_t (*broadcast)[OL_MAX_RANK], int path)
{
    char what[160];
    placed in[3], out[5];
    ol_tensor in_views[3], out_views[5];
    ol_error error;
    ol_composite *c = compile_on(device, s->build, s->user, s->n_inputs, s->dtypes, s->n_outputs);
    for (int i = 0; i < s->n_inputs; i++) {
        in[i] = place_input(random, how, s, r, i, rank, shape, broadcast[i]);
        in_views[i] = in[i].view;
    }
    for (int o = 0; o < s->n_outputs; o++) {
        out[o] = place(random, how, ol_composite_output_dtype(c, o), rank, shape);
        out_views[o] = out[o].view;
    }
    uint64_t before = ol_device_launches(device);
    assert_ok(replay_paths[path](c, NULL, in_views, out_views, &error), &error);
    if (path == 0 && r->n > 0)
        assert_int_equal(ol_device_launches(device) - before, 1);
    for (int o = 0; o < s->n_outputs; o++) {
        snprintf(what, sizeof what, "%s, %s, %s, %s, rank %d [%lld, %lld, %lld], output %d", s->name, ol_device_level(device), path_names[path], manner_names[how],
                 (int)rank, (long long)shape[0], rank > 1 ? (long long)shape[1] : 0, rank > 2 ? (long long)shape[2] : 0, o);
        check_all(&out[o], r->out[o], what);
        guarded_free(out[o].block);
    }
    for (int i = 0; i < s->n_inputs; i++)
        guarded_free(in[i].block);
    ol_composite_destroy(c);
}

static void no_broadcast(int32_t rank, const int64_t *shape, int64_t (*broadcast)[OL_MAX_RANK])
{
    for (int i = 0; i < 3; i++)
        memcpy(broadcast[i], shape, (size_t)rank * sizeof *shape);
}

/* ---- Tests ---- */

static void lengths_around_vectors_and_tiles(void **state)
{
    (void)state;
    static const int64_t lengths[] = { 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 4097 };
    uint64_t random = harness_seed;
    for (size_t k = 0; k < COUNT(subjects); k++)
        for (size_t l = 0; l < COUNT(lengths); l++) {
            int64_t broadcast[3][OL_MAX_RANK];
            no_broadcast(1, &lengths[l], broadcast);
            reference r = reference_begin(&subjects[k], &random, 1, &lengths[l], broadcast);
            for (size_t level = 0; level < level_count(); level++)
                for (manner how = DENSE; how < N_MANNERS; how++)
                    for (int path = 0; path < (l % 4 == 0 ? 2 : 1); path++)
                        check_layout(level_device(level), &subjects[k], &r, &random, how, 1, &lengths[l], broadcast, path);
            reference_end(&r);
        }
}

static void matrices_in_every_manner(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = { { 1, 1 }, { 1, 40 }, { 40, 1 }, { 3, 5 }, { 17, 33 }, { 33, 17 }, { 2, 513 }, { 513, 2 }, { 16, 64 }, { 5, 700 }, { 0, 7 }, { 7, 0 } };
    uint64_t random = harness_seed;
    for (size_t k = 0; k < COUNT(subjects); k++)
        for (size_t s = 0; s < COUNT(shapes); s++)
            for (int broadcasts = 0; broadcasts < 4; broadcasts++) {
                int64_t broadcast[3][OL_MAX_RANK];
                no_broadcast(2, shapes[s], broadcast);
                for (int i = 1; i < 3; i++)                    /* the last inputs: whole, a row, a column, a scalar */
                    for (int d = 0; d < 2; d++)
                        if (broadcasts >> d & 1 && shapes[s][d] != 0)
                            broadcast[i][d] = 1;
                reference r = reference_begin(&subjects[k], &random, 2, shapes[s], broadcast);
                for (size_t level = 0; level < level_count(); level++)
                    for (manner how = DENSE; how < N_MANNERS; how++)
                        check_layout(level_device(level), &subjects[k], &r, &random, how, 2, shapes[s], broadcast, how == RANDOM && level == 0);
                reference_end(&r);
            }
}

static void random_ranks_and_broadcasts(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    for (int round = 0; round < 300; round++) {
        const subject *s = &subjects[random_below(&random, COUNT(subjects))];
        int64_t shape[OL_MAX_RANK] = { 0 }, broadcast[3][OL_MAX_RANK];
        int32_t rank = (int32_t)random_below(&random, OL_MAX_RANK + 1);
        for (int32_t d = 0; d < rank; d++)
            shape[d] = 1 + (int64_t)random_below(&random, rank < 4 ? 6 : 3);
        if (rank > 0 && random_below(&random, 4) == 0)
            shape[random_below(&random, (uint64_t)rank)] = 1 + (int64_t)random_below(&random, 600);
        no_broadcast(rank, shape, broadcast);
        for (int i = 1; i < 3; i++)
            for (int32_t d = 0; d < rank; d++)
                if (random_below(&random, 3) == 0)
                    broadcast[i][d] = 1;
        reference r = reference_begin(s, &random, rank, shape, broadcast);
        for (size_t level = 0; level < level_count(); level++)
            check_layout(level_device(level), s, &r, &random, RANDOM, rank, shape, broadcast, round % 8 == 0);
        reference_end(&r);
    }
}

static void primitive_in_odd_places(int32_t p, int32_t arity, const ol_dtype *dtypes, void *user)
{
    static const int64_t shapes[][3] = { { 2, 3, 7 }, { 1, 1, 45 }, { 1, 21, 2 } };
    uint64_t *random = user;
    subject s = { ol_primitive_name(p), build_primitive, PRIMITIVE_USER(p), arity, 1, { dtypes[0], arity > 1 ? dtypes[1] : 0, arity > 2 ? dtypes[2] : 0 } };
    for (size_t k = 0; k < COUNT(shapes); k++) {
        int64_t broadcast[3][OL_MAX_RANK];
        no_broadcast(3, shapes[k], broadcast);
        if (arity > 1 && k == 0)
            broadcast[1][1] = 1;
        reference r = reference_begin(&s, random, 3, shapes[k], broadcast);
        for (size_t level = 0; level < level_count(); level++)
            for (manner how = MISALIGNED; how < N_MANNERS; how++)
                check_layout(level_device(level), &s, &r, random, how, 3, shapes[k], broadcast, 0);
        reference_end(&r);
    }
}

static void every_primitive_in_odd_places(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    each_primitive(primitive_in_odd_places, &random);
}

/* An output that is exactly an input, in any layout, while another input is broadcast. */
static void in_place(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = { { 1, 1 }, { 1, 33 }, { 7, 33 }, { 33, 7 }, { 3, 600 }, { 1, 1500 }, { 600, 3 } };
    static const subject s = { "in place", build_rates, NULL, 3, 1, { OL_FLOAT32, OL_FLOAT32, OL_FLOAT32 } };
    uint64_t random = harness_seed;
    for (size_t k = 0; k < COUNT(shapes); k++)
        for (int which = 0; which < 3; which++) {
            int64_t broadcast[3][OL_MAX_RANK];
            no_broadcast(2, shapes[k], broadcast);
            broadcast[(which + 1) % 3][0] = 1;
            reference r = reference_begin(&s, &random, 2, shapes[k], broadcast);
            for (size_t level = 0; level < level_count(); level++)
                for (manner how = DENSE; how < N_MANNERS; how++)
                    for (int path = 0; path < 2; path++) {
                        placed in[3];
                        ol_tensor views[3];
                        ol_error error;
                        ol_composite *c = compile_on(level_device(level), s.build, s.user, 3, s.dtypes, 1);
                        for (int i = 0; i < 3; i++) {
                            in[i] = place_input(&random, how, &s, &r, i, 2, shapes[k], broadcast[i]);
                            views[i] = in[i].view;
                        }
                        assert_ok(replay_paths[path](c, NULL, views, &views[which], &error), &error);
                        check_all(&in[which], r.out[0], manner_names[how]);
                        for (int i = 0; i < 3; i++)
                            guarded_free(in[i].block);
                        ol_composite_destroy(c);
                    }
            reference_end(&r);
        }
}

/* Two outputs in place of two inputs that the other output reads too: nothing is overwritten before its last reader. */
static int build_swap(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)g, (void)user;
    out[0] = in[1];
    out[1] = in[0];
    return 0;
}

static void outputs_swap_their_inputs(void **state)
{
    (void)state;
    static const int64_t lengths[] = { 1, 16, 100, 512, 513, 3000, 300000 };
    ol_device *threaded = NULL;
    ol_error error;
    assert_ok(ol_device_cpu(&(ol_cpu_options){ .n_threads = 4, .parallel_for = host_parallel_for }, &threaded, &error), &error);
    for (size_t l = 0; l < COUNT(lengths); l++)
        for (size_t level = 0; level <= level_count(); level++)
            for (int path = 0; path < 2; path++) {
                size_t n = (size_t)lengths[l];
                uint16_t *x = guarded_alloc(2 * n, 0), *y = guarded_alloc(2 * n, 0);
                for (size_t i = 0; i < n; i++) {
                    x[i] = (uint16_t)i;
                    y[i] = (uint16_t)(i * 3 + 1);
                }
                ol_composite *c = compile_on(level < level_count() ? level_device(level) : threaded, build_swap, NULL, 2, DTYPES(OL_UINT16, OL_UINT16), 2);
                ol_tensor t[2] = { vector_of(x, OL_UINT16, lengths[l]), vector_of(y, OL_UINT16, lengths[l]) };
                assert_ok(replay_paths[path](c, NULL, t, t, &error), &error);
                for (size_t i = 0; i < n; i++)
                    assert_true(x[i] == (uint16_t)(i * 3 + 1) && y[i] == (uint16_t)i);
                ol_composite_destroy(c);
                guarded_free(x);
                guarded_free(y);
            }
    ol_device_destroy(threaded);
}

/* An output in place of an input that an output of a larger shape reads, too: the larger one must be computed first. */
static int build_small_and_large(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    int small = (int)(intptr_t)user;                           /* which output is the small one */
    out[small] = ol_negative(g, in[1]);
    out[!small] = ol_add(g, in[0], in[1]);
    return 0;
}

static void in_place_of_what_a_larger_output_reads(void **state)
{
    (void)state;
    static const int64_t rows[] = { 2, 5, 40, 3000 };
    enum { HEADS = 32 };
    for (size_t r = 0; r < COUNT(rows); r++)
        for (intptr_t small = 0; small < 2; small++)
            for (size_t level = 0; level < level_count(); level++)
                for (int path = 0; path < 2; path++) {
                    size_t n = (size_t)rows[r] * HEADS;
                    int32_t *large = guarded_alloc(4 * n, 0), *sum = guarded_alloc(4 * n, 0), *head = guarded_alloc(4 * HEADS, 0);
                    for (size_t i = 0; i < n; i++)
                        large[i] = (int32_t)i;
                    for (int h = 0; h < HEADS; h++)
                        head[h] = 1000000 * (h + 1);
                    ol_composite *c = compile_on(level_device(level), build_small_and_large, (void *)small, 2, DTYPES(OL_INT32, OL_INT32), 2);
                    ol_tensor in[2] = { ol_tensor_contiguous(large, OL_INT32, 2, SHAPE(rows[r], HEADS)), vector_of(head, OL_INT32, HEADS) }, out[2];
                    ol_error error;
                    out[small] = in[1];
                    out[!small] = in[0];
                    out[!small].data = sum;
                    assert_ok(replay_paths[path](c, NULL, in, out, &error), &error);
                    for (size_t i = 0; i < n; i++)
                        assert_int_equal(sum[i], (int32_t)i + 1000000 * (int32_t)(i % HEADS + 1));
                    for (int h = 0; h < HEADS; h++)
                        assert_int_equal(head[h], -1000000 * (h + 1));
                    ol_composite_destroy(c);
                    guarded_free(large);
                    guarded_free(sum);
                    guarded_free(head);
                }
}

/* One, two and eight threads of the library's own, and the host's, over replays of one long row, many rows, and odd layouts. */
static void any_number_of_threads(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = { { 1, 60001 }, { 60001, 1 }, { 2001, 37 }, { 37, 2001 } };
    atomic_size_t n_tasks = 0;
    const ol_cpu_options options[] = { { .n_threads = 1 }, { .n_threads = 2 }, { .n_threads = 8 }, { .n_threads = 8, .parallel_for = host_parallel_for, .parallel_user = &n_tasks } };
    uint64_t random = harness_seed;
    for (size_t k = 0; k < COUNT(shapes); k++) {
        const subject *s = &subjects[k % COUNT(subjects)];
        int64_t broadcast[3][OL_MAX_RANK];
        no_broadcast(2, shapes[k], broadcast);
        broadcast[1][0] = 1;
        reference r = reference_begin(s, &random, 2, shapes[k], broadcast);
        for (size_t o = 0; o < COUNT(options); o++) {
            ol_device *device;
            ol_error error;
            size_t tasks_before = n_tasks;
            assert_ok(ol_device_cpu(&options[o], &device, &error), &error);
            check_layout(device, s, &r, &random, DENSE, 2, shapes[k], broadcast, 0);
            check_layout(device, s, &r, &random, RANDOM, 2, shapes[k], broadcast, 0);
            check_layout(device, s, &r, &random, DENSE, 2, shapes[k], broadcast, 1);
            if (options[o].parallel_for)
                assert_true(n_tasks > tasks_before + 2);       /* it was split: the test tests something */
            ol_device_destroy(device);
        }
        reference_end(&r);
    }
}

/* Decode-sized replays stay on the caller's thread. */
static void small_replays_do_not_call_the_host(void **state)
{
    (void)state;
    atomic_size_t n_tasks = 0;
    ol_cpu_options options = { .n_threads = 8, .parallel_for = host_parallel_for, .parallel_user = &n_tasks };
    ol_device *device;
    ol_error error;
    assert_ok(ol_device_cpu(&options, &device, &error), &error);
    uint64_t random = harness_seed;
    int64_t shape[] = { 1, 64 }, broadcast[3][OL_MAX_RANK];
    no_broadcast(2, shape, broadcast);
    reference r = reference_begin(&subjects[0], &random, 2, shape, broadcast);
    check_layout(device, &subjects[0], &r, &random, DENSE, 2, shape, broadcast, 0);
    assert_int_equal(n_tasks, 0);
    reference_end(&r);
    ol_device_destroy(device);
}

/* Graphs with more values alive than the stack has room for take small tiles and prepared scratch. */
enum { WIDE = 700 };

static int build_wide(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    ol_value values[WIDE], sum;
    for (int i = 0; i < WIDE; i++)
        values[i] = ol_multiply(g, in[0], ol_constant(g, OL_FLOAT32, i + 1));
    sum = values[WIDE - 1];
    for (int i = WIDE - 2; i >= 0; i--)
        sum = ol_subtract(g, values[i], sum);
    out[0] = sum;
    return 0;
}

static void more_registers_than_the_stack_holds(void **state)
{
    (void)state;
    static const subject s = { "wide", build_wide, NULL, 1, 1, { OL_FLOAT32 } };
    static const int64_t lengths[] = { 1, 15, 16, 17, 64, 65, 1000 };
    uint64_t random = harness_seed;
    for (size_t l = 0; l < COUNT(lengths); l++) {
        int64_t broadcast[3][OL_MAX_RANK];
        no_broadcast(1, &lengths[l], broadcast);
        reference r = reference_begin(&s, &random, 1, &lengths[l], broadcast);
        for (size_t level = 0; level < level_count(); level++)
            for (int path = 0; path < 2; path++)
                check_layout(level_device(level), &s, &r, &random, RANDOM, 1, &lengths[l], broadcast, path);
        reference_end(&r);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_around_vectors_and_tiles), cmocka_unit_test(matrices_in_every_manner), cmocka_unit_test(random_ranks_and_broadcasts),
        cmocka_unit_test(every_primitive_in_odd_places), cmocka_unit_test(in_place), cmocka_unit_test(outputs_swap_their_inputs),
        cmocka_unit_test(in_place_of_what_a_larger_output_reads),
        cmocka_unit_test(any_number_of_threads), cmocka_unit_test(small_replays_do_not_call_the_host), cmocka_unit_test(more_registers_than_the_stack_holds),
    };
    return HARNESS_RUN(argc, argv, tests);
}
