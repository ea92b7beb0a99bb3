/* A scalar reference interpreter: a graph, node by node and element by element, by the numerical contract alone.
 *
 * Floats go through MPFR: each result is the exact one (or, for the functions that MPFR lacks, an enclosure narrow enough to
 * decide) rounded once to the node's dtype. Integers are plain C on 128 bits. Nothing of src/numerics is used.
 *
 * float32 logaddexp, power and arctan2 are promised within 0.5001 ulp only. Where the exact result is so close to the middle of two floats that
 * either is allowed, the value has another one beside it, and what is computed from it is uncertain and not to be compared. */
#ifndef OL_REFERENCE_H
#define OL_REFERENCE_H

#include "graph.h"

typedef struct reference_value {
    uint64_t bits;
    uint64_t other;                      /* the same bits, as a rule: the other ones that are allowed */
    int uncertain;                       /* computed from a value that may be either of two */
} reference_value;

static inline int reference_allows(reference_value v, uint64_t bits)
{
    return v.uncertain || bits == v.bits || bits == v.other;
}

/* One primitive on operands of one dtype (where: bool, then that dtype). */
reference_value reference_primitive(int32_t primitive, ol_dtype dtype, const reference_value *operands);
reference_value reference_astype(ol_dtype from, ol_dtype to, reference_value x);

/* Evaluates the graph for these inputs. results[i] gets output i's elements in row-major order, to be freed by the caller.
 * False where memory ran out or the shapes do not broadcast. */
int reference_run(const graph *g, const ol_tensor *inputs, reference_value **results);
/* Frees what MPFR keeps. */
void reference_end(void);

#endif
