/* Graphs under test, checked as bits. */
#include "graph_cases.h"

#include <pthread.h>
#include <stdatomic.h>

uint64_t element_load(const void *data, ol_dtype dtype, size_t index)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)data + index * ol_dtype_size(dtype), ol_dtype_size(dtype));
    return bits;
}

void element_store(void *data, ol_dtype dtype, size_t index, uint64_t bits)
{
    memcpy((char *)data + index * ol_dtype_size(dtype), &bits, ol_dtype_size(dtype));
}

uint64_t random_element(uint64_t *state, ol_dtype dtype)
{
    static const uint32_t float16_corners[] = { 0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFD01, 0x3C00, 0xBC00 };
    static const uint32_t bfloat16_corners[] = { 0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFF81, 0x3F80, 0xBF80 };
    static const uint32_t float32_corners[] = { 0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
                                                0x7FC00000, 0xFFA12345, 0x3F800000, 0xBF800000 };
    uint64_t r = random_next(state), choice = r >> 60;
    size_t corner = (size_t)(r % 14);
    uint64_t any = random_next(state);
    if (dtype == OL_BOOL)
        return r & 1;
    if (choice >= 8)                       /* half of the elements: any bits at all */
        return ol_dtype_size(dtype) == 8 ? any : any & ((1ull << (8 * ol_dtype_size(dtype))) - 1);
    if (dtype == OL_FLOAT16)
        return choice < 4 ? float16_corners[corner] : (any & 0x83FF) | (0x3000 + (any >> 20 & 0x1C00));
    if (dtype == OL_BFLOAT16)
        return choice < 4 ? bfloat16_corners[corner] : (any & 0x807F) | (0x3D80 + (any >> 20 & 0x0380));
    if (dtype == OL_FLOAT32)
        return choice < 4 ? float32_corners[corner] : (any & 0x807FFFFF) | (0x3D800000 + (any >> 20 & 0x03800000));
    uint64_t width = 8 * ol_dtype_size(dtype), ones = width == 64 ? ~0ull : (1ull << width) - 1;
    uint64_t sign = 1ull << (width - 1), corners[] = { 0, 1, 2, 3, ones, ones - 1, sign, sign - 1, sign + 1, 7, 31, width, width - 1, ones - 6 };
    return corners[corner] & ones;
}

void random_fill(uint64_t *state, void *data, ol_dtype dtype, size_t n)
{
    for (size_t i = 0; i < n; i++)
        element_store(data, dtype, i, random_element(state, dtype));
}

ol_tensor strided(void *data, ol_dtype dtype, int32_t rank, const int64_t *shape, const int64_t *strides)
{
    ol_tensor t = { .data = data, .dtype = dtype, .rank = rank };
    for (int32_t d = 0; d < rank; d++) {
        t.shape[d] = shape[d];
        t.strides[d] = strides[d];
    }
    return t;
}

ol_composite *compile_on(ol_device *device, ol_build build, void *user, int32_t n_inputs, const ol_dtype *dtypes, int32_t n_outputs)
{
    ol_builder builder = { .build = build, .user = user, .n_inputs = n_inputs, .n_outputs = n_outputs, .name = "case" };
    ol_composite *composite = NULL;
    ol_error error;
    assert_ok(ol_compile(device, &builder, dtypes, &composite, &error), &error);
    return composite;
}

const replay_path replay_paths[2] = { ol_replay, ol_replay_composed };
const char *const path_names[2] = { "replay", "composed" };

/* One length, one path: `repeats` times the n elements of the table. */
static void check_length(ol_device *device, const ol_composite *c, int path, const uint64_t *in, const uint64_t *expected, size_t n, size_t repeats)
{
    int32_t n_in = ol_composite_input_count(c), n_out = ol_composite_output_count(c);
    ol_tensor tensors[32];
    ol_error error;
    assert_true(n_in + n_out <= 32);
    for (int32_t t = 0; t < n_in + n_out; t++) {
        ol_dtype dtype = t < n_in ? ol_composite_input_dtype(c, t) : ol_composite_output_dtype(c, t - n_in);
        void *data = guarded_alloc(n * repeats * ol_dtype_size(dtype), 0);
        for (size_t i = 0; t < n_in && i < n * repeats; i++)
            element_store(data, dtype, i, in[(size_t)t * n + i % n]);
        tensors[t] = vector_of(data, dtype, (int64_t)(n * repeats));
    }
    uint64_t before = ol_device_launches(device);
    assert_ok(replay_paths[path](c, NULL, tensors, tensors + n_in, &error), &error);
    assert_int_equal(ol_device_launches(device) - before, path == 0 ? 1 : ol_composite_composed_launches(c));
    for (int32_t o = 0; o < n_out; o++)
        for (size_t i = 0; i < n * repeats; i++) {
            uint64_t got = element_load(tensors[n_in + o].data, tensors[n_in + o].dtype, i), want = expected[(size_t)o * n + i % n];
            if (got != want)
                fail_msg("%s, %s, output %d, element %zu of %zu (case %zu): %0*llx, expected %0*llx", ol_device_level(device), path_names[path],
                         (int)o, i, n * repeats, i % n, (int)(2 * ol_dtype_size(tensors[n_in + o].dtype)), (unsigned long long)got,
                         (int)(2 * ol_dtype_size(tensors[n_in + o].dtype)), (unsigned long long)want);
        }
    for (int32_t t = 0; t < n_in + n_out; t++)
        guarded_free(tensors[t].data);
}

void check_graph(ol_build build, void *user, int32_t n_inputs, const ol_dtype *dtypes, const uint64_t *inputs, int32_t n_outputs,
                 const uint64_t *expected, size_t n)
{
    for (size_t level = 0; level < level_count(); level++) {
        ol_composite *c = compile_on(level_device(level), build, user, n_inputs, dtypes, n_outputs);
        for (int path = 0; path < 2; path++) {
            check_length(level_device(level), c, path, inputs, expected, n, 1);
            check_length(level_device(level), c, path, inputs, expected, n, 71 / n + 1);
        }
        ol_composite_destroy(c);
    }
}

int build_primitive(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    int32_t p = (int32_t)(intptr_t)user;
    out[0] = ol_apply(g, p, in, ol_primitive_arity(p));
    return 0;
}

void *primitive_named(const char *name)
{
    int32_t p = ol_primitive_find(name);
    if (p < 0)
        fail_msg("no primitive is named %s", name);
    return PRIMITIVE_USER(p);
}

void check_primitive(const char *name, ol_dtype dtype, size_t n, const uint64_t *inputs, const uint64_t *expected)
{
    void *user = primitive_named(name);
    check_graph(build_primitive, user, ol_primitive_arity((int32_t)(intptr_t)user), DTYPES(dtype, dtype, dtype), inputs, 1, expected, n);
}

int build_astype(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    out[0] = ol_astype(g, in[0], (ol_dtype)(intptr_t)user);
    return 0;
}

void check_astype(ol_dtype from, ol_dtype to, size_t n, const uint64_t *inputs, const uint64_t *expected)
{
    check_graph(build_astype, DTYPE_USER(to), 1, &from, inputs, 1, expected, n);
}

void each_primitive(primitive_visit visit, void *user)
{
    for (int32_t p = 0; p < ol_primitive_count(); p++)
        for (int d = 0; d < OL_DTYPE_COUNT; d++) {
            ol_dtype result, dtypes[3] = { (ol_dtype)d, (ol_dtype)d, (ol_dtype)d };
            if (!ol_primitive_result(p, (ol_dtype)d, &result))
                continue;
            if (strcmp(ol_primitive_name(p), "where") == 0)
                dtypes[0] = OL_BOOL;
            visit(p, ol_primitive_arity(p), dtypes, user);
        }
}

typedef struct crew {
    atomic_size_t next;
    size_t n_tasks;
    ol_task task;
    void *argument;
} crew;

static void *work(void *user)
{
    crew *c = user;
    for (size_t i; (i = atomic_fetch_add(&c->next, 1)) < c->n_tasks;)
        c->task(c->argument, i);
    return NULL;
}

void host_parallel_for(void *user, size_t n_tasks, ol_task task, void *argument)
{
    crew c = { .n_tasks = n_tasks, .task = task, .argument = argument };
    pthread_t threads[3];
    size_t n_threads = 0;
    atomic_init(&c.next, 0);
    while (n_threads < 3 && n_threads + 1 < n_tasks && pthread_create(&threads[n_threads], NULL, work, &c) == 0)
        n_threads++;
    work(&c);
    while (n_threads > 0)
        pthread_join(threads[--n_threads], NULL);
    if (user)
        atomic_fetch_add((atomic_size_t *)user, n_tasks);
}

int build_mixed(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    ol_value x = ol_add(g, in[0], in[1]), s = ol_softplus(g, x);
    out[0] = ol_exp(g, ol_negative(g, ol_multiply(g, s, ol_constant(g, OL_FLOAT32, 1.0 / 3.0))));
    out[1] = ol_less(g, x, in[2]);
    out[2] = ol_astype(g, ol_where(g, out[1], x, in[2]), OL_INT64);
    out[3] = ol_sigmoid(g, x);
    out[4] = out[3];
    return 0;
}
