/* Results of 16-bit functions of one operand, looked up in long runs.
 *
 * A function has 65,536 results, 128 KiB, and two loads and a store are less work than most functions' arithmetic. Once a
 * function has computed as many elements as its table has, in runs that are long enough to keep the table in a cache, each
 * further run of that kind also fills a part of the table, by the same kernel, until all parts are there; then runs are looked
 * up. So nothing that is computed a few times pays for a table, no replay is held up by more than its own length again,
 * and an entry is right because the kernel is; it does not matter which SIMD level's, since all give the same bits.
 *
 * Memory is static, and touched only by the tables that are filled: nothing is allocated by a replay, nothing can fail. Threads
 * take parts without waiting for each other. A process that forks while a part is being filled may leave the child without
 * that table, which then computes. */
#ifndef OL_CPU_TABLE16_H
#define OL_CPU_TABLE16_H

#include "cpu/kernels.h"

/* Those that some level has in a table (kernels_table16.h). */
#define TABLE16_FUNCTIONS(M)                                                                                                  \
    M(floor) M(ceil) M(round) M(square) M(sqrt) M(reciprocal) M(rsqrt) M(exp) M(exp2) M(expm1) M(log) M(log2) M(log10)        \
    M(log1p) M(sigmoid) M(softplus) M(silu) M(tanh) M(sin) M(cos) M(tan) M(sinh) M(cosh) M(arcsin) M(arccos) M(arctan)        \
    M(arcsinh) M(arccosh) M(arctanh) M(erf) M(erfinv)

typedef enum table16_id {
#define TABLE16_IDS(name) TABLE16_##name##_f16, TABLE16_##name##_bf16,
    TABLE16_FUNCTIONS(TABLE16_IDS)
#undef TABLE16_IDS
    TABLE16_COUNT
} table16_id;

#define TABLE16_LEAST_RUN 512

/* A table has so many entries more, of no meaning, which a gather may read with the last one. */
#define TABLE16_PADDING 2

/* out[i] = table[x[i]]; out may be x. */
typedef void (*table16_look_up)(const uint16_t *table, void *out, const void *x, size_t n);

/* As the kernel `computed` would; out and x as for a kernel. */
void table16_run(table16_id id, kernel_fn computed, table16_look_up look_up, void *out, const void *x, size_t n);

/* Empties all tables, as if the process had just begun: for proofs of one level's kernels after another's. While no kernel runs. */
void table16_forget(void);

#endif
