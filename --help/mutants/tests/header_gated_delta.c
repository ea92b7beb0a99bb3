/* The header of the gated-delta family alone, as C11 and as C++17: it brings onelaunch.h, twice for its guard. */
#include <onelaunch_gated_delta.h>
#include <onelaunch_gated_delta.h>

#include <string.h>

int header_gated_delta(ol_device *device, const ol_tensor *projection);
int header_gated_delta(ol_device *device, const ol_tensor *projection)
{
    ol_gate_options options = { OL_GATE_LOWER_BOUND, OL_GATE_RATE_LOGARITHM, OL_GATE_SUM_FLOAT32, OL_GATE_LOG_DECAY, OL_GATE_BETA_DOUBLED, OL_FLOAT32, OL_FLOAT32, 0, 0, -5.0, 0.0, 0.0 };
    ol_composite *composite = 0;
    ol_tensor b, a, view;
    ol_error error;
    return ol_gated_delta_gates_compile(device, &options, OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16, &composite, &error) != OL_OK ||
           ol_gated_delta_split(projection, OL_GATE_INTERLEAVED, 2, &b, &a, &error) != OL_OK ||
           ol_gated_delta_heads_view(projection, -1, 2, OL_HEADS_TILED, &view, &error) != OL_OK;
}

int header_gated_delta_mixer(ol_device *device, const ol_gated_delta_mixer_arguments *arguments);
int header_gated_delta_mixer(ol_device *device, const ol_gated_delta_mixer_arguments *arguments)
{
    ol_gated_delta_mixer_options options;
    ol_gated_delta_mixer *mixer = 0;
    ol_tensor query, key, value, gate;
    ol_error error;
    options.recurrence.key_heads = 1;
    return ol_gated_delta_mixer_create(device, &options, &mixer, &error) != OL_OK || ol_gated_delta_mixer_step(mixer, 0, arguments, &error) != OL_OK ||
           ol_gated_delta_mixer_split(&arguments->gate, -1, OL_MIXER_INTERLEAVED, &options.recurrence, &query, &key, &value, &gate, &error) != OL_OK;
}

int header_gated_delta_step(ol_device *device);
int header_gated_delta_step(ol_device *device)
{
    ol_gated_delta_options options;
    ol_gated_delta_arguments arguments;
    ol_gated_delta *layer = 0;
    ol_error error;
    int failed;
    memset(&options, 0, sizeof options);             /* the one form that both languages take without a warning */
    memset(&arguments, 0, sizeof arguments);
    options.key_heads = options.value_heads = 1;
    options.key_dim = options.value_dim = OL_DELTA_MAX_DIM;
    options.norm = OL_DELTA_NORM_RSQRT;
    options.state_layout = OL_DELTA_KEY_VALUE;
    options.decay = OL_DELTA_DECAY_GIVEN;
    options.padding = OL_DELTA_PADDING_NOT_POSITIVE;
    failed = ol_gated_delta_create(device, &options, &layer, &error) != OL_OK || ol_gated_delta_step(layer, 0, &arguments, &error) != OL_OK;
    ol_gated_delta_destroy(layer);
    return failed;
}
