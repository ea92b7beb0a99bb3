/* The kernel of a composite: its text, and what a replay must know to fill its words. */
#ifndef OL_CUDA_KERNEL_H
#define OL_CUDA_KERNEL_H

#include "dependencies.h"
#include "program.h"
#include "cuda/text.h"
#include "cuda/words.h"

#define KERNEL_THREADS 256               /* of a block, at most */
/* How much a kernel is made for. The compiler's time grows with tensors and with what their views may be, so that kernels of many
 * tensors are not made for all of it twice. */
typedef enum kernel_tier {
    KERNEL_FULL,                         /* several elements at a time; views at fixed places where a group is all the outputs */
    KERNEL_PLAIN,                        /* one element at a time; places found by the group's map */
    KERNEL_FAR                           /* and every place by a called function: every group is far */
} kernel_tier;

#define KERNEL_WORDS_SMALL 511           /* that any driver passes with a launch (4096 bytes with the pointer) */
#define KERNEL_WORDS_LARGE 4095          /* that driver and compiler of CUDA 12.1 and later pass, on compute capability 7.0 and later */

typedef struct kernel {
    ol_allocator allocator;
    char name[72];                       /* of the __global__ function */
    kernel_tier tier;
    int lanes;                           /* elements of a thread where GROUP_LANES is set; a power of two */
    int n_blocks;                        /* of a multiprocessor at once, at least: what bounds the registers */
    size_t load_bytes;                   /* of a thread's loads of one row */
    int ahead;                           /* they are few: registers hold those of two rows (kernel_ahead.c) */
    int called;                          /* primitives are called, not inlined: the program is long */
    size_t n_words;                      /* at most passed */
    int far;                             /* they are passed by pointer */
    uint32_t n_clusters;
    uint32_t *cluster;                   /* by instruction: which outputs need it, as a number; equal ones are a cluster */
    int8_t *hoisted;                     /* by instruction: its bit in GROUP_HOISTED, or -1 */
    size_t n_instructions;
} kernel;

/* The words of a group's clusters and of its map from tensors to views. */
static inline size_t kernel_cluster_words(const kernel *k) { return (k->n_clusters + 63) / 64; }
static inline size_t kernel_map_words(size_t n_tensors) { return (n_tensors + 3) / 4; }

/* Decides all of the above for a graph and its program, without fused instructions. `largest`: words that can be passed with a launch. */
ol_status kernel_create(const graph *g, const program *p, const dependencies *d, size_t largest, kernel **k, ol_error *error);
void kernel_destroy(kernel *k);          /* NULL is allowed */

/* The whole text: what it needs of the device text, and the function. */
ol_status kernel_text(const kernel *k, const graph *g, const program *p, text *out, ol_error *error);

#endif
