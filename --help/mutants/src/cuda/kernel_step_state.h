/* The state of the gated-delta step on a GPU: how a thread holds its part of it, and how that comes from memory and goes there.
 *
 * A warp has STEP_LANES lanes for a row of the state (a row is one v, its elements are over k), each with 32 / STEP_LANES of the 32
 * partial sums of the documented order: those of neighbours, k mod 32. So the sums of a thread are added as neighbours, those of
 * lanes by exchanging with the lane 1, 2, 4 ... away, and the tree is the documented one whatever the number of lanes. A thread has
 * ROWS rows, side by side.
 *
 *     [V, K] in memory     the sums' neighbours are one piece of memory: 4 of float32, 8 of 16 bits, are 16 bytes
 *     [K, V]               the thread's rows are: lanes that share k are side by side
 *
 * O is the layer's constants and gates, which its text declares (step_text.c); L is a step_layout. */

/* Floats as they are stored, and pairs of them in words. */
struct step_float32 {
    typedef float bits;
    enum { PER_WORD = 1 };
    KERNEL_FN float widen(float x) { return x; }
    KERNEL_FN float narrow(float x) { return num_canonical32(x); }
    KERNEL_FN float of_word(uint32_t word, int) { return num_from_bits32(word); }
    KERNEL_FN uint32_t to_word(float x, float) { return num_bits32(x); }
};
struct step_bfloat16 {
    typedef uint16_t bits;
    enum { PER_WORD = 2 };
    KERNEL_FN float widen(uint16_t x) { return num_widen_bf16(x); }
    KERNEL_FN uint16_t narrow(float x) { return num_narrow_bf16(x); }
    KERNEL_FN float of_word(uint32_t word, int half) { return num_from_bits32(half ? word & 0xffff0000u : word << 16); }
    KERNEL_FN uint32_t to_word(float x, float y) { return kernel_narrow_pair_bf16(x, y); }
};
struct step_float16 {
    typedef uint16_t bits;
    enum { PER_WORD = 2 };
    KERNEL_FN float widen(uint16_t x) { return num_widen_f16(x); }
    KERNEL_FN uint16_t narrow(float x) { return num_narrow_f16(x); }
    KERNEL_FN float of_word(uint32_t word, int half) { return num_widen_f16((uint16_t)(half ? word >> 16 : word)); }
    KERNEL_FN uint32_t to_word(float x, float y) { return kernel_narrow_pair_f16(x, y); }
};

template <class O, int STEP_LANES, int STEP_ROWS, bool STEP_WIDE, int STEP_GROUPS = 1, int STEP_TOKENS = 8> struct step_layout {
    enum {
        LANES = STEP_LANES,
        ROWS = STEP_ROWS,
        WIDE = STEP_WIDE,                                    /* pieces of up to 16 bytes, all aligned; else one element at a time, at any address */
        GROUPS = STEP_GROUPS,                                /* of rows, one after the other in the same threads */
        TOKENS = STEP_TOKENS,                                /* at most, of a chunk */
        SUMS = 32 / LANES,
        CHUNKS = (O::K + 31) / 32,
        PADDED = CHUNKS * 32,                                /* K as the sums see it */
        N = CHUNKS * SUMS,                                   /* elements of a thread's row */
        SIDE = 32 / LANES,                                   /* lanes that are not for the same row */
        WARP_ROWS = SIDE * ROWS,
        PIECE = O::KEY_MAJOR ? ROWS : SUMS,                  /* elements side by side */
        PIECES = ROWS * N / PIECE,
        PIECE_WORDS = WIDE ? PIECE / O::state::PER_WORD : PIECE,
        DISTANCE = O::KEY_MAJOR ? SIDE : 1                   /* to the next lane of a row */
    };
};

/* Where a thread is in its block, and its part of the state. */
template <class O, class L> struct step_place {
    uint32_t lane, warp, n_warps;
    uint32_t part;                                           /* of the row, below LANES: k mod 32 is part * SUMS + i */
    uint32_t in_warp;                                        /* the thread's first row in its warp's */
    uint32_t row;                                            /* and of the block's, */
    uint32_t v;                                              /* and of all */
};

template <class O, class L> KERNEL_FN step_place<O, L> step_place_of(uint32_t block_part) {
    step_place<O, L> p;
    p.lane = threadIdx.x % 32;
    p.warp = threadIdx.x / 32;
    p.n_warps = blockDim.x / 32;
    p.part = O::KEY_MAJOR ? p.lane / L::SIDE : p.lane % L::LANES;
    p.in_warp = (O::KEY_MAJOR ? p.lane % L::SIDE : p.lane / L::LANES) * L::ROWS;
    p.row = p.warp * L::WARP_ROWS + p.in_warp;
    p.v = (block_part * p.n_warps + p.warp) * L::WARP_ROWS + p.in_warp;
    return p;
}

/* ---- Memory ---- */

/* At any address: seldom, so called, which keeps texts small. */
template <class T> KERNEL_CALLED T step_get_any(const char *p) { return kernel_get<T>(p); }
template <class T> KERNEL_CALLED void step_put_any(char *p, T x) { kernel_put<T>(p, x); }

template <class T, bool ALIGNED> KERNEL_FN T step_get(const char *p) {
    if constexpr (!ALIGNED) {
        return step_get_any<T>(p);
    } else {
        __builtin_assume(__isGlobal(p));
        return *(const T *)p;
    }
}

template <class T, bool ALIGNED> KERNEL_FN void step_put(char *p, T x) {
    if constexpr (!ALIGNED) {
        step_put_any<T>(p, x);
    } else {
        __builtin_assume(__isGlobal(p));
        *(T *)p = x;
    }
}

/* WORDS words of the state, which is read once and written once: not kept in caches. */
template <int WORDS> KERNEL_FN void step_get_words(uint32_t *x, const char *p) {
    __builtin_assume(__isGlobal(p));
    if constexpr (WORDS % 4 == 0) {
        KERNEL_UNROLL for (int i = 0; i < WORDS; i += 4) {
            const uint4 four = __ldcs((const uint4 *)p + i / 4);
            x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
        }
    } else if constexpr (WORDS == 2) {
        const uint2 two = __ldcs((const uint2 *)p);
        x[0] = two.x, x[1] = two.y;
    } else {
        x[0] = __ldcs((const uint32_t *)p);
    }
}

template <int WORDS> KERNEL_FN void step_put_words(char *p, const uint32_t *x) {
    __builtin_assume(__isGlobal(p));
    if constexpr (WORDS % 4 == 0) {
        KERNEL_UNROLL for (int i = 0; i < WORDS; i += 4) {
            const uint4 four = { x[i], x[i + 1], x[i + 2], x[i + 3] };
            __stcs((uint4 *)p + i / 4, four);
        }
    } else if constexpr (WORDS == 2) {
        const uint2 two = { x[0], x[1] };
        __stcs((uint2 *)p, two);
    } else {
        __stcs((uint32_t *)p, x[0]);
    }
}

/* ---- The state as it is stored: loaded at once, widened when it is needed ---- */

template <class O, class L> struct step_stored {
    uint32_t words[L::PIECES * L::PIECE_WORDS];
};

/* A piece is of one row and chunk, or of one k: its first row and k. */
template <class O, class L> KERNEL_FN uint32_t step_piece_row(int piece) { return O::KEY_MAJOR ? 0 : piece / L::CHUNKS; }
template <class O, class L> KERNEL_FN uint32_t step_piece_k(const step_place<O, L> &p, int piece) {
    const int chunk = O::KEY_MAJOR ? piece / L::SUMS : piece % L::CHUNKS, sum = O::KEY_MAJOR ? piece % L::SUMS : 0;
    return chunk * 32 + p.part * L::SUMS + sum;
}

/* `head` is where the head's states start, `row` the stride of v or, key-major, of k. */
template <class O, class L> KERNEL_FN void step_load(step_stored<O, L> &x, const step_place<O, L> &p, const char *head, int64_t row) {
    typedef typename O::state::bits bits;
    KERNEL_UNROLL for (int i = 0; i < L::PIECES; i++) {
        const uint32_t v = p.v + step_piece_row<O, L>(i), k = step_piece_k<O, L>(p, i);
        const char *at = head + (int64_t)(O::KEY_MAJOR ? k : v) * row + (O::KEY_MAJOR ? v : k) * (uint32_t)sizeof(bits);
        uint32_t *words = x.words + i * L::PIECE_WORDS;
        KERNEL_UNROLL for (int w = 0; w < L::PIECE_WORDS; w++) words[w] = 0;
        if constexpr (L::WIDE) {
            if (v < O::V && (O::K % 32 == 0 || k < O::K)) step_get_words<L::PIECE_WORDS>(words, at);
        } else {
            KERNEL_UNROLL for (int j = 0; j < L::PIECE; j++)
                if (v + (O::KEY_MAJOR ? j : 0) < O::V && k + (O::KEY_MAJOR ? 0 : j) < O::K) {
                    kernel_element<bits> element;
                    element.value = step_get_any<bits>(at + j * sizeof(bits));
                    words[j] = element.bits;
                }
        }
    }
}

template <class O, class L> KERNEL_FN void step_widen(float (&y)[L::ROWS][L::N], const step_stored<O, L> &x) {
    enum { PER_WORD = L::WIDE ? O::state::PER_WORD : 1 };
    KERNEL_UNROLL for (int r = 0; r < L::ROWS; r++)
        KERNEL_UNROLL for (int n = 0; n < L::N; n++) {
            const int piece = O::KEY_MAJOR ? n : r * L::CHUNKS + n / L::SUMS, j = O::KEY_MAJOR ? r : n % L::SUMS;
            y[r][n] = O::state::of_word(x.words[piece * L::PIECE_WORDS + j / PER_WORD], j % PER_WORD);
        }
}

/* A word of a piece that starts in row r, element n: its elements j and, of 16 bits, j + 1. A NaN is any NaN. */
template <class O, class L> KERNEL_FN uint32_t step_word(const float (&x)[L::ROWS][L::N], int r, int n, int j) {
    const float first = O::KEY_MAJOR ? x[j % L::ROWS][n] : x[r][(n + j) % L::N];
    const float second = O::state::PER_WORD == 1 ? 0.0f : O::KEY_MAJOR ? x[(j + 1) % L::ROWS][n] : x[r][(n + j + 1) % L::N];
    return O::state::to_word(first, second);
}

/* Makes each NaN canonical that the thread has stored: that is seldom, so it is done in memory, by little code. */
template <class O, class L> KERNEL_FN void step_mend(const step_place<O, L> &p, char *head, int64_t row) {
    typedef typename O::state::bits bits;
    _Pragma("unroll 1") for (uint32_t i = 0; i < L::ROWS * L::N; i++) {
        const uint32_t v = p.v + i / L::N, n = i % L::N, k = n / L::SUMS * 32 + p.part * L::SUMS + n % L::SUMS;
        char *at = head + (int64_t)(O::KEY_MAJOR ? k : v) * row + (O::KEY_MAJOR ? v : k) * (uint32_t)sizeof(bits);
        if (v < O::V && k < O::K) step_put<bits, L::WIDE>(at, O::state::narrow(O::state::widen(step_get<bits, L::WIDE>(at))));
    }
}

/* Rounded once. has_nan: whether there may be one. */
template <class O, class L>
KERNEL_FN void step_store(const float (&x)[L::ROWS][L::N], const step_place<O, L> &p, char *head, int64_t row, bool has_nan) {
    typedef typename O::state::bits bits;
    KERNEL_UNROLL for (int i = 0; i < L::PIECES; i++) {
        const int r = step_piece_row<O, L>(i), n = O::KEY_MAJOR ? i : i % L::CHUNKS * L::SUMS;
        const uint32_t v = p.v + r, k = step_piece_k<O, L>(p, i);
        char *at = head + (int64_t)(O::KEY_MAJOR ? k : v) * row + (O::KEY_MAJOR ? v : k) * (uint32_t)sizeof(bits);
        if constexpr (L::WIDE) {
            uint32_t words[L::PIECE_WORDS];
            KERNEL_UNROLL for (int w = 0; w < L::PIECE_WORDS; w++) words[w] = step_word<O, L>(x, r, n, w * O::state::PER_WORD);
            if (v < O::V && (O::K % 32 == 0 || k < O::K)) step_put_words<L::PIECE_WORDS>(at, words);
        } else {
            KERNEL_UNROLL for (int j = 0; j < L::PIECE; j++)
                if (v + (O::KEY_MAJOR ? j : 0) < O::V && k + (O::KEY_MAJOR ? 0 : j) < O::K)
                    step_put_any<bits>(at + j * sizeof(bits), O::state::narrow(O::KEY_MAJOR ? x[j % L::ROWS][n] : x[r][(n + j) % L::N]));
        }
    }
    if (L::WIDE && has_nan) step_mend<O, L>(p, head, row);
}

/* ---- Sums ---- */

/* The documented tree of a row's sums; every lane of the row gets the result. */
template <class L> KERNEL_FN float step_sum(float (&s)[L::SUMS]) {
    KERNEL_UNROLL for (int n = L::SUMS / 2; n > 0; n /= 2)
        KERNEL_UNROLL for (int i = 0; i < n; i++) s[i] = __fadd_rn(s[2 * i], s[2 * i + 1]);
    float sum = s[0];
    KERNEL_UNROLL for (int d = L::DISTANCE; d < L::DISTANCE * L::LANES; d *= 2) sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, d));
    return sum;
}

/* SUMS neighbours of what a block shares: aligned, 8 or 16 bytes at a time. */
template <int SUMS> KERNEL_FN void step_read(float (&x)[SUMS], const float *p) {
    typedef kernel_block<float, SUMS> block;
    block b;
    KERNEL_UNROLL for (int i = 0; i < block::PIECES; i++) b.pieces[i] = ((const kernel_piece<block::SIZE> *)p)[i];
    KERNEL_UNROLL for (int i = 0; i < SUMS; i++) x[i] = b.elements[i];
}
