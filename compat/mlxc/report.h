/* Telling the client of an error, through the handler of mlx/c/error.h. */
#ifndef MLXC_REPORT_H
#define MLXC_REPORT_H

#include <onelaunch.h>

#define MLXC_MAX_MESSAGE 1280          /* with what is longest in one: an error of onelaunch's, twice */

/* Both hand "FUNCTION: …" to the handler and return 1, so that a function may end in `return mlxc_report(…)`. */
__attribute__((format(printf, 2, 3))) int mlxc_report(const char *function, const char *format, ...);
int mlxc_report_core(const char *function, const ol_error *error);
int mlxc_report_memory(const char *function);
int mlxc_report_no_place(const char *function);                             /* for the result */
/* This thread's last message, which may be emptied. */
char *mlxc_last_message(void);

#endif
