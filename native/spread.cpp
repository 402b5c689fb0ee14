// Values spread over a graph of fields, step by step.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels.h"
#include "lanes.h"
#include "parallel.h"

namespace tnesi {
namespace {

// Plain vectors of the baseline: memory is what a step waits for, and without fused multiply-adds the result does
// not depend on the instruction set.
constexpr std::size_t kWidth = 4;
typedef float V __attribute__((vector_size(kWidth * sizeof(float))));

constexpr std::int64_t kAhead = 16;  // entries of the matrix by which the rows they name are fetched ahead

struct alignas(kBlock * sizeof(float)) Line {  // a block of columns in a cache line of its own, not in parts of two
    float columns[kBlock];
};

inline V load(const float* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

// Some columns of a matrix.
template <typename T>
struct Panel {
    T* first;
    std::size_t stride;
    T* row(std::size_t c) const { return first + c * stride; }
};

template <std::size_t kColumns>
void spread_row(const Graph& graph, std::size_t row, Panel<const float> source, Panel<const float> now,
                Panel<float> out) {
    const std::int64_t last = graph.indptr[graph.c] - 1;
    const auto named_by = [&](std::int64_t j) { return now.row(static_cast<std::size_t>(graph.indices[j])); };
    V sum[kColumns / kWidth] = {};
    for (std::int64_t j = graph.indptr[row]; j < graph.indptr[row + 1]; ++j) {
        const float* ahead = named_by(std::min(j + kAhead, last));
        for (std::size_t k = 0; k < kColumns; k += kBlock) __builtin_prefetch(ahead + k);
        const float* from = named_by(j);
        for (std::size_t k = 0; k < kColumns; k += kWidth) sum[k / kWidth] += load(from + k) * graph.values[j];
    }
    for (std::size_t k = 0; k < kColumns; k += kWidth) {
        const V total = sum[k / kWidth] + load(source.row(row) + k);
        std::memcpy(out.row(row) + k, &total, sizeof total);
    }
}

// All steps for a few columns, which do not depend on the others and, alone, stay in the cache.
template <std::size_t kColumns>
void spread_panel(const Graph& graph, Panel<const float> source, Panel<const float> now, Panel<float> out,
                  std::size_t steps, int n_threads) {
    constexpr std::size_t kRows = 128;
    const std::size_t size = graph.c * kColumns;
    std::vector<Line> between(std::min<std::size_t>(steps - 1, 2) * size / kBlock);  // results of even and odd steps
    float* scratch = reinterpret_cast<float*>(between.data());
    const auto result = [&](std::size_t step) {
        return step + 1 == steps ? out : Panel<float>{scratch + step % 2 * size, kColumns};
    };
    parallel_steps(steps, graph.c, kRows, n_threads, [&](std::size_t step, std::size_t begin, std::size_t end) {
        const auto from = step == 0 ? now : Panel<const float>{result(step - 1).first, kColumns};
        for (std::size_t row = begin; row < end; ++row) spread_row<kColumns>(graph, row, source, from, result(step));
    });
}

}  // namespace

void spread(const Graph& graph, const float* source, const float* now, float* out, std::size_t k_padded,
            std::size_t steps, int n_threads) {
    const auto spread_from = [&](std::size_t k, auto panel) {
        panel(graph, {source + k, k_padded}, {now + k, k_padded}, {out + k, k_padded}, steps, n_threads);
    };
    std::size_t k = 0;
    for (; k + 2 * kBlock <= k_padded; k += 2 * kBlock) spread_from(k, spread_panel<2 * kBlock>);
    if (k < k_padded) spread_from(k, spread_panel<kBlock>);
}

}  // namespace tnesi
