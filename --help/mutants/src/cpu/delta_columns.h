/* Blocks of rows that lie beside each other, [K, V]: a lane is a row, so no sum crosses lanes. The 32 sums of the order are taken one after
 * the other, each over the columns that it has, and added as soon as its neighbour is there, so that few are alive at once.
 *
 * DELTA_LANES rows are worked on at a time, in D_WIDE vectors. */
#ifndef OL_DELTA_COLUMNS_H
#define OL_DELTA_COLUMNS_H

enum { D_WIDE = DELTA_LANES / D_LANES };       /* a block is a multiple of DELTA_LANES lanes */

typedef struct columns_sum {
    d_float lanes[D_WIDE];
} columns_sum;

D_INLINE columns_sum columns_add(columns_sum x, columns_sum y) {
    for (int w = 0; w < D_WIDE; w++) x.lanes[w] = x.lanes[w] + y.lanes[w];
    return x;
}

/* Over lanes [lane, lane + DELTA_LANES), n of them rows; addresses are of the first one. What is the same for a kind of state and
 * decay is constant where this is expanded; all of it is in variables of its own, since the compiler could not tell that a store to a block leaves a
 * delta_token alone. */
typedef struct columns_walk {
    int reads;                         /* else writes */
    int in_block, per_channel, whole;  /* whole: n is DELTA_LANES */
    ol_dtype dtype;
    const float *key, *query, *decay;
    d_float factor[D_WIDE];            /* the decay of all columns, or u */
    const char *from;
    char *to;
    float *at;
    int64_t from_stride, to_stride;
    int n, n_lanes, key_dim;
} columns_walk;

D_INLINE d_float columns_get(const columns_walk *c, int k, int w) {
    const char *from = c->from + k * c->from_stride + w * D_LANES * state_size(c->dtype);
    int n = c->n - w * D_LANES;
    return c->whole || n >= D_LANES ? state_load(from, c->dtype) : n > 0 ? state_load_part(from, n, c->dtype) : d_set(0);
}

D_INLINE void columns_put(const columns_walk *c, int k, int w, d_float x) {
    char *to = c->to + k * c->to_stride + w * D_LANES * state_size(c->dtype);
    int n = c->n - w * D_LANES;
    if (c->whole || n >= D_LANES)
        state_store(to, x, c->dtype);
    else if (n > 0)
        state_store_part(to, x, n, c->dtype);
}

/* Sum p of the 32, and what is done to its columns on the way. */
D_INLINE columns_sum columns_part(const columns_walk *c, int p) {
    columns_sum s;
    for (int w = 0; w < D_WIDE; w++) s.lanes[w] = d_set(0);
    for (int k = p; k < c->key_dim; k += DELTA_SUMS) {
        float *at = c->at + k * c->n_lanes;
        d_float key = d_set(c->key[k]);
        for (int w = 0; w < D_WIDE; w++) {
            d_float x;
            if (c->reads) {
                x = (c->in_block ? d_load(at + w * D_LANES) : columns_get(c, k, w)) * (c->per_channel ? d_set(c->decay[k]) : c->factor[0]);
                d_store(at + w * D_LANES, x);
                s.lanes[w] = d_fma(x, key, s.lanes[w]);
            } else {
                x = d_fma(c->factor[w], key, d_load(at + w * D_LANES));
                if (c->in_block)
                    d_store(at + w * D_LANES, x);
                else
                    columns_put(c, k, w, x);
                s.lanes[w] = d_fma(x, d_set(c->query[k]), s.lanes[w]);
            }
        }
    }
    /* A column of zeros beyond the last one: it makes +0 of a sum that is -0. */
    if (p >= c->key_dim % DELTA_SUMS && c->key_dim % DELTA_SUMS)
        for (int w = 0; w < D_WIDE; w++) s.lanes[w] = s.lanes[w] + d_set(0);
    return s;
}

D_INLINE columns_sum columns_4(const columns_walk *c, int p) {
    columns_sum low = columns_part(c, p), next = columns_part(c, p + 1);
    low = columns_add(low, next);
    columns_sum high = columns_part(c, p + 2);
    next = columns_part(c, p + 3);
    return columns_add(low, columns_add(high, next));
}

D_INLINE void columns_run(const delta_block *b, const delta_token *t, int lane, int reads, int in_block, int whole, ol_dtype dtype, int per_channel) {
    columns_walk c = { .reads = reads, .in_block = in_block, .per_channel = per_channel, .whole = whole, .dtype = dtype, .key = t->key, .query = t->query,
                       .decay = t->decay, .from = t->from.data + lane * state_size(dtype), .to = t->to.data + lane * state_size(dtype), .at = b->memory + lane,
                       .from_stride = t->from.stride, .to_stride = t->to.stride, .n = b->n_rows - lane, .n_lanes = b->n_lanes, .key_dim = b->key_dim };
    columns_sum eighth[8];
    for (int w = 0; w < D_WIDE; w++) c.factor[w] = reads ? d_set(t->decay[0]) : d_load(t->update + lane + w * D_LANES);
    for (int i = 0; i < 8; i++) eighth[i] = columns_4(&c, 4 * i);
    for (int m = 4; m > 0; m /= 2)
        for (int i = 0; i < m; i++) eighth[i] = columns_add(eighth[2 * i], eighth[2 * i + 1]);
    for (int w = 0; w < D_WIDE; w++) d_store(t->output + lane + w * D_LANES, eighth[0].lanes[w]);
}

D_INLINE void columns_all(const delta_block *b, const delta_token *t, int reads, int in_block, ol_dtype dtype, int per_channel) {
    int lane = 0;
    for (; lane + DELTA_LANES <= b->n_rows; lane += DELTA_LANES) columns_run(b, t, lane, reads, in_block, 1, dtype, per_channel);
    if (lane < b->n_rows) columns_run(b, t, lane, reads, in_block, in_block, dtype, per_channel);
}

D_INLINE void columns_read_all(const delta_block *b, const delta_token *t, int in_block, ol_dtype dtype, int per_channel) {
    columns_all(b, t, 1, in_block, dtype, per_channel);
}

D_INLINE void columns_write_all(const delta_block *b, const delta_token *t, int in_block, ol_dtype dtype) {
    columns_all(b, t, 0, in_block, dtype, 0);
}

static void columns_load(const delta_block *b, delta_place from) {
    for (int k = 0; k < b->key_dim; k++) {
        const char *p = from.data ? from.data + k * from.stride : NULL;
        float *to = b->memory + k * b->n_lanes;
        for (int v = 0; v < b->n_lanes; v += D_LANES) {
            int n = b->n_rows - v < D_LANES ? b->n_rows - v : D_LANES;
            d_store(to + v, n <= 0 || !p ? d_set(0) : state_load_part(p + v * state_size(b->dtype), n, b->dtype));
        }
    }
}

static void columns_store_vector(const delta_block *b, delta_place to, int k, int v, d_float x) {
    int n = b->n_rows - v < D_LANES ? b->n_rows - v : D_LANES;
    state_store_careful(to.data + k * to.stride + v * state_size(b->dtype), x, n, b->dtype);
}

static void columns_store(const delta_block *b, delta_place to) {
    for (int k = 0; k < b->key_dim; k++)
        for (int v = 0; v < b->n_rows; v += D_LANES) columns_store_vector(b, to, k, v, d_load(b->memory + k * b->n_lanes + v));
}

/* A row with a NaN in it has a NaN output, whatever q^ is. All rows are computed again from the block, which still has them decayed, and
 * stored with care. */
static void columns_store_nan(const delta_block *b, const delta_token *t) {
    for (int k = 0; k < b->key_dim; k++)
        for (int v = 0; v < b->n_rows; v += D_LANES)
            columns_store_vector(b, t->to, k, v, d_fma(d_load(t->update + v), d_set(t->key[k]), d_load(b->memory + k * b->n_lanes + v)));
}

static void columns_token(const delta_block *b, const delta_token *t) {
    int in_block = !t->from.data, any_nan = 0;
#define READ(in_block_, dtype_)                                                                                               \
    do {                                                                                                                      \
        if (b->per_channel)                                                                                                   \
            columns_read_all(b, t, in_block_, dtype_, 1);                                                                     \
        else                                                                                                                  \
            columns_read_all(b, t, in_block_, dtype_, 0);                                                                     \
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
        columns_write_all(b, t, 1, OL_FLOAT32);
        return;
    }
    if (b->dtype == OL_FLOAT32)
        columns_write_all(b, t, 0, OL_FLOAT32);
    else if (b->dtype == OL_BFLOAT16)
        columns_write_all(b, t, 0, OL_BFLOAT16);
    else
        columns_write_all(b, t, 0, OL_FLOAT16);
    for (int v = 0; v < b->n_rows; v++) any_nan |= t->output[v] != t->output[v];
    if (any_nan) columns_store_nan(b, t);
}

#endif
