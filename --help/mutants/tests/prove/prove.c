/* ./dev prove: proves primitives by running every input, at the SIMD levels of this machine, against a reference by MPFR.
 *
 *     prove --op exp --dtype float32 [--level avx512] [--state FILE] [--report FILE]
 *
 * runs.c knows what there is to run, check.c compares a task's results with the reference (reference.c, approximate_body.h), job.c gives
 * tasks to threads, journal.c keeps what is finished, report.c and table.c write results down,
 * whole_file.c as whole files. */
#include "cli.h"
#include "facts.h"
#include "job.h"
#include "options.h"
#include "output.h"
#include "report.h"
#include "table.h"
#include "whole_file.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_list(void) {
    printf("Levels:");
    for (int l = 0; l < level_count; l++) printf(" %s%s", level_list[l].name, ol_cpu_level_available(level_list[l].level) ? "" : " (not here)");
    printf("\nPrimitives, and inputs by dtype:\n");
    for (int i = 0; i < reference_count; i++) {
        printf("  %-15s", reference_list[i].name);
        for (int d = 0; d < dtype_count; d++) {
            uint64_t inputs = digest_inputs(reference_list[i].arity, (size_t)dtype_list[d].format->size);
            if (run_exists(i, d)) printf(" %s %-11" PRIu64, dtype_name(d), inputs);
        }
        putchar('\n');
    }
}

/* The first line of a state file: whatever a kept result depends on. */
static void identify(const options *o, const prove_facts *f, char *identity, size_t bytes) {
    char levels[64] = "";
    for (int l = 0; l < o->settings.n_levels; l++)
        snprintf(levels + strlen(levels), sizeof levels - strlen(levels), "%s%s", l ? "," : "", o->settings.levels[l]->name);
    snprintf(identity, bytes, "state 1 %s samples %" PRIu64 " levels %s onelaunch %s executable %s processor %s reference %s",
             o->settings.kernels_only ? "digests" : "proof", o->settings.samples, levels, ol_version(), f->executable, f->processor, f->reference);
}

static int make_runs(options *o, const char *command, run **runs) {
    bool operations[256] = { false }, dtypes[8] = { false };
    int n = 0;
    if (!options_choose(command, o, operations, dtypes)) return -1;
    *runs = calloc((size_t)(reference_count * dtype_count), sizeof **runs);
    for (int i = 0; *runs && i < reference_count; i++)
        for (int d = 0; d < dtype_count; d++) {
            bool hard = reference_list[i].arity == 2 && dtype_list[d].dtype == OL_FLOAT32;
            if (!operations[i] || !dtypes[d] || !run_exists(i, d) || (o->settings.n_hard_pairs && !hard)) continue;
            if (run_init(&(*runs)[n++], i, d, &o->settings)) continue;
            cli_error(command, "%s %s: no memory or no approximation for it", reference_list[i].name, dtype_list[d].format->name);
            return -1;
        }
    if (!*runs) cli_error(command, "out of memory");
    return *runs ? n : -1;
}

/* The exit status, once all runs are finished. */
static int conclude(const char *command, const options *o, const prove_facts *f, const run *runs, int n_runs) {
    int status = CLI_OK;
    for (int i = 0; i < n_runs; i++) {
        const tally *t = &runs[i].total;
        if (t->unsound && status == CLI_OK) status = CLI_USAGE;                 /* nothing is proven, and nothing refuted */
        for (int level = 0; level < runs[i].n_levels; level++)
            if (t->wrong[level]) status = CLI_MISS;
    }
    if (o->digests || o->write_digests) {
        table_result result = o->digests ? table_compare(command, o->digests, runs, n_runs) : table_write(command, o->write_digests, runs, n_runs);
        if (result != TABLE_RIGHT) status = result == TABLE_WRONG ? CLI_MISS : CLI_USAGE;
    }
    if (o->report && !report_write(command, o, f, runs, n_runs)) status = status == CLI_MISS ? CLI_MISS : CLI_USAGE;
    if (!cli_flush(command) && status == CLI_OK) status = CLI_USAGE;
    return status;
}

static bool writable(const char *command, const char *path) { return !path || whole_file_writable(command, path); }

/* Nothing to run is said, and is an error but in a shard, as one of many. */
static bool any_inputs(const char *command, const options *o, const run *runs, int n_runs) {
    for (int i = 0; i < n_runs; i++)
        if (run_shard_inputs(&runs[i])) return true;
    cli_error(command, "%s", n_runs                    ? "this shard of the chosen runs has no inputs"
                             : o->settings.n_hard_pairs ? "--hard-pairs: no chosen primitive takes two float32 operands"
                                                        : "nothing to run: no conversion is from a dtype to itself");
    return n_runs > 0;
}

static void report_if_any(const run *r) {
    if (r->first_task < r->end_task) report_run(r);
}

/* Returns the exit status. */
static int prove(const char *command, options *o) {
    prove_facts f;
    run *runs = NULL;
    journal *state = NULL;
    char identity[800];
    int status = CLI_USAGE, n_runs = make_runs(o, command, &runs);
    if (n_runs < 0 || !any_inputs(command, o, runs, n_runs) || !writable(command, o->report) || !writable(command, o->write_digests) ||
        !facts_gather(command, &f) || (o->digests && !table_readable(command, o->digests))) goto done;
    identify(o, &f, identity, sizeof identity);
    if (o->state && !(state = journal_open(command, o->state, identity, runs, n_runs))) goto done;
    if (state && journal_n_tasks(state))
        fprintf(stderr, "%s: going on from %" PRIu64 " finished tasks in %s\n", command, journal_n_tasks(state), o->state);
    job j = { .command = command, .runs = runs, .n_runs = n_runs, .n_threads = o->n_threads, .progress = !o->quiet, .journal = state,
              .finished = report_if_any };
    job_catch_signals();
    switch (job_run(&j)) {
    case JOB_DONE: status = conclude(command, o, &f, runs, n_runs); break;
    case JOB_FAILED: break;
    case JOB_STOPPED:
        if (o->state) cli_error(command, "stopped; the same command goes on from %s", o->state);
        else cli_error(command, "stopped; with --state FILE it could have gone on from there");
        break;
    }
done:
    journal_close(state);
    for (int i = 0; i < n_runs; i++) run_free(&runs[i]);
    free(runs);
    return status;
}

int main(int argc, char **argv) {
    options o;
    cli_hold_descriptors();
    cli_flush_at_exit("prove");
    if (!options_parse(argc, argv, &o)) return CLI_USAGE;
    runs_prepare();
    if (o.list) {
        print_list();
        return cli_flush("prove") ? CLI_OK : CLI_USAGE;
    }
    int status = prove("prove", &o);
    if (job_stop_signal()) raise(job_stop_signal());                           /* reset to its default by then */
    return status;
}
