/* The kernels of the gated-delta step, of one SIMD level: delta_body.h over the vectors of delta_vector.h, built once per level.
 *
 * A *block* is some rows of a head's state (row v: all of its key_dim columns), in float32 in memory of the worker's own. All
 * tokens of a call pass over a block before the next block is begun, so that the state is read and written once. In a state of layout [K, V] a row
 * is a column of memory, and a block holds its rows as lanes beside each other: [key_dim][n_lanes].
 *
 * The host's floating-point state has been set aside. Pointers to states need not be aligned. */
#ifndef OL_DELTA_KERNELS_H
#define OL_DELTA_KERNELS_H

#include "onelaunch_gated_delta.h"

enum {
    DELTA_SUMS = 32,                   /* of a dot product, in the order of onelaunch_gated_delta.h */
    DELTA_BLOCK_FLOATS = 4096,         /* 16 KiB: half of a small first cache */
    DELTA_LANES = 16                   /* the rows of a block are a multiple of this, but for the last ones of a head */
};

typedef struct delta_block {
    float *memory;                     /* 64-byte aligned; [n_rows][padded], or [key_dim][n_lanes] */
    int n_rows, n_lanes;               /* n_lanes: n_rows rounded up to DELTA_LANES */
    int key_dim, padded;               /* padded: key_dim rounded up to DELTA_SUMS */
    int per_channel;                   /* whether each column has a decay of its own */
    ol_dtype dtype;                    /* of states in memory */
} delta_block;

/* A block's rows in a state: the address of its first one, and the stride in bytes of the outer axis of the layout. */
typedef struct delta_place {
    char *data;                        /* NULL: nowhere */
    int64_t stride;
} delta_place;

/* One token over a block. key and query are k^ and q^, `padded` elements, zeros from key_dim on; decay is one number or key_dim of them, of which
 * `padded` can be read; value, update (scratch) and output have n_lanes elements. The state comes from `from`, or is in the
 * block; it goes to `to`, or stays in the block. What lies in the block afterwards is the new state only in the second case. */
typedef struct delta_token {
    const float *key, *query, *decay, *value;
    float beta;
    float *update, *output;
    delta_place from, to;
} delta_token;

/* key and query, `padded` elements with zeros from key_dim on, become k^ and q^. */
typedef struct delta_norm {
    int kind;                          /* ol_delta_norm */
    float epsilon, scale, root;
} delta_norm;

typedef struct delta_kernels {
    void (*normalize)(float *key, float *query, int key_dim, int padded, const delta_norm *norm);
    /* By layout. */
    void (*token[2])(const delta_block *block, const delta_token *token);
    void (*load[2])(const delta_block *block, delta_place from);
    void (*store[2])(const delta_block *block, delta_place to);      /* one rounding, canonical NaN */
    /* What a mixer step has beside it. x are floats, 64-byte aligned and readable to a multiple of DELTA_LANES, of squares with zeros to one of
     * DELTA_SUMS; n is a number of channels. */
    float (*squares)(const float *x, int padded);                    /* dot(x, x) */
    void (*scale)(float *x, float factor, int n);
    /* sum[i] = fma(inputs[width - 1][i], weights[width - 1][i], ... fma(inputs[0][i], weights[0][i], sum[i])) */
    void (*convolve)(float *sum, const float *const *inputs, const float *const *weights, int width, int n);
} delta_kernels;

extern const delta_kernels kernels_delta_baseline;
#if defined(__x86_64__)
extern const delta_kernels kernels_delta_avx2;
extern const delta_kernels kernels_delta_avx512;
#elif defined(__aarch64__)
extern const delta_kernels kernels_delta_neon;
#endif

#endif
