/* The host's floating-point state: saved, put to the IEEE default (nearest even, no flushing, no traps), and restored with
 * its exception flags, around everything the library computes. */
#ifndef OL_FPENV_H
#define OL_FPENV_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
typedef struct fpenv { unsigned mxcsr; } fpenv;
#define MXCSR_CONTROL 0xFFC0u          /* all but the exception flags */
#define MXCSR_DEFAULT 0x1F80u          /* all exceptions masked, nearest even, FTZ and DAZ off */

/* The register is written only where it must change: reading it is cheap, writing it holds the processor up. */
static inline fpenv fpenv_begin(void)
{
    fpenv host = { _mm_getcsr() };
    if ((host.mxcsr & MXCSR_CONTROL) != MXCSR_DEFAULT)
        _mm_setcsr(MXCSR_DEFAULT);
    return host;
}

static inline void fpenv_end(fpenv host)
{
    if (_mm_getcsr() != host.mxcsr)
        _mm_setcsr(host.mxcsr);
}
#elif defined(__aarch64__)
typedef struct fpenv { uint64_t fpcr, fpsr; } fpenv;

static inline fpenv fpenv_begin(void)
{
    fpenv host;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(host.fpcr), "=r"(host.fpsr));
    if (host.fpcr != 0)
        __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0) : "memory");
    return host;
}

static inline void fpenv_end(fpenv host)
{
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(host.fpcr), "r"(host.fpsr) : "memory");
}
#else
#error "onelaunch knows x86-64 and AArch64; another machine needs its floating-point state here"
#endif

#endif
