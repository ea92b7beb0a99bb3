/* The gated-delta rates on an NVIDIA GPU, as a decode loop has them: into memory of the device, on a stream, one kernel a token. An
 * engine that has memory, a stream and a context of its own passes those instead (ol_device_cuda_current). */
#include <onelaunch.h>

#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 32, EXIT_SKIPPED = 77 };

static ol_error error;

static void need(ol_status status)
{
    if (status == OL_OK)
        return;
    fprintf(stderr, "%s: %s\n", error.operation, error.description);
    exit(EXIT_FAILURE);
}

int main(void)
{
    float host[6][HEADS];                                /* b, a, A_log, dt_bias; beta, decay */
    for (int h = 0; h < HEADS; h++)
        host[0][h] = -1, host[1][h] = 0, host[2][h] = 0.1f * (float)h, host[3][h] = -4;

    ol_device *gpu = NULL;
    ol_stream stream = NULL;
    ol_composite *rates = NULL;
    void *memory = NULL;
    if (ol_device_cuda(0, NULL, &gpu, &error) != OL_OK) {
        fprintf(stderr, "no GPU to run this on: %s\n", error.description);
        return EXIT_SKIPPED;
    }
    need(ol_stream_create(gpu, &stream, &error));
    need(ol_device_allocate(gpu, sizeof host, &memory, &error));
    need(ol_gated_delta_rates_compile(gpu, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, OL_FLOAT32, &rates, &error));

    int64_t rows[] = { 1, HEADS }, heads[] = { HEADS };
    ol_tensor tensors[6];
    for (int i = 0; i < 6; i++) {
        int of_heads = i == 2 || i == 3;
        tensors[i] = ol_tensor_contiguous((float *)memory + i * HEADS, OL_FLOAT32, of_heads ? 1 : 2, of_heads ? heads : rows);
    }
    need(ol_device_copy(gpu, stream, memory, host, sizeof host, &error));
    for (int token = 0; token < 3; token++)              /* enqueues; waits for nothing and allocates nothing */
        need(ol_replay(rates, stream, tensors, tensors + 4, &error));
    need(ol_device_copy(gpu, stream, host, memory, sizeof host, &error));
    need(ol_stream_synchronize(gpu, stream, &error));
    printf("%s: beta %.9g, decay %.9g, %d launches\n", ol_device_name(gpu), host[4][0], host[5][HEADS - 1], (int)ol_device_launches(gpu));

    ol_composite_destroy(rates);
    need(ol_device_free(gpu, memory, sizeof host, &error));
    need(ol_stream_destroy(gpu, stream, &error));
    ol_device_destroy(gpu);
    return EXIT_SUCCESS;
}
