/* The mixer step on a GPU: a convolution of q, k and v, the recurrence step, and a norm, in one launch (onelaunch_gated_delta.h says what is
 * computed, and in which order).
 *
 * The blocks of one sequence and key head are a cluster. A value head's rows are divided among n_parts of them; the others have other value
 * heads, or each block has several, one after the other. What is made twice, the convolution of q and k, is little beside the state. Two
 * things pass between blocks, so there are two barriers of the cluster:
 *
 *     the sequence's bounds and slots; the state, the gates' inputs and the norm's gate are asked for
 *     for each chunk of tokens
 *         the convolution of q, k and the block's rows of v -> shared memory
 *         k^, q^, the gates
 *     1   of the first chunk, or the first ones: all blocks have read the windows that they share, which are written now
 *         for each token: decay, read, update, read; o -> shared memory of all blocks of the head; states, where they are asked for
 *     2   all blocks of the head have o, whose sum goes over all rows; each stores its own rows
 *
 * o is put into the others' shared memory rather than taken from there, so no block needs to wait for its readers before it ends; barrier 1 tells that
 * all have begun. There are two places for o: what a block puts for the next chunk is no hazard to one that reads this chunk's still. Where there are
 * no clusters (below sm_90), a block has all rows of a head, GROUPS of them one after the other.
 *
 * Every thread of a cluster takes the same ways up to a barrier. */

#include "kernel_mixer_channels.h"
#include "kernel_mixer_window.h"
#include "kernel_mixer_norm.h"

template <class O, class L> struct mixer_shared {
    step_shared<O, L> step;
    float o[2][step_shared<O, L>::TOKENS][O::V];
};

/* A head's rows in a thread, one group at a time; the others wait in the thread's memory. */
template <class L> struct mixer_rows_kept {
    float x[L::GROUPS][L::ROWS][L::N];
};

template <class O, class L> KERNEL_FN step_place<O, L> mixer_group(const step_place<O, L> &p, uint32_t group) {
    step_place<O, L> of = p;
    of.row += group * p.n_warps * L::WARP_ROWS;
    of.v += group * p.n_warps * L::WARP_ROWS;
    return of;
}

/* Zeros as step_put_zeros has them, in all of the block's heads and rows. */
template <class O, class L>
KERNEL_FN void mixer_put_zeros(const mixer_words &w, step_block<O> b, const step_place<O, L> &p, int64_t first, int64_t after, int64_t end) {
    const uint32_t every = w.n_blocks / w.n_parts;
    for (uint32_t i = 0; i < O::RATIO; i += every, b.member += every)
        for (uint32_t group = 0; group < L::GROUPS; group++) step_put_zeros<O, L>(w.step, b, mixer_group<O, L>(p, group), first, after, end);
}

/* Rows of o, which all lanes of a row have, to the head's blocks: those of the cluster from `leader` on. */
template <class O, class L>
KERNEL_FN void mixer_put_o(float *to, const float (&o)[L::ROWS], const step_place<O, L> &p, uint32_t n_parts, uint32_t leader) {
    KERNEL_UNROLL for (int r = 0; r < L::ROWS; r++) {
        const float x = mixer_round<O, O::OUTPUT_ROUNDED>(o[r]);
        if (p.v + r >= O::V) continue;
        if (n_parts == 1) {
            if (p.part == 0) to[p.v + r] = x;
        } else {
            for (uint32_t i = p.part; i < n_parts; i += L::LANES) kernel_cluster_store(&to[p.v + r], leader + i, x);
        }
    }
}

/* The tokens [t, t + n) of a sequence on a group of rows. Where o goes to other blocks, the thread arrives at barrier 2 before it stores the last states:
 * others need not wait for these. */
template <class O, class L>
KERNEL_FN void mixer_tokens(float (&x)[L::ROWS][L::N], mixer_shared<O, L> &shared, uint32_t half, const mixer_words &w, const step_block<O> &b,
                            const step_place<O, L> &p, int64_t first, uint32_t t, uint32_t n, uint32_t run, int64_t last_slot, uint32_t leader) {
    float o[L::ROWS];
    uint32_t i = 0;
    do {
        bool has_nan = true;
        const step_targets targets = step_targets_of<O, L>(w.step, b, t + i, run, last_slot);
        if (run > 0) {
            step_token<O, L>(x, o, shared.step, i, p);
            has_nan = step_any_nan<L>(o);
            if constexpr (O::HAS_NORM) {
                mixer_put_o<O, L>(shared.o[half][i], o, p, w.n_parts, leader);
            } else {
                KERNEL_UNROLL for (int r = 0; r < L::ROWS; r++) o[r] = mixer_round<O, O::OUTPUT_ROUNDED>(o[r]);
                step_put_outputs<O, L>(o, p, (char *)b.head(w.step.output) + (first + t + i) * w.step.output.token);
            }
        }
        if (O::HAS_NORM && w.n_parts > 1 && i + 1 >= n) kernel_cluster_arrive();
        step_put_states<O, L>(x, targets, w.step, p, has_nan);
    } while (++i < n);
}

/* A value head of a sequence that is not padding. `half` is which of the places for o is next; `keys`: the windows of q and k are written now. */
template <class O, class L>
KERNEL_FN void mixer_head(mixer_shared<O, L> &shared, uint32_t &half, const mixer_words &w, const step_block<O> &b, const step_place<O, L> &p,
                          const step_span &s, const mixer_window &window, bool keys) {
    const uint32_t run = (uint32_t)s.run, most = p.n_warps < step_shared<O, L>::TOKENS ? p.n_warps : step_shared<O, L>::TOKENS;
    const uint32_t rank = blockIdx.x % w.n_blocks, leader = rank - rank % w.n_parts;
    step_stored<O, L> stored = {};
    float x[L::ROWS][L::N];
    mixer_rows_kept<L> kept;
    const char *from = b.state(w.step.state, s.slot, 0);
    if (s.has_initial && L::GROUPS == 1) step_load<O, L>(stored, p, from, w.step.state.row);
    int64_t last_slot = step_last_slot<O, L>(w.step, b, s.slot);
    if (run == 0 && s.has_initial && last_slot == s.slot) last_slot = -1;
    uint32_t t = 0;
    do {
        const uint32_t n = run - t < most ? run - t : most, per_token = (mixer_rows<O, L>(p) + 31) / 32, next = t + n;
        const bool reads_windows = t < O::WIDTH - 1;
        step_asked_gates<O, L> gates = {};
        step_parameters<O, L> parameters = {};
        mixer_asked_factors<O> asked = {};
        const mixer_item<O, L> own = mixer_item_of<O, L>(p, p.warp);           /* the first that is this warp's */
        step_fetch_gates<O, L>(gates, w.step, b, p, s.first + t, n);
        step_fetch_parameters<O, L>(parameters, w.step, b, p);
        if (O::HAS_NORM && own.token < n) mixer_fetch_factors<O, L>(asked, w, b, own, s.first + t);
        mixer_convolve<O, L>(shared.step, w, b, p, window, s.first, t, n);
        if (reads_windows && w.n_blocks > 1) kernel_cluster_arrive();
        __syncthreads();
        step_put_gates<O, L>(shared.step, gates, parameters, p, n);
        if (p.warp < n) {
            float vector[L::CHUNKS][2];
            const float *of = (p.lane < 16 ? shared.step.query[p.warp] : shared.step.key[p.warp]) + p.lane % 16 * 2;
            KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++)
                KERNEL_UNROLL for (int i = 0; i < 2; i++) vector[c][i] = of[c * 32 + i];
            step_put_vectors<O, L>(shared.step, vector, p);
        }
        mixer_factors by = { 1.0f, 1.0f };
        if constexpr (O::HAS_NORM) by = mixer_factors_of<O>(asked);
        __syncthreads();
        if (reads_windows) {
            if (w.n_blocks > 1) kernel_cluster_wait();
            if (next >= run || next >= O::WIDTH - 1) mixer_put_windows<O, L>(w, b, p, window, s.first, (int32_t)run, keys);
        }
        if (next < run) step_bring<O, L>(w.step, b, p, s.first + next, run - next < most ? run - next : most);
        if (L::GROUPS == 1 && t == 0) step_widen<O, L>(x, stored);
        if constexpr (L::GROUPS == 1) {
            mixer_tokens<O, L>(x, shared, half, w, b, p, s.first, t, n, run, last_slot, leader);
        } else {
            _Pragma("unroll 1") for (uint32_t group = 0; group < L::GROUPS; group++) {
                const step_place<O, L> of = mixer_group<O, L>(p, group);
                step_block<O> counting = b;
                counting.counts = b.counts && group == 0;
                if (t == 0) {
                    if (s.has_initial) step_load<O, L>(stored, of, from, w.step.state.row);
                    step_widen<O, L>(x, stored);
                } else {
                    KERNEL_UNROLL for (int r = 0; r < L::ROWS; r++)
                        KERNEL_UNROLL for (int i = 0; i < L::N; i++) x[r][i] = kept.x[group][r][i];
                }
                mixer_tokens<O, L>(x, shared, half, w, counting, of, s.first, t, n, run, last_slot, leader);
                KERNEL_UNROLL for (int r = 0; r < L::ROWS; r++)
                    KERNEL_UNROLL for (int i = 0; i < L::N; i++) kept.x[group][r][i] = x[r][i];
            }
        }
        if (O::HAS_NORM && w.n_parts > 1) kernel_cluster_wait();
        else __syncthreads();
        if constexpr (O::HAS_NORM) {
            _Pragma("unroll 1") for (uint32_t number = p.warp; number < n * per_token; number += p.n_warps) {
                const mixer_item<O, L> item = mixer_item_of<O, L>(p, number);
                if (number != p.warp) {
                    mixer_fetch_factors<O, L>(asked, w, b, item, s.first + t);
                    by = mixer_factors_of<O>(asked);
                }
                mixer_finish<O, L>(shared.o[half][item.token], (char *)b.head(w.step.output) + (s.first + t + item.token) * w.step.output.token, item, by,
                                   p.lane);
            }
        }
        t = next;
        half ^= 1;
    } while (t < run);
}

template <class O, class L> KERNEL_FN void mixer_run(const mixer_words &w) {
    __shared__ mixer_shared<O, L> shared;
    const uint32_t rank = blockIdx.x % w.n_blocks, every = w.n_blocks / w.n_parts;         /* every: heads of the cluster at a time */
    const step_place<O, L> p = step_place_of<O, L>(rank % w.n_parts);
    step_block<O> b;
    uint32_t half = 0;
    b.key_head = blockIdx.x / w.n_blocks;
    b.member = rank / w.n_parts;
    b.sequence = (int64_t)blockIdx.z * gridDim.y + blockIdx.y;
    b.counts = blockIdx.x == 0;
    if (b.sequence >= w.step.n_sequences) {
        if (O::ZERO_PADDING && w.step.n_sequences == 0) mixer_put_zeros<O, L>(w, b, p, 0, 0, 0);
        return;
    }
    const step_span s = step_span_of<O, L>(w.step, b);
    if (!s.is_right) {
        step_skip<O>(w.step, b);
        return;
    }
    const mixer_window window = mixer_window_of<O, L>(w, b, s);
    bool runs = true;
    int64_t after = s.first + s.run;                         /* of what is run: the rest is padding */
    if (w.step.read.data && step_is_padding<O>(s.slot)) {
        after = s.first;
        runs = false;
    } else if (!window.is_right || (s.has_initial && (s.slot < 0 || s.slot >= w.step.n_slots))) {
        step_skip<O>(w.step, b);
        after = s.end;
        runs = false;
    }
    if constexpr (O::ZERO_PADDING) mixer_put_zeros<O, L>(w, b, p, s.first, after, s.end);
    if (!runs) return;
    for (uint32_t i = 0; i < O::RATIO; i += every) {
        mixer_head<O, L>(shared, half, w, b, p, s, window, i + every >= O::RATIO);
        b.member += every;
        b.counts = false;
    }
}

#include "kernel_mixer_decode.h"
