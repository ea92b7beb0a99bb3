/* What the kernels of the gated-delta step and of the mixer step share: where a sequence lies, the gates, k^ and q^, a token, and the states
 * after it (onelaunch_gated_delta.h says what is computed, and in which order). kernel_step.h and kernel_mixer.h put them together.
 *
 * Indices lie in the GPU's memory, so they are looked at here: what is outside of its tensor is skipped and counted. */

enum { STEP_THREADS = 256 };                                 /* of a block, at most: STEP_MOST_WARPS of step.h */
enum step_norm { STEP_NORM_NONE, STEP_NORM_RSQRT, STEP_NORM_MAXIMUM, STEP_NORM_ADDED, STEP_NORM_RMS };
enum step_padding { STEP_PADDING_NEGATIVE, STEP_PADDING_NOT_POSITIVE, STEP_PADDING_NONE };

#include "kernel_step_state.h"

/* Of a chunk; its tokens are as many as fit twice into 48 KiB. */
template <class O, class L> struct step_shared {
    enum { TOKENS = L::TOKENS > 4 && O::CHANNELS && O::K > 192 ? 4 : (int)L::TOKENS };
    uint4 aligned;
    float query[TOKENS][L::PADDED], key[TOKENS][L::PADDED];
    float value[TOKENS][STEP_THREADS / 32 * L::WARP_ROWS * L::GROUPS];
    float decay[TOKENS][O::CHANNELS ? (int)L::PADDED : 4];
    float beta[TOKENS];
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

/* What a block is of, and where: addresses of its value head. */
template <class O> struct step_block {
    uint32_t key_head, member;
    int64_t sequence;
    bool counts;                                             /* what is skipped: one block does for all of a sequence */

    KERNEL_MEMBER const char *head(const step_heads &t) const { return (const char *)t.data + key_head * t.key + member * t.member; }
    KERNEL_MEMBER char *state(const step_states &t, int64_t slot, int64_t token) const {
        return (char *)t.data + slot * t.slot + token * t.token + key_head * t.key + member * t.member;
    }
};

template <class O> KERNEL_FN void step_skip(const step_words &w, const step_block<O> &b) {
    if (w.skipped && b.counts && threadIdx.x == 0) atomicAdd((uint32_t *)w.skipped, 1u);
}

/* The slot to write, or -1: padding, which a table's numbers may be, or outside of the pool. */
template <class O> KERNEL_FN int64_t step_writable(const step_words &w, const step_block<O> &b, int64_t slot) {
    if ((w.write.data || w.read.data) && step_is_padding<O>(slot)) return -1;
    if (slot >= 0 && slot < w.n_slots) return slot;
    step_skip<O>(w, b);
    return -1;
}

/* Where a sequence's tokens are, of which `run` are run, and the slot that it starts from. */
struct step_span {
    int64_t first, end, run, slot;
    bool is_right, has_initial;
};

template <class O, class L> KERNEL_FN step_span step_span_of(const step_words &w, const step_block<O> &b) {
    step_span s = { b.sequence * w.uniform_length, 0, 0, b.sequence, true, true };
    s.end = s.first + w.uniform_length;
    if (w.has_initial.data) s.has_initial = step_get<uint8_t, true>((const char *)w.has_initial.data + b.sequence * w.has_initial.row);
    if (w.read.data && !w.accepted.data) s.slot = step_index<L::WIDE>(w.read, b.sequence, 0);
    if (w.starts.data) {
        s.first = step_index<L::WIDE>(w.starts, b.sequence, 0);
        s.end = step_index<L::WIDE>(w.starts, b.sequence + 1, 0);
        s.is_right = s.first >= 0 && s.first <= s.end && s.end <= w.n_tokens;
    }
    s.run = s.end - s.first;
    if (w.counts.data) {
        const int64_t count = step_index<L::WIDE>(w.counts, b.sequence, 0);
        s.is_right = s.is_right && count >= 0 && count <= s.run;
        s.run = count;
    }
    if (w.accepted.data) {
        const int64_t column = step_index<L::WIDE>(w.accepted, b.sequence, 0) - 1;
        s.is_right = s.is_right && column >= 0 && column < w.read.n_columns;
        if (s.is_right) s.slot = step_index<L::WIDE>(w.read, b.sequence, column);
    }
    s.is_right = s.is_right && s.run <= INT32_MAX;
    return s;
}

/* ---- A chunk, before its tokens are run ---- */

/* What a thread has asked for of the gates of the chunk to come. */
template <class O, class L> struct step_asked_gates {
    enum { GATES = O::CHANNELS ? (int)L::CHUNKS : 1 };
    typename O::update::bits update;
    typename O::decay::bits decay[GATES];
};

/* The gates' parameters, which all chunks share: kept for the first, and loaded again for others. */
template <class O, class L> struct step_parameters {
    typename O::rate::bits rate;
    typename O::bias::bits bias[step_asked_gates<O, L>::GATES];
};

/* Of `n` tokens from `first` on: the last warp asks for the gates, or all threads for the channels'. */
template <class O, class L>
KERNEL_FN void step_fetch_gates(step_asked_gates<O, L> &gates, const step_words &w, const step_block<O> &b, const step_place<O, L> &p, int64_t first,
                                uint32_t n) {
    typedef typename O::decay::bits decay;
    if (p.warp == p.n_warps - 1 && p.lane < n) {
        gates.update = step_get<typename O::update::bits, L::WIDE>(b.head(w.update) + (first + p.lane) * w.update.token);
        if constexpr (!O::CHANNELS) gates.decay[0] = step_get<decay, L::WIDE>(b.head(w.decay) + (first + p.lane) * w.decay.token);
    }
    if constexpr (O::CHANNELS) {
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++) {
            const uint32_t i = c * blockDim.x + threadIdx.x, token = i / O::K, channel = i % O::K;
            if (token < n)
                gates.decay[c] = step_get<decay, L::WIDE>(b.head(w.decay) + (first + token) * w.decay.token + channel * sizeof(decay));
        }
    }
}

template <class O, class L>
KERNEL_FN void step_fetch_parameters(step_parameters<O, L> &parameters, const step_words &w, const step_block<O> &b, const step_place<O, L> &p) {
    typedef typename O::bias::bits bias;
    if (!O::CHANNELS && p.warp != p.n_warps - 1) return;
    if constexpr (O::HAS_RATE) parameters.rate = step_get<typename O::rate::bits, L::WIDE>(b.head(w.decay_rate));
    if constexpr (O::HAS_BIAS)
        KERNEL_UNROLL for (int c = 0; c < step_asked_gates<O, L>::GATES; c++) {
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

/* A warp's token: q^ of q, two by two of the first 16 lanes, and k^ of k, of the others. */
template <class O, class L> KERNEL_FN void step_put_vectors(step_shared<O, L> &to, const float (&x)[L::CHUNKS][2], const step_place<O, L> &p) {
    float by = 1.0f;
    if constexpr (O::NORM != STEP_NORM_NONE) by = step_norm_factor<O>(step_square(x));
    float *y = (p.lane < 16 ? to.query[p.warp] : to.key[p.warp]) + p.lane % 16 * 2;
    KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++)
        KERNEL_UNROLL for (int i = 0; i < 2; i++) {
            const float normalised = __fmul_rn(x[c][i], by);
            y[c * 32 + i] = p.lane < 16 ? __fmul_rn(normalised, num_from_bits32(O::SCALE)) : normalised;
        }
}

template <class O, class L>
KERNEL_FN void step_put_gates(step_shared<O, L> &to, const step_asked_gates<O, L> &of, const step_parameters<O, L> &parameters, const step_place<O, L> &p,
                              uint32_t n) {
    if (p.warp == p.n_warps - 1 && p.lane < n) {
        if constexpr (O::CHANNELS) {
            to.beta[p.lane] = O::beta(of.update);
        } else {
            const step_gates gates = step_both<O>(of.update, of.decay[0], parameters.rate, parameters.bias[0]);
            to.beta[p.lane] = gates.beta;
            to.decay[p.lane][0] = gates.decay;
        }
    }
    if constexpr (O::CHANNELS) {
        KERNEL_UNROLL for (int c = 0; c < L::CHUNKS; c++) {
            const uint32_t i = c * blockDim.x + threadIdx.x, token = i / O::K, channel = i % O::K;
            if (token < n) to.decay[token][channel] = step_gate<O>(of.decay[c], parameters.rate, parameters.bias[c]);
        }
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
        u[r] = __fmul_rn(beta, __fsub_rn(of.value[token][p.row + r], m));
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

/* ---- States after a token ---- */

struct step_targets {
    char *state, *intermediate;                              /* NULL: none */
};

/* Where the state after token t goes: slot `last` (-1: none) if it is the last one, and wherever tables by token say. Without tokens t is 0. */
template <class O, class L>
KERNEL_FN step_targets step_targets_of(const step_words &w, const step_block<O> &b, uint32_t t, uint32_t run, int64_t last) {
    step_targets to = { t + 1 >= run && last >= 0 ? b.state(w.state, last, 0) : 0, 0 };
    if (run == 0) return to;
    if (w.write.n_columns > 0 && !w.state_is_kept) {
        if (t < w.write.n_columns) {
            const int64_t write = step_writable<O>(w, b, step_index<L::WIDE>(w.write, b.sequence, t));
            if (write >= 0) to.state = b.state(w.state, write, 0);
        } else {
            step_skip<O>(w, b);
        }
    }
    if (w.intermediate.data) {
        if (t < w.n_intermediate) to.intermediate = b.state(w.intermediate, b.sequence, t);
        else step_skip<O>(w, b);
    }
    return to;
}

/* The slot of a table of one axis, or the one that was read; -1: none. */
template <class O, class L> KERNEL_FN int64_t step_last_slot(const step_words &w, const step_block<O> &b, int64_t slot) {
    if (w.state_is_kept || w.write.n_columns > 0) return -1;
    return step_writable<O>(w, b, w.write.data ? step_index<L::WIDE>(w.write, b.sequence, 0) : slot);
}

template <class L> KERNEL_FN bool step_any_nan(const float (&o)[L::ROWS]) {
    bool any = false;
    KERNEL_UNROLL for (int r = 0; r < L::ROWS; r++) any |= o[r] != o[r];
    return any;
}

template <class O, class L>
KERNEL_FN void step_put_states(const float (&x)[L::ROWS][L::N], const step_targets &targets, const step_words &w, const step_place<O, L> &p, bool has_nan) {
    _Pragma("unroll 1") for (int which = 0; which < 2; which++) {
        char *to = which ? targets.intermediate : targets.state;
        if (to) step_store<O, L>(x, p, to, which ? w.intermediate.row : w.state.row, has_nan);
    }
}
