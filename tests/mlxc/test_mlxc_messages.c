/* What errors say: the function, what was given, what was expected. (client.c looks at every message that any of these programs causes;
 * here are some to the letter, and those that take some making.) */
#include "client.h"

#define SAYS(call, text) says((call), (text), #call)
static void says(int code, const char *text, const char *what)
{
    if (code != 1 || strcmp(error_message(), text) != 0) {
        print_error("%s: code %d, \"%s\"\n", what, code, error_message());
        fail_msg("expected \"%s\"", text);
    }
    assert_int_equal(error_take(), 1);
}

static void to_the_letter(void **state)
{
    const float x[3] = { 1, 2, 3 };
    const int wide[2] = { 2, 4 }, huge[3] = { 2147483647, 2147483647, 4 };
    mlx_array a = array_f32(3, x), b = array_f32(2, x), none = { 0 }, r = mlx_array_new(), scalar = mlx_array_new_int(1);
    mlx_vector_array v = mlx_vector_array_new_value(a), empty = mlx_vector_array_new(), no_vector = { 0 };
    mlx_stream no_stream = { 0 };
    (void)state;
    SAYS(mlx_add(&r, a, b, stream), "mlx_add: input 1 of shape [2] does not broadcast with input 0 of shape [3]; expected shapes that broadcast");
    SAYS(mlx_add(&r, a, none, stream), "mlx_add: input 1 is an empty handle; expected an array");
    SAYS(mlx_add(NULL, a, b, stream), "mlx_add: the place for the result is NULL; expected a pointer to one");
    SAYS(mlx_exp(&r, a, no_stream),
         "mlx_exp: the stream is an empty handle; expected one of mlx_default_gpu_stream_new or mlx_default_cpu_stream_new");
    SAYS(mlx_bitwise_and(&r, a, b, stream), "mlx_bitwise_and: operands of float32; expected integers or bool");
    SAYS(mlx_left_shift(&r, a, b, stream), "mlx_left_shift: operands of float32; expected integers");
    SAYS(mlx_left_shift(&r, scalar, b, stream), "mlx_left_shift: operands of int32 and float32; expected integers");
    SAYS(mlx_bitwise_and(&r, a, scalar, stream), "mlx_bitwise_and: operands of float32 and int32; expected integers or bool");
    SAYS(mlx_broadcast_to(&r, a, wide, 2, stream), "mlx_broadcast_to: shape [3] does not broadcast to [2, 4]; expected extents that are equal, or 1");
    SAYS(mlx_zeros(&r, huge, 3, MLX_FLOAT32, stream), "mlx_zeros: shape [2147483647, 2147483647, 4] of float32 was given; expected fewer than 2^63 bytes");
    SAYS(mlx_vector_array_get(&r, v, 1), "mlx_vector_array_get: array 1 of a vector of 1 was asked for; expected a number below that");
    SAYS(mlx_vector_array_get(&r, empty, 0), "mlx_vector_array_get: array 0 of a vector of 0 was asked for; expected a vector that has arrays");
    SAYS(mlx_vector_array_append_value(v, none), "mlx_vector_array_append_value: array 0 of 1 is an empty handle; expected an array");
    SAYS(mlx_vector_array_append_value(no_vector, a), "mlx_vector_array_append_value: the vector is an empty handle; expected a vector of arrays");
    SAYS(mlx_array_dim(a, 1) + 1, "mlx_array_dim: dimension 1 of an array of rank 1 was asked for; expected -1 to 0");
    SAYS(mlx_array_dim(a, -2) + 1, "mlx_array_dim: dimension -2 of an array of rank 1 was asked for; expected -1 to 0");
    SAYS(mlx_array_dim(scalar, 0) + 1, "mlx_array_dim: dimension 0 of an array of rank 0 was asked for; expected an array that has dimensions");
    SAYS(mlx_array_item_float32((float[1]){ 0 }, a), "mlx_array_item_float32: the array has 3 elements; expected one");
    SAYS(mlx_array_item_float32((float[1]){ 0 }, scalar), "mlx_array_item_float32: the array is int32; expected float32");
    SAYS(mlx_array_item_float64((double[1]){ 0 }, a), "mlx_array_item_float64: the array is float32; expected float64, which this library does not have");
    free_all(1, &a);
    free_all(1, &b);
    free_all(1, &scalar);
    OK(mlx_vector_array_free(v));
    OK(mlx_vector_array_free(empty));
}

/* ---- Captured arrays ---- */

typedef struct capturing {
    mlx_array first, second;
} capturing;

static int adds_both(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    capturing *k = payload;
    mlx_array x = input_of(input, 0), y = input_of(input, 1);
    int code = mlx_add(&x, x, k->first, stream) || mlx_multiply(&y, y, k->second, stream);
    code = code || mlx_vector_array_set_data(res, (mlx_array[]){ x, y }, 2);
    mlx_array_free(x);
    mlx_array_free(y);
    return code;
}

/* They are not inputs of the closure's, and not called so. */
static void captured_arrays(void **state)
{
    const float x[4] = { 1, 2, 3, 4 };
    capturing k = { array_f32(3, x), array_f32(3, x) };
    mlx_closure c = compiled(adds_both, &k, true);
    mlx_array good = array_f32(3, x), bad = array_f32(4, x), out[2];
    (void)state;
    OK(apply(c, 2, (mlx_array[]){ good, good }, 2, out));
    free_all(2, out);
    SAYS(apply(c, 2, (mlx_array[]){ bad, good }, 2, out), "mlx_closure_apply: captured array 0 of shape [3] does not broadcast with input 0 of "
         "shape [4]; expected shapes that broadcast");
    SAYS(apply(c, 2, (mlx_array[]){ good, bad }, 2, out), "mlx_closure_apply: captured array 1 of shape [3] does not broadcast with input 1 of "
         "shape [4]; expected shapes that broadcast");
    free_all(1, &good);
    free_all(1, &bad);
    free_all(1, &k.first);
    free_all(1, &k.second);
    OK(mlx_closure_free(c));
}

/* ---- Calls within calls ---- */

static char last[4000];

static void keep_the_last(const char *message, void *data)
{
    ++*(int *)data;
    snprintf(last, sizeof last, "%s", message);
}

static int applies_itself(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    return mlx_closure_apply(res, *(mlx_closure *)payload, input);
}

/* The last message says why, whole, however many calls it came through. */
static void a_closure_that_applies_itself(void **state)
{
    (void)state;
    for (int is_compiled = 0; is_compiled < 2; is_compiled++) {
        mlx_closure self, plain = mlx_closure_new_func_payload(applies_itself, &self, NULL);
        mlx_array one = mlx_array_new_float32(1), out;
        int n = 0;
        if (is_compiled) {
            self = mlx_closure_new();
            OK(mlx_compile(&self, plain, true));
            OK(mlx_closure_free(plain));
        } else
            self = plain;
        mlx_set_error_handler(keep_the_last, &n, NULL);
        int code = apply(self, 1, &one, 1, &out);
        error_handler_default();
        assert_int_equal(code, 1);
        assert_int_equal(n, 201);                        /* one for each apply */
        assert_string_equal(last, "mlx_closure_apply: the closure's function returned 1; expected 0; the last error in it was: "
                                  "mlx_closure_apply: closures apply each other 200 deep; expected fewer: does one apply itself?");
        free_all(1, &one);
        OK(mlx_closure_free(self));
    }
}

static int fails_alone(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    (void)res;
    (void)input;
    return *(int *)payload;
}

static int fails_with_a_reason(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array x = input_of(input, 0);
    (void)res;
    int code = mlx_astype(&x, x, MLX_FLOAT64, stream);
    mlx_array_free(x);
    return code ? *(int *)payload : 7;
}

static void reasons(void **state)
{
    int code = -3;
    mlx_array one = mlx_array_new_float32(1), out;
    mlx_closure c = compiled(fails_alone, &code, true);
    (void)state;
    SAYS(apply(c, 1, &one, 1, &out), "mlx_closure_apply: the closure's function returned -3; expected 0");
    code = 0;
    SAYS(apply(c, 1, &one, 1, &out), "mlx_closure_apply: the closure's function returned 0 and set no output; expected one array at least");
    OK(mlx_closure_free(c));
    c = compiled(fails_with_a_reason, &code, true);
    FAILS(apply(c, 1, &one, 1, &out), "returned 0 and set no output; expected one array at least; the last error in it was: mlx_astype: the "
          "dtype is float64, which this library does not have; expected bool, an integer, float16, bfloat16 or float32");
    OK(mlx_closure_free(c));
    free_all(1, &one);
}

/* A handler that itself makes errors: the reason is what the function met, not what the handler did. */
static void fails_too(const char *message, void *data)
{
    static _Thread_local int depth;
    mlx_array none = { 0 };
    if (depth++ == 0)
        (void)!mlx_array_eval(none);
    depth--;
    keep_the_last(message, data);
}

static void handlers_that_fail(void **state)
{
    int code = 7, n = 0;
    mlx_array one = mlx_array_new_float32(1), out;
    mlx_closure c = compiled(fails_with_a_reason, &code, true);
    (void)state;
    mlx_set_error_handler(fails_too, &n, NULL);
    int got = apply(c, 1, &one, 1, &out);
    error_handler_default();
    assert_int_equal(got, 1);
    assert_int_equal(n, 4);
    assert_non_null(strstr(last, "returned 7; expected 0; the last error in it was: mlx_astype: "));
    OK(mlx_closure_free(c));
    free_all(1, &one);
}

/* ---- Placeholders ---- */

static int reads(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    float item;
    mlx_array x = input_of(input, 0);
    (void)res;
    (void)payload;
    int code = mlx_array_item_float32(&item, x);
    mlx_array_free(x);
    return code;
}

/* One of several elements is refused as a placeholder, whose shape it does not tell. */
static void an_item_of_a_placeholder(void **state)
{
    const float x[3] = { 1, 2, 3 };
    mlx_array in = array_f32(3, x), out;
    mlx_closure c = compiled(reads, NULL, true);
    (void)state;
    FAILS(apply(c, 1, &in, 1, &out), "mlx_array_item_float32: the array is a placeholder");
    free_all(1, &in);
    OK(mlx_closure_free(c));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_the_letter), cmocka_unit_test(captured_arrays), cmocka_unit_test(a_closure_that_applies_itself),
        cmocka_unit_test(reasons), cmocka_unit_test(handlers_that_fail), cmocka_unit_test(an_item_of_a_placeholder),
    };
    return CLIENT_RUN(argc, argv, tests);
}
