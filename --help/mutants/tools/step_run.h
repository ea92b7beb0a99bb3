/* A layer's decoding on a device: all its tokens in calls of so many tokens each, from a state and a window of zeros. */
#ifndef ONELAUNCH_TOOLS_STEP_RUN_H
#define ONELAUNCH_TOOLS_STEP_RUN_H

#include "step_layers.h"

typedef struct step_machine step_machine;

/* What a run gave, in the host's memory; NULL where the part does not compute it. */
typedef struct step_results {
    void *data[STEP_RESULTS];
} step_results;

typedef struct step_count {
    uint64_t calls, launches;
    double seconds_per_token;          /* of the best of several runs */
} step_count;

/* Makes what is run of a layer, its inputs where the device computes. `convolved`, [tokens, channels] in float64, is what the recurrence part takes for
 * q, k and v, rounded to the activations' dtype. */
bool step_machine_make(ol_device *device, const step_layer *layer, enum step_part part, const double *convolved, step_machine **machine, st_error *error);
void step_machine_free(step_machine *machine);             /* NULL is allowed */

/* Runs all tokens once into results that step_results_make made. The mixer's own launches give the output; core is what the mixer without its
 * norm gives, in a run of its own that count leaves out. */
bool step_machine_run(step_machine *machine, int64_t tokens_per_call, const step_results *results, step_count *count, st_error *error);
/* Sets seconds_per_token. */
bool step_machine_time(step_machine *machine, int64_t tokens_per_call, step_count *count, st_error *error);

bool step_results_make(const step_layer *layer, enum step_part part, step_results *results);
void step_results_free(step_results *results);
/* Whether all of them have the same bits. */
bool step_results_equal(const step_layer *layer, const step_results *x, const step_results *y);

#endif
