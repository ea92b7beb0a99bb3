/* The gated-delta kernels of one SIMD level. Included by delta_<level>.c, which defines DELTA_TABLE and is compiled with that level's
 * flags. delta_rows.h has blocks of rows that are contiguous ([V, K]), delta_columns.h those that lie beside each other ([K, V]).
 *
 * What is known at compile time where these are expanded, the dtype of a state and the kind of a decay, comes as constant
 * arguments to functions that are always inlined. */
#include "delta_kernels.h"
#include "delta_vector.h"

/* Floats from a state, or to it; NaN is left to the caller where they are narrowed. */
D_INLINE d_float state_load(const void *p, ol_dtype dtype) {
    return dtype == OL_FLOAT32 ? d_load(p) : dtype == OL_BFLOAT16 ? d_widen_bf16(p) : d_widen_f16(p);
}

D_INLINE void state_store(void *p, d_float x, ol_dtype dtype) {
    if (dtype == OL_FLOAT32)
        d_store(p, x);
    else if (dtype == OL_BFLOAT16)
        d_narrow_bf16(p, x);
    else
        d_narrow_f16(p, x);
}

D_INLINE int state_size(ol_dtype dtype) { return dtype == OL_FLOAT32 ? 4 : 2; }

/* The same of fewer lanes; what is read beyond them is 0. */
D_INLINE d_float state_load_part(const void *p, int n, ol_dtype dtype) {
    char part[4 * D_LANES] = { 0 };
    memcpy(part, p, (size_t)(n * state_size(dtype)));
    return state_load(part, dtype);
}

D_INLINE void state_store_part(void *p, d_float x, int n, ol_dtype dtype) {
    char part[4 * D_LANES];
    state_store(part, x, dtype);
    memcpy(p, part, (size_t)(n * state_size(dtype)));
}

/* n <= D_LANES floats to a state, NaN made canonical. */
D_INLINE void state_store_careful(void *p, d_float x, int n, ol_dtype dtype) {
    d_bits nan = (d_bits)(x != x);
    uint32_t is_nan[D_LANES];
    uint16_t half = dtype == OL_BFLOAT16 ? NUM_NAN_BITS_BF16 : NUM_NAN_BITS_F16;
    if (dtype == OL_FLOAT32)
        x = (d_float)((nan & NUM_NAN_BITS_F32) | (~nan & (d_bits)x));
    if (n == D_LANES)
        state_store(p, x, dtype);
    else
        state_store_part(p, x, n, dtype);
    memcpy(is_nan, &nan, sizeof nan);
    for (int i = 0; dtype != OL_FLOAT32 && i < n; i++)
        if (is_nan[i]) memcpy((char *)p + 2 * i, &half, sizeof half);
}

/* u of each row. Lanes beyond the rows are computed too; nobody looks at them. */
D_INLINE void updates(const delta_token *t, int n_lanes) {
    _Pragma("omp simd") for (int v = 0; v < n_lanes; v++) t->update[v] = num_delta_update(t->beta, t->value[v], t->output[v]);
}

#include "delta_columns.h"
#include "delta_rows.h"

/* ---- k^ and q^ ---------------------------------------------------------------------------------------------------------- */

static float dot_with_itself(const float *x, int padded) {
    d_float s[D_ROWS][D_PARTS] = { { d_set(0) } };
    float sums[4];
    for (int r = 0; r < D_ROWS; r++)
        for (int p = 0; p < D_PARTS; p++) s[r][p] = d_set(0);
    for (int k = 0; k < padded; k += DELTA_SUMS)
        for (int p = 0; p < D_PARTS; p++) {
            d_float y = d_load(x + k + p * D_LANES);
            s[0][p] = d_fma(y, y, s[0][p]);
        }
    d_fold(sums, s);
    return sums[0];
}

static void normalize(float *key, float *query, int key_dim, int padded, const delta_norm *norm) {
    float kr = 1, qr = 1;
    if (norm->kind != OL_DELTA_NORM_NONE) {
        kr = num_delta_norm_factor(norm->kind, dot_with_itself(key, padded), (float)key_dim, norm->root, norm->epsilon);
        qr = num_delta_norm_factor(norm->kind, dot_with_itself(query, padded), (float)key_dim, norm->root, norm->epsilon);
    }
    /* Not beyond key_dim, where zeros stay zeros whatever r is. */
    _Pragma("omp simd") for (int i = 0; i < key_dim; i++) {
        key[i] = key[i] * kr;
        query[i] = (query[i] * qr) * norm->scale;
    }
}

/* ---- Of a mixer step ---------------------------------------------------------------------------------------------------- */

static void scale(float *x, float factor, int n) {
    for (int i = 0; i < n; i += D_LANES) d_store(x + i, d_load(x + i) * d_set(factor));
}

static void convolve(float *sum, const float *const *inputs, const float *const *weights, int width, int n) {
    for (int i = 0; i < n; i += D_LANES) {
        d_float s = d_load(sum + i);
        for (int w = 0; w < width; w++) s = d_fma(d_load(inputs[w] + i), d_load(weights[w] + i), s);
        d_store(sum + i, s);
    }
}

const delta_kernels DELTA_TABLE = {
    .squares = dot_with_itself,
    .scale = scale,
    .convolve = convolve,
    .normalize = normalize,
    .token = { [OL_DELTA_VALUE_KEY] = rows_token, [OL_DELTA_KEY_VALUE] = columns_token },
    .load = { [OL_DELTA_VALUE_KEY] = rows_load, [OL_DELTA_KEY_VALUE] = columns_load },
    .store = { [OL_DELTA_VALUE_KEY] = rows_store, [OL_DELTA_KEY_VALUE] = columns_store },
};
