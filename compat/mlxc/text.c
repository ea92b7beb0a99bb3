/* Strings and the version. */
#include "text.h"

#include "report.h"

#include "mlx/c/version.h"

#include <stdio.h>
#include <stdlib.h>

#define INTERFACE_VERSION "0.6.0"

mlx_string mlx_string_new(void)
{
    return (mlx_string){ NULL };
}

const char *mlx_string_data(mlx_string s)
{
    if (!s.ctx) {
        mlxc_report("mlx_string_data", "the string is an empty handle; expected one that a function filled");
        return NULL;
    }
    return *(char **)s.ctx;
}

int mlx_string_free(mlx_string s)
{
    if (s.ctx) {
        free(*(char **)s.ctx);
        free(s.ctx);
    }
    return 0;
}

int mlxc_string_assign(const char *function, mlx_string *s, char *text)
{
    if (!text)
        return mlxc_report_memory(function);
    if (!s->ctx && !(s->ctx = calloc(1, sizeof(char *)))) {
        free(text);
        return mlxc_report_memory(function);
    }
    free(*(char **)s->ctx);
    *(char **)s->ctx = text;
    return 0;
}

int mlx_version(mlx_string *s)
{
    const size_t n_bytes = 64;
    if (!s)
        return mlxc_report_no_place("mlx_version");
    char *text = malloc(n_bytes);
    if (text)
        snprintf(text, n_bytes, INTERFACE_VERSION " (onelaunch %s)", ol_version());
    return mlxc_string_assign("mlx_version", s, text);
}
