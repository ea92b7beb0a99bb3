/* A mixer's case (tests/gated_delta/mixer_case.h) with its tensors in the GPU's memory as well, at the same alignment: run there in any
 * shape of launch, and held against the CPU's byte for byte. */
#ifndef OL_MIXER_SCENE_H
#define OL_MIXER_SCENE_H

#include "mixer_case.h"
#include "step_scene.h"

#include "cuda/mixer.h"

typedef struct mixer_scene {
    step_scene step;                             /* the recurrence's tensors, and the count of skipped indices */
    ol_gated_delta_mixer_arguments arguments;    /* of the GPU's tensors */
    char *memory[MIXER_TENSORS], *taken[MIXER_TENSORS];
    size_t n_bytes[MIXER_TENSORS];
} mixer_scene;

void mixer_scene_begin(mixer_scene *s, const mixer_case *c);
void mixer_scene_end(mixer_scene *s);
/* The case's bytes to the GPU; and back, into those of `c`, with the GPU's count of skipped indices. */
void mixer_scene_write(const mixer_scene *s, const mixer_case *c);
uint32_t mixer_scene_read(const mixer_scene *s, mixer_case *c);

/* One step in the stream: one launch. */
void mixer_scene_run(const ol_gated_delta_mixer *mixer, const mixer_scene *s);
void mixer_scene_run_shaped(const ol_gated_delta_mixer *mixer, const mixer_scene *s, const mixer_shape *chosen);

/* Runs the case as the library would and in shapes of every kind, from its own bytes each time; the test fails unless all are `expected`
 * and nothing was skipped. */
void mixer_scene_check(const mixer_case *c, const mixer_case *expected, const char *what);
/* Against the CPU. */
void mixer_scene_check_cpu(const mixer_case *c, const char *what);

#endif
