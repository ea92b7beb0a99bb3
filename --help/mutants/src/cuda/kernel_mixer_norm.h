/* The mixer step's norm: of o, which all blocks of a head have whole, 32 rows of a token a warp. */

/* What a row's n is multiplied by, as it is loaded and as numbers. */
template <class O> struct mixer_asked_factors {
    typename O::gain::bits weight;
    typename O::z::bits gate;
};
struct mixer_factors {
    float weight, gate;
};

/* 32 rows of a token of the chunk; tokens of several such are side by side. */
template <class O, class L> struct mixer_item {
    uint32_t token, row, v;                                  /* row: of the block's */
    bool is_inside;
};

template <class O, class L> KERNEL_FN mixer_item<O, L> mixer_item_of(const step_place<O, L> &p, uint32_t number) {
    const uint32_t rows = mixer_rows<O, L>(p), per_token = (rows + 31) / 32;
    mixer_item<O, L> i;
    i.token = number / per_token;
    i.row = number % per_token * 32 + p.lane;
    i.v = mixer_first_row<O, L>(p) + i.row;
    i.is_inside = i.row < rows && i.v < O::V;
    return i;
}

template <class O, class L>
KERNEL_FN void mixer_fetch_factors(mixer_asked_factors<O> &x, const mixer_words &w, const step_block<O> &b, const mixer_item<O, L> &i, int64_t first) {
    typedef typename O::z::bits z;
    if (!i.is_inside) return;
    x.weight = step_get<typename O::gain::bits, L::WIDE>((const char *)w.norm_weight.data + i.v * w.norm_weight.channel);
    if constexpr (O::GATE != MIXER_NONE)
        x.gate = step_get<z, L::WIDE>((const char *)w.gate.data + (first + i.token) * w.gate.outer + b.key_head * w.gate.key + b.member * w.gate.member +
                                      i.v * (uint32_t)sizeof(z));
}

template <class O> KERNEL_FN mixer_factors mixer_factors_of(const mixer_asked_factors<O> &x) {
    mixer_factors y = { O::gain::widen(x.weight), 1.0f };
    if constexpr (O::GATE == MIXER_SILU) {
        y.gate = mixer_silu(O::z::widen(x.gate));
    } else if constexpr (O::GATE == MIXER_SIGMOID) {
        float from[1] = { O::z::widen(x.gate) }, to[1];
        kernel_sigmoid_f32(to, from);
        y.gate = to[0];
    }
    return y;
}

/* dot(o, o): a lane has one of the 32 sums, and every lane gets the result. */
template <int V> KERNEL_FN float mixer_square(const float *o, uint32_t lane) {
    float sum = 0.0f;
    KERNEL_UNROLL for (int v = 0; v < V; v += 32) {
        const float x = V % 32 == 0 || v + lane < V ? o[v + lane] : 0.0f;
        sum = __fmaf_rn(x, x, sum);
    }
    KERNEL_UNROLL for (int d = 1; d < 32; d *= 2) sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, d));
    return sum;
}

/* `o` is the token's, `outputs` its head's. */
template <class O, class L> KERNEL_FN void mixer_finish(const float *o, char *outputs, const mixer_item<O, L> &i, const mixer_factors &by, uint32_t lane) {
    typedef typename O::output::bits bits;
    const float mean = __fdiv_rn(mixer_square<O::V>(o, lane), (float)O::V);
    const float r = step_rsqrt(__fadd_rn(mean, num_from_bits32(O::NORM_EPSILON)));
    if (!i.is_inside) return;
    float y = mixer_round<O, O::NORMALIZED_ROUNDED>(__fmul_rn(o[i.v], r));
    y = mixer_round<O, O::WEIGHTED_ROUNDED>(__fmul_rn(y, by.weight));
    if constexpr (O::GATE != MIXER_NONE) y = __fmul_rn(y, by.gate);
    step_put<bits, L::WIDE>(outputs + i.v * (uint32_t)sizeof(bits), O::output::narrow(y));
}
