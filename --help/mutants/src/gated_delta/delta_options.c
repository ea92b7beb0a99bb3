/* From options to a layer: every field is held to what it may be, defaults are filled in, the gates are compiled. */
#include "layer.h"

#include "dtype.h"
#include "gates.h"
#include "memory.h"
#include "numerics/fpenv.h"
#include "numerics/numerics.h"
#include "status.h"

static const char operation[] = "gated_delta_create";

static ol_status refuse(const char *field, long given, const char *expected, ol_error *error)
{
    return fail(error, OL_ERROR_ARGUMENT, operation, "%s is %ld; expected %s", field, given, expected);
}

static ol_status check_geometry(const ol_gated_delta_options *o, ol_error *error)
{
    if (o->key_heads < 1)
        return refuse("key_heads", o->key_heads, "1 or more", error);
    if (o->value_heads < 1 || o->value_heads % o->key_heads)
        return fail(error, OL_ERROR_ARGUMENT, operation, "value_heads is %d; expected a multiple of key_heads, %d", (int)o->value_heads,
                    (int)o->key_heads);
    if (o->key_dim < 1 || o->key_dim > OL_DELTA_MAX_DIM)
        return refuse("key_dim", o->key_dim, "1 to 256", error);
    if (o->value_dim < 1 || o->value_dim > OL_DELTA_MAX_DIM)
        return refuse("value_dim", o->value_dim, "1 to 256", error);
    return OL_OK;
}

static ol_status check_choices(const ol_gated_delta_options *o, ol_error *error)
{
    if ((unsigned)o->head_map > OL_HEADS_TILED)
        return refuse("head_map", (long)o->head_map, "OL_HEADS_GROUPED or OL_HEADS_TILED", error);
    if ((unsigned)o->state_layout > OL_DELTA_KEY_VALUE)
        return refuse("state_layout", (long)o->state_layout, "OL_DELTA_VALUE_KEY or OL_DELTA_KEY_VALUE", error);
    if ((unsigned)o->norm > OL_DELTA_NORM_RMS)
        return refuse("norm", (long)o->norm, "OL_DELTA_NORM_NONE to OL_DELTA_NORM_RMS", error);
    if ((unsigned)o->decay > OL_DELTA_DECAY_GIVEN)
        return refuse("decay", (long)o->decay, "OL_DELTA_DECAY_COMPUTED to OL_DELTA_DECAY_GIVEN", error);
    if ((unsigned)o->padding > OL_DELTA_PADDING_NONE)
        return refuse("padding", (long)o->padding, "OL_DELTA_PADDING_NEGATIVE to OL_DELTA_PADDING_NONE", error);
    return OL_OK;
}

/* Fills a dtype that is 0, and refuses one that is not floating. */
static ol_status fill_dtype(ol_dtype *dtype, ol_dtype otherwise, const char *field, ol_error *error)
{
    if (*dtype == 0)
        *dtype = otherwise;
    if (!dtype_valid(*dtype) || !dtype_is_float(*dtype))
        return fail(error, OL_ERROR_DTYPE, operation, "%s is %s; expected %sfloat32, float16 or bfloat16", field,
                    !dtype_valid(*dtype) ? "no dtype" : *dtype == 0 ? "0" : ol_dtype_name(*dtype), otherwise ? "0, " : "");
    return OL_OK;
}

static ol_status fill_dtypes(ol_gated_delta_options *o, ol_error *error)
{
    ol_status status = fill_dtype(&o->activation_dtype, 0, "activation_dtype", error);
    const struct { ol_dtype *dtype, otherwise; const char *field; } dtypes[] = {
        { &o->output_dtype, o->activation_dtype, "output_dtype" },
        { &o->state_dtype, OL_FLOAT32, "state_dtype" },
        { &o->update_dtype, o->activation_dtype, "update_dtype" },
        { &o->decay_dtype, o->activation_dtype, "decay_dtype" },
        { &o->decay_rate_dtype, OL_FLOAT32, "decay_rate_dtype" },
        { &o->decay_bias_dtype, o->activation_dtype, "decay_bias_dtype" },
    };
    for (size_t i = 0; status == OL_OK && i < sizeof dtypes / sizeof *dtypes; i++)
        status = fill_dtype(dtypes[i].dtype, dtypes[i].otherwise, dtypes[i].field, error);
    return status;
}

/* epsilon and scale as float32, without a floating-point operation under the host's state. */
static ol_status fill_numbers(ol_gated_delta *layer, ol_error *error)
{
    const ol_gated_delta_options *o = &layer->options;
    uint32_t epsilon = (uint32_t)dtype_from_double(OL_FLOAT32, gate_is_zero(o->epsilon) ? 1e-6 : o->epsilon);
    uint32_t scale = (uint32_t)dtype_from_double(OL_FLOAT32, o->scale);
    if (epsilon >= 0x7f800000u)        /* infinite, NaN or below 0 */
        return fail(error, OL_ERROR_ARGUMENT, operation, "epsilon is %g; expected a float32, 0 or more", o->epsilon);
    if ((scale & 0x7fffffffu) >= 0x7f800000u)
        return fail(error, OL_ERROR_ARGUMENT, operation, "scale is %g; expected a finite float32, or 0 for key_dim^-1/2", o->scale);
    fpenv host = fpenv_begin();
    layer->root = num_rsqrt_f32((float)o->key_dim);
    layer->epsilon = num_from_bits32(epsilon);
    layer->scale = gate_is_zero(o->scale) ? layer->root : num_from_bits32(scale);
    fpenv_end(host);
    layer->ratio = o->value_heads / o->key_heads;
    return OL_OK;
}

/* ---- Gates ---- */

static ol_status check_gates(const ol_gated_delta_options *o, ol_error *error)
{
    const ol_gate_options *g = &o->gates;
    ol_status status = gate_options_check(g, operation, error);
    if (status != OL_OK)
        return status;
    if (g->output != OL_GATE_DECAY)
        return refuse("gates.output", (long)g->output, "OL_GATE_DECAY, which is what a step takes", error);
    if (g->beta == OL_GATE_BETA_NONE)
        return refuse("gates.beta", (long)g->beta, "OL_GATE_BETA_SIGMOID, _DOUBLED or _RAW: a step needs beta", error);
    if (g->beta_dtype != 0)
        return fail(error, OL_ERROR_ARGUMENT, operation, "gates.beta_dtype is %s; expected 0: a step takes beta in float32, rounded as beta_rounding says",
                    ol_dtype_name(g->beta_dtype));
    if (o->decay != OL_DELTA_DECAY_COMPUTED &&
        (g->kind || g->rate || g->sum || g->skip_softplus || g->finite_rate || !gate_is_zero(g->interval_low) || !gate_is_zero(g->interval_high)))
        return fail(error, OL_ERROR_ARGUMENT, operation, "gates say how the decay is computed, but it is given; expected 0 in all of them but beta and beta_rounding");
    return OL_OK;
}

static int build_given(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    const ol_gated_delta_options *o = user;
    out[0] = gate_update_rate(g, &o->gates, in[0]);
    out[1] = ol_astype(g, in[1], OL_FLOAT32);
    if (o->decay == OL_DELTA_DECAY_LOGARITHM)
        out[1] = ol_exp(g, out[1]);
    return 0;
}

static ol_status compile_gates(ol_gated_delta *layer, ol_error *error)
{
    ol_gated_delta_options o = layer->options;
    const ol_dtype dtypes[GATE_INPUTS] = { o.update_dtype, o.decay_dtype, o.decay_rate_dtype, o.decay_bias_dtype };
    o.gates.beta_dtype = OL_FLOAT32;
    if (o.decay == OL_DELTA_DECAY_COMPUTED)
        return gate_compile(layer->device, &o.gates, dtypes, "gated_delta_gates", &layer->gates, error);
    const ol_builder builder = { .build = build_given, .user = &o, .n_inputs = 2, .n_outputs = 2, .name = "gated_delta_gates" };
    return ol_compile(layer->device, &builder, dtypes, &layer->gates, error);
}

/* ---- Life ---- */

ol_status delta_create(ol_device *device, const ol_gated_delta_options *options, ol_gated_delta **out, ol_error *error)
{
    if (!device->backend->delta_prepare)
        return fail(error, OL_ERROR_DEVICE, operation, "%s has no kernels for this", device->backend->name(device));
    ol_gated_delta_options filled = *options;
    ol_status status = check_geometry(options, error);
    if (status == OL_OK)
        status = check_choices(options, error);
    if (status == OL_OK)
        status = check_gates(options, error);
    if (status == OL_OK)
        status = fill_dtypes(&filled, error);
    if (status != OL_OK)
        return status;
    ol_gated_delta *layer = memory_take(&device->allocator, sizeof *layer);
    if (!layer)
        return fail(error, OL_ERROR_MEMORY, operation, "no memory for a layer");
    layer->device = device;
    layer->options = filled;
    device_retain(device);
    status = fill_numbers(layer, error);
    if (status == OL_OK)
        status = compile_gates(layer, error);
    if (status == OL_OK)
        *out = layer;
    else
        ol_gated_delta_destroy(layer);
    return status;
}

ol_status ol_gated_delta_create(ol_device *device, const ol_gated_delta_options *options, ol_gated_delta **out, ol_error *error)
{
    ol_gated_delta *layer;
    if (!device || !options || !out)
        return fail(error, OL_ERROR_ARGUMENT, operation, "%s NULL", !device ? "the device is" : !options ? "the options are" : "the place for the layer is");
    ol_status status = delta_create(device, options, &layer, error);
    if (status != OL_OK)
        return status;
    status = device->backend->delta_prepare(layer, error);
    if (status == OL_OK)
        *out = layer;
    else
        ol_gated_delta_destroy(layer);
    return status;
}

void ol_gated_delta_destroy(ol_gated_delta *layer)
{
    if (!layer)
        return;
    ol_device *device = layer->device;
    if (device->backend->delta_release)
        device->backend->delta_release(layer);
    ol_composite_destroy(layer->gates);
    memory_give(&device->allocator, layer, sizeof *layer);
    device_release(device);
}
