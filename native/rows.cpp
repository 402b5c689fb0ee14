// What is needed of each row once: a hash of its values and the constant of its likelihood.
#include <cstring>
#include <vector>

#include "kernels.h"
#include "lanes.h"
#include "parallel.h"

namespace tnesi {
namespace {

inline std::uint64_t mix(std::uint64_t h) {  // the finaliser of splitmix64
    h ^= h >> 30;
    h *= 0xbf58476d1ce4e5b9ULL;
    h ^= h >> 27;
    h *= 0x94d049bb133111ebULL;
    return h ^ (h >> 31);
}

}  // namespace

template <typename T>
void row_hashes(const T* x, std::size_t n, std::size_t d, std::uint64_t seed, std::uint64_t* out, int n_threads) {
    parallel_for(n, 256, n_threads, [&](std::size_t begin, std::size_t end, int) {
        for (std::size_t row = begin; row < end; ++row) {
            std::uint64_t h = mix(seed + 0x9e3779b97f4a7c15ULL);
            double total = 0.0;
            for (std::size_t i = 0; i < d; ++i) total += static_cast<double>(x[row * d + i]);
            if (!(total > 0.0)) total = 1.0;
            for (std::size_t i = 0; i < d; ++i) {
                const float value = static_cast<float>(static_cast<double>(x[row * d + i]) / total) + 0.0f;  // -0 is 0
                std::uint32_t bits;
                std::memcpy(&bits, &value, sizeof bits);
                h = (h ^ bits) * 0x9e3779b97f4a7c15ULL;
                h ^= h >> 32;
            }
            out[row] = mix(h);
        }
    });
}

namespace {
inline const float* widened(const std::uint8_t* x, std::size_t d, float* buffer) {
    lanes().widen_u8(x, d, buffer);
    return buffer;
}
inline const float* widened(const float* x, std::size_t, float*) { return x; }
}  // namespace

template <typename T>
void log_factorials(const Rows<T>& rows, double* out, int n_threads) {
    std::vector<std::vector<float>> buffers(static_cast<std::size_t>(std::max(n_threads, 1)),
                                            std::vector<float>(rows.d));
    parallel_for(rows.n, 256, n_threads, [&](std::size_t begin, std::size_t end, int worker) {
        float* buffer = buffers[static_cast<std::size_t>(worker)].data();
        for (std::size_t n = begin; n < end; ++n)
            out[n] = lanes().log_factorials(widened(rows.x + n * rows.d, rows.d, buffer), rows.d, rows.scale[n]);
    });
}

template void row_hashes(const std::uint8_t*, std::size_t, std::size_t, std::uint64_t, std::uint64_t*, int);
template void row_hashes(const float*, std::size_t, std::size_t, std::uint64_t, std::uint64_t*, int);
template void log_factorials(const Rows<std::uint8_t>&, double*, int);
template void log_factorials(const Rows<float>&, double*, int);

}  // namespace tnesi
