/* See step_scene.h. */
#include "step_scene.h"

#include <stdio.h>
#include <string.h>

enum { ALIGNMENT = 64 };

void step_scene_place(ol_tensor *t, const void *memory, size_t n_bytes, char **to, char **taken, size_t *n_taken)
{
    if (!memory)
        return;
    *n_taken = n_bytes + ALIGNMENT;
    *taken = device_bytes(cuda, NULL, *n_taken);
    *to = *taken + ((uintptr_t)memory - (uintptr_t)*taken) % ALIGNMENT;
    t->data = *to + ((char *)t->data - (const char *)memory);
}

void step_scene_begin(step_scene *s, const step_case *c)
{
    step_case placed = *c;
    uint32_t zero = 0;
    memset(s, 0, sizeof *s);
    for (int i = 0; i < STEP_TENSORS; i++)
        step_scene_place(step_tensor(&placed, i), c->memory[i], c->n_bytes[i], &s->memory[i], &s->taken[i], &s->n_bytes[i]);
    s->arguments = placed.arguments;
    s->skipped = device_bytes(cuda, &zero, sizeof zero);
    s->arguments.skipped = s->skipped;
    step_scene_write(s, c);
}

void step_scene_end(step_scene *s)
{
    for (int i = 0; i < STEP_TENSORS; i++)
        if (s->taken[i])
            device_give(cuda, s->taken[i], s->n_bytes[i]);
    device_give(cuda, s->skipped, sizeof *s->skipped);
}

void step_scene_write(const step_scene *s, const step_case *c)
{
    uint32_t zero = 0;
    for (int i = 0; i < STEP_TENSORS; i++)
        if (c->memory[i] && c->n_bytes[i])
            upload(cuda, stream, s->memory[i], c->memory[i], c->n_bytes[i]);
    upload(cuda, stream, s->skipped, &zero, sizeof zero);
}

uint32_t step_scene_read(const step_scene *s, step_case *c)
{
    uint32_t skipped;
    for (int i = 0; i < STEP_TENSORS; i++)
        if (c->memory[i] && c->n_bytes[i])
            download(cuda, stream, c->memory[i], s->memory[i], c->n_bytes[i]);
    download(cuda, stream, &skipped, s->skipped, sizeof skipped);
    return skipped;
}

ol_gated_delta *step_scene_layer(const step_case *c)
{
    ol_gated_delta *layer;
    ol_error error;
    ol_status status = ol_gated_delta_create(cuda, &c->options, &layer, &error);
    if (status != OL_OK)
        step_print(c);
    assert_ok(status, &error);
    return layer;
}

void step_scene_run(const ol_gated_delta *layer, const step_scene *s)
{
    ol_error error;
    uint64_t before = ol_device_launches(cuda);
    assert_ok(ol_gated_delta_step(layer, stream, &s->arguments, &error), &error);
    assert_in_range(ol_device_launches(cuda) - before, 0, 1);
}

void step_scene_run_shaped(const ol_gated_delta *layer, const step_scene *s, const step_shape *chosen)
{
    ol_error error;
    delta_call call;
    assert_ok(delta_check(layer, &s->arguments, &call, &error), &error);
    assert_ok(cuda_delta_step_shaped(&call, stream, chosen, &error), &error);
}

static void compare(const step_scene *s, const step_case *c, const step_case *expected, const char *what, const step_shape *chosen)
{
    step_case got;
    step_copy(&got, c);
    uint32_t skipped = step_scene_read(s, &got);
    if (skipped || !step_equal(expected, &got)) {
        step_print(c);
        if (chosen)
            fail_msg("%s: %u skipped; variant %d, %u parts of %u warps", what, skipped, chosen->variant, chosen->n_parts, chosen->n_warps);
        fail_msg("%s: %u skipped; the library's own shape", what, skipped);
    }
    step_free(&got);
}

/* Whether all is aligned for the variants that want it, which is the library's to see. */
static int is_aligned(const ol_gated_delta *layer, const step_scene *s)
{
    delta_call call;
    return delta_check(layer, &s->arguments, &call, NULL) == OL_OK && cuda_delta_shape(&call).variant != STEP_ANY;
}

/* Whether a variant is for this call. */
static int fits(int variant, const ol_gated_delta *layer, const step_scene *s)
{
    delta_call call;
    int decodes = variant == STEP_DECODE_MANY || variant == STEP_DECODE_FEW;
    return variant == STEP_ANY || (is_aligned(layer, s) && (!decodes || (delta_check(layer, &s->arguments, &call, NULL) == OL_OK && step_decodes(&call))));
}

void step_scene_check(const step_case *c, const step_case *expected, const char *what)
{
    static const uint32_t warps[] = { 1, 2, 3, 4, 8 };
    ol_gated_delta *layer = step_scene_layer(c);
    step_variant variants[STEP_VARIANTS];
    step_scene s;
    step_variants(&layer->options, variants);
    step_scene_begin(&s, c);
    step_scene_run(layer, &s);
    compare(&s, c, expected, what, NULL);
    for (int v = 0; v < STEP_VARIANTS; v++)
        for (size_t w = 0; w < COUNT(warps); w++) {
            if (!variants[v].lanes || !fits(v, layer, &s) || (v > STEP_ANY && warps[w] > STEP_DECODE_WARPS))
                continue;
            uint32_t rows = (uint32_t)step_warp_rows(&variants[v]) * warps[w];
            step_shape each = { v, ((uint32_t)c->options.value_dim + rows - 1) / rows, warps[w] };
            step_scene_write(&s, c);
            step_scene_run_shaped(layer, &s, &each);
            compare(&s, c, expected, what, &each);
        }
    step_scene_end(&s);
    ol_gated_delta_destroy(layer);
}

void step_scene_check_cpu(const step_case *c, const char *what)
{
    step_case expected;
    step_copy(&expected, c);
    step_run(cpu, &expected);
    step_scene_check(c, &expected, what);
    step_free(&expected);
}
