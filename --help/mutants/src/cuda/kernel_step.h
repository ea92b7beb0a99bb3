/* The gated-delta step on a GPU (onelaunch_gated_delta.h says what it computes, and in which order).
 *
 * A block has some rows of the state of one sequence and value head, all of the sequence's tokens: they stay in registers from the
 * first token to the last, so that a state is read once and written once, whatever the number of tokens. What rows share, k^, q^ and
 * the gates of a token, is made once a block, in shared memory, for as many tokens at a time as the block has warps: a chunk.
 *
 *     the sequence's bounds and slots; the first chunk's q, k, v, a, b and the state are asked for together
 *     k^, q^, the gates of the first chunk -> shared memory
 *     barrier
 *     for each chunk
 *         the next one's q, k, v, a, b are brought near: not into registers, which the state has
 *         for each token: decay, read, update, read; output and, where they are asked for, states
 *         q, k, v, a, b of the next one; k^, q^, its gates -> the other half of shared memory; barrier
 *
 * Warps, lanes, rows and blocks change no bit: see kernel_step_state.h. Indices lie in the GPU's memory, so they are looked at here: what
 * is outside of its tensor is skipped and counted. Every thread of a block takes the same ways up to a barrier. */

#include "kernel_step_token.h"

/* ---- A chunk, before its tokens are run ---- */

/* Two neighbours, as they are loaded. */
template <class S, bool WIDE, int EXTENT> struct step_pair {
    enum { WORDS = WIDE && EXTENT % 2 == 0 ? 2 / S::PER_WORD : 2 };
    uint32_t words[WORDS];

    /* Elements i and i + 1 of EXTENT, zeros beyond. */
    KERNEL_MEMBER void load(const char *p, uint32_t i) {
        typedef typename S::bits bits;
        KERNEL_UNROLL for (int w = 0; w < WORDS; w++) {
            words[w] = 0;
            if constexpr (WORDS == 1) {
                if (i < EXTENT) words[w] = step_get<uint32_t, true>(p + i * sizeof(bits));
            } else if (i + w < EXTENT) {
                kernel_element<bits> element;
                element.value = step_get<bits, WIDE>(p + (i + w) * sizeof(bits));
                words[w] = element.bits;
            }
        }
    }
    KERNEL_MEMBER float get(int i) const { return WORDS == 1 ? S::of_word(words[0], i) : S::of_word(words[i], 0); }
};

/* What a thread has asked for of the chunk to come. */
template <class O, class L> struct step_ahead {
    enum { VALUES = (step_shared<O, L>::TOKENS * L::WARP_ROWS + 63) / 64 };
    step_pair<typename O::activation, L::WIDE, O::K> vector[L::CHUNKS];
    step_pair<typename O::activation, L::WIDE, O::V> value[VALUES];
    step_asked_gates<O, L> gates;
};

/* The warp's token's q, in its first 16 lanes, and k, in the others. */
template <class O, class L>
KERNEL_FN void step_fetch_vectors(step_ahead<O, L> &ahead, const step_words &w, const step_block<O> &b, const step_place<O, L> &p, int64_t token) {
    const step_heads &vector = p.lane < 16 ? w.query : w.key;
    const char *x = (const char *)vector.data + b.key_head * vector.key + token * vector.token;
    KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++) ahead.vector[c].load(x, c * 32 + p.lane % 16 * 2);
}

/* The values of a warp's rows. */
template <class O, class L>
KERNEL_FN void step_fetch_values(step_ahead<O, L> &ahead, const step_words &w, const step_block<O> &b, const step_place<O, L> &p, int64_t first, uint32_t n) {
    KERNEL_UNROLL for (int j = 0; j < step_ahead<O, L>::VALUES; j++) {
        const uint32_t i = (j * 32 + p.lane) * 2, token = i / L::WARP_ROWS;
        if (token < n) ahead.value[j].load(b.head(w.value) + (first + token) * w.value.token, p.v - p.in_warp + i % L::WARP_ROWS);
    }
}

/* Of `n` tokens from `first` on: at most as many as there are warps. Warp i has token i's q and k, every warp the values of its own rows, the
 * last warp the gates, or all threads the channels'. */
template <class O, class L>
KERNEL_FN void step_fetch(step_ahead<O, L> &ahead, const step_words &w, const step_block<O> &b, const step_place<O, L> &p, int64_t first, uint32_t n) {
    if (p.warp < n) step_fetch_vectors<O, L>(ahead, w, b, p, first + p.warp);
    step_fetch_gates<O, L>(ahead.gates, w, b, p, first, n);
    step_fetch_values<O, L>(ahead, w, b, p, first, n);
}

/* Brings what step_fetch will load to the second cache: a line a lane. */
template <class O, class L>
KERNEL_FN void step_bring(const step_words &w, const step_block<O> &b, const step_place<O, L> &p, int64_t first, uint32_t n) {
    enum { LINE = 128, SIZE = sizeof(typename O::activation::bits), DECAY_SIZE = sizeof(typename O::decay::bits) };
    const uint32_t at = p.lane % 16 * LINE;
    if (p.warp < n) {
        const step_heads &vector = p.lane < 16 ? w.query : w.key;
        if (at < O::K * SIZE) kernel_bring((const char *)vector.data + b.key_head * vector.key + (first + p.warp) * vector.token + at);
        if (p.lane < 16 && at < O::V * SIZE) kernel_bring(b.head(w.value) + (first + p.warp) * w.value.token + at);
        if (O::CHANNELS && p.lane >= 16 && at < O::K * DECAY_SIZE) kernel_bring(b.head(w.decay) + (first + p.warp) * w.decay.token + at);
    }
    if (p.warp == p.n_warps - 1 && p.lane < n) {
        kernel_bring(b.head(w.update) + (first + p.lane) * w.update.token);
        if (!O::CHANNELS) kernel_bring(b.head(w.decay) + (first + p.lane) * w.decay.token);
    }
}

template <class O, class L>
KERNEL_FN void step_prepare(step_shared<O, L> &to, const step_ahead<O, L> &ahead, const step_parameters<O, L> &parameters, const step_place<O, L> &p,
                            uint32_t n) {
    step_put_gates<O, L>(to, ahead.gates, parameters, p, n);
    if (p.warp < n) {
        float x[L::CHUNKS][2];
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++)
            KERNEL_UNROLL for (int i = 0; i < 2; i++) x[c][i] = ahead.vector[c].get(i);
        step_put_vectors<O, L>(to, x, p);
    }
    KERNEL_UNROLL for (int j = 0; j < step_ahead<O, L>::VALUES; j++) {
        const uint32_t i = (j * 32 + p.lane) * 2, token = i / L::WARP_ROWS;
        if (token < n)
            KERNEL_UNROLL for (int h = 0; h < 2; h++) to.value[token][p.warp * L::WARP_ROWS + i % L::WARP_ROWS + h] = ahead.value[j].get(h);
    }
}

/* ---- The kernel ---- */

/* A sequence that is not padding: `run` tokens from `first` on, of which the first chunk has been asked for. One without tokens goes the
 * same way, to where its state is stored. */
template <class O, class L>
KERNEL_FN void step_sequence(step_shared<O, L> (&shared)[2], step_ahead<O, L> &ahead, step_parameters<O, L> &parameters, const step_words &w,
                             const step_block<O> &b, const step_place<O, L> &p, int64_t first, uint32_t run, int64_t slot, bool has_initial,
                             uint32_t most) {
    step_stored<O, L> stored = {};
    float x[L::ROWS][L::N], o[L::ROWS];
    if (has_initial) step_load<O, L>(stored, p, b.state(w.state, slot, 0), w.state.row);
    const int64_t last_slot = step_last_slot<O, L>(w, b, slot);
    if (run == 0 && (last_slot < 0 || (has_initial && last_slot == slot))) return;
    uint32_t n = run < most ? run : most, half = 0, i = 0, t = 0;
    step_prepare<O, L>(shared[0], ahead, parameters, p, n);
    __syncthreads();
    step_widen<O, L>(x, stored);
    do {
        const uint32_t next = t + n;
        if (i == 0 && next < run) step_bring<O, L>(w, b, p, first + next, run - next < most ? run - next : most);
        bool has_nan = true;
        const step_targets targets = step_targets_of<O, L>(w, b, t, run, last_slot);
        if (run > 0) {
            step_token<O, L>(x, o, shared[half], i, p);
            step_put_outputs<O, L>(o, p, (char *)b.head(w.output) + (first + t) * w.output.token);
            has_nan = step_any_nan<L>(o);
        }
        step_put_states<O, L>(x, targets, w, p, has_nan);
        t++;
        if (++i == n && t < run) {
            n = run - t < most ? run - t : most;
            half ^= 1;
            i = 0;
            step_ahead<O, L> later = {};                     /* not what the first chunk's were, which would be kept all along */
            step_parameters<O, L> again = {};
            step_fetch<O, L>(later, w, b, p, first + t, n);
            step_fetch_parameters<O, L>(again, w, b, p);
            step_prepare<O, L>(shared[half], later, again, p, n);
            __syncthreads();
        }
    } while (t < run);
}

/* Loads that none of the others needs are asked for before any is waited for. */
template <class O, class L> KERNEL_FN void step_run(const step_words &w) {
    __shared__ step_shared<O, L> shared[2];
    step_block<O> b;
    const uint32_t part = blockIdx.x / (uint32_t)O::HEADS, head = blockIdx.x % (uint32_t)O::HEADS;
    b.key_head = head / (uint32_t)O::RATIO;
    b.member = head % (uint32_t)O::RATIO;
    b.sequence = (int64_t)blockIdx.z * gridDim.y + blockIdx.y;
    b.counts = blockIdx.x == 0;
    const step_place<O, L> p = step_place_of<O, L>(part);
    if (b.sequence >= w.n_sequences) {                       /* none, or the one block of a head where there are no sequences */
        if (O::ZERO_PADDING && w.n_sequences == 0) step_put_zeros<O, L>(w, b, p, 0, 0, 0);
        return;
    }
    const step_span s = step_span_of<O, L>(w, b);
    if (!s.is_right) {
        step_skip<O>(w, b);
        return;
    }
    step_ahead<O, L> ahead = {};
    step_parameters<O, L> parameters = {};
    const uint32_t most = p.n_warps < step_shared<O, L>::TOKENS ? p.n_warps : step_shared<O, L>::TOKENS;
    step_fetch<O, L>(ahead, w, b, p, s.first, s.run < most ? (uint32_t)s.run : most);
    step_fetch_parameters<O, L>(parameters, w, b, p);
    bool runs = true;
    int64_t after = s.first + s.run;                         /* of what is run: the rest is padding */
    if (w.read.data && step_is_padding<O>(s.slot)) {
        after = s.first;
        runs = false;
    } else if (s.has_initial && (s.slot < 0 || s.slot >= w.n_slots)) {
        step_skip<O>(w, b);
        after = s.end;
        runs = false;
    }
    if constexpr (O::ZERO_PADDING) step_put_zeros<O, L>(w, b, p, s.first, after, s.end);
    if (runs) step_sequence<O, L>(shared, ahead, parameters, w, b, p, s.first, (uint32_t)s.run, s.slot, s.has_initial, most);
}

#include "kernel_step_decode.h"
