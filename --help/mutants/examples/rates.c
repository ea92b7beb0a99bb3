/* The gated-delta rates on the caller's own buffers: bfloat16 activations that are slices of one projection, float32 rates
 * written beside each other into one buffer. No copies: strides say where things are. */
#include <onelaunch.h>

#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 4, HEADS = 32 };

int main(void)
{
    ol_error error;
    ol_device *device = NULL;
    ol_composite *rates = NULL;
    static uint16_t projection[TOKENS][2 * HEADS];       /* each row: b of all heads, then a of all heads; bfloat16 bits */
    static uint16_t beta[TOKENS][HEADS];
    static float decay[TOKENS][HEADS], a_log[HEADS];
    static uint16_t dt_bias[HEADS];
    for (int t = 0; t < TOKENS; t++)
        for (int h = 0; h < 2 * HEADS; h++)
            projection[t][h] = (uint16_t)(0x3F80 + 8 * h + t);                    /* 1.0 and up */
    for (int h = 0; h < HEADS; h++) {
        a_log[h] = 0.05f * (float)h;
        dt_bias[h] = 0xC080;                                                      /* -4.0 */
    }

    int64_t rows[] = { TOKENS, HEADS }, heads[] = { HEADS };
    ol_tensor b = ol_tensor_contiguous(&projection[0][0], OL_BFLOAT16, 2, rows), a = b;
    b.strides[0] = a.strides[0] = 2 * HEADS;
    a.data = &projection[0][HEADS];
    ol_tensor inputs[] = { b, a, ol_tensor_contiguous(a_log, OL_FLOAT32, 1, heads), ol_tensor_contiguous(dt_bias, OL_BFLOAT16, 1, heads) };
    ol_tensor outputs[] = { ol_tensor_contiguous(beta, OL_BFLOAT16, 2, rows), ol_tensor_contiguous(decay, OL_FLOAT32, 2, rows) };

    if (ol_device_cpu(NULL, &device, &error) ||
        ol_gated_delta_rates_compile(device, OL_BFLOAT16, OL_BFLOAT16, OL_FLOAT32, OL_BFLOAT16, &rates, &error)) {
        fprintf(stderr, "%s: %s\n", error.operation, error.description);
        return EXIT_FAILURE;
    }
    for (int token = 0; token < 3; token++)                                       /* the hot loop: nothing is allocated */
        if (ol_replay(rates, NULL, inputs, outputs, &error)) {
            fprintf(stderr, "%s: %s\n", error.operation, error.description);
            return EXIT_FAILURE;
        }
    printf("beta[0][0] = 0x%04x, decay[0] = %.9g … %.9g; %llu replays, %llu launches\n", beta[0][0], decay[0][0], decay[0][HEADS - 1], 3ull,
           (unsigned long long)ol_device_launches(device));
    ol_composite_destroy(rates);
    ol_device_destroy(device);
    return EXIT_SUCCESS;
}
