// The M-step and the Hebbian step, parallel over fields.
#include <cstring>
#include <vector>

#include "kernels.h"
#include "members.h"
#include "parallel.h"
#include "points.h"

namespace tnesi {
namespace {

// Rounds values below 2^51 units to the nearest multiple of the unit, a power of two (0: no rounding), since doubles
// near 1.5 * 2^52 units have a spacing of one unit.
class Rounding {
  public:
    explicit Rounding(double unit) : large_(unit * 0x1.8p52) {}
    double operator()(double value) const { return (value + large_) - large_; }

  private:
    double large_;
};

// Computes W_c from its sums, which are modified.
void finish_field(double* sum, double mass, const float* old_row, const Prior& prior, std::size_t d, float* row,
                  float* log_row, float* log_sum) {
    double total = mass;
    if (prior.above) {
        total += prior.rows;
        for (std::size_t i = 0; i < d; ++i) sum[i] += prior.rows * static_cast<double>(prior.above[i]);
    }
    if (total > 0.0) {
        const double inverse = 1.0 / total;
        for (std::size_t i = 0; i < d; ++i) row[i] = static_cast<float>(sum[i] * inverse + 1.0);
    } else {
        std::memcpy(row, old_row, d * sizeof(float));
    }
    *log_sum = static_cast<float>(lanes().log(row, d, log_row));
}

using Buffers = std::vector<std::vector<double>>;  // one of D numbers for each thread
Buffers buffers_for(int n_threads, std::size_t d) {
    return Buffers(static_cast<std::size_t>(std::max(n_threads, 1)), std::vector<double>(d));
}

}  // namespace

template <typename R>
void m_step(const R& rows, const std::int32_t* ids, const float* s, const float* weight, std::size_t c_prime,
            Units units, const float* old_w, Prior prior, float* w, float* log_w, float* log_w_sum, double* mass,
            std::size_t c, std::size_t d_padded, int n_threads) {
    const Grouping groups = group_by(ids, s, rows.n, c_prime, c);
    Buffers sums = buffers_for(n_threads, rows.d);
    const Rounding to_unit(units.sums), to_mass_unit(units.mass);
    parallel_for(c, 8, n_threads, [&](std::size_t first, std::size_t last, int worker) {
        double* sum = sums[static_cast<std::size_t>(worker)].data();
        for (std::size_t field = first; field < last; ++field) {
            const std::size_t begin = groups.start[field];
            mass[field] = to_mass_unit(
                sum_members(rows, groups.members.data() + begin, groups.start[field + 1] - begin, weight, sum));
            for (std::size_t i = 0; i < rows.d; ++i) sum[i] = to_unit(sum[i]);
            finish_field(sum, mass[field], old_w + field * rows.d, prior, rows.d, w + field * rows.d,
                         log_w + field * d_padded, log_w_sum + field);
        }
    });
}

template <typename R>
void add_statistics(const R& rows, const std::int32_t* ids, const float* s, const float* weight, std::size_t c_prime,
                    Units units, double* sums, double* mass, std::size_t c, int n_threads) {
    const Grouping groups = group_by(ids, s, rows.n, c_prime, c);
    Buffers buffers = buffers_for(n_threads, rows.d);
    const Rounding to_unit(units.sums), to_mass_unit(units.mass);
    parallel_for(c, 8, n_threads, [&](std::size_t first, std::size_t last, int worker) {
        double* sum = buffers[static_cast<std::size_t>(worker)].data();
        for (std::size_t field = first; field < last; ++field) {
            const std::size_t begin = groups.start[field], end = groups.start[field + 1];
            if (begin == end) continue;
            mass[field] += to_mass_unit(sum_members(rows, groups.members.data() + begin, end - begin, weight, sum));
            double* total = sums + field * rows.d;
            for (std::size_t i = 0; i < rows.d; ++i) total[i] += to_unit(sum[i]);
        }
    });
}

void finish_m_step(const double* sums, const double* mass, const float* old_w, Prior prior, float* w, float* log_w,
                   float* log_w_sum, std::size_t c, std::size_t d, std::size_t d_padded, int n_threads) {
    Buffers buffers = buffers_for(n_threads, d);
    parallel_for(c, 8, n_threads, [&](std::size_t first, std::size_t last, int worker) {
        double* sum = buffers[static_cast<std::size_t>(worker)].data();
        for (std::size_t field = first; field < last; ++field) {
            std::memcpy(sum, sums + field * d, d * sizeof(double));
            finish_field(sum, mass[field], old_w + field * d, prior, d, w + field * d, log_w + field * d_padded,
                         log_w_sum + field);
        }
    });
}

template <typename R>
void hebbian_step(const R& rows, const std::int32_t* ids, const float* s, const float* weight, std::size_t c_prime,
                  float rate, float* w, float* log_w, float* log_w_sum, float* w_sum, std::size_t c,
                  std::size_t d_padded, int n_threads) {
    const Grouping groups = group_by(ids, s, rows.n, c_prime, c);
    Buffers sums = buffers_for(n_threads, rows.d);
    const Weights fields{w, log_w, log_w_sum, w_sum, c, d_padded};
    parallel_for(c, 256, n_threads, [&](std::size_t first, std::size_t last, int worker) {
        double* sum = sums[static_cast<std::size_t>(worker)].data();
        for (std::size_t field = first; field < last; ++field) {
            const std::size_t begin = groups.start[field], end = groups.start[field + 1];
            if (begin == end) continue;
            pull_field(rows, groups.members.data() + begin, end - begin, weight, rate, fields, field, sum);
        }
    });
}

#define TNESI_INSTANTIATE(R)                                                                                          \
    template void m_step(const R&, const std::int32_t*, const float*, const float*, std::size_t, Units, const float*, \
                         Prior, float*, float*, float*, double*, std::size_t, std::size_t, int);                      \
    template void add_statistics(const R&, const std::int32_t*, const float*, const float*, std::size_t, Units,       \
                                 double*, double*, std::size_t, int);                                                 \
    template void hebbian_step(const R&, const std::int32_t*, const float*, const float*, std::size_t, float, float*, \
                               float*, float*, float*, std::size_t, std::size_t, int);
TNESI_INSTANTIATE(Rows<std::uint8_t>)
TNESI_INSTANTIATE(Rows<float>)
TNESI_INSTANTIATE(SparseRows)

}  // namespace tnesi
