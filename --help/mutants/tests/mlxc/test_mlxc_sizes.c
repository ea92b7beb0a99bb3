/* Shapes at the edge of what can be counted: no elements in spite of huge extents, more elements than there is memory. */
#include "client.h"

#include <limits.h>

static void no_elements_of_huge_extents(void **state)
{
    static const struct { size_t rank; int dims[8]; } shapes[] = {
        { 3, { INT_MAX, INT_MAX, 0 } }, { 4, { INT_MAX, INT_MAX, INT_MAX, 0 } }, { 4, { 0, INT_MAX, INT_MAX, INT_MAX } },
        { 8, { INT_MAX, INT_MAX, INT_MAX, 0, INT_MAX, INT_MAX, INT_MAX, INT_MAX } }, { 3, { INT_MAX, 0, INT_MAX } },
    };
    mlx_array one = mlx_array_new_float32(1), r = mlx_array_new(), sum = mlx_array_new();
    mlx_string text = mlx_string_new();
    float x[1] = { 1 };
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const int *dims = shapes[i].dims;
        size_t rank = shapes[i].rank;
        OK(mlx_zeros(&r, dims, rank, MLX_FLOAT32, stream));
        array_is(r, MLX_FLOAT32, (int)rank, dims);
        OK(mlx_array_eval(r));
        assert_null(mlx_array_data_float32(r));
        assert_int_equal(error_take(), 0);
        OK(mlx_ones(&r, dims, rank, MLX_INT64, stream));
        OK(mlx_full(&r, dims, rank, one, MLX_FLOAT32, stream));
        OK(mlx_broadcast_to(&r, one, dims, rank, stream));
        OK(mlx_array_set_data(&r, NULL, dims, (int)rank, MLX_FLOAT32));
        array_is(r, MLX_FLOAT32, (int)rank, dims);
        mlx_array managed = mlx_array_new_data_managed(x, dims, (int)rank, MLX_FLOAT32, NULL);
        array_is(managed, MLX_FLOAT32, (int)rank, dims);
        OK(mlx_array_tostring(&text, managed));
        /* onelaunch counts strides, and may refuse what they do not fit; it does not crash. */
        int code = mlx_add(&sum, managed, one, stream);
        if (code == 0)
            array_is(sum, MLX_FLOAT32, (int)rank, dims);
        else
            assert_true(error_take() == 1);
        free_all(1, &managed);
    }
    OK(mlx_string_free(text));
    free_all(1, &one);
    OK(mlx_array_free(r));
    OK(mlx_array_free(sum));
}

static int adds_zeros(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array x = input_of(input, 0), zeros = mlx_array_new();
    int code = mlx_zeros(&zeros, payload, 5, MLX_FLOAT32, stream) || mlx_add(&zeros, x, zeros, stream) || mlx_vector_array_set_value(res, zeros);
    mlx_array_free(x);
    mlx_array_free(zeros);
    return code;
}

/* 2^50 elements: an array of one value costs nothing; what would have to be stored is an error. */
static void more_than_there_is(void **state)
{
    static int many[5] = { 1024, 1024, 1024, 1024, 1024 };
    mlx_array one = mlx_array_new_float32(1), r = mlx_array_new(), exp = mlx_array_new(), out;
    mlx_string text = mlx_string_new();
    mlx_closure c = compiled(adds_zeros, many, true);
    long before = resident_kib();
    (void)state;
    for (int i = 0; i < 1000; i++) {
        OK(mlx_zeros(&r, many, 5, MLX_FLOAT32, stream));
        OK(mlx_ones(&r, many, 5, MLX_BFLOAT16, stream));
        OK(mlx_full(&r, many, 5, one, MLX_FLOAT32, stream));
        OK(mlx_broadcast_to(&r, one, many, 5, stream));
        OK(mlx_array_eval(r));
    }
    assert_true(sanitized() || resident_kib() - before < 1000);
    assert_true(mlx_array_size(r) == (size_t)1 << 50);
    assert_true(mlx_array_nbytes(r) == (size_t)1 << 52);
    if (!sanitized()) {                                  /* whose malloc ends the process */
        assert_null(mlx_array_data_float32(r));
        assert_non_null(strstr(error_message(), "no memory"));
        error_take();
        FAILS(mlx_array_tostring(&text, r), "no memory");
        FAILS(mlx_exp(&exp, r, stream), "");
        FAILS(apply(c, 1, &one, 1, &out), "");
        FAILS(apply(c, 1, &one, 1, &out), "");
        assert_null(exp.ctx);
    }
    many[4] = many[3] = many[2] = 1;                     /* as the trace has it no more */
    OK(mlx_detail_compile_clear_cache());
    OK(apply(c, 1, &one, 1, &out));
    assert_true(((const float *)array_data(out))[1024 * 1024 - 1] == 1);
    free_all(1, &out);
    free_all(1, &one);
    free_all(1, &r);
    OK(mlx_closure_free(c));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(no_elements_of_huge_extents), cmocka_unit_test(more_than_there_is) };
    return CLIENT_RUN(argc, argv, tests);
}
