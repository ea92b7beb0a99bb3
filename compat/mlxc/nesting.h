/* Calls of the client's code within calls of it, per thread. A client may leave such a call by longjmp, and then nothing counts it
 * down. So the frame of each call is kept: one that is no higher than the caller's has been left, since stacks grow down. */
#ifndef MLXC_NESTING_H
#define MLXC_NESTING_H

typedef struct mlxc_nesting {
    int depth;
    char *frames[200];                 /* of the calls under way, the outermost first */
} mlxc_nesting;

#define MLXC_FRAME ((char *)__builtin_frame_address(0))

/* How many calls are under way around the caller, whose frame this is. */
static inline int mlxc_nesting_depth(mlxc_nesting *n, const char *frame)
{
    while (n->depth > 0 && n->frames[n->depth - 1] <= frame)
        n->depth--;
    return n->depth;
}

/* Begins a call, unless there are `limit` of them (at most the frames that are kept): then 0. */
static inline int mlxc_nesting_enter(mlxc_nesting *n, char *frame, int limit)
{
    if (mlxc_nesting_depth(n, frame) >= limit)
        return 0;
    n->frames[n->depth++] = frame;
    return 1;
}

/* Ends the call that begun with this frame. */
static inline void mlxc_nesting_leave(mlxc_nesting *n, const char *frame)
{
    mlxc_nesting_depth(n, frame);
}

#endif
