/* Faults that others shipped (tests/test_reports_*.c have them all), those that reach a client of mlx-c's interface, through that
 * interface, compiled, in one launch. */
#include "client.h"

/* A function of a chain of calls with its payload; compiled and applied to one array. */
static void expect(closure_function *f, void *payload, mlx_array in, mlx_dtype dtype, const uint64_t *bits, const char *what)
{
    int n = (int)mlx_array_size(in);
    mlx_array out, e = array_of_bits(dtype, 1, &n, bits);
    mlx_closure c = compiled(f, payload, true);
    OK(apply(c, 1, &in, 1, &out));
    array_equal_bits(out, e, what);
    free_all(1, &out);
    free_all(1, &e);
    OK(mlx_closure_free(c));
}

#define BITS(...) (const uint64_t[]){ __VA_ARGS__ }
#define N_OF(...) (int)(sizeof(BITS(__VA_ARGS__)) / sizeof(uint64_t))

static mlx_array array_bits(mlx_dtype dtype, int n, const uint64_t *bits)
{
    return array_of_bits(dtype, 1, &n, bits);
}

/* A builder's frame: x is the input, r the result. */
#define FUNCTION(name, body)                                                                   \
    static int name(mlx_vector_array *res, const mlx_vector_array input, void *payload)        \
    {                                                                                          \
        mlx_array x = input_of(input, 0), r = mlx_array_new(), t = mlx_array_new();            \
        int code = 0;                                                                          \
        (void)payload;                                                                         \
        body;                                                                                  \
        code = code || mlx_vector_array_set_value(res, r);                                     \
        mlx_array_free(x);                                                                     \
        mlx_array_free(r);                                                                     \
        mlx_array_free(t);                                                                     \
        return code;                                                                           \
    }

FUNCTION(square_in_half, code = mlx_astype(&r, x, MLX_FLOAT16, stream) || mlx_multiply(&r, r, r, stream) || mlx_astype(&r, r, MLX_FLOAT32, stream))
FUNCTION(by_way_of_bfloat16, code = mlx_astype(&r, x, MLX_BFLOAT16, stream) || mlx_astype(&r, r, MLX_FLOAT32, stream))
FUNCTION(is_not_zero, code = mlx_zeros(&t, NULL, 0, MLX_FLOAT32, stream) || mlx_not_equal(&r, x, t, stream) || mlx_logical_not(&r, r, stream) ||
                             mlx_logical_not(&r, r, stream))
FUNCTION(times_constant, code = mlx_array_set_float32(&t, *(float *)payload) || mlx_multiply(&r, x, t, stream))
FUNCTION(times_its_sign, code = mlx_zeros(&t, NULL, 0, MLX_FLOAT32, stream) || mlx_greater_equal(&t, x, t, stream) || mlx_multiply(&r, x, t, stream))
FUNCTION(differs_from_itself, code = mlx_not_equal(&r, x, x, stream))
FUNCTION(minus_itself, code = mlx_subtract(&r, x, x, stream))
FUNCTION(plus_zero, code = mlx_zeros(&t, NULL, 0, MLX_FLOAT32, stream) || mlx_add(&r, x, t, stream))
FUNCTION(times_and_less, code = mlx_multiply(&r, x, x, stream) || mlx_array_set_float32(&t, *(float *)payload) || mlx_add(&r, r, t, stream))
FUNCTION(softplus, code = mlx_zeros(&t, NULL, 0, mlx_array_dtype(x), stream) || mlx_logaddexp(&r, x, t, stream))
FUNCTION(to_int, code = mlx_astype(&r, x, MLX_INT32, stream))
FUNCTION(positive_or_constant, code = mlx_zeros(&t, NULL, 0, MLX_FLOAT32, stream) || mlx_greater(&r, x, t, stream) ||
                                      mlx_array_set_float32(&t, *(float *)payload) || mlx_where(&r, r, x, t, stream))
FUNCTION(log_of_minus_one, code = mlx_array_set_float32(&t, -1) || mlx_log(&t, t, stream) || mlx_add(&r, x, t, stream))

#define CASE(function, payload, in_dtype, in_bits, out_dtype, out_bits)                        \
    do {                                                                                       \
        mlx_array a = array_bits(in_dtype, N_OF in_bits, BITS in_bits);                        \
        assert_int_equal(N_OF in_bits, N_OF out_bits);                                         \
        expect(function, payload, a, out_dtype, BITS out_bits, #function);                     \
        free_all(1, &a);                                                                       \
    } while (0)

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void rounding_where_the_graph_says(void **state)
{
    float c = float_of(0xBF801000);
    (void)state;
    CASE(square_in_half, NULL, MLX_FLOAT32, (0x459C4000), MLX_FLOAT32, (0x7F800000));                              /* A01 */
    CASE(by_way_of_bfloat16, NULL, MLX_FLOAT32, (0x3E89CCD5, 0x3F808000, 0x3F818000, 0x7F800001), MLX_FLOAT32,     /* A04, A10, A20 */
         (0x3E8A0000, 0x3F800000, 0x3F820000, 0x7FC00000));
    CASE(times_and_less, &c, MLX_FLOAT32, (0x3F800800), MLX_FLOAT32, (0));                                         /* A25 */
    CASE(softplus, NULL, MLX_FLOAT16, (0x4500, 0x4900, 0x4980, 0x4A00, 0x5580, 0x63D0), MLX_FLOAT16,               /* A03 */
         (0x4502, 0x4900, 0x4980, 0x4A00, 0x5580, 0x63D0));
}

static void special_values(void **state)
{
    float inf = float_of(0x7F800000), nan = float_of(0x7FC00000), minus_inf = -inf;
    (void)state;
    CASE(is_not_zero, NULL, MLX_FLOAT32, (1, 0x80000001, 0, 0x80000000, 0x7FC00000), MLX_BOOL, (1, 1, 0, 0, 1));   /* A06 */
    CASE(is_not_zero, NULL, MLX_BFLOAT16, (1, 0x8001, 0), MLX_BOOL, (1, 1, 0));
    CASE(times_its_sign, NULL, MLX_FLOAT32, (0x3F800000, 0xBF800000, 0, 0x80000000, 0x7FC00000), MLX_FLOAT32,      /* A24 */
         (0x3F800000, 0x80000000, 0, 0x80000000, 0x7FC00000));
    CASE(differs_from_itself, NULL, MLX_FLOAT32, (0x7FC00000, 0x3F800000, 0x7F800000), MLX_BOOL, (1, 0, 0));       /* A39 */
    CASE(minus_itself, NULL, MLX_FLOAT32, (0x7F800000, 0x7FC00000, 0xBF800000), MLX_FLOAT32, (0x7FC00000, 0x7FC00000, 0));    /* A18 */
    CASE(plus_zero, NULL, MLX_FLOAT32, (0x80000000, 0), MLX_FLOAT32, (0, 0));                                      /* A27 */
    CASE(to_int, NULL, MLX_FLOAT32, (0x7FC00000, 0x7F800000, 0xFF800000, 0x4F32D05E, 0xCF32D05E), MLX_INT32,       /* A37 */
         (0, 0x7FFFFFFF, 0x80000000, 0x7FFFFFFF, 0x80000000));
    CASE(positive_or_constant, &inf, MLX_FLOAT32, (0x3F800000, 0xBF800000), MLX_FLOAT32, (0x3F800000, 0x7F800000));           /* A75 */
    CASE(positive_or_constant, &minus_inf, MLX_FLOAT32, (0x3F800000, 0xBF800000), MLX_FLOAT32, (0x3F800000, 0xFF800000));
    CASE(positive_or_constant, &nan, MLX_FLOAT32, (0x3F800000, 0xBF800000), MLX_FLOAT32, (0x3F800000, 0x7FC00000));
    CASE(log_of_minus_one, NULL, MLX_FLOAT32, (0x3F800000), MLX_FLOAT32, (0x7FC00000));                            /* A79 */
}

/* A08, and what comes of seven digits. */
static void constants_keep_their_bits(void **state)
{
    static const uint32_t constants[] = { 0x3EAAAAAB, 0x3DB504F3, 0x3F3504F3, 0x00000001, 0x80000000, 0x7F7FFFFF, 0x3DCCCCCD };
    (void)state;
    for (size_t i = 0; i < COUNT(constants); i++) {
        float c = float_of(constants[i]);
        CASE(times_constant, &c, MLX_FLOAT32, (0x3F800000), MLX_FLOAT32, (constants[i]));
    }
}

/* Composites whose constants run together in a name: x * 1 + 23 and x * 12 + 3. The payload is what tells the two apart. */
FUNCTION(times_plus, code = mlx_array_set_float32(&t, ((float *)payload)[0]) || mlx_multiply(&r, x, t, stream) ||
                            mlx_array_set_float32(&t, ((float *)payload)[1]) || mlx_add(&r, r, t, stream))

static void constants_are_not_names(void **state)
{
    float one_23[2] = { 1, 23 }, twelve_3[2] = { 12, 3 };
    (void)state;
    CASE(times_plus, one_23, MLX_FLOAT32, (0x40000000), MLX_FLOAT32, (0x41C80000));
    CASE(times_plus, twelve_3, MLX_FLOAT32, (0x40000000), MLX_FLOAT32, (0x41D80000));
}

/* A60: another function at the same address, or payload, after the first is gone. */
static void a_function_in_anothers_place(void **state)
{
    (void)state;
    for (int i = 0; i < (sanitized() ? 200 : 2000) / (fake_launches() >= 0 ? 100 : 1); i++) {
        float *c = malloc(sizeof *c);
        uint32_t bits;
        *c = (float)(1 + i % 7);
        memcpy(&bits, c, sizeof bits);
        CASE(times_constant, c, MLX_FLOAT32, (0x3F800000), MLX_FLOAT32, (bits));
        free(c);
    }
}

/* A41: a broadcast array beside a dense one. */
FUNCTION(broadcast_plus, code = mlx_broadcast_to(&t, *(mlx_array *)payload, (const int[]){ 4 }, 1, stream) || mlx_multiply(&r, x, t, stream))

static void broadcast_beside_dense(void **state)
{
    mlx_array three = mlx_array_new_float32(3);
    (void)state;
    CASE(broadcast_plus, &three, MLX_FLOAT32, (0x3F800000, 0x3F800000, 0x3F800000, 0x3F800000), MLX_FLOAT32,
         (0x40400000, 0x40400000, 0x40400000, 0x40400000));
    free_all(1, &three);
}

/* ---- Large graphs ---- */

static int plus_zero_often(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    mlx_array r = input_of(input, 0), zero = mlx_array_new_float32(0.0f);
    int code = 0;
    for (int i = 0; i < *(int *)payload; i++)
        code = code || mlx_add(&r, r, zero, stream);
    code = code || mlx_vector_array_set_value(res, r);
    mlx_array_free(r);
    mlx_array_free(zero);
    return code;
}

static void one_constant_40000_times(void **state)
{
    int n = sanitized() || fake_launches() >= 0 ? 300 : 40000;         /* A76 */
    (void)state;
    CASE(plus_zero_often, &n, MLX_FLOAT32, (0x3F800000, 0x80000000), MLX_FLOAT32, (0x3F800000, 0));
}

static int sum_of_all(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    size_t n = mlx_vector_array_size(input);
    mlx_vector_array sums = mlx_vector_array_new();
    mlx_array r = mlx_array_new_float32(0), x = mlx_array_new();
    int code = 0;
    (void)payload;
    for (size_t i = 0; i < n; i++) {
        code = code || mlx_vector_array_get(&x, input, i) || mlx_add(&r, r, x, stream);
        code = code || mlx_vector_array_append_value(sums, r);
    }
    code = code || mlx_vector_array_set(res, sums);
    mlx_vector_array_free(sums);
    mlx_array_free(r);
    mlx_array_free(x);
    return code;
}

/* A77: as many inputs and outputs as anyone has. */
static void many_inputs_and_outputs(void **state)
{
    static const int counts[] = { 40, 300, 3000 };
    (void)state;
    for (size_t k = 0; k < (fake_launches() >= 0 ? 1 : COUNT(counts)); k++) {
        int n = counts[k];
        mlx_array *in = calloc((size_t)n, sizeof *in), *out = calloc((size_t)n, sizeof *out);
        const float x[2] = { 1, 2 };
        mlx_closure c = compiled(sum_of_all, NULL, true);
        for (int i = 0; i < n; i++)
            in[i] = array_f32(2, x);
        long before = launches();
        OK(apply(c, n, in, n, out));
        for (int i = 0; i < n; i++)
            assert_true(((const float *)array_data(out[i]))[1] == (float)(2 * (i + 1)));
        if (before >= 0)
            assert_int_equal(launches() - before, 1);
        free_all(n, in);
        free_all(n, out);
        free(in);
        free(out);
        OK(mlx_closure_free(c));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_where_the_graph_says), cmocka_unit_test(special_values), cmocka_unit_test(constants_keep_their_bits),
        cmocka_unit_test(constants_are_not_names), cmocka_unit_test(a_function_in_anothers_place), cmocka_unit_test(broadcast_beside_dense),
        cmocka_unit_test(one_constant_40000_times), cmocka_unit_test(many_inputs_and_outputs),
    };
    return CLIENT_RUN(argc, argv, tests);
}
