/* See mixer_scene.h. */
#include "mixer_scene.h"

#include <string.h>

void mixer_scene_begin(mixer_scene *s, const mixer_case *c)
{
    mixer_case placed = *c;
    memset(s, 0, sizeof *s);
    step_scene_begin(&s->step, &c->step);
    for (int i = 0; i < MIXER_TENSORS; i++)
        step_scene_place(mixer_tensor(&placed, i), c->memory[i], c->n_bytes[i], &s->memory[i], &s->taken[i], &s->n_bytes[i]);
    s->arguments = placed.arguments;
    s->arguments.recurrence = s->step.arguments;
    mixer_scene_write(s, c);
}

void mixer_scene_end(mixer_scene *s)
{
    for (int i = 0; i < MIXER_TENSORS; i++)
        if (s->taken[i])
            device_give(cuda, s->taken[i], s->n_bytes[i]);
    step_scene_end(&s->step);
}

void mixer_scene_write(const mixer_scene *s, const mixer_case *c)
{
    step_scene_write(&s->step, &c->step);
    for (int i = 0; i < MIXER_TENSORS; i++)
        if (c->memory[i] && c->n_bytes[i])
            upload(cuda, stream, s->memory[i], c->memory[i], c->n_bytes[i]);
}

uint32_t mixer_scene_read(const mixer_scene *s, mixer_case *c)
{
    for (int i = 0; i < MIXER_TENSORS; i++)
        if (c->memory[i] && c->n_bytes[i])
            download(cuda, stream, c->memory[i], s->memory[i], c->n_bytes[i]);
    return step_scene_read(&s->step, &c->step);
}

void mixer_scene_run(const ol_gated_delta_mixer *mixer, const mixer_scene *s)
{
    ol_error error;
    uint64_t before = ol_device_launches(cuda);
    assert_ok(ol_gated_delta_mixer_step(mixer, stream, &s->arguments, &error), &error);
    assert_in_range(ol_device_launches(cuda) - before, 0, 1);
}

static mixer_call call_of(const ol_gated_delta_mixer *mixer, const mixer_scene *s)
{
    ol_error error;
    mixer_call call;
    assert_ok(mixer_check(mixer, &s->arguments, &call, &error), &error);
    return call;
}

void mixer_scene_run_shaped(const ol_gated_delta_mixer *mixer, const mixer_scene *s, const mixer_shape *chosen)
{
    ol_error error;
    mixer_call call;
    assert_ok(mixer_check(mixer, &s->arguments, &call, &error), &error);
    assert_ok(cuda_mixer_step_shaped(&call, stream, chosen, &error), &error);
}

static void compare(const mixer_scene *s, const mixer_case *c, const mixer_case *expected, const char *what, const mixer_shape *chosen)
{
    mixer_case got;
    mixer_copy(&got, c);
    uint32_t skipped = mixer_scene_read(s, &got);
    if (skipped || !mixer_equal(expected, &got)) {
        mixer_print(c);
        if (chosen)
            fail_msg("%s: %u skipped; variant %d, %u parts of %u warps, %u heads", what, skipped, chosen->variant, chosen->n_parts, chosen->n_warps,
                     chosen->n_heads);
        fail_msg("%s: %u skipped; the library's own shape", what, skipped);
    }
    mixer_free(&got);
}

/* Each variant with as few and as many warps as there are, in clusters of one head, and of as many as fit; to decode, of all. */
static size_t shapes_of(const mixer_call *call, mixer_shape *shapes)
{
    const ol_gated_delta_mixer *m = call->mixer;
    const ol_gated_delta_options *o = &m->options.recurrence;
    int aligned = cuda_mixer_shape(call).variant != STEP_ANY, has_clusters = mixer_has_clusters((const cuda_device *)cuda);
    step_variant variants[STEP_VARIANTS];
    size_t n = 0;
    mixer_variants(o, has_clusters, variants);
    for (int v = 0; v < STEP_VARIANTS; v++)
        for (uint32_t warps = 1; warps <= 8; warps += 1 + (warps > 2) * 4) {           /* 1, 2, 3, 8 */
            int decodes = v == STEP_DECODE_MANY || v == STEP_DECODE_FEW;
            if (!variants[v].lanes || (v != STEP_ANY && !aligned) || (decodes && !mixer_decodes(call)))
                continue;
            uint32_t parts = mixer_parts(&variants[v], o->value_dim, warps), ratio = (uint32_t)m->layer->ratio;
            if (parts * (decodes ? ratio : 1) > (has_clusters ? MIXER_MOST_BLOCKS : 1))
                continue;
            shapes[n++] = (mixer_shape){ v, parts, warps, decodes ? ratio : 1 };
            for (uint32_t heads = ratio; has_clusters && !decodes && heads > 1; heads--)
                if (ratio % heads == 0 && heads * parts <= MIXER_MOST_BLOCKS) {
                    shapes[n++] = (mixer_shape){ v, parts, warps, heads };
                    break;
                }
        }
    return n;
}

void mixer_scene_check(const mixer_case *c, const mixer_case *expected, const char *what)
{
    ol_gated_delta_mixer *m = mixer_of(cuda, c);
    mixer_shape shapes[STEP_VARIANTS * 4 * 2];
    mixer_scene s;
    mixer_scene_begin(&s, c);
    mixer_scene_run(m, &s);
    compare(&s, c, expected, what, NULL);
    mixer_call call = call_of(m, &s);
    size_t n = shapes_of(&call, shapes);
    for (size_t i = 0; i < n; i++) {
        mixer_scene_write(&s, c);
        mixer_scene_run_shaped(m, &s, &shapes[i]);
        compare(&s, c, expected, what, &shapes[i]);
    }
    mixer_scene_end(&s);
    ol_gated_delta_mixer_destroy(m);
}

void mixer_scene_check_cpu(const mixer_case *c, const char *what)
{
    mixer_case expected;
    mixer_copy(&expected, c);
    mixer_run(cpu, &expected);
    mixer_scene_check(c, &expected, what);
    mixer_free(&expected);
}
