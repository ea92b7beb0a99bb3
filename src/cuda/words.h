/* What a replay passes to a kernel: an array of 64-bit words, of the layout below. Read by the host's side as C and by the
 * kernel's text (kernel_support.h).
 *
 *     word 0, 1             the number of groups, or 0 where one group is all the outputs; 1 where one block does all groups in turn
 *     groups                GROUP_CLUSTERS words each and, where one is not all the outputs, a bit by cluster of instructions
 *                           that says whether the group's outputs need it, and the number of each tensor's view in the
 *                           group, four to a word
 *     views                 of each group from word GROUP_VIEWS on: of all tensors, inputs first, where it is all the
 *                           outputs; else of those it uses
 *
 * A group is the outputs of one shape (space.h). Sizes and strides are in bytes, counts in elements. Dimensions outside of the
 * row are counted from the innermost. */
#ifndef OL_CUDA_WORDS_H
#define OL_CUDA_WORDS_H

enum words_head { WORDS_GROUPS = 0, WORDS_IN_TURN = 1, WORDS_HEAD = 2 };

enum words_outer { WORDS_OUTER = 7 };    /* dimensions outside of a row, at most */

enum group_words {
    GROUP_LAST_BLOCK = 0,                /* the group has the blocks below this one, from where the one before it ends */
    GROUP_FLAGS = 1,
    GROUP_OUTER = 2,                     /* dimensions outside of the row */
    GROUP_ROWS = 3,
    GROUP_ROW = 4,                       /* elements of a row */
    GROUP_COLUMN_THREADS = 5,            /* threads side by side in a row */
    GROUP_ROW_THREADS = 6,               /* and how many such */
    GROUP_VIEWS = 7,                     /* the word where its views start */
    GROUP_HOISTED = 8,                   /* by value that can be: whether it is the same for every row */
    GROUP_DIMS = 9,                      /* the extents of the dimensions outside of the row */
    GROUP_CLUSTERS = 16
};

enum group_flags {
    GROUP_LANES = 1,                     /* a thread takes several elements at a time, not one */
    GROUP_WIDE = 2                       /* row numbers or offsets need more than 31 bits */
};

enum view_words {
    VIEW_DATA = 0,
    VIEW_HOW = 1,
    VIEW_STEP = 2,                       /* from element to element in a row */
    VIEW_STRIDES = 3                     /* of the dimensions outside of the row; as many as the group has */
};

enum view_how {
    VIEW_ALIGNED = 1,                    /* addresses are multiples of the element's size */
    VIEW_BLOCKS = 2,                     /* as many elements as a thread takes can be moved as one */
    VIEW_SAME = 4                        /* one element serves the row */
};

#endif
