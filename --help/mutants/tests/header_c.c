/* The public header alone, as C11: nothing before it, nothing needed beside it, twice for its guard. */
#include <onelaunch.h>
#include <onelaunch.h>

_Static_assert(OL_OK == 0 && OL_ERROR_TEXT == 9, "status values are pinned");
_Static_assert(OL_BOOL == 0 && OL_FLOAT32 == 11 && OL_DTYPE_COUNT == 12, "dtype values are pinned");
_Static_assert(sizeof(((ol_tensor *)0)->shape) == OL_MAX_RANK * sizeof(int64_t), "a shape is OL_MAX_RANK extents of 64 bits");

static int build(ol_graph *graph, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_sigmoid(graph, in[0]);
    return 0;
}

/* Every kind of declaration is used once, so that a compiler looks at all of them. */
int header_c(void);
int header_c(void)
{
    ol_builder builder = { .build = build, .n_inputs = 1, .n_outputs = 1, .name = "header" };
    ol_cpu_options options = { 0 };
    ol_device *device = 0;
    ol_composite *composite = 0;
    ol_error error;
    ol_dtype dtype = OL_FLOAT32;
    return ol_device_cpu(&options, &device, &error) != OL_OK || ol_compile(device, &builder, &dtype, &composite, &error) != OL_OK;
}
