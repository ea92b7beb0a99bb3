/* What a replay passes to a kernel: an array of 64-bit words, of the layout below. Read by the host's side as C and by the
 * kernel's text (kernel_support.h). Small, since a kernel's first look at its parameters is slow.
 *
 *     word 0                the number of groups that are mapped, or 0 where there is one that is not | enum words_how
 *     groups                GROUP_CLUSTERS words each and, of one that is mapped, a bit by cluster of instructions that says
 *                           whether the group's outputs need it, and for each tensor, four to a word, 0 or MAP_PRESENT and
 *                           the number of its view in the group
 *     views                 of each group from the word on that GROUP_BLOCKS names, VIEW_WORDS each: of those tensors that it uses;
 *                           of one that is not mapped of all, inputs first
 *     far parts             of each group that is GROUP_FAR: the extents of its outer dimensions, then for each view its step
 *                           and strides
 *
 * or, WORDS_ONCE, what enum once_words says.
 *
 * A group is the outputs of one shape (space.h). It is mapped unless it is all the outputs, not far, and the kernel is of the full tier
 * (kernel.h). Sizes and strides are in bytes, counts in elements. Dimensions outside of the
 * row ("outer") are counted from the innermost. "a | b" are the lower and the upper half of a word. */
#ifndef OL_CUDA_WORDS_H
#define OL_CUDA_WORDS_H

enum words_head { WORDS_GROUPS = 0, WORDS_HEAD = 1 };

enum words_how {
    WORDS_IN_TURN = 1,                   /* one block does all groups in turn */
    WORDS_ONCE = 2,                      /* one group, of rows in at most one outer dimension, and each thread has one place in one row:
                                            of kernels that are `ahead` (kernel.h) */
    WORDS_LANES = 4,                     /* of WORDS_ONCE: a thread takes several elements at a time, not one */
    WORDS_SHIFT = 8                      /* of WORDS_ONCE, from this bit on: the shift of the division by the threads of a row; its
                                            factor is word 0's lower half */
};

/* The words of WORDS_ONCE, after word 0: few, so that all of a decode step's are in two lines of the cache for parameters. A view's step is
 * its size where it can be moved as blocks, 0 where one element serves the row. */
enum once_words {
    ONCE_THREADS = 1,                    /* of a row | rows */
    ONCE_STEPS = 2                       /* by tensor: step in a row | stride of the rows; after these, by tensor, the address */
};

enum words_outer { WORDS_OUTER = 7, WORDS_NEAR_OUTER = 2 };    /* outer dimensions, at most; and those of a group that is not far */

enum group_words {
    GROUP_THREADS = 0,                   /* side by side in a row | how many such */
    GROUP_DIVISION = 1,                  /* division by the first of these: n / d = n * lower half >> upper half, for n < 2^31 */
    GROUP_ROWS = 2,
    GROUP_ROW = 3,                       /* elements of a row */
    GROUP_HOISTED = 4,                   /* by value that can be: whether it is the same for every row */
    GROUP_FLAGS = 5,                     /* | the number of outer dimensions */
    GROUP_EXTENT = 6,                    /* of the innermost of two outer dimensions | the word where the far part starts */
    GROUP_BLOCKS = 7,                    /* the group has the blocks below this, from where the one before ends | the word of its views */
    GROUP_CLUSTERS = 8
};

enum map_bits { MAP_PRESENT = 0x8000, MAP_NUMBER = 0x7fff };

enum group_flags {
    GROUP_LANES = 1,                     /* a thread takes several elements at a time, not one */
    GROUP_FAR = 2                        /* row numbers or offsets need more than 31 bits, there are more than two outer dimensions,
                                            or a view is not aligned */
};

enum view_words {
    VIEW_DATA = 0,
    VIEW_STEP = 1,                       /* from element to element in a row | enum view_how */
    VIEW_STRIDES = 2,                    /* of the two outer dimensions of a group that is not far */
    VIEW_WORDS = 3
};

enum view_how {
    VIEW_BLOCKS = 1,                     /* as many elements as a thread takes can be moved as one */
    VIEW_SAME = 2                        /* one element serves the row */
};

#endif
