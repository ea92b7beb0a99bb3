#include <onelaunch.h>
#include <stdio.h>

static int rates(ol_graph *g, const ol_value *in, ol_value *out, void *user)
{
    ol_value x = ol_add(g, in[1], in[3]);                                  /* a + dt_bias */
    ol_value s = ol_logaddexp(g, x, ol_constant(g, ol_value_dtype(g, x), 0.0));
    ol_value r = ol_exp(g, ol_astype(g, in[2], OL_FLOAT32));               /* exp(A_log) */
    out[0] = ol_sigmoid(g, in[0]);                                         /* update rates */
    out[1] = ol_exp(g, ol_negative(g, ol_multiply(g, r, s)));              /* decay factors */
    return user != NULL;
}

int main(void)
{
    float b[2][3] = { { -1, 0, 1 }, { 2, 3, 4 } }, a[2][3] = { { 0 } }, a_log[3] = { 0, 1, 2 }, dt_bias[3] = { -4, -3, -2 }, beta[2][3], decay[2][3];
    ol_builder builder = { .build = rates, .n_inputs = 4, .n_outputs = 2, .name = "rates" };
    ol_dtype dtypes[] = { OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32 };
    int64_t rows[] = { 2, 3 }, heads[] = { 3 };
    ol_tensor in[] = { ol_tensor_contiguous(b, OL_FLOAT32, 2, rows), ol_tensor_contiguous(a, OL_FLOAT32, 2, rows),
                       ol_tensor_contiguous(a_log, OL_FLOAT32, 1, heads), ol_tensor_contiguous(dt_bias, OL_FLOAT32, 1, heads) };
    ol_tensor out[] = { ol_tensor_contiguous(beta, OL_FLOAT32, 2, rows), ol_tensor_contiguous(decay, OL_FLOAT32, 2, rows) };
    ol_device *cpu;
    ol_composite *composite;
    ol_error e;
    if (ol_device_cpu(NULL, &cpu, &e) || ol_compile(cpu, &builder, dtypes, &composite, &e) || ol_replay(composite, NULL, in, out, &e))
        return fprintf(stderr, "%s: %s\n", e.operation, e.description), 1;
    printf("beta %.9g, decay %.9g, %d launch\n", beta[0][0], decay[1][2], (int)ol_device_launches(cpu));
    ol_composite_destroy(composite);
    ol_device_destroy(cpu);
    return 0;
}
