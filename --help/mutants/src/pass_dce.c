/* Dead code: nodes that no output needs go. Inputs stay, since they are the composite's signature. */
#include "rebuild.h"
#include "status.h"

ol_status pass_dce(const graph *in, graph **out, ol_error *error)
{
    rebuild r;
    ol_status status = rebuild_begin(&r, in, error);
    if (status != OL_OK)
        return status;
    uint8_t *live = memory_take(&in->allocator, in->n_nodes);
    if (!live)
        status = fail(error, OL_ERROR_MEMORY, in->name, "no memory for marks on %zu nodes", in->n_nodes);
    if (status == OL_OK) {
        for (int32_t i = 0; i < in->n_inputs; i++)
            live[i] = 1;
        for (int32_t i = 0; i < in->n_outputs; i++)
            live[in->outputs[i]] = 1;
        for (size_t i = in->n_nodes; i-- > 0;)
            for (int k = 0; live[i] && k < in->nodes[i].n_operands; k++)
                live[in->nodes[i].operands[k]] = 1;
    }
    for (uint32_t i = 0; status == OL_OK && i < in->n_nodes; i++)
        if (live[i]) {
            node n = rebuild_translate(&r, i);
            status = rebuild_append(&r, i, &n, error);
        }
    memory_give(&in->allocator, live, in->n_nodes);
    return rebuild_end(&r, status, out, error);
}
