/* The mixer step on a GPU: its kernel's text, its variants, and how many blocks of which do a step. It stands on the gated-delta step (step.h).
 *
 *     mixer_text.c   a mixer's options -> the text                kernel_mixer*.h: what all such texts share
 *     mixer_shape.c  the choice of a shape                        mixer_words.h: what a launch is passed
 *     mixer.c        a mixer's kernel, and a launch */
#ifndef OL_CUDA_MIXER_H
#define OL_CUDA_MIXER_H

#include "cuda/step.h"
#include "gated_delta/mixer.h"

#define MIXER_NAME "ol_gated_delta_mixer"

enum { MIXER_MOST_BLOCKS = 8 };          /* of a cluster, that every device with clusters has */

/* None changes a bit. */
typedef struct mixer_shape {
    int variant;
    uint32_t n_parts, n_warps;           /* blocks of a head; warps of a block */
    uint32_t n_heads;                    /* of a key head, that a cluster has at a time: divides their number */
} mixer_shape;

/* Whether blocks come in clusters, that is from sm_90 on. Without, a block has all rows of a head. */
int mixer_has_clusters(const cuda_device *device);

/* As step_variants, with groups. lanes 0: there is none such. */
void mixer_variants(const ol_gated_delta_options *options, int has_clusters, step_variant variants[STEP_VARIANTS]);
/* Blocks that a head of `value_dim` rows needs where they have at most so many warps. */
uint32_t mixer_parts(const step_variant *v, int value_dim, uint32_t most_warps);
/* For n_items key heads of sequences of `ratio` value heads each. `decodes`: mixer_decodes. */
mixer_shape mixer_choose(const step_variant variants[STEP_VARIANTS], const function_limits limits[STEP_VARIANTS], int value_dim, int ratio, int has_clusters,
                         int is_aligned, int decodes, int64_t n_items);

/* Appends the text: functions MIXER_NAME "_0" and so on. */
ol_status mixer_text(const ol_gated_delta_mixer *mixer, int has_clusters, text *out, ol_error *error);

/* A step in this shape, whichever the rule would choose: for measurements. */
ol_status cuda_mixer_step_shaped(const mixer_call *call, ol_stream stream, const mixer_shape *chosen, ol_error *error);
mixer_shape cuda_mixer_shape(const mixer_call *call);
/* Whether every sequence has one token, its state and windows stay where they are, and windows have no columns to take back from. */
int mixer_decodes(const mixer_call *call);

#endif
