/* Primitives that have a short evaluation, on the elements of a thread. kernel_try_<name>_<dtype> notes which elements that leaves
 * open; kernel_<name>_<dtype> gives those what num_<name>_<dtype> gives, which is called, so that its text is compiled once and its
 * registers do not count against the short one's. */

/* The last parameters: results y and arguments x. */
#define KERNEL_SETTLED(name, dt, T, ...)                                                                                      \
    static __device__ __noinline__ T kernel_exact_##name##_##dt(T x) { return num_##name##_##dt(x); }                         \
    template <int N> KERNEL_FN void kernel_##name##_##dt(__VA_ARGS__) {                                                       \
        bool open[N] = {}, any = false;                                                                                       \
        kernel_try_##name##_##dt(y, x, open);                                                                                 \
        KERNEL_UNROLL for (int i = 0; i < N; i++) any |= open[i];                                                             \
        if (any) {                                                                                                            \
            KERNEL_UNROLL for (int i = 0; i < N; i++) if (open[i]) kernel_replace(y, i, kernel_exact_##name##_##dt(x[i]));    \
        }                                                                                                                     \
    }

/* float32: kernel_float32.h. */
#define KERNEL_QUICK(name)                                                                                                    \
    template <int N> KERNEL_FN void kernel_try_##name##_f32(float (&y)[N], const float (&x)[N], bool (&open)[N]) {           \
        KERNEL_UNROLL for (int i = 0; i < N; i++) {                                                                           \
            kernel_quick32 quick = kernel_quick_##name(x[i]);                                                                 \
            y[i] = quick.value;                                                                                               \
            open[i] |= quick.open;                                                                                            \
        }                                                                                                                     \
    }                                                                                                                         \
    KERNEL_SETTLED(name, f32, float, float (&y)[N], const float (&x)[N])

KERNEL_QUICK(exp)
KERNEL_QUICK(exp2)
KERNEL_QUICK(sigmoid)
KERNEL_QUICK(silu)
KERNEL_QUICK(softplus)
KERNEL_QUICK(log)

/* bfloat16: kernel_bf16.h. */
#define KERNEL_NEAR(name)                                                                                                     \
    template <int N>                                                                                                          \
    KERNEL_FN void kernel_try_##name##_bf16(kernel_halves<uint16_t, N> &y, const kernel_halves<uint16_t, N> &x, bool (&open)[N]) { \
        float wide[N];                                                                                                        \
        KERNEL_UNROLL for (int i = 0; i < N; i++) {                                                                           \
            wide[i] = kernel_near_##name(num_widen_bf16(x[i]));                                                               \
            open[i] |= kernel_is_open_##name(num_widen_bf16(x[i]));                                                           \
        }                                                                                                                     \
        kernel_narrow_all_bf16(y, wide);                                                                                      \
    }                                                                                                                         \
    KERNEL_SETTLED(name, bf16, uint16_t, kernel_halves<uint16_t, N> &y, const kernel_halves<uint16_t, N> &x)

KERNEL_NEAR(exp)
KERNEL_NEAR(exp2)
KERNEL_NEAR(sigmoid)
KERNEL_NEAR(softplus)
