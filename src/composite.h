/* A composite: a graph as traced (for the composed path and for text), as optimized, as a program, with its shape rules. */
#ifndef OL_COMPOSITE_H
#define OL_COMPOSITE_H

#include "backend.h"
#include "graph.h"
#include "program.h"
#include "shape_rules.h"
#include "workspace.h"

struct ol_composite {
    ol_device *device;
    graph *traced;
    graph *optimized;
    program *program;
    shape_rules *rules;
    workspace *ranges;                     /* scratch of the overlap check; NULL where the stack has room for it */
    int32_t composed_launches;
    char operation[64];                    /* "replay NAME", for errors */
    void *prepared;                        /* the backend's */
};

/* compile.c: the pipeline. Takes the graph over, also on failure. */
ol_status composite_create(ol_device *device, graph *traced, ol_composite **composite, ol_error *error);

/* replay.c: every check of a replay. *in_place: some output is exactly an input. */
ol_status replay_check(const ol_composite *composite, const ol_tensor *inputs, const ol_tensor *outputs, int *in_place, ol_error *error);

/* overlap.c: refuses outputs that overlap what they must not. */
#define OVERLAP_STACK_TENSORS 64
size_t overlap_scratch_bytes(size_t n_tensors);
ol_status overlap_check(const ol_composite *composite, const ol_tensor *inputs, const ol_tensor *outputs, int *in_place, ol_error *error);

#endif
