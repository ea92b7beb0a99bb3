/* See step_run.h.
 *
 * What a device computes in are mirrors (device_memory.h) of the layer's tensors, and of one result of each kind; a call's tensors are views of
 * them. Results come to the host once a run is done. */
#include "step_run.h"

#include "cli.h"
#include "device_memory.h"
#include "floats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct step_machine {
    ol_device *device;
    const step_layer *layer;
    enum step_part part;
    ol_gated_delta *recurrence;                    /* of STEP_PART_RECURRENCE, … */
    ol_gated_delta_mixer *mixer, *without_norm;    /* … and of STEP_PART_MIXER */
    ol_tensor input[STEP_BASES];                   /* mirrors of layer->base */
    ol_tensor result[STEP_RESULTS];                /* hosts of the results, … */
    ol_tensor result_mirror[STEP_RESULTS];         /* … and mirrors */
    ol_tensor convolved, convolved_mirror;         /* q, k and v of the recurrence alone */
};

static bool failed(const step_machine *machine, const ol_error *reason, st_error *error) {
    return st_fail(error, "tensor %.300s: %s: %s", machine->layer->rates->label, reason->operation, reason->description);
}

/* ---- Views ------------------------------------------------------------------------------------------------------- */

/* Tokens begin to begin + n; the first axis is theirs. */
static ol_tensor tokens_of(const ol_tensor *tensor, int64_t begin, int64_t n) {
    ol_tensor view = *tensor;
    view.data = (char *)tensor->data + (size_t)(begin * tensor->strides[0]) * ol_dtype_size(tensor->dtype);
    view.shape[0] = n;
    return view;
}

static void set_recurrence(const step_machine *machine, int64_t begin, int64_t n, ol_gated_delta_arguments *a) {
    const ol_tensor *in = machine->input;
    a->update = tokens_of(&in[STEP_B], begin, n);
    a->decay = tokens_of(&in[STEP_A], begin, n);
    a->decay_rate = in[STEP_A_LOG];
    a->decay_bias = in[STEP_DT_BIAS];
    a->state = machine->result_mirror[STEP_STATE];
}

static ol_status call_mixer(const step_machine *machine, const ol_gated_delta_mixer *mixer, enum step_result into, int64_t begin, int64_t n, ol_error *reason) {
    const ol_gated_delta_options *geometry = &machine->layer->options.recurrence;
    const ol_tensor *in = machine->input, *window = &machine->result_mirror[STEP_WINDOW];
    bool has_norm = into == STEP_OUTPUT, has_z = machine->layer->has_z;
    ol_gated_delta_mixer_arguments a = { 0 };
    ol_tensor projection = tokens_of(&in[STEP_QKV], begin, n), z;
    set_recurrence(machine, begin, n, &a.recurrence);
    a.recurrence.output = tokens_of(&machine->result_mirror[into], begin, n);
    ol_status status = ol_gated_delta_mixer_split(&projection, -1, has_z ? OL_MIXER_INTERLEAVED : OL_MIXER_JOINT, geometry, &a.recurrence.query, &a.recurrence.key,
                                                  &a.recurrence.value, has_z ? &z : NULL, reason);
    if (status == OL_OK) {
        status = ol_gated_delta_mixer_split(&in[STEP_CONVOLUTION], 0, OL_MIXER_JOINT, geometry, &a.query.weight, &a.key.weight, &a.value.weight, NULL, reason);
    }
    if (status == OL_OK) {
        status = ol_gated_delta_mixer_split(window, 1, OL_MIXER_JOINT, geometry, &a.query.window, &a.key.window, &a.value.window, NULL, reason);
    }
    if (has_norm) {
        a.gate = has_z ? z : tokens_of(&in[STEP_Z], begin, n);
        a.norm_weight = in[STEP_NORM];
    }
    return status == OL_OK ? ol_gated_delta_mixer_step(mixer, NULL, &a, reason) : status;
}

static ol_status call_recurrence(const step_machine *machine, int64_t begin, int64_t n, ol_error *reason) {
    ol_gated_delta_arguments a = { 0 };
    ol_tensor rows = tokens_of(&machine->convolved_mirror, begin, n);
    set_recurrence(machine, begin, n, &a);
    a.output = tokens_of(&machine->result_mirror[STEP_CORE], begin, n);
    ol_status status = ol_gated_delta_mixer_split(&rows, -1, OL_MIXER_JOINT, &machine->layer->options.recurrence, &a.query, &a.key, &a.value, NULL, reason);
    return status == OL_OK ? ol_gated_delta_step(machine->recurrence, NULL, &a, reason) : status;
}

/* ---- Runs -------------------------------------------------------------------------------------------------------- */

/* State and window to zeros, as a sequence starts. */
static ol_status start(const step_machine *machine, ol_error *reason) {
    ol_status status = OL_OK;
    for (int i = STEP_STATE; status == OL_OK && i < STEP_RESULTS; i++) {
        if (machine->result[i].data) {
            memset(machine->result[i].data, 0, tensor_bytes(&machine->result[i]));
            status = mirror_up(machine->device, &machine->result[i], &machine->result_mirror[i], reason);
        }
    }
    return status;
}

/* All tokens, in calls; into is STEP_OUTPUT (the mixer) or STEP_CORE. */
static ol_status run(const step_machine *machine, enum step_result into, int64_t tokens_per_call, uint64_t *calls, ol_error *reason) {
    int64_t tokens = machine->layer->rates->tokens;
    ol_status status = OL_OK;
    *calls = 0;
    for (int64_t begin = 0; status == OL_OK && begin < tokens; begin += tokens_per_call) {
        int64_t n = tokens - begin < tokens_per_call ? tokens - begin : tokens_per_call;
        status = machine->part == STEP_PART_RECURRENCE ? call_recurrence(machine, begin, n, reason)
                                                       : call_mixer(machine, into == STEP_OUTPUT ? machine->mixer : machine->without_norm, into, begin, n, reason);
        ++*calls;
    }
    return status;
}

/* Brings results to the host and copies those named to where the caller wants them. */
static ol_status fetch(const step_machine *machine, bool core, bool others, const step_results *results, ol_error *reason) {
    ol_status status = ol_stream_synchronize(machine->device, NULL, reason);
    for (int i = 0; status == OL_OK && i < STEP_RESULTS; i++) {
        const ol_tensor *host = &machine->result[i];
        if (host->data && (i == STEP_CORE ? core : others)) {
            status = mirror_down(machine->device, host, &machine->result_mirror[i], reason);
            memcpy(results->data[i], host->data, tensor_bytes(host));
        }
    }
    return status;
}

bool step_machine_run(step_machine *machine, int64_t tokens_per_call, const step_results *results, step_count *count, st_error *error) {
    bool is_mixer = machine->part == STEP_PART_MIXER;
    ol_error reason = { 0 };
    uint64_t calls;
    ol_status status = OL_OK;
    if (is_mixer) {
        status = start(machine, &reason);
        if (status == OL_OK) {
            status = run(machine, STEP_CORE, tokens_per_call, &calls, &reason);
        }
        if (status == OL_OK) {
            status = fetch(machine, true, false, results, &reason);
        }
    }
    if (status == OL_OK) {
        status = start(machine, &reason);
    }
    uint64_t before = ol_device_launches(machine->device);
    if (status == OL_OK) {
        status = run(machine, is_mixer ? STEP_OUTPUT : STEP_CORE, tokens_per_call, &count->calls, &reason);
    }
    count->launches = ol_device_launches(machine->device) - before;
    if (status == OL_OK) {
        status = fetch(machine, !is_mixer, true, results, &reason);
    }
    return status == OL_OK || failed(machine, &reason, error);
}

bool step_machine_time(step_machine *machine, int64_t tokens_per_call, step_count *count, st_error *error) {
    enum step_result into = machine->part == STEP_PART_MIXER ? STEP_OUTPUT : STEP_CORE;
    double best = INFINITY, begin = cli_seconds();
    ol_error reason = { 0 };
    uint64_t calls;
    ol_status status = start(machine, &reason);
    for (int i = 0; status == OL_OK && (i < 1 || (i < 100 && cli_seconds() - begin < 0.05)); i++) {
        double first = cli_seconds();
        status = run(machine, into, tokens_per_call, &calls, &reason);
        if (status == OL_OK) {
            status = ol_stream_synchronize(machine->device, NULL, &reason);
        }
        best = fmin(best, cli_seconds() - first);
    }
    count->seconds_per_token = best / (double)machine->layer->rates->tokens;
    return status == OL_OK || failed(machine, &reason, error);
}

/* ---- Making and freeing ------------------------------------------------------------------------------------------ */

/* q, k and v that the recurrence takes alone: rounded already, so that this conversion is exact. */
static bool fill_convolved(step_machine *machine, const double *convolved) {
    const step_layer *layer = machine->layer;
    ol_dtype dtype = layer->options.recurrence.activation_dtype;
    const float_format *format = float_format_named(st_dtype_name(dtype));
    machine->convolved = ol_tensor_contiguous(NULL, dtype, 2, (int64_t[]){ layer->rates->tokens, layer->channels });
    uint16_t *data = aligned_alloc(64, tensor_bytes(&machine->convolved) / 64 * 64 + 64);      /* activations have 16 bits */
    for (int64_t i = 0; data && i < layer->rates->tokens * layer->channels; i++) {
        data[i] = (uint16_t)float_round(format, convolved[i]);
    }
    machine->convolved.data = data;
    return data != NULL;
}

static ol_status create(step_machine *machine, ol_error *reason) {
    const ol_gated_delta_mixer_options *o = &machine->layer->options;
    if (machine->part == STEP_PART_RECURRENCE) {
        return ol_gated_delta_create(machine->device, &o->recurrence, &machine->recurrence, reason);
    }
    ol_gated_delta_mixer_options plain = *o;
    plain.norm = OL_MIXER_NORM_NONE;
    plain.epsilon = 0;
    plain.gate = OL_MIXER_SILU;
    plain.gate_dtype = plain.norm_weight_dtype = (ol_dtype)0;
    plain.normalized_rounded = plain.weighted_rounded = 0;
    ol_status status = ol_gated_delta_mixer_create(machine->device, o, &machine->mixer, reason);
    return status == OL_OK ? ol_gated_delta_mixer_create(machine->device, &plain, &machine->without_norm, reason) : status;
}

static ol_status upload(step_machine *machine, ol_error *reason) {
    ol_device *device = machine->device;
    ol_status status = OL_OK;
    for (int i = 0; status == OL_OK && i < STEP_BASES; i++) {
        const ol_tensor *host = &machine->layer->base[i];
        if (host->data) {
            status = mirror_make(device, host, &machine->input[i], reason);
            status = status == OL_OK ? mirror_up(device, host, &machine->input[i], reason) : status;
        }
    }
    for (int i = 0; status == OL_OK && i < STEP_RESULTS; i++) {
        if (machine->result[i].data) {
            status = mirror_make(device, &machine->result[i], &machine->result_mirror[i], reason);
        }
    }
    if (status == OL_OK && machine->convolved.data) {
        status = mirror_make(device, &machine->convolved, &machine->convolved_mirror, reason);
        status = status == OL_OK ? mirror_up(device, &machine->convolved, &machine->convolved_mirror, reason) : status;
    }
    return status;
}

bool step_machine_make(ol_device *device, const step_layer *layer, enum step_part part, const double *convolved, step_machine **out, st_error *error) {
    step_machine *machine = calloc(1, sizeof *machine);
    step_results results = { 0 };
    ol_error reason = { 0 };
    if (!machine) {
        return st_fail(error, "tensor %.300s: out of memory", layer->rates->label);
    }
    machine->device = device;
    machine->layer = layer;
    machine->part = part;
    bool ok = step_results_make(layer, part, &results) && (part != STEP_PART_RECURRENCE || fill_convolved(machine, convolved));
    for (int i = 0; i < STEP_RESULTS; i++) {
        machine->result[i] = layer->result[i];
        machine->result[i].data = results.data[i];
    }
    ok = ok ? (create(machine, &reason) == OL_OK && upload(machine, &reason) == OL_OK) || failed(machine, &reason, error)
            : st_fail(error, "tensor %.300s: out of memory for the results", layer->rates->label);
    if (!ok) {
        step_machine_free(machine);
        return false;
    }
    *out = machine;
    return true;
}

void step_machine_free(step_machine *machine) {
    if (!machine) {
        return;
    }
    for (int i = 0; i < STEP_BASES; i++) {
        mirror_free(machine->device, &machine->input[i]);
    }
    for (int i = 0; i < STEP_RESULTS; i++) {
        mirror_free(machine->device, &machine->result_mirror[i]);
        free(machine->result[i].data);
    }
    mirror_free(machine->device, &machine->convolved_mirror);
    free(machine->convolved.data);
    ol_gated_delta_destroy(machine->recurrence);
    ol_gated_delta_mixer_destroy(machine->mixer);
    ol_gated_delta_mixer_destroy(machine->without_norm);
    free(machine);
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

bool step_results_make(const step_layer *layer, enum step_part part, step_results *results) {
    bool ok = true;
    for (int i = 0; i < STEP_RESULTS; i++) {
        results->data[i] = NULL;
        if (step_computes(&(step_options){ .part = part }, (enum step_result)i)) {
            results->data[i] = aligned_alloc(64, tensor_bytes(&layer->result[i]) / 64 * 64 + 64);
            ok = ok && results->data[i];
        }
    }
    if (!ok) {
        step_results_free(results);
    }
    return ok;
}

void step_results_free(step_results *results) {
    for (int i = 0; i < STEP_RESULTS; i++) {
        free(results->data[i]);
        results->data[i] = NULL;
    }
}

bool step_results_equal(const step_layer *layer, const step_results *x, const step_results *y) {
    bool equal = true;
    for (int i = 0; i < STEP_RESULTS; i++) {
        if (x->data[i]) {
            equal = equal && memcmp(x->data[i], y->data[i], tensor_bytes(&layer->result[i])) == 0;
        }
    }
    return equal;
}
