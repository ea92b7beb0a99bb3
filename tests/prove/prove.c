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
#include "reference.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, SHOWN = 8 };
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

typedef struct run {
    const reference *reference;
    const format *format;
    kernel_fn kernel;
    uint64_t begin, end;                         /* inputs: x, or x << 16 | y */
    uint64_t samples;
    uint64_t *digests;
    const double *values;                        /* of all 16-bit patterns */
    atomic_ullong next, near, wrong, sampled, shown;
} run;

static uint64_t mix(uint64_t x) {                /* splitmix64 */
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static void check(run *r, uint64_t input, double x, double y, uint32_t got) {
    double absolute = 0;
    double value = r->reference->approximate(x, y, &absolute);
    uint32_t want;
    if (r->reference->to_bool) {
        want = value != 0;
    } else {
        double error = fabs(value) * r->reference->relative + absolute;
        want = format_round(r->format, value);
        int open = error > 0 && isfinite(value) && r->reference->exact
                   && (format_round(r->format, value - error) != want || format_round(r->format, value + error) != want);
        int sample = !open && r->reference->exact && isfinite(value) && value != 0
                     && mix(input) % (1ull << 32) < r->samples;
        if (open | sample) {
            uint32_t decided = reference_exact_bits(r->reference, r->format, x, y);
            atomic_fetch_add(open ? &r->near : &r->sampled, 1);
            if (sample && decided != want) fprintf(stderr, "the reference's own bound fails at %a %a\n", x, y);
            want = decided;
        }
    }
    if (got != want) {
        atomic_fetch_add(&r->wrong, 1);
        if (atomic_fetch_add(&r->shown, 1) < SHOWN)
            printf("  wrong: %s(%a, %a) gives %0*x, should be %0*x\n", r->reference->name, x, y, r->format->size * 2, got,
                   r->format->size * 2, want);
    }
}

static void check_task(run *r, uint64_t begin, uint64_t end, XXH3_state_t *state) {
    static _Thread_local union { uint32_t w[BLOCK]; uint16_t h[BLOCK]; uint8_t b[BLOCK]; } xs, ys, out;
    size_t out_size = r->reference->to_bool ? 1 : (size_t)r->format->size;
    XXH3_64bits_reset(state);
    for (uint64_t input = begin; input < end; input += BLOCK) {
        int length = end - input < BLOCK ? (int)(end - input) : BLOCK;
        for (int i = 0; i < length; i++) {
            uint64_t k = input + (uint64_t)i;
            if (r->format->size == 4) xs.w[i] = (uint32_t)k;
            else if (r->reference->arity == 1) xs.h[i] = (uint16_t)k;
            else xs.h[i] = (uint16_t)(k >> 16), ys.h[i] = (uint16_t)k;
        }
        r->kernel(&out, &xs, &ys, NULL, (size_t)length);
        XXH3_64bits_update(state, &out, (size_t)length * out_size);
        for (int i = 0; i < length; i++) {
            double x, y = 0;
            if (r->format->size == 4) {
                float narrow;
                memcpy(&narrow, &xs.w[i], sizeof narrow);
                x = narrow;
            } else {
                x = r->values[xs.h[i]];
                if (r->reference->arity == 2) y = r->values[ys.h[i]];
            }
            uint32_t got = out_size == 1 ? out.b[i] : out_size == 2 ? out.h[i] : out.w[i];
            check(r, input + (uint64_t)i, x, y, got);
        }
    }
}

static void *work(void *argument) {
    run *r = argument;
    XXH3_state_t *state = XXH3_createState();
    for (;;) {
        uint64_t task = atomic_fetch_add(&r->next, 1), begin = r->begin + task * TASK;
        if (begin >= r->end) break;
        check_task(r, begin, begin + TASK < r->end ? begin + TASK : r->end, state);
        r->digests[task] = XXH3_64bits_digest(state);
    }
    XXH3_freeState(state);
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
static unsigned long long check_neighbours(const run *r) {
    static uint16_t in[65536], first[65536], again[65536];
    size_t out_size = r->reference->to_bool ? 1 : 2;
    unsigned long long differing = 0;
    for (uint32_t i = 0; i < 65536; i++) in[i] = (uint16_t)i;
    r->kernel(first, in, in, in, 65536);
    for (uint32_t order = 0; order < 64; order++) {
        uint32_t step = (uint32_t)mix(order) | 1u, start = (uint32_t)mix(order + 1000);       /* odd: a permutation */
        for (uint32_t i = 0; i < 65536; i++) in[i] = (uint16_t)(start + i * step);
        for (uint32_t done = 0, length; done < 65536; done += length) {
            length = 1 + (uint32_t)mix(order * 65536ull + done) % 600;
            length = length < 65536 - done ? length : 65536 - done;
            r->kernel((char *)again + done * out_size, in + done, in + done, in + done, length);
        }
        for (uint32_t i = 0; i < 65536; i++)
            differing += memcmp((char *)again + i * out_size, (char *)first + in[i] * out_size, out_size) != 0;
    }
    return differing;
}

/* Returns whether all was right. */
static int prove(const reference *ref, int d, const level_info *level, unsigned shard, unsigned shards, int threads,
                 uint64_t samples) {
    static double values[65536];
    run r = { .reference = ref, .format = dtypes[d].format, .samples = samples, .values = values };
    int p = 0;
    while (strcmp(primitive_names[p], ref->name)) p++;
    r.kernel = cpu_level_kernels(level->level)->primitive[p][dtypes[d].dtype];
    uint64_t inputs = r.format->size == 2 && ref->arity == 1 ? 1ull << 16 : 1ull << 32;
    if (r.format->size == 2)
        for (uint32_t i = 0; i < 65536; i++) values[i] = format_value(r.format, i);
    r.begin = inputs * shard / shards;
    r.end = inputs * (shard + 1) / shards;
    uint64_t tasks = (r.end - r.begin + TASK - 1) / TASK;
    r.digests = calloc(tasks, sizeof *r.digests);
    double start = seconds();
    pthread_t thread[256];
    for (int i = 1; i < threads; i++) pthread_create(&thread[i], NULL, work, &r);
    work(&r);                                    /* with --threads 1 no thread is made: emulators may not have them */
    for (int i = 1; i < threads; i++) pthread_join(thread[i], NULL);
    if (r.format->size == 2 && ref->arity == 1) {
        unsigned long long differing = check_neighbours(&r);
        if (differing) printf("  wrong: %llu results depend on their neighbours\n", differing);
        atomic_fetch_add(&r.wrong, differing);
    }
    printf("%-14s %-9s %-9s inputs %llu near %llu samples %llu wrong %llu seconds %.1f digest %016llx\n", ref->name,
           r.format->name, level->name, (unsigned long long)(r.end - r.begin), r.near, r.sampled, r.wrong, seconds() - start,
           (unsigned long long)XXH3_64bits(r.digests, tasks * sizeof *r.digests));
    fflush(stdout);
    free(r.digests);
    return r.wrong == 0;
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
    uint64_t samples = 1u << 19;                 /* of 2^32 */
    for (int i = 1; i < count; i++) {
        const char *value = i + 1 < count ? arguments[i + 1] : "";
        if (!strcmp(arguments[i], "--op")) op = value;
        else if (!strcmp(arguments[i], "--dtype")) dtype = value;
        else if (!strcmp(arguments[i], "--level")) level = value;
        else if (!strcmp(arguments[i], "--threads")) threads = atoi(value);
        else if (!strcmp(arguments[i], "--samples")) samples = strtoull(value, NULL, 0);
        else if (!strcmp(arguments[i], "--shard") && sscanf(value, "%u/%u", &shard, &shards) == 2 && shard < shards) ;
        else {
            fprintf(stderr, "usage: prove [--op LIST] [--dtype LIST] [--level LIST] [--shard i/n] [--threads n] [--samples n]\n");
            return 2;
        }
        i++;
    }
    if (threads < 1) threads = 1;
    if (threads > 256) threads = 256;
    cpu_levels_prepare();
    for (int i = 0; i < reference_count; i++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            for (size_t l = 0; l < sizeof levels / sizeof *levels; l++) {
                const reference *r = &reference_list[i];
                if (!chosen(op, r->name) || !chosen(dtype, dtypes[d].format->name) || !chosen(level, levels[l].name)) continue;
                if (r->arity == 2 && dtypes[d].format->size == 4) continue;
                if (!ol_cpu_level_available(levels[l].level)) {
                    fprintf(stderr, "%s: not on this machine\n", levels[l].name);
                    continue;
                }
                ok &= prove(r, (int)d, &levels[l], shard, shards, threads, samples);
                ran++;
            }
    if (!ran) fprintf(stderr, "nothing chosen\n");
    return ran && ok ? 0 : 1;
}
