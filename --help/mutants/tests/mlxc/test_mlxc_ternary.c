/* The functions that take more than operands: astype, round, clip, where, full, zeros, ones, broadcast_to. At once against compiled,
 * and against what they must give. */
#include "client.h"

enum { ASTYPE, ROUND, ROUND_2, CLIP, CLIP_LOW, CLIP_HIGH, WHERE, FULL, ZEROS, ONES, BROADCAST, N_FUNCTIONS };

typedef struct how {
    int function;
    mlx_dtype dtype;
} how;

static const int wide_shape[3] = { 2, 3, 5 };

/* in: three arrays that broadcast to [2, 3, 5]. */
static int call(mlx_array *res, const how *h, const mlx_array *in)
{
    const mlx_array none = { 0 };
    mlx_array t = mlx_array_new();
    int code;
    switch (h->function) {
    case ASTYPE: return mlx_astype(res, in[0], h->dtype, stream);
    case ROUND: return mlx_round(res, in[0], 0, stream);
    case ROUND_2: return mlx_round(res, in[0], 2, stream);
    case CLIP: return mlx_clip(res, in[0], in[1], in[2], stream);
    case CLIP_LOW: return mlx_clip(res, in[0], in[1], none, stream);
    case CLIP_HIGH: return mlx_clip(res, in[0], none, in[2], stream);
    case WHERE: return mlx_where(res, in[0], in[1], in[2], stream);
    case BROADCAST: return mlx_broadcast_to(res, in[0], wide_shape, 3, stream);
    /* With an operand besides, or there would be no input. */
    case FULL: code = mlx_full(&t, wide_shape, 3, in[1], h->dtype, stream); break;
    case ZEROS: code = mlx_zeros(&t, NULL, 0, h->dtype, stream); break;
    default: code = mlx_ones(&t, wide_shape + 1, 2, h->dtype, stream); break;
    }
    code = code || mlx_multiply(res, in[0], t, stream);
    mlx_array_free(t);
    return code;
}

static int traced(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array in[3] = { input_of(input, 0), input_of(input, 1), input_of(input, 2) }, r = mlx_array_new();
    int code = call(&r, payload, in);
    code = code || mlx_vector_array_set_value(res, r);
    free_all(3, in);
    mlx_array_free(r);
    return code;
}

static void at_once_and_compiled(void **state)
{
    static const int ranks[3] = { 2, 1, 3 }, dims[3][3] = { { 3, 5 }, { 5 }, { 2, 1, 5 } };
    uint64_t random = client_seed;
    int n = 0;
    (void)state;
    for (int f = 0; f < N_FUNCTIONS; f++)
        for (int i = 0; i < N_DTYPES; i++)
            for (int j = 0; j < N_DTYPES; j++) {
                how h = { f, dtypes[j] };
                mlx_closure c = compiled(traced, &h, true);
                mlx_array in[3], out, eager = mlx_array_new();
                for (int k = 0; k < 3; k++)
                    in[k] = array_random(&random, dtypes[k ? j : i], ranks[k], dims[k]);
                OK(call(&eager, &h, in));
                OK(apply(c, 3, in, 1, &out));
                array_equal_bits(out, eager, "compiled");
                free_all(1, &out);
                free_all(1, &eager);
                free_all(3, in);
                OK(mlx_closure_free(c));
                n++;
            }
    print_message("%d combinations\n", n);
}

static void filled(void **state)
{
    const int shape[2] = { 2, 3 }, none[2] = { 4, 0 };
    uint64_t ones[6], zeros[6] = { 0 };
    (void)state;
    for (int i = 0; i < N_DTYPES; i++) {
        mlx_dtype d = dtypes[i];
        mlx_array a = mlx_array_new(), expected, value = mlx_array_new_float32(1.0f);
        for (size_t k = 0; k < 6; k++)
            ones[k] = d == MLX_FLOAT32 ? 0x3F800000 : d == MLX_FLOAT16 ? 0x3C00 : d == MLX_BFLOAT16 ? 0x3F80 : 1;
        expected = array_of_bits(d, 2, shape, ones);
        OK(mlx_ones(&a, shape, 2, d, stream));
        array_equal_bits(a, expected, "ones");
        OK(mlx_full(&a, shape, 2, value, d, stream));
        array_equal_bits(a, expected, "full");
        free_all(1, &expected);
        expected = array_of_bits(d, 2, shape, zeros);
        OK(mlx_zeros(&a, shape, 2, d, stream));
        array_equal_bits(a, expected, "zeros");
        OK(mlx_zeros(&a, NULL, 0, d, stream));
        array_is(a, d, 0, NULL);
        OK(mlx_ones(&a, none, 2, d, stream));
        array_is(a, d, 2, none);
        OK(mlx_array_eval(a));
        free_all(1, &a);
        free_all(1, &expected);
        free_all(1, &value);
    }
}

static void broadcasts(void **state)
{
    const int column[2] = { 3, 1 }, wide[3] = { 2, 3, 4 }, wrong[2] = { 2, 4 }, fewer[1] = { 3 }, zero[2] = { 3, 0 }, negative[2] = { 3, -1 };
    const uint64_t bits[3] = { 0x3F800000, 0x80000000, 0x40490FDB };
    mlx_array a = array_of_bits(MLX_FLOAT32, 2, column, bits), r = mlx_array_new();
    (void)state;
    OK(mlx_broadcast_to(&r, a, wide, 3, stream));
    array_is(r, MLX_FLOAT32, 3, wide);
    const void *data = array_data(r);
    for (size_t i = 0; i < 24; i++)
        assert_int_equal(bits_load(data, MLX_FLOAT32, i), bits[i / 4 % 3]);
    OK(mlx_broadcast_to(&r, a, zero, 2, stream));
    array_is(r, MLX_FLOAT32, 2, zero);
    FAILS(mlx_broadcast_to(&r, a, wrong, 2, stream), "");
    FAILS(mlx_broadcast_to(&r, a, fewer, 1, stream), "");
    FAILS(mlx_broadcast_to(&r, a, negative, 2, stream), "");
    FAILS(mlx_broadcast_to(&r, a, NULL, 0, stream), "");
    free_all(1, &a);
    free_all(1, &r);
}

/* clip is minimum(maximum(x, low), high), NaN kept; where picks by truth. */
static void picked_values(void **state)
{
    const float x[5] = { -3, 0.5f, 7, 0, -0.0f }, low = -1, high = 2, clipped[5] = { -1, 0.5f, 2, 0, -0.0f };
    const float rounded_in[5] = { 0.125f, 2.5f, -1.5f, 1234.5678f, 0 }, to_int[5] = { 0, 2, -2, 1235, 0 };
    mlx_array a = array_f32(5, x), l = mlx_array_new_float32(low), h = mlx_array_new_float32(high), none = { 0 }, r = mlx_array_new(), e = array_f32(5, clipped);
    (void)state;
    OK(mlx_clip(&r, a, l, h, stream));
    array_equal_bits(r, e, "clip");
    FAILS(mlx_clip(&r, a, none, none, stream), "expected one at least");
    free_all(1, &e);
    e = array_f32(5, (const float[]){ -1, 0.5f, 7, 0, -0.0f });
    OK(mlx_clip(&r, a, l, none, stream));
    array_equal_bits(r, e, "clip from below");
    free_all(1, &e);
    e = array_f32(5, (const float[]){ -3, 0.5f, 2, 0, -0.0f });
    OK(mlx_clip(&r, a, none, h, stream));
    array_equal_bits(r, e, "clip from above");
    free_all(1, &e);
    free_all(1, &a);
    a = array_f32(5, rounded_in);
    e = array_f32(5, to_int);
    OK(mlx_round(&r, a, 0, stream));
    array_equal_bits(r, e, "round");
    OK(mlx_where(&r, l, a, e, stream));                     /* a float as condition: -1 is true */
    array_equal_bits(r, a, "where");
    free_all(1, &a);
    free_all(1, &l);
    free_all(1, &h);
    free_all(1, &r);
    free_all(1, &e);
}

/* Integers: to tens and hundreds by way of float32, half to even; to decimals not at all. */
static void rounded_integers(void **state)
{
    static const int32_t in[9] = { 1234, 1250, 1350, -1250, -1251, 49, 50, 51, 2147483647 };
    static const int32_t hundreds[9] = { 1200, 1200, 1400, -1200, -1300, 0, 0, 100, 2147483647 };
    static const uint8_t bytes[4] = { 4, 15, 25, 255 }, tens[4] = { 0, 20, 20, 255 };     /* 260 is more than there is */
    static const bool truth[2] = { true, false }, none[2] = { false, false };
    const int n = 9, four = 4, two = 2;
    mlx_array a = mlx_array_new_data(in, &n, 1, MLX_INT32), e = mlx_array_new_data(hundreds, &n, 1, MLX_INT32), r = mlx_array_new();
    (void)state;
    OK(mlx_round(&r, a, -2, stream));
    array_equal_bits(r, e, "to hundreds");
    for (int decimals = 0; decimals <= 38; decimals += 19) {
        OK(mlx_round(&r, a, decimals, stream));
        array_equal_bits(r, a, "to decimals");
    }
    OK(mlx_zeros(&e, &n, 1, MLX_INT32, stream));
    OK(mlx_round(&r, a, -38, stream));
    array_equal_bits(r, e, "to what is larger than all");
    FAILS(mlx_round(&r, a, -39, stream), "expected -38 to 38");
    FAILS(mlx_round(&r, a, 39, stream), "expected -38 to 38");
    OK(mlx_array_set_data(&a, bytes, &four, 1, MLX_UINT8));
    OK(mlx_array_set_data(&e, tens, &four, 1, MLX_UINT8));
    OK(mlx_round(&r, a, -1, stream));
    array_equal_bits(r, e, "to tens");
    OK(mlx_array_set_data(&a, truth, &two, 1, MLX_BOOL));
    OK(mlx_array_set_data(&e, none, &two, 1, MLX_BOOL));
    OK(mlx_round(&r, a, -1, stream));
    array_equal_bits(r, e, "bools");
    free_all(1, &a);
    free_all(1, &e);
    free_all(1, &r);
}

/* Bools are shifted as uint8. */
static void shifted_bools(void **state)
{
    static const bool x[4] = { true, true, false, false }, by[4] = { true, false, true, false };
    static const uint8_t left[4] = { 2, 1, 0, 0 }, right[4] = { 0, 1, 0, 0 };
    const int n = 4;
    mlx_array a = mlx_array_new_data(x, &n, 1, MLX_BOOL), b = mlx_array_new_data(by, &n, 1, MLX_BOOL), r = mlx_array_new();
    mlx_array e = mlx_array_new_data(left, &n, 1, MLX_UINT8);
    (void)state;
    OK(mlx_left_shift(&r, a, b, stream));
    array_equal_bits(r, e, "to the left");
    OK(mlx_array_set_data(&e, right, &n, 1, MLX_UINT8));
    OK(mlx_right_shift(&r, a, b, stream));
    array_equal_bits(r, e, "to the right");
    free_all(1, &a);
    free_all(1, &b);
    free_all(1, &r);
    free_all(1, &e);
}

/* What has a number and no arrays. */
static void dtypes_that_are_none(void **state)
{
    static const int numbers[] = { MLX_FLOAT64, MLX_COMPLEX64, 14, -1, 1000 };
    const int shape[1] = { 2 };
    const double bytes[4] = { 0 };
    mlx_array one = mlx_array_new_int(1), r = mlx_array_new();
    (void)state;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        mlx_dtype d = (mlx_dtype)numbers[i];
        FAILS(mlx_astype(&r, one, d, stream), "");
        FAILS(mlx_zeros(&r, shape, 1, d, stream), "");
        FAILS(mlx_ones(&r, shape, 1, d, stream), "");
        FAILS(mlx_full(&r, shape, 1, one, d, stream), "");
        assert_null(mlx_array_new_data(bytes, shape, 1, d).ctx);
        assert_true(error_take() >= 1);
        assert_null(r.ctx);
    }
    free_all(1, &one);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_once_and_compiled), cmocka_unit_test(filled), cmocka_unit_test(broadcasts), cmocka_unit_test(picked_values), cmocka_unit_test(rounded_integers),
        cmocka_unit_test(shifted_bools),
        cmocka_unit_test(dtypes_that_are_none),
    };
    return CLIENT_RUN(argc, argv, tests);
}
