// Statistics by ownership of fields: the M-step and the Hebbian step.
#include <cstring>
#include <vector>

#include "grouping.h"
#include "kernels.h"
#include "lanes.h"
#include "parallel.h"

namespace tnesi {
namespace {

constexpr std::size_t kRowsAtOnce = 64;  // rows summed in float before the sum goes on in double

inline void add_rows(const std::uint8_t* const* x, const float* factor, std::size_t n, std::size_t d, double* sum) {
    lanes().add_rows_u8(x, factor, n, d, sum);
}
inline void add_rows(const float* const* x, const float* factor, std::size_t n, std::size_t d, double* sum) {
    lanes().add_rows_f32(x, factor, n, d, sum);
}

// sum[d] = sum_n s_nc scale_n x_nd over a field's members; returns the mass sum_n s_nc.
template <typename T>
double sum_members(const Rows<T>& rows, const Member* members, std::size_t n_members, const float* weight,
                   double* sum) {
    const T* x[kRowsAtOnce];
    float factor[kRowsAtOnce];
    double mass = 0.0;
    std::memset(sum, 0, rows.d * sizeof(double));
    for (std::size_t at = 0; at < n_members; at += kRowsAtOnce) {
        const std::size_t n = std::min(kRowsAtOnce, n_members - at);
        for (std::size_t i = 0; i < n; ++i) {
            const auto point = static_cast<std::size_t>(members[at + i].point);
            const float s = members[at + i].s * (weight ? weight[point] : 1.0f);
            mass += static_cast<double>(s);
            factor[i] = s * rows.scale[point];
            x[i] = rows.x + point * rows.d;
            // rows lie anywhere in memory: ask for all of them before the sums need them
            for (std::size_t at_byte = 0; at_byte < rows.d * sizeof(T); at_byte += 64)
                __builtin_prefetch(reinterpret_cast<const char*>(x[i]) + at_byte);
        }
        add_rows(x, factor, n, rows.d, sum);
    }
    return mass;
}

}  // namespace

template <typename T>
void m_step(const Rows<T>& rows, const std::int32_t* ids, const float* s, const float* weight, std::size_t c_prime,
            const float* old_w, const float* prior, double prior_rows, float* w, float* log_w, float* log_w_sum,
            double* mass, std::size_t c, std::size_t d_padded, int n_threads) {
    const Grouping groups = group_by(ids, s, rows.n, c_prime, c);
    std::vector<std::vector<double>> sums(static_cast<std::size_t>(std::max(n_threads, 1)),
                                          std::vector<double>(rows.d));
    parallel_for(c, 8, n_threads, [&](std::size_t first, std::size_t last, int worker) {
        double* sum = sums[static_cast<std::size_t>(worker)].data();
        for (std::size_t field = first; field < last; ++field) {
            const std::size_t begin = groups.start[field];
            float* row = w + field * rows.d;
            mass[field] =
                sum_members(rows, groups.members.data() + begin, groups.start[field + 1] - begin, weight, sum);
            double total = mass[field];
            if (prior) {
                total += prior_rows;
                for (std::size_t d = 0; d < rows.d; ++d) sum[d] += prior_rows * static_cast<double>(prior[d]);
            }
            if (total > 0.0) {
                const double inverse = 1.0 / total;
                for (std::size_t d = 0; d < rows.d; ++d) row[d] = static_cast<float>(sum[d] * inverse + 1.0);
            } else {
                std::memcpy(row, old_w + field * rows.d, rows.d * sizeof(float));
            }
            log_w_sum[field] = static_cast<float>(lanes().log(row, rows.d, log_w + field * d_padded));
        }
    });
}

template <typename T>
void hebbian_step(const Rows<T>& rows, const std::int32_t* ids, const float* s, const float* weight,
                  std::size_t c_prime, float rate, float* w, float* log_w, float* log_w_sum, float* w_sum,
                  std::size_t c, std::size_t d_padded, int n_threads) {
    const Grouping groups = group_by(ids, s, rows.n, c_prime, c);
    std::vector<std::vector<double>> sums(static_cast<std::size_t>(std::max(n_threads, 1)),
                                          std::vector<double>(rows.d));
    parallel_for(c, 256, n_threads, [&](std::size_t first, std::size_t last, int worker) {
        double* sum = sums[static_cast<std::size_t>(worker)].data();
        for (std::size_t field = first; field < last; ++field) {
            const std::size_t begin = groups.start[field], end = groups.start[field + 1];
            if (begin == end) continue;
            const double mass = sum_members(rows, groups.members.data() + begin, end - begin, weight, sum);
            if (!(mass > 0.0)) continue;
            // a step past the mean of the batch would overshoot, below 1 in the end: go to the mean at most
            const double eps = std::min(static_cast<double>(rate), 1.0 / mass);
            float* row = w + field * rows.d;
            double total = 0.0;
            for (std::size_t d = 0; d < rows.d; ++d) {
                const double old = static_cast<double>(row[d]);
                row[d] = static_cast<float>(old + eps * (sum[d] + mass * (1.0 - old)));
                total += static_cast<double>(row[d]);
            }
            w_sum[field] = static_cast<float>(total);
            log_w_sum[field] = static_cast<float>(lanes().log(row, rows.d, log_w + field * d_padded));
        }
    });
}

#define TNESI_INSTANTIATE(T)                                                                                         \
    template void m_step(const Rows<T>&, const std::int32_t*, const float*, const float*, std::size_t, const float*, \
                         const float*, double, float*, float*, float*, double*, std::size_t, std::size_t, int);      \
    template void hebbian_step(const Rows<T>&, const std::int32_t*, const float*, const float*, std::size_t, float,  \
                               float*, float*, float*, float*, std::size_t, std::size_t, int);
TNESI_INSTANTIATE(std::uint8_t)
TNESI_INSTANTIATE(float)

}  // namespace tnesi
