/* See parity_case.h. */
#include "parity_case.h"

#include "device_memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
    const generated *c;
    ol_tensor *tensors;                /* bound to `arena` */
    ol_tensor *mirrors;                /* bound to the device's arena, on a CPU the same */
    unsigned char *arena, *expected;
    bool has_expected;                 /* false before the first run */
    bool differs;                      /* some run does; the first one is in `failure` */
    char expected_name[96], name[96];  /* of the first run, and of the one going on */
    parity_tally *tally;
    FILE *failure, *verdicts;          /* a line in the latter for each run after the first */
} run;

void parity_put_graph(const ol_composite *composite, FILE *stream) {
    size_t n = ol_composite_text(composite, OL_TEXT_GRAPH, NULL, 0);
    char *text = malloc(n + 1);
    if (text) {
        ol_composite_text(composite, OL_TEXT_GRAPH, text, n + 1);
        fputs(text, stream);
        free(text);
    }
}

static int64_t count_elements(const ol_tensor *t) {
    int64_t n = 1;
    for (int32_t d = 0; d < t->rank; d++) {
        n *= t->shape[d];
    }
    return n;
}

static bool fail_status(const run *r, const char *what, const parity_device *d, const ol_error *error) {
    fprintf(r->failure, "%s on %s: %s: %s: %s\n", what, d->name, ol_status_name(error->status), error->operation, error->description);
    return false;
}

/* ---- Comparing ------------------------------------------------------------------------------------------------------------------ */

static uint64_t element_bits(const unsigned char *at, size_t size) {
    uint64_t bits = 0;
    memcpy(&bits, at, size);
    return bits;
}

/* Looks for the output and element that differs; what is left is a byte that no output owns. */
static void report_difference(const run *r) {
    const generated *c = r->c;
    for (int32_t o = 0; o < c->n_outputs; o++) {
        const ol_tensor *t = &r->tensors[c->n_inputs + o];
        size_t size = ol_dtype_size(t->dtype);
        int64_t n = count_elements(t), n_differ = 0, first = 0;
        for (int64_t i = 0; i < n; i++) {
            const unsigned char *at = generate_element(t, i);
            if (memcmp(at, r->expected + (at - r->arena), size) != 0 && n_differ++ == 0) {
                first = i;
            }
        }
        if (n_differ > 0) {
            const unsigned char *at = generate_element(t, first);
            fprintf(r->failure, "output %d (%s), element %" PRId64 " of %" PRId64 " in row-major order:\n", (int)o, ol_dtype_name(t->dtype), first, n);
            fprintf(r->failure, "  0x%0*" PRIx64 "  %s\n", (int)(2 * size), element_bits(r->expected + (at - r->arena), size), r->expected_name);
            fprintf(r->failure, "  0x%0*" PRIx64 "  %s\n", (int)(2 * size), element_bits(at, size), r->name);
            fprintf(r->failure, "  %" PRId64 " elements of this output differ\n", n_differ);
            return;
        }
    }
    for (size_t i = 0; i < c->arena_bytes; i++) {
        if (r->arena[i] != r->expected[i]) {
            fprintf(r->failure, "a byte outside the outputs differs between %s and %s, at offset %zu of the arena (%02x, %02x)\n", r->expected_name,
                    r->name, i, r->expected[i], r->arena[i]);
            return;
        }
    }
}

/* The first run of all: no later one can show that it wrote where it should not. */
static bool check_untouched(const run *r) {
    const generated *c = r->c;
    unsigned char *merged = malloc(c->arena_bytes);
    if (!merged) {
        return false;
    }
    memcpy(merged, c->arena, c->arena_bytes);
    for (int32_t o = c->n_inputs; o < c->n_inputs + c->n_outputs; o++) {
        int64_t n = count_elements(&r->tensors[o]);
        for (int64_t i = 0; i < n; i++) {
            const unsigned char *at = generate_element(&r->tensors[o], i);
            memcpy(merged + (at - r->arena), at, ol_dtype_size(r->tensors[o].dtype));
        }
    }
    bool same = true;
    for (size_t i = 0; same && i < c->arena_bytes; i++) {
        same = merged[i] == r->arena[i];
        if (!same) {
            fprintf(r->failure, "%s wrote outside its outputs, at offset %zu of the arena\n", r->name, i);
        }
    }
    free(merged);
    return same;
}

static bool compare(run *r) {
    for (int32_t o = 0; o < r->c->n_outputs; o++) {
        r->tally->n_elements += count_elements(&r->tensors[r->c->n_inputs + o]);
    }
    if (!r->has_expected) {
        r->has_expected = true;
        memcpy(r->expected_name, r->name, sizeof r->name);
        memcpy(r->expected, r->arena, r->c->arena_bytes);
        return check_untouched(r);
    }
    bool same = memcmp(r->arena, r->expected, r->c->arena_bytes) == 0;
    fprintf(r->verdicts, "  %s  %s\n", same ? "equal  " : "DIFFERS", r->name);
    if (!same && !r->differs) {
        report_difference(r);
    }
    r->differs |= !same;
    return true;                       /* the other runs say whose fault it is */
}

/* ---- Running -------------------------------------------------------------------------------------------------------------------- */

static bool check_shapes(const run *r, const ol_composite *composite, const parity_device *d) {
    const generated *c = r->c;
    ol_error error = { 0 };
    ol_tensor *shapes = calloc((size_t)c->n_outputs, sizeof *shapes);
    if (!shapes) {
        return false;
    }
    bool ok = ol_output_shapes(composite, r->tensors, shapes, &error) == OL_OK;
    if (!ok) {
        fail_status(r, "output shapes", d, &error);
    }
    for (int32_t o = 0; ok && o < c->n_outputs; o++) {
        const ol_tensor *predicted = &r->tensors[c->n_inputs + o];
        ok = shapes[o].dtype == predicted->dtype && shapes[o].rank == predicted->rank &&
             memcmp(shapes[o].shape, predicted->shape, sizeof *predicted->shape * (size_t)predicted->rank) == 0;
        if (!ok) {
            fprintf(r->failure, "output %d: ol_output_shapes and the predicted dtype or shape differ\n", (int)o);
        }
    }
    free(shapes);
    return ok;
}

/* How many launches a run may count: none where nothing is to be computed, and of a composed run perhaps not all. */
static bool check_launches(const run *r, const ol_composite *composite, bool composed, uint64_t counted) {
    uint64_t most = composed ? (uint64_t)ol_composite_composed_launches(composite) : 1, least = most;
    if (generate_has_empty(r->c)) {
        bool any = false;
        for (int32_t o = 0; o < r->c->n_outputs; o++) {
            any |= count_elements(&r->tensors[r->c->n_inputs + o]) > 0;
        }
        least = any ? 1 : 0;
        most = any || composed ? most : 0;
    }
    if (counted < least || counted > most) {
        fprintf(r->failure, "%s: %" PRIu64 " launches counted; expected %" PRIu64 " to %" PRIu64 "\n", r->name, counted, least, most);
        return false;
    }
    return true;
}

static bool run_once(run *r, const ol_composite *composite, const parity_device *d, const ol_tensor *host, const ol_tensor *mirror,
                     bool composed) {
    static const char *const path_names[] = { "replay", "composed path" };
    ol_error error = { 0 };
    snprintf(r->name, sizeof r->name, "%s on %s", path_names[composed], d->name);
    memcpy(r->arena, r->c->arena, r->c->arena_bytes);
    const ol_tensor *outputs = r->mirrors + r->c->n_inputs;
    ol_status status = mirror_up(d->device, host, mirror, &error);
    uint64_t launches = ol_device_launches(d->device);
    if (status == OL_OK) {
        status = composed ? ol_replay_composed(composite, NULL, r->mirrors, outputs, &error)
                          : ol_replay(composite, NULL, r->mirrors, outputs, &error);
    }
    launches = ol_device_launches(d->device) - launches;
    if (status == OL_OK) {
        status = mirror_down(d->device, host, mirror, &error);
    }
    if (status != OL_OK) {
        return fail_status(r, path_names[composed], d, &error);
    }
    *(composed ? &r->tally->n_composed : &r->tally->n_replays) += 1;
    return check_launches(r, composite, composed, launches) && compare(r);
}

/* The runs of a device, on its mirror of the arena. */
static bool run_composite(run *r, const ol_composite *composite, const parity_device *d) {
    ol_error error = { 0 };
    int64_t n_bytes = (int64_t)r->c->arena_bytes;
    const ol_tensor host = ol_tensor_contiguous(r->arena, OL_UINT8, 1, &n_bytes);
    ol_tensor mirror;
    if (mirror_make(d->device, &host, &mirror, &error) != OL_OK) {
        return fail_status(r, "memory", d, &error);
    }
    generate_bind(r->c, mirror.data, r->mirrors);
    bool ok = check_shapes(r, composite, d) && (!d->composed || run_once(r, composite, d, &host, &mirror, true)) &&
              run_once(r, composite, d, &host, &mirror, false) && run_once(r, composite, d, &host, &mirror, false);
    mirror_free(d->device, &mirror);
    return ok;
}

static bool run_device(run *r, const parity_device *d) {
    const ol_builder builder = generate_builder(r->c);
    ol_composite *composite = NULL;
    ol_error error = { 0 };
    if (ol_compile(d->device, &builder, r->c->input_dtypes, &composite, &error) != OL_OK) {
        return fail_status(r, "compile", d, &error);
    }
    bool agreed = !r->differs, ok = run_composite(r, composite, d);
    if (!ok || (agreed && r->differs)) {
        fputs("\nThe graph:\n", r->failure);
        parity_put_graph(composite, r->failure);
    }
    ol_composite_destroy(composite);
    return ok;
}

bool parity_run(const generated *c, const parity_device *devices, size_t n_devices, parity_tally *tally, unsigned char **arena, char **failure) {
    size_t n_bytes = (c->arena_bytes + 63) & ~(size_t)63, text_bytes, verdicts_bytes;
    run r = { .c = c, .tally = tally };
    char *text = NULL, *verdicts = NULL;
    bool ok = false;
    *failure = NULL;
    r.tensors = calloc((size_t)(c->n_inputs + c->n_outputs), sizeof *r.tensors);
    r.mirrors = calloc((size_t)(c->n_inputs + c->n_outputs), sizeof *r.mirrors);
    r.arena = aligned_alloc(64, n_bytes);
    r.expected = aligned_alloc(64, n_bytes);
    r.failure = open_memstream(&text, &text_bytes);
    r.verdicts = open_memstream(&verdicts, &verdicts_bytes);
    if (r.tensors && r.mirrors && r.arena && r.expected && r.failure && r.verdicts) {
        generate_bind(c, r.arena, r.tensors);
        ok = true;
        for (size_t i = 0; ok && i < n_devices; i++) {
            ok = run_device(&r, &devices[i]);
        }
        if (r.differs && fflush(r.verdicts) == 0) {
            fprintf(r.failure, "\nAgainst the %s:\n%s", r.expected_name, verdicts);
        }
        ok = ok && !r.differs;
        if (!ok) {
            fputs("\nThe tensors:\n", r.failure);
            generate_describe(c, r.failure);
        }
        tally->n_cases++;
    }
    if (r.verdicts) {
        fclose(r.verdicts);
    }
    free(verdicts);
    if (r.failure) {
        fclose(r.failure);
    }
    if (ok) {
        free(text);
    } else {
        *failure = text;
    }
    if (ok && arena) {
        *arena = r.arena;
        r.arena = NULL;
    }
    free(r.tensors);
    free(r.mirrors);
    free(r.arena);
    free(r.expected);
    return ok;
}
