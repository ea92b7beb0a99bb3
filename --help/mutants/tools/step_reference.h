/* The formulas of a layer's decoding in float64, and how far results may be from them.
 *
 * Two evaluations of the same formulas from the same files: `exact` rounds nothing, `rounded` rounds to the activations' dtype wherever
 * transformers puts a tensor of that dtype between two operations, and nowhere else. Their distance is the noise that this dtype makes in this
 * layer on these inputs: a property of the model, not of anybody's result. Written from the formulas, of no code of the library's. */
#ifndef ONELAUNCH_TOOLS_STEP_REFERENCE_H
#define ONELAUNCH_TOOLS_STEP_REFERENCE_H

#include "floats.h"
#include "step_layers.h"

/* Of core, output and state, in their shapes; the window needs no arithmetic. */
typedef struct step_values {
    double *result[STEP_WINDOW];
    double *convolved;                 /* [tokens, C]: what the convolution gives, q, then k, then v of all heads */
} step_values;

/* False where memory ran out. Free the values also then. */
bool step_evaluate(const step_layer *layer, bool rounded, step_values *values);
void step_values_free(step_values *values);

/* A distance of many numbers, in units (step_compare). */
typedef struct step_distance {
    double rms, max;
} step_distance;

typedef struct step_difference {
    bool present;                      /* the file has this result */
    int64_t n, n_same;                 /* of n values so many are the same number on both sides */
    int64_t n_not_finite;              /* so many are infinite or NaN, on a side or by the formulas: no distance, and not within anything */
    step_distance ours, theirs, noise; /* ours from theirs, theirs from exact, rounded from exact */
    double worst;                      /* the largest distance of ours from theirs against the group's noise and one unit */
    bool within;
} step_difference;

/* Compares a result with transformers'. Groups of `group` neighbours are what is rounded together: a head's vector, a head's state. The unit of a
 * value is the spacing of `format` at it, or at the root mean square of its group (by the formulas) where that is larger: what cancels to
 * nearly nothing has the noise of what it was made of.
 *
 * ours is within the noise of rounding if its distance from theirs has no larger root mean square than the noise, and if no value is farther than the
 * largest noise of its group and one unit, by which two roundings of nearly the same number may differ. */
void step_compare(const float_format *format, const float_format *ours_format, const void *ours, const float_format *theirs_format, const void *theirs,
                  const double *exact, const double *rounded, int64_t n, int64_t group, step_difference *difference);

#endif
