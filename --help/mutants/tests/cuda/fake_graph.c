/* The fake driver's stream captures and graphs: lists of work, done in the order in which it was recorded. */
#include "fake_state.h"

#include <stdlib.h>

typedef op *CUgraphNode;

CUgraph fake_graph_create(CUcontext context, const op *ops)
{
    CUgraph graph = calloc(1, sizeof *graph);
    if (!graph)
        abort();
    graph->alive = 1;
    graph->context = context;
    for (; ops; ops = ops->next)
        fake_graph_add(graph, fake_op_copy(ops));
    graph->next = fake.graphs;
    return fake.graphs = graph;
}

/* A record of an event is no node: it only names a place. */
void fake_graph_add(CUgraph graph, op *o)
{
    op **last = &graph->ops;
    if (o->kind == OP_RECORD || o->kind == OP_WAIT) {
        fake_op_free(o);
        return;
    }
    while (*last)
        last = &(*last)->next;
    *last = o;
}

void fake_graph_destroy(CUgraph graph)
{
    if (!graph)
        return;
    fake_free_graph(graph);
    while (graph->ops) {
        op *o = graph->ops;
        graph->ops = o->next;
        fake_op_free(o);
    }
    graph->alive = 0;
}

size_t fake_graph_leaks(void)
{
    size_t n = 0;
    for (CUgraph g = fake.graphs; g; g = g->next)
        n += (size_t)g->alive;
    for (CUstream s = fake.streams; s; s = s->next)
        n -= s->graph && s->graph->alive;        /* counted with its stream */
    return n;
}

static CUresult check_graph(CUgraph graph, int is_executable, const char *name)
{
    for (CUgraph g = fake.graphs; g; g = g->next)
        if (g == graph && g->alive && g->is_executable == is_executable)
            return 0;
    return fake_violate(INVALID_VALUE, "%s of a graph that does not live", name);
}

/* ---- Captures ---- */

CUresult cuStreamBeginCapture_v2(CUstream handle, int mode)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuStreamBeginCapture", RULE_INITIALIZED);
    if (!code)
        code = mode < 0 || mode > 2 ? INVALID_VALUE : fake_stream_of(handle, "cuStreamBeginCapture", &s);
    if (!code && s->is_legacy)
        code = CAPTURE_UNSUPPORTED;
    if (!code && s->capture != CAPTURE_NONE)
        code = fake_violate(ILLEGAL_STATE, "a capture is begun in a stream that is being captured");
    if (!code) {
        fake_graph_destroy(s->graph);
        s->graph = fake_graph_create(s->context, NULL);
        s->capture = CAPTURE_ACTIVE;
        s->capture_mode = mode;
        s->capturer = pthread_self();
    }
    return fake_leave(code);
}

/* Ends the capture; a broken one leaves no graph. */
static CUresult end_capture(CUstream handle, CUstream *stream)
{
    CUresult code = fake_stream_of(handle, "cuStreamEndCapture", stream);
    CUstream s = *stream;
    if (!code && s->capture == CAPTURE_NONE)
        code = fake_violate(CAPTURE_UNMATCHED, "a capture is ended that was not begun");
    if (!code && s->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(s->capturer, pthread_self()))
        code = fake_violate(CAPTURE_WRONG_THREAD, "a capture is ended by another thread");
    if (code)
        return code;
    int broken = s->capture == CAPTURE_BROKEN;
    s->capture = CAPTURE_NONE;
    if (broken) {
        fake_graph_destroy(s->graph);
        s->graph = NULL;
    }
    return broken ? CAPTURE_INVALIDATED : 0;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuStreamEndCapture", RULE_INITIALIZED);
    *graph = NULL;
    if (!code && !(code = end_capture(handle, &s))) {
        *graph = s->graph;
        s->graph = NULL;
    }
    return fake_leave(code);
}

int fake_begin_capture(CUstream stream, int mode);
int fake_begin_capture(CUstream stream, int mode) { return cuStreamBeginCapture_v2(stream, mode); }

int fake_end_capture(CUstream handle, int *n_kernels, int *n_others);
int fake_end_capture(CUstream handle, int *n_kernels, int *n_others)
{
    CUstream s = NULL;
    CUresult code = fake_enter("cuStreamEndCapture", RULE_INITIALIZED);
    *n_kernels = *n_others = 0;
    if (!code)
        code = end_capture(handle, &s);
    for (const op *o = !code && s->graph ? s->graph->ops : NULL; o; o = o->next)
        ++*(o->kind == OP_LAUNCH ? n_kernels : n_others);
    return fake_leave(code);
}

/* ---- Graphs ---- */

static CUresult launch(CUgraph graph, CUstream handle, const char *name)
{
    CUstream s = NULL;
    CUresult code = fake_stream_of(handle, name, &s);
    for (const op *o = graph->ops; o && !code; o = o->next)
        if (o->kind != OP_FREE)                  /* the graph keeps its memory */
            code = fake_submit(s, fake_op_copy(o));
    return code ? code : s->context->left_behind;
}

int fake_graph_replay(CUstream captured, CUstream stream);
int fake_graph_replay(CUstream captured, CUstream stream)
{
    CUresult code = fake_enter("cuGraphLaunch", RULE_INITIALIZED);
    if (!code)
        code = captured->graph ? launch(captured->graph, stream, "fake_graph_replay") : INVALID_VALUE;
    return fake_leave(code);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n_nodes)
{
    CUresult code = fake_enter("cuGraphGetNodes", RULE_INITIALIZED);
    size_t n = 0;
    if (!code && !(code = check_graph(graph, 0, "cuGraphGetNodes"))) {
        for (op *o = graph->ops; o; o = o->next, n++)
            if (nodes && n < *n_nodes)
                nodes[n] = o;
        *n_nodes = n;
    }
    return fake_leave(code);
}

CUresult cuGraphNodeGetType(CUgraphNode node, int *type)
{
    static const int types[] = { [OP_LAUNCH] = 0, [OP_COPY] = 1, [OP_SET] = 2, [OP_ALLOCATE] = 10, [OP_FREE] = 11 };
    CUresult code = fake_enter("cuGraphNodeGetType", RULE_INITIALIZED);
    if (!code)
        *type = types[node->kind];
    return fake_leave(code);
}

CUresult cuGraphInstantiateWithFlags(CUgraph *executable, CUgraph graph, unsigned long long flags)
{
    CUresult code = fake_enter("cuGraphInstantiateWithFlags", RULE_CONTEXT);
    (void)flags;
    if (!code && !(code = check_graph(graph, 0, "cuGraphInstantiateWithFlags"))) {
        *executable = fake_graph_create(graph->context, graph->ops);
        (*executable)->is_executable = 1;
    }
    return fake_leave(code);
}

CUresult cuGraphLaunch(CUgraph executable, CUstream stream)
{
    CUresult code = fake_enter("cuGraphLaunch", RULE_INITIALIZED);
    if (!code && !(code = check_graph(executable, 1, "cuGraphLaunch")))
        code = launch(executable, stream, "cuGraphLaunch");
    return fake_leave(code);
}

static CUresult destroy(CUgraph graph, int is_executable, const char *name)
{
    CUresult code = fake_enter(name, RULE_INITIALIZED);
    if (!code && !(code = check_graph(graph, is_executable, name)))
        fake_graph_destroy(graph);
    return fake_leave(code);
}

CUresult cuGraphDestroy(CUgraph graph) { return destroy(graph, 0, "cuGraphDestroy"); }
CUresult cuGraphExecDestroy(CUgraph executable) { return destroy(executable, 1, "cuGraphExecDestroy"); }
