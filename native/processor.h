// Which wide instructions the processor has and the operating system saves.
//
// This asks the processor itself. __builtin_cpu_supports needs a table that only some compilers' runtimes contain.
#pragma once

#ifdef TNESI_X86
#include <cpuid.h>

#include <cstdint>

namespace tnesi {

struct Processor {
    bool avx2 = false, avx512 = false;
};

inline Processor processor() {
    constexpr std::uint32_t kFma = 1u << 12, kOsSaves = 1u << 27, kAvx = 1u << 28;  // leaf 1, ecx
    constexpr std::uint32_t kAvx2 = 1u << 5;                                        // leaf 7, ebx
    constexpr std::uint32_t kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;    // F, DQ, BW, VL
    constexpr std::uint32_t kYmm = 0x6, kZmm = 0xe6;                                // saved registers
    const auto has = [](std::uint32_t flags, std::uint32_t all) { return (flags & all) == all; };

    std::uint32_t a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, kFma | kOsSaves | kAvx)) return {};
    std::uint32_t saved = 0, high = 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if (!has(saved, kYmm) || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return {};
    Processor found;
    found.avx2 = has(b, kAvx2);
    found.avx512 = found.avx2 && has(saved, kZmm) && has(b, kAvx512);
    return found;
}

}  // namespace tnesi
#endif
