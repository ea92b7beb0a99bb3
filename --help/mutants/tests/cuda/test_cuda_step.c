/* The gated-delta step on a GPU, byte for byte as on the CPU: random geometries, dtypes, strides, options and indices; models' geometries;
 * in every shape of launch. */
#include "step_scene.h"

#include <stdio.h>
#include <stdlib.h>

static void random_cases(step_values values, int n, uint64_t from)
{
    for (int i = 0; i < n; i++) {
        uint64_t random = harness_seed * 1000003 + from + (uint64_t)i;
        char what[64];
        step_case c;
        step_random(&c, values, &random);
        snprintf(what, sizeof what, "case %d", i);
        step_scene_check_cpu(&c, what);
        step_free(&c);
    }
}

/* Each is a kernel of its own: their compilation takes the time. */
static int n_cases(void) { return fake_is_loaded() ? 5 : 15; }

static void random_steps(void **state)
{
    (void)state;
    random_cases(STEP_USUAL, n_cases(), 7000000);
}

static void special_values(void **state)
{
    (void)state;
    random_cases(STEP_SPECIAL, n_cases(), 8000000);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CUDA_TEST(random_steps),
        CUDA_TEST(special_values),
    };
    return CUDA_RUN(argc, argv, tests);
}
