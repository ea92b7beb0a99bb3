/* The mixer step's windows after its tokens.
 *
 * All blocks of a key head convolve its q and k, so all read their windows; one of them writes a channel, after a barrier of the cluster. What the
 * window has after a token is what its old columns had and inputs of the call, which are still where they were. Channel by channel, a thread
 * each, the slot that the window was read from comes last, and its columns in the order in which none is overwritten before it is read. */

/* The token of the call whose input column `column` holds after n_tokens of them. Below 0: an input before the call, or what a ring's column has held. */
template <class O> KERNEL_FN int32_t mixer_token_in(const mixer_words &w, const mixer_window &x, int32_t n_tokens, int32_t column) {
    if (!O::RING) return n_tokens - w.n_columns + column;
    return n_tokens - 1 - (int32_t)(((uint32_t)(x.phase + w.n_columns - 1 - column) + (uint32_t)n_tokens) % (uint32_t)w.n_columns);
}

/* A channel's columns after n_tokens tokens, to `to`. */
template <class O, class L>
KERNEL_FN void mixer_put_columns(char *to, const mixer_view &view, const mixer_words &w, const mixer_channel<O> &c, const mixer_window &x, int64_t first,
                                 int32_t n_tokens, bool in_place) {
    typedef typename O::activation::bits input;
    typedef typename O::window::bits bits;
    enum { AT_ONCE = 4 };
    const mixer_view &of = w.parts[c.part].window;
    const char *old = c.in(of) + x.from * of.outer;
    const bool backwards = n_tokens < x.dropped;             /* columns move up, not down */
    _Pragma("unroll 1") for (int32_t start = 0; start < w.n_columns; start += AT_ONCE) {
        float values[AT_ONCE] = {};
        int32_t columns[AT_ONCE];                            /* -1: none, or it stays what it is */
        KERNEL_UNROLL for (int i = 0; i < AT_ONCE; i++) {
            const int32_t column = backwards ? w.n_columns - 1 - start - i : start + i;
            columns[i] = start + i < w.n_columns ? column : -1;
            if (columns[i] < 0) continue;
            const int32_t token = mixer_token_in<O>(w, x, n_tokens, column);
            if (token >= 0) {
                values[i] = O::activation::widen(step_get<input, L::WIDE>(c.input(w.step, first + token)));
            } else if (O::RING && in_place) {
                columns[i] = -1;
            } else {
                const int32_t from = O::RING ? (x.from < 0 ? -1 : column) : mixer_old_column<O>(w, x, token);
                if (from >= 0) values[i] = O::window::widen(step_get<bits, L::WIDE>(old + from * of.column));
            }
        }
        KERNEL_UNROLL for (int i = 0; i < AT_ONCE; i++)
            if (columns[i] >= 0) step_put<bits, L::WIDE>(to + columns[i] * view.column, O::window::narrow(values[i]));
    }
}

/* Where windows go: the pool's slot, or sequence and token of the intermediate ones. */
struct mixer_target {
    int64_t outer, token;
    bool is_between, in_place;
};

/* Of the block's rows of v, and where `keys` of the q and k that are its share of the cluster's. */
template <class O, class L>
KERNEL_FN void mixer_put_window(const mixer_target &to, const mixer_words &w, const step_block<O> &b, const step_place<O, L> &p, const mixer_window &x,
                                int64_t first, int32_t n_tokens, bool keys) {
    const uint32_t rows = mixer_rows<O, L>(p), n_units = 2 * L::CHUNKS + (rows + 31) / 32, rank = blockIdx.x % w.n_blocks;
    _Pragma("unroll 1") for (uint32_t unit = keys ? p.warp : 2 * L::CHUNKS + p.warp; unit < n_units; unit += p.n_warps) {
        mixer_channel<O> c = mixer_channel_of<O, L>(b, p, unit);
        if (c.part != MIXER_VALUE) {
            if (unit % w.n_blocks != rank || c.number >= O::K) continue;
        } else {
            if (c.number >= rows) continue;
            c.number += mixer_first_row<O, L>(p);
            if (c.number >= O::V) continue;
        }
        const mixer_tensors &of = w.parts[c.part];
        const mixer_view &view = to.is_between ? of.intermediate : of.window;
        mixer_put_columns<O, L>((char *)c.in(view) + to.outer * view.outer + to.token * view.token, view, w, c, x, first, n_tokens, to.in_place);
    }
}

/* The slot that the window goes to after token t (-1 of a sequence without tokens); -1: none. */
template <class O, class L>
KERNEL_FN int64_t mixer_slot_after(const mixer_words &w, const step_block<O> &b, const mixer_window &x, int64_t t, int64_t run) {
    int64_t slot = x.slot;
    if (w.step.state_is_kept) return -1;
    if (w.write.n_columns > 0) {
        if (t < 0) return -1;
        if (t >= w.write.n_columns) {
            if (w.own_slots) step_skip<O>(w.step, b);        /* else the state's way has counted it */
            return -1;
        }
        slot = step_index<L::WIDE>(w.write, b.sequence, t);
    } else if (t != run - 1) {
        return -1;
    } else if (w.write.data) {
        slot = step_index<L::WIDE>(w.write, b.sequence, 0);
    }
    if ((w.write.data || w.read.data) && step_is_padding<O>(slot)) return -1;
    if (slot < 0 || slot >= w.n_slots) {
        if (w.own_slots || (slot >= 0 && slot < w.step.n_slots)) step_skip<O>(w.step, b);
        return -1;
    }
    return t < 0 && slot == x.from && x.dropped == 0 ? -1 : slot;
}

/* All windows of a sequence that are to be written, in the block's part of them. */
template <class O, class L>
KERNEL_FN void mixer_put_windows(const mixer_words &w, const step_block<O> &b, const step_place<O, L> &p, const mixer_window &x, int64_t first, int32_t run,
                                 bool keys) {
    const bool between = w.parts[0].intermediate.data != 0;
    int32_t last = -1;                                       /* tokens after which the window goes where it came from */
    _Pragma("unroll 1") for (int32_t t = run == 0 ? -1 : w.write.n_columns > 0 || between ? 0 : run - 1; t < run; t++) {
        const int64_t slot = mixer_slot_after<O, L>(w, b, x, t, run);
        mixer_target to[2] = { { slot, 0, false, false }, { b.sequence, t, true, false } };
        bool is_put[2] = { slot >= 0 && slot != x.from, between && t >= 0 && t < w.n_intermediate };
        if (slot >= 0 && slot == x.from) last = t + 1;
        if (between && t >= w.n_intermediate) step_skip<O>(w.step, b);
        for (int i = 0; i < 2; i++)
            if (is_put[i]) mixer_put_window<O, L>(to[i], w, b, p, x, first, t + 1, keys);
    }
    if (last >= 0) mixer_put_window<O, L>(mixer_target{ x.from, 0, false, true }, w, b, p, x, first, last, keys);
}
