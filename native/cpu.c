#include "kernels.h"
#ifdef __x86_64__
#include <cpuid.h>
#endif

/* Tells from which files the library was compiled: the digest that cpu.py makes of them. */
const char trivet_sources[] = TRIVET_SOURCES;

/* The index of the best level of cpu.py that this processor supports. */
int trivet_cpu_level(void)
{
#ifdef __x86_64__
    unsigned a, b, c, d, saved;
    const unsigned fma = 1u << 12, os_saves = 1u << 27, avx = 1u << 28, wide = 6;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (fma | os_saves | avx)) != (fma | os_saves | avx))
        return 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
    if ((saved & wide) != wide) /* the operating system saves the wide registers */
        return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2) && (b & bit_BMI2);
#else
    return 0;
#endif
}
