/* Blocks of rows that lie beside each other, [K, V]: a lane is a row, so no sum crosses lanes. The 32 sums of the order are taken one after
 * the other, each over the columns that it has, and added as soon as its neighbour is there, so that few are alive at once.
 *
 * The block holds n_lanes rows, D_WIDE vectors of which are worked on at a time: their chains of sums hide each other's latency. */
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

/* What is expanded for one kind of state and decay: over lanes [lane, lane + DELTA_LANES), n of them rows. */
typedef struct columns_walk {
    const delta_block *b;
    const delta_token *t;
    int lane, n;
    int reads;                         /* else writes */
    int in_block, per_channel;
    ol_dtype dtype;
} columns_walk;

D_INLINE d_float columns_get(const columns_walk *c, int k, int w) {
    const char *from = c->t->from.data + k * c->t->from.stride + (c->lane + w * D_LANES) * state_size(c->dtype);
    int n = c->n - w * D_LANES;
    return n >= D_LANES ? state_load(from, c->dtype) : n > 0 ? state_load_part(from, n, c->dtype) : d_set(0);
}

D_INLINE void columns_put(const columns_walk *c, int k, int w, d_float x) {
    char *to = c->t->to.data + k * c->t->to.stride + (c->lane + w * D_LANES) * state_size(c->dtype);
    int n = c->n - w * D_LANES;
    if (n >= D_LANES)
        state_store(to, x, c->dtype);
    else if (n > 0)
        state_store_part(to, x, n, c->dtype);
}

/* Sum p of the 32, and what is done to its columns on the way. */
D_INLINE columns_sum columns_part(const columns_walk *c, int p) {
    const delta_token *t = c->t;
    int key_dim = c->b->key_dim, n_lanes = c->b->n_lanes;
    columns_sum s;
    for (int w = 0; w < D_WIDE; w++) s.lanes[w] = d_set(0);
    for (int k = p; k < key_dim; k += DELTA_SUMS) {
        float *at = c->b->memory + k * n_lanes + c->lane;
        d_float key = d_set(t->key[k]);
        for (int w = 0; w < D_WIDE; w++) {
            d_float x;
            if (c->reads) {
                x = (c->in_block ? d_load(at + w * D_LANES) : columns_get(c, k, w)) * d_set(t->decay[c->per_channel ? k : 0]);
                d_store(at + w * D_LANES, x);
                s.lanes[w] = d_fma(x, key, s.lanes[w]);
            } else {
                x = d_fma(d_load(t->update + c->lane + w * D_LANES), key, d_load(at + w * D_LANES));
                if (c->in_block)
                    d_store(at + w * D_LANES, x);
                else
                    columns_put(c, k, w, x);
                s.lanes[w] = d_fma(x, d_set(t->query[k]), s.lanes[w]);
            }
        }
    }
    /* A column of zeros beyond the last one: it makes +0 of a sum that is -0. */
    if (p >= key_dim % DELTA_SUMS && key_dim % DELTA_SUMS)
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

D_INLINE void columns_run(columns_walk c) {
    for (c.lane = 0; c.lane < c.b->n_lanes; c.lane += DELTA_LANES) {
        columns_sum eighth[8];
        c.n = c.b->n_rows - c.lane < DELTA_LANES ? c.b->n_rows - c.lane : DELTA_LANES;
        for (int i = 0; i < 8; i++) eighth[i] = columns_4(&c, 4 * i);
        for (int m = 4; m > 0; m /= 2)
            for (int i = 0; i < m; i++) eighth[i] = columns_add(eighth[2 * i], eighth[2 * i + 1]);
        for (int w = 0; w < D_WIDE; w++) d_store(c.t->output + c.lane + w * D_LANES, eighth[0].lanes[w]);
    }
}

D_INLINE void columns_read_all(const delta_block *b, const delta_token *t, int in_block, ol_dtype dtype, int per_channel) {
    columns_run((columns_walk){ .b = b, .t = t, .reads = 1, .in_block = in_block, .per_channel = per_channel, .dtype = dtype });
}

D_INLINE void columns_write_all(const delta_block *b, const delta_token *t, int in_block, ol_dtype dtype) {
    columns_run((columns_walk){ .b = b, .t = t, .in_block = in_block, .dtype = dtype });
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
