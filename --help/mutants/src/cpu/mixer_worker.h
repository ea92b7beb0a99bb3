/* A thread's part of a mixer step: the worker of the recurrence, what it takes and gives being floats of this one's. */
#ifndef OL_MIXER_WORKER_H
#define OL_MIXER_WORKER_H

#include "cpu/delta_worker.h"
#include "gated_delta/mixer.h"

enum { MIXER_HEAD_FLOATS = 2048 };     /* v, or o, of so many tokens as fit: 16 of 128 */

/* Lives on a task's stack: some 80 KiB. */
typedef struct mixer_worker {
    delta_worker delta;
    const mixer_call *call;
    int row_floats;                    /* of a token's v, and of its o: value_dim rounded up to DELTA_SUMS */
    _Alignas(64) float values[MIXER_HEAD_FLOATS], outputs[MIXER_HEAD_FLOATS];
    _Alignas(64) float inputs[MIXER_MAX_WIDTH][OL_DELTA_MAX_DIM], weights[MIXER_MAX_WIDTH][OL_DELTA_MAX_DIM], bias[OL_DELTA_MAX_DIM];
    _Alignas(64) float norm_weight[OL_DELTA_MAX_DIM], gate[OL_DELTA_MAX_DIM];
} mixer_worker;

void mixer_worker_begin(mixer_worker *m, const mixer_call *call);
/* Value heads [first, end) of a sequence, in the order of key heads and members. */
void mixer_worker_run(mixer_worker *m, const delta_sequence *s, int64_t first, int64_t end);

/* delta.c: the items of a step over the threads, those of a mixer step if there is one; whether there was anything to do. And the outputs of
 * padding, whether there were any. */
int delta_run(const delta_call *call, const mixer_call *mixer);
int delta_zero_padding(const delta_call *call);

/* mixer_window.c: windows after the step, once nobody reads them any more; whether any was written. */
int mixer_write_windows(const mixer_call *call);

#endif
