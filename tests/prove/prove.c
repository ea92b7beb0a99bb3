/* Proves primitives by running every input: all 2^32 of float32, all 65,536 of a 16-bit float, all 2^32 pairs of a binary
 * primitive on 16-bit floats, at one SIMD level, against reference.c.
 *
 *     prove --op exp --dtype float32 --level avx512 [--shard i/n] [--threads n] [--samples n]
 *
 * --op, --dtype and --level may be `all` (float32 pairs are skipped: 2^64). Prints a line per run and exits 1 if any result
 * was wrong. `near` counts the inputs that the double evaluation left open and MPFR decided; `samples` random others went
 * through MPFR too, to check the bound of the double evaluation. The digest is of all outputs in input order (XXH3 of blocks
 * of 2^24 bytes or less, then of their digests), so levels and machines can be compared; it depends on the shard only. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "cpu/cpu.h"
#include "approximate.h"
#include "reference.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096 };
static unsigned shown_limit = 8;
#define TASK (1u << 22)                          /* inputs of one digest */

typedef struct level_info {
    const char *name;
    ol_cpu_level level;
} level_info;

static const level_info levels[] = {
    { "baseline", OL_CPU_BASELINE },
#if defined(__x86_64__)
    { "avx2", OL_CPU_AVX2 },
    { "avx512", OL_CPU_AVX512 },
#elif defined(__aarch64__)
    { "neon", OL_CPU_NEON },
#endif
};

static const char *const primitive_names[] = {
#define PRIMITIVE(name, arity, rule, cost) #name,
#include "primitives.def"
#undef PRIMITIVE
};

static const struct { const format *format; ol_dtype dtype; } dtypes[] = {
    { &format_float32, OL_FLOAT32 }, { &format_float16, OL_FLOAT16 }, { &format_bfloat16, OL_BFLOAT16 },
};

enum { MAX_LEVELS = 4 };

typedef struct run {
    const reference *reference;
    const format *format;
    approximate_fn approximate;
    filter_fn filter;
    const neighbourhood *table;                  /* of a 16-bit format's results */
    const double *values;                        /* of all its patterns */
    kernel_fn kernels[MAX_LEVELS];
    int n_levels;
    uint64_t begin, end;                         /* inputs: x, or x << 16 | y */
    uint64_t samples;
    uint64_t *digests[MAX_LEVELS];
    atomic_ullong next, near, sampled, shown, wrong[MAX_LEVELS];
} run;

static uint64_t mix(uint64_t x) {                /* splitmix64 */
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

typedef union results {
    uint32_t w[BLOCK];
    uint16_t h[BLOCK];
    uint8_t b[BLOCK];
} results;

/* One thread's block of inputs: what they are, what they should give, what they gave. */
typedef struct block {
    results xs, ys, out[MAX_LEVELS];
    double x[BLOCK], y[BLOCK], value[BLOCK], error[BLOCK];
    int32_t open[BLOCK];
    XXH3_state_t *states[MAX_LEVELS];
} block;

static size_t result_size(const run *r) { return r->reference->to_bool ? 1 : (size_t)r->format->size; }

static uint32_t result_bits(const run *r, const results *out, int i) {
    return result_size(r) == 1 ? out->b[i] : result_size(r) == 2 ? out->h[i] : out->w[i];
}

/* The right bits of an input whose approximation leaves them open. */
static uint32_t decide(run *r, const block *b, int i) {
    if (r->reference->to_bool) return b->value[i] != 0;
    if (!r->reference->exact || !isfinite(b->value[i]) || b->error[i] == 0) return format_round(r->format, b->value[i]);
    atomic_fetch_add(&r->near, 1);
    return reference_exact_bits(r->reference, r->format, b->x[i], b->y[i]);
}

static void check_level(run *r, block *b, int level, int length) {
    if (level > 0 && !memcmp(&b->out[level], &b->out[0], (size_t)length * result_size(r))) {
        for (int i = 0; r->wrong[0] && i < length; i++)
            if (b->open[i] == 2) atomic_fetch_add(&r->wrong[level], 1);
        return;
    }
    if (r->reference->to_bool)
        for (int i = 0; i < length; i++) b->open[i] = b->out[level].b[i] != (b->value[i] != 0);
    else
        r->filter(b->value, b->error, &b->out[level], r->table, b->open, length);
    for (int i = 0; i < length; i++) {
        if (!b->open[i]) continue;
        uint32_t want = decide(r, b, i), got = result_bits(r, &b->out[level], i);
        if (got == want) continue;
        b->open[i] = 2;
        atomic_fetch_add(&r->wrong[level], 1);
        if (atomic_fetch_add(&r->shown, 1) < shown_limit)
            printf("  wrong: %s(%a, %a) gives %0*x, should be %0*x\n", r->reference->name, b->x[i], b->y[i], r->format->size * 2, got,
                   r->format->size * 2, want);
    }
}

/* One random input of the block: is it as near as the approximation says, and a few times nearer? Where double has no
 * subnormals to spare. */
static void check_sample(run *r, const block *b, uint64_t input, int length) {
    int i = (int)(mix(input) % (uint64_t)length);
    if (!r->reference->exact || !isfinite(b->value[i]) || b->error[i] == 0 || fabs(b->value[i]) < 0x1p-960 || mix(~input) % (1ull << 32) >= r->samples * BLOCK) return;
    atomic_fetch_add(&r->sampled, 1);
    if (reference_distance(r->reference, b->x[i], b->y[i], b->value[i]) <= b->error[i] / 4) return;
    atomic_fetch_add(&r->wrong[0], 1);
    fprintf(stderr, "the reference's own bound fails at %a %a\n", b->x[i], b->y[i]);
}

static void check_block(run *r, block *b, uint64_t input, int length) {
    for (int i = 0; i < length; i++) {
        uint64_t k = input + (uint64_t)i;
        if (r->format->size == 4) {
            float narrow;
            b->xs.w[i] = (uint32_t)k;
            memcpy(&narrow, &b->xs.w[i], sizeof narrow);
            b->x[i] = narrow;
        } else if (r->reference->arity == 1) {
            b->xs.h[i] = (uint16_t)k;
            b->x[i] = r->values[k];
        } else {
            b->xs.h[i] = (uint16_t)(k >> 16), b->ys.h[i] = (uint16_t)k;
            b->x[i] = r->values[k >> 16], b->y[i] = r->values[k & 0xffff];
        }
    }
    r->approximate(b->x, b->y, b->value, b->error, length);
    for (int level = 0; level < r->n_levels; level++) {
        r->kernels[level](&b->out[level], &b->xs, &b->ys, NULL, (size_t)length);
        XXH3_64bits_update(b->states[level], &b->out[level], (size_t)length * result_size(r));
        check_level(r, b, level, length);
    }
    check_sample(r, b, input, length);
}

static void *work(void *argument) {
    run *r = argument;
    block *b = aligned_alloc(64, (sizeof *b + 63) / 64 * 64);
    memset(b, 0, sizeof *b);
    for (int level = 0; level < r->n_levels; level++) b->states[level] = XXH3_createState();
    for (;;) {
        uint64_t task = atomic_fetch_add(&r->next, 1), begin = r->begin + task * TASK;
        if (begin >= r->end) break;
        uint64_t end = begin + TASK < r->end ? begin + TASK : r->end;
        for (int level = 0; level < r->n_levels; level++) XXH3_64bits_reset(b->states[level]);
        for (uint64_t input = begin; input < end; input += BLOCK) check_block(r, b, input, end - input < BLOCK ? (int)(end - input) : BLOCK);
        for (int level = 0; level < r->n_levels; level++) r->digests[level][task] = XXH3_64bits_digest(b->states[level]);
    }
    for (int level = 0; level < r->n_levels; level++) XXH3_freeState(b->states[level]);
    free(b);
    reference_thread_end();
    return NULL;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A result depends on its own element alone, whatever its neighbours and however long the run: every input of a 16-bit
 * primitive again, in other orders and in runs of 1 to 600, against the results in input order. Returns how many differ. */
static unsigned long long check_neighbours(const run *r, kernel_fn kernel) {
    static uint16_t in[65536], first[65536], again[65536];
    size_t out_size = result_size(r);
    unsigned long long differing = 0;
    for (uint32_t i = 0; i < 65536; i++) in[i] = (uint16_t)i;
    kernel(first, in, in, in, 65536);
    for (uint32_t order = 0; order < 64; order++) {
        uint32_t step = (uint32_t)mix(order) | 1u, start = (uint32_t)mix(order + 1000);       /* odd: a permutation */
        for (uint32_t i = 0; i < 65536; i++) in[i] = (uint16_t)(start + i * step);
        for (uint32_t done = 0, length; done < 65536; done += length) {
            length = 1 + (uint32_t)mix(order * 65536ull + done) % 600;
            length = length < 65536 - done ? length : 65536 - done;
            kernel((char *)again + done * out_size, in + done, in + done, in + done, length);
        }
        for (uint32_t i = 0; i < 65536; i++)
            differing += memcmp((char *)again + i * out_size, (char *)first + in[i] * out_size, out_size) != 0;
    }
    return differing;
}

/* The neighbourhoods of all results of a 16-bit format, by magnitude; NaN have none. */
static void fill_neighbourhoods(const format *f, neighbourhood *table) {
    for (uint32_t m = 0; m < 32768; m++) {
        double own = format_value(f, m), overflow = ldexp(1, 128);
        if (f->infinity == 0x7c00u) overflow = 65536;
        double next = m + 1 >= f->infinity ? overflow : format_value(f, m + 1);
        double below = m == 0 ? 0 : format_value(f, m - 1);
        table[m] = (neighbourhood){ own, m == f->infinity ? (below + overflow) / 2 : (below + own) / 2, m == f->infinity ? INFINITY : (own + next) / 2 };
        if (m > f->infinity) table[m].value = m == f->nan ? NAN : 0, table[m].low = INFINITY;
    }
}

/* The fastest approximations that this machine runs. */
static void choose_approximation(run *r) {
    const approximation *list = approximations_baseline;
    const filters *filter = &filters_baseline;
#if defined(__x86_64__)
    if (ol_cpu_level_available(OL_CPU_AVX2)) list = approximations_avx2, filter = &filters_avx2;
    if (ol_cpu_level_available(OL_CPU_AVX512)) list = approximations_avx512, filter = &filters_avx512;
#endif
    while (strcmp(list->name, r->reference->name)) list++;
    r->approximate = list->function;
    r->filter = r->format->size == 4 ? filter->of_float32 : filter->of_16_bits;
}

/* Returns whether all was right. */
static int prove(const reference *ref, int d, const level_info *const *chosen_levels, int n_levels, unsigned shard, unsigned shards,
                 int threads, uint64_t samples) {
    static double values[65536];
    static neighbourhood table[32768];
    run r = { .reference = ref, .format = dtypes[d].format, .samples = samples, .values = values, .table = table, .n_levels = n_levels };
    int p = 0, ok = 1;
    while (strcmp(primitive_names[p], ref->name)) p++;
    choose_approximation(&r);
    uint64_t inputs = r.format->size == 2 && ref->arity == 1 ? 1ull << 16 : 1ull << 32;
    if (r.format->size == 2) {
        for (uint32_t i = 0; i < 65536; i++) values[i] = format_value(r.format, i);
        fill_neighbourhoods(r.format, table);
    }
    r.begin = inputs * shard / shards;
    r.end = inputs * (shard + 1) / shards;
    uint64_t tasks = (r.end - r.begin + TASK - 1) / TASK;
    for (int l = 0; l < n_levels; l++) {
        r.kernels[l] = cpu_level_kernels(chosen_levels[l]->level)->primitive[p][dtypes[d].dtype];
        r.digests[l] = calloc(tasks, sizeof **r.digests);
    }
    double start = seconds();
    pthread_t thread[256];
    for (int i = 1; i < threads; i++) pthread_create(&thread[i], NULL, work, &r);
    work(&r);                                    /* with --threads 1 no thread is made: emulators may not have them */
    for (int i = 1; i < threads; i++) pthread_join(thread[i], NULL);
    for (int l = 0; l < n_levels; l++) {
        if (r.format->size == 2 && ref->arity == 1) {
            unsigned long long differing = check_neighbours(&r, r.kernels[l]);
            if (differing) printf("  wrong: %llu results depend on their neighbours\n", differing);
            atomic_fetch_add(&r.wrong[l], differing);
        }
        printf("%-14s %-9s %-9s inputs %llu near %llu samples %llu wrong %llu seconds %.1f digest %016llx\n", ref->name,
               r.format->name, chosen_levels[l]->name, (unsigned long long)(r.end - r.begin), r.near, r.sampled, r.wrong[l],
               seconds() - start, (unsigned long long)XXH3_64bits(r.digests[l], tasks * sizeof **r.digests));
        ok &= r.wrong[l] == 0;
        free(r.digests[l]);
    }
    fflush(stdout);
    return ok;
}

static int chosen(const char *option, const char *name) {
    size_t length = strlen(name);
    if (!strcmp(option, "all")) return 1;
    for (const char *at = option; (at = strstr(at, name)); at += length)     /* a comma-separated list */
        if ((at == option || at[-1] == ',') && (at[length] == 0 || at[length] == ',')) return 1;
    return 0;
}

int main(int count, char **arguments) {
    const char *op = "all", *dtype = "all", *level = "all";
    unsigned shard = 0, shards = 1;
    int threads = (int)sysconf(_SC_NPROCESSORS_ONLN), ok = 1, ran = 0;
    uint64_t samples = 1u << 20;                 /* of 2^32 */
    for (int i = 1; i < count; i++) {
        const char *value = i + 1 < count ? arguments[i + 1] : "";
        if (!strcmp(arguments[i], "--op")) op = value;
        else if (!strcmp(arguments[i], "--dtype")) dtype = value;
        else if (!strcmp(arguments[i], "--level")) level = value;
        else if (!strcmp(arguments[i], "--threads")) threads = atoi(value);
        else if (!strcmp(arguments[i], "--show")) shown_limit = (unsigned)atoi(value);
        else if (!strcmp(arguments[i], "--samples")) samples = strtoull(value, NULL, 0);
        else if (!strcmp(arguments[i], "--shard") && sscanf(value, "%u/%u", &shard, &shards) == 2 && shard < shards) ;
        else {
            fprintf(stderr, "usage: prove [--op LIST] [--dtype LIST] [--level LIST] [--shard i/n] [--threads n] [--samples n] [--show n]\n");
            return 2;
        }
        i++;
    }
    if (threads < 1) threads = 1;
    if (threads > 256) threads = 256;
    cpu_levels_prepare();
    const level_info *chosen_levels[MAX_LEVELS];
    int n_levels = 0;
    for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
        if (!chosen(level, levels[l].name)) continue;
        if (ol_cpu_level_available(levels[l].level)) chosen_levels[n_levels++] = &levels[l];
        else fprintf(stderr, "%s: not on this machine\n", levels[l].name);
    }
    for (int i = 0; n_levels && i < reference_count; i++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            const reference *r = &reference_list[i];
            if (!chosen(op, r->name) || !chosen(dtype, dtypes[d].format->name)) continue;
            if (r->arity == 2 && dtypes[d].format->size == 4) continue;
            ok &= prove(r, (int)d, chosen_levels, n_levels, shard, shards, threads, samples);
            ran++;
        }
    if (!ran) fprintf(stderr, "nothing chosen\n");
    return ran && ok ? 0 : 1;
}
