// Spreading over a graph of fields: products with polynomials of its matrix.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels.h"
#include "lanes.h"
#include "parallel.h"

namespace tnesi {
namespace {

// Baseline vectors: steps are limited by memory, and without fused multiply-adds the result does not depend on the
// instruction set.
constexpr std::size_t kWidth = 4;
typedef float V __attribute__((vector_size(kWidth * sizeof(float))));

constexpr std::int64_t kAhead = 16;  // prefetch distance, in entries of the matrix

struct alignas(kBlock * sizeof(float)) Line {  // a block of columns aligned to a cache line
    float columns[kBlock];
};

inline V load(const float* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

// Computes the next Chebyshev polynomial for one field, replacing the second to last one in `before`.
template <std::size_t kColumns>
void next_row(const Graph& graph, std::size_t row, bool first, const float* now, float* before) {
    const std::int64_t last = graph.indptr[graph.c] - 1;
    const auto named_by = [&](std::int64_t j) { return now + static_cast<std::size_t>(graph.indices[j]) * kColumns; };
    V sum[kColumns / kWidth] = {};
    for (std::int64_t j = graph.indptr[row]; j < graph.indptr[row + 1]; ++j) {
        const float* ahead = named_by(std::min(j + kAhead, last));
        for (std::size_t k = 0; k < kColumns; k += kBlock) __builtin_prefetch(ahead + k);
        const float* from = named_by(j);
        for (std::size_t k = 0; k < kColumns; k += kWidth) sum[k / kWidth] += load(from + k) * graph.values[j];
    }
    for (std::size_t k = 0; k < kColumns; k += kWidth) {
        const V moved = sum[k / kWidth] * 2.0f - load(now + row * kColumns + k);
        const V next = first ? moved : moved * 2.0f - load(before + row * kColumns + k);
        std::memcpy(before + row * kColumns + k, &next, sizeof next);
    }
}

// Computes all terms for a few columns, which are independent of the others and stay in cache.
template <std::size_t kColumns>
void spread_panel(const Graph& graph, const float* source, const Series& series, float* out, std::size_t k_padded,
                  int n_threads) {
    constexpr std::size_t kRows = 128;
    const std::size_t size = graph.c * kColumns;
    std::vector<Line> scratch(2 * size / kBlock);  // polynomials of even and of odd degree
    float* even = reinterpret_cast<float*>(scratch.data());
    const auto polynomial = [&](std::size_t degree) { return even + degree % 2 * size; };
    parallel_steps(series.n_terms, graph.c, kRows, n_threads,
                   [&](std::size_t step, std::size_t begin, std::size_t end, int) {
                       for (std::size_t row = begin; row < end; ++row) {
                           float* now = polynomial(step) + row * kColumns;
                           if (step == 0)
                               std::memcpy(now, source + row * k_padded, kColumns * sizeof(float));
                           else
                               next_row<kColumns>(graph, row, step == 1, polynomial(step - 1), polynomial(step));
                           for (std::size_t i = 0; i < series.n; ++i) {
                               const float factor = series.coefficients[i * series.n_terms + step];
                               float* total = out + (i * graph.c + row) * k_padded;
                               if (step > 0 && factor == 0.0f) continue;
                               for (std::size_t k = 0; k < kColumns; k += kWidth) {
                                   const V sum = (step == 0 ? V{} : load(total + k)) + load(now + k) * factor;
                                   std::memcpy(total + k, &sum, sizeof sum);
                               }
                           }
                       }
                   });
}

}  // namespace

void spread(const Graph& graph, const float* source, const Series& series, float* out, std::size_t k_padded,
            int n_threads) {
    std::size_t k = 0;
    for (; k + 2 * kBlock <= k_padded; k += 2 * kBlock)
        spread_panel<2 * kBlock>(graph, source + k, series, out + k, k_padded, n_threads);
    if (k < k_padded) spread_panel<kBlock>(graph, source + k, series, out + k, k_padded, n_threads);
}

}  // namespace tnesi
