/* What a kernel's text stands on when the host's C++ compiler makes it (fake_nvrtc.c puts this before it): CUDA's qualifiers,
 * built-in variables and intrinsics, and a table entry for each kernel.
 *
 * Threads run one after another, block by block, on one thread of the host: a static serves as __shared__ variable, which the driver
 * exchanges where the blocks of a cluster take turns, and the driver's one structure says which thread it is. Defines and includes nothing named uint64_t or the like, as the texts do. */
#include "fake_image.h"

static const fake_host *fake_running;

#include "fake_assembly.h"

#define __global__ __attribute__((used))
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static
#define __restrict__ __restrict

typedef fake_place dim3;
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

#define gridDim (fake_running->grid)
#define blockDim (fake_running->block)
#define blockIdx (fake_running->block_index)
#define threadIdx (fake_running->thread_index)

static inline void __syncthreads() { fake_running->barrier(); }

/* All lanes of a warp: the only mask that kernels name. */
static inline float __shfl_xor_sync(unsigned mask, float x, int distance) {
    unsigned bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    bits = fake_running->exchange(bits, (unsigned)distance);
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

/* Threads run one at a time. */
static inline unsigned atomicAdd(unsigned *p, unsigned x) {
    unsigned old = *p;
    *p = old + x;
    return old;
}

template <class T> static inline T __ldcs(const T *p) { return *p; }
template <class T> static inline void __stcs(T *p, T x) { *p = x; }

extern "C" char __bss_start[] __attribute__((visibility("hidden")));
static inline unsigned long __cvta_generic_to_shared(const void *p) { return (unsigned long)((const char *)p - __bss_start); }

/* Each is one IEEE operation, rounded to nearest. */
static inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
static inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
static inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }

#define __builtin_assume(condition) ((void)0)
#define __isGlobal(p) 1

/* ---- Accesses: with the options of FAKE_CHECKS the compiler calls one of these before each ---- */

#ifdef FAKE_CHECKS
#define FAKE_HIDDEN extern "C" __attribute__((visibility("hidden"), no_sanitize("kernel-address"))) void
#define FAKE_ACCESS(n)                                                                       \
    FAKE_HIDDEN __asan_load##n##_noabort(const void *p) { fake_running->access(p, n, 0); }   \
    FAKE_HIDDEN __asan_store##n##_noabort(const void *p) { fake_running->access(p, n, 1); }
FAKE_ACCESS(1)
FAKE_ACCESS(2)
FAKE_ACCESS(4)
FAKE_ACCESS(8)
FAKE_ACCESS(16)
FAKE_HIDDEN __asan_loadN_noabort(const void *p, unsigned long n) { fake_running->access(p, n, 0); }
FAKE_HIDDEN __asan_storeN_noabort(const void *p, unsigned long n) { fake_running->access(p, n, 1); }
FAKE_HIDDEN __asan_handle_no_return() {}
#endif

/* ---- The table ---- */

template <int I, class First, class... Rest> struct fake_nth { typedef typename fake_nth<I - 1, Rest...>::type type; };
template <class First, class... Rest> struct fake_nth<0, First, Rest...> { typedef First type; };

template <class... A> struct fake_caller {
    static constexpr unsigned long sizes[sizeof...(A) + 1] = { sizeof(A)..., 0 };
    static constexpr unsigned long n_bytes = (sizeof(A) + ... + 0);

    /* Not checked: the parameters are the host's to read. */
    template <class... Done>
    __attribute__((no_sanitize("kernel-address"))) static void call(void (*kernel)(A...), void **parameters, const Done &...done) {
        constexpr int n = sizeof...(Done);
        if constexpr (n == sizeof...(A)) kernel(done...);
        else call(kernel, parameters, done..., *(const typename fake_nth<n, A...>::type *)parameters[n]);
    }
};

template <auto Kernel> struct fake_entry;
template <class... A, void (*Kernel)(A...)> struct fake_entry<Kernel> {
    static_assert(fake_caller<A...>::n_bytes <= FAKE_PARAMETER_BYTES, "Formal parameter space overflowed");
    static void thread(void **parameters) { fake_caller<A...>::call(Kernel, parameters); }
    static constexpr fake_kernel row(const char *name, int max_threads) {
        return { name, sizeof...(A), max_threads, fake_caller<A...>::sizes, thread };
    }
};

extern "C" const char __ehdr_start __attribute__((visibility("hidden"))), _end __attribute__((visibility("hidden")));
#define FAKE_TABLE(has_barriers, ...)                                               \
    static const fake_kernel fake_kernels[] = { __VA_ARGS__ {} };                   \
    extern "C" __attribute__((visibility("default"))) const fake_image fake_this_image; \
    const fake_image fake_this_image = { fake_kernels, has_barriers, &__ehdr_start, &_end, __bss_start, &fake_running };
