/* Empty handles and wrong arguments into every function: an error with a message, or nothing, never a crash. */
#include "client.h"
#include "elementwise.h"

#include <limits.h>

static const mlx_array no_array;
static const mlx_vector_array no_vector;
static const mlx_closure no_closure;
static const mlx_stream no_stream;
static const mlx_device no_device;
static const mlx_string no_string;

/* A getter that has nothing to give says so. */
#define NOTHING(value)                          \
    do {                                        \
        assert_true(!(value));                  \
        assert_true(error_take() >= 1);         \
    } while (0)

static void freeing_nothing(void **state)
{
    (void)state;
    OK(mlx_array_free(no_array));
    OK(mlx_vector_array_free(no_vector));
    OK(mlx_closure_free(no_closure));
    OK(mlx_stream_free(no_stream));
    OK(mlx_device_free(no_device));
    OK(mlx_string_free(no_string));
    OK(mlx_array_free(mlx_array_new()));
    OK(mlx_vector_array_free(mlx_vector_array_new()));
    OK(mlx_closure_free(mlx_closure_new()));
    OK(mlx_string_free(mlx_string_new()));
}

static void elementwise(void **state)
{
    mlx_array one = mlx_array_new_int(1), r = mlx_array_new(), kept = mlx_array_new_int(5);
    int32_t item;
    (void)state;
#define X(name)                                                            \
    FAILS(mlx_##name(&r, no_array, stream), "");                           \
    FAILS(mlx_##name(NULL, one, stream), "");                              \
    FAILS(mlx_##name(&kept, no_array, stream), "");
    MLXC_UNARY(X)
#undef X
#define X(name)                                                            \
    FAILS(mlx_##name(&r, no_array, one, stream), "");                      \
    FAILS(mlx_##name(&r, one, no_array, stream), "");                      \
    FAILS(mlx_##name(NULL, one, one, stream), "");                         \
    FAILS(mlx_##name(&kept, no_array, no_array, no_stream), "");
    MLXC_BINARY(X)
#undef X
    FAILS(mlx_astype(&r, no_array, MLX_INT8, stream), "");
    FAILS(mlx_astype(NULL, one, MLX_INT8, stream), "");
    FAILS(mlx_round(&r, no_array, 0, stream), "");
    FAILS(mlx_clip(&r, no_array, one, one, stream), "");
    FAILS(mlx_where(&r, no_array, one, one, stream), "");
    FAILS(mlx_where(&r, one, no_array, one, stream), "");
    FAILS(mlx_where(&r, one, one, no_array, stream), "");
    FAILS(mlx_where(NULL, one, one, one, stream), "");
    FAILS(mlx_broadcast_to(&r, no_array, NULL, 0, stream), "");
    FAILS(mlx_full(&r, NULL, 0, no_array, MLX_INT8, stream), "");
    FAILS(mlx_zeros(NULL, NULL, 0, MLX_INT8, stream), "");
    FAILS(mlx_ones(NULL, NULL, 0, MLX_INT8, stream), "");
    assert_null(r.ctx);
    OK(mlx_array_item_int32(&item, kept));
    assert_int_equal(item, 5);
    /* A stream that is empty: an error, or the default one; not a crash. */
    if (mlx_exp(&r, one, no_stream) != 0)
        assert_true(error_take() >= 1);
    free_all(1, &one);
    free_all(1, &kept);
    OK(mlx_array_free(r));
}

static void shapes(void **state)
{
    static const struct { size_t rank; int dims[10]; } wrong[] = {
        { 1, { -1 } }, { 2, { 3, -2 } }, { 9, { 1, 1, 1, 1, 1, 1, 1, 1, 1 } }, { 4, { INT_MAX, INT_MAX, INT_MAX, INT_MAX } }, { 1, { INT_MIN } },
        { 3, { INT_MAX, INT_MAX, 4 } },
    };
    mlx_array one = mlx_array_new_float32(1), r = mlx_array_new();
    float x[1] = { 1 };
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        FAILS(mlx_zeros(&r, wrong[i].dims, wrong[i].rank, MLX_FLOAT32, stream), "");
        FAILS(mlx_ones(&r, wrong[i].dims, wrong[i].rank, MLX_FLOAT32, stream), "");
        FAILS(mlx_full(&r, wrong[i].dims, wrong[i].rank, one, MLX_FLOAT32, stream), "");
        FAILS(mlx_broadcast_to(&r, one, wrong[i].dims, wrong[i].rank, stream), "");
        NOTHING(mlx_array_new_data(x, wrong[i].dims, (int)wrong[i].rank, MLX_FLOAT32).ctx);
        NOTHING(mlx_array_new_data_managed(x, wrong[i].dims, (int)wrong[i].rank, MLX_FLOAT32, NULL).ctx);
    }
    FAILS(mlx_zeros(&r, NULL, 2, MLX_FLOAT32, stream), "");
    FAILS(mlx_broadcast_to(&r, one, NULL, 2, stream), "");
    FAILS(mlx_zeros(&r, wrong[0].dims, SIZE_MAX, MLX_FLOAT32, stream), "");
    NOTHING(mlx_array_new_data(x, NULL, 1, MLX_FLOAT32).ctx);
    NOTHING(mlx_array_new_data(x, wrong[0].dims, -1, MLX_FLOAT32).ctx);
    NOTHING(mlx_array_new_data(NULL, NULL, 0, MLX_FLOAT32).ctx);
    FAILS(mlx_array_set_data(&r, NULL, NULL, 0, MLX_FLOAT32), "");
    FAILS(mlx_array_set_data(NULL, x, NULL, 0, MLX_FLOAT32), "");
    /* No elements need no memory. */
    OK(mlx_array_set_data(&r, NULL, (const int[]){ 0 }, 1, MLX_FLOAT32));
    OK(mlx_array_eval(r));
    free_all(1, &one);
    free_all(1, &r);
}

static void arrays(void **state)
{
    mlx_array one = mlx_array_new_float32(1), r = mlx_array_new();
    mlx_string text = mlx_string_new();
    (void)state;
    FAILS(mlx_array_set(NULL, one), "");
    FAILS(mlx_array_set_bool(NULL, true), "");
    FAILS(mlx_array_set_int(NULL, 1), "");
    FAILS(mlx_array_set_float32(NULL, 1), "");
    FAILS(mlx_array_set_float(NULL, 1), "");
    FAILS(mlx_array_eval(no_array), "");
    FAILS(mlx_array_tostring(&text, no_array), "");
    FAILS(mlx_array_tostring(NULL, one), "");
    NOTHING(mlx_array_ndim(no_array));
    NOTHING(mlx_array_shape(no_array));
    NOTHING(mlx_array_strides(no_array));
    NOTHING(mlx_array_size(no_array));
    NOTHING(mlx_array_nbytes(no_array));
    NOTHING(mlx_array_itemsize(no_array));
    NOTHING(mlx_array_dim(no_array, 0));
    NOTHING(mlx_array_dim(one, 0));
    NOTHING(mlx_array_dtype(no_array));
#define D(code, name, bytes)                                               \
    NOTHING(mlx_array_data_##name(no_array));                              \
    FAILS(mlx_array_item_##name(NULL, one), "");
    DTYPES(D)
#undef D
    bool b;
    uint8_t u8[8];
    FAILS(mlx_array_item_bool(&b, no_array), "");
    FAILS(mlx_array_item_uint8(u8, no_array), "");
    FAILS(mlx_array_item_float32((float *)(void *)u8, no_array), "");
    /* Assigning nothing empties, or is refused. */
    OK(mlx_array_set(&r, one));
    if (mlx_array_set(&r, no_array) != 0)
        assert_true(error_take() >= 1);
    OK(mlx_array_free(r));
    free_all(1, &one);
    OK(mlx_string_free(text));
    NOTHING(mlx_string_data(no_string));
    FAILS(mlx_version(NULL), "");
}

static void vectors(void **state)
{
    mlx_array one = mlx_array_new_int(1), r = mlx_array_new();
    mlx_vector_array v = mlx_vector_array_new_value(one);
    (void)state;
    NOTHING(mlx_vector_array_size(no_vector));
    FAILS(mlx_vector_array_get(&r, no_vector, 0), "");
    FAILS(mlx_vector_array_get(&r, v, 1), "");
    FAILS(mlx_vector_array_get(&r, v, SIZE_MAX), "");
    FAILS(mlx_vector_array_get(NULL, v, 0), "");
    FAILS(mlx_vector_array_append_value(no_vector, one), "");
    FAILS(mlx_vector_array_append_data(no_vector, &one, 1), "");
    FAILS(mlx_vector_array_append_data(v, NULL, 1), "");
    FAILS(mlx_vector_array_set_value(NULL, one), "");
    FAILS(mlx_vector_array_set_data(NULL, &one, 1), "");
    FAILS(mlx_vector_array_set_data(&v, NULL, 3), "");
    FAILS(mlx_vector_array_set(NULL, v), "");
    NOTHING(mlx_vector_array_new_data(NULL, 2).ctx);
    assert_int_equal(mlx_vector_array_size(v), 1);
    assert_null(r.ctx);
    OK(mlx_vector_array_append_data(v, NULL, 0));
    OK(mlx_vector_array_free(v));
    free_all(1, &one);
}

static int copies(mlx_vector_array *res, const mlx_vector_array input)
{
    return mlx_vector_array_set(res, input);
}

static void closures_and_the_rest(void **state)
{
    mlx_closure c = mlx_closure_new_func(copies), r = mlx_closure_new();
    mlx_vector_array out = { 0 }, in = mlx_vector_array_new();
    (void)state;
    FAILS(mlx_closure_apply(&out, no_closure, in), "");
    FAILS(mlx_closure_apply(&out, c, no_vector), "");
    FAILS(mlx_closure_apply(NULL, c, in), "");
    FAILS(mlx_compile(NULL, c, true), "");
    FAILS(mlx_compile(&r, no_closure, false), "");
    FAILS(mlx_closure_set(NULL, c), "");
    NOTHING(mlx_closure_new_func(NULL).ctx);
    NOTHING(mlx_closure_new_unary(NULL).ctx);
    NOTHING(mlx_closure_new_func_payload(NULL, NULL, NULL).ctx);
    assert_null(r.ctx);
    assert_null(out.ctx);
    FAILS(mlx_set_compile_mode((mlx_compile_mode)4), "");
    FAILS(mlx_set_compile_mode((mlx_compile_mode)-1), "");
    FAILS(mlx_get_default_device(NULL), "");
    FAILS(mlx_set_default_device(no_device), "");
    FAILS(mlx_synchronize(no_stream), "");
    NOTHING(mlx_device_new_type((mlx_device_type)2, 0).ctx);
    NOTHING(mlx_device_new_type(MLX_GPU, 1000).ctx);
    NOTHING(mlx_device_new_type(MLX_CPU, -1).ctx);
    OK(mlx_closure_free(c));
    OK(mlx_vector_array_free(in));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freeing_nothing), cmocka_unit_test(elementwise), cmocka_unit_test(shapes), cmocka_unit_test(arrays),
        cmocka_unit_test(vectors), cmocka_unit_test(closures_and_the_rest),
    };
    return CLIENT_RUN(argc, argv, tests);
}
