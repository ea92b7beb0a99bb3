/* The kernels of one SIMD level: for each primitive and operand dtype, a loop over contiguous elements.
 *
 * Each level compiles the same body (kernels_body.h) with its own flags into a table with internal linkage; nothing is
 * shared between the objects of two levels, so the linker can never give one level another's instructions.
 *
 * A kernel takes n >= 0 elements; pointers are aligned to their element size; `out` is disjoint from an operand or exactly
 * it (same address and same element size). Operands a primitive does not have are ignored. The caller has put the
 * floating-point environment in its default state. A kernel's result for an element depends on that element alone. */
#ifndef OL_CPU_KERNELS_H
#define OL_CPU_KERNELS_H

#include "onelaunch.h"
#include "primitives.h"

typedef void (*kernel_fn)(void *out, const void *x, const void *y, const void *z, size_t n);

/* Nodes that one kernel computes, where nothing else reads what lies between: the outer ones of the decay factors of a gated
 * delta layer, which take most of its time. */
typedef enum fused_pattern {
    FUSED_SOFTPLUS_ADD,                    /* softplus(x + y) */
    FUSED_EXP_MULTIPLY,                    /* exp(x y), in float32 */
    FUSED_EXP_NEGATIVE_MULTIPLY,           /* exp(-(x y)), in float32 */
    FUSED_COUNT
} fused_pattern;

typedef struct kernel_table {
    /* Fills the level's tables; to be called once, before any kernel. NULL where it has none. */
    void (*prepare)(void);
    /* By the dtype of the operands as the kernel takes them (where: of its second and third; the first is bool). NULL where
     * the type rule brings operands to another dtype or refuses them. Predicates and comparisons write bool (0 or 1). */
    kernel_fn primitive[PRIMITIVE_COUNT][OL_DTYPE_COUNT];
    /* [from][to]; [d][d] copies, with canonical NaN (and bool as 0 or 1). */
    kernel_fn astype[OL_DTYPE_COUNT][OL_DTYPE_COUNT];
    /* By the dtype of the first operand; the second has the same, or is float32 where the pattern computes in that. NULL
     * where the nodes are computed one by one. */
    kernel_fn fused[FUSED_COUNT][OL_DTYPE_COUNT];
} kernel_table;

extern const kernel_table kernels_baseline;    /* every machine */
#if defined(__x86_64__)
extern const kernel_table kernels_avx2;        /* AVX2, FMA, F16C */
extern const kernel_table kernels_avx512;      /* AVX-512 F, BW, CD, DQ, VL */
#elif defined(__aarch64__)
extern const kernel_table kernels_neon;
#endif

#endif
