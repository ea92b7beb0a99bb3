/* Status names and the error record. Nothing here allocates: reporting a failed allocation must work too. */
#include "status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ol_version(void)
{
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
    return TEXT(OL_VERSION_MAJOR) "." TEXT(OL_VERSION_MINOR) "." TEXT(OL_VERSION_PATCH);
#undef TEXT
#undef TEXT_
}

const char *ol_status_name(ol_status status)
{
    switch (status) {
#define CASE(name) case name: return #name;
    CASE(OL_OK) CASE(OL_ERROR_ARGUMENT) CASE(OL_ERROR_DTYPE) CASE(OL_ERROR_SHAPE) CASE(OL_ERROR_OVERLAP)
    CASE(OL_ERROR_BUILDER) CASE(OL_ERROR_LIMIT) CASE(OL_ERROR_MEMORY) CASE(OL_ERROR_DEVICE) CASE(OL_ERROR_TEXT)
#undef CASE
    }
    return "unknown status";
}

/* Takes back a UTF-8 character that snprintf cut in its middle. */
static void trim_partial_character(char *text)
{
    size_t n = strlen(text), start = n;
    while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start == 0)
        return;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t expected = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    if (n - start < expected)
        text[start - 1] = '\0';
}

ol_status fail(ol_error *error, ol_status status, const char *operation, const char *format, ...)
{
    if (!error)
        return status;
    error->status = status;
    error->code = 0;
    snprintf(error->operation, sizeof error->operation, "%s", operation);
    trim_partial_character(error->operation);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->description, sizeof error->description, format, arguments);
    va_end(arguments);
    trim_partial_character(error->description);
    return status;
}

const char *shape_to_text(shape_text *buffer, int32_t rank, const int64_t *shape)
{
    size_t used = 0;
    buffer->text[used++] = '[';
    for (int32_t d = 0; d < rank && d < OL_MAX_RANK; d++)
        used += (size_t)snprintf(buffer->text + used, sizeof buffer->text - used, d ? ", %" PRId64 : "%" PRId64, shape[d]);
    snprintf(buffer->text + used, sizeof buffer->text - used, "]");
    return buffer->text;
}
