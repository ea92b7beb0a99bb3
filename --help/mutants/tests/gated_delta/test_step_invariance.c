/* What must not change a bit of a token: threads, the other sequences of the batch, slots, how tokens are split into calls, what comes after
 * it, the state's layout, strides, alignment, and running it again. Each against one plain run. */
#include "step_case.h"

#include "element.h"

#include <stdlib.h>
#include <string.h>

/* A case of n sequences of n_tokens, decode-like, on the geometry of the given ratio. */
static step_case usual(int key_heads, int ratio, int K, int V, int64_t n, int64_t n_tokens, uint64_t *random)
{
    step_case c;
    step_usual(&c, key_heads, ratio, K, V, n, n_tokens, random);
    return c;
}

static const struct { int key_heads, ratio, K, V; } geometries[] = { { 2, 2, 128, 128 }, { 1, 3, 96, 192 }, { 2, 1, 64, 48 }, { 1, 4, 256, 100 } };
enum { N_GEOMETRIES = sizeof geometries / sizeof *geometries };

static step_case geometry(int i, int64_t n, int64_t n_tokens, uint64_t *random)
{
    return usual(geometries[i].key_heads, geometries[i].ratio, geometries[i].K, geometries[i].V, n, n_tokens, random);
}

static void assert_same(const step_case *a, const step_case *b)
{
    if (!step_equal(a, b)) {
        step_print(a);
        fail();
    }
}

/* The host's threads, of which there is one, in any order. */
static void backwards(void *user, size_t n, ol_task task, void *argument)
{
    (void)user;
    while (n-- > 0)
        task(argument, n);
}

static void odd_first(void *user, size_t n, ol_task task, void *argument)
{
    (void)user;
    for (size_t i = 1; i < n; i += 2)
        task(argument, i);
    for (size_t i = 0; i < n; i += 2)
        task(argument, i);
}

static void test_threads(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    for (int g = 0; g < N_GEOMETRIES; g++) {
        step_case plain = geometry(g, 5, 3, &random), other;
        step_copy(&other, &plain);
        step_run(level_device(level_count() - 1), &plain);
        for (int threads = 2; threads <= 33; threads = 2 * threads - 1)
            for (int host = 0; host < 3; host++) {
                step_case c;
                ol_device *device;
                ol_error error;
                ol_cpu_options options = { .n_threads = threads, .parallel_for = host == 1 ? backwards : host == 2 ? odd_first : NULL };
                assert_ok(ol_device_cpu(&options, &device, &error), &error);
                step_copy(&c, &other);
                step_run(device, &c);
                assert_int_equal(ol_device_launches(device), 1);
                assert_same(&plain, &c);
                step_free(&c);
                ol_device_destroy(device);
            }
        step_free(&plain);
        step_free(&other);
    }
}

/* Copies tokens [first, first + n) of one case to tokens of another, of the same geometry. */
static void copy_tokens(step_case *to, int64_t to_first, const step_case *from, int64_t first, int64_t n)
{
    static const int numbers[] = { AT_QUERY, AT_KEY, AT_VALUE, AT_UPDATE, AT_DECAY };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const ol_tensor *s = step_tensor((step_case *)from, numbers[i]);
        size_t token = (size_t)s->strides[0] * ol_dtype_size(s->dtype);
        memcpy((char *)to->memory[numbers[i]] + (size_t)to_first * token, (char *)from->memory[numbers[i]] + (size_t)first * token, (size_t)n * token);
    }
}

static void copy_parameters(step_case *to, const step_case *from)
{
    memcpy(to->memory[AT_DECAY_RATE], from->memory[AT_DECAY_RATE], from->n_bytes[AT_DECAY_RATE]);
    memcpy(to->memory[AT_DECAY_BIAS], from->memory[AT_DECAY_BIAS], from->n_bytes[AT_DECAY_BIAS]);
}

static size_t slot_bytes(const step_case *c)
{
    return (size_t)c->arguments.state.strides[0] * ol_dtype_size(c->arguments.state.dtype);
}

static size_t output_bytes(const step_case *c, int64_t tokens)
{
    return (size_t)(tokens * c->arguments.output.strides[0]) * ol_dtype_size(c->arguments.output.dtype);
}

/* Each sequence of a batch alone. */
static void test_batch(void **state)
{
    (void)state;
    enum { N = 6, T = 3 };
    uint64_t random = harness_seed;
    for (int g = 0; g < N_GEOMETRIES; g++) {
        step_case batch = geometry(g, N, T, &random), before;
        step_copy(&before, &batch);
        step_run(level_device(level_count() - 1), &batch);
        for (int i = 0; i < N; i++) {
            step_case alone = geometry(g, 1, T, &random);
            copy_tokens(&alone, 0, &before, i * T, T);
            copy_parameters(&alone, &before);
            memcpy(alone.memory[AT_STATE], (char *)before.memory[AT_STATE] + (size_t)i * slot_bytes(&before), slot_bytes(&before));
            step_run(level_device(level_count() - 1), &alone);
            assert_memory_equal(alone.memory[AT_STATE], (char *)batch.memory[AT_STATE] + (size_t)i * slot_bytes(&batch), slot_bytes(&batch));
            assert_memory_equal(alone.memory[AT_OUTPUT], (char *)batch.memory[AT_OUTPUT] + output_bytes(&batch, i * T), output_bytes(&batch, T));
            step_free(&alone);
        }
        step_free(&batch);
        step_free(&before);
    }
}

/* The sequences in other slots, in another order. */
static void test_slots(void **state)
{
    (void)state;
    enum { N = 5, SLOTS = 9 };
    static const int64_t slots[N] = { 7, 0, 8, 3, 4 };
    uint64_t random = harness_seed;
    for (int g = 0; g < N_GEOMETRIES; g++) {
        step_case plain = geometry(g, N, 2, &random), c;
        step_copy(&c, &plain);
        int64_t shape[4];
        memcpy(shape, plain.arguments.state.shape, sizeof shape);
        shape[0] = SLOTS;
        step_give(&c, AT_STATE, OL_FLOAT32, 4, shape, STEP_DENSE, &random);
        for (int i = 0; i < N; i++)
            memcpy((char *)c.memory[AT_STATE] + (size_t)slots[i] * slot_bytes(&c), (char *)plain.memory[AT_STATE] + (size_t)i * slot_bytes(&plain), slot_bytes(&c));
        step_give(&c, AT_READ, OL_INT64, 1, (int64_t[]){ N }, STEP_DENSE, &random);
        memcpy(c.memory[AT_READ], slots, sizeof slots);
        step_run(level_device(level_count() - 1), &plain);
        step_run(level_device(level_count() - 1), &c);
        assert_memory_equal(plain.memory[AT_OUTPUT], c.memory[AT_OUTPUT], plain.n_bytes[AT_OUTPUT]);
        for (int i = 0; i < N; i++)
            assert_memory_equal((char *)c.memory[AT_STATE] + (size_t)slots[i] * slot_bytes(&c), (char *)plain.memory[AT_STATE] + (size_t)i * slot_bytes(&plain),
                                slot_bytes(&c));
        const unsigned char *untouched = (const unsigned char *)c.memory[AT_STATE] + slot_bytes(&c);        /* slot 1 */
        for (size_t b = 0; b < slot_bytes(&c); b++)
            assert_int_equal(untouched[b], 0xA5);
        step_free(&plain);
        step_free(&c);
    }
}

/* Runs tokens [0, n) of a case of one sequence in calls of these lengths, on its state. */
static void run_split(step_case *c, const int64_t *lengths, int n)
{
    ol_gated_delta_arguments whole = c->arguments;
    int64_t first = 0;
    for (int i = 0; i < n; first += lengths[i++])
        for (int t = AT_QUERY; t <= AT_OUTPUT; t++) {
            const ol_tensor *from = (const ol_tensor *)((char *)&whole + ((char *)step_tensor(c, t) - (char *)&c->arguments));
            ol_tensor *part = step_tensor(c, t);
            if (t != AT_DECAY_RATE && t != AT_DECAY_BIAS) {
                part->shape[0] = lengths[i];
                part->data = (char *)from->data + first * from->strides[0] * (int64_t)ol_dtype_size(from->dtype);
            }
            if (t == AT_OUTPUT)
                step_run(level_device(level_count() - 1), c);
        }
    c->arguments = whole;
}

static void splits_of(ol_dtype dtype, int equal_to_whole)
{
    static const struct { int n; int64_t lengths[40]; } splits[] = {
        { 8, { 1, 1, 1, 1, 1, 1, 1, 1 } }, { 2, { 4, 4 } }, { 3, { 1, 2, 5 } }, { 4, { 0, 7, 0, 1 } },
    };
    uint64_t random = harness_seed;
    for (int g = 0; g < N_GEOMETRIES; g++)
        for (int layout = 0; layout < 2; layout++) {
            step_case before = geometry(g, 1, 8, &random), whole;
            int64_t shape[4] = { 1, before.options.value_heads, layout ? geometries[g].K : geometries[g].V, layout ? geometries[g].V : geometries[g].K };
            before.options.state_layout = (ol_delta_layout)layout;
            before.options.state_dtype = dtype;
            step_give(&before, AT_STATE, dtype, 4, shape, STEP_DENSE, &random);
            step_fill(&before, AT_STATE, 0, 1, STEP_USUAL, &random);
            step_copy(&whole, &before);
            step_run(level_device(level_count() - 1), &whole);
            for (size_t s = 0; s < sizeof splits / sizeof *splits; s++) {
                step_case split;
                step_copy(&split, &before);
                run_split(&split, splits[s].lengths, splits[s].n);
                if (equal_to_whole)
                    assert_same(&whole, &split);
                else {
                    /* Only equal splits: the state is rounded at the end of each call. */
                    step_case again;
                    step_copy(&again, &before);
                    run_split(&again, splits[s].lengths, splits[s].n);
                    assert_same(&again, &split);
                    if (splits[s].n == 8)
                        assert_true(memcmp(split.memory[AT_STATE], whole.memory[AT_STATE], split.n_bytes[AT_STATE]) != 0);
                    step_free(&again);
                }
                step_free(&split);
            }
            step_free(&before);
            step_free(&whole);
        }
}

static void test_split_float32(void **state)
{
    (void)state;
    splits_of(OL_FLOAT32, 1);
}

static void test_split_16_bits(void **state)
{
    (void)state;
    splits_of(OL_BFLOAT16, 0);
    splits_of(OL_FLOAT16, 0);
}

/* A state of 16 bits that a call stored after token t, as an intermediate one, is what a call of t + 1 tokens would have left. */
static void test_split_intermediate(void **state)
{
    (void)state;
    enum { T = 5 };
    uint64_t random = harness_seed;
    for (int g = 0; g < N_GEOMETRIES; g++) {
        step_case all = geometry(g, 1, T, &random);
        all.options.state_dtype = OL_BFLOAT16;
        int64_t shape[5] = { 1, all.options.value_heads, geometries[g].V, geometries[g].K }, five[5] = { 1, T, shape[1], shape[2], shape[3] };
        step_give(&all, AT_STATE, OL_BFLOAT16, 4, shape, STEP_DENSE, &random);
        step_fill(&all, AT_STATE, 0, 1, STEP_USUAL, &random);
        step_give(&all, AT_INTERMEDIATE, OL_BFLOAT16, 5, five, STEP_DENSE, &random);
        step_case before;
        step_copy(&before, &all);
        step_run(level_device(level_count() - 1), &all);
        for (int64_t t = 1; t <= T; t++) {
            step_case part;
            step_copy(&part, &before);
            run_split(&part, &t, 1);
            assert_memory_equal(part.memory[AT_STATE], (char *)all.memory[AT_INTERMEDIATE] + (size_t)(t - 1) * slot_bytes(&part), slot_bytes(&part));
            assert_memory_equal(part.memory[AT_OUTPUT], all.memory[AT_OUTPUT], output_bytes(&all, t));
            step_free(&part);
        }
        step_free(&all);
        step_free(&before);
    }
}

/* More tokens than are prepared at once, at each length around that. */
static void test_suffix(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    for (int g = 0; g < N_GEOMETRIES; g++) {
        enum { T = 70 };
        static const int64_t prefixes[] = { 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65 };
        step_case whole = geometry(g, 1, T, &random), before;
        step_copy(&before, &whole);
        step_run(level_device(level_count() - 1), &whole);
        for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
            step_case other = geometry(g, 1, T, &random);                    /* another suffix, of special values */
            step_fill(&other, AT_KEY, 0, 1, STEP_SPECIAL, &random);
            step_fill(&other, AT_VALUE, 0, 1, STEP_SPECIAL, &random);
            copy_tokens(&other, 0, &before, 0, prefixes[p]);
            copy_parameters(&other, &before);
            memcpy(other.memory[AT_STATE], before.memory[AT_STATE], before.n_bytes[AT_STATE]);
            step_run(level_device(level_count() - 1), &other);
            assert_memory_equal(other.memory[AT_OUTPUT], whole.memory[AT_OUTPUT], output_bytes(&whole, prefixes[p]));
            step_free(&other);
        }
        step_free(&whole);
        step_free(&before);
    }
}

static void test_layout(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    for (int g = 0; g < N_GEOMETRIES; g++) {
        step_case rows = geometry(g, 2, 4, &random), columns;
        int64_t H = rows.options.value_heads, K = geometries[g].K, V = geometries[g].V;
        step_copy(&columns, &rows);
        columns.options.state_layout = OL_DELTA_KEY_VALUE;
        step_give(&columns, AT_STATE, OL_FLOAT32, 4, (int64_t[]){ 2, H, K, V }, STEP_DENSE, &random);
        const float *from = rows.memory[AT_STATE];
        float *to = columns.memory[AT_STATE];
        for (int64_t h = 0; h < 2 * H; h++)
            for (int64_t v = 0; v < V; v++)
                for (int64_t k = 0; k < K; k++)
                    to[(h * K + k) * V + v] = from[(h * V + v) * K + k];
        step_run(level_device(level_count() - 1), &rows);
        step_run(level_device(level_count() - 1), &columns);
        assert_memory_equal(rows.memory[AT_OUTPUT], columns.memory[AT_OUTPUT], rows.n_bytes[AT_OUTPUT]);
        for (int64_t h = 0; h < 2 * H; h++)
            for (int64_t v = 0; v < V; v++)
                for (int64_t k = 0; k < K; k++)
                    assert_memory_equal(&to[(h * K + k) * V + v], &from[(h * V + v) * K + k], sizeof *to);
        step_free(&rows);
        step_free(&columns);
    }
}

/* The elements of two tensors of one shape. */
static void copy_elements(const ol_tensor *to, const ol_tensor *from)
{
    int64_t index[OL_MAX_RANK] = { 0 };
    for (int done = 0; !done;) {
        memcpy(element_at(to, index), element_at(from, index), ol_dtype_size(to->dtype));
        done = 1;
        for (int32_t d = to->rank - 1; done && d >= 0; d--) {
            done = ++index[d] == to->shape[d];
            if (done)
                index[d] = 0;
        }
    }
}

static void test_strides(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    for (int i = 0; i < 40; i++) {
        step_case plain = geometry(i % N_GEOMETRIES, 3, 2, &random), strided, dense_again;
        step_copy(&strided, &plain);
        step_copy(&dense_again, &plain);
        for (int t = 0; t < STEP_TENSORS; t++)
            if (plain.memory[t]) {
                const ol_tensor *p = step_tensor(&plain, t);
                step_give(&strided, t, p->dtype, p->rank, p->shape, STEP_STRIDED, &random);
                copy_elements(step_tensor(&strided, t), p);
            }
        step_run(level_device(level_count() - 1), &plain);
        step_run(level_device(level_count() - 1), &strided);
        for (int t = 0; t < STEP_TENSORS; t++)
            if (plain.memory[t])
                copy_elements(step_tensor(&dense_again, t), step_tensor(&strided, t));
        assert_same(&plain, &dense_again);
        step_free(&plain);
        step_free(&strided);
        step_free(&dense_again);
    }
}

static void test_repeated(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    for (int g = 0; g < N_GEOMETRIES; g++) {
        step_case before = geometry(g, 2, 20, &random), first;
        step_copy(&first, &before);
        step_run(level_device(level_count() - 1), &first);
        for (int i = 0; i < 5; i++) {
            step_case again;
            step_copy(&again, &before);
            step_run(level_device(level_count() - 1), &again);
            assert_same(&first, &again);
            step_free(&again);
        }
        step_free(&before);
        step_free(&first);
    }
}

/* Heads tiled are the heads grouped in another order. */
static void test_head_map(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    step_case grouped = usual(3, 2, 64, 32, 1, 2, &random), tiled;
    step_copy(&tiled, &grouped);
    tiled.options.head_map = OL_HEADS_TILED;
    head_axes g = { 3, 6, 0 }, t = { 3, 6, 1 };
    for (int key = 0; key < 3; key++)
        for (int member = 0; member < 2; member++) {
            int from = key * 2 + member, to = member * 3 + key;
            for (int token = 0; token < 2; token++) {
                memcpy(element_of_head(&tiled.arguments.value, &t, token, to, 0), element_of_head(&grouped.arguments.value, &g, token, from, 0), 32 * sizeof(float));
                memcpy(element_of_head(&tiled.arguments.update, &t, token, to, -1), element_of_head(&grouped.arguments.update, &g, token, from, -1), sizeof(float));
                memcpy(element_of_head(&tiled.arguments.decay, &t, token, to, -1), element_of_head(&grouped.arguments.decay, &g, token, from, -1), sizeof(float));
            }
            ((float *)tiled.memory[AT_DECAY_RATE])[to] = ((float *)grouped.memory[AT_DECAY_RATE])[from];
            ((float *)tiled.memory[AT_DECAY_BIAS])[to] = ((float *)grouped.memory[AT_DECAY_BIAS])[from];
            memcpy((float *)tiled.memory[AT_STATE] + to * 2048, (float *)grouped.memory[AT_STATE] + from * 2048, 2048 * sizeof(float));
        }
    step_run(level_device(level_count() - 1), &grouped);
    step_run(level_device(level_count() - 1), &tiled);
    for (int h = 0; h < 6; h++) {
        int to = h % 2 * 3 + h / 2;
        for (int token = 0; token < 2; token++)
            assert_memory_equal(element_of_head(&tiled.arguments.output, &t, token, to, 0), element_of_head(&grouped.arguments.output, &g, token, h, 0), 32 * sizeof(float));
        assert_memory_equal((float *)tiled.memory[AT_STATE] + to * 2048, (float *)grouped.memory[AT_STATE] + h * 2048, 2048 * sizeof(float));
    }
    step_free(&grouped);
    step_free(&tiled);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_batch),              cmocka_unit_test(test_slots),  cmocka_unit_test(test_split_float32),
        cmocka_unit_test(test_split_16_bits), cmocka_unit_test(test_split_intermediate), cmocka_unit_test(test_suffix), cmocka_unit_test(test_layout),
        cmocka_unit_test(test_strides),       cmocka_unit_test(test_repeated),           cmocka_unit_test(test_head_map),
    };
    return HARNESS_RUN(argc, argv, tests);
}
