// A few points as rows of floats, padded like log W, and the blocks of columns in which any of them is not blank.
#pragma once

#include <cstdint>
#include <cstring>

#include "lanes.h"

namespace tnesi {

inline void widen(const std::uint8_t* x, std::size_t d, float* out) { lanes().widen_u8(x, d, out); }
inline void widen(const float* x, std::size_t d, float* out) { std::memcpy(out, x, d * sizeof(float)); }

inline bool blank(const float* block) {
    std::uint32_t any = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
        std::uint32_t bits;
        std::memcpy(&bits, block + i, sizeof bits);
        any |= bits;
    }
    return any == 0;
}

// Returns the number of blocks written.
inline int find_blocks(const float* points, std::size_t n, std::size_t d_padded, std::int32_t* blocks) {
    int n_blocks = 0;
    for (std::size_t b = 0; b < d_padded / kBlock; ++b) {
        bool needed = false;
        for (std::size_t p = 0; p < n && !needed; ++p) needed = !blank(points + p * d_padded + b * kBlock);
        if (needed) blocks[n_blocks++] = static_cast<std::int32_t>(b);
    }
    return n_blocks;
}

}  // namespace tnesi
