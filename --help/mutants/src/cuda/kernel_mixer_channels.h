/* The mixer step's convolution: channels of q, k and v, a thread each, and the inputs that are before the call, in a window.
 *
 * What mixer_options add to a step's O (mixer_text.c): types taps, shift, window, z and gain, of the convolution's weights and bias, the windows,
 * the norm's gate and weight; WIDTH and so on. */

enum { MIXER_QUERY, MIXER_KEY, MIXER_VALUE };
enum mixer_gate { MIXER_SILU, MIXER_SIGMOID, MIXER_NONE };

/* silu(x), rounded once. */
KERNEL_FN float mixer_silu(float x) {
    float from[1] = { x }, to[1];
    kernel_silu_f32(to, from);
    return to[0];
}

/* To the activations' dtype and back. */
template <class O, bool ROUNDS> KERNEL_FN float mixer_round(float x) {
    if constexpr (!ROUNDS || sizeof(typename O::activation::bits) == 4) return x;
    else return O::activation::widen(O::activation::narrow(x));
}

/* ---- The window that a sequence starts from ---- */

struct mixer_window {
    int64_t slot;                                            /* the number in the read table */
    int64_t from;                                            /* the slot that it starts from; -1: zeros */
    int64_t before;                                          /* inputs before the call, in a ring; else columns that are left */
    int32_t phase, dropped;                                  /* the column of the call's first input, in a ring; columns that are taken back */
    bool is_right;
};

template <class O, class L> KERNEL_FN mixer_window mixer_window_of(const mixer_words &w, const step_block<O> &b, const step_span &s) {
    mixer_window x = { s.slot, -1, w.n_columns, 0, 0, true };
    if (w.own_slots) {
        int64_t column = 0;
        x.slot = b.sequence;
        if (w.by_accepted) {
            column = step_index<L::WIDE>(w.step.accepted, b.sequence, 0) - 1;
            x.is_right = column >= 0 && column < w.read.n_columns;
        }
        if (w.read.data && x.is_right) x.slot = step_index<L::WIDE>(w.read, b.sequence, column);
    }
    if (O::RING) {
        x.before = step_index<L::WIDE>(w.positions, b.sequence, 0);
        x.is_right = x.is_right && x.before >= 0 && x.before <= INT64_MAX - s.run;
        if (x.is_right) x.phase = (int32_t)((uint64_t)x.before % (uint32_t)w.n_columns);
    } else if (w.dropped.data) {
        const int64_t dropped = step_index<L::WIDE>(w.dropped, b.sequence, 0);
        x.is_right = x.is_right && dropped >= 0 && dropped <= w.n_columns - (O::WIDTH - 1);
        x.dropped = (int32_t)dropped;
        x.before = w.n_columns - dropped;
    }
    if (s.has_initial) {
        x.is_right = x.is_right && x.slot >= 0 && x.slot < w.n_slots;
        x.from = x.slot;
    }
    return x;
}

/* The column of an input before the call, -1 being the last one; -1: it is zero. None is farther back than there are columns. */
template <class O> KERNEL_FN int32_t mixer_old_column(const mixer_words &w, const mixer_window &x, int32_t token) {
    if (x.from < 0 || x.before + token < 0) return -1;
    const int32_t column = (O::RING ? x.phase : (int32_t)x.before) + token;
    return column < 0 ? column + w.n_columns : column;
}

/* ---- Channels ---- */

/* One of q, k or v: where its elements are. */
template <class O> struct mixer_channel {
    uint32_t part, number, key_head, member;

    KERNEL_MEMBER const char *in(const mixer_view &t) const {
        return (const char *)t.data + key_head * t.key + member * t.member + number * t.channel;
    }
    KERNEL_MEMBER const step_heads &heads(const step_words &w) const { return part == MIXER_QUERY ? w.query : part == MIXER_KEY ? w.key : w.value; }
    KERNEL_MEMBER const char *input(const step_words &w, int64_t token) const {
        const step_heads &t = heads(w);
        return (const char *)t.data + key_head * t.key + member * t.member + token * t.token + number * (uint32_t)sizeof(typename O::activation::bits);
    }
};

/* Channels come by 32, a lane each: the key head's of q and then of k, padded to as many as a sum has, then the block's rows of v. */
template <class O, class L> KERNEL_FN mixer_channel<O> mixer_channel_of(const step_block<O> &b, const step_place<O, L> &p, uint32_t unit) {
    mixer_channel<O> c = { MIXER_VALUE, 0, b.key_head, 0 };
    if (unit < 2 * L::CHUNKS) {
        c.part = unit < L::CHUNKS ? MIXER_QUERY : MIXER_KEY;
        c.number = unit % L::CHUNKS * 32 + p.lane;
    } else {
        c.member = b.member;
        c.number = (unit - 2 * L::CHUNKS) * 32 + p.lane;
    }
    return c;
}

/* Rows of v that a block has, of each value head; some may be beyond V. */
template <class O, class L> KERNEL_FN uint32_t mixer_rows(const step_place<O, L> &p) { return p.n_warps * L::WARP_ROWS * L::GROUPS; }
template <class O, class L> KERNEL_FN uint32_t mixer_first_row(const step_place<O, L> &p) { return p.v - p.row; }

/* Tokens [t, t + n) of a channel to `to`, so many floats apart. First the inputs go there, all asked for at once. */
template <class O, class L>
KERNEL_FN void mixer_convolve_channel(float *to, uint32_t pitch, const mixer_words &w, const mixer_channel<O> &c, const mixer_window &window, int64_t first,
                                      uint32_t t, uint32_t n) {
    typedef typename O::activation::bits bits;
    enum { TOKENS = step_shared<O, L>::TOKENS };
    const mixer_tensors &of = w.parts[c.part];
    const char *weight = c.in(of.weight), *old = c.in(of.window) + window.from * of.window.outer;
    float x[O::WIDTH], taps[O::WIDTH], bias = 0.0f;
    bits inputs[TOKENS] = {};
    KERNEL_UNROLL for (int i = 0; i < TOKENS; i++)
        if (i < n) inputs[i] = step_get<bits, L::WIDE>(c.input(w.step, first + t + i));
    KERNEL_UNROLL for (int i = 0; i < O::WIDTH; i++)
        taps[i] = O::taps::widen(step_get<typename O::taps::bits, L::WIDE>(weight + i * of.weight.column));
    if constexpr (O::HAS_SHIFT) bias = O::shift::widen(step_get<typename O::shift::bits, L::WIDE>(c.in(of.bias)));
    KERNEL_UNROLL for (int i = 0; i < O::WIDTH - 1; i++) {
        const int64_t token = (int64_t)t + i - (O::WIDTH - 1);
        x[i] = 0.0f;
        if (token >= 0) {
            x[i] = O::activation::widen(step_get<bits, L::WIDE>(c.input(w.step, first + token)));
        } else {
            const int32_t column = mixer_old_column<O>(w, window, (int32_t)token);
            if (column >= 0) x[i] = O::window::widen(step_get<typename O::window::bits, L::WIDE>(old + column * of.window.column));
        }
    }
    KERNEL_UNROLL for (int i = 0; i < TOKENS; i++)
        if (i < n) to[i * pitch] = O::activation::widen(inputs[i]);
    _Pragma("unroll 1") for (uint32_t i = 0; i < n; i++) {
        float sum = bias;
        x[O::WIDTH - 1] = to[i * pitch];
        KERNEL_UNROLL for (int j = 0; j < O::WIDTH; j++) sum = __fmaf_rn(x[j], taps[j], sum);
        KERNEL_UNROLL for (int j = 0; j < O::WIDTH - 1; j++) x[j] = x[j + 1];
        sum = mixer_round<O, O::SUM_ROUNDED>(sum);
        if constexpr (O::ACTIVATION == MIXER_SILU) sum = mixer_silu(sum);
        to[i * pitch] = mixer_round<O, O::CONVOLVED_ROUNDED>(sum);
    }
}

/* A chunk of q, k and v, zeros beyond K and V. */
template <class O, class L>
KERNEL_FN void mixer_convolve(step_shared<O, L> &to, const mixer_words &w, const step_block<O> &b, const step_place<O, L> &p, const mixer_window &window,
                              int64_t first, uint32_t t, uint32_t n) {
    enum { ROWS = STEP_THREADS / 32 * L::WARP_ROWS * L::GROUPS };
    const uint32_t rows = mixer_rows<O, L>(p), n_units = 2 * L::CHUNKS + (rows + 31) / 32;
    _Pragma("unroll 1") for (uint32_t unit = p.warp; unit < n_units; unit += p.n_warps) {
        mixer_channel<O> c = mixer_channel_of<O, L>(b, p, unit);
        float *row = (c.part == MIXER_QUERY ? to.query[0] : c.part == MIXER_KEY ? to.key[0] : to.value[0]) + c.number;
        uint32_t pitch = L::PADDED, extent = O::K;
        if (c.part == MIXER_VALUE) {
            if (c.number >= rows) continue;
            pitch = ROWS;
            extent = O::V;
            c.number += mixer_first_row<O, L>(p);
        }
        if (c.number < extent) mixer_convolve_channel<O, L>(row, pitch, w, c, window, first, t, n);
        else for (uint32_t i = 0; i < n; i++) row[i * pitch] = 0.0f;
    }
}
