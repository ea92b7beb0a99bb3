/* Kernels for several nodes at once (cpu/fuse.c): used where they should be and nowhere else, with the bits of the single
 * kernels, which the composed path runs; and kernels that look results up. */
#include "graph_cases.h"

#include <fenv.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef struct subject {
    int outer_is_softplus, negates;
    ol_dtype left, right;                /* of the operands; a 16-bit one is brought to float32 for exp */
    int widen_left, widen_right;
    int expose;                          /* the value between is an output too */
    int twice;                           /* … or is read by two nodes */
} subject;

static int build(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    const subject *s = user;
    ol_value x = s->widen_left ? ol_astype(g, in[0], OL_FLOAT32) : in[0], y = s->widen_right ? ol_astype(g, in[1], OL_FLOAT32) : in[1];
    ol_value inner = s->outer_is_softplus ? ol_add(g, x, y) : ol_multiply(g, x, y);
    if (s->negates)
        inner = ol_negative(g, inner);
    out[0] = s->outer_is_softplus ? ol_softplus(g, inner) : ol_exp(g, inner);
    if (s->expose)
        out[1] = inner;
    if (s->twice)
        out[1] = ol_abs(g, inner);
    return 0;
}

static int build_sigmoid(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_sigmoid(g, in[0]);
    return 0;
}

static ol_composite *compile(ol_device *device, const subject *s)
{
    return compile_on(device, build, (void *)s, 2, DTYPES(s->left, s->right), s->expose || s->twice ? 2 : 1);
}

/* Whether the program has an instruction of this name. */
static int has_instruction(const ol_composite *c, const char *name)
{
    char text[4096], line[128];
    snprintf(line, sizeof line, " = %s r", name);
    ol_composite_text(c, OL_TEXT_PROGRAM, text, sizeof text);
    return strstr(text, line) != NULL;
}

/* ---- Which graphs ---- */

static void fused_where_nothing_else_reads(void **state)
{
    (void)state;
    static const struct { subject s; const char *name; int fused; } cases[] = {
        { { .outer_is_softplus = 1, .left = OL_FLOAT32, .right = OL_FLOAT32 }, "softplus(add)", 1 },
        { { .outer_is_softplus = 1, .left = OL_BFLOAT16, .right = OL_BFLOAT16 }, "softplus(add)", 1 },
        { { .outer_is_softplus = 1, .left = OL_BFLOAT16, .right = OL_FLOAT32 }, "softplus(add)", 1 },
        { { .outer_is_softplus = 1, .left = OL_FLOAT16, .right = OL_FLOAT16 }, "softplus(add)", 0 },
        { { .outer_is_softplus = 1, .left = OL_FLOAT32, .right = OL_FLOAT32, .expose = 1 }, "softplus(add)", 0 },
        { { .outer_is_softplus = 1, .left = OL_FLOAT32, .right = OL_FLOAT32, .twice = 1 }, "softplus(add)", 0 },
        { { .left = OL_FLOAT32, .right = OL_FLOAT32 }, "exp(multiply)", 1 },
        { { .left = OL_FLOAT32, .right = OL_FLOAT32, .negates = 1 }, "exp(negative(multiply))", 1 },
        { { .left = OL_BFLOAT16, .right = OL_BFLOAT16 }, "exp(multiply)", 0 },       /* in bfloat16 */
        { { .left = OL_FLOAT32, .right = OL_FLOAT32, .negates = 1, .expose = 1 }, "exp(negative(multiply))", 0 },
        { { .left = OL_FLOAT32, .right = OL_FLOAT32, .negates = 1, .twice = 1 }, "exp(negative(multiply))", 0 },
        { { .left = OL_BFLOAT16, .right = OL_FLOAT32, .widen_left = 1 }, "exp(multiply(astype))", 1 },
        { { .left = OL_FLOAT32, .right = OL_FLOAT16, .widen_right = 1, .negates = 1 }, "exp(negative(multiply(astype)))", 1 },
        { { .left = OL_BFLOAT16, .right = OL_FLOAT16, .widen_left = 1, .widen_right = 1 }, "exp(multiply(astype))", 1 },
        { { .left = OL_INT16, .right = OL_FLOAT32, .widen_left = 1 }, "exp(multiply(astype))", 0 },
        { { .left = OL_INT16, .right = OL_FLOAT32, .widen_left = 1 }, "exp(multiply)", 1 },
    };
    for (size_t l = 0; l < level_count(); l++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            ol_composite *c = compile(level_device(l), &cases[i].s);
            if (has_instruction(c, cases[i].name) != cases[i].fused)
                fail_msg("case %zu, %s: fused %d, expected %d", i, cases[i].name, !cases[i].fused, cases[i].fused);
            ol_composite_destroy(c);
        }
}

/* ---- The same bits ---- */

/* Bits of a dtype that may go wrong: zeros, the smallest, NaN of any payload, infinities, what overflows, and random ones. */
static void fill_operand(void *data, ol_dtype dtype, size_t n, uint64_t *random)
{
    static const uint32_t special32[] = { 0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x7f800000, 0xff800000, 0x7f800001, 0xffffffff,
                                          0x7fc12345, 0x7f7fffff, 0xff7fffff, 0x42b17218, 0xc2aeac50, 0xc2cff1b5, 0x3f800000 };
    static const uint16_t special16[] = { 0, 0x8000, 1, 0x8001, 0x007f, 0x7f80, 0xff80, 0x7f81, 0xffff, 0x7fc1, 0x7f7f, 0xff7f, 0x42b1,
                                          0x7c00, 0xfc00, 0x7c01, 0x3c00, 0x3f80, 0x42bc, 0xc2bc, 0xc2b9, 0x3880, 0xb880 };
    for (size_t i = 0; i < n; i++) {
        uint64_t r = random_next(random);
        int is_special = (r >> 60) == 0, is_small = (r >> 60) < 12;           /* small: exponents where the functions are alive */
        if (dtype == OL_FLOAT32) {
            uint32_t small = ((uint32_t)r & 0x80ffffffu) + ((110u + (uint32_t)(r >> 32) % 25u) << 23);
            ((uint32_t *)data)[i] = is_special ? special32[(r >> 8) % 16] : is_small ? small : (uint32_t)r;
        } else {
            uint16_t small = (uint16_t)(((uint32_t)r & 0x807fu) + ((110u + (uint32_t)(r >> 32) % 25u) << 7));
            ((uint16_t *)data)[i] = is_special ? special16[(r >> 8) % 23] : is_small && dtype == OL_BFLOAT16 ? small : (uint16_t)r;
        }
    }
}

/* Replays n elements and compares with the composed path. The operands lie `offset` elements into their memory. */
static void compare_paths(const ol_composite *c, const subject *s, size_t n, size_t offset, uint64_t *random)
{
    size_t left_size = (size_t)ol_dtype_size(s->left), right_size = (size_t)ol_dtype_size(s->right);
    size_t out_size = (size_t)ol_dtype_size(ol_composite_output_dtype(c, 0));
    char *left = guarded_alloc((n + offset) * left_size, 0), *right = guarded_alloc((n + offset) * right_size, 0);
    char *replayed = guarded_alloc(n * out_size, 0), *composed = guarded_alloc(n * out_size, 0);
    ol_error error;
    fill_operand(left, s->left, n + offset, random);
    fill_operand(right, s->right, n + offset, random);
    ol_tensor in[] = { vector_of(left + offset * left_size, s->left, (int64_t)n), vector_of(right + offset * right_size, s->right, (int64_t)n) };
    ol_tensor out = vector_of(replayed, ol_composite_output_dtype(c, 0), (int64_t)n);
    assert_ok(ol_replay(c, NULL, in, &out, &error), &error);
    out.data = composed;
    assert_ok(ol_replay_composed(c, NULL, in, &out, &error), &error);
    for (size_t i = 0; i < n; i++)
        if (memcmp(replayed + i * out_size, composed + i * out_size, out_size) != 0)
            fail_msg("element %zu of %zu: replayed and composed differ", i, n);
    guarded_free(left), guarded_free(right), guarded_free(replayed), guarded_free(composed);
}

static void bits_of_the_single_kernels(void **state)
{
    (void)state;
    static const subject subjects[] = {
        { .outer_is_softplus = 1, .left = OL_FLOAT32, .right = OL_FLOAT32 },
        { .outer_is_softplus = 1, .left = OL_BFLOAT16, .right = OL_BFLOAT16 },
        { .left = OL_FLOAT32, .right = OL_FLOAT32 },
        { .left = OL_FLOAT32, .right = OL_FLOAT32, .negates = 1 },
        { .left = OL_BFLOAT16, .right = OL_FLOAT32, .widen_left = 1 },
        { .left = OL_BFLOAT16, .right = OL_FLOAT32, .widen_left = 1, .negates = 1 },
        { .left = OL_FLOAT32, .right = OL_FLOAT16, .widen_right = 1 },
        { .left = OL_FLOAT32, .right = OL_FLOAT16, .widen_right = 1, .negates = 1 },
        { .left = OL_BFLOAT16, .right = OL_FLOAT16, .widen_left = 1, .widen_right = 1, .negates = 1 },
    };
    static const size_t lengths[] = { 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 100, 511, 513, 1023, 1024, 1025, 1057, 1536, 1999, 70001 };
    uint64_t random = harness_seed;
    for (size_t l = 0; l < level_count(); l++)
        for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
            ol_composite *c = compile(level_device(l), &subjects[i]);
            for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
                for (size_t offset = 0; offset < 2; offset++)
                    compare_paths(c, &subjects[i], lengths[k], offset, &random);
            ol_composite_destroy(c);
        }
}

/* In place over either operand of the element's size: the fused kernel reads both before it writes. */
static void in_place(void **state)
{
    (void)state;
    enum { N = 1100 };
    static const subject s = { .left = OL_FLOAT32, .right = OL_FLOAT32, .negates = 1 };
    uint64_t random = harness_seed;
    for (size_t l = 0; l < level_count(); l++) {
        ol_composite *c = compile(level_device(l), &s);
        for (int over = 0; over < 2; over++) {
            static float operands[2][N], expected[N];
            ol_error error;
            fill_operand(operands[0], OL_FLOAT32, N, &random);
            fill_operand(operands[1], OL_FLOAT32, N, &random);
            ol_tensor in[] = { vector_of(operands[0], OL_FLOAT32, N), vector_of(operands[1], OL_FLOAT32, N) };
            ol_tensor out = vector_of(expected, OL_FLOAT32, N);
            assert_ok(ol_replay(c, NULL, in, &out, &error), &error);
            out.data = operands[over];
            assert_ok(ol_replay(c, NULL, in, &out, &error), &error);
            assert_memory_equal(operands[over], expected, sizeof expected);
        }
        ol_composite_destroy(c);
    }
}

/* ---- Tables ---- */

/* bfloat16 sigmoid and softplus of all inputs in one long run (by table, where there are tables) and in runs of 7. */
static int long_runs_equal_short_ones(ol_device *device, int sum)
{
    static uint16_t x[65536], y[65536], whole[65536], parts[65536];
    static const subject by_sum = { .outer_is_softplus = 1, .left = OL_BFLOAT16, .right = OL_BFLOAT16 };
    ol_composite *c = sum ? compile(device, &by_sum) : compile_on(device, build_sigmoid, NULL, 2, DTYPES(OL_BFLOAT16, OL_BFLOAT16), 1);
    for (int i = 0; i < 65536; i++) {
        x[i] = (uint16_t)i;
        y[i] = 0x8000;                       /* -0: the sum is x */
    }
    ol_error error;
    int ok = 1;
    for (int64_t done = 0, length; done < 65536; done += length) {
        length = done + 7 < 65536 ? 7 : 65536 - done;
        ol_tensor in[] = { vector_of(x + done, OL_BFLOAT16, length), vector_of(y + done, OL_BFLOAT16, length) };
        ol_tensor out = vector_of(parts + done, OL_BFLOAT16, length);
        ok &= ol_replay(c, NULL, in, &out, &error) == OL_OK;
    }
    ol_tensor in[] = { vector_of(x, OL_BFLOAT16, 65536), vector_of(y, OL_BFLOAT16, 65536) }, out = vector_of(whole, OL_BFLOAT16, 65536);
    ok &= ol_replay(c, NULL, in, &out, &error) == OL_OK;
    ol_composite_destroy(c);
    return ok && memcmp(whole, parts, sizeof whole) == 0;
}

static void set_upward(void) { fesetround(FE_UPWARD); }
static void set_toward_zero(void) { fesetround(FE_TOWARDZERO); }
static void set_traps(void) { feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT); }
static void set_flushing(void)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

/* The first device of a process may be made under any floating-point state: its tables are right, and the state is as it was.
 * Runs first, since it needs processes that have made no device yet. */
static void tables_under_any_host_state(void **state)
{
    (void)state;
    static void (*const set[])(void) = { NULL, set_upward, set_toward_zero, set_traps, set_flushing };
    for (size_t i = 0; i < COUNT(set); i++) {
        pid_t child = fork();
        if (child == 0) {
            ol_device *device;
            ol_error error;
            feclearexcept(FE_ALL_EXCEPT);
            if (set[i])
                set[i]();
            int mode = fegetround();
            int made = ol_device_cpu(NULL, &device, &error) == OL_OK;
            int kept = fegetround() == mode && !fetestexcept(FE_ALL_EXCEPT);
            fesetenv(FE_DFL_ENV);
            _exit(!made ? 1 : !kept ? 2 : !long_runs_equal_short_ones(device, 0) ? 3 : !long_runs_equal_short_ones(device, 1) ? 4 : 0);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("host state %zu: the child ended with %#x", i, (unsigned)status);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest fused[] = {
        cmocka_unit_test(tables_under_any_host_state), cmocka_unit_test(fused_where_nothing_else_reads), cmocka_unit_test(bits_of_the_single_kernels), cmocka_unit_test(in_place),
    };
    return HARNESS_RUN(argc, argv, fused);
}
