/* Pieces of work of the fake driver: how they are made, submitted and done. */
#include "fake_state.h"

#include <stdlib.h>
#include <string.h>

op *fake_op(op_kind kind)
{
    op *o = calloc(1, sizeof *o);
    if (!o)
        abort();
    o->kind = kind;
    return o;
}

static char *copy_bytes(const char *bytes, size_t n_bytes)
{
    char *copy = bytes ? aligned_alloc(16, (n_bytes + 15) / 16 * 16 + 16) : NULL;
    if (bytes && !copy)
        abort();
    if (bytes)
        memcpy(copy, bytes, n_bytes);
    return copy;
}

op *fake_op_copy(const op *o)
{
    op *copy = fake_op(o->kind);
    *copy = *o;
    copy->next = NULL;
    copy->parameters = copy_bytes(o->parameters, o->n_bytes);
    copy->staged = copy_bytes(o->staged, o->n_bytes);
    return copy;
}

void fake_op_free(op *o)
{
    free(o->parameters);
    free(o->staged);
    free(o);
}

/* ---- Doing it ---- */

static CUresult check(CUcontext context, const op *o)
{
    switch (o->kind) {
    case OP_LAUNCH:
        return fake_function_is(o->function) ? 0 : fake_violate(LAUNCH_FAILED, "a kernel is to run whose module was unloaded");
    case OP_COPY:
        if (fake_is_device_address(o->to) && !fake_find(o->to, o->n_bytes))
            return fake_check_bytes(context, o->to, o->n_bytes, "a copy to");
        if (!o->staged && fake_is_device_address(o->from) && !fake_find(o->from, o->n_bytes))
            return fake_check_bytes(context, o->from, o->n_bytes, "a copy from");
        return 0;
    case OP_SET:
        return fake_check_bytes(context, o->to, o->n_bytes, "a fill of");
    default:
        return 0;
    }
}

/* After an error that was left behind nothing is done any more. */
void fake_work(CUcontext context, const op *o)
{
    if (context->left_behind || (context->left_behind = check(context, o)))
        return;
    fake_show();
    switch (o->kind) {
    case OP_LAUNCH:
        context->left_behind = fake_threads(context, o);
        break;
    case OP_COPY:
        memmove((void *)(uintptr_t)o->to, o->staged ? o->staged : (const char *)(uintptr_t)o->from, o->n_bytes);
        break;
    case OP_SET:
        for (size_t i = 0; i < o->n_bytes / sizeof o->value; i++)
            memcpy((char *)(uintptr_t)o->to + i * sizeof o->value, &o->value, sizeof o->value);
        break;
    case OP_FREE:
        fake_free(o->to, 0);
        break;
    default:
        break;
    }
    fake_conceal();
}

/* ---- Copies ---- */

static int is_pageable(uint64_t address) { return !fake_is_device_address(address) && !fake_find(address, 1); }

/* Pageable memory is read at the call, and written before it returns; a capture records the addresses. */
static CUresult copy(CUstream s, CUdeviceptr to, CUdeviceptr from, size_t n_bytes)
{
    if (!n_bytes)
        return 0;
    if ((!is_pageable(to) && !fake_find(to, n_bytes)) || (!is_pageable(from) && !fake_find(from, n_bytes)))
        return fake_violate(INVALID_VALUE, "a copy of %zu bytes from %#llx to %#llx, beyond an allocation", n_bytes,
                            (unsigned long long)from, (unsigned long long)to);
    op *o = fake_op(OP_COPY);
    o->to = to;
    o->from = from;
    o->n_bytes = n_bytes;
    if (s->capture == CAPTURE_NONE && is_pageable(from))
        o->staged = copy_bytes((const char *)(uintptr_t)from, n_bytes);
    CUresult code = fake_submit(s, o);
    if (!code && s->capture == CAPTURE_NONE && is_pageable(to))
        fake_run(s, UINT64_MAX);
    return code ? code : s->context->left_behind;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n_bytes, CUstream handle)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuMemcpyAsync", RULE_CONTEXT);
    if (!code && !(code = fake_stream_of(handle, "cuMemcpyAsync", &s)))
        code = copy(s, to, from, n_bytes);
    return fake_leave(code);
}

static CUresult copy_now(const char *name, CUdeviceptr to, CUdeviceptr from, size_t n_bytes)
{
    CUresult code = fake_enter(name, RULE_CONTEXT | RULE_UNSAFE);
    if (!code && !(code = copy(fake_current()->legacy, to, from, n_bytes)))
        fake_run(fake_current()->legacy, UINT64_MAX);
    return fake_leave(code);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t n_bytes) { return copy_now("cuMemcpy", to, from, n_bytes); }

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n_bytes)
{
    return copy_now("cuMemcpyHtoD", to, (CUdeviceptr)(uintptr_t)from, n_bytes);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n_bytes)
{
    return copy_now("cuMemcpyDtoH", (CUdeviceptr)(uintptr_t)to, from, n_bytes);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n_bytes, CUstream stream)
{
    return cuMemcpyAsync(to, (CUdeviceptr)(uintptr_t)from, n_bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n_bytes, CUstream stream)
{
    return cuMemcpyAsync((CUdeviceptr)(uintptr_t)to, from, n_bytes, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream handle)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuMemsetD32Async", RULE_CONTEXT);
    if (!code)
        code = fake_stream_of(handle, "cuMemsetD32Async", &s);
    if (!code && n && (to % 4 || !fake_find(to, 4 * n)))
        code = fake_violate(INVALID_VALUE, "a fill of %zu words at %#llx", n, (unsigned long long)to);
    if (!code && n) {
        op *o = fake_op(OP_SET);
        o->to = to;
        o->value = value;
        o->n_bytes = 4 * n;
        code = fake_submit(s, o);
    }
    return fake_leave(code);
}

/* ---- Memory in the order of a stream ---- */

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t n_bytes, CUstream handle)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuMemAllocAsync", RULE_CONTEXT);
    if (!code)
        code = fake_stream_of(handle, "cuMemAllocAsync", &s);
    if (!code && s->capture == CAPTURE_NONE)
        code = fake_refused_by_capture("cuMemAllocAsync");
    if (!code && !(code = fake_allocate(s->context, MEMORY_DEVICE, n_bytes, 1, pointer))) {
        op *o = fake_op(OP_ALLOCATE);
        o->to = *pointer;
        if (s->capture == CAPTURE_ACTIVE)
            fake_find(*pointer, 1)->graph = s->graph;
        if ((code = fake_submit(s, o)) != 0)
            fake_free(*pointer, 0);
    }
    return fake_leave(code);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuMemFreeAsync", RULE_CONTEXT);
    if (!code)
        code = fake_stream_of(handle, "cuMemFreeAsync", &s);
    if (!code && s->capture == CAPTURE_NONE)
        code = fake_refused_by_capture("cuMemFreeAsync");
    if (!code && pointer) {
        allocation *a = fake_find(pointer, 1);
        CUgraph graph = s->capture == CAPTURE_ACTIVE ? s->graph : NULL;
        if (!a || (uint64_t)(uintptr_t)a->start != pointer || !a->is_pooled || a->freeing || a->graph != graph)
            code = fake_violate(INVALID_VALUE, "%#llx is freed in a stream, which %s", (unsigned long long)pointer,
                                !a ? "is not allocated" : a->freeing ? "was freed before" : "was not allocated so");
        if (!code) {
            op *o = fake_op(OP_FREE);
            o->to = pointer;
            a->freeing = 1;
            code = fake_submit(s, o);
        }
    }
    return fake_leave(code);
}
