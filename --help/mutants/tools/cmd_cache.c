/* `onelaunch cache`: what the disk cache of compiled kernels holds, and emptying it. */
#include "cli.h"
#include "commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static error_t parse(int key, char *argument, struct argp_state *state) {
    bool *clear = state->input;
    if (key != ARGP_KEY_ARG) {
        return ARGP_ERR_UNKNOWN;
    }
    if (state->arg_num > 0) {
        argp_error(state, "unexpected argument '%s'", cli_printable(argument));
    } else if (strcmp(argument, "list") != 0 && strcmp(argument, "clear") != 0) {
        argp_error(state, "'%s': expected list or clear", cli_printable(argument));
    }
    *clear = strcmp(argument, "clear") == 0;
    return 0;
}

/* The folder on a line of its own; false where the cache is off. */
static bool print_folder(void) {
    size_t n = ol_cache_folder(NULL, 0);
    char *folder = malloc(n + 1);
    if (folder && n > 0) {
        ol_cache_folder(folder, n + 1);
        cli_put(stdout, folder);
        putchar('\n');
    }
    free(folder);
    return n > 0;
}

/* "12.3MB" */
static const char *bytes_text(uint64_t n_bytes, char buffer[CLI_COUNT_BYTES]) {
    size_t length = strlen(cli_count((double)n_bytes, buffer));
    snprintf(buffer + length, CLI_COUNT_BYTES - length, "B");
    return buffer;
}

/* "5 min": since then, in the largest unit that is full. */
static const char *age_text(int64_t then, char buffer[CLI_COUNT_BYTES]) {
    static const struct unit {
        int64_t seconds;
        const char *name;
    } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
    int64_t now = time(NULL), age = then < 0 ? now : then > now ? 0 : now - then;
    const struct unit *unit = units;
    while (age < unit->seconds && unit->seconds > 1) {
        unit++;
    }
    snprintf(buffer, CLI_COUNT_BYTES, "%" PRId64 " %s", age / unit->seconds, unit->name);
    return buffer;
}

struct totals {
    int64_t n_entries, n_damaged;
    uint64_t n_bytes;
};

static int print_entry(void *user, const ol_cache_entry *entry) {
    struct totals *totals = user;
    char size[CLI_COUNT_BYTES], age[CLI_COUNT_BYTES];
    if (totals->n_entries == 0) {
        printf("%-7s %-12s %8s %9s  %-39s %s\n", "state", "architecture", "size", "last used", "file", "kernel");
    }
    printf("%-7s %-12s %8s %9s  %-39s ", entry->is_sound ? "sound" : "damaged", cli_printable(entry->architecture),
           bytes_text(entry->n_bytes, size), age_text(entry->last_used, age), entry->file);
    cli_put(stdout, entry->kernel);
    putchar('\n');
    totals->n_entries++;
    totals->n_damaged += !entry->is_sound;
    totals->n_bytes += entry->n_bytes;
    return 0;
}

static int list(const char *command) {
    struct totals totals = { 0 };
    ol_error error = { 0 };
    char size[CLI_COUNT_BYTES];
    if (!print_folder()) {
        puts("the cache is off");
        return CLI_OK;
    }
    ol_status status = ol_cache_list(print_entry, &totals, &error);
    if (status != OL_OK) {
        cli_error(command, "%s", error.description);
        return status == OL_ERROR_MEMORY ? CLI_MISS : CLI_USAGE;
    }
    printf("%" PRId64 " entr%s, %s", totals.n_entries, totals.n_entries == 1 ? "y" : "ies", bytes_text(totals.n_bytes, size));
    if (totals.n_damaged) {
        printf("; %" PRId64 " damaged or not safe to use: replaced when next compiled", totals.n_damaged);
    }
    putchar('\n');
    return CLI_OK;
}

static int clear(const char *command) {
    uint64_t n_removed = 0, n_bytes = 0;
    ol_error error = { 0 };
    char size[CLI_COUNT_BYTES];
    ol_status status = ol_cache_clear(&n_removed, &n_bytes, &error);
    if (status != OL_OK) {
        cli_error(command, "%s", error.description);
        return CLI_MISS;
    }
    printf("%" PRIu64 " file%s removed, %s\n", n_removed, n_removed == 1 ? "" : "s", bytes_text(n_bytes, size));
    return CLI_OK;
}

int cmd_cache(int argc, char **argv) {
    static const struct argp argp = {
        .parser = parse,
        .args_doc = "[list|clear]",
        .doc = "Lists the disk cache of compiled CUDA kernels, checking each entry, or empties it."
               "\vThe folder is $ONELAUNCH_CACHE, else onelaunch in $XDG_CACHE_HOME or in ~/.cache; ONELAUNCH_CACHE=off turns the "
               "cache off. ONELAUNCH_CACHE_MIB is how much it may hold, in MiB (default: 256).",
    };
    bool clears = false;
    if (!cli_arguments(&argp, argc, argv, &clears)) {
        return CLI_USAGE;
    }
    return clears ? clear(argv[0]) : list(argv[0]);
}
