/* Writing a tape. Dtypes follow onelaunch's rules (ol_promote, ol_primitive_result), so that placeholders answer what the arrays will
 * be; shapes are those of the arrays at hand, which a shapeless composite does not hold later ones to, unless the client found out about
 * them: by asking, or by an error. */
#include "tape.h"

#include "report.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local mlxc_tape *innermost;

void mlxc_tape_begin(mlxc_tape *t)
{
    t->outer = innermost;
    innermost = t;
}

void mlxc_tape_end(mlxc_tape *t)
{
    innermost = t->outer;              /* with those within it that were left by longjmp */
}

mlxc_tape *mlxc_tape_of(const mlxc_body *b)
{
    mlxc_tape *t = innermost;
    while (t && t->serial != b->trace)
        t = t->outer;
    return t;
}

static void note(mlxc_tape *t, mlxc_detail asked)
{
    if (t->asked < asked)
        t->asked = asked;
}

int mlxc_tape_ask(const char *function, const mlxc_body *b, mlxc_detail detail)
{
    mlxc_tape *t = innermost;
    if (!b->trace)
        return 0;
    if (mlxc_check_placeholder(function, b))
        return 1;
    for (; t->serial != b->trace; t = t->outer)
        t->is_for_once = 1;
    note(t, detail);
    return 0;
}

void mlxc_tape_destroy(mlxc_tape *t)
{
    for (size_t i = 0; i < t->n_captured; i++)
        mlxc_body_release(t->captured[i].body);
    free(t->captured);
    free(t->steps);
}

void mlxc_tape_use(mlxc_tape *t, mlxc_engine *e)
{
    if (!t->engine || e->is_gpu)
        t->engine = e;
}

/* Room for one more item. */
static int grow(const char *function, void **items, size_t n, size_t *capacity, size_t item_size)
{
    if (n < *capacity)
        return 0;
    size_t grown = *capacity ? 2 * *capacity : 16;
    void *moved = realloc(*items, grown * item_size);
    if (!moved)
        return mlxc_report_memory(function);
    *items = moved;
    *capacity = grown;
    return 0;
}

static int append(const char *function, mlxc_tape *t, const mlxc_step *s, uint32_t *step)
{
    if (t->n >= OL_MAX_NODES)
        return mlxc_report(function, "one more operation in the closure being traced, which has %d; expected at most so many", OL_MAX_NODES);
    if (grow(function, (void **)&t->steps, t->n, &t->capacity, sizeof *t->steps))
        return 1;
    t->steps[t->n] = *s;
    *step = (uint32_t)t->n++;
    return 0;
}

int mlxc_tape_input(const char *function, mlxc_tape *t, size_t number, const mlxc_body *like, uint32_t *step)
{
    mlxc_step s = { .kind = MLXC_INPUT, .dtype = like->view.dtype, .rank = like->view.rank, .payload = number };
    memcpy(s.dims, like->shape, (size_t)s.rank * sizeof *s.dims);
    return append(function, t, &s, step);
}

static int append_constant(const char *function, mlxc_tape *t, ol_dtype dtype, uint64_t bits, uint32_t *step)
{
    return append(function, t, &(mlxc_step){ .kind = MLXC_CONSTANT, .dtype = dtype, .payload = bits }, step);
}

int mlxc_tape_constant(const char *function, mlxc_tape *t, ol_dtype dtype, float value, uint32_t *step)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    if (append_constant(function, t, OL_FLOAT32, bits, step))
        return 1;
    return dtype == OL_FLOAT32 ? 0 : mlxc_tape_astype(function, t, *step, dtype, step);
}

int mlxc_tape_capture(const char *function, mlxc_tape *t, mlxc_body *b, uint32_t *step)
{
    uint64_t bits;
    if (mlxc_body_constant(b, &bits)) {
        if (append_constant(function, t, b->view.dtype, bits, step))
            return 1;
        return b->view.rank == 0 ? 0 : mlxc_tape_broadcast_to(function, t, *step, b->view.rank, b->view.shape, step);
    }
    for (size_t i = 0; i < t->n_captured; i++)
        if (t->captured[i].body == b)
            return *step = t->captured[i].step, 0;
    if (grow(function, (void **)&t->captured, t->n_captured, &t->captured_capacity, sizeof *t->captured) ||
        mlxc_tape_input(function, t, t->n_inputs + t->n_captured, b, step))
        return 1;
    t->captured[t->n_captured++] = (mlxc_capture){ mlxc_body_retain(b), *step };
    return 0;
}

/* ---- Operations --------------------------------------------------------------------------------------------------------- */

/* The shape of *joined becomes its common one with `other`. */
static int join_shapes(const char *function, mlxc_tape *t, mlxc_step *joined, const mlxc_step *other)
{
    mlxc_step common = *joined;
    common.rank = joined->rank > other->rank ? joined->rank : other->rank;
    for (int32_t d = 0; d < common.rank; d++) {
        int32_t i = d - (common.rank - joined->rank), j = d - (common.rank - other->rank);
        int32_t x = i < 0 ? 1 : joined->dims[i], y = j < 0 ? 1 : other->dims[j];
        if (x != y && x != 1 && y != 1) {
            mlxc_shape_text first, second;
            note(t, MLXC_SHAPES);
            return mlxc_report(function, "shapes %s and %s do not broadcast; expected extents that are equal, or 1", mlxc_shape_to_text(&first, joined->rank, joined->dims),
                               mlxc_shape_to_text(&second, other->rank, other->dims));
        }
        common.dims[d] = x == 1 ? y : x;
    }
    *joined = common;
    return 0;
}

int mlxc_tape_primitive(const char *function, mlxc_tape *t, const char *name, const uint32_t *operands, uint32_t *step)
{
    int32_t primitive = ol_primitive_find(name), n = ol_primitive_arity(primitive), first = strcmp(name, "where") == 0;
    mlxc_step s = { .kind = MLXC_PRIMITIVE, .primitive = primitive, .n_operands = n };
    ol_dtype common = t->steps[operands[first]].dtype;
    for (int32_t i = 0; i < n; i++) {
        s.operands[i] = operands[i];
        if (join_shapes(function, t, &s, &t->steps[operands[i]]))
            return 1;
        if (i > first)
            common = ol_promote(common, t->steps[operands[i]].dtype);
    }
    if (!ol_primitive_result(primitive, common, &s.dtype)) {
        ol_dtype one = t->steps[operands[0]].dtype, other = t->steps[operands[n - 1]].dtype;
        return mlxc_report(function, "operands of %s%s%s; expected integers%s", ol_dtype_name(one), one != other ? " and " : "",
                           one != other ? ol_dtype_name(other) : "", strstr(name, "shift") ? "" : " or bool");
    }
    return append(function, t, &s, step);
}

int mlxc_tape_astype(const char *function, mlxc_tape *t, uint32_t operand, ol_dtype dtype, uint32_t *step)
{
    mlxc_step s = t->steps[operand];
    s.kind = MLXC_ASTYPE;
    s.dtype = dtype;
    s.n_operands = 1;
    s.operands[0] = operand;
    return append(function, t, &s, step);
}

int mlxc_tape_broadcast_to(const char *function, mlxc_tape *t, uint32_t operand, int32_t rank, const int64_t *dims, uint32_t *step)
{
    mlxc_step from = t->steps[operand];
    mlxc_step s = { .kind = MLXC_BROADCAST_TO, .dtype = from.dtype, .n_operands = 1, .operands = { operand }, .rank = rank };
    for (int32_t d = 0; d < rank; d++)
        s.dims[d] = (int32_t)dims[d];
    for (int32_t d = 0; d < from.rank; d++) {
        int32_t to = d + rank - from.rank;
        if (to < 0 || (from.dims[d] != 1 && from.dims[d] != s.dims[to])) {
            mlxc_shape_text first, second;
            note(t, MLXC_SHAPES);
            return mlxc_report(function, "shape %s does not broadcast to %s; expected extents that are equal, or 1", mlxc_shape_to_text(&first, from.rank, from.dims),
                               mlxc_shape_to_text(&second, rank, s.dims));
        }
    }
    return append(function, t, &s, step);
}
