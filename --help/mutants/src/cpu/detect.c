/* Which SIMD levels this machine runs. The compiler's builtins read CPUID and, for AVX, the register state that the system
 * saves (XGETBV), so a kernel or hypervisor that hides the wide registers is believed. */
#include "cpu/cpu.h"
#include "numerics/fpenv.h"

#include <stddef.h>
#include <threads.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Not a name that clang 14's builtin knows. The registers it needs are those that the check for AVX2 includes. */
static int has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

const kernel_table *cpu_level_kernels(ol_cpu_level level)
{
    switch (level) {
    case OL_CPU_BASELINE: return &kernels_baseline;
#if defined(__x86_64__)
    case OL_CPU_AVX2: return &kernels_avx2;
    case OL_CPU_AVX512: return &kernels_avx512;
#elif defined(__aarch64__)
    case OL_CPU_NEON: return &kernels_neon;
#endif
    default: return NULL;
    }
}

static void prepare_all(void)
{
    fpenv host = fpenv_begin();
    for (int level = OL_CPU_BASELINE; level <= OL_CPU_NEON; level++) {
        const kernel_table *kernels = cpu_level_kernels((ol_cpu_level)level);
        if (kernels && kernels->prepare && ol_cpu_level_available((ol_cpu_level)level))
            kernels->prepare();
    }
    fpenv_end(host);
}

void cpu_levels_prepare(void)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, prepare_all);
}

int ol_cpu_level_available(ol_cpu_level level)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (level == OL_CPU_AVX2 || level == OL_CPU_AVX512)
        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2") || !has_f16c())
            return 0;
    if (level == OL_CPU_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return level == OL_CPU_AUTO || cpu_level_kernels(level) != NULL;
}

ol_cpu_level cpu_best_level(void)
{
    static const ol_cpu_level best_first[] = { OL_CPU_AVX512, OL_CPU_AVX2, OL_CPU_NEON, OL_CPU_BASELINE };
    for (size_t i = 0; i < sizeof best_first / sizeof *best_first; i++)
        if (ol_cpu_level_available(best_first[i]))
            return best_first[i];
    return OL_CPU_BASELINE;
}

const char *ol_cpu_level_name(ol_cpu_level level)
{
    static const char *const names[] = { "auto", "baseline", "avx2", "avx512", "neon" };
    return (unsigned)level < sizeof names / sizeof *names ? names[level] : NULL;
}
