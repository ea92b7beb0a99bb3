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

/* 13000 as "13.0" */
static void put_version(const char *what, int32_t version) {
    printf("%s %d.%d", what, (int)(version / 1000), (int)(version % 1000 / 10));
}

/* One line for each GPU, and one for the driver and the compiler. That there is no driver is no failure, but a driver that cannot
 * describe a GPU which it has counted is one. */
static bool list_gpus(void) {
    ol_error error = { 0 };
    ol_cuda_facts facts = { 0 };
    int32_t n = 0, n_described = 0, compiler = 0;
    if (ol_cuda_count(&n, &error) != OL_OK || n == 0) {
        printf("no GPU: ");
        cli_put(stdout, n == 0 && error.status == OL_OK ? "the CUDA driver finds none" : error.description);
        putchar('\n');
        return true;
    }
    for (int32_t i = 0; i < n; i++) {
        char name[24], level[24];
        snprintf(name, sizeof name, "cuda:%d", (int)i);
        if (ol_cuda_describe(i, &facts, &error) != OL_OK) {
            printf("%-8s ", name);
            cli_put(stdout, error.description);
            putchar('\n');
            continue;
        }
        n_described++;
        snprintf(level, sizeof level, "sm_%d", (int)facts.capability);
        printf("%-8s %-9s ", name, level);
        cli_put(stdout, facts.name);
        printf(", %.1f GiB, %d multiprocessors\n", (double)facts.n_bytes / 0x1p30, (int)facts.n_multiprocessors);
    }
    if (n_described > 0) {
        put_version("the driver serves CUDA", facts.driver_version);
        if (ol_cuda_compiler(&compiler, &error) == OL_OK) {
            put_version("; NVRTC", compiler);
        } else {
            printf("; no NVRTC: ");
            cli_put(stdout, error.description);
        }
        putchar('\n');
    }
    return n_described == n;
}

int cmd_devices(int argc, char **argv) {
    static const struct argp argp = {
        .parser = parse,
        .doc = "Lists devices: the CPU's SIMD levels, whether this machine has them and which one is the default, and GPUs, or why "
               "there are none."
               "\vThe environment variable ONELAUNCH_CPU (baseline, avx2, avx512, neon) chooses another default level; "
               "ONELAUNCH_NVRTC names the library file of CUDA's run-time compiler.",
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
    printf("\n\n");
    ok = list_gpus() && ok;
    ol_device_destroy(device);
    return ok ? CLI_OK : CLI_MISS;
}
