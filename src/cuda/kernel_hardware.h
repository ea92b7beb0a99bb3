/* What the numerics let a GPU do in its own instructions: quotients by the approximate reciprocal, which Newton's steps make
 * good whatever it was, what is proven for all that an approximation may give (kernel_bf16.h), and conversions, which the PTX
 * reference defines by IEEE 754.
 *
 * All the assembly of kernels is here, each a value of x in r, but a hint and what concerns clusters. kernel_architecture is the compiler's macro, which is not known
 * where this is preprocessed: the text begins with it (kernel_text.c). */

/* 1 / x, within 2^-20 of itself as the PTX reference has it. */
KERNEL_FN float kernel_seed32(float x) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

/* 2^x, within 2^-21 of itself, half of which the PTX reference has; 0 for a subnormal. */
KERNEL_FN float kernel_power32(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

KERNEL_FN double kernel_seed64(double x) {
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    return r;
}

/* x / y, y and the quotient normal numbers well within the range. After the residual's step (Markstein) it is the quotient rounded
 * to nearest, but where that is within 2^-20 units of halfway between two float32. */
KERNEL_FN float kernel_quotient32(float x, float y) {
    float r = kernel_seed32(y);
    r = __fmaf_rn(r, __fmaf_rn(-y, r, 1.0f), r);
    float q = x * r;
    return __fmaf_rn(r, __fmaf_rn(-y, q, x), q);
}

/* The same within a few units in the last place: for evaluations with a rounding test. */
KERNEL_FN double kernel_quotient64(double x, double y) {
    double r = kernel_seed64(y);
    r = __fma_rn(r, __fma_rn(-y, r, 1.0), r);
    r = __fma_rn(r, __fma_rn(-y, r, 1.0), r);
    return x * r;
}

/* To nearest, ties to even, subnormals kept; of no NaN. */
KERNEL_FN uint16_t kernel_narrow_f16(float x) {
    uint16_t r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
    return r;
}

KERNEL_FN float kernel_widen_f16(uint16_t x) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x));
    return r;
}

/* As the upper one of a pair: where it is widened again, that costs nothing. */
KERNEL_FN uint16_t kernel_narrow_bf16(float x) {
    uint32_t r;
    if (kernel_architecture >= 800) {
        asm("cvt.rn.bf16x2.f32 %0, %1, 0f00000000;" : "=r"(r) : "f"(x));
        __builtin_assume((r & 0xffffu) == 0);
    } else {
        union { float f; uint32_t u; } cast;
        cast.f = x;
        r = cast.u + 0x7fffu + ((cast.u >> 16) & 1u);
    }
    return (uint16_t)(r >> 16);
}

/* Two that may be NaN, the first in the lower half. */
KERNEL_FN uint32_t kernel_narrow_pair_bf16(float low, float high) {
    uint32_t r;
    if (kernel_architecture >= 800) {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    } else {
        r = low == low ? kernel_narrow_bf16(low) : 0x7fc0u;
        r |= (high == high ? (uint32_t)kernel_narrow_bf16(high) : 0x7fc0u) << 16;
    }
    return r;
}

KERNEL_FN uint32_t kernel_narrow_pair_f16(float low, float high) {
    uint32_t r;
    if (kernel_architecture >= 800) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    else r = kernel_narrow_f16(low) | (uint32_t)kernel_narrow_f16(high) << 16;
    return r;
}

/* A hint that the line at p will be read. */
KERNEL_FN void kernel_bring(const char *p) { asm volatile("prefetch.global.L2 [%0];" : : "l"(p)); }

/* Blocks of a cluster run at once and reach each other's shared memory. There are none below sm_90. Their barrier in two halves: what a thread has
 * written before it arrives, all of the cluster see after they have waited. */
KERNEL_FN void kernel_cluster_arrive() {
    if (kernel_architecture >= 900) asm volatile("barrier.cluster.arrive.release;" : : : "memory");
}

/* The same of a thread that has written nothing for the others. The first one, after which shared memory of the others may be written, needs no more. */
KERNEL_FN void kernel_cluster_begin() {
    if (kernel_architecture >= 900) asm volatile("barrier.cluster.arrive.relaxed;" : : : "memory");
}

KERNEL_FN void kernel_cluster_wait() {
    if (kernel_architecture >= 900) asm volatile("barrier.cluster.wait.acquire;" : : : "memory");
}

/* To a variable in shared memory as the cluster's block of this rank has it. */
KERNEL_FN void kernel_cluster_store(float *p, uint32_t rank, float x) {
    if (kernel_architecture >= 900) {
        const uint32_t own = (uint32_t)__cvta_generic_to_shared(p);
        uint32_t at;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(own), "r"(rank));
        asm volatile("st.shared::cluster.f32 [%0], %1;" : : "r"(at), "f"(x) : "memory");
    }
}

/* A parameter's place as an address that functions can be passed. Compilers do that by themselves, but NVRTC 13.0 forgot it where
 * an address went only to functions; so no address that it knows to be a parameter's goes to a function that is not inlined. */
KERNEL_FN const uint64_t *kernel_generic(uint64_t x) {
    uint64_t r;
    asm("cvta.param.u64 %0, %1;" : "=l"(r) : "l"(x));
    return (const uint64_t *)r;
}

#define NUM_QUOTIENT32(x, y) kernel_quotient32(x, y)
#define NUM_QUOTIENT64(x, y) kernel_quotient64(x, y)
#define NUM_NARROW_NUMBER_F16(x) kernel_narrow_f16(x)
#define NUM_NARROW_NUMBER_BF16(x) kernel_narrow_bf16(x)
#define NUM_WIDEN_F16(x) kernel_widen_f16(x)
