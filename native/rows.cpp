// Row hashes and the constants of the likelihood.
#include <cstring>
#include <vector>

#include "kernels.h"
#include "parallel.h"
#include "points.h"

namespace tnesi {
namespace {

inline std::uint64_t mix(std::uint64_t h) {  // the finalizer of splitmix64
    h ^= h >> 30;
    h *= 0xbf58476d1ce4e5b9ULL;
    h ^= h >> 27;
    h *= 0x94d049bb133111ebULL;
    return h ^ (h >> 31);
}

}  // namespace

template <typename R>
void row_hashes(const R& rows, std::uint64_t seed, std::uint64_t* out, int n_threads) {
    parallel_for(rows.n, 256, n_threads, [&](std::size_t begin, std::size_t end, int) {
        for (std::size_t row = begin; row < end; ++row) {
            std::uint64_t h = mix(seed + 0x9e3779b97f4a7c15ULL);
            double total = 0.0;
            for_values(rows, row, [&](std::size_t, float value) { total += static_cast<double>(value); });
            for_values(rows, row, [&](std::size_t column, float value) {
                const float share = static_cast<float>(static_cast<double>(value) / total);
                if (share == 0.0f) return;  // equivalent to a missing sparse entry
                std::uint32_t bits;
                std::memcpy(&bits, &share, sizeof bits);
                h = (h ^ (static_cast<std::uint64_t>(column) << 32 | bits)) * 0x9e3779b97f4a7c15ULL;
                h ^= h >> 32;
            });
            out[row] = mix(h);
        }
    });
}

namespace {
inline double log_factorials_of(const Rows<std::uint8_t>& rows, std::size_t n, float* buffer) {
    lanes().widen_u8(rows.x + n * rows.d, rows.d, buffer);
    return lanes().log_factorials(buffer, rows.d, rows.scale[n]);
}
inline double log_factorials_of(const Rows<float>& rows, std::size_t n, float*) {
    return lanes().log_factorials(rows.x + n * rows.d, rows.d, rows.scale[n]);
}
inline double log_factorials_of(const SparseRows& rows, std::size_t n, float*) {
    const std::int64_t begin = rows.indptr[n];
    return lanes().log_factorials(rows.values + begin, static_cast<std::size_t>(rows.indptr[n + 1] - begin),
                                  rows.scale[n]);
}
inline std::size_t buffer_size(const Rows<std::uint8_t>& rows) { return rows.d; }
template <typename R>
inline std::size_t buffer_size(const R&) {
    return 0;
}
}  // namespace

template <typename R>
void log_factorials(const R& rows, double* out, int n_threads) {
    std::vector<std::vector<float>> buffers(static_cast<std::size_t>(std::max(n_threads, 1)),
                                            std::vector<float>(buffer_size(rows)));
    parallel_for(rows.n, 256, n_threads, [&](std::size_t begin, std::size_t end, int worker) {
        float* buffer = buffers[static_cast<std::size_t>(worker)].data();
        for (std::size_t n = begin; n < end; ++n) out[n] = log_factorials_of(rows, n, buffer);
    });
}

#define TNESI_INSTANTIATE(R)                                                \
    template void row_hashes(const R&, std::uint64_t, std::uint64_t*, int); \
    template void log_factorials(const R&, double*, int);
TNESI_INSTANTIATE(Rows<std::uint8_t>)
TNESI_INSTANTIATE(Rows<float>)
TNESI_INSTANTIATE(SparseRows)

}  // namespace tnesi
