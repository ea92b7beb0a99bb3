/* One SIMD level's kernels: a loop for every primitive and dtype, and their table. Included by kernels_<level>.c, which
 * defines KERNELS_TABLE and is compiled with that level's flags.
 *
 * The loops are made from primitives.def: its type rule says which dtypes a primitive has, its arity which loop. All of them
 * are plain loops around the scalar functions of src/numerics, which the compiler vectorises: `omp simd` states that the
 * elements do not depend on each other, which holds for exact aliasing too (element i is read before it is written), so no
 * run-time overlap check and no second, scalar version of the loop is made.
 *
 * A primitive and dtype with a loop of its own has a macro KERNEL_OWN_<primitive>_<dtype> (kernels_own.h). */
#include "kernels.h"
#include "../numerics/numerics.h"

#include <string.h>

/* An operand may alias the output under another type of the same size (astype in place). */
#define KERNEL_ALIAS __attribute__((__may_alias__))
typedef uint8_t KERNEL_ALIAS t_b8;
typedef uint8_t KERNEL_ALIAS t_u8;
typedef uint16_t KERNEL_ALIAS t_u16;
typedef uint32_t KERNEL_ALIAS t_u32;
typedef uint64_t KERNEL_ALIAS t_u64;
typedef int8_t KERNEL_ALIAS t_i8;
typedef int16_t KERNEL_ALIAS t_i16;
typedef int32_t KERNEL_ALIAS t_i32;
typedef int64_t KERNEL_ALIAS t_i64;
typedef uint16_t KERNEL_ALIAS t_f16;
typedef uint16_t KERNEL_ALIAS t_bf16;
typedef float KERNEL_ALIAS t_f32;

#define DTYPE_b8 OL_BOOL
#define DTYPE_u8 OL_UINT8
#define DTYPE_u16 OL_UINT16
#define DTYPE_u32 OL_UINT32
#define DTYPE_u64 OL_UINT64
#define DTYPE_i8 OL_INT8
#define DTYPE_i16 OL_INT16
#define DTYPE_i32 OL_INT32
#define DTYPE_i64 OL_INT64
#define DTYPE_f16 OL_FLOAT16
#define DTYPE_bf16 OL_BFLOAT16
#define DTYPE_f32 OL_FLOAT32

#define KERNEL_LOOP _Pragma("omp simd") for (size_t i = 0; i < n; i++)
#define KERNEL_EACH(n) _Pragma("omp simd") for (int i = 0; i < (n); i++)
#define KERNEL_ARGUMENTS void *out, const void *x, const void *y, const void *z, size_t n

#include "kernels_own.h"
#include "kernels_fused.h"

/* ---- Loops by arity -------------------------------------------------------------------------------------------------- */

#define LOOP_1(name, dt, rt)                                                                                                  \
    static void loop_##name##_##dt(KERNEL_ARGUMENTS) {                                                                        \
        t_##rt *result = out;                                                                                                 \
        const t_##dt *a = x;                                                                                                  \
        (void)y, (void)z;                                                                                                     \
        KERNEL_LOOP result[i] = num_##name##_##dt(a[i]);                                                                      \
    }

#define LOOP_2(name, dt, rt)                                                                                                  \
    static void loop_##name##_##dt(KERNEL_ARGUMENTS) {                                                                        \
        t_##rt *result = out;                                                                                                 \
        const t_##dt *a = x, *b = y;                                                                                          \
        (void)z;                                                                                                              \
        KERNEL_LOOP result[i] = num_##name##_##dt(a[i], b[i]);                                                                \
    }

/* Integer powers: as many steps as the exponent has bits, which no compiler makes vectors of; clang warns where `omp simd` asks for
 * it (-Wpass-failed), and gcc's loop is the same without. */
#define LOOP_2_PLAIN(name, dt, rt)                                                                                            \
    static void loop_##name##_##dt(KERNEL_ARGUMENTS) {                                                                        \
        t_##rt *result = out;                                                                                                 \
        const t_##dt *a = x, *b = y;                                                                                          \
        (void)z;                                                                                                              \
        for (size_t i = 0; i < n; i++) result[i] = num_##name##_##dt(a[i], b[i]);                                             \
    }
#define KERNEL_OWN_power_u8 ~, LOOP_2_PLAIN
#define KERNEL_OWN_power_u16 ~, LOOP_2_PLAIN
#define KERNEL_OWN_power_u32 ~, LOOP_2_PLAIN
#define KERNEL_OWN_power_u64 ~, LOOP_2_PLAIN
#define KERNEL_OWN_power_i8 ~, LOOP_2_PLAIN
#define KERNEL_OWN_power_i16 ~, LOOP_2_PLAIN
#define KERNEL_OWN_power_i32 ~, LOOP_2_PLAIN
#define KERNEL_OWN_power_i64 ~, LOOP_2_PLAIN

#define LOOP_3(name, dt, rt)                                                                                                  \
    static void loop_##name##_##dt(KERNEL_ARGUMENTS) {                                                                        \
        t_##rt *result = out;                                                                                                 \
        const t_##dt *a = x, *b = y, *c = z;                                                                                  \
        KERNEL_LOOP result[i] = num_##name##_##dt(a[i], b[i], c[i]);                                                          \
    }

#define LOOP_WHERE(name, dt, rt)                                                                                              \
    static void loop_##name##_##dt(KERNEL_ARGUMENTS) {                                                                        \
        t_##rt *result = out;                                                                                                 \
        const t_b8 *condition = x;                                                                                            \
        const t_##dt *b = y, *c = z;                                                                                          \
        KERNEL_LOOP result[i] = num_##name##_##dt(condition[i], b[i], c[i]);                                                  \
    }

/* KERNEL_OWN_<primitive>_<dtype> is `~, KERNEL_NONE` where that loop is in kernels_own.h; undefined, it leaves LOOP second. */
#define KERNEL_NONE(name, dt, rt)
#define KERNEL_SECOND(first, second, ...) second
#define KERNEL_PICK(...) KERNEL_SECOND(__VA_ARGS__, ~)
#define LOOP(arity, name, dt, rt) KERNEL_PICK(KERNEL_OWN_##name##_##dt, LOOP_##arity)(name, dt, rt)

/* ---- Dtypes by rule: M(arity, name, dtype, result) ------------------------------------------------------------------ */

#define EACH_FLOAT(M, arity, name) M(arity, name, f16, f16) M(arity, name, bf16, bf16) M(arity, name, f32, f32)
#define EACH_INTEGER(M, arity, name)                                                                                          \
    M(arity, name, u8, u8) M(arity, name, u16, u16) M(arity, name, u32, u32) M(arity, name, u64, u64)                         \
    M(arity, name, i8, i8) M(arity, name, i16, i16) M(arity, name, i32, i32) M(arity, name, i64, i64)
#define EACH_BITS(M, arity, name) M(arity, name, b8, b8) EACH_INTEGER(M, arity, name)
#define EACH_NUMERIC(M, arity, name) EACH_BITS(M, arity, name) EACH_FLOAT(M, arity, name)
#define EACH_TO_BOOL(M, arity, name)                                                                                          \
    M(arity, name, b8, b8) M(arity, name, u8, b8) M(arity, name, u16, b8) M(arity, name, u32, b8) M(arity, name, u64, b8)      \
    M(arity, name, i8, b8) M(arity, name, i16, b8) M(arity, name, i32, b8) M(arity, name, i64, b8)                            \
    M(arity, name, f16, b8) M(arity, name, bf16, b8) M(arity, name, f32, b8)

#define RULE_EACH_NUMERIC(M, arity, name) EACH_NUMERIC(M, arity, name)
#define RULE_EACH_FLOAT(M, arity, name) EACH_FLOAT(M, arity, name)
#define RULE_EACH_PREDICATE(M, arity, name) EACH_TO_BOOL(M, arity, name)
#define RULE_EACH_COMPARE(M, arity, name) EACH_TO_BOOL(M, arity, name)
#define RULE_EACH_LOGICAL(M, arity, name) M(arity, name, b8, b8)
#define RULE_EACH_BITS(M, arity, name) EACH_BITS(M, arity, name)
#define RULE_EACH_SHIFT(M, arity, name) EACH_INTEGER(M, arity, name)
#define RULE_EACH_WHERE(M, arity, name) EACH_NUMERIC(M, WHERE, name)

#define PRIMITIVE(name, arity, rule, cost) RULE_EACH_##rule(LOOP, arity, name)
#include "../primitives.def"
#undef PRIMITIVE

/* ---- astype ---------------------------------------------------------------------------------------------------------- */

#define EACH_DTYPE(M, from)                                                                                                   \
    M(from, b8) M(from, u8) M(from, u16) M(from, u32) M(from, u64) M(from, i8) M(from, i16) M(from, i32) M(from, i64)         \
    M(from, f16) M(from, bf16) M(from, f32)
#define EACH_PAIR(M)                                                                                                          \
    EACH_DTYPE(M, b8) EACH_DTYPE(M, u8) EACH_DTYPE(M, u16) EACH_DTYPE(M, u32) EACH_DTYPE(M, u64) EACH_DTYPE(M, i8)            \
    EACH_DTYPE(M, i16) EACH_DTYPE(M, i32) EACH_DTYPE(M, i64) EACH_DTYPE(M, f16) EACH_DTYPE(M, bf16) EACH_DTYPE(M, f32)

#define LOOP_CONVERT_1(name, to, from)                                                                                        \
    static void loop_##name##_##to(KERNEL_ARGUMENTS) {                                                                        \
        t_##to *result = out;                                                                                                 \
        const t_##from *a = x;                                                                                                \
        (void)y, (void)z;                                                                                                     \
        KERNEL_LOOP result[i] = num_##name##_##to(a[i]);                                                                      \
    }
#define CONVERT(from, to) KERNEL_PICK(KERNEL_OWN_astype_##from##_##to, LOOP_CONVERT_1)(astype_##from, to, from)
EACH_PAIR(CONVERT)

/* ---- The table -------------------------------------------------------------------------------------------------------- */

#include "kernels_table16.h"

#define PRIMITIVE(name, arity, rule, cost) RULE_EACH_##rule(TABLED, arity, name)
#include "../primitives.def"
#undef PRIMITIVE

#define ENTRY(arity, name, dt, rt) [PRIMITIVE_##name][DTYPE_##dt] = KERNEL_NAME(name, dt),
#define ENTRY_ASTYPE(from, to) [DTYPE_##from][DTYPE_##to] = loop_astype_##from##_##to,

#if !defined(KERNELS_PREPARE)
#define KERNELS_PREPARE NULL
#endif

const kernel_table KERNELS_TABLE = {
    .prepare = KERNELS_PREPARE,
    .primitive = {
#define PRIMITIVE(name, arity, rule, cost) RULE_EACH_##rule(ENTRY, arity, name)
#include "../primitives.def"
#undef PRIMITIVE
    },
    .astype = { EACH_PAIR(ENTRY_ASTYPE) },
    .fused = { FUSED_TABLE },
};
