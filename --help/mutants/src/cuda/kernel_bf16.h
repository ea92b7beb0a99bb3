/* exp, exp2, sigmoid and softplus of bfloat16 by the GPU's own approximations of 2^x and 1/x.
 *
 * The PTX reference bounds their errors: 2^-22 relative for ex2.approx.ftz.f32, a unit in the last place, 2^-23, for
 * rcp.approx.ftz.f32. Here KERNEL_EX2_ERROR and KERNEL_RCP_ERROR are allowed for, twice and eight times as much. With any error within
 * these, whatever the GPU, every one of the 65,536 arguments that is not open gives the correctly rounded result:
 * tests/cuda/test_kernel_bf16.c tries every float32 that either instruction may give. So there is no rounding test, as rounding to 8
 * bits forgives nearly all of the errors; of the few arguments near halfway each was moved to its right side, in the constants:
 *   sigmoid    near 0 all that are in doubt are to round towards 1/2: exp(-x) times 2^(+-2^-17.8), by the sign of x
 *   exp        1 + 2^-20 times too large; x log2(e) would not be good enough rounded, so that it is in two parts, the first exact
 *   softplus   the coefficients, and -2^-17.5 in the exponent
 * Do not touch a constant or the order of operations without running that test.
 *
 * Open are NaN and arguments whose results are subnormal: these go to num_<name>_bf16, which is called. Below, results are 0.
 *
 * The polynomial started from Remez' algorithm on log1p(x)/x, degree 6, on [0, 1], relative: 2^-19.6. The test gives KERNEL_FN and
 * the two instructions itself. */
#define KERNEL_EX2_ERROR 0x1p-21
#define KERNEL_RCP_ERROR 0x1p-20

KERNEL_FN bool kernel_is_open(float x, float least_normal, float most_zero) { return !(x >= least_normal) && !(x < most_zero); }
KERNEL_FN bool kernel_is_open_exp(float x) { return kernel_is_open(x, -87.0f, -93.0f) || !(x >= -0x1.fep127f); }     /* 0 times infinity */
KERNEL_FN bool kernel_is_open_exp2(float x) { return kernel_is_open(x, -125.0f, -134.0f); }
KERNEL_FN bool kernel_is_open_sigmoid(float x) { return kernel_is_open(x, -87.0f, -93.0f); }
KERNEL_FN bool kernel_is_open_softplus(float x) { return kernel_is_open(x, -87.0f, -93.0f); }

KERNEL_FN float kernel_near_exp(float x) {
    float power = kernel_power32(x * 0x1.7154p+0f);
    return NUM_FMA32(power, NUM_FMA32(x, 0x1.480fb6p-18f, 0x1p-20f), power);
}

KERNEL_FN float kernel_near_exp2(float x) { return kernel_power32(x); }

KERNEL_FN float kernel_near_sigmoid(float x) {
    return kernel_seed32(1.0f + kernel_power32(NUM_FMA32(x, -NUM_LOG2E_32, num_copysign32(0x1.2p-18f, x))));
}

KERNEL_FN float kernel_near_softplus(float x) {
    float t = kernel_power32(NUM_FMA32(num_abs32(x), -NUM_LOG2E_32, -0x1.6p-18f));
    float q = 0x1.cee038p-7f;
    q = NUM_FMA32(q, t, -0x1.106e2ep-4f);
    q = NUM_FMA32(q, t, 0x1.31facap-3f);
    q = NUM_FMA32(q, t, -0x1.e17004p-3f);
    q = NUM_FMA32(q, t, 0x1.53054ap-2f);
    q = NUM_FMA32(q, t, -0x1.ffde16p-2f);
    q = NUM_FMA32(q, t, 0x1.000036p+0f);
    return NUM_FMA32(q, t, num_positive32(x));
}
