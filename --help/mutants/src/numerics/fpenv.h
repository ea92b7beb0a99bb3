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

/* The same around a call of the C library, which may look at the x87 unit's rounding mode instead: glibc's strtod does. */
typedef struct fpenv_libc {
    fpenv sse;
    uint8_t x87[28];                   /* as fnstenv writes it: control, status and the rest */
} fpenv_libc;
#define X87_DEFAULT 0x037F             /* all exceptions masked, nearest even, 64 bits */

static inline fpenv_libc fpenv_libc_begin(void)
{
    fpenv_libc host = { .sse = fpenv_begin() };
    const uint16_t control = X87_DEFAULT;
    __asm__ volatile("fnstenv %0\n\tfldcw %1" : "=m"(host.x87) : "m"(control));
    return host;
}

static inline void fpenv_libc_end(fpenv_libc host)
{
    __asm__ volatile("fldenv %0" : : "m"(host.x87));
    fpenv_end(host.sse);
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

typedef fpenv fpenv_libc;
static inline fpenv_libc fpenv_libc_begin(void) { return fpenv_begin(); }
static inline void fpenv_libc_end(fpenv_libc host) { fpenv_end(host); }
#else
#error "onelaunch knows x86-64 and AArch64; another machine needs its floating-point state here"
#endif

#endif
