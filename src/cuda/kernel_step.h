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

enum { STEP_THREADS = 256 };                                 /* of a block, at most */
enum step_norm { STEP_NORM_NONE, STEP_NORM_RSQRT, STEP_NORM_MAXIMUM, STEP_NORM_ADDED, STEP_NORM_RMS };
enum step_padding { STEP_PADDING_NEGATIVE, STEP_PADDING_NOT_POSITIVE, STEP_PADDING_NONE };

#include "kernel_step_state.h"

/* Of a chunk; its tokens are as many as fit twice into 48 KiB. */
template <class O, class L> struct step_shared {
    enum { TOKENS = O::CHANNELS && O::K > 192 ? 4 : 8 };
    uint4 aligned;
    float query[TOKENS][L::PADDED], key[TOKENS][L::PADDED];
    float value[TOKENS][STEP_THREADS / 32 * L::WARP_ROWS];
    float decay[TOKENS][O::CHANNELS ? (int)L::PADDED : 4];
    float beta[TOKENS];
};

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
    enum { VALUES = (step_shared<O, L>::TOKENS * L::WARP_ROWS + 63) / 64, GATES = O::CHANNELS ? (int)L::CHUNKS : 1 };
    step_pair<typename O::activation, L::WIDE, O::K> vector[L::CHUNKS];
    step_pair<typename O::activation, L::WIDE, O::V> value[VALUES];
    typename O::update::bits update;
    typename O::decay::bits decay[GATES];
};

/* The gates' parameters, which all chunks share: kept for the first, and loaded again for others. */
template <class O, class L> struct step_parameters {
    typename O::rate::bits rate;
    typename O::bias::bits bias[step_ahead<O, L>::GATES];
};

/* ---- The sequence ---- */

/* A whole number of 4 or 8 bytes, whose halves are loaded, so that no branch stands between this and other loads. */
template <bool ALIGNED> KERNEL_FN int64_t step_index(const step_table &t, int64_t row, int64_t column) {
    const char *p = (const char *)t.data + row * t.row + column * t.column;
    const uint32_t low = step_get<uint32_t, ALIGNED>(p);
    uint32_t high = (uint32_t)((int32_t)low >> 31);
    if (t.size == 8) high = step_get<uint32_t, ALIGNED>(p + 4);
    return (int64_t)((uint64_t)high << 32 | low);
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

/* Of `n` tokens from `first` on: at most as many as there are warps. Warp i has token i's q, in its first 16 lanes, and k, in the others;
 * every warp the values of its own rows; the last warp the gates, or all threads the channels'. */
template <class O, class L>
KERNEL_FN void step_fetch(step_ahead<O, L> &ahead, const step_words &w, const step_block<O> &b, const step_place<O, L> &p, int64_t first, uint32_t n) {
    typedef typename O::decay::bits decay;
    if (p.warp < n) {
        const step_heads &vector = p.lane < 16 ? w.query : w.key;
        const char *x = (const char *)vector.data + b.key_head * vector.key + (first + p.warp) * vector.token;
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++) ahead.vector[c].load(x, c * 32 + p.lane % 16 * 2);
    }
    if (p.warp == p.n_warps - 1 && p.lane < n) {
        ahead.update = step_get<typename O::update::bits, L::WIDE>(b.head(w.update) + (first + p.lane) * w.update.token);
        if constexpr (!O::CHANNELS) ahead.decay[0] = step_get<decay, L::WIDE>(b.head(w.decay) + (first + p.lane) * w.decay.token);
    }
    if constexpr (O::CHANNELS) {
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++) {
            const uint32_t i = c * blockDim.x + threadIdx.x, token = i / O::K, channel = i % O::K;
            if (token < n)
                ahead.decay[c] = step_get<decay, L::WIDE>(b.head(w.decay) + (first + token) * w.decay.token + channel * sizeof(decay));
        }
    }
    KERNEL_UNROLL for (int j = 0; j < step_ahead<O, L>::VALUES; j++) {
        const uint32_t i = (j * 32 + p.lane) * 2, token = i / L::WARP_ROWS;
        if (token < n) ahead.value[j].load(b.head(w.value) + (first + token) * w.value.token, p.v - p.in_warp + i % L::WARP_ROWS);
    }
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
KERNEL_FN void step_fetch_parameters(step_parameters<O, L> &parameters, const step_words &w, const step_block<O> &b, const step_place<O, L> &p) {
    typedef typename O::bias::bits bias;
    if (!O::CHANNELS && p.warp != p.n_warps - 1) return;
    if constexpr (O::HAS_RATE) parameters.rate = step_get<typename O::rate::bits, L::WIDE>(b.head(w.decay_rate));
    if constexpr (O::HAS_BIAS)
        KERNEL_UNROLL for (int c = 0; c < step_ahead<O, L>::GATES; c++) {
            const uint32_t channel = O::CHANNELS ? (c * blockDim.x + threadIdx.x) % O::K : 0;
            parameters.bias[c] = step_get<bias, L::WIDE>(b.head(w.decay_bias) + channel * w.bias_channel);
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

/* dot(x, x) of the vector of half a warp: a lane has the partial sums of neighbours. */
template <int N> KERNEL_FN float step_square(const float (&x)[N][2]) {
    float even = 0.0f, odd = 0.0f;
    KERNEL_UNROLL for (int c = 0; c < N; c++) {
        even = __fmaf_rn(x[c][0], x[c][0], even);
        odd = __fmaf_rn(x[c][1], x[c][1], odd);
    }
    float sum = __fadd_rn(even, odd);
    KERNEL_UNROLL for (int d = 1; d < 16; d *= 2) sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, d));
    return sum;
}

/* The gates are called: they are long, and the state's registers do not count against theirs. Both at once, since neither waits for the
 * other. */
struct step_gates {
    float beta, decay;
};
template <class O>
KERNEL_CALLED step_gates step_both(typename O::update::bits update, typename O::decay::bits decay, typename O::rate::bits rate, typename O::bias::bits bias) {
    step_gates gates;
    gates.beta = O::beta(update);
    gates.decay = O::gate(decay, rate, bias);
    return gates;
}
template <class O> KERNEL_CALLED float step_gate(typename O::decay::bits decay, typename O::rate::bits rate, typename O::bias::bits bias) {
    return O::gate(decay, rate, bias);
}

template <class O, class L>
KERNEL_FN void step_prepare(step_shared<O, L> &to, const step_ahead<O, L> &ahead, const step_parameters<O, L> &parameters, const step_place<O, L> &p,
                            uint32_t n) {
    if (p.warp == p.n_warps - 1 && p.lane < n) {
        if constexpr (O::CHANNELS) {
            to.beta[p.lane] = O::beta(ahead.update);
        } else {
            const step_gates gates = step_both<O>(ahead.update, ahead.decay[0], parameters.rate, parameters.bias[0]);
            to.beta[p.lane] = gates.beta;
            to.decay[p.lane][0] = gates.decay;
        }
    }
    if constexpr (O::CHANNELS) {
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++) {
            const uint32_t i = c * blockDim.x + threadIdx.x, token = i / O::K, channel = i % O::K;
            if (token < n) to.decay[token][channel] = step_gate<O>(ahead.decay[c], parameters.rate, parameters.bias[c]);
        }
    }
    if (p.warp < n) {
        float x[L::CHUNKS][2], by = 1.0f;
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++)
            KERNEL_UNROLL for (int i = 0; i < 2; i++) x[c][i] = ahead.vector[c].get(i);
        if constexpr (O::NORM != STEP_NORM_NONE) by = step_norm_factor<O>(step_square(x));
        float *y = (p.lane < 16 ? to.query[p.warp] : to.key[p.warp]) + p.lane % 16 * 2;
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++)
            KERNEL_UNROLL for (int i = 0; i < 2; i++) {
                const float normalised = __fmul_rn(x[c][i], by);
                y[c * 32 + i] = p.lane < 16 ? __fmul_rn(normalised, num_from_bits32(O::SCALE)) : normalised;
            }
    }
    KERNEL_UNROLL for (int j = 0; j < step_ahead<O, L>::VALUES; j++) {
        const uint32_t i = (j * 32 + p.lane) * 2, token = i / L::WARP_ROWS;
        if (token < n)
            KERNEL_UNROLL for (int h = 0; h < 2; h++) to.value[token][p.warp * L::WARP_ROWS + i % L::WARP_ROWS + h] = ahead.value[j].get(h);
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

/* Zeros for the outputs, in the block's rows, of the tokens [first, end) of its sequence from `after` on; and of those that are of no
 * sequence, before the first one and behind the last one. */
template <class O, class L>
KERNEL_FN void step_put_zeros(const step_words &w, const step_block<O> &b, const step_place<O, L> &p, int64_t first, int64_t after, int64_t end) {
    typedef typename O::output::bits bits;
    const bool has_more = w.starts.data != 0;
    const uint32_t start = p.v - p.in_warp - p.warp * L::WARP_ROWS;
    if (has_more && b.sequence + 1 >= w.n_sequences) end = w.n_tokens;
    for (int64_t t = has_more && b.sequence == 0 ? 0 : first;; t++) {
        if (t == first) t = after;
        if (t >= end) return;
        for (uint32_t i = threadIdx.x; i < p.n_warps * L::WARP_ROWS && start + i < O::V; i += blockDim.x)
            step_put<bits, L::WIDE>((char *)b.head(w.output) + t * w.output.token + (start + i) * sizeof(bits), (bits)0);
    }
}

/* ---- The kernel ---- */

template <class L> KERNEL_FN bool step_any_nan(const float (&o)[L::ROWS]) {
    bool any = false;
    KERNEL_UNROLL for (int r = 0; r < L::ROWS; r++) any |= o[r] != o[r];
    return any;
}

/* A sequence that is not padding: `run` tokens from `first` on, of which the first chunk has been asked for. One without tokens goes the
 * same way, to where its state is stored. */
template <class O, class L>
KERNEL_FN void step_sequence(step_shared<O, L> (&shared)[2], step_ahead<O, L> &ahead, step_parameters<O, L> &parameters, const step_words &w,
                             const step_block<O> &b, const step_place<O, L> &p, int64_t first, uint32_t run, int64_t slot, bool has_initial,
                             uint32_t most) {
    const bool by_token = w.write.n_columns > 0;
    int64_t last_slot = -1;
    step_stored<O, L> stored = {};
    float x[L::ROWS][L::N], o[L::ROWS];
    if (has_initial) step_load<O, L>(stored, p, b.state(w.state, slot, 0), w.state.row);
    if (!w.state_is_kept && !by_token) last_slot = step_writable<O>(w, w.write.data ? step_index<L::WIDE>(w.write, b.sequence, 0) : slot);
    if (run == 0 && (last_slot < 0 || (has_initial && last_slot == slot))) return;
    uint32_t n = run < most ? run : most, half = 0, i = 0, t = 0;
    step_prepare<O, L>(shared[0], ahead, parameters, p, n);
    __syncthreads();
    step_widen<O, L>(x, stored);
    do {
        const uint32_t next = t + n;
        if (i == 0 && next < run) step_bring<O, L>(w, b, p, first + next, run - next < most ? run - next : most);
        bool has_nan = true;
        char *to_state = t + 1 >= run && last_slot >= 0 ? b.state(w.state, last_slot, 0) : 0, *to_intermediate = 0;
        if (run > 0) {
            if (by_token && !w.state_is_kept) {
                if (t < w.write.n_columns) {
                    const int64_t write = step_writable<O>(w, step_index<L::WIDE>(w.write, b.sequence, t));
                    if (write >= 0) to_state = b.state(w.state, write, 0);
                } else {
                    step_skip(w);
                }
            }
            if (w.intermediate.data) {
                if (t < w.n_intermediate) to_intermediate = b.state(w.intermediate, b.sequence, t);
                else step_skip(w);
            }
            step_token<O, L>(x, o, shared[half], i, p);
            step_put_outputs<O, L>(o, p, (char *)b.head(w.output) + (first + t) * w.output.token);
            has_nan = step_any_nan<L>(o);
        }
        _Pragma("unroll 1") for (int which = 0; which < 2; which++) {
            char *to = which ? to_intermediate : to_state;
            if (to) step_store<O, L>(x, p, to, which ? w.intermediate.row : w.state.row, has_nan);
        }
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
    const step_place<O, L> p = step_place_of<O, L>(part);
    if (b.sequence >= w.n_sequences) {                       /* none, or the one block of a head where there are no sequences */
        if (O::ZERO_PADDING && w.n_sequences == 0) step_put_zeros<O, L>(w, b, p, 0, 0, 0);
        return;
    }
    int64_t slot = b.sequence, first = b.sequence * w.uniform_length, end = first + w.uniform_length;
    bool is_right = true, has_initial = true, runs = true;
    if (w.has_initial.data) has_initial = step_get<uint8_t, true>((const char *)w.has_initial.data + b.sequence * w.has_initial.row);
    if (w.read.data && !w.accepted.data) slot = step_index<L::WIDE>(w.read, b.sequence, 0);
    if (w.starts.data) {
        first = step_index<L::WIDE>(w.starts, b.sequence, 0);
        end = step_index<L::WIDE>(w.starts, b.sequence + 1, 0);
        is_right = first >= 0 && first <= end && end <= w.n_tokens;
    }
    int64_t run = end - first;
    if (w.counts.data) {
        const int64_t count = step_index<L::WIDE>(w.counts, b.sequence, 0);
        is_right = is_right && count >= 0 && count <= run;
        run = count;
    }
    if (w.accepted.data) {
        const int64_t column = step_index<L::WIDE>(w.accepted, b.sequence, 0) - 1;
        is_right = is_right && column >= 0 && column < w.read.n_columns;
        if (is_right) slot = step_index<L::WIDE>(w.read, b.sequence, column);
    }
    if (!is_right || run > INT32_MAX) {
        step_skip(w);
        return;
    }
    step_ahead<O, L> ahead = {};
    step_parameters<O, L> parameters = {};
    const uint32_t most = p.n_warps < step_shared<O, L>::TOKENS ? p.n_warps : step_shared<O, L>::TOKENS;
    step_fetch<O, L>(ahead, w, b, p, first, run < most ? (uint32_t)run : most);
    step_fetch_parameters<O, L>(parameters, w, b, p);
    int64_t after = first + run;                             /* of what is run: the rest is padding */
    if (w.read.data && step_is_padding<O>(slot)) {
        after = first;
        runs = false;
    } else if (has_initial && (slot < 0 || slot >= w.n_slots)) {
        step_skip(w);
        after = end;
        runs = false;
    }
    if constexpr (O::ZERO_PADDING) step_put_zeros<O, L>(w, b, p, first, after, end);
    if (runs) step_sequence<O, L>(shared, ahead, parameters, w, b, p, first, (uint32_t)run, slot, has_initial, most);
}
