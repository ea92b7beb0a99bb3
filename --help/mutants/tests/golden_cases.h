/* The golden tables (tests/golden): lines of fields, read whole. */
#ifndef OL_GOLDEN_CASES_H
#define OL_GOLDEN_CASES_H

#include "graph_cases.h"

#include <stdio.h>
#include <stdlib.h>

#define GOLDEN_MAX_FIELDS 12

/* Calls `row` with the fields of each line that is no comment; fails the test on a line with another number of fields. Returns
 * the number of rows. */
typedef void (*golden_row)(char *const *fields, void *user);

static inline size_t golden_read(const char *name, int n_fields, golden_row row, void *user)
{
    char path[1024], line[512];
    size_t n_rows = 0;
    snprintf(path, sizeof path, "%s/%s", GOLDEN_DIR, name);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot open %s", path);
    while (fgets(line, sizeof line, file)) {
        char *fields[GOLDEN_MAX_FIELDS + 1], *save = NULL;
        int n = 0;
        if (line[0] == '#' || line[0] == '\n')
            continue;
        for (char *field = strtok_r(line, " \t\n", &save); field && n <= GOLDEN_MAX_FIELDS; field = strtok_r(NULL, " \t\n", &save))
            fields[n++] = field;
        if (n != n_fields)
            fail_msg("%s, row %zu: %d fields, expected %d", name, n_rows + 1, n, n_fields);
        row(fields, user);
        n_rows++;
    }
    fclose(file);
    return n_rows;
}

static inline uint64_t golden_bits(const char *field)
{
    char *end;
    uint64_t bits = strtoull(field, &end, 16);
    if (*end || end == field)
        fail_msg("\"%s\" is not hexadecimal", field);
    return bits;
}

static inline ol_dtype golden_dtype(const char *field)
{
    ol_dtype dtype = OL_FLOAT32;
    if (!ol_dtype_parse(field, &dtype))
        fail_msg("\"%s\" is not a dtype", field);
    return dtype;
}

#endif
