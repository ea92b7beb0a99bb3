/* The file of digests: rows of OP DTYPE DIGEST STRIDED, separated by tabs; lines that begin with # are comments. STRIDED is the
 * digest of one input in many (digest_stride), which `onelaunch digest --strided` compares in no time. */
#ifndef PROVE_TABLE_H
#define PROVE_TABLE_H

#include "runs.h"

typedef enum table_result { TABLE_RIGHT, TABLE_WRONG, TABLE_FAILED } table_result;

/* Can the file be read, and are its lines what they should be? To be asked before an hour of work. */
bool table_readable(const char *command, const char *path);
/* Prints each digest that is not the file's, each run that the file does not have, and how many are equal. */
table_result table_compare(const char *command, const char *path, const run *runs, int n_runs);
/* Writes the file, all or nothing; not where levels differ. */
table_result table_write(const char *command, const char *path, const run *runs, int n_runs);

#endif
