/* See hard_pairs.h. An index chooses a kind of pair by its remainder, and a stream of random numbers for it. */
#include "hard_pairs.h"
#include "digest.h"

#include <math.h>
#include <string.h>

typedef struct pair {
    float x, y;
} pair;

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t draw(uint64_t *state) { return *state = digest_mix(*state); }
static int below(uint64_t *state, int n) { return (int)(draw(state) >> 33) % n; }
static double unit(uint64_t *state) { return (double)(draw(state) >> 11) * 0x1p-53; }

/* A float32 of any bits; of an exponent in [low, high]; within some units in the last place of v. */
static float any(uint64_t *state) { return from_bits((uint32_t)(draw(state) >> 32)); }

static float sized(uint64_t *state, int low, int high) {
    float x = (float)ldexp(1 + unit(state), low + below(state, high - low + 1));
    return draw(state) & 1 ? -x : x;
}

static float near_to(uint64_t *state, double v, int units) {
    float x = (float)v;
    for (int n = below(state, units + 1); n > 0; n--) x = nextafterf(x, draw(state) & 1 ? INFINITY : -INFINITY);
    return x;
}

/* The middle between two neighbouring float32 of about this size: 25 bits. */
static double middle(uint64_t *state, int low, int high) {
    return ldexp((double)(((draw(state) >> 40) | 1 << 23) % (1 << 24) | 1 << 23) * 2 + 1, low + below(state, high - low + 1) - 24);
}

/* exp(x) + exp(y) within a few ulp of 1, where the terms cancel; then everywhere the smaller term is about half an ulp of the
 * larger operand; then where e^(y-x) is near the switch of the evaluation. */
static pair hard_logaddexp(uint64_t *state, int kind) {
    if (kind < 3) {
        double x = kind == 0 ? -unit(state) * 0.6931 : -ldexp(1 + unit(state), -1 - below(state, 60));
        return (pair){ (float)x, near_to(state, log(-expm1((float)x)), kind == 1 ? 1000 : 3) };
    }
    if (kind == 3) {
        float x = sized(state, -20, 20);
        return (pair){ x, near_to(state, x + log(fabs(x) * 0x1p-24 * (0.25 + 2 * unit(state))), 3) };
    }
    if (kind == 5) {                                                 /* |result| about 2^-14 to 2^-8 of the larger: both sides of 2^-10 */
        double x = -unit(state) * 0.6931, result = ldexp(1 + unit(state), -14 + below(state, 6)) * -x * (below(state, 2) ? 1 : -1);
        return (pair){ (float)x, near_to(state, log(exp(result) - exp((float)x)), 3) };
    }
    float x = sized(state, -10, 6);
    return kind == 4 ? (pair){ x, near_to(state, x - 0.88137358702, 50) } : (pair){ x, sized(state, -10, 6) };
}

/* Exact powers and their neighbours: x^n and roots whose result is a float32 or halfway between two; x near 1 with a huge y;
 * results about to overflow or underflow, and subnormal ones. */
static pair hard_power(uint64_t *state, int kind) {
    static const double exponents[] = { 2, 3, 4, 5, 6, 7, 8, 10, 0.5, 0.25, 1.5, 0.75, -1, -2, -0.5, 0.125, -3, 2.5, 12, 16, 24 };
    double y = exponents[below(state, sizeof exponents / sizeof *exponents)];
    switch (kind) {
    case 0: {                                                /* few bits: powers that fit */
        double base = ldexp((double)(1 + below(state, 1 << (1 + below(state, 13)))), below(state, 40) - 20);
        return (pair){ near_to(state, draw(state) % 4 ? base : -base, 1), (float)y };
    }
    case 1: {                                                /* x = m^(1/y): x^y near halfway */
        double m = middle(state, -30, 30);
        return (pair){ near_to(state, pow(m, 1 / y), 1), (float)y };
    }
    case 2: {                                                /* squares of the roots: y = k / 2^n */
        double root = (double)(1 + below(state, 4096)), n = ldexp(1, 1 + below(state, 3));
        return (pair){ (float)ldexp(pow(root, n), 8 * (below(state, 9) - 4)), (float)((below(state, 41) - 20) / n) };
    }
    case 3: {                                                /* x near 1 */
        double x = 1 + (draw(state) & 1 ? 1 : -1) * ldexp((double)(1 + below(state, 1000)), -24);
        double result = (unit(state) * 2 - 1) * 100;
        return (pair){ (float)x, near_to(state, result / log(x), 2) };
    }
    case 4: {                                                /* the ends of the range */
        static const double ends[] = { 128, -149, -150, -126, -149.5, -140 };
        float x = sized(state, -100, 100);
        double z = ends[below(state, 6)] + (unit(state) - 0.5) * ldexp(1, -below(state, 30));
        return (pair){ fabsf(x), near_to(state, z / log2(fabsf(x)), 2) };
    }
    case 5: {                                                /* subnormal results that are halfway: 2^(-150) times odd numbers */
        double root = (double)(1 + 2 * below(state, 2048));
        return (pair){ (float)ldexp(root, -75), 2 };
    }
    case 6: return (pair){ -fabsf(sized(state, -20, 20)), (float)(below(state, 61) - 30) };
    default: return (pair){ fabsf(sized(state, -4, 4)), sized(state, -4, 5) };
    }
}

/* Quotients near the tangent of a halfway angle; subnormal quotients that are exactly halfway; angles near pi/2, pi/4 and pi. */
static pair hard_arctan2(uint64_t *state, int kind) {
    float x = sized(state, -20, 20);
    switch (kind) {
    case 0: case 1: return (pair){ near_to(state, x * tan(middle(state, -30, 1)), 2), x };
    case 2: return (pair){ (float)ldexp(1 + 2 * below(state, 1 << (1 + below(state, 22))), -150 + below(state, 120)), (float)ldexp(1, below(state, 128)) };
    case 3: return (pair){ sized(state, -149, -100), sized(state, 0, 127) };
    case 4: return (pair){ x, (float)(x * (unit(state) - 0.5) * ldexp(1, -below(state, 40))) };
    case 5: return (pair){ near_to(state, x, 4), x };
    case 6: return (pair){ (float)(x * (unit(state) - 0.5) * ldexp(1, -below(state, 60))), -fabsf(x) };
    default: return (pair){ x, sized(state, -20, 20) };
    }
}

/* y = sqrt(m^2 - x^2) with m halfway; triples of Pythagoras with a halfway hypotenuse; subnormals; the border of overflow. */
static pair hard_hypot(uint64_t *state, int kind) {
    int scale = below(state, 200) - 110;
    switch (kind) {
    case 0: case 1: {
        double m = middle(state, 0, 0), x = (float)(m * unit(state));
        return (pair){ (float)ldexp(x, scale), (float)ldexp(near_to(state, sqrt((m - x) * (m + x)), 2), scale) };
    }
    case 2: case 3: {                                        /* k (p^2 - q^2), 2 k p q, k (p^2 + q^2) */
        double p = 1 + below(state, 4096), q = 1 + below(state, 4096), k = 1 + 2 * below(state, 4);
        return (pair){ (float)ldexp(k * fabs(p * p - q * q), scale), (float)ldexp(2 * k * p * q, scale) };
    }
    case 4: return (pair){ sized(state, -149, -120), sized(state, -149, -120) };
    case 5: {
        double m = ldexp(1, 128) - ldexp(1, 103) * (unit(state) * 4), x = (float)(m * unit(state));
        return (pair){ (float)x, near_to(state, sqrt((m - x) * (m + x)), 2) };
    }
    case 6: {                                                /* y so small that x^2 + y^2 can be within 2^-53 of m^2 */
        float x = fabsf(sized(state, -60, 60)), next = nextafterf(x, INFINITY);
        double m = 0.5 * ((double)x + (double)next) + ((double)next - (double)x) * below(state, 4);
        return (pair){ x, near_to(state, sqrt((m - x) * (m + x)), 1) };
    }
    default: return (pair){ sized(state, -10, 10), sized(state, -10, 10) };
    }
}

/* x = m y with m halfway, of any size, subnormal quotients too. */
static pair hard_divide(uint64_t *state, int kind) {
    float y = sized(state, -60, 60);
    if (kind < 3) return (pair){ near_to(state, y * middle(state, -40, 40), 1), y };
    if (kind < 5) return (pair){ (float)ldexp(1 + 2 * below(state, 1 << 23), -149 + below(state, 100)), (float)ldexp(1 + below(state, 3), below(state, 126)) };
    return (pair){ sized(state, -126, 127), sized(state, -126, 127) };
}

/* x near n y, n an integer of up to 30 bits: quotients near integers from both sides, and from 2^22 and 2^24 on integers that round. */
static pair hard_quotient(uint64_t *state, int kind) {
    float y = kind < 4 ? sized(state, -20, 20) : sized(state, -60, 60);
    double n = (double)(1 + below(state, 1 << below(state, 31)));
    return (pair){ near_to(state, n * y, kind % 3), y };
}

static pair hard_other(uint64_t *state, int kind) {
    float x = kind % 2 ? any(state) : sized(state, -30, 30);
    return (pair){ x, kind < 3 ? near_to(state, draw(state) & 1 ? x : -x, 4) : kind < 6 ? sized(state, -30, 30) : any(state) };
}

void hard_pairs_fill(const char *operation, uint64_t first, size_t n, uint32_t *x, uint32_t *y) {
    static const struct { const char *name; pair (*of)(uint64_t *state, int kind); } generators[] = {
        { "logaddexp", hard_logaddexp }, { "power", hard_power }, { "arctan2", hard_arctan2 }, { "hypot", hard_hypot },
        { "divide", hard_divide }, { "floor_divide", hard_quotient }, { "remainder", hard_quotient }, { "", hard_other },
    };
    size_t g = 0;
    while (*generators[g].name && strcmp(generators[g].name, operation)) g++;
    for (size_t i = 0; i < n; i++) {
        uint64_t state = digest_mix(first + i);
        pair p = generators[g].of(&state, (int)((first + i) % 8));
        memcpy(&x[i], &p.x, sizeof p.x);
        memcpy(&y[i], &p.y, sizeof p.y);
    }
}
