/* The gated-delta step on a GPU: its kernel's text, its variants, and how many blocks of which do a step.
 *
 *     step_text.c   a layer's options and gates -> the text       kernel_step*.h: what all such texts share
 *     step_shape.c  variants, and the choice among them           step_words.h: what a launch is passed
 *     step.c        a layer's kernel, and a launch */
#ifndef OL_CUDA_STEP_H
#define OL_CUDA_STEP_H

#include "cuda/cuda.h"
#include "cuda/text.h"
#include "gated_delta/layer.h"

#include "cuda/step_words.h"

#define STEP_NAME "ol_gated_delta_step"
#define STEP_MOST_WARPS 8                    /* of a block */
#define STEP_DECODE_WARPS 4                  /* of a block that decodes */
#define STEP_FEW_WARPS_PER_MULTIPROCESSOR 16 /* of STEP_FEW: beyond, STEP_MANY fills the GPU as well */

/* How a kernel divides a state among threads (kernel_step_state.h). None changes a bit. */
typedef struct step_variant {
    int lanes, rows;                     /* of a row; of a thread */
    int wide;                            /* moves pieces of `alignment` bytes; else elements, at any address */
    int alignment;
    int n_blocks;                        /* of a multiprocessor at once, at least: what bounds the registers */
    int groups;                          /* of rows that a thread has one after the other: 1, but of mixer steps without clusters */
} step_variant;

enum {
    STEP_MANY,                           /* rows a thread: most bytes on their way to few threads */
    STEP_FEW,                            /* most threads: for few sequences */
    STEP_ANY,                            /* for addresses that the others are not made for */
    STEP_DECODE_MANY,                    /* as MANY and FEW, of calls that decode (step_decodes) */
    STEP_DECODE_FEW,
    STEP_VARIANTS
};

/* lanes 0: there is none such. */
void step_variants(const ol_gated_delta_options *options, step_variant variants[STEP_VARIANTS]);
/* The same, a thread having at most so many elements where lanes and rows are to choose. */
void step_variants_within(const ol_gated_delta_options *options, int most_elements, step_variant variants[STEP_VARIANTS]);
/* Of a block of these functions, and at most so many. */
uint32_t step_most_warps(const function_limits *limits, uint32_t most);
static inline int step_warp_rows(const step_variant *v) { return 32 / v->lanes * v->rows; }

typedef struct step_shape {
    int variant;
    uint32_t n_parts;                    /* blocks of a head */
    uint32_t n_warps;                    /* of a block */
} step_shape;

/* For n_items heads of sequences, their tensors being aligned as variants other than STEP_ANY need, or not. `decodes`: step_decodes. */
step_shape step_choose(const step_variant variants[STEP_VARIANTS], const function_limits limits[STEP_VARIANTS], int value_dim, int is_aligned,
                       int decodes, int64_t n_items);

/* Appends the text: functions STEP_NAME "_0" and so on, one a variant that there is. */
ol_status step_text(const ol_gated_delta *layer, text *out, ol_error *error);

/* A text of the same options and gates with more options and other functions: for the mixer step. */
typedef struct step_text_parts {
    void (*put_options)(text *t, const void *user);      /* within struct step_options; NULL: none */
    void (*put_functions)(text *t, const void *user);
    const void *user;
    const char *operation;
} step_text_parts;
ol_status step_text_of(const ol_gated_delta *layer, const step_text_parts *parts, text *out, ol_error *error);
const char *step_type(ol_dtype dtype);   /* its type in the text */
unsigned step_bits(float x);

/* Loaded kernels: functions NAME "_0" and so on, of the variants that are there. Given back also where taking them failed. */
typedef struct step_kernels {
    cuda_image *image;
    step_variant variants[STEP_VARIANTS];
    CUfunction functions[STEP_VARIANTS];
    function_limits limits[STEP_VARIANTS];
} step_kernels;
ol_status step_kernels_take(cuda_device *device, const char *name, const char *operation, text *source, step_kernels *k, ol_error *error);
void step_kernels_give(cuda_device *device, step_kernels *k);

/* A launch: blocks of a sequence, of which `cluster` are a cluster (1: none), for each of the sequences. */
typedef struct step_grid {
    int64_t n_sequences, n_blocks;
    uint32_t n_warps, cluster;
} step_grid;
ol_status step_launch(const cuda_device *device, CUfunction function, const step_grid *g, ol_stream stream, void *words, const char *operation, ol_error *error);

struct step_words step_words_of(const delta_call *call);
struct step_table step_table_of(const delta_table *table);
int step_is_aligned(const delta_call *call, int alignment);
uint64_t step_off_table(const delta_table *table);       /* bits of an address and strides that are below its elements' size */
int step_has_work(const delta_call *call);               /* whether there may be anything to write */
int step_decodes(const delta_call *call);                /* whether every sequence has one token, and its state stays where it is */

/* A step in this shape, whichever the rule would choose: for measurements. */
ol_status cuda_delta_step_shaped(const delta_call *call, ol_stream stream, const step_shape *chosen, ol_error *error);
step_shape cuda_delta_shape(const delta_call *call);

#endif
