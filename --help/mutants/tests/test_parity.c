/* The contract on random cases: composed path and replay at every level give the same bits, and those are the bits that a
 * scalar interpreter, written from the contract and not from the kernels, finds with MPFR.
 *
 * The interpreter is itself held against the golden cases, so that an error in it does not pass for one of the library.
 * --seed chooses other cases; a failure prints the seed of its case. */
#include "harness.h"

#include "composite.h"
#include "parity_case.h"
#include "reference.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- The interpreter against the golden cases --------------------------------------------------------------------- */

/* Lines of `n_fields` fields: OP DTYPE X [Y] [OUT_DTYPE] OUT. */
static void check_golden(const char *file, int arity)
{
    char path[1024], line[256], fields[6][32];
    int64_t n = 0;
    snprintf(path, sizeof path, "%s/%s", GOLDEN_DIR, file);
    FILE *stream = fopen(path, "r");
    if (!stream)
        fail_msg("%s cannot be read", path);
    while (fgets(line, sizeof line, stream)) {
        int n_fields = sscanf(line, "%31s %31s %31s %31s %31s %31s", fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]);
        ol_dtype dtype;
        if (n_fields < 5 || line[0] == '#' || !ol_dtype_parse(fields[1], &dtype))
            continue;
        int32_t p = ol_primitive_find(fields[0]);
        uint64_t bits[2] = { strtoull(fields[2], NULL, 16), strtoull(fields[3], NULL, 16) };
        reference_value x[2] = { { bits[0], bits[0], 0 }, { bits[1], bits[1], 0 } }, r;
        ol_dtype to = OL_FLOAT32;
        if (arity == 1)
            assert_true(ol_dtype_parse(fields[3], &to));
        if (p < 0)
            continue;
        assert_int_equal(ol_primitive_arity(p), arity);
        r = reference_primitive(p, dtype, x);
        if (r.bits != strtoull(fields[4], NULL, 16))
            fail_msg("the interpreter gives %" PRIx64 " for: %s", r.bits, line);
        n++;
    }
    fclose(stream);
    printf("%s: %" PRId64 " cases\n", file, n);
    assert_true(n > 1000);
}

static void test_reference_has_the_golden_bits(void **state)
{
    (void)state;
    check_golden("unary.tsv", 1);
    check_golden("binary.tsv", 2);
}

/* ---- One primitive at a time ----------------------------------------------------------------------------------------- */

/* All pairs of special values, then random ones. */
enum { N_RANDOM = 331, MAX_VALUES = 8192 };

typedef struct single {
    int32_t primitive;                   /* -1: astype */
    ol_dtype to;
} single;

static int build_single(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    const single *s = user;
    out[0] = s->primitive < 0 ? ol_astype(g, in[0], s->to) : ol_apply(g, s->primitive, in, ol_primitive_arity(s->primitive));
    return 0;
}

static uint64_t load(const void *data, ol_dtype dtype, int64_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)data + i * (int64_t)ol_dtype_size(dtype), ol_dtype_size(dtype));
    return bits;
}

/* Operand `which` of `arity` ones. Returns the number of values. */
static int64_t fill_operand(uint64_t *random, void *data, ol_dtype dtype, int which, int arity)
{
    int64_t n_special = (int64_t)generate_special_count(dtype), n = (arity > 1 ? n_special * n_special : n_special) + N_RANDOM;
    assert_true(n <= MAX_VALUES);
    for (int64_t i = 0; i < n; i++) {
        int64_t special = which == 0 ? i % n_special : which == 1 ? i / n_special : (int64_t)random_below(random, (uint64_t)n_special);
        uint64_t bits = i < n - N_RANDOM ? generate_special(dtype, (size_t)special) : generate_bits(random, dtype);
        memcpy((char *)data + i * (int64_t)ol_dtype_size(dtype), &bits, ol_dtype_size(dtype));
    }
    return n;
}

/* Replays one operation at every level and compares with the interpreter. Returns how many results there were. */
static int64_t check_single(single s, ol_dtype dtype, uint64_t *random)
{
    static uint64_t data[3][MAX_VALUES], result[MAX_VALUES];
    int where = s.primitive == PRIMITIVE_where;
    int32_t arity = s.primitive < 0 ? 1 : ol_primitive_arity(s.primitive);
    ol_dtype dtypes[3], out = s.to;
    ol_tensor in[3];
    reference_value *expected[1] = { NULL };
    int64_t n = 0;
    if (s.primitive >= 0)
        assert_true(ol_primitive_result(s.primitive, dtype, &out));
    for (int i = arity - 1; i >= where; i--) {
        dtypes[i] = dtype;
        n = fill_operand(random, data[i], dtype, i - where, arity - where);
    }
    if (where) {
        dtypes[0] = OL_BOOL;
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)data[0])[i] = random_below(random, 3) ? (uint8_t)random_next(random) : 0;
    }
    for (int i = 0; i < arity; i++)
        in[i] = vector_of(data[i], dtypes[i], n);
    ol_builder builder = { .build = build_single, .user = &s, .n_inputs = arity, .n_outputs = 1, .name = "single" };
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *c;
        ol_error error;
        ol_tensor to = vector_of(result, out, n);
        assert_ok(ol_compile(level_device(level), &builder, dtypes, &c, &error), &error);
        assert_ok(ol_replay(c, NULL, in, &to, &error), &error);
        if (level == 0)
            assert_true(reference_run(c->traced, in, expected));
        for (int64_t i = 0; i < n; i++) {
            uint64_t bits = load(result, out, i), operands[3] = { 0 };
            assert_false(expected[0][i].uncertain);
            if (reference_allows(expected[0][i], bits))
                continue;
            for (int k = 0; k < arity; k++)
                operands[k] = load(data[k], dtypes[k], i);
            fail_msg("%s %s of %" PRIx64 " %" PRIx64 " %" PRIx64 " (%s) at %s: got %" PRIx64 ", expected %" PRIx64,
                     s.primitive < 0 ? "astype" : ol_primitive_name(s.primitive), s.primitive < 0 ? ol_dtype_name(s.to) : "", operands[0],
                     operands[1], operands[2], ol_dtype_name(dtype), ol_device_level(level_device(level)), bits, expected[0][i].bits);
        }
        ol_composite_destroy(c);
    }
    free(expected[0]);
    return n * (int64_t)level_count();
}

static void test_each_primitive_and_conversion(void **state)
{
    (void)state;
    uint64_t random = harness_seed;
    int64_t n = 0, n_operations = OL_DTYPE_COUNT * OL_DTYPE_COUNT;
    for (int32_t p = 0; p < ol_primitive_count(); p++)
        for (int d = 0; d < OL_DTYPE_COUNT; d++) {
            ol_dtype ignored;
            if (!ol_primitive_result(p, (ol_dtype)d, &ignored))
                continue;
            n += check_single((single){ p, OL_BOOL }, (ol_dtype)d, &random);
            n_operations++;
        }
    for (int from = 0; from < OL_DTYPE_COUNT; from++)
        for (int to = 0; to < OL_DTYPE_COUNT; to++)
            n += check_single((single){ -1, (ol_dtype)to }, (ol_dtype)from, &random);
    printf("%" PRId64 " operations, %" PRId64 " results\n", n_operations, n);
}

/* ---- Random graphs ---------------------------------------------------------------------------------------------------- */

typedef struct compared {
    int64_t n, n_uncertain;
} compared;

static size_t make_devices(parity_device *devices)
{
    size_t n = level_count();
    for (size_t i = 0; i < n; i++)
        devices[i] = (parity_device){ level_device(i), ol_device_level(level_device(i)), true };
    return n;
}

/* Holds the results in the arena against the interpreter's. */
static void check_reference(const generated *c, unsigned char *arena, compared *count)
{
    ol_composite *composite;
    ol_error error;
    ol_builder builder = generate_builder(c);
    int32_t n = c->n_inputs + c->n_outputs;
    ol_tensor *in = calloc((size_t)n, sizeof *in), *out = calloc((size_t)n, sizeof *out);
    reference_value **expected = calloc((size_t)c->n_outputs, sizeof *expected);
    assert_true(in && out && expected);
    generate_bind(c, c->arena, in);                     /* in-place outputs have overwritten inputs in the other one */
    generate_bind(c, arena, out);
    assert_ok(ol_compile(level_device(0), &builder, c->input_dtypes, &composite, &error), &error);
    assert_true(reference_run(composite->traced, in, expected));
    for (int32_t o = 0; o < c->n_outputs; o++) {
        const ol_tensor *t = &out[c->n_inputs + o];
        int64_t n_elements = 1;
        for (int32_t d = 0; d < t->rank; d++)
            n_elements *= t->shape[d];
        for (int64_t i = 0; i < n_elements; i++) {
            uint64_t bits = 0;
            memcpy(&bits, generate_element(t, i), ol_dtype_size(t->dtype));
            count->n++;
            count->n_uncertain += expected[o][i].uncertain;
            if (!reference_allows(expected[o][i], bits)) {
                parity_put_graph(composite, stdout);
                generate_describe(c, stdout);
                fail_msg("case seed %" PRIu64 ": output %d, element %" PRId64 ": all levels give %" PRIx64 ", the interpreter %" PRIx64, c->seed,
                         (int)o, i, bits, expected[o][i].bits);
            }
        }
        free(expected[o]);
    }
    ol_composite_destroy(composite);
    free(expected);
    free(in);
    free(out);
}

static void run_cases(const parity_device *devices, size_t n_devices, generate_limits limits, uint64_t seed, double limit_s, int with_reference)
{
    parity_tally tally = { 0 };
    compared count = { 0 };
    for (double end = seconds() + limit_s; seconds() < end || tally.n_cases < 20;) {
        char *failure;
        unsigned char *arena;
        generated *c = generate_case(random_next(&seed), &limits);
        assert_non_null(c);
        if (!parity_run(c, devices, n_devices, &tally, &arena, &failure)) {
            printf("%s\n", failure ? failure : "out of memory");
            fail_msg("case seed %" PRIu64, c->seed);
        }
        if (with_reference)
            check_reference(c, arena, &count);
        free(arena);
        generate_free(c);
    }
    printf("%" PRId64 " graphs, %" PRId64 " replays, %" PRId64 " composed runs", tally.n_cases, tally.n_replays, tally.n_composed);
    printf(with_reference ? "; %" PRId64 " elements against the interpreter, %" PRId64 " of them left out\n" : "\n", count.n, count.n_uncertain);
    assert_true(count.n_uncertain * 100 <= count.n);
}

static void test_small_graphs_against_the_interpreter(void **state)
{
    (void)state;
    parity_device devices[4];
    size_t n = make_devices(devices);
    run_cases(devices, n, (generate_limits){ 40, 0, 30, 6 }, harness_seed, 4.0, 1);
}

static void test_many_tensors_and_nodes(void **state)
{
    (void)state;
    parity_device devices[4];
    size_t n = make_devices(devices);
    run_cases(devices, n, (generate_limits){ 70, 0, 500, 100 }, harness_seed + 1000, 1.5, 0);
}

/* Large enough that replays are split over threads, which must not show. */
static void test_large_graphs_on_threads(void **state)
{
    (void)state;
    parity_device devices[5];
    size_t n = make_devices(devices);
    ol_cpu_options options = { .n_threads = 3 };
    ol_device *threads;
    ol_error error;
    assert_ok(ol_device_cpu(&options, &threads, &error), &error);
    devices[n] = (parity_device){ threads, "3 threads", false };
    run_cases(devices, n + 1, (generate_limits){ 60000, 25000, 20, 4 }, harness_seed + 2000, 2.5, 0);
    ol_device_destroy(threads);
}

static int free_reference(void **state)
{
    (void)state;
    reference_end();
    return 0;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest parity[] = {
        cmocka_unit_test_teardown(test_reference_has_the_golden_bits, free_reference),
        cmocka_unit_test_teardown(test_each_primitive_and_conversion, free_reference),
        cmocka_unit_test_teardown(test_small_graphs_against_the_interpreter, free_reference),
        cmocka_unit_test(test_many_tensors_and_nodes),
        cmocka_unit_test(test_large_graphs_on_threads),
    };
    return HARNESS_RUN(argc, argv, parity);
}
