/* A step with its tensors in guarded memory: made at random or by hand, copied, run, and compared byte for byte. */
#ifndef OL_STEP_CASE_H
#define OL_STEP_CASE_H

#include "harness.h"
#include "order.h"

enum { STEP_TENSORS = 16, STEP_OPERATIONS = 1000000 };

typedef struct step_case {
    ol_gated_delta_options options;
    ol_gated_delta_arguments arguments;
    void *memory[STEP_TENSORS];        /* of each tensor, guarded; NULL: not given */
    size_t n_bytes[STEP_TENSORS];
} step_case;

/* The tensors of the arguments by number, in the order of the struct. */
enum { AT_QUERY, AT_KEY, AT_VALUE, AT_UPDATE, AT_DECAY, AT_DECAY_RATE, AT_DECAY_BIAS, AT_OUTPUT, AT_STATE, AT_READ, AT_WRITE, AT_CU_SEQLENS,
       AT_HAS_INITIAL, AT_ACCEPTED, AT_COUNTS, AT_INTERMEDIATE };
ol_tensor *step_tensor(step_case *c, int number);

typedef enum step_layout {
    STEP_DENSE,
    STEP_STRIDED,                      /* gaps, outer axes in any order, and memory off alignment */
} step_layout;

/* Gives tensor `number` memory for this shape; its last axis is contiguous. Bytes between elements stay as guarded_alloc leaves them. */
void step_give(step_case *c, int number, ol_dtype dtype, int32_t rank, const int64_t *shape, step_layout layout, uint64_t *random);
void step_take_back(step_case *c, int number);

/* Values: usual ones are normal around 0, others zeros, subnormals, large ones, infinities and NaN among them. */
typedef enum step_values {
    STEP_USUAL,
    STEP_SPECIAL
} step_values;
void step_fill(step_case *c, int number, double mean, double deviation, step_values values, uint64_t *random);

/* The same of any tensor; the innermost first_moved axes stay where they are. And an element of a table. */
void tensor_give(ol_tensor *t, void **memory, size_t *n_bytes, ol_dtype dtype, int32_t rank, const int64_t *shape, step_layout layout, int32_t first_moved,
                 uint64_t *random);
void tensor_fill(const ol_tensor *t, double mean, double deviation, step_values values, uint64_t *random);
void tensor_write_whole(const ol_tensor *t, int64_t i, int64_t column, int64_t value);

/* Uniform in [0, 1), and normal. */
double step_uniform(uint64_t *random);
double step_normal(uint64_t *random);

/* N sequences of T tokens on a pool of slots, dense, no indices; the gates are computed. */
void step_case_of(step_case *c, const ol_gated_delta_options *options, int64_t n_sequences, int64_t n_tokens, int64_t slots, step_values values, uint64_t *random);
/* Decode of a usual layer: float32 all, gates computed, rsqrt norm, N sequences of T tokens on a pool of N slots, no indices. */
void step_usual(step_case *c, int key_heads, int ratio, int key_dim, int value_dim, int64_t n_sequences, int64_t n_tokens, uint64_t *random);
/* What geometry, options, dtypes, strides and indices there may be. */
void step_random(step_case *c, step_values values, uint64_t *random);

void step_copy(step_case *to, const step_case *from);
void step_free(step_case *c);          /* and checks the guards */

/* Makes a layer and runs it; the test fails where that does. */
void step_run(ol_device *device, const step_case *c);
ol_status step_try(ol_device *device, const step_case *c, ol_error *error);
/* Runs the documented order on it. */
void step_reference(const step_case *c);
/* Whether all tensors have equal bytes; else where they differ is printed. */
int step_equal(const step_case *a, const step_case *b);
/* A line that says what a case is. */
void step_print(const step_case *c);

#endif
