/* A composite of your own: SwiGLU's gate, y = x * sigmoid(x) * up, as one launch instead of three. */
#include <onelaunch.h>

#include <stdio.h>

static int swiglu(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_multiply(g, ol_multiply(g, in[0], ol_sigmoid(g, in[0])), in[1]);
    return 0;
}

int main(void)
{
    ol_error error;
    ol_device *device = NULL;
    ol_composite *composite = NULL;
    ol_builder builder = { .build = swiglu, .n_inputs = 2, .n_outputs = 1, .name = "swiglu" };
    float x[] = { -2, -1, 0, 1, 2, 3 }, up[] = { 10, 20, 30 }, y[6];
    ol_tensor inputs[] = { ol_tensor_contiguous(x, OL_FLOAT32, 2, (int64_t[]){ 2, 3 }), ol_tensor_contiguous(up, OL_FLOAT32, 1, (int64_t[]){ 3 }) };
    ol_tensor output = ol_tensor_contiguous(y, OL_FLOAT32, 2, (int64_t[]){ 2, 3 });

    if (ol_device_cpu(NULL, &device, &error) || ol_compile(device, &builder, (ol_dtype[]){ OL_FLOAT32, OL_FLOAT32 }, &composite, &error) ||
        ol_replay(composite, NULL, inputs, &output, &error)) {
        fprintf(stderr, "%s: %s\n", error.operation, error.description);
        return 1;
    }
    for (int i = 0; i < 6; i++)
        printf("%s%.9g", i ? " " : "", y[i]);
    printf("\n%llu launch\n", (unsigned long long)ol_device_launches(device));
    ol_composite_destroy(composite);
    ol_device_destroy(device);
    return 0;
}
