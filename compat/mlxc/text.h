/* A string handle is a box that holds a text from malloc. */
#ifndef MLXC_TEXT_H
#define MLXC_TEXT_H

#include "mlx/c/string.h"

/* Takes the text over (NULL: there was no memory for it). 0, or 1 after a report. */
int mlxc_string_assign(const char *function, mlx_string *s, char *text);

#endif
