/* Gates under test: a composite of some options run on elements, at every SIMD level and by both paths, against the reference. */
#ifndef OL_GATE_RUNS_H
#define OL_GATE_RUNS_H

#include "gate_reference.h"

/* n elements, input by input, each n long. */
typedef struct gate_elements {
    gate_dtypes dtypes;
    size_t n;
    gate_element *at;                    /* owned */
} gate_elements;

gate_elements gate_elements_make(gate_dtypes dtypes, size_t n);
void gate_elements_free(gate_elements *e);

typedef struct gate_outputs { void *beta, *log_decay, *decay; } gate_outputs;       /* NULL: not asked for */

/* Compiles for these dtypes, or fails the test. */
ol_composite *gate_composite(ol_device *device, const ol_gate_options *options, const gate_dtypes *dtypes);
/* How many inputs and outputs; sets the composite's tensors from those of all four inputs (three outputs), in its order. */
int32_t gate_pick_inputs(const ol_gate_options *options, const ol_tensor all[4], ol_tensor picked[4]);
int32_t gate_pick_outputs(const ol_gate_options *options, const ol_tensor all[3], ol_tensor picked[3]);

/* Fails unless every level and path gives the reference's bits for all elements; a replay is one launch. `what` is for messages. Returns
 * the number of results compared. */
size_t gate_check(const ol_gate_options *options, const gate_elements *elements, const char *what);

/* Options as words, for messages. Static storage. */
const char *gate_describe(const ol_gate_options *options);

/* Options that mean something, at random. */
ol_gate_options gate_random_options(uint64_t *random);

#endif
