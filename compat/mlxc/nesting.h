/* Calls of the client's code within calls of it, per thread. A client may leave such a call by longjmp, and then nothing counts it
 * down; so a count is believed only while the stack is as deep as it was at the outermost call, or deeper. Stacks grow down. */
#ifndef MLXC_NESTING_H
#define MLXC_NESTING_H

typedef struct mlxc_nesting {
    int depth;
    char *outermost;                   /* the frame of the outermost call */
} mlxc_nesting;

/* How deep the caller, whose frame this is, really is. */
static inline int mlxc_nesting_depth(mlxc_nesting *n, char *frame)
{
    if (n->depth > 0 && frame > n->outermost)
        n->depth = 0;
    return n->depth;
}

static inline void mlxc_nesting_enter(mlxc_nesting *n, char *frame)
{
    if (n->depth++ == 0)
        n->outermost = frame;
}

#define MLXC_FRAME ((char *)__builtin_frame_address(0))

#endif
