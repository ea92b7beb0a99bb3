/* Case files: one case a line, recognised by its columns; '#' starts a comment, empty lines are skipped.
 *
 *     OP IN_DTYPE IN OUT_DTYPE OUT            unary, and astype
 *     OP DTYPE X Y OUT                        binary; OUT in the result's dtype (bool for a comparison)
 *     OP DTYPE X Y Z OUT                      clip, fma, and where (X is its condition, a bool)
 *     B A A_LOG DT_BIAS b a A_log dt_bias BETA beta DECAY decay       the gated-delta rates: dtypes, bits, dtypes and bits
 *     IN OUT                                  float32, the operation named by the file: exp.hard
 *
 * A line has at most 64 KiB; a longer one is no case, and in a device or pipe an error. Bits are hexadecimal, as many digits as the dtype has (a bool: 0, 1, 00 or 01). */
#ifndef ONELAUNCH_TOOLS_CASES_H
#define ONELAUNCH_TOOLS_CASES_H

#include <onelaunch.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CASE_MAX_IN = 4, CASE_MAX_OUT = 2, CASE_OP_BYTES = 32 };

/* What a case asks for; cases with the same signature can run together. */
typedef struct case_signature {
    char op[CASE_OP_BYTES];            /* "rates" for the rates */
    int32_t n_in, n_out;
    ol_dtype in[CASE_MAX_IN], out[CASE_MAX_OUT];
} case_signature;

typedef struct one_case {
    int32_t file;                      /* as the reader was told */
    int64_t line;
    size_t batch;                      /* index of its signature */
    uint64_t in[CASE_MAX_IN], out[CASE_MAX_OUT];
} one_case;

typedef struct case_list {
    case_signature *batches;
    size_t n_batches, room_batches;
    one_case *cases;
    size_t n_cases, room_cases;
} case_list;

/* What is wrong with a line, with its place. Called for each line that is no case. */
typedef void (*case_complaint)(void *user, const char *path, int64_t line, const char *text);

/* Adds a file's cases. False, with errno set, where the file could not be read or memory ran out. */
bool cases_read(case_list *list, const char *path, int32_t file, case_complaint complain, void *user);
void cases_free(case_list *list);

#endif
