// Links between fields: how much the points have in common that they explain.
#include <algorithm>
#include <vector>

#include "kernels.h"
#include "parallel.h"

namespace tnesi {
namespace {

// One row of A^T A at a time; most of its entries are 0, and only the others are looked at.
class Row {
  public:
    explicit Row(std::size_t c) : sum_(c, 0.0) { seen_.reserve(c); }

    void add_all(const Graph& points, const Graph& fields, std::size_t field) {
        for (std::int64_t j = fields.indptr[field]; j < fields.indptr[field + 1]; ++j) {
            const double value = fields.values[j];
            const auto point = static_cast<std::size_t>(fields.indices[j]);
            for (std::int64_t i = points.indptr[point]; i < points.indptr[point + 1]; ++i) {
                const double product = value * static_cast<double>(points.values[i]);
                double& sum = sum_[static_cast<std::size_t>(points.indices[i])];
                if (product <= 0.0) continue;
                if (sum == 0.0) seen_.push_back(points.indices[i]);
                sum += product;
            }
        }
    }

    // Calls use(other, value) for the links that are strong enough, and forgets all.
    template <typename Use>
    void take(double least, bool in_order, Use&& use) {
        const auto weak = [&](std::int32_t other) {
            double& sum = sum_[static_cast<std::size_t>(other)];
            if (sum >= least) return false;
            sum = 0.0;
            return true;
        };
        seen_.erase(std::remove_if(seen_.begin(), seen_.end(), weak), seen_.end());
        if (in_order) std::sort(seen_.begin(), seen_.end());
        for (std::int32_t other : seen_) {
            double& sum = sum_[static_cast<std::size_t>(other)];
            use(other, static_cast<float>(sum));
            sum = 0.0;
        }
        seen_.clear();
    }

  private:
    std::vector<double> sum_;
    std::vector<std::int32_t> seen_;
};

template <typename Body>
void for_rows(const Graph& fields, int n_threads, Body&& body) {
    constexpr std::size_t kRows = 64;
    std::vector<Row> rows(static_cast<std::size_t>(std::max(n_threads, 1)), Row(fields.c));
    parallel_for(fields.c, kRows, n_threads, [&](std::size_t begin, std::size_t end, int worker) {
        for (std::size_t field = begin; field < end; ++field) body(field, rows[static_cast<std::size_t>(worker)]);
    });
}

}  // namespace

void count_links(const Graph& points, const Graph& fields, double least, std::int64_t* count, int n_threads) {
    for_rows(fields, n_threads, [&](std::size_t field, Row& row) {
        row.add_all(points, fields, field);
        count[field] = 0;
        row.take(least, false, [&](std::int32_t, float) { ++count[field]; });
    });
}

void find_links(const Graph& points, const Graph& fields, double least, const std::int64_t* indptr,
                std::int32_t* indices, float* values, int n_threads) {
    for_rows(fields, n_threads, [&](std::size_t field, Row& row) {
        row.add_all(points, fields, field);
        std::int64_t at = indptr[field];
        row.take(least, true, [&](std::int32_t other, float value) {
            if (at == indptr[field + 1]) return;  // never past the end, whatever the caller counted
            indices[at] = other;
            values[at++] = value;
        });
    });
}

}  // namespace tnesi
