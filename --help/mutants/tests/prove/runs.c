/* See runs.h. */
#include "runs.h"
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const level_info level_list[] = {
    { "baseline", OL_CPU_BASELINE },
#if defined(__x86_64__)
    { "avx2", OL_CPU_AVX2 },
    { "avx512", OL_CPU_AVX512 },
#elif defined(__aarch64__)
    { "neon", OL_CPU_NEON },
#endif
};
const int level_count = sizeof level_list / sizeof *level_list;

const dtype_info dtype_list[] = {
    { &format_float32, OL_FLOAT32 }, { &format_float16, OL_FLOAT16 }, { &format_bfloat16, OL_BFLOAT16 },
};
const int dtype_count = sizeof dtype_list / sizeof *dtype_list;

static const char *const primitive_names[] = {
#define PRIMITIVE(name, arity, rule, cost) #name,
#include "primitives.def"
#undef PRIMITIVE
};

static format_table tables[2];                   /* of float16 and bfloat16 */

/* ---- Choosing -------------------------------------------------------------------------------------------------------- */

const char *operation_name(int i) { return reference_list[i].name; }
const char *dtype_name(int i) { return dtype_list[i].format->name; }
const char *level_name(int i) { return level_list[i].name; }

bool choose(const char *command, const char *option, const char *list, const char *(*name)(int i), int n, bool *chosen) {
    for (const char *at = list, *end;; at = end + 1) {
        size_t length = strcspn(at, ",");
        end = at + length;
        bool all = length == 3 && !strncmp(at, "all", 3), found = all;
        for (int i = 0; i < n; i++)
            if (all || (strlen(name(i)) == length && !strncmp(at, name(i), length))) chosen[i] = found = true;
        if (!found) {
            char names[2048] = "all";
            for (int i = 0; i < n; i++) {
                strncat(names, ", ", sizeof names - strlen(names) - 1);
                strncat(names, name(i), sizeof names - strlen(names) - 1);
            }
            cli_error(command, "%s %s: there is no '%.*s'; there are %s", option, list, (int)length, at, names);
            return false;
        }
        if (!*end) return true;
    }
}

/* ---- Making ---------------------------------------------------------------------------------------------------------- */

/* The neighbourhoods of all results of a 16-bit format, by magnitude; NaN have none. */
static void fill_table(const format *f, format_table *table) {
    for (uint32_t i = 0; i < 65536; i++) table->values[i] = format_value(f, i);
    for (uint32_t m = 0; m < 32768; m++) {
        double own = format_value(f, m), overflow = f->infinity == 0x7c00u ? 65536 : ldexp(1, 128);
        double next = m + 1 >= f->infinity ? overflow : format_value(f, m + 1);
        double below = m == 0 ? 0 : format_value(f, m - 1);
        neighbourhood of = { own, (below + own) / 2, (own + next) / 2 };
        if (m == f->infinity) of.low = (below + overflow) / 2, of.high = INFINITY;
        if (m > f->infinity) of = (neighbourhood){ m == f->nan ? NAN : 0, INFINITY, (own + next) / 2 };
        table->results[m] = of;
    }
}

void runs_prepare(void) {
    cpu_levels_prepare();
    fill_table(&format_float16, &tables[0]);
    fill_table(&format_bfloat16, &tables[1]);
}

/* The fastest approximations that this machine runs. */
static const char *fastest(const approximation **list, const filters **filter) {
    *list = approximations_baseline, *filter = &filters_baseline;
    const char *name = "baseline";
#if defined(__x86_64__)
    if (ol_cpu_level_available(OL_CPU_AVX2)) *list = approximations_avx2, *filter = &filters_avx2, name = "avx2";
    if (ol_cpu_level_available(OL_CPU_AVX512)) *list = approximations_avx512, *filter = &filters_avx512, name = "avx512";
#endif
    return name;
}

const char *approximation_name(void) {
    static char name[32];
    const approximation *list;
    const filters *filter;
#ifdef WITH_LIBMVEC
    const char *library = "libmvec";
#else
    const char *library = "libm";
#endif
    snprintf(name, sizeof name, "%s %s", library, fastest(&list, &filter));
    return name;
}

/* Float32 pairs cannot all be run: these are promised within 0.5001 ulp, not correctly rounded. */
static const char *const tolerated[] = { "logaddexp", "power", "arctan2" };

bool run_exists(int operation, int dtype) { return reference_list[operation].to != dtype_list[dtype].format; }

static const format_table *table_of(const format *f) { return f->size == 4 ? NULL : &tables[f == &format_bfloat16]; }

static kernel_fn find_kernel(const kernel_table *kernels, const reference *of, ol_dtype dtype) {
    int p = 0;
    for (int to = 0; to < dtype_count; to++)
        if (of->to == dtype_list[to].format) return kernels->astype[dtype][dtype_list[to].dtype];
    while (strcmp(primitive_names[p], of->name)) p++;
    return kernels->primitive[p][dtype];
}

bool run_init(run *r, int operation, int dtype, const run_settings *settings) {
    const approximation *approximations;
    const filters *filter;
    *r = (run){ .reference = &reference_list[operation], .format = dtype_list[dtype].format, .levels = settings->levels,
                .n_levels = settings->n_levels, .kernels_only = settings->kernels_only, .samples = settings->samples, .show = settings->show };
    fastest(&approximations, &filter);
    while (approximations->name && strcmp(approximations->name, r->reference->name)) approximations++;
    if (!approximations->name) return false;
    r->approximate = approximations->function;
    r->result = r->reference->to ? r->reference->to : r->format;
    r->operand_table = table_of(r->format), r->result_table = table_of(r->result);
    r->filter = r->result_table ? filter->of_16_bits : filter->of_float32;
    for (size_t i = 0; r->format->size == 4 && i < sizeof tolerated / sizeof *tolerated; i++)
        if (!strcmp(r->reference->name, tolerated[i])) r->tolerance = 0.5001;
    r->inputs = digest_inputs(r->reference->arity, (size_t)r->format->size);
    if (settings->n_hard_pairs) r->hard_pairs = true, r->inputs = settings->n_hard_pairs;
    r->n_chunks = (r->inputs + DIGEST_CHUNK - 1) / DIGEST_CHUNK;
    r->first_task = run_tasks(r) * settings->shard / settings->n_shards;
    r->end_task = run_tasks(r) * (settings->shard + 1) / settings->n_shards;
    r->n_left = r->end_task - r->first_task;
    r->done = calloc(run_tasks(r), sizeof *r->done);
    bool ok = r->done != NULL;
    for (int l = 0; l < r->n_levels; l++) {
        r->kernels[l] = find_kernel(cpu_level_kernels(r->levels[l]->level), r->reference, dtype_list[dtype].dtype);
        r->chunks[l] = calloc(r->n_chunks, sizeof **r->chunks);
        ok &= r->chunks[l] != NULL;
    }
    return ok;
}

void run_free(run *r) {
    free(r->done);
    for (int l = 0; l < r->n_levels; l++) free(r->chunks[l]);
}

/* ---- Asking ---------------------------------------------------------------------------------------------------------- */

uint64_t run_tasks(const run *r) { return (r->inputs + TASK - 1) / TASK; }

uint64_t run_task_inputs(const run *r, uint64_t task) { return (task + 1) * TASK <= r->inputs ? TASK : r->inputs - task * TASK; }

uint64_t run_shard_inputs(const run *r) {
    if (r->first_task == r->end_task) return 0;
    return (r->end_task - 1 - r->first_task) * TASK + run_task_inputs(r, r->end_task - 1);
}

bool run_digest(const run *r, int level, uint64_t *digest) {
    for (uint64_t task = 0; task < run_tasks(r); task++)
        if (!r->done[task]) return false;
    *digest = digest_all(r->chunks[level], r->n_chunks);
    return true;
}

bool run_exhaustive(const run *r) { return r->reference->arity == 1 || r->format->size == 2; }

size_t run_result_bytes(const run *r) { return r->reference->to_bool ? 1 : (size_t)r->result->size; }
