/* That kernel_bf16.h's functions give the library's bits for all bfloat16 arguments whatever a GPU's approximations of 2^x and 1/x
 * are within their bounds: by every float32 that each of the two may give. No fake, no GPU: the formulas are compiled for the host. */
#include "harness.h"
#include "numerics/numerics.h"

#include <math.h>
#include <stdbool.h>

#define KERNEL_FN static inline

/* One of the float32 within `error` of the exact result that an instruction may give, by its number; beyond the last one, that. */
typedef struct approximation {
    uint32_t number, last;
} approximation;

static approximation ex2, rcp;

static float approximate(approximation *which, double exact, double error)
{
    const double least = exact * (1 - error), most = exact * (1 + error);
    float low = (float)least, high = (float)most;
    if (most < 0x1p-126)
        return 0;
    low = (double)low < least ? nextafterf(low, INFINITY) : low;
    high = (double)high > most ? nextafterf(high, 0) : high;
    if (!(low < high))
        return low;
    const uint32_t n = num_bits32(high) - num_bits32(low);
    which->last = n;
    low = num_from_bits32(num_bits32(low) + (which->number < n ? which->number : n));
    return low < 0x1p-126f ? 0 : low;                    /* as it flushes subnormals */
}

static float kernel_power32(float x);
static float kernel_seed32(float x);

#include "cuda/kernel_bf16.h"

static float kernel_power32(float x) { return approximate(&ex2, exp2((double)x), KERNEL_EX2_ERROR); }
static float kernel_seed32(float x) { return approximate(&rcp, 1 / (double)x, KERNEL_RCP_ERROR); }

static uint32_t try_argument(float (*near)(float), float x, uint16_t right)
{
    uint32_t n_wrong = 0;
    ex2 = rcp = (approximation){ 0, 0 };
    for (ex2.number = 0; ex2.number <= ex2.last; ex2.number++) {
        rcp.last = 0;
        for (rcp.number = 0; rcp.number <= rcp.last; rcp.number++)
            n_wrong += num_narrow_bf16(near(x)) != right;
    }
    return n_wrong;
}

static void try_all(const char *name, float (*near)(float), uint16_t (*exact)(uint16_t), bool (*is_open)(float))
{
    uint32_t n_open = 0, n_wrong = 0;
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        const float x = num_widen_bf16((uint16_t)bits);
        if (is_open(x))
            n_open++;
        else if (try_argument(near, x, exact((uint16_t)bits))) {
            print_error("%s(%a) depends on the approximations\n", name, (double)x);
            n_wrong++;
        }
    }
    assert_int_equal(n_wrong, 0);
    /* NaN, 254, and some tens between -134 and -87. */
    assert_in_range(n_open, 254, 254 + 64);
}

#define TRY(name)                                                                                                             \
    static uint16_t exact_##name(uint16_t x) { return num_##name##_bf16(x); }                                                 \
    static void all_of_##name(void **state)                                                                                   \
    {                                                                                                                         \
        (void)state;                                                                                                          \
        try_all(#name, kernel_near_##name, exact_##name, kernel_is_open_##name);                                               \
    }
TRY(exp)
TRY(exp2)
TRY(sigmoid)
TRY(softplus)

/* An evaluation that is worse is found. */
static float too_far(float x) { return kernel_near_sigmoid(x) * (1 + 0x1p-16f); }

static void errors_are_found(void **state)
{
    (void)state;
    assert_int_not_equal(try_argument(too_far, 0x1p-7f, exact_sigmoid(0x3c00)), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_exp),
        cmocka_unit_test(all_of_exp2),
        cmocka_unit_test(all_of_sigmoid),
        cmocka_unit_test(all_of_softplus),
        cmocka_unit_test(errors_are_found),
    };
    return HARNESS_RUN(argc, argv, tests);
}
