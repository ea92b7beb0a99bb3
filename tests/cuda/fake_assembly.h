/* The instructions of PTX that kernels write as assembly, by name: fake_compile.c makes `r = fake_rcp_approx_ftz_f32(x)` of
 * `asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x))`. What is defined of them: the PTX reference. */
#ifndef FAKE_ASSEMBLY_H
#define FAKE_ASSEMBLY_H

/* Where the hardware is only so good, results must not depend on how good it is: x (1 + e), |e| <= 2^-20, e as good as random. */
static inline double fake_vague(double x, unsigned long long bits) {
    bits = (bits ^ bits >> 29) * 0x9e3779b97f4a7c15ull;
    return x + x * ((double)(int)(bits >> 32) * 0x1p-51);
}

/* |e| < 2^-21, rounding to float32 included. */
static inline float fake_ex2_approx_ftz_f32(float x) {
    unsigned bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    if (x != x) return x;
    double exact = x > 128 ? __builtin_inf() : x < -150 ? 0 : __builtin_exp2((double)x);
    float r = (float)((fake_vague(exact, bits) - exact) * 0.3125 + exact);
    return exact > 0x1p128 ? __builtin_inff() : r < 0x1p-126f ? 0 : r;
}

static inline float fake_rcp_approx_ftz_f32(float x) {
    unsigned bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000) == 0) return __builtin_copysignf(__builtin_inff(), x);
    float r = (float)fake_vague(1.0 / x, bits);
    return __builtin_fabsf(r) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : r;
}

static inline double fake_upper_half(double x) {
    unsigned long long bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    bits &= 0xffffffff00000000ull;
    __builtin_memcpy(&x, &bits, sizeof bits);
    return x;
}

/* Reads and writes the upper half of a double. */
static inline double fake_rcp_approx_ftz_f64(double x) {
    unsigned long long bits;
    if (__builtin_fabs(x) < 0x1p-1022) return __builtin_copysign(__builtin_inf(), x);
    x = fake_upper_half(x);
    __builtin_memcpy(&bits, &x, sizeof bits);
    double r = fake_upper_half(fake_vague(1.0 / x, bits));
    return __builtin_fabs(r) < 0x1p-1022 ? __builtin_copysign(0.0, x) : r;
}

/* The significand as an integer, rounded to even by adding and taking off 2^52. */
static inline unsigned short fake_cvt_rn_f16_f32(float x) {
    unsigned short sign = __builtin_signbit(x) ? 0x8000 : 0;
    double magnitude = __builtin_fabs((double)x), unit = 0x1p-24;
    if (x != x) return 0x7fff;
    if (magnitude >= 65520.0) return sign | 0x7c00;
    unsigned exponent = 0;
    while (magnitude >= 2048 * unit) unit *= 2, exponent++;
    unsigned significand = (unsigned)(magnitude / unit + 0x1p52 - 0x1p52);
    return (unsigned short)(sign + (exponent << 10) + significand);
}

static inline unsigned long long fake_cvta_param_u64(unsigned long long x) { return x; }

static inline float fake_cvt_f32_f16(unsigned short x) {
    unsigned exponent = x >> 10 & 31, significand = x & 1023;
    float magnitude = exponent ? (float)(1024 + significand) * 0x1p-24f : (float)significand * 0x1p-24f;
    for (unsigned e = 1; e < exponent; e++) magnitude *= 2;
    if (exponent == 31) magnitude = significand ? __builtin_nanf("") : __builtin_inff();
    return x & 0x8000 ? -magnitude : magnitude;
}

/* The second is the lower half. */
static inline unsigned fake_cvt_rn_bf16x2_f32(float high, float low) {
    float both[2] = { low, high };
    unsigned pair = 0;
    for (int i = 0; i < 2; i++) {
        unsigned bits;
        __builtin_memcpy(&bits, &both[i], sizeof bits);
        pair |= (both[i] != both[i] ? 0x7fffu : (bits + 0x7fff + (bits >> 16 & 1)) >> 16) << i * 16;
    }
    return pair;
}

static inline unsigned fake_cvt_rn_f16x2_f32(float high, float low) {
    return fake_cvt_rn_f16_f32(low) | (unsigned)fake_cvt_rn_f16_f32(high) << 16;
}

/* Of clusters: shared memory is named by its place in the image's, and by the block's rank above. */
static inline void fake_barrier_cluster_arrive_release() { fake_running->cluster_arrive(); }
static inline void fake_barrier_cluster_arrive_relaxed() { fake_running->cluster_arrive(); }
static inline void fake_barrier_cluster_wait_acquire() { fake_running->cluster_wait(); }
static inline unsigned fake_mapa_shared__cluster_u32(unsigned own, unsigned rank) { return own | rank << FAKE_SHARED_BITS; }
static inline void fake_st_shared__cluster_f32(unsigned at, float x) {
    unsigned bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    fake_running->cluster_store(at, bits);
}

#endif
