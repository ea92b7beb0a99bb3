/* What a client gets of ONELAUNCH_DEVICE: opens the GPU stream, computes exp(0), prints it. With the default error handler; with an
 * argument, one of its own, which prints `handler: ` and the message. Exit code 3 where there is no stream. */
#include "mlx/c/mlx.h"

#include <stdio.h>

static void print_it(const char *message, void *data)
{
    printf("%s%s\n", (const char *)data, message);
}

int main(int argc, char **argv)
{
    static char prefix[] = "handler: ";
    float value = -1;
    (void)argv;
    if (argc > 1)
        mlx_set_error_handler(print_it, prefix, NULL);
    mlx_stream s = mlx_default_gpu_stream_new();
    if (!s.ctx)
        return 3;
    mlx_array x = mlx_array_new_float32(0), r = mlx_array_new();
    int code = mlx_exp(&r, x, s) || mlx_array_eval(r) || mlx_array_item_float32(&value, r) || mlx_synchronize(s);
    printf("exp(0) is %g\n", (double)value);
    mlx_array_free(x);
    mlx_array_free(r);
    mlx_stream_free(s);
    return code;
}
