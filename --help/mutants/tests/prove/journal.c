/* See journal.h. */
#include "journal.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES = 2048 };

struct journal {
    const char *command, *path;
    int file;
    uint64_t n_tasks;
};

void journal_add_result(run *r, uint64_t task, const task_result *result) {
    tally *total = &r->total;
    uint64_t first_chunk = task * TASK_CHUNKS;
    for (int level = 0; level < r->n_levels; level++)
        for (uint64_t k = 0; k < TASK_CHUNKS && first_chunk + k < r->n_chunks; k++) r->chunks[level][first_chunk + k] = result->chunks[level][k];
    r->done[task] = true;
    if (task < r->first_task || task >= r->end_task) return;              /* another shard's */
    r->n_left--;
    total->near += result->counts.near;
    total->samples += result->counts.samples;
    total->unsound += result->counts.unsound;
    total->off += result->counts.off;
    if (result->counts.worst > total->worst) total->worst = result->counts.worst;
    total->seconds += result->counts.seconds;
    for (int level = 0; level < r->n_levels; level++) total->wrong[level] += result->counts.wrong[level];
}

/* ---- Writing --------------------------------------------------------------------------------------------------------- */

/* Adds the checksum and the newline to a line and writes it. Of what finds no place whole, nothing stays. */
static bool append(journal *j, const char *line) {
    char text[LINE_BYTES + 32];
    struct stat before;
    int length = snprintf(text, sizeof text, "%s =%016" PRIx64 "\n", line, digest_chunk(line, strlen(line)));
    if (fstat(j->file, &before)) before.st_size = -1;
    ssize_t written = write(j->file, text, (size_t)length);
    if (written == length) return true;
    cli_error(j->command, "%s: %s", j->path, written < 0 ? strerror(errno) : "no space is left");
    if (written > 0 && before.st_size >= 0 && ftruncate(j->file, before.st_size))
        cli_error(j->command, "%s: the last line is cut, and will be dropped", j->path);
    return false;
}

bool journal_write(journal *j, const run *r, uint64_t task, const task_result *result) {
    char line[LINE_BYTES];
    const tally *c = &result->counts;
    int used = snprintf(line, sizeof line, "task %s %s %" PRIu64 " near %" PRIu64 " samples %" PRIu64 " unsound %" PRIu64 " seconds %.3f wrong",
                        r->reference->name, r->format->name, task, c->near, c->samples, c->unsound, c->seconds);
    for (int level = 0; level < r->n_levels; level++) used += snprintf(line + used, sizeof line - (size_t)used, " %" PRIu64, c->wrong[level]);
    used += snprintf(line + used, sizeof line - (size_t)used, " chunks");
    for (int level = 0; level < r->n_levels; level++)
        for (uint64_t k = 0; k < TASK_CHUNKS && task * TASK_CHUNKS + k < r->n_chunks; k++)
            used += snprintf(line + used, sizeof line - (size_t)used, " %016" PRIx64, result->chunks[level][k]);
    return append(j, line);
}

/* ---- Reading --------------------------------------------------------------------------------------------------------- */

static bool next_word(char **rest, const char *expected) {
    char *word = strsep(rest, " ");
    return word && !strcmp(word, expected);
}

static bool next_number(char **rest, int base, uint64_t *number) {
    char *word = strsep(rest, " "), *end;
    if (!word || !*word || *word == '-') return false;
    errno = 0;
    *number = strtoull(word, &end, base);
    return !*end && !errno;
}

static run *find_run(run *runs, int n_runs, const char *operation, const char *dtype) {
    for (int i = 0; i < n_runs; i++)
        if (!strcmp(runs[i].reference->name, operation) && !strcmp(runs[i].format->name, dtype)) return &runs[i];
    return NULL;
}

/* Takes a task's line, which may be of a run that was not chosen; false where it makes no sense. */
static bool read_task(journal *j, char *rest, run *runs, int n_runs) {
    char *operation, *dtype;
    uint64_t task;
    task_result result = { 0 };
    tally *c = &result.counts;
    if (!next_word(&rest, "task") || !(operation = strsep(&rest, " ")) || !(dtype = strsep(&rest, " ")) || !next_number(&rest, 10, &task)) return false;
    run *r = find_run(runs, n_runs, operation, dtype);
    if (!r) return true;
    if (task >= run_tasks(r) || r->done[task]) return false;
    if (!next_word(&rest, "near") || !next_number(&rest, 10, &c->near) || !next_word(&rest, "samples") || !next_number(&rest, 10, &c->samples) ||
        !next_word(&rest, "unsound") || !next_number(&rest, 10, &c->unsound) || !next_word(&rest, "seconds"))
        return false;
    char *seconds = strsep(&rest, " "), *end;
    if (!seconds || (c->seconds = strtod(seconds, &end), *end) || !next_word(&rest, "wrong")) return false;
    for (int level = 0; level < r->n_levels; level++)
        if (!next_number(&rest, 10, &c->wrong[level])) return false;
    if (!next_word(&rest, "chunks")) return false;
    for (int level = 0; level < r->n_levels; level++)
        for (uint64_t k = 0; k < TASK_CHUNKS && task * TASK_CHUNKS + k < r->n_chunks; k++)
            if (!next_number(&rest, 16, &result.chunks[level][k])) return false;
    if (rest) return false;
    journal_add_result(r, task, &result);
    j->n_tasks++;
    return true;
}

/* Cuts a line's checksum off; false where it is not that of the line. */
static bool check_line(char *line, size_t length) {
    char *mark = length == strlen(line) ? strrchr(line, '=') : NULL;
    uint64_t checksum;
    if (!mark || mark == line || mark[-1] != ' ' || strlen(mark) != 17) return false;
    char *rest = mark + 1;
    mark[-1] = 0;
    return next_number(&rest, 16, &checksum) && checksum == digest_chunk(line, strlen(line));
}

static bool refuse(journal *j, int64_t line, const char *what) {
    cli_error(j->command, "%s:%" PRId64 ": %s; nothing of it is used. Remove the file to start anew", j->path, line, what);
    return false;
}

static bool read_lines(journal *j, char *text, size_t length, const char *identity, run *runs, int n_runs) {
    char *end = text + length;
    int64_t number = 1;
    for (char *line = text, *newline; line < end; line = newline + 1, number++) {
        newline = memchr(line, '\n', (size_t)(end - line));
        if (!newline && number == 1 && strncmp(line, identity, length < strlen(identity) ? length : strlen(identity)))
            return refuse(j, number, "no state file of this job");         /* another file of one line, which is not ours to drop */
        if (!newline) {                                                    /* the writing of it was broken off */
            cli_error(j->command, "%s:%" PRId64 ": the last line was not written to its end; it is dropped", j->path, number);
            if (!ftruncate(j->file, line - text)) return true;
            cli_error(j->command, "%s: %s", j->path, strerror(errno));
            return false;
        }
        *newline = 0;
        if (!check_line(line, (size_t)(newline - line))) return refuse(j, number, "damaged, or no state file");
        bool first = !strncmp(line, "state ", 6);
        if (number == 1 && !first) return refuse(j, number, "no state file of this version");
        if (first && strcmp(line, identity)) {
            cli_error(j->command, "%s:%" PRId64 ": of another job or another build; name another file, or remove it to start anew", j->path, number);
            cli_error(j->command, "the file: %s", line);
            cli_error(j->command, "this job: %s", identity);
            return false;
        }
        if (!first && !read_task(j, line, runs, n_runs)) return refuse(j, number, "a task that does not exist, or is there twice");
    }
    return true;
}

static bool read_all(journal *j, const char *identity, run *runs, int n_runs) {
    struct stat about;
    char *text = NULL;
    bool ok = false;
    if (fstat(j->file, &about) || !S_ISREG(about.st_mode)) {
        cli_error(j->command, "%s: no regular file", j->path);
        return false;
    }
    size_t length = (size_t)about.st_size, got = 0;
    if (!(text = malloc(length + 1))) {
        cli_error(j->command, "%s: out of memory", j->path);
        return false;
    }
    for (ssize_t n = 1; got < length && n > 0; got += n > 0 ? (size_t)n : 0) n = pread(j->file, text + got, length - got, (off_t)got);
    if (got < length) cli_error(j->command, "%s: %s", j->path, strerror(errno));
    else ok = read_lines(j, text, length, identity, runs, n_runs);
    free(text);
    if (ok && !fstat(j->file, &about) && about.st_size == 0) ok = append(j, identity);
    return ok;
}

journal *journal_open(const char *command, const char *path, const char *identity, run *runs, int n_runs) {
    journal *j = calloc(1, sizeof *j);
    if (!j) {
        cli_error(command, "out of memory");
        return NULL;
    }
    bool was_there = !access(path, F_OK);
    *j = (journal){ .command = command, .path = path, .file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666) };
    if (j->file < 0) cli_error(command, "%s: %s", path, strerror(errno));
    else if (flock(j->file, LOCK_EX | LOCK_NB)) cli_error(command, "%s: another job is using it", path);
    else if (read_all(j, identity, runs, n_runs)) return j;
    else if (!was_there) unlink(path);                                     /* its first line found no place */
    journal_close(j);
    return NULL;
}

uint64_t journal_n_tasks(const journal *j) { return j->n_tasks; }

void journal_close(journal *j) {
    if (!j) return;
    if (j->file >= 0) close(j->file);
    free(j);
}
