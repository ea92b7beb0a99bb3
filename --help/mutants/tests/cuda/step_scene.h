/* A step's case (tests/gated_delta/step_case.h) with its tensors in the GPU's memory as well, at the same alignment: run there in any
 * shape of launch, and held against the CPU's byte for byte. */
#ifndef OL_STEP_SCENE_H
#define OL_STEP_SCENE_H

#include "cuda_harness.h"
#include "step_case.h"

#include "cuda/step.h"

typedef struct step_scene {
    ol_gated_delta_arguments arguments;          /* of the GPU's tensors */
    char *memory[STEP_TENSORS], *taken[STEP_TENSORS];
    size_t n_bytes[STEP_TENSORS];
    uint32_t *skipped;                           /* on the GPU, 0 */
} step_scene;

/* Takes device memory for a tensor's `n_bytes` at `memory` (NULL: nothing), and lets the tensor lie there. */
void step_scene_place(ol_tensor *t, const void *memory, size_t n_bytes, char **to, char **taken, size_t *n_taken);
void step_scene_begin(step_scene *s, const step_case *c);
void step_scene_end(step_scene *s);
/* The case's bytes to the GPU; and back, into those of `c`, with the GPU's count of skipped indices. */
void step_scene_write(const step_scene *s, const step_case *c);
uint32_t step_scene_read(const step_scene *s, step_case *c);

ol_gated_delta *step_scene_layer(const step_case *c);
/* One step in the stream: one launch. */
void step_scene_run(const ol_gated_delta *layer, const step_scene *s);
/* The same in this shape of launch. */
void step_scene_run_shaped(const ol_gated_delta *layer, const step_scene *s, const step_shape *chosen);

/* Runs the case as the library would and in every shape there is, from its own bytes each time; the test fails unless all are `expected`
 * and nothing was skipped. */
void step_scene_check(const step_case *c, const step_case *expected, const char *what);
/* Against the CPU. */
void step_scene_check_cpu(const step_case *c, const char *what);

#endif
