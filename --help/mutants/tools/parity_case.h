/* One generated case on several devices: everything that must be equal is compared, bit for bit. */
#ifndef ONELAUNCH_TOOLS_PARITY_CASE_H
#define ONELAUNCH_TOOLS_PARITY_CASE_H

#include "generate.h"

typedef struct parity_device {
    ol_device *device;
    const char *name;                  /* for messages: "cpu:avx2, 4 threads" */
    bool composed;                     /* run the composed path too, not the replay alone */
} parity_device;

typedef struct parity_tally {
    int64_t n_cases, n_replays, n_composed, n_elements;      /* elements: of outputs, compared once per run */
} parity_tally;

/* The first device's composed path is what all runs are held against: replay and composed path of each device, twice over
 * for replays (the second finds warm threads and workspaces). Also: a replay is one launch, a composed run is as many as
 * ol_composite_composed_launches says, and ol_output_shapes gives the predicted shapes.
 *
 * A GPU works on an arena of its own: the case's arena, filler included, is copied to it before each run, and all of it back
 * after.
 *
 * True where all is equal; *arena, if not NULL, then gets the arena with the results, to be freed by the caller. Otherwise
 * *failure gets a text, to be freed: what differs where, which runs agree with the first, the graph, the tensors. (It is NULL where
 * memory ran out.) */
bool parity_run(const generated *c, const parity_device *devices, size_t n_devices, parity_tally *tally, unsigned char **arena, char **failure);

/* The graph as text into the stream. */
void parity_put_graph(const ol_composite *composite, FILE *stream);

#endif
