/* Blocks of contiguous rows, [V, K]: a row's 32 sums are lanes of D_PARTS vectors, and D_ROWS rows go side by side, so that k^ and q^ are loaded
 * once for them.
 *
 * First all rows are read: decayed, put into the block, their dot products with k^ taken. Then all are written: updated, put where
 * they go, their dot products with q^ taken. The sums of one group of rows fold while the next group is read.
 *
 * The last key_dim mod 32 columns: in the block they are continued with zeros, and stay so whatever the decay or the update is. */
#ifndef OL_DELTA_ROWS_H
#define OL_DELTA_ROWS_H

/* The lanes of part p that are columns, of the last 32 of which n are. */
D_INLINE d_bits rows_mask(int n, int p) {
    uint32_t mask[D_LANES];
    d_bits bits;
    for (int i = 0; i < D_LANES; i++) mask[i] = p * D_LANES + i < n ? 0xffffffffu : 0;
    memcpy(&bits, mask, sizeof bits);
    return bits;
}

D_INLINE int rows_lanes(int n, int p) {
    int lanes = n - p * D_LANES;
    return lanes < 0 ? 0 : lanes > D_LANES ? D_LANES : lanes;
}

/* A group of rows and what they meet, in variables of their own: stores to a block might change a delta_token's fields, for all that
 * the compiler knows, which it would then load again and again. */
typedef struct rows_group {
    const float *key, *query, *decay;
    const char *from[D_ROWS];          /* in memory */
    float *at[D_ROWS];                 /* in the block */
    char *to[D_ROWS];
    d_float factor[D_ROWS];            /* the decay of all columns (its first element), or u of each row */
    d_float s[D_ROWS][D_PARTS];
} rows_group;

/* 32 columns from k on, n of them real, of `rows` rows. */
D_INLINE void rows_read_32(rows_group *g, int k, int n, int rows, int in_block, ol_dtype dtype, int per_channel) {
    for (int p = 0; p < D_PARTS; p++) {
        int column = k + p * D_LANES;
        d_float key = d_load(g->key + column), decay = per_channel ? d_load(g->decay + column) : g->factor[0];
        for (int r = 0; r < rows; r++) {
            const char *from = g->from[r] + column * state_size(dtype);
            d_float x = in_block ? d_load(g->at[r] + column) : n == DELTA_SUMS ? state_load(from, dtype) : state_load_part(from, rows_lanes(n, p), dtype);
            x = x * decay;
            if (n < DELTA_SUMS) x = d_keep(rows_mask(n, p), x);
            d_store(g->at[r] + column, x);
            g->s[r][p] = d_fma(x, key, g->s[r][p]);
        }
    }
}

D_INLINE void rows_write_32(rows_group *g, int k, int n, int rows, int in_block, ol_dtype dtype) {
    for (int p = 0; p < D_PARTS; p++) {
        int column = k + p * D_LANES;
        d_float key = d_load(g->key + column), query = d_load(g->query + column);
        for (int r = 0; r < rows; r++) {
            char *to = g->to[r] + column * state_size(dtype);
            d_float x = d_fma(g->factor[r], key, d_load(g->at[r] + column));
            if (n < DELTA_SUMS) x = d_keep(rows_mask(n, p), x);
            if (in_block)
                d_store(g->at[r] + column, x);
            else if (n == DELTA_SUMS)
                state_store(to, x, dtype);
            else
                state_store_part(to, x, rows_lanes(n, p), dtype);
            g->s[r][p] = d_fma(x, query, g->s[r][p]);
        }
    }
}

/* Field by field: a struct that is set or copied as a whole is kept in memory. */
D_INLINE void rows_begin(rows_group *g, const delta_block *b, const delta_token *t, int row, int rows, int reads) {
    g->key = t->key;
    g->query = t->query;
    g->decay = t->decay;
    for (int r = 0; r < D_ROWS; r++) {
        int any = row + (r < rows ? r : 0);
        g->from[r] = t->from.data + any * t->from.stride;
        g->at[r] = b->memory + any * b->padded;
        g->to[r] = t->to.data + any * t->to.stride;
        g->factor[r] = d_set(reads ? t->decay[0] : t->update[any]);
        for (int p = 0; p < D_PARTS; p++) g->s[r][p] = d_set(0);
    }
}

D_INLINE void rows_end(const delta_token *t, rows_group *g, int row, int rows) {
    float sums[D_ROWS];
    d_fold(sums, g->s);
    memcpy(t->output + row, sums, (size_t)rows * sizeof *sums);
}

D_INLINE void rows_read(const delta_block *b, const delta_token *t, int row, int rows, int in_block, ol_dtype dtype, int per_channel) {
    int whole = b->key_dim & ~(DELTA_SUMS - 1), rest = b->key_dim - whole;
    rows_group g;
    rows_begin(&g, b, t, row, rows, 1);
    for (int k = 0; k < whole; k += DELTA_SUMS) rows_read_32(&g, k, DELTA_SUMS, rows, in_block, dtype, per_channel);
    if (rest) rows_read_32(&g, whole, rest, rows, in_block, dtype, per_channel);
    rows_end(t, &g, row, rows);
}

D_INLINE void rows_write(const delta_block *b, const delta_token *t, int row, int rows, int in_block, ol_dtype dtype) {
    int whole = b->key_dim & ~(DELTA_SUMS - 1), rest = b->key_dim - whole;
    rows_group g;
    rows_begin(&g, b, t, row, rows, 0);
    for (int k = 0; k < whole; k += DELTA_SUMS) rows_write_32(&g, k, DELTA_SUMS, rows, in_block, dtype);
    if (rest) rows_write_32(&g, whole, rest, rows, in_block, dtype);
    rows_end(t, &g, row, rows);
}

D_INLINE void rows_read_all(const delta_block *b, const delta_token *t, int in_block, ol_dtype dtype, int per_channel) {
    int row = 0;
    for (; row + D_ROWS <= b->n_rows; row += D_ROWS) rows_read(b, t, row, D_ROWS, in_block, dtype, per_channel);
    for (; row < b->n_rows; row++) rows_read(b, t, row, 1, in_block, dtype, per_channel);
}

D_INLINE void rows_write_all(const delta_block *b, const delta_token *t, int in_block, ol_dtype dtype) {
    int row = 0;
    for (; row + D_ROWS <= b->n_rows; row += D_ROWS) rows_write(b, t, row, D_ROWS, in_block, dtype);
    for (; row < b->n_rows; row++) rows_write(b, t, row, 1, in_block, dtype);
}

static void rows_load(const delta_block *b, delta_place from) {
    for (int row = 0; row < b->n_rows; row++) {
        const char *p = from.data ? from.data + row * from.stride : NULL;
        float *to = b->memory + row * b->padded;
        for (int k = 0; k < b->padded; k += D_LANES) {
            int n = rows_lanes(b->key_dim - k, 0);
            d_store(to + k, n == 0 || !p ? d_set(0) : state_load_part(p + k * state_size(b->dtype), n, b->dtype));
        }
    }
}

static void rows_store_row(const delta_block *b, char *to, int row) {
    const float *from = b->memory + row * b->padded;
    for (int k = 0; k < b->key_dim; k += D_LANES)
        state_store_careful(to + k * state_size(b->dtype), d_load(from + k), rows_lanes(b->key_dim - k, 0), b->dtype);
}

static void rows_store(const delta_block *b, delta_place to) {
    for (int row = 0; row < b->n_rows; row++) rows_store_row(b, to.data + row * to.stride, row);
}

/* A row with a NaN in it has a NaN output, whatever q^ is. Such rows, and rare others, are computed again in the block, which still has
 * them decayed, and stored with care. */
static void rows_store_nan(const delta_block *b, const delta_token *t) {
    for (int row = 0; row < b->n_rows; row++)
        if (t->output[row] != t->output[row]) {
            float *at = b->memory + row * b->padded;
            for (int k = 0; k < b->padded; k += D_LANES) d_store(at + k, d_fma(d_set(t->update[row]), d_load(t->key + k), d_load(at + k)));
            rows_store_row(b, t->to.data + row * t->to.stride, row);
        }
}

static void rows_token(const delta_block *b, const delta_token *t) {
    int in_block = !t->from.data, any_nan = 0;
#define READ(in_block_, dtype_)                                                                                               \
    do {                                                                                                                      \
        if (b->per_channel)                                                                                                   \
            rows_read_all(b, t, in_block_, dtype_, 1);                                                                        \
        else                                                                                                                  \
            rows_read_all(b, t, in_block_, dtype_, 0);                                                                        \
    } while (0)
    if (in_block)
        READ(1, OL_FLOAT32);
    else if (b->dtype == OL_FLOAT32)
        READ(0, OL_FLOAT32);
    else if (b->dtype == OL_BFLOAT16)
        READ(0, OL_BFLOAT16);
    else
        READ(0, OL_FLOAT16);
#undef READ
    updates(t, b->n_lanes);
    if (!t->to.data) {
        rows_write_all(b, t, 1, OL_FLOAT32);
        return;
    }
    if (b->dtype == OL_FLOAT32)
        rows_write_all(b, t, 0, OL_FLOAT32);
    else if (b->dtype == OL_BFLOAT16)
        rows_write_all(b, t, 0, OL_BFLOAT16);
    else
        rows_write_all(b, t, 0, OL_FLOAT16);
    for (int row = 0; row < b->n_rows; row++) any_nan |= t->output[row] != t->output[row];
    if (any_nan) rows_store_nan(b, t);
}

#endif
