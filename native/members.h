// Sums over the points of a field, and its Hebbian step.
#pragma once

#include <algorithm>
#include <cstring>

#include "grouping.h"
#include "kernels.h"
#include "points.h"

namespace tnesi {

constexpr std::size_t kRowsAtOnce = 64;  // rows summed in float before they are added in double

inline void add_rows(const std::uint8_t* const* x, const float* factor, std::size_t n, std::size_t d, double* sum) {
    lanes().add_rows_u8(x, factor, n, d, sum);
}
inline void add_rows(const float* const* x, const float* factor, std::size_t n, std::size_t d, double* sum) {
    lanes().add_rows_f32(x, factor, n, d, sum);
}

// Computes sum[d] = sum_n s_nc scale_n x_nd over the members of a field; returns the mass sum_n s_nc.
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
            prefetch_row(rows, point);  // rows are scattered in memory
        }
        add_rows(x, factor, n, rows.d, sum);
    }
    return mass;
}

// Sums of sparse rows are always in double: columns have too few values for sums in float to be faster.
inline double sum_members(const SparseRows& rows, const Member* members, std::size_t n_members, const float* weight,
                          double* sum) {
    constexpr std::size_t kAhead = 4;
    double mass = 0.0;
    std::memset(sum, 0, rows.d * sizeof(double));
    for (std::size_t at = 0; at < n_members; ++at) {
        if (at + kAhead < n_members) prefetch_row(rows, static_cast<std::size_t>(members[at + kAhead].point));
        const auto point = static_cast<std::size_t>(members[at].point);
        const float s = members[at].s * (weight ? weight[point] : 1.0f);
        mass += static_cast<double>(s);
        const auto factor = static_cast<double>(s * rows.scale[point]);
        for_values(rows, point,
                   [&](std::size_t column, float value) { sum[column] += factor * static_cast<double>(value); });
    }
    return mass;
}

inline double pull(const std::uint8_t* const* x, const float* factor, std::size_t n, std::size_t d, float share,
                   float* row, float* log_row, double* total) {
    return lanes().pull_u8(x, factor, n, d, share, row, log_row, total);
}
inline double pull(const float* const* x, const float* factor, std::size_t n, std::size_t d, float share, float* row,
                   float* log_row, double* total) {
    return lanes().pull_f32(x, factor, n, d, share, row, log_row, total);
}

// Moves a field with a few members, without a buffer for the sums. Returns whether it did.
template <typename T>
bool pull_few(const Rows<T>& rows, const Member* members, std::size_t n, const float* weight, float rate,
              const Weights& fields, std::size_t field) {
    if (n > kRowsAtOnce) return false;
    const T* x[kRowsAtOnce];
    float factor[kRowsAtOnce];
    double mass = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        const auto point = static_cast<std::size_t>(members[i].point);
        factor[i] = members[i].s * (weight ? weight[point] : 1.0f);
        mass += static_cast<double>(factor[i]);
        factor[i] *= rows.scale[point];
        x[i] = rows.x + point * rows.d;
    }
    if (!(mass > 0.0)) return true;
    const double eps = std::min(static_cast<double>(rate), 1.0 / mass);
    for (std::size_t i = 0; i < n; ++i) factor[i] *= static_cast<float>(eps);
    double total;
    fields.log_w_sum[field] =
        static_cast<float>(pull(x, factor, n, rows.d, static_cast<float>(eps * mass), fields.w + field * rows.d,
                                fields.log_w + field * fields.d_padded, &total));
    fields.w_sum[field] = static_cast<float>(total);
    return true;
}
inline bool pull_few(const SparseRows&, const Member*, std::size_t, const float*, float, const Weights&, std::size_t) {
    return false;
}

// The Hebbian step of a field: W_c += rate * sum_n s_nc (y_n - W_c) over its members, but not beyond their mean, since
// overshooting could make weights less than 1. `sum` is scratch for D numbers.
template <typename R>
void pull_field(const R& rows, const Member* members, std::size_t n, const float* weight, float rate,
                const Weights& fields, std::size_t field, double* sum) {
    if (pull_few(rows, members, n, weight, rate, fields, field)) return;
    const double mass = sum_members(rows, members, n, weight, sum);
    if (!(mass > 0.0)) return;
    const double eps = std::min(static_cast<double>(rate), 1.0 / mass);
    float* row = fields.w + field * rows.d;
    double total = 0.0;
    for (std::size_t d = 0; d < rows.d; ++d) {
        const double old = static_cast<double>(row[d]);
        row[d] = static_cast<float>(old + eps * (sum[d] + mass * (1.0 - old)));
        total += static_cast<double>(row[d]);
    }
    fields.w_sum[field] = static_cast<float>(total);
    fields.log_w_sum[field] = static_cast<float>(lanes().log(row, rows.d, fields.log_w + field * fields.d_padded));
}

}  // namespace tnesi
