/* Elements of tensors one by one, for the references: reading as a double (exact), writing with one rounding. Conversions are written
 * here from the formats' definitions, so that nothing of the library's is trusted. */
#ifndef OL_ELEMENT_H
#define OL_ELEMENT_H

#include <onelaunch.h>

/* The address of an element; as many indices as the tensor has axes. */
void *element_at(const ol_tensor *t, const int64_t *index);

double element_read(ol_dtype dtype, const void *p);                /* floats, integers, bool */
void element_write(ol_dtype dtype, void *p, float value);          /* floats; NaN becomes the canonical one */

/* Of value head `head` (and of token `token`, and at `last`, each where the tensor has such an axis: -1 says that it has none), in a
 * tensor whose axis of value heads may be given as [key_heads, r]. */
typedef struct head_axes {
    int32_t key_heads, value_heads;
    int tiled;
} head_axes;
void *element_of_head(const ol_tensor *t, const head_axes *heads, int64_t token, int64_t head, int64_t last);

#endif
