/* The primitives of one 16-bit float, included once for float16 and once for bfloat16 (num_half.h sets the macros).
 *
 * HALF(name) is num_<name>_<dtype>; HALF_BY_FLOAT32(name) its float32 evaluation; HALF_WIDEN is exact; HALF_NARROW rounds a
 * float32, HALF_NARROW_NUMBER one that is no NaN.
 * Arithmetic in float32 and a second rounding gives the bits of one rounding: float32 has twice the precision and two bits
 * more (see num_round.h). What moves bits about works on the bits. */

NUM_FN int HALF(is_nan)(uint16_t x) { return (x & 0x7fffu) > HALF_INF; }
NUM_FN uint16_t HALF(canonical)(uint16_t x) { return (uint16_t)(HALF(is_nan)(x) ? HALF_NAN : x); }

NUM_FN uint16_t HALF(abs)(uint16_t x) { return HALF(canonical)((uint16_t)(x & 0x7fffu)); }
NUM_FN uint16_t HALF(negative)(uint16_t x) { return HALF(canonical)((uint16_t)(x ^ 0x8000u)); }

NUM_FN uint16_t HALF(sign)(uint16_t x) {
    uint16_t one = (uint16_t)((x & 0x8000u) | HALF_ONE);
    return HALF(canonical)((x & 0x7fffu) == 0 ? x : HALF(is_nan)(x) ? x : one);
}

NUM_FN uint16_t HALF(square)(uint16_t x) { return HALF_NARROW(HALF_WIDEN(x) * HALF_WIDEN(x)); }
NUM_FN uint16_t HALF(floor)(uint16_t x) { return HALF_NARROW(num_floor32(HALF_WIDEN(x))); }
NUM_FN uint16_t HALF(ceil)(uint16_t x) { return HALF_NARROW(num_ceil32(HALF_WIDEN(x))); }
NUM_FN uint16_t HALF(round)(uint16_t x) { return HALF_NARROW(num_integer32(HALF_WIDEN(x))); }
NUM_FN uint16_t HALF(sqrt)(uint16_t x) { return HALF_NARROW(NUM_SQRT32(HALF_WIDEN(x))); }
NUM_FN uint16_t HALF(reciprocal)(uint16_t x) { return HALF_NARROW(1.0f / HALF_WIDEN(x)); }

NUM_FN uint16_t HALF(add)(uint16_t x, uint16_t y) { return HALF_NARROW(HALF_WIDEN(x) + HALF_WIDEN(y)); }
NUM_FN uint16_t HALF(subtract)(uint16_t x, uint16_t y) { return HALF_NARROW(HALF_WIDEN(x) - HALF_WIDEN(y)); }
NUM_FN uint16_t HALF(multiply)(uint16_t x, uint16_t y) { return HALF_NARROW(HALF_WIDEN(x) * HALF_WIDEN(y)); }
NUM_FN uint16_t HALF(divide)(uint16_t x, uint16_t y) { return HALF_NARROW(HALF_WIDEN(x) / HALF_WIDEN(y)); }

NUM_FN uint16_t HALF(fma)(uint16_t x, uint16_t y, uint16_t z) {
    return HALF_NARROW(HALF_BY_FLOAT32(fma)(HALF_WIDEN(x), HALF_WIDEN(y), HALF_WIDEN(z)));
}

/* The exact remainder is a 16-bit float, and so is the divisor: the addition that may follow is one of those above. */
NUM_FN uint16_t HALF(floor_divide)(uint16_t x, uint16_t y) {
    return HALF_NARROW(HALF_BY_FLOAT32(floor_divide)(HALF_WIDEN(x), HALF_WIDEN(y)));
}
NUM_FN uint16_t HALF(remainder)(uint16_t x, uint16_t y) {
    return HALF_NARROW(HALF_BY_FLOAT32(remainder)(HALF_WIDEN(x), HALF_WIDEN(y)));
}

/* Bits as a signed integer that is ordered as the floats are, -0 below +0. */
NUM_FN int16_t HALF(order)(uint16_t x) { return (int16_t)(x ^ ((x & 0x8000u) ? 0x7fffu : 0u)); }

NUM_FN uint16_t HALF(maximum)(uint16_t x, uint16_t y) {
    uint16_t larger = HALF(order)(x) > HALF(order)(y) ? x : y;
    return (uint16_t)((HALF(is_nan)(x) | HALF(is_nan)(y)) ? HALF_NAN : larger);
}

NUM_FN uint16_t HALF(minimum)(uint16_t x, uint16_t y) {
    uint16_t smaller = HALF(order)(x) < HALF(order)(y) ? x : y;
    return (uint16_t)((HALF(is_nan)(x) | HALF(is_nan)(y)) ? HALF_NAN : smaller);
}

/* minimum(maximum(x, low), high), with NaN looked at once: a NaN in the middle makes compilers branch. */
NUM_FN uint16_t HALF(clip)(uint16_t x, uint16_t low, uint16_t high) {
    uint16_t larger = HALF(order)(x) > HALF(order)(low) ? x : low;
    uint16_t smaller = HALF(order)(larger) < HALF(order)(high) ? larger : high;
    return (uint16_t)((HALF(is_nan)(x) | HALF(is_nan)(low) | HALF(is_nan)(high)) ? HALF_NAN : smaller);
}

NUM_FN uint16_t HALF(logaddexp)(uint16_t x, uint16_t y) {
    return HALF_NARROW(HALF_BY_FLOAT32(logaddexp)(HALF_WIDEN(x), HALF_WIDEN(y)));
}

NUM_FN uint8_t HALF(equal)(uint16_t x, uint16_t y) { return HALF_WIDEN(x) == HALF_WIDEN(y); }
NUM_FN uint8_t HALF(not_equal)(uint16_t x, uint16_t y) { return HALF_WIDEN(x) != HALF_WIDEN(y); }
NUM_FN uint8_t HALF(less)(uint16_t x, uint16_t y) { return HALF_WIDEN(x) < HALF_WIDEN(y); }
NUM_FN uint8_t HALF(less_equal)(uint16_t x, uint16_t y) { return HALF_WIDEN(x) <= HALF_WIDEN(y); }
NUM_FN uint8_t HALF(greater)(uint16_t x, uint16_t y) { return HALF_WIDEN(x) > HALF_WIDEN(y); }
NUM_FN uint8_t HALF(greater_equal)(uint16_t x, uint16_t y) { return HALF_WIDEN(x) >= HALF_WIDEN(y); }

NUM_FN uint8_t HALF(isnan)(uint16_t x) { return (x & 0x7fffu) > HALF_INF; }
NUM_FN uint8_t HALF(isinf)(uint16_t x) { return (x & 0x7fffu) == HALF_INF; }
NUM_FN uint8_t HALF(isfinite)(uint16_t x) { return (x & 0x7fffu) < HALF_INF; }

NUM_FN uint16_t HALF(where)(uint8_t condition, uint16_t x, uint16_t y) { return HALF(canonical)(condition ? x : y); }

/* Transcendental functions in float32 arithmetic (num_exp32.h, num_log32.h). Special values are selected on the 16-bit
 * operand, where vectors are widest: by_float32 gives the rounded result of any number. */
#define HALF_NUMBER(name, x) HALF_NARROW_NUMBER(HALF_BY_FLOAT32(name)(HALF_WIDEN(x)))

NUM_FN uint16_t HALF(unless_nan)(uint16_t x, uint16_t y) { return (uint16_t)(HALF(is_nan)(x) ? HALF_NAN : y); }

NUM_FN uint16_t HALF(exp)(uint16_t x) { return HALF(unless_nan)(x, HALF_NUMBER(exp, x)); }
NUM_FN uint16_t HALF(expm1)(uint16_t x) { return HALF(unless_nan)(x, HALF_NUMBER(expm1, x)); }
NUM_FN uint16_t HALF(sigmoid)(uint16_t x) { return HALF(unless_nan)(x, HALF_NUMBER(sigmoid, x)); }
NUM_FN uint16_t HALF(softplus)(uint16_t x) { return HALF(unless_nan)(x, HALF_NUMBER(softplus, x)); }
NUM_FN uint16_t HALF(tanh)(uint16_t x) { return HALF(unless_nan)(x, HALF_NUMBER(tanh, x)); }
NUM_FN uint16_t HALF(rsqrt)(uint16_t x) { return HALF_NARROW(num_rsqrt_for_half(HALF_WIDEN(x))); }

NUM_FN uint16_t HALF(exp2)(uint16_t x) { return HALF(unless_nan)(x, HALF_NUMBER(exp2, x)); }
NUM_FN uint16_t HALF(sinh)(uint16_t x) { return HALF(unless_nan)(x, HALF_NUMBER(sinh, x)); }
NUM_FN uint16_t HALF(cosh)(uint16_t x) { return HALF(unless_nan)(x, HALF_NUMBER(cosh, x)); }
NUM_FN uint16_t HALF(silu)(uint16_t x) { return HALF(unless_nan)(x, HALF_NUMBER(silu, x)); }

/* A NaN argument leaves these a NaN. */
NUM_FN uint16_t HALF(sin)(uint16_t x) { return HALF_NARROW(HALF_BY_FLOAT32(sin)(HALF_WIDEN(x))); }
NUM_FN uint16_t HALF(cos)(uint16_t x) { return HALF_NARROW(HALF_BY_FLOAT32(cos)(HALF_WIDEN(x))); }
NUM_FN uint16_t HALF(tan)(uint16_t x) { return HALF_NARROW(HALF_BY_FLOAT32(tan)(HALF_WIDEN(x))); }

/* y, or what a logarithm is outside of the domain. By the order of the bits: 0, positive, infinity, NaN, -0, negative,
 * -infinity, negative NaN. */
NUM_FN uint16_t HALF(log_special)(uint16_t x, uint16_t y) {
    y = x > HALF_INF ? HALF_NAN : y;
    y = x == HALF_INF ? HALF_INF : y;
    return (x & 0x7fffu) == 0 ? 0x8000u | HALF_INF : y;
}

NUM_FN uint16_t HALF(log)(uint16_t x) { return HALF(log_special)(x, HALF_NUMBER(log, x)); }
NUM_FN uint16_t HALF(log2)(uint16_t x) { return HALF(log_special)(x, HALF_NUMBER(log2, x)); }
NUM_FN uint16_t HALF(log10)(uint16_t x) { return HALF(log_special)(x, HALF_NUMBER(log10, x)); }

NUM_FN uint16_t HALF(log1p_special)(uint16_t x, uint16_t y) {
    y = (HALF(is_nan)(x) | (x > (0x8000u | HALF_ONE))) ? HALF_NAN : y;
    y = x == (0x8000u | HALF_ONE) ? 0x8000u | HALF_INF : y;
    return (((x & 0x7fffu) == 0) | (x == HALF_INF)) ? x : y;
}

NUM_FN uint16_t HALF(log1p)(uint16_t x) { return HALF(log1p_special)(x, HALF_NUMBER(log1p, x)); }

/* These give special values themselves, in float32. */
#define HALF_1(name)                                                                                                          \
    NUM_FN uint16_t HALF(name)(uint16_t x) {                                                                                  \
        return HALF(unless_nan)(x, HALF_NARROW(HALF_BY_FLOAT32(name)(HALF_WIDEN(x))));                                        \
    }
#define HALF_2(name)                                                                                                          \
    NUM_FN uint16_t HALF(name)(uint16_t x, uint16_t y) {                                                                      \
        return HALF_NARROW(HALF_BY_FLOAT32(name)(HALF_WIDEN(x), HALF_WIDEN(y)));                                              \
    }
HALF_1(arcsin)
HALF_1(arccos)
HALF_1(arctan)
HALF_1(arcsinh)
HALF_1(arccosh)
HALF_1(arctanh)
HALF_1(erf)
HALF_1(erfinv)
HALF_2(power)
HALF_2(arctan2)
HALF_2(hypot)
#undef HALF_1
#undef HALF_2

#undef HALF_NUMBER
