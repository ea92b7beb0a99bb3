/* A step: check everything, then hand over to the device. */
#include "layer.h"

#include "status.h"

ol_status ol_gated_delta_step(const ol_gated_delta *layer, ol_stream stream, const ol_gated_delta_arguments *arguments, ol_error *error)
{
    delta_call call;
    if (!layer || !arguments)
        return fail(error, OL_ERROR_ARGUMENT, DELTA_OPERATION, "%s NULL", layer ? "the arguments are" : "the layer is");
    const backend *b = layer->device->backend;
    ol_status status = b->check_stream(layer->device, stream, DELTA_OPERATION, error);
    if (status == OL_OK)
        status = delta_check(layer, arguments, &call, error);
    return status == OL_OK ? b->delta_step(&call, stream, error) : status;
}
