/* Quotients for the numerics, where IEEE division would take a GPU 25 instructions and a branch: from the hardware's approximate
 * reciprocal by Newton's steps. How good the approximation is, which differs between GPUs, does not matter: it is squared away.
 *
 * The assembly below is all that kernels have: a reciprocal of x in r. */

/* Within 2^-20 of itself, as the PTX reference has it; the fused steps are exact but for one rounding. */
KERNEL_FN float kernel_seed32(float x) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

KERNEL_FN double kernel_seed64(double x) {
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    return r;
}

/* x / y, y and the quotient normal numbers well within the range. After the residual's step (Markstein) the quotient rounded, but
 * where it is within 2^-20 units of halfway between two float32. */
KERNEL_FN float kernel_quotient32(float x, float y) {
    float r = kernel_seed32(y);
    r = __fmaf_rn(r, __fmaf_rn(-y, r, 1.0f), r);
    float q = x * r;
    return __fmaf_rn(r, __fmaf_rn(-y, q, x), q);
}

/* The same within a few units in the last place: for evaluations with a rounding test. */
KERNEL_FN double kernel_quotient64(double x, double y) {
    double r = kernel_seed64(y);
    r = __fma_rn(r, __fma_rn(-y, r, 1.0), r);
    r = __fma_rn(r, __fma_rn(-y, r, 1.0), r);
    return x * r;
}

#define NUM_QUOTIENT32(x, y) kernel_quotient32(x, y)
#define NUM_QUOTIENT64(x, y) kernel_quotient64(x, y)
