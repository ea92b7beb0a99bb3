/* Scenes: see cuda_harness.h. */
#include "cuda_harness.h"
#include "tensor.h"

#include <stdio.h>
#include <stdlib.h>

const char *const manner_names[N_MANNERS] = { "dense", "misaligned", "gapped", "rows apart", "reversed", "transposed", "random" };

enum { FILLER = 0xA5, ALIGNMENT = 64, APART = 128 };

void scene_begin(scene *s)
{
    memset(s, 0, sizeof *s);
    s->random = harness_seed;
}

void scene_end(scene *s)
{
    free(s->bytes);
    free(s->tensors);
    free(s->offsets);
}

/* Room for n_bytes more, on a boundary and behind filler: where they start. */
static size_t extend(scene *s, size_t n_bytes)
{
    size_t start = (s->n_bytes + APART + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, end = start + n_bytes + APART;
    if (end > s->capacity) {
        size_t capacity = 2 * end;
        s->bytes = realloc(s->bytes, capacity);
        assert_non_null(s->bytes);
        memset(s->bytes + s->capacity, FILLER, capacity - s->capacity);
        s->capacity = capacity;
    }
    s->n_bytes = end;
    return start;
}

static ol_tensor *append(scene *s, const ol_tensor *t, size_t offset)
{
    if (s->n_tensors == s->tensors_capacity) {
        s->tensors_capacity = s->tensors_capacity ? 2 * s->tensors_capacity : 16;
        s->tensors = realloc(s->tensors, (size_t)s->tensors_capacity * sizeof *s->tensors);
        s->offsets = realloc(s->offsets, (size_t)s->tensors_capacity * sizeof *s->offsets);
        assert_non_null(s->tensors);
        assert_non_null(s->offsets);
    }
    s->offsets[s->n_tensors] = offset;
    s->tensors[s->n_tensors] = *t;
    return &s->tensors[s->n_tensors++];
}

/* Where an element lies behind the first one, in bytes. */
static int64_t place_of(const ol_tensor *t, int64_t flat)
{
    int64_t at = 0;
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        at += flat % t->shape[d] * t->strides[d];
        flat /= t->shape[d];
    }
    return at * (int64_t)ol_dtype_size(t->dtype);
}

/* Dimensions in some order, with gaps, some of them walked backwards. */
static ol_tensor *place(scene *s, manner how, ol_dtype dtype, int32_t rank, const int64_t *extents)
{
    ol_tensor t = { .dtype = dtype, .rank = rank };
    size_t size = ol_dtype_size(dtype), misalignment = how == MISALIGNED ? 1 : 0;
    int32_t order[OL_MAX_RANK];
    int64_t extent = 1, start = 0;
    if (how == RANDOM)
        misalignment = random_below(&s->random, 3) * size / 2;
    for (int32_t d = 0; d < rank; d++)
        order[d] = how == TRANSPOSED ? d : rank - 1 - d;       /* innermost first */
    for (int32_t d = rank - 1; how == RANDOM && d > 0; d--) {
        int32_t other = (int32_t)random_below(&s->random, (uint64_t)d + 1), was = order[d];
        order[d] = order[other];
        order[other] = was;
    }
    for (int32_t i = 0; i < rank; i++) {
        int32_t d = order[i];
        int64_t gap = how == GAPPED ? 2 + (i == 0) : how == RANDOM ? 1 + (int64_t)random_below(&s->random, 3) : 1;
        int64_t stride = how == ROWS_APART && i == 1 ? (extent + 63) / 32 * 32 : extent * gap;
        int backwards = how == REVERSED || (how == RANDOM && random_below(&s->random, 3) == 0);
        t.shape[d] = extents[d];
        t.strides[d] = backwards ? -stride : stride;
        if (extents[d] > 0) {
            start += backwards ? (extents[d] - 1) * stride : 0;
            extent = stride * (extents[d] - 1) + extent;
        }
    }
    size_t offset = extend(s, misalignment + (size_t)extent * size);
    return append(s, &t, offset + misalignment + (size_t)start * size);
}

static ol_tensor *fill(scene *s, ol_tensor *t)
{
    for (int64_t i = 0, n = shape_elements(t->rank, t->shape); i < n; i++) {
        uint64_t bits = random_element(&s->random, t->dtype);
        memcpy(s->bytes + ((int64_t)s->offsets[t - s->tensors] + place_of(t, i)), &bits, ol_dtype_size(t->dtype));
    }
    return t;
}

ol_tensor *scene_add(scene *s, manner how, ol_dtype dtype, int32_t rank, const int64_t *dims)
{
    return fill(s, place(s, how, dtype, rank, dims));
}

ol_tensor *scene_add_broadcast(scene *s, manner how, ol_dtype dtype, int32_t rank, const int64_t *dims)
{
    int32_t left_out = rank && random_below(&s->random, 3) == 0 ? (int32_t)random_below(&s->random, (uint64_t)rank) : 0;
    int64_t own[OL_MAX_RANK];
    uint64_t repeats = random_next(&s->random), steps = random_next(&s->random);
    for (int32_t d = left_out; d < rank; d++)
        own[d - left_out] = repeats >> d & 1 ? 1 : dims[d];
    ol_tensor *t = scene_add(s, how, dtype, rank - left_out, own);
    for (int32_t d = 0; d < t->rank; d++)
        if (t->shape[d] == 1 && steps >> d & 1) {
            t->shape[d] = dims[d + left_out];
            t->strides[d] = 0;
        }
    return t;
}

void scene_add_outputs(scene *s, const ol_composite *c, manner how, const int32_t *in_place)
{
    int32_t n = ol_composite_output_count(c);
    ol_tensor *outputs = calloc((size_t)n, sizeof *outputs), *inputs = calloc((size_t)s->n_tensors + 1, sizeof *inputs);
    ol_error error;
    for (int32_t i = 0; i < s->n_tensors; i++)
        inputs[i] = s->tensors[i];
    assert_ok(ol_output_shapes(c, inputs, outputs, &error), &error);
    for (int32_t o = 0; o < n; o++)
        if (in_place && in_place[o] >= 0)
            append(s, &s->tensors[in_place[o]], s->offsets[in_place[o]]);
        else
            place(s, how, outputs[o].dtype, outputs[o].rank, outputs[o].shape);
    free(outputs);
    free(inputs);
}

void scene_bind(const scene *s, void *memory, ol_tensor *tensors)
{
    for (int32_t i = 0; i < s->n_tensors; i++) {
        tensors[i] = s->tensors[i];
        tensors[i].data = (char *)memory + s->offsets[i];
    }
}

/* Rounded up, for aligned_alloc. */
static unsigned char *host_copy(const scene *s)
{
    unsigned char *copy = aligned_alloc(ALIGNMENT, (s->n_bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    assert_non_null(copy);
    memcpy(copy, s->bytes, s->n_bytes);
    return copy;
}

unsigned char *scene_expected(const scene *s, const ol_composite *on_cpu)
{
    unsigned char *expected = host_copy(s);
    ol_tensor *tensors = calloc((size_t)s->n_tensors, sizeof *tensors);
    ol_error error;
    scene_bind(s, expected, tensors);
    assert_ok(ol_replay(on_cpu, NULL, tensors, tensors + ol_composite_input_count(on_cpu), &error), &error);
    free(tensors);
    return expected;
}

static void describe(const scene *s, int32_t i, char *out, size_t n_bytes)
{
    const ol_tensor *t = &s->tensors[i];
    int n = snprintf(out, n_bytes, "%s, shape (strides), offset %zu:", ol_dtype_name(t->dtype), s->offsets[i]);
    for (int32_t d = 0; d < t->rank && n > 0 && (size_t)n < n_bytes; d++)
        n += snprintf(out + n, n_bytes - (size_t)n, " %lld (%lld)", (long long)t->shape[d], (long long)t->strides[d]);
}

void scene_compare(const scene *s, const unsigned char *got, const unsigned char *expected, const char *what)
{
    char text[400];
    if (memcmp(got, expected, s->n_bytes) == 0)
        return;
    for (int32_t i = 0; i < s->n_tensors; i++) {
        const ol_tensor *t = &s->tensors[i];
        for (int64_t e = 0, n = shape_elements(t->rank, t->shape); e < n; e++) {
            int64_t at = (int64_t)s->offsets[i] + place_of(t, e);
            if (memcmp(got + at, expected + at, ol_dtype_size(t->dtype)) == 0)
                continue;
            uint64_t x = 0, y = 0;
            memcpy(&x, got + at, ol_dtype_size(t->dtype));
            memcpy(&y, expected + at, ol_dtype_size(t->dtype));
            uint64_t was = 0;
            memcpy(&was, s->bytes + at, ol_dtype_size(t->dtype));
            describe(s, i, text, sizeof text);
            fail_msg("%s: tensor %d of %d (%s): element %lld of %lld is %llx, expected %llx, was %llx", what, (int)i,
                     (int)s->n_tensors, text, (long long)e, (long long)n,
                     (unsigned long long)x, (unsigned long long)y, (unsigned long long)was);
        }
    }
    for (size_t i = 0; i < s->n_bytes; i++)
        if (got[i] != expected[i])
            fail_msg("%s: byte %zu, outside of all elements, is %02x, expected %02x", what, i, got[i], expected[i]);
}

void scene_check(const scene *s, const ol_composite *on_cpu, const ol_composite *on_cuda, int how, const char *what)
{
    unsigned char *expected = scene_expected(s, on_cpu), *got = host_copy(s);
    ol_tensor *tensors = calloc((size_t)s->n_tensors, sizeof *tensors);
    int32_t n_inputs = ol_composite_input_count(on_cuda);
    int n_empty = 0;
    char name[400];
    ol_error error;
    void *memory = device_bytes(cuda, s->bytes, s->n_bytes);
    scene_bind(s, memory, tensors);
    for (int32_t i = n_inputs; i < s->n_tensors; i++)
        n_empty += shape_elements(s->tensors[i].rank, s->tensors[i].shape) == 0;
    for (int run = 0; run < (how & WITH_COMPOSED ? 3 : 2); run++) {
        uint64_t launches = ol_device_launches(cuda);
        upload(cuda, stream, memory, s->bytes, s->n_bytes);
        assert_ok(replay_paths[run / 2](on_cuda, stream, tensors, tensors + n_inputs, &error), &error);
        launches = ol_device_launches(cuda) - launches;
        download(cuda, stream, got, memory, s->n_bytes);
        snprintf(name, sizeof name, "%s, %s", what, run == 0 ? "replay" : run == 1 ? "second replay" : "composed");
        scene_compare(s, got, expected, name);
        if (run < 2)
            assert_int_equal(launches, n_empty < s->n_tensors - n_inputs);
        else if (!n_empty)
            assert_int_equal(launches, ol_composite_composed_launches(on_cuda));
    }
    device_give(cuda, memory, s->n_bytes);
    free(tensors);
    free(got);
    free(expected);
}

both compile_both(ol_build build, void *user, int32_t n_inputs, const ol_dtype *dtypes, int32_t n_outputs)
{
    return (both){ compile_on(cpu, build, user, n_inputs, dtypes, n_outputs),
                   compile_on(cuda, build, user, n_inputs, dtypes, n_outputs) };
}

void destroy_both(both *b)
{
    ol_composite_destroy(b->on_cpu);
    ol_composite_destroy(b->on_cuda);
}
