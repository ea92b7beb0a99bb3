/* Views: broadcasting against NumPy's rules written out, and overlap against enumeration of every byte. */
#include "graph_cases.h"

#include "dtype.h"
#include "tensor.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Broadcasting ---- */

/* Element by element from the right; false where two extents differ and neither is 1. */
static int join_slowly(int32_t x_rank, const int64_t *x, int32_t y_rank, const int64_t *y, int32_t *rank, int64_t *out)
{
    *rank = x_rank > y_rank ? x_rank : y_rank;
    for (int32_t i = 0; i < *rank; i++) {
        int64_t a = i < x_rank ? x[x_rank - 1 - i] : 1, b = i < y_rank ? y[y_rank - 1 - i] : 1;
        if (a != b && a != 1 && b != 1)
            return 0;
        out[*rank - 1 - i] = a == 1 ? b : a;
    }
    return 1;
}

static void random_shape(uint64_t *random, int32_t *rank, int64_t *dims)
{
    static const int64_t extents[] = { 1, 1, 1, 2, 2, 3, 0 };
    *rank = (int32_t)random_below(random, OL_MAX_RANK + 1);
    for (int32_t d = 0; d < *rank; d++)
        dims[d] = extents[random_below(random, COUNT(extents))];
}

static void joining_shapes(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    int joined = 0;
    for (int i = 0; i < 50000; i++) {
        int64_t x[OL_MAX_RANK], y[OL_MAX_RANK], expected[OL_MAX_RANK];
        int32_t x_rank, y_rank, rank;
        random_shape(&random, &x_rank, x);
        random_shape(&random, &y_rank, y);
        if (i % 2)                                             /* related shapes, so that many do broadcast */
            for (int32_t d = 0; d < x_rank && d < y_rank; d++)
                if (random_below(&random, 4))
                    y[y_rank - 1 - d] = x[x_rank - 1 - d];
        int ok = join_slowly(x_rank, x, y_rank, y, &rank, expected);
        for (int order = 0; order < 2; order++) {
            shape s = { 0 };
            assert_true(shape_join(&s, order ? y_rank : x_rank, order ? y : x));
            assert_int_equal(shape_join(&s, order ? x_rank : y_rank, order ? x : y), ok);
            if (ok) {
                assert_int_equal(s.rank, rank);
                assert_memory_equal(s.dims, expected, (size_t)rank * sizeof *expected);
            }
        }
        joined += ok;
    }
    assert_in_range(joined, 5000, 45000);
}

static void counting_elements(void **state)
{
    (void)state;
    assert_int_equal(shape_elements(0, NULL), 1);
    assert_int_equal(shape_elements(3, SHAPE(2, 3, 4)), 24);
    assert_int_equal(shape_elements(3, SHAPE(1ll << 40, 0, 1ll << 40)), 0);
    assert_int_equal(shape_elements(2, SHAPE(1ll << 32, 1ll << 32)), -1);
    assert_int_equal(shape_elements(2, SHAPE(1ll << 31, 1ll << 31)), 1ll << 62);
}

static void contiguous_views(void **state)
{
    (void)state;
    float data;
    ol_tensor t = ol_tensor_contiguous(&data, OL_FLOAT32, 3, SHAPE(2, 3, 4));
    assert_int_equal(t.strides[0], 12);
    assert_int_equal(t.strides[1], 4);
    assert_int_equal(t.strides[2], 1);
    t = ol_tensor_contiguous(&data, OL_FLOAT32, 0, NULL);
    assert_int_equal(t.rank, 0);
    assert_ptr_equal(t.data, &data);
    for (int32_t rank = -1; rank <= 9; rank += 10) {           /* refused by every call, not silently cut */
        t = ol_tensor_contiguous(&data, OL_FLOAT32, rank, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1));
        ol_composite *c = compile_on(level_device(0), build_primitive, primitive_named("exp"), 1, DTYPES(OL_FLOAT32), 1);
        ol_error error;
        assert_fails(ol_output_shapes(c, &t, &(ol_tensor){ 0 }, &error), &error, OL_ERROR_ARGUMENT, "replay", "expected 0 to 8");
        ol_composite_destroy(c);
    }
}

/* ---- Overlap ---- */

enum { ARENA = 512 };

/* Calls through every element: counts visits of bytes. False if an element would leave the arena. */
static int mark_bytes(const ol_tensor *t, unsigned char *marks, const char *arena)
{
    int64_t index[OL_MAX_RANK] = { 0 }, size = (int64_t)dtype_sizes[t->dtype];
    for (int32_t d = 0; d < t->rank; d++)
        if (t->shape[d] == 0)
            return 1;
    for (;;) {
        int64_t at = (const char *)t->data - arena;
        int32_t d = t->rank - 1;
        for (int32_t k = 0; k < t->rank; k++)
            at += index[k] * t->strides[k] * size;
        if (at < 0 || at + size > ARENA)
            return 0;
        for (int64_t b = 0; b < size; b++)
            marks[at + b] += marks[at + b] < 255;
        for (; d >= 0 && ++index[d] == t->shape[d]; d--)
            index[d] = 0;
        if (d < 0)
            return 1;
    }
}

static ol_tensor random_view(uint64_t *random, char *arena)
{
    static const ol_dtype dtypes[] = { OL_UINT8, OL_FLOAT16, OL_FLOAT32, OL_INT64 };
    ol_tensor t = { .dtype = dtypes[random_below(random, 4)], .rank = (int32_t)random_below(random, 5) };
    for (int32_t d = 0; d < t.rank; d++) {
        t.shape[d] = (int64_t)random_below(random, 5) + (random_below(random, 20) != 0);
        t.strides[d] = (int64_t)random_below(random, 15) - 5;
    }
    t.data = arena + random_below(random, ARENA);
    return t;
}

static int empty(const ol_tensor *t)
{
    return shape_elements(t->rank, t->shape) == 0;
}

static void overlap_against_enumeration(void **state)
{
    (void)state;
    char *arena = calloc(ARENA, 1);
    uint64_t random = harness_seed;
    int n_pairs = 0, n_overlapping = 0, n_repeating = 0, n_views = 0;
    while (n_pairs < 20000) {
        unsigned char marks[2][ARENA] = { 0 };
        ol_tensor views[2];
        for (int i = 0; i < 2;) {
            views[i] = random_view(&random, arena);
            memset(marks[i], 0, ARENA);
            i += mark_bytes(&views[i], marks[i], arena) && !empty(&views[i]);
        }
        int shared = 0;
        for (int b = 0; b < ARENA; b++)
            shared |= marks[0][b] && marks[1][b];
        if (tensors_overlap(&views[0], &views[1]) != shared || tensors_overlap(&views[1], &views[0]) != shared)
            fail_msg("pair %d (seed %llu): views %s a byte, the library says otherwise", n_pairs, (unsigned long long)harness_seed, shared ? "share" : "do not share");
        for (int i = 0; i < 2; i++) {
            /* Elements of one view start at multiples of its size from each other: a byte visited twice is an element visited twice. */
            int repeats = 0;
            for (int b = 0; b < ARENA; b++)
                repeats |= marks[i][b] > 1;
            if (tensor_overlaps_itself(&views[i]) != repeats)
                fail_msg("pair %d, view %d (seed %llu): the view %s an element, the library says otherwise", n_pairs, i, (unsigned long long)harness_seed,
                         repeats ? "repeats" : "does not repeat");
            n_repeating += repeats;
            n_views++;
        }
        n_overlapping += shared;
        n_pairs++;
    }
    assert_in_range(n_overlapping, n_pairs / 20, n_pairs - n_pairs / 20);
    assert_in_range(n_repeating, n_views / 20, n_views - n_views / 20);
    free(arena);
}

static int build_two(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_negative(g, in[0]);
    out[1] = ol_square(g, in[0]);
    return 0;
}

static void interleaved_columns_are_apart(void **state)
{
    (void)state;
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *c = compile_on(level_device(level), build_two, NULL, 1, DTYPES(OL_FLOAT32), 2);
        float matrix[6][3];
        ol_tensor in = strided(&matrix[0][0], OL_FLOAT32, 1, SHAPE(6), SHAPE(3));
        ol_tensor out[2] = { strided(&matrix[0][1], OL_FLOAT32, 1, SHAPE(6), SHAPE(3)), strided(&matrix[5][2], OL_FLOAT32, 1, SHAPE(6), SHAPE(-3)) };
        ol_error error;
        for (int path = 0; path < 2; path++) {
            for (int i = 0; i < 6; i++)
                matrix[i][0] = (float)(i + 1);
            assert_ok(replay_paths[path](c, NULL, &in, out, &error), &error);
            for (int i = 0; i < 6; i++)
                assert_true(matrix[i][0] == (float)(i + 1) && matrix[i][1] == -matrix[i][0] && matrix[5 - i][2] == matrix[i][0] * matrix[i][0]);
        }
        ol_composite_destroy(c);
    }
}

typedef struct overlap_case {
    const char *what, *text;                       /* NULL: allowed */
    int64_t in_start, out_start[2], in_stride, out_stride[2];
} overlap_case;

static void which_overlaps_are_refused(void **state)
{
    (void)state;
    static const overlap_case cases[] = {
        { "apart", NULL, 0, { 10, 20 }, 1, { 1, 1 } },
        { "neighbours", NULL, 0, { 4, 8 }, 1, { 1, 1 } },
        { "output 0 in place", NULL, 0, { 0, 8 }, 1, { 1, 1 } },
        { "output 1 in place", NULL, 0, { 8, 0 }, 1, { 1, 1 } },
        { "in place, strided", NULL, 0, { 0, 1 }, 2, { 2, 2 } },
        { "both in place", "output 1 overlaps output 0", 0, { 0, 0 }, 1, { 1, 1 } },
        { "shifted by one", "output 0 overlaps input 0", 0, { 1, 10 }, 1, { 1, 1 } },
        { "shifted back", "output 1 overlaps input 0", 4, { 10, 1 }, 1, { 1, 1 } },
        { "reversed", "output 0 overlaps input 0", 0, { 3, 10 }, 1, { -1, 1 } },
        { "other stride", "output 0 overlaps input 0", 0, { 0, 10 }, 1, { 2, 1 } },
        { "outputs", "output 1 overlaps output 0", 0, { 10, 13 }, 1, { 1, 1 } },
        { "outputs, interleaved", NULL, 0, { 10, 11 }, 1, { 2, 2 } },
        { "repeated", "output 1 repeats an element", 0, { 10, 20 }, 1, { 1, 0 } },
    };
    ol_composite *c = compile_on(level_device(0), build_two, NULL, 1, DTYPES(OL_FLOAT32), 2);
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int path = 0; path < 2; path++) {
            const overlap_case *k = &cases[i];
            float data[32], before[32];
            for (int b = 0; b < 32; b++)
                data[b] = before[b] = (float)b;
            ol_tensor in = strided(data + k->in_start, OL_FLOAT32, 1, SHAPE(4), &k->in_stride), out[2];
            for (int o = 0; o < 2; o++)
                out[o] = strided(data + k->out_start[o], OL_FLOAT32, 1, SHAPE(4), &k->out_stride[o]);
            ol_error error = { 0 };
            ol_status status = replay_paths[path](c, NULL, &in, out, &error);
            if (k->text) {
                assert_fails(status, &error, OL_ERROR_OVERLAP, "replay", k->text);
                assert_memory_equal(data, before, sizeof data);
                continue;
            }
            if (status != OL_OK)
                fail_msg("%s: %s", k->what, error.description);
            for (int64_t e = 0; e < 4; e++) {
                float x = before[k->in_start + e * k->in_stride];
                assert_true(data[k->out_start[0] + e * k->out_stride[0]] == -x && data[k->out_start[1] + e * k->out_stride[1]] == x * x);
            }
        }
    ol_composite_destroy(c);
}

static void identical_views(void **state)
{
    (void)state;
    float data[8];
    ol_tensor a = strided(data, OL_FLOAT32, 2, SHAPE(1, 4), SHAPE(77, 1)), b = strided(data, OL_FLOAT32, 2, SHAPE(1, 4), SHAPE(4, 1));
    assert_true(tensors_identical(&a, &b));                    /* the stride of an extent of 1 leads nowhere */
    b.dtype = OL_INT32;
    assert_false(tensors_identical(&a, &b));
    b = a;
    b.data = data + 1;
    assert_false(tensors_identical(&a, &b));
    b = a;
    b.strides[1] = 2;
    assert_false(tensors_identical(&a, &b));
    b = strided(data, OL_FLOAT32, 1, SHAPE(4), SHAPE(1));
    assert_false(tensors_identical(&a, &b));
}

/* More tensors than the check holds on the stack: sorted and swept instead, with the same verdicts. */
enum { MANY = 80 };

static int build_many(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    for (int i = 0; i < MANY; i++)
        out[i] = ol_negative(g, in[i]);
    return 0;
}

static void overlap_among_many_tensors(void **state)
{
    (void)state;
    ol_dtype dtypes[MANY];
    ol_tensor in[MANY], out[MANY];
    float (*data)[4] = calloc(2 * MANY, sizeof *data);
    for (int i = 0; i < MANY; i++) {
        dtypes[i] = OL_FLOAT32;
        in[i] = vector_of(data[(i * 37) % MANY], OL_FLOAT32, 4);
        out[i] = vector_of(data[MANY + (i * 53) % MANY], OL_FLOAT32, 4);
    }
    ol_composite *c = compile_on(level_device(0), build_many, NULL, MANY, dtypes, MANY);
    ol_error error;
    assert_ok(ol_replay(c, NULL, in, out, &error), &error);
    for (int i = 0; i < MANY; i += 13) {
        ol_tensor good = out[i];
        out[i] = in[i];
        assert_ok(ol_replay(c, NULL, in, out, &error), &error);
        out[i] = vector_of((char *)in[i].data + 4, OL_FLOAT32, 3);
        out[i].shape[0] = 4;
        out[i].strides[0] = -1;                                /* three of the input's elements, backwards, and one of its neighbour's */
        char text[64];
        assert_int_equal(ol_replay(c, NULL, in, out, &error), OL_ERROR_OVERLAP);
        out[i] = out[(i + 1) % MANY];
        snprintf(text, sizeof text, "output %d overlaps output %d", i + 1 < MANY ? i + 1 : i, i + 1 < MANY ? i : 0);
        assert_fails(ol_replay(c, NULL, in, out, &error), &error, OL_ERROR_OVERLAP, "replay", text);
        out[i] = good;
    }
    ol_composite_destroy(c);
    free(data);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joining_shapes), cmocka_unit_test(counting_elements), cmocka_unit_test(contiguous_views),
        cmocka_unit_test(overlap_against_enumeration), cmocka_unit_test(interleaved_columns_are_apart), cmocka_unit_test(which_overlaps_are_refused),
        cmocka_unit_test(identical_views), cmocka_unit_test(overlap_among_many_tensors),
    };
    return HARNESS_RUN(argc, argv, tests);
}
