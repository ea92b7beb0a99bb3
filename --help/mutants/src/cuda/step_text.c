/* The text of a layer's kernel: its options as constants, its gates as functions, and a function a variant; all else is kernel_step.h's.
 *
 * The gates are the statements that their composite's kernel has (kernel_statements.c), so that they are the same bits. */
#include "cuda/step.h"

#include "composite.h"
#include "cuda/device_text.h"
#include "cuda/kernel_writer.h"
#include "gated_delta/gates.h"
#include "memory.h"
#include "status.h"

#include <inttypes.h>
#include <string.h>

static const char *const norms[] = { "STEP_NORM_NONE", "STEP_NORM_RSQRT", "STEP_NORM_MAXIMUM", "STEP_NORM_ADDED", "STEP_NORM_RMS" };
static const char *const paddings[] = { "STEP_PADDING_NEGATIVE", "STEP_PADDING_NOT_POSITIVE", "STEP_PADDING_NONE" };

const char *step_type(ol_dtype dtype)
{
    return dtype == OL_FLOAT32 ? "step_float32" : dtype == OL_FLOAT16 ? "step_float16" : "step_bfloat16";
}

unsigned step_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void put_options(text *t, const ol_gated_delta *layer)
{
    const ol_gated_delta_options *o = &layer->options;
    int computed = o->decay == OL_DELTA_DECAY_COMPUTED;
    const struct { const char *name; ol_dtype dtype; } types[] = {
        { "activation", o->activation_dtype }, { "output", o->output_dtype }, { "state", o->state_dtype }, { "update", o->update_dtype },
        { "decay", o->decay_dtype }, { "rate", o->decay_rate_dtype }, { "bias", o->decay_bias_dtype },
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        text_add(t, "    typedef %s %s;\n", step_type(types[i].dtype), types[i].name);
    text_add(t, "    enum { K = %d, V = %d, HEADS = %d, RATIO = %d, KEY_MAJOR = %d, CHANNELS = %d, HAS_RATE = %d, HAS_BIAS = %d };\n", (int)o->key_dim,
             (int)o->value_dim, (int)o->value_heads, (int)layer->ratio, o->state_layout == OL_DELTA_KEY_VALUE, o->decay_per_channel != 0,
             computed && gate_has_input(&o->gates, GATE_RATE), computed);
    text_add(t, "    enum { NORM = %s, PADDING = %s, ZERO_PADDING = %d };\n", norms[o->norm], paddings[o->padding], !o->padding_output_untouched);
    text_add(t, "    enum : uint32_t { EPSILON = 0x%08xu, SCALE = 0x%08xu, ROOT = 0x%08xu };\n", step_bits(layer->epsilon), step_bits(layer->scale),
             step_bits(layer->root));
}

/* Marks the nodes that node n is computed from. */
static void mark(const graph *g, uint32_t n, uint8_t *needed)
{
    needed[n] = 1;
    for (uint32_t i = n + 1; i-- > 0;)           /* operands come before their users */
        for (int o = 0; needed[i] && o < node_reads(&g->nodes[i]); o++)
            needed[g->nodes[i].operands[o]] = 1;
}

/* The function of one output; `inputs` are the parameters' names, by the composite's input. */
static void put_gate(writer *w, int32_t output, const char *head, const char *const *inputs, uint8_t *needed)
{
    uint32_t result = w->g->outputs[output];
    memset(needed, 0, w->g->n_nodes);
    mark(w->g, result, needed);
    text_add(w->t, "    %s {\n    enum { N = 1 };\n", head);
    for (size_t i = 0; i < w->p->n_instructions; i++) {
        const instruction *in = instruction_at(w, i);
        if (!needed[in->node])
            continue;
        if (in->kind == INSTRUCTION_CONSTANT) {
            text_add(w->t, in->dtype == OL_FLOAT32 ? "    const float v%u = num_from_bits32(0x%08" PRIx64 "u);\n" : "    const uint16_t v%u = 0x%" PRIx64 ";\n",
                     in->node, in->payload);
            continue;
        }
        put_declaration(w, in, "v", 4);
        if (in->kind == INSTRUCTION_LOAD)
            text_add(w->t, "    kernel_set(v%u, 0, %s);\n", in->node, inputs[in->payload]);
        else
            put_statement(w, in, 4);
    }
    text_add(w->t, "    return v%u[0];\n    }\n", result);
}

static void put_gates(writer *w, const ol_gated_delta *layer, uint8_t *needed)
{
    const ol_gate_options *gates = &layer->options.gates;
    const char *inputs[GATE_INPUTS] = { "update", "decay" };
    int n = 2;
    if (layer->options.decay == OL_DELTA_DECAY_COMPUTED) {
        if (gate_has_input(gates, GATE_RATE))
            inputs[n++] = "rate";
        inputs[n] = "bias";
    }
    put_gate(w, 0, "static __device__ __forceinline__ float beta(update::bits update)", inputs, needed);
    put_gate(w, 1, "static __device__ __forceinline__ float gate(decay::bits decay, rate::bits rate, bias::bits bias)", inputs, needed);
}

static void put_functions(text *t, const void *user)
{
    const ol_gated_delta *layer = user;
    step_variant variants[STEP_VARIANTS];
    step_variants(&layer->options, variants);
    for (int i = 0; i < STEP_VARIANTS; i++) {
        const step_variant *v = &variants[i];
        int decodes = i == STEP_DECODE_MANY || i == STEP_DECODE_FEW;
        if (v->lanes)
            text_add(t,
                     "extern \"C\" __global__ void __launch_bounds__(%d, %d) " STEP_NAME "_%d(const __grid_constant__ step_words passed) {\n"
                     "    %s<step_options, step_layout<step_options, %d, %d, %s, 1, %d> >(passed);\n}\n",
                     (decodes ? STEP_DECODE_WARPS : STEP_MOST_WARPS) * 32, v->n_blocks, i, decodes ? "step_decode" : "step_run", v->lanes, v->rows,
                     v->wide ? "true" : "false", decodes ? 1 : 8);
    }
}

static int write_text(const ol_gated_delta *layer, const step_text_parts *parts, const graph *g, const program *p, text *out)
{
    const ol_allocator *a = &out->allocator;
    text function = { .allocator = *a };
    const kernel k = { .n_instructions = p->n_instructions };
    writer w = { .k = &k, .g = g, .p = p, .t = &function, .quick = QUICK_SETTLED };
    uint8_t *needed = memory_take(a, g->n_nodes);
    if (needed) {
        text_add(&function, "#define LANES _Pragma(\"unroll\") for (int i = 0; i < N; i++)\n\nstruct step_options {\n");
        put_options(&function, layer);
        if (parts->put_options)
            parts->put_options(&function, parts->user);
        put_gates(&w, layer, needed);
        text_add(&function, "};\n#undef LANES\n\n");
        parts->put_functions(&function, parts->user);
        text_add(out, "enum { kernel_architecture = __CUDA_ARCH__ };\n");
        device_text_for(out, &function, 0);
        text_add(out, "\n");
        text_add_bytes(out, function.bytes, function.n);
    }
    int ok = needed && !function.broken && !out->broken;
    memory_give(a, needed, g->n_nodes);
    text_free(&function);
    return ok;
}

/* From a program without the device's fusing, so that a CPU's layer has a text too. */
ol_status step_text_of(const ol_gated_delta *layer, const step_text_parts *parts, text *out, ol_error *error)
{
    const ol_composite *c = layer->gates;
    dependencies *d = NULL;
    program *p = NULL;
    ol_status status = dependencies_create(c->optimized, &d, error);
    if (status == OL_OK)
        status = program_create(c->optimized, d, c->device, NULL, &p, error);
    if (status == OL_OK && !write_text(layer, parts, c->optimized, p, out))
        status = fail(error, OL_ERROR_MEMORY, parts->operation, "no memory for the text of a kernel");
    program_destroy(p);
    dependencies_destroy(d);
    return status;
}

ol_status step_text(const ol_gated_delta *layer, text *out, ol_error *error)
{
    const step_text_parts parts = { .put_functions = put_functions, .user = layer, .operation = "gated_delta_create" };
    return step_text_of(layer, &parts, out, error);
}
