/* `onelaunch devices`: what this machine can run the library on. */
#include "cli.h"
#include "commands.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static error_t parse(int key, char *argument, struct argp_state *state) {
    if (key == ARGP_KEY_ARG) {
        argp_error(state, "unexpected argument '%s'", cli_printable(argument));
    }
    return key == ARGP_KEY_ARG ? 0 : ARGP_ERR_UNKNOWN;
}

/* CPUs this process may run on: what "one thread per CPU" means. */
static long cpu_count(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
}

int cmd_devices(int argc, char **argv) {
    static const struct argp argp = {
        .parser = parse,
        .doc = "Lists devices and SIMD levels: whether this machine has them, and which one is the default."
               "\vThe environment variable ONELAUNCH_CPU (baseline, avx2, avx512, neon) chooses another default.",
    };
    ol_device *device = NULL;
    if (!cli_arguments(&argp, argc, argv, NULL)) {
        return CLI_USAGE;
    }
    bool ok = cli_device(argv[0], "cpu", 1, &device);
    printf("%-8s %-9s %-10s %s\n", "device", "level", "available", "default");
    for (int level = OL_CPU_BASELINE; ol_cpu_level_name((ol_cpu_level)level); level++) {
        const char *name = ol_cpu_level_name((ol_cpu_level)level);
        printf("%-8s %-9s %-10s %s\n", "cpu", name, ol_cpu_level_available((ol_cpu_level)level) ? "yes" : "no",
               ok && strcmp(name, ol_device_level(device)) == 0 ? "yes" : "");
    }
    const char *forced = getenv("ONELAUNCH_CPU");
    printf("\n%ld threads by default%s", cpu_count(), forced && *forced ? "; ONELAUNCH_CPU=" : "");
    cli_put(stdout, forced ? forced : "");
    putchar('\n');
    ol_device_destroy(device);
    return ok ? CLI_OK : CLI_MISS;
}
