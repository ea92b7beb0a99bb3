/* That kernel_float32.h's functions give the library's bits where they leave nothing open, and leave next to nothing open: every 509th
 * float32, and all around where results turn subnormal, 0, infinite or a limit. On a GPU `./dev test-gpu` runs all 2^32. No fake, no
 * GPU: the formulas are compiled for the host. */
#include "harness.h"
#include "numerics/numerics.h"

#include <stdbool.h>

#define KERNEL_FN static inline
#include "cuda/kernel_float32.h"

enum { STRIDE = 509, AROUND = 1 << 12 };

typedef struct count {
    uint32_t wrong, open, tried;         /* open and tried: of arguments whose magnitude is from 2^-100 to 2^10 */
} count;

static void try_argument(count *c, const char *name, kernel_quick32 (*quick)(float), float (*exact)(float), uint32_t bits)
{
    const float x = num_from_bits32(bits), magnitude = num_abs32(x);
    const kernel_quick32 y = quick(x);
    const bool usual = magnitude >= 0x1p-100f && magnitude <= 0x1p10f;
    c->tried += usual;
    c->open += usual && y.open;
    if (y.open || num_bits32(y.value) == num_bits32(exact(x)))
        return;
    if (c->wrong++ < 5)
        print_error("%s(%a): %a, not %a\n", name, (double)x, (double)y.value, (double)exact(x));
}

static void try_all(const char *name, kernel_quick32 (*quick)(float), float (*exact)(float))
{
    static const float places[] = { 0.0f, 0x1p-126f, 17.0f, 87.33654f, 88.72284f, 90.0f, 93.0f, 103.97208f, 104.0f, 110.0f, 126.0f, 128.0f, 129.0f,
                                    149.0f, 150.0f, 155.0f, 0x1p24f, 0x1.fffffep127f };
    count c = { 0, 0, 0 };
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE)
        try_argument(&c, name, quick, exact, (uint32_t)bits);
    assert_true(c.open <= c.tried >> 16);
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (uint32_t i = 0; i < 2 * AROUND; i++)
            for (int sign = 0; sign < 2; sign++)
                try_argument(&c, name, quick, exact, (num_bits32(places[p]) - AROUND + i) ^ (sign ? NUM_SIGN32 : 0));
    assert_int_equal(c.wrong, 0);
    assert_true(!quick(0.0f).open && !quick(-0.0f).open);
    assert_true(quick(num_from_bits32(0x7fc00000u)).open && quick(num_from_bits32(0xffa00001u)).open);
}

#define TRY(name)                                                                                                             \
    static float exact_##name(float x) { return num_##name##_f32(x); }                                                        \
    static void all_of_##name(void **state)                                                                                   \
    {                                                                                                                         \
        (void)state;                                                                                                          \
        try_all(#name, kernel_quick_##name, exact_##name);                                                                    \
    }
TRY(exp)
TRY(exp2)
TRY(sigmoid)
TRY(silu)
TRY(softplus)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_exp),
        cmocka_unit_test(all_of_exp2),
        cmocka_unit_test(all_of_sigmoid),
        cmocka_unit_test(all_of_silu),
        cmocka_unit_test(all_of_softplus),
    };
    return HARNESS_RUN(argc, argv, tests);
}
