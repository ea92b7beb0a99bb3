/* The gated-delta step on a GPU: its kernel's text, its variants, and how many blocks of which do a step.
 *
 *     step_text.c   a layer's options and gates -> the text       kernel_step.h, kernel_step_state.h: what all such texts share
 *     step_shape.c  variants, and the choice among them           step_words.h: what a launch is passed
 *     step.c        a layer's kernel, and a launch */
#ifndef OL_CUDA_STEP_H
#define OL_CUDA_STEP_H

#include "cuda/geometry.h"
#include "cuda/text.h"
#include "gated_delta/layer.h"

#define STEP_NAME "ol_gated_delta_step"

/* How a kernel divides a state among threads (kernel_step_state.h). None changes a bit. */
typedef struct step_variant {
    int lanes, rows;                     /* of a row; of a thread */
    int wide;                            /* moves pieces of `alignment` bytes; else elements, at any address */
    int alignment;
    int n_blocks;                        /* of a multiprocessor at once, at least: what bounds the registers */
} step_variant;

enum {
    STEP_MANY,                           /* rows a thread: most bytes on their way to few threads */
    STEP_FEW,                            /* most threads: for few sequences */
    STEP_ANY,                            /* for addresses that the others are not made for */
    STEP_VARIANTS
};

/* lanes 0: there is none such. */
void step_variants(const ol_gated_delta_options *options, step_variant variants[STEP_VARIANTS]);
static inline int step_warp_rows(const step_variant *v) { return 32 / v->lanes * v->rows; }

typedef struct step_shape {
    int variant;
    uint32_t n_parts;                    /* blocks of a head */
    uint32_t n_warps;                    /* of a block */
} step_shape;

/* For n_items heads of sequences, their tensors being aligned as variants other than STEP_ANY need, or not. */
step_shape step_choose(const step_variant variants[STEP_VARIANTS], const function_limits limits[STEP_VARIANTS], int value_dim, int is_aligned,
                       int64_t n_items);

/* Appends the text: functions STEP_NAME "_0" and so on, one a variant that there is. */
ol_status step_text(const ol_gated_delta *layer, text *out, ol_error *error);

/* A step in this shape, whichever the rule would choose: for measurements. */
ol_status cuda_delta_step_shaped(const delta_call *call, ol_stream stream, const step_shape *chosen, ol_error *error);
step_shape cuda_delta_shape(const delta_call *call);

#endif
