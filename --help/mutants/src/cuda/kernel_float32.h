/* exp, exp2, sigmoid, silu and softplus of float32 in double arithmetic, as in num_quick64.h: short, with a test of what they leave
 * open. Two things are other than there:
 *
 *     Results that are subnormal, 0 or infinite are not left open, as a GPU rounds a double to a subnormal float32 as fast as to
 *     another. They are no rarity: decays of heads that forget fast are below exp(-87). Arguments are brought to where the result is
 *     already 0, infinite, or rounds as in the limit; beyond, it is the same. NaN is open.
 *
 *     The polynomials are longer, by which one element in 2^19 is open instead of 2^14 or 2^12: a warp waits for one of its 32, and
 *     a launch for one of its warps.
 *
 * Relative errors: 2^-46.0 of the polynomial of 2^r, and x log2(e) is off by 2^-46.7 at most, so 2^-45.5 of a power; 2^-49 of
 * 2 atanh(s). Tested with 2^-44.
 *
 * Sollya: fpminimax(2^x, 9, [|D...|], [-1/2 - 2^-16, 1/2 + 2^-16], relative), and fpminimax(2 atanh(sqrt(x))/sqrt(x), 8, [|D...|],
 * [2^-46, 1/9], relative); errors by dirtyinfnorm. */

#define KERNEL_DOUBT (1u << 9)                           /* 2^53 times the error that is allowed for */
#define KERNEL_LEAST (-110.0f)                           /* exp(-110) is less than half of the smallest float32, 2^-150; */
#define KERNEL_MOST 90.0f                                /* exp(90) more than 2^128, and 1 + exp(-90) rounds to 1 */

typedef struct kernel_quick32 {
    float value;
    bool open;
} kernel_quick32;

KERNEL_FN float kernel_most(float x, float most) { return x < most ? x : most; }

/* NaN becomes the least. */
KERNEL_FN float kernel_least(float x, float least) { return x > least ? x : least; }
KERNEL_FN float kernel_within(float x, float least, float most) { return kernel_most(kernel_least(x, least), most); }

/* Whether y > 0 is within KERNEL_DOUBT units in its last place of halfway between two float32. Rounding drops 29 bits or, below 2^-126,
 * more; then these 29 are 0 at halfway. */
KERNEL_FN bool kernel_near_halfway(double y) {
    uint64_t bits = num_bits64(y);
    uint32_t halfway = (uint32_t)(bits >> 32) < 0x38100000u ? 0 : 0x10000000u;
    return (((uint32_t)bits + (KERNEL_DOUBT - halfway)) & 0x1fffffffu) < 2 * KERNEL_DOUBT;
}

/* 2^r, |r| <= 1/2 and a little more. Even and odd terms apart: shorter chains, for one more product. */
KERNEL_FN double kernel_power64(double r) {
    double s = r * r;
    double even = 0x1.63ede6fd359eep-20;
    even = NUM_FMA64(even, s, 0x1.43088fd6fb292p-13);
    even = NUM_FMA64(even, s, 0x1.3b2ab72a06879p-7);
    even = NUM_FMA64(even, s, 0x1.ebfbdff8157cdp-3);
    even = NUM_FMA64(even, s, 0x1.0000000000039p0);
    double odd = 0x1.b3f2db56e02abp-24;
    odd = NUM_FMA64(odd, s, 0x1.ffce25db86dcbp-17);
    odd = NUM_FMA64(odd, s, 0x1.5d87fd8f7f9aap-10);
    odd = NUM_FMA64(odd, s, 0x1.c6b08d70d254p-5);
    odd = NUM_FMA64(odd, s, 0x1.62e42fefa375p-1);
    return NUM_FMA64(odd, r, even);
}

/* p 2^n, n in the last bits of shifted. */
KERNEL_FN double kernel_scale(double p, uint32_t shifted) {
    uint64_t bits = num_bits64(p);
    uint32_t upper = (uint32_t)(bits >> 32) + (shifted << 20);
    return num_from_bits64((uint64_t)upper << 32 | (uint32_t)bits);
}

/* exp(x), x within the limits above. n = x log2(e) to an integer comes in float32, in the last bits of a sum; the same bits below the
 * upper half of 3 2^51 are a double that is n and a constant. Two operations in a row less than rounding in double. */
KERNEL_FN double kernel_exp64(float x) {
    uint32_t shifted = num_bits32(NUM_FMA32(x, NUM_LOG2E_32, 0x1.8p23f));
    double n = num_from_bits64(0x4338000000000000ull | shifted) - (0x1.8p52 + 0x4b400000);
    double r = NUM_FMA64((double)x, NUM_LOG2E_64, -n);
    return kernel_scale(kernel_power64(r), shifted);
}

KERNEL_FN kernel_quick32 kernel_quick_exp(float x) {
    double y = kernel_exp64(kernel_within(x, KERNEL_LEAST, KERNEL_MOST));
    kernel_quick32 out = { (float)y, kernel_near_halfway(y) || x != x };
    return out;
}

/* The reduction is exact in float32. The least argument is no integer, whose power would be taken for a halfway case. */
KERNEL_FN kernel_quick32 kernel_quick_exp2(float x) {
    float within = kernel_within(x, -155.25f, 129.0f), shifted = within + 0x1.8p23f;
    double y = kernel_scale(kernel_power64((double)(within - (shifted - 0x1.8p23f))), num_bits32(shifted));
    kernel_quick32 out = { (float)y, kernel_near_halfway(y) || x != x };
    return out;
}

KERNEL_FN kernel_quick32 kernel_quick_sigmoid(float x) {
    double y = NUM_QUOTIENT64(1.0, 1.0 + kernel_exp64(-kernel_within(x, KERNEL_LEAST, KERNEL_MOST)));
    kernel_quick32 out = { (float)y, kernel_near_halfway(y) || x != x };
    return out;
}

/* -infinity is open: its product with 0 is not what silu is. 0 is not near halfway. */
KERNEL_FN kernel_quick32 kernel_quick_silu(float x) {
    float least = kernel_least(x, KERNEL_LEAST);
    double y = NUM_QUOTIENT64((double)least, 1.0 + kernel_exp64(-kernel_most(least, KERNEL_MOST)));
    bool near = kernel_near_halfway(num_abs64(y)) && y != 0.0;
    kernel_quick32 out = { (float)y, near || !(x >= -0x1.fffffep127f) };
    return out;
}

/* max(x, 0) + log1p(e), e = exp(-|x|), as 2 atanh(s), s = e / (2 + e) <= 1/3. */
KERNEL_FN kernel_quick32 kernel_quick_softplus(float x) {
    double e = kernel_exp64(-kernel_most(num_abs32(x), -KERNEL_LEAST));
    double s = NUM_QUOTIENT64(e, 2.0 + e);
    double z = s * s;
    double p = 0x1.808bba4f4ba34p-3;
    p = NUM_FMA64(p, z, 0x1.e0bbc0c971088p-4);
    p = NUM_FMA64(p, z, 0x1.3eeb47e0b1c98p-3);
    p = NUM_FMA64(p, z, 0x1.741ae292fd686p-3);
    p = NUM_FMA64(p, z, 0x1.c71f0a4f5e3bfp-3);
    p = NUM_FMA64(p, z, 0x1.249241db886cbp-2);
    p = NUM_FMA64(p, z, 0x1.999999ae0a9cp-2);
    p = NUM_FMA64(p, z, 0x1.555555554a48cp-1);
    p = NUM_FMA64(p, z, 0x1.0000000000008p1);
    double y = NUM_FMA64(p, s, (double)num_positive32(x));
    kernel_quick32 out = { (float)y, kernel_near_halfway(y) || x != x };
    return out;
}

KERNEL_FN kernel_quick32 kernel_quick_log(float x) {
    num_quick32 quick = num_log_quick32(x);
    kernel_quick32 out = { quick.value, quick.open >> 31 != 0 };
    return out;
}
