/* Tracing: the state behind an ol_graph while a builder runs. */
#ifndef OL_TRACE_H
#define OL_TRACE_H

#include "graph.h"

struct ol_graph {
    graph *g;
    uint32_t serial;          /* tags the values of this trace; 0 is never used */
    int failed;               /* the first error is in `error` and stays */
    ol_error error;
};

/* Begins a trace with its inputs as the first nodes. trace_abandon or trace_end ends it. */
ol_status trace_begin(ol_graph *t, const ol_allocator *allocator, int32_t n_inputs, const ol_dtype *input_dtypes, int32_t n_outputs,
                      const char *name, ol_error *error);
ol_value trace_input(const ol_graph *t, int32_t index);
/* Takes the builder's outputs. On success *g is the caller's; in every case the trace is over. */
ol_status trace_end(ol_graph *t, const ol_value *outputs, graph **g, ol_error *error);
void trace_abandon(ol_graph *t);

/* Calls the builder inside a trace. */
ol_status trace_builder(const ol_allocator *allocator, const ol_builder *builder, const ol_dtype *input_dtypes, graph **g, ol_error *error);

#endif
