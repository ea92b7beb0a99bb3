/* See check.h. */
#include "check.h"
#include "hard_pairs.h"
#include "output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 4096 };                           /* inputs at once: buffers that stay in the cache */
#define WATCHED ((uint64_t)1 << 16)              /* inputs between two looks at the watch */

typedef union elements {
    uint32_t w[BLOCK];
    uint16_t h[BLOCK];
    uint8_t b[BLOCK];
} elements;

/* Inputs: what they are, what they should give, what they gave. */
struct block {
    elements xs, ys, out[MAX_LEVELS];
    double x[BLOCK], y[BLOCK], value[BLOCK], error[BLOCK];
    int32_t open[BLOCK];
    digest_stream *streams[MAX_LEVELS];
};

block *block_new(void) {
    block *b = aligned_alloc(64, (sizeof *b + 63) / 64 * 64);
    if (!b) return NULL;
    memset(b, 0, sizeof *b);
    for (int level = 0; level < MAX_LEVELS; level++)
        if (!(b->streams[level] = digest_stream_new())) {
            block_free(b);
            return NULL;
        }
    return b;
}

void block_free(block *b) {
    for (int level = 0; b && level < MAX_LEVELS; level++) digest_stream_free(b->streams[level]);
    free(b);
}

static void fill(const run *r, block *b, uint64_t first, int length) {
    bool two = r->reference->arity == 2;
    if (r->hard_pairs) hard_pairs_fill(r->reference->name, first, (size_t)length, b->xs.w, b->ys.w);
    else digest_fill(r->reference->arity, (size_t)r->format->size, first, 1, (size_t)length, &b->xs, &b->ys);
    if (r->kernels_only) return;
    if (r->operand_table) {
        for (int i = 0; i < length; i++) b->x[i] = r->operand_table->values[b->xs.h[i]];
        for (int i = 0; two && i < length; i++) b->y[i] = r->operand_table->values[b->ys.h[i]];
    } else {
        float narrow[2][BLOCK];
        memcpy(narrow[0], &b->xs, (size_t)length * sizeof **narrow);
        for (int i = 0; i < length; i++) b->x[i] = narrow[0][i];
        if (two) memcpy(narrow[1], &b->ys, (size_t)length * sizeof **narrow);
        for (int i = 0; two && i < length; i++) b->y[i] = narrow[1][i];
    }
}

static uint32_t result_bits(const run *r, const elements *out, int i) {
    return run_result_bytes(r) == 1 ? out->b[i] : run_result_bytes(r) == 2 ? out->h[i] : out->w[i];
}

/* The right bits of an input. Where the result is wrong, rather than near a rounding boundary, MPFR is not needed either: both ends
 * of what the approximation allows round alike. */
static uint32_t decide(const run *r, const block *b, int i, tally *counts) {
    if (r->reference->to_bool) return b->value[i] != 0;
    uint32_t low = format_round(r->result, b->value[i] - b->error[i]), high = format_round(r->result, b->value[i] + b->error[i]);
    if (!r->reference->exact || !isfinite(b->value[i]) || b->error[i] == 0) return format_round(r->result, b->value[i]);
    if (low == high) return low;
    counts->near++;
    return reference_exact_bits(r->reference, r->result, b->x[i], b->y[i]);
}

/* Within the tolerance of a primitive that has one, of a finite result; and what the first level gave. */
static bool tolerated(const run *r, const block *b, int level, int i, uint32_t got, uint32_t want, tally *counts) {
    uint32_t magnitude = want & (r->result->infinity | (r->result->infinity - 1));
    if (r->tolerance == 0 || magnitude >= r->result->infinity || !isfinite(format_value(r->result, got))) return false;
    if (level > 0 && got != result_bits(r, &b->out[0], i)) return false;
    uint32_t lower = magnitude + 1 < r->result->infinity ? magnitude : magnitude - 1;
    double ulp = format_value(r->result, lower + 1) - format_value(r->result, lower);
    double error = reference_distance(r->reference, b->x[i], b->y[i], format_value(r->result, got)) / ulp;
    if (error > r->tolerance) return false;
    if (level == 0) counts->off++, counts->worst = error > counts->worst ? error : counts->worst;
    return true;
}

static void show(run *r, const block *b, int level, int i, uint32_t got, uint32_t want) {
    if (atomic_fetch_add(&r->n_shown, 1) >= r->show) return;
    int digits = (int)run_result_bytes(r) * 2, in = r->format->size * 2;
    char operands[100];
    uint32_t x = r->format->size == 4 ? b->xs.w[i] : b->xs.h[i], y = r->format->size == 4 ? b->ys.w[i] : b->ys.h[i];
    if (r->reference->arity == 1) snprintf(operands, sizeof operands, "%0*x = %a", in, x, b->x[i]);
    else snprintf(operands, sizeof operands, "%0*x, %0*x = %a, %a", in, x, in, y, b->x[i], b->y[i]);
    output_line("  wrong: %s %s %s (%s) gives %0*x, should be %0*x", r->reference->name, r->format->name, r->levels[level]->name, operands,
                digits, got, digits, want);
}

/* Returns how many results are wrong. */
static uint64_t check_level(run *r, block *b, int level, int length, tally *counts) {
    uint64_t n_wrong = 0;
    if (r->reference->to_bool)
        for (int i = 0; i < length; i++) b->open[i] = b->out[level].b[i] != (b->value[i] != 0);
    else
        r->filter(b->value, b->error, &b->out[level], r->result_table ? r->result_table->results : NULL, b->open, length);
    for (int i = 0; i < length; i++) {
        if (!b->open[i]) continue;
        uint32_t want = decide(r, b, i, counts), got = result_bits(r, &b->out[level], i);
        if (got == want || tolerated(r, b, level, i, got, want, counts)) continue;
        n_wrong++;
        show(r, b, level, i, got, want);
    }
    return n_wrong;
}

/* Random inputs of the block: are they as near as the approximation says, and a few times nearer? Where double has no
 * subnormals to spare. */
static void check_samples(const run *r, const block *b, uint64_t first, int length, tally *counts) {
    uint64_t wanted = r->samples * (uint64_t)length, n = (wanted >> 32) + (digest_mix(~first) >> 32 < (wanted & 0xffffffffu));
    if (r->inputs <= 65536 && n < (uint64_t)length / 16) n = (uint64_t)length / 16;      /* few inputs: some of them all the same */
    for (uint64_t k = 0; r->reference->exact && k < n; k++) {
        int i = (int)(digest_mix(first + k) % (uint64_t)length);
        if (!isfinite(b->value[i]) || b->error[i] == 0 || fabs(b->value[i]) < 0x1p-960) continue;
        counts->samples++;
        if (reference_distance(r->reference, b->x[i], b->y[i], b->value[i]) <= b->error[i] / 4) continue;
        counts->unsound++;
        output_line("  the reference's own bound fails: %s %s (%a, %a)", r->reference->name, r->format->name, b->x[i], b->y[i]);
    }
}

/* 16-bit functions of one operand in runs that are too short to be looked up (src/cpu/table16.h): what is proven is each level's
 * arithmetic; check_neighbours compares what long runs give with it. */
static void run_kernel(const run *r, block *b, int level, int length) {
    enum { SHORT_RUN = 256 };
    size_t size = run_result_bytes(r);
    int step = r->format->size == 2 && r->reference->arity == 1 ? SHORT_RUN : length;
    for (int done = 0; done < length; done += step)
        r->kernels[level]((char *)&b->out[level] + (size_t)done * size, (char *)&b->xs + done * r->format->size,
                          (char *)&b->ys + done * r->format->size, NULL, (size_t)(step < length - done ? step : length - done));
}

static void check_block(run *r, block *b, uint64_t first, int length, tally *counts) {
    size_t bytes = (size_t)length * run_result_bytes(r);
    uint64_t wrong_of_first = 0;
    fill(r, b, first, length);
    if (!r->kernels_only) r->approximate(b->x, b->y, b->value, b->error, length);
    for (int level = 0; level < r->n_levels; level++) {
        run_kernel(r, b, level, length);
        digest_stream_add(b->streams[level], &b->out[level], bytes);
        if (r->kernels_only) continue;
        bool same = level > 0 && !memcmp(&b->out[level], &b->out[0], bytes);
        uint64_t n_wrong = same ? wrong_of_first : check_level(r, b, level, length, counts);
        if (level == 0) wrong_of_first = n_wrong;
        counts->wrong[level] += n_wrong;
    }
    if (!r->kernels_only) check_samples(r, b, first, length, counts);
}

static double processor_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool check_task(run *r, block *b, uint64_t task, const task_watch *watch, task_result *result) {
    double start = processor_seconds();
    uint64_t first = task * TASK, end = first + run_task_inputs(r, task), unseen = 0;
    memset(result, 0, sizeof *result);
    for (uint64_t chunk = 0; first < end; chunk++) {
        uint64_t chunk_end = end - first < DIGEST_CHUNK ? end : first + DIGEST_CHUNK;
        for (int level = 0; level < r->n_levels; level++) digest_stream_begin(b->streams[level]);
        while (first < chunk_end) {
            int length = chunk_end - first < BLOCK ? (int)(chunk_end - first) : BLOCK;
            check_block(r, b, first, length, &result->counts);
            first += (uint64_t)length, unseen += (uint64_t)length;
            if (unseen < WATCHED && first < end) continue;
            if (!watch->go_on(watch->user, r, unseen)) return false;
            unseen = 0;
        }
        for (int level = 0; level < r->n_levels; level++) result->chunks[level][chunk] = digest_stream_end(b->streams[level]);
    }
    for (int level = 0; level < r->n_levels && r->format->size == 2 && r->reference->arity == 1 && !r->kernels_only; level++) {
        uint64_t n_differing = check_neighbours(r, r->kernels[level]);
        if (n_differing)
            output_line("  wrong: %s %s %s: %llu results depend on their neighbours", r->reference->name, r->format->name,
                        r->levels[level]->name, (unsigned long long)n_differing);
        result->counts.wrong[level] += n_differing;
    }
    result->counts.seconds = processor_seconds() - start;
    return true;
}

double check_speed(run *r, block *b) {
    enum { BLOCKS = 8 };
    tally ignored = { 0 };
    unsigned shown = atomic_exchange(&r->n_shown, r->show);               /* silent */
    uint64_t length = r->inputs / BLOCKS < BLOCK ? r->inputs / BLOCKS : BLOCK;
    double start = processor_seconds();
    for (int level = 0; level < r->n_levels; level++) digest_stream_begin(b->streams[level]);
    for (uint64_t k = 0; k < BLOCKS; k++) check_block(r, b, r->inputs / BLOCKS * k + r->inputs / (3 * BLOCKS), (int)length, &ignored);
    atomic_store(&r->n_shown, shown);
    return (processor_seconds() - start) / (double)(BLOCKS * length);
}

uint64_t check_strided_digest(const run *r) {
    int arity = r->reference->arity;
    size_t bytes = (size_t)r->format->size;
    uint64_t stride = digest_stride(arity, bytes), n = (r->inputs + stride - 1) / stride, digests[2] = { 0 }, n_digests = 0;
    uint32_t *x = malloc(DIGEST_CHUNK * sizeof *x), *y = malloc(DIGEST_CHUNK * sizeof *y), *out = malloc(DIGEST_CHUNK * sizeof *out);
    for (uint64_t first = 0; x && y && out && first < n; first += DIGEST_CHUNK) {
        size_t length = n - first < DIGEST_CHUNK ? n - first : DIGEST_CHUNK;
        digest_fill(arity, bytes, first * stride, stride, length, x, y);
        r->kernels[0](out, x, y, NULL, length);
        digests[n_digests++] = digest_chunk(out, length * run_result_bytes(r));
    }
    free(x), free(y), free(out);
    return n_digests ? digest_all(digests, n_digests) : 0;
}
