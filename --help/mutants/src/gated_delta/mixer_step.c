/* A mixer step: check everything, then hand over to the device. */
#include "gated_delta/mixer.h"

#include "status.h"

ol_status ol_gated_delta_mixer_step(const ol_gated_delta_mixer *mixer, ol_stream stream, const ol_gated_delta_mixer_arguments *arguments, ol_error *error)
{
    mixer_call call;
    if (!mixer || !arguments)
        return fail(error, OL_ERROR_ARGUMENT, MIXER_OPERATION, "%s NULL", mixer ? "the arguments are" : "the mixer is");
    const backend *b = mixer->device->backend;
    ol_status status = b->check_stream(mixer->device, stream, MIXER_OPERATION, error);
    if (status == OL_OK)
        status = mixer_check(mixer, arguments, &call, error);
    return status == OL_OK ? b->mixer_step(&call, stream, error) : status;
}
