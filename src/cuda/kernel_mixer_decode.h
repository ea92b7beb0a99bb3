/* The mixer step where every sequence has one token, and its state and its windows stay in their slots: what decoding is. It is what mixer_run does
 * of that, divided otherwise: each channel is convolved once, and its window read and written by the same thread, so that windows need no barrier.
 *
 * The blocks of a sequence and key head are a cluster, n_parts for each of its value heads. A warp has one job, or some of these: 32 channels, q's and k's
 * being every block's share and v's those of its rows; the gates; 32 rows' factors of the norm.
 *
 *     1   says that the block has begun
 *     channels, gates' inputs, factors, windows and the state are asked for
 *     the jobs; once all have begun, q and k -> shared memory of all blocks
 *     2   q and k are there; windows are written while the others arrive
 *         k^, q^; barrier of the block; decay, read, update, read; o -> shared memory of the head's blocks
 *     3   o is there; the state is written while the others arrive
 *         the norm
 *
 * What has been stored before a thread arrives must be in its place before the others go on, so nothing is that need not be. */

template <class O, class L> struct mixer_decode_shared {
    step_shared<O, L> step;
    float o[O::V];
};

/* What a thread has asked for of a channel. */
template <class O> struct mixer_asked_channel {
    typename O::activation::bits input;
    typename O::taps::bits taps[O::WIDTH];
    typename O::shift::bits shift;
    typename O::window::bits old[O::WIDTH - 1];
};

/* A channel of the block's, and where its result goes in what the block shares. */
template <class O> struct mixer_decode_channel {
    mixer_channel<O> channel;
    uint32_t place;
    bool is_inside;
};

/* The block's units of q and k: every n_blocks-th from its rank on. */
template <class L> KERNEL_FN uint32_t mixer_shared_units(const mixer_words &w, uint32_t rank) { return (2 * L::CHUNKS + w.n_blocks - 1 - rank) / w.n_blocks; }

template <class O, class L>
KERNEL_FN mixer_decode_channel<O> mixer_decode_channel_of(const mixer_words &w, const step_block<O> &b, const step_place<O, L> &p, uint32_t rank, uint32_t job) {
    const uint32_t n_shared = mixer_shared_units<L>(w, rank);
    mixer_decode_channel<O> x = { mixer_channel_of<O, L>(b, p, job < n_shared ? rank + job * w.n_blocks : 2 * L::CHUNKS + job - n_shared), 0, false };
    x.place = x.channel.number;
    if (x.channel.part == MIXER_VALUE) x.channel.number += mixer_first_row<O, L>(p);
    x.is_inside = x.channel.part != MIXER_VALUE ? x.channel.number < O::K : x.place < mixer_rows<O, L>(p) && x.channel.number < O::V;
    return x;
}

/* All but the window, whose slot may not be known yet. */
template <class O, class L>
KERNEL_FN void mixer_decode_fetch(mixer_asked_channel<O> &x, const mixer_words &w, const mixer_decode_channel<O> &c, int64_t token) {
    const mixer_tensors &of = w.parts[c.channel.part];
    if (!c.is_inside) return;
    x.input = step_get<typename O::activation::bits, L::WIDE>(c.channel.input(w.step, token));
    KERNEL_UNROLL for (int i = 0; i < O::WIDTH; i++)
        x.taps[i] = step_get<typename O::taps::bits, L::WIDE>(c.channel.in(of.weight) + i * of.weight.column);
    if constexpr (O::HAS_SHIFT) x.shift = step_get<typename O::shift::bits, L::WIDE>(c.channel.in(of.bias));
}

template <class O, class L>
KERNEL_FN void mixer_decode_fetch_window(mixer_asked_channel<O> &x, const mixer_words &w, const mixer_decode_channel<O> &c, const mixer_window &window) {
    const mixer_view &of = w.parts[c.channel.part].window;
    const char *old = c.channel.in(of) + window.from * of.outer;
    KERNEL_UNROLL for (int i = 0; i < O::WIDTH - 1; i++) {
        const int32_t column = mixer_old_column<O>(w, window, i - (O::WIDTH - 1));
        x.old[i] = 0;
        if (c.is_inside && column >= 0) x.old[i] = step_get<typename O::window::bits, L::WIDE>(old + column * of.column);
    }
}

template <class O> KERNEL_FN float mixer_decode_convolve(const mixer_asked_channel<O> &x) {
    float sum = 0.0f;
    if constexpr (O::HAS_SHIFT) sum = O::shift::widen(x.shift);
    KERNEL_UNROLL for (int i = 0; i < O::WIDTH - 1; i++) sum = __fmaf_rn(O::window::widen(x.old[i]), O::taps::widen(x.taps[i]), sum);
    sum = __fmaf_rn(O::activation::widen(x.input), O::taps::widen(x.taps[O::WIDTH - 1]), sum);
    sum = mixer_round<O, O::SUM_ROUNDED>(sum);
    if constexpr (O::ACTIVATION == MIXER_SILU) sum = mixer_silu(sum);
    return mixer_round<O, O::CONVOLVED_ROUNDED>(sum);
}

/* The window after the token, in its slot: a ring's column of it, or all columns, which are the last WIDTH inputs or one less (mixer_decodes). */
template <class O, class L>
KERNEL_FN void mixer_decode_put_window(const mixer_asked_channel<O> &x, const mixer_words &w, const mixer_decode_channel<O> &c, const mixer_window &window) {
    typedef typename O::window::bits bits;
    const mixer_view &of = w.parts[c.channel.part].window;
    char *to = (char *)c.channel.in(of) + window.from * of.outer;
    if (!c.is_inside || ((w.write.data || w.read.data) && step_is_padding<O>(window.slot))) return;
    if constexpr (!O::RING) {
        const int32_t gone = O::WIDTH - w.n_columns;         /* inputs that no column has any more, but the convolution had */
        KERNEL_UNROLL for (int i = 0; i < O::WIDTH - 1; i++)
            if (i >= gone) step_put<bits, L::WIDE>(to + (i - gone) * of.column, O::window::narrow(O::window::widen(x.old[i])));
    }
    step_put<bits, L::WIDE>(to + (O::RING ? window.phase : w.n_columns - 1) * of.column, O::window::narrow(O::activation::widen(x.input)));
}

/* To the shared memory of all blocks, or of this one. */
template <class O, class L>
KERNEL_FN void mixer_decode_put(step_shared<O, L> &to, const mixer_words &w, const step_place<O, L> &p, const mixer_decode_channel<O> &c, float x) {
    if (c.channel.part == MIXER_VALUE) {
        if (c.place < mixer_rows<O, L>(p)) to.value[0][c.place] = x;
        return;
    }
    float *place = (c.channel.part == MIXER_QUERY ? to.query[0] : to.key[0]) + c.place;
    if (w.n_blocks == 1) *place = x;
    else for (uint32_t i = 0; i < w.n_blocks; i++) kernel_cluster_store(place, i, x);
}

template <class O, class L> KERNEL_FN void mixer_decode(const mixer_words &w) {
    __shared__ mixer_decode_shared<O, L> shared;
    const uint32_t rank = blockIdx.x % w.n_blocks, leader = rank - rank % w.n_parts;
    const step_block<O> b = { blockIdx.x / w.n_blocks, rank / w.n_parts, (int64_t)blockIdx.z * gridDim.y + blockIdx.y, blockIdx.x == 0 };
    const step_place<O, L> p = step_place_of<O, L>(rank % w.n_parts);
    if (b.sequence >= w.step.n_sequences) return;
    if (w.n_blocks > 1) kernel_cluster_begin();

    /* What does not wait for a slot. */
    const uint32_t n_shared = mixer_shared_units<L>(w, rank), n_items = (mixer_rows<O, L>(p) + 31) / 32, n_jobs = n_shared + n_items;
    const uint32_t number = (p.warp + p.n_warps - n_jobs % p.n_warps) % p.n_warps;
    const mixer_item<O, L> item = mixer_item_of<O, L>(p, number < n_items ? number : 0);
    const bool finishes = O::HAS_NORM && number < n_items;
    step_span s = { b.sequence, b.sequence + 1, 1, b.sequence, true, true };
    if (w.step.read.data) s.slot = step_index<L::WIDE>(w.step.read, b.sequence, 0);
    const mixer_window window = mixer_window_of<O, L>(w, b, s);
    mixer_decode_channel<O> own = mixer_decode_channel_of<O, L>(w, b, p, rank, p.warp);
    mixer_asked_channel<O> channel = {};
    step_asked_gates<O, L> gates = {};
    step_parameters<O, L> parameters = {};
    mixer_asked_factors<O> asked = {};
    if (p.warp < n_jobs) mixer_decode_fetch<O, L>(channel, w, own, b.sequence);
    step_fetch_gates<O, L>(gates, w.step, b, p, b.sequence, 1);
    step_fetch_parameters<O, L>(parameters, w.step, b, p);
    if (finishes) mixer_fetch_factors<O, L>(asked, w, b, item, b.sequence);

    const bool is_padding = w.step.read.data && step_is_padding<O>(s.slot), is_right = window.is_right && s.slot >= 0 && s.slot < w.step.n_slots;
    if (is_padding || !is_right) {                           /* which all threads of the cluster see */
        if (is_padding && O::ZERO_PADDING) mixer_put_zeros<O, L>(w, b, p, b.sequence, b.sequence, b.sequence + 1);
        if (!is_padding) step_skip<O>(w.step, b);
        if (w.n_blocks > 1) kernel_cluster_wait();
        return;
    }
    step_stored<O, L> stored = {};
    if (p.warp < n_jobs) mixer_decode_fetch_window<O, L>(channel, w, own, window);
    step_load<O, L>(stored, p, b.state(w.step.state, s.slot, 0), w.step.state.row);

    /* The jobs. */
    step_put_gates<O, L>(shared.step, gates, parameters, p, 1);
    mixer_factors by = { 1.0f, 1.0f };
    if constexpr (O::HAS_NORM) {
        if (finishes) by = mixer_factors_of<O>(asked);
    }
    if (w.n_blocks > 1) kernel_cluster_wait();
    _Pragma("unroll 1") for (uint32_t job = p.warp; job < n_jobs;) {
        mixer_decode_put<O, L>(shared.step, w, p, own, own.is_inside ? mixer_decode_convolve<O>(channel) : 0.0f);
        job += p.n_warps;
        if (job >= n_jobs) break;
        mixer_decode_put_window<O, L>(channel, w, own, window);
        own = mixer_decode_channel_of<O, L>(w, b, p, rank, job);
        mixer_decode_fetch<O, L>(channel, w, own, b.sequence);
        mixer_decode_fetch_window<O, L>(channel, w, own, window);
    }
    if (w.n_blocks > 1) {
        if (p.warp < n_shared) kernel_cluster_arrive();
        else kernel_cluster_begin();
    }
    if (p.warp < n_jobs) mixer_decode_put_window<O, L>(channel, w, own, window);
    if (w.n_blocks > 1) kernel_cluster_wait();
    else __syncthreads();

    if (p.warp == 0) {
        float vector[L::CHUNKS][2];
        const float *of = (p.lane < 16 ? shared.step.query[0] : shared.step.key[0]) + p.lane % 16 * 2;
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++)
            KERNEL_UNROLL for (int i = 0; i < 2; i++) vector[c][i] = of[c * 32 + i];
        step_put_vectors<O, L>(shared.step, vector, p);
    }
    __syncthreads();
    float x[L::ROWS][L::N], o[L::ROWS];
    step_widen<O, L>(x, stored);
    step_token<O, L>(x, o, shared.step, 0, p);
    const bool has_nan = step_any_nan<L>(o);
    char *outputs = (char *)b.head(w.step.output) + b.sequence * w.step.output.token;
    if constexpr (O::HAS_NORM) {
        mixer_put_o<O, L>(shared.o, o, p, w.n_parts, leader);
        if (w.n_parts > 1) kernel_cluster_arrive();
    } else {
        KERNEL_UNROLL for (int r = 0; r < L::ROWS; r++) o[r] = mixer_round<O, O::OUTPUT_ROUNDED>(o[r]);
        step_put_outputs<O, L>(o, p, outputs);
    }
    step_store<O, L>(x, p, b.state(w.step.state, s.slot, 0), w.step.state.row, has_nan);
    if constexpr (O::HAS_NORM) {
        if (w.n_parts > 1) kernel_cluster_wait();
        else __syncthreads();
        if (finishes) mixer_finish<O, L>(shared.o, outputs, item, by, p.lane);
    }
}
