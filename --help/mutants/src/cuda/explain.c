/* The text of a composite's kernel, also where the composite is a CPU's: from a program made without that device's fusing. */
#include "cuda/kernel.h"

#include "composite.h"

#include <string.h>

static ol_status text_of(const ol_composite *c, text *out)
{
    dependencies *d = NULL;
    program *p = NULL;
    kernel *k = NULL;
    ol_status status = dependencies_create(c->optimized, &d, NULL);
    if (status == OL_OK)
        status = program_create(c->optimized, d, c->device, NULL, &p, NULL);
    if (status == OL_OK)
        status = kernel_create(c->optimized, p, d, KERNEL_WORDS_LARGE, &k, NULL);
    if (status == OL_OK)
        status = kernel_text(k, c->optimized, p, out, NULL);
    kernel_destroy(k);
    program_destroy(p);
    dependencies_destroy(d);
    return status;
}

size_t ol_cuda_kernel_text(const ol_composite *c, char *buffer, size_t n_bytes)
{
    if (buffer && n_bytes)
        buffer[0] = '\0';
    if (!c)
        return 0;
    text t = { .allocator = c->device->allocator };
    size_t n = text_of(c, &t) == OL_OK ? t.n : 0;
    if (n && buffer && n_bytes) {
        size_t written = n < n_bytes ? n : n_bytes - 1;
        memcpy(buffer, t.bytes, written);
        buffer[written] = '\0';
    }
    text_free(&t);
    return n;
}
