/* The test programs' common ground. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t harness_seed = 1;

uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);        /* Steele, Lea, Flood: "Fast splittable pseudorandom number generators" */
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* ---- Guarded memory ---- */

#define CANARY_BYTES 256

typedef struct guard {
    void *raw;
    size_t n_bytes;
} guard;

static unsigned char *lead(const void *block)
{
    return (unsigned char *)(uintptr_t)block - CANARY_BYTES;
}

void *guarded_alloc(size_t n_bytes, size_t misalignment)
{
    unsigned char *raw = malloc(n_bytes + 2 * CANARY_BYTES + 64);
    assert_non_null(raw);
    unsigned char *block = (unsigned char *)(((uintptr_t)raw + CANARY_BYTES + 63) & ~(uintptr_t)63) + misalignment;
    memset(block - CANARY_BYTES, 0xC3, CANARY_BYTES);
    memset(block, 0xA5, n_bytes);
    memset(block + n_bytes, 0xC3, CANARY_BYTES - 64);
    guard g = { raw, n_bytes };
    memcpy(lead(block), &g, sizeof g);
    return block;
}

void guarded_check(const void *block)
{
    guard g;
    memcpy(&g, lead(block), sizeof g);
    for (size_t i = sizeof g; i < CANARY_BYTES; i++)
        if (lead(block)[i] != 0xC3)
            fail_msg("a byte %zu before a buffer was written", CANARY_BYTES - i);
    const unsigned char *end = (const unsigned char *)block + g.n_bytes;
    for (size_t i = 0; i < CANARY_BYTES - 64; i++)
        if (end[i] != 0xC3)
            fail_msg("a byte %zu after a buffer of %zu bytes was written", i, g.n_bytes);
}

void guarded_free(void *block)
{
    guard g;
    if (!block)
        return;
    guarded_check(block);
    memcpy(&g, lead(block), sizeof g);
    free(g.raw);
}

/* ---- Devices ---- */

static const ol_cpu_level all_levels[] = { OL_CPU_BASELINE, OL_CPU_AVX2, OL_CPU_AVX512, OL_CPU_NEON };
static ol_device *devices[4];
static size_t n_devices;

static void close_devices(void)
{
    while (n_devices > 0)
        ol_device_destroy(devices[--n_devices]);
}

size_t level_count(void)
{
    if (n_devices == 0) {
        for (size_t i = 0; i < sizeof all_levels / sizeof *all_levels; i++)
            if (ol_cpu_level_available(all_levels[i])) {
                ol_cpu_options options = { .level = all_levels[i], .n_threads = 1 };
                ol_error error;
                assert_ok(ol_device_cpu(&options, &devices[n_devices], &error), &error);
                n_devices++;
            }
        atexit(close_devices);
    }
    return n_devices;
}

ol_device *level_device(size_t i)
{
    level_count();
    return devices[i];
}

/* ---- Asserting ---- */

void harness_assert_ok(ol_status status, const ol_error *error, const char *file, int line)
{
    if (status == OL_OK)
        return;
    print_error("%s: %s: %s\n", ol_status_name(status), error ? error->operation : "?", error ? error->description : "?");
    _fail(file, line);
}

void harness_assert_fails(ol_status status, const ol_error *error, ol_status expected, const char *operation, const char *text,
                          const char *file, int line)
{
    if (status == expected && error->status == expected && strstr(error->operation, operation) && strstr(error->description, text))
        return;
    print_error("expected %s, \"%s\": \"%s\"; got %s, \"%s\": \"%s\"\n", ol_status_name(expected), operation, text, ol_status_name(status),
                status == OL_OK ? "" : error->operation, status == OL_OK ? "" : error->description);
    _fail(file, line);
}

int harness_run(int argc, char **argv, const char *group, const struct CMUnitTest *tests, size_t n_tests)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--filter") == 0)
            cmocka_set_test_filter(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            harness_seed = strtoull(argv[i + 1], NULL, 0);
        else {
            fprintf(stderr, "usage: %s [--filter PATTERN] [--seed N]\n", argv[0]);
            return 2;
        }
    printf("seed %llu\n", (unsigned long long)harness_seed);
    return _cmocka_run_group_tests(group, tests, n_tests, NULL, NULL) ? 1 : 0;
}
