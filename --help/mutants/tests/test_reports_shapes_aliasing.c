/* Public bug reports against fusers of elementwise graphs, replayed here: the rows on shapes and aliasing, A41 to A49 and A78. */
#include "graph_cases.h"

#include <stdlib.h>

#define BUILDER(name) static int name(ol_graph *g, const ol_value *in, ol_value *out, void *user)

BUILDER(build_multiply)
{
    (void)user;
    out[0] = ol_multiply(g, in[0], in[1]);
    return 0;
}

BUILDER(build_add)
{
    (void)user;
    out[0] = ol_add(g, in[0], in[1]);
    return 0;
}

static void A41_a_stride_of_zero_repeats_the_element(void **state)
{
    (void)state;
    float three = 3, dense[4] = { 1, 1, 1, 1 }, out[4];
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *c = compile_on(level_device(level), build_multiply, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 1);
        ol_tensor in[2] = { strided(&three, OL_FLOAT32, 1, SHAPE(4), SHAPE(0)), vector_of(dense, OL_FLOAT32, 4) }, result = vector_of(out, OL_FLOAT32, 4);
        ol_error error;
        for (int path = 0; path < 2; path++) {
            memset(out, 0xA5, sizeof out);
            assert_ok(replay_paths[path](c, NULL, in, &result, &error), &error);
            for (int i = 0; i < 4; i++)
                assert_true(out[i] == 3.0f);
        }
        ol_composite_destroy(c);
    }
}

/* One composite, x * y for shapes that broadcast; each element checked by index. */
static void check_product(const ol_composite *c, const int64_t *x_shape, const int64_t *y_shape, int path)
{
    float x[64], y[64], out[64];
    for (int i = 0; i < 64; i++) {
        x[i] = (float)(i + 1);
        y[i] = (float)(i + 65);
    }
    ol_tensor in[2] = { ol_tensor_contiguous(x, OL_FLOAT32, 2, x_shape), ol_tensor_contiguous(y, OL_FLOAT32, 2, y_shape) }, result = { .data = out };
    ol_error error;
    assert_ok(ol_output_shapes(c, in, &result, &error), &error);
    assert_ok(replay_paths[path](c, NULL, in, &result, &error), &error);
    for (int64_t r = 0; r < result.shape[0]; r++)
        for (int64_t k = 0; k < result.shape[1]; k++) {
            float left = x[(x_shape[0] == 1 ? 0 : r) * x_shape[1] + (x_shape[1] == 1 ? 0 : k)];
            float right = y[(y_shape[0] == 1 ? 0 : r) * y_shape[1] + (y_shape[1] == 1 ? 0 : k)];
            assert_true(out[r * result.shape[1] + k] == left * right);
        }
    assert_int_equal(result.shape[0], x_shape[0] == 1 ? y_shape[0] : x_shape[0]);
    assert_int_equal(result.shape[1], x_shape[1] == 1 ? y_shape[1] : x_shape[1]);
}

static void A42_a_size_that_happens_to_be_one_broadcasts(void **state)
{
    (void)state;
    static const int64_t shapes[][2][2] = { { { 1, 4 }, { 2, 4 } }, { { 2, 4 }, { 1, 4 } }, { { 2, 4 }, { 2, 4 } }, { { 1, 4 }, { 1, 4 } },
                                            { { 4, 1 }, { 1, 4 } }, { { 1, 1 }, { 2, 4 } } };
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *c = compile_on(level_device(level), build_multiply, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 1);
        for (size_t i = 0; i < 2 * COUNT(shapes); i++)
            for (int path = 0; path < 2; path++)
                check_product(c, shapes[i % COUNT(shapes)][0], shapes[i % COUNT(shapes)][1], path);
        ol_composite_destroy(c);
    }
}

BUILDER(build_two_shapes)
{
    (void)user;
    out[0] = ol_multiply(g, in[0], ol_constant(g, OL_FLOAT32, 2));
    out[1] = ol_multiply(g, in[1], ol_constant(g, OL_FLOAT32, 3));
    out[2] = in[1];
    out[3] = ol_add(g, in[0], in[1]);
    return 0;
}

static void A43_outputs_keep_their_own_shapes(void **state)
{
    (void)state;
    float a[8], b[4], r[4][8];
    for (int i = 0; i < 8; i++)
        a[i] = b[i % 4] = (float)(i % 4 + 10 * (i / 4));
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *c = compile_on(level_device(level), build_two_shapes, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 4);
        ol_tensor in[2] = { ol_tensor_contiguous(a, OL_FLOAT32, 3, SHAPE(2, 2, 2)), ol_tensor_contiguous(b, OL_FLOAT32, 2, SHAPE(2, 2)) };
        ol_tensor out[4] = { { .data = r[0] }, { .data = r[1] }, { .data = r[2] }, { .data = r[3] } };
        ol_error error;
        assert_ok(ol_output_shapes(c, in, out, &error), &error);
        assert_int_equal(out[0].rank, 3);
        assert_int_equal(out[1].rank, 2);
        assert_int_equal(out[2].rank, 2);
        assert_int_equal(out[3].rank, 3);
        for (int path = 0; path < 2; path++) {
            uint64_t before = ol_device_launches(level_device(level));
            memset(r, 0xA5, sizeof r);
            assert_ok(replay_paths[path](c, NULL, in, out, &error), &error);
            if (path == 0)
                assert_int_equal(ol_device_launches(level_device(level)) - before, 1);
            for (int i = 0; i < 8; i++) {
                assert_true(r[0][i] == 2 * a[i] && r[3][i] == a[i] + b[i % 4]);
                if (i < 4)
                    assert_true(r[1][i] == 3 * b[i] && r[2][i] == b[i]);
                else
                    assert_int_equal(f32_bits(r[1][i]), 0xA5A5A5A5);        /* nothing is written past the smaller output */
            }
        }
        ol_composite_destroy(c);
    }
}

typedef struct shape_case {
    int32_t x_rank, y_rank, rank;              /* rank -1: refused */
    int64_t x[3], y[3], out[3];
} shape_case;

static void check_shapes(const shape_case *cases, size_t n)
{
    ol_composite *c = compile_on(level_device(0), build_add, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 1);
    float data[32] = { 0 }, out[32];
    for (size_t i = 0; i < n; i++) {
        const shape_case *s = &cases[i];
        ol_tensor in[2] = { ol_tensor_contiguous(data, OL_FLOAT32, s->x_rank, s->x), ol_tensor_contiguous(data, OL_FLOAT32, s->y_rank, s->y) };
        ol_tensor result = { .data = out, .rank = -7 };
        ol_error error;
        if (s->rank < 0) {
            assert_fails(ol_output_shapes(c, in, &result, &error), &error, OL_ERROR_SHAPE, "case", "does not broadcast");
            assert_int_equal(result.rank, -7);
            continue;
        }
        assert_ok(ol_output_shapes(c, in, &result, &error), &error);
        assert_int_equal(result.rank, s->rank);
        for (int32_t d = 0; d < s->rank; d++)
            assert_int_equal(result.shape[d], s->out[d]);
        for (int path = 0; path < 2; path++)
            assert_ok(replay_paths[path](c, NULL, in, &result, &error), &error);
    }
    ol_composite_destroy(c);
}

static void A44_zero_against_one(void **state)
{
    (void)state;
    static const shape_case cases[] = {
        { 1, 1, 1, { 0 }, { 1 }, { 0 } },
        { 2, 2, 2, { 1, 1 }, { 0, 1 }, { 0, 1 } },
        { 2, 2, 2, { 2, 1 }, { 1, 0 }, { 2, 0 } },
        { 2, 2, -1, { 2, 1 }, { 0, 1 }, { 0 } },
        { 1, 1, -1, { 0 }, { 2 }, { 0 } },
        { 2, 2, 2, { 1, 3840 }, { 0, 3840 }, { 0, 3840 } },
        { 0, 2, 2, { 0 }, { 2, 0 }, { 2, 0 } },
    };
    check_shapes(cases, COUNT(cases));
}

static void A45_a_batch_of_one_is_not_baked_in(void **state)
{
    (void)state;
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *c = compile_on(level_device(level), build_multiply, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 1);
        static const int64_t batches[] = { 1, 2, 7, 1 };
        for (size_t i = 0; i < COUNT(batches); i++)
            for (int path = 0; path < 2; path++)
                check_product(c, SHAPE(batches[i], 5), SHAPE(1, 5), path);
        ol_composite_destroy(c);
    }
}

static void A46_inferred_shapes_are_the_broadcast(void **state)
{
    (void)state;
    static const shape_case cases[] = {
        { 2, 2, 2, { 3, 1 }, { 1, 4 }, { 3, 4 } },
        { 1, 1, 1, { 1 }, { 5 }, { 5 } },
        { 0, 2, 2, { 0 }, { 2, 0 }, { 2, 0 } },
        { 1, 3, 3, { 4 }, { 2, 1, 1 }, { 2, 1, 4 } },
    };
    check_shapes(cases, COUNT(cases));
}

static void A47_a_reversed_view_is_not_updated_in_place(void **state)
{
    (void)state;
    static const int64_t lengths[] = { 7, 1048576 };
    for (size_t i = 0; i < COUNT(lengths); i++) {
        int64_t n = lengths[i];
        float *x = guarded_alloc((size_t)n * sizeof *x, 0), *before = malloc((size_t)n * sizeof *x);
        for (int64_t k = 0; k < n; k++)
            x[k] = before[k] = (float)k;
        for (size_t level = 0; level < level_count(); level++) {
            ol_composite *c = compile_on(level_device(level), build_primitive, primitive_named("negative"), 1, DTYPES(OL_FLOAT32), 1);
            ol_tensor in = strided(x + n - 1, OL_FLOAT32, 1, &n, SHAPE(-1)), out = vector_of(x, OL_FLOAT32, n);
            ol_error error;
            for (int path = 0; path < 2; path++) {
                assert_fails(replay_paths[path](c, NULL, &in, &out, &error), &error, OL_ERROR_OVERLAP, "replay", "output 0 overlaps input 0");
                assert_memory_equal(x, before, (size_t)n * sizeof *x);
            }
            ol_composite_destroy(c);
        }
        guarded_free(x);
        free(before);
    }
}

BUILDER(build_read_later)
{
    (void)user;
    out[0] = ol_subtract(g, in[0], ol_multiply(g, in[0], ol_constant(g, OL_FLOAT32, 0.001)));
    return 0;
}

BUILDER(build_plus_product)
{
    (void)user;
    ol_value two = ol_constant(g, OL_FLOAT32, 2);
    out[0] = ol_add(g, in[0], ol_multiply(g, two, two));
    return 0;
}

static void A48_an_output_that_is_an_input_read_later(void **state)
{
    (void)state;
    static const int64_t lengths[] = { 1, 2, 100003 };
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t level = 0; level < level_count(); level++)
            for (int which = 0; which < 2; which++) {
                int64_t n = lengths[i];
                float *x = guarded_alloc((size_t)n * sizeof *x, 0);
                ol_composite *c = compile_on(level_device(level), which ? build_plus_product : build_read_later, NULL, 1, DTYPES(OL_FLOAT32), 1);
                ol_tensor t = vector_of(x, OL_FLOAT32, n);
                ol_error error;
                for (int path = 0; path < 2; path++) {
                    for (int64_t k = 0; k < n; k++)
                        x[k] = 1;
                    assert_ok(replay_paths[path](c, NULL, &t, &t, &error), &error);
                    for (int64_t k = 0; k < n; k++)
                        if (f32_bits(x[k]) != (which ? 0x40A00000 : 0x3F7FBE77))
                            fail_msg("element %lld is %a", (long long)k, (double)x[k]);
                }
                ol_composite_destroy(c);
                guarded_free(x);
            }
}

static void A49_an_output_that_repeats_an_element(void **state)
{
    (void)state;
    ol_composite *c = compile_on(level_device(0), build_primitive, primitive_named("negative"), 1, DTYPES(OL_FLOAT32), 1);
    float in[6] = { 1, 2, 3, 4, 5, 6 }, out[16], before[16];
    memset(out, 0xA5, sizeof out);
    memcpy(before, out, sizeof out);
    ol_tensor x3 = vector_of(in, OL_FLOAT32, 3), x23 = ol_tensor_contiguous(in, OL_FLOAT32, 2, SHAPE(2, 3));
    ol_tensor stuck = strided(out, OL_FLOAT32, 1, SHAPE(3), SHAPE(0)), folded = strided(out, OL_FLOAT32, 2, SHAPE(2, 3), SHAPE(1, 1));
    ol_error error;
    for (int path = 0; path < 2; path++) {
        assert_fails(replay_paths[path](c, NULL, &x3, &stuck, &error), &error, OL_ERROR_OVERLAP, "replay", "output 0 repeats an element: shape [3] with strides [0]");
        assert_fails(replay_paths[path](c, NULL, &x23, &folded, &error), &error, OL_ERROR_OVERLAP, "replay", "shape [2, 3] with strides [1, 1]");
        assert_memory_equal(out, before, sizeof out);
    }
    /* A stride of 0 over an extent of 1 repeats nothing. */
    ol_tensor x1 = vector_of(in, OL_FLOAT32, 1), one = strided(out, OL_FLOAT32, 1, SHAPE(1), SHAPE(0));
    assert_ok(ol_replay(c, NULL, &x1, &one, &error), &error);
    assert_true(out[0] == -1.0f);
    ol_composite_destroy(c);
}

static void A78_an_in_place_output_smaller_than_the_result(void **state)
{
    (void)state;
    ol_composite *c = compile_on(level_device(0), build_add, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 1);
    float x[4] = { 1, 2, 3, 4 }, y[12] = { 0 };
    ol_tensor in[2] = { vector_of(x, OL_FLOAT32, 4), ol_tensor_contiguous(y, OL_FLOAT32, 2, SHAPE(3, 4)) };
    ol_error error;
    for (int path = 0; path < 2; path++) {
        assert_fails(replay_paths[path](c, NULL, in, &in[0], &error), &error, OL_ERROR_SHAPE, "replay", "[4]");
        assert_non_null(strstr(error.description, "[3, 4]"));
        for (int i = 0; i < 4; i++)
            assert_true(x[i] == (float)(i + 1));
    }
    ol_composite_destroy(c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(A41_a_stride_of_zero_repeats_the_element), cmocka_unit_test(A42_a_size_that_happens_to_be_one_broadcasts),
        cmocka_unit_test(A43_outputs_keep_their_own_shapes), cmocka_unit_test(A44_zero_against_one),
        cmocka_unit_test(A45_a_batch_of_one_is_not_baked_in), cmocka_unit_test(A46_inferred_shapes_are_the_broadcast),
        cmocka_unit_test(A47_a_reversed_view_is_not_updated_in_place), cmocka_unit_test(A48_an_output_that_is_an_input_read_later),
        cmocka_unit_test(A49_an_output_that_repeats_an_element), cmocka_unit_test(A78_an_in_place_output_smaller_than_the_result),
    };
    return HARNESS_RUN(argc, argv, tests);
}
