/* Shapes at replay: what each output's shape is, with broadcasts spelled out, at every rank, and empty. */
#include "graph_cases.h"

#define BUILDER(name) static int name(ol_graph *g, const ol_value *in, ol_value *out, void *user)

enum { ROOM = 4096 };

/* Infers the shapes of a call, gives each output memory, runs both paths at every level and compares them; leaves the result of
 * the last run in `results` for the caller to look at. */
static void run_everywhere(ol_build build, int32_t n_inputs, const ol_dtype *dtypes, const ol_tensor *in, int32_t n_outputs, ol_tensor *out, uint32_t (*results)[ROOM])
{
    static uint32_t first[4][ROOM];
    int have_first = 0;
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *c = compile_on(level_device(level), build, NULL, n_inputs, dtypes, n_outputs);
        for (int path = 0; path < 2; path++) {
            ol_error error;
            size_t n_total = 0;
            for (int32_t o = 0; o < n_outputs; o++)
                out[o].data = results[o];
            assert_ok(ol_output_shapes(c, in, out, &error), &error);
            for (int32_t o = 0; o < n_outputs; o++) {
                size_t n = 1;
                assert_ptr_equal(out[o].data, results[o]);
                assert_int_equal(out[o].dtype, ol_composite_output_dtype(c, o));
                for (int32_t d = out[o].rank - 1; d >= 0; d--) {
                    if (out[o].shape[d] != 1 && n > 0)
                        assert_int_equal(out[o].strides[d], n);
                    n *= (size_t)out[o].shape[d];
                }
                n_total += n;
            }
            memset(results, 0xA5, (size_t)n_outputs * sizeof *results);
            uint64_t before = ol_device_launches(level_device(level));
            assert_ok(replay_paths[path](c, NULL, in, out, &error), &error);
            if (path == 0)
                assert_int_equal(ol_device_launches(level_device(level)) - before, n_total > 0);      /* one, or nothing to do */
            if (!have_first)
                memcpy(first, results, (size_t)n_outputs * sizeof *results);
            have_first = 1;
            assert_memory_equal(first, results, (size_t)n_outputs * sizeof *results);
        }
        ol_composite_destroy(c);
    }
}

static void assert_shape(const ol_tensor *t, int32_t rank, const int64_t *shape)
{
    assert_int_equal(t->rank, rank);
    for (int32_t d = 0; d < rank; d++)
        assert_int_equal(t->shape[d], shape[d]);
}

static float iota[ROOM];

static void fill_iota(void)
{
    for (int i = 0; i < ROOM; i++)
        iota[i] = (float)i;
}

/* ---- Each output has the shape of what it depends on ---- */

BUILDER(build_four_shapes)
{
    (void)user;
    out[0] = ol_negative(g, in[0]);
    out[1] = ol_add(g, in[0], in[1]);
    out[2] = ol_multiply(g, in[1], in[2]);
    out[3] = ol_constant(g, OL_FLOAT32, 7);
    return 0;
}

static void outputs_of_different_shapes(void **state)
{
    (void)state;
    static uint32_t results[4][ROOM];
    ol_tensor in[3] = { ol_tensor_contiguous(iota, OL_FLOAT32, 2, SHAPE(5, 1)), ol_tensor_contiguous(iota, OL_FLOAT32, 1, SHAPE(6)),
                        ol_tensor_contiguous(iota, OL_FLOAT32, 3, SHAPE(2, 1, 1)) };
    ol_tensor out[4];
    run_everywhere(build_four_shapes, 3, DTYPES(OL_FLOAT32, OL_FLOAT32, OL_FLOAT32), in, 4, out, results);
    assert_shape(&out[0], 2, SHAPE(5, 1));
    assert_shape(&out[1], 2, SHAPE(5, 6));
    assert_shape(&out[2], 3, SHAPE(2, 1, 6));
    assert_shape(&out[3], 0, NULL);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 6; j++)
            assert_true(f32_of(results[1][6 * i + j]) == (float)(i + j));
    for (int j = 0; j < 6; j++)
        assert_true(f32_of(results[2][6 + j]) == (float)j && f32_of(results[2][j]) == 0);
    assert_true(f32_of(results[3][0]) == 7 && f32_of(results[0][4]) == -4);
    assert_int_equal(results[3][1], 0xA5A5A5A5);
    assert_int_equal(results[0][5], 0xA5A5A5A5);
}

/* Groups of outputs of equal and different shapes, some with nothing in common. */
BUILDER(build_apart)
{
    (void)user;
    out[0] = ol_square(g, in[0]);
    out[1] = ol_square(g, in[1]);
    out[2] = ol_negative(g, in[0]);
    out[3] = ol_negative(g, in[1]);
    return 0;
}

static void outputs_that_share_nothing(void **state)
{
    (void)state;
    static uint32_t results[4][ROOM];
    /* The same count of elements in two shapes; then one large and one small; then one empty. */
    static const int64_t shapes[][2][2] = { { { 3, 4 }, { 4, 3 } }, { { 30, 40 }, { 1, 2 } }, { { 0, 4 }, { 2, 2 } }, { { 2, 2 }, { 3, 0 } }, { { 1, 12 }, { 12, 1 } } };
    for (size_t s = 0; s < COUNT(shapes); s++) {
        ol_tensor in[2] = { ol_tensor_contiguous(iota, OL_FLOAT32, 2, shapes[s][0]), ol_tensor_contiguous(iota + 7, OL_FLOAT32, 2, shapes[s][1]) }, out[4];
        run_everywhere(build_apart, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), in, 4, out, results);
        for (int o = 0; o < 4; o++) {
            size_t n = (size_t)(shapes[s][o % 2][0] * shapes[s][o % 2][1]);
            assert_shape(&out[o], 2, shapes[s][o % 2]);
            for (size_t i = 0; i < n; i++) {
                float x = iota[i + (o % 2 ? 7 : 0)];
                assert_true(f32_of(results[o][i]) == (o < 2 ? x * x : -x));
            }
            assert_int_equal(results[o][n], 0xA5A5A5A5);
        }
    }
}

/* ---- Kimi: rates per channel ---- */

static void per_channel_rates_in_one_launch(void **state)
{
    (void)state;
    enum { TOKENS = 3, HEADS = 4, CHANNELS = 5 };
    float b[TOKENS][HEADS], a[TOKENS][HEADS][CHANNELS], rate[HEADS], bias[HEADS][CHANNELS], beta[TOKENS][HEADS], decay[TOKENS][HEADS][CHANNELS];
    uint64_t random = harness_seed;
    for (int t = 0; t < TOKENS; t++)
        for (int h = 0; h < HEADS; h++) {
            b[t][h] = (float)random_below(&random, 1000) / 100 - 5;
            rate[h] = (float)random_below(&random, 100) / 50 - 1;
            for (int k = 0; k < CHANNELS; k++) {
                a[t][h][k] = (float)random_below(&random, 1000) / 100 - 5;
                bias[h][k] = (float)random_below(&random, 1000) / 1000;
            }
        }
    for (size_t level = 0; level < level_count(); level++)
        for (int path = 0; path < 2; path++) {
            ol_composite *c, *alone;
            ol_error error;
            ol_device *device = level_device(level);
            assert_ok(ol_gated_delta_rates_compile(device, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, &c, &error), &error);
            assert_ok(ol_gated_delta_decay_compile(device, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, &alone, &error), &error);
            ol_tensor in[4] = { ol_tensor_contiguous(b, OL_FLOAT32, 2, SHAPE(TOKENS, HEADS)), ol_tensor_contiguous(a, OL_FLOAT32, 3, SHAPE(TOKENS, HEADS, CHANNELS)),
                                ol_tensor_contiguous(rate, OL_FLOAT32, 2, SHAPE(HEADS, 1)), ol_tensor_contiguous(bias, OL_FLOAT32, 2, SHAPE(HEADS, CHANNELS)) };
            ol_tensor out[2] = { { .data = beta }, { .data = decay } };
            assert_ok(ol_output_shapes(c, in, out, &error), &error);
            assert_shape(&out[0], 2, SHAPE(TOKENS, HEADS));
            assert_shape(&out[1], 3, SHAPE(TOKENS, HEADS, CHANNELS));
            memset(beta, 0xA5, sizeof beta);
            memset(decay, 0xA5, sizeof decay);
            uint64_t before = ol_device_launches(device);
            assert_ok(replay_paths[path](c, NULL, in, out, &error), &error);
            if (path == 0)
                assert_int_equal(ol_device_launches(device) - before, 1);
            /* Element by element, each as a composite of scalars. */
            for (int t = 0; t < TOKENS; t++)
                for (int h = 0; h < HEADS; h++)
                    for (int k = 0; k < CHANNELS; k++) {
                        float one;
                        ol_tensor scalars[3] = { vector_of(&a[t][h][k], OL_FLOAT32, 1), vector_of(&rate[h], OL_FLOAT32, 1), vector_of(&bias[h][k], OL_FLOAT32, 1) };
                        ol_tensor result = vector_of(&one, OL_FLOAT32, 1);
                        assert_ok(ol_replay(alone, NULL, scalars, &result, &error), &error);
                        assert_int_equal(f32_bits(one), f32_bits(decay[t][h][k]));
                        assert_true(one >= 0 && one <= 1 && beta[t][h] > 0 && beta[t][h] < 1);
                    }
            ol_composite_destroy(c);
            ol_composite_destroy(alone);
        }
}

/* ---- Explicit broadcasts ---- */

BUILDER(build_broadcasts)
{
    (void)user;
    out[0] = ol_broadcast_like(g, in[0], in[1]);
    out[1] = ol_broadcast_to(g, in[0], 3, SHAPE(2, 3, 4));
    out[2] = ol_add(g, ol_broadcast_like(g, ol_constant(g, OL_FLOAT32, 5), in[1]), ol_constant(g, OL_FLOAT32, 1));
    return 0;
}

static void broadcasts_spelled_out(void **state)
{
    (void)state;
    static uint32_t results[4][ROOM];
    ol_tensor in[2] = { ol_tensor_contiguous(iota, OL_FLOAT32, 2, SHAPE(3, 1)), ol_tensor_contiguous(iota, OL_FLOAT32, 2, SHAPE(3, 6)) }, out[3];
    run_everywhere(build_broadcasts, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), in, 3, out, results);
    assert_shape(&out[0], 2, SHAPE(3, 6));
    assert_shape(&out[1], 3, SHAPE(2, 3, 4));
    assert_shape(&out[2], 2, SHAPE(3, 6));
    for (int i = 0; i < 18; i++)
        assert_true(f32_of(results[0][i]) == (float)(i / 6) && f32_of(results[2][i]) == 6);
    for (int i = 0; i < 24; i++)
        assert_true(f32_of(results[1][i]) == (float)(i / 4 % 3));
    /* The common shape: x may be larger than `like`. */
    in[1] = ol_tensor_contiguous(iota, OL_FLOAT32, 1, SHAPE(1));
    run_everywhere(build_broadcasts, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), in, 3, out, results);
    assert_shape(&out[0], 2, SHAPE(3, 1));
    assert_shape(&out[2], 1, SHAPE(1));
    /* The data of `like` is not read, so NaN in it is nothing; and its shape counts, empty or not. */
    in[1] = ol_tensor_contiguous(iota, OL_FLOAT32, 2, SHAPE(3, 0));
    run_everywhere(build_broadcasts, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), in, 3, out, results);
    assert_shape(&out[0], 2, SHAPE(3, 0));
    assert_int_equal(results[0][0], 0xA5A5A5A5);
    assert_true(f32_of(results[1][23]) == 2);
}

BUILDER(build_like_in_the_middle)
{
    (void)user;
    /* The shape of in[1] reaches the output, and stays with the value through further operations. */
    ol_value wide = ol_broadcast_like(g, ol_exp(g, in[0]), ol_isnan(g, in[1]));
    out[0] = ol_negative(g, wide);
    out[1] = ol_exp(g, in[0]);
    return 0;
}

static void a_broadcast_shape_travels_on(void **state)
{
    (void)state;
    static uint32_t results[4][ROOM];
    float zero[2] = { 0, 0 };
    ol_tensor in[2] = { ol_tensor_contiguous(zero, OL_FLOAT32, 1, SHAPE(2)), ol_tensor_contiguous(iota, OL_FLOAT32, 2, SHAPE(7, 2)) }, out[2];
    run_everywhere(build_like_in_the_middle, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), in, 2, out, results);
    assert_shape(&out[0], 2, SHAPE(7, 2));
    assert_shape(&out[1], 1, SHAPE(2));
    for (int i = 0; i < 14; i++)
        assert_true(f32_of(results[0][i]) == -1);
}

/* Equal nodes are merged; a shape must not be lost with them. */
BUILDER(build_same_value_two_shapes)
{
    (void)user;
    out[0] = ol_broadcast_to(g, in[0], 2, SHAPE(2, 3));
    out[1] = ol_broadcast_to(g, in[0], 2, SHAPE(4, 3));
    out[2] = ol_broadcast_to(g, ol_constant(g, OL_FLOAT32, 9), 1, SHAPE(5));
    return 0;
}

static void one_value_in_two_shapes(void **state)
{
    (void)state;
    static uint32_t results[4][ROOM];
    ol_tensor in = ol_tensor_contiguous(iota, OL_FLOAT32, 1, SHAPE(3)), out[3];
    run_everywhere(build_same_value_two_shapes, 1, DTYPES(OL_FLOAT32), &in, 3, out, results);
    assert_shape(&out[0], 2, SHAPE(2, 3));
    assert_shape(&out[1], 2, SHAPE(4, 3));
    assert_shape(&out[2], 1, SHAPE(5));
    for (int i = 0; i < 12; i++)
        assert_true(f32_of(results[1][i]) == (float)(i % 3) && (i >= 6 || f32_of(results[0][i]) == (float)(i % 3)));
    for (int i = 0; i < 5; i++)
        assert_true(f32_of(results[2][i]) == 9);
}

/* ---- Ranks and empties ---- */

BUILDER(build_sum)
{
    (void)user;
    out[0] = ol_add(g, in[0], in[1]);
    return 0;
}

static void every_rank_with_every_rank(void **state)
{
    (void)state;
    static uint32_t results[4][ROOM];
    static const int64_t full[OL_MAX_RANK] = { 2, 1, 3, 2, 1, 2, 3, 2 };
    for (int32_t x_rank = 0; x_rank <= OL_MAX_RANK; x_rank++)
        for (int32_t y_rank = 0; y_rank <= OL_MAX_RANK; y_rank++) {
            int32_t rank = x_rank > y_rank ? x_rank : y_rank;
            size_t x_count = 1, y_count = 1;
            for (int32_t d = 0; d < rank; d++) {
                x_count *= d < x_rank ? (size_t)full[OL_MAX_RANK - 1 - d] : 1;
                y_count *= d < y_rank ? (size_t)full[OL_MAX_RANK - 1 - d] : 1;
            }
            ol_tensor in[2] = { ol_tensor_contiguous(iota, OL_FLOAT32, x_rank, full + OL_MAX_RANK - x_rank), ol_tensor_contiguous(iota, OL_FLOAT32, y_rank, full + OL_MAX_RANK - y_rank) }, out;
            run_everywhere(build_sum, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), in, 1, &out, results);
            assert_shape(&out, rank, full + OL_MAX_RANK - rank);
            for (size_t i = 0; i < (x_count > y_count ? x_count : y_count); i++)
                assert_true(f32_of(results[0][i]) == (float)(i % x_count) + (float)(i % y_count));
        }
}

static void empty_tensors_need_no_memory(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = { { 0, 1, 1 }, { 3, 0, 2 }, { 1, 1, 0 }, { 0, 0, 0 } };
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (size_t level = 0; level < level_count(); level++) {
            ol_composite *c = compile_on(level_device(level), build_sum, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 1);
            ol_tensor in[2] = { ol_tensor_contiguous(NULL, OL_FLOAT32, 3, shapes[s]), ol_tensor_contiguous(iota, OL_FLOAT32, 0, NULL) }, out = { 0 };
            ol_error error;
            assert_ok(ol_output_shapes(c, in, &out, &error), &error);
            assert_shape(&out, 3, shapes[s]);
            for (int path = 0; path < 2; path++) {
                uint64_t before = ol_device_launches(level_device(level));
                assert_ok(replay_paths[path](c, NULL, in, &out, &error), &error);
                assert_int_equal(ol_device_launches(level_device(level)), before);
            }
            ol_composite_destroy(c);
        }
}

/* A composite of no inputs: its outputs are scalars, or what broadcast_to makes of them. */
BUILDER(build_of_nothing)
{
    (void)in, (void)user;
    out[0] = ol_exp(g, ol_constant(g, OL_FLOAT32, 0));
    out[1] = ol_broadcast_to(g, ol_constant(g, OL_FLOAT32, 2), 2, SHAPE(2, 50));
    return 0;
}

static void a_composite_without_inputs(void **state)
{
    (void)state;
    static uint32_t results[4][ROOM];
    ol_tensor out[2];
    run_everywhere(build_of_nothing, 0, NULL, NULL, 2, out, results);
    assert_shape(&out[0], 0, NULL);
    assert_shape(&out[1], 2, SHAPE(2, 50));
    assert_true(f32_of(results[0][0]) == 1 && f32_of(results[1][0]) == 2 && f32_of(results[1][99]) == 2);
    assert_int_equal(results[1][100], 0xA5A5A5A5);
}

/* An input that no output reads is still checked for its dtype, but its shape says nothing. */
BUILDER(build_ignoring)
{
    (void)user;
    out[0] = ol_negative(g, in[0]);
    return 0;
}

static void an_unused_input_shapes_nothing(void **state)
{
    (void)state;
    static uint32_t results[4][ROOM];
    ol_tensor in[2] = { ol_tensor_contiguous(iota, OL_FLOAT32, 1, SHAPE(3)), ol_tensor_contiguous(iota, OL_FLOAT32, 2, SHAPE(5, 7)) }, out;
    run_everywhere(build_ignoring, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), in, 1, &out, results);
    assert_shape(&out, 1, SHAPE(3));
}

static int set_up(void **state)
{
    (void)state;
    fill_iota();
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(outputs_of_different_shapes, set_up), cmocka_unit_test_setup(outputs_that_share_nothing, set_up),
        cmocka_unit_test_setup(per_channel_rates_in_one_launch, set_up), cmocka_unit_test_setup(broadcasts_spelled_out, set_up),
        cmocka_unit_test_setup(a_broadcast_shape_travels_on, set_up), cmocka_unit_test_setup(one_value_in_two_shapes, set_up),
        cmocka_unit_test_setup(every_rank_with_every_rank, set_up), cmocka_unit_test_setup(empty_tensors_need_no_memory, set_up),
        cmocka_unit_test_setup(a_composite_without_inputs, set_up), cmocka_unit_test_setup(an_unused_input_shapes_nothing, set_up),
    };
    return HARNESS_RUN(argc, argv, tests);
}
