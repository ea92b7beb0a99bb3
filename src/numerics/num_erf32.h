/* erf of float16 and bfloat16 in float32 arithmetic; see num_exp32.h for what makes that right.
 *
 * float16: below 1, x P(x^2), above, a polynomial in |x| - 1.8125; one input is spelled out. bfloat16: x P(x^2). From 2.625 and
 * 2.203125 on the result is 1, or what rounds to it. Sollya:
 *   fpminimax(erf(x)/x, [|0,2,...,10|], [|SG...|], [2^-20, 1], relative), error 2^-24.2
 *   fpminimax(erf(x + 1.8125), 9, [|SG...|], [-0.8125, 0.8125], absolute), error 2^-23.2
 *   fpminimax(erf(x)/x, [|0,2,...,14|], [|SG...|], [2^-20, 2.2], relative), error 2^-18.4, the first coefficient moved */
#ifndef NUM_ERF32_H
#define NUM_ERF32_H

#include "num_exp32.h"

NUM_FN float num_erf_for_f16(float x) {
    float a = num_clamp_magnitude32(x, 2.625f);
    float s = a * a;
    float p = -0x1.268bc2p-11f;
    p = num_step32(p, s, 0x1.420828p-8f);
    p = num_step32(p, s, -0x1.b5937p-6f);
    p = num_step32(p, s, 0x1.ce077cp-4f);
    p = num_step32(p, s, -0x1.81266p-2f);
    p = num_step32(p, s, 0x1.20dd74p+0f);
    p *= a;
    float t = a - 1.8125f;
    float q = 0x1.57c5a8p-11f;
    q = num_step32(q, t, 0x1.1899bp-11f);
    q = num_step32(q, t, -0x1.6ed50cp-8f);
    q = num_step32(q, t, 0x1.ba873ap-8f);
    q = num_step32(q, t, 0x1.376d48p-7f);
    q = num_step32(q, t, -0x1.75dd86p-5f);
    q = num_step32(q, t, 0x1.41407ep-4f);
    q = num_step32(q, t, -0x1.3991p-4f);
    q = num_step32(q, t, 0x1.5a08fp-5f);
    q = num_step32(q, t, 0x1.fab0dap-1f);
    float y = a < 1.0f ? p : q;
    y = a == 0x1.5f8p-10f ? 0x1.8ca004p-10f : y;
    return num_copysign32(y, x);
}

NUM_FN float num_erf_for_bf16(float x) {
    float a = num_clamp_magnitude32(x, 2.203125f);
    float s = a * a;
    float p = -0x1.0d1dap-19f;
    p = num_step32(p, s, 0x1.b30afep-15f);
    p = num_step32(p, s, -0x1.46a6b2p-11f);
    p = num_step32(p, s, 0x1.3722f2p-8f);
    p = num_step32(p, s, -0x1.aef8eap-6f);
    p = num_step32(p, s, 0x1.cccc76p-4f);
    p = num_step32(p, s, -0x1.81123p-2f);
    p = num_step32(p, s, 0x1.20dd6ep+0f);
    return num_copysign32(p * a, x);
}

#endif
