/* Random valid cases: a graph, its inputs and where its outputs go, all from one seed. Public header only.
 *
 * A case is adversarial on purpose. Graphs: every primitive, conversion and broadcast, several outputs of different shape and
 * dtype, outputs that are inputs, constants or one value twice. Tensors: rank 0 to 8, extents of 0 and 1 and around tile and
 * vector widths, inputs of lower rank or the same for every row, any strides, misaligned, in place, interleaved. Values:
 * special ones, subnormals, ties, random bits.
 *
 * The generator predicts the dtype and shape of every value by its own reading of the rules. Where the library disagrees the
 * case fails to compile or to replay, so the prediction is itself a test.
 *
 * All tensors of a case lie in one arena with filler between them. A run works on a copy of the arena; comparing whole arenas
 * compares results, and finds a byte written anywhere else, gaps between strided elements and the inputs included. */
#ifndef ONELAUNCH_TOOLS_GENERATE_H
#define ONELAUNCH_TOOLS_GENERATE_H

#include <onelaunch.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct generate_limits {
    int64_t max_elements;              /* of one tensor, about */
    int64_t min_elements;              /* of a family's full shape; at most half of the former. 0: also scalars and empty ones */
    int32_t max_steps;
    int32_t max_tensors;               /* inputs, and outputs */
} generate_limits;

typedef enum generated_kind { STEP_INPUT, STEP_CONSTANT, STEP_PRIMITIVE, STEP_ASTYPE, STEP_BROADCAST_LIKE, STEP_BROADCAST_TO } generated_kind;

/* A value of the graph; the first n_inputs are the inputs. */
typedef struct generated_value {
    generated_kind kind;
    int32_t primitive;
    uint32_t operands[3];
    uint64_t bits;                     /* of a constant */
    ol_dtype dtype;
    int32_t family;                    /* values of different families never meet; -1: constants, which meet all */
    int32_t rank;
    int64_t shape[OL_MAX_RANK];
} generated_value;

typedef struct generated {
    uint64_t seed;
    uint64_t state;                    /* of the random numbers */
    generate_limits limits;
    generated_value *values;
    size_t n_values, values_capacity;
    int32_t n_inputs, n_outputs, n_families;
    bool tidy;                         /* all tensors contiguous and aligned, inputs whole or rows: what most programs have */
    int32_t family_rank[3];            /* each family's full shape, to which all its values broadcast */
    int64_t family_shape[3][OL_MAX_RANK];
    ol_dtype *input_dtypes;
    uint32_t *outputs;                 /* value indices */
    ol_tensor *tensors;                /* inputs, then outputs; data NULL */
    int64_t *offsets;                  /* by tensor: of element (0, …, 0) in the arena; -1: the tensor is empty and has no data */
    unsigned char *arena;              /* inputs filled in, filler elsewhere */
    size_t arena_bytes;
} generated;

/* NULL where memory ran out. */
generated *generate_case(uint64_t seed, const generate_limits *limits);
void generate_free(generated *c);      /* NULL is allowed */

/* The builder that traces the case's graph; the case must outlive it. Compile it for c->input_dtypes. */
ol_builder generate_builder(const generated *c);
/* The case's tensors with their data in this arena: n_inputs + n_outputs of them. */
void generate_bind(const generated *c, unsigned char *arena, ol_tensor *tensors);
/* Whether some value of the graph may be empty. */
bool generate_has_empty(const generated *c);
/* A tensor's element by its row-major number: its address. */
const unsigned char *generate_element(const ol_tensor *t, int64_t index);
/* Dtypes, shapes, strides and where in-place outputs lie. */
void generate_describe(const generated *c, FILE *stream);

/* splitmix64, and 0 <= result < n. */
uint64_t generate_next(uint64_t *state);
uint64_t generate_below(uint64_t *state, uint64_t n);
bool generate_chance(uint64_t *state, int percent);
/* The bits of an adversarial value of a dtype. */
uint64_t generate_bits(uint64_t *state, ol_dtype dtype);
/* The special ones among them, to be had in all pairs: how many there are, and each one's bits. */
size_t generate_special_count(ol_dtype dtype);
uint64_t generate_special(ol_dtype dtype, size_t index);

/* generate_tensors.c: shapes of families, then layouts and data once the graph is there. */
void generate_family_shape(generated *c, int32_t family);
void generate_input_shape(generated *c, generated_value *v);
bool generate_tensors(generated *c);

#endif
