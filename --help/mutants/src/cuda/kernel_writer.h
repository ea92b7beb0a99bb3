/* What the writers of a kernel's text share; see kernel_text.c. */
#ifndef OL_CUDA_KERNEL_WRITER_H
#define OL_CUDA_KERNEL_WRITER_H

#include "cuda/kernel.h"

/* How a primitive is written that has a short evaluation (kernel_quick.h). */
typedef enum writer_quick {
    QUICK_SETTLED,                       /* what that leaves open is settled there and then */
    QUICK_TRIED,                         /* or noted in open[N] */
    QUICK_NOT                            /* it is not used */
} writer_quick;

typedef struct writer {
    const kernel *k;
    const graph *g;
    const program *p;
    text *t;
    uint8_t *needed;                     /* by instruction: in the loop over rows, not only inside of a hoisted value */
    uint64_t *parts_of;                  /* by instruction: the hoistable values that it is a part of, by their bits */
    int loads_first;                     /* all loads come before what is computed, so that none waits for another's use */
    int hoisted_bits;                    /* of the integer that has a bit by hoistable value: 32 or 64 */
    writer_quick quick;
    const char *place;                   /* the macro that gives a tensor's place in a row */
    uint32_t *tree;                      /* by node: the mark of the tree that it was last found to be in */
    uint32_t mark;                       /* of the latest */
    uint32_t *instruction_of;            /* by node */
    uint32_t *stack;
} writer;

static inline const instruction *instruction_at(const writer *w, size_t i) { return &w->p->instructions[i]; }
static inline const node *node_at(const writer *w, uint32_t n) { return &w->g->nodes[n]; }

/* ---- kernel_statements.c ---- */

int writer_is_output(const writer *w, uint32_t n);
int writer_has_quick(const writer *w);
const char *writer_type(const instruction *in);          /* of an element */

void put_constants(writer *w);
void put_parameter(writer *w, const instruction *in, const char *qualifier);
void put_declaration(writer *w, const instruction *in, const char *prefix, int indent);      /* a value's name is prefix and node */
void put_load(writer *w, const instruction *in, const char *prefix, const char *row, int indent);
void put_statement(writer *w, const instruction *in, int indent);                            /* gives a declared value its elements */

/* ---- kernel_text.c ---- */

int writer_is_early(const writer *w, size_t i);          /* a load that comes before what is computed */
int writer_is_value(const writer *w, size_t i);          /* of a row, not a constant nor only a part of something hoistable */
void put_early_loads(writer *w, const char *prefix, const char *row, const char *kept, int indent);
void put_values(writer *w, int indent);                  /* all others, in order */
void put_stores(writer *w, const char *mapped, int indent);
void put_views(writer *w, const char *mapped);           /* and a thread's place in the group */
void put_columns(writer *w, const char *far, int indent);
void put_columns_opening(writer *w);                     /* of the function that has the loops, down to that over columns */

/* ---- kernel_ahead.c: the functions of a kernel that is `ahead` ---- */

void put_ahead(writer *w);

#endif
