/* Every allocation of compat/mlxc fails once, in each of a set of scenes: the call says so through the handler, nothing crashes, results
 * are untouched, and once there is memory again the same scene works. And nothing stays behind: a scene run to its end gives back
 * all that it took. The C library's allocations are wrapped at link time (-Wl,--wrap=…), in the static libraries. */
#include "harness.h"

#include "mlx/c/mlx.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static atomic_long n_calls, n_alive, fail_at;      /* fail_at: the call that fails, and all after it if fail_on is set; 0: none */
static atomic_int fail_on, n_messages;

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *pointer, size_t n_bytes);
void *__real_aligned_alloc(size_t alignment, size_t n_bytes);
void __real_free(void *pointer);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *pointer, size_t n_bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes);
void __wrap_free(void *pointer);

/* Whether this call is to fail. */
static int fails(void)
{
    long call = atomic_fetch_add(&n_calls, 1) + 1, at = atomic_load(&fail_at);
    return at > 0 && (call == at || (call > at && atomic_load(&fail_on)));
}

static void *counted(void *pointer)
{
    atomic_fetch_add(&n_alive, pointer != NULL);
    return pointer;
}

void *__wrap_malloc(size_t n_bytes)
{
    return fails() ? NULL : counted(__real_malloc(n_bytes));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *pointer, size_t n_bytes)
{
    if (fails())
        return NULL;
    void *moved = __real_realloc(pointer, n_bytes);
    return pointer ? moved : counted(moved);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n_bytes)
{
    return fails() ? NULL : counted(__real_aligned_alloc(alignment, n_bytes));
}

void __wrap_free(void *pointer)
{
    atomic_fetch_sub(&n_alive, pointer != NULL);
    __real_free(pointer);
}

static void count_message(const char *message, void *data)
{
    (void)data;
    assert_true(strlen(message) > 0);
    atomic_fetch_add(&n_messages, 1);
}

/* ---- Scenes: 0, or 1 where a call failed. They free what they made in either case. ---- */

typedef int scene(mlx_stream s);
#define DO(call) (code = code ? code : (call))

static int arrays(mlx_stream s)
{
    static const float values[6] = { 1, 2, 3, 4, 5, 6 };
    const int shape[2] = { 2, 3 }, wide[3] = { 4, 2, 3 };
    mlx_array a = mlx_array_new_data(values, shape, 2, MLX_FLOAT32), b = mlx_array_new(), c = mlx_array_new();
    mlx_string text = mlx_string_new();
    int code = a.ctx == NULL;
    DO(mlx_array_set(&b, a));
    DO(mlx_add(&c, a, b, s));
    DO(mlx_astype(&c, c, MLX_BFLOAT16, s));
    DO(mlx_degrees(&c, c, s));
    DO(mlx_broadcast_to(&c, a, wide, 3, s));
    DO(mlx_array_data_float32(c) == NULL);
    DO(mlx_zeros(&b, wide, 3, MLX_INT8, s));
    DO(mlx_array_data_int8(b) == NULL);
    DO(mlx_array_set_float(&b, 2));
    DO(mlx_full(&b, shape, 2, b, MLX_FLOAT16, s));
    DO(mlx_version(&text));
    mlx_string_free(text);
    mlx_array_free(a);
    mlx_array_free(b);
    mlx_array_free(c);
    return code;
}

static int vectors(mlx_stream s)
{
    mlx_array a = mlx_array_new_float(1), b = mlx_array_new();
    mlx_vector_array v = mlx_vector_array_new(), w = { NULL };
    int code = !a.ctx || !v.ctx;
    (void)s;
    for (int i = 0; i < 20; i++)
        DO(mlx_vector_array_append_value(v, a));
    DO(mlx_vector_array_set(&w, v));
    DO(mlx_vector_array_get(&b, w, 19));
    DO(mlx_vector_array_set_value(&w, b));
    mlx_vector_array_free(v);
    mlx_vector_array_free(w);
    mlx_array_free(a);
    mlx_array_free(b);
    return code;
}

/* With a captured array, constants, and an output that is the array. */
static int traced(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    const int shape[1] = { 3 };
    mlx_array *captured = payload, x = mlx_array_new(), y = mlx_array_new(), z = mlx_array_new(), outputs[4];
    mlx_stream s = mlx_default_gpu_stream_new();
    int code = s.ctx == NULL;
    DO(mlx_vector_array_get(&x, input, 0));
    DO(mlx_vector_array_get(&y, input, 1));
    DO(mlx_add(&x, x, y, s));
    DO(mlx_multiply(&x, x, *captured, s));
    DO(mlx_ones(&z, shape, 1, MLX_FLOAT32, s));
    DO(mlx_add(&z, x, z, s));
    DO(mlx_round(&y, y, 1, s));
    outputs[0] = x;
    outputs[1] = z;
    outputs[2] = *captured;
    outputs[3] = x;
    DO(mlx_vector_array_set_data(res, outputs, 4));
    mlx_array_free(x);
    mlx_array_free(y);
    mlx_array_free(z);
    mlx_stream_free(s);
    return code;
}

/* n_inputs: more than a function looks at, to pass what is kept on the stack. */
static int apply_compiled(int n_inputs, bool shapeless)
{
    static const float values[3] = { 1, 2, 3 };
    const int shape[1] = { 3 };
    mlx_array captured = mlx_array_new_data(values, shape, 1, MLX_FLOAT32), x = mlx_array_new_data(values, shape, 1, MLX_FLOAT32);
    mlx_array kept = mlx_array_new_int(7), out = mlx_array_new();
    mlx_vector_array input = mlx_vector_array_new(), res = mlx_vector_array_new_value(kept);
    mlx_closure plain = mlx_closure_new_func_payload(traced, &captured, NULL), c = mlx_closure_new();
    int code = !captured.ctx || !x.ctx || !kept.ctx || !input.ctx || !res.ctx || !plain.ctx;
    for (int i = 0; i < n_inputs; i++)
        DO(mlx_vector_array_append_value(input, x));
    DO(mlx_compile(&c, plain, shapeless));
    for (int i = 0; i < 2 && !code; i++) {
        size_t before = mlx_vector_array_size(res);
        code = mlx_closure_apply(&res, c, input);
        if (code)
            assert_int_equal(mlx_vector_array_size(res), before);
    }
    DO(mlx_vector_array_get(&out, res, 1));
    const float *data = code ? NULL : mlx_array_data_float32(out);        /* of a GPU: a copy, which takes memory */
    code |= !data;
    if (data)
        assert_true(data[2] == 19);
    mlx_array_free(out);
    mlx_array_free(kept);
    mlx_array_free(x);
    mlx_array_free(captured);
    mlx_vector_array_free(input);
    mlx_vector_array_free(res);
    mlx_closure_free(plain);
    mlx_closure_free(c);
    return code;
}

static int composites(mlx_stream s)
{
    (void)s;
    return apply_compiled(2, true);
}

static int composites_of_many(mlx_stream s)
{
    (void)s;
    return apply_compiled(300, false);
}

static int destroyed;
static void destroy(void *data)
{
    (void)data;
    destroyed++;
}

/* What was handed over is released once where it was taken, and not where it was not. */
static int handed_over(mlx_stream s)
{
    static float memory[3];
    const int shape[1] = { 3 };
    (void)s;
    destroyed = 0;
    mlx_array a = mlx_array_new_data_managed(memory, shape, 1, MLX_FLOAT32, destroy);
    mlx_closure c = mlx_closure_new_func_payload(traced, memory, destroy);
    int taken = (a.ctx != NULL) + (c.ctx != NULL);
    mlx_array_free(a);
    mlx_closure_free(c);
    assert_int_equal(destroyed, taken);
    return taken != 2;
}

/* ---- Each allocation of each scene ---- */

static void run_scene(scene *f)
{
    mlx_detail_compile_clear_cache();
    mlx_stream s = mlx_default_gpu_stream_new();
    assert_int_equal(f(s), 0);                       /* what stays, such as devices, is there now */
    for (int all_after = 0; all_after < 2; all_after++) {
        int code = 1;
        for (long k = 1; code; k++) {
            mlx_detail_compile_clear_cache();
            long alive = atomic_load(&n_alive);
            atomic_store(&n_messages, 0);
            atomic_store(&n_calls, 0);
            atomic_store(&fail_on, all_after);
            atomic_store(&fail_at, k);
            code = f(s);
            int reached = atomic_load(&n_calls) >= k;
            atomic_store(&fail_at, 0);
            mlx_detail_compile_clear_cache();
            assert_int_equal(atomic_load(&n_alive), alive);
            assert_true(!code || atomic_load(&n_messages) > 0);
            if (!code && reached)                     /* a failure that was got over, such as of remembering a plan */
                code = 1;
            assert_true(k < 100000);
        }
        assert_int_equal(f(s), 0);
    }
    mlx_stream_free(s);
}

static void each_allocation_fails(void **state)
{
    static scene *const scenes[] = { arrays, vectors, composites, composites_of_many, handed_over };
    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        run_scene(scenes[i]);
}

/* The first use of a device and of a handler. */
static void first_uses(void **state)
{
    (void)state;
    atomic_store(&fail_on, 0);
    for (long k = 1;; k++) {
        atomic_store(&n_messages, 0);
        atomic_store(&n_calls, 0);
        atomic_store(&fail_at, k);
        mlx_stream s = mlx_default_gpu_stream_new();
        atomic_store(&fail_at, 0);
        if (s.ctx) {
            mlx_stream_free(s);
            break;
        }
        assert_true(atomic_load(&n_messages) > 0);
    }
    atomic_store(&n_calls, 0);
    atomic_store(&fail_at, 1);
    destroyed = 0;
    mlx_set_error_handler(count_message, NULL, destroy);
    atomic_store(&fail_at, 0);
    assert_int_equal(destroyed, 1);
    mlx_set_error_handler(count_message, NULL, destroy);
    mlx_set_error_handler(count_message, NULL, NULL);
    assert_int_equal(destroyed, 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(first_uses), cmocka_unit_test(each_allocation_fails) };
    mlx_set_error_handler(count_message, NULL, NULL);
    return HARNESS_RUN(argc, argv, tests);
}
