/* See report.h. */
#include "report.h"
#include "cli.h"
#include "output.h"
#include "whole_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* 16 hexadecimal digits, or "-" where other shards are missing. */
static const char *digest_text(const run *r, int level, char text[17]) {
    uint64_t digest;
    if (run_digest(r, level, &digest)) snprintf(text, 17, "%016" PRIx64, digest);
    else strcpy(text, "-");
    return text;
}

void report_run(const run *r) {
    char digest[17], found[160] = "";
    const tally *t = &r->total;
    for (int level = 0; level < r->n_levels; level++) {
        if (!r->kernels_only)
            snprintf(found, sizeof found, " near %" PRIu64 " samples %" PRIu64 " wrong %" PRIu64, t->near, t->samples, t->wrong[level]);
        if (t->off && !r->kernels_only) snprintf(found + strlen(found), sizeof found - strlen(found), " off %" PRIu64 " by at most %.6f ulp", t->off, t->worst);
        output_line("%-15s %-9s %-9s inputs %" PRIu64 "%s%s seconds %.1f digest %s", r->reference->name, r->format->name, r->levels[level]->name,
                    run_shard_inputs(r), run_exhaustive(r) ? "" : r->hard_pairs ? " (hard pairs)" : " (a sample)", found, t->seconds, digest_text(r, level, digest));
    }
}

static json_t *json_of_run(const run *r, int level, const prove_facts *f) {
    char digest[17], by[240];
    const tally *t = &r->total;
    digest_text(r, level, digest);
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:I, s:b, s:o, s:f}", "op", r->reference->name, "dtype", r->format->name, "result",
                            r->reference->to_bool ? "bool" : r->result->name, "level", r->levels[level]->name,
                            "inputs", (json_int_t)run_shard_inputs(r), "exhaustive", (int)run_exhaustive(r), "digest",
                            *digest == '-' ? json_null() : json_string(digest), "seconds", t->seconds);
    if (r->kernels_only) return row;
    if (r->reference->exact) snprintf(by, sizeof by, "%s, %d bits", f->reference, r->reference->precision);
    else snprintf(by, sizeof by, "exact in double");
    json_t *found = json_pack("{s:I, s:I, s:I, s:I, s:s}", "near", (json_int_t)t->near, "samples", (json_int_t)t->samples, "unsound_samples",
                              (json_int_t)t->unsound, "wrong", (json_int_t)t->wrong[level], "reference", by);
    if (found && r->tolerance > 0) {
        json_object_set_new(found, "not_nearest", json_integer((json_int_t)t->off));
        json_object_set_new(found, "worst_ulp", json_real(t->worst));
    }
    if (json_object_update_new(row, found)) json_decref(row), row = NULL;
    return row;
}

static json_t *json_of_all(const options *o, const prove_facts *f, const run *runs, int n_runs) {
    const run_settings *s = &o->settings;
    char shard[32];
    snprintf(shard, sizeof shard, "%u/%u", s->shard, s->n_shards);
    json_t *rows = json_array(), *levels = json_array();
    for (int i = 0; i < n_runs; i++)
        for (int level = 0; level < s->n_levels && runs[i].first_task < runs[i].end_task; level++)
            json_array_append_new(rows, json_of_run(&runs[i], level, f));
    for (int level = 0; level < s->n_levels; level++) json_array_append_new(levels, json_string(s->levels[level]->name));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s, s:o, s:s, s:I, s:i}, s:o}", "version", ol_version(), "date", f->date,
                     "processor", f->processor, "architecture", f->architecture, "system", f->system, "compiler", f->compiler, "executable",
                     f->executable, "options", "op", o->operations, "dtype", o->dtypes, "levels", levels, "shard", shard, "samples",
                     (json_int_t)s->samples, "threads", o->n_threads, "runs", rows);
}

bool report_write(const char *command, const options *o, const prove_facts *f, const run *runs, int n_runs) {
    json_t *all = json_of_all(o, f, runs, n_runs);
    size_t bytes = 0;
    char *text = all ? json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : NULL, *line = NULL;
    if (text && asprintf(&line, "%s\n", text) > 0) bytes = strlen(line);
    bool ok = bytes && whole_file_write(command, o->report, line, bytes);
    if (!bytes) cli_error(command, "%s: out of memory", o->report);
    free(text), free(line);
    json_decref(all);
    return ok;
}
