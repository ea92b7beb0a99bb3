/* What a closure did to its placeholders, or one operation did to its operands, written down step by step: it becomes a onelaunch graph
 * when it is complete, since only then are the captured arrays and the outputs known.
 *
 * A placeholder says which tape it is of, and that is how tapes are found: what is done to placeholders lands on theirs, what is done to
 * arrays is done at once, also during a trace. Closures applied to placeholders, compiled or not, are simply called; a compiled one
 * applied to arrays during a trace replays, and may be traced itself, within the other trace. A client may leave a trace by longjmp:
 * then its tape stays in the list for good, where no array asks for it. */
#ifndef MLXC_TAPE_H
#define MLXC_TAPE_H

#include "body.h"

/* What of its inputs a trace depends on, apart from the number of them: it holds for all that are the same in this. Each includes those
 * before it. */
typedef enum mlxc_detail { MLXC_DTYPES, MLXC_RANKS, MLXC_SHAPES } mlxc_detail;

typedef enum mlxc_step_kind { MLXC_INPUT, MLXC_CONSTANT, MLXC_PRIMITIVE, MLXC_ASTYPE, MLXC_BROADCAST_TO } mlxc_step_kind;

typedef struct mlxc_step {
    mlxc_step_kind kind;
    ol_dtype dtype;
    int32_t primitive;
    int32_t n_operands;
    uint32_t operands[3];
    int32_t rank;
    int32_t dims[OL_MAX_RANK];         /* at the trace */
    uint64_t payload;                  /* an input: its number, captured arrays after the closure's own; a constant: its bits */
} mlxc_step;

typedef struct mlxc_capture {
    mlxc_body *body;
    uint32_t step;
} mlxc_capture;

#define MLXC_NO_TRACE UINT64_MAX

typedef struct mlxc_tape {
    uint64_t serial;                   /* which no other tape ever has; MLXC_NO_TRACE: of a single operation; never 0 */
    mlxc_engine *engine;               /* of the streams used so far: a GPU's if any was; NULL: none was */
    size_t n_inputs;                   /* of the closure: the first steps */
    mlxc_step *steps;
    size_t n, capacity;
    mlxc_capture *captured;            /* references */
    size_t n_captured, captured_capacity;
    struct mlxc_tape *outer;           /* the trace that this one is within */
    mlxc_detail asked;                 /* what the function found out about its placeholders */
    int is_for_once;                   /* and whether about those of an outer trace: then this one holds within that alone */
} mlxc_tape;

/* From begin to end the tape can be found, on this thread. It is not on the stack. */
void mlxc_tape_begin(mlxc_tape *t);
void mlxc_tape_end(mlxc_tape *t);
/* The tape of a placeholder; NULL: its trace has ended, or is another thread's. */
mlxc_tape *mlxc_tape_of(const mlxc_body *b);

/* A client asks what an array is. Of a placeholder, which it may then act on, its trace notes that; an error where that has ended. */
int mlxc_tape_ask(const char *function, const mlxc_body *b, mlxc_detail detail);

void mlxc_tape_destroy(mlxc_tape *t);
void mlxc_tape_use(mlxc_tape *t, mlxc_engine *e);

/* These append a step and give its number. 0, or 1 after a report. */
int mlxc_tape_input(const char *function, mlxc_tape *t, size_t number, const mlxc_body *like, uint32_t *step);
int mlxc_tape_capture(const char *function, mlxc_tape *t, mlxc_body *b, uint32_t *step);
/* float32 holds every constant that operations are made of as they are meant; narrower dtypes round it, as astype does. */
int mlxc_tape_constant(const char *function, mlxc_tape *t, ol_dtype dtype, float value, uint32_t *step);
int mlxc_tape_primitive(const char *function, mlxc_tape *t, const char *name, const uint32_t *operands, uint32_t *step);
int mlxc_tape_astype(const char *function, mlxc_tape *t, uint32_t operand, ol_dtype dtype, uint32_t *step);
int mlxc_tape_broadcast_to(const char *function, mlxc_tape *t, uint32_t operand, int32_t rank, const int64_t *dims, uint32_t *step);

/* A placeholder for a step. */
mlxc_body *mlxc_tape_placeholder(const char *function, const mlxc_tape *t, uint32_t step);
/* The step that an operand is, capturing arrays. Placeholders of another trace are an error. */
int mlxc_tape_operand(const char *function, mlxc_tape *t, mlxc_body *b, uint32_t *step);
/* An error unless it is an array, or a placeholder whose tape can be found. */
int mlxc_check_placeholder(const char *function, const mlxc_body *b);

/* The composite that gives these steps. */
int mlxc_tape_compile(const char *function, const mlxc_tape *t, const uint32_t *outputs, size_t n_outputs, ol_device *device,
                      ol_composite **composite);

#endif
