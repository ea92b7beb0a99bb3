/* The float32 primitives of num_quick64.h on the elements of a thread: the few that the short evaluation leaves open are done again by
 * num_<name>_f32, which is called, so that its text is compiled once and its registers do not count against the short one's. */

#define KERNEL_QUICK(name)                                                                                                    \
    static __device__ __noinline__ float kernel_exact_##name(float x) { return num_##name##_f32(x); }                         \
    template <int N> KERNEL_FN void kernel_##name##_f32(float (&y)[N], const float (&x)[N]) {                                 \
        uint32_t open = 0;                                                                                                    \
        KERNEL_UNROLL for (int i = 0; i < N; i++) {                                                                           \
            num_quick32 quick = num_##name##_quick32(x[i]);                                                                   \
            y[i] = quick.value;                                                                                               \
            open |= quick.open >> 31 << i;                                                                                    \
        }                                                                                                                     \
        if (open) {                                                                                                           \
            KERNEL_UNROLL for (int i = 0; i < N; i++) if (open >> i & 1) y[i] = kernel_exact_##name(x[i]);                    \
        }                                                                                                                     \
    }

KERNEL_QUICK(exp)
KERNEL_QUICK(exp2)
KERNEL_QUICK(sigmoid)
KERNEL_QUICK(silu)
KERNEL_QUICK(softplus)
KERNEL_QUICK(log)

/* The bfloat16 primitives of kernel_bf16.h, likewise. */
#define KERNEL_NEAR(name)                                                                                                     \
    static __device__ __noinline__ uint16_t kernel_exact_##name##_bf16(uint16_t x) { return num_##name##_bf16(x); }           \
    template <int N> KERNEL_FN void kernel_##name##_bf16(uint16_t (&y)[N], const uint16_t (&x)[N]) {                          \
        bool open = false;                                                                                                    \
        KERNEL_UNROLL for (int i = 0; i < N; i++) {                                                                           \
            const float wide = num_widen_bf16(x[i]);                                                                          \
            y[i] = kernel_narrow_bf16(kernel_near_##name(wide));                                                              \
            open |= !(wide >= KERNEL_BF16_LEAST(name));                                                                       \
        }                                                                                                                     \
        if (open) {                                                                                                           \
            KERNEL_UNROLL for (int i = 0; i < N; i++)                                                                         \
                if (!(num_widen_bf16(x[i]) >= KERNEL_BF16_LEAST(name))) y[i] = kernel_exact_##name##_bf16(x[i]);              \
        }                                                                                                                     \
    }

KERNEL_NEAR(exp)
KERNEL_NEAR(exp2)
KERNEL_NEAR(sigmoid)
KERNEL_NEAR(softplus)
