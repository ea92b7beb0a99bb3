/* From options to a mixer: its own fields here, those of the recurrence by making the layer that it has within. */
#include "gated_delta/mixer.h"

#include "dtype.h"
#include "gates.h"
#include "memory.h"
#include "numerics/numerics.h"
#include "status.h"

#include <string.h>

static const char operation[] = "gated_delta_mixer_create";

static ol_status refuse(const char *field, long given, const char *expected, ol_error *error)
{
    return fail(error, OL_ERROR_ARGUMENT, operation, "%s is %ld; expected %s", field, given, expected);
}

static ol_status check_choices(const ol_gated_delta_mixer_options *o, ol_error *error)
{
    if (o->width != 0 && (o->width < 2 || o->width > MIXER_MAX_WIDTH))
        return refuse("width", o->width, "2 to 4, or 0 for 4", error);
    if (o->activation != OL_MIXER_SILU && o->activation != OL_MIXER_NONE)
        return refuse("activation", (long)o->activation, "OL_MIXER_SILU or OL_MIXER_NONE", error);
    if ((unsigned)o->window > OL_MIXER_WINDOW_RING)
        return refuse("window", (long)o->window, "OL_MIXER_WINDOW_SHIFTED or OL_MIXER_WINDOW_RING", error);
    if ((unsigned)o->norm > OL_MIXER_NORM_NONE)
        return refuse("norm", (long)o->norm, "OL_MIXER_NORM_RMS or OL_MIXER_NORM_NONE", error);
    if ((unsigned)o->gate > OL_MIXER_NONE)
        return refuse("gate", (long)o->gate, "OL_MIXER_SILU to OL_MIXER_NONE", error);
    if (o->norm == OL_MIXER_NORM_NONE && (o->gate || o->gate_dtype || o->norm_weight_dtype || o->normalized_rounded || o->weighted_rounded || !gate_is_zero(o->epsilon)))
        return fail(error, OL_ERROR_ARGUMENT, operation, "there is no norm, but fields say how it is computed; expected 0 in epsilon, gate, gate_dtype, norm_weight_dtype, normalized_rounded and weighted_rounded");
    if (o->gate == OL_MIXER_NONE && o->gate_dtype)
        return fail(error, OL_ERROR_ARGUMENT, operation, "gate_dtype is %s, but there is no gate; expected 0", dtype_valid(o->gate_dtype) ? ol_dtype_name(o->gate_dtype) : "given");
    return OL_OK;
}

static ol_status fill_dtype(ol_dtype *dtype, ol_dtype otherwise, const char *field, ol_error *error)
{
    if (*dtype == 0)
        *dtype = otherwise;
    if (*dtype != 0 && (!dtype_valid(*dtype) || !dtype_is_float(*dtype)))
        return fail(error, OL_ERROR_DTYPE, operation, "%s is %s; expected 0, float32, float16 or bfloat16", field,
                    dtype_valid(*dtype) ? ol_dtype_name(*dtype) : "no dtype");
    return OL_OK;
}

/* Of the recurrence's options, which have been filled in. */
static ol_status fill(ol_gated_delta_mixer *m, ol_error *error)
{
    ol_gated_delta_mixer_options *o = &m->options;
    ol_dtype activation = m->layer->options.activation_dtype;
    o->recurrence = m->layer->options;
    o->width = o->width ? o->width : MIXER_MAX_WIDTH;
    ol_status status = fill_dtype(&o->weight_dtype, activation, "weight_dtype", error);
    if (status == OL_OK)
        status = fill_dtype(&o->bias_dtype, (ol_dtype)0, "bias_dtype", error);
    if (status == OL_OK)
        status = fill_dtype(&o->window_dtype, activation, "window_dtype", error);
    if (status == OL_OK)
        status = fill_dtype(&o->gate_dtype, activation, "gate_dtype", error);
    if (status == OL_OK)
        status = fill_dtype(&o->norm_weight_dtype, OL_FLOAT32, "norm_weight_dtype", error);
    if (status == OL_OK && o->window_dtype != activation && o->window_dtype != OL_FLOAT32)
        return fail(error, OL_ERROR_DTYPE, operation, "window_dtype is %s; expected 0, %s or float32, which hold the inputs exactly", ol_dtype_name(o->window_dtype),
                    ol_dtype_name(activation));
    if (status != OL_OK)
        return status;
    uint32_t epsilon = (uint32_t)dtype_from_double(OL_FLOAT32, gate_is_zero(o->epsilon) ? 1e-6 : o->epsilon);
    if (epsilon >= 0x7f800000u)        /* infinite, NaN or below 0 */
        return fail(error, OL_ERROR_ARGUMENT, operation, "epsilon is %g; expected a float32, 0 or more", o->epsilon);
    m->epsilon = num_from_bits32(epsilon);
    return OL_OK;
}

ol_status ol_gated_delta_mixer_create(ol_device *device, const ol_gated_delta_mixer_options *options, ol_gated_delta_mixer **out, ol_error *error)
{
    ol_gated_delta *layer;
    if (!device || !options || !out)
        return fail(error, OL_ERROR_ARGUMENT, operation, "%s", !device ? "the device is NULL" : !options ? "the options are NULL" : "the place for the mixer is NULL");
    if (!device->backend->mixer_step)
        return fail(error, OL_ERROR_DEVICE, operation, "%s has no kernels for this", device->backend->name(device));
    ol_status status = check_choices(options, error);
    if (status == OL_OK)
        status = delta_create(device, &options->recurrence, &layer, error);
    if (status != OL_OK)
        return status;
    ol_gated_delta_mixer *m = memory_take(&device->allocator, sizeof *m);
    if (!m) {
        ol_gated_delta_destroy(layer);
        return fail(error, OL_ERROR_MEMORY, operation, "no memory for a mixer");
    }
    *m = (ol_gated_delta_mixer){ .device = device, .layer = layer, .options = *options };
    status = fill(m, error);
    if (status == OL_OK)
        status = device->backend->mixer_prepare(m, error);
    if (status == OL_OK)
        *out = m;
    else
        ol_gated_delta_mixer_destroy(m);
    return status;
}

void ol_gated_delta_mixer_destroy(ol_gated_delta_mixer *m)
{
    if (!m)
        return;
    ol_gated_delta *layer = m->layer;
    if (m->device->backend->mixer_release)
        m->device->backend->mixer_release(m);
    memory_give(&m->device->allocator, m, sizeof *m);
    ol_gated_delta_destroy(layer);     /* it keeps the device alive until here */
}
