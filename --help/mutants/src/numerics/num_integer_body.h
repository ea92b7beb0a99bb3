/* The primitives of one integer dtype, included once for each (num_integer.h sets the macros).
 *
 * INTEGER(name) is num_<name>_<dtype>, INTEGER_T the type, INTEGER_U its unsigned twin, INTEGER_WIDE an unsigned type of at
 * least 32 bits in which sums and products wrap without promotion to a signed int, INTEGER_BITS the width, INTEGER_SIGNED 0
 * or 1. Arithmetic wraps; conversions to a signed type keep the bits, as every compiler this library knows defines them. */

NUM_FN INTEGER_T INTEGER(negative)(INTEGER_T x) { return (INTEGER_T)((INTEGER_WIDE)0 - (INTEGER_WIDE)x); }
NUM_FN INTEGER_T INTEGER(add)(INTEGER_T x, INTEGER_T y) { return (INTEGER_T)((INTEGER_WIDE)x + (INTEGER_WIDE)y); }
NUM_FN INTEGER_T INTEGER(subtract)(INTEGER_T x, INTEGER_T y) { return (INTEGER_T)((INTEGER_WIDE)x - (INTEGER_WIDE)y); }
NUM_FN INTEGER_T INTEGER(multiply)(INTEGER_T x, INTEGER_T y) { return (INTEGER_T)((INTEGER_WIDE)x * (INTEGER_WIDE)y); }
NUM_FN INTEGER_T INTEGER(square)(INTEGER_T x) { return INTEGER(multiply)(x, x); }
NUM_FN INTEGER_T INTEGER(floor)(INTEGER_T x) { return x; }
NUM_FN INTEGER_T INTEGER(ceil)(INTEGER_T x) { return x; }
NUM_FN INTEGER_T INTEGER(round)(INTEGER_T x) { return x; }
NUM_FN INTEGER_T INTEGER(maximum)(INTEGER_T x, INTEGER_T y) { return x > y ? x : y; }
NUM_FN INTEGER_T INTEGER(minimum)(INTEGER_T x, INTEGER_T y) { return x < y ? x : y; }
NUM_FN INTEGER_T INTEGER(clip)(INTEGER_T x, INTEGER_T low, INTEGER_T high) {
    return INTEGER(minimum)(INTEGER(maximum)(x, low), high);
}
NUM_FN INTEGER_T INTEGER(where)(uint8_t condition, INTEGER_T x, INTEGER_T y) { return condition ? x : y; }
NUM_FN INTEGER_T INTEGER(bitwise_invert)(INTEGER_T x) { return (INTEGER_T)~x; }
NUM_FN INTEGER_T INTEGER(bitwise_and)(INTEGER_T x, INTEGER_T y) { return (INTEGER_T)(x & y); }
NUM_FN INTEGER_T INTEGER(bitwise_or)(INTEGER_T x, INTEGER_T y) { return (INTEGER_T)(x | y); }
NUM_FN INTEGER_T INTEGER(bitwise_xor)(INTEGER_T x, INTEGER_T y) { return (INTEGER_T)(x ^ y); }

NUM_FN uint8_t INTEGER(equal)(INTEGER_T x, INTEGER_T y) { return x == y; }
NUM_FN uint8_t INTEGER(not_equal)(INTEGER_T x, INTEGER_T y) { return x != y; }
NUM_FN uint8_t INTEGER(less)(INTEGER_T x, INTEGER_T y) { return x < y; }
NUM_FN uint8_t INTEGER(less_equal)(INTEGER_T x, INTEGER_T y) { return x <= y; }
NUM_FN uint8_t INTEGER(greater)(INTEGER_T x, INTEGER_T y) { return x > y; }
NUM_FN uint8_t INTEGER(greater_equal)(INTEGER_T x, INTEGER_T y) { return x >= y; }
NUM_FN uint8_t INTEGER(isnan)(INTEGER_T x) { return (void)x, (uint8_t)0; }
NUM_FN uint8_t INTEGER(isinf)(INTEGER_T x) { return (void)x, (uint8_t)0; }
NUM_FN uint8_t INTEGER(isfinite)(INTEGER_T x) { return (void)x, (uint8_t)1; }

/* By an amount that is not in [0, width): 0. A negative amount is a very large one. */
NUM_FN INTEGER_T INTEGER(left_shift)(INTEGER_T x, INTEGER_T amount) {
    INTEGER_U by = (INTEGER_U)amount;
    INTEGER_WIDE shifted = (INTEGER_WIDE)x << (by & (INTEGER_BITS - 1));
    return (INTEGER_T)(by < INTEGER_BITS ? shifted : 0);
}

/* x^n for n >= 0, wrapped, as its low bits are: squares and products of the low bits. */
NUM_FN INTEGER_T INTEGER(raise)(INTEGER_T x, INTEGER_U n) {
    INTEGER_WIDE base = (INTEGER_WIDE)x, result = 1;
    for (; n != 0; n = (INTEGER_U)(n >> 1)) {
        result = n & 1 ? (INTEGER_WIDE)(result * base) : result;
        base *= base;
    }
    return (INTEGER_T)result;
}

#if INTEGER_SIGNED

/* To a negative power: 0, but of 1 and -1, whose powers are integers. */
NUM_FN INTEGER_T INTEGER(power)(INTEGER_T x, INTEGER_T n) {
    INTEGER_T unit = (INTEGER_T)(x == 1 ? 1 : x == -1 ? (n & 1 ? -1 : 1) : 0);
    return n < 0 ? unit : INTEGER(raise)(x, (INTEGER_U)n);
}

/* The least integer is its own magnitude, as it wraps. */
NUM_FN INTEGER_T INTEGER(abs)(INTEGER_T x) { return x < 0 ? INTEGER(negative)(x) : x; }
NUM_FN INTEGER_T INTEGER(sign)(INTEGER_T x) { return (INTEGER_T)((x > 0) - (x < 0)); }

/* Arithmetic; by the width or more (or a negative amount) what is left is the sign. */
NUM_FN INTEGER_T INTEGER(right_shift)(INTEGER_T x, INTEGER_T amount) {
    INTEGER_U by = (INTEGER_U)amount;
    return (INTEGER_T)(x >> (by < INTEGER_BITS ? by : (INTEGER_U)(INTEGER_BITS - 1)));
}

/* Python's: the quotient rounded down, the remainder with the divisor's sign; by zero 0. Dividing by -1 is done as negating,
 * which wraps where the division would trap. */
NUM_FN INTEGER_T INTEGER(floor_divide)(INTEGER_T x, INTEGER_T y) {
    INTEGER_T divisor = (INTEGER_T)(((y == 0) | (y == -1)) ? 1 : y);
    INTEGER_T quotient = (INTEGER_T)(x / divisor), rest = (INTEGER_T)(x % divisor);
    quotient = (INTEGER_T)(quotient - ((rest != 0) & ((rest < 0) != (divisor < 0))));
    quotient = y == -1 ? INTEGER(negative)(x) : quotient;
    return (INTEGER_T)(y == 0 ? 0 : quotient);
}

NUM_FN INTEGER_T INTEGER(remainder)(INTEGER_T x, INTEGER_T y) {
    INTEGER_T divisor = (INTEGER_T)(((y == 0) | (y == -1)) ? 1 : y);
    INTEGER_T rest = (INTEGER_T)(x % divisor);
    return (INTEGER_T)(((rest != 0) & ((rest < 0) != (divisor < 0))) ? rest + divisor : rest);
}

#else

NUM_FN INTEGER_T INTEGER(power)(INTEGER_T x, INTEGER_T n) { return INTEGER(raise)(x, n); }
NUM_FN INTEGER_T INTEGER(abs)(INTEGER_T x) { return x; }
NUM_FN INTEGER_T INTEGER(sign)(INTEGER_T x) { return x > 0; }

NUM_FN INTEGER_T INTEGER(right_shift)(INTEGER_T x, INTEGER_T amount) {
    INTEGER_T shifted = (INTEGER_T)(x >> (amount & (INTEGER_BITS - 1)));
    return (INTEGER_T)(amount < INTEGER_BITS ? shifted : 0);
}

NUM_FN INTEGER_T INTEGER(floor_divide)(INTEGER_T x, INTEGER_T y) {
    return (INTEGER_T)(y == 0 ? 0 : x / (INTEGER_T)(y == 0 ? 1 : y));
}

NUM_FN INTEGER_T INTEGER(remainder)(INTEGER_T x, INTEGER_T y) {
    return (INTEGER_T)(y == 0 ? 0 : x % (INTEGER_T)(y == 0 ? 1 : y));
}

#endif
