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
    workspace *checks;                     /* scratch of replay_check; NULL where the stack has room for it */
    int32_t composed_launches;
    char operation[64];                    /* "replay NAME", for errors */
    void *prepared;                        /* the backend's */
};

/* compile.c: the pipeline. Takes the graph over, also on failure. */
ol_status composite_create(ol_device *device, graph *traced, ol_composite **composite, ol_error *error);

/* replay.c: every check of a replay. On success *facts has what was found of each tensor, inputs first; it lies in `few`, or
 * in a block that replay_checked gives back. *in_place: some output is exactly an input. */
#define FEW_TENSORS 64
ol_status replay_check(const ol_composite *composite, const ol_tensor *inputs, const ol_tensor *outputs, tensor_facts few[FEW_TENSORS],
                       tensor_facts **facts, int *in_place, ol_error *error);
void replay_checked(const ol_composite *composite, tensor_facts *facts);

/* overlap.c: refuses outputs that overlap what they must not. `order` is scratch for as many indices as there are tensors;
 * NULL where there are few. */
ol_status overlap_check(const ol_composite *composite, const ol_tensor *inputs, const ol_tensor *outputs, const tensor_facts *facts,
                        uint32_t *order, int *in_place, ol_error *error);

#endif
