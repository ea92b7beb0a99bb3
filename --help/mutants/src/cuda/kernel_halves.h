/* The N values of a thread of a dtype of 16 bits: two to a word, as in memory, so that loads, stores and copies move words. Of an odd N
 * the last half is no value's. */
template <class T, int N> struct kernel_halves {
    uint32_t words[(N + 1) / 2];

    __device__ __forceinline__ T operator[](int i) const { return (T)(uint16_t)(words[i / 2] >> i % 2 * 16); }
};

/* Gives the elements their values: in ascending order, each once. */
template <class T, int N> KERNEL_FN void kernel_set(kernel_halves<T, N> &x, int i, T value) {
    if (i % 2) x.words[i / 2] |= (uint32_t)(uint16_t)value << 16;
    else x.words[i / 2] = (uint16_t)value;
}
template <class T, int N> KERNEL_FN void kernel_set(T (&x)[N], int i, T value) { x[i] = value; }

/* Another value for one of them. */
template <class T, int N> KERNEL_FN void kernel_replace(kernel_halves<T, N> &x, int i, T value) {
    x.words[i / 2] = (x.words[i / 2] & 0xffff0000u >> i % 2 * 16) | (uint32_t)(uint16_t)value << i % 2 * 16;
}
template <class T, int N> KERNEL_FN void kernel_replace(T (&x)[N], int i, T value) { x[i] = value; }

/* Narrows two by two, a NaN to any NaN: for results that are made canonical afterwards, and arithmetic that no output shows, since
 * every primitive takes any NaN for one. */
#define KERNEL_HALVES(dt)                                                                                                     \
    template <int N> KERNEL_FN void kernel_narrow_all_##dt(kernel_halves<uint16_t, N> &y, const float (&x)[N]) {              \
        KERNEL_UNROLL for (int i = 0; i < N; i += 2)                                                                          \
            y.words[i / 2] = kernel_narrow_pair_##dt(x[i], i + 1 < N ? x[(i + 1) % N] : 0.0f);                                \
    }                                                                                                                         \
    KERNEL_HALVES_2(add, +, dt)                                                                                               \
    KERNEL_HALVES_2(subtract, -, dt)                                                                                          \
    KERNEL_HALVES_2(multiply, *, dt)

#define KERNEL_HALVES_2(name, operation, dt)                                                                                  \
    template <int N>                                                                                                          \
    KERNEL_FN void kernel_##name##_##dt(kernel_halves<uint16_t, N> &y, const kernel_halves<uint16_t, N> &x,                   \
                                        const kernel_halves<uint16_t, N> &z) {                                                \
        float wide[N];                                                                                                        \
        KERNEL_UNROLL for (int i = 0; i < N; i++) wide[i] = num_widen_##dt(x[i]) operation num_widen_##dt(z[i]);              \
        kernel_narrow_all_##dt(y, wide);                                                                                      \
    }

KERNEL_HALVES(f16)
KERNEL_HALVES(bf16)
