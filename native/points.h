// Iteration over rows of any type, and conversion of a few rows to floats, padded like log W, with their nonzero
// blocks.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels.h"
#include "lanes.h"

namespace tnesi {

// Calls use(column, value) for the entries of a row in column order; zeros may be skipped.
template <typename T, typename Use>
inline void for_values(const Rows<T>& rows, std::size_t n, Use&& use) {
    const T* x = rows.x + n * rows.d;
    for (std::size_t i = 0; i < rows.d; ++i)
        if (x[i] != T{0}) use(i, static_cast<float>(x[i]));
}
template <typename Use>
inline void for_values(const SparseRows& rows, std::size_t n, Use&& use) {
    for (std::int64_t j = rows.indptr[n]; j < rows.indptr[n + 1]; ++j)
        use(static_cast<std::size_t>(rows.indices[j]), rows.values[j]);
}

inline void prefetch(const void* begin, std::size_t n_bytes) {
    for (std::size_t at = 0; at < n_bytes; at += 64) __builtin_prefetch(static_cast<const char*>(begin) + at);
}
template <typename T>
inline void prefetch_row(const Rows<T>& rows, std::size_t n) {
    prefetch(rows.x + n * rows.d, rows.d * sizeof(T));
}
inline void prefetch_row(const SparseRows& rows, std::size_t n) {
    const std::int64_t begin = rows.indptr[n];
    const auto length = static_cast<std::size_t>(rows.indptr[n + 1] - begin);
    prefetch(rows.indices + begin, length * sizeof(std::int32_t));
    prefetch(rows.values + begin, length * sizeof(float));
}

// A set of small integers that is read in ascending order.
class Bits {
  public:
    explicit Bits(std::size_t n) : words_((n + 63) / 64, 0) {}
    void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << i % 64; }
    // Moves the elements to `out`; returns their number.
    int take(std::int32_t* out) {
        int n = 0;
        for (std::size_t w = 0; w < words_.size(); ++w)
            for (; words_[w] != 0; words_[w] &= words_[w] - 1)
                out[n++] = static_cast<std::int32_t>(w * 64) + __builtin_ctzll(words_[w]);
        return n;
    }

  private:
    std::vector<std::uint64_t> words_;
};

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
