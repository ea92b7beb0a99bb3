/* How the fake NVRTC compiles a text. */
#ifndef FAKE_COMPILE_H
#define FAKE_COMPILE_H

#include <stddef.h>

typedef struct fake_source {
    const char *text, *name;
    int architecture, parameter_bytes;   /* 90; that a kernel can have at most */
    int fuses;                           /* multiplications and additions, as the compiler likes */
} fake_source;

/* The image (fake_image.h), for free(); NULL where the text does not compile. *log is what the compiler said, for free() too. */
char *fake_compile(const fake_source *source, size_t *n_bytes, char **log);

/* An environment variable, or `otherwise` where it is unset or empty. */
const char *fake_setting(const char *name, const char *otherwise);

#endif
