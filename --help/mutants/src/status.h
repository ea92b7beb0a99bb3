/* Failing: fills the caller's error record and returns the status, so that a check reads `return fail(error, …)`. */
#ifndef OL_STATUS_H
#define OL_STATUS_H

#include "onelaunch.h"

/* `error` may be NULL. Text longer than the record is cut at a whole UTF-8 character. */
__attribute__((format(printf, 4, 5), cold))
ol_status fail(ol_error *error, ol_status status, const char *operation, const char *format, ...);

/* A tensor's shape as text, "[2, 3]", into a small buffer that the caller owns; returns the buffer. */
typedef struct shape_text { char text[200]; } shape_text;
__attribute__((cold))
const char *shape_to_text(shape_text *buffer, int32_t rank, const int64_t *shape);

#endif
