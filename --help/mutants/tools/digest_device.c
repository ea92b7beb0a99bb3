/* See digest_device.h.
 *
 * A batch is up to 16 chunks. Its inputs are the indices themselves or halves of them, so a composite makes them from a tensor of
 * 0, stride, 2 stride, ... and the batch's first index; only the sample of float32 pairs is made by the host. Two buffers take
 * turns: while a batch is computed and copied to one, a thread hashes the other, which is what takes longest. */
#include "digest_device.h"

#include "device_memory.h"
#include "digest.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH (16 * DIGEST_CHUNK)
enum { N_SLOTS = 2 };

/* A buffer of results, and the thread that hashes it. */
typedef struct slot {
    ol_tensor results;                 /* in the host's memory */
    uint32_t first;                    /* the batch's first index, which is copied to the device */
    size_t n_bytes, chunk_bytes;
    uint64_t *chunks;                  /* where the digests go */
    pthread_t hasher;
    bool is_hashing;
} slot;

typedef struct batches {
    const digest_work *work;
    int32_t arity;
    ol_dtype dtype, result_dtype;
    int64_t length;                    /* of the longest batch */
    ol_composite *maker;               /* of inputs; NULL where the host makes them */
    ol_tensor host_offsets, offsets, first;
    ol_tensor host_inputs[2], inputs[2], results;        /* host_inputs: data only where the host makes them */
    slot slots[N_SLOTS];
} batches;

/* ---- Inputs ---------------------------------------------------------------------------------------------------------------- */

/* Of offsets and a first index, both uint32: the patterns of x and, where there are two operands, of y. */
static int build_inputs(ol_graph *g, const ol_value *in, ol_value *out, void *user) {
    const batches *b = user;
    ol_value index = ol_add(g, in[0], in[1]);
    if (b->arity == 2) {
        out[0] = ol_astype(g, ol_right_shift(g, index, ol_constant(g, OL_UINT32, 16)), OL_UINT16);
        out[1] = ol_astype(g, ol_bitwise_and(g, index, ol_constant(g, OL_UINT32, 65535)), OL_UINT16);
    } else {
        out[0] = ol_dtype_size(b->dtype) == 2 ? ol_astype(g, index, OL_UINT16) : index;
    }
    return 0;
}

/* The memory of an input as integers of its size, to write patterns into. */
static ol_tensor as_patterns(const ol_tensor *input) {
    ol_tensor patterns = *input;
    patterns.dtype = ol_dtype_size(input->dtype) == 2 ? OL_UINT16 : OL_UINT32;
    return patterns;
}

static ol_status make_inputs(batches *b, slot *s, uint64_t first, int64_t n, ol_tensor *inputs, ol_error *error) {
    ol_device *device = b->work->device;
    for (int32_t i = 0; i < b->arity; i++) {
        inputs[i] = ol_tensor_contiguous(b->inputs[i].data, b->dtype, 1, &n);
    }
    if (!b->maker) {
        digest_fill(b->arity, ol_dtype_size(b->dtype), first * b->work->stride, b->work->stride, (size_t)n, b->host_inputs[0].data,
                    b->host_inputs[1].data);
        ol_status status = OL_OK;
        for (int32_t i = 0; status == OL_OK && i < b->arity; i++) {
            ol_tensor host = ol_tensor_contiguous(b->host_inputs[i].data, b->dtype, 1, &n);
            status = mirror_up(device, &host, &inputs[i], error);
        }
        return status;
    }
    s->first = (uint32_t)(first * b->work->stride);
    const ol_tensor in[2] = { ol_tensor_contiguous(b->offsets.data, OL_UINT32, 1, &n), b->first };
    const ol_tensor out[2] = { as_patterns(&inputs[0]), as_patterns(&inputs[b->arity - 1]) };
    ol_status status = ol_device_copy(device, NULL, b->first.data, &s->first, sizeof s->first, error);
    return status == OL_OK ? ol_replay(b->maker, NULL, in, out, error) : status;
}

/* ---- Hashing --------------------------------------------------------------------------------------------------------------- */

static void *hash(void *argument) {
    slot *s = argument;
    const unsigned char *bytes = s->results.data;
    uint64_t *chunk = s->chunks;
    for (size_t at = 0; at < s->n_bytes; at += s->chunk_bytes) {
        size_t left = s->n_bytes - at;
        *chunk++ = digest_chunk(bytes + at, left < s->chunk_bytes ? left : s->chunk_bytes);
    }
    return NULL;
}

static void finish_hash(slot *s) {
    if (s->is_hashing) {
        pthread_join(s->hasher, NULL);
        s->is_hashing = false;
    }
}

static void start_hash(slot *s) {
    s->is_hashing = pthread_create(&s->hasher, NULL, hash, s) == 0;
    if (!s->is_hashing) {
        hash(s);
    }
}

/* ---- Batches --------------------------------------------------------------------------------------------------------------- */

static ol_status no_memory(ol_error *error) {
    if (error) {
        *error = (ol_error){ .status = OL_ERROR_MEMORY, .operation = "digest", .description = "no memory of the host for a batch" };
    }
    return OL_ERROR_MEMORY;
}

/* A tensor of a batch in the host's memory. */
static bool host_tensor(const batches *b, ol_dtype dtype, ol_tensor *tensor) {
    *tensor = ol_tensor_contiguous(malloc((size_t)b->length * ol_dtype_size(dtype)), dtype, 1, &b->length);
    return tensor->data != NULL;
}

static ol_status prepare_maker(batches *b, ol_error *error) {
    const ol_builder builder = { .build = build_inputs, .user = b, .n_inputs = 2, .n_outputs = b->arity, .name = "digest_inputs" };
    ol_tensor scalar = { .dtype = OL_UINT32 };
    if (!host_tensor(b, OL_UINT32, &b->host_offsets)) {
        return no_memory(error);
    }
    digest_fill(1, sizeof(uint32_t), 0, b->work->stride, (size_t)b->length, b->host_offsets.data, NULL);
    ol_status status = ol_compile(b->work->device, &builder, (ol_dtype[]){ OL_UINT32, OL_UINT32 }, &b->maker, error);
    if (status == OL_OK) {
        status = mirror_make(b->work->device, &b->host_offsets, &b->offsets, error);
    }
    if (status == OL_OK) {
        status = mirror_up(b->work->device, &b->host_offsets, &b->offsets, error);
    }
    return status == OL_OK ? mirror_make(b->work->device, &scalar, &b->first, error) : status;
}

static ol_status prepare(batches *b, ol_error *error) {
    bool host_makes = b->arity == 2 && ol_dtype_size(b->dtype) == 4;
    for (int i = 0; i < N_SLOTS; i++) {
        b->slots[i].chunk_bytes = DIGEST_CHUNK * ol_dtype_size(b->result_dtype);
        if (!host_tensor(b, b->result_dtype, &b->slots[i].results)) {
            return no_memory(error);
        }
    }
    ol_status status = mirror_make(b->work->device, &b->slots[0].results, &b->results, error);
    for (int32_t i = 0; status == OL_OK && i < b->arity; i++) {
        b->host_inputs[i] = ol_tensor_contiguous(NULL, b->dtype, 1, &b->length);
        if (host_makes && !host_tensor(b, b->dtype, &b->host_inputs[i])) {
            return no_memory(error);
        }
        status = mirror_make(b->work->device, &b->host_inputs[i], &b->inputs[i], error);
    }
    return status == OL_OK && !host_makes ? prepare_maker(b, error) : status;
}

static void release(batches *b) {
    ol_device *device = b->work->device;
    for (int i = 0; i < N_SLOTS; i++) {
        finish_hash(&b->slots[i]);
        free(b->slots[i].results.data);
    }
    mirror_free(device, &b->results);
    mirrors_free(device, 2, b->inputs);
    mirror_free(device, &b->offsets);
    mirror_free(device, &b->first);
    ol_composite_destroy(b->maker);
    free(b->host_inputs[0].data);
    free(b->host_inputs[1].data);
    free(b->host_offsets.data);
}

/* Inputs first .. first + n, counted before the stride. */
static ol_status run_batch(batches *b, slot *s, uint64_t first, int64_t n, ol_error *error) {
    ol_tensor inputs[2];
    const ol_tensor result = ol_tensor_contiguous(b->results.data, b->result_dtype, 1, &n);
    finish_hash(s);
    ol_status status = make_inputs(b, s, first, n, inputs, error);
    if (status == OL_OK) {
        status = ol_replay(b->work->composite, NULL, inputs, &result, error);
    }
    ol_tensor host = ol_tensor_contiguous(s->results.data, b->result_dtype, 1, &n);
    if (status == OL_OK) {
        status = mirror_down(b->work->device, &host, &result, error);
    }
    if (status == OL_OK) {
        s->n_bytes = tensor_bytes(&host);
        s->chunks = b->work->chunks + first / DIGEST_CHUNK;
        start_hash(s);
    }
    return status;
}

ol_status digest_on_device(const digest_work *work, ol_error *error) {
    batches b = {
        .work = work,
        .arity = ol_composite_input_count(work->composite),
        .dtype = ol_composite_input_dtype(work->composite, 0),
        .result_dtype = ol_composite_output_dtype(work->composite, 0),
        .length = (int64_t)(work->n < BATCH ? work->n : BATCH),
    };
    ol_status status = prepare(&b, error);
    int turn = 0;
    for (uint64_t first = 0; status == OL_OK && first < work->n; first += BATCH, turn = (turn + 1) % N_SLOTS) {
        int64_t n = (int64_t)(work->n - first < BATCH ? work->n - first : BATCH);
        status = run_batch(&b, &b.slots[turn], first, n, error);
        work->progress(work->user, (int64_t)(((uint64_t)n + DIGEST_CHUNK - 1) / DIGEST_CHUNK));
    }
    release(&b);
    return status;
}
