/* A program outside the tree: finds the installed library, computes sigmoid(x) and exp(-x) in one launch, and says so. */
#include <onelaunch.h>

#include <stdio.h>

static int build(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    (void)user;
    out[0] = ol_sigmoid(g, in[0]);
    out[1] = ol_exp(g, ol_negative(g, in[0]));
    return 0;
}

int main(void)
{
    float x[3] = { 0, 1, -200 }, sigmoid[3], decay[3];
    const int64_t n = 3;
    ol_builder builder = { .build = build, .n_inputs = 1, .n_outputs = 2, .name = "consumer" };
    ol_device *cpu;
    ol_composite *composite;
    ol_error error;
    if (ol_device_cpu(NULL, &cpu, &error) != OL_OK || ol_compile(cpu, &builder, (ol_dtype[]){ OL_FLOAT32 }, &composite, &error) != OL_OK)
        return 1;
    ol_tensor in = ol_tensor_contiguous(x, OL_FLOAT32, 1, &n);
    ol_tensor out[2] = { ol_tensor_contiguous(sigmoid, OL_FLOAT32, 1, &n), ol_tensor_contiguous(decay, OL_FLOAT32, 1, &n) };
    if (ol_replay(composite, NULL, &in, out, &error) != OL_OK)
        return 2;
    printf("onelaunch %s: %a %a, %d launch\n", ol_version(), (double)sigmoid[0], (double)decay[0], (int)ol_device_launches(cpu));
    int right = sigmoid[0] == 0.5f && decay[0] == 1.0f && ol_device_launches(cpu) == 1;
    ol_composite_destroy(composite);
    ol_device_destroy(cpu);
    return right ? 0 : 3;
}
