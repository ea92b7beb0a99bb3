/* Errors: each call reports to the record it is given, names the operation, and leaves the outputs as they were. */
#include <onelaunch.h>

#include <stdio.h>
#include <stdlib.h>

static int shift(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_left_shift(g, in[0], in[1]);               /* no checks here: the first error is kept by the graph */
    out[0] = ol_add(g, out[0], in[1]);
    return 0;
}

static int add(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_add(g, in[0], in[1]);
    return 0;
}

int main(void)
{
    ol_error error;
    ol_device *device = NULL;
    ol_composite *composite = NULL;
    ol_builder shifts = { .build = shift, .n_inputs = 2, .n_outputs = 1, .name = "shift" };
    ol_builder adds = { .build = add, .n_inputs = 2, .n_outputs = 1, .name = "bias" };
    ol_dtype floats[] = { OL_FLOAT32, OL_FLOAT32 };
    float x[6] = { 0 }, bias[4] = { 0 }, y[6] = { 7, 7, 7, 7, 7, 7 };

    if (ol_device_cpu(NULL, &device, &error) != OL_OK)
        return EXIT_FAILURE;
    if (ol_compile(device, &shifts, floats, &composite, &error) == OL_OK)
        return EXIT_FAILURE;
    printf("%s in %s: %s\n", ol_status_name(error.status), error.operation, error.description);

    if (ol_compile(device, &adds, floats, &composite, &error) != OL_OK)
        return EXIT_FAILURE;
    ol_tensor inputs[] = { ol_tensor_contiguous(x, OL_FLOAT32, 2, (int64_t[]){ 2, 3 }), ol_tensor_contiguous(bias, OL_FLOAT32, 1, (int64_t[]){ 4 }) };
    ol_tensor output = ol_tensor_contiguous(y, OL_FLOAT32, 2, (int64_t[]){ 2, 3 });
    if (ol_replay(composite, NULL, inputs, &output, &error) == OL_OK)
        return EXIT_FAILURE;
    printf("%s in %s: %s\n", ol_status_name(error.status), error.operation, error.description);
    printf("the output still holds %g\n", y[0]);
    ol_composite_destroy(composite);
    ol_device_destroy(device);
    return EXIT_SUCCESS;
}
