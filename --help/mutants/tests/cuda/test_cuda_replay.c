/* A replay on the GPU gives the CPU's bits and writes nothing else: any rank, broadcast, stride and alignment, every dtype, lengths
 * around what a thread takes at a time, outputs of several shapes, in place, empty. */
#include "cuda_harness.h"

#include <stdio.h>
#include <stdlib.h>

#define BUILDER(name) static int name(ol_graph *g, const ol_value *in, ol_value *out, void *user)

/* ---- Graphs ---- */

BUILDER(build_halves)
{
    (void)user;
    out[0] = ol_sigmoid(g, ol_multiply(g, ol_add(g, in[0], in[1]), in[2]));
    return 0;
}

BUILDER(build_integers)
{
    (void)user;
    out[0] = ol_multiply(g, in[0], in[1]);
    out[1] = ol_less(g, in[2], in[3]);
    out[2] = ol_bitwise_xor(g, in[2], ol_right_shift(g, in[3], in[3]));
    out[3] = ol_logical_and(g, in[4], out[1]);
    out[4] = ol_floor_divide(g, in[0], in[1]);
    out[5] = ol_add(g, in[0], in[2]);
    return 0;
}

/* Every dtype as it is, and to another. */
BUILDER(build_dtypes)
{
    (void)user;
    for (int i = 0; i < OL_DTYPE_COUNT; i++) {
        out[i] = in[i];
        out[OL_DTYPE_COUNT + i] = ol_astype(g, in[i], (ol_dtype)((i + 5) % OL_DTYPE_COUNT));
    }
    return 0;
}

/* Values that can be hoisted, with parts in common that cannot, which each reaches by a way of its own. */
BUILDER(build_shared_parts)
{
    (void)user;
    ol_value sum = ol_add(g, in[1], in[2]), twice = ol_multiply(g, sum, in[1]);
    out[0] = ol_multiply(g, in[0], ol_exp(g, ol_negative(g, sum)));
    out[1] = ol_multiply(g, in[0], ol_sigmoid(g, ol_abs(g, sum)));
    out[2] = ol_add(g, ol_tanh(g, ol_square(g, twice)), ol_multiply(g, in[0], ol_softplus(g, ol_negative(g, twice))));
    return 0;
}

typedef struct subject {
    const char *name;
    ol_build build;
    int32_t n_inputs, n_outputs;
    ol_dtype dtypes[OL_DTYPE_COUNT];
} subject;

static const subject subjects[] = {
    { "mixed", build_mixed, 3, 5, { OL_FLOAT32, OL_BFLOAT16, OL_INT8 } },
    { "halves", build_halves, 3, 1, { OL_FLOAT16, OL_FLOAT16, OL_FLOAT16 } },
    { "integers", build_integers, 5, 6, { OL_INT64, OL_INT64, OL_UINT64, OL_UINT64, OL_BOOL } },
    { "dtypes", build_dtypes, 12, 24,
      { OL_BOOL, OL_UINT8, OL_UINT16, OL_UINT32, OL_UINT64, OL_INT8, OL_INT16, OL_INT32, OL_INT64, OL_FLOAT16, OL_BFLOAT16,
        OL_FLOAT32 } },
    { "shared parts", build_shared_parts, 3, 3, { OL_FLOAT32, OL_FLOAT32, OL_FLOAT32 } },
    { "shared parts of halves", build_shared_parts, 3, 3, { OL_BFLOAT16, OL_BFLOAT16, OL_BFLOAT16 } },
};

static both compile_subject(const subject *s)
{
    return compile_both(s->build, NULL, s->n_inputs, s->dtypes, s->n_outputs);
}

/* One scene: the inputs of this shape, or which broadcast to it, and the outputs. */
static void check_shape(const subject *s, const both *b, manner how_in, manner how_out, int broadcasts, int32_t rank,
                        const int64_t *shape, int how)
{
    scene sc;
    char what[200];
    scene_begin(&sc);
    sc.random += (uint64_t)rank * 1000 + (uint64_t)how_in * 100 + (uint64_t)how_out + (rank ? (uint64_t)shape[0] * 7919 : 0);
    for (int32_t i = 0; i < s->n_inputs; i++)
        if (broadcasts)
            scene_add_broadcast(&sc, how_in, s->dtypes[i], rank, shape);
        else
            scene_add(&sc, how_in, s->dtypes[i], rank, shape);
    scene_add_outputs(&sc, b->on_cpu, how_out, NULL);
    snprintf(what, sizeof what, "%s, rank %d, from %s to %s%s", s->name, (int)rank, manner_names[how_in], manner_names[how_out],
             broadcasts ? ", broadcast" : "");
    scene_check(&sc, b->on_cpu, b->on_cuda, how, what);
    scene_end(&sc);
}

/* ---- Shapes ---- */

static void any_layout(void **state)
{
    static const struct { int32_t rank; int64_t shape[OL_MAX_RANK]; } shapes[] = {
        { 0, { 0 } }, { 1, { 1 } }, { 1, { 19 } }, { 2, { 3, 17 } }, { 2, { 1, 9 } }, { 3, { 2, 3, 5 } }, { 4, { 2, 2, 3, 4 } },
        { 5, { 2, 1, 2, 3, 3 } },
        { 6, { 2, 2, 1, 2, 2, 3 } }, { 7, { 1, 2, 2, 2, 1, 2, 3 } }, { 8, { 2, 1, 3, 1, 2, 2, 1, 3 } },
        { 8, { 2, 2, 2, 2, 2, 2, 2, 2 } },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(subjects); i++) {
        both b = compile_subject(&subjects[i]);
        for (size_t n = 0; n < COUNT(shapes); n++)
            for (manner how = 0; how < N_MANNERS; how++) {
                manner out = (manner)((how + n) % N_MANNERS);
                check_shape(&subjects[i], &b, how, out, 0, shapes[n].rank, shapes[n].shape,
                            n % 4 == 3 && how == RANDOM ? WITH_COMPOSED : 0);
                check_shape(&subjects[i], &b, how, out, 1, shapes[n].rank, shapes[n].shape,
                            n % 4 == 2 && how == RANDOM ? WITH_COMPOSED : 0);
            }
        destroy_both(&b);
    }
}

/* Around the elements of a thread, of a warp, and of a block. */
static void any_length(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(subjects); i++) {
        both b = compile_subject(&subjects[i]);
        for (int64_t n = 1; n <= 70; n += i < 2 ? 1 : 3)
            check_shape(&subjects[i], &b, n % 5 ? DENSE : MISALIGNED, DENSE, 0, 1, &n, n == 33 ? WITH_COMPOSED : 0);
        for (int64_t n = 127; n <= 1030; n += n % 128 == 1 ? 126 : 1)
            check_shape(&subjects[i], &b, DENSE, DENSE, 0, 1, &n, 0);
        destroy_both(&b);
    }
}

/* So much work that threads take several elements at a time: rows that are whole blocks of them and rows that are not, row starts
 * on and off 16 bytes, operands that are the same for a row or for all rows. */
static void wide_work(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        both b = compile_subject(&subjects[i]);
        int64_t enough = 8 * 128 * gpu.n_multiprocessors;
        for (int64_t row = 32; row <= 50; row += row % 8 == 1 ? 7 : 1) {
            int64_t shape[2] = { enough / row + 1, row };
            for (manner how = 0; how < N_MANNERS; how++)
                if (how == DENSE || (how != GAPPED && row % 16 < 2))
                    check_shape(&subjects[i], &b, how, how == RANDOM ? DENSE : how, row % 8 == 0 || row == 41, 2, shape, 0);
        }
        int64_t flat = enough + 5, deep[3] = { enough / 64, 2, 32 };
        check_shape(&subjects[i], &b, DENSE, DENSE, 0, 1, &flat, 0);
        check_shape(&subjects[i], &b, DENSE, ROWS_APART, 1, 3, deep, 0);
        check_shape(&subjects[i], &b, ROWS_APART, DENSE, 0, 3, deep, 0);
        destroy_both(&b);
    }
}

/* Gated delta rates, as a decode step and a prompt have them. */
static void rates(void **state)
{
    static const int64_t tokens[] = { 1, 7, 65, 400 };
    (void)state;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        both b;
        ol_error error;
        ol_dtype act = bf16 ? OL_BFLOAT16 : OL_FLOAT32;
        assert_ok(ol_gated_delta_rates_compile(cpu, act, act, OL_FLOAT32, act, &b.on_cpu, &error), &error);
        assert_ok(ol_gated_delta_rates_compile(cuda, act, act, OL_FLOAT32, act, &b.on_cuda, &error), &error);
        for (size_t i = 0; i < COUNT(tokens); i++) {
            scene s;
            int64_t shape[2] = { tokens[i], 32 };
            scene_begin(&s);
            scene_add(&s, DENSE, act, 2, shape);
            scene_add(&s, i == 2 ? ROWS_APART : DENSE, act, 2, shape);
            scene_add(&s, DENSE, OL_FLOAT32, 1, shape + 1);
            scene_add(&s, DENSE, act, 1, shape + 1);
            scene_add_outputs(&s, b.on_cpu, DENSE, NULL);
            scene_check(&s, b.on_cpu, b.on_cuda, i == 1 ? WITH_COMPOSED : 0, "rates");
            scene_end(&s);
        }
        destroy_both(&b);
    }
}

/* ---- Outputs of several shapes ---- */

/* Groups [n, m], [m], [n, 1] and none of them, of four dtypes. */
BUILDER(build_groups)
{
    (void)user;
    ol_value pair = ol_multiply(g, in[0], in[1]);
    out[0] = ol_abs(g, in[1]);
    out[1] = ol_add(g, pair, ol_exp(g, in[2]));
    out[2] = ol_greater(g, in[2], ol_constant(g, OL_FLOAT32, 0.5));
    out[3] = ol_astype(g, pair, OL_INT32);
    out[4] = ol_constant(g, OL_BFLOAT16, 1.0 / 3.0);
    out[5] = ol_negative(g, in[1]);
    return 0;
}

static void groups_of_shapes(void **state)
{
    static const int64_t shapes[][2] = { { 3, 5 }, { 1, 1 }, { 1, 40 }, { 33, 1 }, { 40, 64 }, { 7, 129 } };
    (void)state;
    both b = compile_both(build_groups, NULL, 3, DTYPES(OL_FLOAT32, OL_FLOAT16, OL_FLOAT32), 6);
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (manner how = 0; how < N_MANNERS; how++) {
            scene s;
            const int64_t *n = shapes[i];
            scene_begin(&s);
            scene_add(&s, how, OL_FLOAT32, 2, n);
            scene_add(&s, how, OL_FLOAT16, 1, n + 1);
            scene_add(&s, how, OL_FLOAT32, 2, SHAPE(n[0], 1));
            scene_add_outputs(&s, b.on_cpu, how, NULL);
            scene_check(&s, b.on_cpu, b.on_cuda, i == 0 ? WITH_COMPOSED : 0, manner_names[how]);
            scene_end(&s);
        }
    destroy_both(&b);
}

/* Outputs from which others of larger shape are computed: they are stored once, in their own shape. */
BUILDER(build_inside)
{
    (void)user;
    out[0] = ol_negative(g, in[0]);
    out[1] = ol_add(g, out[0], in[1]);
    out[2] = ol_multiply(g, out[1], in[2]);
    out[3] = ol_less(g, out[2], out[0]);
    out[4] = in[0];
    out[5] = ol_broadcast_like(g, out[0], in[2]);
    out[6] = ol_broadcast_like(g, in[0], in[1]);
    return 0;
}

static void outputs_inside_of_larger_ones(void **state)
{
    static const int64_t shapes[][3] = { { 2, 3, 4 }, { 5, 1, 7 }, { 3, 9, 33 }, { 2, 20, 64 } };
    (void)state;
    both b = compile_both(build_inside, NULL, 3, DTYPES(OL_FLOAT32, OL_FLOAT32, OL_FLOAT32), 7);
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (manner how = 0; how < N_MANNERS; how++)
            for (int updates = 0; updates < 2; updates++) {
                const int64_t *n = shapes[i];
                scene s;
                scene_begin(&s);
                scene_add(&s, how, OL_FLOAT32, 1, n + 2);
                scene_add(&s, how, OL_FLOAT32, 2, n + 1);
                scene_add(&s, how, OL_FLOAT32, 3, n);
                scene_add_outputs(&s, b.on_cpu, how, updates ? (const int32_t[]){ 0, 1, 2, -1, -1, -1, -1 } : NULL);
                scene_check(&s, b.on_cpu, b.on_cuda, i == 0 && how == RANDOM ? WITH_COMPOSED : 0, manner_names[how]);
                scene_end(&s);
            }
    destroy_both(&b);
}

/* ---- Empty ---- */

static void empty_outputs_are_no_launch(void **state)
{
    static const int64_t shapes[][3] = { { 0, 4, 2 }, { 3, 0, 2 }, { 3, 4, 0 }, { 0, 0, 0 } };
    (void)state;
    both b = compile_subject(&subjects[0]);
    for (size_t i = 0; i < COUNT(shapes); i++) {
        check_shape(&subjects[0], &b, DENSE, DENSE, 0, 3, shapes[i], WITH_COMPOSED);
        check_shape(&subjects[0], &b, GAPPED, REVERSED, 0, 3, shapes[i], 0);
    }
    destroy_both(&b);
    /* Some outputs are empty, others not. */
    b = compile_both(build_groups, NULL, 3, DTYPES(OL_FLOAT32, OL_FLOAT16, OL_FLOAT32), 6);
    scene s;
    scene_begin(&s);
    scene_add(&s, DENSE, OL_FLOAT32, 2, SHAPE(0, 5));
    scene_add(&s, DENSE, OL_FLOAT16, 1, SHAPE(5));
    scene_add(&s, DENSE, OL_FLOAT32, 2, SHAPE(0, 1));
    scene_add_outputs(&s, b.on_cpu, DENSE, NULL);
    scene_check(&s, b.on_cpu, b.on_cuda, WITH_COMPOSED, "some empty");
    scene_end(&s);
    destroy_both(&b);
    /* Without data at all. */
    ol_tensor nothing[4];
    ol_error error;
    ol_composite *c = compile_on(cuda, build_halves, NULL, 3, DTYPES(OL_FLOAT16, OL_FLOAT16, OL_FLOAT16), 1);
    for (int i = 0; i < 4; i++)
        nothing[i] = vector_of(NULL, OL_FLOAT16, 0);
    size_t calls = fake_is_loaded() ? fake_calls("cuLaunchKernel") : 0;
    uint64_t launches = ol_device_launches(cuda);
    assert_ok(ol_replay(c, stream, nothing, nothing + 3, &error), &error);
    assert_ok(ol_replay_composed(c, stream, nothing, nothing + 3, &error), &error);
    if (fake_is_loaded())
        assert_int_equal(fake_calls("cuLaunchKernel"), calls);
    assert_int_equal(ol_device_launches(cuda), launches);
    ol_composite_destroy(c);
}

/* ---- In place ---- */

BUILDER(build_updates)
{
    (void)user;
    out[0] = ol_subtract(g, in[0], in[1]);
    out[1] = ol_maximum(g, in[1], in[0]);
    return 0;
}

/* x[m] += y[m] beside z[n, m] = x + w: one block must read what the other overwrites. And a chain of three. */
BUILDER(build_turns)
{
    (void)user;
    out[0] = ol_add(g, in[0], in[1]);
    out[1] = ol_multiply(g, in[0], in[2]);
    out[2] = ol_subtract(g, ol_add(g, in[2], in[0]), in[3]);
    return 0;
}

static void in_place(void **state)
{
    static const int64_t lengths[] = { 1, 63, 64, 65, 1000, 5000 };
    (void)state;
    both b = compile_both(build_updates, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 2);
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (manner how = 0; how < N_MANNERS; how++)
            for (int which = 0; which < 4; which++) {
                static const int32_t targets[4][2] = { { 0, 1 }, { 1, 0 }, { 0, -1 }, { -1, 0 } };
                int64_t shape[2] = { lengths[i] > 64 ? lengths[i] / 8 : 1, lengths[i] > 64 ? 8 : lengths[i] };
                scene s;
                if (lengths[i] > 1000 && how != DENSE)
                    continue;
                scene_begin(&s);
                scene_add(&s, how, OL_FLOAT32, 2, shape);
                scene_add(&s, how, OL_FLOAT32, 2, shape);
                scene_add_outputs(&s, b.on_cpu, DENSE, targets[which]);
                scene_check(&s, b.on_cpu, b.on_cuda, i == 1 ? WITH_COMPOSED : 0, manner_names[how]);
                scene_end(&s);
            }
    destroy_both(&b);
}

static void groups_take_turns(void **state)
{
    static const int64_t shapes[][3] = { { 2, 2, 3 }, { 5, 7, 9 }, { 1, 3, 40 }, { 4, 33, 64 }, { 3, 1, 200 } };
    static const int32_t targets[][3] = { { 0, -1, -1 }, { -1, 2, -1 }, { 0, 2, -1 }, { 0, 2, 3 }, { 1, -1, 3 } };
    (void)state;
    both b = compile_both(build_turns, NULL, 4, DTYPES(OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32), 3);
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (size_t t = 0; t < COUNT(targets); t++)
            for (manner how = 0; how < N_MANNERS; how++) {
                const int64_t *n = shapes[i];
                scene s;
                scene_begin(&s);
                scene_add(&s, how, OL_FLOAT32, 1, n + 2);
                scene_add(&s, how, OL_FLOAT32, 1, n + 2);
                scene_add(&s, how, OL_FLOAT32, 2, n + 1);
                scene_add(&s, how, OL_FLOAT32, 3, n);
                scene_add_outputs(&s, b.on_cpu, how, targets[t]);
                scene_check(&s, b.on_cpu, b.on_cuda, i == 0 && how < 2 ? WITH_COMPOSED : 0, manner_names[how]);
                scene_end(&s);
                if (fake_is_loaded())
                    fake_backwards(how % 2);                     /* the order of blocks and threads does not matter */
            }
    destroy_both(&b);
}

/* Replays in turn and not, of the same shapes: what is remembered of one must not serve the other. */
static void turns_are_not_remembered(void **state)
{
    (void)state;
    both b = compile_both(build_turns, NULL, 4, DTYPES(OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32), 3);
    for (int round = 0; round < 4; round++) {
        scene s;
        scene_begin(&s);
        scene_add(&s, DENSE, OL_FLOAT32, 1, SHAPE(100));
        scene_add(&s, DENSE, OL_FLOAT32, 1, SHAPE(100));
        scene_add(&s, DENSE, OL_FLOAT32, 2, SHAPE(3, 100));
        scene_add(&s, DENSE, OL_FLOAT32, 3, SHAPE(2, 3, 100));
        scene_add_outputs(&s, b.on_cpu, DENSE, round % 2 ? (const int32_t[]){ 0, 2, 3 } : NULL);
        if (fake_is_loaded())
            fake_backwards(round > 1);
        scene_check(&s, b.on_cpu, b.on_cuda, 0, round % 2 ? "in turn" : "apart");
        scene_end(&s);
    }
    destroy_both(&b);
}

/* ---- A75: constants ---- */

BUILDER(build_constants)
{
    static const uint32_t bits[] = { 0x7f800000, 0xff800000, 0x7fc00000, 0xffa12345, 0x80000000, 1, 0x7f7fffff };
    (void)user;
    for (int i = 0; i < 7; i++) {
        ol_value c = ol_constant_bits(g, OL_FLOAT32, &bits[i]), positive = ol_greater(g, in[0], ol_constant(g, OL_FLOAT32, 0));
        out[3 * i] = ol_where(g, positive, in[0], c);
        out[3 * i + 1] = ol_where(g, positive, ol_astype(g, in[0], OL_FLOAT16), ol_astype(g, c, OL_FLOAT16));
        out[3 * i + 2] = ol_where(g, positive, ol_astype(g, in[0], OL_BFLOAT16), ol_astype(g, c, OL_BFLOAT16));
    }
    return 0;
}

/* One of every size. */
BUILDER(build_sizes)
{
    const uint64_t bits = 0x8123456789abcdef;
    (void)user;
    out[0] = ol_bitwise_xor(g, in[0], ol_constant_bits(g, OL_UINT64, &bits));
    out[1] = ol_add(g, in[1], ol_constant_bits(g, OL_INT64, &bits));
    out[2] = ol_bitwise_xor(g, in[2], ol_constant(g, OL_UINT32, 0xdeadbeef));
    out[3] = ol_bitwise_xor(g, in[3], ol_constant(g, OL_UINT16, 0xface));
    out[4] = ol_bitwise_xor(g, in[4], ol_constant(g, OL_INT8, -77));
    out[5] = ol_logical_or(g, in[5], ol_constant(g, OL_BOOL, 1));
    return 0;
}

static void constants_of_every_size(void **state)
{
    static const ol_dtype dtypes[] = { OL_UINT64, OL_INT64, OL_UINT32, OL_UINT16, OL_INT8, OL_BOOL };
    (void)state;
    scene s;
    both b = compile_both(build_sizes, NULL, 6, dtypes, 6);
    scene_begin(&s);
    for (int i = 0; i < 6; i++)
        scene_add(&s, DENSE, dtypes[i], 1, SHAPE(11));
    scene_add_outputs(&s, b.on_cpu, DENSE, NULL);
    scene_check(&s, b.on_cpu, b.on_cuda, WITH_COMPOSED, "sizes");
    scene_end(&s);
    destroy_both(&b);
}

static void A75_constants_keep_their_bits(void **state)
{
    (void)state;
    scene s;
    both b = compile_both(build_constants, NULL, 1, DTYPES(OL_FLOAT32), 21);
    scene_begin(&s);
    scene_add(&s, DENSE, OL_FLOAT32, 1, SHAPE(37));
    scene_add_outputs(&s, b.on_cpu, DENSE, NULL);
    scene_check(&s, b.on_cpu, b.on_cuda, WITH_COMPOSED, "constants");
    scene_end(&s);
    destroy_both(&b);
}

/* ---- A25: two roundings ---- */

BUILDER(build_two_roundings)
{
    (void)user;
    out[0] = ol_add(g, ol_multiply(g, in[0], in[0]), in[1]);
    out[1] = ol_fma(g, in[0], in[0], in[1]);
    return 0;
}

static void A25_nothing_is_contracted(void **state)
{
    const uint32_t x[2] = { 0x3f800800, 0xbf801000 };
    uint32_t out[2];
    ol_error error;
    (void)state;
    ol_composite *c = compile_on(cuda, build_two_roundings, NULL, 2, DTYPES(OL_FLOAT32, OL_FLOAT32), 2);
    char *memory = device_bytes(cuda, x, sizeof x), *results = device_bytes(cuda, NULL, sizeof out);
    ol_tensor in[2] = { vector_of(memory, OL_FLOAT32, 1), vector_of(memory + 4, OL_FLOAT32, 1) };
    ol_tensor to[2] = { vector_of(results, OL_FLOAT32, 1), vector_of(results + 4, OL_FLOAT32, 1) };
    assert_ok(ol_replay(c, stream, in, to, &error), &error);
    download(cuda, stream, out, results, sizeof out);
    assert_int_equal(out[0], 0);
    assert_int_equal(out[1], 0x33800000);                        /* 2^-24 */
    device_give(cuda, memory, sizeof x);
    device_give(cuda, results, sizeof out);
    ol_composite_destroy(c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(any_layout), CUDA_TEST(any_length), CUDA_TEST(wide_work), CUDA_TEST(rates), CUDA_TEST(groups_of_shapes),
        CUDA_TEST(outputs_inside_of_larger_ones), CUDA_TEST(empty_outputs_are_no_launch), CUDA_TEST(in_place),
        CUDA_TEST(groups_take_turns), CUDA_TEST(turns_are_not_remembered),
        CUDA_TEST(A75_constants_keep_their_bits), CUDA_TEST(constants_of_every_size),
        CUDA_TEST(A25_nothing_is_contracted),
    };
    return CUDA_RUN(argc, argv, tests);
}
