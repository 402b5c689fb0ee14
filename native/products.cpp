// x . log W for a mini-batch: log W is read once, in parallel, while BLAS would copy it first.
#include <vector>

#include "kernels.h"
#include "parallel.h"
#include "points.h"

namespace tnesi {

template <typename T>
void products(const Rows<T>& given, const float* log_w, std::size_t c, std::size_t d_padded, float* out,
              int n_threads) {
    const Lanes& simd = lanes();
    const std::size_t n = given.n, d = given.d;
    const std::size_t step = static_cast<std::size_t>(simd.n_points), n_tiles = (n + step - 1) / step;
    std::vector<float> points(n * d_padded, 0.0f);
    std::vector<std::int32_t> blocks(n_tiles * (d_padded / kBlock));
    std::vector<int> n_blocks(n_tiles);
    for (std::size_t p = 0; p < n; ++p) widen(given.x + p * d, d, points.data() + p * d_padded);
    for (std::size_t tile = 0; tile < n_tiles; ++tile)
        n_blocks[tile] = find_blocks(points.data() + tile * step * d_padded, std::min(step, n - tile * step), d_padded,
                                     blocks.data() + tile * (d_padded / kBlock));

    constexpr std::size_t kRows = 16;
    parallel_for((c + kRows - 1) / kRows, 16, n_threads, [&](std::size_t first, std::size_t last, int) {
        const float* rows[kRows];
        float scores[kRows * 8];  // at least kRows * Lanes::n_points
        for (std::size_t group = first; group < last; ++group) {
            const std::size_t begin = group * kRows, m = std::min(kRows, c - begin);
            for (std::size_t r = 0; r < m; ++r) rows[r] = log_w + (begin + r) * d_padded;
            for (std::size_t tile = 0; tile < n_tiles; ++tile) {
                const std::size_t at = tile * step, n_now = std::min(step, n - at);
                simd.dots(points.data() + at * d_padded, d_padded, static_cast<int>(n_now), rows, static_cast<int>(m),
                          blocks.data() + tile * (d_padded / kBlock), n_blocks[tile], scores);
                for (std::size_t p = 0; p < n_now; ++p)
                    for (std::size_t r = 0; r < m; ++r) out[(at + p) * c + begin + r] = scores[p * m + r];
            }
        }
    });
}

template void products(const Rows<std::uint8_t>&, const float*, std::size_t, std::size_t, float*, int);
template void products(const Rows<float>&, const float*, std::size_t, std::size_t, float*, int);

}  // namespace tnesi
