/* The loops of functions.h at one SIMD level. Included by functions_<level>.c, which defines FUNCTIONS and is compiled with that
 * level's flags; functions_baseline.c also has glibc's scalar functions. Sigmoid and softplus, which none of them has, are what a
 * user would write with their exp and log1p. */
#include "functions.h"

#include <math.h>
#include <sleef.h>

#if defined(__AVX512F__)
typedef __m512 vector;
#define SLEEF(name) Sleef_##name##f16_u10avx512f
#define SLEEF_HYPOT Sleef_hypotf16_u05avx512f
#define LIBMVEC(shape, name) _ZGVeN16##shape##_##name##f
#elif defined(__AVX2__)
typedef __m256 vector;
#define SLEEF(name) Sleef_##name##f8_u10avx2
#define SLEEF_HYPOT Sleef_hypotf8_u05avx2
#define LIBMVEC(shape, name) _ZGVdN8##shape##_##name##f
#else
typedef __m128 vector;
#define SLEEF(name) Sleef_##name##f4_u10sse2
#define SLEEF_HYPOT Sleef_hypotf4_u05sse2
#define LIBMVEC(shape, name) _ZGVbN4##shape##_##name##f
#endif
enum { LANES = sizeof(vector) / sizeof(float) };
typedef vector __attribute__((__aligned__(4), __may_alias__)) unaligned;

#define EACH_VECTOR for (size_t i = 0; i < n; i += LANES)
#define LOAD(p) (*(const unaligned *)((p) + i))
#define LOOP(id, EXPRESSION)                                                                                                  \
    static void loop_##id(float *out, const float *x, const float *y, size_t n) {                                             \
        (void)y;                                                                                                              \
        EACH_VECTOR {                                                                                                         \
            vector a = LOAD(x);                                                                                               \
            *(unaligned *)(out + i) = EXPRESSION;                                                                             \
        }                                                                                                                     \
    }
#define LOOP_2(id, EXPRESSION)                                                                                                \
    static void loop_##id(float *out, const float *x, const float *y, size_t n) {                                             \
        EACH_VECTOR {                                                                                                         \
            vector a = LOAD(x), b = LOAD(y);                                                                                  \
            *(unaligned *)(out + i) = EXPRESSION;                                                                             \
        }                                                                                                                     \
    }

/* Primitive, the C library's name. */
#define UNARY(M)                                                                                                              \
    M(exp, exp) M(exp2, exp2) M(expm1, expm1) M(log, log) M(log2, log2) M(log10, log10) M(log1p, log1p) M(sin, sin)           \
    M(cos, cos) M(tan, tan) M(arcsin, asin) M(arccos, acos) M(arctan, atan) M(sinh, sinh) M(cosh, cosh) M(tanh, tanh)         \
    M(arcsinh, asinh) M(arccosh, acosh) M(arctanh, atanh) M(erf, erf)
#define BINARY(M) M(power, pow) M(arctan2, atan2) M(hypot, hypot)

#define VECTOR_OF(x) ((vector){ 0 } + (x))
#define NEGATIVE(x) (-(x))

#define SLEEF_1(primitive, name) LOOP(sleef_##primitive, SLEEF(name)(a))
UNARY(SLEEF_1)
LOOP_2(sleef_power, SLEEF(pow)(a, b))
LOOP_2(sleef_arctan2, SLEEF(atan2)(a, b))
LOOP_2(sleef_hypot, SLEEF_HYPOT(a, b))
LOOP(sleef_sigmoid, VECTOR_OF(1.0f) / (VECTOR_OF(1.0f) + SLEEF(exp)(NEGATIVE(a))))
LOOP(sleef_silu, a / (VECTOR_OF(1.0f) + SLEEF(exp)(NEGATIVE(a))))
LOOP(sleef_softplus, SLEEF(log1p)(SLEEF(exp)(a)))                /* overflows; the stable form costs more */

#if defined(HAS_MVEC)
#define DECLARE_1(primitive, name) vector LIBMVEC(v, name)(vector);
#define DECLARE_2(primitive, name) vector LIBMVEC(vv, name)(vector, vector);
UNARY(DECLARE_1)
BINARY(DECLARE_2)
#define MVEC_1(primitive, name) LOOP(mvec_##primitive, LIBMVEC(v, name)(a))
#define MVEC_2(primitive, name) LOOP_2(mvec_##primitive, LIBMVEC(vv, name)(a, b))
UNARY(MVEC_1)
BINARY(MVEC_2)
LOOP(mvec_sigmoid, VECTOR_OF(1.0f) / (VECTOR_OF(1.0f) + LIBMVEC(v, exp)(NEGATIVE(a))))
LOOP(mvec_silu, a / (VECTOR_OF(1.0f) + LIBMVEC(v, exp)(NEGATIVE(a))))
LOOP(mvec_softplus, LIBMVEC(v, log1p)(LIBMVEC(v, exp)(a)))
#define MVEC_ENTRY(primitive, name) { #primitive, "libmvec", loop_mvec_##primitive },
#endif

#if !defined(__AVX__)
#define SCALAR(id, EXPRESSION)                                                                                                \
    static void loop_glibc_##id(float *out, const float *x, const float *y, size_t n) {                                       \
        (void)y;                                                                                                              \
        for (size_t i = 0; i < n; i++) out[i] = EXPRESSION;                                                                   \
    }
#define SCALAR_1(primitive, name) SCALAR(primitive, name##f(x[i]))
#define SCALAR_2(primitive, name) SCALAR(primitive, name##f(x[i], y[i]))
UNARY(SCALAR_1)
BINARY(SCALAR_2)
SCALAR(sigmoid, 1 / (1 + expf(-x[i])))
SCALAR(silu, x[i] / (1 + expf(-x[i])))
SCALAR(softplus, log1pf(expf(x[i])))
#define SCALAR_ENTRY(primitive, name) { #primitive, "glibc", loop_glibc_##primitive },
#endif

#define SLEEF_ENTRY(primitive, name) { #primitive, "SLEEF", loop_sleef_##primitive },
#define OWN(M) M(sigmoid, -) M(silu, -) M(softplus, -)

const function_peer FUNCTIONS[] = {
    UNARY(SLEEF_ENTRY) BINARY(SLEEF_ENTRY) OWN(SLEEF_ENTRY)
#if defined(HAS_MVEC)
    UNARY(MVEC_ENTRY) BINARY(MVEC_ENTRY) OWN(MVEC_ENTRY)
#endif
#if !defined(__AVX__)
    UNARY(SCALAR_ENTRY) BINARY(SCALAR_ENTRY) OWN(SCALAR_ENTRY)
#endif
    { NULL, NULL, NULL },
};
