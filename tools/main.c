/* The `onelaunch` program: finds the command by its name and hands it the rest of the arguments. One table drives dispatch
 * and help; each command parses its own options. */
#include "cli.h"
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    { "rates", cmd_rates, "compute the gated-delta rates of a checkpoint's layers" },
    { "step", cmd_step, "decode recorded tokens with a checkpoint's layers, and compare with transformers" },
    { "check", cmd_check, "run case files and report each miss" },
    { "parity", cmd_parity, "compare replay with the composed path on generated inputs" },
    { "digest", cmd_digest, "compare the digests of primitives with the committed ones" },
    { "explain", cmd_explain, "show a graph, its program and its launches" },
    { "compare", cmd_compare, "compare two safetensors files, in units in the last place" },
    { "devices", cmd_devices, "list devices and SIMD levels" },
    { "cache", cmd_cache, "list or empty the cache of compiled kernels" },
    { "bench", cmd_bench, "measure replays" },
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void print_version(FILE *stream, struct argp_state *state) {
    (void)state;
    fprintf(stream, "onelaunch %s\n", ol_version());
}
/* argp looks this up by its name, so it must not be hidden. */
__attribute__((visibility("default"))) void (*argp_program_version_hook)(FILE *, struct argp_state *) = print_version;

struct choice {
    const struct command *command;
    int first;                           /* where in argv the command's name stands */
};

static error_t parse(int key, char *argument, struct argp_state *state) {
    struct choice *choice = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        for (int i = 0; i < N_COMMANDS; i++) {
            if (strcmp(argument, commands[i].name) == 0) {
                choice->command = &commands[i];
                choice->first = state->next - 1;
                state->next = state->argc;           /* the rest belongs to the command */
                return 0;
            }
        }
        argp_error(state, "unknown command '%s'", cli_printable(argument));
        return EINVAL;
    case ARGP_KEY_NO_ARGS:
        argp_usage(state);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Puts the table of commands where argp has an empty line of text for it. argp frees what is returned. */
static char *list_commands(int key, const char *text, void *input) {
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC) {
        return (char *)text;
    }
    char *list = NULL;
    size_t n_bytes;
    FILE *stream = open_memstream(&list, &n_bytes);
    if (!stream) {
        return (char *)text;
    }
    fputs("Commands:\n", stream);
    for (int i = 0; i < N_COMMANDS; i++) {
        fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].summary);
    }
    fputs("\nEach command has --help. Exit codes: 0 done, 1 a miss, a difference or a failure, 2 usage, unreadable input, or a\nstandard output that cannot be written.",
          stream);
    fclose(stream);
    return list;
}

int main(int argc, char **argv) {
    static const struct argp argp = {
        .parser = parse,
        .args_doc = "COMMAND [ARGUMENT...]",
        .doc = "A chain of elementwise operations as one launch, with the same bits as running them one by one.\v ",
        .help_filter = list_commands,
    };
    struct choice choice = { 0 };
    char name[64];

    cli_hold_descriptors();
    argp_err_exit_status = CLI_USAGE;
    cli_flush_at_exit("onelaunch");
    error_t failure = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &choice);
    if (failure || !choice.command) {
        cli_error("onelaunch", "%s", strerror(failure ? failure : EINVAL));
        return CLI_USAGE;
    }
    snprintf(name, sizeof name, "onelaunch %s", choice.command->name);
    argv[choice.first] = name;
    int code = choice.command->run(argc - choice.first, argv + choice.first);
    bool flushed = cli_flush(name);
    return flushed || code != CLI_OK ? code : CLI_USAGE;
}
