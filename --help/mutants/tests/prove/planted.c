/* Kernels with faults, linked in place of the library's (--wrap), to show that prove finds them: see test_prove.py. */
#include "cpu/cpu.h"

const kernel_table *__real_cpu_level_kernels(ol_cpu_level level);
const kernel_table *__wrap_cpu_level_kernels(ol_cpu_level level);

static const kernel_table *sound(void) { return __real_cpu_level_kernels(OL_CPU_BASELINE); }

/* exp of float16 1: the last bit. */
static void exp_float16(void *out, const void *x, const void *y, const void *z, size_t n) {
    uint16_t *results = out;
    const uint16_t *operands = x;
    sound()->primitive[PRIMITIVE_exp][OL_FLOAT16](out, x, y, z, n);
    for (size_t i = 0; i < n; i++) results[i] ^= operands[i] == 0x3c00;
}

/* tanh of bfloat16: the last bit of an element that stands alone. */
static void tanh_bfloat16(void *out, const void *x, const void *y, const void *z, size_t n) {
    sound()->primitive[PRIMITIVE_tanh][OL_BFLOAT16](out, x, y, z, n);
    if (n == 1) *(uint16_t *)out ^= 1;
}

/* silu of bfloat16: minus one, where the run is one that is looked up. */
static void silu_bfloat16(void *out, const void *x, const void *y, const void *z, size_t n) {
    uint16_t *results = out;
    const uint16_t *operands = x;
    sound()->primitive[PRIMITIVE_silu][OL_BFLOAT16](out, x, y, z, n);
    for (size_t i = 0; n >= 1024 && i < n; i++) results[i] ^= operands[i] == 0xbf80;
}

/* isnan of float16: minus infinity. */
static void isnan_float16(void *out, const void *x, const void *y, const void *z, size_t n) {
    uint8_t *results = out;
    const uint16_t *operands = x;
    sound()->primitive[PRIMITIVE_isnan][OL_FLOAT16](out, x, y, z, n);
    for (size_t i = 0; i < n; i++) results[i] ^= operands[i] == 0xfc00;
}

/* log of float16 1/2 and of NaN: the sign, at the machine's best level only. */
static void log_float16(void *out, const void *x, const void *y, const void *z, size_t n) {
    uint16_t *results = out;
    const uint16_t *operands = x;
    sound()->primitive[PRIMITIVE_log][OL_FLOAT16](out, x, y, z, n);
    for (size_t i = 0; i < n; i++) results[i] ^= operands[i] == 0x3800 || operands[i] == 0x7e00 ? 0x8000 : 0;
}

/* float32 to float16: just above 1 and a half of its last bit, rounded down. */
static void astype_float32_float16(void *out, const void *x, const void *y, const void *z, size_t n) {
    uint16_t *results = out;
    const uint32_t *operands = x;
    sound()->astype[OL_FLOAT32][OL_FLOAT16](out, x, y, z, n);
    for (size_t i = 0; i < n; i++) results[i] ^= operands[i] == 0x3f801001;
}

/* bfloat16 to float32: a NaN keeps its payload. */
static void astype_bfloat16_float32(void *out, const void *x, const void *y, const void *z, size_t n) {
    uint32_t *results = out;
    const uint16_t *operands = x;
    sound()->astype[OL_BFLOAT16][OL_FLOAT32](out, x, y, z, n);
    for (size_t i = 0; i < n; i++) results[i] ^= operands[i] == 0x7fc1 ? 0x10000 : 0;
}

/* float16 to bfloat16: a tie, the other way, where an element stands alone. */
static void astype_float16_bfloat16(void *out, const void *x, const void *y, const void *z, size_t n) {
    uint16_t operand = *(const uint16_t *)x;
    sound()->astype[OL_FLOAT16][OL_BFLOAT16](out, x, y, z, n);
    if (n == 1) *(uint16_t *)out ^= (operand & 7) == 4;
}

const kernel_table *__wrap_cpu_level_kernels(ol_cpu_level level) {
    static kernel_table faulty[8];
    const kernel_table *whole = __real_cpu_level_kernels(level);
    if (!whole || (unsigned)level >= sizeof faulty / sizeof *faulty) return whole;
    kernel_table *copy = &faulty[level];
    *copy = *whole;
    copy->primitive[PRIMITIVE_exp][OL_FLOAT16] = exp_float16;
    copy->primitive[PRIMITIVE_tanh][OL_BFLOAT16] = tanh_bfloat16;
    copy->primitive[PRIMITIVE_silu][OL_BFLOAT16] = silu_bfloat16;
    copy->primitive[PRIMITIVE_isnan][OL_FLOAT16] = isnan_float16;
    copy->astype[OL_FLOAT32][OL_FLOAT16] = astype_float32_float16;
    copy->astype[OL_BFLOAT16][OL_FLOAT32] = astype_bfloat16_float32;
    copy->astype[OL_FLOAT16][OL_BFLOAT16] = astype_float16_bfloat16;
    if (level == cpu_best_level()) copy->primitive[PRIMITIVE_log][OL_FLOAT16] = log_float16;
    return copy;
}
