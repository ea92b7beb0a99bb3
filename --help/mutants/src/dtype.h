/* What the dtypes are: sizes, names, kinds. */
#ifndef OL_DTYPE_H
#define OL_DTYPE_H

#include "onelaunch.h"

static inline int dtype_valid(ol_dtype d) { return (unsigned)d < OL_DTYPE_COUNT; }
static inline int dtype_is_float(ol_dtype d) { return d >= OL_FLOAT16 && d <= OL_FLOAT32; }
static inline int dtype_is_unsigned(ol_dtype d) { return d >= OL_UINT8 && d <= OL_UINT64; }
static inline int dtype_is_signed(ol_dtype d) { return d >= OL_INT8 && d <= OL_INT64; }

extern const uint8_t dtype_sizes[OL_DTYPE_COUNT];

static inline int dtype_aligned(ol_dtype d, const void *data) { return ((uintptr_t)data & (dtype_sizes[d] - 1u)) == 0; }

/* The bits of `value` converted to a dtype as astype does: one rounding, saturation, NaN to 0 for integers. Uses no
 * floating-point operation, so the host's floating-point state does not matter. */
uint64_t dtype_from_double(ol_dtype dtype, double value);

#endif
