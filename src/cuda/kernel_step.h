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
 *         the next one's q, k, v, a, b are asked for
 *         for each token: decay, read, update, read; output and, where they are asked for, states
 *         k^, q^, the gates of the next one -> the other half of shared memory; barrier
 *
 * Warps, lanes, rows and blocks change no bit: see kernel_step_state.h. Indices lie in the GPU's memory, so they are looked at here: what
 * is outside of its tensor is skipped and counted. Every thread of a block takes the same ways up to a barrier. */

enum { STEP_THREADS = 256, STEP_TOKENS = 8 };                /* of a block and of a chunk, at most */
enum step_norm { STEP_NORM_NONE, STEP_NORM_RSQRT, STEP_NORM_MAXIMUM, STEP_NORM_ADDED, STEP_NORM_RMS };
enum step_padding { STEP_PADDING_NEGATIVE, STEP_PADDING_NOT_POSITIVE, STEP_PADDING_NONE };

#include "kernel_step_state.h"

/* Of a chunk. */
template <class O, class L> struct step_shared {
    uint4 aligned;
    float query[STEP_TOKENS][L::PADDED], key[STEP_TOKENS][L::PADDED];
    float value[STEP_TOKENS][STEP_THREADS / 32 * L::WARP_ROWS];
    float decay[STEP_TOKENS][O::CHANNELS ? (int)L::PADDED : 4];
    float beta[STEP_TOKENS];
};

/* What a thread has asked for of the chunk to come. */
template <class O, class L> struct step_ahead {
    enum { VALUES = (STEP_TOKENS * L::WARP_ROWS + 31) / 32, GATES = O::CHANNELS ? (int)L::CHUNKS : 1 };
    typename O::activation::bits query[L::CHUNKS], key[L::CHUNKS], value[VALUES];
    typename O::update::bits update;
    typename O::decay::bits decay[GATES];
    typename O::bias::bits bias[GATES];
    typename O::rate::bits rate;
};

/* ---- The sequence ---- */

template <bool ALIGNED> KERNEL_FN int64_t step_index(const step_table &t, int64_t row, int64_t column) {
    const char *p = (const char *)t.data + row * t.row + column * t.column;
    if (t.size == 4) return step_get<int32_t, ALIGNED>(p);
    if (t.size == 8) return step_get<int64_t, ALIGNED>(p);
    return step_get<uint8_t, true>(p) != 0;
}

template <class O> KERNEL_FN bool step_is_padding(int64_t slot) {
    return O::PADDING != STEP_PADDING_NONE && slot < (O::PADDING == STEP_PADDING_NOT_POSITIVE ? 1 : 0);
}

/* One thread counts for all blocks of a sequence. */
KERNEL_FN void step_skip(const step_words &w) {
    if (w.skipped && blockIdx.x == 0 && threadIdx.x == 0) atomicAdd((uint32_t *)w.skipped, 1u);
}

/* The slot to write, or -1: padding, or outside of the pool. */
template <class O> KERNEL_FN int64_t step_writable(const step_words &w, int64_t slot) {
    if (step_is_padding<O>(slot)) return -1;
    if (slot >= 0 && slot < w.n_slots) return slot;
    step_skip(w);
    return -1;
}

/* What a block is of, and where: addresses of its value head. */
template <class O> struct step_block {
    uint32_t key_head, member;
    int64_t sequence;

    KERNEL_MEMBER const char *head(const step_heads &t) const { return (const char *)t.data + key_head * t.key + member * t.member; }
    KERNEL_MEMBER char *state(const step_states &t, int64_t slot, int64_t token) const {
        return (char *)t.data + slot * t.slot + token * t.token + key_head * t.key + member * t.member;
    }
};

/* ---- A chunk, before its tokens are run ---- */

/* Of `n` tokens from `first` on: at most as many as there are warps. Warp i has token i's q and k; every warp the values of its own rows;
 * the last warp the gates, or all threads the channels'. */
template <class O, class L>
KERNEL_FN void step_fetch(step_ahead<O, L> &ahead, const step_words &w, const step_block<O> &b, const step_place<O, L> &p, int64_t first, uint32_t n) {
    typedef typename O::activation::bits activation;
    typedef typename O::decay::bits decay;
    typedef typename O::bias::bits bias;
    if (p.warp < n) {
        const char *q = b.head(w.query) + (first + p.warp) * w.query.token, *k = b.head(w.key) + (first + p.warp) * w.key.token;
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++) {
            const uint32_t i = c * 32 + p.lane;
            ahead.query[c] = ahead.key[c] = 0;
            if (O::K % 32 == 0 || i < O::K) {
                ahead.query[c] = step_get<activation, L::WIDE>(q + i * sizeof(activation));
                ahead.key[c] = step_get<activation, L::WIDE>(k + i * sizeof(activation));
            }
        }
    }
    if (p.warp == p.n_warps - 1 && p.lane < n) {
        ahead.update = step_get<typename O::update::bits, L::WIDE>(b.head(w.update) + (first + p.lane) * w.update.token);
        if constexpr (!O::CHANNELS) ahead.decay[0] = step_get<decay, L::WIDE>(b.head(w.decay) + (first + p.lane) * w.decay.token);
        if constexpr (!O::CHANNELS && O::HAS_BIAS) ahead.bias[0] = step_get<bias, L::WIDE>(b.head(w.decay_bias));
    }
    if constexpr (O::HAS_RATE) ahead.rate = step_get<typename O::rate::bits, L::WIDE>(b.head(w.decay_rate));
    if constexpr (O::CHANNELS) {
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++) {
            const uint32_t i = c * blockDim.x + threadIdx.x, token = i / O::K, channel = i % O::K;
            if (token < n) {
                ahead.decay[c] = step_get<decay, L::WIDE>(b.head(w.decay) + (first + token) * w.decay.token + channel * sizeof(decay));
                if constexpr (O::HAS_BIAS) ahead.bias[c] = step_get<bias, L::WIDE>(b.head(w.decay_bias) + channel * w.bias_channel);
            }
        }
    }
    KERNEL_UNROLL for (int j = 0; j < step_ahead<O, L>::VALUES; j++) {
        const uint32_t i = j * 32 + p.lane, token = i / L::WARP_ROWS, row = p.v - p.in_warp + i % L::WARP_ROWS;
        if (token < n && row < O::V)
            ahead.value[j] = step_get<activation, L::WIDE>(b.head(w.value) + (first + token) * w.value.token + row * sizeof(activation));
    }
}

/* The nearest float32 to x^-1/2; what its short evaluation leaves open is seldom, and called. */
static __device__ __noinline__ float step_exact_rsqrt(float x) { return num_rsqrt_f32(x); }
KERNEL_FN float step_rsqrt(float x) {
    const num_quick32 quick = num_rsqrt_quick32(x);
    float r = quick.value;
    if (quick.open >> 31) r = step_exact_rsqrt(x);
    return r;
}

/* What a vector is multiplied by. */
template <class O> KERNEL_FN float step_norm_factor(float sum) {
    const float epsilon = num_from_bits32(O::EPSILON);
    if constexpr (O::NORM == STEP_NORM_RSQRT) {
        return step_rsqrt(__fadd_rn(sum, epsilon));
    } else if constexpr (O::NORM == STEP_NORM_MAXIMUM) {
        const float root = __fsqrt_rn(sum);
        return __fdiv_rn(1.0f, root < epsilon ? epsilon : root);
    } else if constexpr (O::NORM == STEP_NORM_ADDED) {
        return __fdiv_rn(1.0f, __fadd_rn(__fsqrt_rn(sum), epsilon));
    } else if constexpr (O::NORM == STEP_NORM_RMS) {
        return __fmul_rn(step_rsqrt(__fadd_rn(__fdiv_rn(sum, (float)O::K), epsilon)), num_from_bits32(O::ROOT));
    } else {
        return 1.0f;
    }
}

/* dot(x, x) of a warp's vector: a lane has a partial sum. */
template <int N> KERNEL_FN float step_square(const float (&x)[N]) {
    float sum = 0.0f;
    KERNEL_UNROLL for (int c = 0; c < N; c++) sum = __fmaf_rn(x[c], x[c], sum);
    KERNEL_UNROLL for (int d = 1; d < 32; d *= 2) sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, d));
    return sum;
}

template <class O, class L> KERNEL_FN void step_prepare(step_shared<O, L> &to, const step_ahead<O, L> &ahead, const step_place<O, L> &p, uint32_t n) {
    if (p.warp == p.n_warps - 1 && p.lane < n) {
        to.beta[p.lane] = O::beta(ahead.update);
        if constexpr (!O::CHANNELS) to.decay[p.lane][0] = O::gate(ahead.decay[0], ahead.rate, ahead.bias[0]);
    }
    if constexpr (O::CHANNELS) {
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++) {
            const uint32_t i = c * blockDim.x + threadIdx.x, token = i / O::K, channel = i % O::K;
            if (token < n) to.decay[token][channel] = O::gate(ahead.decay[c], ahead.rate, ahead.bias[c]);
        }
    }
    if (p.warp < n) {
        float q[L::CHUNKS], k[L::CHUNKS], by_q = 1.0f, by_k = 1.0f;
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++) {
            q[c] = O::activation::widen(ahead.query[c]);
            k[c] = O::activation::widen(ahead.key[c]);
        }
        if constexpr (O::NORM != STEP_NORM_NONE) {
            const float of_q = step_square(q), of_k = step_square(k);
            by_q = step_norm_factor<O>(of_q);
            by_k = step_norm_factor<O>(of_k);
        }
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++) {
            to.query[p.warp][c * 32 + p.lane] = __fmul_rn(__fmul_rn(q[c], by_q), num_from_bits32(O::SCALE));
            to.key[p.warp][c * 32 + p.lane] = __fmul_rn(k[c], by_k);
        }
    }
    KERNEL_UNROLL for (int j = 0; j < step_ahead<O, L>::VALUES; j++) {
        const uint32_t i = j * 32 + p.lane, token = i / L::WARP_ROWS;
        if (token < n) to.value[token][p.warp * L::WARP_ROWS + i % L::WARP_ROWS] = O::activation::widen(ahead.value[j]);
    }
}

/* ---- A token ---- */

/* x, or 0 where K has no such element: zeros continue rows, whatever the decay and the update are. */
template <class O, class L> KERNEL_FN float step_inside(const step_place<O, L> &p, int n, float x) {
    if (O::K % 32 == 0 || n / L::SUMS < L::CHUNKS - 1) return x;
    return (n / L::SUMS) * 32 + p.part * L::SUMS + n % L::SUMS < (uint32_t)O::K ? x : 0.0f;
}

template <class O, class L>
KERNEL_FN void step_token(float (&x)[L::ROWS][L::N], float (&o)[L::ROWS], const step_shared<O, L> &of, uint32_t token, const step_place<O, L> &p) {
    const float beta = of.beta[token];
    float s[L::ROWS][L::SUMS] = {}, u[L::ROWS];
    KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++) {
        float k[L::SUMS], decay[L::SUMS];
        step_read<L::SUMS>(k, &of.key[token][c * 32 + p.part * L::SUMS]);
        if constexpr (O::CHANNELS) {
            step_read<L::SUMS>(decay, &of.decay[token][c * 32 + p.part * L::SUMS]);
        } else {
            KERNEL_UNROLL for (int i = 0; i < L::SUMS; i++) decay[i] = of.decay[token][0];
        }
        KERNEL_UNROLL for (int r = 0; r < L::ROWS; r++)
            KERNEL_UNROLL for (int i = 0; i < L::SUMS; i++) {
                const int n = c * L::SUMS + i;
                x[r][n] = step_inside<O, L>(p, n, __fmul_rn(x[r][n], decay[i]));
                s[r][i] = __fmaf_rn(x[r][n], k[i], s[r][i]);
            }
    }
    KERNEL_UNROLL for (int r = 0; r < L::ROWS; r++) {
        const float m = step_sum<L>(s[r]);
        u[r] = __fmul_rn(beta, __fsub_rn(of.value[token][p.warp * L::WARP_ROWS + p.in_warp + r], m));
        KERNEL_UNROLL for (int i = 0; i < L::SUMS; i++) s[r][i] = 0.0f;
    }
    KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++) {
        float k[L::SUMS], q[L::SUMS];
        step_read<L::SUMS>(k, &of.key[token][c * 32 + p.part * L::SUMS]);
        step_read<L::SUMS>(q, &of.query[token][c * 32 + p.part * L::SUMS]);
        KERNEL_UNROLL for (int r = 0; r < L::ROWS; r++)
            KERNEL_UNROLL for (int i = 0; i < L::SUMS; i++) {
                const int n = c * L::SUMS + i;
                x[r][n] = step_inside<O, L>(p, n, __fmaf_rn(u[r], k[i], x[r][n]));
                s[r][i] = __fmaf_rn(x[r][n], q[i], s[r][i]);
            }
    }
    KERNEL_UNROLL for (int r = 0; r < L::ROWS; r++) o[r] = step_sum<L>(s[r]);
}

/* Each lane of a row stores one of the thread's rows' outputs. */
template <class O, class L> KERNEL_FN void step_put_outputs(const float (&o)[L::ROWS], const step_place<O, L> &p, char *outputs) {
    typedef typename O::output::bits bits;
    float mine = o[0];
    KERNEL_UNROLL for (int r = 1; r < L::ROWS; r++) mine = p.part == (uint32_t)r ? o[r] : mine;
    if (p.part < L::ROWS && p.v + p.part < O::V) step_put<bits, L::WIDE>(outputs + (p.v + p.part) * sizeof(bits), O::output::narrow(mine));
}

/* Zeros for the outputs of tokens [first, last) in the block's rows. */
template <class O, class L>
KERNEL_FN void step_put_zeros(const step_words &w, const step_block<O> &b, const step_place<O, L> &p, int64_t first, int64_t last) {
    typedef typename O::output::bits bits;
    if (!O::ZERO_PADDING) return;
    const uint32_t start = p.v - p.in_warp - p.warp * L::WARP_ROWS;
    for (int64_t t = first; t < last; t++)
        for (uint32_t i = threadIdx.x; i < p.n_warps * L::WARP_ROWS && start + i < O::V; i += blockDim.x)
            step_put<bits, L::WIDE>((char *)b.head(w.output) + t * w.output.token + (start + i) * sizeof(bits), (bits)0);
}

/* ---- The kernel ---- */

template <class L> KERNEL_FN bool step_any_nan(const float (&o)[L::ROWS]) {
    bool any = false;
    KERNEL_UNROLL for (int r = 0; r < L::ROWS; r++) any |= o[r] != o[r];
    return any;
}

/* A sequence that is not padding: `run` tokens from `first` on, of which the first chunk has been asked for. */
template <class O, class L>
KERNEL_FN void step_sequence(step_shared<O, L> (&shared)[2], step_ahead<O, L> &ahead, const step_words &w, const step_block<O> &b,
                             const step_place<O, L> &p, int64_t first, int64_t run, int64_t slot, bool has_initial, uint32_t most) {
    const bool by_token = w.write.n_columns > 0;
    int64_t last_slot = -1;
    step_stored<O, L> stored = {};
    float x[L::ROWS][L::N], o[L::ROWS];
    if (has_initial) {
        if (slot < 0 || slot >= w.n_slots) {
            step_skip(w);
            return;
        }
        step_load<O, L>(stored, p, b.state(w.state, slot, 0), w.state.row);
    }
    if (!w.state_is_kept && !by_token) last_slot = step_writable<O>(w, w.write.data ? step_index<L::WIDE>(w.write, b.sequence, 0) : slot);
    if (run == 0) {
        step_widen<O, L>(x, stored);
        if (last_slot >= 0 && !(has_initial && last_slot == slot)) step_store<O, L>(x, p, b.state(w.state, last_slot, 0), w.state.row, true);
        return;
    }
    uint32_t n = run < most ? (uint32_t)run : most, half = 0;
    step_prepare<O, L>(shared[0], ahead, p, n);
    __syncthreads();
    step_widen<O, L>(x, stored);
    for (int64_t start = 0; start < run; half ^= 1) {
        const int64_t next = start + n, left = run - next;
        const uint32_t n_next = left < most ? (uint32_t)left : most;
        if (n_next) step_fetch<O, L>(ahead, w, b, p, first + next, n_next);
        for (uint32_t i = 0; i < n; i++) {
            const int64_t t = start + i;
            int64_t write = t == run - 1 ? last_slot : -1;
            if (by_token && !w.state_is_kept) {
                if (t < w.write.n_columns) write = step_writable<O>(w, step_index<L::WIDE>(w.write, b.sequence, t));
                else step_skip(w);
            }
            step_token<O, L>(x, o, shared[half], i, p);
            step_put_outputs<O, L>(o, p, (char *)b.head(w.output) + (first + t) * w.output.token);
            const bool careful = step_any_nan<L>(o);
            if (w.intermediate.data) {
                if (t < w.n_intermediate) step_store<O, L>(x, p, b.state(w.intermediate, b.sequence, t), w.intermediate.row, careful);
                else step_skip(w);
            }
            if (write >= 0) step_store<O, L>(x, p, b.state(w.state, write, 0), w.state.row, careful);
        }
        if (n_next) {
            step_prepare<O, L>(shared[half ^ 1], ahead, p, n_next);
            __syncthreads();
        }
        start = next;
        n = n_next;
    }
}

/* Loads that none of the others needs are asked for before any is waited for. */
template <class O, class L> KERNEL_FN void step_run(const step_words &w) {
    __shared__ step_shared<O, L> shared[2];
    step_block<O> b;
    const uint32_t part = blockIdx.x / (uint32_t)O::HEADS, head = blockIdx.x % (uint32_t)O::HEADS;
    b.key_head = head / (uint32_t)O::RATIO;
    b.member = head % (uint32_t)O::RATIO;
    b.sequence = (int64_t)blockIdx.z * gridDim.y + blockIdx.y;
    const step_place<O, L> p = step_place_of<O, L>(part);
    if (b.sequence >= w.n_sequences) {
        if (w.n_sequences == 0) step_put_zeros<O, L>(w, b, p, 0, w.n_tokens);
        return;
    }
    const bool has_initial = !w.has_initial.data || step_index<L::WIDE>(w.has_initial, b.sequence, 0);
    int64_t slot = b.sequence, first = b.sequence * w.uniform_length, length = w.uniform_length;
    if (w.read.data && !w.accepted.data) slot = step_index<L::WIDE>(w.read, b.sequence, 0);
    bool is_right = true;
    if (w.starts.data) {
        first = step_index<L::WIDE>(w.starts, b.sequence, 0);
        const int64_t end = step_index<L::WIDE>(w.starts, b.sequence + 1, 0);
        length = end - first;
        is_right = first >= 0 && first <= end && end <= w.n_tokens;
        if (is_right && b.sequence == 0) step_put_zeros<O, L>(w, b, p, 0, first);
        if (is_right && b.sequence == w.n_sequences - 1) step_put_zeros<O, L>(w, b, p, end, w.n_tokens);
    }
    int64_t run = length;
    if (w.counts.data) {
        run = step_index<L::WIDE>(w.counts, b.sequence, 0);
        is_right = is_right && run >= 0 && run <= length;
    }
    if (w.accepted.data) {
        const int64_t column = step_index<L::WIDE>(w.accepted, b.sequence, 0) - 1;
        is_right = is_right && column >= 0 && column < w.read.n_columns;
        if (is_right) slot = step_index<L::WIDE>(w.read, b.sequence, column);
    }
    if (!is_right) {
        step_skip(w);
        return;
    }
    step_ahead<O, L> ahead = {};
    const uint32_t most = p.n_warps < STEP_TOKENS ? p.n_warps : STEP_TOKENS;
    step_fetch<O, L>(ahead, w, b, p, first, run < most ? (uint32_t)run : most);
    if (w.read.data && step_is_padding<O>(slot)) {
        step_put_zeros<O, L>(w, b, p, first, first + length);
        return;
    }
    step_put_zeros<O, L>(w, b, p, first + run, first + length);
    step_sequence<O, L>(shared, ahead, w, b, p, first, run, slot, has_initial, most);
}
