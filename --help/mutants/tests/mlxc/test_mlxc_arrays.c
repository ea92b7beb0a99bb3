/* Arrays as containers: made of every dtype and rank, read by the getters, printed, shared, and memory of the caller's taken over. */
#include "client.h"

static void every_dtype_and_rank(void **state)
{
    const int shape[8] = { 2, 1, 3, 1, 2, 1, 1, 2 };
    uint64_t random = client_seed, bits[24];
    (void)state;
    for (int i = 0; i < N_DTYPES; i++)
        for (int rank = 0; rank <= 8; rank++) {
            for (size_t k = 0; k < 24; k++)
                bits[k] = bits_random(&random, dtypes[i]);
            mlx_array a = array_of_bits(dtypes[i], rank, rank ? shape : NULL, bits), b = mlx_array_new();
            array_is(a, dtypes[i], rank, shape);
            const void *data = array_data(a);
            size_t stride = 1;
            for (size_t k = 0; k < shape_size(rank, shape); k++)
                assert_int_equal(bits_load(data, dtypes[i], k), bits_load(&bits[k], dtypes[i], 0));
            for (int d = rank; d-- > 0; stride *= (size_t)shape[d]) {
                if (shape[d] > 1)
                    assert_int_equal(mlx_array_strides(a)[d], stride);
                assert_int_equal(mlx_array_dim(a, d - rank), shape[d]);
            }
            OK(mlx_array_set(&b, a));
            array_equal_bits(b, a, "another reference");
            OK(mlx_array_set_data(&b, data, shape, rank, dtypes[i]));
            array_equal_bits(b, a, "set_data");
            free_all(1, &a);
            free_all(1, &b);
        }
}

/* The memory given is copied: it may change at once. Odd addresses are allowed. */
static void data_is_copied(void **state)
{
    const int n = 3;
    char memory[3 * 4 + 1];
    float x[3] = { 1, 2, 3 };
    (void)state;
    memcpy(memory + 1, x, sizeof x);
    mlx_array a = mlx_array_new_data(memory + 1, &n, 1, MLX_FLOAT32), e = array_f32(3, x);
    memset(memory, 0x55, sizeof memory);
    array_equal_bits(a, e, "after the memory changed");
    free_all(1, &a);
    free_all(1, &e);
}

/* Any other byte of a bool is true, and reads back as 1. */
static void bools_are_0_or_1(void **state)
{
    static unsigned char bytes[4] = { 0, 1, 2, 255 };
    const int n = 4;
    const uint64_t right[4] = { 0, 1, 1, 1 };
    mlx_array a = mlx_array_new_data(bytes, &n, 1, MLX_BOOL), r = mlx_array_new(), e = array_of_bits(MLX_BOOL, 1, &n, right);
    (void)state;
    array_equal_bits(a, e, "read back");
    OK(mlx_logical_and(&r, a, a, stream));
    array_equal_bits(r, e, "and");
    free_all(1, &a);
    a = mlx_array_new_data_managed(bytes, &n, 1, MLX_BOOL, NULL);
    OK(mlx_logical_or(&r, a, a, stream));
    array_equal_bits(r, e, "or, of managed memory");
    OK(mlx_astype(&r, a, MLX_BOOL, stream));
    array_equal_bits(r, e, "a copy of managed memory");
    array_equal_bits(a, e, "managed memory itself");         /* which is not written to: what is read is a copy */
    assert_memory_equal(bytes, ((unsigned char[]){ 0, 1, 2, 255 }), 4);
    assert_ptr_equal(mlx_array_data_bool(a), mlx_array_data_bool(a));
    free_all(1, &a);
    for (int i = 0; i < 4; i++) {
        bool item;
        unsigned char read;
        a = mlx_array_new_data_managed(&bytes[i], NULL, 0, MLX_BOOL, NULL);
        OK(mlx_array_item_bool(&item, a));
        memcpy(&read, &item, 1);
        assert_int_equal(read, right[i]);
        read = *(const unsigned char *)mlx_array_data_bool(a);
        assert_int_equal(read, right[i]);
        free_all(1, &a);
    }
    a = mlx_array_new_data_managed(bytes, (const int[]){ 2 }, 1, MLX_BOOL, NULL);
    assert_ptr_equal(mlx_array_data_bool(a), bytes);         /* 0 and 1: as with any other dtype */
    free_all(1, &a);
    free_all(1, &r);
    free_all(1, &e);
}

static void items(void **state)
{
    (void)state;
#define ITEM(code, name, type, value)                                       \
    do {                                                                    \
        type v = (type)(value), r = 0, many[2] = { v, v };                  \
        const int two = 2, ones[3] = { 1, 1, 1 };                           \
        mlx_array a = mlx_array_new_data(&v, NULL, 0, code);                \
        OK(mlx_array_item_##name(&r, a));                                   \
        assert_true(r == v);                                                \
        assert_true(*mlx_array_data_##name(a) == v);                        \
        OK(mlx_array_set_data(&a, &v, ones, 3, code));                      \
        r = 0;                                                              \
        OK(mlx_array_item_##name(&r, a));                                   \
        assert_true(r == v);                                                \
        OK(mlx_array_set_data(&a, many, &two, 1, code));                    \
        FAILS(mlx_array_item_##name(&r, a), "");                            \
        OK(mlx_array_set_data(&a, many, (const int[]){ 0 }, 1, code));      \
        FAILS(mlx_array_item_##name(&r, a), "");                            \
        free_all(1, &a);                                                    \
    } while (0)
    ITEM(MLX_BOOL, bool, bool, true);
    ITEM(MLX_UINT8, uint8, uint8_t, 255);
    ITEM(MLX_UINT16, uint16, uint16_t, 65535);
    ITEM(MLX_UINT32, uint32, uint32_t, 4294967295u);
    ITEM(MLX_UINT64, uint64, uint64_t, 18446744073709551615u);
    ITEM(MLX_INT8, int8, int8_t, -128);
    ITEM(MLX_INT16, int16, int16_t, -32768);
    ITEM(MLX_INT32, int32, int32_t, -2147483647);
    ITEM(MLX_INT64, int64, int64_t, -9223372036854775807);
    ITEM(MLX_FLOAT16, float16, uint16_t, 0x3C01);
    ITEM(MLX_BFLOAT16, bfloat16, uint16_t, 0x3F81);
    ITEM(MLX_FLOAT32, float32, float, -1.5f);
#undef ITEM
}

static void scalars(void **state)
{
    bool b;
    int32_t i;
    float f;
    mlx_array a = mlx_array_new_bool(true);
    (void)state;
    array_is(a, MLX_BOOL, 0, NULL);
    OK(mlx_array_item_bool(&b, a));
    assert_true(b);
    OK(mlx_array_set_int(&a, -7));
    array_is(a, MLX_INT32, 0, NULL);
    OK(mlx_array_item_int32(&i, a));
    assert_int_equal(i, -7);
    OK(mlx_array_set_float32(&a, 0.1f));
    array_is(a, MLX_FLOAT32, 0, NULL);
    OK(mlx_array_item_float32(&f, a));
    assert_true(f == 0.1f);
    OK(mlx_array_set_float(&a, 1e-45f));
    OK(mlx_array_item_float32(&f, a));
    assert_true(f == 1e-45f);
    OK(mlx_array_set_bool(&a, false));
    OK(mlx_array_item_bool(&b, a));
    assert_false(b);
    free_all(1, &a);
    a = mlx_array_new_float(2.5f);
    array_is(a, MLX_FLOAT32, 0, NULL);
    free_all(1, &a);
}

/* A getter of another dtype, or of another size, never reads beyond the data. */
static void getters_of_another_dtype(void **state)
{
    uint64_t bits = 3;
    (void)state;
    for (int i = 0; i < N_DTYPES; i++) {
        mlx_array a = array_of_bits(dtypes[i], 0, NULL, &bits);
#define D(code, name, bytes)                                                     \
        if (dtypes[i] != code) {                                                 \
            assert_null(mlx_array_data_##name(a));                               \
            assert_true(error_take() >= 1);                                      \
        }
        DTYPES(D)
#undef D
        free_all(1, &a);
    }
}

/* ---- Printing ---- */

static void prints(mlx_array a, const char *const *parts, size_t n)
{
    mlx_string text = mlx_string_new();
    OK(mlx_array_tostring(&text, a));
    assert_non_null(mlx_string_data(text));
    for (size_t i = 0; i < n; i++)
        if (!strstr(mlx_string_data(text), parts[i]))
            fail_msg("no \"%s\" in %s", parts[i], mlx_string_data(text));
    OK(mlx_string_free(text));
}

static void printing(void **state)
{
    const int shape[2] = { 2, 2 }, none[2] = { 0, 3 }, large[2] = { 1000, 1000 };
    const uint64_t bits[4] = { 1, 0, 1, 1 }, huge[1] = { 18446744073709551615u };
    const float x[4] = { 1.5f, -0.0f, -1e-40f, 3e38f };
    mlx_array a = mlx_array_new_data(x, shape, 2, MLX_FLOAT32);
    (void)state;
    prints(a, (const char *const[]){ "array(", "[[1.5", "float32" }, 3);
    free_all(1, &a);
    a = array_of_bits(MLX_BOOL, 2, shape, bits);
    prints(a, (const char *const[]){ "[[", "rue", "alse", "bool" }, 4);
    free_all(1, &a);
    a = array_of_bits(MLX_UINT64, 0, NULL, huge);
    prints(a, (const char *const[]){ "18446744073709551615", "uint64" }, 2);
    free_all(1, &a);
    for (int i = 0; i < N_DTYPES; i++) {
        mlx_array one = array_of_bits(dtypes[i], 2, shape, bits), r = mlx_array_new();
        prints(one, (const char *const[]){ dtype_name(dtypes[i]) }, 1);
        OK(mlx_zeros(&r, none, 2, dtypes[i], stream));
        prints(r, (const char *const[]){ dtype_name(dtypes[i]) }, 1);
        OK(mlx_zeros(&r, large, 2, dtypes[i], stream));
        prints(r, (const char *const[]){ dtype_name(dtypes[i]) }, 1);
        free_all(1, &one);
        free_all(1, &r);
    }
    mlx_string version = mlx_string_new();
    OK(mlx_version(&version));
    assert_non_null(strstr(mlx_string_data(version), "0.6"));
    OK(mlx_version(&version));
    OK(mlx_string_free(version));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_and_rank), cmocka_unit_test(data_is_copied), cmocka_unit_test(bools_are_0_or_1), cmocka_unit_test(items), cmocka_unit_test(scalars),
        cmocka_unit_test(getters_of_another_dtype), cmocka_unit_test(printing),
    };
    return CLIENT_RUN(argc, argv, tests);
}
