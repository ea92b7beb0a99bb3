/* The gated-delta step where every sequence has one token and its state stays in its slot: what decoding is. It is what step_run does of
 * that, without what more tokens and their tables take: half as many instructions stand between the launch and its loads, which is most
 * of the time that few sequences take, and a thread needs fewer registers, so that more of them have loads on their way. */

/* All is asked for before anything is waited for but the slot; the state first, which is most of it. Where there are several warps, the first one
 * prepares q and k, and the last one the gates. */
template <class O, class L> KERNEL_FN void step_decode(const step_words &w) {
    __shared__ step_shared<O, L> shared;
    const uint32_t part = blockIdx.x / (uint32_t)O::HEADS, head = blockIdx.x % (uint32_t)O::HEADS, sequence = blockIdx.z * gridDim.y + blockIdx.y;
    const step_block<O> b = { head / (uint32_t)O::RATIO, head % (uint32_t)O::RATIO, sequence, blockIdx.x == 0 };
    const step_place<O, L> p = step_place_of<O, L>(part);
    if (sequence >= w.n_sequences) return;
    int64_t slot = sequence;
    step_stored<O, L> stored = {};
    step_ahead<O, L> ahead = {};
    step_parameters<O, L> parameters = {};
    if (w.read.data) slot = step_index<L::WIDE>(w.read, sequence, 0);
    else step_load<O, L>(stored, p, b.state(w.state, sequence, 0), w.state.row);
    if (p.warp == 0) step_fetch_vectors<O, L>(ahead, w, b, p, sequence);
    step_fetch_gates<O, L>(ahead.gates, w, b, p, sequence, 1);
    step_fetch_parameters<O, L>(parameters, w, b, p);
    step_fetch_values<O, L>(ahead, w, b, p, sequence, 1);
    if (w.read.data) {
        if (step_is_padding<O>(slot)) {
            if constexpr (O::ZERO_PADDING) step_put_zeros<O, L>(w, b, p, sequence, sequence, (int64_t)sequence + 1);
            return;
        }
        if (slot < 0 || slot >= w.n_slots) {
            step_skip<O>(w, b);
            return;
        }
        step_load<O, L>(stored, p, b.state(w.state, slot, 0), w.state.row);
    }
    step_prepare<O, L>(shared, ahead, parameters, p, 1);
    __syncthreads();
    float x[L::ROWS][L::N], o[L::ROWS];
    step_widen<O, L>(x, stored);
    step_token<O, L>(x, o, shared, 0, p);
    step_put_outputs<O, L>(o, p, (char *)b.head(w.output) + sequence * w.output.token);
    step_store<O, L>(x, p, b.state(w.state, slot, 0), w.state.row, step_any_nan<L>(o));
}
