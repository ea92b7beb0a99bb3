/* The fake driver's streams and events. Work is done when it is submitted or, on request, held in its stream until something waits
 * for it; then in the order that streams, events and the legacy stream ask for and no sooner, so that a program that waits for
 * too little reads 0xCD. */
#include "fake_state.h"

#include <stdlib.h>

#define EVERYTHING UINT64_MAX

/* ---- Streams ---- */

CUstream fake_stream_add(CUcontext context, int is_legacy, int is_blocking)
{
    CUstream s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->context = context;
    s->alive = 1;
    s->is_legacy = is_legacy;
    s->is_blocking = is_blocking;
    s->last_held = &s->held;
    s->next = fake.streams;
    return fake.streams = s;
}

CUresult fake_stream_of(CUstream handle, const char *name, CUstream *stream)
{
    CUcontext current = fake_current();
    if ((uintptr_t)handle <= 2) {                                /* NULL and CU_STREAM_LEGACY; CU_STREAM_PER_THREAD */
        *stream = !current ? NULL : (uintptr_t)handle == 2 ? current->per_thread : current->legacy;
        return current ? 0 : fake_violate(INVALID_CONTEXT, "%s in a default stream, without a current context", name);
    }
    for (CUstream s = fake.streams; s; s = s->next)
        if (s == handle && s->alive) {
            *stream = s;
            return s->context->left_behind;
        }
    return fake_violate(INVALID_HANDLE, "%s with a stream that does not live", name);
}

/* Whether the legacy stream must not be used, as it would have to wait for a capture. */
static CUresult check_legacy(CUstream stream, const char *name)
{
    if (!stream->is_legacy || !fake_has_capture(stream->context, 1))
        return 0;
    fake_break_captures(stream->context);
    return fake_violate(CAPTURE_IMPLICIT, "%s in the legacy stream while a blocking stream is being captured", name);
}

void fake_run(CUstream s, uint64_t sequence)
{
    while (s->held && s->held->sequence <= sequence) {
        op *o = s->held;
        s->held = o->next;
        if (!s->held)
            s->last_held = &s->held;
        if (s->is_blocking)
            fake_run(s->context->legacy, o->sequence);
        for (CUstream other = fake.streams; other && s->is_legacy; other = other->next)
            if (other->is_blocking && other->context == s->context)
                fake_run(other, o->sequence);
        if (o->kind == OP_WAIT && o->event->stream)
            fake_run(o->event->stream, o->from);
        fake_work(s->context, o);
        fake_op_free(o);
    }
}

CUresult fake_submit(CUstream s, op *o)
{
    CUresult code = s->capture == CAPTURE_BROKEN ? CAPTURE_INVALIDATED : check_legacy(s, "work");
    if (code) {
        fake_op_free(o);
        return code;
    }
    if (s->capture == CAPTURE_ACTIVE) {
        fake_graph_add(s->graph, o);
        return 0;
    }
    if (s->is_legacy) {
        fake_count("NULL stream");
        if (fake.refuses_null_stream)
            fake_violate(0, "work in the legacy stream");
    }
    o->sequence = ++fake.sequence;
    *s->last_held = o;
    s->last_held = &o->next;
    if (!fake.holds)
        fake_run(s, EVERYTHING);
    return 0;
}

void fake_finish_context(CUcontext context)
{
    for (CUstream s = fake.streams; s; s = s->next)
        if (s->context == context)
            fake_run(s, EVERYTHING);
}

int fake_run_held(void);
int fake_run_held(void)
{
    fake_lock();
    for (CUcontext c = fake.contexts; c; c = c->next)
        fake_finish_context(c);
    fake_unlock();
    return 0;
}

static void destroy_stream(CUstream s)
{
    fake_run(s, EVERYTHING);
    fake_graph_destroy(s->graph);
    s->graph = NULL;
    s->capture = CAPTURE_NONE;
    s->alive = 0;
}

void fake_destroy_streams(CUcontext context)
{
    for (CUstream s = fake.streams; s; s = s->next)
        if (s->alive && s->context == context)
            destroy_stream(s);
    for (CUevent e = fake.events; e; e = e->next)
        e->alive &= e->context != context;
}

size_t fake_stream_leaks(void)
{
    size_t n = 0;
    for (CUstream s = fake.streams; s; s = s->next)
        n += s->alive && s != s->context->legacy && s != s->context->per_thread;
    for (CUevent e = fake.events; e; e = e->next)
        n += (size_t)e->alive;
    return n;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    CUresult code = fake_enter("cuStreamCreate", RULE_CONTEXT);
    if (!code && flags > 1)
        code = INVALID_VALUE;
    if (!code)
        *stream = fake_stream_add(fake_current(), 0, flags == 0);
    return fake_leave(code);
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuStreamDestroy", RULE_CONTEXT);
    if (!code)
        code = fake_stream_of(handle, "cuStreamDestroy", &s);
    if (!code && (s->is_legacy || s == s->context->per_thread))
        code = fake_violate(INVALID_HANDLE, "a default stream is destroyed");
    if (!code && s->capture != CAPTURE_NONE)
        fake_violate(0, "a stream is destroyed while it is being captured");
    if (!code)
        destroy_stream(s);
    return fake_leave(code);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuStreamGetCtx", RULE_INITIALIZED);
    if (!code && !(code = fake_stream_of(handle, "cuStreamGetCtx", &s)))
        *context = s->context;
    return fake_leave(code);
}

/* Of the legacy stream while a blocking stream is being captured: an error, which breaks nothing. */
CUresult cuStreamIsCapturing(CUstream handle, int *status)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuStreamIsCapturing", RULE_INITIALIZED);
    if (!code)
        code = fake_stream_of(handle, "cuStreamIsCapturing", &s);
    if (!code && s->is_legacy && fake_has_capture(s->context, 1))
        code = CAPTURE_IMPLICIT;
    if (!code)
        *status = (int)s->capture;
    return fake_leave(code);
}

/* The same for both ways to ask; a stream that is captured cannot be waited for. */
static CUresult begin_wait(CUstream handle, const char *name, CUstream *s)
{
    CUresult code = fake_stream_of(handle, name, s);
    if (!code)
        code = check_legacy(*s, name);
    if (!code && (*s)->capture != CAPTURE_NONE) {
        (*s)->capture = CAPTURE_BROKEN;
        code = fake_violate(CAPTURE_UNSUPPORTED, "%s of a stream that is being captured", name);
    }
    return code;
}

CUresult cuStreamSynchronize(CUstream handle)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuStreamSynchronize", RULE_CONTEXT | RULE_UNSAFE);
    if (!code && !(code = begin_wait(handle, "cuStreamSynchronize", &s))) {
        /* The legacy stream's end is also that of what it waits for. */
        for (CUstream other = fake.streams; other && s->is_legacy; other = other->next)
            if (other->is_blocking && other->context == s->context)
                fake_run(other, EVERYTHING);
        fake_run(s, EVERYTHING);
        code = s->context->left_behind;
    }
    return fake_leave(code);
}

CUresult cuStreamQuery(CUstream handle)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuStreamQuery", RULE_CONTEXT | RULE_UNSAFE);
    if (!code && !(code = begin_wait(handle, "cuStreamQuery", &s)))
        code = s->held ? NOT_READY : 0;
    return fake_leave(code);
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuStreamWaitEvent", RULE_CONTEXT);
    if (!code)
        code = flags > 1 ? INVALID_VALUE : fake_stream_of(handle, "cuStreamWaitEvent", &s);
    if (!code && event->is_captured != (s->capture == CAPTURE_ACTIVE))
        code = fake_violate(CAPTURE_ISOLATION, "the fake driver's captures are of one stream: no waits into or out of them");
    if (!code) {
        op *o = fake_op(OP_WAIT);
        o->event = event;
        o->from = event->sequence;
        code = fake_submit(s, o);
    }
    return fake_leave(code);
}

/* ---- Events ---- */

static CUresult check_event(CUevent event, const char *name)
{
    for (CUevent e = fake.events; e; e = e->next)
        if (e == event && e->alive)
            return e->context->left_behind;
    return fake_violate(INVALID_HANDLE, "%s with an event that does not live", name);
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    CUresult code = fake_enter("cuEventCreate", RULE_CONTEXT);
    CUevent e = NULL;
    if (!code && flags & ~7u)
        code = INVALID_VALUE;
    if (!code && !(e = calloc(1, sizeof *e)))
        code = OUT_OF_MEMORY;
    if (!code) {
        e->context = fake_current();
        e->alive = 1;
        e->next = fake.events;
        *event = fake.events = e;
    }
    return fake_leave(code);
}

CUresult cuEventDestroy_v2(CUevent event)
{
    CUresult code = fake_enter("cuEventDestroy", RULE_CONTEXT);
    if (!code && !(code = check_event(event, "cuEventDestroy")))
        event->alive = 0;
    return fake_leave(code);
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuEventRecord", RULE_CONTEXT);
    if (!code && !(code = check_event(event, "cuEventRecord")))
        code = fake_stream_of(handle, "cuEventRecord", &s);
    if (!code && s->context != event->context)
        code = fake_violate(INVALID_HANDLE, "an event is recorded in a stream of another context");
    if (!code) {
        op *o = fake_op(OP_RECORD);
        o->event = event;
        code = fake_submit(s, o);
    }
    if (!code) {
        event->stream = s;
        event->is_captured = s->capture == CAPTURE_ACTIVE;
        event->sequence = fake.sequence;
    }
    return fake_leave(code);
}

static CUresult begin_event_wait(CUevent event, const char *name)
{
    CUresult code = check_event(event, name);
    if (!code && event->is_captured) {
        event->stream->capture = event->stream->capture == CAPTURE_NONE ? CAPTURE_NONE : CAPTURE_BROKEN;
        code = fake_violate(CAPTURED_EVENT, "%s of an event that a capture recorded", name);
    }
    return code;
}

CUresult cuEventQuery(CUevent event)
{
    CUresult code = fake_enter("cuEventQuery", RULE_CONTEXT | RULE_UNSAFE);
    if (!code && !(code = begin_event_wait(event, "cuEventQuery"))) {
        const op *next = event->stream ? event->stream->held : NULL;
        code = next && next->sequence <= event->sequence ? NOT_READY : 0;
    }
    return fake_leave(code);
}

CUresult cuEventSynchronize(CUevent event)
{
    CUresult code = fake_enter("cuEventSynchronize", RULE_CONTEXT | RULE_UNSAFE);
    if (!code && !(code = begin_event_wait(event, "cuEventSynchronize"))) {
        if (event->stream)
            fake_run(event->stream, event->sequence);
        code = event->context->left_behind;
    }
    return fake_leave(code);
}
