/* Modes of compiling, and devices: what is traced when, and that the bits are the same in every mode. */
#include "seed.h"

static const float x3[3] = { 0.5f, -1, 100 };

/* ---- Modes ---- */

static int count_and_exp(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array x = input_of(input, 0), r = mlx_array_new();
    ++*(int *)payload;
    int code = mlx_exp(&r, x, stream) || mlx_negative(&r, r, stream) || mlx_sigmoid(&r, r, stream) || mlx_vector_array_set_value(res, r);
    mlx_array_free(x);
    mlx_array_free(r);
    return code;
}

static void apply_and_compare(mlx_closure c, mlx_array expected, long n_launches)
{
    mlx_array in = array_f32(3, x3), out;
    long before = launches();
    OK(apply(c, 1, &in, 1, &out));
    OK(mlx_array_eval(out));
    if (before >= 0)
        assert_int_equal(launches() - before, n_launches);
    if (expected.ctx)
        array_equal_bits(out, expected, "in this mode");
    free_all(1, &in);
    free_all(1, &out);
}

static void modes(void **state)
{
    int n_calls = 0;
    mlx_closure c = compiled(count_and_exp, &n_calls, true);
    mlx_array in = array_f32(3, x3), expected;
    (void)state;
    OK(apply(c, 1, &in, 1, &expected));
    free_all(1, &in);
    for (int round = 0; round < 2; round++) {
        n_calls = 0;
        OK(mlx_set_compile_mode(MLX_COMPILE_MODE_DISABLED));
        apply_and_compare(c, expected, 3);
        apply_and_compare(c, expected, 3);
        assert_int_equal(n_calls, 2);
        OK(mlx_set_compile_mode(MLX_COMPILE_MODE_NO_FUSE));
        apply_and_compare(c, expected, 3);
        OK(mlx_set_compile_mode(MLX_COMPILE_MODE_NO_SIMPLIFY));
        apply_and_compare(c, expected, 1);
        OK(mlx_set_compile_mode(MLX_COMPILE_MODE_ENABLED));
        apply_and_compare(c, expected, 1);
        OK(mlx_disable_compile());
        n_calls = 0;
        apply_and_compare(c, expected, 3);
        assert_int_equal(n_calls, 1);
        OK(mlx_enable_compile());
        apply_and_compare(c, expected, 1);
    }
    free_all(1, &expected);
    OK(mlx_closure_free(c));
}

static void clearing_traces_again(void **state)
{
    int n_calls = 0;
    mlx_closure c = compiled(count_and_exp, &n_calls, true), copy = mlx_closure_new();
    const mlx_array any = { 0 };
    (void)state;
    OK(mlx_closure_set(&copy, c));
    apply_and_compare(c, any, 1);
    apply_and_compare(copy, any, 1);
    assert_int_equal(n_calls, 1);
    OK(mlx_detail_compile_clear_cache());
    OK(mlx_detail_compile_clear_cache());
    apply_and_compare(c, any, 1);
    apply_and_compare(copy, any, 1);
    assert_int_equal(n_calls, 2);
    OK(mlx_closure_free(c));
    apply_and_compare(copy, any, 1);
    assert_int_equal(n_calls, 2);
    OK(mlx_closure_free(copy));
}

/* Not by an uncompiled closure, and by each combination of dtypes once. */
static void one_trace_for_each_mix(void **state)
{
    int n_calls = 0;
    mlx_closure c = compiled(count_and_exp, &n_calls, true);
    (void)state;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < N_DTYPES; i++)
            for (int n = 1; n < 4; n++) {
                uint64_t random = client_seed;
                mlx_array in = array_random(&random, dtypes[i], 1, &n), out;
                OK(apply(c, 1, &in, 1, &out));
                free_all(1, &in);
                free_all(1, &out);
            }
    assert_int_equal(n_calls, N_DTYPES);
    OK(mlx_closure_free(c));
}

/* ---- Devices ---- */

static void devices(void **state)
{
    mlx_device d = { 0 }, cpu = mlx_device_new_type(MLX_CPU, 0), gpu = mlx_device_new_type(MLX_GPU, 0);
    mlx_stream on_cpu = mlx_default_cpu_stream_new(), again = mlx_default_gpu_stream_new();
    mlx_array a = mlx_array_new_float32(1), b = mlx_array_new(), c = mlx_array_new();
    (void)state;
    assert_non_null(cpu.ctx);
    assert_non_null(gpu.ctx);
    OK(mlx_get_default_device(&d));
    assert_non_null(d.ctx);
    /* Results of one device are operands on the other. */
    OK(mlx_exp(&b, a, on_cpu));
    OK(mlx_exp(&b, b, again));
    OK(mlx_exp(&b, b, on_cpu));
    OK(mlx_exp(&c, a, stream));
    OK(mlx_exp(&c, c, stream));
    OK(mlx_exp(&c, c, stream));
    array_equal_bits(b, c, "by way of both devices");
    OK(mlx_set_default_device(cpu));
    OK(mlx_exp(&c, a, stream));
    OK(mlx_set_default_device(gpu));
    OK(mlx_set_default_device(d));
    OK(mlx_get_default_device(&d));
    OK(mlx_synchronize(on_cpu));
    OK(mlx_synchronize(stream));
    OK(mlx_device_free(d));
    OK(mlx_device_free(cpu));
    OK(mlx_device_free(gpu));
    OK(mlx_stream_free(on_cpu));
    OK(mlx_stream_free(again));
    free_all(1, &a);
    free_all(1, &b);
    free_all(1, &c);
}

/* A composite runs on the GPU if any operation in it was given a stream of it. */
static int on_both(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    int gpu_first = *(int *)payload;
    mlx_stream on_cpu = mlx_default_cpu_stream_new();
    mlx_array x = input_of(input, 0);
    int code = mlx_exp(&x, x, gpu_first ? stream : on_cpu) || mlx_negative(&x, x, gpu_first ? on_cpu : stream) || mlx_vector_array_set_value(res, x);
    mlx_array_free(x);
    mlx_stream_free(on_cpu);
    return code;
}

static void streams_of_both_devices(void **state)
{
    (void)state;
    for (int gpu_first = 0; gpu_first < 2; gpu_first++) {
        mlx_closure c = compiled(on_both, &gpu_first, true);
        mlx_array in = array_f32(3, x3), out;
        long before = fake_launches();
        OK(apply(c, 1, &in, 1, &out));
        OK(mlx_array_eval(out));
        if (before >= 0)
            assert_int_equal(fake_launches() - before, 1);
        free_all(1, &in);
        free_all(1, &out);
        OK(mlx_closure_free(c));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes), cmocka_unit_test(clearing_traces_again), cmocka_unit_test(one_trace_for_each_mix),
        cmocka_unit_test(devices), cmocka_unit_test(streams_of_both_devices),
    };
    return CLIENT_RUN(argc, argv, tests);
}
