/* Values that clients read: mlx_array_item_… and mlx_array_data_…, for each dtype by its own function. */
#include "body.h"
#include "report.h"

#include <string.h>

/* Whether the array's elements are what the function reads. */
static int check_dtype(const char *function, const mlxc_body *b, ol_dtype dtype)
{
    return b->view.dtype == dtype ? 0 : mlxc_report(function, "the array is %s; expected %s", ol_dtype_name(b->view.dtype), ol_dtype_name(dtype));
}

static int item(const char *function, void *res, mlx_array a, ol_dtype dtype)
{
    if (!res)
        return mlxc_report_no_place(function);
    mlxc_body *b = mlxc_array_body(function, "the array", a);
    if (!b || check_dtype(function, b, dtype))
        return 1;
    if (!b->trace && b->n_elements != 1)           /* a placeholder is refused as one */
        return mlxc_report(function, "the array has %zu elements; expected one", b->n_elements);
    const void *data = mlxc_body_data(function, b);
    if (!data)
        return 1;
    memcpy(res, data, ol_dtype_size(dtype));
    return 0;
}

static const void *data_of(const char *function, mlx_array a, ol_dtype dtype)
{
    mlxc_body *b = mlxc_array_body(function, "the array", a);
    return b && !check_dtype(function, b, dtype) ? mlxc_body_data(function, b) : NULL;
}

#define READ(name, type, dtype) \
    int mlx_array_item_##name(type *res, const mlx_array arr) { return item(__func__, res, arr, dtype); } \
    const type *mlx_array_data_##name(const mlx_array arr) { return data_of(__func__, arr, dtype); }
READ(bool, bool, OL_BOOL)
READ(uint8, uint8_t, OL_UINT8)
READ(uint16, uint16_t, OL_UINT16)
READ(uint32, uint32_t, OL_UINT32)
READ(uint64, uint64_t, OL_UINT64)
READ(int8, int8_t, OL_INT8)
READ(int16, int16_t, OL_INT16)
READ(int32, int32_t, OL_INT32)
READ(int64, int64_t, OL_INT64)
READ(float16, uint16_t, OL_FLOAT16)
READ(bfloat16, uint16_t, OL_BFLOAT16)
READ(float32, float, OL_FLOAT32)
#undef READ

/* No array is of these. */
static int no_such(const char *function, mlx_array a, const char *dtype)
{
    mlxc_body *b = mlxc_array_body(function, "the array", a);
    return b ? mlxc_report(function, "the array is %s; expected %s, which this library does not have", ol_dtype_name(b->view.dtype), dtype) : 1;
}

#define NO_SUCH(name, type) \
    int mlx_array_item_##name(type *res, const mlx_array arr) { (void)res; return no_such(__func__, arr, #name); } \
    const type *mlx_array_data_##name(const mlx_array arr) { return no_such(__func__, arr, #name), NULL; }
NO_SUCH(float64, double)
NO_SUCH(complex64, mlx_complex64_t)
