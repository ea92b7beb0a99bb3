/* See table.h. */
#include "table.h"
#include "check.h"
#include "cli.h"
#include "output.h"
#include "whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    char operation[32], dtype[16];
    uint64_t digest, strided;
} row;

typedef struct table {
    row *rows;
    size_t n_rows;
} table;

static bool parse_row(const char *line, row *parsed) {
    int used = 0;
    return sscanf(line, "%31[a-z0-9_] %15[a-z0-9] %16" SCNx64 " %16" SCNx64 "%n", parsed->operation, parsed->dtype, &parsed->digest,
                  &parsed->strided, &used) == 4 && strspn(line + used, "\r\n") == strlen(line + used);
}

static const row *find(const table *t, const char *operation, const char *dtype) {
    for (size_t i = 0; i < t->n_rows; i++)
        if (!strcmp(t->rows[i].operation, operation) && !strcmp(t->rows[i].dtype, dtype)) return &t->rows[i];
    return NULL;
}

static bool read_table(const char *command, const char *path, table *t) {
    char line[512];
    bool ok = true;
    *t = (table){ 0 };
    FILE *file = fopen(path, "r");
    if (!file) {
        cli_error(command, "%s: %s", path, strerror(errno));
        return false;
    }
    for (int number = 1; ok && fgets(line, sizeof line, file); number++) {
        row parsed;
        if (*line == '#' || *line == '\n') continue;
        row *more = realloc(t->rows, (t->n_rows + 1) * sizeof *more);
        if (more) t->rows = more;
        const char *why = !more ? "out of memory" : !parse_row(line, &parsed) ? "expected OP DTYPE DIGEST STRIDED" : NULL;
        if (!why && find(t, parsed.operation, parsed.dtype)) why = "a second row of the same";
        if (why) cli_error(command, "%s:%d: %s", path, number, why);
        else t->rows[t->n_rows++] = parsed;
        ok = !why;
    }
    if (ok && ferror(file)) cli_error(command, "%s: %s", path, strerror(errno)), ok = false;
    fclose(file);
    if (!ok) free(t->rows);
    return ok;
}

bool table_readable(const char *command, const char *path) {
    table t;
    if (!read_table(command, path, &t)) return false;
    free(t.rows);
    return true;
}

table_result table_compare(const char *command, const char *path, const run *runs, int n_runs) {
    table t;
    uint64_t n_equal = 0, n_other = 0;                                   /* of every level */
    if (!read_table(command, path, &t)) return TABLE_FAILED;
    for (int i = 0; i < n_runs; i++) {
        const run *r = &runs[i];
        const row *expected = find(&t, r->reference->name, r->format->name);
        if (!expected) {
            output_line("  missing: %s %s is not in %s", r->reference->name, r->format->name, path);
            n_other += (uint64_t)r->n_levels;
        }
        for (int level = 0; expected && level < r->n_levels; level++) {
            uint64_t digest;
            if (!run_digest(r, level, &digest)) {
                cli_error(command, "%s %s: other shards are missing, so there is no digest", r->reference->name, r->format->name);
                free(t.rows);
                return TABLE_FAILED;
            }
            if (digest == expected->digest) n_equal++;
            else {
                output_line("  wrong: %s %s %s: %s has %016" PRIx64, r->reference->name, r->format->name, r->levels[level]->name, path, expected->digest);
                n_other++;
            }
        }
    }
    free(t.rows);
    if (n_other) output_line("%" PRIu64 " digests equal to %s, %" PRIu64 " not", n_equal, path, n_other);
    else output_line("%" PRIu64 " digests equal to %s", n_equal, path);
    return n_other ? TABLE_WRONG : TABLE_RIGHT;
}

/* The digest that all levels have. */
static table_result common_digest(const char *command, const run *r, uint64_t *digest) {
    for (int level = 0; level < r->n_levels; level++) {
        uint64_t other;
        if (!run_digest(r, level, &other)) {
            cli_error(command, "%s %s: other shards are missing, so there is no digest", r->reference->name, r->format->name);
            return TABLE_FAILED;
        }
        if (level == 0) *digest = other;
        if (other == *digest) continue;
        cli_error(command, "%s %s: levels differ, so nothing is written", r->reference->name, r->format->name);
        return TABLE_WRONG;
    }
    return TABLE_RIGHT;
}

table_result table_write(const char *command, const char *path, const run *runs, int n_runs) {
    table_result result = TABLE_RIGHT;
    char *text = NULL;
    size_t bytes = 0;
    FILE *rows = open_memstream(&text, &bytes);
    if (rows)
        fputs("# Digests of all results, equal at every SIMD level and on every machine: OP DTYPE DIGEST STRIDED_DIGEST, by\n"
              "# ./dev prove --write-digests; tools/digest.h says over what.\n", rows);
    for (int i = 0; rows && i < n_runs && result == TABLE_RIGHT; i++) {
        uint64_t digest = 0;
        result = common_digest(command, &runs[i], &digest);
        uint64_t strided = result == TABLE_RIGHT ? check_strided_digest(&runs[i]) : 0;
        fprintf(rows, "%s\t%s\t%016" PRIx64 "\t%016" PRIx64 "\n", runs[i].reference->name, runs[i].format->name, digest, strided);
    }
    if (!rows || fclose(rows)) {
        cli_error(command, "%s: %s", path, strerror(errno));
        result = TABLE_FAILED;
    } else if (result == TABLE_RIGHT && !whole_file_write(command, path, text, bytes)) result = TABLE_FAILED;
    free(text);
    return result;
}
