/* Arrays and closures for the programs that are written against mlx-c's C interface. */
#include "client.h"

size_t shape_size(int rank, const int *shape)
{
    size_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= (size_t)shape[d];
    return n;
}

mlx_array array_of_bits(mlx_dtype dtype, int rank, const int *shape, const uint64_t *bits)
{
    size_t n = shape_size(rank, shape);
    void *memory = malloc(n * dtype_bytes(dtype) + 1);
    assert_non_null(memory);
    for (size_t i = 0; i < n; i++)
        bits_store(memory, dtype, i, bits[i]);
    mlx_array a = mlx_array_new_data(memory, shape, rank, dtype);
    free(memory);
    assert_non_null(a.ctx);
    return a;
}

mlx_array array_random(uint64_t *state, mlx_dtype dtype, int rank, const int *shape)
{
    size_t n = shape_size(rank, shape);
    uint64_t *bits = malloc((n + 1) * sizeof *bits);
    assert_non_null(bits);
    for (size_t i = 0; i < n; i++)
        bits[i] = bits_random(state, dtype);
    mlx_array a = array_of_bits(dtype, rank, shape, bits);
    free(bits);
    return a;
}

mlx_array array_f32(int n, const float *values)
{
    mlx_array a = mlx_array_new_data(values, &n, 1, MLX_FLOAT32);
    assert_non_null(a.ctx);
    return a;
}

const void *array_data(mlx_array a)
{
    OK(mlx_array_eval(a));
    if (mlx_array_size(a) == 0)
        return NULL;
    const void *data = NULL;
    switch ((int)mlx_array_dtype(a)) {
#define D(code, name, bytes) case code: data = (const void *)mlx_array_data_##name(a); break;
        DTYPES(D)
#undef D
    }
    if (!data)
        fail_msg("no data of dtype %d: %s", (int)mlx_array_dtype(a), error_message());
    return data;
}

void array_is(mlx_array a, mlx_dtype dtype, int rank, const int *shape)
{
    assert_non_null(a.ctx);
    assert_string_equal(dtype_name(mlx_array_dtype(a)), dtype_name(dtype));
    assert_int_equal(mlx_array_ndim(a), rank);
    for (int d = 0; d < rank; d++) {
        assert_int_equal(mlx_array_dim(a, d), shape[d]);
        assert_int_equal(mlx_array_shape(a)[d], shape[d]);
    }
    assert_int_equal(mlx_array_size(a), shape_size(rank, shape));
    assert_int_equal(mlx_array_nbytes(a), shape_size(rank, shape) * dtype_bytes(dtype));
    assert_int_equal(mlx_array_itemsize(a), dtype_bytes(dtype));
}

void array_equal_bits(mlx_array a, mlx_array b, const char *what)
{
    mlx_dtype dtype = mlx_array_dtype(b);
    array_is(a, dtype, (int)mlx_array_ndim(b), mlx_array_shape(b));
    const void *x = array_data(a), *y = array_data(b);
    size_t n = mlx_array_size(a), n_wrong = 0;
    for (size_t i = 0; i < n; i++)
        if (bits_load(x, dtype, i) != bits_load(y, dtype, i) && n_wrong++ < 3)
            print_error("%s, %s, element %zu of %zu: %llx, expected %llx\n", what, dtype_name(dtype), i, n, (unsigned long long)bits_load(x, dtype, i),
                        (unsigned long long)bits_load(y, dtype, i));
    if (n_wrong)
        fail_msg("%s: %zu of %zu elements differ", what, n_wrong, n);
}

/* ---- Closures ---- */

int apply(mlx_closure cls, int n, const mlx_array *in, int m, mlx_array *out)
{
    mlx_vector_array inputs = mlx_vector_array_new_data(in, (size_t)n), outputs = { 0 };
    assert_non_null(inputs.ctx);
    int code = mlx_closure_apply(&outputs, cls, inputs);
    mlx_vector_array_free(inputs);
    if (code == 0) {
        assert_int_equal(mlx_vector_array_size(outputs), m);
        for (int i = 0; i < m; i++)
            out[i] = input_of(outputs, (size_t)i);
    }
    if (outputs.ctx)
        mlx_vector_array_free(outputs);
    return code;
}

mlx_closure compiled(closure_function *f, void *payload, bool shapeless)
{
    mlx_closure plain = mlx_closure_new_func_payload(f, payload, NULL), c = { 0 };
    assert_non_null(plain.ctx);
    OK(mlx_compile(&c, plain, shapeless));
    OK(mlx_closure_free(plain));
    assert_non_null(c.ctx);
    return c;
}

mlx_array input_of(const mlx_vector_array input, size_t i)
{
    mlx_array a = mlx_array_new();
    if (mlx_vector_array_get(&a, input, i) != 0)
        fail_msg("no element %zu: %s", i, error_message());
    return a;
}

void free_all(int n, mlx_array *arrays)
{
    for (int i = 0; i < n; i++) {
        assert_int_equal(mlx_array_free(arrays[i]), 0);
        arrays[i].ctx = NULL;
    }
}
