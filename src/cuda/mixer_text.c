/* The text of a mixer's kernel: that of its recurrence's options and gates (step_text.c) with the mixer's options, and a function a variant; all else
 * is kernel_mixer.h's. */
#include "cuda/mixer.h"

static const char *const gates[] = { "MIXER_SILU", "MIXER_SIGMOID", "MIXER_NONE" };

typedef struct subject {
    const ol_gated_delta_mixer *mixer;
    int has_clusters;
} subject;

static void put_options(text *t, const void *user)
{
    const ol_gated_delta_mixer *m = ((const subject *)user)->mixer;
    const ol_gated_delta_mixer_options *o = &m->options;
    const struct { const char *name; ol_dtype dtype; } types[] = {
        { "taps", o->weight_dtype }, { "shift", o->bias_dtype ? o->bias_dtype : OL_FLOAT32 }, { "window", o->window_dtype }, { "z", o->gate_dtype },
        { "gain", o->norm_weight_dtype },
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        text_add(t, "    typedef %s %s;\n", step_type(types[i].dtype), types[i].name);
    text_add(t, "    enum { WIDTH = %d, HAS_SHIFT = %d, ACTIVATION = %s, RING = %d, HAS_NORM = %d, GATE = %s };\n", (int)o->width, o->bias_dtype != 0,
             gates[o->activation], o->window == OL_MIXER_WINDOW_RING, mixer_has_norm(m), gates[mixer_has_gate(m) ? o->gate : OL_MIXER_NONE]);
    text_add(t, "    enum { SUM_ROUNDED = %d, CONVOLVED_ROUNDED = %d, OUTPUT_ROUNDED = %d, NORMALIZED_ROUNDED = %d, WEIGHTED_ROUNDED = %d };\n",
             o->sum_rounded != 0, !o->convolved_unrounded, !o->output_unrounded, o->normalized_rounded != 0, o->weighted_rounded != 0);
    text_add(t, "    enum : uint32_t { NORM_EPSILON = 0x%08xu };\n", step_bits(m->epsilon));
}

static void put_functions(text *t, const void *user)
{
    const subject *s = user;
    step_variant variants[STEP_VARIANTS];
    mixer_variants(&s->mixer->options.recurrence, s->has_clusters, variants);
    for (int i = 0; i < STEP_VARIANTS; i++) {
        const step_variant *v = &variants[i];
        int decodes = i == STEP_DECODE_MANY || i == STEP_DECODE_FEW;
        if (v->lanes)
            text_add(t,
                     "extern \"C\" __global__ void __launch_bounds__(%d, %d) " MIXER_NAME "_%d(const __grid_constant__ mixer_words passed) {\n"
                     "    %s<step_options, step_layout<step_options, %d, %d, %s, %d, %d> >(passed);\n}\n",
                     STEP_MOST_WARPS * 32, v->n_blocks, i, decodes ? "mixer_decode" : "mixer_run", v->lanes, v->rows, v->wide ? "true" : "false", v->groups,
                     decodes ? 1 : 8);
    }
}

ol_status mixer_text(const ol_gated_delta_mixer *mixer, int has_clusters, text *out, ol_error *error)
{
    const subject s = { mixer, has_clusters };
    const step_text_parts parts = { .put_options = put_options, .put_functions = put_functions, .user = &s, .operation = "gated_delta_mixer_create" };
    return step_text_of(mixer->layer, &parts, out, error);
}
